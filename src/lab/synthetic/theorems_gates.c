/* theorems_gates.c: statements about gaps, gates without feedback, and the softmax. */
#include "lab/synthetic/theorems.h"

#include <float.h>
#include <math.h>

/* ---- Separation (theorem 3.1) ---------------------------------------------------------------- */
static cgam_status separation_bound(cgam_case *c, double *margin)
{
    double *r = c->x[0], *p = c->x[1], beta = exp(cgam_case_between(c, -2, 3)), other = -INFINITY;
    cgam_case_normals(c, c->n, exp(cgam_case_between(c, -2, 1)), r);
    int64_t mu = cgam_rng_below(&c->rng, c->n);
    cgam_trial_softmax(c->n, beta, r, p);
    for (int64_t i = 0; i < c->n; i++)
        if (i != mu) other = fmax(other, r[i]);
    if (p[mu] > 0) *margin = log(p[mu]) - cgam_separation_bound_log(c->n, beta, r[mu] - other);
    return CGAM_OK;
}

static cgam_status separation_threshold(cgam_case *c, double *margin)
{
    double *r = c->x[0], *p = c->x[1], beta = exp(cgam_case_between(c, -2, 3)), other = -INFINITY;
    double epsilon = exp(cgam_case_between(c, log(1e-3), log(0.5)));
    cgam_case_normals(c, c->n, 1, r);
    for (int64_t i = 1; i < c->n; i++) other = fmax(other, r[i]);
    double gap = cgam_separation_threshold(c->n, beta, epsilon);
    r[0] = other + gap + fabs(gap) * cgam_case_between(c, 0, 0.5);
    cgam_trial_softmax(c->n, beta, r, p);
    *margin = p[0] - (1 - epsilon);
    return CGAM_OK;
}

static cgam_status gap_of_sum(cgam_case *c, double *margin)
{
    double lambda = exp(cgam_case_between(c, -3, 3));
    cgam_case_normals(c, c->n, 1, c->x[0]);
    cgam_case_normals(c, c->n, 1, c->x[1]);
    cgam_gaps g =
        cgam_separation_gaps(c->n, c->x[0], c->x[1], lambda, cgam_rng_below(&c->rng, c->n));
    *margin = (g.gap - g.sum) / (1 + fabs(g.gap) + fabs(g.sum));
    return CGAM_OK;
}

/* ---- Gates (theorem 3.3) --------------------------------------------------------------------- */
/* A penalty below alpha_crit, often close to it. */
static double subcritical(cgam_case *c)
{
    double crit = cgam_spectrum_describe(c->spectrum).alpha_crit;
    double share = cgam_rng_uniform(&c->rng) < 0.5 ? cgam_case_between(c, 0, 1)
                                                   : 1 - exp(cgam_case_between(c, -12, -1));
    return share * (isfinite(crit) ? crit : 3);
}

static cgam_status spectral_response(cgam_case *c, double *margin)
{
    double alpha = subcritical(c), *u = c->x[0], *s = c->x[1], *t = c->x[2], off = 0;
    cgam_gate *gate;
    cgam_case_normals(c, c->n, 1, u);
    cgam_status status = cgam_gate_new(c->bank, alpha, NULL, &gate);
    if (status != CGAM_OK) return status;
    double eta = 1 + alpha * cgam_spectrum_describe(c->spectrum).omega_min;
    status = cgam_gate_solve(gate, u, s, NULL);
    if (status == CGAM_OK) status = cgam_spectrum_solve(c->spectrum, alpha, u, t);
    for (int64_t i = 0; i < c->n; i++) off = fmax(off, fabs(s[i] - t[i]));
    /* two backward stable solves differ by the condition number times rounding */
    *margin = -off / cgam_case_norm(c->n, s) * fmin(eta, 1);
    cgam_gate_free(gate);
    return status;
}

static cgam_status amplification(cgam_case *c, double *margin)
{
    double alpha = subcritical(c), *x = c->x[0], *y = c->x[1];
    cgam_case_normals(c, c->n, 1, x);
    cgam_status status = cgam_spectrum_solve(c->spectrum, alpha, x, y);
    double eta = 1 + alpha * cgam_spectrum_describe(c->spectrum).omega_min;
    *margin = 1 - cgam_case_norm(c->n, y) * eta / cgam_case_norm(c->n, x);
    return status;
}

