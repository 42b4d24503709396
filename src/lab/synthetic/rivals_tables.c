/* rivals_tables.c: each mechanism at the strength that is best on the even-numbered sets, counted on the others: tables and
 * summary, one trial in full, and how long a recall takes.
 *
 * Trials of a set share its memories, so errors are computed between sets. Gains are differences from query mixing
 * on the same trials. */
#include "lab/synthetic/rivals.h"
#include "lab/synthetic/trial.h"

#include <math.h>
#include <string.h>

typedef cgam_rivals setup;

/* ---- Choosing and counting ------------------------------------------------------------------------ */
/* Sum of a measure over the trials of a set at a sigma_q, over the number of trials. */
static double share(const cgam_study *study, const setup *u, const cgam_blocks *b, int setting,
                    int64_t set, int64_t cell, int64_t k, int measure)
{
    const double *record = b->records + (setting * study->opts.banks + set) * b->record;
    return record[(cell * u->options + k) * CGAM_RIVAL_MEASURES + measure] /
           (double)study->opts.trials;
}

/* The mean of a measure over the sets of one half (0: chosen on, 1: counted) and sigma_q from .. to - 1, less that of
 * option `less` (-1: none), with the standard error between sets. */
static double half_mean(const cgam_study *study, const setup *u, const cgam_blocks *b, int setting,
                        int half, int64_t from, int64_t to, int64_t k, int64_t less, int measure,
                        double *se)
{
    cgam_moments sets = {0};
    for (int64_t set = half; set < study->opts.banks; set += 2) {
        double sum = 0;
        for (int64_t cell = from; cell < to; cell++) {
            sum += share(study, u, b, setting, set, cell, k, measure);
            if (less >= 0) sum -= share(study, u, b, setting, set, cell, less, measure);
        }
        cgam_moments_add(&sets, sum / (double)(to - from));
    }
    if (se) *se = cgam_moments_se(&sets);
    return sets.mean;
}

/* The option with the best accuracy over all sigma_q; of equal ones that with the smaller readout error, then the first. */
static int64_t choose(const cgam_study *study, const setup *u, const cgam_blocks *b, int setting,
                      int rival)
{
    int64_t best = u->first[rival];
    double most = -1, least = INFINITY;
    for (int64_t k = u->first[rival]; k < u->first[rival + 1]; k++) {
        double right =
            half_mean(study, u, b, setting, 0, 0, u->sigmas, k, -1, CGAM_RIVAL_RIGHT, NULL);
        double error =
            half_mean(study, u, b, setting, 0, 0, u->sigmas, k, -1, CGAM_RIVAL_ERROR, NULL);
        if (!(right > most || (right == most && error < least))) continue;
        best = k;
        most = right;
        least = error;
    }
    return best;
}

/* ---- Tables ------------------------------------------------------------------------------------------ */
/* Labels: every name `each` times. Freed with the study. */
static const char **labels_of(cgam_study *study, int64_t rows)
{
    const char **labels = cgam_alloc(study->env, (size_t)rows, sizeof *labels);
    if (!labels && study->status == CGAM_OK) study->status = cgam_fail_nomem(study->env, "rivals");
    return labels;
}

static void setting_table(cgam_study *study, const setup *u, const cgam_blocks *b, int setting,
                          const int64_t *chosen, const char *const *labels)
{
    static const char *const tables[] = {"accuracy", "wrong", "space", "clusters"};
    static const char *const about[] = {
        "Mechanisms on the draws of figure 2: the strength is chosen on the even-numbered "
        "sets and counted on the others; standard errors between sets. gain: accuracy minus "
        "that of query mixing on the same trials. work: multiply-adds, in units of one "
        "product with all memories.",
        "The same with contexts of another memory in a share of the trials.",
        "The same with contexts in a space of their own.", "The same with memories in clusters."};
    cgam_study_add(
        study, tables[setting], about[setting],
        ""
        "mechanism,sigma_q,strength,second,accuracy,accuracy_se,readout_error,readout_error_se,neff,neff_se,"
        "work,gain,gain_se",
        labels, CGAM_RIVALS * u->sigmas);
    for (int rival = 0; rival < CGAM_RIVALS; rival++)
        for (int64_t j = 0; j < u->sigmas; j++) {
            const cgam_rival_option *o = &u->option[chosen[rival]];
            double mean[CGAM_RIVAL_MEASURES], se[CGAM_RIVAL_MEASURES], gain_se;
            for (int m = 0; m < CGAM_RIVAL_MEASURES; m++)
                mean[m] =
                    half_mean(study, u, b, setting, 1, j, j + 1, chosen[rival], -1, m, &se[m]);
            double gain = half_mean(study, u, b, setting, 1, j, j + 1, chosen[rival],
                                    chosen[CGAM_RIVAL_MIXING], CGAM_RIVAL_RIGHT, &gain_se);
            CGAM_STUDY_ROW(study, study->opts.sigma_q.values[j], o->strength, o->second, mean[0],
                           se[0], mean[1], se[1], mean[2], se[2], mean[3], gain, gain_se);
        }
}

