/* small_coupled.c: coupled recalls on small banks (small.h), for all queries of a tile at once.
 *
 * The plain iteration is that of coupled.c. Anderson's method with a window of two replaces it where it cannot lead
 * to another fixed point: if there is only one (contraction below 1), or in the ball of the basin lemma (newton.c),
 * whose theta is the local contraction that p proves without further work. A step that would leave the ball returns
 * to the point where it was entered, and a step that raises the energy is undone. Queries that are still slow go to
 * coupled.c, which has Newton's method. */
#include "memory/engines.h"
#include "memory/small_parts.h"
#include "num/rounding.h"

#include <math.h>
#include <string.h>

enum {
    SLOW = 40,     /* steps, after which */
    LEFT_MAX = 200 /* an estimate of more steps than this gives up */
};

/* Computes the weights of r, their activation and the energy of the step: E = sum p (r - a) / 2 - u's0 / 2 - lse /
 * beta. */
static double weigh_scores(const cgam_small_call *job, cgam_small_query *k)
{
    k->step.w = k->vector[S];
    job->x->loops->weigh(&k->step);
    memcpy(k->sums, k->step.sums, sizeof k->sums);
    k->x.act = cgam_activated_softmax(k->step.beta, k->step.top, k->step.sums[0]);
    return 0.5 * k->step.gain - k->gates.half_us0 - k->x.act.lse / k->step.beta;
}

/* g[which] = Z' dinv f of the queries that just made a step. */
static void gather(const cgam_small_call *job, cgam_small_work *w, int64_t count,
                   cgam_small_query *const *k)
{
    const cgam_small *x = job->x;
    double *from[CGAM_SMALL_TILE] = {NULL}, *to[CGAM_SMALL_TILE] = {NULL};
    if (!x->dinv) return;
    cgam_small_point(count, k, false, S, from);
    cgam_small_point(count, k, true, G0, to);
    x->loops->combine(&x->Z, count, (const double *const *)from, w->sums, to);
    for (int64_t v = 0; v < count; v++)
        for (int64_t j = 0; j < x->Z.d; j++) to[v][j] /= k[v]->sums[0];
}

/* Is Anderson's method allowed from here? If the basin lemma holds at this s, f is kept as the centre. */
static bool may_mix(const cgam_small_call *job, cgam_small_query *k)
{
    const cgam_recall_opts *o = &job->plan->opts;
    double eta = job->plan->gate->eta_least, largest = 1 / k->sums[0];
    if (o->plain || !(eta > 0)) return false;
    if (job->x->unique || k->ball) return true;
    if (k->x.trace.iterations < k->x.newton_after) return false;
    double slope = largest > 0.5 ? 2 * largest * (1 - largest) : largest, few = 1 + 0x1p-18;
    double theta = o->lambda * o->lambda * o->beta * fmin(largest, slope + 0x1p-40) / eta * few;
    double step = o->lambda * sqrt(k->step.change_norm2 / eta) * few;
    if (!(theta > 0 && theta < 1)) return false;
    k->radius = cgam_basin_radius(o->beta, o->lambda, eta, theta) / few;
    if (!(k->radius > 4 * step / (1 - theta) * few)) return false;
    k->ball = true;
    k->travel = 0;
    memcpy(k->vector[CENTER], k->vector[F], (size_t)job->x->size * sizeof(double));
    memcpy(k->brief[G_CENTER], k->brief[G0], (size_t)job->x->Z.d * sizeof(double));
    return true;
}

/* Returns to the point where the ball was entered, for plain steps. */
static void leave_ball(const cgam_small_call *job, cgam_small_query *k)
{
    memcpy(k->vector[P], k->vector[CENTER], (size_t)job->x->size * sizeof(double));
    memcpy(k->brief[G], k->brief[G_CENTER], (size_t)job->x->Z.d * sizeof(double));
    k->ball = k->mixed = false;
    k->window = 0;
    k->stretch = 1;
    k->x.newton_after = 2 * k->x.trace.iterations;
}

