/* study.c: the list of studies, their tables, and the files they write. */
#include "lab/synthetic/study.h"
#include "base/blas.h"
#include "lab/folder.h"
#include "lab/journal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PART(name_, run_) .name = name_, .run = cgam_##run_##_run, .trial = cgam_##run_##_trial
const cgam_study_part cgam_studies[CGAM_STUDY_KINDS] = {
    [CGAM_STUDY_SEPARATION] = {PART("separation", separation), .check = cgam_separation_check},
    [CGAM_STUDY_COMPETITION] = {PART("competition", competition), .check = cgam_competition_check,
                                .unit = true},
    [CGAM_STUDY_COUPLED] = {PART("coupled", coupled), .unit = true},
    [CGAM_STUDY_TIMESCALE] = {PART("timescale", timescale)},
    [CGAM_STUDY_THEOREMS] = {PART("theorems", theorems)},
    [CGAM_STUDY_CAPACITY] = {PART("capacity", grid), .check = cgam_grid_check},
    [CGAM_STUDY_PHASE] = {PART("phase", grid), .check = cgam_grid_check},
    [CGAM_STUDY_CONVERGENCE] = {PART("convergence", convergence), .check = cgam_convergence_check},
    [CGAM_STUDY_ANNEALING] = {PART("annealing", annealing)},
    [CGAM_STUDY_SPARSE] = {PART("sparse", sparse)},
    [CGAM_STUDY_RIVALS] = {PART("rivals", rivals), .unit = true, .time = cgam_rivals_time},
};

/* ---- Life ------------------------------------------------------------------------------------ */
void cgam_study_free(cgam_study *study)
{
    if (!study) return;
    for (int64_t i = 0; i < study->tables; i++) cgam_free(study->env, study->cells[i]);
    json_decref(study->doc);
    cgam_free(study->env, study->json);
    cgam_free(study->env, study->labels);
    cgam_free(study->env, study->lists);
    cgam_free(study->env, study->out);
    cgam_journal_close(study->journal);
    cgam_free(study->env, study->progress);
    cgam_free(study->env, study);
}

/* Copies the options with their lists, so that a study outlives its caller's arrays. */
static cgam_status take_options(cgam_study *study, const cgam_study_opts *opts)
{
    const cgam_study_param *p;
    int64_t total = 0;
    study->opts = *opts;
    if (opts->bank) study->opts.d = cgam_bank_describe(opts->bank).d;
    for (int64_t k = 0; (p = cgam_study_param_at(opts->kind, k)); k++)
        if (p->kind == CGAM_FIELD_LIST) total += cgam_study_param_count(p, opts);
    double *at = study->lists = cgam_alloc(study->env, (size_t)total, sizeof *at);
    if (!at) return cgam_fail_nomem(study->env, "options");
    for (int64_t k = 0; (p = cgam_study_param_at(opts->kind, k)); k++) {
        cgam_list *list = cgam_study_param_list(p, &study->opts);
        if (!list) continue;
        if (list->count > 0) memcpy(at, list->values, (size_t)list->count * sizeof *at);
        list->values = at;
        at += list->count;
    }
    if (opts->out) {
        size_t size =
            strlen(opts->out) + strlen(cgam_studies[opts->kind].name) + sizeof "/..progress";
        study->out = cgam_strdup(study->env, opts->out);
        study->progress = cgam_alloc(study->env, size, 1);
        if (!study->out || !study->progress) return cgam_fail_nomem(study->env, "options");
        snprintf(study->progress, size, "%s/.%s.progress", opts->out,
                 cgam_studies[opts->kind].name);
        study->opts.out = study->out;
    }
    return CGAM_OK;
}

cgam_status cgam_study_check_unit(cgam_env *env, const cgam_study_opts *opts)
{
    if (!opts->bank) return CGAM_OK;
    const cgam_bank_info info = cgam_bank_describe(opts->bank);
    if (info.unit) return CGAM_OK;
    return cgam_fail(
        env, CGAM_E_ARG,
        "bank has memories of norm %.6g to %.6g, this study needs unit vectors (--normalize)",
        info.norm_min, info.norm_max);
}

/* Does the study take memories like those of the bank, and as many? */
static cgam_status check_bank(cgam_env *env, const cgam_study_opts *opts)
{
    if (!opts->bank) return CGAM_OK;
    const cgam_bank_info info = cgam_bank_describe(opts->bank);
    const cgam_study_param *d = cgam_study_param_find(opts->kind, "d");
    if (d && (double)info.d > d->high)
        return cgam_fail(env, CGAM_E_ARG, "bank has %lld dimensions, this study takes up to %.0f",
                         (long long)info.d, d->high);
    if (cgam_study_param_find(opts->kind, "n") && opts->n > info.n)
        return cgam_fail(env, CGAM_E_ARG, "n is %lld, bank has %lld memories", (long long)opts->n,
                         (long long)info.n);
    return cgam_studies[opts->kind].unit ? cgam_study_check_unit(env, opts) : CGAM_OK;
}

