/* vectors.c: recalls that keep vectors of n numbers - mode coupled, flow, and mode first if p, s or r are requested
 * or twins must be kept equal.
 *
 * Queries go through in groups that share each pass over the bank; within a group every query has its own vectors, so
 * that its bits do not depend on other queries. */
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"
#include "memory/sums.h"
#include "num/gemm_pass.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

/* The current group of a call. */
typedef struct group {
    const cgam_schedule *call;
    bool own;     /* each query has its own context */
    bool sums;    /* solved by sums.c, and */
    bool light;   /* without s, r and p */
    int64_t most; /* queries of a group, at most */
    int64_t top;  /* leaders to report */
    cgam_settled m[CGAM_RECALL_GROUP];
    int64_t each;   /* vectors of a query in: */
    double *block;  /* [most, each, n] s0, a, s, r, p; s0 and a if light and there is a context */
    double *shared; /* [2, n] s0 and u of a context that all queries share */
    cgam_gates_off shared_off; /* of that s0 */
    double *X, *Y;             /* [3 most, d] vectors to score, [1 to 3 most, n] their scores */
    int64_t *leaders;          /* [most, top] if the caller does not want them, else NULL */
} group;

static void group_free(group *g)
{
    cgam_env *env = g->call->plan->bank->env;
    const cgam_rows *Z = &g->call->plan->bank->Z;
    cgam_vec_free(env, Z, g->block);
    cgam_vec_free(env, Z, g->shared);
    cgam_free(env, g->X);
    cgam_vec_free(env, Z, g->Y);
    cgam_free(env, g->leaders);
}

static cgam_status group_new(group *g)
{
    const cgam_recall *plan = g->call->plan;
    const cgam_recall_in *in = g->call->in;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    int64_t top = g->call->out->top;
    size_t most = (size_t)(g->most = g->call->count);
    g->top = top < Z->n ? top : Z->n;
    bool apart = g->top > 0 && !g->call->out->top_index;
    /* a single query scores its direction together with itself, as the pass does */
    g->own = in->c && (in->c_per_query || (in->queries == 1 && plan->can.direct));
    bool few = g->light && (!g->own || plan->can.direct);
    int64_t scores = !few ? CGAM_QUERY_SCORES : g->own ? 2 : 1;
    g->each = !g->light ? CGAM_QUERY_VECTORS : in->c ? 2 : 0;
    g->block = cgam_vec_new(env, Z, g->each > 0 ? g->most * g->each : 1);
    g->shared = cgam_vec_new(env, Z, 2);
    g->X = cgam_alloc(env, most * CGAM_QUERY_SCORES * (size_t)Z->d, sizeof *g->X);
    g->Y = cgam_vec_new(env, Z, g->most * scores);
    if (apart) g->leaders = cgam_alloc(env, most * (size_t)g->top, sizeof *g->leaders);
    if (!g->block || !g->shared || !g->X || !g->Y || (apart && !g->leaders))
        return cgam_fail_nomem(env, "the vectors of a recall");
    if (!in->c || g->own || plan->opts.mode == CGAM_FLOW) return CGAM_OK;
    cgam_status status = cgam_recall_gates(plan, in->c, g->shared + cgam_vec_size(Z), g->shared);
    if (status == CGAM_OK && cgam_recall_proves(plan, g->call->out) && plan->can.matrices &&
        cgam_doubt_solved(plan, in->c))
        status = cgam_doubt_gates(plan, in->c, g->shared, &g->shared_off);
    return status;
}

/* ---- Scores. -------------------------------------------------------------------------------- */

/* The vectors to score for a group. Rows of X: queries, then for their own contexts the directions e of A^-1 Z v and
 * the v. */
typedef struct scoring {
    group *g;
    int64_t rows;
    bool stream;   /* gates of the queries' own contexts are computed with the scores */
    bool energies; /* u is needed for energies; without competition it is s0 */
    double *edges; /* [count, border rows] */
} scoring;

static cgam_status solve_direction(void *arg, int64_t k)
{
    const scoring *job = arg;
    const group *g = job->g;
    const cgam_schedule *call = g->call;
    const cgam_recall *plan = call->plan;
    int64_t d = plan->bank->Z.d, edge = cgam_dplr_border(plan->gate->A, NULL);
    double *e = g->X + (call->count + k) * d, *v = g->X + (2 * call->count + k) * d;
    cgam_recall_project(plan, call->in->c + (call->from + k) * plan->d_c, v);
    return cgam_dplr_range(plan->gate->A, v, e, job->edges + k * edge);
}