static cgam_status amplification_attained(cgam_case *c, double *margin)
{
    double alpha = subcritical(c), *x = c->x[0], *y = c->x[1];
    cgam_case_normals(c, c->n, 1, y);
    cgam_status status = cgam_spectrum_project_min(c->spectrum, y, x);
    if (status == CGAM_OK) status = cgam_spectrum_solve(c->spectrum, alpha, x, y);
    double eta = 1 + alpha * cgam_spectrum_describe(c->spectrum).omega_min;
    *margin = -fabs(1 - cgam_case_norm(c->n, y) * eta / cgam_case_norm(c->n, x));
    return status;
}

static cgam_status critical_penalty(cgam_case *c, double *margin)
{
    double crit = cgam_spectrum_describe(c->spectrum).alpha_crit;
    if (!isfinite(crit)) return CGAM_OK;
    int64_t negative[2] = {0};
    for (int k = 0; k < 2; k++) {
        cgam_gate *gate;
        cgam_status status = cgam_gate_new(c->bank, crit * (k ? 1 + 1e-6 : 1 - 1e-6), NULL, &gate);
        if (status != CGAM_OK) return status;
        negative[k] = cgam_gate_describe(gate).negative;
        cgam_gate_free(gate);
    }
    *margin = negative[0] == 0 && negative[1] > 0 ? 0 : -1;
    return CGAM_OK;
}

/* s(t1 + t2) from s(0) is s(t2) from s(t1). */
static cgam_status transient_composes(cgam_case *c, double *margin)
{
    double crit = cgam_spectrum_describe(c->spectrum).alpha_crit, off = 0;
    double alpha = cgam_case_between(c, 0, 2) * (isfinite(crit) ? crit : 1);
    double t1 = cgam_case_between(c, 0, 5), t2 = cgam_case_between(c, 0, 5), *u = c->x[0];
    cgam_case_normals(c, c->n, 1, u);
    cgam_case_normals(c, c->n, 1, c->x[1]);
    cgam_status status =
        cgam_spectrum_transient(c->spectrum, alpha, 1, t1 + t2, u, c->x[1], c->x[2]);
    if (status == CGAM_OK)
        status = cgam_spectrum_transient(c->spectrum, alpha, 1, t1, u, c->x[1], c->x[3]);
    if (status == CGAM_OK)
        status = cgam_spectrum_transient(c->spectrum, alpha, 1, t2, u, c->x[3], c->x[4]);
    for (int64_t i = 0; i < c->n; i++) off = fmax(off, fabs(c->x[2][i] - c->x[4][i]));
    *margin = -off / (cgam_case_norm(c->n, c->x[2]) + cgam_case_norm(c->n, u));
    return status;
}

/* A supercritical case with a winner; *h has reason set where there is none. */
static cgam_status supercritical(cgam_case *c, double *alpha, double *beta, double *delta,
                                 cgam_horizon *h)
{
    double crit = cgam_spectrum_describe(c->spectrum).alpha_crit;
    *h = (cgam_horizon){.winner = -1, .reason = "no penalty is critical"};
    if (!isfinite(crit)) return CGAM_OK;
    *alpha = crit * (1 + exp(cgam_case_between(c, -5, 0)));
    *beta = exp(cgam_case_between(c, -1, 2));
    *delta = exp(cgam_case_between(c, log(1e-3), log(0.2)));
    cgam_case_normals(c, c->n, 1, c->x[0]);
    return cgam_supercritical_horizon(c->spectrum, *alpha, 1, *beta, *delta, c->x[0], NULL, true,
                                      h);
}

/* Where rates are nearly equal the winner can emerge only after everything has left the range of
 * double, or has grown so large that the gap in question is below the rounding of its entries; such
 * a case cannot be looked at. *rounding is what a difference of two entries may be off by. */
static bool unobservable(int64_t n, const double *s, double gap, double *rounding)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(s[i]));
    *rounding = 8 * DBL_EPSILON * most;
    return !(most < DBL_MAX) || gap <= *rounding;
}

