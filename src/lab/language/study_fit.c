/* study_fit.c: projections fitted on captured states and counted on others.
 *
 * All queries of all tasks are in one list, task after task; query i of a task belongs to half i % 2 of it. A
 * fold is the set that is counted, and the rest is fitted on: first the two halves, then the tasks. */
#include "lab/language/fit.h"
#include "lm/lens.h"

#include "io/array.h"
#include "lab/names.h"

#include <string.h>

enum { QUERIES_LEAST = 4 };

CGAM_NAMES(cgam_fit_method, cgam_fit_method, "ridge", "lowrank")

cgam_lm_fit_opts cgam_lm_fit_opts_default(void)
{
    return (cgam_lm_fit_opts){.layer = -1, .rank = 8, .iterations = 20};
}

/* ---- One P -------------------------------------------------------------------------------- */
typedef struct model {
    const cgam_fitting *f;
    cgam_ridge *ridge;
    double *U, *V; /* [rank, d]; NULL: the ridge alone */
    cgam_fit_refined refined;
} model;

static void model_free(model *m)
{
    cgam_ridge_free(m->ridge);
    cgam_free(m->f->env, m->U);
}

/* From rows of pairs, with the states that they belong to. */
static cgam_status model_fit(const cgam_fitting *f, int64_t n, const double *x, const double *y,
                             const float *base, const float *aim, model *m)
{
    int64_t d = f->d, rank = f->opts->rank;
    cgam_ridge_opts opts = {.to_zero = f->opts->from_query};
    *m = (model){.f = f};
    cgam_status status = cgam_ridge_new(f->env, n, d, x, y, &opts, &m->ridge);
    if (!f->lowrank || status != CGAM_OK) return status;
    m->U = cgam_alloc(f->env, (size_t)(2 * rank * d), sizeof *m->U);
    if (!m->U) return cgam_fail_nomem(f->env, "a projection of low rank");
    m->V = m->U + rank * d;
    status = cgam_ridge_truncate(m->ridge, rank, m->U, m->V);
    const cgam_fit_aim towards = {n, base, aim, x};
    if (status == CGAM_OK)
        status =
            cgam_fit_refine(f->lens, &towards, rank, f->opts->iterations, m->U, m->V, &m->refined);
    return status;
}

/* out [n, d] = P x. */
static cgam_status model_apply(const model *m, bool lowrank, int64_t n, const double *x,
                               double *out)
{
    if (!lowrank) return cgam_ridge_apply(m->ridge, n, x, out);
    int64_t d = m->f->d, rank = m->f->opts->rank;
    double *a = cgam_alloc(m->f->env, (size_t)(n * rank), sizeof *a);
    if (!a) return cgam_fail_nomem(m->f->env, "a projection");
    memcpy(out, x, (size_t)(n * d) * sizeof *out);
    cgam_status status =
        cgam_product_run(m->f->env, &(cgam_product){n, rank, d, x, m->V, a, .turned_b = true});
    if (status == CGAM_OK)
        status =
            cgam_product_run(m->f->env, &(cgam_product){n, d, rank, a, m->U, out, .add = true});
    cgam_free(m->f->env, a);
    return status;
}

/* P [d, d] of the method. */
static cgam_status model_matrix(const model *m, double *P)
{
    int64_t d = m->f->d;
    if (!m->f->lowrank) return cgam_ridge_matrix(m->ridge, P);
    for (int64_t i = 0; i < d * d; i++) P[i] = i % (d + 1) == 0;
    return cgam_product_run(m->f->env, &(cgam_product){d, d, m->f->opts->rank, m->U, m->V, P,
                                                       .turned_a = true, .add = true});
}

/* ---- Folds -------------------------------------------------------------------------------- */
/* The rows of the queries inside the fold, or outside it, in order. */
typedef struct rows {
    int64_t n, *of; /* [n] */
    double *x, *y, *out;
    float *base, *aim;
} rows;

