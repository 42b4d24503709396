/* flow_fixed.c: Euler and the classical Runge-Kutta method with a fixed step, several states at once, so that they
 * share each pass over the weights. The evaluation at the end of a step is the first of the next one and the one that
 * the observer uses, so observing the energy is free. A stretch between clamps is cut into equal steps, at most as
 * long as requested. */
#include "net/flow_inside.h"

#include <math.h>
#include <string.h>

/* The unfinished states are stored side by side; `who` has their indices. */
typedef struct lane {
    const cgam_flow *flow;
    int64_t count, active;
    int64_t *who;       /* [count] index within the group */
    cgam_observer *obs; /* [count] */
    cgam_work *work;
    double *x, *rate;      /* [active, size] now */
    double *x0, *rate0;    /* at the start of the step */
    double *stage, *slope; /* of a Runge-Kutta stage */
    double *ends;          /* [count, size] of finished states */
    double time, step;
    bool stepping; /* x0 is valid */
} lane;

static void lane_free(lane *l)
{
    cgam_env *env = l->flow->env;
    for (int64_t i = 0; l->obs && i < l->count; i++) cgam_observer_free(&l->obs[i]);
    cgam_work_free(l->work);
    void *const blocks[] = {l->who,   l->obs,   l->x,     l->rate, l->x0,
                            l->rate0, l->stage, l->slope, l->ends};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
}

static cgam_status lane_new(const cgam_flow *flow, int64_t first, int64_t count,
                            cgam_flow_report *reports, lane *l)
{
    cgam_env *env = flow->env;
    size_t states = (size_t)(count * flow->net->size), n = (size_t)count;
    *l = (lane){.flow = flow, .count = count, .active = count};
    l->who = cgam_alloc(env, n, sizeof *l->who);
    l->obs = cgam_zalloc(env, n, sizeof *l->obs);
    double **const vectors[] = {&l->x, &l->rate, &l->x0, &l->rate0, &l->stage, &l->slope, &l->ends};
    bool complete = l->who && l->obs;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = cgam_alloc(env, states, sizeof **vectors[i]);
        complete = complete && *vectors[i];
    }
    if (!complete) return cgam_fail_nomem(env, "the states of a flow");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        l->who[i] = i;
        status = cgam_observer_new(flow, first + i, &reports[first + i], &l->obs[i]);
    }
    return status;
}

static cgam_status evaluate_lane(lane *l, const double *x, double *rate)
{
    cgam_status status = cgam_work_eval(l->work, l->active, x);
    if (status != CGAM_OK) return status;
    cgam_work_rate(l->work, rate);
    for (int64_t i = 0; i < l->active; i++) l->obs[l->who[i]].report->evaluations++;
    return CGAM_OK;
}

/* out = x + h slope */
static void add_scaled(const lane *l, const double *x, double h, const double *slope, double *out)
{
    int64_t n = l->active * l->flow->net->size;
    for (int64_t i = 0; i < n; i++) out[i] = x[i] + h * slope[i];
}

/* Steps from x0, rate0 to x, by h. */
static cgam_status make_step(lane *l, double h)
{
    int64_t n = l->active * l->flow->net->size;
    if (l->flow->opts.method == CGAM_FLOW_EULER) {
        add_scaled(l, l->x0, h, l->rate0, l->x);
        return CGAM_OK;
    }
    static const double reach[] = {0.5, 0.5, 1}, weight[] = {1.0 / 3, 1.0 / 3, 1.0 / 6};
    add_scaled(l, l->x0, h / 6, l->rate0, l->x);
    memcpy(l->slope, l->rate0, (size_t)n * sizeof *l->slope);
    for (int k = 0; k < 3; k++) {
        add_scaled(l, l->x0, h * reach[k], l->slope, l->stage);
        cgam_status status = evaluate_lane(l, l->stage, l->slope);
        if (status != CGAM_OK) return status;
        add_scaled(l, l->x, h * weight[k], l->slope, l->x);
    }
    return CGAM_OK;
}

