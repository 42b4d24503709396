/* gate.c: one alpha, factored. A = D + alpha Z Z', D = diag(1 - alpha n_i); see num/dplr.c for the
 * algebra. What is known of alpha_crit and eta_min comes from the norms where they suffice and
 * from an eigenvalue where that is asked for or cheap:
 *     omega_min = lambda_min(G - diag G),  alpha_crit = -1 / omega_min,  eta_min = 1 + alpha omega_min. */
#include "memory/gate.h"

#include "base/names.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double CRITICAL_BAND = 1e-9; /* what counts as critical, around 0 */
static const double SMALL_FLOPS = 2e9;    /* a tenth of a second */

CGAM_NAMES(cgam_regime, cgam_regime, "subcritical", "critical", "supercritical")
CGAM_NAMES(cgam_effort, cgam_effort, "free", "full")

bool cgam_bank_small(const cgam_bank *bank)
{
    double n = (double)bank->Z.n, d = (double)bank->Z.d, small = fmin(n, d);
    return n * d * small + 10 * small * small * small <= SMALL_FLOPS;
}

/* omega -> alpha: no negative eigenvalue means that no alpha is critical. */
static double alpha_of(double omega) { return omega < 0 ? -1 / omega : INFINITY; }

cgam_status cgam_gate_critical(const cgam_bank *bank, cgam_effort effort, cgam_critical *out)
{
    cgam_env *env = bank->env;
    *out = (cgam_critical){.alpha = NAN};
    double *D = cgam_alloc(env, (size_t)bank->Z.n, sizeof *D);
    if (!D) return cgam_fail_nomem(env, "norms");
    for (int64_t i = 0; i < bank->Z.n; i++) D[i] = -bank->norm2[i];
    cgam_dplr_spec off_diagonal = {.Z = &bank->Z, .norm2 = bank->norm2, .D = D, .a = 1};
    cgam_lowest low = {0};
    cgam_status status = effort == CGAM_EFFORT_FULL
                             ? cgam_dplr_lowest(env, &off_diagonal, 1e-12, false, &low)
                             : cgam_dplr_bracket(env, &off_diagonal, &low.lo, &low.hi);
    cgam_free(env, D);
    if (status != CGAM_OK) return status;

    /* The trace of G - diag G is 0, so omega_min <= 0, and 0 only for orthogonal memories; an
     * eigenvalue at the level of rounding is that case. Entries of G - diag G are products of two
     * memories, so the two longest tell the level. */
    double first = 0, second = 0;
    for (int64_t i = 0; i < bank->Z.n; i++) {
        second = fmax(second, fmin(first, bank->norm2[i]));
        first = fmax(first, bank->norm2[i]);
    }
    double zero = 16 * (double)(bank->Z.d + 1) * 0x1p-52 * sqrt(first) * sqrt(second);
    if (effort == CGAM_EFFORT_FULL) {
        bool orthogonal = low.value >= -zero;
        out->alpha = orthogonal ? INFINITY : alpha_of(low.value);
        out->alpha_lo = alpha_of(fmin(low.lo, -zero));
        out->alpha_hi = low.hi >= -zero ? INFINITY : alpha_of(low.hi);
        out->proved = orthogonal ? low.lo >= -4 * zero : low.hi - low.lo <= 1e-9 * -low.value;
        if (!out->proved && !(low.hi - low.lo <= 1e-6 * -low.value)) out->alpha = NAN;
        return CGAM_OK;
    }
    out->alpha_lo = alpha_of(low.lo);
    out->alpha_hi = alpha_of(low.hi > -zero ? 0 : low.hi);
    if (out->alpha_hi - out->alpha_lo <= 1e-6 * out->alpha_lo) {
        out->alpha = 0.5 * (out->alpha_lo + out->alpha_hi);
        out->proved = out->alpha_hi - out->alpha_lo <= 1e-9 * out->alpha_lo;
    }
    return CGAM_OK;
}

