/* vectors.c: recalls that keep vectors of n numbers - mode first where p, s or r are asked for or
 * twins are to be kept equal, coupled, flow.
 *
 * Queries go through in groups that share each pass over the bank; within a group every query keeps
 * vectors of its own, so that its bits do not depend on its neighbours. */
#include "memory/as_net.h"
#include "num/gemm_pass.h"

#include <math.h>
#include <string.h>

/* Queries [from, from + count) of a call. */
typedef struct group {
    const cgam_recall *plan;
    const cgam_recall_in *in;
    const cgam_recall_out *out;
    cgam_path path;
    int64_t from, count;
    int64_t room; /* queries that there is room for */
    int64_t top;  /* leaders to tell */
    cgam_query m[CGAM_RECALL_GROUP];
    double *block;             /* [room, CGAM_QUERY_VECTORS, n] */
    double *shared;            /* [2, n] s0 and u of a context that all queries have in common */
    cgam_gates_off shared_off; /* of that s0 */
    double *X, *Y;             /* [3 room, d] vectors to score, [3 room, n] their scores */
    int64_t *leaders;          /* [room, top] where the caller has no use for them, else NULL */
} group;

static void group_free(group *g)
{
    cgam_env *env = g->plan->bank->env;
    cgam_free(env, g->block);
    cgam_free(env, g->shared);
    cgam_free(env, g->X);
    cgam_free(env, g->Y);
    cgam_free(env, g->leaders);
}

/* The next group: never larger than the one before. */
static void next(group *g)
{
    int64_t left = g->in->queries - g->from;
    cgam_route route = cgam_route_choose(g->plan, g->in, g->out, left);
    g->path = route.path;
    g->count = left < route.group ? left : route.group;
}

static cgam_status group_new(group *g)
{
    cgam_env *env = g->plan->bank->env;
    int64_t n = g->plan->bank->Z.n, d = g->plan->bank->Z.d;
    next(g);
    size_t room = (size_t)(g->room = g->count);
    g->top = g->out->top < n ? g->out->top : n;
    bool apart = g->top > 0 && !g->out->top_index;
    g->block = cgam_alloc(env, room * CGAM_QUERY_VECTORS * (size_t)n, sizeof *g->block);
    g->shared = cgam_alloc(env, (size_t)(2 * n), sizeof *g->shared);
    g->X = cgam_alloc(env, room * CGAM_QUERY_SCORES * (size_t)d, sizeof *g->X);
    g->Y = cgam_alloc(env, room * CGAM_QUERY_SCORES * (size_t)n, sizeof *g->Y);
    if (apart) g->leaders = cgam_alloc(env, room * (size_t)g->top, sizeof *g->leaders);
    if (!g->block || !g->shared || !g->X || !g->Y || (apart && !g->leaders))
        return cgam_fail_nomem(env, "the vectors of a recall");
    return CGAM_OK;
}

static cgam_query query_at(const group *g, int64_t k)
{
    int64_t n = g->plan->bank->Z.n;
    double *block = g->block + k * CGAM_QUERY_VECTORS * n;
    return (cgam_query){.b = g->Y + k * n,
                        .level = true,
                        .s0 = block,
                        .a = block + n,
                        .s = block + 2 * n,
                        .r = block + 3 * n,
                        .p = block + 4 * n};
}

/* b, s0 and a of the group. Rows of X: queries, then for contexts of their own the directions e of
 * A^-1 Z v and the v themselves. */
