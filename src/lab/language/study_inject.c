/* study_inject.c: the sweep inside the model.
 *
 * A cell is a kind of edit, a layer and a scale. In every cell each query's prompt without demonstrations is run with its
 * last token edited, twice: with the vector of the other half of the queries, for the reported results, and with that
 * of its own half, for choosing cells. All runs of a query share the tokens before the last, so a cell costs one token.
 * If first tokens are judged, the model's answer without edits is read from the states that the vectors are made of.
 *
 * Vectors of half h after layer l: ADD uses P times the mean over h of (state with demonstrations - state without),
 * REPLACE the state with demonstrations of the next query of h. */
#include "base/rng.h"
#include "lab/language/inject.h"
#include "lm/lens.h"

#include "lab/language/fit.h"
#include <math.h>
#include <string.h>

enum { QUERIES_LEAST = 4 };

/* ---- Vectors ------------------------------------------------------------------------------ */
static void source_free(cgam_env *env, vector_source *s)
{
    cgam_free_all(env, s->with, s->shift);
    *s = (vector_source){0};
}

/* From a task's own queries, whose states without demonstrations are t->zero, or another task's. */
static cgam_status source_fill(const injection *t, const cgam_lm_task *task, cgam_demos demos,
                               vector_source *s)
{
    bool own = task == &t->study->task;
    s->queries = task->queries;
    s->halves = own ? 2 : 1;
    s->shift = cgam_alloc(t->env, (size_t)(2 * t->layers * t->d), sizeof *s->shift);
    if (!s->shift) return cgam_fail_nomem(t->env, "vectors");
    cgam_status status =
        cgam_lm_shifts(t->study, task, own ? t->zero : NULL, t->k, demos, !own, &s->with, s->shift);
    if (status == CGAM_OK && t->P)
        status = cgam_projection_apply(t->env, t->P, t->d, 2 * t->layers, s->shift);
    return status;
}

/* The query of half `half` whose state stands for the demonstrations when query i is asked: the one
 * beside it, or the next one of its own half. */
static int64_t dummy_of(const vector_source *s, int64_t i, int64_t half)
{
    if (s->halves == 1) return i % s->queries;
    int64_t of_half = (s->queries + 1 - half) / 2; /* half, half + 2, .. */
    int64_t rank = i / 2 + (i % 2 == half ? 1 : 0);
    return half + 2 * (rank % of_half);
}

static const float *vector_for(const injection *t, const vector_source *s, const inject_cell *c,
                               int64_t i, int64_t half)
{
    return c->kind == ADD ? s->shift + (2 * c->layer + half) * t->d
                          : s->with + (dummy_of(s, i, half) * t->layers + c->layer) * t->d;
}

/* v / |v| times a norm. */
static void scale_to_norm(float *v, int64_t d, double norm)
{
    double own = cgam_sweep_norm(v, d), factor = own > 0 ? norm / own : 0;
    for (int64_t j = 0; j < d; j++) v[j] = (float)(factor * (double)v[j]);
}

/* The vector of a control in place of `truth`: of the same norm where it is none of demonstrations. */
static void control_vector(const injection *t, int control, const inject_cell *c, int64_t i,
                           int64_t half, float *out)
{
    double norm = cgam_sweep_norm(vector_for(t, &t->truth, c, i, half), t->d);
    if (control == FLIPPED || control == OTHER_TASK) {
        memcpy(out, vector_for(t, control == FLIPPED ? &t->flipped : &t->other, c, i, half),
               (size_t)t->d * sizeof *out);
        return;
    }
    cgam_rng rng = cgam_rng_stream(t->study->seed, (UINT64_C(1) << 59) + (uint64_t)i);
    for (int64_t j = 0; j < t->d; j++)
        out[j] = control == RANDOM ? (float)cgam_rng_normal(&rng) : t->rows[j];
    scale_to_norm(out, t->d, norm);
}

