/* theory_critical.c: gates above alpha_crit (theorem 3.3, formal version in the paper's appendix).
 *
 * tau ds/dt = u - A s splits into modes of G - diag G with rates eta_k = 1 + alpha omega_k. Above
 * alpha_crit the lowest mode grows like exp(gamma t / tau), gamma = -1 - alpha omega_min, along
 * P_min w with w = s(0) + u / gamma; its largest entry wins. Let S_j and U_j be the leads of winner i over
 * rival j in P_min s(0) and P_min u. The lead of s(t) is
 *     S_j exp(gamma t/tau) + U_j (exp(gamma t/tau) - 1)/gamma,  less at most
 *     B = max_j sum over other modes max(|sigma_k|, |c_k| / eta_k) |v_k(i) - v_k(j)|     (eta_k > 0),
 * where sigma_k and c_k are the parts of s(0) and u: mode k is always between sigma_k and c_k / eta_k. A lead of
 * L/beta is enough, L = ln((1-delta)(n-1)/delta), hence
 *     t* = (tau/gamma) max_j log1p(gamma x_j),   x_j = (L/beta + B - S_j) / (gamma S_j + U_j),
 * which from s(0) = 0 is (tau/gamma) log1p(gamma (L + beta B) / (beta Delta_0)).
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

/* The winner along y = P_min w, |w| = whole. */
static cgam_winner choose_winner(int64_t n, const double *y, double whole)
{
    cgam_winner out = {.index = -1};
    double size = cgam_array_norm(n, y);
    int64_t best = leader(n, y, &out.gap);
    if (n == 1) out.reason = ALONE;
    else if (!(size > 1e-12 * whole)) out.reason = NOT_EXCITED;
    else if (!(out.gap > 1e-12 * size)) out.reason = TIE;
    else out.index = best;
    return out;
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
    double *w = cgam_alloc(bank->env, (size_t)(2 * n), sizeof *w), gamma = out->gamma;
    if (!w) return cgam_fail_nomem(bank->env, "a winner");
    for (int64_t i = 0; i < n; i++) w[i] = (s0 ? s0[i] : 0) + u[i] / gamma;
    cgam_status status = cgam_spectrum_project_min(spectrum, w, w + n);
    if (status == CGAM_OK) *out = choose_winner(n, w + n, cgam_array_norm(n, w));
    out->gamma = gamma;
    cgam_free(bank->env, w);
    return status;
}

/* The growing modes of one problem. */
typedef struct growth {
    const cgam_spectrum *sp;
    double alpha, tau, gamma;
    const double *u, *s0; /* [n]; s0 NULL = 0 */
    double *S, *U;        /* [n] P_min s(0) and P_min u, */
    double *lead;         /* [n] and gamma S + U; room for s(t) later */
    int64_t winner;
    double need; /* the lead that is enough, L / beta */
} growth;

/* Modes with omega_k up to this are the lowest. */
static double lowest_up_to(const cgam_spectrum *sp)
{
    cgam_spectrum_info info = cgam_spectrum_describe(sp);
    return info.omega_min + 1e-9 * fmax(fabs(info.omega_min), info.mu_max);
}

/* c = V'u and sigma = V's(0), [modes] each. */
static cgam_status analyse(const growth *g, int64_t modes, double *c, double *sigma)
{
    cgam_status status = cgam_spectrum_analyse(g->sp, g->u, c);
    memset(sigma, 0, (size_t)modes * sizeof *sigma);
    if (status == CGAM_OK && g->s0) status = cgam_spectrum_analyse(g->sp, g->s0, sigma);
    return status;
}

