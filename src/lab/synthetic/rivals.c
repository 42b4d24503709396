/* rivals.c: is a gate better than what else could use a context? (docs/studies/rivals.md)
 *
 * The draws are those of separation.c: `banks` sets of memories, a target zeta, q = zeta + sigma_q eps,
 * c = kappa + sigma_c eta, where kappa, a row of W, is the key of the target; W = Z but in the setting `space`. Every
 * mechanism gives scores r and p = softmax(beta r):
 *
 *   hopfield        r = Z q
 *   query-mixing    r = Z (q + lambda P c); P = 1 if W = Z, else the least squares W P' ~ Z
 *   gates-first     r = Z q + lambda A(alpha)^-1 W c
 *   gates-coupled   r = Z q + lambda A(alpha)^-1 (W c + lambda p), iterated
 *   experts         p_q p_c^lambda: r = Z q + lambda W c
 *   plasticity      x' = -x + g sum_mu a_mu zeta_mu zeta_mu' tanh(sqrt(d) x)/sqrt(d) from x = q,
 *                   a = softmax(k W c), g = 2 d; r = Z x/|x| (Betteti et al. 2025)
 *   mask-memories   r = Z q on the k memories with the largest W c (Podlaski et al. 2025)
 *   mask-units      memory mu is stored in context mu mod C, by the units of that context alone: a random share a
 *                   of all. The context with the best W c is active, and so are its units of the query.
 *   sparse          the scores of query-mixing under alpha-entmax
 *   bayes           log posterior given sigma_q, sigma_c and the share of wrong contexts: the most that any can do
 *
 * A block is one set in one setting; its record has MEASURES sums for every sigma_q and option. */
#include "lab/synthetic/rivals.h"

#include "base/alloc.h"
#include "lab/synthetic/trial.h"
#include "num/entmax.h"

#include <cgam/gate.h>

#include <math.h>
#include <string.h>

const char *const cgam_rival_names[] = {
    "hopfield",      "query-mixing", "gates-first", "gates-coupled", "experts", "plasticity",
    "mask-memories", "mask-units",   "sparse",      "bayes",         NULL};
const char *const cgam_rival_setting_names[] = {"plain", "wrong", "space", "clusters", NULL};

enum {
    COUPLED_ITERATIONS = 1000,
    EULER_STEPS = 200,
    SHARES = 3,
    CONTEXTS = 4,
    UNITS = SHARES * CONTEXTS
};
static const double COUPLED_TOL = 1e-10, EULER_STEP = 0.5, EULER_TOL = 1e-7, SIGMA_LEAST = 1e-3;
static const double sharpness[] = {0, 1, 2, 4, 8, 16, 32, 64}, kept[] = {1, 2, 3, 5, 10, 20};
static const double shares[SHARES] = {0.3, 0.5, 0.8}, contexts[CONTEXTS] = {2, 5, 10, 25};
static const double orders[] = {1.5, 2}, nothing[] = {NAN}, zero[] = {0};
#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

typedef cgam_rivals setup;
typedef cgam_rivals_room room;

/* ---- Options --------------------------------------------------------------------------------- */
/* What a mechanism chooses from: every strength with every second value, the second value first. */
static void choices_of(const cgam_study_opts *o, int rival, cgam_list *strength, cgam_list *second)
{
    *second = (cgam_list){nothing, 1};
    switch (rival) {
    case CGAM_RIVAL_FIRST:
    case CGAM_RIVAL_COUPLED: *second = o->alphas; break;
    case CGAM_RIVAL_SPARSE: *second = (cgam_list){orders, COUNT(orders)}; break;
    case CGAM_RIVAL_MASK_UNITS: *second = (cgam_list){contexts, CONTEXTS}; break;
    default: break;
    }
    switch (rival) {
    case CGAM_RIVAL_HOPFIELD:
    case CGAM_RIVAL_BAYES: *strength = (cgam_list){zero, 1}; break;
    case CGAM_RIVAL_PLASTICITY: *strength = (cgam_list){sharpness, COUNT(sharpness)}; break;
    case CGAM_RIVAL_MASK_MEMORIES: *strength = (cgam_list){kept, COUNT(kept)}; break;
    case CGAM_RIVAL_MASK_UNITS: *strength = (cgam_list){shares, SHARES}; break;
    default: *strength = o->lambda; break;
    }
}

