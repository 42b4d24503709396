/* grid.c: recall accuracy over grids of N/d, lambda, alpha and sigma_q. The capacity study sweeps
 * N/d, the phase study any two of them. Both compute the whole product of their four lists.
 *
 * Memories are random unit vectors, or random rows of a bank that the user gives (all of its rows
 * if no N/d is given). A trial is that of separation.c: target, noisy query, noisy context,
 * r = Z q + lambda A(alpha)^-1 Z c; it counts whether the target wins. Draws do not depend
 * on alpha and lambda.
 *
 * A block is one bank at one N/d; its record counts [alpha, sigma_q, lambda]. */
#include "lab/synthetic/trial.h"

#include <cgam/gate.h>

#include <math.h>
#include <string.h>

enum { N_MAX = 1 << 16 };

/* Memories at a load; 0 = more than there are. */
static int64_t memories(const cgam_study_opts *o, double load)
{
    int64_t d = o->d, have = N_MAX;
    if (o->bank) {
        cgam_bank_info info = cgam_bank_describe(o->bank);
        d = info.d;
        have = info.n;
        if (load == 0) return have;
    }
    int64_t n = llrint(load * (double)d);
    if (n < 2) n = 2;
    return n <= have ? n : 0;
}

static int64_t dimensions(const cgam_study_opts *o)
{
    return o->bank ? cgam_bank_describe(o->bank).d : o->d;
}

cgam_status cgam_grid_check(cgam_env *env, const cgam_study_opts *o)
{
    static const double LEAST = 1e-3;
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < o->load.count && status == CGAM_OK && !o->bank; i++)
        if (o->load.values[i] < LEAST)
            status = cgam_fail(env, CGAM_E_ARG, "load is %g, it must be at least %g without a bank",
                               o->load.values[i], LEAST);
    for (int64_t i = 0; i < o->load.count && status == CGAM_OK; i++)
        if (memories(o, o->load.values[i]) == 0)
            status = cgam_fail(env, CGAM_E_ARG, "load %g needs %.0f memories, the bank has %lld",
                               o->load.values[i], o->load.values[i] * (double)dimensions(o),
                               (long long)(o->bank ? cgam_bank_describe(o->bank).n : N_MAX));
    if (status == CGAM_OK && o->load.count * o->sigma_q.count > CGAM_STREAM_CELLS)
        status =
            cgam_fail(env, CGAM_E_ARG, "%lld loads times %lld noise levels (at most %d pairs)",
                      (long long)o->load.count, (long long)o->sigma_q.count, CGAM_STREAM_CELLS);
    if (status == CGAM_OK && o->kind == CGAM_STUDY_PHASE && o->x == o->y)
        status = cgam_fail(env, CGAM_E_ARG, "x and y must be different axes");
    return status;
}

static int stream_of(const cgam_study_opts *o)
{
    return o->kind == CGAM_STUDY_CAPACITY ? CGAM_STREAM_CAPACITY : CGAM_STREAM_PHASE;
}

typedef struct room {
    int64_t set, load, n, d;
    cgam_bank *bank;
    cgam_spectrum *spectrum;     /* NULL where norms differ */
    double *Z, *S, *v;           /* [n, d] memories and A^-1 Z; [d + 2 n] room, zero */
    double *q, *c, *b, *s, *gap; /* [d], [d], [n], [n], [lambdas] per lane */
    int *right;                  /* [lambdas] */
    int64_t target[CGAM_LANES_MAX];
} room;

/* S = A(alpha)^-1 Z, column by column. Memories of equal norm share one spectrum over all alpha;
 * others need a factorization for each. */
static cgam_status make_gates(double alpha, room *w)
{
    cgam_gate *gate = NULL;
    double *v = w->v, *y = v + w->d, *x = y + w->n;
    cgam_status status = w->spectrum ? CGAM_OK : cgam_gate_new(w->bank, alpha, NULL, &gate);
    for (int64_t j = 0; j < w->d && status == CGAM_OK; j++) {
        v[j] = 1;
        if (w->spectrum) {
            status = cgam_bank_score(w->bank, v, x);
            if (status == CGAM_OK) status = cgam_spectrum_solve(w->spectrum, alpha, x, y);
        } else {
            status = cgam_gate_solve_range(gate, v, y);
        }
        v[j] = 0;
        for (int64_t i = 0; i < w->n; i++) w->S[i * w->d + j] = y[i];
    }
    cgam_gate_free(gate);
    return status;
}