/* B for the winner; *grows: another mode has eta_k <= 0, so B does not exist. */
static cgam_status rest_of_modes(const growth *g, double *B, bool *grows)
{
    enum { ROWS = 64 };
    const cgam_bank *bank = cgam_spectrum_bank(g->sp);
    cgam_env *env = bank->env;
    cgam_spectrum_info info = cgam_spectrum_describe(g->sp);
    const double *omega = info.omega;
    int64_t n = bank->Z.n, m = info.modes;
    double near = lowest_up_to(g->sp);
    double *c = cgam_alloc(env, (size_t)((ROWS + 3) * m + 1), sizeof *c);
    if (!c) return cgam_fail_nomem(env, "a horizon");
    double *sigma = c + m, *mine = sigma + m, *rows = mine + m;
    *B = 0;
    *grows = false;
    cgam_status status = analyse(g, m, c, sigma);
    if (status == CGAM_OK) status = cgam_spectrum_rows(g->sp, g->winner, 1, mine);
    for (int64_t k = 0; k < m && status == CGAM_OK; k++) {
        double eta = 1 + g->alpha * omega[k];
        bool lowest = omega[k] <= near;
        if (!lowest && eta <= 0 && (c[k] != 0 || sigma[k] != 0)) *grows = true;
        c[k] = lowest || eta <= 0 ? 0 : fmax(fabs(c[k]) / eta, fabs(sigma[k]));
    }
    for (int64_t j = 0; j < n && status == CGAM_OK; j += ROWS) {
        int64_t count = n - j < ROWS ? n - j : ROWS;
        status = cgam_spectrum_rows(g->sp, j, count, rows);
        for (int64_t r = 0; r < count && status == CGAM_OK; r++) {
            double total = 0;
            for (int64_t k = 0; k < m; k++) total += c[k] * fabs(mine[k] - rows[r * m + k]);
            *B = fmax(*B, total);
        }
    }
    cgam_free(env, c);
    return status;
}

/* Does the winner lead by enough at time t? */
static cgam_status leads_enough(const growth *g, double t, bool *enough)
{
    int64_t n = cgam_spectrum_bank(g->sp)->Z.n;
    double rival = -INFINITY, shift = 0, *s = g->lead;
    cgam_status status =
        cgam_spectrum_transient_scaled(g->sp, g->alpha, g->tau, t, g->u, g->s0, s, &shift);
    for (int64_t j = 0; j < n; j++)
        if (j != g->winner) rival = fmax(rival, s[j]);
    *enough = s[g->winner] - rival >= g->need * exp(-shift);
    return status;
}

/* (1 - exp(-eta x)) / eta, the gain of an input over time x, times exp(-gamma x). */
static double gain_over_time(double eta, double gamma, double x)
{
    if (fabs(eta * x) < 1e-8) return x * exp(-gamma * x);
    return (exp(-gamma * x) - exp(-(eta + gamma) * x)) / eta;
}

/* The least over rivals of the lead in the lowest modes at time x and later, times exp(-gamma x). */
static double least_lead(const growth *g, double x)
{
    double gain = gain_over_time(-g->gamma, g->gamma, x), least = INFINITY;
    int64_t n = cgam_spectrum_bank(g->sp)->Z.n, i = g->winner;
    for (int64_t j = 0; j < n; j++) {
        double S = g->S[i] - g->S[j], U = g->U[i] - g->U[j];
        if (j != i)
            least = fmin(least, S + fmin(U * gain, U / g->gamma)); /* it may fall to the second */
    }
    return least;
}

/* Returns a time after which the lead never falls below need again. Rows of V differ by at most sqrt(2), so by
 * Cauchy and Schwarz the other modes reduce it by at most sqrt(2) |(|c_k| gain_k + |sigma_k| exp(-eta_k x))|. Times
 * exp(-gamma x), each of these falls after x = log(1 + eta_k / gamma) / eta_k, and so does need. */
static cgam_status safe_time(const growth *g, double *time)
{
    const cgam_bank *bank = cgam_spectrum_bank(g->sp);
    cgam_spectrum_info info = cgam_spectrum_describe(g->sp);
    double near = lowest_up_to(g->sp), gamma = g->gamma;
    double *c = cgam_alloc(bank->env, (size_t)(2 * info.modes) + 1, sizeof *c);
    if (!c) return cgam_fail_nomem(bank->env, "a horizon");
    double *sigma = c + info.modes, x = *time / g->tau;
    cgam_status status = analyse(g, info.modes, c, sigma);
    for (int64_t m = 0; m < info.modes; m++) {
        double eta = 1 + g->alpha * info.omega[m], y = eta / gamma;
        if (info.omega[m] > near) x = fmax(x, (fabs(y) < 1e-8 ? 1 : log1p(y) / y) / gamma);
    }
    for (int k = 0; k < 200 && status == CGAM_OK; k++, x *= 2) {
        double squares = 0;
        for (int64_t m = 0; m < info.modes; m++) {
            double eta = 1 + g->alpha * info.omega[m];
            if (info.omega[m] <= near) continue;
            double part = fabs(c[m]) * gain_over_time(eta, gamma, x) +
                          fabs(sigma[m]) * exp(-(eta + gamma) * x);
            squares += part * part;
        }
        if (least_lead(g, x) >= fmax(g->need, 0) * exp(-gamma * x) + sqrt(2 * squares)) break;
    }
    *time = g->tau * x;
    cgam_free(bank->env, c);
    return status;
}

