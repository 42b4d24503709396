/* coupled_pass.c: one pass over Z per iteration of coupled.c. Rows not in the border of the gate
 * operator have
 *     (A^-1 p)_i = dinv_i (p_i - <zeta_i, t>),  t from g = sum_i dinv_i p_i zeta_i  (num/dplr.h),
 * so each tile of rows, while in cache, is scored with t, which gives r and exp(beta r), and is added with these
 * weights to the next g.
 *
 * Far from the fixed point the passes over a large bank of f32, f16 or bf16 are in f32
 * (num/cpu/f32.h): the next pass corrects their error as it corrects that of p. As soon as p changes by
 * less than CGAM_ROUTE_F32_END of its largest entry, or falls slowly, they are in double. Convergence is accepted
 * only after a pass in double whose g also came from one.
 *
 * Entmax has no weights until all scores are known. Its pass only computes scores, in double; the next g is gathered
 * afterwards, from the rows of its support. */
#include "memory/engines.h"

#include "num/pass.h"
#include "num/readout.h"
#include "num/softmax.h"
#include "num/vec.h"

#include <string.h>

static const double F32_SCORES = 1e-3; /* beta times the error of r that f32 may cause */
static const double F32_RATE = 0.7;

typedef struct stepping {
    const cgam_recall *plan;
    int64_t count;            /* active queries */
    cgam_streaming *const *w; /* [count] */
    const float *t32;         /* [count, ld] t laid out for f32, for the queries in it */
    int64_t ld;
    double top[CGAM_ROUTE_SHARE]; /* max r_new, valid after the pass */
} stepping;

/* The sums of one query over the rows of a group. */
typedef struct gathered {
    cgam_softmax soft;
    double feedback; /* sum p (r - a) */
} gathered;
/* Layout of the sums of a group: g [count, d], the sum of weights and the feedback, [count] each. */
enum { SUMS = 2 };

/* Computes new r of rows [i, i + rows) from dot = <zeta, t>, and adds to the sums; sets weight[] to dinv_i exp(beta
 * (r_i - top)). Returns the factor by which earlier sums must shrink. */
static double step_tile(const stepping *job, const cgam_iterating *x, int64_t i, int64_t rows,
                        const double *dot, const double *dinv, gathered *sums, double *weight)
{
    const cgam_f64 *f64 = job->plan->bank->Z.cpu->f64;
    double beta = job->plan->opts.beta, l2 = job->plan->opts.lambda * job->plan->opts.lambda;
    double shrink = 1, feedback = 0, soft[3], *r = x->r_new + i;
    const double *a = x->in.a + i, *p = x->p_old + i, *D = dinv + i;
    for (int64_t k = 0; k < rows; k++) {
        double next = a[k] + l2 * D[k] * (p[k] - dot[k]);
        r[k] = D[k] != 0 ? next : r[k]; /* border rows were written before the pass */
    }
    for (int64_t k = 0; k < rows; k++) feedback += p[k] * (r[k] - a[k]);
    sums->feedback += feedback;
    if (cgam_recall_sparse(job->plan)) return 1;
    double top = f64->largest(r, rows);
    if (top > sums->soft.top) shrink = cgam_softmax_raise(&sums->soft, beta, top);
    f64->softmax(r, rows, beta, sums->soft.top, weight, soft);
    cgam_softmax_add(&sums->soft, soft[0], soft[1], soft[2]);
    for (int64_t k = 0; k < rows; k++) weight[k] *= D[k];
    return shrink;
}

/* Rows whose total weight is below 2^-54 of all are not added to g. With one query the sum for a tile is computed
 * together with the scores of the next (num/readout.h). */
