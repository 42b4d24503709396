/* coupled.c: the self-consistent recall  p = softmax(beta (a + lambda^2 A^-1 p)),
 * a = b + lambda A^-1 u, by plain iteration from p0 = softmax(beta a).
 *
 * The iteration is the concave-convex procedure on
 *     E(s) = s'As/2 - u's - lse(beta (b + lambda s)) / beta ,     s = A^-1 (u + lambda p),
 * so E never rises, for any lambda, as long as A is positive definite. With the s above
 *     E = sum_i p_i (r_i - a_i) / 2 - u'A^-1u / 2 - lse(beta r) / beta ,   r = b + lambda s,
 * which the pass that computes r gathers on its way; a rise beyond rounding would show.
 *
 * One pass over Z per iteration (SPEC section 4): rows not in the border of the gate operator have
 *     (A^-1 p)_i = dinv_i (p_i - <zeta_i, t>),  t from g = sum_i dinv_i p_i zeta_i  (num/dplr.h),
 * so while a tile of rows is in cache it is scored with t, gives r and exp(beta r), and is added
 * with those weights to the next g.
 *
 * Far from the fixed point the passes over a large bank of f32, f16 or bf16 are in f32 (num/cpu/f32.h):
 * the next pass corrects their error as it corrects that of p. As soon as p changes by less than
 * F32_END of its largest entry, or falls slowly, they are in double, and convergence is believed
 * only after a pass in double that began with a g from one. */
#include "memory/recall.h"

#include "num/readout.h"

#include <math.h>
#include <string.h>

enum { GROUP_MAX = 8, STALL_ROUNDS = 60, SETTLE_ROWS = 512 };
static const double F32_SCORES = 1e-3; /* beta times the error of r that f32 may cause */
static const double F32_END = 1e-6, F32_RATE = 0.7;

static void set_sums(cgam_query *m, double beta, double top, double sum)
{
    m->top = top;
    m->sum = sum;
    m->lse = beta * top + log(sum);
}

/* Weights by blocks, their sums added up with the rounding of each addition kept. */
bool cgam_query_softmax(const cgam_recall *plan, cgam_query *m)
{
    const cgam_f64 *f64 = plan->bank->Z.cpu->f64;
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, top = f64->largest(m->r, n), high = 0, low = 0;
    for (int64_t i = 0; i < n; i += SETTLE_ROWS) {
        double sums[3], total;
        f64->softmax(m->r + i, n - i < SETTLE_ROWS ? n - i : SETTLE_ROWS, beta, top, m->p + i,
                     sums);
        total = high + sums[0];
        low += high >= sums[0] ? (high - total) + sums[0] : (sums[0] - total) + high;
        high = total;
    }
    double sum = high + low, share = 1 / sum;
    set_sums(m, beta, top, sum);
    for (int64_t i = 0; i < n; i++) m->p[i] *= share;
    return isfinite(m->lse);
}

/* One map step for one query when A^-1 p is at hand as a vector: r, then what the pass gathers. */
typedef struct gathered {
    double top, sum, feedback; /* max r, sum exp(beta (r - top)), sum p (r - a) */
} gathered;

