/* result.c: what is told of a recall - winner, gaps, effective numbers, bound - and the list of its
 * leaders. */
#include "memory/recall.h"

#include "num/ranks.h"
#include "num/rounding.h"

#include <cgam/theory.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A score against one more rival. */
static double less_ghost(const cgam_recall *plan, double gap, double value, double ghost)
{
    return plan->opts.none ? fmin(gap, value - ghost) : gap;
}

/* The first of the best; -1 = the ghost. */
static cgam_status find_winner(const cgam_recall *plan, const cgam_query *m, int64_t *winner)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_tally t;
    cgam_tally_open(&t, Z, "^.");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++)
            if (m->r[i] > t.x[0]) {
                t.x[0] = m->r[i];
                t.x[1] = (double)i;
            }
    cgam_status status = cgam_tally_close(plan->bank->env, &t);
    *winner = plan->opts.none && plan->opts.none_score > t.x[0] ? -1 : (int64_t)t.x[1];
    return status;
}

cgam_status cgam_query_summary(const cgam_recall *plan, const cgam_query *m, int64_t target,
                               cgam_summary *out)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    cgam_span here = cgam_rows_span(Z);
    double beta = plan->opts.beta, log_sum = log(m->sum), x0 = plan->opts.none_score;
    bool sparse = cgam_recall_sparse(plan);
    cgam_summary x = {.support = Z->n};
    cgam_status status = find_winner(plan, m, &x.winner);
    int64_t f = x.focus = target >= 0 ? target : x.winner;
    double own[4] = {x0, x0, 0, 0}; /* r, b, s, p */
    if (cgam_span_has(here, f)) {
        own[0] = m->r[f];
        own[1] = m->b[f];
        own[2] = m->s[f];
        own[3] = m->p[f];
    }
    if (f >= 0 && status == CGAM_OK) status = cgam_rows_pick(env, Z, 1, &f, 4, own);
    if (status != CGAM_OK) return status;
    double r = own[0], b = own[1], s = own[2];
    enum { RANK, ENTROPY, SQUARES, NOTHING, BEST_R, BEST_B, BEST_S };
    cgam_tally t;
    cgam_tally_open(&t, Z, "++++>>>");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++) {
            double p = m->p[i];
            t.x[RANK] += f >= 0 && (m->r[i] > r || (m->r[i] == r && i < f));
            /* log p is taken from the scores, so tiny p neither round to 0 log 0 nor lose digits */
            if (!sparse) t.x[ENTROPY] -= p * (beta * (m->r[i] - m->top) - log_sum);
            else if (p > 0) t.x[ENTROPY] -= p * log(p);
            else t.x[NOTHING] += 1;
            t.x[SQUARES] += p * p;
            if (i == f) continue;
            t.x[BEST_R] = fmax(t.x[BEST_R], m->r[i]);
            t.x[BEST_B] = fmax(t.x[BEST_B], m->b[i]);
            t.x[BEST_S] = fmax(t.x[BEST_S], m->s[i]);
        }
    status = cgam_tally_close(env, &t);
    if (status != CGAM_OK) return status;
    double squares = t.x[SQUARES];
    x.rank = (int64_t)t.x[RANK];
    x.entropy = t.x[ENTROPY];
    x.support -= (int64_t)t.x[NOTHING];
    if (plan->opts.none) {
        double log_p = beta * (x0 - m->top) - log_sum;
        x.p_none = exp(log_p);
        x.entropy -= x.p_none > 0 ? x.p_none * log_p : 0;
        squares += x.p_none * x.p_none;
        x.rank += f >= 0 && x0 > r;
    }
    x.ipr = 1 / squares;
    x.p = f >= 0 ? own[3] : x.p_none;
    x.log_p = cgam_query_log_p(plan, m, r);
    x.gap = r - t.x[BEST_R];
    x.gap_raw = b - t.x[BEST_B];
    x.gap_gate = s - t.x[BEST_S];
    if (f >= 0) {
        x.gap = less_ghost(plan, x.gap, r, x0);
        x.gap_raw = less_ghost(plan, x.gap_raw, b, x0);
        x.gap_gate = less_ghost(plan, x.gap_gate, s, 0);
    }
    *out = x;
    return CGAM_OK;
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
        .support = x->support,
        .p_lower_bound = !rivals ? 1
                         : cgam_recall_sparse(plan)
                             ? cgam_margin_bound(n, plan->opts.entmax, plan->opts.beta, x->gap)
                             : cgam_separation_bound(n, plan->opts.beta, x->gap),
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

/* The k best of r [n], n > 0, in their order. */
static void top_of(const double *r, int64_t n, int64_t k, int64_t *index)
{
    for (int64_t i = 0; i < k; i++) index[i] = i;
    for (int64_t i = k / 2; i-- > 0;) sift(r, index, k, i);
    for (int64_t i = k; i < n; i++) {
        if (k == 0 || !worse(r, index[0], i)) continue;
        index[0] = i;
        sift(r, index, k, 0);
    }
    for (int64_t size = k - 1; size > 0; size--) { /* heap sort: the worst goes last */
        int64_t swap = index[0];
        index[0] = index[size];
        index[size] = swap;
        sift(r, index, size, 0);
    }
}

typedef struct leading {
    double r;
    int64_t row;
} leading;

static int by_row(const void *x, const void *y)
{
    int64_t a = ((const leading *)x)->row, b = ((const leading *)y)->row;
    return a < b ? -1 : a > b;
}

/* Each rank's best, of which those of all are among. */
cgam_status cgam_query_top(const cgam_recall *plan, const cgam_query *m, int64_t k, int64_t *index)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    cgam_span here = cgam_rows_span(Z);
    int64_t mine = k < here.size ? k : here.size, count = 0;
    if (!Z->shard) {
        top_of(m->r, Z->n, k, index);
        return CGAM_OK;
    }
    void *all = NULL;
    double *r = NULL;
    leading *list = cgam_alloc(env, (size_t)mine + 1, sizeof *list);
    if (!list) return cgam_fail_nomem(env, "leaders");
    top_of(m->r + here.from, here.size, mine, index);
    for (int64_t j = 0; j < mine; j++)
        list[j] = (leading){m->r[here.from + index[j]], here.from + index[j]};
    qsort(list, (size_t)mine, sizeof *list, by_row);
    cgam_status status = cgam_rows_collect(env, Z, sizeof *list, mine, list, &count, &all);
    cgam_free(env, list);
    if (status == CGAM_OK) {
        list = all;
        r = cgam_alloc(env, (size_t)count + 1, sizeof *r);
        if (!r) status = cgam_fail_nomem(env, "leaders");
        for (int64_t j = 0; r && j < count; j++) r[j] = list[j].r;
        if (r) top_of(r, count, k, index);
        for (int64_t j = 0; r && j < k; j++) index[j] = list[index[j]].row;
    }
    cgam_free(env, r);
    cgam_free(env, all);
    return status;
}
