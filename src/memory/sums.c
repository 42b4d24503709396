/* sums.c: coupled recalls at alpha = 0 on large banks (sums.h).
 *
 *   p = softmax(beta (a + lambda^2 p)) ,   a = b + lambda u ,   w_i = exp(beta (a_i - max a)) ,   k = beta lambda^2 :
 *   the plain iteration is   p_i = w_i e_i / S ,   e_i = exp(k p_i of the step before) ,   S = sum w_i e_i ,
 *   from e = 1.
 *
 * One sweep over a lists the rows with w > cut and sums powers of the other weights, M_j = sum w^j. The list is
 * iterated row by row. For the other rows e is a power series in w, whose coefficients are the same for all of them:
 * with h = k / S of the step before,
 *     e = exp(h w e') = 1 + h w + (h c1' + h^2/2) w^2 + (h c2' + h^2 c1' + h^3/6) w^3 + .. ,
 * so S = (sum over the list) + M_1 + c1 M_2 + c2 M_3 + c3 M_4, and a step does not touch them. All terms are positive, and
 * at most those of the fixed point of e = exp(h w e), h = k / sum w: sum_j (j + 1)^(j - 1) / j! (h w)^j. The cut is
 * k w <= 2^-12, so what the series omits is at most 6 (h w)^4 of a weight, 2^-45 (docs/theorems/rounding.md).
 *
 * Every rank lists its rows, then all have the whole list and compute the same. */
#include "memory/sums.h"

#include "memory/certify.h"
#include "memory/engines.h"
#include "num/pass.h"
#include "num/ranks.h"
#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum {
    TILE = CGAM_SUMS_TILE,
    SERIAL = 1 << 15, /* rows that one thread scans faster than several */
    PATIENCE = 40,    /* steps, after which */
    LEFT_MAX = 2000,  /* an estimate of more steps than this gives up */
    ASKS = 64         /* steps between two questions whether to stop */
};
static const double FEEDBACK_MAX = 600; /* of beta lambda^2: its exp must be finite */
static const double SERIES = 0x1p-12;   /* of k w */
static const double CUT_MAX = 0x1p-4;   /* so that the winner is on the list */

bool cgam_sums_apply(const cgam_recall *plan)
{
    const cgam_recall_opts *o = &plan->opts;
    double feedback = o->beta * o->lambda * o->lambda;
    return o->mode == CGAM_COUPLED && plan->gate->a == 0 && plan->can.matrices && !o->none &&
           !cgam_recall_sparse(plan) && o->lambda > 0 && feedback > 0 && feedback <= FEEDBACK_MAX;
}

void cgam_sums_free(cgam_env *env, cgam_sums *x)
{
    cgam_free(env, x->list);
    cgam_free(env, x->numbers);
    x->list = NULL;
    x->numbers = NULL;
}

/* ---- The sweep. ----------------------------------------------------------------------------- */

typedef struct sweep {
    const cgam_recall *plan;
    const double *a;
    double top, cut;
    int64_t *row,
        begin; /* the rows of a group that are above the cut, at its place; the first is `begin` */
} sweep;

static cgam_status run(cgam_pass *pass, bool parallel, cgam_pass_task task, void *arg)
{
    return parallel && pass->Z->n > SERIAL ? cgam_pass_run(pass, task, arg)
                                           : cgam_pass_each(pass, task, arg);
}

static cgam_status find_top(void *arg, const cgam_pass_group *group)
{
    const sweep *job = arg;
    group->notes[0] =
        job->plan->bank->Z.cpu->f64->largest(job->a + group->from, group->to - group->from);
    return CGAM_OK;
}

