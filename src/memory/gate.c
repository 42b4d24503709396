/* gate.c: one alpha, factored. A = D + alpha Z Z', D = diag(1 - alpha n_i); see num/dplr.c for the
 * algebra. alpha_crit and eta_min come from the norms if these suffice, and from an eigenvalue if that is requested
 * or cheap:
 *     omega_min = lambda_min(G - diag G),  alpha_crit = -1 / omega_min,  eta_min = 1 + alpha omega_min. */
#include "memory/gate.h"
#include "memory/pack.h"
#include "memory/spectrum.h"
#include "memory/twins.h"

#include "num/vec.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double CRITICAL_BAND = 1e-9;
static const double RANGE = 0x1p1000;  /* of entries of A, so that sums of them stay finite */
static const double SMALL_FLOPS = 2e9; /* a tenth of a second */

const char *const cgam_regime_words[] = {"subcritical", "critical", "supercritical", NULL};

bool cgam_bank_small(const cgam_bank *bank)
{
    double n = (double)bank->Z.n, d = (double)bank->Z.d, small = fmin(n, d);
    return n * d * small + 10 * small * small * small <= SMALL_FLOPS;
}

cgam_status cgam_bank_orthogonal(const cgam_bank *bank, cgam_sign *out)
{
    int64_t n = bank->Z.n, d = bank->Z.d;
    cgam_rows stored = bank->Z; /* a factor keeps right angles, but its rounding would not */
    stored.scale = NULL;
    *out = CGAM_SIGN_NOT_ZERO;
    if (n - bank->info.zero_rows > d) return CGAM_OK; /* more directions than dimensions */
    double *rows = cgam_alloc(bank->env, (size_t)(2 * d), sizeof *rows);
    int64_t *some = cgam_alloc(bank->env, (size_t)d, sizeof *some), mine = 0, count = 0;
    void *all = NULL;
    CGAM_EACH_ROW(&bank->Z, i) {
        if (some && bank->norm2[i] != 0) some[mine++] = i;
    }
    cgam_status status = rows && some ? cgam_rows_collect(bank->env, &bank->Z, sizeof *some, mine,
                                                          some, &count, &all)
                                      : cgam_fail_nomem(bank->env, "a pair of memories");
    const int64_t *row = all;
    if (status == CGAM_OK) status = cgam_rows_bring(bank->env, &bank->Z, count, row);
    *out = status == CGAM_OK ? CGAM_SIGN_ZERO : CGAM_SIGN_UNKNOWN;
    for (int64_t i = 0; i < count && *out != CGAM_SIGN_NOT_ZERO && status == CGAM_OK; i++) {
        cgam_rows_get(&stored, row[i], 1, rows);
        for (int64_t j = 0; j < i && *out != CGAM_SIGN_NOT_ZERO; j++) {
            cgam_rows_get(&stored, row[j], 1, rows + d);
            cgam_sign sign = cgam_dot_sign(d, rows, rows + d);
            if (sign != CGAM_SIGN_ZERO) *out = sign;
        }
    }
    cgam_free(bank->env, rows);
    cgam_free(bank->env, some);
    cgam_free(bank->env, all);
    return status;
}

/* -1 / omega for omega < 0, which is in units of 2^power; rounded down or up. */
static double alpha_of(double omega, int power, bool up)
{
    double alpha = ldexp(up ? cgam_above(-1 / omega) : cgam_below(-1 / omega), -power);
    return up ? cgam_above(alpha) : cgam_below(alpha);
}

/* omega_min is taken in units of the largest n_i, so that the scale of the bank does not matter. The trace of G -
 * diag G is 0, so omega_min <= 0, and 0 only for orthogonal memories. */