typedef struct pass {
    const cgam_recall *plan;
    int64_t count;   /* active queries */
    cgam_query **m;  /* [count] */
    const double *t; /* [count, d] */
    gathered *part;  /* [chunks, count] */
    double *g_part;  /* [chunks, count, d] */
    const cgam_f32 *f32;
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
    double top = f64->largest(r, rows);
    if (top > sums->top) {
        shrink = sums->sum > 0 ? exp(beta * (sums->top - top)) : 0;
        sums->sum *= shrink;
        sums->top = top;
    }
    f64->softmax(r, rows, beta, sums->top, weight, soft);
    sums->sum += soft[0];
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
    double *g = ps->g_part + chunk * ps->count * d, *weight = dot + tile;
    memset(g, 0, (size_t)(ps->count * d) * sizeof *g);
    cgam_readout_sum to[GROUP_MAX];
    for (int64_t v = 0; v < ps->count; v++) {
        part[v] = (gathered){.top = -INFINITY};
        to[v] = (cgam_readout_sum){g + v * d, y32 + v * ps->ld, 0};
    }
    cgam_readout waits[2] = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        waits[k].w = room + 2 * k * tile;
        waits[k].at = (int32_t *)(void *)(room + (2 * k + 1) * tile);
        waits[k].w32 = (float *)(void *)(room + (2 * k + 1) * tile) + tile;
    }
    int turn = 0;
    for (int64_t i = cgam_rows_chunk_begin(Z, chunk); i < end; i += tile) {
        int64_t rows = end - i < tile ? end - i : tile;
        for (int64_t v = 0; v < ps->count; v++, turn ^= 1) {
            bool f32 = ps->m[v]->f32;
            cgam_readout_dot(Z, i, rows, ps->t + v * d, ps->f32, f32 ? ps->t32 + v * ps->ld : NULL,
                             dot, &waits[!turn], &to[v]);
            double shrink = take_tile(ps, ps->m[v], i, rows, dot, dinv, &part[v], weight);
            if (shrink != 1) {
                cgam_readout_flush(Z, ps->f32, &to[v]);
                for (int64_t j = 0; j < d; j++) to[v].y[j] *= shrink;
            }
            waits[turn].f32 = f32 ? ps->f32 : NULL;
            cgam_readout_set(Z, i, rows, weight, 0x1p-54 / (double)Z->n * part[v].sum,
                             &waits[turn]);
            if (ps->count > 1) cgam_readout_add(Z, &waits[turn], &to[v]);
        }
    }
    cgam_readout_add(Z, &waits[!turn], &to[0]);
    for (int64_t v = 0; v < ps->count; v++) cgam_readout_flush(Z, ps->f32, &to[v]);
    cgam_free(env, dot);
    cgam_free(env, y32);
    return CGAM_OK;
}

/* Joins the chunks of query v in their order: lse, the energy, and g for the next pass. */
static void join(const pass *ps, int64_t v, double *energy, double *g)
{
    const cgam_rows *Z = &ps->plan->bank->Z;
    cgam_query *m = ps->m[v];
    double beta = ps->plan->opts.beta, top = -INFINITY, sum = 0, feedback = 0;
    int64_t chunks = cgam_rows_chunks(Z), d = Z->d;
    for (int64_t c = 0; c < chunks; c++) top = fmax(top, ps->part[c * ps->count + v].top);
    memset(g, 0, (size_t)d * sizeof *g);
    for (int64_t c = 0; c < chunks; c++) {
        const gathered *part = &ps->part[c * ps->count + v];
        const double *from = ps->g_part + (c * ps->count + v) * d;
        double weight = exp(beta * (part->top - top));
        sum += weight * part->sum;
        feedback += part->feedback;
        for (int64_t j = 0; j < d; j++) g[j] += weight * from[j];
    }
    for (int64_t j = 0; j < d; j++) g[j] /= sum;
    set_sums(m, beta, top, sum);
    *energy = 0.5 * feedback - m->half_us0 - m->lse / beta;
}

/* The same without streaming: A^-1 p by a solve of its own. solve is refined where `exact`. */
static cgam_status step_apart(const cgam_recall *plan, cgam_query *m, bool exact, double *work,
                              double *energy)
{
    int64_t n = plan->bank->Z.n;
    double l2 = plan->opts.lambda * plan->opts.lambda, beta = plan->opts.beta;
    cgam_status status = CGAM_OK;
    if (plan->opts.alpha == 0 || l2 == 0) {
        memcpy(work, m->p, (size_t)n * sizeof *work);
    } else if (!exact && plan->gate->A && cgam_dplr_dense(plan->gate->A)) {
        memcpy(work, m->p, (size_t)n * sizeof *work);
        status = cgam_dplr_dense_solve(plan->gate->A, work);
    } else {
        status = cgam_gate_solve(plan->gate, m->p, work, NULL);
    }
    if (status != CGAM_OK) return status;
    double feedback = 0, top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        m->r[i] = m->a[i] + l2 * work[i];
        feedback += m->p[i] * (l2 * work[i]);
        top = m->r[i] > top ? m->r[i] : top;
    }
    for (int64_t i = 0; i < n; i++) sum += exp(beta * (m->r[i] - top));
    set_sums(m, beta, top, sum);
    *energy = 0.5 * feedback - m->half_us0 - m->lse / beta;
    return CGAM_OK;
}

