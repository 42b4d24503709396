/* study_seeds.c: how much results depend on the draw of queries and demonstrations: runs a study with several seeds, and
 * compares the spread of its main numbers with the error that a single run reports. */
#include "lab/language/study.h"
#include "lab/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Accuracies that a table of a study shows; % is "restricted" or "full". */
static const struct {
    const char *name, *before, *after;
} ways[] = {{"zero_shot", "zero_shot.", ""},
            {"icl", "icl.", ""},
            {"retrieval", "best.", ".held_out"},
            {"flipped", "controls.flipped.", ".held_out"},
            {"other_task", "controls.other_task.", ".held_out"},
            {"label_mean", "controls.label_mean.", ".held_out"}};
enum { WAYS = sizeof ways / sizeof *ways, COLUMNS = 3 + WAYS };
enum { SEEDS_TABLE, DRAWS_TABLE };

/* Rows of one seed: every number of shots, over the labels and over all words. */
static void add_rows(cgam_lm_result *r, uint64_t seed, const json_t *sweep)
{
    const json_t *shots = json_object_get(sweep, "shots");
    for (size_t i = 0; i < json_array_size(shots); i++)
        for (int over = 0; over < 2; over++) {
            const json_t *entry = json_array_get(shots, i);
            double row[COLUMNS] = {(double)cgam_json_get_int(entry, "k"), (double)seed, over};
            for (int w = 0; w < WAYS; w++) {
                char path[80];
                snprintf(path, sizeof path, "%s%s%s", ways[w].before, cgam_sweep_over_name(over),
                         ways[w].after);
                row[3 + w] = cgam_json_get_real(entry, path);
            }
            cgam_lm_result_row(r, SEEDS_TABLE, row);
        }
}

/* Mean and deviation over the seeds, of what the table holds for one number of shots. */
static json_t *spread_json(const cgam_table *t, double k, int over)
{
    json_t *all = json_object();
    for (int w = 0; w < WAYS; w++) {
        cgam_moments m = {0};
        for (int64_t i = 0; i < t->rows; i++) {
            const double *row = t->cells + i * t->columns;
            if (row[0] == k && row[2] == over && !isnan(row[3 + w]))
                cgam_moments_add(&m, row[3 + w]);
        }
        json_t *one = cgam_json_object("mean=%g sd=%g", m.n > 0 ? m.mean : (double)NAN,
                                       m.n > 1 ? cgam_moments_sd(&m) : (double)NAN);
        cgam_json_put(all, ways[w].name, one);
    }
    return all;
}

static json_t *spreads_json(const cgam_lm_result *r, int64_t n)
{
    const cgam_table *t = &r->table[SEEDS_TABLE];
    json_t *shots = json_array();
    for (int64_t i = 0; i < t->rows / n; i += 2) { /* as the first seed has them */
        double k = t->cells[i * t->columns];
        json_t *entry = json_object();
        cgam_json_put_int(entry, "k", (int64_t)k);
        for (int over = 0; over < 2; over++)
            cgam_json_put(entry, cgam_sweep_over_name(over), spread_json(t, k, over));
        json_array_append_new(shots, entry);
    }
    return shots;
}

/* ---- Headlines ---------------------------------------------------------------------------- */
/* The main numbers of entries "shots": paths of the number and of its error. */
static const struct {
    const char *part, *name, *value, *se;
} headlines[] = {
    {"sweep", "zero-shot, labels", "zero_shot.restricted", "zero_shot.restricted_se"},
    {"sweep", "zero-shot, words", "zero_shot.full", "zero_shot.full_se"},
    {"sweep", "ICL, labels", "icl.restricted", "icl.restricted_se"},
    {"sweep", "ICL, words", "icl.full", "icl.full_se"},
    {"sweep", "retrieval, labels", "best.restricted.held_out", "best.restricted.held_out_se"},
    {"sweep", "retrieval, words", "best.full.held_out", "best.full.held_out_se"},
    {"sweep", "flipped, labels", "controls.flipped.restricted.held_out",
     "controls.flipped.restricted.held_out_se"},
    {"sweep", "flipped, words", "controls.flipped.full.held_out",
     "controls.flipped.full.held_out_se"},
    {"sweep", "random, labels", "controls.random.restricted.held_out",
     "controls.random.restricted.held_out_se"},
    {"sweep", "random, words", "controls.random.full.held_out", "controls.random.full.held_out_se"},
    {"sweep", "label rows, labels", "controls.label_mean.restricted.held_out",
     "controls.label_mean.restricted.held_out_se"},
    {"sweep", "label rows, words", "controls.label_mean.full.held_out",
     "controls.label_mean.full.held_out_se"},
    {"inject", "zero-shot", "zero_shot", "zero_shot_se"},
    {"inject", "ICL", "icl", "icl_se"},
    {"inject", "readout", "readout", "readout_se"},
    {"inject", "add", "by_kind.add.held_out", "by_kind.add.held_out_se"},
    {"inject", "replace", "by_kind.replace.held_out", "by_kind.replace.held_out_se"},
    {"inject", "random, its own choice", "controls.own.random.held_out",
     "controls.own.random.held_out_se"},
    {"inject", "flipped, its own choice", "controls.own.flipped.held_out",
     "controls.own.flipped.held_out_se"},
};
/* The same of a fit, which has one entry. */
static const char *const fit_names[] = {"zero_shot", "identity", "random",
                                        "mean",      "held_out", "icl"};

