/* inject_suite.c: one injection after the other, over the shipped tasks or the files of a folder. */
#include "io/folder.h"
#include "lm/study.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        return cgam_fail(s->env, CGAM_E_NOT_FOUND, "suite: %s is neither shipped nor a folder",
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

/* The first task that can be opened opens the study; the others are turned to. */
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
static const char *const paths[] = {"k",
                                    "queries",
                                    "zero_shot",
                                    "zero_shot_se",
                                    "icl",
                                    "icl_se",
                                    "readout",
                                    "readout_se",
                                    "by_kind.add.held_out",
                                    "by_kind.add.held_out_se",
                                    "by_kind.replace.held_out",
                                    "by_kind.replace.held_out_se",
                                    "best.recovered",
                                    "best.recovered_se"};
enum { PATHS = sizeof paths / sizeof *paths };

static void put_rows(cgam_lm_result *r, int64_t task, const json_t *doc)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(doc, "shots"), i, entry)
    {
        double row[PATHS + 1] = {(double)task};
        for (int p = 0; p < PATHS; p++) {
            const json_t *value = cgam_json_at(entry, paths[p]);
            row[p + 1] = json_is_number(value) ? json_number_value(value) : (double)NAN;
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
        return cgam_fail(env, CGAM_E_ARG, "suite and data exclude each other");
    cgam_lm_result *r = cgam_zalloc(env, 1, sizeof *r);
    if (!r) return cgam_fail_nomem(env, "a result");
    r->env = env;
    r->doc = json_object();
    cgam_lm_result_add(r, "suite", "every task and number of shots", COLUMNS);
    json_t *tasks = json_array();
    cgam_status status = list_tasks(&s, words);
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
        } else if (status == CGAM_E_ARG) { /* this task cannot be asked so; others may */
            cgam_json_put_text(task, "reason", cgam_env_message(env));
            bool none = asked == 0 && i + 1 == s.count; /* that is the error then */
            if (!none) status = CGAM_OK;
        }
        json_array_append_new(tasks, task);
        cgam_lm_result_free(one);
    }
    cgam_json_put_text(r->doc, "suite", words);
    cgam_json_put_text(r->doc, "answer",
                       cgam_lm_answer_name(opts ? opts->answer : CGAM_ANSWER_FIRST));
    cgam_json_put(r->doc, "tasks", tasks);
    for (int64_t i = 0; i < s.count; i++) cgam_free(env, s.name[i]);
    cgam_lm_study_close(s.study);
    return cgam_lm_result_end(r, status, out);
}
