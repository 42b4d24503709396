/* vectors.c: recalls that keep vectors of n numbers - mode first where p, s or r are asked for or
 * twins are to be kept equal, coupled, flow.
 *
 * Queries go through in groups that share each pass over the bank; within a group every query keeps
 * vectors of its own, so that its bits do not depend on its neighbours. */
#include "memory/as_net.h"
#include "num/gemm_pass.h"
#include "num/ranks.h"

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
    double *block;  /* [room, CGAM_QUERY_VECTORS, n], of the rows that are here, as all below */
    double *shared; /* [2, n] s0 and u of a context that all queries have in common */
    cgam_gates_off shared_off; /* of that s0 */
    double *X, *Y;             /* [3 room, d] vectors to score, [3 room, n] their scores */
    int64_t *leaders;          /* [room, top] where the caller has no use for them, else NULL */
} group;

static void group_free(group *g)
{
    cgam_env *env = g->plan->bank->env;
    const cgam_rows *Z = &g->plan->bank->Z;
    cgam_vectors_free(env, Z, g->block);
    cgam_vectors_free(env, Z, g->shared);
    cgam_free(env, g->X);
    cgam_vectors_free(env, Z, g->Y);
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
    const cgam_rows *Z = &g->plan->bank->Z;
    g->block = cgam_vectors_new(env, Z, g->room * CGAM_QUERY_VECTORS);
    g->shared = cgam_vectors_new(env, Z, 2);
    g->X = cgam_alloc(env, room * CGAM_QUERY_SCORES * (size_t)d, sizeof *g->X);
    g->Y = cgam_vectors_new(env, Z, g->room * CGAM_QUERY_SCORES);
    if (apart) g->leaders = cgam_alloc(env, room * (size_t)g->top, sizeof *g->leaders);
    if (!g->block || !g->shared || !g->X || !g->Y || (apart && !g->leaders))
        return cgam_fail_nomem(env, "the vectors of a recall");
    return CGAM_OK;
}

static cgam_query query_at(const group *g, int64_t k)
{
    int64_t n = cgam_rows_span(&g->plan->bank->Z).size;
    double *block = g->block + k * CGAM_QUERY_VECTORS * n;
    return (cgam_query){.b = g->Y + k * n,
                        .level = true,
                        .s0 = block,
                        .a = block + n,
                        .s = block + 2 * n,
                        .r = block + 3 * n,
                        .p = block + 4 * n};
}

/* The scores of a group in the making. Rows of X: queries, then for contexts of their own the directions e
 * of A^-1 Z v and the v themselves. */
typedef struct scoring {
    group *g;
    int64_t rows;
    bool own, stream; /* contexts are; and their gates come with the scores */
    bool energies;    /* u is for them; without competition it is s0 */
    double *edges;    /* [count, border rows] */
} scoring;

static cgam_status direct_one(void *arg, int64_t k)
{
    const scoring *job = arg;
    const group *g = job->g;
    const cgam_recall *plan = g->plan;
    int64_t d = plan->bank->Z.d, edge = cgam_dplr_border(plan->gate->A, NULL);
    double *e = g->X + (g->count + k) * d, *v = g->X + (2 * g->count + k) * d;
    cgam_recall_project(plan, g->in->c + (g->from + k) * plan->d_c, v);
    return cgam_dplr_range(plan->gate->A, v, e, job->edges + k * edge);
}

/* s0 of query k and what it is off by; u is made where it was not scored with the queries. */
static cgam_status gates_of(const scoring *job, int64_t k, double *u, cgam_query *m)
{
    const group *g = job->g;
    const cgam_recall *plan = g->plan;
    const int64_t *border;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_span here = cgam_rows_span(Z);
    int64_t d = Z->d, count = g->count;
    bool doubt =
        cgam_recall_proves(plan, g->out) && plan->can.matrices && cgam_doubt_solved(plan, m->c);
    if (!job->own) {
        if (m->c) cgam_vectors_copy(Z, m->s0, g->shared);
        else cgam_vectors_fill(Z, m->s0, 0);
        if (m->c) m->s0_off = g->shared_off;
        return CGAM_OK;
    }
    if (!job->stream) {
        cgam_status status = cgam_recall_gates(plan, m->c, u, m->s0);
        if (doubt && status == CGAM_OK) status = cgam_doubt_gates(plan, m->c, m->s0, &m->s0_off);
        return status;
    }
    int64_t edge = cgam_dplr_border(plan->gate->A, &border);
    const double *dinv = cgam_dplr_dinv(plan->gate->A), *dot = g->Y + (count + k) * here.size;
    const double *edges = job->edges + k * edge;
    for (int64_t i = here.from; i < here.to; i++) m->s0[i] = dinv[i] * dot[i];
    for (int64_t j = 0; j < edge; j++)
        if (cgam_span_has(here, border[j])) m->s0[border[j]] = edges[j];
    return doubt ? cgam_doubt_range(plan, m->c, g->X + (2 * count + k) * d, g->X + (count + k) * d,
                                    edges, &m->s0_off)
                 : CGAM_OK;
}