void cgam_rivals_close(cgam_study *study, setup *u) { cgam_free(study->env, u->option); }

cgam_status cgam_rivals_open(cgam_study *study, setup *u)
{
    const cgam_study_opts *o = &study->opts;
    *u = (setup){.n = o->n, .d = o->d, .sigmas = o->sigma_q.count, .alphas = o->alphas.count};
    u->settings = o->bank ? CGAM_RIVAL_CLUSTERS : CGAM_RIVAL_SETTINGS;
    cgam_list strength, second;
    for (int rival = 0; rival < CGAM_RIVALS; rival++) {
        choices_of(o, rival, &strength, &second);
        u->first[rival] = u->options;
        u->options += strength.count * second.count;
    }
    u->first[CGAM_RIVALS] = u->options;
    u->option = cgam_alloc(study->env, (size_t)u->options, sizeof *u->option);
    if (!u->option) return cgam_fail_nomem(study->env, "options");
    for (int rival = 0; rival < CGAM_RIVALS; rival++) {
        choices_of(o, rival, &strength, &second);
        for (int64_t i = 0; i < u->first[rival + 1] - u->first[rival]; i++)
            u->option[u->first[rival] + i] = (cgam_rival_option){
                rival, strength.values[i % strength.count], second.values[i / strength.count]};
    }
    return CGAM_OK;
}

/* ---- A bank ---------------------------------------------------------------------------------- */
/* Plain scratch of a room: vectors of n and d, and a d x d matrix of plasticity, or the normal equations of P. */
static int64_t plain_room(const setup *u) { return 4 * u->n + 6 * u->d + 2 * u->d * u->d; }

static int64_t unit_numbers(const setup *u)
{
    int64_t all = 0;
    for (int k = 0; k < CONTEXTS; k++) all += SHARES * (int64_t)contexts[k] * u->d;
    return all;
}

void cgam_rivals_room_close(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    cgam_banks_free(w->banks);
    cgam_free(study->env, w->q);
    cgam_free(study->env, w->Z);
}

cgam_status cgam_rivals_room_open(cgam_study *study, void *arg, void *opened)
{
    const setup *u = arg;
    room *w = opened;
    const int64_t n = u->n, d = u->d, size = n * d, padded = d + CGAM_LANES_TILE;
    const cgam_slice slices[] = {
        {&w->q, d}, {&w->c, d}, {&w->b, n},    {&w->u, n},          {&w->m, n},
        {&w->s, n}, {&w->r, n}, {&w->base, n}, {&w->e, n + padded}, {&w->gain, padded + 1}};
    cgam_status status = cgam_banks_new(study->env, study->lanes->width, n, d, &w->banks);
    if (status != CGAM_OK) return status;
    w->banks->g.env = study->env;
    status = cgam_trial_room(study, COUNT(slices), slices);
    if (status != CGAM_OK) return status;
    int64_t units = unit_numbers(u);
    w->Z = cgam_zalloc(study->env, (size_t)((3 + u->alphas + UNITS) * size + units + plain_room(u)),
                       sizeof *w->Z);
    if (!w->Z) return cgam_fail_nomem(study->env, "a bank");
    w->W = w->Z + size;
    w->M = w->W + size;
    w->S = w->M + size;
    w->masked = w->S + u->alphas * size;
    w->units = w->masked + UNITS * size;
    w->one = w->units + units;
    return CGAM_OK;
}

