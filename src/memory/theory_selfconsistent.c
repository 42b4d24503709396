/* theory_selfconsistent.c: the coupled fixed point p = softmax(beta (b + lambda A^-1 u + lambda^2 A^-1 p))
 * in theory (theorem 3.4): energy, decomposition, contraction, fold margin. */
#include "memory/certify.h"
#include <cgam/theory.h>

#include "memory/spectrum.h"
#include "num/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

double cgam_contraction(double beta, double lambda, double eta_min)
{
    if (lambda == 0 && eta_min > 0) return 0;
    double l2b = cgam_square_times(lambda, beta);
    return eta_min > 0 ? cgam_widened(0.5 * (l2b / eta_min), 0) : NAN;
}

double cgam_contraction_lambda_max(double beta, double eta_min)
{
    /* two roots: the quotient may overflow or underflow */
    double most = sqrt(2 * eta_min) / sqrt(beta) * (1 - 8 * CGAM_U);
    return eta_min > 0 ? fmax(cgam_below(most), 0) : 0;
}

double cgam_softmax_norm_bound(int64_t n, const double *p)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, p[i] * (1 - p[i]));
    return 2 * most;
}

/* The largest root of 1 = sum p_i^2 / (p_i - x): it lies between the second largest p and the
 * largest, where the sum rises from -inf to +inf. */
double cgam_softmax_norm(int64_t n, const double *p)
{
    int64_t first = 0;
    double second = 0;
    for (int64_t i = 1; i < n; i++) {
        if (p[i] > p[first]) {
            second = p[first];
            first = i;
        } else if (p[i] > second) {
            second = p[i];
        }
    }
    if (n < 2) return 0;
    double low = second, high = p[first];
    while (high - low > 0x1p-52 * high) {
        double x = 0.5 * (low + high), sum = 0;
        if (x <= low || x >= high) break;
        for (int64_t i = 0; i < n; i++)
            if (p[i] > 0) sum += p[i] * p[i] / (p[i] - x);
        if (sum < 1) low = x;
        else high = x;
    }
    return 0.5 * (low + high);
}

cgam_status cgam_coupled_energy(const cgam_gate *gate, double beta, double lambda, const double *b,
                                const double *u, const double *s, double *energy, double *gradient)
{
    cgam_env *env = gate->bank->env;
    const cgam_rows *Z = &gate->bank->Z;
    double *As = cgam_vec_new(env, Z, 2);
    if (!As) return cgam_fail_nomem(env, "an energy");
    double *p = cgam_vec_next(Z, As), top, sum;
    cgam_status status = cgam_gate_apply(gate, s, As);
    if (status == CGAM_OK) {
        CGAM_REDUCE(Z, i, CGAM_MAX(top)) top = fmax(top, b[i] + lambda * s[i]);
        CGAM_REDUCE(Z, i, CGAM_SUM(sum)) sum += p[i] = exp(beta * (b[i] + lambda * s[i] - top));
        *energy = 0.5 * cgam_vec_dot(Z, s, As) - cgam_vec_dot(Z, u, s) - (top + log(sum) / beta);
        status = cgam_rows_status(Z);
    }
    if (status == CGAM_OK && gradient)
        CGAM_EACH_ROW(Z, i) gradient[i] = As[i] - u[i] - lambda * p[i] / sum;
    cgam_vec_free(env, Z, As);
    return status;
}

cgam_status cgam_retrieval_parts(const cgam_gate *gate, double lambda, const double *u,
                                 const double *p, double *bias, double *feedback)
{
    cgam_status status = CGAM_OK;
    if (bias) {
        status = cgam_gate_solve(gate, u, bias, NULL);
        cgam_vec_scale(&gate->bank->Z, bias, lambda);
    }
    if (feedback && status == CGAM_OK) {
        status = cgam_gate_solve(gate, p, feedback, NULL);
        cgam_vec_scale(&gate->bank->Z, feedback, lambda * lambda);
    }
    return status;
}

cgam_status cgam_coupled_free_energy(const cgam_gate *gate, double beta, double lambda,
                                     const double *b, const double *u, const double *p,
                                     double *energy, double *gradient)
{
    cgam_env *env = gate->bank->env;
    const cgam_rows *Z = &gate->bank->Z;
    double *bias = cgam_vec_new(env, Z, 2);
    if (!bias) return cgam_fail_nomem(env, "a free energy");
    double *feedback = cgam_vec_next(Z, bias), sum;
    cgam_status status = cgam_retrieval_parts(gate, lambda, u, p, bias, feedback);
    if (status == CGAM_OK) {
        CGAM_REDUCE(Z, i, CGAM_SUM(sum)) {
            double score = b[i] + bias[i];
            if (p[i] > 0) sum += p[i] * (log(p[i]) / beta - score - 0.5 * feedback[i]);
            if (gradient) gradient[i] = (log(p[i]) + 1) / beta - score - feedback[i];
        }
        *energy = sum;
        status = cgam_rows_status(Z);
    }
    cgam_vec_free(env, Z, bias);
    return status;
}