/* Computes s0 of query k, whose context is c, and its error; computes u if it was not scored with the queries. */
static cgam_status find_gates(const scoring *job, int64_t k, const double *c, double *u, double *s0,
                              cgam_gates_off *off)
{
    const group *g = job->g;
    const cgam_recall *plan = g->call->plan;
    const int64_t *border;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t d = Z->d, count = g->call->count;
    bool doubt =
        cgam_recall_proves(plan, g->call->out) && plan->can.matrices && cgam_doubt_solved(plan, c);
    if (!g->own) {
        if (c) cgam_vec_copy(Z, s0, g->shared);
        else cgam_vec_fill(Z, s0, 0);
        if (c) *off = g->shared_off;
        return CGAM_OK;
    }
    if (!job->stream) {
        cgam_status status = cgam_recall_gates(plan, c, u, s0);
        if (doubt && status == CGAM_OK) status = cgam_doubt_gates(plan, c, s0, off);
        return status;
    }
    int64_t edge = cgam_dplr_border(plan->gate->A, &border);
    const double *dinv = cgam_dplr_dinv(plan->gate->A),
                 *dot = g->Y + (count + k) * cgam_vec_size(Z);
    const double *edges = job->edges + k * edge;
    CGAM_EACH_ROW(Z, i) s0[i] = dinv[i] * dot[i];
    cgam_vec_put(Z, s0, edge, border, edges);
    return doubt ? cgam_doubt_range(plan, c, g->X + (2 * count + k) * d, g->X + (count + k) * d,
                                    edges, off)
                 : CGAM_OK;
}

/* Returns query k of a group in its first state: b, or the buffer for it. */
static cgam_settled query_at(const group *g, int64_t k)
{
    int64_t n = cgam_vec_size(&g->call->plan->bank->Z);
    double *s0 = g->block + k * g->each * n, *b = g->Y + k * n;
    if (g->light)
        return (cgam_settled){.in = {.b = b, .s0 = g->each ? s0 : NULL, .a = g->each ? s0 + n : b}};
    return (cgam_settled){.in = {.b = b, .s0 = s0, .a = s0 + n, .level = true},
                          .s = s0 + 2 * n,
                          .r = s0 + 3 * n,
                          .p = s0 + 4 * n};
}

static cgam_status score_one(void *arg, int64_t k)
{
    const scoring *job = arg;
    group *g = job->g;
    const cgam_schedule *call = g->call;
    const cgam_recall *plan = call->plan;
    const cgam_recall_in *in = call->in;
    const cgam_bank *bank = plan->bank;
    const cgam_rows *Z = &bank->Z;
    int64_t n = cgam_vec_size(Z), d = Z->d, count = call->count;
    double *u = g->own  ? g->Y + ((job->rows == 2 * count ? 1 : 2) * count + k) * n
                : in->c ? g->shared + n
                        : NULL;
    double *s0 = g->block + k * g->each * n, *a = s0 + n;
    g->m[k] = query_at(g, k);
    cgam_scored *x = &g->m[k].in;
    x->q = in->q + (call->from + k) * d;
    if (g->light && !in->c) return cgam_scores_check(plan, call->from + k, x->a);
    x->c = in->c ? in->c + (g->own ? call->from + k : 0) * plan->d_c : NULL;
    cgam_status status = find_gates(job, k, x->c, u, s0, &x->s0_off);
    if (status == CGAM_OK) status = cgam_twins_level(bank, plan->twins, s0);
    if (status != CGAM_OK) return status;
    bool scored = u && (job->energies || !job->stream);
    x->half_us0 = scored ? 0.5 * cgam_vec_dot(Z, u, s0) : 0;
    CGAM_EACH_ROW(Z, i) a[i] = x->b[i] + plan->opts.lambda * s0[i];
    return cgam_scores_check(plan, call->from + k, a);
}

/* Runs task(job, k) for every query: in parallel on a large bank; a single query gets all threads. */
static cgam_status each_query(scoring *job, cgam_task task)
{
    const cgam_schedule *call = job->g->call;
    const cgam_bank *bank = call->plan->bank;
    cgam_status status = CGAM_OK;
    if (call->count > 1 && call->plan->can.matrices)
        return cgam_rows_each(bank->env, &bank->Z, call->count, task, job);
    for (int64_t k = 0; k < call->count && status == CGAM_OK; k++) status = task(job, k);
    return status;
}