static void rows_free(cgam_env *env, rows *r)
{
    cgam_free_all(env, r->of, r->x, r->y, r->out, r->base, r->aim);
}

static cgam_status rows_take(const cgam_fitting *f, const int *fold_of, int fold, bool inside,
                             rows *r)
{
    size_t all = (size_t)(f->n * f->d), d = (size_t)f->d;
    cgam_env *env = f->env;
    *r = (rows){0};
    cgam_status status = cgam_alloc_all(
        env, "pairs", CGAM_ARRAY(r->of, f->n), CGAM_ARRAY(r->x, all), CGAM_ARRAY(r->y, all),
        CGAM_ARRAY(r->out, all), CGAM_ARRAY(r->base, all), CGAM_ARRAY(r->aim, all));
    for (int64_t i = 0; i < f->n && status == CGAM_OK; i++) {
        if ((fold_of && fold_of[i] == fold) != inside) continue;
        size_t to = (size_t)r->n * d, from = (size_t)i * d;
        memcpy(r->x + to, f->x + from, d * sizeof *r->x);
        memcpy(r->y + to, f->y + from, d * sizeof *r->y);
        memcpy(r->base + to, f->base + from, d * sizeof *r->base);
        memcpy(r->aim + to, f->aim + from, d * sizeof *r->aim);
        r->of[r->n++] = i;
    }
    return status;
}

/* made[way] = h + what is in r->out. */
static void scatter_rows(const cgam_fitting *f, const rows *r, int way)
{
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t j = 0; j < f->d; j++)
            f->made[way][r->of[i] * f->d + j] =
                (float)((double)r->base[i * f->d + j] + r->out[i * f->d + j]);
}

/* Gives every query of `test` the mean y of its own task in `train`. */
static void take_means(const cgam_fitting *f, const rows *train, const rows *test)
{
    for (int64_t t = 0; t < f->tasks; t++) {
        int64_t count = 0;
        for (int64_t i = 0; i < train->n; i++)
            count += train->of[i] >= f->first[t] && train->of[i] < f->first[t + 1];
        for (int64_t j = 0; j < f->d; j++) {
            double mean = 0;
            for (int64_t i = 0; i < train->n; i++)
                if (train->of[i] >= f->first[t] && train->of[i] < f->first[t + 1])
                    mean += train->y[i * f->d + j] / (double)count;
            for (int64_t i = 0; i < test->n; i++)
                if (test->of[i] >= f->first[t] && test->of[i] < f->first[t + 1])
                    test->out[i * f->d + j] = mean;
        }
    }
}

static cgam_status apply_random(const model *m, const rows *r)
{
    const cgam_fitting *f = m->f;
    uint64_t seed = f->study->seed;
    double *turned = cgam_alloc(f->env, (size_t)(r->n * f->d), sizeof *turned);
    if (!turned) return cgam_fail_nomem(f->env, "a random projection");
    memcpy(turned, r->x, (size_t)(r->n * f->d) * sizeof *turned);
    cgam_status status = cgam_fit_turn(f->env, seed, true, r->n, f->d, turned);
    if (status == CGAM_OK) status = model_apply(m, f->lowrank, r->n, turned, r->out);
    if (status == CGAM_OK) status = cgam_fit_turn(f->env, seed, false, r->n, f->d, r->out);
    cgam_free(f->env, turned);
    return status;
}

