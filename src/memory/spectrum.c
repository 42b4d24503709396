/* spectrum.c: G - diag G decomposed once, so that every alpha is a scalar function of its modes.
 *
 * Equal norms |zeta|^2 = nu:  G - diag G = G - nu I. With n > d the eigenvectors of G outside its
 * kernel are v_k = Z e_k / sqrt(mu_k), e_k those of the d x d matrix Z'Z; they are kept as
 * F = [e_k / sqrt(mu_k)] and applied through Z. The kernel is the rest of R^n, one eigenspace with
 * omega = -nu. In the other cases the n x n matrix is decomposed and the modes are explicit. */
#include "memory/spectrum.h"
#include "memory/gate.h"
#include "num/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct cgam_spectrum {
    const cgam_bank *bank;
    cgam_spectrum_info info;
    bool through_bank; /* modes are Z F, else F itself */
    double *omega;     /* [modes] ascending */
    double *F;         /* [modes, d] or [modes, n], a mode per row */
    double *gram;      /* [d, d] Z'Z, lower triangle by rows, when modes go through the bank */
    double nu;         /* common squared norm, when the kernel counts */
};

static int64_t mode_length(const cgam_spectrum *sp)
{
    return sp->through_bank ? sp->bank->Z.d : sp->bank->Z.n;
}

static double rank_floor(const cgam_bank *bank, double mu_max)
{
    double longest = (double)(bank->Z.n > bank->Z.d ? bank->Z.n : bank->Z.d);
    return longest * 0x1p-52 * mu_max;
}

/* Allocates a size x size matrix; on failure the message names the size. */
static double *new_square(cgam_env *env, int64_t size)
{
    double bytes = 8.0 * (double)size * (double)size;
    double *C = bytes < 0.8 * (double)cgam_memory_available()
                    ? cgam_zalloc(env, (size_t)size * (size_t)size, sizeof *C)
                    : NULL;
    if (!C)
        cgam_fail(env, CGAM_E_NOMEM, "a spectrum of %lld x %lld needs %.0f MiB", (long long)size,
                  (long long)size, bytes / 0x1p20);
    return C;
}

cgam_status cgam_bank_eigenvalues(const cgam_bank *bank, double *mu, cgam_gram_info *out)
{
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n, d = bank->Z.d, size = n < d ? n : d;
    *out = (cgam_gram_info){0};
    double *C = new_square(env, size);
    if (!C) return CGAM_E_NOMEM;
    cgam_status status = n <= d ? cgam_rows_gram_outer(env, &bank->Z, C)
                                : cgam_rows_gram(env, &bank->Z, NULL, C, size);
    if (status == CGAM_OK) status = cgam_eigen_all(env, size, false, C, mu);
    if (status == CGAM_OK) {
        out->mu_max = fmax(mu[size - 1], 0);
        for (int64_t k = 0; k < size; k++) out->rank += mu[k] > rank_floor(bank, out->mu_max);
        out->mu_min = out->rank < n ? 0 : mu[0];
    }
    cgam_free(env, C);
    return status;
}

cgam_status cgam_bank_gram(const cgam_bank *bank, cgam_gram_info *out)
{
    int64_t n = bank->Z.n, d = bank->Z.d;
    double *mu = cgam_alloc(bank->env, (size_t)(n < d ? n : d), sizeof *mu);
    if (!mu) return cgam_fail_nomem(bank->env, "eigenvalues");
    cgam_status status = cgam_bank_eigenvalues(bank, mu, out);
    cgam_free(bank->env, mu);
    return status;
}

void cgam_spectrum_free(cgam_spectrum *sp)
{
    if (!sp) return;
    cgam_env *env = sp->bank->env;
    cgam_free(env, sp->omega);
    cgam_free(env, sp->F);
    cgam_free(env, sp->gram);
    cgam_free(env, sp);
}

