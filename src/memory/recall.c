/* recall.c: plan once, recall many. Queries go through in groups that share each pass over the
 * bank; within a group every query keeps vectors of its own, so that its bits do not depend on its
 * neighbours. */
#include "memory/recall.h"

#include "base/words.h"
#include "io/json.h"
#include "memory/as_net.h"
#include "memory/batch_coupled.h"
#include "num/pass.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { GROUP_MAX = 8 };
static const double GROUP_DOUBLES = 0x1p23; /* 64 MiB for the vectors of a group */
static const double BATCH_DOUBLES = 0x1p27; /* a group of coupled recalls as matrices */

CGAM_WORDS(cgam_mode, cgam_mode, "first", "coupled", "flow")
CGAM_WORDS(cgam_end, cgam_end, "direct", "converged", "max_iter", "stalled", "diverged", "horizon",
           "rose")

cgam_recall_opts cgam_recall_opts_default(void)
{
    return (cgam_recall_opts){.mode = CGAM_FIRST,
                              .beta = 1,
                              .lambda = 1,
                              .tol = 1e-12,
                              .max_iter = 10000,
                              .tau_c = 1,
                              .tau_s = 1,
                              .tau_r = 1,
                              .tau_q = 1,
                              .t_max = 100,
                              .steady = 1e-9};
}

static cgam_status check(cgam_env *env, const cgam_recall_opts *o)
{
    if (!(o->alpha >= 0) || !isfinite(o->alpha))
        return cgam_fail(env, CGAM_E_ARG, "alpha is %g, it must be 0 or more and finite", o->alpha);
    if (!(o->beta > 0) || !isfinite(o->beta))
        return cgam_fail(env, CGAM_E_ARG, "beta is %g, it must be above 0 and finite", o->beta);
    if (!(o->lambda >= 0) || !isfinite(o->lambda))
        return cgam_fail(env, CGAM_E_ARG, "lambda is %g, it must be 0 or more and finite",
                         o->lambda);
    if (!(o->tol >= 0) || o->max_iter < 1)
        return cgam_fail(env, CGAM_E_ARG, "tol is %g and max_iter %lld", o->tol,
                         (long long)o->max_iter);
    if (o->P && o->W)
        return cgam_fail(env, CGAM_E_ARG, "a projection and gate weights exclude each other");
    if ((o->P || o->W) && (o->d_c < 1 || o->d_c > INT32_MAX))
        return cgam_fail(env, CGAM_E_SHAPE, "a projection or gate weights need d_c, which is %lld",
                         (long long)o->d_c);
    return CGAM_OK;
}

void cgam_recall_free(cgam_recall *plan)
{
    if (!plan) return;
    cgam_dplr_inverse_free(plan->small);
    cgam_gate_free(plan->gate);
    cgam_twins_free(plan->bank->env, plan->twins);
    cgam_net_free(plan->net);
    cgam_free(plan->bank->env, plan);
}

static cgam_status need_positive(cgam_recall *plan)
{
    const cgam_gate_info *info = &plan->gate->info;
    if (info->regime == CGAM_SUBCRITICAL) return CGAM_OK;
    cgam_critical crit;
    char alpha[CGAM_REAL_TEXT], critical[CGAM_REAL_TEXT];
    cgam_status status = cgam_gate_critical(plan->bank, CGAM_EFFORT_FULL, &crit);
    if (status != CGAM_OK) return status;
    return cgam_fail(plan->bank->env, CGAM_E_NOT_POSITIVE,
                     "mode coupled needs A(alpha) positive definite: alpha = %s is %s, "
                     "alpha_crit = %s",
                     cgam_real_text(info->alpha, alpha), cgam_regime_name(info->regime),
                     isfinite(crit.alpha) ? cgam_real_text(crit.alpha, critical) : "unknown");
}