/* States of the fold by P of the others: of every way, or of a task left out. */
static cgam_status run_fold(cgam_fitting *f, const int *fold_of, int fold, bool left_out)
{
    rows train = {0}, test = {0};
    model m = {.f = f};
    cgam_status status = rows_take(f, fold_of, fold, false, &train);
    if (status == CGAM_OK) status = rows_take(f, fold_of, fold, true, &test);
    if (status == CGAM_OK)
        status = model_fit(f, train.n, train.x, train.y, train.base, train.aim, &m);
    for (int low = left_out && f->lowrank; low <= f->lowrank && status == CGAM_OK; low++) {
        int way = left_out ? CGAM_WAY_LEFT_OUT : low ? CGAM_WAY_LOWRANK : CGAM_WAY_RIDGE;
        status = model_apply(&m, low, test.n, test.x, test.out);
        if (status == CGAM_OK) scatter_rows(f, &test, way);
    }
    if (status == CGAM_OK && left_out) f->rho_left_out[fold] = cgam_ridge_rho(m.ridge);
    if (status == CGAM_OK && !left_out) {
        status = model_apply(&m, f->lowrank, train.n, train.x, train.out);
        if (status == CGAM_OK) scatter_rows(f, &train, CGAM_WAY_TRAIN);
        if (status == CGAM_OK) status = apply_random(&m, &test);
        if (status == CGAM_OK) scatter_rows(f, &test, CGAM_WAY_RANDOM);
        take_means(f, &train, &test);
        if (status == CGAM_OK) scatter_rows(f, &test, CGAM_WAY_MEAN);
        if (status == CGAM_OK) f->rho_half[1 - fold] = cgam_ridge_rho(m.ridge);
        f->refined[2 - fold] = m.refined;
    }
    model_free(&m);
    rows_free(f->env, &train);
    rows_free(f->env, &test);
    return status;
}

/* ---- Judging ------------------------------------------------------------------------------ */
static const int32_t *target_of(const cgam_lm_task *task)
{
    return task->answers ? task->answers->target : task->target;
}

/* States of a task after the beginnings of its answers: P x of the prompt is added to each of them. Gives
 * *out, NULL where first tokens are compared; cgam_free. */
static cgam_status make_after(const cgam_fitting *f, int64_t t, int way, float **out)
{
    const cgam_lm_task *task = &f->task[t];
    int64_t d = f->d, each = task->answers ? task->answers->beginnings - 1 : 0;
    *out = NULL;
    if (each == 0) return CGAM_OK;
    *out = cgam_alloc(f->env, (size_t)(task->queries * each * d), sizeof **out);
    if (!*out) return cgam_fail_nomem(f->env, "answers");
    for (int64_t i = 0; i < task->queries; i++)
        for (int64_t b = 0; b < each; b++)
            for (int64_t j = 0; j < d; j++) {
                int64_t at = (i * each + b) * d + j, own = (f->first[t] + i) * d + j;
                float added = f->made[way][own] - f->base[own];
                (*out)[at] =
                    way == CGAM_WAY_ICL ? f->aim_after[t][at] : f->base_after[t][at] + added;
            }
    return CGAM_OK;
}

/* Which queries the states of a way answer rightly. */
static cgam_status judge(cgam_fitting *f, int way)
{
    cgam_status status = CGAM_OK;
    for (int64_t t = 0; t < f->tasks && status == CGAM_OK; t++) {
        const cgam_lm_task *task = &f->task[t];
        bool *right = f->right[way] + f->first[t];
        float *after;
        const cgam_trial trial = cgam_trial_of(f->study, task, f->lens);
        status = make_after(f, t, way, &after);
        const cgam_trial_states states = {f->made[way] + f->first[t] * f->d, after, f->d, NULL};
        if (status == CGAM_OK)
            status = cgam_trial_answers(&trial, &states, (bool *[]){right, right + f->n});
        cgam_free(f->env, after);
    }
    return status;
}

/* x after a layer. */
static void take_layer(cgam_fitting *f, int64_t layer)
{
    for (int64_t i = 0; i < f->n; i++)
        for (int64_t j = 0; j < f->d; j++) {
            int64_t at = (i * f->layers + layer) * f->d + j;
            double zero = (double)f->zero[at];
            f->x[i * f->d + j] = f->opts->from_query ? zero : (double)f->icl[at] - zero;
            f->made[CGAM_WAY_IDENTITY][i * f->d + j] =
                (float)((double)f->base[i * f->d + j] + f->x[i * f->d + j]);
        }
}