cgam_status cgam_gate_critical(const cgam_bank *bank, cgam_effort effort, cgam_critical *out)
{
    cgam_env *env = bank->env;
    *out = (cgam_critical){.alpha = INFINITY, INFINITY, INFINITY, .proved = true};
    int power;
    frexp(bank->info.norm_max * bank->info.norm_max, &power);
    if (bank->Z.n == 1 || bank->info.norm_max == 0) return CGAM_OK;
    cgam_dplr_spec off_diagonal = {.Z = &bank->Z, .norm2 = bank->norm2, .a = ldexp(1, -power)};
    cgam_lowest low = {0};
    cgam_status status = effort == CGAM_EFFORT_FULL
                             ? cgam_dplr_lowest(env, &off_diagonal, 1e-12, false, &low)
                             : cgam_dplr_bracket(env, &off_diagonal, &low.lo, &low.hi);
    if (status != CGAM_OK) return status;
    if (effort == CGAM_EFFORT_FREE) low.value = 0.5 * (low.lo + low.hi);
    if (!(low.hi < 0)) { /* eigenvalues cannot decide it */
        cgam_sign zero = CGAM_SIGN_UNKNOWN;
        if (effort == CGAM_EFFORT_FULL) status = cgam_bank_orthogonal(bank, &zero);
        if (status != CGAM_OK || zero == CGAM_SIGN_ZERO) return status;
    }
    out->alpha_lo = low.lo < 0 ? alpha_of(low.lo, power, false) : 0;
    out->alpha_hi = low.hi < 0 ? alpha_of(low.hi, power, true) : INFINITY;
    out->proved = low.hi < 0 && out->alpha_hi - out->alpha_lo <= 0.5e-9 * out->alpha_lo;
    bool known = out->alpha_hi - out->alpha_lo <= 1e-6 * out->alpha_lo;
    out->alpha =
        known ? fmin(fmax(ldexp(-1 / low.value, -power), out->alpha_lo), out->alpha_hi) : NAN;
    return CGAM_OK;
}

cgam_gate_opts cgam_gate_opts_default(void) { return (cgam_gate_opts){0}; }

void cgam_gate_free(cgam_gate *gate)
{
    if (!gate) return;
    cgam_dplr_inverse_free(gate->small);
    cgam_dplr_free(gate->A);
    cgam_spectrum_free(gate->critical_modes);
    cgam_twins_free(gate->bank->env, gate->twins);
    cgam_free(gate->bank->env, gate);
}

size_t cgam_gate_bytes(const cgam_gate *gate)
{
    return sizeof *gate + (gate->A ? cgam_dplr_bytes(gate->A) : 0) +
           cgam_dplr_inverse_bytes(gate->small);
}

/* Lower and upper bound of eta_min = 1 - alpha / alpha_crit. */
static void eta_of(double alpha, const cgam_critical *crit, double *lo, double *hi)
{
    *lo = alpha == 0 || isinf(crit->alpha_lo) ? 1
                                              : cgam_below(1 - cgam_above(alpha / crit->alpha_lo));
    *hi = alpha == 0 || isinf(crit->alpha_hi) ? 1
                                              : cgam_above(1 - cgam_below(alpha / crit->alpha_hi));
}

/* The bound from the largest norm: omega_min >= -max n_i, with equality where norms are equal and n > d. */
static cgam_critical critical_of_norm(const cgam_bank *bank)
{
    const cgam_bank_info *info = &bank->info;
    cgam_critical out = {.alpha = NAN, 0, INFINITY};
    double off = cgam_norm_error(bank->Z.d) + 8 * CGAM_U, square = info->norm_max * info->norm_max;
    if (!(square >= 0x1p-900 && square <= 0x1p900)) return out; /* products may underflow */
    out.alpha_lo = cgam_below(1 / cgam_widened(square, off));
    if (!info->equal_norms || bank->Z.n <= bank->Z.d) return out;
    out.alpha = 1 / square;
    out.alpha_hi = cgam_above((1 + 2 * off) / square);
    out.proved = out.alpha_hi - out.alpha_lo <= 0.5e-9 * out.alpha_lo;
    return out;
}