enum { OVERALL = 6 }; /* columns of a setting */

static void overall_table(cgam_study *study, const setup *u, const cgam_blocks *b,
                          int64_t chosen[][CGAM_RIVALS])
{
    cgam_study_add(
        study, "overall",
        "Accuracy over all sigma_q in every setting, and the gain over query mixing and "
        "(more) over the product "
        "of experts on the same trials; standard errors between sets.",
        "mechanism,plain,plain_se,plain_gain,plain_gain_se,plain_more,plain_more_se,"
        "wrong,wrong_se,wrong_gain,wrong_gain_se,wrong_more,wrong_more_se,"
        "space,space_se,space_gain,space_gain_se,space_more,space_more_se,"
        "clusters,clusters_se,clusters_gain,clusters_gain_se,clusters_more,clusters_more_se",
        cgam_rival_names, CGAM_RIVALS);
    for (int rival = 0; rival < CGAM_RIVALS; rival++) {
        double row[OVERALL * CGAM_RIVAL_SETTINGS];
        for (int setting = 0; setting < CGAM_RIVAL_SETTINGS; setting++) {
            double *at = row + OVERALL * setting;
            for (int i = 0; i < OVERALL; i++) at[i] = NAN;
            if (setting >= u->settings) continue;
            const int64_t k = chosen[setting][rival];
            const int64_t less[] = {-1, chosen[setting][CGAM_RIVAL_MIXING],
                                    chosen[setting][CGAM_RIVAL_EXPERTS]};
            for (int i = 0; i < 3; i++)
                at[2 * i] = half_mean(study, u, b, setting, 1, 0, u->sigmas, k, less[i],
                                      CGAM_RIVAL_RIGHT, &at[2 * i + 1]);
        }
        cgam_study_append(study, OVERALL * CGAM_RIVAL_SETTINGS, row);
    }
}

static void strength_table(cgam_study *study, const setup *u, const cgam_blocks *b,
                           const char *const *labels)
{
    cgam_study_add(
        study, "strengths",
        "Every strength of every mechanism: accuracy over all sigma_q, on the sets used to "
        "choose it and on the others. setting: 0 plain, 1 wrong, 2 space, 3 clusters.",
        "mechanism,setting,strength,second,chosen_on,counted,counted_se", labels,
        u->settings * u->options);
    for (int setting = 0; setting < u->settings; setting++)
        for (int64_t k = 0; k < u->options; k++) {
            double se, on = half_mean(study, u, b, setting, 0, 0, u->sigmas, k, -1,
                                      CGAM_RIVAL_RIGHT, NULL);
            double counted =
                half_mean(study, u, b, setting, 1, 0, u->sigmas, k, -1, CGAM_RIVAL_RIGHT, &se);
            CGAM_STUDY_ROW(study, setting, u->option[k].strength, u->option[k].second, on, counted,
                           se);
        }
}

