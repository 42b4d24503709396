/* coupled_pass.c: one pass over Z per iteration of coupled.c. Rows not in the border of the gate
 * operator have
 *     (A^-1 p)_i = dinv_i (p_i - <zeta_i, t>),  t from g = sum_i dinv_i p_i zeta_i  (num/dplr.h),
 * so while a tile of rows is in cache it is scored with t, gives r and exp(beta r), and is added
 * with those weights to the next g.
 *
 * Far from the fixed point the passes over a large bank of f32, f16 or bf16 are in f32
 * (num/cpu/f32.h): the next pass corrects their error as it corrects that of p. As soon as p changes by
 * less than CGAM_ROUTE_F32_END of its largest entry, or falls slowly, they are in double, and convergence
 * is believed only after a pass in double that began with a g from one.
 *
 * Entmax weighs nothing before all scores are known. Its pass only scores, in double; the next g is
 * gathered afterwards, from the rows of its support. */
#include "memory/recall.h"

#include "num/ranks.h"
#include "num/readout.h"
#include "num/softmax.h"

#include <string.h>

static const double F32_SCORES = 1e-3; /* beta times the error of r that f32 may cause */
static const double F32_RATE = 0.7;

/* Of one query, for one chunk. */
typedef struct gathered {
    cgam_softmax soft;
    double feedback; /* sum p (r - a) */
} gathered;

typedef struct pass {
    const cgam_recall *plan;
    int64_t count;   /* active queries */
    cgam_query **m;  /* [count] */
    const double *t; /* [count, d] */
    gathered *part;  /* [chunks, count] those of the chunks that are here */
    double
        *g_part; /* [chunks, size] sums for g [count, d]; of weights, and feedback, [count] each */
    int64_t size;
    const float *t32; /* [count, ld] t laid out for f32, for the queries in it */
    int64_t ld;
} pass;

/* New r of rows [i, i + rows) from dot = <zeta, t>, and their share of the sums; weight[] is set
 * to dinv_i exp(beta (r_i - top)). Returns the factor by which earlier sums must shrink. */
static double take_tile(const pass *ps, cgam_query *m, int64_t i, int64_t rows, const double *dot,
                        const double *dinv, gathered *sums, double *weight)
{
    const cgam_f64 *f64 = ps->plan->bank->Z.cpu->f64;
    double beta = ps->plan->opts.beta, l2 = ps->plan->opts.lambda * ps->plan->opts.lambda;
    double shrink = 1, feedback = 0, soft[3], *r = m->r + i;
    const double *a = m->a + i, *p = m->p + i, *D = dinv + i;
    for (int64_t k = 0; k < rows; k++) {
        double next = a[k] + l2 * D[k] * (p[k] - dot[k]);
        r[k] = D[k] != 0 ? next : r[k]; /* border rows were written before the pass */
    }
    for (int64_t k = 0; k < rows; k++) feedback += p[k] * (r[k] - a[k]);
    sums->feedback += feedback;
    if (cgam_recall_sparse(ps->plan)) return 1;
    double top = f64->largest(r, rows);
    if (top > sums->soft.top) shrink = cgam_softmax_raise(&sums->soft, beta, top);
    f64->softmax(r, rows, beta, sums->soft.top, weight, soft);
    cgam_softmax_add(&sums->soft, soft[0], soft[1], soft[2]);
    for (int64_t k = 0; k < rows; k++) weight[k] *= D[k];
    return shrink;
}

/* Rows that together weigh less than 2^-54 of all are not added to g. With one query the sum for a
 * tile goes with the scores of the next (num/readout.h). */
