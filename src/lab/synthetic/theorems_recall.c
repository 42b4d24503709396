/* theorems_recall.c: statements about the coupled fixed point, its energy and its certificates. */
#include "lab/synthetic/theorems.h"
#include "num/eigen.h"

#include <math.h>
#include <string.h>

/* A subcritical coupled problem: query, context and gate; b in x[0], u in x[1]. The caller frees
 * the gate. */
typedef struct problem {
    double alpha, beta, lambda, eta, q[CGAM_CASE_D], c[CGAM_CASE_D];
    cgam_gate *gate;
} problem;

static cgam_status problem_open(cgam_case *c, double strength, problem *p)
{
    cgam_spectrum_info info = cgam_spectrum_describe(c->spectrum);
    *p = (problem){.alpha = isfinite(info.alpha_crit) ? info.alpha_crit : 2};
    p->alpha *= cgam_case_between(c, 0, 0.95);
    p->beta = exp(cgam_case_between(c, -1, 2));
    p->eta = 1 + p->alpha * info.omega_min;
    /* strength is the contraction constant beta lambda^2 / (2 eta_min) */
    p->lambda = sqrt(2 * strength * p->eta / p->beta);
    cgam_case_normals(c, c->d, 1, p->q);
    cgam_case_normals(c, c->d, 1, p->c);
    cgam_status status = cgam_bank_score(c->bank, p->q, c->x[0]);
    if (status == CGAM_OK) status = cgam_bank_score(c->bank, p->c, c->x[1]);
    return status == CGAM_OK ? cgam_gate_new(c->bank, p->alpha, NULL, &p->gate) : status;
}

/* One step of the plain iteration, through room x[6], x[7]. */
static cgam_status map(cgam_case *c, const problem *p, const double *from, double *out)
{
    return cgam_trial_map(p->gate, c->n, p->beta, p->lambda, c->x[0], c->x[1], from, c->x[6], out);
}

static cgam_status contraction(cgam_case *c, double *margin)
{
    problem p;
    cgam_status status = problem_open(c, exp(cgam_case_between(c, -3, 2)), &p);
    cgam_case_chances(c, c->n, c->x[2]);
    cgam_case_chances(c, c->n, c->x[3]);
    if (status == CGAM_OK) status = map(c, &p, c->x[2], c->x[4]);
    if (status == CGAM_OK) status = map(c, &p, c->x[3], c->x[5]);
    double bound = cgam_contraction(p.beta, p.lambda, p.eta);
    double moved = cgam_case_distance(c->n, c->x[4], c->x[5]),
           apart = cgam_case_distance(c->n, c->x[2], c->x[3]);
    if (apart > 1e-8) *margin = 1 - moved / (bound * apart);
    cgam_gate_free(p.gate);
    return status;
}

static cgam_status uniqueness(cgam_case *c, double *margin)
{
    problem p;
    cgam_status status = problem_open(c, cgam_case_between(c, 0.05, 0.9), &p);
    cgam_case_chances(c, c->n, c->x[2]);
    for (int64_t i = 0; i < c->n; i++) c->x[3][i] = i == 0;
    for (int k = 0; k < 500 && status == CGAM_OK; k++) {
        status = map(c, &p, c->x[2], c->x[2]);
        if (status == CGAM_OK) status = map(c, &p, c->x[3], c->x[3]);
        if (cgam_case_distance(c->n, c->x[2], c->x[3]) < 1e-13) break;
    }
    *margin = -cgam_case_distance(c->n, c->x[2], c->x[3]);
    cgam_gate_free(p.gate);
    return status;
}

/* A new problem and its coupled recall; p, s, r into x[2], x[3], x[4]. */
static cgam_status recall(cgam_case *c, double strength, cgam_recall_opts o, problem *p,
                          cgam_result *result)
{
    cgam_recall *plan;
    cgam_status status = problem_open(c, strength, p);
    o.mode = CGAM_COUPLED;
    o.alpha = p->alpha;
    o.beta = p->beta;
    o.lambda = p->lambda;
    if (status == CGAM_OK) status = cgam_recall_new(c->bank, &o, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = p->q, .c = p->c};
    cgam_recall_out out = {.results = result, .p = c->x[2], .s = c->x[3], .r = c->x[4]};
    status = cgam_recall_run(plan, &in, &out);
    cgam_recall_free(plan);
    return status;
}

