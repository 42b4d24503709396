/* models.h: language models for tests. Every test that opens one is skipped, and says so, where
 * libllama is not at hand or cgam was built without its headers. */
#ifndef CGAM_TESTS_MODELS_H
#define CGAM_TESTS_MODELS_H

#include "lm/cache.h"
#include "lm/model.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/tiny_gguf.h"

#include <cgam/lm.h>
#include <unistd.h>

/* `status` is that of a call that opened a model: ends the test as skipped without libllama or the model. */
static inline void need_llama(cgam_env *env, cgam_status status)
{
    if (status == CGAM_E_NOT_FOUND || status == CGAM_E_UNSUPPORTED) {
        print_message("skipped: %s\n", cgam_env_message(env));
        skip();
    }
    CHECK_STATUS(env, status);
}

/* A tiny model; ends the test as skipped without libllama. The file is gone once it is open. */
static inline cgam_lm *model_tiny(cgam_env *env, tiny_shape shape)
{
    const char *path = folder_file("tiny.gguf");
    tiny_write(path, shape);
    cgam_lm *lm = NULL;
    cgam_status status = cgam_lm_open(env, path, &lm);
    unlink(path);
    need_llama(env, status);
    return lm;
}

/* A tiny model as m.gguf in the program's folder; `context` tokens fit. */
static inline const char *model_file(int context)
{
    tiny_shape shape = tiny_shape_default();
    if (context) shape.context = context;
    tiny_write(folder_file("m.gguf"), shape);
    return folder_file("m.gguf");
}

/* Ends the test as skipped unless m.gguf can be opened and CGAM names the program. */
static inline void need_tiny_model(void)
{
    cgam_env *env = NULL;
    cgam_lm *lm = NULL;
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    cgam_status status = cgam_lm_open(env, folder_file("m.gguf"), &lm);
    cgam_lm_close(lm);
    cgam_env_free(env);
    if (status == CGAM_E_NOT_FOUND || status == CGAM_E_UNSUPPORTED || !getenv("CGAM")) {
        print_message("skipped: no libllama, or CGAM does not name the program\n");
        skip();
    }
}

/* The default model; skipped when it is not in the cache. */
static inline cgam_lm *model_default(cgam_env *env)
{
    char path[1024];
    cgam_lm *lm = NULL;
    cgam_status status = cgam_lm_model_path(env, path, sizeof path);
    if (status == CGAM_OK) status = cgam_lm_open(env, path, &lm);
    need_llama(env, status);
    return lm;
}

/* States of some prompts, [count, L + 1, d]; free() them. */
typedef struct model_sheet {
    float *states;
    int64_t one;
    int64_t handed; /* prompts */
    int64_t batches;
} model_sheet;

static inline cgam_status model_keep(void *user, int64_t which, const float *states)
{
    model_sheet *sheet = user;
    for (int64_t i = 0; i < sheet->one; i++) sheet->states[which * sheet->one + i] = states[i];
    sheet->handed++;
    return CGAM_OK;
}

static inline cgam_status model_batch(void *user)
{
    ((model_sheet *)user)->batches++;
    return CGAM_OK;
}

static inline model_sheet model_states(cgam_env *env, cgam_lm *lm, int64_t count,
                                       const cgam_lm_prompt *prompts, cgam_lm_capture_opts opts)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    model_sheet sheet = {.one = (info.layers + 1) * info.width};
    sheet.states = calloc((size_t)(count * sheet.one), sizeof *sheet.states);
    assert_non_null(sheet.states);
    opts.batch_end = model_batch;
    CHECK_STATUS(env, cgam_lm_capture(lm, count, prompts, &opts, model_keep, &sheet));
    assert_int_equal(sheet.handed, count);
    return sheet;
}

/* |a - b| / |b| over n numbers. */
static inline double model_distance(const float *a, const float *b, int64_t n)
{
    double off = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(off / size);
}

/* The log-probability of a token by the scores of all. */
static inline double model_log_p(const float *scores, int64_t vocab, int32_t token)
{
    float top = -INFINITY; /* widened in the loop, gcc 12 for 64-bit Arm breaks down over it */
    double sum = 0;
    for (int64_t m = 0; m < vocab; m++) top = fmaxf(top, scores[m]);
    for (int64_t m = 0; m < vocab; m++) sum += exp((double)scores[m] - (double)top);
    return (double)scores[token] - (double)top - log(sum);
}

#endif
