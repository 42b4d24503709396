/* coupled.c: the self-consistent recall  p = softmax(beta (a + lambda^2 A^-1 p)),
 * a = b + lambda A^-1 u, by plain iteration from p0 = softmax(beta a).
 *
 * The iteration is the concave-convex procedure on
 *     E(s) = s'As/2 - u's - lse(beta (b + lambda s)) / beta ,     s = A^-1 (u + lambda p),
 * so E never rises, for any lambda, as long as A is positive definite. With the s above
 *     E = sum_i p_i (r_i - a_i) / 2 - u'A^-1u / 2 - lse(beta r) / beta ,   r = b + lambda s,
 * which the step that computes r gathers on its way; a rise beyond rounding would show. A step is a
 * pass over Z (coupled_pass.c), or a solve of its own where that does not stream. */
#include "memory/recall.h"

#include <math.h>
#include <string.h>

enum { SETTLE_ROWS = 512 };

void cgam_query_sums(cgam_query *m, double beta, double top, double sum)
{
    m->top = top;
    m->sum = sum;
    m->lse = beta * top + log(sum);
}

void cgam_query_gates(const cgam_recall *plan, cgam_query *m)
{
    double lambda = plan->opts.lambda;
    for (int64_t i = 0; i < plan->bank->Z.n; i++)
        m->s[i] = lambda > 0 ? m->s0[i] + (m->r[i] - m->a[i]) / lambda : m->s0[i];
}

/* Weights by blocks, their sums added up with the rounding of each addition kept. */
bool cgam_query_softmax(const cgam_recall *plan, cgam_query *m)
{
    const cgam_f64 *f64 = plan->bank->Z.cpu->f64;
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, top = f64->largest(m->r, n), high = 0, low = 0;
    if (plan->opts.none) {
        top = fmax(top, plan->opts.none_score);
        high = exp(beta * (plan->opts.none_score - top));
    }
    for (int64_t i = 0; i < n; i += SETTLE_ROWS) {
        double sums[3], total;
        f64->softmax(m->r + i, n - i < SETTLE_ROWS ? n - i : SETTLE_ROWS, beta, top, m->p + i,
                     sums);
        total = high + sums[0];
        low += high >= sums[0] ? (high - total) + sums[0] : (sums[0] - total) + high;
        high = total;
    }
    double sum = high + low, share = 1 / sum;
    cgam_query_sums(m, beta, top, sum);
    for (int64_t i = 0; i < n; i++) m->p[i] *= share;
    return isfinite(m->lse);
}

/* r, lse and the energy of p without streaming: A^-1 p by a solve of its own, refined where `exact`. */
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
    cgam_query_sums(m, beta, top, sum);
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

/* Levelled scores have sums of their own; with those of before, p would not add up to 1. */
static void sum_again(const cgam_recall *plan, cgam_query *m)
{
    const cgam_f64 *f64 = plan->bank->Z.cpu->f64;
    int64_t n = plan->bank->Z.n;
    double top = f64->largest(m->r, n), sum = 0, e[SETTLE_ROWS], sums[3];
    for (int64_t i = 0; i < n; i += SETTLE_ROWS) {
        f64->softmax(m->r + i, n - i < SETTLE_ROWS ? n - i : SETTLE_ROWS, plan->opts.beta, top, e,
                     sums);
        sum += sums[0];
    }
    cgam_query_sums(m, plan->opts.beta, top, sum);
}

/* p = exp(beta (r - top)) / sum, which keeps the digits that exp(beta r - lse) would lose to the
 * size of r, and how far that is from the p before; the energy of levelled scores. False: not a number. */