/* Chooses Anderson's factors; 0 if the residuals do not determine them. */
static void choose_factors(const cgam_small_query *k, cgam_small_mix *x)
{
    const double *m = k->step.products;
    x->c[0] = x->c[1] = 0;
    if (k->window == 0) return;
    double det = m[0] * m[2] - m[1] * m[1];
    if (k->window > 1 && det > 0x1p-30 * m[0] * m[2]) {
        x->c[0] = (m[3] * m[2] - m[4] * m[1]) / det;
        x->c[1] = (m[4] * m[0] - m[3] * m[1]) / det;
    } else if (m[0] > 0) {
        x->c[0] = m[3] / m[0];
    }
    if (!(fabs(x->c[0]) + fabs(x->c[1]) <= 16)) x->c[0] = x->c[1] = 0;
}

/* Computes the next p with Anderson's method; f and f - p become the history. */
static void mix_step(const cgam_small_call *job, cgam_small_query *k)
{
    double **x = k->vector, **g = k->brief, eta = job->plan->gate->eta_least;
    cgam_small_mix m = {.size = job->x->size,
                        .window = k->window,
                        .f = x[F],
                        .p = x[P],
                        .f1 = x[k->window > 0 ? F1 : F],
                        .f2 = x[F2],
                        .rho2 = x[RHO2]};
    choose_factors(k, &m);
    job->x->loops->mix(&m);
    for (int64_t j = 0; job->x->dinv && j < job->x->Z.d; j++)
        g[G][j] = g[G0][j] - m.c[0] * (g[G0][j] - g[G1][j]) - m.c[1] * (g[G1][j] - g[G2][j]);
    double *p = x[P], *rho = x[RHO2], *short_g = g[G2];
    x[P] = x[F2], x[F2] = x[F1], x[F1] = x[F], x[F] = p;
    x[RHO2] = x[RHO1], x[RHO1] = rho;
    g[G2] = g[G1], g[G1] = g[G0], g[G0] = short_g;
    k->step.f = x[F];
    k->mixed = m.c[0] != 0 || m.c[1] != 0;
    k->stretch = fabs(1 - m.c[0]) + fabs(m.c[0] - m.c[1]) + fabs(m.c[1]);
    k->norm1 = sqrt(k->step.change_norm2);
    if (k->window < CGAM_SMALL_WINDOW) k->window++;
    k->travel += sqrt(m.moved);
    double away = job->plan->opts.lambda * k->travel * (1 + 0x1p-18);
    if (k->ball && !(away <= sqrt(eta) * k->radius)) leave_ball(job, k);
}

/* Sets p = f and clears the history. */
static void plain_step(cgam_small_query *k)
{
    double **x = k->vector, **g = k->brief, *p = x[P], *short_g = g[G];
    x[P] = x[F], x[F] = p;
    g[G] = g[G0], g[G0] = short_g;
    k->step.f = x[F];
    k->mixed = false;
    k->window = 0;
    k->stretch = 1;
}

/* After a bad Anderson step: continues from the plain step that it replaced. */
static void take_back(cgam_small_query *k)
{
    double **x = k->vector, **g = k->brief, *p = x[P], *short_g = g[G];
    x[P] = x[F1], x[F1] = p;
    g[G] = g[G1], g[G1] = short_g;
    k->mixed = false;
    k->window = 0;
    k->stretch = 1;
    k->travel += k->norm1;
    k->x.trace.iterations++;
}

/* Updates the state after a step; returns true if it was the last. */
static bool judge_step(const cgam_small_call *job, cgam_small_query *k, double energy, bool *worse)
{
    const cgam_recall_opts *o = &job->plan->opts;
    cgam_trace *t = &k->x.trace;
    double last = t->energy_end, noise = 4 * CGAM_U * (fabs(last) + fabs(k->x.act.lse) / o->beta);
    *worse =
        k->mixed && (!(energy <= last + noise) || !(sqrt(k->step.change_norm2) <= 2 * k->norm1));
    k->left = !isfinite(k->x.act.lse) || !isfinite(k->step.change);
    if (k->left || *worse) return k->left;
    cgam_iterating_energy(&k->x, energy, true);
    cgam_iterating_count(&k->x, k->step.change);
    if (cgam_iterating_ends(job->plan, &k->x, true)) return true;
    if (o->plain || t->iterations < SLOW) return false;
    k->left = !(t->rate < 1) || log(o->tol / t->change) / log(t->rate) > LEFT_MAX;
    return k->left;
}