/* Both halves, everything that depends on the layer. */
static cgam_status run_layer(cgam_fitting *f, int64_t layer)
{
    take_layer(f, layer);
    cgam_status status = CGAM_OK;
    for (int h = 0; h < 2 && status == CGAM_OK; h++) status = run_fold(f, f->half, h, false);
    for (int way = CGAM_WAY_IDENTITY; way <= CGAM_WAY_MEAN && status == CGAM_OK; way++)
        if (way != CGAM_WAY_LOWRANK || f->lowrank) status = judge(f, way);
    return status;
}

/* ---- Data --------------------------------------------------------------------------------- */
static cgam_status check_task(cgam_fitting *f, const cgam_lm_task *task)
{
    int32_t one = -1;
    bool several = false;
    if (task->queries < QUERIES_LEAST)
        return cgam_fail(f->env, CGAM_E_ARG, "%s: %lld queries are too few for two halves",
                         task->name, (long long)task->queries);
    for (int64_t i = 0; i < task->queries; i++) {
        int32_t label = target_of(task)[i];
        if (label < 0) continue;
        several = several || (one >= 0 && one != label);
        one = label;
    }
    if (one < 0)
        return cgam_fail(f->env, CGAM_E_ARG, "%s: the %lld answers share their first tokens",
                         task->name, (long long)task->queries);
    if (!several)
        return cgam_fail(f->env, CGAM_E_ARG, "%s: all queries have the answer '%s'", task->name,
                         task->eval->label[one].word);
    return CGAM_OK;
}

/* The study's present task becomes the last of ours. */
static cgam_status take_task(cgam_fitting *f)
{
    cgam_lm_study *study = f->study;
    for (int64_t t = 0; t < f->tasks; t++)
        if (strcmp(study->task.source, f->task[t].source) == 0)
            return cgam_fail(f->env, CGAM_E_ARG, "dataset: duplicate %s", study->task.name);
    cgam_status status = cgam_lm_task_label(study, &study->task);
    if (status == CGAM_OK) status = check_task(f, &study->task);
    if (status != CGAM_OK) return status;
    const char *name = cgam_strdup(f->env, study->task.name);
    if (!name) return cgam_fail_nomem(f->env, "a task");
    cgam_lm_task *task = &f->task[f->tasks];
    *task = study->task;
    task->name = name;
    study->task = (cgam_lm_task){0};
    f->n += task->queries;
    f->first[++f->tasks] = f->n;
    return CGAM_OK;
}

/* The last layer of states after beginnings. Gives *out; cgam_free. */
static cgam_status take_after(const cgam_fitting *f, const cgam_lm_task *task, const float *after,
                              float **out)
{
    int64_t count = task->queries * (task->answers->beginnings - 1);
    *out = cgam_alloc(f->env, (size_t)(count * f->d + 1), sizeof **out);
    if (!*out) return cgam_fail_nomem(f->env, "states");
    for (int64_t i = 0; i < count; i++)
        memcpy(*out + i * f->d, after + (i * f->layers + f->layers - 1) * f->d,
               (size_t)f->d * sizeof **out);
    return CGAM_OK;
}

/* States of all tasks with k demonstrations, [n, layers, d], and after beginnings of answers. */
static cgam_status take_states(cgam_fitting *f, int64_t k, float **out, float **out_after)
{
    size_t one = (size_t)(f->layers * f->d);
    float *all = *out = cgam_alloc(f->env, (size_t)f->n * one, sizeof *all), *some;
    if (!all) return cgam_fail_nomem(f->env, "states");
    cgam_status status = CGAM_OK;
    for (int64_t t = 0; t < f->tasks && status == CGAM_OK; t++) {
        const cgam_lm_task *task = &f->task[t];
        const float *after;
        status =
            cgam_answers_states(task->answers, f->study, task, k, CGAM_DEMOS_TRUE, &some, &after);
        if (status != CGAM_OK) break;
        if (task->answers) status = take_after(f, task, after, &out_after[t]);
        memcpy(all + (size_t)f->first[t] * one, some,
               (size_t)f->task[t].queries * one * sizeof *all);
        cgam_free(f->env, some);
    }
    return status;
}