/* Equal norms, n > d: modes through the bank. */
static cgam_status decompose_through_bank(cgam_spectrum *sp)
{
    const cgam_bank *bank = sp->bank;
    int64_t n = bank->Z.n, d = bank->Z.d;
    sp->through_bank = true;
    sp->gram = new_square(bank->env, d);
    if (!sp->gram) return CGAM_E_NOMEM;
    cgam_status status = cgam_rows_gram(bank->env, &bank->Z, NULL, sp->gram, d);
    memcpy(sp->F, sp->gram, (size_t)(d * d) * sizeof *sp->F);
    if (status == CGAM_OK) status = cgam_eigen_all(bank->env, d, true, sp->F, sp->omega);
    if (status != CGAM_OK) return status;
    double mu_max = fmax(sp->omega[d - 1], 0), floor = rank_floor(bank, mu_max);
    int64_t skip = 0; /* the kernel of Z comes first */
    while (skip < d && !(sp->omega[skip] > floor)) skip++;
    sp->info.modes = sp->info.rank = d - skip;
    sp->info.kernel = n - sp->info.rank;
    sp->info.mu_max = mu_max;
    memmove(sp->omega, sp->omega + skip, (size_t)(d - skip) * sizeof *sp->omega);
    memmove(sp->F, sp->F + skip * d, (size_t)((d - skip) * d) * sizeof *sp->F);
    for (int64_t k = 0; k < sp->info.modes; k++) {
        double root = sqrt(sp->omega[k]);
        for (int64_t j = 0; j < d; j++) sp->F[k * d + j] /= root;
        sp->omega[k] -= sp->nu;
    }
    sp->info.omega_min = -sp->nu;
    sp->info.omega_max = sp->info.modes ? sp->omega[sp->info.modes - 1] : -sp->nu;
    return CGAM_OK;
}

static cgam_status decompose_dense(cgam_spectrum *sp)
{
    const cgam_bank *bank = sp->bank;
    int64_t n = bank->Z.n;
    cgam_gram_info gram;
    cgam_status status = cgam_bank_gram(bank, &gram);
    if (status == CGAM_OK) status = cgam_rows_gram_outer(bank->env, &bank->Z, sp->F);
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < n; i++) sp->F[i * n + i] = 0;
    status = cgam_eigen_all(bank->env, n, true, sp->F, sp->omega);
    if (status != CGAM_OK) return status;
    sp->info.modes = n;
    sp->info.rank = gram.rank;
    sp->info.mu_min = gram.mu_min;
    sp->info.mu_max = gram.mu_max;
    sp->info.omega_min = sp->omega[0];
    sp->info.omega_max = sp->omega[n - 1];
    if (bank->info.equal_norms && gram.rank < n) sp->info.omega_min = -sp->nu; /* exactly */
    return CGAM_OK;
}

cgam_status cgam_spectrum_new(const cgam_bank *bank, cgam_spectrum **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n, d = bank->Z.d;
    bool through = bank->info.equal_norms && n > d;
    cgam_spectrum *sp = cgam_zalloc(env, 1, sizeof *sp);
    if (!sp) return cgam_fail_nomem(env, "a spectrum");
    sp->bank = bank;
    sp->nu = NAN;
    cgam_status status = CGAM_OK;
    if (bank->info.equal_norms)
        status = cgam_vec_pick(&bank->Z, bank->norm2, 1, &(int64_t){0}, &sp->nu);
    if (status != CGAM_OK) goto fail;
    status = CGAM_E_NOMEM;
    sp->F = new_square(env, through ? d : n);
    if (!sp->F) goto fail;
    sp->omega = cgam_alloc(env, (size_t)(through ? d : n), sizeof *sp->omega);
    if (!sp->omega) {
        status = cgam_fail_nomem(env, "eigenvalues");
        goto fail;
    }
    status = through ? decompose_through_bank(sp) : decompose_dense(sp);
    if (status != CGAM_OK) goto fail;
    double zero = 16 * (double)(d + 1) * 0x1p-52 * bank->info.norm_max * bank->info.norm_max;
    cgam_sign sign = CGAM_SIGN_NOT_ZERO; /* a rounded 0 looks like an eigenvalue */
    if (sp->info.omega_min >= -zero) status = cgam_bank_orthogonal(bank, &sign);
    if (status != CGAM_OK) goto fail;
    bool none = sign == CGAM_SIGN_ZERO || sp->info.omega_min >= 0;
    sp->info.omega = sp->omega;
    sp->info.alpha_crit = none ? INFINITY : -1 / sp->info.omega_min;
    *out = sp;
    return CGAM_OK;
fail:
    cgam_spectrum_free(sp);
    return status;
}

cgam_spectrum_info cgam_spectrum_describe(const cgam_spectrum *sp) { return sp->info; }
const double *cgam_spectrum_gram(const cgam_spectrum *sp) { return sp->gram; }
const cgam_bank *cgam_spectrum_bank(const cgam_spectrum *sp) { return sp->bank; }