static cgam_status open_other(injection *t)
{
    cgam_lm_task task;
    cgam_status status = cgam_lm_other_task(t->study, true, t->k, &task);
    if (status != CGAM_OK) return status;
    t->other_name = task.name;
    status = source_fill(t, &task, CGAM_DEMOS_TRUE, &t->other);
    cgam_lm_task_close(t->env, &task);
    return status;
}

/* The mean of the rows of the answers' first tokens. */
static cgam_status open_rows(injection *t)
{
    const cgam_lens *lens;
    const cgam_lm_task *task = &t->study->task;
    cgam_status status = cgam_lm_study_lens(t->study, &lens);
    for (int64_t l = 0; l < task->labels && status == CGAM_OK; l++) {
        cgam_lm_tokens word;
        status = cgam_lm_answer_tokens(t->study, task->prompts, task->eval->label[l].word, &word);
        for (int64_t j = 0; j < t->d && status == CGAM_OK; j++)
            t->rows[j] += cgam_lens_row(lens, word.tokens[0])[j] / (float)task->labels;
        cgam_lm_tokens_free(t->study->lm, word.tokens);
    }
    return status;
}

/* ---- Runs --------------------------------------------------------------------------------- */
/* Whether the right token comes first after states [n, layers, d]. */
static cgam_status read_off(injection *t, const cgam_lens *lens, const float *states, bool *right)
{
    cgam_trial trial = cgam_trial_of(t->study, &t->study->task, lens);
    const cgam_trial_states last = {states + (t->layers - 1) * t->d, NULL, t->layers * t->d, NULL};
    int32_t *label, *token;
    trial.answers = NULL;
    trial.target = t->judge.target;
    cgam_status status =
        cgam_alloc_all(t->env, "answers", CGAM_ARRAY(label, t->n), CGAM_ARRAY(token, t->n));
    if (status == CGAM_OK)
        status = cgam_trial_top(&trial, CGAM_LENS_NORM, &last, label, token, right);
    cgam_free_all(t->env, label, token);
    return status;
}

/* Every query with k demonstrations, whose states are these, no edits. */
static cgam_status run_plain(injection *t, int64_t k, const float *states, bool *right)
{
    const cgam_lens *lens;
    cgam_status status = cgam_lm_study_lens(t->study, &lens);
    if (status == CGAM_OK && t->judge.how == CGAM_ANSWER_FIRST && cgam_lens_has_norm(lens))
        return read_off(t, lens, states, right);
    cgam_lm_tokens *tokens = NULL;
    cgam_judge_job *jobs = NULL;
    if (status == CGAM_OK)
        status =
            cgam_alloc_all(t->env, "prompts", CGAM_ZEROS(tokens, t->n), CGAM_ZEROS(jobs, t->n));
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        status = cgam_lm_task_tokens(t->study, &t->study->task, i, k, CGAM_DEMOS_TRUE, &tokens[i]);
        jobs[i] = (cgam_judge_job){.query = i, .prompt = {tokens[i].tokens, tokens[i].count}};
    }
    if (status == CGAM_OK) status = cgam_judge_run(&t->judge, t->n, jobs, right, NULL);
    for (int64_t i = 0; tokens && i < t->n; i++)
        cgam_lm_tokens_free(t->study->lm, tokens[i].tokens);
    cgam_free_all(t->env, tokens, jobs);
    return status;
}

/* Edits of the last tokens of queries, to be run together. */
typedef struct edit_lot {
    int64_t capacity, jobs; /* capacity: a query's edits more than are run at once */
    cgam_lm_edit *edit;     /* [capacity] */
    cgam_judge_job *job;
    int64_t *place; /* where its answer goes */
    bool *right;
    double *f1;
} edit_lot;

static void lot_close(cgam_env *env, edit_lot *r)
{
    cgam_free_all(env, r->edit, r->job, r->place, r->right, r->f1);
}

