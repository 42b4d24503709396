/* separation_tables.c: tables and summary of the separation study, and one trial of it in full. */
#include "lab/synthetic/separation.h"
#include "lab/synthetic/trial.h"

#include <cgam/gate.h>
#include <cgam/theory.h>

#include <math.h>
#include <string.h>

/* Sum of one entry over the blocks of a bank, or of all banks (set < 0). */
static double total(const cgam_blocks *b, const cgam_separation *u, int64_t set, int64_t entry)
{
    int64_t from = set < 0 ? 0 : set * u->blocks_a_bank;
    int64_t to = set < 0 ? b->count : from + u->blocks_a_bank;
    double sum = 0;
    for (int64_t i = from; i < to; i++) sum += b->records[i * u->record + entry];
    return sum;
}

/* Mean and squared deviations of one bank's numbers, from entries that hold them for each block of
 * `levels` times its trials. */
static cgam_moments of_bank(const cgam_study *study, const cgam_blocks *b, const cgam_separation *u,
                            int64_t set, int64_t mean, int64_t squares, int64_t levels)
{
    cgam_moments all = {0};
    for (int64_t i = 0; i < u->blocks_a_bank; i++) {
        const double *record = b->records + (set * u->blocks_a_bank + i) * u->record;
        int64_t trials = cgam_block_trials(&study->opts, CGAM_SEPARATION_BLOCK, i);
        cgam_moments_join(&all, record[mean], record[squares], (double)(trials * levels));
    }
    return all;
}

/* The mean over all banks and its standard error: between trials of one bank, else between banks,
 * since trials of a bank share its memories. */
static void mean_se(const cgam_study *study, const cgam_blocks *b, const cgam_separation *u,
                    int64_t mean, int64_t squares, int64_t levels, double *out, double *se)
{
    cgam_moments banks = {0}, one = {0};
    for (int64_t set = 0; set < study->opts.banks; set++) {
        one = of_bank(study, b, u, set, mean, squares, levels);
        cgam_moments_add(&banks, one.mean);
    }
    *out = banks.mean;
    *se = cgam_moments_se(banks.n > 1 ? &banks : &one);
}

static void accuracy_table(cgam_study *study, const cgam_separation *u, const cgam_blocks *b)
{
    const cgam_study_opts *o = &study->opts;
    const double n = (double)o->trials, K = (double)o->banks;
    cgam_study_add(
        study, "accuracy",
        "Share of trials in which the target wins. gained and lost count trials that turn "
        "right or wrong compared with the previous lambda; gained_0 and lost_0 compared with "
        "the first lambda. unconverged counts self-consistent recalls that were stopped.",
        "lambda,sigma_q,accuracy,accuracy_se,p_target,p_target_se,trials,gained,lost,gained_0,"
        "lost_0,unconverged",
        NULL, u->lambdas * u->sigmas);
    for (int64_t k = 0; k < u->lambdas; k++) {
        for (int64_t j = 0; j < u->sigmas; j++) {
            int64_t at = j * u->lambdas + k;
            cgam_moments share = {0};
            for (int64_t set = 0; set < o->banks; set++)
                cgam_moments_add(&share, total(b, u, set, u->at[RIGHT] + at) / n);
            double binomial = sqrt(share.mean * (1 - share.mean) / n), p, p_se;
            mean_se(study, b, u, u->at[P] + at, u->at[P2] + at, 1, &p, &p_se);
            CGAM_STUDY_ROW(study, o->lambda.values[k], o->sigma_q.values[j], share.mean,
                           o->banks > 1 ? cgam_moments_se(&share) : binomial, p, p_se, n * K,
                           total(b, u, -1, u->at[GAINED] + at), total(b, u, -1, u->at[LOST] + at),
                           total(b, u, -1, u->at[GAINED0] + at), total(b, u, -1, u->at[LOST0] + at),
                           total(b, u, -1, u->at[STOPPED] + at));
        }
    }
}

/* Standard error of a quantile: half the distance between the order statistics one binomial
 * standard deviation to either side. */
static double quantile_se(const double *x, int64_t n, double q)
{
    double off = sqrt(q * (1 - q) / (double)n);
    return 0.5 * (cgam_quantile(x, n, fmin(q + off, 1)) - cgam_quantile(x, n, fmax(q - off, 0)));
}