typedef struct settling {
    const cgam_recall *plan;
    cgam_query *m;
    double largest[CGAM_CHUNKS_MAX], squares[CGAM_CHUNKS_MAX];
} settling;

static cgam_status settle_chunk(void *arg, int64_t chunk)
{
    settling *job = arg;
    const cgam_rows *Z = &job->plan->bank->Z;
    cgam_query *m = job->m;
    double largest = 0, squares = 0, e[SETTLE_ROWS], sums[3];
    int64_t end = cgam_rows_chunk_begin(Z, chunk + 1);
    for (int64_t i = cgam_rows_chunk_begin(Z, chunk); i < end; i += SETTLE_ROWS) {
        int64_t rows = end - i < SETTLE_ROWS ? end - i : SETTLE_ROWS;
        Z->cpu->f64->softmax(m->r + i, rows, job->plan->opts.beta, m->top, e, sums);
        for (int64_t k = 0; k < rows; k++) {
            double p = e[k] / m->sum, step = fabs(p - m->p[i + k]);
            largest = step > largest ? step : largest;
            squares += step * step;
            m->p[i + k] = p;
        }
    }
    job->largest[chunk] = largest;
    job->squares[chunk] = squares;
    return CGAM_OK;
}

/* p = exp(beta (r - top)) / sum, which keeps the digits that exp(beta r - lse) would lose to the
 * size of r, and how far that is from the p before. */
static bool settle(const cgam_recall *plan, cgam_query *m)
{
    settling job = {.plan = plan, .m = m};
    int64_t chunks = cgam_rows_chunks(&plan->bank->Z);
    double largest = 0, squares = 0;
    if (!isfinite(m->lse)) return false;
    if (m->level) cgam_twins_level(plan->twins, m->r);
    if (cgam_parallel(plan->bank->env, chunks, settle_chunk, &job) != CGAM_OK) return false;
    for (int64_t c = 0; c < chunks; c++) {
        largest = fmax(largest, job.largest[c]);
        squares += job.squares[c];
    }
    m->change = largest;
    m->change_norm = sqrt(squares);
    return isfinite(largest);
}

/* Is the bank one for f32 while p is far from the fixed point? */
static bool f32_begins(const cgam_recall *plan)
{
    const cgam_rows *Z = &plan->bank->Z;
    if (Z->dtype == CGAM_F64 || !cgam_f32_pays(Z->n, Z->d)) return false;
    if (plan->opts.tol > F32_END) return false; /* a few iterations in double will do */
    return plan->size > 1e-8 && plan->size < 1e8 && plan->pivot_max < 1e8;
}

/* May the next pass of m, with t, be in f32? */
static bool f32_suits(const cgam_recall *plan, const cgam_query *m, const double *t)
{
    double l2 = plan->opts.lambda * plan->opts.lambda, size = cgam_vec_norm(plan->bank->Z.d, t);
    bool near = m->change <= F32_END / m->sum || m->rate > F32_RATE; /* max p = 1 / sum */
    if (m->iterations > 0 && (!m->f32 || near)) return false;
    if (!f32_begins(plan) || !(size > 1e-8 && size < 1e8)) return false;
    double off = l2 * plan->pivot_max * CGAM_F32_ERROR * plan->size * size;
    return plan->opts.beta * off <= F32_SCORES;
}