enum { PLANES = 5 };     /* runs of every cell for all controls */
enum { AT_ONCE = 1024 }; /* edits: some seconds, and full batches in either engine */

static cgam_status lot_open(cgam_env *env, int64_t each, edit_lot *r)
{
    int64_t capacity = AT_ONCE + each;
    *r = (edit_lot){.capacity = capacity};
    return cgam_alloc_all(env, "edits", CGAM_ARRAY(r->edit, capacity), CGAM_ARRAY(r->job, capacity),
                          CGAM_ARRAY(r->place, capacity), CGAM_ZEROS(r->right, capacity),
                          CGAM_ZEROS(r->f1, capacity));
}

/* Query i with v put on its last token. */
static void lot_add(const injection *t, edit_lot *r, int64_t i, const inject_cell *c,
                    const float *v, int64_t place)
{
    cgam_lm_edit *e = &r->edit[r->jobs];
    *e = cgam_lm_edit_default();
    e->layer = c->layer;
    e->kind = c->kind == ADD ? CGAM_LM_ADD : CGAM_LM_REPLACE;
    e->scale = c->scale;
    e->vector = v;
    r->job[r->jobs] = (cgam_judge_job){i, {t->prompt[i].tokens, t->prompt[i].count}, {e, 1}};
    r->place[r->jobs++] = place;
}

/* The answers of a lot, unless an earlier run has them: which it is and all that it depends on. */
static cgam_status lot_judge(injection *t, const char *what, edit_lot *r)
{
    const cgam_lm_inject_opts *o = t->opts;
    char key[160], also[170];
    size_t jobs = (size_t)r->jobs;
    uint64_t cells = CGAM_HASH;
    for (int64_t i = 0; i < r->jobs; i++) {
        const cgam_lm_edit *e = &r->edit[i];
        int64_t of[] = {r->place[i], e->layer, e->kind};
        cells = cgam_hash(cells, of, sizeof of);
        cells = cgam_hash(cells, &e->scale, sizeof e->scale);
    }
    snprintf(key, sizeof key, "inject %s %lld %s %016llx %.80s", what, (long long)t->k,
             cgam_lm_answer_name(o->answer), (unsigned long long)cells,
             o->projection ? o->projection : "");
    snprintf(also, sizeof also, "%s f1", key);
    if (cgam_kept_find(t->study, key, r->right, jobs * sizeof *r->right) &&
        cgam_kept_find(t->study, also, r->f1, jobs * sizeof *r->f1))
        return CGAM_OK;
    cgam_status status = cgam_judge_run(&t->judge, r->jobs, r->job, r->right, r->f1);
    if (status == CGAM_OK) status = cgam_kept_add(t->study, key, r->right, jobs * sizeof *r->right);
    return status == CGAM_OK ? cgam_kept_add(t->study, also, r->f1, jobs * sizeof *r->f1) : status;
}

/* Runs them once there are enough, or `last`: answers to right[place], and to f1[place] below f1_end. */
static cgam_status lot_run(injection *t, const char *what, edit_lot *r, bool last, bool *right,
                           double *f1, int64_t f1_end)
{
    if (r->jobs == 0 || (r->jobs < AT_ONCE && !last)) return CGAM_OK;
    cgam_status status = lot_judge(t, what, r);
    for (int64_t j = 0; j < r->jobs && status == CGAM_OK; j++) {
        right[r->place[j]] = r->right[j];
        if (r->place[j] < f1_end) f1[r->place[j]] = r->f1[j];
    }
    r->jobs = 0;
    return status;
}

double cgam_lm_inject_work(const cgam_lm_study *study)
{
    double cells = KINDS * (double)(study->info.layers + 1);
    return (2 + PLANES) * cells * (double)study->task.queries;
}

/* Runs of every cell for the controls. Only the vector of flipped demonstrations depends on the half that it is made
 * of; of random vectors and of label rows only the length does, and theirs is that of the other half. */