/* Delta of lambda k where sigma_q is near 1, of one bank or of all (set < 0), sorted into gaps. */
static int64_t collect_gaps(const cgam_blocks *b, const cgam_separation *u, int64_t set, int64_t k,
                            double *gaps)
{
    int64_t from = set < 0 ? 0 : set * u->blocks_a_bank, n = 0;
    int64_t to = set < 0 ? b->count : from + u->blocks_a_bank;
    int64_t size = u->window * CGAM_SEPARATION_BLOCK;
    for (int64_t i = from; i < to; i++) {
        const double *w = b->records + i * u->record + u->at[IN_WINDOW] + k * size;
        for (int64_t j = 0; j < size; j++)
            if (!isnan(w[j])) gaps[n++] = w[j];
    }
    cgam_sort(gaps, n);
    return n;
}

static cgam_status gap_table(cgam_study *study, const cgam_separation *u, const cgam_blocks *b)
{
    static const double q[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    const cgam_study_opts *o = &study->opts;
    int64_t room = o->trials * o->banks * u->window;
    cgam_study_add(
        study, "gaps",
        "Delta by lambda: quantiles at sigma_q within 0.15 of 1 (n of them), mean over all noise "
        "levels, and the mean change against the lambda before on the same draws.",
        "lambda,n,q05,q25,median,q75,q95,q05_se,q25_se,median_se,q75_se,q95_se,mean_all,"
        "mean_all_se,shift,shift_se,above_zero",
        NULL, u->lambdas);
    double *gaps = cgam_alloc(study->env, (size_t)room, sizeof *gaps);
    if (!gaps) return cgam_fail_nomem(study->env, "gaps");
    for (int64_t k = 0; k < u->lambdas; k++) {
        double cells[17];
        cgam_moments banks[5] = {{0}};
        for (int64_t set = 0; set < o->banks && o->banks > 1; set++) {
            int64_t own = collect_gaps(b, u, set, k, gaps);
            for (int j = 0; j < 5; j++) cgam_moments_add(&banks[j], cgam_quantile(gaps, own, q[j]));
        }
        int64_t n = collect_gaps(b, u, -1, k, gaps), above = 0;
        for (int64_t i = 0; i < n; i++) above += gaps[i] > 0;
        cells[0] = o->lambda.values[k];
        cells[1] = (double)n;
        for (int j = 0; j < 5; j++) {
            cells[2 + j] = cgam_quantile(gaps, n, q[j]);
            cells[7 + j] = n > 1 ? quantile_se(gaps, n, q[j]) : NAN;
            if (o->banks > 1) cells[7 + j] = cgam_moments_se(&banks[j]);
        }
        int64_t gap = u->at[GAP] + k, shift = u->at[SHIFT] + k;
        mean_se(study, b, u, gap, gap + u->lambdas, u->sigmas, &cells[12], &cells[13]);
        mean_se(study, b, u, shift, shift + u->lambdas, u->sigmas, &cells[14], &cells[15]);
        if (k == 0) cells[14] = cells[15] = NAN;
        cells[16] = n ? (double)above / (double)n : NAN;
        cgam_study_append(study, sizeof cells / sizeof *cells, cells);
    }
    cgam_free(study->env, gaps);
    return study->status;
}

/* One trial of every block: enough for a picture, the same for any number of threads. */
static void sample_table(cgam_study *study, const cgam_separation *u, const cgam_blocks *b)
{
    const cgam_study_opts *o = &study->opts;
    cgam_study_add(study, "sample", "Delta and the target's probability in one trial of every 64.",
                   "lambda,sigma_q,gap,p,log_p,log_bound", NULL, b->count * u->sigmas * u->lambdas);
    for (int64_t k = 0; k < u->lambdas; k++)
        for (int64_t i = 0; i < b->count; i++)
            for (int64_t j = 0; j < u->sigmas; j++) {
                const double *pair =
                    b->records + i * u->record + u->at[SAMPLE] + 2 * (j * u->lambdas + k);
                CGAM_STUDY_ROW(study, o->lambda.values[k], o->sigma_q.values[j], pair[0],
                               exp(pair[1]), pair[1],
                               cgam_separation_bound_log(u->n, o->beta, pair[0]));
            }
}

/* The bound as a curve, and the gap that makes it 1 - epsilon. */
static void bound_tables(cgam_study *study, const cgam_separation *u)
{
    enum { POINTS_DRAWN = 241 };
    static const double epsilon[] = {0.5, 0.1, 0.01};
    const double beta = study->opts.beta, reach = 12 / beta + log((double)u->n) / beta;
    cgam_study_add(study, "bound", "The logistic lower bound of the target's probability.",
                   "gap,bound", NULL, POINTS_DRAWN);
    for (int i = 0; i < POINTS_DRAWN; i++) {
        double gap = reach * (2.0 * i / (POINTS_DRAWN - 1) - 1);
        CGAM_STUDY_ROW(study, gap, cgam_separation_bound(u->n, beta, gap));
    }
    cgam_study_add(study, "thresholds", "The gap from which P is at least 1 - epsilon.",
                   "epsilon,gap", NULL, 3);
    for (int i = 0; i < 3; i++)
        CGAM_STUDY_ROW(study, epsilon[i], cgam_separation_threshold(u->n, beta, epsilon[i]));
}

static void point_table(cgam_study *study, const cgam_separation *u, const cgam_blocks *b)
{
    double least = INFINITY;
    for (int64_t i = 0; i < b->count; i++)
        least = fmin(least, b->records[i * u->record + u->at[POINTS] + 2]);
    cgam_study_add(study, "points",
                   "Points compared with the bound at Delta (violations, least margin of the "
                   "logarithms) and at Delta_raw + lambda Delta_gate, which never exceeds Delta.",
                   "points,violations,least_margin,sum_violations,sum_above_gap", NULL, 1);
    CGAM_STUDY_ROW(study, total(b, u, -1, u->at[POINTS]), total(b, u, -1, u->at[POINTS] + 1), least,
                   total(b, u, -1, u->at[POINTS] + 3), total(b, u, -1, u->at[POINTS] + 4));
}

static void put_results(cgam_study *study, const cgam_separation *u)
{
    const cgam_study_opts *o = &study->opts;
    const cgam_table *accuracy = cgam_study_find(study, "accuracy");
    const cgam_table *gaps = cgam_study_find(study, "gaps");
    json_t *doc = study->doc, *curves = json_object(), *mean = json_array(), *se = json_array();
    json_t *boxes = json_array();
    for (int64_t k = 0; k < u->lambdas; k++) {
        const double *row = accuracy->cells + k * u->sigmas * accuracy->columns;
        json_array_append_new(mean, cgam_json_reals(row + 2, u->sigmas, accuracy->columns));
        json_array_append_new(se, cgam_json_reals(row + 3, u->sigmas, accuracy->columns));
        json_t *box = json_object();
        cgam_table_put(box, gaps, k, 0, "lambda");
        cgam_json_put_int(box, "n", (int64_t)gaps->cells[k * gaps->columns + 1]);
        cgam_table_put(box, gaps, k, 0, "q05,q25,median,q75,q95");
        json_array_append_new(boxes, box);
    }
    cgam_json_put(curves, "lambda", cgam_json_reals(o->lambda.values, u->lambdas, 1));
    cgam_json_put(curves, "sigma_q", cgam_json_reals(o->sigma_q.values, u->sigmas, 1));
    cgam_json_put(curves, "mean", mean);
    cgam_json_put(curves, "se", se);
    cgam_json_put(doc, "accuracy", curves);
    cgam_json_put(doc, "gap_box", boxes);
    const double *points = cgam_study_find(study, "points")->cells;
    cgam_json_add(
        doc,
        "bound_points=%jd bound_violations=%jd bound_least_margin=%g sum_bound_violations=%jd "
        "sum_above_gap=%jd",
        (intmax_t)points[0], (intmax_t)points[1], points[2], (intmax_t)points[3],
        (intmax_t)points[4]);
    double stopped = 0;
    for (int64_t i = 0; i < accuracy->rows; i++)
        stopped += accuracy->cells[(i + 1) * accuracy->columns - 1];
    cgam_json_put_int(doc, "unconverged", (int64_t)stopped);
}

cgam_status cgam_separation_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    const cgam_separation *u = arg;
    accuracy_table(study, u, b);
    cgam_status status = gap_table(study, u, b);
    sample_table(study, u, b);
    bound_tables(study, u);
    point_table(study, u, b);
    if (status == CGAM_OK) status = study->status;
    if (status == CGAM_OK) put_results(study, u);
    return status;
}