/* c[modes] = V' x. scratch [d]. */
static cgam_status analyse(const cgam_spectrum *sp, const double *x, double *c, double *scratch)
{
    const double *in = x;
    if (sp->through_bank) {
        cgam_status status = cgam_bank_combine(sp->bank, x, scratch);
        if (status != CGAM_OK) return status;
        in = scratch;
    }
    int m = (int)sp->info.modes, len = (int)mode_length(sp);
    if (m) cblas_dgemv(CblasRowMajor, CblasNoTrans, m, len, 1, sp->F, len, in, 1, 0, c, 1);
    return CGAM_OK;
}

/* y = V c. scratch [d]. */
static cgam_status synthesise(const cgam_spectrum *sp, const double *c, double *y, double *scratch)
{
    double *to = sp->through_bank ? scratch : y;
    int m = (int)sp->info.modes, len = (int)mode_length(sp);
    memset(to, 0, (size_t)len * sizeof *to);
    if (m) cblas_dgemv(CblasRowMajor, CblasTrans, m, len, 1, sp->F, len, c, 1, 0, to, 1);
    return sp->through_bank ? cgam_bank_score(sp->bank, scratch, y) : CGAM_OK;
}

/* Splits x into c = V'x and the part orthogonal to all modes, rest = x - V c (NULL = not wanted). Two projections are
 * enough: after one, the rest keeps a part along the modes of relative size eps |x| / |rest|, which a gain of 1 / eta
 * would amplify. */
static cgam_status split_by_modes(const cgam_spectrum *sp, const double *x, double *c, double *rest)
{
    cgam_env *env = sp->bank->env;
    const cgam_rows *Z = &sp->bank->Z;
    int64_t m = sp->info.modes;
    double *scratch = cgam_alloc(env, (size_t)(Z->d + m), sizeof *scratch), *again = scratch + Z->d;
    double *part = cgam_vec_new(env, Z, 1);
    cgam_status status =
        scratch && part ? analyse(sp, x, c, scratch) : cgam_fail_nomem(env, "modes of a vector");
    if (status != CGAM_OK) {
        /* nothing to split */
    } else if (rest && sp->info.kernel > 0) {
        cgam_vec_copy(Z, rest, x);
        memcpy(again, c, (size_t)m * sizeof *again);
        for (int twice = 0; twice < 2 && status == CGAM_OK; twice++) {
            status = synthesise(sp, again, part, scratch);
            CGAM_EACH_ROW(Z, i) rest[i] -= part[i];
            if (status == CGAM_OK && twice == 0) status = analyse(sp, rest, again, scratch);
        }
        /* modes of weak directions are unit vectors only to eps mu_max / mu_k; with the correction of the second
         * projection, V c and the rest still add up to x */
        for (int64_t k = 0; k < m && status == CGAM_OK; k++) c[k] += again[k];
    } else if (rest) {
        cgam_vec_fill(Z, rest, 0);
    }
    cgam_free(env, scratch);
    cgam_vec_free(env, Z, part);
    return status;
}

cgam_status cgam_spectrum_analyse(const cgam_spectrum *sp, const double *x, double *c)
{
    return split_by_modes(sp, x, c, NULL);
}

cgam_status cgam_spectrum_rows(const cgam_spectrum *sp, int64_t begin, int64_t count, double *out)
{
    cgam_env *env = sp->bank->env;
    int64_t n = sp->bank->Z.n, d = sp->bank->Z.d, m = sp->info.modes;
    if (!sp->through_bank) {
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < m; k++) out[i * m + k] = sp->F[k * n + begin + i];
        return CGAM_OK;
    }
    double *rows = cgam_alloc(env, (size_t)(count * d), sizeof *rows);
    if (!rows) return cgam_fail_nomem(env, "rows of modes");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t row = begin + i;
        status = cgam_rows_bring(env, &sp->bank->Z, 1, &row);
        if (status == CGAM_OK) cgam_rows_get(&sp->bank->Z, row, 1, rows + i * d);
    }
    if (m && status == CGAM_OK)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)m, (int)d, 1, rows,
                    (int)d, sp->F, (int)d, 0, out, (int)m);
    cgam_free(env, rows);
    return status;
}

typedef struct modes {
    double *c, *rest, *scratch;
} modes;

