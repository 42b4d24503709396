/* timescale.c: do fast gates precondition retrieval? (paper, section 3.1: tau_c, tau_s << tau_r,
 * tau_q)
 *
 * Each trial draws n unit memories, a target, a noisy query and a noisy context, and integrates
 *     tau_s s' = Z c + lambda p - A s,   tau_r r' = lambda s + Z q - r,   p = softmax(beta r)
 * from s = 0, r = 0 (or r = Z q) for every ratio rho = tau_r / tau_s, with tau_q = tau_r when the
 * query is free (tau_q q' = Z'p - q). With strong feedback there are many fixed points, and the
 * ratio decides which is reached. Measured along the way:
 *     context settled   first sample at which s is within 10% of A^-1 (u + lambda p), by largest
 *                       entries: the gates are where the present p would hold them
 *     retrieval decided first sample at which the largest p is at least 1/2
 * Times are in units of tau_s; samples lie at t_end (1/2, 3/4) 2^-e and at
 * t_end = 64 max(1, rho).
 *
 * A block is 8 trials; its record holds, for every ratio, at each sample how many are right and mean
 * and squared deviations of N_eff, then per trial: right at the end, context settled, retrieval decided. */
#include "lab/synthetic/banks.h"
#include "lab/synthetic/trial.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 8, OCTAVES = 18, SAMPLES = 2 * OCTAVES + 1, SUMS = 3, FINALS = 3 };
enum { PER_RATIO = SUMS * SAMPLES + FINALS * BLOCK }; /* numbers of a record */
static const double HORIZON = 64, NEAR = 0.1, TOL = 1e-4, RATE = 0.5;

typedef struct room {
    cgam_banks *banks;
    double *q, *c;             /* [d] */
    double *u, *b, *s, *r, *p; /* [n] */
    double *now;               /* [n] Z q at a sample that is shown */
    double *root, *x;          /* [m] */
    double *flow, *w;          /* w: [m] plain room */
    double ratio;
    int64_t target[CGAM_LANES_MAX];
    /* what the samples of one ratio add to */
    const cgam_study *study;
    double *sums, at[SAMPLES], settled[CGAM_LANES_MAX], decided[CGAM_LANES_MAX];
    int64_t before; /* trials of the block before this bundle */
    int count;      /* lanes that are counted */
    json_t *shown;  /* --only-trial: the samples of one lane, NULL otherwise */
    int lane;
} room;

static void room_close(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    cgam_banks_free(w->banks);
    cgam_free(study->env, w->q);
    cgam_free(study->env, w->flow);
}

static cgam_status room_open(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    const int64_t n = study->opts.n, d = study->opts.d;
    w->study = study;
    cgam_status status = cgam_banks_new(study->env, study->lanes->width, n, d, &w->banks);
    if (status != CGAM_OK) return status;
    const int64_t m = w->banks->g.m;
    const cgam_slice slices[] = {{&w->q, d},    {&w->c, d}, {&w->u, n}, {&w->b, n},
                                 {&w->s, n},    {&w->r, n}, {&w->p, n}, {&w->now, n},
                                 {&w->root, m}, {&w->x, m}, {&w->w, m}};
    w->flow = cgam_zalloc(study->env, cgam_lanes_flow_size(&w->banks->g), sizeof *w->flow);
    if (!w->flow) return cgam_fail_nomem(study->env, "a trial");
    return cgam_trial_room(study, sizeof slices / sizeof *slices, slices);
}

static cgam_status draw_bundle(cgam_study *study, int64_t first, room *w)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width, own = CGAM_STREAM_TIMESCALE;
    cgam_bundle *g = &w->banks->g;
    const cgam_cues cues = {.stream = own,
                            .n = o->n,
                            .d = o->d,
                            .sigma_q = o->sigma_q.values[0],
                            .Z = g->Z,
                            .own = true,
                            .q = w->q,
                            .c = w->c,
                            .target = w->target};
    for (int l = 0; l < width; l++) cgam_banks_draw(w->banks, l, o->seed, own, 0, first + l, 0, 1);
    cgam_trial_cues(study, &cues, first);
    for (int l = 0; l < width; l++)
        for (int64_t i = 0; i < o->n; i++) {
            double u = 0, b = 0;
            for (int64_t j = 0; j < o->d; j++) {
                u += g->Z[(i * o->d + j) * width + l] * w->c[j * width + l];
                b += g->Z[(i * o->d + j) * width + l] * w->q[j * width + l];
            }
            w->u[i * width + l] = u;
            w->b[i * width + l] = b;
            g->start[i * width + l] = o->start_query ? b : 0;
        }
    cgam_status status = cgam_banks_decompose(w->banks, w->u);
    /* the query in the modes: Z q = V (root x), so x = V'(Z q) / root */
    for (int64_t k = 0; k < g->m && status == CGAM_OK; k++)
        for (int l = 0; l < width; l++) {
            double root = sqrt(g->mu[k * width + l]), sum = 0;
            for (int64_t i = 0; i < o->n; i++)
                sum += g->V[(i * g->m + k) * width + l] * w->b[i * width + l];
            w->root[k * width + l] = root;
            w->x[k * width + l] = root > 0 ? sum / root : 0;
        }
    return status;
}

