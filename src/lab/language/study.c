/* study.c: model, data, store and lens, opened once for any number of experiments. */
#include "lab/language/study.h"
#include "lab/language/fit.h"
#include "lab/language/study_sweep.h"
#include "lab/names.h"
#include "lm/collect.h"
#include "lm/model.h"

#include <string.h>

CGAM_NAMES(cgam_lm_part, cgam_lm_part, "neff", "sweep", "steer", "probe", "inject", "gates", "fit")

/* ---- Progress -------------------------------------------------------------------------------- */
/* The work of a whole study, so that its progress can be shown as one share.
 *
 * Work is counted in tokens that the model has yet to run. Scoring a state over the vocabulary multiplies
 * by vocab x width numbers, a token by all parameters, so a state counts as that fraction of a token. Prompts
 * shared by parts are run once if there is a store, otherwise again by each part. */

/* ---- Work in hand -------------------------------------------------------------------------- */
/* What so many states cost to read, in tokens. */
static double reading_work(const cgam_lm_study *study, double states)
{
    const cgam_lm_info *m = &study->info;
    return states * (double)m->vocab * (double)m->width /
           (double)(m->parameters > 0 ? m->parameters : 1);
}

void cgam_lm_work_begin(cgam_lm_study *study, double work)
{
    study->plan.done += study->plan.now;
    study->plan.now = work;
}

void cgam_lm_work_readings(cgam_lm_study *study, double states)
{
    cgam_lm_work_begin(study, reading_work(study, states));
}

void cgam_lm_work_tell(cgam_lm_study *study, const char *what, int64_t done, int64_t total)
{
    cgam_progress_count(&study->progress, what, done, total, "layers");
}

static uint64_t states_key(const cgam_lm_task *task, int64_t k, cgam_demos demos)
{
    char text[sizeof task->source + 40];
    snprintf(text, sizeof text, "%s %lld %d", task->source, (long long)k, (int)demos);
    return cgam_hash(CGAM_HASH, text, strlen(text));
}

void cgam_lm_work_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                         cgam_demos demos)
{
    uint64_t key = states_key(task, k, demos);
    double work = 0;
    for (int i = 0; i < study->plan.count; i++) {
        if (study->plan.run[i].key != key || study->plan.run[i].begun) continue;
        work = study->plan.run[i].work;
        study->plan.run[i].begun = true;
        break;
    }
    cgam_lm_work_begin(study, work);
}

/* Adds the share of the whole study to the progress, if there is a plan. */
static void share_of_all(const cgam_lm_study *study, cgam_progress_at *at)
{
    const cgam_lm_plan *p = &study->plan;
    double turns = study->turns > 0 ? (double)study->turns : 1;
    double part = at->total > 0 ? at->done / at->total : 0;
    if (p->total <= 0) return;
    double share = (p->done + p->now * (part < 1 ? part : 1)) / p->total;
    at->all_done = ((double)study->turn + (share < 1 ? share : 1)) / turns;
    at->all_total = 1;
}

/* ---- All of it ----------------------------------------------------------------------------- */
static cgam_status add_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                              cgam_demos demos)
{
    cgam_lm_plan *p = &study->plan;
    uint64_t key = states_key(task, k, demos);
    double work = 0;
    bool known = false; /* the store will have them by then */
    if (p->count == CGAM_PLAN_MAX) return CGAM_OK;
    for (int i = 0; i < p->count && study->store; i++) known = known || p->run[i].key == key;
    cgam_status status = known ? CGAM_OK : cgam_lm_states_work(study, task, k, demos, &work);
    p->run[p->count].key = key;
    p->run[p->count++].work = work;
    p->total += work;
    return status;
}

static cgam_status plan_shots(cgam_lm_study *study, const cgam_lm_task *task, cgam_demos demos)
{
    cgam_status status = CGAM_OK;
    for (int64_t i = demos == CGAM_DEMOS_TRUE ? 0 : 1; i < study->n_shots && status == CGAM_OK; i++)
        status = add_states(study, task, study->shots[i], demos);
    return status;
}