static cgam_status decomposition(cgam_case *c, double *margin)
{
    problem p;
    cgam_result result = {0};
    double strength = exp(cgam_case_between(c, -3, 1));
    cgam_status status = recall(c, strength, cgam_recall_opts_default(), &p, &result);
    if (status == CGAM_OK)
        status = cgam_retrieval_parts(p.gate, p.lambda, c->x[1], c->x[2], c->x[5], c->x[6]);
    double off = 0, size = 1e-300;
    for (int64_t i = 0; i < c->n; i++) {
        off = fmax(off, fabs(c->x[0][i] + c->x[5][i] + c->x[6][i] - c->x[4][i]));
        size = fmax(size, fabs(c->x[4][i]));
    }
    *margin = -off / size;
    cgam_gate_free(p.gate);
    return status;
}

static cgam_status energy_falls(cgam_case *c, double *margin)
{
    problem p;
    cgam_result result = {0};
    double strength = exp(cgam_case_between(c, -2, 4));
    cgam_status status = recall(c, strength, cgam_recall_opts_default(), &p, &result);
    *margin = -result.energy_rise / (1 + fabs(result.energy_end));
    cgam_gate_free(p.gate);
    return status;
}

static cgam_status local_contraction(cgam_case *c, double *margin)
{
    problem p;
    bool proved;
    double local = NAN;
    cgam_status status = problem_open(c, exp(cgam_case_between(c, -3, 2)), &p);
    cgam_case_chances(c, c->n, c->x[2]);
    if (status == CGAM_OK)
        status = cgam_contraction_local(p.gate, p.beta, p.lambda, c->x[2], &local, &proved);
    *margin = cgam_contraction(p.beta, p.lambda, p.eta) - local;
    cgam_gate_free(p.gate);
    return status;
}

static cgam_status energy_gradient(cgam_case *c, double *margin)
{
    problem p;
    double *s = c->x[2], *g = c->x[3], *way = c->x[4], high = 0, low = 0, slope = 0, unused;
    const double h = 1e-5;
    cgam_status status = problem_open(c, exp(cgam_case_between(c, -3, 2)), &p);
    cgam_case_normals(c, c->n, 1, s);
    cgam_case_normals(c, c->n, 1, way);
    if (status == CGAM_OK)
        status = cgam_coupled_energy(p.gate, p.beta, p.lambda, c->x[0], c->x[1], s, &unused, g);
    for (int64_t i = 0; i < c->n; i++) {
        slope += g[i] * way[i];
        s[i] += h * way[i];
    }
    if (status == CGAM_OK)
        status = cgam_coupled_energy(p.gate, p.beta, p.lambda, c->x[0], c->x[1], s, &high, NULL);
    for (int64_t i = 0; i < c->n; i++) s[i] -= 2 * h * way[i];
    if (status == CGAM_OK)
        status = cgam_coupled_energy(p.gate, p.beta, p.lambda, c->x[0], c->x[1], s, &low, NULL);
    *margin = -fabs((high - low) / (2 * h) - slope) / (1 + cgam_case_norm(c->n, g));
    cgam_gate_free(p.gate);
    return status;
}

static cgam_status error_bound(cgam_case *c, double *margin)
{
    cgam_recall_opts loose = cgam_recall_opts_default(), tight = loose;
    cgam_result result = {0};
    problem p, same = {0};
    cgam_rng again = c->rng;
    double early[CGAM_CASE_N];
    loose.tol = 1e-3;
    loose.plain = true;
    cgam_status status = recall(c, 0.5, loose, &p, &result);
    memcpy(early, c->x[2], sizeof early);
    double bound = result.p_error;
    c->rng = again;
    if (status == CGAM_OK) status = recall(c, 0.5, tight, &same, &result);
    if (status == CGAM_OK) *margin = bound - cgam_case_distance(c->n, early, c->x[2]);
    cgam_gate_free(p.gate);
    cgam_gate_free(same.gate);
    return status;
}

static cgam_status fold_margin_bound(cgam_case *c, double *margin)
{
    problem p;
    cgam_result result = {0};
    double exact = NAN, strength = exp(cgam_case_between(c, -3, 1));
    cgam_status status = recall(c, strength, cgam_recall_opts_default(), &p, &result);
    if (status == CGAM_OK)
        status = cgam_fold_margin(p.gate, p.beta, p.lambda, c->x[2], &exact, NULL);
    if (status == CGAM_OK && result.fold_margin_proved) *margin = exact - result.fold_margin;
    cgam_gate_free(p.gate);
    return status;
}

