/* learner_steady.c: gradients at a steady state.
 *
 * x = F(a(x)) holds at the end. With D = dF/da, symmetric, H = da/dx, symmetric and at least 0, and g = dloss/da,
 *   (1 - H D) l = H g,   dloss/dtheta = l' dF/dtheta + (g + D l)' da/dtheta .
 * l = H m with (1 - D H) m = g. This operator is self-adjoint in the inner product <u, H v>, and positive there if the
 * state is stable: conjugate gradients need one H and one D an iteration, find out if it is not, and their coefficients
 * give its least eigenvalue (Lanczos). All states of a lane advance together, so each D is one pass over the weights.
 *
 * Equilibrium propagation takes (dE/dtheta at x+ - dE/dtheta at x-) / (2 nudge), where x+- are steady states of
 * E +- nudge loss: d/dnudge of dE/dtheta along the steady states is dloss/dtheta (Scellier and Bengio 2017). */
#include "net/learner.h"

#include "base/alloc.h"
#include "base/blas.h"

#include <cgam/flow.h>
#include <math.h>
#include <string.h>

enum { ITERATIONS = 400 };

/* ---- the steady state ----------------------------------------------------------------------- */

/* |currents - x| of a state, relative to the largest |x| or 1; NaN if a number is not finite. */
static double residual_of(const cgam_lane *a, const double *x, const double *current)
{
    const cgam_net *net = a->of->net;
    double largest = 1, off = 0;
    for (int i = 0; i < net->layers; i++) {
        const cgam_layer *layer = &net->layer[i];
        for (int64_t j = layer->offset; j < layer->offset + layer->size; j++) {
            if (a->of->clamped[i]) continue;
            largest = fmax(largest, fabs(x[j]));
            if (!isfinite(current[j])) return NAN;
            off = fmax(off, fabs(current[j] - x[j]));
        }
    }
    return off / largest;
}

static void move(const cgam_lane *a, double *x, const double *current)
{
    const cgam_net *net = a->of->net;
    for (int i = 0; i < net->layers; i++) {
        const cgam_layer *layer = &net->layer[i];
        double h = a->of->opts.step * a->of->fastest / layer->tau;
        for (int64_t j = layer->offset; !a->of->clamped[i] && j < layer->offset + layer->size; j++)
            x[j] += h * (current[j] - x[j]);
    }
}

/* A state that fixed steps did not settle, by the adaptive flow. */
static cgam_status settle_slowly(cgam_lane *a, int64_t state, double *x)
{
    const cgam_net_learner *l = a->of;
    cgam_clamp *clamps = NULL;
    cgam_flow_opts o = cgam_flow_opts_default();
    cgam_flow_report r;
    cgam_status status = cgam_alloc_all(l->env, "clamps", CGAM_ZEROS(clamps, l->net->layers));
    if (status != CGAM_OK) return status;
    double slowest = 0;
    for (int i = 0; i < l->net->layers; i++) {
        slowest = fmax(slowest, l->net->layer[i].tau);
        if (l->clamped[i]) clamps[o.clamp_count++] = (cgam_clamp){.layer = i, .to = INFINITY};
    }
    o.clamps = clamps;
    o.t_end = 1000 * slowest;
    o.steady = l->opts.steady;
    o.rtol = fmax(0.1 * o.steady, 1e-13);
    o.atol = 0.1 * o.rtol;
    status = cgam_flow_run(l->net, 1, x, &o, &r);
    cgam_free(l->env, clamps);
    if (status == CGAM_OK && r.end != CGAM_FLOW_STEADY)
        return cgam_fail(l->env, CGAM_E_VALUE,
                         "state %lld did not settle: the flow ended with '%s', |x - F(x)| is %.3g",
                         (long long)(a->first + state), cgam_word(cgam_flow_end_words, r.end),
                         r.residual);
    return status;
}

/* Steps until all states are steady; those that are do not move. *left = how many are not. */
static cgam_status settle_together(cgam_lane *a, double *x, double nudge, int64_t steps,
                                   int64_t *left)
{
    const cgam_net_learner *l = a->of;
    const int64_t size = l->net->size, most = steps > 0 ? steps : l->opts.max_steps;
    for (int64_t t = 0;; t++) {
        double kept = a->total;
        if (cgam_interrupted(l->env)) return CGAM_E_INTERRUPTED;
        cgam_status status = cgam_work_eval(a->work, a->count, x);
        const double *act = cgam_work_activation(a->work), *current = cgam_work_current(a->work);
        if (status == CGAM_OK && nudge != 0) status = cgam_lane_losses(a, act, a->slope);
        if (status != CGAM_OK) return status;
        a->total = kept; /* the loss counts once, without a nudge */
        if (t > a->report.steps) a->report.steps = t;
        if (steps > 0 && t == steps) return CGAM_OK;
        *left = 0;
        a->report.residual = 0;
        for (int64_t k = 0; k < a->count; k++) {
            double *pull = a->change; /* [size] */
            for (int64_t j = 0; j < size; j++)
                pull[j] = current[k * size + j] - (nudge != 0 ? nudge * a->slope[k * size + j] : 0);
            double off = residual_of(a, x + k * size, pull);
            a->report.residual = fmax(a->report.residual, off);
            if (isnan(off))
                return cgam_fail(l->env, CGAM_E_VALUE,
                                 "state %lld leaves the range of double after %lld steps; use a "
                                 "smaller step-size",
                                 (long long)(a->first + k), (long long)t);
            if (steps == 0 && off <= l->opts.steady) continue;
            ++*left;
            if (t < most) move(a, x + k * size, pull);
        }
        if (*left == 0 || t >= most) return CGAM_OK;
    }
}