/* Z and W of a set. Clusters: memory mu is in cluster mu mod groups. */
static cgam_status draw_memories(cgam_study *study, const setup *u, int setting, int64_t set,
                                 room *w)
{
    const cgam_study_opts *o = &study->opts;
    const int64_t n = u->n, d = u->d, groups = o->groups < n ? o->groups : n;
    cgam_status status = CGAM_OK;
    if (setting == CGAM_RIVAL_CLUSTERS) {
        cgam_rng rng = cgam_stream(o->seed, CGAM_STREAM_RIVALS, CGAM_STREAM_BANK, set, 0, 0);
        cgam_trial_memories(&rng, groups, d, w->W); /* the centres, for a moment */
        for (int64_t i = 0; i < n; i++) {
            const double *centre = w->W + i % groups * d;
            double *row = w->Z + i * d, norm = 0;
            for (int64_t j = 0; j < d; j++) {
                row[j] = o->centre * centre[j] + o->spread * cgam_rng_normal(&rng);
                norm += row[j] * row[j];
            }
            for (int64_t j = 0; j < d; j++) row[j] /= sqrt(norm);
        }
    } else {
        status = cgam_trial_bank(study, CGAM_STREAM_SEPARATION, set, 0, 0, n, w->Z);
    }
    memcpy(w->W, w->Z, sizeof(double) * (size_t)(n * d));
    if (setting == CGAM_RIVAL_SPACE) {
        cgam_rng rng = cgam_stream(o->seed, CGAM_STREAM_RIVALS, CGAM_STREAM_KEYS, set, 0, 0);
        cgam_trial_memories(&rng, n, d, w->W);
    }
    return status;
}

/* M = Z P, P the least squares of W P' against Z: P' = (W'W)^-1 W'Z, by elimination with the largest pivot. A column
 * without one is left out, since W may have fewer dimensions than d. */
static void make_map(const setup *u, room *w)
{
    const int64_t n = u->n, d = u->d;
    double *H = w->one, *P = H + d * d; /* W'W; W'Z, then P' */
    memset(H, 0, sizeof *H * (size_t)(2 * d * d));
    for (int64_t i = 0; i < n; i++)
        for (int64_t a = 0; a < d; a++)
            for (int64_t j = 0; j < d; j++) {
                H[a * d + j] += w->W[i * d + a] * w->W[i * d + j];
                P[a * d + j] += w->W[i * d + a] * w->Z[i * d + j];
            }
    for (int64_t k = 0; k < d;
         k++) { /* W'W is positive semidefinite: no exchange of rows is needed */
        double pivot = H[k * d + k], least = 1e-10 * (double)n;
        for (int64_t i = 0; i < d; i++) {
            double f = pivot > least ? H[i * d + k] / pivot : 0;
            if (i == k || f == 0) continue;
            for (int64_t j = 0; j < d; j++) {
                H[i * d + j] -= f * H[k * d + j];
                P[i * d + j] -= f * P[k * d + j];
            }
        }
        for (int64_t j = 0; j < d; j++) P[k * d + j] = pivot > least ? P[k * d + j] / pivot : 0;
        for (int64_t j = 0; j < d; j++) H[k * d + j] = pivot > least ? H[k * d + j] / pivot : 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t a = 0; a < d; a++) {
            double sum = 0;
            for (int64_t j = 0; j < d; j++) sum += w->Z[i * d + j] * P[a * d + j];
            w->M[i * d + a] = sum;
        }
}

/* S = A(alpha)^-1 W, column by column, for every alpha. */
static cgam_status make_gates(cgam_study *study, const setup *u, room *w)
{
    const int64_t n = u->n, d = u->d;
    double *x = w->one, *y = x + n;
    cgam_bank *bank = NULL;
    cgam_status status = cgam_bank_new(study->env, w->Z, CGAM_F64, n, d, NULL, &bank);
    for (int64_t k = 0; k < u->alphas && status == CGAM_OK; k++) {
        double *S = w->S + k * n * d;
        cgam_gate *gate = NULL;
        status = cgam_gate_new(bank, study->opts.alphas.values[k], NULL, &gate);
        for (int64_t j = 0; j < d && status == CGAM_OK; j++) {
            for (int64_t i = 0; i < n; i++) x[i] = w->W[i * d + j];
            status = cgam_gate_solve(gate, x, y, NULL);
            for (int64_t i = 0; i < n; i++) S[i * d + j] = y[i];
        }
        cgam_gate_free(gate);
    }
    cgam_bank_free(bank);
    return status;
}