static const int planes_of[CONTROLS] = {
    [RANDOM] = 1, [FLIPPED] = 2, [OTHER_TASK] = 1, [LABEL_ROWS] = 1};

static cgam_status run_cells(injection *t)
{
    edit_lot r;
    int64_t count = 2 * t->n_cells;
    cgam_lm_work_begin(t->study, (double)(count * t->n));
    cgam_status status = lot_open(t->env, count, &r);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        cgam_progress_count(&t->study->progress, "injecting", i, t->n, "queries");
        for (int64_t c = 0; c < count && t->judge.target[i] >= 0; c++) {
            bool own = c >= t->n_cells;
            const inject_cell *one = &t->cells[own ? c - t->n_cells : c];
            lot_add(t, &r, i, one, vector_for(t, &t->truth, one, i, own ? i % 2 : 1 - i % 2),
                    c * t->n + i);
        }
        status = lot_run(t, "cells", &r, i + 1 == t->n, t->right, t->f1, t->n_cells * t->n);
    }
    lot_close(t->env, &r);
    return status;
}

static cgam_status run_control(injection *t, int control, edit_lot *r, float *buffer)
{
    bool *right = t->null + (int64_t)2 * control * t->n_cells * t->n;
    int64_t count = planes_of[control] * t->n_cells;
    char what[24];
    snprintf(what, sizeof what, "control %d", control);
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        cgam_progress_count(&t->study->progress, "controls", control * t->n + i, CONTROLS * t->n,
                            "queries");
        for (int64_t c = 0; c < count && t->judge.target[i] >= 0; c++) {
            const inject_cell *one = &t->cells[c % t->n_cells];
            float *v = buffer + r->jobs * t->d;
            control_vector(t, control, one, i, c < t->n_cells ? 1 - i % 2 : i % 2, v);
            lot_add(t, r, i, one, v, c * t->n + i);
        }
        status = lot_run(t, what, r, i + 1 == t->n, right, NULL, 0);
    }
    int64_t plane = t->n_cells * t->n;
    if (planes_of[control] == 1) memcpy(right + plane, right, (size_t)plane * sizeof *right);
    return status;
}

/* Every control in every cell; then each at the cells that the right vectors chose. */
static cgam_status run_controls(injection *t, const inject_choice *best)
{
    edit_lot r;
    cgam_lm_work_begin(t->study, (double)(PLANES * t->n_cells * t->n));
    cgam_status status = lot_open(t->env, 2 * t->n_cells, &r);
    float *buffer = cgam_alloc(t->env, (size_t)(r.capacity * t->d), sizeof *buffer);
    if (status == CGAM_OK && !buffer) status = cgam_fail_nomem(t->env, "controls");
    for (int c = 0; c < CONTROLS && status == CGAM_OK; c++) {
        status = run_control(t, c, &r, buffer);
        for (int64_t i = 0; i < t->n; i++)
            marks_of(t, CONTROL + c)[i] = null_of(t, c)[best->cell[1 - i % 2] * t->n + i];
    }
    cgam_free(t->env, buffer);
    lot_close(t->env, &r);
    return status;
}

/* ---- The readout -------------------------------------------------------------------------- */
/* The sweep's additive score with the same contexts and halves: of first tokens over all words, or of
 * whole answers among the task's; of what the model writes, whether each token comes first in its place. */