static cgam_status pass_chunk(void *arg, int64_t chunk)
{
    pass *ps = arg;
    const cgam_rows *Z = &ps->plan->bank->Z;
    cgam_env *env = ps->plan->bank->env;
    const double *dinv = cgam_dplr_dinv(ps->plan->gate->A);
    int64_t d = Z->d, tile = cgam_readout_tile(Z), end = cgam_rows_chunk_begin(Z, chunk + 1);
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    double *dot = cgam_alloc(env, (size_t)(6 * tile), sizeof *dot), *room = dot + 2 * tile;
    float *y32 = cgam_zalloc(env, (size_t)(ps->count * ps->ld), sizeof *y32);
    if (!dot || !y32) {
        cgam_free(env, dot);
        cgam_free(env, y32);
        return cgam_fail_nomem(env, "a tile of scores");
    }
    gathered *part = ps->part + chunk * ps->count;
    double *g = ps->g_part + chunk * ps->size, *weight = dot + tile;
    memset(g, 0, (size_t)(ps->count * d) * sizeof *g);
    cgam_readout_sum to[CGAM_ROUTE_SHARE];
    for (int64_t v = 0; v < ps->count; v++) {
        part[v] = (gathered){.soft.top = -INFINITY};
        to[v] = (cgam_readout_sum){g + v * d, y32 + v * ps->ld, 0};
    }
    cgam_readout waits[2] = {cgam_readout_in(room, tile),
                             cgam_readout_in(room + CGAM_READOUT_ROOM * tile, tile)};
    int turn = 0;
    for (int64_t i = cgam_rows_chunk_begin(Z, chunk); i < end; i += tile) {
        int64_t rows = end - i < tile ? end - i : tile;
        for (int64_t v = 0; v < ps->count; v++, turn ^= 1) {
            bool f32 = ps->m[v]->f32;
            cgam_readout_dot(Z, i, rows, ps->t + v * d, f32 ? ps->t32 + v * ps->ld : NULL, dot,
                             &waits[!turn], &to[v]);
            double shrink = take_tile(ps, ps->m[v], i, rows, dot, dinv, &part[v], weight);
            if (shrink != 1) {
                cgam_readout_flush(Z, &to[v]);
                for (int64_t j = 0; j < d; j++) to[v].y[j] *= shrink;
            }
            if (cgam_recall_sparse(ps->plan)) continue;
            waits[turn].f32 = f32;
            cgam_readout_set(Z, i, rows, weight, 0x1p-54 / (double)Z->n * part[v].soft.sum,
                             &waits[turn]);
            if (ps->count > 1) cgam_readout_add(Z, &waits[turn], &to[v]);
        }
    }
    cgam_readout_add(Z, &waits[!turn], &to[0]);
    for (int64_t v = 0; v < ps->count; v++) cgam_readout_flush(Z, &to[v]);
    cgam_free(env, dot);
    cgam_free(env, y32);
    return CGAM_OK;
}

/* With entmax all that the chunks have is feedback, and scores are measured by themselves. */
static cgam_status join_sparse(const pass *ps, double *energy)
{
    const cgam_rows *Z = &ps->plan->bank->Z;
    double beta = ps->plan->opts.beta;
    cgam_tally t;
    cgam_status status = CGAM_OK;
    for (int64_t v = 0; v < ps->count && status == CGAM_OK; v++) {
        cgam_query *m = ps->m[v];
        cgam_tally_open(&t, Z, "+");
        while (cgam_tally_next(&t)) t.x[0] = ps->part[t.chunk * ps->count + v].feedback;
        status = cgam_tally_close(ps->plan->bank->env, &t);
        cgam_query_measure(ps->plan, m);
        energy[v] = 0.5 * t.x[0] - m->half_us0 - m->lse / beta;
    }
    return status;
}

/* What all chunks gathered, and g for the next pass. Who knows the largest score of all makes the sums of its chunks
 * relative to it; then they are joined, one column with g. */