/* The i-th option of masked units: [contexts, d] numbers 0 and 1, and the memories as they are stored. */
static double *units_of(const setup *u, const room *w, int64_t i)
{
    double *at = w->units;
    for (int64_t k = 0; k < i; k++) at += (int64_t)contexts[k / SHARES] * u->d;
    return at;
}

static void make_masks(const cgam_study *study, const setup *u, int64_t set, room *w)
{
    const int64_t n = u->n, d = u->d;
    for (int64_t k = 0; k < UNITS; k++) {
        const int64_t C = (int64_t)contexts[k / SHARES];
        double *on = units_of(u, w, k), *stored = w->masked + k * n * d;
        int64_t most = llrint(shares[k % SHARES] * (double)d);
        if (most < 1) most = 1;
        cgam_rng rng =
            cgam_stream(study->opts.seed, CGAM_STREAM_RIVALS, CGAM_STREAM_MASK, set, k, 0);
        for (int64_t c = 0; c < C;
             c++) { /* each subset of that size equally likely, as in trial.c */
            int64_t taken = 0;
            for (int64_t j = 0; j < d; j++) {
                bool take = cgam_rng_uniform(&rng) * (double)(d - j) < (double)(most - taken);
                on[c * d + j] = take;
                taken += take;
            }
        }
        for (int64_t i = 0; i < n; i++) {
            double norm = 0;
            for (int64_t j = 0; j < d; j++) {
                double x = w->Z[i * d + j] * on[i % C * d + j];
                stored[i * d + j] = x;
                norm += x * x;
            }
            norm = norm > 0 ? 1 / sqrt(norm) : 0;
            for (int64_t j = 0; j < d; j++) stored[i * d + j] *= norm;
        }
    }
}

cgam_status cgam_rivals_bank(cgam_study *study, const setup *u, int setting, int64_t set, room *w)
{
    w->setting = setting;
    cgam_status status = draw_memories(study, u, setting, set, w);
    if (status == CGAM_OK) status = make_gates(study, u, w);
    if (status != CGAM_OK) return status;
    if (setting == CGAM_RIVAL_SPACE) make_map(u, w);
    else memcpy(w->M, w->Z, sizeof(double) * (size_t)(u->n * u->d));
    make_masks(study, u, set, w);
    cgam_banks_share(w->banks, w->Z);
    return cgam_banks_decompose(w->banks, NULL);
}

/* ---- Trials ---------------------------------------------------------------------------------- */
void cgam_rivals_draw(const cgam_study *study, const setup *u, int64_t set, int64_t cell,
                      int64_t first, room *w)
{
    const cgam_study_opts *o = &study->opts;
    const cgam_lanes *lanes = study->lanes;
    const int width = lanes->width;
    const cgam_cues cues = {.stream = CGAM_STREAM_SEPARATION,
                            .set = set,
                            .cell = cell,
                            .n = u->n,
                            .d = u->d,
                            .sigma_q = o->sigma_q.values[cell],
                            .Z = w->Z,
                            .q = w->q,
                            .c = w->c,
                            .target = w->target};
    cgam_trial_cues(study, &cues, first);
    for (int l = 0; l < width; l++) {
        int64_t target = w->target[l], meant = target;
        if (w->setting == CGAM_RIVAL_WRONG) {
            cgam_rng rng = cgam_stream(o->seed, CGAM_STREAM_SEPARATION, CGAM_STREAM_WRONG, set,
                                       cell, first + l);
            bool wrong = cgam_rng_uniform(&rng) < o->wrong;
            int64_t other = cgam_rng_below(&rng, u->n - 1);
            if (wrong) meant = other + (other >= target);
        }
        w->meant[l] = meant;
        if (w->setting != CGAM_RIVAL_SPACE && meant == target) continue;
        for (int64_t j = 0; j < u->d; j++) /* the noise stays */
            w->c[j * width + l] += w->W[meant * u->d + j] - w->Z[target * u->d + j];
    }
    lanes->product(u->n, u->d, w->Z, w->q, w->b);
    lanes->product(u->n, u->d, w->W, w->c, w->u);
    lanes->product(u->n, u->d, w->M, w->c, w->m);
    w->at_alpha = -1;
}

