/* theory_fold.c: where feedback breaks the uniform-looking state - the theorem for balanced banks, and the
 * true fold for any bank.
 *
 * Theorem (paper, appendix C.3): unit memories with G1 = mu_G 1, constant u and b, fast gates. The
 * uniform state has Jacobian lambda^2 beta / (n eta_k) - 1 on modes orthogonal to 1, so it turns
 * unstable at  alpha = (1 - lambda^2 beta / n) / (1 - mu_perp_min).
 *
 * Otherwise the branch p*(alpha) is followed from alpha = 0 by warm starts. It ends where
 * A - lambda^2 beta (diag p* - p*p*') loses positive definiteness. A step is kept when the margin
 * neither falls by more than a factor 0.3 nor jumps up, and p moves little; else it is halved, so
 * steps shrink with the margin and the end is met to tol. */
#include "memory/gate.h"
#include <cgam/theory.h>

#include "memory/engines.h"
#include "memory/spectrum.h"
#include "num/eigen.h"

#include <math.h>
#include <string.h>

/* Smallest eigenvalue of G on the vectors orthogonal to 1, for a balanced bank with n <= d: of
 * (I - J) G (I - J) + big J, J = 11'/n, which shifts the eigenvalue of direction 1 above all others. */
static cgam_status perpendicular_dense(const cgam_bank *bank, double mu_G, double *mu)
{
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n;
    double *G = cgam_alloc(env, (size_t)(n * n), sizeof *G);
    double *values = cgam_alloc(env, (size_t)n, sizeof *values);
    cgam_status status =
        G && values ? cgam_rows_gram_outer(env, &bank->Z, G) : cgam_fail_nomem(env, "a spectrum");
    if (status == CGAM_OK) {
        double trace = 0; /* at least the largest eigenvalue */
        for (int64_t i = 0; i < n; i++) trace += G[i * n + i];
        /* G 1 = mu_G 1, so (I - J) G (I - J) = G - mu_G J */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) G[i * n + j] += (trace - mu_G) / (double)n;
        status = cgam_eigen_all(env, n, false, G, values);
        *mu = values[0];
    }
    cgam_free(env, G);
    cgam_free(env, values);
    return status;
}

/* Is G1 = mu_G 1? */
static cgam_status measure_balance(const cgam_bank *bank, bool *balanced, double *mu_G)
{
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n;
    double *one = cgam_vec_new(env, &bank->Z, 1);
    double *sum = cgam_alloc(env, (size_t)bank->Z.d, sizeof *sum);
    cgam_status status = one && sum ? CGAM_OK : cgam_fail_nomem(env, "row sums");
    if (status == CGAM_OK) {
        cgam_vec_fill(&bank->Z, one, 1);
        status = cgam_bank_combine(bank, one, sum);
    }
    if (status == CGAM_OK) status = cgam_bank_score(bank, sum, one);
    if (status == CGAM_OK) {
        double low, high, total;
        CGAM_REDUCE(&bank->Z, i, CGAM_MIN(low), CGAM_MAX(high), CGAM_SUM(total)) {
            low = fmin(low, one[i]);
            high = fmax(high, one[i]);
            total += one[i];
        }
        status = cgam_rows_status(&bank->Z);
        *mu_G = total / (double)n;
        *balanced = high - low <= 1e-9 * fmax(1, fabs(*mu_G));
    }
    cgam_vec_free(env, &bank->Z, one);
    cgam_free(env, sum);
    return status;
}

cgam_status cgam_coupled_critical_find(const cgam_bank *bank, double lambda, double beta,
                                       cgam_coupled_critical *out)
{
    int64_t n = bank->Z.n;
    double mu_G = 0, feedback = lambda * lambda * beta / (double)n;
    *out = (cgam_coupled_critical){.alpha = NAN, .mu_perp_min = NAN};
    out->unit = bank->info.unit;
    out->weak = feedback < 1;
    cgam_status status = measure_balance(bank, &out->balanced, &mu_G);
    if (status != CGAM_OK || !out->balanced || n < 2) return status;
    if (n <= bank->Z.d) {
        status = perpendicular_dense(bank, mu_G, &out->mu_perp_min);
    } else {
        /* the kernel of G has n - rank dimensions; 1 is one of them only if mu_G = 0 */
        cgam_gram_info gram;
        status = cgam_bank_gram(bank, &gram);
        bool one_inside = fabs(mu_G) <= 1e-9 * gram.mu_max;
        if (status == CGAM_OK && n - gram.rank > one_inside) out->mu_perp_min = 0;
        else if (status == CGAM_OK) status = perpendicular_dense(bank, mu_G, &out->mu_perp_min);
    }
    if (status != CGAM_OK) return status;
    if (fabs(out->mu_perp_min) < 1e-12) out->mu_perp_min = 0;
    out->below_one = out->mu_perp_min < 1;
    if (!out->unit || !out->weak || !out->below_one) return CGAM_OK;
    double alpha = (1 - feedback) / (1 - out->mu_perp_min);
    cgam_critical crit;
    status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit);
    if (status != CGAM_OK) return status;
    out->positive = alpha <= crit.alpha * (1 + 1e-12); /* lambda = 0 is alpha_crit itself */
    if (out->positive) out->alpha = alpha;
    return CGAM_OK;
}