static cgam_status step_rows(void *arg, const cgam_pass_group *group)
{
    const stepping *job = arg;
    const cgam_rows *Z = &job->plan->bank->Z;
    cgam_env *env = job->plan->bank->env;
    const double *dinv = cgam_dplr_dinv(job->plan->gate->A);
    int64_t d = Z->d, tile = cgam_readout_tile(Z), count = job->count;
    bool sparse = cgam_recall_sparse(job->plan);
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    double *dot = cgam_alloc(env, (size_t)(6 * tile), sizeof *dot), *late = dot + 2 * tile;
    float *y32 = cgam_zalloc(env, (size_t)(count * job->ld), sizeof *y32);
    if (!dot || !y32) {
        cgam_free(env, dot);
        cgam_free(env, y32);
        return cgam_fail_nomem(env, "a tile of scores");
    }
    gathered part[CGAM_ROUTE_SHARE];
    double *weight = dot + tile, *sums = group->sums + count * d;
    cgam_readout_sum to[CGAM_ROUTE_SHARE];
    for (int64_t v = 0; v < count; v++) {
        part[v] = (gathered){.soft.top = -INFINITY};
        to[v] = (cgam_readout_sum){group->sums + v * d, y32 + v * job->ld, 0};
    }
    cgam_readout waits[2] = {cgam_readout_in(late, tile),
                             cgam_readout_in(late + CGAM_READOUT_ROOM * tile, tile)};
    int turn = 0;
    for (int64_t i = group->from; i < group->to; i += tile) {
        int64_t rows = group->to - i < tile ? group->to - i : tile;
        for (int64_t v = 0; v < count; v++, turn ^= 1) {
            bool f32 = job->w[v]->f32;
            cgam_readout_dot(Z, i, rows, job->w[v]->t, f32 ? job->t32 + v * job->ld : NULL, dot,
                             &waits[!turn], &to[v]);
            double shrink = step_tile(job, &job->w[v]->x, i, rows, dot, dinv, &part[v], weight);
            if (shrink != 1) {
                cgam_readout_flush(Z, &to[v]);
                for (int64_t j = 0; j < d; j++) to[v].y[j] *= shrink;
            }
            if (sparse) continue;
            waits[turn].f32 = f32;
            cgam_readout_set(Z, i, rows, weight, 0x1p-54 / (double)Z->n * part[v].soft.sum,
                             &waits[turn]);
            if (count > 1) cgam_readout_add(Z, &waits[turn], &to[v]);
        }
    }
    cgam_readout_add(Z, &waits[!turn], &to[0]);
    for (int64_t v = 0; v < count; v++) {
        cgam_readout_flush(Z, &to[v]);
        group->notes[v] = sparse ? part[v].feedback : part[v].soft.top;
        sums[v] = part[v].soft.sum;
        sums[count + v] = part[v].feedback;
    }
    cgam_free(env, dot);
    cgam_free(env, y32);
    return CGAM_OK;
}

/* Makes the sums of a group relative to the largest score of all groups. */
static cgam_status scale_sums(void *arg, const cgam_pass_group *group)
{
    const stepping *job = arg;
    int64_t d = job->plan->bank->Z.d, count = job->count;
    for (int64_t v = 0; v < count; v++) {
        double *g = group->sums + v * d, *sum = group->sums + count * d + v;
        cgam_softmax all = {.top = job->top[v]}, own = {.top = group->notes[v], .sum = *sum};
        double weight = cgam_softmax_join(&all, own, job->plan->opts.beta);
        for (int64_t j = 0; j < d; j++) g[j] *= weight;
        *sum = all.sum;
    }
    return CGAM_OK;
}

/* Joins the sums of all groups, and g for the next pass. With entmax only the feedback is joined, and scores are
 * activated separately. */
static cgam_status join_groups(stepping *job, cgam_pass *pass)
{
    int64_t d = job->plan->bank->Z.d, count = job->count;
    double *top = job->top, beta = job->plan->opts.beta;
    cgam_env *env = job->plan->bank->env;
    bool sparse = cgam_recall_sparse(job->plan);
    double *sums = cgam_alloc(env, (size_t)pass->size, sizeof *sums),
           *feedback = sums + count * (d + 1);
    cgam_status status = sums ? CGAM_OK : cgam_fail_nomem(env, "a pass over the bank");
    if (status == CGAM_OK && !sparse) {
        status = cgam_pass_max(pass, top);
        if (status == CGAM_OK) status = cgam_pass_each(pass, scale_sums, job);
        if (status == CGAM_OK) status = cgam_pass_join(pass, sums);
    }
    for (int64_t v = 0; v < count && status == CGAM_OK; v++) {
        cgam_streaming *w = job->w[v];
        cgam_activated *act = &w->x.act;
        if (sparse) feedback[v] = cgam_pass_sum(pass, v);
        *act = sparse ? cgam_activated_of(job->plan, w->x.r_new)
                      : cgam_activated_softmax(beta, top[v], sums[count * d + v]);
        w->energy = 0.5 * feedback[v] - w->x.in.half_us0 - act->lse / beta;
        if (sparse) continue;
        double *g = w->g_old;
        w->g_old = w->g;
        w->g = g;
        for (int64_t j = 0; j < d; j++) g[j] = sums[v * d + j] / act->sum;
    }
    if (status == CGAM_OK) status = cgam_rows_status(&job->plan->bank->Z);
    cgam_free(env, sums);
    return status;
}

/* Can the next pass of w, with t, be in f32? */
static bool f32_suits(const cgam_recall *plan, const cgam_streaming *w, const double *t)
{
    double l2 = plan->opts.lambda * plan->opts.lambda, size = cgam_array_norm(plan->bank->Z.d, t);
    const cgam_trace *trace = &w->x.trace; /* max p = 1 / sum */
    bool near = trace->change <= CGAM_ROUTE_F32_END / w->x.act.sum || trace->rate > F32_RATE;
    if (trace->iterations > 0 && (!w->f32 || near)) return false;
    if (!plan->can.begins_f32 || !cgam_f32_holds(size)) return false;
    double off = l2 * plan->can.pivot_max * CGAM_F32_ERROR * plan->can.size * size;
    return plan->opts.beta * off <= F32_SCORES;
}

