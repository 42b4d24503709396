/* vector_make.c: vectors from data: the mean effect of demonstrations, and contrasts of texts. */
#include "base/blas.h"
#include "base/names.h"
#include "lm/dataset.h"
#include "lm/study.h"
#include "lm/vector.h"

#include <cgam/baseline.h>
#include <math.h>
#include <string.h>

CGAM_NAMES(cgam_contrast_kind, cgam_contrast_kind, "mean", "pca")

cgam_status cgam_vector_effect(cgam_lm_study *study, cgam_vector **out)
{
    int64_t k = study->shots[study->n_shots - 1], rows = study->info.layers + 1;
    float *zero = NULL, *icl = NULL;
    cgam_vector *v = NULL;
    *out = NULL;
    if (k == 0)
        return cgam_fail(study->env, CGAM_E_ARG, "shots: a vector needs demonstrations, 1 or more");
    cgam_status status = cgam_lm_states(study, &study->task, 0, CGAM_DEMOS_TRUE, &zero);
    if (status == CGAM_OK) status = cgam_lm_states(study, &study->task, k, CGAM_DEMOS_TRUE, &icl);
    if (status == CGAM_OK) status = cgam_vector_new(study->env, rows, study->info.width, NULL, &v);
    for (int64_t l = 0; l < rows && status == CGAM_OK; l++)
        cgam_baseline_shift(study->task.queries, rows, v->width, icl, zero, l, 2,
                            v->data + l * v->width);
    cgam_free(study->env, zero);
    cgam_free(study->env, icl);
    if (status == CGAM_OK) *out = v;
    return status;
}

/* ---- Contrasts ---------------------------------------------------------------------------- */
/* The first eigenvector u of sum d d' over the rows of D [n, d], in the smaller of the two spaces: u of
 * D'D, or D'w/|D'w| with w that of D D'. B: room for the square of the smaller; w: for its root. */
static cgam_status principal(cgam_env *env, int64_t n, int64_t d, const double *D, double *B,
                             double *w, double *u)
{
    bool dual = n < d;
    int m = (int)(dual ? n : d);
    cblas_dgemm(CblasRowMajor, dual ? CblasNoTrans : CblasTrans, dual ? CblasTrans : CblasNoTrans,
                m, m, (int)(dual ? d : n), 1, D, (int)d, D, (int)d, 0, B, m);
    lapack_int found = 0, support[2];
    double value[1], *vector = dual ? w : u;
    double *values = cgam_alloc(env, (size_t)m, sizeof *values);
    if (!values) return cgam_fail_nomem(env, "eigenvalues");
    lapack_int info = LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', 'I', 'U', m, B, m, 0, 0, m, m, 0,
                                     &found, values, vector, m, support);
    value[0] = values[0];
    cgam_free(env, values);
    if (info != 0 || found != 1)
        return cgam_fail(env, CGAM_E_INTERNAL, "no principal component was found (dsyevr: %d)",
                         (int)info);
    if (dual) {
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)n, (int)d, 1, D, (int)d, w, 1, 0, u, 1);
        double size = cblas_dnrm2((int)d, u, 1);
        cblas_dscal((int)d, size > 0 && value[0] > 0 ? 1 / size : 0, u, 1);
    } else if (!(value[0] > 0)) cblas_dscal((int)d, 0, u, 1);
    return CGAM_OK;
}

typedef struct bench {
    int64_t n, rows, d;
    double *D, *B, *w, *u, *mean;
} bench;

static cgam_status contrast_layer(cgam_env *env, bench *b, const float *differences, int64_t l,
                                  cgam_contrast_kind kind, float *out)
{
    int64_t n = b->n, d = b->d;
    for (int64_t j = 0; j < d; j++) b->mean[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) {
            b->D[i * d + j] = (double)differences[(i * b->rows + l) * d + j];
            b->mean[j] += b->D[i * d + j];
        }
    cblas_dscal((int)d, 1 / (double)n, b->mean, 1);
    const double *from = b->mean;
    double factor = 1;
    if (kind == CGAM_CONTRAST_PCA) {
        cgam_status status = principal(env, n, d, b->D, b->B, b->w, b->u);
        if (status != CGAM_OK) return status;
        double square = 0;
        for (int64_t i = 0; i < n; i++) {
            double along = cblas_ddot((int)d, b->D + i * d, 1, b->u, 1);
            square += along * along;
        }
        factor = copysign(sqrt(square / (double)n), cblas_ddot((int)d, b->mean, 1, b->u, 1));
        from = b->u;
    }
    for (int64_t j = 0; j < d; j++) out[j] = (float)(factor * from[j]);
    return CGAM_OK;
}

cgam_status cgam_vector_contrast(cgam_env *env, int64_t pairs, int64_t rows, int64_t width,
                                 const float *differences, cgam_contrast_kind kind,
                                 cgam_vector **out)
{
    *out = NULL;
    if (pairs < 1) return cgam_fail(env, CGAM_E_ARG, "a contrast needs a pair of texts or more");
    size_t n = (size_t)pairs, d = (size_t)width, m = n < d ? n : d;
    bench b = {.n = pairs, .rows = rows, .d = width};
    cgam_vector *v = NULL;
    cgam_status status = cgam_blas_room(env);
    if (status == CGAM_OK) status = cgam_vector_new(env, rows, width, NULL, &v);
    b.D = cgam_alloc(env, n * d, sizeof *b.D);
    b.B = cgam_alloc(env, kind == CGAM_CONTRAST_PCA ? m * m : 1, sizeof *b.B);
    b.w = cgam_alloc(env, m, sizeof *b.w);
    b.u = cgam_alloc(env, d, sizeof *b.u);
    b.mean = cgam_alloc(env, d, sizeof *b.mean);
    if (status == CGAM_OK && (!b.D || !b.B || !b.w || !b.u || !b.mean))
        status = cgam_fail_nomem(env, "a contrast");
    for (int64_t l = 0; l < rows && status == CGAM_OK; l++)
        status = contrast_layer(env, &b, differences, l, kind, v->data + l * width);
    void *blocks[] = {b.D, b.B, b.w, b.u, b.mean};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    if (status == CGAM_OK) *out = v;
    else cgam_vector_free(v);
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
    int64_t n = 2 * cgam_dataset_size(set);
    const char **texts = cgam_zalloc(env, (size_t)n, sizeof *texts);
    cgam_lm_prompt *prompts = cgam_zalloc(env, (size_t)n, sizeof *prompts);
    cgam_status status =
        texts && prompts ? CGAM_OK : cgam_fail_nomem(env, "the texts of a contrast");
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        cgam_example e = cgam_dataset_example(set, i / 2);
        int32_t *tokens;
        texts[i] = i % 2 ? cgam_dataset_word(set, e.label) : e.text;
        status = cgam_lm_tokenize(lm, texts[i], true, &tokens, &prompts[i].count);
        prompts[i].tokens = tokens;
    }
    if (status == CGAM_OK)
        status = cgam_lm_collect(lm, o->store, n, prompts, texts, &o->collect, states, NULL);
    for (int64_t i = 0; i < n && prompts; i++)
        cgam_lm_tokens_free(lm, (void *)(uintptr_t)prompts[i].tokens);
    cgam_free(env, texts);
    cgam_free(env, prompts);
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
    int64_t n = cgam_dataset_size(set), one = (info.layers + 1) * info.width;
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