cgam_gate_opts cgam_gate_opts_default(void) { return (cgam_gate_opts){0}; }

void cgam_gate_free(cgam_gate *gate)
{
    if (!gate) return;
    cgam_dplr_free(gate->A);
    cgam_spectrum_free(gate->critical_modes);
    cgam_free(gate->bank->env, gate->D);
    cgam_free(gate->bank->env, gate);
}

/* Regime and eta_min from what is known of alpha_crit and from the inertia of the factors. */
static void classify(cgam_gate *gate)
{
    cgam_gate_info *info = &gate->info;
    const cgam_critical *crit = &info->critical;
    double alpha = info->alpha;
    /* where alpha_crit is known it decides; it is more robust than a count in floating point */
    if (crit->proved ? alpha > crit->alpha : info->negative > 0) info->regime = CGAM_SUPERCRITICAL;
    if (!isnan(crit->alpha) && fabs(1 - alpha / crit->alpha) <= CRITICAL_BAND)
        info->regime = CGAM_CRITICAL;
    if (gate->A && cgam_dplr_singular(gate->A)) info->regime = CGAM_CRITICAL;

    if (alpha == 0) {
        info->eta_min = 1;
        info->eta_min_exact = true;
    } else if (!isnan(crit->alpha) && crit->proved) {
        info->eta_min = isinf(crit->alpha) ? 1 : 1 - alpha / crit->alpha;
        info->eta_min_exact = true;
    } else {
        info->eta_min = 1 - alpha / crit->alpha_lo; /* alpha_lo >= 1 / max n_i */
    }
}

static cgam_status range_in_one_pass(const cgam_gate *gate, const double *v, double *y)
{
    const cgam_bank *bank = gate->bank;
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n, d = bank->Z.d;
    const int64_t *border;
    int64_t m = cgam_dplr_border(gate->A, &border);
    const double *dinv = cgam_dplr_dinv(gate->A);
    double *e = cgam_alloc(env, (size_t)(d + m), sizeof *e);
    if (!e) return cgam_fail_nomem(env, "the input of the gates");
    cgam_status status = cgam_dplr_range(gate->A, v, e, e + d);
    if (status == CGAM_OK) status = cgam_bank_score(bank, e, y);
    if (status == CGAM_OK) {
        for (int64_t i = 0; i < n; i++) y[i] *= dinv[i];
        for (int64_t k = 0; k < m; k++) y[border[k]] = e[d + k];
    }
    cgam_free(env, e);
    return status;
}

/* One pass divides <zeta_i, e> by D_i. Where D is small and the memories span less than R^d, e has a
 * part they cannot see, and what rounding leaves of it is blown up; so near criticality a vector is
 * tried. */