static cgam_status study_new(cgam_env *env, const cgam_study_opts *opts, cgam_study **out)
{
    *out = NULL;
    if (opts->kind >= CGAM_STUDY_KINDS)
        return cgam_fail(env, CGAM_E_ARG, "study %d: there are %d", (int)opts->kind,
                         CGAM_STUDY_KINDS);
    cgam_status status = cgam_study_params_check(env, opts);
    if (status == CGAM_OK) status = check_bank(env, opts);
    if (status == CGAM_OK && cgam_studies[opts->kind].check)
        status = cgam_studies[opts->kind].check(env, opts);
    if (status == CGAM_OK) status = cgam_blas_check_space(env);
    if (status != CGAM_OK) return status;
    cgam_study *study = cgam_zalloc(env, 1, sizeof *study);
    if (!study) return cgam_fail_nomem(env, "a study");
    study->env = env;
    study->lanes = cgam_lanes_of(cgam_cpu_best());
    study->doc = json_object();
    status = study->doc ? take_options(study, opts) : cgam_fail_nomem(env, "a study");
    if (status != CGAM_OK) {
        cgam_study_free(study);
        return status;
    }
    cgam_json_add(study->doc, "study=%s version=%s seed=%jd", cgam_studies[opts->kind].name,
                  cgam_version(), (intmax_t)opts->seed);
    *out = study;
    return CGAM_OK;
}

/* The machine and build that made a result, as far as they affect its last digits. */
static json_t *describe_machine(const cgam_study *study)
{
    json_t *doc = json_object();
    struct utsname name;
    if (uname(&name) == 0) {
        cgam_json_add(doc, "system=%s machine=%s", name.sysname, name.machine);
    }
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon[strcspn(colon, "\n")] = '\0';
        cgam_json_put_text(doc, "cpu", colon + 2);
        break;
    }
    if (f) fclose(f);
    cgam_json_add(doc, "cores=%jd vectors=%s", sysconf(_SC_NPROCESSORS_ONLN), study->lanes->name);
    return doc;
}

/* The given memories: sizes and digest. */
static cgam_status put_bank(cgam_study *study)
{
    const cgam_bank_info info = cgam_bank_describe(study->opts.bank);
    uint64_t key = CGAM_HASH;
    char digest[20];
    cgam_status status = cgam_study_hash(study->env, study->opts.bank, &key);
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)key);
    cgam_json_put(study->doc, "bank",
                  cgam_json_object("n=%jd d=%jd digest=%s", info.n, info.d, digest));
    return status;
}

cgam_status cgam_study_run(cgam_env *env, const cgam_study_opts *opts, cgam_study **out)
{
    *out = NULL;
    cgam_study *study;
    cgam_status status = study_new(env, opts, &study);
    if (status != CGAM_OK) return status;
    cgam_json_add(study->doc, "trials=%jd machine=%p", opts->trials, describe_machine(study));
    cgam_study_params_put(&study->opts, study->doc);
    if (opts->bank) status = put_bank(study);
    if (status == CGAM_OK) status = cgam_studies[study->opts.kind].run(study);
    json_t *names = json_array();
    for (int64_t i = 0; i < study->tables; i++)
        json_array_append_new(names, json_string(study->table[i].name));
    cgam_json_put(study->doc, "tables", names);
    if (status == CGAM_OK) status = cgam_json_text(study->env, study->doc, &study->json);
    if (status != CGAM_OK) {
        cgam_study_free(study);
        return status;
    }
    *out = study;
    return CGAM_OK;
}

cgam_status cgam_study_trial(cgam_env *env, const cgam_study_opts *opts, int64_t trial, char **text)
{
    *text = NULL;
    cgam_study *study;
    cgam_study_opts o = *opts;
    o.out = NULL;
    cgam_status status = study_new(env, &o, &study);
    if (status != CGAM_OK) return status;
    int64_t trials = o.trials * (cgam_study_param_find(o.kind, "banks") ? o.banks : 1);
    if (trial < 0 || trial >= trials)
        status = cgam_fail(env, CGAM_E_ARG, "only-trial: no trial %lld (valid: 0 to %lld)",
                           (long long)trial, (long long)trials - 1);
    if (status == CGAM_OK) {
        cgam_json_put_int(study->doc, "trial", trial);
        cgam_study_params_put(&study->opts, study->doc);
        status = cgam_studies[study->opts.kind].trial(study, trial, study->doc);
    }
    if (status == CGAM_OK) status = cgam_json_text(env, study->doc, text);
    cgam_study_free(study);
    return status;
}

