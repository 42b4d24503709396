/* result.c: what is told of a recall - winner, gaps, effective numbers, bound - and the list of its
 * leaders. */
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

cgam_summary cgam_query_summary(const cgam_recall *plan, const cgam_query *m, int64_t target)
{
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, squares = 0, log_sum = log(m->sum);
    cgam_summary x = {0};
    for (int64_t i = 1; i < n; i++)
        if (m->r[i] > m->r[x.winner]) x.winner = i;
    int64_t f = x.focus = target >= 0 ? target : x.winner;
    for (int64_t i = 0; i < n; i++) x.rank += m->r[i] > m->r[f] || (m->r[i] == m->r[f] && i < f);
    /* log p is taken from the scores, so tiny p neither round to 0 log 0 nor lose digits */
    for (int64_t i = 0; i < n; i++) {
        x.entropy -= m->p[i] * (beta * (m->r[i] - m->top) - log_sum);
        squares += m->p[i] * m->p[i];
    }
    x.ipr = 1 / squares;
    x.p = m->p[f];
    x.log_p = beta * (m->r[f] - m->top) - log_sum;
    x.gap = m->r[f] - best_other(m->r, n, f);
    x.gap_raw = m->b[f] - best_other(m->b, n, f);
    x.gap_gate = m->s[f] - best_other(m->s, n, f);
    return x;
}

void cgam_result_fill(const cgam_recall *plan, const cgam_summary *x, const cgam_query *m,
                      cgam_result *out)
{
    int64_t n = plan->bank->Z.n;
    bool rivals = n > 1;
    *out = (cgam_result){
        .winner = x->winner,
        .focus = x->focus,
        .focus_rank = x->rank,
        .p = x->p,
        .log_p = x->log_p,
        .neff_entropy = rivals ? exp(x->entropy) : 1,
        .neff_ipr = x->ipr,
        .gap = rivals ? x->gap : NAN,
        .gap_raw = rivals ? x->gap_raw : NAN,
        .gap_gate = rivals ? x->gap_gate : NAN,
        .p_lower_bound = rivals ? cgam_separation_bound(n, plan->opts.beta, x->gap) : 1,
        .readout_left_out = x->left_out,
        .iterations = m->iterations,
        .newton_steps = m->newton_steps,
        .end = m->end,
        .change = m->change,
        .time = plan->opts.mode == CGAM_FLOW ? m->time : NAN,
        .energy_start = m->energy_start,
        .energy_end = m->energy_end,
        .energy_rise = m->energy_rise,
        .p_error = NAN,
    };
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
