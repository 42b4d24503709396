/* lm.h: language models - hidden states of any GGUF model that libllama runs.
 *
 * libllama is loaded when it is first needed, so a program that never opens a model needs none of
 * it. It is looked for in the directory that CGAM_LLAMA names, where pkg-config found it when cgam
 * was built, and in the user's cache, where `cgam lm get` puts it.
 *
 * Layers are counted l = 0 .. L: 0 is the embedding of the token, l the residual stream after
 * block l, before the final norm.
 */
#ifndef CGAM_LM_H
#define CGAM_LM_H

#include <cgam/base.h>

#include <cgam/bank.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Tokens of a text, with the model's beginning-of-sequence token first if `begin`. Gives *out
 * [*count]; free it with cgam_lm_tokens_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_tokenize(cgam_lm *lm, const char *text, bool begin,
                                                     int32_t **out, int64_t *count);
CGAM_API void cgam_lm_tokens_free(cgam_lm *lm, void *block); /* NULL is fine */
/* The bytes of a token as text into text[size], cut short if need be. */
CGAM_API const char *cgam_lm_piece(const cgam_lm *lm, int32_t token, char *text, size_t size);

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
CGAM_API extern const char *const cgam_lm_where_words[];

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

/* ---- Text that a model writes, token by token, under edits of its residual stream. */

/* How a text ended. */
typedef enum cgam_lm_stop {
    CGAM_LM_STOP_EOS,    /* the model ended it */
    CGAM_LM_STOP_LENGTH, /* max_tokens, or the model's context is full */
    CGAM_LM_STOP_WORD,   /* one of the stop words */
    CGAM_LM_STOP_INTERRUPT
} cgam_lm_stop;
CGAM_API extern const char *const cgam_lm_stop_words[];

typedef struct cgam_lm_token {
    int32_t id;
    double log_p; /* of this token where it was drawn, at temperature 1 and among all words */
    double neff;  /* exp of the entropy of that distribution */
} cgam_lm_token;

typedef struct cgam_lm_generate_opts {
    bool exact;              /* the plain pass; default false */
    int64_t max_tokens;      /* default 64 */
    double temperature;      /* default 0: greedy, ties to the lowest token */
    double top_p;            /* default 1: among all words; at least the most probable one */
    uint64_t seed;           /* default 0 */
    const char *const *stop; /* [stop_count] words that end a text, which is cut before them */
    int64_t stop_count;
    cgam_lm_edits edits; /* of every prompt; default none */
    const cgam_lm_edits
        *edits_each; /* [count prompts] after those, each prompt's own; NULL: none */
    /* Called with each token as it comes, in the order of the prompts; NULL: not. `text` are the
     * bytes that have become certain with it, perhaps none: what may be the beginning of a stop word,
     * or of a letter of several bytes, waits. At the end of a text with token NULL and the rest. */
    cgam_status (*each)(void *user, int64_t which, const cgam_lm_token *token, const char *text);
    void *user;
} cgam_lm_generate_opts;
CGAM_API cgam_lm_generate_opts cgam_lm_generate_opts_default(void);

/* tokens hold all that were drawn, those of a stop word too, but not the one that ended the text. */
typedef struct cgam_lm_text {
    char *text;
    cgam_lm_token *tokens;
    int64_t count;
    cgam_lm_stop stop;
} cgam_lm_text;

/* Continues every prompt; fills out [count], to be freed with cgam_lm_texts_free, also after a
 * failure. An interruption is no failure: out holds what there is. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_generate(cgam_lm *lm, int64_t count,
                                                     const cgam_lm_prompt *prompts,
                                                     const cgam_lm_generate_opts *opts,
                                                     cgam_lm_text *out);
CGAM_API void cgam_lm_texts_free(cgam_lm *lm, int64_t count, cgam_lm_text *texts);

/* ---- What a hidden state says, read through the unembedding. */

/* How a state h becomes scores over the vocabulary, <zeta, x>. */
typedef enum cgam_lens_kind {
    CGAM_LENS_RAW,  /* x = h */
    CGAM_LENS_GAIN, /* x = h, less its mean if the norm is centred, times the final norm's weights:
                       linear in h, and where nothing is added after the norm the argmax of NORM */
    CGAM_LENS_NORM  /* x = the final norm of h: the model's own scores at the last layer */
} cgam_lens_kind;
CGAM_API extern const char *const cgam_lens_words[];

/* A model's unembedding as a bank of memories: rows as they are (RAW) or so that their products with
 * a state are the scores of GAIN; stored as f32, f16 or bf16. Gives *out; free it with
 * cgam_bank_free. The model may be closed before. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_bank(cgam_lm *lm, cgam_lens_kind lens, cgam_dtype dtype,
                                                 cgam_bank **out);

typedef struct cgam_lens cgam_lens;

/* Reads the unembedding and the final norm; keeps neither model nor file. Its scores are compared
 * with libllama's own after one token: a model that does something else to them (scales or caps
 * them) has no NORM lens, and asking for its scores is CGAM_E_UNSUPPORTED. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_new(cgam_lm *lm, cgam_lens **out);

CGAM_API void cgam_lens_free(cgam_lens *lens); /* NULL is fine */

