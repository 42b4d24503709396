/* coupled.c: the self-consistent recall  p = act(beta (a + lambda^2 A^-1 p)), act softmax or entmax,
 * a = b + lambda A^-1 u, by plain iteration from p0 = act(beta a).
 *
 * The iteration is the concave-convex procedure on
 *     E(s) = s'As/2 - u's - lse(beta (b + lambda s)) / beta ,     s = A^-1 (u + lambda p),
 * so E never rises, for any lambda, as long as A is positive definite. With the s above
 *     E = sum_i p_i (r_i - a_i) / 2 - u'A^-1u / 2 - lse(beta r) / beta ,   r = b + lambda s,
 * which the step that computes r gathers on its way; a rise beyond rounding would show. A step is a
 * pass over Z (coupled_pass.c), or a solve of its own where that does not stream. */
#include "memory/recall.h"

#include "num/ranks.h"

#include <math.h>
#include <string.h>

void cgam_query_sums(cgam_query *m, double beta, double top, double sum)
{
    m->top = top;
    m->sum = sum;
    m->lse = beta * top + log(sum);
}

void cgam_query_gates(const cgam_recall *plan, cgam_query *m)
{
    double lambda = plan->opts.lambda;
    cgam_span here = cgam_rows_span(&plan->bank->Z);
    for (int64_t i = here.from; i < here.to; i++)
        m->s[i] = lambda > 0 ? m->s0[i] + (m->r[i] - m->a[i]) / lambda : m->s0[i];
}

/* r, lse and the energy of p without streaming: A^-1 p by a solve of its own, refined where `exact`. */
static cgam_status step_apart(const cgam_recall *plan, cgam_query *m, bool exact, double *work,
                              double *energy)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    double l2 = plan->opts.lambda * plan->opts.lambda, beta = plan->opts.beta;
    cgam_status status = CGAM_OK;
    if (plan->opts.alpha == 0 || l2 == 0) {
        cgam_vectors_copy(Z, work, m->p);
    } else if (!exact && plan->gate->A && cgam_dplr_dense(plan->gate->A)) {
        cgam_vectors_copy(Z, work, m->p);
        status = cgam_dplr_dense_solve(plan->gate->A, work);
    } else {
        status = cgam_gate_solve(plan->gate, m->p, work, NULL);
    }
    if (status != CGAM_OK) return status;
    cgam_tally t;
    cgam_tally_open(&t, Z, "+>");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++) {
            m->r[i] = m->a[i] + l2 * work[i];
            t.x[0] += m->p[i] * (l2 * work[i]);
            t.x[1] = m->r[i] > t.x[1] ? m->r[i] : t.x[1];
        }
    status = cgam_tally_close(env, &t);
    double feedback = t.x[0], top = t.x[1];
    if (cgam_recall_sparse(plan)) {
        cgam_query_measure(plan, m);
    } else if (status == CGAM_OK) {
        cgam_tally_open(&t, Z, "+");
        while (cgam_tally_next(&t))
            for (int64_t i = t.from; i < t.to; i++) t.x[0] += exp(beta * (m->r[i] - top));
        status = cgam_tally_close(env, &t);
        cgam_query_sums(m, beta, top, t.x[0]);
    }
    *energy = 0.5 * feedback - m->half_us0 - m->lse / beta;
    return status;
}

typedef struct settling {
    const cgam_recall *plan;
    cgam_query *m;
    double largest[CGAM_CHUNKS_MAX]; /* change, of the chunks that are here */
    double *squares;                 /* [chunks] their sums */
} settling;

static cgam_status settle_chunk(void *arg, int64_t chunk)
{
    settling *job = arg;
    const cgam_rows *Z = &job->plan->bank->Z;
    cgam_query *m = job->m;
    double largest = 0, squares = 0, p[CGAM_SETTLE_ROWS];
    int64_t end = cgam_rows_chunk_begin(Z, chunk + 1);
    for (int64_t i = cgam_rows_chunk_begin(Z, chunk); i < end; i += CGAM_SETTLE_ROWS) {
        int64_t rows = end - i < CGAM_SETTLE_ROWS ? end - i : CGAM_SETTLE_ROWS;
        cgam_query_weights(job->plan, m, i, rows, p);
        for (int64_t k = 0; k < rows; k++) {
            double step = fabs(p[k] - m->p[i + k]);
            largest = step > largest ? step : largest;
            squares += step * step;
            m->p[i + k] = p[k];
        }
    }
    job->largest[chunk] = largest;
    job->squares[chunk] = squares;
    return CGAM_OK;
}

