/* coupled_tables.c: curves and thresholds of the coupled study, and one trial of it in full.
 *
 * The threshold of a curve is where its mean peak first crosses 1/2, linear between grid points.
 * Its standard error is a jackknife over up to 50 sets of blocks, since a curve is a mean over trials
 * but its crossing is not. */
#include "lab/synthetic/coupled.h"
#include "lab/synthetic/trial.h"

#include <math.h>
#include <string.h>

enum { BLOCK = CGAM_COUPLED_BLOCK, SUMS = CGAM_COUPLED_SUMS, SETS = 50 };

/* First crossing of 1/2 of y over x, NAN = none. */
static double crossing(int64_t n, const double *x, const double *y)
{
    for (int64_t i = 1; i < n; i++)
        if (y[i - 1] < 0.5 && y[i] >= 0.5)
            return x[i - 1] + (x[i] - x[i - 1]) * (0.5 - y[i - 1]) / (y[i] - y[i - 1]);
    return NAN;
}

/* Mean peaks of lambda k over the blocks outside set `left` of `sets` (left < 0: all). */
static void mean_curve(const cgam_study *study, const cgam_coupling *c, const cgam_blocks *b,
                       int64_t k, int64_t sets, int64_t left, double *y)
{
    int64_t n = c->own[k].count;
    double trials = 0;
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < b->count; i++) {
        if (left >= 0 && i * sets / b->count == left) continue;
        double count = (double)cgam_block_trials(&study->opts, BLOCK, i);
        trials += count;
        for (int64_t a = 0; a < n; a++)
            y[a] += count * b->records[i * c->record + c->at[k] + SUMS * a];
    }
    for (int64_t a = 0; a < n; a++) y[a] /= trials;
}

static double crossing_se(const cgam_study *study, const cgam_coupling *c, const cgam_blocks *b,
                          int64_t k, double *y)
{
    int64_t sets = b->count < SETS ? b->count : SETS;
    cgam_moments left = {0};
    if (sets < 2) return NAN;
    for (int64_t j = 0; j < sets; j++) {
        mean_curve(study, c, b, k, sets, j, y);
        cgam_moments_add(&left, crossing(c->own[k].count, c->own[k].at, y));
    }
    return sqrt(left.squares / (double)sets * (double)(sets - 1));
}

static void curve_table(cgam_study *study, const cgam_coupling *c, const cgam_blocks *b)
{
    const cgam_study_opts *o = &study->opts;
    int64_t rows = c->folds / SUMS;
    cgam_study_add(study, "curves",
                   "Mean peak of softmax(beta r), or of softmax(beta s) for lambda = 0. "
                   "unconverged counts trials whose iteration was stopped.",
                   "lambda,alpha,peak_mean,peak_se,trials,unconverged,supercritical", NULL, rows);
    for (int64_t k = 0; k < o->lambda.count; k++)
        for (int64_t a = 0; a < c->own[k].count; a++) {
            cgam_moments peak = {0};
            double unconverged = 0;
            for (int64_t i = 0; i < b->count; i++) {
                const double *sums = b->records + i * c->record + c->at[k] + SUMS * a;
                cgam_moments_join(&peak, sums[0], sums[1],
                                  (double)cgam_block_trials(&study->opts, BLOCK, i));
                unconverged += sums[2];
            }
            CGAM_STUDY_ROW(study, o->lambda.values[k], c->own[k].at[a], peak.mean,
                           cgam_moments_se(&peak), (double)o->trials, unconverged,
                           c->own[k].at[a] >= c->alpha_crit * (1 - 1e-9));
        }
}

/* Folds of lambda k, sorted, into x; *tried = trials in which one was looked for. */
static int64_t collect_folds(const cgam_study *study, const cgam_coupling *c, const cgam_blocks *b,
                             int64_t k, double *x, int64_t *tried)
{
    const cgam_study_opts *o = &study->opts;
    int64_t n = 0;
    *tried = o->fold_trials < o->trials ? o->fold_trials : o->trials;
    if (o->lambda.values[k] == 0) *tried = 0;
    for (int64_t t = 0; t < *tried; t++) {
        double fold = b->records[t / BLOCK * c->record + c->folds + k * BLOCK + t % BLOCK];
        if (!isnan(fold)) x[n++] = fold;
    }
    cgam_sort(x, n);
    return n;
}

static cgam_status threshold_table(cgam_study *study, const cgam_coupling *c, const cgam_blocks *b)
{
    const cgam_study_opts *o = &study->opts;
    cgam_study_add(
        study, "thresholds",
        "alpha_half: first crossing of mean peak 1/2. alpha_theory: alpha_crit (1 - lambda^2 beta "
        "/ n), proved for balanced banks only. fold: where the branch of fixed points from "
        "alpha = 0 "
        "ends, quartiles over the trials in which it does.",
        "lambda,alpha_half,alpha_half_se,alpha_theory,fold_q25,fold_median,fold_q75,fold_share,"
        "fold_trials",
        NULL, o->lambda.count);
    int64_t most = o->trials > CGAM_ALPHAS_MAX ? o->trials : CGAM_ALPHAS_MAX;
    double *x = cgam_alloc(study->env, (size_t)most, sizeof *x);
    if (!x) return cgam_fail_nomem(study->env, "thresholds");
    for (int64_t k = 0; k < o->lambda.count; k++) {
        double lambda = o->lambda.values[k];
        mean_curve(study, c, b, k, 1, -1, x);
        double half = crossing(c->own[k].count, c->own[k].at, x);
        double half_se = crossing_se(study, c, b, k, x);
        int64_t tried, n = collect_folds(study, c, b, k, x, &tried);
        CGAM_STUDY_ROW(study, lambda, half, half_se, cgam_coupling_theory(o, c->alpha_crit, lambda),
                       cgam_quantile(x, n, 0.25), cgam_quantile(x, n, 0.5),
                       cgam_quantile(x, n, 0.75), tried ? (double)n / (double)tried : NAN,
                       (double)tried);
    }
    cgam_free(study->env, x);
    return study->status;
}

