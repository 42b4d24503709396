/* first_pass.c: mode first in one pass over the bank, when no vector of n numbers is requested.
 *
 *   r = b + lambda s,   b = Z q,   s = A^-1 u:  dinv_i <zeta_i, e> off the border (num/dplr.h)
 *
 * The pass (num/attend.h) gathers the softmax, the leaders and the readout; results are computed from these. Since p
 * (1 - p) rises up to 1/2 and p_2 <= 1 - p_1, the winner has the largest. */
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"

#include "num/attend_fast.h"
#include "num/gemm_pass.h"
#include "num/vec.h"

#include <math.h>

/* The current group of a call. */
typedef struct group {
    const cgam_schedule *call;
    bool own;        /* each query has its own s, from a direction e */
    int64_t leaders; /* kept per query */
    int64_t edge;    /* border rows */
    double *shared;  /* [2, n] s and u of a context that all queries share, or NULL */
    double *e, *v;   /* [CGAM_RECALL_GROUP, d], [d] */
    double *edges;   /* [CGAM_RECALL_GROUP, edge] */
    cgam_gates_off off[CGAM_RECALL_GROUP]; /* of the gates; only the first if shared */
    cgam_leader *lead;                     /* [CGAM_RECALL_GROUP, leaders] */
} group;

static bool by_matrices(const cgam_schedule *call)
{
    return call->route.path == CGAM_PATH_MATRICES;
}

static void group_free(group *g)
{
    cgam_env *env = g->call->plan->bank->env;
    cgam_vec_free(env, &g->call->plan->bank->Z, g->shared);
    cgam_free(env, g->e);
    cgam_free(env, g->v);
    cgam_free(env, g->edges);
    cgam_free(env, g->lead);
}

static cgam_status group_new(group *g)
{
    const cgam_recall *plan = g->call->plan;
    const cgam_recall_in *in = g->call->in;
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d,
            top = g->call->out->top < n ? g->call->out->top : n;
    /* for a single query a direction is cheaper than a vector of gates, which takes another pass */
    g->own = in->c && plan->can.direct && (in->c_per_query || in->queries == 1);
    g->leaders = top > 2 ? top : 2;
    g->edge = g->own ? cgam_dplr_border(plan->gate->A, NULL) : 0;
    bool shares = in->c && !g->own;
    size_t most = (size_t)(in->queries < CGAM_RECALL_GROUP ? in->queries : CGAM_RECALL_GROUP);
    size_t own = g->own ? most : 1;
    if (shares) g->shared = cgam_vec_new(env, &plan->bank->Z, 2);
    g->e = cgam_alloc(env, own * (size_t)d, sizeof *g->e);
    g->v = cgam_alloc(env, (size_t)d, sizeof *g->v);
    g->edges = cgam_alloc(env, own * (size_t)g->edge + 1, sizeof *g->edges);
    g->lead = cgam_alloc(env, most * (size_t)g->leaders, sizeof *g->lead);
    if ((shares && !g->shared) || !g->e || !g->v || !g->edges || !g->lead)
        return cgam_fail_nomem(env, "the vectors of a recall");
    int64_t apart = cgam_vec_size(&plan->bank->Z);
    cgam_status status =
        shares ? cgam_recall_gates(plan, in->c, g->shared + apart, g->shared) : CGAM_OK;
    if (status == CGAM_OK && shares && cgam_recall_proves(plan, g->call->out) &&
        cgam_doubt_solved(plan, in->c))
        status = cgam_doubt_gates(plan, in->c, g->shared, &g->off[0]);
    return status;
}

/* Returns the larger of the two that is not row f. */
static double best_other(const cgam_two *x, int64_t f) { return x->value[x->row[0] == f ? 1 : 0]; }

/* Leaders are scored in double. Weights may have been computed in f32, with longer sums for matrices (recall.h has
 * the constants). */
static cgam_doubt doubt_at(const group *g, int64_t at)
{
    const cgam_recall *plan = g->call->plan;
    const cgam_recall_in *in = g->call->in;
    int64_t d = plan->bank->Z.d;
    const double *c = in->c ? in->c + (in->c_per_query ? at * plan->d_c : 0) : NULL;
    cgam_doubt doubt = {.scores = cgam_doubt_scores(plan, in->q + at * d, c)};
    doubt.weights = 2 * plan->opts.beta * doubt.scores + 0x1p-38;
    doubt.sum = cgam_gamma((double)plan->bank->Z.n + 64);
    if (plan->can.f32) doubt.weights += 2 * CGAM_ATTEND_F32 * (4 + (double)d / 4096);
    if (plan->can.f32 && by_matrices(g->call)) doubt.sum += CGAM_GEMM_PASS_SUM;
    if (cgam_doubt_solved(plan, c)) {
        double off = plan->opts.lambda * g->off[g->own ? at - g->call->from : 0].most * CGAM_SLACK;
        doubt.scores += off;
        doubt.weights += 2 * plan->opts.beta * off;
        if (!(doubt.weights >= 0)) doubt.weights = INFINITY;
    }
    return doubt;
}

