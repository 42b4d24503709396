/* certify.c: what can be promised about a recall, and what the promise costs.
 *
 * Free, from eta = eta_min(A) (exact or a lower bound, see gate.h) and p:
 *     |diag p - pp'| <= 2 max p_i (1 - p_i)          (row sums)
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

/* Bound of |p - p*|_2 where p = f(s) and the last plain step moved p by change_norm. Rounding of the
 * scores moves p too, and both are amplified alike. */
static void bound_error(const cgam_recall *plan, const cgam_query *m, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, L = out->contraction, local = out->local_contraction;
    double largest = 0, gates = 0;
    out->p_error = NAN;
    if (m->end == CGAM_END_DIVERGED) return;
    for (int64_t i = 0; i < plan->bank->Z.n; i++) {
        largest = fmax(largest, fabs(m->r[i]));
        gates = fmax(gates, fabs(m->s[i]));
    }
    /* s comes out of a solve, good to eps |s| / eta */
    double solve = eta > 0 && eta < 1 ? gates / eta : gates;
    double noise = 0x1p-50 * (1 + o->beta * (largest + o->lambda * solve));
    double moved = m->change_norm + noise, bound = INFINITY;
    if (out->unique == 1) /* Banach: from the last step, p being its end */
        bound = L / (1 - L) * moved + noise;
    /* Basin lemma with theta = the proved local bound: |s - s*|_A <= step / ((1 - theta) / 2), and
     * softmax is (beta / 2)-Lipschitz. */
    if (eta > 0 && o->lambda > 0 && out->local_contraction_proved && local > 0 && local < 1) {
        double step = o->lambda * moved / sqrt(eta);
        if (cgam_basin_radius(o->beta, o->lambda, eta, local) > 4 * step / (1 - local))
            bound = fmin(bound, o->beta * o->lambda / sqrt(eta) * step / (1 - local) + noise);
    }
    out->p_error_proved = isfinite(bound);
    if (out->p_error_proved) out->p_error = fmin(bound, sqrt(2)); /* no two p are further apart */
    else if (m->rate > 0 && m->rate < 1) out->p_error = m->rate / (1 - m->rate) * moved;
}

void cgam_bound_freely(const cgam_recall *plan, double spread, double largest, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, l2b = o->lambda * o->lambda * o->beta;
    /* diag p - pp' <= diag p as well, which is better when p is flat */
    double covariance = fmin(2 * spread, largest);
    out->contraction = eta > 0 ? 0.5 * l2b / eta : NAN;
    out->contraction_proved = eta > 0;
    /* eta_min is good to 1e-12 or so; a constant of 1 within that decides nothing */
    out->unique = out->contraction < 1 - 1e-11 ? 1 : -1;
    out->unique_proved = out->unique == 1;
    out->fold_margin = eta - 2 * l2b * spread;
    out->fold_margin_proved = true;
    out->local_contraction = eta > 0 ? l2b * covariance / eta : NAN;
    out->local_contraction_proved = eta > 0;
}

static void bound_freely(const cgam_recall *plan, const cgam_query *m, cgam_result *out)
{
    double spread = 0, largest = 0;
    for (int64_t i = 0; i < plan->bank->Z.n; i++) {
        spread = fmax(spread, m->p[i] * (1 - m->p[i]));
        largest = fmax(largest, m->p[i]);
    }
    cgam_bound_freely(plan, spread, largest, out);
}

/* How far p may still be from its fixed point, to first order: the last step over 1 - rate. Two
 * recalls that stopped early, at a loose tolerance or a slow rate, are apart by as much and bound for
 * the same point. */
static cgam_status left_to_go(const cgam_recall *plan, const cgam_query *m, double *left)
{
    double rate;
    cgam_status status =
        cgam_contraction_local(plan->gate, plan->opts.beta, plan->opts.lambda, m->p, &rate, NULL);
    *left = m->change_norm / fabs(1 - rate);
    return status;
}

/* Other starts: all weight on each of the leading memories, and none on any. A fixed point apart
 * from ours says that there are two; it is a proof where the error bounds of both keep them apart. */
static cgam_status look_for_second(const cgam_recall *plan, const cgam_query *m, cgam_result *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, leaders = n < STARTS_MAX ? n : STARTS_MAX;
    int64_t index[STARTS_MAX];
    double *room = cgam_alloc(env, (size_t)(4 * n), sizeof *room);
    if (!room) return cgam_fail_nomem(env, "a second fixed point");
    cgam_query_top(m, n, leaders, index);
    double mine_left, theirs_left;
    cgam_status status = left_to_go(plan, m, &mine_left);
    for (int64_t k = 0; k <= leaders && !out->unique_proved && status == CGAM_OK; k++) {
        cgam_query other = {.b = m->b, .s0 = m->s0, .a = m->a, .half_us0 = m->half_us0};
        double *start = room + 3 * n, apart = 0;
        other.s = room;
        other.r = room + n;
        other.p = room + 2 * n;
        for (int64_t i = 0; i < n; i++) start[i] = k < leaders ? i == index[k] : 1.0 / (double)n;
        status = cgam_coupled_solve(plan, 1, &other, start);
        if (status != CGAM_OK || other.end != CGAM_END_CONVERGED) continue;
        for (int64_t i = 0; i < n; i++) start[i] = other.p[i] - m->p[i];
        apart = cgam_vec_norm(n, start);
        if (!(apart > 1e-6)) continue;
        status = left_to_go(plan, &other, &theirs_left);
        if (status != CGAM_OK || !(apart > 10 * (mine_left + theirs_left))) continue;
        cgam_result theirs = {0};
        bound_freely(plan, &other, &theirs);
        bound_error(plan, &other, &theirs);
        out->unique = 0;
        out->unique_proved =
            out->p_error_proved && theirs.p_error_proved && apart > out->p_error + theirs.p_error;
    }
    cgam_free(env, room);
    return status;
}

cgam_status cgam_query_certify(const cgam_recall *plan, const cgam_query *m, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    bool coupled = o->mode == CGAM_COUPLED;
    cgam_status status = CGAM_OK;
    bound_freely(plan, m, out);
    out->p_error = NAN;
    bool more = o->certify && m->end != CGAM_END_DIVERGED;
    if (more && plan->gate->A) { /* with conjugate gradients there is no room for more */
        status = cgam_fold_margin(plan->gate, o->beta, o->lambda, m->p, &out->fold_margin,
                                  &out->fold_margin_proved);
        if (status != CGAM_OK) return status;
        out->fold_margin_exact = true;
        if (out->contraction_proved && o->lambda > 0)
            status =
                cgam_contraction_local(plan->gate, o->beta, o->lambda, m->p,
                                       &out->local_contraction, &out->local_contraction_proved);
    }
    if (status == CGAM_OK && coupled) bound_error(plan, m, out);
    if (status == CGAM_OK && coupled && more && plan->gate->A && out->unique < 0 &&
        m->end == CGAM_END_CONVERGED)
        status = look_for_second(plan, m, out);
    return status;
}
