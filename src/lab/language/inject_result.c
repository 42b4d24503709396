/* inject_result.c: chooses a cell, and reports an injection. */
#include "lab/folder.h"
#include "lab/language/inject.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[KINDS] = {"add", "replace"};
static const char *const control_names[CONTROLS] = {"random", "flipped", "other_task",
                                                    "label_rows"};

/* ---- Choosing ----------------------------------------------------------------------------- */
/* How many queries of a half (2: of all) are right in a cell, with vectors of their own half or of the other. */
static int64_t count_hits(const injection *t, const bool *of, int64_t c, bool own, int64_t half)
{
    const bool *right = of + ((own ? t->n_cells : 0) + c) * t->n;
    int64_t count = 0;
    for (int64_t i = 0; i < t->n; i++)
        count += t->judge.target[i] >= 0 && (half == 2 || i % 2 == half) && right[i];
    return count;
}

inject_choice cgam_inject_choose(const injection *t, const bool *of, int kind, bool *right)
{
    inject_choice out = {.cell = {-1, -1, -1}};
    double ties = 0;
    for (int64_t half = 0; half < 3; half++) {
        int64_t most = -1, tied = 0;
        for (int64_t c = 0; c < t->n_cells; c++) {
            if (kind != KINDS && t->cells[c].kind != kind) continue;
            int64_t count = count_hits(t, of, c, half < 2, half);
            const inject_cell *best = out.cell[half] >= 0 ? &t->cells[out.cell[half]] : NULL;
            bool later =
                best && count == most &&
                (t->cells[c].layer > best->layer ||
                 (t->cells[c].layer == best->layer && fabs(t->cells[c].scale) < fabs(best->scale)));
            if (count > most || later) out.cell[half] = c;
            if (count > most) most = count;
        }
        if (half == 2) break;
        double sum = 0;
        for (int64_t c = 0; c < t->n_cells; c++) {
            if ((kind != KINDS && t->cells[c].kind != kind) ||
                count_hits(t, of, c, true, half) != most)
                continue;
            tied++;
            sum += (double)count_hits(t, of, c, false, 1 - half);
        }
        ties += sum / (double)tied;
        out.tied += (double)tied / 2;
    }
    int64_t held = 0;
    for (int64_t i = 0; i < t->n; i++) {
        right[i] = of[out.cell[1 - i % 2] * t->n + i];
        held += t->judge.target[i] >= 0 && right[i];
    }
    out.held_out = (double)held / (double)t->judge.counted;
    out.held_out_ties = ties / (double)t->judge.counted;
    return out;
}

/* ---- Documents ---------------------------------------------------------------------------- */
static void put_share(const injection *t, json_t *to, const char *name, const int32_t *target,
                      const bool *right, const bool *other)
{
    cgam_lm_put_share(to, name, cgam_baseline_share(t->n, target, right, other, t->study->seed));
}

static void put_choice(const injection *t, json_t *to, const bool *of, const inject_choice *c,
                       const bool *right)
{
    const inject_cell *all = &t->cells[c->cell[2]];
    cgam_json_add(to, "kind=%s layer=%jd scale=%g accuracy=%g", kind_names[all->kind], all->layer,
                  all->scale,
                  (double)count_hits(t, of, c->cell[2], false, 2) / (double)t->judge.counted);
    put_share(t, to, "held_out", t->judge.target, right, NULL);
    cgam_lm_put_right(t->env, to, "right", t->n, t->judge.target, right);
    cgam_json_add(to, "held_out_ties=%g tied=%g", c->held_out_ties, c->tied);
    json_t *halves = json_array();
    for (int h = 0; h < 2; h++) {
        const inject_cell *one = &t->cells[c->cell[h]];
        json_array_append_new(halves, json_pack("{s:s, s:I, s:o}", "kind", kind_names[one->kind],
                                                "layer", (json_int_t)one->layer, "scale",
                                                cgam_json_real(one->scale)));
    }
    cgam_json_put(to, "chosen", halves);
    cgam_recovery r = cgam_baseline_recovery(t->n, t->judge.target, marks_of(t, ZERO),
                                             marks_of(t, ICL), right, t->study->seed);
    cgam_lm_put_recovery(to, "recovered", &r);
}

static void put_cells(injection *t, json_t *entry)
{
    json_t *list = json_array();
    for (int64_t c = 0; c < t->n_cells; c++) {
        const inject_cell *one = &t->cells[c];
        const bool *right = t->right + c * t->n;
        cgam_share s = cgam_baseline_share(t->n, t->judge.target, right, NULL, t->study->seed);
        double f1 = 0;
        for (int64_t i = 0; i < t->n; i++)
            if (t->judge.target[i] >= 0) f1 += t->f1[c * t->n + i] / (double)t->judge.counted;
        bool texts = t->judge.how == CGAM_ANSWER_GENERATE;
        json_t *o = cgam_json_object("kind=%s layer=%jd scale=%g accuracy=%g se=%g",
                                     kind_names[one->kind], one->layer, one->scale, s.mean, s.se);
        if (texts) cgam_json_put_real(o, "f1", f1);
        json_array_append_new(list, o);
        cgam_lm_result_row(t->result, 0,
                           (double[]){(double)t->k, one->kind, (double)one->layer, one->scale,
                                      s.mean, s.se, texts ? f1 : (double)NAN});
    }
    cgam_json_put(entry, "inject", list);
}