cgam_status cgam_fold_margin(const cgam_gate *gate, double beta, double lambda, const double *p,
                             double *value, bool *proved)
{
    cgam_dplr_spec spec = cgam_gate_hessian(gate, 1, cgam_square_times(lambda, beta), p);
    cgam_lowest low = {0};
    cgam_status status = cgam_dplr_lowest(gate->bank->env, &spec, 1e-12, false, &low);
    /* lambda^2 beta is rounded up, which shifts the result by that times |diag p - pp'| <= 1/2 */
    double off = 8 * CGAM_U * spec.sigma;
    *value = isfinite(low.lo) ? cgam_below(low.lo - off) : low.value;
    if (proved) *proved = low.hi - low.lo + 2 * off <= 1e-9 * fmax(1, fabs(low.value));
    return status;
}

/* y = C x, C = diag p - pp'. */
static void covariance(const cgam_bank *bank, const double *p, const double *x, double *y)
{
    double mean = cgam_vec_dot(&bank->Z, p, x);
    CGAM_EACH_ROW(&bank->Z, i) y[i] = p[i] * (x[i] - mean);
}

enum { BASIS_MAX = 40 };

/* Lanczos for A^-1 C, self-adjoint in the inner product x'Ay: the largest eigenvalue. */
static cgam_status lanczos_largest(const cgam_gate *gate, const double *p, double *value)
{
    cgam_env *env = gate->bank->env;
    const cgam_rows *Z = &gate->bank->Z;
    int64_t n = cgam_vec_size(Z);
    int steps = Z->n < BASIS_MAX ? (int)Z->n : BASIS_MAX;
    double *V = cgam_vec_new(env, Z, steps + 1);
    double *w = cgam_vec_new(env, Z, 2);
    double diag[BASIS_MAX], off[BASIS_MAX], d[BASIS_MAX], e[BASIS_MAX];
    cgam_status status = V && w ? CGAM_OK : cgam_fail_nomem(env, "a local contraction");
    if (status == CGAM_OK) { /* start from the variance: C of the ranks of p misses no direction */
        double *Aw = w + n;
        CGAM_EACH_ROW(Z, i) w[i] = sqrt(p[i]) * ((i * 2654435761u) % 1024 / 512.0 - 1.0009);
        covariance(gate->bank, p, w, Aw);
        status = cgam_gate_solve(gate, Aw, w, NULL);
    }
    *value = 0;
    for (int j = 0; j < steps && status == CGAM_OK; j++) {
        double *v = V + (int64_t)j * n, *Aw = w + n;
        status = cgam_gate_apply(gate, w, Aw);
        for (int twice = 0; twice < 2 && status == CGAM_OK; twice++) {
            for (int k = 0; k < j; k++) {
                double *u = V + (int64_t)k * n, c = cgam_vec_dot(Z, u, Aw);
                CGAM_EACH_ROW(Z, i) w[i] -= c * u[i];
            }
            if (j > 0) status = cgam_gate_apply(gate, w, Aw);
        }
        if (status != CGAM_OK) break;
        double norm = sqrt(fmax(cgam_vec_dot(Z, w, Aw), 0));
        if (j > 0) off[j - 1] = norm;
        if (!(norm > 1e-14 * (j > 0 ? fabs(diag[0]) : 0)) || norm == 0) break;
        CGAM_EACH_ROW(Z, i) v[i] = w[i] / norm;
        covariance(gate->bank, p, v, Aw);
        diag[j] = cgam_vec_dot(Z, v, Aw);
        status = cgam_rows_status(Z);
        if (status != CGAM_OK) break;
        memcpy(d, diag, sizeof d);
        memcpy(e, off, sizeof e);
        lapack_int info = LAPACKE_dsterf(j + 1, d, e);
        if (info != 0)
            status =
                cgam_fail(env, CGAM_E_INTERNAL, "LAPACK: dsterf failed (info = %d)", (int)info);
        double before = *value;
        *value = d[j];
        if (j > 3 && *value - before <= 1e-14 * *value) break;
        if (status == CGAM_OK) status = cgam_gate_solve(gate, Aw, w, NULL);
    }
    cgam_vec_free(env, Z, V);
    cgam_vec_free(env, Z, w);
    return status;
}