static cgam_status run_readout(injection *t)
{
    const cgam_lens *lens;
    cgam_sweep *sweep = NULL;
    float *zero = NULL;
    cgam_status status = cgam_lm_study_lens(t->study, &lens);
    if (status != CGAM_OK) return status;
    cgam_trial trial = cgam_trial_of(t->study, &t->study->task, lens);
    trial.answers = t->judge.how == CGAM_ANSWER_FIRST ? NULL : &t->judge.answers;
    trial.target = t->judge.target;
    trial.zero = t->zero;
    if (trial.answers)
        status = cgam_answers_states(trial.answers, t->study, trial.task, 0, CGAM_DEMOS_TRUE, &zero,
                                     &trial.zero_after);
    const cgam_sweep_input in = cgam_trial_input(&trial, true, false);
    cgam_sweep_best best;
    cgam_sweep_over over =
        cgam_lm_answer_whole(t->judge.how) ? CGAM_OVER_LABELS : CGAM_OVER_VOCABULARY;
    if (status == CGAM_OK)
        status = cgam_sweep_new(lens, &in, t->layers, t->truth.shift, &t->study->progress, &sweep);
    if (status == CGAM_OK)
        status = cgam_sweep_choose(sweep, over, 0, t->layers, marks_of(t, READOUT), &best);
    cgam_sweep_free(sweep);
    cgam_free(t->env, zero);
    return status;
}

/* ---- One number of shots ------------------------------------------------------------------ */
static cgam_status add_shots(injection t, int64_t k, json_t *shots)
{
    json_t *entry = json_object();
    t.k = k;
    cgam_status status =
        cgam_alloc_all(t.env, "answers", CGAM_ZEROS(t.right, 2 * t.n_cells * t.n),
                       CGAM_ZEROS(t.null, 2 * CONTROLS * t.n_cells * t.n), CGAM_ZEROS(t.spare, t.n),
                       CGAM_ZEROS(t.f1, t.n_cells * t.n));
    if (status == CGAM_OK) status = source_fill(&t, &t.study->task, CGAM_DEMOS_TRUE, &t.truth);
    if (status == CGAM_OK) status = source_fill(&t, &t.study->task, CGAM_DEMOS_FLIPPED, &t.flipped);
    if (status == CGAM_OK) status = open_other(&t);
    if (status == CGAM_OK) status = run_plain(&t, k, t.truth.with, marks_of(&t, ICL));
    if (status == CGAM_OK) status = run_readout(&t);
    if (status == CGAM_OK) status = run_cells(&t);
    cgam_json_add(entry, "k=%jd queries=%jd left_out=%jd", k, t.judge.counted,
                  t.n - t.judge.counted);
    if (status == CGAM_OK) {
        inject_choice best = cgam_inject_choose(&t, t.right, KINDS, marks_of(&t, BEST));
        status = run_controls(&t, &best);
        if (status == CGAM_OK) cgam_inject_put(&t, &best, entry);
    }
    json_array_append_new(shots, entry);
    source_free(t.env, &t.truth);
    source_free(t.env, &t.flipped);
    source_free(t.env, &t.other);
    cgam_free_all(t.env, t.right, t.null, t.spare, t.f1);
    return status;
}

/* ---- The study ---------------------------------------------------------------------------- */
cgam_lm_inject_opts cgam_lm_inject_opts_default(void)
{
    return (cgam_lm_inject_opts){.answer = CGAM_ANSWER_FIRST};
}

static cgam_status check_study(const injection *t)
{
    const cgam_lm_inject_opts *o = t->opts;
    if (t->study->shots[t->study->n_shots - 1] == 0)
        return cgam_fail(t->env, CGAM_E_ARG, "shots: a vector needs at least 1 demonstration");
    if (t->n < QUERIES_LEAST)
        return cgam_fail(t->env, CGAM_E_ARG, "queries: %lld are too few for two halves",
                         (long long)t->n);
    if (o->no_add && o->no_replace) return cgam_fail(t->env, CGAM_E_ARG, "kinds: empty list");
    for (int64_t i = 0; i < o->layers_count; i++)
        if (o->layers[i] < 0 || o->layers[i] >= t->layers)
            return cgam_fail(t->env, CGAM_E_ARG, "layers: no layer %lld (valid: 0 to %lld)",
                             (long long)o->layers[i], (long long)t->layers - 1);
    for (int64_t i = 0; i < o->scales_count; i++)
        if (!isfinite(o->scales[i]))
            return cgam_fail(t->env, CGAM_E_ARG, "scales: number %lld is %g, it must be finite",
                             (long long)i, o->scales[i]);
    return cgam_lm_task_several(t->study, &t->study->task);
}