static cgam_status score(group *g)
{
    const cgam_recall *plan = g->plan;
    const cgam_recall_in *in = g->in;
    const cgam_bank *bank = plan->bank;
    int64_t n = bank->Z.n, d = bank->Z.d, count = g->count, rows = count;
    bool own = in->c && in->c_per_query, stream = own && plan->can.direct;
    const int64_t *border = NULL;
    int64_t edge = stream ? cgam_dplr_border(plan->gate->A, &border) : 0;
    double *edges = cgam_alloc(bank->env, (size_t)(count * edge + 1), sizeof *edges);
    if (!edges) return cgam_fail_nomem(bank->env, "border rows");
    cgam_status status = CGAM_OK;
    memcpy(g->X, in->q + g->from * d, (size_t)(count * d) * sizeof *g->X);
    if (stream) {
        for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
            double *e = g->X + (count + k) * d, *v = g->X + (2 * count + k) * d;
            cgam_recall_project(plan, in->c + (g->from + k) * plan->d_c, v);
            status = cgam_dplr_range(plan->gate->A, v, e, edges + k * edge);
        }
        rows = 3 * count;
    }
    if (status == CGAM_OK)
        status = g->path == CGAM_PATH_COUPLED_TOGETHER
                     ? cgam_gemm_pass_scores(bank->env, &bank->Z, rows, g->X, g->Y)
                     : cgam_rows_score_many(bank->env, &bank->Z, rows, g->X, g->Y);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        cgam_query *m = &g->m[k];
        double *u = own ? g->Y + (2 * count + k) * n : in->c ? g->shared + n : NULL;
        *m = query_at(g, k);
        m->together = g->path == CGAM_PATH_COUPLED_TOGETHER;
        m->q = in->q + (g->from + k) * d;
        m->c = in->c ? in->c + (own ? g->from + k : 0) * plan->d_c : NULL;
        bool doubt = g->out->results && plan->can.matrices && cgam_doubt_solved(plan, m->c);
        if (!in->c) {
            memset(m->s0, 0, (size_t)n * sizeof *m->s0);
        } else if (!own) {
            memcpy(m->s0, g->shared, (size_t)n * sizeof *m->s0);
            m->s0_off = g->shared_off;
        } else if (stream) {
            const double *dinv = cgam_dplr_dinv(plan->gate->A);
            const double *dot = g->Y + (count + k) * n;
            for (int64_t i = 0; i < n; i++) m->s0[i] = dinv[i] * dot[i];
            for (int64_t j = 0; j < edge; j++) m->s0[border[j]] = edges[k * edge + j];
            if (doubt)
                status = cgam_doubt_range(plan, m->c, g->X + (2 * count + k) * d,
                                          g->X + (count + k) * d, edges + k * edge, &m->s0_off);
            if (status != CGAM_OK) break;
        } else {
            status = cgam_recall_gates(plan, in->c + (g->from + k) * plan->d_c, u, m->s0);
            if (doubt && status == CGAM_OK)
                status = cgam_doubt_gates(plan, m->c, m->s0, &m->s0_off);
            if (status != CGAM_OK) break;
        }
        cgam_twins_level(plan->twins, m->s0);
        m->half_us0 = u ? 0.5 * cgam_vec_dot(n, u, m->s0) : 0;
        for (int64_t i = 0; i < n; i++) m->a[i] = m->b[i] + plan->opts.lambda * m->s0[i];
    }
    cgam_free(bank->env, edges);
    return status;
}

/* Mode flow: the network finds the gates by itself. */
static cgam_status flow(group *g)
{
    const cgam_recall_in *in = g->in;
    const cgam_bank *bank = g->plan->bank;
    const double *q = in->q + g->from * bank->Z.d, *c = in->c;
    if (c && in->c_per_query) c += g->from * g->plan->d_c;
    for (int64_t k = 0; k < g->count; k++) g->m[k] = query_at(g, k);
    cgam_status status = cgam_rows_score_many(bank->env, &bank->Z, g->count, q, g->Y);
    if (status != CGAM_OK) return status;
    return cgam_recall_flow(g->plan, g->count, g->m, q, c, in->c_per_query);
}

static cgam_status solve(group *g)
{
    const cgam_recall *plan = g->plan;
    size_t bytes = (size_t)plan->bank->Z.n * sizeof(double);
    int64_t alone[CGAM_RECALL_GROUP], many = 0;
    if (g->path == CGAM_PATH_COUPLED) return cgam_coupled_solve(plan, g->count, g->m, NULL);
    if (g->path == CGAM_PATH_ANNEAL) {
        cgam_status status = CGAM_OK;
        for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
            status = cgam_anneal_solve(plan, &g->m[k],
                                       g->out->anneal ? g->out->anneal + g->from + k : NULL);
        return status;
    }
    if (g->path == CGAM_PATH_COUPLED_TOGETHER) {
        cgam_status status = cgam_coupled_together(plan, g->count, g->m, alone, &many);
        for (int64_t k = 0; k < many && status == CGAM_OK; k++) {
            g->m[alone[k]].together = false;
            status = cgam_coupled_solve(plan, 1, &g->m[alone[k]], NULL);
        }
        return status;
    }
    for (int64_t k = 0; k < g->count; k++) {
        cgam_query *m = &g->m[k];
        memcpy(m->s, m->s0, bytes);
        memcpy(m->r, m->a, bytes);
        cgam_books_direct(m, cgam_query_softmax(plan, m));
    }
    return CGAM_OK;
}