static cgam_status modes_new(const cgam_spectrum *sp, modes *w)
{
    cgam_env *env = sp->bank->env;
    w->c = cgam_alloc(env, (size_t)(2 * sp->info.modes + 1), sizeof *w->c);
    w->rest = cgam_vec_new(env, &sp->bank->Z, 1);
    w->scratch = cgam_alloc(env, (size_t)sp->bank->Z.d, sizeof *w->scratch);
    return w->c && w->rest && w->scratch ? CGAM_OK : cgam_fail_nomem(env, "modes of a vector");
}

static void modes_free(const cgam_spectrum *sp, modes *w)
{
    cgam_free(sp->bank->env, w->c);
    cgam_vec_free(sp->bank->env, &sp->bank->Z, w->rest);
    cgam_free(sp->bank->env, w->scratch);
}

/* 1 / eta for one mode, or 0 if the mode is critical and x does not excite it. */
static bool invert_mode(double alpha, double omega, double amount, double size, double *gain)
{
    double eta = 1 + alpha * omega;
    bool critical = fabs(eta) <= 4 * 0x1p-52 * (1 + fabs(alpha * omega));
    bool excited = fabs(amount) > 1e-13 * size;
    *gain = critical ? 0 : 1 / eta;
    return !(critical && excited);
}

cgam_status cgam_spectrum_solve(const cgam_spectrum *sp, double alpha, const double *x, double *y)
{
    cgam_env *env = sp->bank->env;
    if (!isfinite(alpha))
        return cgam_fail(env, CGAM_E_ARG, "solve: alpha is %g, it must be finite", alpha);
    const cgam_rows *Z = &sp->bank->Z;
    double size = cgam_vec_norm(Z, x), gain;
    bool fine = true;
    modes w = {0};
    cgam_status status = modes_new(sp, &w);
    if (status == CGAM_OK) status = split_by_modes(sp, x, w.c, w.rest);
    if (status == CGAM_OK) {
        for (int64_t k = 0; k < sp->info.modes; k++) {
            fine &= invert_mode(alpha, sp->omega[k], w.c[k], size, &gain);
            w.c[k] *= gain;
        }
        status = synthesise(sp, w.c, y, w.scratch);
    }
    if (status == CGAM_OK && sp->info.kernel > 0) {
        fine &= invert_mode(alpha, -sp->nu, cgam_vec_norm(Z, w.rest), size, &gain);
        CGAM_EACH_ROW(Z, i) y[i] += gain * w.rest[i];
    }
    if (status == CGAM_OK && !fine)
        status = cgam_fail(env, CGAM_E_SINGULAR, "A(alpha) is singular at alpha = %.17g", alpha);
    modes_free(sp, &w);
    return status;
}

/* Z v is orthogonal to the kernel, and e_k'v = sqrt(mu_k) F_k v. */
cgam_status cgam_spectrum_solve_range(const cgam_spectrum *sp, double alpha, const double *v,
                                      double *y)
{
    cgam_env *env = sp->bank->env;
    if (!isfinite(alpha))
        return cgam_fail(env, CGAM_E_ARG, "solve: alpha is %g, it must be finite", alpha);
    int64_t d = sp->bank->Z.d, n = sp->bank->Z.n, m = sp->info.modes;
    double *work = cgam_alloc(env, (size_t)(sp->through_bank ? m + d : n), sizeof *work), gain;
    if (!work) return cgam_fail_nomem(env, "modes of a vector");
    cgam_status status = CGAM_OK;
    bool fine = true;
    if (!sp->through_bank) {
        status = cgam_bank_score(sp->bank, v, work);
        if (status == CGAM_OK) status = cgam_spectrum_solve(sp, alpha, work, y);
    } else {
        double size = cgam_array_norm(d, v);
        if (m)
            cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)m, (int)d, 1, sp->F, (int)d, v, 1, 0,
                        work, 1);
        for (int64_t k = 0; k < m; k++) {
            fine &= invert_mode(alpha, sp->omega[k], work[k], size, &gain);
            work[k] *= gain * (sp->omega[k] + sp->nu);
        }
        status = synthesise(sp, work, y, work + m);
    }
    if (status == CGAM_OK && !fine)
        status = cgam_fail(env, CGAM_E_SINGULAR, "A(alpha) is singular at alpha = %.17g", alpha);
    cgam_free(env, work);
    return status;
}