/* Adds the ghost's weight to the sums and shrinks the shares. */
static void add_ghost(const cgam_recall *plan, cgam_attend_out *a)
{
    cgam_softmax *soft = &a->soft;
    double sum = soft->sum, shrink = 1;
    if (plan->opts.none_score > soft->top)
        shrink = cgam_softmax_raise(soft, plan->opts.beta, plan->opts.none_score);
    cgam_softmax_take(soft, plan->opts.beta, plan->opts.none_score);
    a->skipped *= shrink;
    for (int64_t j = 0; a->readout && j < plan->bank->Z.d; j++)
        a->readout[j] *= shrink * sum / soft->sum;
}

static void fill_gaps(const cgam_recall *plan, const cgam_attend_out *a, const cgam_leader *f,
                      cgam_summary *x)
{
    const cgam_leader *first = &a->leader[0];
    double ghost = plan->opts.none_score;
    x->gap = x->gap_raw = x->gap_gate = INFINITY;
    if (plan->bank->Z.n > 1 || f->row < 0) {
        x->gap = f->r - a->leader[f->row == first->row ? 1 : 0].r;
        x->gap_raw = f->b - best_other(&a->b, f->row);
        x->gap_gate = f->s - best_other(&a->s, f->row);
    }
    if (!plan->opts.none || f->row < 0) return;
    x->gap = fmin(x->gap, f->r - ghost);
    x->gap_raw = fmin(x->gap_raw, f->b - ghost);
    x->gap_gate = fmin(x->gap_gate, f->s);
}

/* The maximum of p (1 - p) on an interval. */
static double spread_of(const double share[2])
{
    double p = share[0] > 0.5 ? share[0] : fmin(share[1], 0.5);
    return p * (1 - p);
}

/* w: set if p is an interval, else NULL. */
static void fill_result(const cgam_recall *plan, const cgam_attend_out *a, int64_t target,
                        const cgam_weight_bounds *w, cgam_doubt doubt, cgam_result *out)
{
    double beta = plan->opts.beta, log_sum = log(a->soft.sum), largest = 1 / a->soft.sum;
    double spread = largest * (1 - largest), none = plan->opts.none_score;
    const cgam_leader ghost = {.r = none, .b = none, .row = -1}, *first = &a->leader[0];
    bool ghost_wins = plan->opts.none && none > first->r;
    const cgam_leader *f = target >= 0 ? &a->focus : ghost_wins ? &ghost : first;
    cgam_summary x = {.winner = ghost_wins ? -1 : first->row,
                      .focus = f->row,
                      .rank = target >= 0 ? a->above + (plan->opts.none && none > f->r) : 0,
                      .p = exp(beta * (f->r - a->soft.top)) / a->soft.sum,
                      .log_p = beta * (f->r - a->soft.top) - log_sum,
                      .entropy = cgam_softmax_entropy(&a->soft),
                      .ipr = a->soft.sum * a->soft.sum / a->soft.squares,
                      .support = plan->bank->Z.n,
                      .left_out = a->skipped / a->soft.sum};
    if (plan->opts.none) x.p_none = exp(beta * (none - a->soft.top)) / a->soft.sum;
    fill_gaps(plan, a, f, &x);
    cgam_trace trace = cgam_trace_direct(isfinite(beta * a->soft.top + log_sum));
    cgam_result_fill(plan, &x, &trace, out);
    if (w) {
        double share[2];
        cgam_result_intervals(plan, w, f->r, out);
        cgam_weight_bounds_share(plan, w, ghost_wins ? none : first->r, ghost_wins, share);
        largest = share[1];
        spread = spread_of(share);
        doubt.weights = doubt.sum = 0;
    }
    if (w || plan->opts.certify != CGAM_CERTIFY_NONE)
        cgam_bound_freely(plan, spread, largest, &doubt, out);
    else cgam_result_bare(plan, out);
}