void cgam_study_forget(const cgam_study *study)
{
    if (study->progress) unlink(study->progress);
}

/* ---- Tables ---------------------------------------------------------------------------------- */
void cgam_study_add(cgam_study *study, const char *name, const char *about, const char *heads,
                    const char *const *labels, int64_t rows)
{
    int64_t columns = cgam_heads_count(heads) - (labels != NULL), k = study->tables;
    if (study->status != CGAM_OK) return;
    if (k == CGAM_STUDY_TABLES)
        study->status =
            cgam_fail(study->env, CGAM_E_INTERNAL, "more than %d tables", CGAM_STUDY_TABLES);
    else if (!(study->cells[k] =
                   cgam_zalloc(study->env, (size_t)(rows * columns), sizeof *study->cells[k])))
        study->status = cgam_fail_nomem(study->env, name);
    if (study->status != CGAM_OK) return;
    study->filled = 0;
    study->table[study->tables++] =
        (cgam_table){name, about, heads, labels, rows, columns, study->cells[k]};
}

void cgam_study_append(cgam_study *study, int64_t count, const double *row)
{
    if (study->status != CGAM_OK) return;
    const int64_t last = study->tables - 1;
    assert(count == study->table[last].columns && study->filled < study->table[last].rows);
    memcpy(study->cells[last] + count * study->filled++, row, (size_t)count * sizeof *row);
}

const cgam_table *cgam_study_find(const cgam_study *study, const char *name)
{
    for (int64_t i = 0; i < study->tables; i++)
        if (strcmp(study->table[i].name, name) == 0) return &study->table[i];
    return NULL;
}

/* The summary of another run in the folder; NULL = there is none, or it is this run's. */
static json_t *other_summary(const cgam_study *study, const char *folder)
{
    char path[CGAM_PATH_ROOM];
    json_t *doc = NULL;
    if (cgam_path_join(study->env, folder, "summary.json", path) != CGAM_OK ||
        access(path, F_OK) != 0 || cgam_json_load(study->env, path, &doc) != CGAM_OK)
        return NULL;
    if (*cgam_json_get_text(doc, "study") && !json_equal(doc, study->doc)) return doc;
    json_decref(doc);
    return NULL;
}

cgam_status cgam_study_claim(const cgam_study *study, const char *folder)
{
    static const char *const keys[] = {"study", "seed", "trials", "parameters", "bank"};
    json_t *doc = study->opts.overwrite ? NULL : other_summary(study, folder);
    bool same = true;
    for (size_t i = 0; doc && i < sizeof keys / sizeof *keys; i++) {
        json_t *a = json_object_get(doc, keys[i]), *b = json_object_get(study->doc, keys[i]);
        same = same && (a && b ? json_equal(a, b) : a == b);
    }
    cgam_status status =
        same
            ? CGAM_OK
            : cgam_fail(
                  study->env, CGAM_E_ARG,
                  "out %s holds another run (study %s, seed %lld); give overwrite or another folder",
                  folder, cgam_json_get_text(doc, "study"),
                  (long long)json_integer_value(json_object_get(doc, "seed")));
    json_decref(doc);
    return status;
}

bool cgam_study_replaces(const cgam_study *study, const char *folder)
{
    json_t *doc = other_summary(study, folder);
    json_decref(doc);
    return doc != NULL;
}

/* Removes the files of another run, its summary first: a folder without summary is unfinished. */
static cgam_status remove_other_results(const cgam_study *study, const char *folder)
{
    json_t *doc = other_summary(study, folder), *names = json_object_get(doc, "tables");
    cgam_status status = CGAM_OK;
    if (doc) status = cgam_folder_remove(study->env, folder, "summary.json");
    for (size_t i = 0; i < json_array_size(names) && status == CGAM_OK; i++) {
        char file[100];
        const char *name = json_string_value(json_array_get(names, i));
        if (!name || strlen(name) > 64 || strchr(name, '/')) continue; /* not ours */
        snprintf(file, sizeof file, "%s.csv", name);
        status = cgam_folder_remove(study->env, folder, file);
    }
    json_decref(doc);
    return status;
}

cgam_status cgam_study_write(const cgam_study *study, const char *folder)
{
    cgam_outgroup files;
    cgam_status status = CGAM_OK;
    cgam_outgroup_begin(&files);
    for (int64_t i = 0; i < study->tables && status == CGAM_OK; i++)
        status = cgam_table_write(study->env, &study->table[i], folder);
    if (status == CGAM_OK) status = cgam_json_save(study->env, folder, "summary.json", study->doc);
    if (status == CGAM_OK) status = remove_other_results(study, folder);
    return cgam_outgroup_end(&files, status);
}