cgam_status cgam_recall_new(const cgam_bank *bank, const cgam_recall_opts *opts, cgam_recall **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    cgam_recall_opts o = opts ? *opts : cgam_recall_opts_default();
    cgam_status status = check(env, &o);
    if (status == CGAM_OK && o.W && bank->Z.n > INT32_MAX)
        status = cgam_fail(env, CGAM_E_SHAPE, "gate weights for %lld memories, at most %d",
                           (long long)bank->Z.n, INT32_MAX);
    if (status != CGAM_OK) return status;
    cgam_recall *plan = cgam_zalloc(env, 1, sizeof *plan);
    if (!plan) return cgam_fail_nomem(env, "a recall");
    plan->bank = bank;
    plan->opts = o;
    plan->d_c = o.P || o.W ? o.d_c : bank->Z.d;
    cgam_gate_opts gate = {.memory_max = o.memory_max,
                           .effort = o.certify ? CGAM_EFFORT_FULL : CGAM_EFFORT_FREE};
    status = cgam_gate_new(bank, o.alpha, &gate, &plan->gate);
    if (status == CGAM_OK && o.mode == CGAM_COUPLED) status = need_positive(plan);
    if (status == CGAM_OK && o.alpha > 0 && !o.W) /* weights of their own tell twins apart */
        status = cgam_twins_find(bank, &plan->twins);
    plan->context_margin = NAN;
    if (status == CGAM_OK && o.mode == CGAM_FLOW) status = cgam_recall_net(plan);
    if (status != CGAM_OK) {
        cgam_recall_free(plan);
        return status;
    }
    plan->size = bank->info.norm_max;
    for (int64_t i = 0; bank->scale && i < bank->Z.n; i++) /* rows stored far from unit size */
        if (!(bank->scale[i] > 1e-8 && bank->scale[i] < 1e8)) plan->size = 0;
    if (plan->gate->A && !cgam_dplr_dense(plan->gate->A)) {
        const double *dinv = cgam_dplr_dinv(plan->gate->A);
        for (int64_t i = 0; i < bank->Z.n; i++)
            plan->pivot_max = fmax(plan->pivot_max, fabs(dinv[i]));
    }
    plan->streams = o.alpha > 0 && o.lambda > 0 && plan->gate->A && !cgam_dplr_dense(plan->gate->A);
    if (plan->streams) {
        /* The streamed solve loses eps / min |D| (num/dplr.c); below a hundredth that could show
         * in the twelfth digit of p. */
        const double *dinv = cgam_dplr_dinv(plan->gate->A);
        for (int64_t i = 0; i < bank->Z.n; i++) plan->refines |= fabs(dinv[i]) > 100;
    }
    if (plan->streams && o.mode == CGAM_COUPLED)
        status = cgam_dplr_inverse_new(plan->gate->A, &plan->small);
    if (status != CGAM_OK) {
        cgam_recall_free(plan);
        return status;
    }
    *out = plan;
    return CGAM_OK;
}

const cgam_gate *cgam_recall_gate(const cgam_recall *plan) { return plan->gate; }
double cgam_recall_context_margin(const cgam_recall *plan) { return plan->context_margin; }

/* ---- One group ---------------------------------------------------------------------------- */

typedef struct group {
    const cgam_recall *plan;
    int64_t size;
    cgam_query m[CGAM_COUPLED_BATCH];
    double *block;    /* all vectors of all queries */
    double *shared;   /* s0 and u of a context that all queries have in common: [2, n] */
    double *X, *Y;    /* [3 GROUP_MAX, d] vectors to score, [3 GROUP_MAX, n] their scores */
    int64_t *leaders; /* [size, top] where the caller has no use for them, else NULL */
} group;

enum { VECTORS = 5 }; /* s0, a, s, r, p; b is a row of Y */

static void group_free(group *g)
{
    cgam_env *env = g->plan->bank->env;
    cgam_free(env, g->block);
    cgam_free(env, g->shared);
    cgam_free(env, g->X);
    cgam_free(env, g->Y);
    cgam_free(env, g->leaders);
}