/* Draws trials first .. first + width - 1 of a noise level and recalls them at the gates in w->S. */
static void recall_bundle(const cgam_study *study, int64_t noise, int64_t first, room *w)
{
    const cgam_study_opts *o = &study->opts;
    const cgam_lanes *lanes = study->lanes;
    const cgam_cues cues = {.stream = stream_of(o),
                            .set = w->set,
                            .cell = w->load * o->sigma_q.count + noise,
                            .n = w->n,
                            .d = w->d,
                            .sigma_q = o->sigma_q.values[noise],
                            .Z = w->Z,
                            .q = w->q,
                            .c = w->c,
                            .target = w->target};
    cgam_trial_cues(study, &cues, first);
    lanes->product(w->n, w->d, w->Z, w->q, w->b);
    lanes->product(w->n, w->d, w->S, w->c, w->s);
    cgam_lanes_judge judge = {.n = w->n,
                              .lambdas = o->lambda.count,
                              .beta = 1,
                              .b = w->b,
                              .s = w->s,
                              .lambda = o->lambda.values,
                              .target = w->target,
                              .gap = w->gap,
                              .right = w->right};
    lanes->judge(&judge);
}

/* Counts the trials of one bank at one alpha, all that are asked for: a stop cannot wait until they are done. */
static cgam_status count_trials(const cgam_study *study, room *w, double *record)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    for (int64_t k = 0; k < o->sigma_q.count; k++)
        for (int64_t t = 0; t < o->trials; t += width) {
            if (cgam_interrupted(study->env))
                return cgam_fail(study->env, CGAM_E_INTERRUPTED, "stopped on request");
            recall_bundle(study, k, t, w);
            for (int64_t j = 0; j < o->lambda.count; j++)
                for (int l = 0; l < width && t + l < o->trials; l++)
                    record[k * o->lambda.count + j] += w->right[j * width + l];
        }
    return CGAM_OK;
}

static void room_close(cgam_study *study, room *w)
{
    cgam_spectrum_free(w->spectrum);
    cgam_bank_free(w->bank);
    cgam_free(study->env, w->q);
    cgam_free(study->env, w->right);
}

/* Memories of one set at one load, and room for their recalls. */
static cgam_status room_open(cgam_study *study, int64_t set, int64_t load, room *w)
{
    cgam_env *env = study->env;
    const int width = study->lanes->width;
    const cgam_study_opts *o = &study->opts;
    int64_t lambdas = o->lambda.count, n = memories(o, o->load.values[load]), d = o->d;
    int64_t doubles = 2 * n * d + 2 * n + d + width * (2 * d + 2 * n + lambdas);
    *w = (room){.set = set, .load = load, .n = n, .d = d};
    w->q = cgam_zalloc(env, (size_t)(doubles + CGAM_LANES_MAX), sizeof *w->q);
    w->right = cgam_alloc(env, (size_t)(lambdas * width), sizeof *w->right);
    if (!w->q || !w->right) return cgam_fail_nomem(env, "a bank");
    w->c = w->q + width * d; /* vectors first: they are aligned */
    w->b = w->c + width * d;
    w->s = w->b + width * n;
    w->gap = w->s + width * n;
    w->Z = w->gap + width * lambdas;
    w->S = w->Z + n * d;
    w->v = w->S + n * d;
    cgam_status status = cgam_trial_bank(study, stream_of(o), set, load, 0, n, w->Z);
    if (status == CGAM_OK) status = cgam_bank_new(env, w->Z, CGAM_F64, n, d, NULL, &w->bank);
    if (status == CGAM_OK && cgam_bank_describe(w->bank).equal_norms)
        status = cgam_spectrum_new(w->bank, &w->spectrum);
    return status;
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    (void)arg;
    (void)opened;
    const cgam_study_opts *o = &study->opts;
    int64_t per = o->sigma_q.count * o->lambda.count;
    room w;
    cgam_status status = room_open(study, i % o->banks, i / o->banks, &w);
    memset(record, 0, sizeof *record * (size_t)(o->alphas.count * per));
    for (int64_t k = 0; k < o->alphas.count && status == CGAM_OK; k++) {
        status = make_gates(o->alphas.values[k], &w);
        if (status == CGAM_OK) status = count_trials(study, &w, record + k * per);
    }
    room_close(study, &w);
    return status;
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    (void)arg;
    const cgam_study_opts *o = &study->opts;
    const int64_t per = b->record;
    const double n = (double)o->trials, K = (double)o->banks;
    cgam_study_add(study, "accuracy",
                   "Share of trials in which the target wins; standard error between "
                   "banks, binomial when there is one.",
                   "load,n,alpha,sigma_q,lambda,accuracy,accuracy_se,trials,banks", NULL,
                   o->load.count * per);
    for (int64_t i = 0; i < o->load.count; i++)
        for (int64_t k = 0; k < per; k++) {
            cgam_moments share = {0};
            for (int64_t set = 0; set < o->banks; set++)
                cgam_moments_add(&share, b->records[(i * o->banks + set) * per + k] / n);
            int64_t size = memories(o, o->load.values[i]);
            CGAM_STUDY_ROW(study, (double)size / (double)o->d, (double)size,
                           o->alphas.values[k / (o->sigma_q.count * o->lambda.count)],
                           o->sigma_q.values[k / o->lambda.count % o->sigma_q.count],
                           o->lambda.values[k % o->lambda.count], share.mean,
                           o->banks > 1 ? cgam_moments_se(&share)
                                        : sqrt(share.mean * (1 - share.mean) / n),
                           n * K, K);
        }
    if (study->status != CGAM_OK) return study->status;
    cgam_table_put(study->doc, cgam_study_find(study, "accuracy"), 0, o->load.count * per,
                   "load,n,alpha,sigma_q,lambda,accuracy,accuracy_se");
    return CGAM_OK;
}