/* What cannot be fitted is found before anything is run. */
static cgam_status take_tasks(cgam_fitting *f)
{
    cgam_status status = take_task(f);
    for (int64_t i = 0; i < f->opts->more_count && status == CGAM_OK; i++) {
        status = cgam_lm_study_turn(f->study, &f->opts->more[i]);
        if (status == CGAM_OK) status = take_task(f);
    }
    if (status == CGAM_OK) status = take_states(f, 0, &f->zero, f->base_after);
    return status == CGAM_OK ? take_states(f, f->k, &f->icl, f->aim_after) : status;
}

/* The study gets its own task back. */
static void free_task_states(cgam_fitting *f)
{
    cgam_lm_study *study = f->study;
    for (int64_t t = 0; t < f->tasks; t++) {
        char *name = (char *)(uintptr_t)f->task[t].name;
        if (t == 0) {
            cgam_lm_task_close(f->env, &study->task);
            snprintf(study->name, sizeof study->name, "%s", name);
            study->task = f->task[0];
            study->task.name = study->name;
        } else cgam_lm_task_close(f->env, &f->task[t]);
        cgam_free(f->env, name);
    }
}

static cgam_status alloc_arrays(cgam_fitting *f)
{
    size_t all = (size_t)(f->n * f->d), n = (size_t)f->n;
    cgam_env *env = f->env;
    cgam_status status = cgam_alloc_all(
        env, "states", CGAM_ARRAY(f->base, all), CGAM_ARRAY(f->aim, all), CGAM_ARRAY(f->x, all),
        CGAM_ARRAY(f->y, all), CGAM_ARRAY(f->target, n), CGAM_ARRAY(f->half, n));
    for (int way = 0; way < CGAM_WAYS_ALL && status == CGAM_OK; way++)
        status = cgam_alloc_all(env, "states", CGAM_ZEROS(f->made[way], all),
                                CGAM_ZEROS(f->right[way], 2 * n));
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < f->n; i++)
        for (int64_t j = 0; j < f->d; j++) {
            int64_t at = (i * f->layers + f->layers - 1) * f->d + j, to = i * f->d + j;
            f->base[to] = f->made[CGAM_WAY_ZERO][to] = f->zero[at];
            f->aim[to] = f->made[CGAM_WAY_ICL][to] = f->icl[at];
            f->y[to] = (double)f->icl[at] - (double)f->zero[at];
        }
    for (int64_t t = 0; t < f->tasks; t++)
        for (int64_t i = f->first[t]; i < f->first[t + 1]; i++) {
            f->target[i] = target_of(&f->task[t])[i - f->first[t]];
            f->half[i] = (int)((i - f->first[t]) % 2);
        }
    return CGAM_OK;
}

static void close_all(cgam_fitting *f)
{
    cgam_free_all(f->env, f->zero, f->icl, f->base, f->aim, f->x, f->y, f->target, f->half);
    for (int t = 0; t < CGAM_FIT_TASKS; t++) {
        cgam_free_all(f->env, f->base_after[t], f->aim_after[t]);
    }
    for (int way = 0; way < CGAM_WAYS_ALL; way++) {
        cgam_free_all(f->env, f->made[way], f->right[way]);
    }
    free_task_states(f);
}