/* p from r; with softmax exp(beta (r - top)) / sum, which keeps the digits that exp(beta r - lse) would lose to the
 * size of r, and how far that is from the p before; the energy of levelled scores. *finite = it is a number.
 * On ranks p and r are known to who has the rows, and so are sums of squares[chunks]; see norm_of_change. */
static cgam_status settle(const cgam_recall *plan, cgam_query *m, double *energy, double *change,
                          double *squares, bool *finite)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    settling job;
    int64_t chunks = cgam_rows_chunks(Z), from, to;
    double largest = 0;
    cgam_status status = CGAM_OK;
    job.plan = plan;
    job.m = m;
    job.squares = squares;
    *finite = isfinite(m->lse);
    if (!*finite) { /* nothing moves any more */
        memset(squares, 0, (size_t)chunks * sizeof *squares);
        return CGAM_OK;
    }
    if (m->level && plan->twins) {
        double before = m->lse;
        status = cgam_twins_level(plan->bank, plan->twins, m->r);
        if (status != CGAM_OK) return status;
        cgam_query_measure(plan, m); /* with the sums of before, p would not add up to 1 */
        *energy += (before - m->lse) / plan->opts.beta;
    }
    status = cgam_rows_run(env, Z, chunks, settle_chunk, &job);
    cgam_rows_here(Z, chunks, &from, &to);
    for (int64_t c = from; c < to && status == CGAM_OK; c++)
        largest = fmax(largest, job.largest[c]);
    if (status == CGAM_OK) status = cgam_rows_most(env, Z, 1, &largest);
    *change = largest;
    *finite = isfinite(largest);
    return status;
}

/* |dp|_2 of the step just settled, which is asked for at the end alone. */
static cgam_status norm_of_change(const cgam_recall *plan, cgam_query *m, double *squares)
{
    const cgam_rows *Z = &plan->bank->Z;
    int64_t chunks = cgam_rows_chunks(Z);
    double total = 0;
    cgam_status status = cgam_rows_share(plan->bank->env, Z, chunks, sizeof *squares, squares);
    for (int64_t c = 0; c < chunks; c++) total += squares[c];
    m->change_norm = sqrt(total);
    return status;
}

/* Would Newton get there sooner? Costs in units of one multiplication per row: an iteration reads
 * the bank, a Newton step factors an operator (matrix products run about eight times as fast per
 * multiplication as the memory-bound pass), and about five factorisations are needed. */
