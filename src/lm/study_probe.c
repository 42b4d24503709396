/* study_probe.c: separability and alignment, layer by layer. */
#include "lm/answers.h"

#include <cgam/probe.h>
#include <math.h>

#define MEASURES "separability,separability_se,alignment,alignment_sd,margin,margin_sd"

static cgam_status add_curve(cgam_lm_study *study, cgam_lm_result *r, int64_t k, json_t *curves)
{
    cgam_env *env = study->env;
    const cgam_lm_task *task = &study->task;
    const int32_t *target = task->answers ? task->answers->target : task->target;
    int64_t L = study->info.layers + 1, d = study->info.width, n = task->queries;
    float *states;
    cgam_status status = cgam_lm_states(study, task, k, CGAM_DEMOS_TRUE, &states);
    double work = cgam_lm_reading_work(study, CGAM_WORK_PROBE * (double)(n * L));
    cgam_lm_work_begin(study, work);
    for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
        double p;
        status = cgam_probe_separability(env, n, d, states + l * d, L * d, target, &p);
        cgam_alignment a = cgam_probe_alignment(study->lens, n, states + l * d, L * d, task->labels,
                                                task->tokens, task->target);
        cgam_lm_result_row(
            r, 0,
            (double[]){(double)k, (double)l, p,
                       sqrt(p * (1 - p) / (double)(task->answers ? n : task->counted)), a.cosine,
                       a.cosine_sd, a.margin, a.margin_sd});
        cgam_lm_work_tell(study, "probing", l + 1, L);
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK) {
        json_t *curve = cgam_lm_curve(curves, k);
        cgam_lm_result_put(r, 0, L, MEASURES, curve);
    }
    cgam_free(env, states);
    return status;
}

cgam_status cgam_lm_probe(cgam_lm_study *study, cgam_lm_result **out)
{
    const cgam_lens *lens;
    cgam_lm_result *r;
    *out = NULL;
    if (cgam_dataset_open_ended(study->task.eval))
        return cgam_fail(study->env, CGAM_E_ARG, "a probe needs classes; %s is a set of facts",
                         study->task.name);
    cgam_status status = cgam_lm_task_label(study, &study->task);
    if (status == CGAM_OK) status = cgam_lm_study_lens(study, &lens);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &r);
    if (status != CGAM_OK) return status;
    json_t *curves = json_array();
    cgam_lm_result_add(r, "probe", "separability and alignment of states, by layer",
                       "shots,layer," MEASURES);
    for (int64_t i = 0; i < study->n_shots && status == CGAM_OK; i++)
        status = add_curve(study, r, study->shots[i], curves);
    cgam_lm_result_describe(r, study, &study->task);
    cgam_json_put(r->doc, "curves", curves);
    return cgam_lm_result_end(r, status, out);
}