/* r = b + lambda x, all lanes. */
static void mix(const setup *u, int width, double lambda, const double *x, room *w)
{
    for (int64_t i = 0; i < u->n * width; i++) w->r[i] = w->b[i] + lambda * x[i];
}

/* The fixed point at alpha and lambda into w->r; A is positive definite. */
static void settle(cgam_study *study, const setup *u, double alpha, double lambda, room *w)
{
    const int width = study->lanes->width;
    cgam_bundle *g = &w->banks->g;
    int active[CGAM_LANES_MAX], iterations[CGAM_LANES_MAX];
    double gain0 = g->kernel ? 1 / (1 - alpha) : 0;
    for (int64_t j = 0; j < g->m * width; j++)
        w->gain[j] = 1 / (1 - alpha * (1 - g->mu[j])) - gain0;
    for (int l = 0; l < width; l++) {
        w->gain[g->m * width + l] = gain0;
        active[l] = 1;
    }
    mix(u, width, lambda, w->s, w);
    memcpy(w->base, w->r, sizeof *w->r * (size_t)(u->n * width));
    cgam_lanes_coupled c = {.beta = study->opts.beta,
                            .lambda = lambda,
                            .tol = COUPLED_TOL,
                            .max_iter = COUPLED_ITERATIONS,
                            .gain = w->gain,
                            .gain0 = w->gain + g->m * width,
                            .base = w->base,
                            .r = w->r,
                            .e = w->e,
                            .iterations = iterations,
                            .active = active};
    study->lanes->coupled(g, &c);
    for (int l = 0; l < width; l++) w->work[l] = 2 + 2 * (double)iterations[l];
}

/* ---- Mechanisms of one lane: b, x (what the context says) and r are strided, the rest is plain ---------- */
static void plasticity(const setup *u, int lane, int width, double k, room *w)
{
    const int64_t n = u->n, d = u->d;
    const double scale = sqrt((double)d), gain = 2 * (double)d;
    double *a = w->one, *y = a + n, *x = y + n, *f = x + d, *in = f + d, *V = in + d;
    const bool whole = d <= 2 * n; /* the d x d matrix costs less than two products a step */
    int steps = 0;
    for (int64_t i = 0; i < n; i++) a[i] = w->u[i * width + lane];
    cgam_trial_softmax(n, k, a, a);
    for (int64_t j = 0; j < d; j++) x[j] = w->q[j * width + lane];
    memset(V, 0, whole ? sizeof *V * (size_t)(d * d) : 0);
    for (int64_t i = 0; i < n && whole; i++)
        for (int64_t j = 0; j < d; j++)
            for (int64_t l = 0; l < d; l++)
                V[j * d + l] += a[i] * w->Z[i * d + j] * w->Z[i * d + l];
    for (double change = 1; steps < EULER_STEPS && change > EULER_TOL; steps++) {
        change = 0;
        for (int64_t j = 0; j < d; j++) f[j] = tanh(scale * x[j]) / scale;
        memset(in, 0, sizeof *in * (size_t)d);
        if (whole) {
            for (int64_t j = 0; j < d; j++)
                for (int64_t l = 0; l < d; l++) in[j] += V[j * d + l] * f[l];
        } else {
            for (int64_t i = 0; i < n; i++) {
                y[i] = 0;
                for (int64_t j = 0; j < d; j++) y[i] += w->Z[i * d + j] * f[j];
                for (int64_t j = 0; j < d; j++) in[j] += a[i] * y[i] * w->Z[i * d + j];
            }
        }
        for (int64_t j = 0; j < d; j++) {
            double step = EULER_STEP * (gain * in[j] - x[j]);
            change = fmax(change, fabs(step));
            x[j] += step;
        }
    }
    double norm = 0;
    for (int64_t j = 0; j < d; j++) norm += x[j] * x[j];
    norm = norm > 0 ? 1 / sqrt(norm) : 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < d; j++) sum += w->Z[i * d + j] * x[j];
        w->r[i * width + lane] = sum * norm;
    }
    w->work[lane] = 2 + (whole ? (double)d + steps * (double)d / (double)n : 2.0 * steps);
}