/* Largest entries of s - A^-1 (u + lambda p) and of A^-1 (u + lambda p), lane l. */
static bool gates_settled(const room *w, int l, const double *s, const double *p)
{
    const cgam_study_opts *o = &w->study->opts;
    const cgam_bundle *g = &w->banks->g;
    const int width = g->width;
    const double lambda = o->lambda.values[0], gain0 = g->kernel ? 1 / (1 - o->alpha) : 0;
    double off = 0, size = 0;
    for (int64_t k = 0; k < g->m; k++) {
        double sum = g->c[k * width + l];
        for (int64_t i = 0; i < g->n; i++)
            sum += lambda * g->V[(i * g->m + k) * width + l] * p[i * width + l];
        w->w[k] = sum * (1 / (1 - o->alpha * (1 - g->mu[k * width + l])) - gain0);
    }
    for (int64_t i = 0; i < g->n; i++) {
        double held = gain0 * (w->u[i * width + l] + lambda * p[i * width + l]);
        for (int64_t k = 0; k < g->m; k++) held += g->V[(i * g->m + k) * width + l] * w->w[k];
        off = fmax(off, fabs(s[i * width + l] - held));
        size = fmax(size, fabs(held));
    }
    return off <= NEAR * size;
}

/* The energy of a sample. Zq = V (root x); the part of a free query outside the memories' span
 * decays by itself. */
static double sample_energy(const room *w, int l, double t, const double *s, const double *r,
                            const double *p, const double *x)
{
    const cgam_study_opts *o = &w->study->opts;
    const cgam_bundle *g = &w->banks->g;
    const int width = g->width;
    double inside = 0, start = 0, own = 0;
    for (int64_t i = 0; i < g->n; i++) {
        double b = 0;
        for (int64_t k = 0; k < g->m; k++)
            b += g->V[(i * g->m + k) * width + l] * w->root[k * width + l] * x[k * width + l];
        w->now[i * width + l] = b;
    }
    for (int64_t k = 0; k < g->m; k++) {
        inside += x[k * width + l] * x[k * width + l];
        start += w->x[k * width + l] * w->x[k * width + l];
    }
    for (int64_t j = 0; j < g->d; j++) own += w->q[j * width + l] * w->q[j * width + l];
    double E =
        cgam_banks_energy(w->banks, l, o->alpha, o->beta, o->lambda.values[0], s, r, p, w->now);
    if (o->query_free) E += 0.5 * (inside + fmax(own - start, 0) * exp(-2 * t / w->ratio));
    return E;
}

static void count_sample(void *user, int64_t sample, const double *s, const double *r,
                         const double *p, const double *x)
{
    room *w = user;
    const cgam_bundle *g = &w->banks->g;
    const int width = g->width;
    for (int l = 0; l < w->count; l++) {
        double peak = 0, entropy = 0;
        int64_t winner = 0;
        for (int64_t i = 0; i < g->n; i++) {
            double chance = p[i * width + l];
            if (chance > peak) {
                peak = chance;
                winner = i;
            }
            if (chance > 0) entropy -= chance * log(chance);
        }
        double neff = exp(entropy), *sums = w->sums + SUMS * sample;
        sums[0] += winner == w->target[l];
        cgam_record_add(&sums[1], &sums[2], w->before + l + 1, neff);
        if (isnan(w->decided[l]) && peak >= 0.5) w->decided[l] = w->at[sample];
        if (isnan(w->settled[l]) && gates_settled(w, l, s, p)) w->settled[l] = w->at[sample];
        if (w->shown && l == w->lane) {
            json_t *doc = cgam_json_object(
                "t=%g winner=%jd p_max=%g neff=%g energy=%g s=%p r=%p p=%p", w->at[sample], winner,
                peak, neff, sample_energy(w, l, w->at[sample], s, r, p, x),
                cgam_json_reals(s + l, g->n, width), cgam_json_reals(r + l, g->n, width),
                cgam_json_reals(p + l, g->n, width));
            json_array_append_new(w->shown, doc);
        }
    }
}