/* Finds alpha_crit as far as a gate needs it, and eta_least. fits: the gate has factors. */
static cgam_status find_critical(cgam_gate *gate, cgam_effort effort, bool fits)
{
    const cgam_bank *bank = gate->bank;
    cgam_critical *crit = &gate->info.critical;
    double alpha = gate->info.alpha, hi;
    if (effort == CGAM_EFFORT_LEAST && alpha == 0 && bank->Z.n > 1 && bank->info.norm_max > 0) {
        *crit = critical_of_norm(bank);
        gate->eta_least = 1;
        return CGAM_OK;
    }
    cgam_status status = cgam_gate_critical(bank, CGAM_EFFORT_FREE, crit);
    eta_of(alpha, crit, &gate->eta_least, &hi);
    bool small = fits && cgam_bank_small(bank), open = hi > 0 && !(hi <= 2 * gate->eta_least);
    bool full = effort == CGAM_EFFORT_FULL ? fits : small && (open || effort == CGAM_EFFORT_FREE);
    if (status == CGAM_OK && full) status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, crit);
    if (small && open) eta_of(alpha, crit, &gate->eta_least, &hi);
    return status;
}

/* Does an inverse of the small system, and a product with it, cost less than K did, or little? */
static bool proof_pays(const cgam_gate *gate)
{
    double n = (double)gate->bank->Z.n, d = (double)gate->bank->Z.d;
    double size = d + (double)cgam_dplr_border(gate->A, NULL);
    return 4 * size * size * size <= fmax(n * d * d, SMALL_FLOPS);
}

/* Regime and eta_min from the known bounds of alpha_crit. If these leave the sign of eta_min open, a factorisation
 * proves that A is positive definite, or a vector proves that it is not; the signs of its factors only suggest which
 * to try. */
static cgam_status classify(cgam_gate *gate, const cgam_dplr_spec *spec)
{
    cgam_gate_info *info = &gate->info;
    const cgam_critical *crit = &info->critical;
    double lo, hi, near = 1 - info->alpha / crit->alpha;
    bool positive = false, negative = false, open;
    cgam_status status = CGAM_OK;
    eta_of(info->alpha, crit, &lo, &hi);
    info->eta_min = lo;
    info->eta_min_exact = hi - lo <= 1e-9 * fmax(1, fabs(lo));
    open = lo <= 0 && hi >= 0 && gate->A && !(fabs(near) <= CRITICAL_BAND);
    if (open && info->negative == 0) status = cgam_dplr_above(gate->bank->env, spec, 0, &positive);
    else if (open) status = cgam_dplr_below(gate->bank->env, spec, 0, &negative);
    if (lo > 0) info->negative = 0;
    if (fabs(near) <= CRITICAL_BAND) info->regime = CGAM_CRITICAL;
    else if (lo > 0 || positive) info->regime = CGAM_SUBCRITICAL;
    else if (hi < 0 || negative) info->regime = CGAM_SUPERCRITICAL;
    else info->regime = CGAM_CRITICAL;
    gate->gain = lo > 0 ? cgam_above(1 / lo) : INFINITY;
    if (!(lo > 0) && status == CGAM_OK && gate->A)
        status = cgam_dplr_inverse_norm(gate->A, spec, &gate->gain);
    if (status == CGAM_OK && gate->A && !cgam_dplr_dense(gate->A) && proof_pays(gate))
        status = cgam_dplr_prove_gain(gate->A);
    if (status == CGAM_OK && isinf(gate->gain) && gate->A)
        gate->gain = cgam_dplr_solve_gain(gate->A);
    return status;
}

static cgam_status range_in_one_pass(const cgam_gate *gate, const double *v, double *y)
{
    const cgam_bank *bank = gate->bank;
    cgam_env *env = bank->env;
    int64_t d = bank->Z.d;
    const int64_t *border;
    int64_t m = cgam_dplr_border(gate->A, &border);
    const double *dinv = cgam_dplr_dinv(gate->A);
    double *e = cgam_alloc(env, (size_t)(d + m), sizeof *e);
    if (!e) return cgam_fail_nomem(env, "the input of the gates");
    cgam_status status = cgam_dplr_range(gate->A, v, e, e + d);
    if (status == CGAM_OK) status = cgam_bank_score(bank, e, y);
    if (status == CGAM_OK) {
        CGAM_EACH_ROW(&bank->Z, i) y[i] *= dinv[i];
        cgam_vec_put(&bank->Z, y, m, border, e + d);
    }
    cgam_free(env, e);
    return status;
}