/* Computes b, s0 and a of the group. */
static cgam_status score_group(group *g)
{
    const cgam_schedule *call = g->call;
    const cgam_recall *plan = call->plan;
    const cgam_bank *bank = plan->bank;
    int64_t count = call->count, d = bank->Z.d;
    scoring job = {.g = g, .rows = count, .energies = plan->opts.mode != CGAM_FIRST};
    job.stream = g->own && plan->can.direct;
    size_t edge = job.stream ? (size_t)cgam_dplr_border(plan->gate->A, NULL) : 0;
    job.edges = cgam_alloc(bank->env, (size_t)count * edge + 1, sizeof *job.edges);
    if (!job.edges) return cgam_fail_nomem(bank->env, "border rows");
    memcpy(g->X, call->in->q + call->from * d, (size_t)(count * d) * sizeof *g->X);
    if (job.stream) job.rows = (job.energies && plan->gate->a > 0 ? 3 : 2) * count;
    cgam_status status = job.stream ? each_query(&job, solve_direction) : CGAM_OK;
    if (status == CGAM_OK)
        status = call->route.path == CGAM_PATH_COUPLED_TOGETHER
                     ? cgam_gemm_pass_scores(bank->env, &bank->Z, job.rows, g->X, g->Y)
                     : cgam_rows_score_many(bank->env, &bank->Z, job.rows, g->X, g->Y);
    if (status == CGAM_OK) status = each_query(&job, score_one);
    cgam_free(bank->env, job.edges);
    return status;
}

/* ---- From scored to settled. ---------------------------------------------------------------- */

/* Mode flow: the network finds the gates by itself. */
static cgam_status flow_group(group *g)
{
    const cgam_schedule *call = g->call;
    const cgam_recall_in *in = call->in;
    const cgam_bank *bank = call->plan->bank;
    const double *q = in->q + call->from * bank->Z.d, *c = in->c;
    if (c && in->c_per_query) c += call->from * call->plan->d_c;
    for (int64_t k = 0; k < call->count; k++) g->m[k] = query_at(g, k);
    cgam_status status = cgam_rows_score_many(bank->env, &bank->Z, call->count, q, g->Y);
    for (int64_t k = 0; k < call->count && status == CGAM_OK; k++)
        status = cgam_scores_check(call->plan, call->from + k, g->Y + k * bank->Z.n);
    if (status != CGAM_OK) return status;
    return cgam_recall_flow(call->plan, call->count, g->m, q, c, in->c_per_query);
}

static cgam_status anneal_group(group *g)
{
    const cgam_schedule *call = g->call;
    cgam_anneal *path = call->out->anneal;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < call->count && status == CGAM_OK; k++)
        status = cgam_anneal_solve(call->plan, &g->m[k], path ? path + call->from + k : NULL);
    return status;
}

static cgam_status settle_group(group *g)
{
    const cgam_schedule *call = g->call;
    const cgam_recall *plan = call->plan;
    const cgam_rows *Z = &plan->bank->Z;
    const double *start = call->in->start;
    if (g->sums) return CGAM_OK; /* each query when it is reported */
    if (start) start += call->from * cgam_vec_size(Z);
    switch (call->route.path) {
    case CGAM_PATH_COUPLED: return cgam_coupled_solve(plan, call->count, g->m, start);
    case CGAM_PATH_COUPLED_TOGETHER: return cgam_coupled_together(plan, call->count, g->m);
    case CGAM_PATH_ANNEAL: return anneal_group(g);
    default: break;
    }
    for (int64_t k = 0; k < call->count; k++) { /* mode first: the scores are the answer */
        cgam_settled *m = &g->m[k];
        cgam_vec_copy(Z, m->s, m->in.s0);
        cgam_vec_copy(Z, m->r, m->in.a);
        m->trace = cgam_trace_direct(cgam_activate(plan, m->r, m->p, &m->act));
    }
    return CGAM_OK;
}

/* ---- Results. ------------------------------------------------------------------------------- */

/* Reports the leaders of query from + k, solved by sums.c. */
static cgam_status report_top_of_sums(const group *g, int64_t k, const cgam_sums *x)
{
    const cgam_recall_out *out = g->call->out;
    int64_t top = g->top, at = (g->call->from + k) * top;
    int64_t *index = out->top_index ? out->top_index + at : g->leaders + k * top;
    return cgam_sums_top(g->call->plan, x, top, index, out->top_p ? out->top_p + at : NULL,
                         out->top_log_p ? out->top_log_p + at : NULL);
}