static cgam_status try_one_pass(cgam_gate *gate)
{
    const cgam_bank *bank = gate->bank;
    int64_t n = bank->Z.n, d = bank->Z.d;
    if (!gate->A || cgam_dplr_dense(gate->A)) return CGAM_OK;
    const double *dinv = cgam_dplr_dinv(gate->A);
    double steepest = 0;
    for (int64_t i = 0; i < n; i++) steepest = fmax(steepest, fabs(dinv[i]));
    gate->one_pass = true;
    if (steepest <= 100) return CGAM_OK;
    double *work = cgam_alloc(bank->env, (size_t)(3 * n + d), sizeof *work);
    if (!work) return cgam_fail_nomem(bank->env, "a trial of the gate operator");
    double *u = work, *y = work + n, *back = y + n, *v = back + n;
    for (int64_t j = 0; j < d; j++) v[j] = (double)(j * 2654435761u % 1024) / 512 - 1.0009;
    cgam_status status = cgam_bank_score(bank, v, u);
    if (status == CGAM_OK) status = range_in_one_pass(gate, v, y);
    if (status == CGAM_E_SINGULAR) { /* nothing to try: solves will say so */
        gate->one_pass = false;
        status = CGAM_OK;
    } else if (status == CGAM_OK) {
        status = cgam_gate_apply(gate, y, back);
        double size = cgam_vec_norm(n, y) + cgam_vec_norm(n, u);
        for (int64_t i = 0; i < n; i++) back[i] -= u[i];
        gate->one_pass = cgam_vec_norm(n, back) <= 1e-12 * size;
    }
    cgam_free(bank->env, work);
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
    double longest = bank->info.norm_max;
    if (!(alpha * longest * longest <= 1e306)) /* A's entries, with room for sums of them */
        return cgam_fail(env, CGAM_E_ARG,
                         "alpha is %g and the longest memory has norm %g: alpha norm^2 leaves the "
                         "range of double",
                         alpha, longest);
    cgam_gate *gate = cgam_zalloc(env, 1, sizeof *gate);
    if (!gate) return cgam_fail_nomem(env, "a gate operator");
    gate->bank = bank;
    gate->info.alpha = alpha;
    int64_t n = bank->Z.n;
    cgam_status status = CGAM_OK;
    gate->D = cgam_alloc(env, (size_t)n, sizeof *gate->D);
    if (!gate->D) {
        status = cgam_fail_nomem(env, "the diagonal of the gate operator");
        goto fail;
    }
    gate->a = n > 1 ? alpha : 0;
    for (int64_t i = 0; i < n; i++) gate->D[i] = 1 - gate->a * bank->norm2[i];

    cgam_dplr_spec spec = {.Z = &bank->Z, .norm2 = bank->norm2, .D = gate->D, .a = gate->a};
    double bytes = 8 * cgam_dplr_cost(&spec);
    double limit = o.memory_max ? (double)o.memory_max : 0.5 * (double)cgam_memory_available();
    bool fits = bytes <= limit;
    bool full = fits && (o.effort == CGAM_EFFORT_FULL || cgam_bank_small(bank));
    status =
        cgam_gate_critical(bank, full ? CGAM_EFFORT_FULL : CGAM_EFFORT_FREE, &gate->info.critical);
    if (status != CGAM_OK) goto fail;
    if (fits) {
        status = cgam_dplr_new(env, &spec, &gate->A);
        if (status != CGAM_OK) goto fail;
        gate->info.negative = cgam_dplr_negative(gate->A);
    } else if (gate->a * bank->info.norm_max * bank->info.norm_max < 1) {
        gate->info.iterative = true; /* D > 0, so A is positive definite: conjugate gradients */
    } else {
        status =
            cgam_fail(env, CGAM_E_NOMEM,
                      "the gate operator needs a system of %.0f MiB, %.0f MiB may be used, and "
                      "alpha = %g >= 1 / max |memory|^2 rules out conjugate gradients",
                      bytes / 0x1p20, limit / 0x1p20, alpha);
        goto fail;
    }
    classify(gate);
    status = try_one_pass(gate);
    if (status != CGAM_OK) goto fail;
    if (gate->info.regime == CGAM_CRITICAL && gate->A && !gate->one_pass &&
        (cgam_dplr_dense(gate->A) || bank->info.equal_norms)) {
        /* factors of a singular matrix answer with noise; its modes tell what can be answered */
        status = cgam_spectrum_new(bank, &gate->critical_modes);
        if (status != CGAM_OK) goto fail;
    }
    *out = gate;
    return CGAM_OK;
fail:
    cgam_gate_free(gate);
    return status;
}

cgam_gate_info cgam_gate_describe(const cgam_gate *gate) { return gate->info; }

cgam_dplr_spec cgam_gate_hessian(const cgam_gate *gate, double factor, double shift_p,
                                 const double *p, double *D)
{
    const cgam_bank *bank = gate->bank;
    for (int64_t i = 0; i < bank->Z.n; i++) D[i] = factor * gate->D[i] - shift_p * p[i];
    return (cgam_dplr_spec){.Z = &bank->Z,
                            .norm2 = bank->norm2,
                            .D = D,
                            .a = factor * gate->a,
                            .w = shift_p > 0 ? p : NULL,
                            .sigma = shift_p};
}

