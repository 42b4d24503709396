/* newton.c: a finish for slow coupled recalls that cannot change the fixed point they reach.
 *
 * Past the fold, Newton may converge to any critical point. It is used only if this holds:
 *
 * Basin lemma. Let s be the current point, f = softmax(beta (b + lambda s)), C = diag f - ff', and
 * theta < 1 with  theta A - lambda^2 beta C >= 0.  Let step = |plain step|_A = |grad E|_{A^-1}. A
 * point s' with |s' - s|_A <= R has scores within lambda R / sqrt(eta_min) of s's, so each f'_i lies
 * within a factor exp(2 beta lambda R / sqrt(eta_min)) =: k of f_i, variances grow at most k-fold,
 * C' <= k C, and the Hessian A - lambda^2 beta C' >= (1 - k theta) A. Choose R so that
 * k theta = (1 + theta) / 2; then E is strongly convex on that ball with modulus (1 - theta) / 2 in
 * the A-norm, and if  R > 4 step / (1 - theta)  its sublevel set around s lies inside the ball and
 * holds exactly one critical point. The plain iteration stays in that sublevel set (its segments
 * do, since E lies below the convex majorant each step minimises), so it converges to that point;
 * so does any descent method that stays in the ball, and damped Newton is such a method here.
 *
 * The condition on theta is proved by one factorisation (num/dplr_proof.c). The step solves
 *     (A - lambda^2 beta C) ds = lambda (f - pi) ,    s = A^-1 (u + lambda pi),
 * a diagonal-plus-rank-(d+1) system; pi then moves by (f - pi) + lambda beta C ds, so A itself is
 * never applied.
 *
 * Kantorovich. For any critical point near s, also a saddle. With |H^-1| <= sigma at s, gradient g there, and K =
 * beta^2 lambda^3 / sqrt 2 the Lipschitz constant of H (docs/theorems/variational.md, statement 8): if 2 K sigma^2
 * |g| < 1, there is exactly one within 2 sigma |g| of s. */
#include "memory/certify.h"
#include "memory/engines.h"

#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { NEWTON_MAX = 30, HALVINGS_MAX = 30, POLISH_MAX = 60 };
static const double HALVED = 1e-4; /* the smallest fraction of a step that is tried unguarded */

double cgam_basin_radius(double beta, double lambda, double eta_min, double theta)
{
    return sqrt(eta_min) / (2 * beta * lambda) * log1p((1 - theta) / (2 * theta));
}

double cgam_basin_theta(double beta, double lambda, double eta_min, double step, double *radius)
{
    for (double gap = 0x1p-30; gap < 1; gap *= 2) { /* theta = 1 - gap, largest first */
        *radius = cgam_basin_radius(beta, lambda, eta_min, 1 - gap);
        if (*radius > 4 * step / gap) return 1 - gap;
    }
    return -1;
}

/* H belongs to p as rounded, which is at most off away from the exact p: |C(p) - C(p')| <= 4 |p - p'|. */
cgam_status cgam_coupled_enclose(const cgam_recall *plan, const cgam_settled *m, double *p_error)
{
    const cgam_recall_opts *o = &plan->opts;
    double l2b = cgam_square_times(o->lambda, o->beta), inverse = INFINITY;
    cgam_dplr_spec spec = cgam_gate_hessian(plan->gate, 1, l2b, m->p);
    cgam_dplr *H = NULL;
    cgam_doubt doubt;
    *p_error = INFINITY;
    cgam_status status = cgam_doubt_measure(plan, m, true, false, &doubt);
    if (status == CGAM_OK) status = cgam_dplr_new(plan->bank->env, &spec, &H);
    if (status == CGAM_OK) status = cgam_dplr_inverse_norm(H, &spec, &inverse);
    cgam_dplr_free(H);
    double off = inverse * (l2b * (4 * doubt.p + 16 * CGAM_U)) * CGAM_SLACK;
    if (status != CGAM_OK || !(doubt.p < 1) || !(off < 0.5)) return status;
    double sigma = inverse / (1 - off), step = sigma * doubt.gradient;
    double bend = sigma * l2b * (o->beta * o->lambda) * 0.7072 * step * CGAM_SLACK;
    if (2 * bend < 1) *p_error = (o->beta * o->lambda * step + doubt.p) * (1 + 0x1p-18);
    return CGAM_OK;
}

typedef struct newton {
    const cgam_recall *plan;
    cgam_settled m;             /* a point s with its r and p */
    double *pi, *ds, *rhs;      /* [n] */
    double *s_try, *pi_try;     /* [n] */
    double *s_first, *pi_first; /* [n] the centre of the ball */
    double radius;              /* its radius in the A-norm */
} newton;