/* Differences query by query, each with its error. The claims are decided by these. */
static void put_differences(const injection *t, json_t *entry)
{
    static const struct {
        const char *name;
        int of, less;
    } pairs[] = {{"best_zero", BEST, ZERO},
                 {"best_icl", BEST, ICL},
                 {"best_readout", BEST, READOUT},
                 {"best_random", BEST, CONTROL + RANDOM},
                 {"best_flipped", BEST, CONTROL + FLIPPED},
                 {"best_other_task", BEST, CONTROL + OTHER_TASK},
                 {"random_zero", CONTROL + RANDOM, ZERO},
                 {"flipped_zero", CONTROL + FLIPPED, ZERO},
                 {"best_own_flipped", BEST, OWN + FLIPPED},
                 {"best_own_other_task", BEST, OWN + OTHER_TASK},
                 {"replace_add", BY_KIND + REPLACE, BY_KIND + ADD}};
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].of == BY_KIND + REPLACE && (t->opts->no_add || t->opts->no_replace)) continue;
        put_share(t, o, pairs[i].name, t->judge.target, marks_of(t, pairs[i].of),
                  marks_of(t, pairs[i].less));
    }
    cgam_json_put(entry, "differences", o);
}

/* A control at its own best cells, chosen in the same way as those of the right vectors. */
static json_t *control_json(const injection *t, int control)
{
    bool *marks = marks_of(t, OWN + control), *by_kind = t->spare;
    json_t *o = json_object();
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == ADD ? t->opts->no_add : t->opts->no_replace) continue;
        cgam_inject_choose(t, null_of(t, control), kind, by_kind);
        json_t *one = json_object();
        put_share(t, one, "held_out", t->judge.target, by_kind, NULL);
        cgam_lm_put_right(t->env, one, "right", t->n, t->judge.target, by_kind);
        cgam_json_put(o, kind_names[kind], one);
    }
    inject_choice c = cgam_inject_choose(t, null_of(t, control), KINDS, marks);
    put_choice(t, o, null_of(t, control), &c, marks);
    return o;
}

void cgam_inject_put(injection *t, const inject_choice *chosen, json_t *entry)
{
    const int32_t *target = t->judge.target;
    json_t *best = json_object(), *kinds = json_object(), *controls = json_object();
    json_t *own = json_object();
    put_share(t, entry, "zero_shot", target, marks_of(t, ZERO), NULL);
    put_share(t, entry, "icl", target, marks_of(t, ICL), NULL);
    put_share(t, entry, "readout", target, marks_of(t, READOUT), NULL);
    cgam_lm_put_right(t->env, entry, "zero_shot_right", t->n, target, marks_of(t, ZERO));
    cgam_lm_put_right(t->env, entry, "icl_right", t->n, target, marks_of(t, ICL));
    cgam_lm_put_right(t->env, entry, "readout_right", t->n, target, marks_of(t, READOUT));
    put_cells(t, entry);
    put_choice(t, best, t->right, chosen, marks_of(t, BEST));
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == ADD ? t->opts->no_add : t->opts->no_replace) continue;
        json_t *o = json_object();
        inject_choice c = cgam_inject_choose(t, t->right, kind, marks_of(t, BY_KIND + kind));
        put_choice(t, o, t->right, &c, marks_of(t, BY_KIND + kind));
        cgam_json_put(kinds, kind_names[kind], o);
    }
    for (int i = 0; i < CONTROLS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_right", control_names[i]);
        put_share(t, controls, control_names[i], target, marks_of(t, CONTROL + i), NULL);
        cgam_lm_put_right(t->env, controls, name, t->n, target, marks_of(t, CONTROL + i));
        cgam_json_put(own, control_names[i], control_json(t, i));
    }
    cgam_json_put(controls, "own", own);
    cgam_json_put_text(controls, "other_task_dataset", t->other_name);
    cgam_json_add(entry, "best=%p by_kind=%p controls=%p", best, kinds, controls);
    put_differences(t, entry);
}

/* ---- A suite of tasks ------------------------------------------------------------------------ */
/* One injection after the other, over the shipped tasks or the files of a folder. */

enum { TASKS_MAX = 256 };

typedef struct suite {
    cgam_env *env;
    bool shipped;
    const char *folder;
    char *name[TASKS_MAX];
    int64_t count;
    cgam_lm_study *study; /* of all of them: the model is opened once */
} suite;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static cgam_status add_name(suite *s, const char *name)
{
    if (s->count == TASKS_MAX)
        return cgam_fail(s->env, CGAM_E_ARG, "suite: more than %d tasks", TASKS_MAX);
    s->name[s->count] = cgam_strdup(s->env, name);
    return s->name[s->count++] ? CGAM_OK : cgam_fail_nomem(s->env, "a suite");
}