cgam_status cgam_grid_run(cgam_study *study)
{
    const cgam_study_opts *o = &study->opts;
    cgam_blocks b = {.count = o->load.count * o->banks,
                     .record = o->alphas.count * o->sigma_q.count * o->lambda.count,
                     .block = count_block,
                     .tables = make_tables};
    return cgam_blocks_run(study, &b);
}

/* ---- One trial ------------------------------------------------------------------------------- */
/* What lane l has at one alpha: gates, their energy s'As/2 - u's = -u's/2, and the recalls. */
static json_t *show_alpha(const cgam_study *study, double alpha, int lane, const room *w)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    json_t *doc = json_object(), *list = json_array();
    double energy = 0;
    for (int64_t i = 0; i < w->n; i++) {
        double u = 0;
        for (int64_t j = 0; j < w->d; j++) u += w->Z[i * w->d + j] * w->c[j * width + lane];
        energy -= 0.5 * u * w->s[i * width + lane];
    }
    for (int64_t k = 0; k < o->lambda.count; k++) {
        json_array_append_new(list, cgam_json_object("lambda=%g gap=%g right?=%d",
                                                     o->lambda.values[k], w->gap[k * width + lane],
                                                     w->right[k * width + lane]));
    }
    cgam_json_add(doc, "alpha=%g energy=%g s=%p recalls=%p", alpha, energy,
                  cgam_json_reals(w->s + lane, w->n, width), list);
    return doc;
}

cgam_status cgam_grid_trial(cgam_study *study, int64_t k, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    int64_t set = k / o->trials, own = k % o->trials;
    const int lane = (int)(own % width);
    json_t *loads = json_array();
    cgam_status status = CGAM_OK;
    for (int64_t load = 0; load < o->load.count && status == CGAM_OK; load++) {
        json_t *one = json_object(), *cells = json_array();
        room w;
        status = room_open(study, set, load, &w);
        for (int64_t j = 0; j < o->sigma_q.count && status == CGAM_OK; j++) {
            json_t *cell = json_object(), *list = json_array();
            for (int64_t a = 0; a < o->alphas.count && status == CGAM_OK; a++) {
                status = make_gates(o->alphas.values[a], &w);
                if (status != CGAM_OK) break;
                recall_bundle(study, j, own - lane, &w);
                json_array_append_new(list, show_alpha(study, o->alphas.values[a], lane, &w));
            }
            cgam_json_add(cell, "sigma_q=%g target=%jd q=%p c=%p b=%p alphas=%p",
                          o->sigma_q.values[j], w.target[lane],
                          cgam_json_reals(w.q + lane, w.d, width),
                          cgam_json_reals(w.c + lane, w.d, width),
                          cgam_json_reals(w.b + lane, w.n, width), list);
            json_array_append_new(cells, cell);
        }
        if (status == CGAM_OK) cgam_json_put(one, "Z", cgam_trial_rows(w.Z, w.n, w.d, 1));
        room_close(study, &w);
        cgam_json_add(one, "load=%g n=%jd cells=%p", (double)w.n / (double)w.d, w.n, cells);
        json_array_append_new(loads, one);
    }
    cgam_json_add(doc, "bank=%jd trial_of_bank=%jd loads=%p", set, own, loads);
    return status;
}