/* Feedback by the streaming pass for `active` queries; g [active, d] in and out. */
static cgam_status step_streaming(const cgam_recall *plan, int64_t active, cgam_query **m,
                                  double *g, double *energy)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    const int64_t *border;
    int64_t d = Z->d, edge = cgam_dplr_border(plan->gate->A, &border);
    int64_t chunks = cgam_rows_chunks(Z);
    double l2 = plan->opts.lambda * plan->opts.lambda;
    double *t = cgam_alloc(env, (size_t)(active * d), sizeof *t);
    double *edges = cgam_alloc(env, (size_t)(2 * edge + 1), sizeof *edges);
    double *g_part = cgam_alloc(env, (size_t)(chunks * active * d), sizeof *g_part);
    gathered *part = cgam_alloc(env, (size_t)(chunks * active), sizeof *part);
    int64_t ld = cgam_f32_room(d);
    float *t32 = cgam_alloc(env, (size_t)(active * ld), sizeof *t32);
    const cgam_f32 *f32 = Z->cpu->f32;
    cgam_status status = CGAM_OK;
    if (!t || !edges || !g_part || !part || !t32)
        status = cgam_fail_nomem(env, "a pass over the bank");
    for (int64_t v = 0; v < active && status == CGAM_OK; v++) {
        for (int64_t k = 0; k < edge; k++) edges[k] = m[v]->p[border[k]];
        status = plan->small
                     ? cgam_dplr_inverse_reduce(plan->small, 1, m[v]->f32, g + v * d, edges,
                                                t + v * d, edges + edge)
                     : cgam_dplr_reduce(plan->gate->A, g + v * d, edges, t + v * d, edges + edge);
        for (int64_t k = 0; k < edge; k++)
            m[v]->r[border[k]] = m[v]->a[border[k]] + l2 * edges[edge + k];
        if (status != CGAM_OK) break;
        bool next = f32_suits(plan, m[v], t + v * d);
        m[v]->trails = m[v]->f32; /* g is from a pass in f32 */
        m[v]->f32 = next;
        if (next) f32->lay[Z->dtype](t + v * d, d, t32 + v * ld);
    }
    pass ps = {plan, active, m, t, part, g_part, f32, t32, ld};
    if (status == CGAM_OK) status = cgam_parallel(env, chunks, pass_chunk, &ps);
    for (int64_t v = 0; v < active && status == CGAM_OK; v++) join(&ps, v, &energy[v], g + v * d);
    cgam_free(env, t);
    cgam_free(env, t32);
    cgam_free(env, edges);
    cgam_free(env, g_part);
    cgam_free(env, part);
    return status;
}

typedef struct gathering {
    const cgam_recall *plan;
    const cgam_query *m;
    const cgam_f32 *f32; /* NULL: in double */
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
    cgam_readout waits = {.f32 = job->f32, .w = room};
    if (room && y32) {
        memset(to.y, 0, (size_t)Z->d * sizeof *to.y);
        waits.at = (int32_t *)(void *)(room + tile);
        waits.w32 = (float *)(void *)(room + tile) + tile;
        for (int64_t i = cgam_rows_chunk_begin(Z, chunk); i < end; i += tile) {
            int64_t rows = end - i < tile ? end - i : tile;
            for (int64_t k = 0; k < rows; k++) weight[k] = dinv[i + k] * job->m->p[i + k];
            cgam_readout_set(Z, i, rows, weight, 0x1p-54 / (double)Z->n, &waits);
            cgam_readout_add(Z, &waits, &to);
        }
        cgam_readout_flush(Z, job->f32, &to);
    }
    cgam_free(env, room);
    cgam_free(env, y32);
    return room && y32 ? CGAM_OK : cgam_fail_nomem(env, "a tile of weights");
}