/* If other modes grow too: returns the last time at which the lead is too small. It may rise and fall repeatedly
 * before that, so the search goes back in small steps from a safe time. */
static cgam_status search_horizon(const growth *g, double first, double *time)
{
    double high = first, low;
    bool enough = true;
    cgam_status status = safe_time(g, &high);
    for (low = high; status == CGAM_OK; high = low) {
        low = high > 1e-9 * first ? high / 1.02 : 0;
        status = leads_enough(g, low, &enough);
        if (!enough || low == 0) break;
    }
    if (enough) high = 0; /* enough from the start */
    for (int k = 0; k < 60 && !enough && status == CGAM_OK; k++) {
        double middle = 0.5 * (low + high);
        bool there;
        status = leads_enough(g, middle, &there);
        if (there) high = middle;
        else low = middle;
    }
    *time = high;
    return status;
}

/* t*, where the other modes take away at most `rest`. */
static double closed_form(const growth *g, double rest)
{
    int64_t n = cgam_spectrum_bank(g->sp)->Z.n, i = g->winner;
    double most = 0, gamma = g->gamma > 1e-12 ? g->gamma : 0;
    for (int64_t j = 0; j < n; j++) {
        double S = g->S[i] - g->S[j], U = g->U[i] - g->U[j];
        if (j != i) most = fmax(most, (g->need + rest - S) / (gamma * S + U));
    }
    return gamma > 0 ? g->tau / gamma * log1p(gamma * most) : g->tau * most;
}

/* Fills S, U and the winner with its lead. */
static cgam_status find_growth(growth *g, cgam_horizon *out)
{
    int64_t n = cgam_spectrum_bank(g->sp)->Z.n;
    memset(g->S, 0, (size_t)n * sizeof *g->S);
    cgam_status status = cgam_spectrum_project_min(g->sp, g->u, g->U);
    if (status == CGAM_OK && g->s0) status = cgam_spectrum_project_min(g->sp, g->s0, g->S);
    double gamma = fmax(g->gamma, 0), whole = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = gamma * (g->s0 ? g->s0[i] : 0) + g->u[i];
        g->lead[i] = gamma * g->S[i] + g->U[i];
        whole += w * w;
    }
    cgam_winner lead = choose_winner(n, g->lead, sqrt(whole));
    out->gap = lead.gap;
    out->reason = lead.reason;
    out->winner = g->winner = lead.index;
    return status;
}

cgam_status cgam_supercritical_horizon(const cgam_spectrum *spectrum, double alpha, double tau,
                                       double beta, double delta, const double *u, const double *s0,
                                       bool use_rest, cgam_horizon *out)
{
    const cgam_bank *bank = cgam_spectrum_bank(spectrum);
    cgam_status alone = cgam_bank_alone(bank, "a horizon");
    if (alone != CGAM_OK) return alone;
    *out = (cgam_horizon){.time = INFINITY, .winner = -1, .closed_form = true};
    if (!(tau > 0 && beta > 0 && delta > 0 && delta < 1 && isfinite(alpha)))
        return cgam_fail(
            bank->env, CGAM_E_ARG,
            "horizon: tau is %g, beta %g, delta %g, alpha %g; tau and beta must be above 0, delta in (0, 1), alpha finite",
            tau, beta, delta, alpha);
    int64_t n = bank->Z.n;
    growth g = {.sp = spectrum, .alpha = alpha, .tau = tau, .u = u, .s0 = s0};
    g.gamma = -1 - alpha * cgam_spectrum_describe(spectrum).omega_min;
    g.need = cgam_separation_threshold(n, beta, delta);
    if (g.gamma < -1e-9) { /* at alpha_crit itself the limit gamma -> 0 exists */
        out->reason = NOT_ABOVE;
        return CGAM_OK;
    }
    g.S = cgam_alloc(bank->env, (size_t)(3 * n), sizeof *g.S);
    if (!g.S) return cgam_fail_nomem(bank->env, "a horizon");
    g.U = g.S + n;
    g.lead = g.U + n;
    bool grows = false;
    cgam_status status = find_growth(&g, out);
    if (status == CGAM_OK && g.winner >= 0 && use_rest)
        status = rest_of_modes(&g, &out->rest, &grows);
    if (status == CGAM_OK && g.winner >= 0) {
        out->time = closed_form(&g, out->rest);
        out->closed_form = !grows;
        if (grows) status = search_horizon(&g, fmax(out->time, 1e-3 * tau), &out->time);
    }
    cgam_free(bank->env, g.S);
    return status;
}
