/* vector_make.c: vectors from data: the mean effect of demonstrations, and contrasts of texts. */
#include "lab/language/vector_make.h"
#include "base/blas.h"
#include "lab/language/dataset.h"
#include "lab/language/study.h"
#include "lab/names.h"
#include "lm/collect.h"
#include "lm/model.h"
#include "lm/vector.h"

cgam_status cgam_vector_effect(cgam_lm_study *study, cgam_vector **out)
{
    int64_t k = study->shots[study->n_shots - 1], rows = study->info.layers + 1;
    float *zero = NULL, *icl = NULL;
    cgam_vector *v = NULL;
    *out = NULL;
    if (k == 0)
        return cgam_fail(study->env, CGAM_E_ARG, "shots: a vector needs at least 1 demonstration");
    cgam_status status = cgam_lm_states(study, &study->task, 0, CGAM_DEMOS_TRUE, &zero);
    if (status == CGAM_OK) status = cgam_lm_states(study, &study->task, k, CGAM_DEMOS_TRUE, &icl);
    if (status == CGAM_OK) status = cgam_vector_new(study->env, rows, study->info.width, NULL, &v);
    for (int64_t l = 0; l < rows && status == CGAM_OK; l++)
        cgam_baseline_shift(study->task.queries, rows, v->width, icl, zero, l, 2,
                            v->data + l * v->width);
    cgam_free_all(study->env, zero, icl);
    if (status == CGAM_OK) *out = v;
    return status;
}

cgam_contrast_opts cgam_contrast_opts_default(void)
{
    return (cgam_contrast_opts){.collect = cgam_collect_opts_default()};
}

/* The states of both texts of every pair [2 pairs, rows, width]: the text's, then its opposite's. */
static cgam_status run_pairs(cgam_lm *lm, const cgam_dataset *set, const cgam_contrast_opts *o,
                             float *states)
{
    cgam_env *env = cgam_lm_env(lm);
    int64_t n = 2 * set->examples;
    const char **texts;
    cgam_lm_prompt *prompts;
    cgam_status status = cgam_alloc_all(env, "the texts of a contrast", CGAM_ZEROS(texts, n),
                                        CGAM_ZEROS(prompts, n));
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        cgam_example e = set->example[i / 2];
        int32_t *tokens;
        texts[i] = i % 2 ? set->label[e.label].word : e.text;
        status = cgam_lm_tokenize(lm, texts[i], true, &tokens, &prompts[i].count);
        prompts[i].tokens = tokens;
    }
    if (status == CGAM_OK)
        status = cgam_lm_collect(lm, o->store, n, prompts, texts, &o->collect, states, NULL);
    for (int64_t i = 0; i < n && prompts; i++)
        cgam_lm_tokens_free(lm, (void *)(uintptr_t)prompts[i].tokens);
    cgam_free_all(env, texts, prompts);
    return status;
}

cgam_status cgam_vector_contrast_file(cgam_lm *lm, const char *path, const cgam_contrast_opts *opts,
                                      cgam_vector **out, int64_t *pairs)
{
    cgam_contrast_opts o = opts ? *opts : cgam_contrast_opts_default();
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    cgam_dataset *set;
    *out = NULL;
    cgam_status status = cgam_dataset_open(env, "facts", path, NULL, &set);
    if (status != CGAM_OK) return status;
    int64_t n = set->examples, one = (info.layers + 1) * info.width;
    float *states = cgam_alloc(env, (size_t)(2 * n * one), sizeof *states);
    status = states ? run_pairs(lm, set, &o, states) : cgam_fail_nomem(env, "states");
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) /* in place: the differences */
        for (int64_t j = 0; j < one; j++)
            states[i * one + j] = states[2 * i * one + j] - states[(2 * i + 1) * one + j];
    if (status == CGAM_OK)
        status = cgam_vector_contrast(env, n, info.layers + 1, info.width, states, o.kind, out);
    if (pairs) *pairs = n;
    cgam_free(env, states);
    cgam_dataset_close(set);
    return status;
}
