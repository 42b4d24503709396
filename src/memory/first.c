/* first.c: mode first in one pass over the bank, where no vector of n numbers is asked for.
 *
 *   r = b + lambda s,   b = Z q,   s = A^-1 u:  dinv_i <zeta_i, e> off the border (num/dplr.h)
 *
 * The pass (num/attend.h) gathers the softmax, the leaders and the readout; what a result says is
 * read off those. Since p (1 - p) rises up to 1/2 and p_2 <= 1 - p_1, the winner has the largest. */
#include "memory/recall.h"

#include "num/batch.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

enum { GROUP = 8, BATCH = 64 }; /* queries a pass, one by one and as matrices */

typedef struct group {
    const cgam_recall *plan;
    const cgam_recall_in *in;
    const cgam_recall_out *out;
    bool own;          /* each query has s of its own, by a direction e */
    int64_t leaders;   /* kept a query */
    double *shared;    /* [2, n] s and u of a context for all, or NULL */
    double *e, *v;     /* [BATCH, d], [d] */
    double *edges;     /* [BATCH, border rows] */
    cgam_leader *lead; /* [BATCH, leaders] */
} group;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

bool cgam_first_streams(const cgam_recall *plan, const cgam_recall_in *in,
                        const cgam_recall_out *out)
{
    bool direct = !plan->opts.W && plan->gate->one_pass;
    return plan->opts.mode == CGAM_FIRST && !plan->twins && !plan->opts.certify && !out->p &&
           !out->s && !out->r && out->top <= CGAM_ATTEND_LEADERS_MAX &&
           (!in->c || !in->c_per_query || direct);
}

static void group_free(group *g)
{
    cgam_env *env = g->plan->bank->env;
    cgam_free(env, g->shared);
    cgam_free(env, g->e);
    cgam_free(env, g->v);
    cgam_free(env, g->edges);
    cgam_free(env, g->lead);
}

static cgam_status group_new(const cgam_recall *plan, const cgam_recall_in *in,
                             const cgam_recall_out *out, group *g)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d;
    bool direct = !plan->opts.W && plan->gate->one_pass;
    *g = (group){.plan = plan, .in = in, .out = out};
    /* for a single query a direction is cheaper than a vector of gates, which is a pass of its own */
    g->own = in->c && direct && (in->c_per_query || in->queries == 1);
    g->leaders = most(2, out->top < n ? out->top : n);
    int64_t edge = plan->gate->A ? cgam_dplr_border(plan->gate->A, NULL) : 0;
    bool shares = in->c && !g->own, fine;
    if (shares) g->shared = cgam_alloc(env, (size_t)(2 * n), sizeof *g->shared);
    int64_t batch = g->own ? (in->queries < BATCH ? in->queries : BATCH) : 1;
    g->e = cgam_alloc(env, (size_t)(batch * d), sizeof *g->e);
    g->v = cgam_alloc(env, (size_t)d, sizeof *g->v);
    g->edges = cgam_alloc(env, (size_t)(batch * edge + 1), sizeof *g->edges);
    g->lead = cgam_alloc(env, (size_t)(BATCH * g->leaders), sizeof *g->lead);
    fine = (!shares || g->shared) && g->e && g->v && g->edges && g->lead;
    cgam_status status = fine ? CGAM_OK : cgam_fail_nomem(env, "the vectors of a recall");
    if (status == CGAM_OK && shares)
        status = cgam_recall_gates(plan, in->c, g->shared + n, g->shared);
    if (status != CGAM_OK) group_free(g);
    return status;
}

/* The largest of the two that is not row f. */
static double best_other(const cgam_two *x, int64_t f) { return x->value[x->row[0] == f ? 1 : 0]; }