/* Of equal ones the lower index is kept. */
static void mask_memories(const setup *u, int lane, int width, double k, room *w)
{
    for (int64_t i = 0; i < u->n; i++) {
        int64_t before = 0;
        double x = w->u[i * width + lane];
        for (int64_t j = 0; j < u->n; j++) {
            double y = w->u[j * width + lane];
            before += y > x || (y == x && j < i);
        }
        w->r[i * width + lane] = (double)before < k ? w->b[i * width + lane] : -INFINITY;
    }
}

static void mask_units(const setup *u, int lane, int width, int64_t option, room *w)
{
    const int64_t n = u->n, d = u->d, C = (int64_t)contexts[option / SHARES];
    const double *stored = w->masked + option * n * d;
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (w->u[i * width + lane] > w->u[best * width + lane]) best = i;
    const double *on = units_of(u, w, option) + best % C * d;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < d; j++) sum += stored[i * d + j] * on[j] * w->q[j * width + lane];
        w->r[i * width + lane] = sum;
    }
}

/* Log posterior without what all memories share; |q - zeta|^2 counts norms that differ. */
static void bayes(const cgam_study_opts *o, const setup *u, int64_t cell, int lane, int width,
                  room *w)
{
    const int64_t n = u->n, d = u->d;
    const double sigma_q = fmax(o->sigma_q.values[cell], SIGMA_LEAST);
    const double sigma_c =
        fmax(o->sigma_c_vector ? o->sigma_c / sqrt((double)d) : o->sigma_c, SIGMA_LEAST);
    const double wrong = w->setting == CGAM_RIVAL_WRONG ? o->wrong : 0;
    double *says = w->one, top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double zeta = 0, kappa = 0;
        for (int64_t j = 0; j < d; j++) {
            zeta += w->Z[i * d + j] * w->Z[i * d + j];
            kappa += w->W[i * d + j] * w->W[i * d + j];
        }
        w->r[i * width + lane] = (w->b[i * width + lane] - 0.5 * zeta) / (sigma_q * sigma_q);
        says[i] = (w->u[i * width + lane] - 0.5 * kappa) / (sigma_c * sigma_c);
        top = fmax(top, says[i]);
    }
    for (int64_t i = 0; i < n; i++) sum += exp(says[i] - top);
    for (int64_t i = 0; i < n; i++) {
        double own = exp(says[i] - top);
        w->r[i * width + lane] +=
            wrong > 0 ? log((1 - wrong) * own + wrong * fmax(sum - own, 0) / (double)(n - 1))
                      : says[i] - top;
    }
}

void cgam_rivals_scores(cgam_study *study, const setup *u, int64_t cell, int64_t k, room *w)
{
    const cgam_study_opts *o = &study->opts;
    const cgam_lanes *lanes = study->lanes;
    const cgam_rival_option *option = &u->option[k];
    const double strength = option->strength;
    const int width = lanes->width;
    const int64_t own = k - u->first[option->rival]; /* which of its options */
    for (int l = 0; l < width; l++) w->work[l] = 2;
    switch (option->rival) {
    case CGAM_RIVAL_HOPFIELD: mix(u, width, 0, w->b, w); break;
    case CGAM_RIVAL_MIXING:
    case CGAM_RIVAL_SPARSE: mix(u, width, strength, w->m, w); break;
    case CGAM_RIVAL_EXPERTS: mix(u, width, strength, w->u, w); break;
    case CGAM_RIVAL_FIRST:
    case CGAM_RIVAL_COUPLED:
        if (w->at_alpha != own / o->lambda.count) {
            w->at_alpha = own / o->lambda.count;
            lanes->product(u->n, u->d, w->S + w->at_alpha * u->n * u->d, w->c, w->s);
        }
        if (option->rival == CGAM_RIVAL_FIRST) mix(u, width, strength, w->s, w);
        else settle(study, u, option->second, strength, w);
        break;
    }
    if (option->rival == CGAM_RIVAL_HOPFIELD || option->rival == CGAM_RIVAL_MIXING ||
        option->rival == CGAM_RIVAL_SPARSE)
        for (int l = 0; l < width; l++) w->work[l] = 1;
    for (int l = 0; l < width; l++) {
        switch (option->rival) {
        case CGAM_RIVAL_PLASTICITY: plasticity(u, l, width, strength, w); break;
        case CGAM_RIVAL_MASK_MEMORIES: mask_memories(u, l, width, strength, w); break;
        case CGAM_RIVAL_MASK_UNITS: mask_units(u, l, width, own, w); break;
        case CGAM_RIVAL_BAYES: bayes(o, u, cell, l, width, w); break;
        }
    }
}