/* ---- The whole ---------------------------------------------------------------------------- */
/* Every layer, the chosen one last, so that what is kept of it stays. */
static cgam_status run_layers(cgam_fitting *f, json_t *doc)
{
    double *row = cgam_alloc(f->env, (size_t)(f->layers * CGAM_CURVE_COLUMNS), sizeof *row);
    cgam_status status = row ? CGAM_OK : cgam_fail_nomem(f->env, "a curve");
    int64_t first = f->opts->no_curve ? f->layers - 1 : 0;
    cgam_lm_work_readings(f->study, CGAM_WORK_FIT * (double)(f->n * (f->layers - first)));
    for (int64_t i = first; i < f->layers && status == CGAM_OK; i++) {
        bool last = i == f->layers - 1; /* more than its row is wanted of it */
        int64_t layer = last ? f->layer : i < f->layer ? i : i + 1;
        double *of = row + layer * CGAM_CURVE_COLUMNS;
        char key[64];
        snprintf(key, sizeof key, "fit %016llx layer %lld", (unsigned long long)f->key,
                 (long long)layer);
        cgam_lm_work_tell(f->study, "fitting", i - first, f->layers - first);
        if (!last && cgam_kept_find(f->study, key, of, CGAM_CURVE_COLUMNS * sizeof *of)) continue;
        status = run_layer(f, layer);
        if (status == CGAM_OK && last) status = judge(f, CGAM_WAY_TRAIN);
        if (status == CGAM_OK) cgam_fit_curve_row(f, layer, of);
        if (status == CGAM_OK && !last)
            status = cgam_kept_add(f->study, key, of, CGAM_CURVE_COLUMNS * sizeof *of);
    }
    if (status == CGAM_OK)
        cgam_lm_work_tell(f->study, "fitting", f->layers - first, f->layers - first);
    for (int64_t l = 0; l < f->layers && status == CGAM_OK; l++)
        if (!f->opts->no_curve || l == f->layer)
            cgam_lm_result_row(f->result, 0, row + l * CGAM_CURVE_COLUMNS);
    json_t *curve = json_object();
    if (status == CGAM_OK)
        cgam_lm_result_put(f->result, 0, f->opts->no_curve ? 1 : f->layers, cgam_curve_heads,
                           curve);
    cgam_json_put(doc, "curve", curve);
    cgam_free(f->env, row);
    return status;
}

static cgam_status run_left_out(cgam_fitting *f)
{
    int *task_of = cgam_alloc(f->env, (size_t)f->n, sizeof *task_of);
    cgam_status status = task_of ? CGAM_OK : cgam_fail_nomem(f->env, "tasks");
    for (int64_t t = 0; t < f->tasks && status == CGAM_OK; t++)
        for (int64_t i = f->first[t]; i < f->first[t + 1]; i++) task_of[i] = (int)t;
    for (int64_t t = 0; t < f->tasks && status == CGAM_OK; t++)
        status = run_fold(f, task_of, (int)t, true);
    cgam_free(f->env, task_of);
    return status == CGAM_OK ? judge(f, CGAM_WAY_LEFT_OUT) : status;
}

static cgam_status save_projection(const cgam_fitting *f, const model *m)
{
    const char *path = f->opts->save;
    int64_t shape[] = {f->d, f->d};
    double *P = cgam_alloc(f->env, (size_t)(f->d * f->d), sizeof *P);
    if (!P) return cgam_fail_nomem(f->env, "a projection");
    cgam_status status = model_matrix(m, P);
    cgam_named_array one = {"P", CGAM_F64, 2, shape, P};
    if (status == CGAM_OK)
        status = cgam_path_ends(path, ".npy") ? cgam_npy_write(f->env, path, CGAM_F64, 2, shape, P)
                                              : cgam_arrays_write(f->env, path, 1, &one);
    cgam_free(f->env, P);
    return status;
}

/* P of all queries. */
static cgam_status run_all(cgam_fitting *f)
{
    model m;
    cgam_status status = model_fit(f, f->n, f->x, f->y, f->base, f->aim, &m);
    if (status == CGAM_OK) f->rho = cgam_ridge_rho(m.ridge);
    f->refined[0] = m.refined;
    if (status == CGAM_OK && f->opts->save) status = save_projection(f, &m);
    model_free(&m);
    return status;
}

