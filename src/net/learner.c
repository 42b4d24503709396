/* learner.c: batches of losses and gradients, and explicit steps differentiated in reverse.
 *
 * A step x' = x + h (F(a(x)) - x) / tau takes a cotangent v of x' back to  v - m + H D m  with m = h v / tau, and adds
 * m' dF/dtheta + (D m)' da/dtheta to the gradient. Only the states are stored; a step is evaluated again on the way back,
 * except the last. The first step needs no H D m unless parameters of layers are learned. */
#include "net/learner.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* States of a lane, at most: enough for products of matrices, few enough for several threads. */
enum { LANE = 64, SEGMENT = 1 << 14 };

const char *const cgam_net_way_words[] = {"steps", "implicit", "adjoint", "equilibrium", NULL};

cgam_net_learn_opts cgam_net_learn_opts_default(void)
{
    return (cgam_net_learn_opts){.steps = 1,
                                 .step = 1,
                                 .steady = 1e-8,
                                 .max_steps = 1000,
                                 .tol = 1e-10,
                                 .t_end = 10,
                                 .rtol = 1e-9,
                                 .atol = 1e-11,
                                 .nudge = 1e-3};
}

void cgam_net_learner_free(cgam_net_learner *l)
{
    if (!l) return;
    for (int64_t i = 0; l->lane && i < l->lanes; i++) {
        cgam_lane *a = &l->lane[i];
        cgam_work_free(a->work);
        cgam_free_all(l->env, a->act, a->slope, a->v, a->m, a->change, a->more, a->path, a->spare,
                      a->gradient);
    }
    cgam_free_all(l->env, l->lane, l->clamped);
    cgam_free(l->env, l);
}

static cgam_status check_opts(cgam_net_learner *l)
{
    const cgam_net_learn_opts *o = &l->opts;
    const cgam_net *net = l->net;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"step", o->step},   {"steady", o->steady}, {"tol", o->tol},
                   {"t_end", o->t_end}, {"rtol", o->rtol},     {"atol", o->atol},
                   {"nudge", o->nudge}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i].value > 0) || !isfinite(numbers[i].value))
            return cgam_fail(l->env, CGAM_E_ARG, "%s is %g, it must be above 0", numbers[i].name,
                             numbers[i].value);
    if ((unsigned)o->way > CGAM_NET_EQUILIBRIUM)
        return cgam_fail(l->env, CGAM_E_ARG, "invalid way %d (valid: 0 to %d)", (int)o->way,
                         CGAM_NET_EQUILIBRIUM);
    if (o->steps < 1 || o->max_steps < 1 || o->nudged_steps < 0 || o->steps > 100000)
        return cgam_fail(l->env, CGAM_E_ARG, "steps is %lld, max_steps %lld, nudged_steps %lld",
                         (long long)o->steps, (long long)o->max_steps, (long long)o->nudged_steps);
    for (int i = 0; i < l->params->blocks; i++) {
        const cgam_block *b = &l->params->block[i];
        if (b->kind == CGAM_LEARNED_LAYER && l->clamped[b->part])
            return cgam_fail(l->env, CGAM_E_ARG, "'%s': the layer is clamped", b->name);
    }
    for (int i = 0; i < net->layers; i++)
        if (!l->clamped[i] && !(l->fastest <= net->layer[i].tau)) l->fastest = net->layer[i].tau;
    if (!(l->fastest > 0)) return cgam_fail(l->env, CGAM_E_ARG, "all layers are clamped");
    return CGAM_OK;
}