/* Balanced banks: the uniform state loses stability at alpha_crit^lambda, not before, not after. */
static cgam_status coupled_threshold(cgam_case *c, double *margin)
{
    double lambda = exp(cgam_case_between(c, -2, 0)), beta = exp(cgam_case_between(c, -1, 1));
    cgam_coupled_critical crit;
    cgam_status status = cgam_coupled_critical_find(c->bank, lambda, beta, &crit);
    double at[2] = {crit.alpha * (1 - 1e-6), crit.alpha * (1 + 1e-6)}, local[2];
    if (status != CGAM_OK || !(crit.alpha > 1e-3) ||
        !(at[1] < cgam_spectrum_describe(c->spectrum).alpha_crit))
        return status;
    for (int64_t i = 0; i < c->n; i++) c->x[0][i] = 1 / (double)c->n;
    for (int k = 0; k < 2 && status == CGAM_OK; k++) {
        cgam_gate *gate;
        bool proved;
        status = cgam_gate_new(c->bank, at[k], NULL, &gate);
        if (status != CGAM_OK) break;
        status = cgam_contraction_local(gate, beta, lambda, c->x[0], &local[k], &proved);
        cgam_gate_free(gate);
    }
    if (status == CGAM_OK) *margin = fmin(1 - local[0], local[1] - 1);
    return status;
}

/* Up to the fold that was found, the branch is stable; past it, it is gone. */
static cgam_status fold(cgam_case *c, double *margin)
{
    double lambda = exp(cgam_case_between(c, -1, 0.5)), beta = exp(cgam_case_between(c, 0.5, 2));
    cgam_fold f;
    for (int64_t i = 0; i < c->n; i++) {
        c->x[0][i] = 0;
        c->x[1][i] = 1 / (double)c->n;
    }
    cgam_status status = cgam_fold_find(c->bank, lambda, beta, c->x[0], c->x[1], 10, 1e-6, &f);
    if (status == CGAM_OK && !isnan(f.alpha) && f.alpha > 0) *margin = f.margin;
    return status;
}

static cgam_status free_context(cgam_case *c, double *margin)
{
    problem p;
    double value = NAN;
    cgam_status status = problem_open(c, 0.5, &p);
    if (status == CGAM_OK) status = cgam_context_margin(p.gate, NULL, c->d, &value);
    *margin = -value;
    cgam_gate_free(p.gate);
    return status;
}

/* ---- Energy along a flow --------------------------------------------------------------------- */
typedef struct watch {
    cgam_case *c;
    const problem *p;
    int width;
    double before, rise;
} watch;

/* E = s'As/2 - u's - lambda s'p - b'p + (r'p - lse(beta r)/beta), in lane 0. */
static void watch_energy(void *user, int64_t sample, const double *s, const double *r,
                         const double *p, const double *x)
{
    (void)x;
    watch *w = user;
    const cgam_case *c = w->c;
    double E = 0, top = -INFINITY, sum = 0, alpha = w->p->alpha;
    for (int64_t i = 0; i < c->n; i++) {
        double si = s[i * w->width], pi = p[i * w->width], field = (1 - alpha) * si;
        for (int64_t j = 0; j < c->n; j++) {
            double G = 0;
            for (int64_t k = 0; k < c->d; k++) G += c->Z[i * c->d + k] * c->Z[j * c->d + k];
            field += alpha * G * s[j * w->width];
        }
        E += si * (0.5 * field - c->x[1][i] - w->p->lambda * pi) +
             pi * (r[i * w->width] - c->x[0][i]);
        top = fmax(top, r[i * w->width]);
    }
    for (int64_t i = 0; i < c->n; i++) sum += exp(w->p->beta * (r[i * w->width] - top));
    E -= top + log(sum) / w->p->beta;
    if (sample > 0) w->rise = fmax(w->rise, (E - w->before) / (1 + fabs(E)));
    w->before = E;
}