/* ---- The layer x token picture: what every position of a text says after every layer, read
 * through the lens.
 *
 * The final distribution of a position is the model's own, that of its last layer through the final
 * norm. Cells compare with it: KL(final || layer) in nats, and the rank of the final distribution's
 * most probable word. */

typedef struct cgam_lens_word {
    int32_t token;
    double p;
} cgam_lens_word;

typedef struct cgam_lens_cell {
    double neff;     /* exp of the entropy */
    double kl_final; /* in nats; 0 after the last layer with NORM */
    int64_t
        rank_final; /* words that score above the final answer, or the same with a lower index */
} cgam_lens_cell;

typedef struct cgam_lens_view_opts {
    cgam_lens_kind kind; /* NORM (default) or RAW */
    int64_t top;         /* words of each cell; default 5 */
    bool exact;          /* states by the plain pass; default false */
    cgam_progress progress;
} cgam_lens_view_opts;
CGAM_API cgam_lens_view_opts cgam_lens_view_opts_default(void);

typedef struct cgam_lens_view {
    int64_t layers, tokens, top; /* layers: L + 1 */
    int32_t *token;              /* [tokens] */
    cgam_lens_cell *cells;       /* [tokens, layers] */
    cgam_lens_word *words;       /* [tokens, layers, top] */
} cgam_lens_view;

/* The picture of a text, beginning-of-sequence token first. Fills *out; free it with
 * cgam_lens_view_free, which copes with {0}. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_view_make(cgam_lm *lm, const cgam_lens *lens,
                                                        const char *text,
                                                        const cgam_lens_view_opts *opts,
                                                        cgam_lens_view *out);
CGAM_API void cgam_lens_view_free(cgam_env *env, cgam_lens_view *view);

/* ---- Directions in the residual stream, one for each layer, in files and from data.
 *
 * Layers are those of lm.h: l = 0 .. L. A layer that a file says nothing of has zeros. Files:
 *   .gguf         llama.cpp's control vectors, as repeng and cvector-generator write them too:
 *                 direction.k is added after block k counted from 0, so it is layer k + 1. What is
 *                 written begins with direction.1; layers 0 and 1 have no place in this form
 *   .npy          (layers + 1, width)
 *   .safetensors  an array `vectors` (layers + 1, width); the only array of a file is read whatever
 *                 its name
 * Magnitudes are kept. */

typedef struct cgam_vector cgam_vector;

/* Copies data [rows, width], row l for layer l; NULL = zeros. Gives *out; cgam_vector_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_new(cgam_env *env, int64_t rows, int64_t width,
                                                    const float *data, cgam_vector **out);
CGAM_API void cgam_vector_free(cgam_vector *v); /* NULL is fine */

/* Reads a file, by its ending. A file that is not a vector, a NaN and an infinity are rejected in one line that says where. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_open(cgam_env *env, const char *path,
                                                     cgam_vector **out);
/* Writes a file, by its ending. *left_out: how many layers that are not zero have no place in it (0
 * or 1 or 2, in .gguf alone); NULL is fine. hint: the model's architecture, kept in .gguf; NULL: none. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_write(const cgam_vector *v, const char *path,
                                                      const char *hint, int *left_out);

CGAM_API int64_t cgam_vector_rows(const cgam_vector *v); /* the last layer there is, plus 1 */
CGAM_API int64_t cgam_vector_width(const cgam_vector *v);
/* [width], belongs to v; NULL past the last row. */
CGAM_API const float *cgam_vector_row(const cgam_vector *v, int64_t layer);

/* ---- Contrasts ---------------------------------------------------------------------------- */
typedef enum cgam_contrast_kind {
    CGAM_CONTRAST_MEAN, /* the mean of the differences */
    /* The direction that the differences, taken from 0, have most in common: the first eigenvector of
     * the sum of d d'. Its sign is that of its product with the mean, its length the root mean square of
     * the differences' products with it: differences that are all alike give their mean. */
    CGAM_CONTRAST_PCA
} cgam_contrast_kind;
CGAM_API extern const char *const cgam_contrast_words[];

/* From differences [pairs, rows, width]: state of one text less that of the other. Gives *out. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_contrast(cgam_env *env, int64_t pairs, int64_t rows,
                                                         int64_t width, const float *differences,
                                                         cgam_contrast_kind kind,
                                                         cgam_vector **out);

#ifdef __cplusplus
}
#endif
#endif
