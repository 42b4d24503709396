/* measure.c: what the vectors of a recall say - winner, gaps, effective numbers, bound. */
#include "memory/recall.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

/* The largest entry of x other than `except`. */
static double best_other(const double *x, int64_t n, int64_t except)
{
    double best = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (i != except && x[i] > best) best = x[i];
    return best;
}

void cgam_query_measure(const cgam_recall *plan, const cgam_query *m, int64_t target,
                        cgam_result *out)
{
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta;
    *out = (cgam_result){.iterations = m->iterations,
                         .newton_steps = m->newton_steps,
                         .end = m->end,
                         .change = m->change,
                         .energy_start = m->energy_start,
                         .energy_end = m->energy_end,
                         .energy_rise = m->energy_rise,
                         .time = plan->opts.mode == CGAM_FLOW ? m->time : NAN};
    for (int64_t i = 1; i < n; i++)
        if (m->r[i] > m->r[out->winner]) out->winner = i;
    int64_t f = out->focus = target >= 0 ? target : out->winner;
    for (int64_t i = 0; i < n; i++)
        out->focus_rank += m->r[i] > m->r[f] || (m->r[i] == m->r[f] && i < f);

    /* entropy = lse - beta sum p r = sum p (-log p); log p is taken from the scores, so tiny p
     * neither round to 0 log 0 nor lose digits */
    double entropy = 0, squares = 0, log_sum = log(m->sum);
    for (int64_t i = 0; i < n; i++) {
        entropy -= m->p[i] * (beta * (m->r[i] - m->top) - log_sum);
        squares += m->p[i] * m->p[i];
    }
    out->p = m->p[f];
    out->log_p = beta * (m->r[f] - m->top) - log_sum;
    out->neff_entropy = n == 1 ? 1 : exp(entropy);
    out->neff_ipr = 1 / squares;
    out->gap = out->gap_raw = out->gap_gate = NAN;
    out->p_lower_bound = 1;
    if (n > 1) {
        out->gap = m->r[f] - best_other(m->r, n, f);
        out->gap_raw = m->b[f] - best_other(m->b, n, f);
        out->gap_gate = m->s[f] - best_other(m->s, n, f);
        out->p_lower_bound = cgam_separation_bound(n, beta, out->gap);
    }
}

/* Is memory i worse than memory j? Lower score, or same score and later. */
static bool worse(const double *r, int64_t i, int64_t j)
{
    return r[i] < r[j] || (r[i] == r[j] && i > j);
}

/* Moves heap[at] down until no child is worse: the worst of the kept sits at the root. */
static void sift(const double *r, int64_t *heap, int64_t size, int64_t at)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= size) return;
        if (child + 1 < size && worse(r, heap[child + 1], heap[child])) child++;
        if (!worse(r, heap[child], heap[at])) return;
        int64_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

void cgam_query_top(const cgam_query *m, int64_t n, int64_t k, int64_t *index)
{
    for (int64_t i = 0; i < k; i++) index[i] = i;
    for (int64_t i = k / 2; i-- > 0;) sift(m->r, index, k, i);
    for (int64_t i = k; i < n; i++) {
        if (k == 0 || !worse(m->r, index[0], i)) continue;
        index[0] = i;
        sift(m->r, index, k, 0);
    }
    for (int64_t size = k - 1; size > 0; size--) { /* heap sort: the worst goes last */
        int64_t swap = index[0];
        index[0] = index[size];
        index[size] = swap;
        sift(m->r, index, size, 0);
    }
}