static cgam_status flow_energy(cgam_case *c, double *margin)
{
    enum { SAMPLES = 64 };
    const cgam_lanes *lanes = c->study->lanes;
    const int width = lanes->width;
    const int64_t n = c->n;
    problem p;
    cgam_banks *b = NULL;
    double *room = NULL, ended[CGAM_LANES_MAX], at[SAMPLES];
    int active[CGAM_LANES_MAX] = {1};
    cgam_status status = problem_open(c, exp(cgam_case_between(c, -2, 3)), &p);
    if (status == CGAM_OK) status = cgam_banks_new(c->env, width, n, c->d, &b);
    if (status == CGAM_OK) {
        size_t flow = cgam_lanes_flow_size(&b->g), lane = (size_t)(n * width);
        room = cgam_zalloc(c->env, flow + 4 * lane + 2 * (size_t)(b->g.m * width), sizeof *room);
        if (!room) status = cgam_fail_nomem(c->env, "a flow");
        double *u = room + flow, *x = u + 4 * lane, *root = x + b->g.m * width;
        if (status == CGAM_OK) {
            cgam_banks_share(b, c->Z);
            for (int64_t i = 0; i < n * width; i++) u[i] = c->x[1][i / width];
            status = cgam_banks_decompose(b, u);
        }
        if (status == CGAM_OK) {
            /* the query through the modes: Z q = V (root x) */
            for (int64_t k = 0; k < b->g.m * width; k++) {
                root[k] = sqrt(b->g.mu[k]);
                for (int64_t i = 0; i < n; i++) x[k] += b->g.V[i * b->g.m * width + k] * c->x[0][i];
                x[k] = root[k] > 0 ? x[k] / root[k] : 0;
            }
            for (int64_t i = 0; i < n * width; i++) b->g.start[i] = cgam_rng_normal(&c->rng);
            for (int k = 0; k < SAMPLES; k++) at[k] = 16.0 * (k + 1) / SAMPLES;
            watch w = {.c = c, .p = &p, .width = width};
            cgam_lanes_flow f = {.alpha = p.alpha,
                                 .beta = p.beta,
                                 .lambda = p.lambda,
                                 .tau_s = 1,
                                 .tau_r = exp(cgam_case_between(c, -2, 2)),
                                 .tau_q = 1,
                                 .t_end = 16,
                                 .tol = 1e-4,
                                 .h_rate = 0.25,
                                 .root = root,
                                 .x = x,
                                 .active = active,
                                 .work = room,
                                 .samples = SAMPLES,
                                 .at = at,
                                 .seen = watch_energy,
                                 .user = &w,
                                 .s = u + lane,
                                 .r = u + 2 * lane,
                                 .p = u + 3 * lane,
                                 .ended = ended};
            lanes->flow(&b->g, &f);
            *margin = w.rise > 0 ? -w.rise : 0;
        }
    }
    cgam_free(c->env, room);
    cgam_banks_free(b);
    cgam_gate_free(p.gate);
    return status;
}

/* ---- Stability and readout (theorem 3.1, corollary 3.2) --------------------------------------- */
/* A lower bound of the largest entry of x, at least 1/2 where that entry is. */
static double at_least(cgam_case *c, const double *x)
{
    double most = 0;
    for (int64_t i = 0; i < c->n; i++) most = fmax(most, x[i]);
    return most > 0.5 ? cgam_case_between(c, 0.5, most) : most;
}

static cgam_status stability(cgam_case *c, double *margin)
{
    problem p;
    double exact = NAN;
    cgam_status status = problem_open(c, exp(cgam_case_between(c, -3, 2)), &p);
    cgam_case_chances(c, c->n, c->x[2]);
    if (status == CGAM_OK)
        status = cgam_fold_margin(p.gate, p.beta, p.lambda, c->x[2], &exact, NULL);
    *margin = exact - cgam_stability_margin(p.eta, p.beta, p.lambda, at_least(c, c->x[2]));
    cgam_gate_free(p.gate);
    return status;
}