static void add_headline(cgam_lm_result *r, const char *part, const char *name, double k,
                         uint64_t seed, double value, double se)
{
    char text[80];
    snprintf(text, sizeof text, "%s: %s", part, name);
    if (!isnan(value))
        cgam_lm_result_named(r, DRAWS_TABLE, text, (double[]){k, (double)seed, value, se});
}

/* Where a measure of a curve is largest, in the direction of sign. */
static int64_t extreme_of(const json_t *curve, const char *measure, int sign)
{
    int64_t best = 0, n = (int64_t)json_array_size(cgam_json_at(curve, measure));
    for (int64_t l = 1; l < n; l++)
        if (sign * cgam_json_nth(curve, measure, l) > sign * cgam_json_nth(curve, measure, best))
            best = l;
    return best;
}

static void add_curves(cgam_lm_result *r, uint64_t seed, const json_t *draw)
{
    static const char *const kinds[] = {"positive", "wrong_object", "other_relation", "random"};
    const json_t *curve, *entry;
    size_t i, j;
    json_array_foreach(cgam_json_at(draw, "neff.curves"), i, curve)
    {
        int64_t l = extreme_of(curve, "log_drop", 1);
        add_headline(r, "neff", "largest fall of log N_eff", cgam_json_get_real(curve, "k"), seed,
                     cgam_json_nth(curve, "log_drop", l), cgam_json_nth(curve, "log_drop_se", l));
    }
    json_array_foreach(cgam_json_at(draw, "probe.curves"), i, curve)
    {
        double root = sqrt((double)cgam_json_get_int(draw, "probe.queries"));
        int64_t l = extreme_of(curve, "separability", 1), m = extreme_of(curve, "margin", 1);
        double k = cgam_json_get_real(curve, "k");
        add_headline(r, "probe", "best separability", k, seed,
                     cgam_json_nth(curve, "separability", l),
                     cgam_json_nth(curve, "separability_se", l));
        add_headline(r, "probe", "best margin", k, seed, cgam_json_nth(curve, "margin", m),
                     cgam_json_nth(curve, "margin_sd", m) / root);
    }
    json_array_foreach(cgam_json_at(draw, "steer.shots"), i, entry)
    {
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            double most = NAN, least = NAN, most_se = NAN, least_se = NAN;
            json_array_foreach(cgam_json_at(entry, "curves"), j, curve)
            {
                if (strcmp(cgam_json_get_text(curve, "context"), kinds[kind]) != 0) continue;
                for (int sign = -1; sign < 2; sign += 2) {
                    int64_t l = extreme_of(curve, "log_p_gain", sign);
                    double x = cgam_json_nth(curve, "log_p_gain", l);
                    double se = cgam_json_nth(curve, "log_p_gain_se", l);
                    if (sign > 0 && !(x <= most)) most = x, most_se = se;
                    if (sign < 0 && !(x >= least)) least = x, least_se = se;
                }
            }
            char name[64];
            snprintf(name, sizeof name, "largest rise, %s", kinds[kind]);
            add_headline(r, "steer", name, cgam_json_get_real(entry, "k"), seed, most, most_se);
            snprintf(name, sizeof name, "largest fall, %s", kinds[kind]);
            add_headline(r, "steer", name, cgam_json_get_real(entry, "k"), seed, least, least_se);
        }
    }
}

static void add_headlines(cgam_lm_result *r, uint64_t seed, const json_t *draw)
{
    for (size_t h = 0; h < sizeof headlines / sizeof *headlines; h++) {
        char path[32];
        const json_t *entry;
        size_t i;
        snprintf(path, sizeof path, "%s.shots", headlines[h].part);
        json_array_foreach(cgam_json_at(draw, path), i, entry)
            add_headline(r, headlines[h].part, headlines[h].name, cgam_json_get_real(entry, "k"),
                         seed, cgam_json_get_real(entry, headlines[h].value),
                         cgam_json_get_real(entry, headlines[h].se));
    }
    for (size_t i = 0; i < sizeof fit_names / sizeof *fit_names; i++) {
        char value[48], se[48];
        snprintf(value, sizeof value, "fit.%s.full", fit_names[i]);
        snprintf(se, sizeof se, "fit.%s.full_se", fit_names[i]);
        add_headline(r, "fit", fit_names[i], cgam_json_get_real(draw, "fit.k"), seed,
                     cgam_json_get_real(draw, value), cgam_json_get_real(draw, se));
    }
    add_curves(r, seed, draw);
}