static cgam_status lane_new(cgam_net_learner *l, cgam_lane *a, int64_t count)
{
    const int64_t n = count * l->net->size;
    const bool implicit = l->opts.way == CGAM_NET_IMPLICIT;
    const bool steps = l->opts.way == CGAM_NET_STEPS;
    cgam_work_opts opts = {.batch = count, .clamped = l->clamped, .tangents = count};
    a->of = l;
    cgam_status status = cgam_work_new(l->net, &opts, &a->work);
    if (status != CGAM_OK) return status;
    cgam_work_pair(a->work);
    cgam_work_hurry(a->work);
    return cgam_alloc_all(l->env, "the states of a training", CGAM_ARRAY(a->act, n),
                          CGAM_ARRAY(a->slope, n), CGAM_ARRAY(a->v, n), CGAM_ARRAY(a->m, n),
                          CGAM_ARRAY(a->change, n), CGAM_ARRAY(a->more, implicit ? 3 * n : 1),
                          CGAM_ARRAY(a->path, steps ? l->opts.steps * n : 1),
                          CGAM_ARRAY(a->spare, 3 * l->net->size),
                          CGAM_ARRAY(a->gradient, l->params->count));
}

cgam_status cgam_net_learner_new(const cgam_net_params *params, const cgam_net_learn_opts *opts,
                                 int64_t batch, cgam_net_learner **out)
{
    *out = NULL;
    cgam_env *env = params->env;
    const cgam_net *net = params->net;
    if (batch < 1) return cgam_fail(env, CGAM_E_ARG, "a batch of %lld", (long long)batch);
    cgam_net_learner *l = cgam_zalloc(env, 1, sizeof *l);
    if (!l) return cgam_fail_nomem(env, "a training");
    *l = (cgam_net_learner){.params = params, .net = net, .env = env, .batch = batch};
    l->opts = opts ? *opts : cgam_net_learn_opts_default();
    l->lanes = (batch + LANE - 1) / LANE;
    l->fastest = NAN;
    cgam_status status = cgam_alloc_all(env, "a training", CGAM_ZEROS(l->clamped, net->layers),
                                        CGAM_ZEROS(l->lane, l->lanes));
    for (int i = 0; status == CGAM_OK && i < net->layers; i++)
        l->clamped[i] = l->opts.clamped && l->opts.clamped[i];
    l->opts.clamped = l->clamped;
    if (status == CGAM_OK) status = check_opts(l);
    for (int64_t i = 0; i < l->lanes && status == CGAM_OK; i++)
        status = lane_new(l, &l->lane[i], (batch + l->lanes - 1) / l->lanes);
    if (status != CGAM_OK) {
        cgam_net_learner_free(l);
        return status;
    }
    *out = l;
    return CGAM_OK;
}

/* ---- a lane --------------------------------------------------------------------------------- */

cgam_status cgam_lane_losses(cgam_lane *a, const double *act, double *slope)
{
    const cgam_net_learner *l = a->of;
    const int64_t size = l->net->size;
    if (slope) memset(slope, 0, (size_t)(a->count * size) * sizeof *slope);
    for (int64_t k = 0; k < a->count; k++) {
        double loss = 0;
        cgam_status status = l->loss->eval(l->loss->user, a->first + k, act + k * size, &loss,
                                           slope ? slope + k * size : NULL);
        if (status != CGAM_OK) return status;
        a->total += loss;
    }
    return CGAM_OK;
}

/* Activations at states x, without a work. */
static cgam_status activate(const cgam_lane *a, const double *x, double *act)
{
    const cgam_net *net = a->of->net;
    for (int64_t k = 0; k < a->count; k++)
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            int64_t at = k * net->size + layer->offset;
            cgam_status status = cgam_lagr_use_activate(&layer->use, x + at, act + at, NULL);
            if (status != CGAM_OK)
                return cgam_work_complain(a->work, status, "layer", layer->name, x + at,
                                          layer->size);
        }
    return CGAM_OK;
}