/* Reports the leaders of query from + k; w: set if p is an interval, else NULL. */
static cgam_status report_top(const group *g, int64_t k, const cgam_weight_bounds *w)
{
    const cgam_recall_out *out = g->call->out;
    const cgam_recall *plan = g->call->plan;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    const cgam_settled *m = &g->m[k];
    int64_t top = g->top, at = g->call->from + k;
    int64_t *index = out->top_index ? out->top_index + at * top : g->leaders + k * top;
    double *p = cgam_alloc(env, (size_t)(2 * top), sizeof *p), *r = p + top;
    if (!p) return cgam_fail_nomem(env, "leaders");
    cgam_status status = cgam_vec_top(plan->bank->env, &plan->bank->Z, m->r, top, index);
    if (status == CGAM_OK) status = cgam_vec_pick(Z, m->p, top, index, p);
    if (status == CGAM_OK) status = cgam_vec_pick(Z, m->r, top, index, r);
    for (int64_t j = 0; j < top && status == CGAM_OK; j++) {
        double share[2] = {p[j]};
        if (w) cgam_weight_bounds_share(plan, w, r[j], false, share);
        if (out->top_p) out->top_p[at * top + j] = share[0];
        if (out->top_log_p)
            out->top_log_p[at * top + j] =
                w ? log(share[0]) : cgam_activated_log_p(plan, &m->act, r[j]);
    }
    cgam_free(env, p);
    return status;
}

/* Writes the vectors that the caller requested. */
static cgam_status report_vectors(const group *g, int64_t k, const cgam_settled *m)
{
    const cgam_recall_out *out = g->call->out;
    const cgam_rows *Z = &g->call->plan->bank->Z;
    int64_t n = Z->n, at = g->call->from + k;
    cgam_status status = CGAM_OK;
    if (out->p) status = cgam_vec_gather(Z, m->p, out->p + at * n);
    if (out->s && status == CGAM_OK) status = cgam_vec_gather(Z, m->s, out->s + at * n);
    if (out->r && status == CGAM_OK) status = cgam_vec_gather(Z, m->r, out->r + at * n);
    /* the rows of p are not adjacent, so copy them to the former scores of e */
    if (out->readout) cgam_vec_copy(Z, g->Y + (g->most + k) * cgam_vec_size(Z), m->p);
    return status;
}

/* Reports the results of query from + k, which is settled. */
static cgam_status report_settled(const group *g, int64_t k, const cgam_settled *m)
{
    const cgam_recall_in *in = g->call->in;
    const cgam_recall_out *out = g->call->out;
    const cgam_recall *plan = g->call->plan;
    int64_t n = plan->bank->Z.n, top = g->top, at = g->call->from + k;
    cgam_status status = CGAM_OK;
    bool reports = cgam_recall_reports(plan, out), fast = plan->opts.fast && reports;
    cgam_result own, *r = out->results ? &out->results[at] : &own;
    if (reports) {
        cgam_summary summary;
        status = cgam_settled_summary(plan, m, in->target ? in->target[at] : -1, &summary);
        if (status == CGAM_OK) cgam_result_fill(plan, &summary, &m->trace, r);
        if (status == CGAM_OK && !cgam_recall_proves(plan, out)) cgam_result_bare(plan, r);
        else if (status == CGAM_OK) status = cgam_settled_certify(plan, m, r);
    }
    cgam_weight_bounds w = {.top = m->act.top, .scored = n};
    if (fast && status == CGAM_OK) {
        for (int64_t i = 0; i < n; i++) w.known += m->p[i];
        w.known *= m->act.sum;
        w.off = isfinite(r->p) ? r->score_error : INFINITY;
        r->fallback = true;
        cgam_result_intervals(plan, &w, r->focus >= 0 ? m->r[r->focus] : plan->opts.none_score, r);
    }
    if (top > 0 && (out->top_index || out->top_p || out->top_log_p) && status == CGAM_OK)
        status = report_top(g, k, fast ? &w : NULL);
    return status;
}

/* Gives m the vectors that a light group lacks. */
static cgam_status give_vectors(const group *g, cgam_settled *m, double **spare)
{
    const cgam_recall *plan = g->call->plan;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t n = cgam_vec_size(Z);
    if (!g->light) return CGAM_OK;
    *spare = cgam_vec_new(plan->bank->env, Z, 4);
    if (!*spare) return cgam_fail_nomem(plan->bank->env, "the vectors of a recall");
    m->s = *spare;
    m->r = m->s + n;
    m->p = m->r + n;
    if (!m->in.s0) {
        cgam_vec_fill(Z, m->p + n, 0);
        m->in.s0 = m->p + n;
    }
    return CGAM_OK;
}

