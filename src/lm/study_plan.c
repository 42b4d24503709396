/* study_plan.c: how much there is to do in a whole study, so that its progress is one share of all.
 *
 * Work is counted in tokens that the model has yet to run. A state read over the vocabulary multiplies
 * by vocab x width numbers where a token takes all parameters, and counts for as much of one. Prompts
 * of different parts are run once where there is a store, and again by each part where there is none. */
#include "lm/study.h"

#include <math.h>
#include <string.h>

/* ---- Work in hand -------------------------------------------------------------------------- */
double cgam_lm_reading_work(const cgam_lm_study *study, double states)
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

void cgam_lm_work_tell(cgam_lm_study *study, const char *what, int64_t done, int64_t total)
{
    cgam_progress_tell(&study->progress, (cgam_progress_at){.phase = what,
                                                            .done = (double)done,
                                                            .total = (double)total,
                                                            .unit = "layers",
                                                            .seconds_left = NAN});
}

static uint64_t key_of(const cgam_lm_task *task, int64_t k, cgam_demos demos)
{
    char text[sizeof task->source + 40];
    snprintf(text, sizeof text, "%s %lld %d", task->source, (long long)k, (int)demos);
    return cgam_hash(CGAM_HASH, text, strlen(text));
}

void cgam_lm_work_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                         cgam_demos demos)
{
    uint64_t key = key_of(task, k, demos);
    double work = 0;
    for (int i = 0; i < study->plan.count; i++) {
        if (study->plan.run[i].key != key || study->plan.run[i].begun) continue;
        work = study->plan.run[i].work;
        study->plan.run[i].begun = true;
        break;
    }
    cgam_lm_work_begin(study, work);
}

void cgam_lm_work_share(const cgam_lm_study *study, cgam_progress_at *at)
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
    uint64_t key = key_of(task, k, demos);
    double work = 0;
    bool known = false; /* the store will have them by then */
    if (p->count == CGAM_PLAN_ROOM) return CGAM_OK;
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

static cgam_status plan_sweep(cgam_lm_study *study)
{
    cgam_status status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
    if (status == CGAM_OK) status = plan_shots(study, &study->task, CGAM_DEMOS_FLIPPED);
    for (int64_t i = 1; i < study->n_shots && status == CGAM_OK; i++) {
        cgam_lm_task other;
        status = cgam_lm_other_task(study, study->shots[i], &other);
        if (status != CGAM_OK) break;
        status = add_states(study, &other, 0, CGAM_DEMOS_TRUE);
        if (status == CGAM_OK) status = add_states(study, &other, study->shots[i], CGAM_DEMOS_TRUE);
        cgam_lm_task_close(study->env, &other);
    }
    return status;
}

static cgam_status plan_inject(cgam_lm_study *study)
{
    cgam_status status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
    if (status == CGAM_OK) status = plan_shots(study, &study->task, CGAM_DEMOS_FLIPPED);
    for (int64_t i = 1; i < study->n_shots && status == CGAM_OK; i++) {
        cgam_lm_task other;
        status = cgam_lm_inject_other(study, study->shots[i], &other);
        if (status == CGAM_OK) status = add_states(study, &other, 0, CGAM_DEMOS_TRUE);
        if (status == CGAM_OK) status = add_states(study, &other, study->shots[i], CGAM_DEMOS_TRUE);
        cgam_lm_task_close(study->env, &other);
        study->plan.total += cgam_lm_inject_work(study);
    }
    return status;
}

static cgam_status plan_facts(cgam_lm_study *study, const cgam_lm_task *facts)
{
    cgam_status status = CGAM_OK;
    for (int demos = CGAM_DEMOS_TRUE; demos <= CGAM_DEMOS_FOREIGN && status == CGAM_OK; demos++)
        status = plan_shots(study, facts, (cgam_demos)demos);
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
    bool classes = !cgam_dataset_open_ended(study->task.eval);
    cgam_status status = CGAM_OK;
    switch (part) {
    case CGAM_LM_NEFF:
        states = CGAM_WORK_NEFF * n * shots * L;
        status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
        break;
    case CGAM_LM_SWEEP:
        states = CGAM_WORK_SWEEP * n * (shots - 1) * L;
        status = plan_sweep(study);
        break;
    case CGAM_LM_STEER:
        states = CGAM_WORK_STEER * (double)facts->queries * (shots - 1) * L;
        status = plan_facts(study, facts);
        break;
    case CGAM_LM_PROBE:
        if (!classes) break;
        states = CGAM_WORK_PROBE * n * shots * L;
        status = plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
        break;
    case CGAM_LM_INJECT: status = plan_inject(study); break;
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
    study->plan.total += cgam_lm_reading_work(study, states);
    return status;
}

cgam_status cgam_lm_plan_make(cgam_lm_study *study, const cgam_lm_task *facts)
{
    cgam_status status = CGAM_OK;
    size_t size;
    if (!study->told.report || study->plan.total > 0) return CGAM_OK;
    for (int p = 0; p < CGAM_LM_EXPERIMENTS && status == CGAM_OK; p++)
        if (study->parts >> p & 1 &&
            !cgam_kept_bytes(study, cgam_lm_part_name((cgam_lm_part)p), &size))
            status = plan_part(study, (cgam_lm_part)p, facts);
    return status;
}

cgam_status cgam_lm_plan_readings(cgam_lm_study *study, double states)
{
    if (!study->told.report || study->plan.total > 0) return CGAM_OK;
    study->plan.total = cgam_lm_reading_work(study, states);
    return plan_shots(study, &study->task, CGAM_DEMOS_TRUE);
}