/* v = H slope at states x with activations act. */
static cgam_status pull_activation(const cgam_lane *a, const double *x, const double *act,
                                   const double *slope, double *v)
{
    const cgam_net *net = a->of->net;
    cgam_status status = CGAM_OK;
    memset(v, 0, (size_t)(a->count * net->size) * sizeof *v);
    for (int64_t k = 0; k < a->count; k++)
        for (int i = 0; i < net->layers && status == CGAM_OK; i++) {
            const cgam_layer *layer = &net->layer[i];
            int64_t at = k * net->size + layer->offset;
            if (a->of->clamped[i]) continue;
            status =
                cgam_lagr_use_hessian(&layer->use, x + at, act + at, slope + at, a->spare, v + at);
        }
    return status;
}

/* out = h v / tau, 0 where clamped. */
static void scale_step(const cgam_lane *a, const double *v, double *out)
{
    const cgam_net *net = a->of->net;
    memset(out, 0, (size_t)(a->count * net->size) * sizeof *out);
    for (int64_t k = 0; k < a->count; k++)
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            int64_t at = k * net->size + layer->offset, end = at + layer->size;
            for (; !a->of->clamped[i] && at < end; at++)
                out[at] = a->of->opts.step * v[at] / layer->tau;
        }
}

static cgam_status back_step(cgam_lane *a, int64_t t)
{
    const cgam_net_params *params = a->of->params;
    const int64_t n = a->count * a->of->net->size;
    const double *x = a->path + t * n;
    bool whole = t > 0 || params->layers;
    cgam_status status = CGAM_OK;
    if (t < a->of->opts.steps - 1) {
        cgam_work_refresh(a->work);
        status = cgam_work_eval(a->work, a->count, x);
    }
    scale_step(a, a->v, a->m);
    if (status == CGAM_OK)
        status = whole ? cgam_work_curvature(a->work, a->count, a->m, a->change)
                       : cgam_work_feed(a->work, a->count, a->m);
    if (status == CGAM_OK)
        status = cgam_gradient_add(a->work, params, true, -1, a->spare, a->gradient);
    if (!whole || status != CGAM_OK) return status;
    const double *act = cgam_work_activation(a->work);
    status = cgam_gradient_layers(params, a->count, x, act, a->change, a->spare, a->gradient);
    if (status != CGAM_OK || t == 0) return status;
    for (int64_t i = 0; i < n; i++) a->v[i] -= a->m[i];
    status = cgam_work_hessian(a->work, a->count, a->change, a->m);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) a->v[i] += a->m[i];
    return status;
}

cgam_status cgam_lane_steps(cgam_lane *a, double *x)
{
    const cgam_net_learner *l = a->of;
    const int64_t n = a->count * l->net->size;
    cgam_status status = CGAM_OK;
    for (int64_t t = 0; t < l->opts.steps && status == CGAM_OK; t++) {
        double *from = a->path + t * n;
        memcpy(from, x, (size_t)n * sizeof *x);
        status = cgam_work_eval(a->work, a->count, from);
        cgam_work_rate(a->work, a->m);
        for (int64_t i = 0; i < n; i++) x[i] += l->opts.step * a->m[i];
    }
    if (status == CGAM_OK) status = activate(a, x, a->act);
    if (status == CGAM_OK) status = cgam_lane_losses(a, a->act, l->gradient ? a->slope : NULL);
    if (status != CGAM_OK || !l->gradient) return status;
    status = pull_activation(a, x, a->act, a->slope, a->v);
    if (status == CGAM_OK)
        status =
            cgam_gradient_layers(l->params, a->count, x, a->act, a->slope, a->spare, a->gradient);
    for (int64_t t = l->opts.steps; t-- > 0 && status == CGAM_OK;) status = back_step(a, t);
    return status;
}

/* ---- a batch -------------------------------------------------------------------------------- */

static cgam_status run_lane(void *arg, int64_t i)
{
    static cgam_status (*const ways[])(cgam_lane *, double *) = {
        cgam_lane_steps, cgam_lane_implicit, cgam_lane_adjoint, cgam_lane_equilibrium};
    cgam_net_learner *l = arg;
    cgam_lane *a = &l->lane[i];
    if (a->count == 0) return CGAM_OK;
    if (cgam_interrupted(l->env)) return CGAM_E_INTERRUPTED;
    a->total = 0;
    a->report = (cgam_net_learn_report){.margin = NAN};
    if (l->gradient) memset(a->gradient, 0, (size_t)l->params->count * sizeof *a->gradient);
    cgam_work_refresh(a->work);
    return ways[l->opts.way](a, l->x + a->first * l->net->size);
}