/* Right and wrong demonstrations, and the other task, a control. */
static cgam_status plan_controls(cgam_lm_study *study, bool inject)
{
    cgam_status status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
    if (status == CGAM_OK) status = plan_shots(study, &study->task, CGAM_DEMOS_FLIPPED);
    for (int64_t i = 1; i < study->n_shots && status == CGAM_OK; i++) {
        cgam_lm_task other;
        status = cgam_lm_other_task(study, inject, study->shots[i], &other);
        if (status == CGAM_OK) status = add_states(study, &other, 0, CGAM_DEMOS_TRUE);
        if (status == CGAM_OK) status = add_states(study, &other, study->shots[i], CGAM_DEMOS_TRUE);
        cgam_lm_task_close(study->env, &other);
        if (inject) study->plan.total += cgam_lm_inject_work(study);
    }
    return status;
}

static cgam_status plan_facts(cgam_lm_study *study, const cgam_lm_task *facts)
{
    cgam_status status = CGAM_OK;
    for (int demos = CGAM_DEMOS_TRUE; demos <= CGAM_DEMOS_FOREIGN && status == CGAM_OK; demos++)
        status = plan_shots(study, facts, demos);
    return status;
}

static cgam_status plan_fit(cgam_lm_study *study)
{
    cgam_status status = add_states(study, &study->task, 0, CGAM_DEMOS_TRUE);
    int64_t most = study->shots[study->n_shots - 1];
    return status == CGAM_OK ? add_states(study, &study->task, most, CGAM_DEMOS_TRUE) : status;
}

static cgam_status plan_part(cgam_lm_study *study, cgam_lm_part part, const cgam_lm_task *facts)
{
    double n = (double)study->task.queries, L = (double)study->info.layers + 1;
    double shots = (double)study->n_shots, states = 0;
    bool classes = !study->task.eval->facts;
    cgam_status status = CGAM_OK;
    switch (part) {
    case CGAM_LM_NEFF:
        states = (CGAM_WORK_NEFF * shots + (classes ? 1 : 2) * (shots - 1)) * n * L; /* nulls */
        status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
        if (status == CGAM_OK) status = plan_shots(study, &study->task, CGAM_DEMOS_FLIPPED);
        if (status == CGAM_OK && !classes)
            status = plan_shots(study, &study->task, CGAM_DEMOS_FOREIGN);
        break;
    case CGAM_LM_SWEEP:
        states = CGAM_WORK_SWEEP * n * (shots - 1) * L;
        status = plan_controls(study, false);
        break;
    case CGAM_LM_STEER:
        states = CGAM_WORK_STEER * (double)facts->queries * (shots - 1) * L;
        status = plan_facts(study, facts);
        break;
    case CGAM_LM_PROBE:
        if (!classes) break;
        states = CGAM_WORK_PROBE * n * (shots + 1) * L; /* the null */
        status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
        break;
    case CGAM_LM_INJECT: status = plan_controls(study, true); break;
    case CGAM_LM_GATES:
        states = cgam_lm_gates_work(study, NULL);
        status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
        break;
    case CGAM_LM_FIT:
        states = CGAM_WORK_FIT * n * L;
        status = plan_fit(study);
        break;
    case CGAM_LM_EXPERIMENTS: break;
    }
    study->plan.total += reading_work(study, states);
    return status;
}

/* Adds up all parts that are not stored, once, if progress is shown; facts: the set for steering. */
static cgam_status plan_parts(cgam_lm_study *study, const cgam_lm_task *facts)
{
    cgam_status status = CGAM_OK;
    size_t size;
    if (!study->told.report || study->plan.total > 0) return CGAM_OK;
    for (int p = 0; p < CGAM_LM_EXPERIMENTS && status == CGAM_OK; p++)
        if (study->parts >> p & 1 && !cgam_kept_bytes(study, cgam_lm_part_name(p), &size))
            status = plan_part(study, p, facts);
    return status;
}

cgam_status cgam_lm_plan_readings(cgam_lm_study *study, double states)
{
    if (!study->told.report || study->plan.total > 0) return CGAM_OK;
    study->plan.total = reading_work(study, states);
    return plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
}

/* ---- The study ---------------------------------------------------------------------------- */
cgam_lm_study_opts cgam_lm_study_opts_default(void)
{
    return (cgam_lm_study_opts){
        .format = "tsv", .relation = "P36", .queries = 200, .seed = 1, .dtype = CGAM_F32};
}