static cgam_status join_all(const pass *ps, double *energy, double *g)
{
    const cgam_rows *Z = &ps->plan->bank->Z;
    cgam_env *env = ps->plan->bank->env;
    int64_t chunks = cgam_rows_chunks(Z), d = Z->d, count = ps->count, from, to;
    double top[CGAM_ROUTE_SHARE], beta = ps->plan->opts.beta;
    if (cgam_recall_sparse(ps->plan)) return join_sparse(ps, energy);
    double *sums = cgam_alloc(env, (size_t)ps->size, sizeof *sums);
    if (!sums) return cgam_fail_nomem(env, "a pass over the bank");
    cgam_rows_here(Z, chunks, &from, &to);
    for (int64_t v = 0; v < count; v++) {
        top[v] = -INFINITY;
        for (int64_t c = from; c < to; c++) top[v] = fmax(top[v], ps->part[c * count + v].soft.top);
    }
    cgam_status status = cgam_rows_most(env, Z, count, top);
    for (int64_t k = from * count; k < to * count && status == CGAM_OK; k++) {
        const gathered *part = &ps->part[k];
        int64_t v = k % count;
        cgam_softmax all = {.top = top[v]};
        double *own = ps->g_part + k / count * ps->size, *mine = own + v * d;
        double weight = cgam_softmax_join(&all, part->soft, beta);
        for (int64_t j = 0; j < d; j++) mine[j] *= weight;
        own[count * d + v] = all.sum;
        own[count * (d + 1) + v] = part->feedback;
    }
    if (status == CGAM_OK) status = cgam_rows_join(env, Z, chunks, ps->size, ps->g_part, sums);
    for (int64_t v = 0; v < count && status == CGAM_OK; v++) {
        cgam_query *m = ps->m[v];
        cgam_query_sums(m, beta, top[v], sums[count * d + v]);
        energy[v] = 0.5 * sums[count * (d + 1) + v] - m->half_us0 - m->lse / beta;
        for (int64_t j = 0; j < d; j++) g[v * d + j] = sums[v * d + j] / m->sum;
    }
    cgam_free(env, sums);
    return status;
}

/* May the next pass of m, with t, be in f32? */
static bool f32_suits(const cgam_recall *plan, const cgam_query *m, const double *t)
{
    double l2 = plan->opts.lambda * plan->opts.lambda, size = cgam_vec_norm(plan->bank->Z.d, t);
    bool near =
        m->change <= CGAM_ROUTE_F32_END / m->sum || m->rate > F32_RATE; /* max p = 1 / sum */
    if (m->iterations > 0 && (!m->f32 || near)) return false;
    if (!plan->can.begins_f32 || !cgam_f32_holds(size)) return false;
    double off = l2 * plan->can.pivot_max * CGAM_F32_ERROR * plan->can.size * size;
    return plan->opts.beta * off <= F32_SCORES;
}

