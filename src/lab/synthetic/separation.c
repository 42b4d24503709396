/* separation.c: does context separate memories? (paper, section 3.3 and appendix D.1, fig. 2)
 *
 * One bank of n unit Gaussian memories. A trial picks a target zeta, a query q = zeta + sigma_q eps
 * and a context c = zeta + sigma_c eta, recalls with r = Z q + lambda A(alpha)^-1 Z c for every
 * lambda (the same draws for all of them), and asks: does the target win, by what gap
 * Delta = r_target - max of the others, and is its probability above 1/(1 + (n-1) e^(-beta Delta))?
 *
 * A block is 64 trials of one bank at every sigma_q. Its record holds, in this order,
 *   right [sigma, lambda]             the target wins
 *   gained, lost [sigma, lambda]      against the lambda before: newly right, newly wrong
 *   gained0, lost0 [sigma, lambda]    against the first lambda
 *   p, p2 [sigma, lambda]             mean and squared deviations of the target's probability
 *   gap [2, lambda]                   the same over all sigma of Delta
 *   shift [2, lambda]                 the same of Delta - Delta at the lambda before
 *   points [5]                        points, violations, least margin, violations of the bound at
 *                                     Delta_raw + lambda Delta_gate, cases of that sum above Delta
 *   window [lambda, window sigmas, 64]   Delta where |sigma_q - 1| < 0.15
 *   sample [sigma, lambda, 2]         Delta and log p of the block's first trial
 *   stopped [sigma, lambda]           mode coupled: iterations that did not converge */
#include "lab/synthetic/separation.h"

#include "base/alloc.h"
#include "lab/synthetic/trial.h"

#include <cgam/gate.h>
#include <cgam/theory.h>

#include <math.h>
#include <string.h>

enum { BLOCK = CGAM_SEPARATION_BLOCK, COUPLED_ITERATIONS = 10000 };
static const double WINDOW = 0.15, SLACK = 1e-12, COUPLED_TOL = 1e-12;

typedef cgam_separation setup;
typedef cgam_separation_room room;

static bool in_window(double sigma) { return fabs(sigma - 1) < WINDOW; }

/* Z of a bank, and S = A^-1 Z column by column. */
static cgam_status make_bank(cgam_study *study, int64_t set, double *Z, double *S)
{
    const cgam_study_opts *o = &study->opts;
    cgam_env *env = study->env;
    cgam_bank *bank = NULL;
    cgam_gate *gate = NULL;
    double *v = cgam_zalloc(env, (size_t)(o->d + o->n), sizeof *v);
    cgam_status status = v ? CGAM_OK : cgam_fail_nomem(env, "a bank");
    if (status == CGAM_OK)
        status = cgam_trial_bank(study, CGAM_STREAM_SEPARATION, set, 0, 0, o->n, Z);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, o->n, o->d, NULL, &bank);
    if (status == CGAM_OK) status = cgam_gate_new(bank, o->alpha, NULL, &gate);
    if (status == CGAM_OK && o->coupled && cgam_gate_describe(gate).regime != CGAM_SUBCRITICAL)
        status = cgam_fail(env, CGAM_E_NOT_POSITIVE,
                           "mode coupled requires alpha below alpha_crit = %.17g; alpha is %.17g",
                           cgam_gate_describe(gate).critical.alpha, o->alpha);
    for (int64_t j = 0; j < o->d && status == CGAM_OK; j++) {
        v[j] = 1;
        status = cgam_gate_solve_range(gate, v, v + o->d);
        v[j] = 0;
        for (int64_t i = 0; i < o->n; i++) S[i * o->d + j] = v[o->d + i];
    }
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    cgam_free(env, v);
    return status;
}

void cgam_separation_close(cgam_study *study, setup *u)
{
    cgam_free(study->env, u->Z);
    cgam_free(study->env, u->S);
}

cgam_status cgam_separation_open(cgam_study *study, setup *u)
{
    const cgam_study_opts *o = &study->opts;
    *u = (setup){.n = o->n, .d = o->d, .sigmas = o->sigma_q.count, .lambdas = o->lambda.count};
    for (int64_t i = 0; i < u->sigmas; i++) u->window += in_window(o->sigma_q.values[i]);
    u->blocks_a_bank = (o->trials + BLOCK - 1) / BLOCK;
    int64_t grid = u->sigmas * u->lambdas;
    int64_t sizes[PARTS];
    for (int k = 0; k < PARTS; k++) sizes[k] = grid;
    sizes[GAP] = sizes[SHIFT] = 2 * u->lambdas;
    sizes[POINTS] = 5;
    sizes[IN_WINDOW] = u->lambdas * u->window * BLOCK;
    sizes[SAMPLE] = 2 * grid;
    for (int k = 0; k < PARTS; k++) {
        u->at[k] = u->record;
        u->record += sizes[k];
    }
    const int64_t size = o->banks * u->n * u->d;
    cgam_status status =
        cgam_alloc_all(study->env, "banks", CGAM_ARRAY(u->Z, size), CGAM_ARRAY(u->S, size));
    for (int64_t k = 0; k < o->banks && status == CGAM_OK; k++)
        status = make_bank(study, k, u->Z + k * u->n * u->d, u->S + k * u->n * u->d);
    return status;
}