static bool newton_pays(const cgam_recall *plan, const cgam_query *m)
{
    double n = (double)plan->bank->Z.n, d = (double)plan->bank->Z.d;
    if (plan->opts.plain || plan->opts.lambda == 0 || !plan->gate->A) return false;
    if (cgam_recall_sparse(plan)) return false; /* the lemma of newton.c is softmax's */
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
static cgam_status finish(const cgam_recall *plan, cgam_query *m, double *squares, double *work)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_status status = CGAM_OK;
    bool more = plan->can.refines && m->end == CGAM_END_CONVERGED;
    m->best = INFINITY;
    m->since = m->iterations;
    while (more && status == CGAM_OK) {
        double energy, change, *before = m->s; /* which is known at the end */
        cgam_vectors_copy(Z, before, m->r);
        status = step_apart(plan, m, true, work, &energy);
        if (status != CGAM_OK) break;
        if (m->best == INFINITY) {
            cgam_tally t;
            cgam_tally_open(&t, Z, ">");
            while (cgam_tally_next(&t))
                for (int64_t i = t.from; i < t.to; i++)
                    if (m->p[i] > 0) t.x[0] = fmax(t.x[0], fabs(m->r[i] - before[i]));
            status = cgam_tally_close(plan->bank->env, &t);
            m->streamed = fmax(m->streamed, t.x[0]);
        }
        bool finite = false;
        if (status == CGAM_OK) status = settle(plan, m, &energy, &change, squares, &finite);
        if (status != CGAM_OK) break;
        if (!finite) {
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
    return status == CGAM_OK ? norm_of_change(plan, m, squares) : status;
}

/* The start of one query; false: it ends here. */
static bool begin(const cgam_recall *plan, cgam_query *m, const double *start)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_vectors_copy(Z, m->r, m->a);
    bool finite = cgam_query_activate(plan, m);
    /* another start has no point of this energy on its path */
    cgam_books_open(m, start ? INFINITY : -m->half_us0 - m->lse / plan->opts.beta);
    if (start) cgam_vectors_copy(Z, m->p, start);
    if (start) m->level = false;
    if (finite) return true;
    m->end = CGAM_END_DIVERGED;
    cgam_vectors_copy(Z, m->s, m->s0);
    return false;
}

/* One more step of m, which has r, lse and the energy of it; *done = it was the last. */
static cgam_status step(const cgam_recall *plan, cgam_query *m, double energy, double *g,
                        double *work, bool *done)
{
    double change, squares[CGAM_CHUNKS_MAX];
    bool finite, moved = false;
    cgam_rows_iterates(&plan->bank->Z);
    cgam_status status = settle(plan, m, &energy, &change, squares, &finite);
    cgam_rows_iterated(&plan->bank->Z, 0);
    if (status != CGAM_OK) return status;
    if (!finite) m->end = CGAM_END_DIVERGED;
    if (m->energy_start == INFINITY) m->energy_start = m->energy_end = energy;
    *done = !finite || book(plan, m, energy, change);
    bool newton = !*done && newton_pays(plan, m);
    if (*done) return finish(plan, m, squares, work);
    if (cgam_recall_sparse(plan) && plan->can.streams) return cgam_coupled_gather(plan, m, g);
    if (!newton) return status;
    status = cgam_coupled_newton(plan, m, &moved);
    if (moved && plan->can.streams && status == CGAM_OK) status = cgam_coupled_gather(plan, m, g);
    return status;
}

static cgam_status solve_group(const cgam_recall *plan, int64_t count, cgam_query *all,
                               const double *start)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t apart = cgam_rows_span(Z).size, d = Z->d, active = 0;
    cgam_query *m[CGAM_ROUTE_SHARE];
    double energy[CGAM_ROUTE_SHARE];
    bool streams = plan->can.streams;
    cgam_status status = CGAM_OK;
    double *work = cgam_vectors_new(env, Z, 1);
    double *g = cgam_alloc(env, (size_t)(count * d), sizeof *g);
    if (!work || !g) status = cgam_fail_nomem(env, "a coupled recall");
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        if (!begin(plan, &all[k], start ? start + k * apart : NULL)) continue;
        if (streams) status = cgam_coupled_gather(plan, &all[k], g + active * d);
        m[active++] = &all[k];
    }
    while (active > 0 && status == CGAM_OK) {
        int64_t kept = 0;
        cgam_rows_iterates(&plan->bank->Z);
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
        else if (streams) status = cgam_coupled_pass(plan, active, m, g, energy);
        cgam_rows_iterated(&plan->bank->Z, active);
        for (int64_t v = 0; v < active && status == CGAM_OK; v++) {
            bool done = false;
            if (!streams) status = step_apart(plan, m[v], false, work, &energy[v]);
            if (status == CGAM_OK) status = step(plan, m[v], energy[v], g + v * d, work, &done);
            if (status != CGAM_OK || done) continue;
            if (kept != v) memmove(g + kept * d, g + v * d, (size_t)d * sizeof *g);
            m[kept++] = m[v]; /* closes the gap that a finished neighbour left */
        }
        active = kept;
    }
    cgam_vectors_free(env, Z, work);
    cgam_free(env, g);
    return status;
}

cgam_status cgam_coupled_solve(const cgam_recall *plan, int64_t count, cgam_query *m,
                               const double *start)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += CGAM_ROUTE_SHARE) {
        int64_t size = count - k < CGAM_ROUTE_SHARE ? count - k : CGAM_ROUTE_SHARE;
        status = solve_group(plan, size, m + k,
                             start ? start + k * cgam_rows_span(&plan->bank->Z).size : NULL);
    }
    return status;
}