void cgam_lm_study_close(cgam_lm_study *study)
{
    if (!study) return;
    cgam_env *env = study->env;
    cgam_lm_task_close(env, &study->task);
    cgam_store_close(study->store);
    if (!study->borrowed) cgam_lm_close(study->lm);
    cgam_journal_close(study->kept);
    cgam_free(env, study);
}

static cgam_status read_shots(cgam_lm_study *study, const cgam_lm_study_opts *opts)
{
    static const int64_t usual[] = {0, 1, 4};
    const int64_t *given = opts->shots_count > 0 ? opts->shots : usual;
    int64_t n = opts->shots_count > 0 ? opts->shots_count : 3;
    study->shots[study->n_shots++] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = study->n_shots, *to = study->shots;
        if (given[i] < 0)
            return cgam_fail(study->env, CGAM_E_ARG, "shots: %lld is negative",
                             (long long)given[i]);
        while (to[at - 1] > given[i]) at--;
        if (to[at - 1] == given[i]) continue;
        if (study->n_shots == CGAM_SHOTS_MAX)
            return cgam_fail(study->env, CGAM_E_ARG, "shots: at most %d numbers",
                             CGAM_SHOTS_MAX - 1);
        memmove(to + at + 1, to + at, (size_t)(study->n_shots++ - at) * sizeof *to);
        to[at] = given[i];
    }
    return CGAM_OK;
}

/* Prefixes messages of progress with the part of the study and the prompts. */
static void report_progress(void *user, const cgam_progress_at *at)
{
    cgam_lm_study *study = user;
    char phase[sizeof study->part + sizeof study->doing + 60];
    cgam_progress_at named = *at;
    snprintf(phase, sizeof phase, "%s%s%.60s", study->part, study->doing, at->phase);
    named.phase = phase;
    share_of_all(study, &named);
    study->told.report(study->told.user, &named);
}

cgam_status cgam_lm_study_open(cgam_env *env, const cgam_lm_study_opts *opts, cgam_lm_study **out)
{
    cgam_lm_study_opts o = opts ? *opts : cgam_lm_study_opts_default();
    *out = NULL;
    cgam_lm_study *study = cgam_zalloc(env, 1, sizeof *study);
    if (!study) return cgam_fail_nomem(env, "a study");
    study->env = env;
    study->queries = o.queries;
    study->shared = o.shared;
    study->order = o.order;
    study->seed = o.seed;
    study->exact = o.exact;
    study->chat = o.chat;
    study->all_tokens = o.all_tokens;
    study->answer_given = o.answer_given;
    study->answer = o.answer;
    study->dtype = o.dtype;
    study->told = o.progress;
    study->turn = o.turn;
    study->turns = o.turns;
    study->parts =
        o.parts ? o.parts & ((1U << CGAM_LM_EXPERIMENTS) - 1) : (1U << CGAM_LM_PARTS) - 1;
    if (o.progress.report) study->progress = (cgam_progress){report_progress, study};
    cgam_status status = read_shots(study, &o);
    if (status == CGAM_OK) status = cgam_lm_task_open(study, &o);
    study->lm = o.lm;
    study->borrowed = o.lm != NULL;
    if (status == CGAM_OK && !o.lm) status = cgam_lm_open(env, o.model, &study->lm);
    if (status == CGAM_OK) study->info = cgam_lm_describe(study->lm);
    if (status == CGAM_OK && o.store) status = cgam_store_open(env, o.store, true, &study->store);
    if (status == CGAM_OK && o.resume) status = cgam_kept_open(study, o.resume);
    if (status == CGAM_OK) *out = study;
    else cgam_lm_study_close(study);
    return status;
}

cgam_status cgam_lm_study_turn(cgam_lm_study *study, const cgam_lm_study_opts *opts)
{
    cgam_lm_task_close(study->env, &study->task);
    return cgam_lm_task_open(study, opts);
}

cgam_status cgam_lm_study_lens(cgam_lm_study *study, const cgam_lens **out)
{
    cgam_status status = cgam_lm_lens(study->lm, &study->lens);
    *out = study->lens;
    return status;
}