static bool settle(const cgam_recall *plan, cgam_query *m, double *energy, double *change)
{
    settling job = {.plan = plan, .m = m};
    int64_t chunks = cgam_rows_chunks(&plan->bank->Z);
    double largest = 0, squares = 0;
    if (!isfinite(m->lse)) return false;
    if (m->level && plan->twins) {
        double before = m->lse;
        cgam_twins_level(plan->twins, m->r);
        sum_again(plan, m);
        *energy += (before - m->lse) / plan->opts.beta;
    }
    if (cgam_parallel(plan->bank->env, chunks, settle_chunk, &job) != CGAM_OK) return false;
    for (int64_t c = 0; c < chunks; c++) {
        largest = fmax(largest, job.largest[c]);
        squares += job.squares[c];
    }
    *change = largest;
    m->change_norm = sqrt(squares);
    return isfinite(largest);
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

/* Books one more plain step. Energies are as good as f32 where it had a part. */
static bool book(const cgam_recall *plan, cgam_query *m, double energy, double change)
{
    bool exact = !m->f32 && !m->trails;
    cgam_books_energy(m, energy, exact);
    cgam_books_change(m, change);
    return cgam_books_end(plan, m, exact);
}

/* The last word on one query: where the streamed solve is not exact enough, iterate on with
 * refined solves, then s from r. */
static cgam_status finish(const cgam_recall *plan, cgam_query *m, double *work)
{
    cgam_status status = CGAM_OK;
    bool more = plan->can.refines && m->end == CGAM_END_CONVERGED;
    m->best = INFINITY;
    m->since = m->iterations;
    while (more && status == CGAM_OK) {
        double energy, change, *before = m->s; /* which is known at the end */
        memcpy(before, m->r, (size_t)plan->bank->Z.n * sizeof *before);
        status = step_apart(plan, m, true, work, &energy);
        if (status != CGAM_OK) break;
        for (int64_t i = 0; m->best == INFINITY && i < plan->bank->Z.n; i++)
            if (m->p[i] > 0) m->streamed = fmax(m->streamed, fabs(m->r[i] - before[i]));
        if (!settle(plan, m, &energy, &change)) {
            m->end = CGAM_END_DIVERGED;
            break;
        }
        /* the first refined energy differs from the streamed one by its error, not by a rise, and what
         * streamed ones rose by is one where it is more than their errors can be */
        if (m->best == INFINITY) {
            m->energy_end = fmax(energy, m->energy_end);
            if (m->energy_rise <= 3 * m->streamed) m->energy_rise = 0;
        }
        more = !book(plan, m, energy, change);
    }
    cgam_query_gates(plan, m);
    return status;
}

/* The start of one query; false: it ends here. */
static bool begin(const cgam_recall *plan, cgam_query *m, const double *start)
{
    size_t bytes = (size_t)plan->bank->Z.n * sizeof(double);
    memcpy(m->r, m->a, bytes);
    bool finite = cgam_query_softmax(plan, m);
    /* another start has no point of this energy on its path */
    cgam_books_open(m, start ? INFINITY : -m->half_us0 - m->lse / plan->opts.beta);
    if (start) memcpy(m->p, start, bytes);
    if (start) m->level = false;
    if (finite) return true;
    m->end = CGAM_END_DIVERGED;
    memcpy(m->s, m->s0, bytes);
    return false;
}

/* One more step of m, which has r, lse and the energy of it; *done = it was the last. */
static cgam_status step(const cgam_recall *plan, cgam_query *m, double energy, double *g,
                        double *work, bool *done)
{
    double change;
    bool finite = settle(plan, m, &energy, &change), moved = false;
    if (!finite) m->end = CGAM_END_DIVERGED;
    if (m->energy_start == INFINITY) m->energy_start = m->energy_end = energy;
    *done = !finite || book(plan, m, energy, change);
    if (*done) return finish(plan, m, work);
    if (!newton_pays(plan, m)) return CGAM_OK;
    cgam_status status = cgam_coupled_newton(plan, m, &moved);
    if (moved && plan->can.streams && status == CGAM_OK) status = cgam_coupled_gather(plan, m, g);
    return status;
}

static cgam_status solve_group(const cgam_recall *plan, int64_t count, cgam_query *all,
                               const double *start)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, active = 0;
    cgam_query *m[CGAM_ROUTE_SHARE];
    double energy[CGAM_ROUTE_SHARE];
    bool streams = plan->can.streams;
    cgam_status status = CGAM_OK;
    double *work = cgam_alloc(env, (size_t)n, sizeof *work);
    double *g = cgam_alloc(env, (size_t)(count * d), sizeof *g);
    if (!work || !g) status = cgam_fail_nomem(env, "a coupled recall");
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        if (!begin(plan, &all[k], start ? start + k * n : NULL)) continue;
        if (streams) status = cgam_coupled_gather(plan, &all[k], g + active * d);
        m[active++] = &all[k];
    }
    while (active > 0 && status == CGAM_OK) {
        int64_t kept = 0;
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
        else if (streams) status = cgam_coupled_pass(plan, active, m, g, energy);
        for (int64_t v = 0; v < active && status == CGAM_OK; v++) {
            bool done;
            if (!streams) status = step_apart(plan, m[v], false, work, &energy[v]);
            if (status == CGAM_OK) status = step(plan, m[v], energy[v], g + v * d, work, &done);
            if (status != CGAM_OK || done) continue;
            if (kept != v) memmove(g + kept * d, g + v * d, (size_t)d * sizeof *g);
            m[kept++] = m[v]; /* closes the gap that a finished neighbour left */
        }
        active = kept;
    }
    cgam_free(env, work);
    cgam_free(env, g);
    return status;
}

cgam_status cgam_coupled_solve(const cgam_recall *plan, int64_t count, cgam_query *m,
                               const double *start)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += CGAM_ROUTE_SHARE) {
        int64_t size = count - k < CGAM_ROUTE_SHARE ? count - k : CGAM_ROUTE_SHARE;
        status = solve_group(plan, size, m + k, start ? start + k * plan->bank->Z.n : NULL);
    }
    return status;
}