cgam_status cgam_gate_apply(const cgam_gate *gate, const double *x, double *y)
{
    const cgam_bank *bank = gate->bank;
    if (gate->A) return cgam_dplr_apply(gate->A, x, y);
    double *t = cgam_alloc(bank->env, (size_t)bank->Z.d, sizeof *t);
    if (!t) return cgam_fail_nomem(bank->env, "a product with the gate operator");
    cgam_status status = cgam_bank_combine(bank, x, t);
    if (status == CGAM_OK) status = cgam_bank_score(bank, t, y);
    for (int64_t i = 0; i < bank->Z.n; i++) y[i] = gate->D[i] * x[i] + gate->a * y[i];
    cgam_free(bank->env, t);
    return status;
}

/* Conjugate gradients with D as preconditioner, restarted once from the true residual: that
 * restart is its refinement step. */
static cgam_status solve_cg(const cgam_gate *gate, const double *x, double *y, double *backward)
{
    const cgam_bank *bank = gate->bank;
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n;
    double *work = cgam_zalloc(env, (size_t)(4 * n), sizeof *work);
    if (!work) return cgam_fail_nomem(env, "conjugate gradients");
    double *r = work, *z = work + n, *dir = work + 2 * n, *Ad = work + 3 * n;
    double size_x = cgam_vec_norm(n, x), error = 0;
    cgam_status status = CGAM_OK;
    memset(y, 0, (size_t)n * sizeof *y);
    for (int round = 0; round < 3 && status == CGAM_OK; round++) {
        status = cgam_gate_apply(gate, y, r);
        for (int64_t i = 0; i < n; i++) r[i] = x[i] - r[i];
        double scale = cgam_vec_norm(n, y) + size_x, rz = 0;
        error = scale > 0 ? cgam_vec_norm(n, r) / scale : 0;
        if (status != CGAM_OK || error <= 1e-15 || round == 2) break;
        for (int64_t i = 0; i < n; i++) dir[i] = z[i] = r[i] / gate->D[i];
        rz = cgam_vec_dot(n, r, z);
        /* rounding may cost some steps more than the n that exact arithmetic needs */
        for (int64_t step = 0; step < 10 * n + 100 && status == CGAM_OK; step++) {
            status = cgam_gate_apply(gate, dir, Ad);
            double curve = cgam_vec_dot(n, dir, Ad);
            if (status != CGAM_OK || !(curve > 0)) break;
            double length = rz / curve;
            for (int64_t i = 0; i < n; i++) {
                y[i] += length * dir[i];
                r[i] -= length * Ad[i];
                z[i] = r[i] / gate->D[i];
            }
            if (cgam_vec_norm(n, r) <= 1e-16 * (cgam_vec_norm(n, y) + size_x)) break;
            double next = cgam_vec_dot(n, r, z), ratio = next / rz;
            rz = next;
            for (int64_t i = 0; i < n; i++) dir[i] = z[i] + ratio * dir[i];
        }
    }
    if (backward) *backward = error;
    cgam_free(env, work);
    if (status == CGAM_OK && !(error <= 1e-12))
        status = cgam_fail(env, CGAM_E_INTERNAL,
                           "conjugate gradients stopped at a backward error of %.2g", error);
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
    double *u = cgam_alloc(bank->env, (size_t)bank->Z.n, sizeof *u);
    if (!u) return cgam_fail_nomem(bank->env, "the input of the gates");
    cgam_status status = cgam_bank_score(bank, v, u);
    if (status == CGAM_OK && gate->critical_modes)
        status = cgam_spectrum_solve(gate->critical_modes, gate->info.alpha, u, y);
    else if (status == CGAM_OK) status = cgam_gate_solve(gate, u, y, NULL);
    cgam_free(bank->env, u);
    return status;
}