void cgam_separation_room_close(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    cgam_banks_free(w->banks);
    cgam_free(study->env, w->q);
}

cgam_status cgam_separation_room_open(cgam_study *study, void *arg, void *opened)
{
    const setup *u = arg;
    room *w = opened;
    const int64_t n = u->n, d = u->d, lambdas = u->lambdas, padded = d + CGAM_LANES_TILE;
    const cgam_slice slices[] = {{&w->q, d},
                                 {&w->c, d},
                                 {&w->b, n},
                                 {&w->s, n},
                                 {&w->gap, lambdas},
                                 {&w->log_p, lambdas},
                                 {&w->sums, 2},
                                 {&w->r, n},
                                 {&w->e, n + padded},
                                 {&w->base, n},
                                 {&w->gain, padded + 1}};
    w->set = -1;
    if (study->opts.coupled) {
        cgam_status status = cgam_banks_new(study->env, study->lanes->width, n, d, &w->banks);
        if (status != CGAM_OK) return status;
    }
    return cgam_trial_room(study, sizeof slices / sizeof *slices, slices);
}

void cgam_separation_draw(const cgam_study *study, const setup *u, int64_t set, int64_t cell,
                          int64_t first, room *w)
{
    const cgam_cues cues = {.stream = CGAM_STREAM_SEPARATION,
                            .set = set,
                            .cell = cell,
                            .n = u->n,
                            .d = u->d,
                            .sigma_q = study->opts.sigma_q.values[cell],
                            .Z = u->Z + set * u->n * u->d,
                            .q = w->q,
                            .c = w->c,
                            .target = w->target};
    cgam_trial_cues(study, &cues, first);
}