/* Reports query from + k, which sums.c solved. */
static cgam_status report_sums(const group *g, int64_t k, const cgam_sums *x, cgam_settled *m,
                               double **spare)
{
    const cgam_schedule *call = g->call;
    const cgam_recall *plan = call->plan;
    const cgam_recall_out *out = call->out;
    int64_t at = call->from + k, target = call->in->target ? call->in->target[at] : -1;
    cgam_result *r = out->results ? &out->results[at] : NULL;
    cgam_summary summary;
    bool full = r && cgam_recall_full(plan), open = full;
    cgam_status status = r ? cgam_sums_summary(plan, x, target, &summary) : CGAM_OK;
    if (r && status == CGAM_OK) {
        cgam_result_fill(plan, &summary, &x->x.trace, r);
        if (!cgam_recall_proves(plan, out)) cgam_result_bare(plan, r);
        else if (!full) open = cgam_sums_certify(plan, x, r);
    }
    if (status == CGAM_OK && open) status = give_vectors(g, m, spare);
    if (status == CGAM_OK && (!g->light || open))
        status = cgam_sums_settle(plan, x, call->count == 1, m);
    if (status == CGAM_OK && open) {
        cgam_result_fill(plan, &summary, &x->x.trace, r);
        status = cgam_settled_certify(plan, m, r);
    }
    if (g->top > 0 && (out->top_index || out->top_p || out->top_log_p) && status == CGAM_OK)
        status = report_top_of_sums(g, k, x);
    return status;
}

/* Solves query from + k by sums.c, or by coupled.c if it is left, and reports it. */
static cgam_status settle_by_sums(group *g, int64_t k)
{
    const cgam_schedule *call = g->call;
    const cgam_recall *plan = call->plan;
    cgam_settled *m = &g->m[k];
    cgam_sums x;
    double *spare = NULL;
    cgam_status status = cgam_sums_solve(plan, &m->in, call->count == 1, &x);
    if (status == CGAM_OK && x.left) {
        m->in.level = true;
        status = give_vectors(g, m, &spare);
        if (status == CGAM_OK) status = cgam_coupled_solve(plan, 1, m, NULL);
        if (status == CGAM_OK) status = report_settled(g, k, m);
    } else if (status == CGAM_OK) {
        status = report_sums(g, k, &x, m, &spare);
    }
    if (status == CGAM_OK) status = report_vectors(g, k, m);
    cgam_sums_free(plan->bank->env, &x);
    cgam_vec_free(plan->bank->env, &plan->bank->Z, spare);
    return status;
}

static cgam_status report_one(void *arg, int64_t k)
{
    group *g = arg;
    if (g->sums) return settle_by_sums(g, k);
    cgam_status status = report_settled(g, k, &g->m[k]);
    return status == CGAM_OK ? report_vectors(g, k, &g->m[k]) : status;
}

static cgam_status report_group(group *g)
{
    const cgam_schedule *call = g->call;
    const cgam_bank *bank = call->plan->bank;
    double *readout = call->out->readout;
    /* a single query has all threads for its certificate */
    cgam_status status = call->count == 1
                             ? report_one(g, 0)
                             : cgam_rows_each(bank->env, &bank->Z, call->count, report_one, g);
    if (status == CGAM_OK && readout)
        status = (cgam_recall_sparse(call->plan) ? cgam_rows_combine_some : cgam_rows_combine_many)(
            bank->env, &bank->Z, call->count, g->Y + g->most * cgam_vec_size(&bank->Z),
            readout + call->from * bank->Z.d);
    return status;
}

cgam_status cgam_recall_by_vectors(cgam_schedule *call)
{
    const cgam_recall *plan = call->plan;
    group g = {.call = call, .sums = cgam_route_sums(plan, call->in)};
    bool flows = plan->opts.mode == CGAM_FLOW;
    g.light = g.sums && cgam_route_light(plan, call->out);
    cgam_status status = group_new(&g);
    for (bool more = true; more && status == CGAM_OK; more = cgam_schedule_next(call)) {
        if (cgam_interrupted(plan->bank->env)) status = CGAM_E_INTERRUPTED;
        if (status == CGAM_OK) status = flows ? flow_group(&g) : score_group(&g);
        if (status == CGAM_OK && !flows) status = settle_group(&g);
        if (status == CGAM_OK) status = report_group(&g);
    }
    group_free(&g);
    return status;
}