/* ---- Summary --------------------------------------------------------------------------------------------- */
static json_t *mechanisms_json(const cgam_study *study, const setup *u, int setting)
{
    static const char *const tables[] = {"accuracy", "wrong", "space", "clusters"};
    static const struct {
        const char *key, *column;
    } lists[] = {{"accuracy", "accuracy"},
                 {"se", "accuracy_se"},
                 {"readout_error", "readout_error"},
                 {"readout_error_se", "readout_error_se"},
                 {"neff", "neff"},
                 {"neff_se", "neff_se"},
                 {"work", "work"},
                 {"gain", "gain"},
                 {"gain_se", "gain_se"}};
    const cgam_table *t = cgam_study_find(study, tables[setting]);
    const cgam_table *all = cgam_study_find(study, "overall");
    json_t *list = json_array();
    for (int rival = 0; rival < CGAM_RIVALS; rival++) {
        const int64_t row = rival * u->sigmas, at = OVERALL * setting;
        const double *mean = all->cells + rival * all->columns + at;
        json_t *one = cgam_json_object("name=%s strength=%g second=%g", cgam_rival_names[rival],
                                       cgam_cell(t, row, "strength"), cgam_cell(t, row, "second"));
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            cgam_json_put(
                one, lists[i].key,
                cgam_json_reals(t->cells + row * t->columns + cgam_table_column(t, lists[i].column),
                                u->sigmas, t->columns));
        cgam_json_add(one,
                      "mean=%g mean_se=%g mean_gain=%g mean_gain_se=%g mean_over_experts=%g "
                      "mean_over_experts_se=%g",
                      mean[0], mean[1], mean[2], mean[3], mean[4], mean[5]);
        json_array_append_new(list, one);
    }
    return list;
}

cgam_status cgam_rivals_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    const setup *u = arg;
    int64_t chosen[CGAM_RIVAL_SETTINGS][CGAM_RIVALS];
    const int64_t long_rows = CGAM_RIVALS * u->sigmas, all = u->settings * u->options;
    const char **labels = labels_of(study, long_rows + all);
    if (!labels) return study->status;
    study->labels = labels; /* freed with the study */
    for (int64_t i = 0; i < long_rows; i++) labels[i] = cgam_rival_names[i / u->sigmas];
    for (int64_t i = 0; i < all; i++)
        labels[long_rows + i] = cgam_rival_names[u->option[i % u->options].rival];
    for (int setting = 0; setting < u->settings; setting++) {
        for (int rival = 0; rival < CGAM_RIVALS; rival++)
            chosen[setting][rival] = choose(study, u, b, setting, rival);
        setting_table(study, u, b, setting, chosen[setting], labels);
    }
    overall_table(study, u, b, chosen);
    strength_table(study, u, b, labels + long_rows);
    if (study->status != CGAM_OK) return study->status;
    json_t *settings = json_array();
    for (int setting = 1; setting < u->settings; setting++)
        json_array_append_new(settings, cgam_json_object("name=%s mechanisms=%p",
                                                         cgam_rival_setting_names[setting],
                                                         mechanisms_json(study, u, setting)));
    cgam_json_add(study->doc, "sigma_q=%p mechanisms=%p settings=%p",
                  cgam_json_reals(study->opts.sigma_q.values, u->sigmas, 1),
                  mechanisms_json(study, u, CGAM_RIVAL_PLAIN), settings);
    return study->status;
}

/* ---- Time: `microseconds`, a recall of every mechanism at its chosen strength, on one thread -------- */
/* Seconds of the fastest of a few passes over one bundle, for one recall. */
static double recall_seconds(cgam_study *study, const setup *u, int64_t cell, int64_t k,
                             cgam_rivals_room *w)
{
    enum { PASSES = 5, REPEATS = 8 };
    double best = INFINITY, measures[CGAM_RIVAL_MEASURES];
    for (int pass = 0; pass < PASSES; pass++) {
        double begun = cgam_clock();
        for (int i = 0; i < REPEATS; i++) {
            w->at_alpha = -1; /* the gates of this context are part of the recall */
            cgam_rivals_scores(study, u, cell, k, w);
            for (int l = 0; l < study->lanes->width; l++)
                cgam_rivals_measure(study, u, k, l, w, measures);
        }
        best = fmin(best, (cgam_clock() - begun) / (REPEATS * study->lanes->width));
    }
    return best;
}