/* A single memory: A is 1, and the upper bound l2b p (1 - p) is 0 at the p of a recall, but not at every p. */
static cgam_status contraction_alone(const cgam_gate *gate, const double *p, double l2b,
                                     double *value)
{
    double share = 0;
    cgam_status status = cgam_vec_pick(&gate->bank->Z, p, 1, &(int64_t){0}, &share);
    if (share > 0 && share < 1)
        *value = cgam_widened(cgam_above(share * (1 - share)) * l2b, 8 * CGAM_U);
    return status;
}

cgam_status cgam_contraction_local(const cgam_gate *gate, double beta, double lambda,
                                   const double *p, double *value, bool *proved)
{
    cgam_env *env = gate->bank->env;
    double l2b = cgam_square_times(lambda, beta);
    *value = 0;
    if (proved) *proved = true;
    if (l2b == 0) return CGAM_OK;
    if (gate->bank->Z.n == 1) return contraction_alone(gate, p, l2b, value);
    double rate; /* without beta lambda^2, which may be so small that products with it underflow */
    cgam_status status = lanczos_largest(gate, p, &rate);
    *value = rate * l2b;
    if (status != CGAM_OK || !proved) return status;
    /* theta A - C positive definite, with theta slightly larger: a proof */
    static const double hairs[] = {1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3};
    *proved = false;
    for (int k = 0; k < 6 && status == CGAM_OK && !*proved; k++) {
        double theta = cgam_above(rate * (1 + hairs[k]) + 1e-4 * hairs[k]);
        cgam_dplr_spec spec = cgam_gate_hessian(gate, theta, 1, p);
        if (gate->info.alpha > 0 && spec.a < DBL_MIN) break; /* lost in A */
        status = cgam_dplr_above(env, &spec, 0, proved);
        if (*proved) *value = cgam_widened(theta * l2b, 0);
    }
    return status;
}

cgam_status cgam_gate_context_margin(const cgam_gate *gate, const double *W, const double *P,
                                     int64_t k, double *margin)
{
    const cgam_bank *bank = gate->bank;
    cgam_env *env = bank->env;
    const cgam_rows *Z = &bank->Z;
    int64_t d = Z->d;
    double *M = cgam_zalloc(env, (size_t)(k * k), sizeof *M);
    double *work = cgam_alloc(env, (size_t)(2 * d + 2 * k), sizeof *work);
    double *u = cgam_vec_new(env, Z, 2), *y = u ? cgam_vec_next(Z, u) : NULL;
    cgam_status status = M && work && u ? CGAM_OK : cgam_fail_nomem(env, "a free context");
    double *v = work, *w = v + d, *values = w + d, *sums = values + k;
    for (int64_t j = 0; j < k && status == CGAM_OK; j++) { /* column j of W'A^-1 W */
        if (W) {
            CGAM_EACH_ROW(Z, i) u[i] = W[i * k + j];
            status = cgam_gate_solve(gate, u, y, NULL);
            if (status == CGAM_OK) status = cgam_vec_weigh_back(env, Z, k, W, y, sums);
            for (int64_t l = 0; l < k && status == CGAM_OK; l++) M[j * k + l] = -sums[l];
        } else {
            for (int64_t i = 0; i < d; i++) v[i] = P ? P[i * k + j] : i == j;
            status = cgam_gate_solve_range(gate, v, y);
            if (status == CGAM_OK) status = cgam_bank_combine(bank, y, w);
            if (status != CGAM_OK) break;
            if (P)
                cblas_dgemv(CblasRowMajor, CblasTrans, (int)d, (int)k, -1, P, (int)k, w, 1, 0,
                            M + j * k, 1);
            else
                for (int64_t i = 0; i < d; i++) M[j * k + i] = -w[i];
        }
        M[j * k + j] += 1;
    }
    if (status == CGAM_OK) status = cgam_eigen_all(env, k, false, M, values);
    if (status == CGAM_OK) *margin = values[0];
    cgam_free(env, M);
    cgam_free(env, work);
    cgam_vec_free(env, Z, u);
    return status;
}

cgam_status cgam_context_margin(const cgam_gate *gate, const double *P, int64_t d_c, double *margin)
{
    cgam_env *env = gate->bank->env;
    int64_t k = P ? d_c : gate->bank->Z.d;
    if (k < 1 || k > INT32_MAX)
        return cgam_fail(env, CGAM_E_SHAPE, "d_c of a free context is %lld, it must be at least 1",
                         (long long)k);
    if (gate->info.regime != CGAM_SUBCRITICAL)
        return cgam_fail(env, CGAM_E_NOT_POSITIVE,
                         "a free context needs A(alpha) positive definite: alpha = %.17g is %s",
                         gate->info.alpha, cgam_word(cgam_regime_words, gate->info.regime));
    return cgam_gate_context_margin(gate, NULL, P, k, margin);
}