/* Each headline once, in the order of its first row: its mean and spread over the seeds. */
static json_t *headlines_json(const cgam_lm_result *r)
{
    const cgam_table *t = &r->table[DRAWS_TABLE];
    char **names = r->names[DRAWS_TABLE];
    json_t *list = json_array();
    for (int64_t i = 0; i < t->rows; i++) {
        const double *row = t->cells + i * t->columns;
        cgam_moments m = {0}, se = {0};
        bool first = true;
        for (int64_t j = 0; j < t->rows; j++) {
            const double *other = t->cells + j * t->columns;
            bool same = strcmp(names[i], names[j]) == 0 && (other[0] == row[0]);
            if (!same) continue;
            first = first && j >= i;
            cgam_moments_add(&m, other[2]);
            if (!isnan(other[3])) cgam_moments_add(&se, other[3]);
        }
        if (!first) continue;
        json_array_append_new(list, cgam_json_object("name=%s k=%g draws=%d mean=%g sd=%g se=%g",
                                                     names[i], row[0], (int)m.n, m.mean,
                                                     m.n > 1 ? cgam_moments_sd(&m) : (double)NAN,
                                                     se.n > 0 ? se.mean : (double)NAN));
    }
    return list;
}

cgam_status cgam_lm_seeds_check(cgam_env *env, int64_t n, const uint64_t *seeds)
{
    if (n < 2) return cgam_fail(env, CGAM_E_ARG, "seeds: give two or more");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (seeds[j] == seeds[i])
                return cgam_fail(env, CGAM_E_ARG, "seeds: duplicate %llu",
                                 (unsigned long long)seeds[i]);
    return CGAM_OK;
}

cgam_status cgam_lm_seed_path(cgam_env *env, const char *resume, uint64_t seed,
                              char path[CGAM_PATH_ROOM])
{
    int length = snprintf(path, CGAM_PATH_ROOM, "%s.%llu", resume, (unsigned long long)seed);
    return length < CGAM_PATH_ROOM ? CGAM_OK : cgam_fail(env, CGAM_E_ARG, "path too long");
}

/* All parts of a study under one seed, by their names. */
static cgam_status run_draw(cgam_env *env, const cgam_lm_study_opts *opts, json_t *draw)
{
    cgam_lm_study *study = NULL;
    cgam_status status = cgam_lm_study_open(env, opts, &study);
    for (int part = 0; part < CGAM_LM_EXPERIMENTS && status == CGAM_OK; part++) {
        cgam_lm_result *one = NULL;
        if (!(study->parts >> part & 1)) continue;
        status = cgam_lm_study_part(study, (cgam_lm_part)part, &one);
        if (one) cgam_json_put(draw, cgam_lm_part_name((cgam_lm_part)part), json_incref(one->doc));
        cgam_lm_result_free(one);
    }
    cgam_lm_study_close(study);
    return status;
}

cgam_status cgam_lm_seeds(cgam_env *env, const cgam_lm_study_opts *opts, int64_t n,
                          const uint64_t *seeds, const json_t *own, cgam_lm_result **out)
{
    cgam_lm_study_opts o = opts ? *opts : cgam_lm_study_opts_default();
    const uint64_t own_seed = o.seed;
    const char *resume = o.resume;
    char kept[CGAM_PATH_ROOM];
    cgam_lm_result *r;
    *out = NULL;
    cgam_status status = cgam_lm_seeds_check(env, n, seeds);
    if (status == CGAM_OK) status = cgam_lm_result_empty(env, &r);
    if (status != CGAM_OK) return status;
    cgam_lm_result_add(r, "seeds", "accuracies of the sweep under every seed",
                       "shots,seed,over_vocabulary,zero_shot,icl,retrieval,flipped,other_task,"
                       "label_mean");
    cgam_lm_result_add(r, "draws", "main numbers of every part under every seed",
                       "name,shots,seed,value,se");
    json_t *list = json_array(), *draws = json_array();
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        json_t *draw = json_object();
        cgam_json_put_int(draw, "seed", (int64_t)seeds[i]);
        o.seed = seeds[i];
        o.turn = i;
        o.turns = n;
        if (resume) status = cgam_lm_seed_path(env, resume, seeds[i], kept);
        if (resume) o.resume = kept;
        for (int part = 0; part < CGAM_LM_EXPERIMENTS && own && seeds[i] == own_seed; part++) {
            json_t *doc = json_object_get(own, cgam_lm_part_name((cgam_lm_part)part));
            if (doc) json_object_set(draw, cgam_lm_part_name((cgam_lm_part)part), doc);
        }
        if (status == CGAM_OK && (!own || seeds[i] != own_seed)) status = run_draw(env, &o, draw);
        if (status == CGAM_OK) {
            if (json_object_get(draw, "sweep"))
                add_rows(r, seeds[i], json_object_get(draw, "sweep"));
            add_headlines(r, seeds[i], draw);
        }
        json_array_append_new(list, json_integer((json_int_t)seeds[i]));
        json_array_append_new(draws, draw);
    }
    bool fine = status == CGAM_OK && !r->lost;
    cgam_json_add(r->doc, "seeds=%p shots=%p headlines=%p draws=%p", list,
                  fine ? spreads_json(r, n) : json_array(), fine ? headlines_json(r) : json_array(),
                  draws);
    return cgam_lm_result_end(r, status, out);
}