static cgam_status score_one(void *arg, int64_t k)
{
    const scoring *job = arg;
    group *g = job->g;
    const cgam_recall *plan = g->plan;
    const cgam_recall_in *in = g->in;
    const cgam_bank *bank = plan->bank;
    cgam_span here = cgam_rows_span(&bank->Z);
    int64_t n = here.size, d = bank->Z.d, count = g->count;
    cgam_query *m = &g->m[k];
    double *u = job->own ? g->Y + ((job->rows == 2 * count ? 1 : 2) * count + k) * n
                : in->c  ? g->shared + n
                         : NULL;
    *m = query_at(g, k);
    m->together = g->path == CGAM_PATH_COUPLED_TOGETHER;
    m->q = in->q + (g->from + k) * d;
    m->c = in->c ? in->c + (job->own ? g->from + k : 0) * plan->d_c : NULL;
    cgam_status status = gates_of(job, k, u, m);
    if (status == CGAM_OK) status = cgam_twins_level(bank, plan->twins, m->s0);
    if (status != CGAM_OK) return status;
    bool scored = u && (job->energies || !job->stream);
    m->half_us0 = scored ? 0.5 * cgam_vectors_dot(bank->env, &bank->Z, u, m->s0) : 0;
    for (int64_t i = here.from; i < here.to; i++) m->a[i] = m->b[i] + plan->opts.lambda * m->s0[i];
    return cgam_scores_check(plan, g->from + k, m->a);
}

/* task(job, k) of every query: side by side on a large bank; one that is alone has all threads. */
static cgam_status each(scoring *job, cgam_task task)
{
    const cgam_recall *plan = job->g->plan;
    cgam_status status = CGAM_OK;
    if (job->g->count > 1 && plan->can.matrices)
        return cgam_rows_each(plan->bank->env, &plan->bank->Z, job->g->count, task, job);
    for (int64_t k = 0; k < job->g->count && status == CGAM_OK; k++) status = task(job, k);
    return status;
}

/* b, s0 and a of the group. */
static cgam_status score(group *g)
{
    const cgam_recall *plan = g->plan;
    const cgam_bank *bank = plan->bank;
    int64_t count = g->count;
    scoring job = {.g = g, .rows = count, .energies = plan->opts.mode != CGAM_FIRST};
    job.own = g->in->c && g->in->c_per_query;
    job.stream = job.own && plan->can.direct;
    size_t edge = job.stream ? (size_t)cgam_dplr_border(plan->gate->A, NULL) : 0;
    job.edges = cgam_alloc(bank->env, (size_t)count * edge + 1, sizeof *job.edges);
    if (!job.edges) return cgam_fail_nomem(bank->env, "border rows");
    memcpy(g->X, g->in->q + g->from * bank->Z.d, (size_t)(count * bank->Z.d) * sizeof *g->X);
    if (job.stream) job.rows = (job.energies && plan->gate->a > 0 ? 3 : 2) * count;
    cgam_status status = job.stream ? each(&job, direct_one) : CGAM_OK;
    if (status == CGAM_OK)
        status = g->path == CGAM_PATH_COUPLED_TOGETHER
                     ? cgam_gemm_pass_scores(bank->env, &bank->Z, job.rows, g->X, g->Y)
                     : cgam_rows_score_many(bank->env, &bank->Z, job.rows, g->X, g->Y);
    if (status == CGAM_OK) status = each(&job, score_one);
    cgam_free(bank->env, job.edges);
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
    for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
        status = cgam_scores_check(g->plan, g->from + k, g->Y + k * bank->Z.n);
    if (status != CGAM_OK) return status;
    return cgam_recall_flow(g->plan, g->count, g->m, q, c, in->c_per_query);
}

static cgam_status solve(group *g)
{
    const cgam_recall *plan = g->plan;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t alone[CGAM_RECALL_GROUP], many = 0;
    const double *start = g->in->start ? g->in->start + g->from * cgam_rows_span(Z).size : NULL;
    if (g->path == CGAM_PATH_COUPLED) return cgam_coupled_solve(plan, g->count, g->m, start);
    if (g->path == CGAM_PATH_ANNEAL) {
        cgam_status status = CGAM_OK;
        for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
            status = cgam_anneal_solve(plan, &g->m[k],
                                       g->out->anneal ? g->out->anneal + g->from + k : NULL);
        return status;
    }
    if (g->path == CGAM_PATH_COUPLED_TOGETHER) {
        cgam_query back[CGAM_RECALL_GROUP];
        cgam_status status = cgam_coupled_together(plan, g->count, g->m, alone, &many);
        for (int64_t k = 0; k < many; k++) {
            back[k] = g->m[alone[k]];
            back[k].together = false;
        }
        if (status == CGAM_OK) status = cgam_coupled_solve(plan, many, back, NULL);
        for (int64_t k = 0; k < many; k++) g->m[alone[k]] = back[k];
        return status;
    }
    for (int64_t k = 0; k < g->count; k++) {
        cgam_query *m = &g->m[k];
        cgam_vectors_copy(Z, m->s, m->s0);
        cgam_vectors_copy(Z, m->r, m->a);
        cgam_books_direct(m, cgam_query_activate(plan, m));
    }
    return CGAM_OK;
}