/* p of the winner at the horizon, over 1 - delta; s0: where the gates start, NULL = 0. */
static cgam_status at_horizon(cgam_case *c, double alpha, double beta, double delta,
                              const cgam_horizon *h, const double *s0, double *margin)
{
    if (h->winner < 0 || !isfinite(h->time)) return CGAM_OK;
    cgam_status status =
        cgam_spectrum_transient(c->spectrum, alpha, 1, h->time, c->x[0], s0, c->x[1]);
    double need = cgam_separation_threshold(c->n, beta, delta), rounding;
    if (status != CGAM_OK || unobservable(c->n, c->x[1], need, &rounding)) return status;
    c->x[1][h->winner] += rounding;
    cgam_trial_softmax(c->n, beta, c->x[1], c->x[2]);
    *margin = c->x[2][h->winner] - (1 - delta);
    return CGAM_OK;
}

static cgam_status horizon(cgam_case *c, double *margin)
{
    double alpha = 0, beta = 1, delta = 0.5;
    cgam_horizon h;
    cgam_status status = supercritical(c, &alpha, &beta, &delta, &h);
    return status == CGAM_OK ? at_horizon(c, alpha, beta, delta, &h, NULL, margin) : status;
}

static cgam_status horizon_from(cgam_case *c, double *margin)
{
    double alpha, beta, delta, *s0 = c->x[3];
    cgam_horizon h;
    cgam_status status = supercritical(c, &alpha, &beta, &delta, &h);
    if (status != CGAM_OK || h.winner < 0) return status;
    cgam_case_normals(c, c->n, exp(cgam_case_between(c, -3, 3)), s0);
    status = cgam_supercritical_horizon(c->spectrum, alpha, 1, beta, delta, c->x[0], s0, true, &h);
    return status == CGAM_OK ? at_horizon(c, alpha, beta, delta, &h, s0, margin) : status;
}

static cgam_status winner(cgam_case *c, double *margin)
{
    double alpha, beta, delta;
    cgam_horizon h;
    cgam_status status = supercritical(c, &alpha, &beta, &delta, &h);
    if (status != CGAM_OK || h.winner < 0 || !isfinite(h.time)) return status;
    cgam_winner lead;
    status = cgam_supercritical_winner(c->spectrum, alpha, c->x[0], NULL, &lead);
    double gamma = lead.gamma, late = h.time + 40 / gamma;
    if (status == CGAM_OK)
        status = cgam_spectrum_transient(c->spectrum, alpha, 1, late, c->x[0], NULL, c->x[1]);
    if (status != CGAM_OK || lead.index < 0) return status;
    /* what the lowest modes make of the lead */
    double gap = lead.gap * expm1(gamma * late), rounding;
    if (unobservable(c->n, c->x[1], gap, &rounding)) return status;
    double other = -INFINITY;
    for (int64_t i = 0; i < c->n; i++)
        if (i != lead.index) other = fmax(other, c->x[1][i]);
    *margin = c->x[1][lead.index] > other ? 0 : -1;
    return CGAM_OK;
}

/* u = Z c does not reach the kernel of G: nobody wins (n > d, s(0) = 0). */
static cgam_status no_winner(cgam_case *c, double *margin)
{
    cgam_case_normals(c, c->d, 1, c->x[0]);
    cgam_winner lead;
    cgam_status status = cgam_bank_score(c->bank, c->x[0], c->x[1]);
    if (status == CGAM_OK)
        status = cgam_supercritical_winner(c->spectrum, cgam_case_between(c, 1.01, 3), c->x[1],
                                           NULL, &lead);
    if (status == CGAM_OK) *margin = lead.index < 0 ? 0 : -1;
    return status;
}

/* ---- The lemma ------------------------------------------------------------------------------- */
static cgam_status softmax_jacobian(cgam_case *c, double *margin)
{
    cgam_case_chances(c, c->n, c->x[0]);
    *margin = 0.5 - cgam_softmax_norm(c->n, c->x[0]);
    return CGAM_OK;
}

static cgam_status softmax_free_bound(cgam_case *c, double *margin)
{
    cgam_case_chances(c, c->n, c->x[0]);
    *margin = cgam_softmax_norm_bound(c->n, c->x[0]) - cgam_softmax_norm(c->n, c->x[0]);
    return CGAM_OK;
}

/* ---- Modern Hopfield ------------------------------------------------------------------------- */
static cgam_status hopfield_energy(cgam_case *c, double *margin)
{
    double beta = exp(cgam_case_between(c, -1, 3)), before = 0, after = 0;
    double *xi = c->x[0], *next = c->x[1];
    cgam_case_normals(c, c->d, 1, xi);
    cgam_status status = cgam_hopfield_energy(c->bank, beta, xi, &before);
    if (status == CGAM_OK) status = cgam_hopfield_update(c->bank, beta, xi, next);
    if (status == CGAM_OK) status = cgam_hopfield_energy(c->bank, beta, next, &after);
    *margin = before - after;
    return status;
}