/* The Hessian of the energy in gates and query: diag(A, I) - beta B'(diag p - pp')B, B = (lambda I, Z). */
static cgam_status stability_free_query(cgam_case *c, double *margin)
{
    enum { SIZE = CGAM_CASE_N + CGAM_CASE_D };
    problem p;
    cgam_status status = problem_open(c, exp(cgam_case_between(c, -3, 1)), &p);
    const int64_t n = c->n, d = c->d, m = n + d;
    double *share = c->x[2], H[SIZE * SIZE], values[SIZE], B[CGAM_CASE_N * SIZE] = {0}, mean[SIZE];
    cgam_case_chances(c, n, share);
    for (int64_t i = 0; i < n; i++) {
        B[i * m + i] = p.lambda;
        memcpy(B + i * m + n, c->Z + i * d, (size_t)d * sizeof *B);
    }
    memset(mean, 0, sizeof mean);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++) mean[k] += share[i] * B[i * m + k];
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < m; k++) {
            double G = 0, C = -mean[j] * mean[k];
            for (int64_t i = 0; i < n; i++) C += share[i] * B[i * m + j] * B[i * m + k];
            for (int64_t i = 0; i < d && j < n && k < n; i++)
                G += c->Z[j * d + i] * c->Z[k * d + i];
            H[j * m + k] = (j == k) + (j != k ? p.alpha * G : 0) - p.beta * C;
        }
    if (status == CGAM_OK) status = cgam_eigen_all(c->env, m, false, H, values);
    double bound = cgam_stability_margin_free_query(p.eta, p.beta, p.lambda, 1, at_least(c, share));
    if (status == CGAM_OK) *margin = (values[0] - bound) / (1 + fabs(bound));
    cgam_gate_free(p.gate);
    return status;
}

static cgam_status readout(cgam_case *c, double *margin)
{
    double *r = c->x[0], *p = c->x[1], y[CGAM_CASE_D] = {0},
           beta = exp(cgam_case_between(c, -1, 3));
    double other = -INFINITY;
    int64_t mu = cgam_rng_below(&c->rng, c->n);
    cgam_case_normals(c, c->n, 1, r);
    for (int64_t i = 0; i < c->n; i++)
        if (i != mu) other = fmax(other, r[i]);
    r[mu] = fmax(r[mu], other) + cgam_case_between(c, 0, 2);
    cgam_trial_softmax(c->n, beta, r, p);
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < c->d; j++) y[j] += p[i] * c->Z[i * c->d + j];
    double off = cgam_case_distance(c->d, y, c->Z + mu * c->d), share = 2 * (1 - p[mu]);
    *margin = fmin(share - off, cgam_readout_bound(c->n, beta, r[mu] - other, 1) - share);
    return CGAM_OK;
}

const cgam_theorem cgam_theorems_recall[] = {
    {"self-consistent recall", "r* = b + lambda A^-1 u + lambda^2 A^-1 p*", 1e-9,
     .check = decomposition},
    {"contraction", "|Phi p - Phi p'| <= beta lambda^2 / (2 eta_min) |p - p'|", 1e-9,
     .check = contraction},
    {"uniqueness", "one fixed point when beta lambda^2 / (2 eta_min) < 1", 1e-10,
     .check = uniqueness},
    {"local contraction",
     "largest eigenvalue of beta lambda^2 A^-1 (diag p - pp') <= the global one", 1e-9,
     .check = local_contraction},
    {"error bound", "|p - p*| is within the a-posteriori bound", 1e-12, .check = error_bound},
    {"energy of the iteration", "E(s) never rises, for any lambda", 1e-12, .check = energy_falls},
    {"energy gradient", "dE/ds = A s - u - lambda p", 1e-7, .check = energy_gradient},
    {"energy along flows", "E never rises, any tau_s, tau_r", 1e-9, .check = flow_energy,
     .share = 0.2},
    {"coupled threshold", "balanced bank: uniform recall turns unstable at alpha_crit^lambda", 0,
     .check = coupled_threshold, .sizes = CGAM_CASE_CIRCULANT},
    {"fold", "A - lambda^2 beta (diag p - pp') > 0 up to the fold", 1e-9, .check = fold,
     .share = 0.04},
    {"fold margin bound", "exact margin >= eta_min - 2 lambda^2 beta max p(1-p)", 1e-9,
     .check = fold_margin_bound},
    {"stability", "margin >= eta_min - 2 lambda^2 beta P (1 - P), one p(mu) >= P >= 1/2", 1e-9,
     .check = stability},
    {"stability, free query",
     "margin >= min(eta_min, 1) - beta (1 - P) (2 lambda^2 + 4 M^2), one p(mu) >= P", 1e-9,
     .check = stability_free_query},
    {"readout", "|Z'p - zeta_mu| <= 2 M (1 - p(mu)), within the bound by the gap", 1e-12,
     .check = readout},
    {"free context", "unit memories, W = Z: a free context never settles", 1e-12,
     .check = free_context},
    {.name = NULL},
};