cgam_status cgam_lm_study_capture(cgam_lm_study *study, cgam_lm_result **out)
{
    cgam_lm_result *r;
    *out = NULL;
    cgam_status status = cgam_lm_result_new(study, &r);
    if (status != CGAM_OK) return status;
    json_t *shots = json_array();
    for (int64_t i = 0; i < study->n_shots && status == CGAM_OK; i++) {
        status = cgam_lm_states(study, &study->task, study->shots[i], CGAM_DEMOS_TRUE, NULL);
        json_array_append_new(shots, json_integer(study->shots[i]));
    }
    cgam_lm_result_describe(r, study, &study->task);
    cgam_json_put(r->doc, "shots", shots);
    return cgam_lm_result_end(r, status, out);
}

/* ---- The whole study ---------------------------------------------------------------------- */
/* Steering, or the plan of all parts, on the study's own facts or the shipped ones. */
static cgam_status steer_or_plan(cgam_lm_study *study, bool plan, cgam_lm_result **out)
{
    cgam_lm_task shipped = {0};
    bool own = study->task.eval->facts;
    cgam_lm_task *facts = own ? &study->task : &shipped;
    cgam_status status = own ? CGAM_OK
                             : cgam_lm_task_shipped(study, "facts", study->queries,
                                                    study->shots[study->n_shots - 1], &shipped);
    if (status == CGAM_OK)
        status = plan ? plan_parts(study, facts) : cgam_lm_steer(study, facts, NULL, out);
    cgam_lm_task_close(study->env, &shipped);
    return status;
}

/* Which of how many parts. */
static void name_part(cgam_lm_study *study, cgam_lm_part part)
{
    int before = 0, all = 0;
    for (int p = 0; p < CGAM_LM_EXPERIMENTS; p++) {
        all += study->parts >> p & 1;
        before += p < (int)part && study->parts >> p & 1;
    }
    if (study->parts >> part & 1)
        snprintf(study->part, sizeof study->part, "%s %d/%d: ", cgam_lm_part_name(part), before + 1,
                 all);
}

cgam_status cgam_lm_study_answer(cgam_lm_study *study, cgam_lm_answer *out)
{
    cgam_status status = cgam_lm_task_label(study, &study->task);
    *out = cgam_lm_task_answer(&study->task);
    return status;
}

static cgam_status inject_defaults(cgam_lm_study *study, cgam_lm_result **out)
{
    cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
    cgam_status status = cgam_lm_study_answer(study, &opts.answer);
    return status == CGAM_OK ? cgam_lm_inject(study, &opts, out) : status;
}

static cgam_status run_part(cgam_lm_study *study, cgam_lm_part part, cgam_lm_result **out)
{
    switch (part) {
    case CGAM_LM_NEFF: return cgam_lm_neff(study, NULL, out);
    case CGAM_LM_SWEEP: return cgam_lm_sweep(study, NULL, out);
    case CGAM_LM_STEER: return steer_or_plan(study, false, out);
    case CGAM_LM_PROBE: return study->task.eval->facts ? CGAM_OK : cgam_lm_probe(study, out);
    case CGAM_LM_INJECT: return inject_defaults(study, out);
    case CGAM_LM_GATES: return cgam_lm_gates(study, NULL, out);
    case CGAM_LM_FIT: return cgam_lm_fit(study, NULL, out);
    case CGAM_LM_EXPERIMENTS: break;
    }
    return cgam_fail(study->env, CGAM_E_ARG, "invalid study part %d", (int)part);
}

cgam_status cgam_lm_study_part(cgam_lm_study *study, cgam_lm_part part, cgam_lm_result **out)
{
    const char *key = part < CGAM_LM_EXPERIMENTS ? cgam_lm_part_name(part) : "";
    cgam_status status = cgam_kept_result(study, key, out);
    if (status != CGAM_OK || *out) return status;
    status = study->told.report ? steer_or_plan(study, true, NULL) : CGAM_OK;
    if (status != CGAM_OK) return status;
    if (part < CGAM_LM_EXPERIMENTS) name_part(study, part);
    status = run_part(study, part, out);
    if (status == CGAM_OK && *out) status = cgam_kept_add_result(study, key, *out);
    if (status != CGAM_OK) {
        cgam_lm_result_free(*out);
        *out = NULL;
    }
    return status;
}