/* E(s) = (lambda pi's - u's) / 2 - lse / beta, u's = 2 half_us0 + lambda s0'pi. */
double cgam_coupled_energy_at(const cgam_recall *plan, cgam_settled *m, const double *s,
                              const double *pi)
{
    double lambda = plan->opts.lambda, feedback;
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_SUM(feedback)) {
        m->r[i] = m->in.b[i] + lambda * s[i];
        feedback += pi[i] * (s[i] - m->in.s0[i]);
    }
    cgam_activate(plan, m->r, m->p, &m->act);
    return 0.5 * lambda * feedback - m->in.half_us0 - m->act.lse / plan->opts.beta;
}

cgam_status cgam_coupled_direction(const cgam_recall *plan, const double *p, const double *pi,
                                   double *slopes, double *ds, double *dpi)
{
    const cgam_recall_opts *o = &plan->opts;
    const cgam_rows *Z = &plan->bank->Z;
    double scale = o->lambda * o->beta * cgam_recall_slopes(plan, p, slopes);
    cgam_dplr_spec spec = cgam_gate_hessian(plan->gate, 1, o->lambda * scale, slopes);
    cgam_dplr *H;
    CGAM_EACH_ROW(Z, i) dpi[i] = o->lambda * (p[i] - pi[i]);
    cgam_status status = cgam_dplr_new(plan->bank->env, &spec, &H);
    if (status == CGAM_OK) status = cgam_dplr_solve(H, dpi, ds, NULL);
    cgam_dplr_free(H);
    if (status != CGAM_OK) return status;
    double mean = cgam_vec_dot(Z, slopes, ds);
    CGAM_EACH_ROW(Z, i) dpi[i] = (p[i] - pi[i]) + scale * slopes[i] * (ds[i] - mean);
    return CGAM_OK;
}

/* Returns |p - pi|_2 at (s, pi), where m gets r, p and the energy; INFINITY if a number is NaN. */
static double residual_at(const cgam_recall *plan, cgam_settled *m, const double *s,
                          const double *pi)
{
    double squares;
    m->trace.energy_end = cgam_coupled_energy_at(plan, m, s, pi);
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_SUM(squares))
        squares += (m->p[i] - pi[i]) * (m->p[i] - pi[i]);
    return isfinite(m->trace.energy_end) && !isnan(squares) ? sqrt(squares) : INFINITY;
}

/* Halves each step, down to HALVED, until the residual falls. Ends when the residual is within tol, or as small as
 * rounding allows. */
cgam_status cgam_coupled_polish(const cgam_recall *plan, cgam_settled *m, const double *start,
                                double *work, double *residual, double *length)
{
    const cgam_rows *Z = &plan->bank->Z;
    int64_t n = cgam_vec_size(Z);
    double *s = work, *pi = s + n, *ds = pi + n, *dpi = ds + n, *s_try = dpi + n;
    double *pi_try = s_try + n, tol = fmin(plan->opts.tol, 1e-12), next = INFINITY;
    cgam_vec_copy(Z, pi, start);
    cgam_status status = cgam_gate_solve(plan->gate, pi, s, NULL);
    if (status != CGAM_OK) return status;
    CGAM_EACH_ROW(Z, i) s[i] = m->in.s0[i] + plan->opts.lambda * s[i];
    *residual = residual_at(plan, m, s, pi);
    *length = 0;
    for (int k = 0; k < POLISH_MAX && isfinite(*residual); k++) {
        if (cgam_interrupted(plan->bank->env)) return CGAM_E_INTERRUPTED;
        status = cgam_coupled_direction(plan, m->p, pi, s_try, ds, dpi);
        if (status == CGAM_E_SINGULAR) *residual = INFINITY;
        if (status != CGAM_OK) return status == CGAM_E_SINGULAR ? CGAM_OK : status;
        for (double t = 1; t > HALVED; t /= 2) {
            CGAM_EACH_ROW(Z, i) {
                s_try[i] = s[i] + t * ds[i];
                pi_try[i] = pi[i] + t * dpi[i];
            }
            next = residual_at(plan, m, s_try, pi_try);
            if (next <= (1 - t / 4) * *residual) break;
        }
        *length = cgam_vec_norm(Z, ds);
        if (!(next < *residual)) break;
        cgam_vec_copy(Z, s, s_try);
        cgam_vec_copy(Z, pi, pi_try);
        *residual = next;
        if (*residual <= tol * 0x1p-4) break;
    }
    *residual = residual_at(plan, m, s, pi); /* sets m to that point */
    cgam_vec_copy(Z, m->s, s);
    return CGAM_OK;
}

/* Is the trial point within the ball? A (s - s_first) = lambda (pi - pi_first). */
static bool inside_ball(const newton *w)
{
    double square;
    CGAM_REDUCE(&w->plan->bank->Z, i, CGAM_SUM(square))
        square += (w->s_try[i] - w->s_first[i]) * (w->pi_try[i] - w->pi_first[i]);
    return w->plan->opts.lambda * square <= w->radius * w->radius;
}

