/* flow.c: checks the options of a flow, turns clamps into a schedule, and distributes the states. */
#include "net/flow_inside.h"
#include "net/net.h"

#include <math.h>
#include <string.h>

/* States that are stepped together take a few vectors each. */
enum { STATES_AT_ONCE = 64, DOUBLES_AT_ONCE = 1 << 22 };

const char *const cgam_flow_method_words[] = {"auto", "adams", "bdf", "rk4", "euler", NULL};
const char *const cgam_flow_end_words[] = {"steady", "horizon",  "settled", "winner", "stopped",
                                           "rose",   "diverged", "steps",   "stuck",  NULL};

const char *const cgam_event_words[] = {"start",  "sample", "clamp", "settled",
                                        "winner", "steady", "end",   NULL};

cgam_flow_opts cgam_flow_opts_default(void)
{
    return (cgam_flow_opts){.t_end = 100,
                            .rtol = 1e-9,
                            .atol = 1e-11,
                            .step = 0.01,
                            .max_steps = 1000000,
                            .steady = 1e-8,
                            .settle = 1e-9,
                            .limit = 1e100,
                            .watch = -1,
                            .stop = CGAM_EVENT_STEADY};
}

static bool is_fixed(const cgam_flow_opts *o)
{
    return o->method == CGAM_FLOW_RK4 || o->method == CGAM_FLOW_EULER;
}

static cgam_status check_opts(const cgam_net *net, const cgam_flow_opts *o)
{
    cgam_env *env = net->env;
    const struct {
        const char *name;
        double value;
        bool positive;
    } numbers[] = {
        {"t_end", o->t_end, true},      {"rtol", o->rtol, true},          {"atol", o->atol, true},
        {"step", o->step, is_fixed(o)}, {"step_max", o->step_max, 0},     {"steady", o->steady, 0},
        {"settle", o->settle, false},   {"energy_tol", o->energy_tol, 0}, {"limit", o->limit, true},
        {"sample", o->sample, false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i].positive ? numbers[i].value > 0 : numbers[i].value >= 0) ||
            !isfinite(numbers[i].value))
            return cgam_fail(env, CGAM_E_ARG, "%s is %g, it must be %s 0", numbers[i].name,
                             numbers[i].value, numbers[i].positive ? "above" : "at least");
    if (o->method > CGAM_FLOW_EULER)
        return cgam_fail(env, CGAM_E_ARG, "invalid method %d of a flow (valid: 0 to %d)",
                         (int)o->method, CGAM_FLOW_EULER);
    if (o->max_steps < 1)
        return cgam_fail(env, CGAM_E_ARG, "max_steps is %lld, it must be at least 1",
                         (long long)o->max_steps);
    if (o->sample > 0 && o->t_end / o->sample > CGAM_FLOW_SAMPLES)
        return cgam_fail(env, CGAM_E_ARG,
                         "sample is %g, which makes %g samples until %g (at most %d)", o->sample,
                         o->t_end / o->sample, o->t_end, CGAM_FLOW_SAMPLES);
    if (o->watch < -1 || o->watch >= net->layers)
        return cgam_fail(env, CGAM_E_ARG, "watch: no layer %d (there are %d)", o->watch,
                         net->layers);
    if ((o->stop & CGAM_EVENT_WINNER) && o->watch < 0)
        return cgam_fail(env, CGAM_E_ARG, "stop at a winner requires a layer to watch");
    return CGAM_OK;
}

static cgam_status check_clamp(const cgam_net *net, const cgam_flow_opts *o, int64_t batch, int k)
{
    cgam_env *env = net->env;
    const cgam_clamp *c = &o->clamps[k];
    if (c->layer < 0 || c->layer >= net->layers)
        return cgam_fail(env, CGAM_E_ARG, "clamp %d: no layer %d (there are %d)", k, c->layer,
                         net->layers);
    const cgam_layer *layer = &net->layer[c->layer];
    if (!(c->from >= 0) || !(c->to > c->from) || isinf(c->from))
        return cgam_fail(
            env, CGAM_E_ARG,
            "clamp %d of layer '%s': from is %g and to is %g; from must be 0 or more, and to above from",
            k, layer->name, c->from, c->to);
    for (int i = 0; i < k; i++)
        if (o->clamps[i].layer == c->layer && c->from < o->clamps[i].to &&
            o->clamps[i].from < c->to)
            return cgam_fail(env, CGAM_E_ARG, "clamps %d and %d of layer '%s' overlap", i, k,
                             layer->name);
    int64_t count = layer->size * (c->per_state ? batch : 1);
    for (int64_t i = 0; c->value && i < count; i++)
        if (!isfinite(c->value[i]))
            return cgam_fail(env, CGAM_E_VALUE, "clamp %d of layer '%s': number %lld is not finite",
                             k, layer->name, (long long)i);
    return CGAM_OK;
}

/* ---- schedule ------------------------------------------------------------------------------- */