void cgam_rivals_measure(const cgam_study *study, const setup *u, int64_t k, int lane,
                         const room *w, double *measures)
{
    const cgam_rival_option *option = &u->option[k];
    const int width = study->lanes->width;
    const int64_t n = u->n, d = u->d, target = w->target[lane];
    const double beta = option->rival == CGAM_RIVAL_BAYES ? 1 : study->opts.beta;
    double *p = w->one, *error = p + n, entropy = 0, square = 0;
    int64_t winner = 0;
    for (int64_t i = 0; i < n; i++) {
        p[i] = w->r[i * width + lane];
        if (p[i] > p[winner]) winner = i;
    }
    if (option->rival == CGAM_RIVAL_SPARSE) {
        cgam_entmax e = cgam_entmax_of(option->second, beta, n, p);
        for (int64_t i = 0; i < n; i++) p[i] = cgam_entmax_weight(&e, p[i]);
    } else {
        cgam_trial_softmax(n, beta, p, p);
    }
    for (int64_t j = 0; j < d; j++) error[j] = -w->Z[target * d + j];
    for (int64_t i = 0; i < n; i++) {
        if (p[i] == 0) continue;
        entropy -= p[i] * log(p[i]);
        for (int64_t j = 0; j < d; j++) error[j] += p[i] * w->Z[i * d + j];
    }
    for (int64_t j = 0; j < d; j++) square += error[j] * error[j];
    measures[CGAM_RIVAL_RIGHT] = winner == target;
    measures[CGAM_RIVAL_ERROR] = sqrt(square);
    measures[CGAM_RIVAL_NEFF] = exp(entropy);
    measures[CGAM_RIVAL_WORK] = w->work[lane];
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    const setup *u = arg;
    room *w = opened;
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    const int64_t set = i % o->banks;
    memset(record, 0, sizeof *record * (size_t)(u->sigmas * u->options * CGAM_RIVAL_MEASURES));
    cgam_status status = cgam_rivals_bank(study, u, (int)(i / o->banks), set, w);
    for (int64_t cell = 0; cell < u->sigmas && status == CGAM_OK; cell++)
        for (int64_t t = 0; t < o->trials; t += width) {
            cgam_rivals_draw(study, u, set, cell, t, w);
            for (int64_t k = 0; k < u->options; k++) {
                if (cgam_interrupted(study->env)) return CGAM_E_INTERRUPTED;
                double *sums = record + (cell * u->options + k) * CGAM_RIVAL_MEASURES;
                cgam_rivals_scores(study, u, cell, k, w);
                for (int l = 0; l < width && t + l < o->trials; l++) {
                    double one[CGAM_RIVAL_MEASURES];
                    cgam_rivals_measure(study, u, k, l, w, one);
                    for (int m = 0; m < CGAM_RIVAL_MEASURES; m++) sums[m] += one[m];
                }
            }
        }
    return status;
}

cgam_status cgam_rivals_run(cgam_study *study)
{
    setup u;
    cgam_status status = cgam_rivals_open(study, &u);
    cgam_blocks b = {.count = u.settings * study->opts.banks,
                     .record = u.sigmas * u.options * CGAM_RIVAL_MEASURES,
                     .room = sizeof(room),
                     .open = cgam_rivals_room_open,
                     .close = cgam_rivals_room_close,
                     .block = count_block,
                     .tables = cgam_rivals_tables,
                     .arg = &u};
    if (status == CGAM_OK) status = cgam_blocks_run(study, &b);
    cgam_rivals_close(study, &u);
    return status;
}
