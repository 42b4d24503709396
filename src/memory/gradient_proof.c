/* gradient_proof.c: how far w and t are from those of the exact answer (docs/theorems/implicit-gradient.md, "How exact
 * it is"). For softmax, mode coupled, where |p - p*|_2 <= e and lambda_min(H*) >= mu > 0 are proved.
 *
 *   t* - t = H*^-1 (h* - H* t),   |h* - H* t| <= |h - A t + kappa C t| + |h* - h| + 3 kappa e |t|,   kappa = beta lambda^2
 *   w* - w = (h + kappa C t - w) + (h* - h) + kappa (C* - C) t + kappa C* (t* - t),   |C*| <= 1/2
 *
 * with |C* - C| <= 3 e. What is in brackets is evaluated in double, and its rounding bounded entry by entry. */
#include "memory/gradient.h"

#include "num/rounding.h"

#include <math.h>

static double wide(double x) { return x * (1 + 0x1p-18); }

/* |h* - h|_2; INFINITY for losses without a bound. */
static double right_side(const cgam_slope *g, int64_t k, double e)
{
    int64_t n = g->plan->bank->Z.n, at = g->from + k;
    double beta = g->plan->opts.beta, weight = g->in->weight ? g->in->weight[at] : 1;
    double size = sqrt((double)n), most = 0, squares = 0, through = 0, h = 0;
    if (g->opts->loss == CGAM_LOSS_NLL) /* weight beta (p - e_t); of t, the sum of all others */
        return wide(fabs(weight) * beta * (e * (1 + size) + 4 * cgam_gamma((double)n + 16)));
    if (g->opts->loss != CGAM_LOSS_OWN || g->reads) return INFINITY;
    const double *dp = g->in->dp ? g->in->dp + at * n : NULL;
    for (int64_t i = 0; i < n; i++) {
        double x = dp ? fabs(weight * dp[i]) : 0, r = g->through ? g->through[k * n + i] : 0;
        most = fmax(most, x);
        squares += x * x;
        through += r * r;
        h += g->h[k * n + i] * g->h[k * n + i];
    }
    double jacobian = beta * (3 * e * sqrt(squares) + 8 * cgam_gamma((double)n + 32) * most);
    return wide(wide(jacobian + 8 * CGAM_U * (sqrt(through) + sqrt(h))));
}

cgam_status cgam_slope_bound(const cgam_slope *g, int64_t k, double *off_w, double *off_t)
{
    const cgam_recall *plan = g->plan;
    const cgam_recall_opts *o = &plan->opts;
    const cgam_result *result = &g->results[k];
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t n = Z->n;
    double e = result->p_error, mu = result->fold_margin;
    double kappa = o->lambda * o->lambda * o->beta, few = CGAM_TINY * 16 * (double)n * (1 + kappa);
    *off_w = *off_t = NAN;
    bool known = o->mode == CGAM_COUPLED && !cgam_recall_sparse(plan) && result->p_error_proved &&
                 result->fold_margin_proved && mu > 0 && (kappa > 0x1p-900 || o->lambda == 0);
    double right = known ? right_side(g, k, e) : INFINITY;
    if (g->none[k] || !isfinite(right)) return CGAM_OK;
    const double *h = g->h + k * n, *p = g->p + k * n, *t = g->t + k * n, *w = g->w + k * n;
    double *y = cgam_alloc(env, 2 * (size_t)n, sizeof *y), *error = y + n;
    if (!y) return cgam_fail_nomem(env, "a bound of a gradient");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < n; i++) y[i] = t[i], error[i] = 0; /* A = I without competition */
    if (plan->gate->a > 0) {
        cgam_dplr_spec A = cgam_gate_hessian(plan->gate, 1, 0, NULL);
        status = cgam_dplr_apply_bounded(env, &A, plan->gate->A, t, y, error);
    }
    double mean = cgam_vec_dot(Z, p, t), most = 0, length = 0, of_t = 0, of_w = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(t[i]));
    double sum = 4 * cgam_gamma((double)n + 16) * most;
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        double ct = kappa * p[i] * (t[i] - mean);
        double own = 16 * CGAM_U * (fabs(h[i]) + kappa * p[i] * (fabs(t[i]) + fabs(mean))) +
                     kappa * p[i] * sum;
        double x = fabs(h[i] - y[i] + ct) + own + 16 * CGAM_U * fabs(y[i]) + error[i];
        double v = fabs(h[i] + ct - w[i]) + own + 16 * CGAM_U * fabs(w[i]);
        of_t += x * x;
        of_w += v * v;
        length += t[i] * t[i];
    }
    cgam_free(env, y);
    if (status != CGAM_OK) return status;
    double moved = wide(3 * kappa * e * sqrt(length) * (1 + 0x1p-20));
    *off_t = wide((wide(sqrt(of_t)) + right + moved + few) / mu);
    *off_w = wide(wide(sqrt(of_w)) + right + moved + 0.5 * kappa * *off_t + few);
    if (!isfinite(*off_t) || !isfinite(*off_w)) *off_w = *off_t = NAN;
    return CGAM_OK;
}