static cgam_status group_new(const cgam_recall *plan, int64_t queries, const cgam_recall_out *out,
                             group *g)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d;
    bool batches = cgam_coupled_batches(plan, queries);
    int64_t limit = batches ? CGAM_COUPLED_BATCH : GROUP_MAX;
    double most = floor((batches ? BATCH_DOUBLES : GROUP_DOUBLES) / ((double)n * (VECTORS + 3)));
    *g = (group){.plan = plan};
    if (batches && most < GROUP_MAX) most = floor(GROUP_DOUBLES / ((double)n * (VECTORS + 3)));
    g->size = most < 1 ? 1 : most > (double)limit ? limit : (int64_t)most;
    if (g->size > queries) g->size = queries > 0 ? queries : 1;
    g->block = cgam_alloc(env, (size_t)(g->size * VECTORS * n), sizeof *g->block);
    g->shared = cgam_alloc(env, (size_t)(2 * n), sizeof *g->shared);
    g->X = cgam_alloc(env, (size_t)(3 * g->size * d), sizeof *g->X);
    g->Y = cgam_alloc(env, (size_t)(3 * g->size * n), sizeof *g->Y);
    bool apart = out->top > 0 && !out->top_index;
    int64_t top = out->top < n ? out->top : n;
    if (apart) g->leaders = cgam_alloc(env, (size_t)(g->size * top), sizeof *g->leaders);
    if (!g->block || !g->shared || !g->X || !g->Y || (apart && !g->leaders)) {
        group_free(g);
        return cgam_fail_nomem(env, "the vectors of a recall");
    }
    return CGAM_OK;
}

void cgam_recall_project(const cgam_recall *plan, const double *c, double *v)
{
    int64_t d = plan->bank->Z.d;
    if (plan->opts.P)
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)d, (int)plan->d_c, 1, plan->opts.P,
                    (int)plan->d_c, c, 1, 0, v, 1);
    else memcpy(v, c, (size_t)d * sizeof *v);
}

cgam_status cgam_recall_gates(const cgam_recall *plan, const double *c, double *u, double *s0)
{
    const cgam_bank *bank = plan->bank;
    int64_t n = bank->Z.n;
    if (plan->opts.W) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)plan->d_c, 1, plan->opts.W,
                    (int)plan->d_c, c, 1, 0, u, 1);
        return cgam_gate_solve(plan->gate, u, s0, NULL);
    }
    double *v = cgam_alloc(bank->env, (size_t)bank->Z.d, sizeof *v);
    if (!v) return cgam_fail_nomem(bank->env, "a projected context");
    cgam_recall_project(plan, c, v);
    cgam_status status = cgam_bank_score(bank, v, u);
    if (status == CGAM_OK) status = cgam_gate_solve_range(plan->gate, v, s0);
    cgam_free(bank->env, v);
    return status;
}

/* Does A^-1 Z v come out of the same pass as Z q? */
static bool gates_stream(const cgam_recall *plan) { return !plan->opts.W && plan->gate->one_pass; }

/* b, s0 and u of queries [from, from + count). Rows of X: queries, then for contexts of their own
 * the directions e of A^-1 Z v and the v themselves. */
static cgam_status score(group *g, const cgam_recall_in *in, int64_t from, int64_t count)
{
    const cgam_recall *plan = g->plan;
    const cgam_bank *bank = plan->bank;
    int64_t n = bank->Z.n, d = bank->Z.d, rows = count;
    bool own = in->c && in->c_per_query, stream = own && gates_stream(plan);
    const int64_t *border = NULL;
    int64_t edge = stream ? cgam_dplr_border(plan->gate->A, &border) : 0;
    double *edges = cgam_alloc(bank->env, (size_t)(count * edge + 1), sizeof *edges);
    if (!edges) return cgam_fail_nomem(bank->env, "border rows");
    cgam_status status = CGAM_OK;
    memcpy(g->X, in->q + from * d, (size_t)(count * d) * sizeof *g->X);
    if (stream) {
        for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
            double *e = g->X + (count + k) * d, *v = g->X + (2 * count + k) * d;
            cgam_recall_project(plan, in->c + (from + k) * plan->d_c, v);
            status = cgam_dplr_range(plan->gate->A, v, e, edges + k * edge);
        }
        rows = 3 * count;
    }
    if (status == CGAM_OK)
        status = cgam_coupled_batches(plan, count)
                     ? cgam_pass_scores(bank->env, &bank->Z, rows, g->X, g->Y)
                     : cgam_rows_score_many(bank->env, &bank->Z, rows, g->X, g->Y);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        cgam_query *m = &g->m[k];
        const double *b = g->Y + k * n;
        double *block = g->block + k * VECTORS * n, *u = NULL;
        *m = (cgam_query){.b = b,
                          .level = true,
                          .s0 = block,
                          .a = block + n,
                          .s = block + 2 * n,
                          .r = block + 3 * n,
                          .p = block + 4 * n};
        if (!in->c) {
            memset(m->s0, 0, (size_t)n * sizeof *m->s0);
        } else if (!own) {
            memcpy(m->s0, g->shared, (size_t)n * sizeof *m->s0);
            u = g->shared + n;
        } else if (stream) {
            const double *dinv = cgam_dplr_dinv(plan->gate->A);
            const double *dot = g->Y + (count + k) * n;
            for (int64_t i = 0; i < n; i++) m->s0[i] = dinv[i] * dot[i];
            for (int64_t j = 0; j < edge; j++) m->s0[border[j]] = edges[k * edge + j];
            u = g->Y + (2 * count + k) * n;
        } else {
            u = g->Y + (2 * count + k) * n;
            status = cgam_recall_gates(plan, in->c + (from + k) * plan->d_c, u, m->s0);
        }
        cgam_twins_level(plan->twins, m->s0);
        m->half_us0 = in->c && status == CGAM_OK ? 0.5 * cgam_vec_dot(n, u, m->s0) : 0;
        for (int64_t i = 0; i < n; i++) m->a[i] = b[i] + plan->opts.lambda * m->s0[i];
    }
    cgam_free(bank->env, edges);
    return status;
}