static cgam_status find_moments(void *arg, const cgam_pass_group *group)
{
    const sweep *job = arg;
    cgam_moments_find *find = cgam_moments_of(job->plan->bank->Z.cpu);
    double *sums = group->sums, most = -INFINITY;
    int64_t listed = 0, *row = job->row + group->from - job->begin;
    memset(sums, 0, 2 * CGAM_MOMENTS * sizeof *sums);
    for (int64_t i = group->from; i < group->to; i += TILE) {
        int64_t rows = group->to - i < TILE ? group->to - i : TILE;
        cgam_moments part;
        listed += find(rows, job->a + i, job->plan->opts.beta, job->top, job->cut, i, &part,
                       row + listed);
        for (int j = 0; j < CGAM_MOMENTS; j++) sums[j] += part.w[j];
        for (int j = 0; j < CGAM_MOMENTS; j++) sums[CGAM_MOMENTS + j] += part.wy[j];
        most = fmax(most, part.top);
    }
    group->notes[0] = most;
    group->notes[1] = (double)listed;
    return CGAM_OK;
}

/* Makes the list from the rows that the groups of this process noted. */
static cgam_status gather_list(const cgam_pass *pass, const sweep *job, const double *s0,
                               cgam_sums *x)
{
    cgam_env *env = pass->env;
    int64_t from, to, mine = 0;
    cgam_rows_here(pass->Z, pass->groups, &from, &to);
    for (int64_t k = from; k < to; k++) mine += (int64_t)pass->noted[k * pass->notes + 1];
    x->list = cgam_alloc(env, (size_t)mine + 1, sizeof *x->list);
    if (!x->list) return cgam_fail_nomem(env, "the leaders of a recall");
    for (int64_t k = from; k < to; k++) {
        const int64_t *row = job->row + cgam_rows_chunk_begin(pass->Z, k) - job->begin;
        int64_t count = (int64_t)pass->noted[k * pass->notes + 1];
        for (int64_t j = 0; j < count; j++)
            x->list[x->count++] =
                (cgam_listed){.a = job->a[row[j]], .s0 = s0 ? s0[row[j]] : 0, .row = row[j]};
    }
    if (cgam_rows_whole(pass->Z)) return CGAM_OK;
    void *all = NULL;
    cgam_status status =
        cgam_rows_collect(env, pass->Z, sizeof *x->list, mine, x->list, &x->count, &all);
    cgam_free(env, x->list);
    x->list = all;
    return status;
}

static cgam_status sweep_rows(const cgam_recall *plan, const cgam_scored *in, bool parallel,
                              cgam_sums *x)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    sweep job = {.plan = plan, .a = in->a, .begin = cgam_vec_begin(Z)};
    double notes[2], sums[2 * CGAM_MOMENTS];
    cgam_pass pass;
    cgam_status status = cgam_pass_new(env, Z, 2 * CGAM_MOMENTS, 2, &pass);
    job.row = cgam_alloc(env, (size_t)cgam_vec_size(Z) + 1, sizeof *job.row);
    if (status == CGAM_OK && !job.row) status = cgam_fail_nomem(env, "the leaders of a recall");
    if (status == CGAM_OK) status = run(&pass, parallel, find_top, &job);
    if (status == CGAM_OK) status = cgam_pass_max(&pass, notes);
    if (status != CGAM_OK) goto done;
    x->top = job.top = notes[0];
    x->left = !isfinite(job.top);
    if (x->left) goto done;
    job.cut = fmin(SERIES / (plan->opts.beta * plan->opts.lambda * plan->opts.lambda), CUT_MAX);
    status = run(&pass, parallel, find_moments, &job);
    if (status == CGAM_OK) status = gather_list(&pass, &job, in->s0, x);
    if (status == CGAM_OK) status = cgam_pass_max(&pass, notes);
    if (status == CGAM_OK) status = cgam_pass_join(&pass, sums);
    if (status != CGAM_OK) goto done;
    memcpy(x->rest.w, sums, sizeof x->rest.w);
    memcpy(x->rest.wy, sums + CGAM_MOMENTS, sizeof x->rest.wy);
    x->rest.top = notes[0];
    x->rest_most = exp(plan->opts.beta * (x->rest.top - x->top));
done:
    cgam_free(env, job.row);
    cgam_pass_free(&pass);
    return status;
}

/* ---- The iteration. ------------------------------------------------------------------------- */

static double sum_of(int64_t n, const double *x)
{
    double total = 0;
    for (int64_t i = 0; i < n; i += TILE) {
        double part = 0;
        for (int64_t k = i; k < n && k < i + TILE; k++) part += x[k];
        total += part;
    }
    return total;
}

