/* theory_critical.c: gates above alpha_crit (theorem 3.3, formal version in the paper's appendix).
 *
 * tau ds/dt = u - A s splits into modes of G - diag G with rates eta_k = 1 + alpha omega_k. Above
 * alpha_crit the lowest mode grows like exp(gamma t / tau), gamma = -1 - alpha omega_min, along
 * P_min w with w = s(0) + u / gamma; its largest entry wins. From s(0) = 0 the gap between winner
 * i and rival j is  (P_min u)_i - (P_min u)_j  times  (exp(gamma t/tau) - 1)/gamma, less at most
 *     B = max_j sum over other modes |c_k| |v_k(i) - v_k(j)| / eta_k     (eta_k > 0),
 * and L/beta of gap is enough, L = ln((1-delta)(n-1)/delta), hence
 *     t* = (tau/gamma) log1p(gamma (L + beta B) / (beta Delta_0)).
 * The paper's bracket lacks the "1 +"; without it t* is negative for small gaps. */
#include <cgam/theory.h>

#include "memory/spectrum.h"

#include <math.h>
#include <string.h>

/* Index of the largest entry and its distance to the next. */
static int64_t leader(int64_t n, const double *x, double *gap)
{
    int64_t best = 0;
    double next = -INFINITY;
    for (int64_t i = 1; i < n; i++) {
        if (x[i] > x[best]) {
            next = x[best];
            best = i;
        } else if (x[i] > next) {
            next = x[i];
        }
    }
    *gap = x[best] - next;
    return best;
}

static const char NOT_ABOVE[] = "alpha is not above alpha_crit";
static const char NOT_EXCITED[] = "P_min w = 0: the input does not excite the critical modes";
static const char TIE[] = "the largest entries of P_min w are equal";
static const char ALONE[] = "there is only one memory";

/* The winner along P_min w. */
static cgam_status find_winner_along(const cgam_spectrum *sp, const double *w, cgam_winner *out)
{
    const cgam_bank *bank = cgam_spectrum_bank(sp);
    int64_t n = bank->Z.n;
    double *y = cgam_alloc(bank->env, (size_t)n, sizeof *y);
    if (!y) return cgam_fail_nomem(bank->env, "a winner");
    cgam_status status = cgam_spectrum_project_min(sp, w, y);
    if (status == CGAM_OK) {
        double size = cgam_array_norm(n, y);
        out->index = -1;
        int64_t best = leader(n, y, &out->gap);
        if (n == 1) out->reason = ALONE;
        else if (!(size > 1e-12 * cgam_array_norm(n, w))) out->reason = NOT_EXCITED;
        else if (!(out->gap > 1e-12 * size)) out->reason = TIE;
        else out->index = best;
    }
    cgam_free(bank->env, y);
    return status;
}

cgam_status cgam_supercritical_winner(const cgam_spectrum *spectrum, double alpha, const double *u,
                                      const double *s0, cgam_winner *out)
{
    cgam_status alone = cgam_bank_alone(cgam_spectrum_bank(spectrum), "a winner");
    if (alone != CGAM_OK) return alone;
    const cgam_bank *bank = cgam_spectrum_bank(spectrum);
    int64_t n = bank->Z.n;
    if (!isfinite(alpha))
        return cgam_fail(bank->env, CGAM_E_ARG, "winner: alpha is %g, it must be finite", alpha);
    cgam_spectrum_info info = cgam_spectrum_describe(spectrum);
    *out = (cgam_winner){.index = -1, .gamma = -1 - alpha * info.omega_min};
    if (!(out->gamma > 0)) {
        out->reason = NOT_ABOVE;
        return CGAM_OK;
    }
    double *w = cgam_alloc(bank->env, (size_t)n, sizeof *w);
    if (!w) return cgam_fail_nomem(bank->env, "a winner");
    for (int64_t i = 0; i < n; i++) w[i] = (s0 ? s0[i] : 0) + u[i] / out->gamma;
    cgam_status status = find_winner_along(spectrum, w, out);
    cgam_free(bank->env, w);
    return status;
}