/* Mode flow: the network finds the gates by itself. */
static cgam_status flow(group *g, const cgam_recall_in *in, int64_t from, int64_t count)
{
    const cgam_recall *plan = g->plan;
    const cgam_bank *bank = plan->bank;
    const double *q = in->q + from * bank->Z.d, *c = in->c;
    cgam_status status = cgam_rows_score_many(bank->env, &bank->Z, count, q, g->Y);
    for (int64_t k = 0; k < count; k++) {
        double *block = g->block + k * VECTORS * bank->Z.n;
        g->m[k] = (cgam_query){.b = g->Y + k * bank->Z.n,
                               .s = block + 2 * bank->Z.n,
                               .r = block + 3 * bank->Z.n,
                               .p = block + 4 * bank->Z.n};
    }
    if (c && in->c_per_query) c += from * plan->d_c;
    if (status == CGAM_OK) status = cgam_recall_flow(plan, count, g->m, q, c, in->c_per_query);
    return status;
}

static cgam_status solve_coupled(group *g, int64_t count)
{
    int64_t left[CGAM_COUPLED_BATCH], many = 0;
    if (!cgam_coupled_batches(g->plan, count))
        return cgam_coupled_solve(g->plan, count, g->m, NULL);
    cgam_status status = cgam_coupled_batch(g->plan, count, g->m, left, &many);
    for (int64_t k = 0; k < many && status == CGAM_OK; k++)
        status = cgam_coupled_solve(g->plan, 1, &g->m[left[k]], NULL);
    return status;
}

static cgam_status solve(group *g, int64_t count)
{
    const cgam_recall *plan = g->plan;
    int64_t n = plan->bank->Z.n;
    if (plan->opts.mode == CGAM_COUPLED) return solve_coupled(g, count);
    for (int64_t k = 0; k < count; k++) {
        cgam_query *m = &g->m[k];
        memcpy(m->s, m->s0, (size_t)n * sizeof *m->s);
        memcpy(m->r, m->a, (size_t)n * sizeof *m->r);
        m->end = cgam_query_softmax(plan, m) ? CGAM_END_DIRECT : CGAM_END_DIVERGED;
        m->energy_start = m->energy_end = m->energy_rise = NAN;
        m->change = NAN;
    }
    return CGAM_OK;
}

typedef struct reporting {
    group *g;
    const cgam_recall_in *in;
    const cgam_recall_out *out;
    int64_t from, top;
} reporting;

