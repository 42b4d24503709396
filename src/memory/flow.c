/* flow.c: recall in time. The two-stage network (as_net.c) starts at rest - gates and retrieval 0 -
 * with the query and the context applied, and flows to a steady state or the horizon. */
#include "base/blas.h"
#include "memory/as_net.h"

#include <cgam/flow.h>
#include <cgam/theory.h>
#include <math.h>
#include <string.h>

/* What an integrator leaves of x - F(x) is about its tolerance, which so has to be below what is
 * called steady. */
static const double BELOW_STEADY = 0.1, RTOL_MAX = 1e-9, RTOL_MIN = 1e-12;

/* lambda_min(I - W'A^-1 W) for W given as a matrix. */
static cgam_status margin_of(const cgam_recall *plan, double *margin)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, k = plan->d_c;
    const double *W = plan->opts.W;
    double *M = cgam_zalloc(env, (size_t)(k * k), sizeof *M);
    double *room = cgam_alloc(env, (size_t)(2 * n + k), sizeof *room);
    cgam_status status = M && room ? CGAM_OK : cgam_fail_nomem(env, "a free context");
    for (int64_t j = 0; j < k && status == CGAM_OK; j++) {
        double *w = room, *y = room + n;
        for (int64_t i = 0; i < n; i++) w[i] = W[i * k + j];
        status = cgam_gate_solve(plan->gate, w, y, NULL);
        for (int64_t i = 0; i < n && status == CGAM_OK; i++)
            for (int64_t l = 0; l < k; l++) M[j * k + l] -= W[i * k + l] * y[i];
        M[j * k + j] += 1;
    }
    if (status == CGAM_OK) {
        double *values = room + 2 * n;
        lapack_int info =
            LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', (lapack_int)k, M, (lapack_int)k, values);
        if (info != 0) status = cgam_fail(env, CGAM_E_INTERNAL, "dsyevd: %d", (int)info);
        *margin = values[0];
    }
    cgam_free(env, M);
    cgam_free(env, room);
    return status;
}

static cgam_status free_context(cgam_recall *plan)
{
    plan->context_margin = -INFINITY;
    if (plan->gate->info.regime != CGAM_SUBCRITICAL) return CGAM_OK;
    if (plan->opts.W) return margin_of(plan, &plan->context_margin);
    return cgam_context_margin(plan->gate, plan->opts.P, plan->d_c, &plan->context_margin);
}

cgam_status cgam_recall_net(cgam_recall *plan)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_memory_net_opts net = {.alpha = o->alpha,
                                .beta = o->beta,
                                .lambda = o->lambda,
                                .P = o->P,
                                .W = o->W,
                                .d_c = o->d_c,
                                .tau_c = o->tau_c,
                                .tau_s = o->tau_s,
                                .tau_r = o->tau_r,
                                .tau_q = o->tau_q};
    cgam_status status = cgam_memory_net_new(plan->bank, &net, &plan->net);
    if (status == CGAM_OK && o->free_context) status = free_context(plan);
    return status;
}

static cgam_end end_of(cgam_flow_end end)
{
    switch (end) {
    case CGAM_FLOW_STEADY: return CGAM_END_CONVERGED;
    case CGAM_FLOW_HORIZON: return CGAM_END_HORIZON;
    case CGAM_FLOW_DIVERGED: return CGAM_END_DIVERGED;
    case CGAM_FLOW_STEPS: return CGAM_END_MAX_ITER;
    default: return CGAM_END_ROSE;
    }
}

/* One query at rest: x [size] of the four layers. */
static void start(const cgam_recall *plan, const double *q, const double *c, double *x)
{
    cgam_layer_view context = cgam_net_layer(plan->net, CGAM_NET_CONTEXT);
    cgam_layer_view query = cgam_net_layer(plan->net, CGAM_NET_QUERY);
    memset(x, 0, (size_t)cgam_net_size(plan->net) * sizeof *x);
    if (c) memcpy(x + context.offset, c, (size_t)context.size * sizeof *x);
    memcpy(x + query.offset, q, (size_t)query.size * sizeof *x);
}

static void finish(const cgam_recall *plan, const double *x, const cgam_flow_report *r,
                   cgam_query *m)
{
    cgam_layer_view s = cgam_net_layer(plan->net, CGAM_NET_GATES);
    cgam_layer_view retrieval = cgam_net_layer(plan->net, CGAM_NET_RETRIEVAL);
    memcpy(m->s, x + s.offset, (size_t)s.size * sizeof *x);
    memcpy(m->r, x + retrieval.offset, (size_t)retrieval.size * sizeof *x);
    m->end = cgam_query_softmax(plan, m) ? end_of(r->end) : CGAM_END_DIVERGED;
    m->iterations = r->steps;
    m->time = r->time;
    m->change = r->residual;
    m->energy_start = r->energy_start;
    m->energy_end = r->energy_end;
    m->energy_rise = r->energy_rise;
}

cgam_status cgam_recall_flow(const cgam_recall *plan, int64_t count, cgam_query *m, const double *q,
                             const double *c, bool c_per_query)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = plan->bank->env;
    int64_t size = cgam_net_size(plan->net), d = plan->bank->Z.d;
    double *x = cgam_alloc(env, (size_t)(count * size), sizeof *x);
    cgam_flow_report *reports = cgam_alloc(env, (size_t)count, sizeof *reports);
    cgam_clamp clamps[2];
    cgam_flow_opts flow = cgam_flow_opts_default();
    flow.t_end = o->t_max;
    flow.rtol = fmax(fmin(BELOW_STEADY * o->steady, RTOL_MAX), RTOL_MIN);
    flow.atol = 1e-2 * flow.rtol;
    flow.steady = o->steady;
    flow.settle = 0;
    flow.clamps = clamps;
    if (!o->free_context)
        clamps[flow.clamp_count++] = (cgam_clamp){.layer = CGAM_NET_CONTEXT, .to = INFINITY};
    if (!o->free_query)
        clamps[flow.clamp_count++] = (cgam_clamp){.layer = CGAM_NET_QUERY, .to = INFINITY};
    cgam_status status = x && reports ? CGAM_OK : cgam_fail_nomem(env, "a recall that flows");
    for (int64_t k = 0; k < count && status == CGAM_OK; k++)
        start(plan, q + k * d, c && c_per_query ? c + k * plan->d_c : c, x + k * size);
    if (status == CGAM_OK) status = cgam_flow_run(plan->net, count, x, &flow, reports);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++)
        finish(plan, x + k * size, &reports[k], &m[k]);
    cgam_free(env, x);
    cgam_free(env, reports);
    return status;
}
