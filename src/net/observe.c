/* observe.c: observes a flow. At every step it compares the energy with the lowest since the last clamp, finds events
 * and their times, calls the monitor, and decides whether the flow is over. */
#include "net/flow_inside.h"

#include <math.h>
#include <string.h>

enum { BISECTIONS = 40, CHANGES = 16 };

void cgam_observer_free(cgam_observer *obs)
{
    if (!obs->flow) return;
    cgam_env *env = obs->flow->env;
    cgam_work_free(obs->probe);
    cgam_free(env, obs->clamped);
    cgam_free(env, obs->x);
    cgam_free(env, obs->rate);
    *obs = (cgam_observer){0};
}

cgam_status cgam_observer_new(const cgam_flow *flow, int64_t state, cgam_flow_report *report,
                              cgam_observer *out)
{
    size_t size = (size_t)flow->net->size;
    *out = (cgam_observer){.flow = flow, .report = report, .state = state};
    *report = (cgam_flow_report){.method = flow->opts.method,
                                 .rise_time = NAN,
                                 .settled = NAN,
                                 .winner = -1,
                                 .winner_time = NAN};
    out->clamped = cgam_zalloc(flow->env, (size_t)flow->net->layers + 1, sizeof *out->clamped);
    out->x = cgam_alloc(flow->env, size, sizeof *out->x);
    out->rate = cgam_alloc(flow->env, size, sizeof *out->rate);
    if (!out->clamped || !out->x || !out->rate) {
        cgam_observer_free(out);
        return cgam_fail_nomem(flow->env, "a flow");
    }
    return CGAM_OK;
}

/* ---- numbers of a point --------------------------------------------------------------------- */

/* Largest |x - F(x)| and largest |x| over the layers that move. */
static void measure_point(const cgam_observer *obs, const cgam_look *look, double *residual,
                          double *size)
{
    const cgam_net *net = obs->flow->net;
    *residual = *size = 0;
    for (int i = 0; i < net->layers; i++) {
        const cgam_layer *layer = &net->layer[i];
        if (obs->clamped[i]) continue;
        for (int64_t j = layer->offset; j < layer->offset + layer->size; j++) {
            double moves = layer->tau * fabs(look->rate[j]), far = fabs(look->x[j]);
            if (moves > *residual) *residual = moves; /* fmax is a call */
            if (far > *size) *size = far;
        }
    }
}

static int64_t winner_of(const cgam_observer *obs, const double *x)
{
    if (obs->flow->opts.watch < 0) return -1;
    const cgam_layer *layer = &obs->flow->net->layer[obs->flow->opts.watch];
    int64_t best = 0;
    for (int64_t j = 1; j < layer->size; j++)
        if (x[layer->offset + j] > x[layer->offset + best]) best = j;
    return best;
}

/* Calls the monitor; a nonzero answer ends the flow. */
static void call_monitor(cgam_observer *obs, const cgam_look *look, unsigned events, double power,
                         double residual)
{
    const cgam_flow_opts *o = &obs->flow->opts;
    if (!o->monitor) return;
    cgam_flow_moment moment = {.state = obs->state,
                               .time = look->time,
                               .step = obs->report->steps,
                               .events = events,
                               .x = look->x,
                               .energy = cgam_work_energy(look->work, look->index),
                               .parts = cgam_work_parts(look->work) +
                                        look->index * cgam_net_describe(obs->flow->net).parts,
                               .power = power,
                               .residual = residual,
                               .winner = obs->report->winner,
                               .progress = fmin(look->time / o->t_end, 1)};
    if (o->monitor(o->user, &moment) != 0 && !obs->over) {
        obs->over = true;
        obs->report->end = CGAM_FLOW_STOPPED;
    }
}

/* Evaluates and reports a time between two steps. */
static cgam_status report_between(cgam_observer *obs, double time, cgam_flow_between between,
                                  void *step, unsigned events)
{
    double power, residual, size;
    cgam_status status = between(step, time, obs->x);
    if (status == CGAM_OK) status = cgam_work_eval(obs->probe, 1, obs->x);
    if (status != CGAM_OK) return status;
    cgam_work_rate(obs->probe, obs->rate);
    cgam_look look = {time, obs->x, obs->rate, obs->probe, 0};
    status = cgam_work_power(obs->probe, 0, obs->rate, &power);
    measure_point(obs, &look, &residual, &size);
    obs->report->evaluations++;
    if (status == CGAM_OK) call_monitor(obs, &look, events, power, residual);
    return status;
}