typedef struct step {
    const lane *l;
    int64_t index;
} step;

/* Cubic Hermite interpolation from the states and rates at both ends. */
static cgam_status interpolate(void *arg, double time, double *out)
{
    const step *s = arg;
    const lane *l = s->l;
    int64_t size = l->flow->net->size, at = s->index * size;
    double h = l->step, t = (time - l->time) / h, u = 1 - t;
    double a0 = u * u * (1 + 2 * t), a1 = t * t * (3 - 2 * t), b0 = h * t * u * u,
           b1 = -h * t * t * u;
    for (int64_t i = at; i < at + size; i++)
        out[i - at] = a0 * l->x0[i] + a1 * l->x[i] + b0 * l->rate0[i] + b1 * l->rate[i];
    return CGAM_OK;
}

/* Removes lane position i. */
static void retire_state(lane *l, int64_t i, const double *end)
{
    int64_t size = l->flow->net->size, last = l->active - 1;
    size_t bytes = (size_t)size * sizeof *end;
    memcpy(l->ends + l->who[i] * size, end, bytes);
    if (i != last) {
        memcpy(l->x + i * size, l->x + last * size, bytes);
        memcpy(l->rate + i * size, l->rate + last * size, bytes);
        l->who[i] = l->who[last];
    }
    l->active--;
}

/* Removes the finished states, from the back so that positions stay valid. */
static void retire_over(lane *l)
{
    const int64_t size = l->flow->net->size, before = l->active;
    for (int64_t i = before; i-- > 0;)
        if (l->obs[l->who[i]].over) retire_state(l, i, l->x + i * size);
    if (l->active != before) cgam_work_refresh(l->work);
}

/* Has a state left the range? Then the previous step was its last. */
static bool is_out_of_range(const lane *l, int64_t i)
{
    int64_t size = l->flow->net->size;
    for (int64_t j = i * size; j < (i + 1) * size; j++)
        if (!(fabs(l->x[j]) <= l->flow->opts.limit)) return true;
    return false;
}

/* Runs the observers of all states at the new points. */
static cgam_status observe_all(lane *l, double time)
{
    int64_t size = l->flow->net->size;
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < l->active && status == CGAM_OK; i++) {
        cgam_observer *obs = &l->obs[l->who[i]];
        cgam_look look = {time, l->x + i * size, l->rate + i * size, l->work, i};
        const double *moved = NULL;
        step s = {l, i};
        status = cgam_observer_step(obs, &look, interpolate, &s, &moved);
        if (status == CGAM_OK && moved)
            memcpy(l->x + i * size, moved, (size_t)size * sizeof *moved);
    }
    if (status == CGAM_OK) retire_over(l);
    return status;
}

/* States beyond the limit end at the previous point, which is evaluated once more for its report. */
static cgam_status drop_diverged(lane *l)
{
    int64_t size = l->flow->net->size, before = l->active;
    cgam_status status = CGAM_OK;
    bool any = false;
    for (int64_t i = 0; i < before; i++) any = any || is_out_of_range(l, i);
    if (!any) return CGAM_OK;
    status = evaluate_lane(l, l->x0, l->rate0);
    for (int64_t i = before; i-- > 0 && status == CGAM_OK;) {
        if (!is_out_of_range(l, i)) continue;
        cgam_look look = {l->time, l->x0 + i * size, l->rate0 + i * size, l->work, i};
        status = cgam_observer_end(&l->obs[l->who[i]], &look, CGAM_FLOW_DIVERGED);
    }
    for (int64_t i = before; i-- > 0 && status == CGAM_OK;) {
        if (!l->obs[l->who[i]].over) continue;
        int64_t last = l->active - 1;
        retire_state(l, i, l->x0 + i * size);
        if (i == last) continue;
        memcpy(l->x0 + i * size, l->x0 + last * size, (size_t)size * sizeof(double));
        memcpy(l->rate0 + i * size, l->rate0 + last * size, (size_t)size * sizeof(double));
    }
    cgam_work_refresh(l->work);
    return status;
}

