/* result.c: what is told of a recall - winner, gaps, effective numbers, bound - and the list of its
 * leaders. */
#include "memory/recall.h"

#include "num/rounding.h"

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

/* A score against one more rival. */
static double less_ghost(const cgam_recall *plan, double gap, double value, double ghost)
{
    return plan->opts.none ? fmin(gap, value - ghost) : gap;
}

cgam_summary cgam_query_summary(const cgam_recall *plan, const cgam_query *m, int64_t target)
{
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, squares = 0, log_sum = log(m->sum), x0 = plan->opts.none_score;
    cgam_summary x = {0};
    for (int64_t i = 1; i < n; i++)
        if (m->r[i] > m->r[x.winner]) x.winner = i;
    if (plan->opts.none && x0 > m->r[x.winner]) x.winner = -1;
    int64_t f = x.focus = target >= 0 ? target : x.winner;
    double r = f >= 0 ? m->r[f] : x0, b = f >= 0 ? m->b[f] : x0, s = f >= 0 ? m->s[f] : 0;
    for (int64_t i = 0; i < n && f >= 0; i++) x.rank += m->r[i] > r || (m->r[i] == r && i < f);
    /* log p is taken from the scores, so tiny p neither round to 0 log 0 nor lose digits */
    for (int64_t i = 0; i < n; i++) {
        x.entropy -= m->p[i] * (beta * (m->r[i] - m->top) - log_sum);
        squares += m->p[i] * m->p[i];
    }
    if (plan->opts.none) {
        double log_p = beta * (x0 - m->top) - log_sum;
        x.p_none = exp(log_p);
        x.entropy -= x.p_none > 0 ? x.p_none * log_p : 0;
        squares += x.p_none * x.p_none;
        x.rank += f >= 0 && x0 > r;
    }
    x.ipr = 1 / squares;
    x.p = f >= 0 ? m->p[f] : x.p_none;
    x.log_p = beta * (r - m->top) - log_sum;
    x.gap = r - best_other(m->r, n, f);
    x.gap_raw = b - best_other(m->b, n, f);
    x.gap_gate = s - best_other(m->s, n, f);
    if (f >= 0) {
        x.gap = less_ghost(plan, x.gap, r, x0);
        x.gap_raw = less_ghost(plan, x.gap_raw, b, x0);
        x.gap_gate = less_ghost(plan, x.gap_gate, s, 0);
    }
    return x;
}

void cgam_weights_share(const cgam_recall *plan, const cgam_weights *x, double r, bool ghost,
                        double share[2])
{
    /* exponents are off by 3 u of at most 746 where a weight is not nothing, sums by gamma */
    double beta = plan->opts.beta, exps = 4096 * CGAM_U;
    double few = cgam_gamma((double)x->scored + 64),
           many = cgam_gamma((double)plan->bank->Z.n + 64);
    double up = exp(beta * x->off * CGAM_SLACK) * (1 + 2 * exps), down = (1 - 8 * CGAM_U) / up;
    double top = plan->opts.none ? fmax(x->top, plan->opts.none_score) : x->top;
    double w = exp(beta * (r - top)), shrink = exp(beta * (x->top - top));
    double none = plan->opts.none ? exp(beta * (plan->opts.none_score - top)) : 0;
    share[0] = 0;
    share[1] = 1;
    if (!isfinite(up) || !isfinite(w)) return;
    double known = x->known * shrink, others = ghost ? known : fmax(known - w, 0) + none;
    double doubt = (few + exps) * known;
    double most = (others + doubt + x->high * shrink * (1 + many)) * up + 0x1p-1000;
    double least = (fmax(others - doubt, 0) + x->low * shrink * (1 - many)) * down;
    share[0] = fmax(cgam_below(w * down / (w * down + most) * (1 - 8 * CGAM_U)), 0);
    w = w * up + 0x1p-1000;
    share[1] = fmin(cgam_above(w / (w + least) * (1 + 8 * CGAM_U)), 1);
}

void cgam_result_intervals(const cgam_recall *plan, const cgam_weights *x, double r,
                           cgam_result *out)
{
    double share[2];
    cgam_weights_share(plan, x, r, out->focus < 0, share);
    out->p = out->p_from = share[0];
    out->p_to = share[1];
    out->log_p = log(share[0]);
    out->rescored = x->scored;
    out->score_error = x->off;
    if (!plan->opts.none) return;
    cgam_weights_share(plan, x, plan->opts.none_score, true, share);
    out->p_none = out->p_none_from = share[0];
    out->p_none_to = share[1];
}

void cgam_result_fill(const cgam_recall *plan, const cgam_summary *x, const cgam_query *m,
                      cgam_result *out)
{
    int64_t n = cgam_recall_rivals(plan);
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
        .p_none = x->p_none,
        .p_from = NAN,
        .p_to = NAN,
        .p_none_from = NAN,
        .p_none_to = NAN,
        .rescored = plan->bank->Z.n,
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