/* B for winner i; *grows: another mode has eta_k <= 0, so B does not exist. */
static cgam_status rest_of_modes(const cgam_spectrum *sp, double alpha, const double *u, int64_t i,
                                 double *B, bool *grows)
{
    enum { ROWS = 64 };
    const cgam_bank *bank = cgam_spectrum_bank(sp);
    cgam_env *env = bank->env;
    cgam_spectrum_info info = cgam_spectrum_describe(sp);
    const double *omega = cgam_spectrum_describe(sp).omega;
    int64_t n = bank->Z.n, m = info.modes;
    double near = info.omega_min + 1e-9 * fmax(fabs(info.omega_min), info.mu_max);
    double *c = cgam_alloc(env, (size_t)((ROWS + 2) * m + 1), sizeof *c);
    if (!c) return cgam_fail_nomem(env, "a horizon");
    double *mine = c + m, *rows = mine + m;
    *B = 0;
    *grows = false;
    cgam_status status = cgam_spectrum_analyse(sp, u, c);
    if (status == CGAM_OK) status = cgam_spectrum_rows(sp, i, 1, mine);
    for (int64_t k = 0; k < m && status == CGAM_OK; k++) {
        double eta = 1 + alpha * omega[k];
        bool lowest = omega[k] <= near;
        if (!lowest && eta <= 0 && c[k] != 0) *grows = true;
        c[k] = lowest || eta <= 0 ? 0 : fabs(c[k]) / eta;
    }
    for (int64_t j = 0; j < n && status == CGAM_OK; j += ROWS) {
        int64_t count = n - j < ROWS ? n - j : ROWS;
        status = cgam_spectrum_rows(sp, j, count, rows);
        for (int64_t r = 0; r < count && status == CGAM_OK; r++) {
            double total = 0;
            for (int64_t k = 0; k < m; k++) total += c[k] * fabs(mine[k] - rows[r * m + k]);
            *B = fmax(*B, total);
        }
    }
    cgam_free(env, c);
    return status;
}

/* Does the winner i have a gap of `need` over all rivals at time t? */
static cgam_status leads_by(const cgam_spectrum *sp, double alpha, double tau, double t,
                            const double *u, int64_t i, double need, double *s, bool *enough)
{
    int64_t n = cgam_spectrum_bank(sp)->Z.n;
    double rival = -INFINITY, shift = 0;
    cgam_status status = cgam_spectrum_transient_scaled(sp, alpha, tau, t, u, NULL, s, &shift);
    for (int64_t j = 0; j < n; j++)
        if (j != i) rival = fmax(rival, s[j]);
    *enough = s[i] - rival >= need * exp(-shift);
    return status;
}

/* (1 - exp(-eta x)) / eta, the gain of an input over time x, times exp(-gamma x). */
static double gain_over_time(double eta, double gamma, double x)
{
    if (fabs(eta * x) < 1e-8) return x * exp(-gamma * x);
    return (exp(-gamma * x) - exp(-(eta + gamma) * x)) / eta;
}

/* Returns a time after which the gap never falls below `need` again. Rows of V differ by at most sqrt(2), so by
 * Cauchy and Schwarz the other modes reduce the gap by at most sqrt(2) |(c_k gain_k)|; relative to the gain of the
 * lowest mode that only decreases with time, as `need` does. */
static cgam_status safe_time(const cgam_spectrum *sp, double alpha, double tau, const double *u,
                             double gap, double need, double *time)
{
    const cgam_bank *bank = cgam_spectrum_bank(sp);
    cgam_spectrum_info info = cgam_spectrum_describe(sp);
    const double *omega = cgam_spectrum_describe(sp).omega;
    double near = info.omega_min + 1e-9 * fmax(fabs(info.omega_min), info.mu_max);
    double gamma = -1 - alpha * info.omega_min;
    double *c = cgam_alloc(bank->env, (size_t)info.modes + 1, sizeof *c);
    if (!c) return cgam_fail_nomem(bank->env, "a horizon");
    cgam_status status = cgam_spectrum_analyse(sp, u, c);
    double x = *time / tau;
    for (int k = 0; k < 200 && status == CGAM_OK; k++, x *= 2) {
        double squares = 0;
        for (int64_t m = 0; m < info.modes; m++) {
            double part =
                omega[m] > near ? c[m] * gain_over_time(1 + alpha * omega[m], gamma, x) : 0;
            squares += part * part;
        }
        if (gap * gain_over_time(-gamma, gamma, x) >=
            fmax(need, 0) * exp(-gamma * x) + sqrt(2 * squares))
            break;
    }
    *time = tau * x;
    cgam_free(bank->env, c);
    return status;
}