/* The results of query from + k. */
static cgam_status report_one(void *arg, int64_t k)
{
    const reporting *job = arg;
    const cgam_recall_out *out = job->out;
    const cgam_recall *plan = job->g->plan;
    const cgam_query *m = &job->g->m[k];
    int64_t n = plan->bank->Z.n, top = job->top, at = job->from + k;
    cgam_status status = CGAM_OK;
    if (out->results) {
        cgam_result *result = &out->results[at];
        cgam_query_measure(plan, m, job->in->target ? job->in->target[at] : -1, result);
        status = cgam_query_certify(plan, m, result);
    }
    if (top > 0 && (out->top_index || out->top_p || out->top_log_p)) {
        int64_t *index = out->top_index ? out->top_index + at * top : job->g->leaders + k * top;
        cgam_query_top(m, n, top, index);
        for (int64_t j = 0; j < top; j++) {
            if (out->top_p) out->top_p[at * top + j] = m->p[index[j]];
            if (out->top_log_p)
                out->top_log_p[at * top + j] =
                    plan->opts.beta * (m->r[index[j]] - m->top) - log(m->sum);
        }
    }
    size_t bytes = (size_t)n * sizeof(double);
    if (out->p) memcpy(out->p + at * n, m->p, bytes);
    if (out->s) memcpy(out->s + at * n, m->s, bytes);
    if (out->r) memcpy(out->r + at * n, m->r, bytes);
    /* the queries' p lie VECTORS n apart, so they are gathered where the scores were */
    if (out->readout) memcpy(job->g->Y + (job->g->size + k) * n, m->p, bytes);
    return status;
}

static cgam_status report(group *g, const cgam_recall_in *in, const cgam_recall_out *out,
                          int64_t from, int64_t count)
{
    const cgam_bank *bank = g->plan->bank;
    reporting job = {g, in, out, from, out->top < bank->Z.n ? out->top : bank->Z.n};
    /* a query that is alone has all threads for its certificate */
    cgam_status status =
        count == 1 ? report_one(&job, 0) : cgam_parallel(bank->env, count, report_one, &job);
    if (status == CGAM_OK && out->readout)
        status = cgam_rows_combine_many(bank->env, &bank->Z, count, g->Y + g->size * bank->Z.n,
                                        out->readout + from * bank->Z.d);
    return status;
}

static cgam_status check_input(const cgam_recall *plan, const cgam_recall_in *in)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n;
    if (in->queries < 0 || (in->queries > 0 && !in->q))
        return cgam_fail(env, CGAM_E_ARG, "%lld queries", (long long)in->queries);
    for (int64_t k = 0; in->target && k < in->queries; k++)
        if (in->target[k] < 0 || in->target[k] >= n)
            return cgam_fail(env, CGAM_E_ARG, "target %lld of query %lld, memories are 0 to %lld",
                             (long long)in->target[k], (long long)k, (long long)n - 1);
    return CGAM_OK;
}

cgam_status cgam_recall_run(const cgam_recall *plan, const cgam_recall_in *in,
                            const cgam_recall_out *out)
{
    cgam_status status = check_input(plan, in);
    if (status != CGAM_OK || in->queries == 0) return status;
    if (cgam_first_streams(plan, in, out)) return cgam_first_run(plan, in, out);
    group g;
    status = group_new(plan, in->queries, out, &g);
    if (status != CGAM_OK) return status;
    int64_t n = plan->bank->Z.n;
    bool flows = plan->opts.mode == CGAM_FLOW;
    if (in->c && !in->c_per_query && !flows)
        status = cgam_recall_gates(plan, in->c, g.shared + n, g.shared);
    for (int64_t from = 0; from < in->queries && status == CGAM_OK; from += g.size) {
        int64_t count = in->queries - from < g.size ? in->queries - from : g.size;
        if (cgam_interrupted(plan->bank->env)) status = CGAM_E_INTERRUPTED;
        if (status == CGAM_OK && flows) status = flow(&g, in, from, count);
        if (status == CGAM_OK && !flows) status = score(&g, in, from, count);
        if (status == CGAM_OK && !flows) status = solve(&g, count);
        if (status == CGAM_OK) status = report(&g, in, out, from, count);
    }
    group_free(&g);
    return status;
}

cgam_status cgam_recall_once(const cgam_bank *bank, const double *q, const double *c,
                             const cgam_recall_opts *opts, cgam_result *out)
{
    cgam_recall *plan;
    cgam_status status = cgam_recall_new(bank, opts, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out results = {.results = out};
    status = cgam_recall_run(plan, &in, &results);
    cgam_recall_free(plan);
    return status;
}