/* Does the lemma hold here? m->s = A^-1 (u + lambda pi), m->p = f at that s. */
static cgam_status check_basin(newton *w, bool *safe)
{
    const cgam_recall *plan = w->plan;
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    *safe = false;
    double eta = plan->gate->eta_least;
    if (!(eta > 0)) return CGAM_OK;
    CGAM_EACH_ROW(Z, i) w->rhs[i] = w->m.p[i] - w->pi[i];
    cgam_status status = cgam_gate_solve(plan->gate, w->rhs, w->ds, NULL);
    if (status != CGAM_OK) return status;
    double step = o->lambda * sqrt(fmax(cgam_vec_dot(&plan->bank->Z, w->rhs, w->ds), 0));
    double theta = cgam_basin_theta(o->beta, o->lambda, eta, step, &w->radius);
    if (theta < 0) return CGAM_OK;
    cgam_dplr_spec spec =
        cgam_gate_hessian(plan->gate, theta, o->lambda * o->lambda * o->beta, w->m.p);
    return cgam_dplr_above(env, &spec, 0, safe);
}

/* One damped step; *done when the gradient is within the tolerance or E stops falling. */
static cgam_status newton_step(newton *w, double *energy, bool *done)
{
    const cgam_recall_opts *o = &w->plan->opts;
    cgam_settled *m = &w->m;
    const cgam_rows *Z = &w->plan->bank->Z;
    double length = 1;
    *done = cgam_vec_max_diff(Z, m->p, w->pi) <= 0.1 * o->tol;
    if (*done) return cgam_rows_status(Z);
    cgam_status status = cgam_coupled_direction(w->plan, m->p, w->pi, w->s_try, w->ds, w->rhs);
    if (status != CGAM_OK) return status;
    for (int half = 0; half < HALVINGS_MAX; half++, length *= 0.5) {
        CGAM_EACH_ROW(Z, i) {
            w->s_try[i] = m->s[i] + length * w->ds[i];
            w->pi_try[i] = w->pi[i] + length * w->rhs[i];
        }
        if (!inside_ball(w)) continue;
        double value = cgam_coupled_energy_at(w->plan, m, w->s_try, w->pi_try);
        /* near the end E is flat to rounding, so equal within rounding counts as falling */
        if (value <= *energy + 8 * 0x1p-53 * (fabs(*energy) + fabs(m->act.lse) / o->beta)) {
            cgam_vec_copy(Z, m->s, w->s_try);
            cgam_vec_copy(Z, w->pi, w->pi_try);
            *energy = value;
            m->trace.newton_steps++;
            return CGAM_OK;
        }
    }
    cgam_coupled_energy_at(w->plan, m, m->s, w->pi); /* no descent: restore the point */
    *done = true;
    return CGAM_OK;
}

cgam_status cgam_coupled_newton(const cgam_recall *plan, cgam_iterating *x, bool *moved)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    double lambda = plan->opts.lambda, energy = 0;
    *moved = false;
    double *work = cgam_vec_new(env, Z, 8);
    if (!work) return cgam_fail_nomem(env, "a Newton step");
    double *part[8];
    for (int k = 0; k < 8; k++) part[k] = work + k * cgam_vec_size(Z);
    newton w = {.plan = plan,
                .m = {.in = x->in, .s = part[0], .r = x->r_new, .p = x->p_new},
                .pi = part[1],
                .ds = part[2],
                .rhs = part[3],
                .s_try = part[4],
                .pi_try = part[5],
                .s_first = part[6],
                .pi_first = part[7]};
    cgam_settled *m = &w.m;
    /* The iteration computed r from p_old and then p_new from r, so r belongs to p_old; one more solve for p_new
     * makes both agree. */
    bool safe = false;
    cgam_vec_copy(Z, w.pi, m->p);
    cgam_status status = cgam_gate_solve(plan->gate, w.pi, m->s, NULL);
    if (status == CGAM_OK) {
        CGAM_EACH_ROW(Z, i) m->s[i] = m->in.s0[i] + lambda * m->s[i];
        energy = cgam_coupled_energy_at(plan, m, m->s, w.pi);
        cgam_vec_copy(Z, w.s_first, m->s);
        cgam_vec_copy(Z, w.pi_first, w.pi);
        status = check_basin(&w, &safe);
    }
    bool done = !safe;
    if (safe) { /* p is now one plain step further, in any case */
        *moved = true;
        x->trace.iterations++;
        cgam_iterating_energy(x, energy, true);
    } else { /* the plain iteration continues, with the same bits as without this check */
        cgam_vec_copy(Z, m->p, w.pi);
    }
    for (int k = 0; k < NEWTON_MAX && !done && status == CGAM_OK; k++) {
        status = newton_step(&w, &energy, &done);
        x->trace.iterations++;
    }
    if (safe && status == CGAM_OK) {
        cgam_iterating_energy(x, energy, true);
        x->trace.change = 0; /* the next plain step measures it */
        x->trace.rate = 0;
    }
    x->trace.newton_steps += m->trace.newton_steps;
    x->act = m->act;
    x->newton_after = x->trace.iterations + (safe ? 50 : x->trace.iterations);
    cgam_vec_free(env, Z, work);
    return status;
}
