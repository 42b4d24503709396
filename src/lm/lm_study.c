/* lm_study.c: model, data, store and lens, opened once for any number of experiments. */
#include "lm/answers.h"

#include "base/names.h"

#include <cgam/fit.h>
#include <stdlib.h>

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

static int rising(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static cgam_status read_shots(cgam_lm_study *study, const cgam_lm_study_opts *opts)
{
    static const int64_t usual[] = {0, 1, 4};
    const int64_t *given = opts->shots_count > 0 ? opts->shots : usual;
    int64_t n = opts->shots_count > 0 ? opts->shots_count : 3;
    study->shots[study->n_shots++] = 0;
    for (int64_t i = 0; i < n; i++) {
        bool known = false;
        for (int64_t j = 0; j < study->n_shots; j++) known = known || study->shots[j] == given[i];
        if (known) continue;
        if (study->n_shots == CGAM_SHOTS_ROOM)
            return cgam_fail(study->env, CGAM_E_ARG, "shots: at most %d numbers",
                             CGAM_SHOTS_ROOM - 1);
        study->shots[study->n_shots++] = given[i];
    }
    qsort(study->shots, (size_t)study->n_shots, sizeof *study->shots, rising);
    if (study->shots[0] < 0)
        return cgam_fail(study->env, CGAM_E_ARG, "shots: %lld is below 0",
                         (long long)study->shots[0]);
    return CGAM_OK;
}

/* Names the part of the study and the prompts before what is being done to them. */
static void tell(void *user, const cgam_progress_at *at)
{
    cgam_lm_study *study = user;
    char phase[sizeof study->part + sizeof study->doing + 60];
    cgam_progress_at named = *at;
    snprintf(phase, sizeof phase, "%s%s%.60s", study->part, study->doing, at->phase);
    named.phase = phase;
    cgam_lm_work_share(study, &named);
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
    if (o.progress.report) study->progress = (cgam_progress){tell, study};
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

cgam_lm *cgam_lm_study_model(const cgam_lm_study *study) { return study->lm; }

cgam_store *cgam_lm_study_store(const cgam_lm_study *study) { return study->store; }

const cgam_dataset *cgam_lm_study_dataset(const cgam_lm_study *study) { return study->task.eval; }

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
CGAM_NAMES(cgam_lm_part, cgam_lm_part, "neff", "sweep", "steer", "probe", "inject", "gates", "fit")

/* Steering, or the plan of all parts, on the study's own facts or the shipped ones. */
static cgam_status by_facts(cgam_lm_study *study, bool plan, cgam_lm_result **out)
{
    cgam_lm_task shipped = {0};
    bool own = cgam_dataset_open_ended(study->task.eval);
    cgam_lm_task *facts = own ? &study->task : &shipped;
    cgam_status status = own ? CGAM_OK
                             : cgam_lm_task_shipped(study, "facts", study->queries,
                                                    study->shots[study->n_shots - 1], &shipped);
    if (status == CGAM_OK)
        status =
            plan ? cgam_lm_plan_make(study, facts) : cgam_lm_steer_task(study, facts, NULL, out);
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

static cgam_status inject(cgam_lm_study *study, cgam_lm_result **out)
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
    case CGAM_LM_STEER: return by_facts(study, false, out);
    case CGAM_LM_PROBE:
        return cgam_dataset_open_ended(study->task.eval) ? CGAM_OK : cgam_lm_probe(study, out);
    case CGAM_LM_INJECT: return inject(study, out);
    case CGAM_LM_GATES: return cgam_lm_gates(study, NULL, out);
    case CGAM_LM_FIT: return cgam_lm_fit(study, NULL, out);
    case CGAM_LM_EXPERIMENTS: break;
    }
    return cgam_fail(study->env, CGAM_E_ARG, "a study has no part %d", (int)part);
}

cgam_status cgam_lm_study_part(cgam_lm_study *study, cgam_lm_part part, cgam_lm_result **out)
{
    const char *key = part < CGAM_LM_EXPERIMENTS ? cgam_lm_part_name(part) : "";
    cgam_status status = cgam_kept_result(study, key, out);
    if (status != CGAM_OK || *out) return status;
    status = study->told.report ? by_facts(study, true, NULL) : CGAM_OK;
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

cgam_status cgam_lm_study_run(cgam_lm_study *study, cgam_lm_result **out)
{
    cgam_lm_result *all;
    *out = NULL;
    cgam_status status = cgam_lm_result_new(study, &all);
    if (status != CGAM_OK) return status;
    for (int p = 0; p < CGAM_LM_EXPERIMENTS && status == CGAM_OK; p++) {
        if (!(study->parts >> p & 1)) continue;
        cgam_lm_result *one = NULL;
        status = cgam_lm_study_part(study, (cgam_lm_part)p, &one);
        cgam_json_put(all->doc, cgam_lm_part_name(p), one ? json_incref(one->doc) : json_null());
        for (int64_t i = 0; one && i < one->tables; i++, all->tables++) {
            all->table[all->tables] = one->table[i];
            all->cells[all->tables] = one->cells[i];
            all->names[all->tables] = one->names[i];
        }
        if (one) { /* they have moved */
            one->tables = 0;
            all->words[p] = one->words[0];
            one->words[0] = NULL;
        }
        cgam_lm_result_free(one);
    }
    return cgam_lm_result_end(all, status, out);
}