cgam_status cgam_coupling_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    const cgam_coupling *c = arg;
    const cgam_study_opts *o = &study->opts;
    curve_table(study, c, b);
    cgam_status status = threshold_table(study, c, b);
    if (status != CGAM_OK) return status;
    const cgam_table *curves = cgam_study_find(study, "curves");
    const cgam_table *thresholds = cgam_study_find(study, "thresholds");
    json_t *doc = study->doc, *list = json_array();
    int64_t row = 0;
    for (int64_t k = 0; k < o->lambda.count; k++) {
        json_t *one = json_object();
        cgam_table_put(one, thresholds, k, 0, "lambda");
        cgam_table_put(one, curves, row, c->own[k].count, "alpha,peak_mean,peak_se,unconverged");
        cgam_table_put(one, thresholds, k, 0,
                       "alpha_half,alpha_half_se,alpha_theory,fold_q25,fold_median,fold_q75,"
                       "fold_share");
        json_array_append_new(list, one);
        row += c->own[k].count;
    }
    cgam_json_add(doc, "alpha_crit=%g curves=%p", c->alpha_crit, list);
    return CGAM_OK;
}

/* ---- One trial ------------------------------------------------------------------------------- */
static json_t *show_point(const cgam_study *study, double alpha, double lambda, int lane,
                          const cgam_coupling_point *point, const cgam_coupling_room *w)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    json_t *doc = json_object();
    bool still = isnan(point->ended[lane]);
    cgam_json_add(doc, "alpha=%g peak=%g iterations=%p converged=%p one_hot_at=%g", alpha,
                  point->peak[lane], still ? json_integer(point->iterations[lane]) : json_null(),
                  still ? json_boolean(point->iterations[lane] <= o->max_iter) : json_null(),
                  point->ended[lane]);
    /* of gates and retrieval, which is what a transient lowers; at a fixed point it is E(s) */
    double E = cgam_banks_energy(w->banks, lane, alpha, o->beta, lambda, w->s,
                                 lambda > 0 ? w->r : NULL, w->p, NULL);
    cgam_json_add(doc, "energy=%g s=%p r=%p p=%p", E, cgam_json_reals(w->s + lane, o->n, width),
                  lambda > 0 ? cgam_json_reals(w->r + lane, o->n, width) : json_null(),
                  cgam_json_reals(w->p + lane, o->n, width));
    return doc;
}

static cgam_status show_curves(cgam_study *study, const cgam_coupling *c, int64_t trial,
                               cgam_coupling_room *w, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width, lane = (int)(trial % width);
    const cgam_bundle *g = &w->banks->g;
    cgam_status status = cgam_coupling_draw(study, trial - lane, w);
    if (status != CGAM_OK) return status;
    json_t *list = json_array();
    for (int64_t k = 0; k < o->lambda.count; k++) {
        double fold[CGAM_LANES_MAX], lambda = o->lambda.values[k];
        json_t *one = json_object(), *points = json_array();
        for (int64_t a = 0; a < c->own[k].count; a++) {
            cgam_coupling_point point;
            cgam_coupling_alpha(study, c->own[k].at[a], w);
            cgam_coupling_solve(study, c->own[k].at[a], lambda, false, NULL, w, &point);
            json_array_append_new(points,
                                  show_point(study, c->own[k].at[a], lambda, lane, &point, w));
        }
        for (int l = 0; l < width; l++) fold[l] = NAN;
        if (lambda > 0) cgam_coupling_fold(study, lambda, w, fold);
        cgam_json_add(one, "lambda=%g fold=%g points=%p", lambda, fold[lane], points);
        json_array_append_new(list, one);
    }
    cgam_json_add(doc, "alpha_crit=%g Z=%p start=%p curves=%p", w->banks->alpha_crit[lane],
                  cgam_trial_rows(g->Z + lane, o->n, o->d, width),
                  cgam_json_reals(g->start + lane, o->n, width), list);
    return CGAM_OK;
}

cgam_status cgam_coupled_trial(cgam_study *study, int64_t trial, json_t *doc)
{
    cgam_coupling *c = cgam_zalloc(study->env, 1, sizeof *c);
    if (!c) return cgam_fail_nomem(study->env, "grids");
    cgam_coupling_room room = {0}, *w = &room;
    cgam_status status = cgam_coupling_open(study, c);
    if (status == CGAM_OK) status = cgam_coupling_room_open(study, c, w);
    if (status == CGAM_OK) status = show_curves(study, c, trial, w, doc);
    cgam_coupling_room_close(study, c, w);
    cgam_coupling_close(study, c);
    cgam_free(study->env, c);
    return status;
}