static void measure(const cgam_recall *plan, const cgam_attend_out *a, int64_t target,
                    cgam_result *out)
{
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, log_sum = log(a->sum);
    const cgam_leader *first = &a->leader[0], *f = target >= 0 ? &a->focus : first;
    bool finite = isfinite(beta * a->top + log_sum);
    *out = (cgam_result){.winner = first->row,
                         .focus = f->row,
                         .focus_rank = target >= 0 ? a->above : 0,
                         .end = finite ? CGAM_END_DIRECT : CGAM_END_DIVERGED,
                         .change = NAN,
                         .time = NAN,
                         .energy_start = NAN,
                         .energy_end = NAN,
                         .energy_rise = NAN};
    out->p = exp(beta * (f->r - a->top)) / a->sum;
    out->log_p = beta * (f->r - a->top) - log_sum;
    /* -sum p log p with log p = beta (r - top) - log sum */
    out->neff_entropy = n == 1 ? 1 : exp(log_sum - a->tilt / a->sum);
    out->neff_ipr = a->sum * a->sum / a->squares;
    out->readout_left_out = a->skipped / a->sum;
    out->gap = out->gap_raw = out->gap_gate = NAN;
    out->p_lower_bound = 1;
    if (n > 1) {
        out->gap = f->r - a->leader[f->row == first->row ? 1 : 0].r;
        out->gap_raw = f->b - best_other(&a->b, f->row);
        out->gap_gate = f->s - best_other(&a->s, f->row);
        out->p_lower_bound = cgam_separation_bound(n, beta, out->gap);
    }
    double largest = 1 / a->sum;
    cgam_bound_freely(plan, largest * (1 - largest), largest, out);
    out->p_error = NAN;
}

static void report(const group *g, const cgam_attend_out *a, int64_t at)
{
    const cgam_recall_out *out = g->out;
    double beta = g->plan->opts.beta;
    int64_t n = g->plan->bank->Z.n, top = out->top < n ? out->top : n;
    if (out->results)
        measure(g->plan, a, g->in->target ? g->in->target[at] : -1, &out->results[at]);
    for (int64_t j = 0; j < top; j++) {
        double x = beta * (a->leader[j].r - a->top);
        if (out->top_index) out->top_index[at * top + j] = a->leader[j].row;
        if (out->top_p) out->top_p[at * top + j] = exp(x) / a->sum;
        if (out->top_log_p) out->top_log_p[at * top + j] = x - log(a->sum);
    }
}

static cgam_status run_group(group *g, int64_t from, int64_t count)
{
    const cgam_recall *plan = g->plan;
    const cgam_bank *bank = plan->bank;
    int64_t d = bank->Z.d;
    cgam_attend_out results[BATCH] = {0};
    cgam_attend_in a = {.Z = &bank->Z,
                        .beta = plan->opts.beta,
                        .lambda = plan->opts.lambda,
                        .count = count,
                        .q = g->in->q + from * d,
                        .s = g->shared,
                        .focus = g->in->target ? g->in->target + from : NULL,
                        .leaders = g->leaders,
                        .size = plan->size,
                        .pivot_max = plan->pivot_max};
    cgam_status status = CGAM_OK;
    if (g->own) {
        a.e = g->e;
        a.pivot = cgam_dplr_dinv(plan->gate->A);
        a.edge = cgam_dplr_border(plan->gate->A, &a.border);
        a.edges = g->edges;
        for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
            int64_t query = g->in->c_per_query ? from + k : 0;
            cgam_recall_project(plan, g->in->c + query * plan->d_c, g->v);
            status = cgam_dplr_range(plan->gate->A, g->v, g->e + k * d, g->edges + k * a.edge);
        }
    }
    for (int64_t k = 0; k < count; k++) {
        results[k].leader = g->lead + k * g->leaders;
        if (g->out->readout) results[k].readout = g->out->readout + (from + k) * d;
    }
    for (int64_t k = 0; k < count && status == CGAM_OK;) {
        int64_t left = count - k;
        a.count = left;
        bool matrix = cgam_batch_suits(&a);
        a.count = matrix || left < GROUP ? left : GROUP;
        status = matrix ? cgam_rows_attend_batch(bank->env, &a, results + k)
                        : cgam_rows_attend(bank->env, &a, results + k);
        k += a.count;
        a.q += a.count * d;
        if (a.focus) a.focus += a.count;
        if (a.e) a.e += a.count * d;
        if (a.e) a.edges += a.count * a.edge;
    }
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) report(g, &results[k], from + k);
    return status;
}

cgam_status cgam_first_run(const cgam_recall *plan, const cgam_recall_in *in,
                           const cgam_recall_out *out)
{
    group g;
    cgam_status status = group_new(plan, in, out, &g);
    if (status != CGAM_OK) return status;
    for (int64_t from = 0; from < in->queries && status == CGAM_OK; from += BATCH) {
        int64_t count = in->queries - from < BATCH ? in->queries - from : BATCH;
        status =
            cgam_interrupted(plan->bank->env) ? CGAM_E_INTERRUPTED : run_group(&g, from, count);
    }
    group_free(&g);
    return status;
}
