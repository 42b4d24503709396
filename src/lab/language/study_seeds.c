/* study_seeds.c: what the draw of queries and demonstrations is worth: the sweep under several seeds,
 * and how its accuracies spread. */
#include "lab/language/study.h"
#include "lab/stats.h"

#include <math.h>

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
            cgam_lm_result_row(r, 0, row);
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

static void put_spread(cgam_lm_result *r, int64_t n, const uint64_t *seeds)
{
    const cgam_table *t = &r->table[0];
    json_t *list = json_array(), *shots = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_integer((json_int_t)seeds[i]));
    for (int64_t i = 0; i < t->rows / n; i += 2) { /* as the first seed has them */
        double k = t->cells[i * t->columns];
        json_t *entry = json_object();
        cgam_json_put_int(entry, "k", (int64_t)k);
        for (int over = 0; over < 2; over++)
            cgam_json_put(entry, cgam_sweep_over_name(over), spread_json(t, k, over));
        json_array_append_new(shots, entry);
    }
    cgam_json_add(r->doc, "seeds=%p shots=%p", list, shots);
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

cgam_status cgam_lm_seeds(cgam_env *env, const cgam_lm_study_opts *opts, int64_t n,
                          const uint64_t *seeds, cgam_lm_result **out)
{
    cgam_lm_study_opts o = opts ? *opts : cgam_lm_study_opts_default();
    cgam_lm_result *r;
    *out = NULL;
    cgam_status status = cgam_lm_seeds_check(env, n, seeds);
    if (status == CGAM_OK) status = cgam_lm_result_empty(env, &r);
    if (status != CGAM_OK) return status;
    cgam_lm_result_add(r, "seeds", "accuracies of the sweep under every seed",
                       "shots,seed,over_vocabulary,zero_shot,icl,retrieval,flipped,other_task,"
                       "label_mean");
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        cgam_lm_study *study = NULL;
        cgam_lm_result *one = NULL;
        o.seed = seeds[i];
        status = cgam_lm_study_open(env, &o, &study);
        if (status == CGAM_OK)
            snprintf(study->part, sizeof study->part, "seed %lld/%lld: ", (long long)i + 1,
                     (long long)n);
        if (status == CGAM_OK) status = cgam_lm_sweep(study, NULL, &one);
        if (status == CGAM_OK) add_rows(r, seeds[i], one->doc);
        cgam_lm_result_free(one);
        cgam_lm_study_close(study);
    }
    if (status == CGAM_OK && !r->lost) put_spread(r, n, seeds);
    return cgam_lm_result_end(r, status, out);
}