/* fast: how the sketch was searched; NULL = report p itself. */
static void report_one(const group *g, cgam_attend_out *a, const cgam_fast *fast, int64_t at)
{
    const cgam_recall *plan = g->call->plan;
    const cgam_recall_out *out = g->call->out;
    int64_t n = plan->bank->Z.n, top = out->top < n ? out->top : n;
    cgam_doubt doubt = {0};
    cgam_weight_bounds w = {
        .top = a->soft.top, .known = a->soft.sum, .high = a->skipped, .scored = n};
    if (cgam_recall_proves(plan, out) || fast) doubt = doubt_at(g, at);
    w.off = doubt.scores;
    if (fast && !fast->fallback)
        w = (cgam_weight_bounds){a->soft.top, fast->known,  fast->low,
                                 fast->high,  doubt.scores, fast->rescored};
    if (plan->opts.none) add_ghost(plan, a);
    if (out->results) {
        fill_result(plan, a, g->call->in->target ? g->call->in->target[at] : -1, fast ? &w : NULL,
                    doubt, &out->results[at]);
        out->results[at].fallback = fast && fast->fallback;
    }
    for (int64_t j = 0; j < top; j++) {
        double x = plan->opts.beta * (a->leader[j].r - a->soft.top), share[2];
        double p = exp(x) / a->soft.sum, log_p = x - log(a->soft.sum);
        if (fast) {
            cgam_weight_bounds_share(plan, &w, a->leader[j].r, false, share);
            p = share[0];
            log_p = log(p);
        }
        if (out->top_index) out->top_index[at * top + j] = a->leader[j].row;
        if (out->top_p) out->top_p[at * top + j] = p;
        if (out->top_log_p) out->top_log_p[at * top + j] = log_p;
    }
}

/* Searches the sketch; falls back to the exact pass if needed. */
static cgam_status attend_group(const group *g, const cgam_attend_in *a, cgam_attend_out *results,
                                cgam_fast *fast)
{
    const cgam_recall *plan = g->call->plan;
    cgam_env *env = plan->bank->env;
    bool sketch = g->call->route.path == CGAM_PATH_SKETCH;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < g->call->count; k++) fast[k] = (cgam_fast){.fallback = true};
    if (sketch) status = cgam_attend_fast(env, a, plan->sketch, plan->opts.tol_p, results, fast);
    for (int64_t k = 0, end; k < g->call->count && status == CGAM_OK; k = end) {
        for (end = k + 1; end < g->call->count && fast[end].fallback == fast[k].fallback;) end++;
        if (!fast[k].fallback) continue;
        cgam_attend_in some = cgam_attend_some(a, k, end - k);
        bool many = sketch ? cgam_route_multiplies(plan, end - k) : by_matrices(g->call);
        status =
            many ? cgam_attend_many(env, &some, results + k) : cgam_attend(env, &some, results + k);
    }
    return status;
}

static cgam_status recall_group(group *g)
{
    const cgam_recall *plan = g->call->plan;
    const cgam_bank *bank = plan->bank;
    int64_t d = bank->Z.d;
    cgam_attend_out results[CGAM_RECALL_GROUP] = {0};
    cgam_fast fast[CGAM_RECALL_GROUP];
    cgam_attend_in a = {.Z = &bank->Z,
                        .beta = plan->opts.beta,
                        .lambda = plan->opts.lambda,
                        .count = g->call->count,
                        .q = g->call->in->q + g->call->from * d,
                        .s = g->shared,
                        .focus = g->call->in->target ? g->call->in->target + g->call->from : NULL,
                        .leaders = g->leaders,
                        .size = plan->can.size,
                        .f32 = plan->can.f32,
                        .pivot_max = plan->can.pivot_max,
                        .wary = bank->unread};
    cgam_status status = CGAM_OK;
    if (g->own) {
        a.e = g->e;
        a.pivot = cgam_dplr_dinv(plan->gate->A);
        a.edge = cgam_dplr_border(plan->gate->A, &a.border);
        a.edges = g->edges;
    }
    for (int64_t k = 0; g->own && k < g->call->count && status == CGAM_OK; k++) {
        const double *c =
            g->call->in->c + (g->call->in->c_per_query ? g->call->from + k : 0) * plan->d_c;
        double *e = g->e + k * d, *edges = g->edges + k * g->edge;
        cgam_recall_project(plan, c, g->v);
        status = cgam_dplr_range(plan->gate->A, g->v, e, edges);
        if (status == CGAM_OK && cgam_recall_proves(plan, g->call->out) &&
            cgam_doubt_solved(plan, c))
            status = cgam_doubt_range(plan, c, g->v, e, edges, &g->off[k]);
    }
    for (int64_t k = 0; k < g->call->count; k++) {
        results[k].leader = g->lead + k * g->leaders;
        if (g->call->out->readout)
            results[k].readout = g->call->out->readout + (g->call->from + k) * d;
    }
    if (status == CGAM_OK) status = attend_group(g, &a, results, fast);
    for (int64_t k = 0; k < g->call->count && status == CGAM_OK; k++)
        report_one(g, &results[k], plan->opts.fast ? &fast[k] : NULL, g->call->from + k);
    return status;
}

cgam_status cgam_recall_by_pass(cgam_schedule *call)
{
    group g = {.call = call};
    cgam_status status = group_new(&g);
    for (bool more = true; more && status == CGAM_OK; more = cgam_schedule_next(call))
        status = cgam_interrupted(call->plan->bank->env) ? CGAM_E_INTERRUPTED : recall_group(&g);
    group_free(&g);
    return status;
}