typedef struct branch {
    const cgam_bank *bank;
    double lambda, beta;
    const double *b, *u;
    double *work;    /* buffer of a trial point, s0, a, s, r, p: [5, n] */
    double *p_trial; /* p of it */
    double *p;       /* [n] the last accepted point */
    double p_step;   /* distance of the trial from it */
} branch;

/* Solves for the fixed point at alpha from the last accepted p, and computes its margin; ok = it converged. */
static cgam_status solve_at_alpha(branch *br, double alpha, bool first, double *margin, bool *ok)
{
    const cgam_rows *Z = &br->bank->Z;
    int64_t n = cgam_vec_size(Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = alpha;
    o.beta = br->beta;
    o.lambda = br->lambda;
    o.max_iter =
        1000000; /* near the fold the iteration is slow; stopping early would look like the end of the branch */
    cgam_recall *plan;
    cgam_status status = cgam_recall_new(br->bank, &o, &plan);
    if (status != CGAM_OK) return status;
    double *s0 = br->work, *a = s0 + n;
    cgam_settled m = {
        .in = {.b = br->b, .s0 = s0, .a = a}, .s = a + n, .r = a + 2 * n, .p = a + 3 * n};
    status = cgam_gate_solve(plan->gate, br->u, s0, NULL);
    if (status == CGAM_OK) m.in.half_us0 = 0.5 * cgam_vec_dot(Z, br->u, s0);
    CGAM_EACH_ROW(Z, i) a[i] = br->b[i] + br->lambda * s0[i];
    if (status == CGAM_OK) status = cgam_coupled_solve(plan, 1, &m, first ? NULL : br->p);
    *ok = m.trace.end == CGAM_END_CONVERGED || m.trace.end == CGAM_END_STALLED;
    br->p_trial = m.p;
    br->p_step = 0;
    if (!first && status == CGAM_OK) {
        br->p_step = cgam_vec_max_diff(Z, m.p, br->p);
        status = cgam_rows_status(Z);
    }
    if (status == CGAM_OK)
        status = cgam_fold_margin(plan->gate, br->beta, br->lambda, m.p, margin, NULL);
    cgam_recall_free(plan);
    return status;
}

cgam_status cgam_fold_find(const cgam_bank *bank, double lambda, double beta, const double *b,
                           const double *u, double alpha_max, double tol, cgam_fold *out)
{
    cgam_env *env = bank->env;
    *out = (cgam_fold){.alpha = NAN};
    if (!(lambda >= 0 && beta > 0 && alpha_max > 0 && tol > 0))
        return cgam_fail(
            env, CGAM_E_ARG,
            "fold: lambda is %g, beta %g, alpha_max %g, tol %g; lambda must be 0 or more, the others above 0",
            lambda, beta, alpha_max, tol);
    cgam_critical crit;
    cgam_status status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit);
    if (status != CGAM_OK) return status;
    alpha_max = fmin(alpha_max, crit.alpha * (1 - 1e-8));
    branch br = {.bank = bank, .lambda = lambda, .beta = beta, .b = b, .u = u};
    br.work = cgam_vec_new(env, &bank->Z, 5);
    br.p = cgam_vec_new(env, &bank->Z, 1);
    if (!br.work || !br.p) {
        status = cgam_fail_nomem(env, "a branch of fixed points");
        goto done;
    }
    double alpha = 0, step = alpha_max / 32, margin = 0, next;
    bool ok = false;
    status = solve_at_alpha(&br, 0, true, &margin, &ok);
    if (status != CGAM_OK) goto done;
    out->margin = margin;
    if (!ok || margin <= 0) { /* past the fold without any penalty */
        out->alpha = 0;
        goto done;
    }
    cgam_vec_copy(&bank->Z, br.p, br.p_trial);
    while (alpha < alpha_max) {
        double to = fmin(alpha + step, alpha_max);
        status = solve_at_alpha(&br, to, false, &next, &ok);
        if (status != CGAM_OK) goto done;
        out->steps++;
        if (ok && next > 0.3 * margin && next < 1.5 * margin && br.p_step < 0.05) {
            alpha = to;
            margin = out->margin = next;
            cgam_vec_copy(&bank->Z, br.p, br.p_trial);
            step = fmin(1.5 * step, alpha_max / 32);
        } else if (step <= tol) {
            out->alpha = alpha + 0.5 * step;
            break;
        } else {
            step *= 0.5;
        }
    }
done:
    cgam_vec_free(env, &bank->Z, br.work);
    cgam_vec_free(env, &bank->Z, br.p);
    return status;
}