/* The results of query from + k. */
static cgam_status report_one(void *arg, int64_t k)
{
    const group *g = arg;
    const cgam_recall_out *out = g->out;
    const cgam_recall *plan = g->plan;
    const cgam_query *m = &g->m[k];
    int64_t n = plan->bank->Z.n, top = g->top, at = g->from + k;
    cgam_status status = CGAM_OK;
    if (out->results) {
        cgam_summary summary = cgam_query_summary(plan, m, g->in->target ? g->in->target[at] : -1);
        cgam_result_fill(plan, &summary, m, &out->results[at]);
        status = cgam_query_certify(plan, m, &out->results[at]);
    }
    cgam_weights w = {.top = m->top, .scored = n};
    bool fast = plan->opts.fast && out->results;
    if (fast && status == CGAM_OK) {
        cgam_result *r = &out->results[at];
        for (int64_t i = 0; i < n; i++) w.known += m->p[i];
        w.known *= m->sum;
        w.off = isfinite(r->p) ? r->score_error : INFINITY;
        r->fallback = true;
        cgam_result_intervals(plan, &w, r->focus >= 0 ? m->r[r->focus] : plan->opts.none_score, r);
    }
    if (top > 0 && (out->top_index || out->top_p || out->top_log_p)) {
        int64_t *index = out->top_index ? out->top_index + at * top : g->leaders + k * top;
        cgam_query_top(m, n, top, index);
        for (int64_t j = 0; j < top; j++) {
            double share[2] = {m->p[index[j]]};
            double log_p = plan->opts.beta * (m->r[index[j]] - m->top) - log(m->sum);
            if (fast) cgam_weights_share(plan, &w, m->r[index[j]], false, share);
            if (out->top_p) out->top_p[at * top + j] = share[0];
            if (out->top_log_p) out->top_log_p[at * top + j] = fast ? log(share[0]) : log_p;
        }
    }
    size_t bytes = (size_t)n * sizeof(double);
    if (out->p) memcpy(out->p + at * n, m->p, bytes);
    if (out->s) memcpy(out->s + at * n, m->s, bytes);
    if (out->r) memcpy(out->r + at * n, m->r, bytes);
    /* the p lie apart, so they are gathered where the scores of e were */
    if (out->readout) memcpy(g->Y + (g->room + k) * n, m->p, bytes);
    return status;
}

static cgam_status report(group *g)
{
    const cgam_bank *bank = g->plan->bank;
    /* a query that is alone has all threads for its certificate */
    cgam_status status =
        g->count == 1 ? report_one(g, 0) : cgam_parallel(bank->env, g->count, report_one, g);
    if (status == CGAM_OK && g->out->readout)
        status = cgam_rows_combine_many(bank->env, &bank->Z, g->count, g->Y + g->room * bank->Z.n,
                                        g->out->readout + g->from * bank->Z.d);
    return status;
}

cgam_status cgam_recall_by_vectors(const cgam_recall *plan, const cgam_recall_in *in,
                                   const cgam_recall_out *out)
{
    group g = {.plan = plan, .in = in, .out = out};
    bool flows = plan->opts.mode == CGAM_FLOW;
    cgam_status status = group_new(&g);
    if (status == CGAM_OK && in->c && !in->c_per_query && !flows)
        status = cgam_recall_gates(plan, in->c, g.shared + plan->bank->Z.n, g.shared);
    if (status == CGAM_OK && in->c && !in->c_per_query && !flows && out->results &&
        plan->can.matrices && cgam_doubt_solved(plan, in->c))
        status = cgam_doubt_gates(plan, in->c, g.shared, &g.shared_off);
    for (; g.from < in->queries && status == CGAM_OK; g.from += g.count) {
        next(&g);
        if (cgam_interrupted(plan->bank->env)) status = CGAM_E_INTERRUPTED;
        if (status == CGAM_OK) status = flows ? flow(&g) : score(&g);
        if (status == CGAM_OK && !flows) status = solve(&g);
        if (status == CGAM_OK) status = report(&g);
    }
    group_free(&g);
    return status;
}