/* One pass divides <zeta_i, e> by D_i. Where D is small and the memories span less than R^d, e has a part outside
 * their span, and its rounding error is amplified; so near criticality a vector is tried. */
static cgam_status try_one_pass(cgam_gate *gate)
{
    const cgam_bank *bank = gate->bank;
    cgam_env *env = bank->env;
    int64_t d = bank->Z.d;
    if (!gate->A || cgam_dplr_dense(gate->A)) return CGAM_OK;
    const double *dinv = cgam_dplr_dinv(gate->A);
    gate->one_pass = true;
    if (gate->a == 0) return CGAM_OK;
    double largest = cgam_vec_max_abs(&bank->Z, dinv);
    cgam_status status = cgam_rows_status(&bank->Z);
    if (status != CGAM_OK || largest <= 100) return status;
    double *u = cgam_vec_new(env, &bank->Z, 3), *v = cgam_alloc(env, (size_t)d, sizeof *v);
    double *y = u ? cgam_vec_next(&bank->Z, u) : NULL,
           *back = u ? cgam_vec_next(&bank->Z, y) : NULL;
    if (!u || !v) {
        cgam_vec_free(env, &bank->Z, u);
        cgam_free(env, v);
        return cgam_fail_nomem(env, "a trial of the gate operator");
    }
    for (int64_t j = 0; j < d; j++) v[j] = (double)(j * 2654435761u % 1024) / 512 - 1.0009;
    status = cgam_bank_score(bank, v, u);
    if (status == CGAM_OK) status = range_in_one_pass(gate, v, y);
    if (status == CGAM_E_SINGULAR) { /* nothing to try: solves will report it */
        gate->one_pass = false;
        status = CGAM_OK;
    } else if (status == CGAM_OK) {
        status = cgam_gate_apply(gate, y, back);
    }
    if (status == CGAM_OK && gate->one_pass) {
        double size = cgam_vec_norm(&bank->Z, y) + cgam_vec_norm(&bank->Z, u);
        CGAM_EACH_ROW(&bank->Z, i) back[i] -= u[i];
        gate->one_pass = cgam_vec_norm(&bank->Z, back) <= 1e-12 * size;
    }
    cgam_vec_free(env, &bank->Z, u);
    cgam_free(env, v);
    return status;
}