static double sample_times(double ratio, double *at)
{
    double t_end = HORIZON * fmax(1, ratio);
    for (int e = OCTAVES - 1, k = 0; e >= 0; e--)
        for (int j = 0; j < 2; j++) at[k++] = ldexp(t_end * (2 + j) / 4, -e);
    at[SAMPLES - 1] = t_end;
    return t_end;
}

/* One ratio: adds to sums [SAMPLES, SUMS]; final[l] in w->settled, w->decided and right. */
static void run_flow(const cgam_study *study, double ratio, double *sums, room *w, int *right)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    double ended[CGAM_LANES_MAX];
    int active[CGAM_LANES_MAX];
    w->sums = sums;
    w->ratio = ratio;
    for (int l = 0; l < width; l++) {
        active[l] = 1;
        w->settled[l] = w->decided[l] = NAN;
    }
    cgam_lanes_flow f = {.alpha = o->alpha,
                         .beta = o->beta,
                         .lambda = o->lambda.values[0],
                         .tau_s = 1,
                         .tau_r = ratio,
                         .tau_q = ratio,
                         .query_free = o->query_free,
                         .t_end = sample_times(ratio, w->at),
                         .tol = TOL,
                         .h_rate = RATE,
                         .root = w->root,
                         .x = w->x,
                         .active = active,
                         .work = w->flow,
                         .samples = SAMPLES,
                         .at = w->at,
                         .seen = count_sample,
                         .user = w,
                         .s = w->s,
                         .r = w->r,
                         .p = w->p,
                         .ended = ended};
    study->lanes->flow(&w->banks->g, &f);
    for (int l = 0; l < width; l++) {
        int64_t winner = 0;
        for (int64_t i = 1; i < o->n; i++)
            if (w->r[i * width + l] > w->r[winner * width + l]) winner = i;
        right[l] = winner == w->target[l];
    }
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    (void)arg;
    room *w = opened;
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    int right[CGAM_LANES_MAX];
    int64_t first = i * BLOCK, end = first + cgam_block_trials(o, BLOCK, i);
    memset(record, 0, (size_t)(o->ratio.count * PER_RATIO) * sizeof *record);
    for (int64_t from = first; from < end; from += width) {
        cgam_status status = draw_bundle(study, from, w);
        if (status != CGAM_OK) return status;
        w->before = from - first;
        w->count = end - from < width ? (int)(end - from) : width;
        for (int64_t k = 0; k < o->ratio.count; k++) {
            if (cgam_interrupted(study->env)) return CGAM_E_INTERRUPTED;
            double *sums = record + k * PER_RATIO;
            double *finals = sums + SUMS * SAMPLES + FINALS * (from - first);
            run_flow(study, o->ratio.values[k], sums, w, right);
            for (int l = 0; l < w->count; l++) {
                finals[FINALS * l] = right[l];
                finals[FINALS * l + 1] = w->settled[l];
                finals[FINALS * l + 2] = w->decided[l];
            }
        }
    }
    return CGAM_OK;
}

/* Number k of trial t at ratio j. */
static double final_number(const cgam_blocks *b, int64_t j, int64_t t, int k)
{
    return b->records[t / BLOCK * b->record + j * PER_RATIO + SUMS * SAMPLES +
                      FINALS * (t % BLOCK) + k];
}

static cgam_status ratio_table(cgam_study *study, const cgam_blocks *b)
{
    const cgam_study_opts *o = &study->opts;
    double n = (double)o->trials, *x = cgam_alloc(study->env, (size_t)o->trials, sizeof *x);
    if (!x) return cgam_fail_nomem(study->env, "times");
    cgam_study_add(
        study, "ratios",
        "Accuracy at the end, and the times at which the context has settled and retrieval "
        "has decided (in tau_s, quartiles over the trials in which this happens). "
        "context_first: share of trials in which the context settles before retrieval "
        "decides. gained, lost: trials that turn right, wrong, compared with the smallest "
        "ratio.",
        "ratio,accuracy,accuracy_se,gained,lost,context_first,context_q25,context_median,"
        "context_q75,decided_q25,decided_median,decided_q75,undecided,trials",
        NULL, o->ratio.count);
    for (int64_t j = 0; j < o->ratio.count; j++) {
        double right = 0, first = 0, cells[14] = {0};
        for (int64_t t = 0; t < o->trials; t++) {
            bool now = final_number(b, j, t, 0) != 0, then = final_number(b, 0, t, 0) != 0;
            double settled = final_number(b, j, t, 1), decided = final_number(b, j, t, 2);
            right += now;
            cells[3] += now && !then;
            cells[4] += then && !now;
            first += settled < decided || (isnan(decided) && !isnan(settled));
        }
        cells[0] = o->ratio.values[j];
        cells[1] = right / n;
        cells[2] = sqrt(cells[1] * (1 - cells[1]) / n);
        cells[5] = first / n;
        for (int k = 0; k < 2; k++) {
            int64_t count = 0;
            for (int64_t t = 0; t < o->trials; t++)
                if (!isnan(final_number(b, j, t, 1 + k))) x[count++] = final_number(b, j, t, 1 + k);
            cgam_sort(x, count);
            for (int q = 0; q < 3; q++)
                cells[6 + 3 * k + q] = cgam_quantile(x, count, 0.25 * (q + 1));
            cells[12] = n - (double)count;
        }
        cells[13] = n;
        cgam_study_append(study, sizeof cells / sizeof *cells, cells);
    }
    cgam_free(study->env, x);
    return study->status;
}