/* If other modes grow too: returns the last time at which the gap is too small. The gap may rise and fall repeatedly
 * before that, so the search goes back in small steps from a safe time. */
static cgam_status search_horizon(const cgam_spectrum *sp, double alpha, double tau, double first,
                                  const double *u, int64_t i, double gap, double need, double *time)
{
    const cgam_bank *bank = cgam_spectrum_bank(sp);
    double *s = cgam_alloc(bank->env, (size_t)bank->Z.n, sizeof *s);
    if (!s) return cgam_fail_nomem(bank->env, "a horizon");
    double high = first, low;
    bool enough = true;
    cgam_status status = safe_time(sp, alpha, tau, u, gap, need, &high);
    for (low = high; status == CGAM_OK; high = low) {
        low = high > 1e-9 * first ? high / 1.02 : 0;
        status = leads_by(sp, alpha, tau, low, u, i, need, s, &enough);
        if (!enough || low == 0) break;
    }
    if (enough) high = 0; /* enough from the start */
    for (int k = 0; k < 60 && !enough && status == CGAM_OK; k++) {
        double middle = 0.5 * (low + high);
        bool there;
        status = leads_by(sp, alpha, tau, middle, u, i, need, s, &there);
        if (there) high = middle;
        else low = middle;
    }
    *time = high;
    cgam_free(bank->env, s);
    return status;
}

cgam_status cgam_supercritical_horizon(const cgam_spectrum *spectrum, double alpha, double tau,
                                       double beta, double delta, const double *u, bool use_rest,
                                       cgam_horizon *out)
{
    cgam_status alone = cgam_bank_alone(cgam_spectrum_bank(spectrum), "a horizon");
    if (alone != CGAM_OK) return alone;
    const cgam_bank *bank = cgam_spectrum_bank(spectrum);
    cgam_spectrum_info info = cgam_spectrum_describe(spectrum);
    *out = (cgam_horizon){.time = INFINITY, .winner = -1, .closed_form = true};
    if (!(tau > 0 && beta > 0 && delta > 0 && delta < 1 && isfinite(alpha)))
        return cgam_fail(
            bank->env, CGAM_E_ARG,
            "horizon: tau is %g, beta %g, delta %g, alpha %g; tau and beta must be above 0, delta in (0, 1), alpha finite",
            tau, beta, delta, alpha);
    double gamma = -1 - alpha * info.omega_min;
    if (gamma < -1e-9) { /* at alpha_crit itself the limit gamma -> 0 exists */
        out->reason = NOT_ABOVE;
        return CGAM_OK;
    }
    cgam_winner lead = {0};
    cgam_status status = find_winner_along(spectrum, u, &lead);
    if (status != CGAM_OK) return status;
    out->gap = lead.gap;
    out->reason = lead.reason;
    out->winner = lead.index;
    if (lead.index < 0) return CGAM_OK;
    bool grows = false;
    if (use_rest) {
        status = rest_of_modes(spectrum, alpha, u, lead.index, &out->rest, &grows);
        if (status != CGAM_OK) return status;
    }
    double L = beta * cgam_separation_threshold(bank->Z.n, beta, delta);
    if (L <= 0 && out->rest == 0 && !grows) { /* the bound is met from the start */
        out->time = 0;
        return CGAM_OK;
    }
    double x = fmax(L + beta * out->rest, 0) / (beta * out->gap);
    out->time = gamma > 1e-12 ? tau / gamma * log1p(gamma * x) : tau * x;
    if (grows) {
        out->closed_form = false;
        status = search_horizon(spectrum, alpha, tau, fmax(out->time, 1e-3 * tau), u, lead.index,
                                out->gap, L / beta, &out->time);
    }
    return status;
}