static cgam_status check_opts(const cgam_fitting *f)
{
    const cgam_lm_fit_opts *o = f->opts;
    if (f->k == 0)
        return cgam_fail(f->env, CGAM_E_ARG, "shots: a context needs at least 1 demonstration");
    if (o->layer < -1 || o->layer >= f->layers)
        return cgam_fail(f->env, CGAM_E_ARG, "layer: no layer %lld (valid: 0 to %lld)",
                         (long long)o->layer, (long long)f->layers - 1);
    if (f->lowrank && (o->rank < 1 || o->rank > f->d))
        return cgam_fail(f->env, CGAM_E_ARG,
                         "rank is %lld, it must be from 1 to the model's width, %lld",
                         (long long)o->rank, (long long)f->d);
    if (o->more_count >= CGAM_FIT_TASKS)
        return cgam_fail(f->env, CGAM_E_ARG, "dataset: at most %d tasks", CGAM_FIT_TASKS);
    if (o->save && !cgam_path_ends(o->save, ".npy") && !cgam_path_ends(o->save, ".npz") &&
        !cgam_path_ends(o->save, ".safetensors"))
        return cgam_fail(f->env, CGAM_E_ARG, "%s must end in .safetensors, .npz or .npy", o->save);
    if (f->lowrank && !cgam_lens_has_norm(f->lens))
        return cgam_fail(f->env, CGAM_E_UNSUPPORTED,
                         "method lowrank: this model's probabilities are not those of its norm and "
                         "unembedding");
    return CGAM_OK;
}

/* Of all that a layer's row depends on but the study: options and tasks. */
static uint64_t fit_key(const cgam_fitting *f)
{
    const cgam_lm_fit_opts *o = f->opts;
    int64_t of[] = {o->from_query, (int64_t)o->method, f->lowrank ? o->rank : 0,
                    f->lowrank ? o->iterations : 0};
    uint64_t h = cgam_hash(CGAM_HASH, of, sizeof of);
    for (int64_t t = 0; t < f->tasks; t++)
        h = cgam_hash(h, f->task[t].source, strlen(f->task[t].source) + 1);
    return h;
}

cgam_status cgam_lm_fit(cgam_lm_study *study, const cgam_lm_fit_opts *opts, cgam_lm_result **out)
{
    cgam_lm_fit_opts o = opts ? *opts : cgam_lm_fit_opts_default();
    cgam_fitting *f = cgam_zalloc(study->env, 1, sizeof *f);
    *out = NULL;
    if (!f) return cgam_fail_nomem(study->env, "a fit");
    *f = (cgam_fitting){.study = study,
                        .opts = &o,
                        .env = study->env,
                        .layers = study->info.layers + 1,
                        .d = study->info.width,
                        .k = study->shots[study->n_shots - 1],
                        .lowrank = o.method == CGAM_FIT_LOWRANK};
    f->layer = o.layer < 0 ? study->info.layers / 2 : o.layer;
    cgam_status status = cgam_lm_study_lens(study, &f->lens);
    if (status == CGAM_OK) status = check_opts(f);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &f->result);
    if (status != CGAM_OK) {
        cgam_free(study->env, f);
        return status;
    }
    json_t *doc = f->result->doc;
    cgam_lm_result_add(f->result, "fit", "held-out accuracy and R2 of every P, layer by layer",
                       cgam_curve_heads);
    status = take_tasks(f);
    f->key = fit_key(f);
    if (status == CGAM_OK) status = alloc_arrays(f);
    if (status == CGAM_OK) status = judge(f, CGAM_WAY_ZERO);
    if (status == CGAM_OK) status = judge(f, CGAM_WAY_ICL);
    if (status == CGAM_OK) status = run_layers(f, doc);
    if (status == CGAM_OK && f->tasks > 1) status = run_left_out(f);
    if (status == CGAM_OK) status = run_all(f);
    if (status == CGAM_OK) status = cgam_fit_put(f, doc);
    cgam_lm_result *result = f->result;
    close_all(f);
    cgam_free(study->env, f);
    return cgam_lm_result_end(result, status, out);
}