static cgam_status make_cells(injection *t)
{
    const cgam_lm_inject_opts *o = t->opts;
    static const double one = 1;
    int64_t layers = o->layers_count > 0 ? o->layers_count : t->layers;
    int64_t scales = o->scales_count > 0 ? o->scales_count : 1;
    const double *scale = o->scales_count > 0 ? o->scales : &one;
    t->cells = cgam_alloc(t->env, (size_t)(KINDS * layers * scales), sizeof *t->cells);
    if (!t->cells) return cgam_fail_nomem(t->env, "cells");
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == ADD ? o->no_add : o->no_replace) continue;
        for (int64_t l = 0; l < layers; l++)
            for (int64_t s = 0; s < scales; s++)
                t->cells[t->n_cells++] =
                    (inject_cell){kind, o->layers_count > 0 ? o->layers[l] : l, scale[s]};
    }
    return CGAM_OK;
}

static cgam_status begin_injection(injection *t)
{
    cgam_status status = cgam_judge_open(t->study, t->opts->answer, &t->judge);
    if (status == CGAM_OK) status = make_cells(t);
    if (status != CGAM_OK) return status;
    status = cgam_alloc_all(t->env, "prompts", CGAM_ZEROS(t->prompt, t->n),
                            CGAM_ZEROS(t->marks, MARKS * t->n), CGAM_ZEROS(t->rows, t->d));
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        status =
            cgam_lm_task_tokens(t->study, &t->study->task, i, 0, CGAM_DEMOS_TRUE, &t->prompt[i]);
    if (status == CGAM_OK) status = open_rows(t);
    if (status == CGAM_OK)
        status = cgam_lm_states(t->study, &t->study->task, 0, CGAM_DEMOS_TRUE, &t->zero);
    if (status == CGAM_OK) status = run_plain(t, 0, t->zero, marks_of(t, ZERO));
    return status;
}

cgam_status cgam_lm_inject(cgam_lm_study *study, const cgam_lm_inject_opts *opts,
                           cgam_lm_result **out)
{
    cgam_lm_inject_opts o = opts ? *opts : cgam_lm_inject_opts_default();
    injection t = {.study = study,
                   .opts = &o,
                   .env = study->env,
                   .n = study->task.queries,
                   .layers = study->info.layers + 1,
                   .d = study->info.width};
    *out = NULL;
    cgam_status status = check_study(&t);
    if (status == CGAM_OK && o.projection)
        status = cgam_projection_read(t.env, o.projection, t.d, &t.P);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &t.result);
    if (status != CGAM_OK) {
        cgam_free(t.env, t.P);
        return status;
    }
    json_t *shots = json_array();
    cgam_lm_result_add(t.result, "inject", "accuracy of every kind, layer and scale",
                       "shots,kind,layer,scale,accuracy,se,f1");
    status = begin_injection(&t);
    for (int64_t i = 1; i < study->n_shots && status == CGAM_OK; i++)
        status = add_shots(t, study->shots[i], shots);
    cgam_lm_result_describe(t.result, study, &study->task);
    cgam_json_add(t.result->doc, "answer=%s projection=%s shots=%p", cgam_lm_answer_name(o.answer),
                  o.projection, shots);
    for (int64_t i = 0; t.prompt && i < t.n; i++)
        cgam_lm_tokens_free(study->lm, t.prompt[i].tokens);
    cgam_free_all(t.env, t.prompt, t.marks, t.rows, t.cells, t.zero);
    cgam_free(t.env, t.P);
    cgam_judge_close(&t.judge);
    return cgam_lm_result_end(t.result, status, out);
}