/* Fills the fields of the report that depend on one point. */
static cgam_status fill_report(cgam_observer *obs, const cgam_look *look, double *size)
{
    cgam_flow_report *r = obs->report;
    r->time = look->time;
    r->energy_end = cgam_work_energy(look->work, look->index);
    measure_point(obs, look, &r->residual, size);
    return cgam_work_power(look->work, look->index, look->rate, &r->power);
}

/* Measures the rise above the lowest energy since the last clamp; a rise beyond the tolerance ends the flow. */
static void hold_energy(cgam_observer *obs, const cgam_look *look)
{
    cgam_flow_report *r = obs->report;
    double rise = r->energy_end - obs->lowest;
    if (rise > r->energy_rise) {
        r->energy_rise = rise;
        r->rise_time = look->time;
    }
    obs->lowest = fmin(obs->lowest, r->energy_end);
    if (rise <= obs->flow->opts.energy_tol * cgam_work_magnitude(look->work, look->index)) return;
    obs->over = true;
    r->end = CGAM_FLOW_ROSE;
}

/* Settled and steady: events of a point, each at most once per stretch. They end a flow only if no clamp changes
 * later. */
static unsigned find_events(cgam_observer *obs, const cgam_look *look, double size)
{
    const cgam_flow_opts *o = &obs->flow->opts;
    cgam_flow_report *r = obs->report;
    unsigned events = 0;
    double magnitude = cgam_work_magnitude(look->work, look->index);
    if (!obs->settled && o->settle > 0 && -r->power * obs->slowest <= o->settle * magnitude) {
        obs->settled = true;
        r->settled = look->time;
        events |= CGAM_EVENT_SETTLED;
    }
    if (!obs->steady && o->steady > 0 && r->residual <= o->steady * fmax(size, 1)) {
        obs->steady = true;
        events |= CGAM_EVENT_STEADY;
    }
    if (obs->over || !obs->last) return events;
    obs->over = events & o->stop & (CGAM_EVENT_STEADY | CGAM_EVENT_SETTLED);
    if (obs->over)
        r->end = events & o->stop & CGAM_EVENT_STEADY ? CGAM_FLOW_STEADY : CGAM_FLOW_SETTLED;
    return events;
}

/* ---- during the flow ------------------------------------------------------------------------ */

static cgam_status make_probe(cgam_observer *obs)
{
    const cgam_flow_opts *o = &obs->flow->opts;
    cgam_work_free(obs->probe);
    obs->probe = NULL;
    if (!o->monitor && !(o->stop & CGAM_EVENT_WINNER)) return CGAM_OK;
    if (o->sample <= 0 && o->watch < 0) return CGAM_OK;
    return cgam_work_new(obs->flow->net, &(cgam_work_opts){1, obs->clamped, false, 0}, &obs->probe);
}

cgam_status cgam_observer_begin(cgam_observer *obs, int stretch, const cgam_look *look)
{
    cgam_flow_report *r = obs->report;
    double size;
    cgam_flow_clamp(obs->flow, stretch, obs->state, obs->clamped, NULL);
    obs->slowest = cgam_flow_slowest(obs->flow, obs->clamped);
    obs->last = stretch == obs->flow->stretches - 1;
    obs->settled = obs->steady = false;
    r->settled = NAN;
    obs->time = look->time;
    cgam_status status = make_probe(obs);
    if (status == CGAM_OK) status = fill_report(obs, look, &size);
    if (status != CGAM_OK) return status;
    obs->lowest = r->energy_end;
    if (stretch == 0) r->energy_start = r->energy_end;
    unsigned events = stretch == 0 ? CGAM_EVENT_START | CGAM_EVENT_SAMPLE : CGAM_EVENT_CLAMP;
    if (stretch == 0) obs->samples = 1; /* the grid begins at 0 */
    int64_t winner = winner_of(obs, look->x);
    if (stretch > 0 && winner != r->winner) {
        r->winner_changes++;
        r->winner_time = look->time;
        events |= CGAM_EVENT_WINNER;
    }
    r->winner = winner;
    events |= find_events(obs, look, size);
    if (obs->over) events |= CGAM_EVENT_END;
    call_monitor(obs, look, events, r->power, r->residual);
    return CGAM_OK;
}

/* Finds the time of a change of winner between two times; at the first the known winner still leads. */
static cgam_status find_change(cgam_observer *obs, double low, double end,
                               cgam_flow_between between, void *step, double *time)
{
    double high = end;
    cgam_status status = CGAM_OK;
    for (int i = 0; i < BISECTIONS && status == CGAM_OK && high - low > 1e-12 * end; i++) {
        double middle = 0.5 * (low + high);
        status = between(step, middle, obs->x);
        if (status == CGAM_OK && winner_of(obs, obs->x) == obs->report->winner) low = middle;
        else high = middle;
    }
    *time = high;
    return status;
}