/* ---- One trial ------------------------------------------------------------------------------- */
/* Gates, scores, probabilities and energy of one lambda, from lane l of w. x: [4, n] room. */
static cgam_status show_lambda(cgam_study *study, const cgam_separation *u, const cgam_gate *gate,
                               int64_t k, int lane, const cgam_separation_room *w, double *x,
                               json_t *list)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    const int64_t n = u->n;
    double *b = x, *s = x + n, *r = s + n, *input = r + n, lambda = o->lambda.values[k];
    for (int64_t i = 0; i < n; i++) {
        b[i] = w->b[i * width + lane];
        s[i] = w->s[i * width + lane];
        r[i] = o->coupled ? w->r[i * width + lane] : b[i] + lambda * s[i];
    }
    cgam_status status = cgam_gate_apply(gate, s, input); /* u, since s = A^-1 u so far */
    if (o->coupled && lambda > 0)
        for (int64_t i = 0; i < n; i++) s[i] = (r[i] - b[i]) / lambda;
    double energy = NAN;
    if (status == CGAM_OK)
        status = cgam_coupled_energy(gate, o->beta, lambda, b, input, s, &energy, NULL);
    if (status != CGAM_OK) return status;
    json_t *doc = cgam_json_object("lambda=%g gap=%g log_p=%g log_bound=%g right?=%d", lambda,
                                   w->gap[k * width + lane], w->log_p[k * width + lane],
                                   cgam_separation_bound_log(n, o->beta, w->gap[k * width + lane]),
                                   w->right[k * width + lane]);
    if (o->coupled) cgam_json_put_bool(doc, "converged", !w->stopped[k * width + lane]);
    cgam_json_add(doc, "energy=%g s=%p r=%p", energy, cgam_json_reals(s, n, 1),
                  cgam_json_reals(r, n, 1));
    cgam_trial_softmax(n, o->beta, r, r);
    cgam_json_put(doc, "p", cgam_json_reals(r, n, 1));
    json_array_append_new(list, doc);
    return CGAM_OK;
}