/* sum over the rest of w e. */
static double rest_sum(const double m[CGAM_MOMENTS], const double c[CGAM_MOMENTS - 1])
{
    return m[0] + (c[0] * m[1] + (c[1] * m[2] + c[2] * m[3]));
}

/* One step: p of the list, the series of the rest, lse and the energy at its beginning. */
static double make_step(const cgam_recall *plan, cgam_sums *x, double half_us0)
{
    double beta = plan->opts.beta, l2 = plan->opts.lambda * plan->opts.lambda, k = beta * l2;
    double *p = x->p, ignored[3], h = k / x->now.whole;
    const double *c = x->now.c;
    x->before = x->now;
    x->p = x->p_old;
    x->p_old = p;
    double squares = cgam_sums_squares(x, &x->before, x->p_old);
    plan->bank->Z.cpu->f64->softmax(x->p_old, x->count, k, 0, x->p, ignored);
    for (int64_t i = 0; i < x->count; i++) x->p[i] *= x->w[i];
    cgam_series now = {{h, h * c[0] + h * h / 2, h * c[1] + h * h * c[0] + h * h * h / 6}, 0};
    now.whole = sum_of(x->count, x->p) + rest_sum(x->rest.w, now.c);
    for (int64_t i = 0; i < x->count; i++) x->p[i] /= now.whole;
    x->now = now;
    x->x.act.lse = beta * x->top + log(now.whole);
    return 0.5 * l2 * squares - half_us0 - x->x.act.lse / beta;
}

/* Returns the largest change of p, and bounds its 2-norm. On the rest the change is a series too. */
static double measure_change(cgam_sums *x)
{
    double most = 0, squares = 0, w = x->rest_most, rest = 0;
    for (int64_t i = 0; i < x->count; i++) {
        double move = fabs(x->p[i] - x->p_old[i]);
        most = move > most ? move : most;
        squares += move * move;
    }
    for (int j = CGAM_MOMENTS - 1; j >= 0; j--) {
        double now = (j ? x->now.c[j - 1] : 1) / x->now.whole;
        double before = (j ? x->before.c[j - 1] : 1) / x->before.whole;
        rest = rest * w + fabs(now - before);
    }
    x->x.trace.change_norm = sqrt(squares + rest * rest * x->rest.w[1]) * (1 + 0x1p-30);
    return fmax(most, rest * w);
}

static cgam_status iterate(const cgam_recall *plan, double half_us0, cgam_sums *x)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_trace *t = &x->x.trace;
    double beta = o->beta;
    x->now.whole = sum_of(x->count, x->w) + x->rest.w[0];
    for (int64_t i = 0; i < x->count; i++) x->p[i] = x->w[i] / x->now.whole;
    double h = beta * o->lambda * o->lambda / x->now.whole, w = h * x->rest_most;
    x->truncated = 6 * w * h * h * h * x->rest.w[3] / x->now.whole;
    x->x.act.lse = beta * x->top + log(x->now.whole);
    t->energy_start = t->energy_end = -half_us0 - x->x.act.lse / beta;
    for (;;) {
        if (t->iterations % ASKS == 0 && cgam_interrupted(plan->bank->env))
            return CGAM_E_INTERRUPTED;
        double energy = make_step(plan, x, half_us0), change = measure_change(x);
        x->left = !isfinite(x->x.act.lse) || !isfinite(change);
        if (x->left) return CGAM_OK;
        cgam_iterating_energy(&x->x, energy, true);
        cgam_iterating_count(&x->x, change);
        if (cgam_iterating_ends(plan, &x->x, true)) return CGAM_OK;
        if (o->plain || t->iterations < PATIENCE) continue;
        x->left = !(t->rate < 1) || log(o->tol / t->change) / log(t->rate) > LEFT_MAX;
        if (x->left) return CGAM_OK;
    }
}