cgam_status cgam_lane_settle(cgam_lane *a, double *x, double nudge, int64_t steps)
{
    const cgam_net_learner *l = a->of;
    const int64_t size = l->net->size;
    int64_t left = 0;
    cgam_status status = settle_together(a, x, nudge, steps, &left);
    if (status != CGAM_OK || steps > 0 || left == 0) return status;
    if (nudge != 0)
        return cgam_fail(l->env, CGAM_E_VALUE,
                         "%lld nudged states did not settle in %lld steps, |x - F(x)| is %.3g; use "
                         "a smaller nudge or step-size",
                         (long long)left, (long long)l->opts.max_steps, a->report.residual);
    const double *current = cgam_work_current(a->work);
    for (int64_t k = 0; k < a->count && status == CGAM_OK; k++)
        if (residual_of(a, x + k * size, current + k * size) > l->opts.steady)
            status = settle_slowly(a, k, x + k * size);
    if (status == CGAM_OK) status = cgam_work_eval(a->work, a->count, x);
    for (int64_t k = 0; k < a->count && status == CGAM_OK; k++)
        a->report.residual =
            fmax(k ? a->report.residual : 0, residual_of(a, x + k * size, current + k * size));
    return status;
}

/* ---- implicit ------------------------------------------------------------------------------- */

/* Conjugate gradients of one state. */
typedef struct cg {
    double rho, rho0, last; /* <r, H r>, at the start, beta / alpha of the last iteration */
    double diagonal[ITERATIONS], beside[ITERATIONS]; /* of the Lanczos matrix */
    int64_t iterations;
    bool done;
} cg;

static double inner(int64_t n, const double *u, const double *v)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += u[i] * v[i];
    return total;
}

/* The least eigenvalue of the Lanczos matrix; 1, that of an operator without D, if there is none. */
static double least_eigenvalue(cg *s)
{
    if (s->iterations == 0) return 1;
    lapack_int n = (lapack_int)s->iterations;
    if (LAPACKE_dsterf(n, s->diagonal, s->beside) != 0) return NAN;
    return s->diagonal[0];
}

static cgam_status no_gradient(const cgam_lane *a, int64_t state, double margin)
{
    return cgam_fail(a->of->env, CGAM_E_NOT_POSITIVE,
                     "state %lld is at a fold or is not stable, so its gradient means nothing: the "
                     "least eigenvalue of 1 - D H is %.3g, |x - F(x)| is %.3g",
                     (long long)(a->first + state), margin, a->report.residual);
}

/* One iteration of one state: p, z = H p, q = (1 - D H) p. Fails if <p, H q> is not above 0. */
static cgam_status advance(cgam_lane *a, int64_t k, cg *s, double *m, double *r, const double *p,
                           const double *z, const double *change)
{
    const int64_t n = a->of->net->size;
    double curved = 0, beta_over_alpha = s->last;
    for (int64_t i = 0; i < n; i++) curved += z[i] * (p[i] - change[i]);
    double length = inner(n, p, z);
    if (!(curved > 0)) return no_gradient(a, k, curved / length);
    double alpha = s->rho / curved;
    for (int64_t i = 0; i < n; i++) {
        m[i] += alpha * p[i];
        r[i] -= alpha * (p[i] - change[i]);
    }
    s->diagonal[s->iterations] = 1 / alpha + beta_over_alpha;
    s->beside[s->iterations++] = 1 / alpha; /* times sqrt(beta), which is not known yet */
    return CGAM_OK;
}