static void along_table(cgam_study *study, const cgam_blocks *b)
{
    const cgam_study_opts *o = &study->opts;
    double n = (double)o->trials, at[SAMPLES];
    cgam_study_add(study, "along",
                   "Share of trials in which the target leads, and mean N_eff "
                   "(exp of the entropy of p), along the way.",
                   "ratio,t,t_over_tau_r,accuracy,accuracy_se,neff_mean,neff_se", NULL,
                   o->ratio.count * SAMPLES);
    for (int64_t j = 0; j < o->ratio.count; j++) {
        sample_times(o->ratio.values[j], at);
        for (int64_t k = 0; k < SAMPLES; k++) {
            double right = 0;
            cgam_moments neff = {0};
            for (int64_t i = 0; i < b->count; i++) {
                const double *sums = b->records + i * b->record + j * PER_RATIO + SUMS * k;
                right += sums[0];
                cgam_moments_join(&neff, sums[1], sums[2], (double)cgam_block_trials(o, BLOCK, i));
            }
            right /= n;
            CGAM_STUDY_ROW(study, o->ratio.values[j], at[k], at[k] / o->ratio.values[j], right,
                           sqrt(right * (1 - right) / n), neff.mean, cgam_moments_se(&neff));
        }
    }
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    (void)arg;
    cgam_status status = ratio_table(study, b);
    along_table(study, b);
    if (status == CGAM_OK) status = study->status;
    if (status != CGAM_OK) return status;
    cgam_table_put(study->doc, cgam_study_find(study, "ratios"), 0, study->opts.ratio.count,
                   "ratio,accuracy,accuracy_se,context_first,context_median,decided_median");
    return CGAM_OK;
}

cgam_status cgam_timescale_run(cgam_study *study)
{
    cgam_blocks b = {.count = (study->opts.trials + BLOCK - 1) / BLOCK,
                     .record = study->opts.ratio.count * PER_RATIO,
                     .room = sizeof(room),
                     .open = room_open,
                     .close = room_close,
                     .block = count_block,
                     .tables = make_tables};
    return cgam_blocks_run(study, &b);
}

cgam_status cgam_timescale_trial(cgam_study *study, int64_t k, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width, lane = (int)(k % width);
    int right[CGAM_LANES_MAX];
    room opened = {0}, *w = &opened;
    double *sums = cgam_zalloc(study->env, SUMS * SAMPLES, sizeof *sums);
    cgam_status status = sums ? room_open(study, NULL, w) : cgam_fail_nomem(study->env, "a trial");
    if (status == CGAM_OK) status = draw_bundle(study, k - lane, w);
    if (status == CGAM_OK) {
        json_t *list = json_array();
        w->count = width;
        w->lane = lane;
        for (int64_t j = 0; j < o->ratio.count; j++) {
            json_t *one = json_object();
            w->shown = json_array();
            run_flow(study, o->ratio.values[j], sums, w, right);
            cgam_json_add(
                one, "ratio=%g right?=%d context_settled=%g retrieval_decided=%g samples=%p",
                o->ratio.values[j], right[lane], w->settled[lane], w->decided[lane], w->shown);
            w->shown = NULL;
            json_array_append_new(list, one);
        }
        cgam_json_add(doc, "target=%jd q=%p c=%p Z=%p flows=%p", w->target[lane],
                      cgam_json_reals(w->q + lane, o->d, width),
                      cgam_json_reals(w->c + lane, o->d, width),
                      cgam_trial_rows(w->banks->g.Z + lane, o->n, o->d, width), list);
    }
    room_close(study, NULL, w);
    cgam_free(study->env, sums);
    return status;
}