static cgam_status show_cells(cgam_study *study, cgam_separation *u, int64_t set, int64_t trial,
                              double *x, const cgam_gate *gate, cgam_separation_room *w,
                              json_t *cells)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width, lane = (int)(trial % width);
    cgam_status status = CGAM_OK;
    for (int64_t cell = 0; cell < u->sigmas && status == CGAM_OK; cell++) {
        json_t *doc = json_object(), *list = json_array();
        cgam_separation_draw(study, u, set, cell, trial - lane, w);
        for (int64_t k = 0; k < u->lambdas && status == CGAM_OK; k++) {
            status = cgam_separation_recall(study, u, set, k, k + 1, w);
            if (status == CGAM_OK) status = show_lambda(study, u, gate, k, lane, w, x, list);
        }
        cgam_json_add(
            doc, "sigma_q=%g target=%jd q=%p c=%p b=%p gap_raw=%g gap_gate=%g recalls=%p",
            o->sigma_q.values[cell], w->target[lane], cgam_json_reals(w->q + lane, u->d, width),
            cgam_json_reals(w->c + lane, u->d, width), cgam_json_reals(w->b + lane, u->n, width),
            w->sums[lane], w->sums[width + lane], list);
        json_array_append_new(cells, doc);
    }
    return status;
}

cgam_status cgam_separation_trial(cgam_study *study, int64_t trial, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    cgam_env *env = study->env;
    cgam_separation u;
    cgam_separation_room room = {0}, *w = &room;
    cgam_bank *bank = NULL;
    cgam_gate *gate = NULL;
    double *x = cgam_alloc(env, (size_t)(4 * o->n), sizeof *x);
    int64_t set = trial / o->trials, own = trial % o->trials;
    json_t *cells = json_array();
    cgam_status status = cgam_separation_open(study, &u);
    if (status == CGAM_OK && !x) status = cgam_fail_nomem(env, "a trial");
    if (status == CGAM_OK) status = cgam_separation_room_open(study, &u, w);
    const double *memories = u.Z + set * u.n * u.d;
    if (status == CGAM_OK) status = cgam_bank_new(env, memories, CGAM_F64, u.n, u.d, NULL, &bank);
    if (status == CGAM_OK) status = cgam_gate_new(bank, o->alpha, NULL, &gate);
    if (status == CGAM_OK) status = show_cells(study, &u, set, own, x, gate, w, cells);
    cgam_json_add(doc, "bank=%jd trial_of_bank=%jd", set, own);
    if (status == CGAM_OK) cgam_json_put(doc, "Z", cgam_trial_rows(memories, u.n, u.d, 1));
    cgam_json_put(doc, "cells", cells);
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    cgam_separation_room_close(study, &u, w);
    cgam_separation_close(study, &u);
    cgam_free(env, x);
    return status;
}
