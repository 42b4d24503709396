/* certify.c: what can be promised about a recall, and what the promise costs.
 *
 * Free, from eta = eta_min(A) (exact or a lower bound, see gate.h) and p:
 *     |diag p - pp'| <= 2 max p_i (1 - p_i)          (row sums; SPEC section 5)
 *     contraction    =  beta lambda^2 / (2 eta)       unique if < 1
 *     fold margin   >=  eta - 2 lambda^2 beta max p (1 - p)
 *     |p - p*|      <=  by contraction, or by the basin lemma of newton.c
 * With certify: eta exact, the fold margin and the local contraction as eigenvalues, and a search
 * for a second fixed point where uniqueness is open. */
#include "memory/recall.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

enum { STARTS_MAX = 5 };

/* Bound of |p - p*|_2 where p = f(s) and the last plain step moved p by change_norm. */
static void bound_error(const cgam_recall *plan, const cgam_moment *m, double local,
                        cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, L = out->contraction;
    if (m->end == CGAM_END_DIVERGED) return;
    if (out->unique == 1) { /* Banach: from the last step, p being its end */
        out->p_error = L / (1 - L) * m->change_norm;
        out->p_error_proved = true;
    }
    /* Basin lemma with theta = the proved local bound: |s - s*|_A <= step / ((1 - theta) / 2), and
     * softmax is (beta / 2)-Lipschitz. */
    if (eta > 0 && o->lambda > 0 && out->local_contraction_proved && local < 1) {
        double step = o->lambda * m->change_norm / sqrt(eta);
        double radius = sqrt(eta) / (2 * o->beta * o->lambda) * log((1 + local) / (2 * local));
        if (radius > 4 * step / (1 - local)) {
            double bound = 0.5 * o->beta * o->lambda / sqrt(eta) * 2 * step / (1 - local);
            out->p_error = fmin(bound, isnan(out->p_error) ? INFINITY : out->p_error);
            out->p_error_proved = true;
        }
    }
    if (!out->p_error_proved && m->rate > 0 && m->rate < 1)
        out->p_error = m->rate / (1 - m->rate) * m->change_norm;
}

/* Other starts: all weight on each of the leading memories, and none on any. A fixed point apart
 * from ours is a proof that there are two. */
static cgam_status look_for_second(const cgam_recall *plan, const cgam_moment *m, cgam_result *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, leaders = n < STARTS_MAX ? n : STARTS_MAX;
    int64_t index[STARTS_MAX];
    double *room = cgam_alloc(env, (size_t)(4 * n), sizeof *room);
    if (!room) return cgam_fail_nomem(env, "a second fixed point");
    cgam_moment_top(m, n, leaders, index);
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k <= leaders && out->unique < 0 && status == CGAM_OK; k++) {
        cgam_moment other = {.b = m->b, .s0 = m->s0, .a = m->a, .half_us0 = m->half_us0};
        double *start = room + 3 * n, apart = 0;
        other.s = room;
        other.r = room + n;
        other.p = room + 2 * n;
        for (int64_t i = 0; i < n; i++) start[i] = k < leaders ? i == index[k] : 1.0 / (double)n;
        status = cgam_coupled_solve(plan, 1, &other, start);
        for (int64_t i = 0; i < n; i++) apart = fmax(apart, fabs(other.p[i] - m->p[i]));
        if (status == CGAM_OK && other.end == CGAM_END_CONVERGED && m->end == CGAM_END_CONVERGED &&
            apart > 1e-6)
            out->unique = 0;
    }
    cgam_free(env, room);
    return status;
}

cgam_status cgam_moment_certify(const cgam_recall *plan, const cgam_moment *m, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    const cgam_gate_info *gate = &plan->gate->info;
    int64_t n = plan->bank->Z.n;
    double l2b = o->lambda * o->lambda * o->beta, spread = 0, largest = 0, eta = gate->eta_min;
    for (int64_t i = 0; i < n; i++) {
        spread = fmax(spread, m->p[i] * (1 - m->p[i]));
        largest = fmax(largest, m->p[i]);
    }
    /* diag p - pp' <= diag p as well, which is better when p is flat */
    double covariance = fmin(2 * spread, largest);
    out->contraction = eta > 0 ? 0.5 * l2b / eta : NAN;
    out->contraction_proved = eta > 0;
    /* eta_min is good to 1e-12 or so; a constant of 1 within that decides nothing */
    out->unique = out->contraction < 1 - 1e-11 ? 1 : -1;
    out->fold_margin = eta - 2 * l2b * spread;
    out->fold_margin_proved = true;
    out->local_contraction = eta > 0 ? l2b * covariance / eta : NAN;
    out->local_contraction_proved = eta > 0;
    out->p_error = NAN;
    cgam_status status = CGAM_OK;
    if (o->certify) {
        status = cgam_fold_margin(plan->gate, o->beta, o->lambda, m->p, &out->fold_margin,
                                  &out->fold_margin_proved);
        if (status != CGAM_OK) return status;
        out->fold_margin_exact = true;
        if (eta > 0 && l2b > 0)
            status =
                cgam_local_contraction(plan->gate, o->beta, o->lambda, m->p,
                                       &out->local_contraction, &out->local_contraction_proved);
        if (status == CGAM_OK && o->mode == CGAM_COUPLED && out->unique < 0)
            status = look_for_second(plan, m, out);
    }
    if (status == CGAM_OK && o->mode == CGAM_COUPLED)
        bound_error(plan, m, out->local_contraction, out);
    return status;
}