/* (1 - D H) m = slope, m in a->m and H m in a->v. */
static cgam_status solve(cgam_lane *a, cg *state)
{
    const cgam_net_learner *l = a->of;
    const int64_t size = l->net->size, n = a->count * size;
    double *m = a->m, *r = a->more, *p = a->more + n, *z = a->more + 2 * n, *Hr = a->v;
    memset(m, 0, (size_t)n * sizeof *m);
    memcpy(r, a->slope, (size_t)n * sizeof *r);
    memcpy(p, r, (size_t)n * sizeof *p);
    cgam_status status = cgam_work_hessian(a->work, a->count, r, z);
    int64_t left = 0;
    for (int64_t k = 0; k < a->count && status == CGAM_OK; k++) {
        cg *s = &state[k];
        s->rho = s->rho0 = inner(size, r + k * size, z + k * size);
        s->last = 0;
        s->iterations = 0;
        s->done = !(s->rho > 0);
        left += !s->done;
    }
    for (int64_t t = 0; left > 0 && t < ITERATIONS && status == CGAM_OK; t++) {
        status = cgam_work_curvature(a->work, a->count, z, a->change);
        for (int64_t k = 0; k < a->count && status == CGAM_OK; k++)
            if (!state[k].done)
                status = advance(a, k, &state[k], m + k * size, r + k * size, p + k * size,
                                 z + k * size, a->change + k * size);
        if (status == CGAM_OK) status = cgam_work_hessian(a->work, a->count, r, Hr);
        for (int64_t k = 0; k < a->count && status == CGAM_OK; k++) {
            cg *s = &state[k];
            if (s->done) continue;
            double rho = inner(size, r + k * size, Hr + k * size), beta = rho / s->rho;
            double *beside = &s->beside[s->iterations - 1];
            s->last = beta * *beside;
            *beside *= sqrt(beta);
            s->rho = rho;
            s->done = rho <= l->opts.tol * l->opts.tol * s->rho0;
            left -= s->done;
            for (int64_t i = k * size; i < (k + 1) * size; i++) {
                p[i] = r[i] + beta * p[i];
                z[i] = Hr[i] + beta * z[i];
            }
        }
    }
    return status == CGAM_OK ? cgam_work_hessian(a->work, a->count, m, a->v) : status;
}

cgam_status cgam_lane_implicit(cgam_lane *a, double *x)
{
    const cgam_net_learner *l = a->of;
    const int64_t n = a->count * l->net->size;
    cgam_status status = cgam_lane_settle(a, x, 0, 0);
    const double *act = cgam_work_activation(a->work);
    if (status == CGAM_OK) status = cgam_lane_losses(a, act, l->gradient ? a->slope : NULL);
    if (status != CGAM_OK || !l->gradient) return status;
    cg *state = cgam_alloc(l->env, (size_t)a->count, sizeof *state);
    if (!state) return cgam_fail_nomem(l->env, "the gradient of a network");
    status = solve(a, state);
    for (int64_t k = 0; k < a->count && status == CGAM_OK; k++) {
        cg *s = &state[k];
        double margin = least_eigenvalue(s);
        if (s->iterations > a->report.iterations) a->report.iterations = s->iterations;
        a->report.margin = fmin(a->report.margin, margin);
        /* an error e of x moves the margin by about e, and e is the residual over the margin */
        if (!s->done || !(margin > sqrt(a->report.residual))) status = no_gradient(a, k, margin);
    }
    cgam_free(l->env, state);
    if (status == CGAM_OK)
        status = l->params->layers ? cgam_work_curvature(a->work, a->count, a->v, a->change)
                                   : cgam_work_feed(a->work, a->count, a->v);
    if (status == CGAM_OK)
        status = cgam_gradient_add(a->work, l->params, true, -1, a->spare, a->gradient);
    if (status != CGAM_OK || !l->params->layers) return status;
    for (int64_t i = 0; i < n; i++) a->change[i] += a->slope[i]; /* m, where H is 0 too */
    return cgam_gradient_layers(l->params, a->count, x, act, a->change, a->spare, a->gradient);
}

/* ---- equilibrium propagation ---------------------------------------------------------------- */

cgam_status cgam_lane_equilibrium(cgam_lane *a, double *x)
{
    const cgam_net_learner *l = a->of;
    const double nudge = l->opts.nudge;
    const int64_t n = a->count * l->net->size;
    cgam_status status = cgam_lane_settle(a, x, 0, 0);
    if (status == CGAM_OK) status = cgam_lane_losses(a, cgam_work_activation(a->work), NULL);
    if (!l->gradient) return status;
    double residual = a->report.residual;
    for (int side = 1; side >= -1 && status == CGAM_OK; side -= 2) {
        memcpy(a->v, x, (size_t)n * sizeof *x);
        status = cgam_lane_settle(a, a->v, side * nudge, l->opts.nudged_steps);
        if (status == CGAM_OK)
            status = cgam_gradient_add(a->work, l->params, false, side / (2 * nudge), a->spare,
                                       a->gradient);
        residual = fmax(residual, l->opts.nudged_steps ? 0 : a->report.residual);
    }
    a->report.residual = residual;
    return status;
}