/* Computes t of a query from its g, the new r of border rows, and whether the pass is in f32. */
static cgam_status reduce_one(const cgam_recall *plan, cgam_streaming *w, float *t32)
{
    const cgam_rows *Z = &plan->bank->Z;
    const int64_t *border;
    int64_t edge = cgam_dplr_border(plan->gate->A, &border);
    double l2 = plan->opts.lambda * plan->opts.lambda, *edges = w->edges, *solved = edges + edge,
           *t = w->t;
    cgam_iterating *x = &w->x;
    cgam_status status = cgam_vec_pick(Z, x->p_old, edge, border, edges);
    if (status == CGAM_OK)
        status = plan->small
                     ? cgam_dplr_inverse_reduce(plan->small, 1, w->f32, w->g, edges, t, solved)
                     : cgam_dplr_reduce(plan->gate->A, w->g, edges, t, solved);
    if (status != CGAM_OK) return status;
    for (int64_t k = 0; k < edge; k++)
        if (cgam_vec_has(Z, border[k])) x->r_new[border[k]] = x->in.a[border[k]] + l2 * solved[k];
    w->after_f32 = w->f32; /* g came from a pass in f32 */
    w->f32 = f32_suits(plan, w, t);
    if (w->f32) Z->cpu->f32->lay[Z->dtype](t, Z->d, t32);
    return CGAM_OK;
}

cgam_status cgam_coupled_pass(const cgam_recall *plan, int64_t active, cgam_streaming *const *w)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t d = Z->d, ld = cgam_f32_room(d);
    float *t32 = cgam_alloc(env, (size_t)(active * ld), sizeof *t32);
    cgam_pass pass;
    cgam_status status = cgam_pass_new(env, Z, active * (d + SUMS), active, &pass);
    if (!t32) status = cgam_fail_nomem(env, "a pass over the bank");
    for (int64_t v = 0; v < active && status == CGAM_OK; v++)
        status = reduce_one(plan, w[v], t32 + v * ld);
    stepping job = {.plan = plan, .count = active, .w = w, .t32 = t32, .ld = ld};
    if (status == CGAM_OK) status = cgam_pass_run(&pass, step_rows, &job);
    if (status == CGAM_OK) status = join_groups(&job, &pass);
    cgam_free(env, t32);
    cgam_pass_free(&pass);
    return status;
}

typedef struct gathering {
    const cgam_recall *plan;
    const cgam_streaming *w;
} gathering;

static cgam_status gather_rows(void *arg, const cgam_pass_group *group)
{
    const gathering *job = arg;
    const cgam_rows *Z = &job->plan->bank->Z;
    cgam_env *env = job->plan->bank->env;
    const double *dinv = cgam_dplr_dinv(job->plan->gate->A), *p = job->w->x.p_new;
    int64_t tile = cgam_readout_tile(Z);
    double *late = cgam_alloc(env, (size_t)(3 * tile), sizeof *late), *weight = late + 2 * tile;
    float *y32 = cgam_zalloc(env, (size_t)cgam_f32_room(Z->d), sizeof *y32);
    cgam_readout_sum to = {group->sums, y32, 0};
    if (late && y32) {
        cgam_readout waits = cgam_readout_in(late, tile);
        waits.f32 = job->w->f32;
        for (int64_t i = group->from; i < group->to; i += tile) {
            int64_t rows = group->to - i < tile ? group->to - i : tile;
            for (int64_t k = 0; k < rows; k++) weight[k] = dinv[i + k] * p[i + k];
            cgam_readout_set(Z, i, rows, weight, 0x1p-54 / (double)Z->n, &waits);
            cgam_readout_add(Z, &waits, &to);
        }
        cgam_readout_flush(Z, &to);
    }
    cgam_free(env, late);
    cgam_free(env, y32);
    return late && y32 ? CGAM_OK : cgam_fail_nomem(env, "a tile of weights");
}

cgam_status cgam_coupled_gather(const cgam_recall *plan, cgam_streaming *w)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_pass pass;
    gathering job = {plan, w};
    w->f32 = w->x.trace.iterations == 0 && plan->can.begins_f32;
    cgam_status status = cgam_pass_new(plan->bank->env, Z, Z->d, 0, &pass);
    if (status == CGAM_OK) status = cgam_pass_run(&pass, gather_rows, &job);
    if (status == CGAM_OK) status = cgam_pass_join(&pass, w->g);
    cgam_pass_free(&pass);
    return status;
}