cgam_status cgam_gate_new(const cgam_bank *bank, double alpha, const cgam_gate_opts *opts,
                          cgam_gate **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    cgam_gate_opts o = opts ? *opts : cgam_gate_opts_default();
    if (!(alpha >= 0) || !isfinite(alpha))
        return cgam_fail(env, CGAM_E_ARG, "alpha is %g, it must be 0 or more and finite", alpha);
    if (!(alpha * bank->info.norm_max * bank->info.norm_max * (double)bank->Z.n <= RANGE))
        return cgam_fail(env, CGAM_E_ARG,
                         "alpha is %g and the longest memory has norm %g: alpha norm^2 leaves the "
                         "range of double",
                         alpha, bank->info.norm_max);
    cgam_status status = cgam_packed_gate(bank, alpha, &o, out); /* stored in the file */
    if (status != CGAM_OK || *out) return status;
    cgam_gate *gate = cgam_zalloc(env, 1, sizeof *gate);
    if (!gate) return cgam_fail_nomem(env, "a gate operator");
    gate->bank = bank;
    gate->info.alpha = alpha;
    gate->a = bank->Z.n > 1 ? alpha : 0;
    cgam_dplr_spec spec = cgam_gate_hessian(gate, 1, 0, NULL);
    spec.gram = o.spectrum ? cgam_spectrum_gram(o.spectrum) : NULL;
    double bytes = 8 * cgam_dplr_cost(&spec);
    double limit = o.memory_max ? (double)o.memory_max : 0.5 * (double)cgam_memory_available();
    status = cgam_rows_least(env, &bank->Z, &limit);
    if (status != CGAM_OK) goto fail;
    bool fits = bytes <= limit;
    if (!o.critical) {
        status = find_critical(gate, o.effort, fits);
    } else {
        double most;
        gate->info.critical = *o.critical;
        eta_of(alpha, o.critical, &gate->eta_least, &most);
    }
    if (status != CGAM_OK) goto fail;
    if (fits) {
        status = cgam_dplr_new(env, &spec, &gate->A);
        if (status != CGAM_OK) goto fail;
        gate->info.negative = cgam_dplr_negative(gate->A);
    } else if (gate->a * bank->info.norm_max * bank->info.norm_max < 1) {
        gate->info.iterative = true; /* D > 0, so A is positive definite: conjugate gradients */
    } else {
        status = cgam_fail(env, CGAM_E_NOMEM,
                           "the gate operator needs %.0f MiB (limit: %.0f MiB), and conjugate "
                           "gradients need alpha below 1 / max |memory|^2; alpha is %g",
                           bytes / 0x1p20, limit / 0x1p20, alpha);
        goto fail;
    }
    status = classify(gate, &spec);
    if (status == CGAM_OK) status = try_one_pass(gate);
    if (status != CGAM_OK) goto fail;
    if (gate->info.regime == CGAM_CRITICAL && gate->A && !gate->one_pass &&
        (cgam_dplr_dense(gate->A) || bank->info.equal_norms)) {
        /* solves with factors of a singular matrix return noise; its modes show which right sides have a solution */
        status = cgam_spectrum_new(bank, &gate->critical_modes);
        if (status != CGAM_OK) goto fail;
    }
    if (o.coupled && gate->A && !cgam_dplr_dense(gate->A) && !cgam_dplr_singular(gate->A)) {
        status = cgam_dplr_inverse_new(gate->A, &gate->small);
        if (status != CGAM_OK) goto fail;
    }
    gate->alike = o.alike && alpha > 0;
    if (gate->alike) {
        status = cgam_twins_find(bank, &gate->twins);
        if (status != CGAM_OK) goto fail;
    }
    *out = gate;
    return CGAM_OK;
fail:
    cgam_gate_free(gate);
    if (status == CGAM_E_INTERNAL && bank->unread)
        status = cgam_fail(env, CGAM_E_VALUE,
                           "a product of memories is not finite: the bank may be damaged, see bank "
                           "show --check");
    return status;
}

cgam_gate_info cgam_gate_describe(const cgam_gate *gate) { return gate->info; }

cgam_dplr_spec cgam_gate_hessian(const cgam_gate *gate, double factor, double shift_p,
                                 const double *p)
{
    return (cgam_dplr_spec){.Z = &gate->bank->Z,
                            .norm2 = gate->bank->norm2,
                            .a = factor * gate->a,
                            .w = shift_p > 0 ? p : NULL,
                            .sigma = shift_p,
                            .level = factor};
}

cgam_status cgam_gate_apply(const cgam_gate *gate, const double *x, double *y)
{
    cgam_dplr_spec spec = cgam_gate_hessian(gate, 1, 0, NULL);
    if (gate->A) return cgam_dplr_apply(gate->A, x, y);
    return cgam_dplr_apply_bounded(gate->bank->env, &spec, NULL, x, y, NULL);
}

/* Conjugate gradients with D as preconditioner, restarted once from the true residual, which acts as iterative
 * refinement. */