cgam_status cgam_rivals_time(cgam_study *study, json_t *doc)
{
    const cgam_table *t = cgam_study_find(study, "accuracy");
    setup u;
    cgam_rivals_room w = {0};
    json_t *list = json_object_get(doc, "mechanisms");
    cgam_status status = cgam_rivals_open(study, &u);
    if (status == CGAM_OK) status = cgam_rivals_room_open(study, &u, &w);
    if (status == CGAM_OK) status = cgam_rivals_bank(study, &u, CGAM_RIVAL_PLAIN, 1, &w);
    if (status == CGAM_OK) cgam_rivals_draw(study, &u, 1, u.sigmas / 2, 0, &w);
    for (int rival = 0; rival < CGAM_RIVALS && status == CGAM_OK; rival++)
        for (int64_t k = u.first[rival]; k < u.first[rival + 1]; k++) {
            const double second = cgam_cell(t, rival * u.sigmas, "second");
            if (u.option[k].strength != cgam_cell(t, rival * u.sigmas, "strength") ||
                !(u.option[k].second == second || isnan(second)))
                continue;
            cgam_json_put_real(json_array_get(list, (size_t)rival), "microseconds",
                               1e6 * recall_seconds(study, &u, u.sigmas / 2, k, &w));
        }
    cgam_rivals_room_close(study, &u, &w);
    cgam_rivals_close(study, &u);
    return status;
}

/* ---- One trial ----------------------------------------------------------------------------------------------- */
static json_t *masks_json(const setup *u, const cgam_rivals_room *w)
{
    json_t *list = json_array();
    const double *at = w->units;
    for (int64_t k = u->first[CGAM_RIVAL_MASK_UNITS]; k < u->first[CGAM_RIVAL_MASK_UNITS + 1];
         k++) {
        const int64_t count = (int64_t)u->option[k].second;
        json_array_append_new(list, cgam_json_object("strength=%g second=%g units=%p",
                                                     u->option[k].strength, u->option[k].second,
                                                     cgam_trial_rows(at, count, u->d, 1)));
        at += count * u->d;
    }
    return list;
}

static json_t *cell_json(cgam_study *study, const setup *u, int64_t cell, int lane,
                         cgam_rivals_room *w)
{
    const int width = study->lanes->width;
    json_t *options = json_array();
    for (int64_t k = 0; k < u->options; k++) {
        double m[CGAM_RIVAL_MEASURES];
        cgam_rivals_scores(study, u, cell, k, w);
        cgam_rivals_measure(study, u, k, lane, w, m);
        json_array_append_new(
            options,
            cgam_json_object(
                "mechanism=%s strength=%g second=%g right?=%d readout_error=%g neff=%g "
                "work=%g r=%p",
                cgam_rival_names[u->option[k].rival], u->option[k].strength, u->option[k].second,
                m[CGAM_RIVAL_RIGHT] > 0, m[CGAM_RIVAL_ERROR], m[CGAM_RIVAL_NEFF],
                m[CGAM_RIVAL_WORK], cgam_json_reals(w->r + lane, u->n, width)));
    }
    return cgam_json_object("sigma_q=%g target=%jd meant=%jd q=%p c=%p options=%p",
                            study->opts.sigma_q.values[cell], w->target[lane], w->meant[lane],
                            cgam_json_reals(w->q + lane, u->d, width),
                            cgam_json_reals(w->c + lane, u->d, width), options);
}

cgam_status cgam_rivals_trial(cgam_study *study, int64_t trial, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    const int64_t set = trial / o->trials, own = trial % o->trials;
    const int lane = (int)(own % width);
    setup u;
    cgam_rivals_room w = {0};
    json_t *settings = json_array();
    cgam_status status = cgam_rivals_open(study, &u);
    if (status == CGAM_OK) status = cgam_rivals_room_open(study, &u, &w);
    for (int setting = 0; setting < u.settings && status == CGAM_OK; setting++) {
        json_t *cells = json_array();
        status = cgam_rivals_bank(study, &u, setting, set, &w);
        for (int64_t cell = 0; cell < u.sigmas && status == CGAM_OK; cell++) {
            cgam_rivals_draw(study, &u, set, cell, own - lane, &w);
            json_array_append_new(cells, cell_json(study, &u, cell, lane, &w));
        }
        json_array_append_new(settings, cgam_json_object("name=%s Z=%p W=%p masks=%p cells=%p",
                                                         cgam_rival_setting_names[setting],
                                                         cgam_trial_rows(w.Z, u.n, u.d, 1),
                                                         cgam_trial_rows(w.W, u.n, u.d, 1),
                                                         masks_json(&u, &w), cells));
    }
    cgam_rivals_room_close(study, &u, &w);
    cgam_rivals_close(study, &u);
    cgam_json_add(doc, "bank=%jd trial_of_bank=%jd settings=%p", set, own, settings);
    return status;
}