static cgam_status stretch_start(lane *l, int k)
{
    const cgam_flow *flow = l->flow;
    int64_t size = flow->net->size;
    cgam_work_free(l->work);
    l->work = NULL;
    for (int64_t i = 0; i < l->active; i++)
        cgam_flow_clamp(flow, k, l->obs[l->who[i]].state, l->obs[l->who[i]].clamped,
                        l->x + i * size);
    cgam_status status = cgam_work_new(
        flow->net, &(cgam_work_opts){l->active, l->obs[l->who[0]].clamped, false, 0}, &l->work);
    if (status == CGAM_OK) status = evaluate_lane(l, l->x, l->rate);
    for (int64_t i = 0; i < l->active && status == CGAM_OK; i++) {
        cgam_look look = {flow->times[k], l->x + i * size, l->rate + i * size, l->work, i};
        status = cgam_observer_begin(&l->obs[l->who[i]], k, &look);
    }
    if (status == CGAM_OK) retire_over(l);
    return status;
}

static cgam_status stretch_run(lane *l, int k)
{
    const cgam_flow *flow = l->flow;
    double from = flow->times[k], to = flow->times[k + 1];
    double wanted = ceil((to - from) / flow->opts.step * (1 - 1e-12));
    int64_t steps = wanted < 0x1p52 ? (int64_t)wanted : INT64_MAX;
    if (steps < 1) steps = 1;
    l->step = (to - from) / (double)steps;
    l->stepping = false;
    cgam_status status = stretch_start(l, k);
    l->stepping = status == CGAM_OK;
    for (int64_t i = 0; i < steps && l->active > 0 && status == CGAM_OK; i++) {
        double *swap = l->x0;
        l->x0 = l->x;
        l->x = swap;
        swap = l->rate0;
        l->rate0 = l->rate;
        l->rate = swap;
        l->time = from + (double)i * l->step;
        status = make_step(l, l->step);
        if (status == CGAM_OK) status = drop_diverged(l);
        if (status != CGAM_OK || l->active == 0) break;
        status = evaluate_lane(l, l->x, l->rate);
        if (status == CGAM_OK)
            status = observe_all(l, i + 1 == steps ? to : from + (double)(i + 1) * l->step);
    }
    return status;
}

/* An activation beyond double at a finite state: a single state ends at the previous point. */
static cgam_status end_alone(lane *l)
{
    cgam_observer *obs = &l->obs[l->who[0]];
    cgam_work_refresh(l->work);
    cgam_status status = evaluate_lane(l, l->x0, l->rate0);
    cgam_look look = {l->time, l->x0, l->rate0, l->work, 0};
    if (status == CGAM_OK) status = cgam_observer_end(obs, &look, CGAM_FLOW_DIVERGED);
    if (status == CGAM_OK) retire_state(l, 0, l->x0);
    return status;
}

cgam_status cgam_flow_fixed(const cgam_flow *flow, int64_t first, int64_t count, double *x,
                            cgam_flow_report *reports)
{
    lane l;
    int64_t size = flow->net->size;
    size_t bytes = (size_t)(count * size) * sizeof *x;
    cgam_status status = lane_new(flow, first, count, reports, &l);
    if (status == CGAM_OK) memcpy(l.x, x + first * size, bytes);
    for (int k = 0; k < flow->stretches && l.active > 0 && status == CGAM_OK; k++)
        status = stretch_run(&l, k);
    if (count == 1 && l.stepping && status == CGAM_E_VALUE) status = end_alone(&l);
    bool apart = count > 1 && status == CGAM_E_VALUE;
    if (status == CGAM_OK) memcpy(x + first * size, l.ends, bytes);
    lane_free(&l);
    /* in a group it is unknown which state caused it: restart them one by one */
    for (int64_t i = first; apart && i < first + count; i++) {
        status = cgam_flow_fixed(flow, i, 1, x, reports);
        apart = status == CGAM_OK;
    }
    return status;
}