static cgam_status solve_cg(const cgam_gate *gate, const double *x, double *y, double *backward)
{
    const cgam_bank *bank = gate->bank;
    cgam_env *env = bank->env;
    const cgam_rows *Z = &bank->Z;
    double *r = cgam_vec_new(env, Z, 4);
    if (!r) return cgam_fail_nomem(env, "conjugate gradients");
    double *z = cgam_vec_next(Z, r), *dir = cgam_vec_next(Z, z), *Ad = cgam_vec_next(Z, dir);
    double size_x = cgam_vec_norm(Z, x), error = 0;
    cgam_dplr_spec spec = cgam_gate_hessian(gate, 1, 0, NULL);
    cgam_status status = CGAM_OK;
    cgam_vec_fill(Z, y, 0);
    for (int round = 0; round < 3 && status == CGAM_OK; round++) {
        status = cgam_gate_apply(gate, y, r);
        if (status != CGAM_OK) break;
        CGAM_EACH_ROW(Z, i) r[i] = x[i] - r[i];
        double scale = cgam_vec_norm(Z, y) + size_x, rz = 0;
        error = scale > 0 ? cgam_vec_norm(Z, r) / scale : 0;
        if (error <= 1e-15 || round == 2) break;
        CGAM_EACH_ROW(Z, i) dir[i] = z[i] = r[i] / cgam_dplr_pivot(&spec, i, NULL);
        rz = cgam_vec_dot(Z, r, z);
        /* rounding may need more steps than the n of exact arithmetic */
        for (int64_t step = 0; step < 10 * Z->n + 100 && status == CGAM_OK; step++) {
            status = cgam_gate_apply(gate, dir, Ad);
            if (status != CGAM_OK) break;
            double curve = cgam_vec_dot(Z, dir, Ad);
            if (!(curve > 0)) break;
            double length = rz / curve;
            CGAM_EACH_ROW(Z, i) {
                y[i] += length * dir[i];
                r[i] -= length * Ad[i];
                z[i] = r[i] / cgam_dplr_pivot(&spec, i, NULL);
            }
            double left = cgam_vec_norm(Z, r);
            if (left <= 1e-16 * (cgam_vec_norm(Z, y) + size_x)) break;
            double next = cgam_vec_dot(Z, r, z), ratio = next / rz;
            rz = next;
            CGAM_EACH_ROW(Z, i) dir[i] = z[i] + ratio * dir[i];
        }
    }
    if (backward) *backward = error;
    cgam_vec_free(env, Z, r);
    if (status == CGAM_OK && !(error <= 1e-12))
        status = cgam_fail(env, CGAM_E_INTERNAL,
                           "conjugate gradients did not converge: backward error %.2g", error);
    return status;
}

cgam_status cgam_gate_solve(const cgam_gate *gate, const double *x, double *y, double *backward)
{
    if (!gate->A) return solve_cg(gate, x, y, backward);
    if (gate->critical_modes && cgam_dplr_dense(gate->A)) {
        if (backward) *backward = NAN;
        return cgam_spectrum_solve(gate->critical_modes, gate->info.alpha, x, y);
    }
    if (cgam_dplr_singular(gate->A))
        return cgam_fail(gate->bank->env, CGAM_E_SINGULAR,
                         "A(alpha) is singular at alpha = %.17g, its critical value",
                         gate->info.alpha);
    return cgam_dplr_solve(gate->A, x, y, backward);
}

cgam_status cgam_gate_solve_range(const cgam_gate *gate, const double *v, double *y)
{
    const cgam_bank *bank = gate->bank;
    if (gate->one_pass) return range_in_one_pass(gate, v, y);
    double *u = cgam_vec_new(bank->env, &bank->Z, 1);
    if (!u) return cgam_fail_nomem(bank->env, "the input of the gates");
    cgam_status status = cgam_bank_score(bank, v, u);
    if (status == CGAM_OK && gate->critical_modes)
        status = cgam_spectrum_solve(gate->critical_modes, gate->info.alpha, u, y);
    else if (status == CGAM_OK) status = cgam_gate_solve(gate, u, y, NULL);
    cgam_vec_free(bank->env, &bank->Z, u);
    return status;
}