cgam_status cgam_coupled_pass(const cgam_recall *plan, int64_t active, cgam_query **m, double *g,
                              double *energy)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    const int64_t *border;
    int64_t d = Z->d, edge = cgam_dplr_border(plan->gate->A, &border);
    int64_t chunks = cgam_rows_chunks(Z);
    cgam_span here = cgam_rows_span(Z);
    double l2 = plan->opts.lambda * plan->opts.lambda;
    double *t = cgam_alloc(env, (size_t)(active * d), sizeof *t);
    double *edges = cgam_alloc(env, (size_t)(2 * edge + 1), sizeof *edges);
    int64_t size = active * (d + 2);
    double *g_part = cgam_parts_new(env, Z, chunks, size);
    gathered *part = cgam_alloc(env, (size_t)(chunks * active), sizeof *part);
    int64_t ld = cgam_f32_room(d);
    float *t32 = cgam_alloc(env, (size_t)(active * ld), sizeof *t32);
    cgam_status status = CGAM_OK;
    if (!t || !edges || !g_part || !part || !t32)
        status = cgam_fail_nomem(env, "a pass over the bank");
    for (int64_t v = 0; v < active && status == CGAM_OK; v++) {
        status = cgam_vectors_pick(env, Z, m[v]->p, edge, border, edges);
        if (status != CGAM_OK) break;
        status = plan->small
                     ? cgam_dplr_inverse_reduce(plan->small, 1, m[v]->f32, g + v * d, edges,
                                                t + v * d, edges + edge)
                     : cgam_dplr_reduce(plan->gate->A, g + v * d, edges, t + v * d, edges + edge);
        for (int64_t k = 0; k < edge; k++)
            if (cgam_span_has(here, border[k]))
                m[v]->r[border[k]] = m[v]->a[border[k]] + l2 * edges[edge + k];
        if (status != CGAM_OK) break;
        bool next = f32_suits(plan, m[v], t + v * d);
        m[v]->trails = m[v]->f32; /* g is from a pass in f32 */
        m[v]->f32 = next;
        if (next) Z->cpu->f32->lay[Z->dtype](t + v * d, d, t32 + v * ld);
    }
    pass ps = {plan, active, m, t, part, g_part, size, t32, ld};
    if (status == CGAM_OK) status = cgam_rows_run(env, Z, chunks, pass_chunk, &ps);
    if (status == CGAM_OK) status = join_all(&ps, energy, g);
    cgam_free(env, t);
    cgam_free(env, t32);
    cgam_free(env, edges);
    cgam_parts_free(env, Z, chunks, size, g_part);
    cgam_free(env, part);
    return status;
}

typedef struct gathering {
    const cgam_recall *plan;
    const cgam_query *m;
    int64_t ld;
    double *g_part; /* [chunks, d] */
} gathering;

static cgam_status gather_chunk(void *arg, int64_t chunk)
{
    const gathering *job = arg;
    const cgam_rows *Z = &job->plan->bank->Z;
    cgam_env *env = job->plan->bank->env;
    const double *dinv = cgam_dplr_dinv(job->plan->gate->A);
    int64_t tile = cgam_readout_tile(Z), end = cgam_rows_chunk_begin(Z, chunk + 1);
    double *room = cgam_alloc(env, (size_t)(3 * tile), sizeof *room), *weight = room + 2 * tile;
    float *y32 = cgam_zalloc(env, (size_t)job->ld, sizeof *y32);
    cgam_readout_sum to = {job->g_part + chunk * Z->d, y32, 0};
    if (room && y32) {
        cgam_readout waits = cgam_readout_in(room, tile);
        waits.f32 = job->m->f32;
        memset(to.y, 0, (size_t)Z->d * sizeof *to.y);
        for (int64_t i = cgam_rows_chunk_begin(Z, chunk); i < end; i += tile) {
            int64_t rows = end - i < tile ? end - i : tile;
            for (int64_t k = 0; k < rows; k++) weight[k] = dinv[i + k] * job->m->p[i + k];
            cgam_readout_set(Z, i, rows, weight, 0x1p-54 / (double)Z->n, &waits);
            cgam_readout_add(Z, &waits, &to);
        }
        cgam_readout_flush(Z, &to);
    }
    cgam_free(env, room);
    cgam_free(env, y32);
    return room && y32 ? CGAM_OK : cgam_fail_nomem(env, "a tile of weights");
}

cgam_status cgam_coupled_gather(const cgam_recall *plan, cgam_query *m, double *g)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    int64_t chunks = cgam_rows_chunks(Z), d = Z->d;
    m->f32 = m->iterations == 0 && plan->can.begins_f32;
    gathering job = {plan, m, cgam_f32_room(d), cgam_parts_new(env, Z, chunks, d)};
    if (!job.g_part) return cgam_fail_nomem(env, "a pass over the bank");
    cgam_status status = cgam_rows_run(env, Z, chunks, gather_chunk, &job);
    if (status == CGAM_OK) status = cgam_rows_join(env, Z, chunks, d, job.g_part, g);
    cgam_parts_free(env, Z, chunks, d, job.g_part);
    return status;
}
