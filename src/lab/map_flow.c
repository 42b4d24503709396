/* map_flow.c: a query that moves across the map, in the network of as_net.h. */
#include "lab/map.h"
#include <cgam/theory.h>

#include "memory/engines.h"

#include <cgam/recall.h>
#include <math.h>
#include <string.h>

cgam_map_flow_opts cgam_map_flow_opts_default(void)
{
    return (cgam_map_flow_opts){.tau_s = 0.1,
                                .tau_r = 0.1,
                                .tau_q = 1,
                                .t_end = 30,
                                .switch_time = INFINITY,
                                .samples = 120};
}

typedef struct watcher {
    const cgam_plane *plane;
    cgam_layer_view query;
    cgam_map_moment *moments;
    int64_t count, capacity;
} watcher;

static int record_moment(void *user, const cgam_flow_moment *m)
{
    watcher *w = user;
    const unsigned kept = CGAM_EVENT_START | CGAM_EVENT_SAMPLE | CGAM_EVENT_CLAMP |
                          CGAM_EVENT_STEADY | CGAM_EVENT_END;
    if (!(m->events & kept)) return 0;
    bool again = w->count > 0 && w->moments[w->count - 1].time == m->time;
    if (!again && w->count == w->capacity) w->count--; /* the last moment is always there */
    cgam_map_moment *to = &w->moments[again ? w->count - 1 : w->count++];
    to->time = m->time;
    to->energy = m->energy;
    to->winner = m->winner;
    cgam_plane_of(w->plane, m->x + w->query.offset, &to->x, &to->y, &to->off);
    return 0;
}

/* Gates at A^-1 u, retrieval at its scores, the query at q. */
static cgam_status set_start(const cgam_bank *bank, const cgam_net *net, const double *q,
                             const double *c, const cgam_map_opts *o, double *x)
{
    cgam_recall_opts first = cgam_recall_opts_default();
    first.alpha = o->alpha;
    first.beta = o->beta;
    first.lambda = o->lambda;
    cgam_recall *plan;
    cgam_status status = cgam_recall_new(bank, &first, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out out = {.s = x + cgam_net_layer(net, CGAM_NET_GATES).offset,
                           .r = x + cgam_net_layer(net, CGAM_NET_RETRIEVAL).offset};
    size_t d = (size_t)bank->Z.d;
    if (c) memcpy(x + cgam_net_layer(net, CGAM_NET_CONTEXT).offset, c, d * sizeof *x);
    memcpy(x + cgam_net_layer(net, CGAM_NET_QUERY).offset, q, d * sizeof *x);
    status = cgam_recall_run(plan, &in, &out);
    cgam_recall_free(plan);
    return status;
}

cgam_status cgam_map_flow(const cgam_bank *bank, const cgam_plane *plane, const double *q,
                          const double *c, const cgam_map_opts *opts,
                          const cgam_map_flow_opts *flow_opts, cgam_map_moment *moments,
                          int64_t *count, cgam_end *end)
{
    cgam_status alone = cgam_bank_alone(bank, "a map");
    if (alone != CGAM_OK) return alone;
    cgam_env *env = bank->env;
    cgam_map_opts o = opts ? *opts : cgam_map_opts_default();
    cgam_map_flow_opts f = flow_opts ? *flow_opts : cgam_map_flow_opts_default();
    *count = 0;
    if (f.samples < 1 || !(f.t_end > 0) || !(f.switch_time > 0))
        return cgam_fail(env, CGAM_E_ARG, "%lld moments, t_end %g and switch %g must be above 0",
                         (long long)f.samples, f.t_end, f.switch_time);
    cgam_memory_net_opts net_opts = {.alpha = o.alpha,
                                     .beta = o.beta,
                                     .lambda = o.lambda,
                                     .tau_c = 1,
                                     .tau_s = f.tau_s,
                                     .tau_r = f.tau_r,
                                     .tau_q = f.tau_q};
    cgam_net *net = NULL;
    cgam_status status = cgam_memory_net_new(bank, &net_opts, &net);
    if (status != CGAM_OK) return status;
    double *x = cgam_zalloc(env, (size_t)cgam_net_describe(net).size, sizeof *x);
    double *none = cgam_zalloc(env, (size_t)bank->Z.d, sizeof *none);
    status = x && none ? set_start(bank, net, q, c, &o, x) : cgam_fail_nomem(env, "a flow");
    watcher w = {.plane = plane,
                 .query = cgam_net_layer(net, CGAM_NET_QUERY),
                 .moments = moments,
                 .capacity = f.samples + 3};
    bool switches = f.switch_time < f.t_end;
    cgam_clamp clamps[] = {
        {.layer = CGAM_NET_CONTEXT, .to = switches ? f.switch_time : INFINITY},
        {.layer = CGAM_NET_CONTEXT,
         .from = f.switch_time,
         .to = INFINITY,
         .value = f.c_then ? f.c_then : none},
    };
    cgam_flow_opts flow = cgam_flow_opts_default();
    flow.t_end = f.t_end;
    flow.sample = f.t_end / (double)f.samples;
    flow.watch = CGAM_NET_RETRIEVAL;
    flow.stop = switches ? 0 : CGAM_EVENT_STEADY;
    flow.steady = 1e-6;
    flow.clamps = clamps;
    flow.clamp_count = switches ? 2 : 1;
    flow.monitor = record_moment;
    flow.user = &w;
    cgam_flow_report report;
    if (status == CGAM_OK) status = cgam_flow_run(net, 1, x, &flow, &report);
    if (status == CGAM_OK) {
        *count = w.count;
        *end = cgam_end_of_flow(report.end);
    }
    cgam_net_free(net);
    cgam_free(env, x);
    cgam_free(env, none);
    return status;
}