cgam_status cgam_spectrum_project_min(const cgam_spectrum *sp, const double *x, double *y)
{
    double near = sp->info.omega_min + 1e-9 * fmax(fabs(sp->info.omega_min), sp->info.mu_max);
    modes w = {0};
    cgam_status status = modes_new(sp, &w);
    if (status == CGAM_OK) status = split_by_modes(sp, x, w.c, w.rest);
    if (status == CGAM_OK) {
        for (int64_t k = 0; k < sp->info.modes; k++)
            if (sp->omega[k] > near) w.c[k] = 0;
        status = synthesise(sp, w.c, y, w.scratch);
    }
    if (status == CGAM_OK && sp->info.kernel > 0)
        CGAM_EACH_ROW(&sp->bank->Z, i) y[i] += w.rest[i];
    modes_free(sp, &w);
    return status;
}

/* Growth of one mode over time x = t / tau, times exp(-shift): the part of the start that remains, exp(-eta x), and
 * the part that the input adds, (1 - exp(-eta x)) / eta, which is x when eta = 0. */
static void grow_mode(double eta, double x, double shift, double *start, double *input)
{
    *start = exp(-eta * x - shift);
    if (fabs(eta * x) < 1e-8) /* the series to second order is exact to rounding */
        *input = x * (1 - 0.5 * eta * x) * exp(-shift);
    else if (-eta * x > 30) /* expm1 would overflow before the shift could help */
        *input = (*start - exp(-shift)) / -eta;
    else *input = -expm1(-eta * x) / eta * exp(-shift);
}

cgam_status cgam_spectrum_transient_scaled(const cgam_spectrum *sp, double alpha, double tau,
                                           double t, const double *u, const double *s0, double *s,
                                           double *shift)
{
    cgam_env *env = sp->bank->env;
    const cgam_rows *Z = &sp->bank->Z;
    int64_t m = sp->info.modes;
    if (!(tau > 0) || !(t >= 0) || !isfinite(t / tau) || !isfinite(alpha))
        return cgam_fail(
            env, CGAM_E_ARG,
            "transient: tau is %g, t is %g, alpha is %g; tau must be above 0, t 0 or more, all finite",
            tau, t, alpha);
    double x = t / tau, fastest = -(1 + alpha * sp->info.omega_min) * x, start, input;
    /* no mode exceeds (|s0| + x |u|) exp(fastest) */
    double of_u = cgam_vec_norm(Z, u), of_s0 = s0 ? cgam_vec_norm(Z, s0) : 1;
    double size = fmax(log(of_u) + log(x), log(of_s0)) + 1;
    *shift = fmax(fmax(fastest, 0) + fmax(size, 0) - 600, 0);
    modes w = {0};
    double *rest0 = cgam_vec_new(env, Z, 1);
    cgam_status status = rest0 ? modes_new(sp, &w) : cgam_fail_nomem(env, "a transient");
    if (rest0) cgam_vec_fill(Z, rest0, 0);
    if (status == CGAM_OK) status = split_by_modes(sp, u, w.c, w.rest);
    if (status == CGAM_OK && s0) status = split_by_modes(sp, s0, w.c + m, rest0);
    if (status == CGAM_OK) {
        for (int64_t k = 0; k < m; k++) {
            grow_mode(1 + alpha * sp->omega[k], x, *shift, &start, &input);
            w.c[k] = input * w.c[k] + (s0 ? start * w.c[m + k] : 0);
        }
        status = synthesise(sp, w.c, s, w.scratch);
    }
    if (status == CGAM_OK && sp->info.kernel > 0) {
        grow_mode(1 - alpha * sp->nu, x, *shift, &start, &input);
        CGAM_EACH_ROW(Z, i) s[i] += input * w.rest[i] + start * rest0[i];
    }
    cgam_vec_free(env, Z, rest0);
    modes_free(sp, &w);
    return status;
}

cgam_status cgam_spectrum_transient(const cgam_spectrum *sp, double alpha, double tau, double t,
                                    const double *u, const double *s0, double *s)
{
    double shift;
    cgam_status status = cgam_spectrum_transient_scaled(sp, alpha, tau, t, u, s0, s, &shift);
    if (status != CGAM_OK || shift == 0) return status;
    CGAM_EACH_ROW(&sp->bank->Z, i) {
        /* log |s| + shift decides whether the result is in the range of double */
        double exponent = log(fabs(s[i])) + shift;
        if (s[i] != 0) s[i] = copysign(exponent < 709 ? exp(exponent) : DBL_MAX, s[i]);
    }
    return CGAM_OK;
}