cgam_status cgam_sums_solve(const cgam_recall *plan, const cgam_scored *in, bool parallel,
                            cgam_sums *out)
{
    cgam_env *env = plan->bank->env;
    double beta = plan->opts.beta, ignored[3];
    *out = (cgam_sums){.x = {.in = *in, .best = INFINITY}};
    cgam_status status = sweep_rows(plan, in, parallel, out);
    if (status != CGAM_OK || out->left) return status;
    int64_t n = out->count;
    out->numbers = cgam_alloc(env, (size_t)(3 * n) + 1, sizeof *out->numbers);
    if (!out->numbers) return cgam_fail_nomem(env, "the leaders of a recall");
    out->w = out->numbers;
    out->p = out->w + n;
    out->p_old = out->p + n;
    for (int64_t i = 0; i < n; i++) {
        out->p_old[i] = out->list[i].a;
        if (out->list[i].a > out->list[out->winner].a) out->winner = i;
    }
    plan->bank->Z.cpu->f64->softmax(out->p_old, n, beta, out->top, out->w, ignored);
    status = iterate(plan, in->half_us0, out);
    if (status != CGAM_OK || out->left) return status;
    cgam_activated *act = &out->x.act;
    double gain = beta * plan->opts.lambda * plan->opts.lambda * out->p_old[out->winner];
    act->top = out->top + plan->opts.lambda * plan->opts.lambda * out->p_old[out->winner];
    act->sum = out->now.whole * exp(-gain);
    return CGAM_OK;
}

/* ---- Vectors. ------------------------------------------------------------------------------- */

typedef struct filling {
    const cgam_recall *plan;
    const cgam_sums *x;
    cgam_settled *m;
} filling;

static cgam_status fill_rows(void *arg, const cgam_pass_group *group)
{
    const filling *job = arg;
    const cgam_recall_opts *o = &job->plan->opts;
    const cgam_f64 *f64 = job->plan->bank->Z.cpu->f64;
    const double *a = job->m->in.a, *s0 = job->m->in.s0;
    double w[TILE], ignored[3], l2 = o->lambda * o->lambda;
    for (int64_t i = group->from; i < group->to; i += TILE) {
        int64_t rows = group->to - i < TILE ? group->to - i : TILE;
        f64->softmax(a + i, rows, o->beta, job->x->top, w, ignored);
        for (int64_t k = 0; k < rows; k++) {
            double before = cgam_series_p(&job->x->before, w[k]);
            job->m->r[i + k] = a[i + k] + l2 * before;
            job->m->p[i + k] = cgam_series_p(&job->x->now, w[k]);
            job->m->s[i + k] = (s0 ? s0[i + k] : 0) + o->lambda * before;
        }
    }
    return CGAM_OK;
}

cgam_status cgam_sums_settle(const cgam_recall *plan, const cgam_sums *x, bool parallel,
                             cgam_settled *m)
{
    const cgam_rows *Z = &plan->bank->Z;
    double lambda = plan->opts.lambda;
    filling job = {plan, x, m};
    cgam_pass pass;
    cgam_status status = cgam_pass_new(plan->bank->env, Z, 0, 1, &pass);
    if (status == CGAM_OK) status = run(&pass, parallel, fill_rows, &job);
    cgam_pass_free(&pass);
    for (int64_t k = 0; k < x->count && status == CGAM_OK; k++) {
        const cgam_listed *own = &x->list[k];
        if (!cgam_vec_has(Z, own->row)) continue;
        m->r[own->row] = own->a + lambda * lambda * x->p_old[k];
        m->p[own->row] = x->p[k];
        m->s[own->row] = own->s0 + lambda * x->p_old[k];
    }
    m->act = x->x.act;
    m->trace = x->x.trace;
    return status;
}

#define DECLARE(set) extern cgam_moments_find cgam_moments_##set;
#define ENTRY(set) cgam_moments_##set,
CGAM_CPU_SETS(DECLARE)

cgam_moments_find *cgam_moments_of(const cgam_cpu *cpu)
{
    static cgam_moments_find *const all[] = {cgam_moments_portable, CGAM_CPU_ROWS(ENTRY)};
    return all[cpu - cgam_cpu_all];
}