/* The leaders of query from + k; w: where p is to be told as an interval, else NULL. */
static cgam_status report_top(const group *g, int64_t k, const cgam_weights *w)
{
    const cgam_recall_out *out = g->out;
    const cgam_recall *plan = g->plan;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    const cgam_query *m = &g->m[k];
    int64_t top = g->top, at = g->from + k;
    int64_t *index = out->top_index ? out->top_index + at * top : g->leaders + k * top;
    double *p = cgam_alloc(env, (size_t)(2 * top), sizeof *p), *r = p + top;
    if (!p) return cgam_fail_nomem(env, "leaders");
    cgam_status status = cgam_query_top(plan, m, top, index);
    if (status == CGAM_OK) status = cgam_vectors_pick(env, Z, m->p, top, index, p);
    if (status == CGAM_OK) status = cgam_vectors_pick(env, Z, m->r, top, index, r);
    for (int64_t j = 0; j < top && status == CGAM_OK; j++) {
        double share[2] = {p[j]};
        if (w) cgam_weights_share(plan, w, r[j], false, share);
        if (out->top_p) out->top_p[at * top + j] = share[0];
        if (out->top_log_p)
            out->top_log_p[at * top + j] = w ? log(share[0]) : cgam_query_log_p(plan, m, r[j]);
    }
    cgam_free(env, p);
    return status;
}

/* The results of query from + k. */
static cgam_status report_one(void *arg, int64_t k)
{
    const group *g = arg;
    const cgam_recall_out *out = g->out;
    const cgam_recall *plan = g->plan;
    const cgam_query *m = &g->m[k];
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    int64_t n = Z->n, top = g->top, at = g->from + k;
    cgam_status status = CGAM_OK;
    bool proves = cgam_recall_proves(plan, out), fast = plan->opts.fast && proves;
    cgam_result own, *r = out->results ? &out->results[at] : &own;
    if (proves) {
        cgam_summary summary;
        status = cgam_query_summary(plan, m, g->in->target ? g->in->target[at] : -1, &summary);
        if (status == CGAM_OK) cgam_result_fill(plan, &summary, m, r);
        if (status == CGAM_OK) status = cgam_query_certify(plan, m, r);
    }
    cgam_weights w = {.top = m->top, .scored = n};
    if (fast && status == CGAM_OK) {
        for (int64_t i = 0; i < n; i++) w.known += m->p[i];
        w.known *= m->sum;
        w.off = isfinite(r->p) ? r->score_error : INFINITY;
        r->fallback = true;
        cgam_result_intervals(plan, &w, r->focus >= 0 ? m->r[r->focus] : plan->opts.none_score, r);
    }
    if (top > 0 && (out->top_index || out->top_p || out->top_log_p) && status == CGAM_OK)
        status = report_top(g, k, fast ? &w : NULL);
    if (out->p && status == CGAM_OK) status = cgam_vectors_gather(env, Z, m->p, out->p + at * n);
    if (out->s && status == CGAM_OK) status = cgam_vectors_gather(env, Z, m->s, out->s + at * n);
    if (out->r && status == CGAM_OK) status = cgam_vectors_gather(env, Z, m->r, out->r + at * n);
    /* the p lie apart, so they are gathered where the scores of e were */
    if (out->readout) cgam_vectors_copy(Z, g->Y + (g->room + k) * cgam_rows_span(Z).size, m->p);
    return status;
}

static cgam_status report(group *g)
{
    const cgam_bank *bank = g->plan->bank;
    /* a query that is alone has all threads for its certificate */
    cgam_status status = g->count == 1
                             ? report_one(g, 0)
                             : cgam_rows_each(bank->env, &bank->Z, g->count, report_one, g);
    if (status == CGAM_OK && g->out->readout)
        status = (cgam_recall_sparse(g->plan) ? cgam_rows_combine_some : cgam_rows_combine_many)(
            bank->env, &bank->Z, g->count, g->Y + g->room * cgam_rows_span(&bank->Z).size,
            g->out->readout + g->from * bank->Z.d);
    return status;
}

cgam_status cgam_recall_by_vectors(const cgam_recall *plan, const cgam_recall_in *in,
                                   const cgam_recall_out *out)
{
    cgam_recall_in own = *in;
    /* entmax has no pass of its own: a single query scores its direction with itself, as that does */
    own.c_per_query |= in->c && in->queries == 1 && plan->can.direct && cgam_recall_sparse(plan);
    in = &own;
    group g = {.plan = plan, .in = in, .out = out};
    bool flows = plan->opts.mode == CGAM_FLOW;
    cgam_status status = group_new(&g);
    if (status == CGAM_OK && in->c && !in->c_per_query && !flows)
        status = cgam_recall_gates(plan, in->c, g.shared + cgam_rows_span(&plan->bank->Z).size,
                                   g.shared);
    if (status == CGAM_OK && in->c && !in->c_per_query && !flows && cgam_recall_proves(plan, out) &&
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
