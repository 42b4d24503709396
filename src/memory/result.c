/* result.c: the result of a recall - winner, gaps, effective numbers, bound - and the list of its
 * leaders. */
#include "memory/certify.h"
#include "memory/results.h"

#include "num/rounding.h"
#include "num/vec.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

/* A score compared with one more rival. */
static double less_ghost(const cgam_recall *plan, double gap, double value, double ghost)
{
    return plan->opts.none ? fmin(gap, value - ghost) : gap;
}

/* Returns the first of the best; -1 = the ghost. */
static int64_t find_winner(const cgam_recall *plan, const cgam_settled *m)
{
    const cgam_rows *Z = &plan->bank->Z;
    double top;
    int64_t row = cgam_vec_max_row(Z, m->r, &top);
    return plan->opts.none && plan->opts.none_score > top ? -1 : row;
}

cgam_status cgam_settled_summary(const cgam_recall *plan, const cgam_settled *m, int64_t target,
                                 cgam_summary *out)
{
    const cgam_rows *Z = &plan->bank->Z;
    double beta = plan->opts.beta, log_sum = log(m->act.sum), x0 = plan->opts.none_score;
    bool sparse = cgam_recall_sparse(plan);
    cgam_summary x = {.support = Z->n, .winner = find_winner(plan, m)};
    int64_t f = x.focus = target >= 0 ? target : x.winner;
    double own[4] = {x0, x0, 0, 0}; /* r, b, s, p */
    cgam_status status = cgam_rows_status(Z);
    if (f >= 0 && status == CGAM_OK)
        status = cgam_vec_pick_row(Z, f, 4, (const double *[]){m->r, m->in.b, m->s, m->p}, own);
    if (status != CGAM_OK) return status;
    double r = own[0], b = own[1], s = own[2];
    double rank, entropy, squares, nothing, best_r, best_b, best_s;
    CGAM_REDUCE(Z, i, CGAM_SUM(rank), CGAM_SUM(entropy), CGAM_SUM(squares), CGAM_SUM(nothing),
                CGAM_MAX(best_r), CGAM_MAX(best_b), CGAM_MAX(best_s)) {
        double p = m->p[i];
        rank += f >= 0 && (m->r[i] > r || (m->r[i] == r && i < f));
        /* log p is computed from the scores, so that tiny p neither underflow nor lose digits */
        if (!sparse) entropy -= p * (beta * (m->r[i] - m->act.top) - log_sum);
        else if (p > 0) entropy -= p * log(p);
        else nothing += 1;
        squares += p * p;
        if (i == f) continue;
        best_r = m->r[i] > best_r ? m->r[i] : best_r;
        best_b = m->in.b[i] > best_b ? m->in.b[i] : best_b;
        best_s = m->s[i] > best_s ? m->s[i] : best_s;
    }
    status = cgam_rows_status(Z);
    if (status != CGAM_OK) return status;
    x.rank = (int64_t)rank;
    x.entropy = entropy;
    x.support -= (int64_t)nothing;
    if (plan->opts.none) {
        double log_p = beta * (x0 - m->act.top) - log_sum;
        x.p_none = exp(log_p);
        x.entropy -= x.p_none > 0 ? x.p_none * log_p : 0;
        squares += x.p_none * x.p_none;
        x.rank += f >= 0 && x0 > r;
    }
    x.ipr = 1 / squares;
    x.p = f >= 0 ? own[3] : x.p_none;
    x.log_p = cgam_activated_log_p(plan, &m->act, r);
    x.gap = r - best_r;
    x.gap_raw = b - best_b;
    x.gap_gate = s - best_s;
    if (f >= 0) {
        x.gap = less_ghost(plan, x.gap, r, x0);
        x.gap_raw = less_ghost(plan, x.gap_raw, b, x0);
        x.gap_gate = less_ghost(plan, x.gap_gate, s, 0);
    }
    *out = x;
    return CGAM_OK;
}

void cgam_weight_bounds_share(const cgam_recall *plan, const cgam_weight_bounds *x, double r,
                              bool ghost, double share[2])
{
    /* exponents are off by 3 u of at most 746 if the weight is not negligible, sums by gamma */
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

void cgam_result_intervals(const cgam_recall *plan, const cgam_weight_bounds *x, double r,
                           cgam_result *out)
{
    double share[2];
    cgam_weight_bounds_share(plan, x, r, out->focus < 0, share);
    out->p = out->p_from = share[0];
    out->p_to = share[1];
    out->log_p = log(share[0]);
    out->rescored = x->scored;
    out->score_error = x->off;
    if (!plan->opts.none) return;
    cgam_weight_bounds_share(plan, x, plan->opts.none_score, true, share);
    out->p_none = out->p_none_from = share[0];
    out->p_none_to = share[1];
}

void cgam_result_fill(const cgam_recall *plan, const cgam_summary *x, const cgam_trace *trace,
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
        .p_lower_bound = rivals ? NAN : 1,
        .readout_left_out = x->left_out,
        .iterations = trace->iterations,
        .newton_steps = trace->newton_steps,
        .end = trace->end,
        .change = trace->change,
        .time = plan->opts.mode == CGAM_FLOW ? trace->time : NAN,
        .energy_start = trace->energy_start,
        .energy_end = trace->energy_end,
        .energy_rise = trace->energy_rise,
        .p_error = NAN,
        .stable = -1,
        .readout_error_bound = NAN,
        .p_none = x->p_none,
        .p_from = NAN,
        .p_to = NAN,
        .p_none_from = NAN,
        .p_none_to = NAN,
        .rescored = plan->bank->Z.n,
    };
}

void cgam_result_estimate_bound(const cgam_recall *plan, cgam_result *out)
{
    int64_t n = cgam_recall_rivals(plan);
    if (n < 2) return;
    out->p_lower_bound = cgam_recall_sparse(plan)
                             ? cgam_margin_bound(n, plan->opts.entmax, plan->opts.beta, out->gap)
                             : cgam_separation_bound(n, plan->opts.beta, out->gap);
}
