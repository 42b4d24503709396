/* flow.c: recall in time. The two-stage network (as_net.c) starts at rest - gates and retrieval 0 -
 * with the query and the context applied, and flows to a steady state or the horizon. */
#include <cgam/theory.h>

#include "memory/engines.h"

#include <cgam/flow.h>
#include <math.h>
#include <string.h>

/* An integrator leaves x - F(x) of about its tolerance, so that must be below the residual that counts as steady. */
static const double BELOW_STEADY = 0.1, RTOL_MAX = 1e-9, RTOL_MIN = 1e-12;

static cgam_status free_context(cgam_recall *plan)
{
    plan->context_margin = -INFINITY;
    if (plan->gate->info.regime != CGAM_SUBCRITICAL) return CGAM_OK;
    return cgam_gate_context_margin(plan->gate, plan->opts.W, plan->opts.P, plan->d_c,
                                    &plan->context_margin);
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
                                .tau_q = o->tau_q,
                                .entmax = o->entmax};
    cgam_status status = cgam_memory_net_new(plan->bank, &net, &plan->net);
    if (status == CGAM_OK && o->free_context) status = free_context(plan);
    return status;
}

cgam_end cgam_end_of_flow(cgam_flow_end end)
{
    switch (end) {
    case CGAM_FLOW_STEADY: return CGAM_END_CONVERGED;
    case CGAM_FLOW_HORIZON: return CGAM_END_HORIZON;
    case CGAM_FLOW_DIVERGED: return CGAM_END_DIVERGED;
    case CGAM_FLOW_STEPS: return CGAM_END_MAX_ITER;
    default: return CGAM_END_ROSE;
    }
}

/* Sets the rest state of one query: x [size] of the four layers. */
static void put_at_rest(const cgam_recall *plan, const double *q, const double *c, double *x)
{
    cgam_layer_view context = cgam_net_layer(plan->net, CGAM_NET_CONTEXT);
    cgam_layer_view query = cgam_net_layer(plan->net, CGAM_NET_QUERY);
    memset(x, 0, (size_t)cgam_net_describe(plan->net).size * sizeof *x);
    if (c) memcpy(x + context.offset, c, (size_t)context.size * sizeof *x);
    memcpy(x + query.offset, q, (size_t)query.size * sizeof *x);
}

static void settle_flow(const cgam_recall *plan, const double *x, const cgam_flow_report *r,
                        cgam_settled *m)
{
    cgam_layer_view s = cgam_net_layer(plan->net, CGAM_NET_GATES);
    cgam_layer_view retrieval = cgam_net_layer(plan->net, CGAM_NET_RETRIEVAL);
    memcpy(m->s, x + s.offset, (size_t)s.size * sizeof *x);
    memcpy(m->r, x + retrieval.offset, (size_t)retrieval.size * sizeof *x);
    bool finite = cgam_activate(plan, m->r, m->p, &m->act);
    m->trace = (cgam_trace){.end = finite ? cgam_end_of_flow(r->end) : CGAM_END_DIVERGED,
                            .iterations = r->steps,
                            .time = r->time,
                            .change = r->residual,
                            .energy_start = r->energy_start,
                            .energy_end = r->energy_end,
                            .energy_rise = r->energy_rise};
}

cgam_status cgam_recall_flow(const cgam_recall *plan, int64_t count, cgam_settled *m,
                             const double *q, const double *c, bool c_per_query)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = plan->bank->env;
    int64_t size = cgam_net_describe(plan->net).size, d = plan->bank->Z.d;
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
        put_at_rest(plan, q + k * d, c && c_per_query ? c + k * plan->d_c : c, x + k * size);
    if (status == CGAM_OK) status = cgam_flow_run(plan->net, count, x, &flow, reports);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++)
        settle_flow(plan, x + k * size, &reports[k], &m[k]);
    cgam_free(env, x);
    cgam_free(env, reports);
    return status;
}