/* Mode coupled: the fixed point for lambda k into w->r. */
static cgam_status settle_bundle(cgam_study *study, const setup *u, int64_t set, int64_t k, room *w)
{
    const cgam_study_opts *o = &study->opts;
    const double lambda = o->lambda.values[k];
    cgam_bundle *g = &w->banks->g;
    const int width = study->lanes->width;
    int active[CGAM_LANES_MAX], iterations[CGAM_LANES_MAX];
    if (w->set != set) {
        cgam_banks_share(w->banks, u->Z + set * u->n * u->d);
        cgam_status status = cgam_banks_decompose(w->banks, NULL);
        if (status != CGAM_OK) return status;
        double gain0 = g->kernel ? 1 / (1 - o->alpha) : 0;
        for (int64_t j = 0; j < g->m * width; j++)
            w->gain[j] = 1 / (1 - o->alpha * (1 - g->mu[j])) - gain0;
        for (int l = 0; l < width; l++) w->gain[g->m * width + l] = gain0;
        w->set = set;
    }
    for (int l = 0; l < width; l++) active[l] = 1;
    for (int64_t i = 0; i < u->n * width; i++) w->r[i] = w->base[i] = w->b[i] + lambda * w->s[i];
    cgam_lanes_coupled c = {.beta = o->beta,
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
    for (int l = 0; l < width; l++) w->stopped[k * width + l] = iterations[l] > c.max_iter;
    return CGAM_OK;
}

cgam_status cgam_separation_recall(cgam_study *study, const setup *u, int64_t set, int64_t from,
                                   int64_t to, room *w)
{
    static const double none = 0;
    const cgam_study_opts *o = &study->opts;
    const cgam_lanes *lanes = study->lanes;
    const int width = lanes->width;
    lanes->product(u->n, u->d, u->Z + set * u->n * u->d, w->q, w->b);
    lanes->product(u->n, u->d, u->S + set * u->n * u->d, w->c, w->s);
    cgam_lanes_judge judge = {.n = u->n,
                              .lambdas = 1,
                              .beta = o->beta,
                              .b = w->b,
                              .s = w->s,
                              .lambda = &none,
                              .target = w->target,
                              .gap = w->sums,
                              .right = w->right};
    lanes->judge(&judge); /* Delta_raw, then Delta_gate */
    judge.b = w->s;
    judge.gap = w->sums + width;
    lanes->judge(&judge);
    judge.b = w->b;
    cgam_status status = CGAM_OK;
    for (int64_t k = from; k < to && status == CGAM_OK; k += judge.lambdas) {
        judge.gap = w->gap + k * width;
        judge.log_p = w->log_p + k * width;
        judge.right = w->right + k * width;
        if (o->coupled) { /* the gates are inside r already */
            status = settle_bundle(study, u, set, k, w);
            judge.b = w->r;
        } else {
            judge.lambdas = to - from;
            judge.lambda = o->lambda.values + k;
        }
        if (status == CGAM_OK) lanes->judge(&judge);
    }
    return status;
}

/* Adds lane l, trial `slot` of the block, at noise level `cell`, to the record. */
static void count_lane(const cgam_study *study, const setup *u, int64_t cell, int64_t window,
                       int64_t slot, int64_t size, int lane, const room *w, double *record)
{
    const int64_t nth = cell * size + slot + 1; /* of the block's trials at all noise levels */
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    double *points = record + u->at[POINTS];
    for (int64_t k = 0; k < u->lambdas; k++) {
        int64_t i = k * width + lane, at = cell * u->lambdas + k;
        double gap = w->gap[i], log_p = w->log_p[i], p = exp(log_p);
        bool right = w->right[i], first = w->right[lane];
        record[u->at[RIGHT] + at] += right;
        if (k > 0) {
            bool before = w->right[i - width];
            double shift = gap - w->gap[i - width];
            record[u->at[GAINED] + at] += right && !before;
            record[u->at[LOST] + at] += !right && before;
            cgam_record_add(&record[u->at[SHIFT] + k], &record[u->at[SHIFT] + u->lambdas + k], nth,
                            shift);
        }
        record[u->at[GAINED0] + at] += right && !first;
        record[u->at[LOST0] + at] += !right && first;
        record[u->at[STOPPED] + at] += w->stopped[i];
        cgam_record_add(&record[u->at[P] + at], &record[u->at[P2] + at], slot + 1, p);
        cgam_record_add(&record[u->at[GAP] + k], &record[u->at[GAP] + u->lambdas + k], nth, gap);
        double margin = log_p - cgam_separation_bound_log(u->n, o->beta, gap);
        points[0] += 1;
        points[1] += margin < -SLACK;
        points[2] = fmin(points[2], margin);
        if (!o->coupled) { /* the gates of a coupled recall are not these */
            double sum = w->sums[lane] + o->lambda.values[k] * w->sums[width + lane];
            points[3] += log_p - cgam_separation_bound_log(u->n, o->beta, sum) < -SLACK;
            points[4] += sum > gap + SLACK * (1 + fabs(gap));
        }
        if (window >= 0) record[u->at[IN_WINDOW] + (k * u->window + window) * BLOCK + slot] = gap;
        if (slot == 0) {
            record[u->at[SAMPLE] + 2 * at] = gap;
            record[u->at[SAMPLE] + 2 * at + 1] = log_p;
        }
    }
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    const setup *u = arg;
    room *w = opened;
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    int64_t set = i / u->blocks_a_bank, first = i % u->blocks_a_bank * BLOCK;
    int64_t end = first + cgam_block_trials(o, BLOCK, i % u->blocks_a_bank), window = -1;
    memset(record, 0, (size_t)u->record * sizeof *record);
    record[u->at[POINTS] + 2] = INFINITY;
    for (int64_t k = u->at[IN_WINDOW]; k < u->at[SAMPLE]; k++) record[k] = NAN;
    cgam_status status = CGAM_OK;
    for (int64_t cell = 0; cell < u->sigmas; cell++) {
        bool inside = in_window(o->sigma_q.values[cell]);
        window += inside;
        for (int64_t t = first; t < end && status == CGAM_OK; t += width) {
            if (cgam_interrupted(study->env)) return CGAM_E_INTERRUPTED;
            cgam_separation_draw(study, u, set, cell, t, w);
            status = cgam_separation_recall(study, u, set, 0, u->lambdas, w);
            for (int l = 0; l < width && t + l < end && status == CGAM_OK; l++)
                count_lane(study, u, cell, inside ? window : -1, t + l - first, end - first, l, w,
                           record);
        }
    }
    return status;
}

cgam_status cgam_separation_check(cgam_env *env, const cgam_study_opts *o)
{
    return o->coupled ? cgam_study_check_unit(env, o) : CGAM_OK;
}

cgam_status cgam_separation_run(cgam_study *study)
{
    setup u;
    cgam_status status = cgam_separation_open(study, &u);
    cgam_blocks b = {.count = u.blocks_a_bank * study->opts.banks,
                     .record = u.record,
                     .room = sizeof(room),
                     .open = cgam_separation_room_open,
                     .close = cgam_separation_room_close,
                     .block = count_block,
                     .tables = cgam_separation_tables,
                     .arg = &u};
    if (status == CGAM_OK) status = cgam_blocks_run(study, &b);
    cgam_separation_close(study, &u);
    return status;
}