static cgam_status list_tasks(suite *s, const char *words)
{
    cgam_status status = CGAM_OK;
    s->shipped = strcmp(words, "shipped") == 0;
    s->folder = words;
    for (int i = 0; s->shipped && cgam_dataset_tasks[i] && status == CGAM_OK; i++)
        status = add_name(s, cgam_dataset_tasks[i]);
    if (s->shipped) return status;
    DIR *dir = opendir(words);
    if (!dir)
        return cgam_fail(s->env, CGAM_E_NOT_FOUND, "suite: %s is not shipped and not a folder",
                         cgam_path_tail(words));
    for (const struct dirent *one = readdir(dir); one && status == CGAM_OK; one = readdir(dir))
        if (one->d_name[0] != '.' && cgam_path_ends(one->d_name, ".json"))
            status = add_name(s, one->d_name);
    closedir(dir);
    if (status == CGAM_OK && s->count == 0)
        status =
            cgam_fail(s->env, CGAM_E_NOT_FOUND, "suite: no .json in %s", cgam_path_tail(words));
    if (s->count > 0) qsort(s->name, (size_t)s->count, sizeof *s->name, by_name);
    return status;
}

/* The first task that can be opened opens the study; the study then switches to the others. */
static cgam_status run_task(suite *s, int64_t i, cgam_lm_study_opts opts,
                            const cgam_lm_inject_opts *inject, cgam_lm_result **out)
{
    char path[CGAM_PATH_ROOM];
    cgam_status status = CGAM_OK;
    *out = NULL;
    if (s->shipped) opts.dataset = s->name[i];
    else {
        status = cgam_path_join(s->env, s->folder, s->name[i], path);
        opts.eval = path;
        opts.format = "pairs";
    }
    if (status == CGAM_OK)
        status = s->study ? cgam_lm_study_turn(s->study, &opts)
                          : cgam_lm_study_open(s->env, &opts, &s->study);
    return status == CGAM_OK ? cgam_lm_inject(s->study, inject, out) : status;
}

#define COLUMNS                                                                                    \
    "task,shots,queries,zero_shot,zero_shot_se,icl,icl_se,readout,readout_se,add,add_se,replace,"  \
    "replace_se,recovered,recovered_se"
/* Their places in the document of an injection, after the task. */
static const char paths[] =
    "k,queries,zero_shot,zero_shot_se,icl,icl_se,readout,readout_se,by_kind.add.held_out,"
    "by_kind.add.held_out_se,by_kind.replace.held_out,by_kind.replace.held_out_se,best.recovered,"
    "best.recovered_se";
enum { PATHS = 14 };

static void put_rows(cgam_lm_result *r, int64_t task, const json_t *doc)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(doc, "shots"), i, entry)
    {
        double row[1 + PATHS] = {(double)task};
        const char *at = paths;
        for (int p = 1; p <= PATHS; p++, at += strcspn(at, ",") + 1) {
            char path[64];
            snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ","), at);
            row[p] = cgam_json_get_real(entry, path);
        }
        cgam_lm_result_row(r, 0, row);
    }
}

cgam_status cgam_lm_inject_suite(cgam_env *env, const cgam_lm_study_opts *study, const char *words,
                                 const cgam_lm_inject_opts *opts, cgam_lm_result **out)
{
    suite s = {.env = env};
    cgam_lm_study_opts o = study ? *study : cgam_lm_study_opts_default();
    *out = NULL;
    if (o.dataset || o.eval || o.train)
        return cgam_fail(env, CGAM_E_ARG, "give suite or data, not both");
    cgam_lm_result *r;
    cgam_status status = cgam_lm_result_empty(env, &r);
    if (status != CGAM_OK) return status;
    cgam_lm_result_add(r, "suite", "every task and number of shots", COLUMNS);
    json_t *tasks = json_array();
    status = list_tasks(&s, words);
    int64_t asked = 0;
    for (int64_t i = 0; i < s.count && status == CGAM_OK; i++) {
        cgam_lm_result *one = NULL;
        json_t *task = json_object();
        status = run_task(&s, i, o, opts, &one);
        cgam_json_put_text(task, "task", s.name[i]);
        if (one) {
            json_object_update(task, one->doc);
            put_rows(r, i, one->doc);
            asked++;
        } else if (status == CGAM_E_ARG) { /* this task has no such answers; others may */
            cgam_json_put_text(task, "reason", cgam_env_message(env));
            bool none = asked == 0 && i + 1 == s.count; /* that is the error then */
            if (!none) status = CGAM_OK;
        }
        json_array_append_new(tasks, task);
        cgam_lm_result_free(one);
    }
    cgam_json_add(r->doc, "suite=%s answer=%s tasks=%p", words,
                  cgam_lm_answer_name(opts ? opts->answer : CGAM_ANSWER_FIRST), tasks);
    for (int64_t i = 0; i < s.count; i++) cgam_free(env, s.name[i]);
    cgam_lm_study_close(s.study);
    return cgam_lm_result_end(r, status, out);
}