/* Starts from p0 = softmax(beta a). */
static void begin(const cgam_small_call *job, cgam_small_work *w, int64_t count,
                  cgam_small_query *const *k)
{
    const cgam_small *x = job->x;
    for (int64_t v = 0; v < count; v++) {
        cgam_small_step *s = &k[v]->step;
        s->a = k[v]->vector[A];
        s->top = x->loops->join(x->size, k[v]->vector[B], k[v]->gates.s0, job->plan->opts.lambda,
                                k[v]->vector[A]);
        memcpy(k[v]->vector[R], k[v]->vector[A], (size_t)x->size * sizeof(double));
        k[v]->x = (cgam_iterating){.best = INFINITY};
        s->p = x->zeros;
        s->gain = 0;
        double energy = weigh_scores(job, k[v]);
        x->loops->settle(s);
        k[v]->x.trace.energy_start = k[v]->x.trace.energy_end = energy;
        k[v]->left = !isfinite(k[v]->x.act.lse);
    }
    gather(job, w, count, k);
    for (int64_t v = 0; v < count; v++) plain_step(k[v]);
}

/* Computes t = alpha M^-1 g, and Z t in the buffer of the scores. */
static void feed_back(const cgam_small_call *job, int64_t count, cgam_small_query *const *k)
{
    const cgam_small *x = job->x;
    double *g[CGAM_SMALL_TILE] = {NULL}, *t[CGAM_SMALL_TILE] = {NULL}, *r[CGAM_SMALL_TILE] = {NULL};
    if (!x->dinv) return;
    cgam_small_point(count, k, true, G, g);
    cgam_small_point(count, k, true, T, t);
    cgam_small_point(count, k, false, R, r);
    x->loops->score(&x->inverse, count, (const double *const *)g, t);
    for (int64_t v = 0; v < count; v++)
        for (int64_t j = 0; j < x->Z.d; j++) t[v][j] *= job->plan->gate->a;
    x->loops->score(&x->Z, count, (const double *const *)t, r);
}

cgam_status cgam_small_iterate(const cgam_small_call *job, cgam_small_work *w, int64_t count,
                               cgam_small_query *all)
{
    cgam_small_query *on[CGAM_SMALL_TILE] = {NULL};
    int64_t active = 0;
    for (int64_t v = 0; v < count; v++) on[active++] = &all[v];
    begin(job, w, active, on);
    while (active > 0) {
        int64_t kept = 0;
        bool worse[CGAM_SMALL_TILE] = {false};
        if (cgam_interrupted(job->plan->bank->env)) return CGAM_E_INTERRUPTED;
        feed_back(job, active, on);
        for (int64_t v = 0; v < active; v++) {
            cgam_small_query *k = on[v];
            k->step.p = k->vector[P];
            k->step.rho1 = k->window > 0 ? k->vector[RHO1] : NULL;
            k->step.rho2 = k->vector[k->window > 1 ? RHO2 : RHO1];
            job->x->loops->step(&k->step);
            double energy = weigh_scores(job, k);
            job->x->loops->settle(&k->step);
            if (k->left || judge_step(job, k, energy, &worse[kept])) continue;
            on[kept++] = k;
        }
        active = kept;
        gather(job, w, active, on);
        for (int64_t v = 0; v < active; v++) {
            if (worse[v]) take_back(on[v]);
            else if (may_mix(job, on[v])) mix_step(job, on[v]);
            else plain_step(on[v]);
        }
    }
    return CGAM_OK;
}
