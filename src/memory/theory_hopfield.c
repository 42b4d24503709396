/* theory_hopfield.c: the modern Hopfield network of Ramsauer et al. (2020), which is this memory without
 * coupling (lambda = 0) and with the query set free. Theorem numbers are theirs. */
#include <cgam/theory.h>

#include "base/blas.h"
#include "memory/bank.h"

#include <math.h>
#include <string.h>

/* p[n] = softmax(beta Z xi), *lse = ln(sum exp(beta Z xi)). */
static cgam_status softmax_of_scores(const cgam_bank *bank, double beta, const double *xi,
                                     double *p, double *lse)
{
    int64_t n = bank->Z.n;
    cgam_status status = cgam_bank_score(bank, xi, p);
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, p[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(beta * (p[i] - top));
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
    if (lse) *lse = beta * top + log(sum);
    return status;
}

static cgam_status check_beta(const cgam_bank *bank, double beta)
{
    if (beta > 0 && isfinite(beta)) return CGAM_OK;
    return cgam_fail(bank->env, CGAM_E_ARG, "beta is %g, it must be above 0 and finite", beta);
}

cgam_status cgam_hopfield_energy(const cgam_bank *bank, double beta, const double *xi,
                                 double *energy)
{
    cgam_status alone = cgam_bank_alone(bank, "a Hopfield network");
    if (alone != CGAM_OK) return alone;
    cgam_status status = check_beta(bank, beta);
    if (status != CGAM_OK) return status;
    double *p = cgam_alloc(bank->env, (size_t)bank->Z.n, sizeof *p), lse = 0;
    if (!p) return cgam_fail_nomem(bank->env, "an energy");
    status = softmax_of_scores(bank, beta, xi, p, &lse);
    double M = bank->info.norm_max;
    *energy = -lse / beta + 0.5 * cgam_array_dot(bank->Z.d, xi, xi) +
              log((double)bank->Z.n) / beta + 0.5 * M * M;
    cgam_free(bank->env, p);
    return status;
}

cgam_status cgam_hopfield_update(const cgam_bank *bank, double beta, const double *xi, double *out)
{
    cgam_status alone = cgam_bank_alone(bank, "a Hopfield network");
    if (alone != CGAM_OK) return alone;
    cgam_status status = check_beta(bank, beta);
    if (status != CGAM_OK) return status;
    double *p = cgam_alloc(bank->env, (size_t)bank->Z.n, sizeof *p);
    if (!p) return cgam_fail_nomem(bank->env, "an update");
    status = softmax_of_scores(bank, beta, xi, p, NULL);
    if (status == CGAM_OK) status = cgam_bank_combine(bank, p, out);
    cgam_free(bank->env, p);
    return status;
}

cgam_status cgam_hopfield_settle(const cgam_bank *bank, double beta, const double *xi, double tol,
                                 int64_t max_iter, double *out, int64_t *iterations, double *change)
{
    cgam_status alone = cgam_bank_alone(bank, "a Hopfield network");
    if (alone != CGAM_OK) return alone;
    if (isnan(tol)) return cgam_fail(bank->env, CGAM_E_ARG, "tol is %g, it must be a number", tol);
    int64_t d = bank->Z.d;
    double *next = cgam_alloc(bank->env, (size_t)d, sizeof *next), moved = INFINITY;
    if (!next) return cgam_fail_nomem(bank->env, "a fixed point");
    cgam_status status = CGAM_OK;
    int64_t k = 0;
    memmove(out, xi, (size_t)d * sizeof *out);
    while (k < max_iter && moved > tol && status == CGAM_OK) {
        status = cgam_hopfield_update(bank, beta, out, next);
        if (status != CGAM_OK) break;
        for (int64_t j = 0; j < d; j++) out[j] -= next[j];
        moved = cgam_array_norm(d, out);
        memcpy(out, next, (size_t)d * sizeof *out);
        k++;
    }
    if (iterations) *iterations = k;
    if (change) *change = moved;
    cgam_free(bank->env, next);
    return status;
}

static double distance(int64_t d, const double *x, const double *y)
{
    double total = 0;
    for (int64_t j = 0; j < d; j++) total += (x[j] - y[j]) * (x[j] - y[j]);
    return sqrt(total);
}

cgam_status cgam_hopfield_bound(const cgam_bank *bank, double beta, int64_t i, const double *xi,
                                const double *x_star, cgam_hopfield_bounds *out)
{
    cgam_status alone = cgam_bank_alone(bank, "a Hopfield network");
    if (alone != CGAM_OK) return alone;
    int64_t n = bank->Z.n, d = bank->Z.d;
    *out = (cgam_hopfield_bounds){.fixed_point = NAN};
    cgam_status status = check_beta(bank, beta);
    double *x = cgam_alloc(bank->env, (size_t)(d + n), sizeof *x);
    if (!x) status = cgam_fail_nomem(bank->env, "bounds");
    if (status == CGAM_OK) status = cgam_bank_row(bank, i, x);
    if (status == CGAM_OK) status = cgam_bank_score(bank, x, x + d);
    if (status == CGAM_OK) {
        const double *overlap = x + d;
        double M = bank->info.norm_max, rivals = (double)(n - 1);
        out->separation = INFINITY;
        for (int64_t j = 0; j < n; j++)
            if (j != i) out->separation = fmin(out->separation, bank->norm2[i] - overlap[j]);
        double to_query = distance(d, xi, x), to_fixed = distance(d, x_star, x);
        double small = exp(-beta * (out->separation - 2 * fmax(to_query, to_fixed) * M));
        out->one_step = 2 * beta * (double)n * M * M * rivals * small * distance(d, xi, x_star);
        out->retrieval = 2 * rivals * small * M;
        if (n == 1) out->one_step = out->retrieval = 0; /* 0 times exp(-inf) */
        if (to_fixed <= 1 / (2 * beta * M) && to_query <= 1 / (2 * beta * M))
            out->fixed_point = 2 * exp(1) * rivals * M * exp(-beta * out->separation);
    }
    cgam_free(bank->env, x);
    return status;
}

cgam_status cgam_attention(cgam_env *env, int64_t m, int64_t n, int64_t d_k, int64_t d_v,
                           const double *Q, const double *K, const double *V, double *out)
{
    if (m < 0 || n < 1 || d_k < 1 || d_v < 1 || n > INT32_MAX || d_v > INT32_MAX)
        return cgam_fail(
            env, CGAM_E_SHAPE,
            "attention: invalid sizes: %lld queries, %lld keys, d_k = %lld, d_v = %lld",
            (long long)m, (long long)n, (long long)d_k, (long long)d_v);
    cgam_bank *keys;
    cgam_status status = cgam_bank_new(env, K, CGAM_F64, n, d_k, NULL, &keys);
    if (status != CGAM_OK) return status;
    double *p = cgam_alloc(env, (size_t)n, sizeof *p);
    if (!p) status = cgam_fail_nomem(env, "attention");
    for (int64_t i = 0; i < m && status == CGAM_OK; i++) {
        status = softmax_of_scores(keys, 1 / sqrt((double)d_k), Q + i * d_k, p, NULL);
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)n, (int)d_v, 1, V, (int)d_v, p, 1, 0,
                    out + i * d_v, 1);
    }
    cgam_free(env, p);
    cgam_bank_free(keys);
    return status;
}