/* Reports grid times up to `until`, including the last if a step ends there. */
static cgam_status report_samples(cgam_observer *obs, double until, cgam_flow_between between,
                                  void *step)
{
    const cgam_flow_opts *o = &obs->flow->opts;
    cgam_status status = CGAM_OK;
    if (!o->monitor || o->sample <= 0) return CGAM_OK;
    while (status == CGAM_OK && !obs->over && (double)obs->samples * o->sample < until) {
        status =
            report_between(obs, (double)obs->samples * o->sample, between, step, CGAM_EVENT_SAMPLE);
        obs->samples++;
    }
    return status;
}

/* Reports one change; ends the flow if CGAM_EVENT_WINNER is among the stops. */
static cgam_status report_change(cgam_observer *obs, double time, cgam_flow_between between,
                                 void *step, const double **moved)
{
    const cgam_flow_opts *o = &obs->flow->opts;
    cgam_flow_report *r = obs->report;
    bool stops = o->stop & CGAM_EVENT_WINNER;
    cgam_status status = between(step, time, obs->x);
    r->winner = winner_of(obs, obs->x);
    r->winner_changes++;
    r->winner_time = time;
    if (stops) {
        obs->over = true;
        r->end = CGAM_FLOW_WINNER;
        *moved = obs->x;
    }
    if (status == CGAM_OK && obs->probe)
        status = report_between(obs, time, between, step,
                                CGAM_EVENT_WINNER | (stops ? CGAM_EVENT_END : 0));
    if (!stops || status != CGAM_OK) return status;
    double size;
    cgam_look there = {time, obs->x, obs->rate, obs->probe, 0};
    return fill_report(obs, &there, &size);
}

/* One step may contain several changes of the winner. */
static cgam_status follow_winner(cgam_observer *obs, const cgam_look *look,
                                 cgam_flow_between between, void *step, const double **moved)
{
    int64_t winner = winner_of(obs, look->x);
    double time = obs->time;
    cgam_status status = CGAM_OK;
    for (int i = 0; i < CHANGES && status == CGAM_OK && !obs->over; i++) {
        if (obs->report->winner == winner) return CGAM_OK;
        status = find_change(obs, time, look->time, between, step, &time);
        if (status == CGAM_OK) status = report_samples(obs, time, between, step);
        if (status == CGAM_OK && !obs->over)
            status = report_change(obs, time, between, step, moved);
    }
    if (!obs->over) obs->report->winner = winner;
    return status;
}

cgam_status cgam_observer_step(cgam_observer *obs, const cgam_look *look, cgam_flow_between between,
                               void *step, const double **moved)
{
    const cgam_flow *flow = obs->flow;
    cgam_flow_report *r = obs->report;
    double size;
    r->steps++;
    cgam_status status = cgam_interrupted(flow->env) ? CGAM_E_INTERRUPTED : CGAM_OK;
    if (status == CGAM_OK) status = follow_winner(obs, look, between, step, moved);
    if (status == CGAM_OK && !obs->over) status = report_samples(obs, look->time, between, step);
    if (status != CGAM_OK || obs->over) return status;
    status = fill_report(obs, look, &size);
    if (status != CGAM_OK) return status;
    hold_energy(obs, look);
    unsigned events = find_events(obs, look, size);
    if (!obs->over && obs->last && look->time >= flow->opts.t_end) {
        obs->over = true;
        r->end = CGAM_FLOW_HORIZON;
    }
    if (!obs->over && r->steps >= flow->opts.max_steps) {
        obs->over = true;
        r->end = CGAM_FLOW_STEPS;
    }
    double grid = (double)obs->samples * flow->opts.sample;
    if (flow->opts.sample <= 0) events |= CGAM_EVENT_SAMPLE;
    else if (grid <= look->time) {
        events |= CGAM_EVENT_SAMPLE;
        obs->samples++;
    }
    if (obs->over) events |= CGAM_EVENT_END;
    if (events) call_monitor(obs, look, events, r->power, r->residual);
    obs->time = look->time;
    return CGAM_OK;
}

cgam_status cgam_observer_end(cgam_observer *obs, const cgam_look *look, cgam_flow_end end)
{
    double size;
    obs->over = true;
    obs->report->end = end;
    cgam_status status = fill_report(obs, look, &size);
    if (status == CGAM_OK)
        call_monitor(obs, look, CGAM_EVENT_END, obs->report->power, obs->report->residual);
    return status;
}