static void insert_time(cgam_flow *flow, double time)
{
    int at = 0;
    if (!(time < flow->opts.t_end)) return;
    while (at <= flow->stretches && flow->times[at] < time) at++;
    if (flow->times[at] == time) return;
    memmove(flow->times + at + 1, flow->times + at,
            (size_t)(flow->stretches + 1 - at) * sizeof *flow->times);
    flow->times[at] = time;
    flow->stretches++;
}

static cgam_status make_schedule(cgam_flow *flow)
{
    const cgam_flow_opts *o = &flow->opts;
    flow->times = cgam_alloc(flow->env, 2 * (size_t)o->clamp_count + 2, sizeof *flow->times);
    if (!flow->times) return cgam_fail_nomem(flow->env, "the clamps of a flow");
    flow->times[0] = 0;
    flow->times[1] = o->t_end;
    flow->stretches = 1;
    for (int i = 0; i < o->clamp_count; i++) {
        insert_time(flow, o->clamps[i].from);
        insert_time(flow, o->clamps[i].to);
    }
    return CGAM_OK;
}

void cgam_flow_clamp(const cgam_flow *flow, int stretch, int64_t state, bool *clamped, double *x)
{
    const cgam_net *net = flow->net;
    double now = flow->times[stretch];
    for (int i = 0; clamped && i < net->layers; i++) clamped[i] = false;
    for (int i = 0; i < flow->opts.clamp_count; i++) {
        const cgam_clamp *c = &flow->opts.clamps[i];
        const cgam_layer *layer = &net->layer[c->layer];
        if (!(c->from <= now && now < c->to)) continue;
        if (clamped) clamped[c->layer] = true;
        if (!x || !c->value || (c->from < now && stretch > 0)) continue; /* already in effect */
        memcpy(x + layer->offset, c->value + (c->per_state ? state * layer->size : 0),
               (size_t)layer->size * sizeof *x);
    }
}

double cgam_flow_slowest(const cgam_flow *flow, const bool *clamped)
{
    double slowest = 0;
    for (int i = 0; i < flow->net->layers; i++)
        if (!clamped[i]) slowest = fmax(slowest, flow->net->layer[i].tau);
    return slowest;
}

/* ---- states --------------------------------------------------------------------------------- */

typedef struct job {
    const cgam_flow *flow;
    double *x;
    cgam_flow_report *reports;
} job;

static cgam_status adaptive_state(void *arg, int64_t state)
{
    job *j = arg;
    return cgam_flow_adaptive(j->flow, state, j->x + state * j->flow->net->size,
                              &j->reports[state]);
}

static cgam_status run_adaptive(const cgam_flow *flow, double *x, cgam_flow_report *reports)
{
    job j = {flow, x, reports};
    if (flow->batch > 1 && !flow->opts.monitor)
        return cgam_parallel(flow->env, flow->batch, adaptive_state, &j);
    cgam_status status = CGAM_OK;
    for (int64_t b = 0; b < flow->batch && status == CGAM_OK; b++) status = adaptive_state(&j, b);
    return status;
}

static cgam_status run_fixed(const cgam_flow *flow, double *x, cgam_flow_report *reports)
{
    int64_t size = flow->net->size, group = DOUBLES_AT_ONCE / (size > 0 ? size : 1);
    if (group > STATES_AT_ONCE) group = STATES_AT_ONCE;
    if (group < 1 || flow->opts.monitor) group = 1;
    cgam_status status = CGAM_OK;
    for (int64_t first = 0; first < flow->batch && status == CGAM_OK; first += group) {
        int64_t count = flow->batch - first < group ? flow->batch - first : group;
        status = cgam_flow_fixed(flow, first, count, x, reports);
    }
    return status;
}

cgam_status cgam_flow_run(const cgam_net *net, int64_t batch, double *x, const cgam_flow_opts *opts,
                          cgam_flow_report *reports)
{
    cgam_flow flow = {.net = net, .env = net->env, .batch = batch};
    flow.opts = opts ? *opts : cgam_flow_opts_default();
    if (batch < 1 || net->layers == 0)
        return cgam_fail(net->env, CGAM_E_ARG,
                         "a flow needs at least 1 state and 1 layer, not %lld and %d",
                         (long long)batch, net->layers);
    cgam_status status = check_opts(net, &flow.opts);
    for (int i = 0; i < flow.opts.clamp_count && status == CGAM_OK; i++)
        status = check_clamp(net, &flow.opts, batch, i);
    if (status == CGAM_OK) status = cgam_net_check_states(net, "start", batch, x);
    if (status != CGAM_OK) return status;
    bool fixed = is_fixed(&flow.opts);
    if (flow.opts.energy_tol == 0) flow.opts.energy_tol = fixed ? 1e-12 : 10 * flow.opts.rtol;
    status = make_schedule(&flow);
    if (status == CGAM_OK)
        status = fixed ? run_fixed(&flow, x, reports) : run_adaptive(&flow, x, reports);
    cgam_free(net->env, flow.times);
    return status;
}