/* g = sum_i dinv_i p_i zeta_i from scratch: at the start, and after Newton has moved p. */
static cgam_status gather(const cgam_recall *plan, cgam_query *m, double *g)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    int64_t chunks = cgam_rows_chunks(Z), d = Z->d;
    m->f32 = m->iterations == 0 && f32_begins(plan);
    gathering job = {plan, m, m->f32 ? Z->cpu->f32 : NULL, cgam_f32_room(d),
                     cgam_alloc(env, (size_t)(chunks * d), sizeof(double))};
    if (!job.g_part) return cgam_fail_nomem(env, "a pass over the bank");
    cgam_status status = cgam_parallel(env, chunks, gather_chunk, &job);
    memset(g, 0, (size_t)d * sizeof *g);
    for (int64_t c = 0; c < chunks && status == CGAM_OK; c++)
        for (int64_t j = 0; j < d; j++) g[j] += job.g_part[c * d + j];
    cgam_free(env, job.g_part);
    return status;
}

/* Would Newton get there sooner? Costs in units of one multiplication per row: an iteration reads
 * the bank, a Newton step factors an operator (matrix products run about eight times as fast per
 * multiplication as the memory-bound pass), and about five factorisations are needed. */
static bool newton_pays(const cgam_recall *plan, const cgam_query *m)
{
    double n = (double)plan->bank->Z.n, d = (double)plan->bank->Z.d;
    if (plan->opts.plain || plan->opts.lambda == 0 || !plan->gate->A) return false;
    if (m->iterations < 12 || m->iterations < m->newton_after) return false;
    if (!(m->rate > 0.2 && m->rate < 1)) return false;
    double left = log(plan->opts.tol / m->change) / log(m->rate);
    double once = plan->opts.alpha == 0 ? 10 : fmin(n, d) + 10;
    double factor = plan->opts.alpha == 0 ? 10 : d * fmin(n, d) / 8 + 10;
    return left * once > 5 * factor + 10 * once;
}

/* Books one more plain step: rate, energy, end. Returns true when the query is done. */
static bool book(const cgam_recall *plan, cgam_query *m, double energy, double before, double *best,
                 int64_t *since)
{
    m->iterations++;
    bool exact = !m->f32 && !m->trails; /* else energies are as good as f32 */
    if (exact && !m->trailed) m->energy_rise = fmax(m->energy_rise, energy - m->energy_end);
    m->trailed = !exact;
    m->energy_end = energy;
    if (before > 0 && m->change > 0) {
        double ratio = m->change / before; /* smoothed, since the first ratios say little */
        m->rate = m->rate > 0 ? sqrt(m->rate * ratio) : ratio;
    }
    if (m->change <= plan->opts.tol && exact) {
        m->end = CGAM_END_CONVERGED;
        return true;
    }
    if (m->iterations >= plan->opts.max_iter) {
        m->end = CGAM_END_MAX_ITER;
        return true;
    }
    if (m->change < *best) {
        *best = m->change;
        *since = m->iterations;
    }
    /* rounding of r moves p by about beta eps |r|; a change of that size that stops falling has
     * arrived as far as double can tell */
    double noise = 64 * plan->opts.beta * 0x1p-53 * (fabs(m->lse) / plan->opts.beta + 1);
    if (m->iterations - *since > STALL_ROUNDS && m->change <= noise) {
        m->end = CGAM_END_STALLED;
        return true;
    }
    return false;
}

/* The last word on one query: where the streamed solve is not exact enough, iterate on with
 * refined solves, then s from r. */