/* A query near a memory, its update and its fixed point, in x[0], x[1], x[2]. */
static cgam_status hopfield_bounds(cgam_case *c, int64_t *i, cgam_hopfield_bounds *b)
{
    double beta = exp(cgam_case_between(c, 0, 4)), change;
    int64_t iterations;
    *i = cgam_rng_below(&c->rng, c->n);
    cgam_case_normals(c, c->d, exp(cgam_case_between(c, -5, -2)), c->x[0]);
    for (int64_t j = 0; j < c->d; j++) c->x[0][j] += c->Z[*i * c->d + j];
    cgam_status status = cgam_hopfield_update(c->bank, beta, c->x[0], c->x[1]);
    if (status == CGAM_OK)
        status = cgam_hopfield_settle(c->bank, beta, c->x[0], 1e-14, 100000, c->x[2], &iterations,
                                      &change);
    if (status == CGAM_OK) status = cgam_hopfield_bound(c->bank, beta, *i, c->x[0], c->x[2], b);
    return status;
}

static cgam_status hopfield_one_step(cgam_case *c, double *margin)
{
    int64_t i;
    cgam_hopfield_bounds b;
    cgam_status status = hopfield_bounds(c, &i, &b);
    if (status == CGAM_OK && b.one_step < 1e6)
        *margin = b.one_step - cgam_case_distance(c->d, c->x[1], c->x[2]);
    return status;
}

static cgam_status hopfield_retrieval(cgam_case *c, double *margin)
{
    int64_t i;
    cgam_hopfield_bounds b;
    cgam_status status = hopfield_bounds(c, &i, &b);
    if (status == CGAM_OK && b.retrieval < 1e6)
        *margin = b.retrieval - cgam_case_distance(c->d, c->x[1], c->Z + i * c->d);
    return status;
}

const cgam_theorem cgam_theorems_gates[] = {
    {"separation bound", "P(mu) >= 1/(1 + (N-1) exp(-beta Delta))", 1e-12,
     .check = separation_bound},
    {"separation threshold", "Delta >= ln((1-eps)(N-1)/eps)/beta gives P(mu) >= 1 - eps", 1e-12,
     .check = separation_threshold},
    {"gap of a sum", "Delta >= Delta_raw + lambda Delta_gate", 1e-12, .check = gap_of_sum},
    {"spectral response", "A^-1 u = sum of c_k v_k / eta_k", 1e-11, .check = spectral_response},
    {"largest amplification", "|A^-1 x| <= |x| / eta_min", 1e-9, .check = amplification},
    {"amplification attained", "|A^-1 x| = |x| / eta_min on the lowest modes", 1e-9,
     .check = amplification_attained},
    {"critical penalty", "A > 0 below alpha_crit and not above", 0, .check = critical_penalty},
    {"transient composes", "s(t1 + t2) from s(0) = s(t2) from s(t1)", 1e-11,
     .check = transient_composes},
    {"winner takes all", "above alpha_crit the winner is argmax P_min w", 0, .check = winner},
    {"horizon", "p of the winner >= 1 - delta at t*", 1e-9, .check = horizon},
    {"horizon from any start", "the same from s(0) != 0", 1e-9, .check = horizon_from},
    {"no winner in the range", "u = Z c, N > d, s(0) = 0: P_min w = 0", 0, .check = no_winner,
     .sizes = CGAM_CASE_TALL},
    {"softmax jacobian", "|diag p - pp'| <= 1/2", 1e-14, .check = softmax_jacobian},
    {"softmax jacobian, free bound", "|diag p - pp'| <= 2 max p(1-p)", 1e-14,
     .check = softmax_free_bound},
    {"hopfield energy", "an update never raises the energy", 1e-12, .check = hopfield_energy},
    {"hopfield one step", "error after one update (Ramsauer et al., theorem 4)", 1e-9,
     .check = hopfield_one_step},
    {"hopfield retrieval", "distance to the pattern (Ramsauer et al., theorem 5)", 1e-9,
     .check = hopfield_retrieval},
    {.name = NULL},
};