static cgam_status add_segment(void *arg, int64_t i)
{
    cgam_net_learner *l = arg;
    int64_t from = i * SEGMENT, to = from + SEGMENT;
    if (to > l->params->count) to = l->params->count;
    memcpy(l->gradient + from, l->lane[0].gradient + from, (size_t)(to - from) * sizeof(double));
    for (int64_t k = 1; k < l->lanes && l->lane[k].count > 0; k++)
        for (int64_t j = from; j < to; j++) l->gradient[j] += l->lane[k].gradient[j];
    return CGAM_OK;
}

static void join_reports(const cgam_net_learner *l, cgam_net_learn_report *out)
{
    *out = (cgam_net_learn_report){.margin = NAN};
    for (int64_t k = 0; k < l->lanes && l->lane[k].count > 0; k++) {
        const cgam_net_learn_report *r = &l->lane[k].report;
        if (r->steps > out->steps) out->steps = r->steps;
        if (r->iterations > out->iterations) out->iterations = r->iterations;
        out->residual = fmax(out->residual, r->residual);
        out->margin = fmin(out->margin, r->margin);
    }
}

cgam_status cgam_net_learner_run(cgam_net_learner *l, int64_t batch, double *x,
                                 const cgam_net_loss *loss, double *total, double *gradient,
                                 cgam_net_learn_report *report)
{
    *total = 0;
    if (batch < 1 || batch > l->batch)
        return cgam_fail(l->env, CGAM_E_ARG, "a batch of %lld states (valid: 1 to %lld)",
                         (long long)batch, (long long)l->batch);
    cgam_status status = cgam_net_check_states(l->net, "state", batch, x);
    if (status != CGAM_OK) return status;
    l->x = x;
    l->loss = loss;
    l->gradient = gradient;
    int64_t lanes = (batch + LANE - 1) / LANE;
    for (int64_t k = 0; k < l->lanes; k++) {
        cgam_lane *a = &l->lane[k];
        a->first = k < lanes ? batch * k / lanes : batch;
        a->count = k < lanes ? batch * (k + 1) / lanes - a->first : 0;
    }
    status = cgam_parallel(l->env, lanes, run_lane, l);
    if (status != CGAM_OK) return status;
    for (int64_t k = 0; k < lanes; k++) *total += l->lane[k].total;
    if (report) join_reports(l, report);
    if (!gradient) return CGAM_OK;
    return cgam_parallel(l->env, (l->params->count + SEGMENT - 1) / SEGMENT, add_segment, l);
}

cgam_status cgam_net_params_slope(const cgam_net_params *params, int64_t batch, const double *x,
                                  double *slope)
{
    const cgam_net *net = params->net;
    cgam_work *w = NULL;
    double *spare = NULL;
    cgam_status status = cgam_net_check_states(net, "state", batch, x);
    if (status == CGAM_OK)
        status = cgam_work_new(net, &(cgam_work_opts){.batch = 1, .all = true}, &w);
    if (status == CGAM_OK)
        status = cgam_alloc_all(net->env, "a slope", CGAM_ARRAY(spare, net->size));
    memset(slope, 0, (size_t)params->count * sizeof *slope);
    for (int64_t b = 0; b < batch && status == CGAM_OK; b++) {
        cgam_work_refresh(w);
        status = cgam_work_eval(w, 1, x + b * net->size);
        if (status == CGAM_OK) status = cgam_gradient_add(w, params, false, 1, spare, slope);
    }
    cgam_free(net->env, spare);
    cgam_work_free(w);
    return status;
}