static cgam_status finish(const cgam_recall *plan, cgam_query *m, double *work)
{
    int64_t n = plan->bank->Z.n;
    double lambda = plan->opts.lambda, best = INFINITY;
    int64_t since = m->iterations;
    cgam_status status = CGAM_OK;
    bool more = plan->refines && m->end == CGAM_END_CONVERGED;
    while (more && status == CGAM_OK) {
        double before = m->change, energy;
        status = step_apart(plan, m, true, work, &energy);
        if (status != CGAM_OK) break;
        if (!settle(plan, m)) {
            m->end = CGAM_END_DIVERGED;
            break;
        }
        /* the first refined energy differs from the streamed one by its error, not by a rise */
        if (best == INFINITY) m->energy_end = fmax(energy, m->energy_end);
        more = !book(plan, m, energy, before, &best, &since);
    }
    for (int64_t i = 0; i < n; i++)
        m->s[i] = lambda > 0 ? m->s0[i] + (m->r[i] - m->a[i]) / lambda : m->s0[i];
    return status;
}

static cgam_status solve_group(const cgam_recall *plan, int64_t count, cgam_query *all,
                               const double *start)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, active = 0;
    cgam_query *m[GROUP_MAX];
    double energy[GROUP_MAX], best[GROUP_MAX];
    int64_t since[GROUP_MAX] = {0};
    cgam_status status = CGAM_OK;
    double *work = cgam_alloc(env, (size_t)n, sizeof *work);
    double *g = cgam_alloc(env, (size_t)(count * d), sizeof *g);
    if (!work || !g) {
        status = cgam_fail_nomem(env, "a coupled recall");
        goto done;
    }
    for (int64_t k = 0; k < count; k++) {
        cgam_query *x = &all[k];
        x->level = x->level && !start;
        memcpy(x->r, x->a, (size_t)n * sizeof *x->r);
        bool finite = cgam_query_softmax(plan, x);
        x->energy_start = x->energy_end = -x->half_us0 - x->lse / plan->opts.beta;
        if (start) {
            memcpy(x->p, start + k * n, (size_t)n * sizeof *x->p);
            x->energy_start = x->energy_end = INFINITY; /* not a point of this start's path */
        }
        if (!finite) {
            x->end = CGAM_END_DIVERGED;
            memcpy(x->s, x->s0, (size_t)n * sizeof *x->s);
            continue;
        }
        if (plan->streams) status = gather(plan, x, g + active * d);
        if (status != CGAM_OK) goto done;
        best[active] = INFINITY;
        m[active++] = x;
    }
    while (active > 0) {
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
        else if (plan->streams) status = step_streaming(plan, active, m, g, energy);
        int64_t kept = 0;
        for (int64_t v = 0; v < active && status == CGAM_OK; v++) {
            cgam_query *x = m[v];
            double before = x->change;
            if (!plan->streams) status = step_apart(plan, x, false, work, &energy[v]);
            if (status != CGAM_OK) break;
            bool finite = settle(plan, x);
            if (!finite) x->end = CGAM_END_DIVERGED;
            if (x->energy_start == INFINITY) x->energy_start = x->energy_end = energy[v];
            bool done = !finite || book(plan, x, energy[v], before, &best[v], &since[v]);
            bool moved = false;
            if (!done && newton_pays(plan, x)) {
                status = cgam_coupled_newton(plan, x, &moved);
                if (moved && plan->streams && status == CGAM_OK)
                    status = gather(plan, x, g + v * d);
            }
            if (done) {
                status = status == CGAM_OK ? finish(plan, x, work) : status;
                continue;
            }
            if (kept != v) { /* close the gap a finished neighbour left */
                m[kept] = x;
                best[kept] = best[v];
                since[kept] = since[v];
                memmove(g + kept * d, g + v * d, (size_t)d * sizeof *g);
            }
            kept++;
        }
        if (status != CGAM_OK) break;
        active = kept;
    }
done:
    cgam_free(env, work);
    cgam_free(env, g);
    return status;
}

cgam_status cgam_coupled_solve(const cgam_recall *plan, int64_t count, cgam_query *m,
                               const double *start)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += GROUP_MAX) {
        int64_t size = count - k < GROUP_MAX ? count - k : GROUP_MAX;
        status = solve_group(plan, size, m + k, start ? start + k * plan->bank->Z.n : NULL);
    }
    return status;
}
