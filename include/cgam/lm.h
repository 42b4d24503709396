/* lm.h: language models - hidden states of any GGUF model that libllama runs.
 *
 * libllama is loaded on first use, so a program that never opens a model does not require it. It
 * is searched for in the directory in CGAM_LLAMA, in the place where pkg-config found it when cgam
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
    int64_t context;              /* tokens of a training sequence */
    int64_t parameters;
    bool tied;  /* the unembedding is the embedding */
    bool exact; /* cgam_lm_capture_opts.exact works */
    int64_t heads,
        head_size; /* of the attention of a block; 0 if they differ between blocks or are unknown */
    char name[64], architecture[32], description[96];
    char file[256]; /* name of the file, without its folder */
} cgam_lm_info;

/* Gives a model from a GGUF file, NULL = the default model in the cache; close it with cgam_lm_close.
 * Weights are mapped, not copied. Not thread-safe: one thread at a time may use a model. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_open(cgam_env *env, const char *path, cgam_lm **out);
CGAM_API void cgam_lm_close(cgam_lm *lm); /* NULL is fine */
CGAM_API cgam_lm_info cgam_lm_describe(const cgam_lm *lm);

/* Tokens of a text, with the model's beginning-of-sequence token first if `begin`. Gives *out
 * [*count]; free it with cgam_lm_tokens_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_tokenize(cgam_lm *lm, const char *text, bool begin,
                                                     int32_t **out, int64_t *count);
CGAM_API void cgam_lm_tokens_free(cgam_lm *lm, void *block); /* NULL is fine */
/* Writes the bytes of a token as text into text[size], truncated if too long; returns text. */
CGAM_API const char *cgam_lm_piece(const cgam_lm *lm, int32_t token, char *text, size_t size);

/* ---- Chats -------------------------------------------------------------------------------- */
typedef struct cgam_lm_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *text;
} cgam_lm_message;

/* Tokens of a conversation in the model's own chat template, beginning of sequence and the other
 * special tokens included, up to the start of the assistant's next answer. Gives *out [*length];
 * free it with cgam_lm_tokens_free. CGAM_E_UNSUPPORTED: the model has no template, or libllama does
 * not know it. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_chat(cgam_lm *lm, int64_t count,
                                                 const cgam_lm_message *messages, int32_t **out,
                                                 int64_t *length);

/* ---- Parts of a block --------------------------------------------------------------------- */
/* What a block adds to the residual stream: stream after = stream before + ATTENTION + MLP, before edits.
 * Blocks are counted l = 1 .. L, as the layers after them; layer 0 is no block. */
typedef enum cgam_lm_block_part {
    CGAM_LM_RESIDUAL,  /* the stream itself */
    CGAM_LM_ATTENTION, /* the attention's output */
    CGAM_LM_MLP,       /* the feed-forward network's */
    CGAM_LM_HEADS      /* [heads, head_size] the numbers that the output projection reads */
} cgam_lm_block_part;
CGAM_API extern const char *const cgam_lm_block_part_words[];

/* ---- Edits -------------------------------------------------------------------------------- */
/* A change of the residual stream after block `layer` (0: the embedding), before any later block
 * reads it. */
typedef enum cgam_lm_edit_kind {
    CGAM_LM_ADD,    /* h <- h + scale v */
    CGAM_LM_REPLACE /* h <- scale v */
} cgam_lm_edit_kind;

typedef enum cgam_lm_where {
    CGAM_LM_LAST,      /* the last token of the prompt */
    CGAM_LM_PROMPT,    /* all of its tokens */
    CGAM_LM_GENERATED, /* all tokens after the prompt: generated tokens and scored continuations */
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
    /* RESIDUAL (default), or HEADS: the edit acts on what head `head` of block `layer` (1 .. L) puts into the output
     * projection, and `vector` is [head_size]. No other part. */
    cgam_lm_block_part part;
    int64_t head; /* 0 .. heads - 1; default 0 */
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
    /* Use the plain forward pass in f32 instead of libllama's; default false. libllama rounds
     * activations to 8 bits if weights are quantised, which changes states by 2 to 13 %, and slightly
     * differently with other prompts in the batch. The plain pass does not round to 8 bits; other
     * prompts in the batch change its states by f32 rounding only. It uses the CPU's tile unit if there
     * is one; states are then within 1e-5 of those on other CPUs. */
    bool exact;
    bool no_sharing; /* compute a common beginning of prompts again for each prompt */
    bool no_states;  /* run the prompts and return nothing; a baseline for measurements */
    /* Tokens with one cache; default 0 = 512, or if exact 64 to 2048: fewer for larger models, but at
     * least the common beginning of all prompts. */
    int64_t batch_tokens;
    cgam_progress progress; /* in tokens; default none */
    /* Called every few seconds, when all states of a group have been passed to the sink: save them
     * then. An interruption by the env takes effect within a second. */
    cgam_status (*batch_end)(void *user);
    /* [count prompts] true: the caller already has the states of this prompt; a batch of only such prompts is not
     * run. The other prompts in a batch change states by a rounding, so to resume a stopped run pass all its prompts
     * again, not only the remaining ones. NULL: none; scores of candidates are computed for all */
    const bool *there;
    cgam_lm_edits edits; /* of every prompt; default none */
    const cgam_lm_edits
        *edits_each; /* [count prompts] edits of each prompt, applied after `edits`; NULL: none */
} cgam_lm_capture_opts;

CGAM_API cgam_lm_capture_opts cgam_lm_capture_opts_default(void);

/* ---- Chosen tokens, chosen layers, scores -------------------------------------------------- */
typedef struct cgam_lm_observe_opts {
    cgam_lm_capture_opts run; /* how to run the prompts */
    bool states;              /* return states; default true */
    bool scores;              /* return the model's scores over the vocabulary; default false */
    cgam_lm_block_part
        part; /* what to return as states; default RESIDUAL, else layers are blocks 1 .. L */
    const int64_t *layers; /* [layers_count] rising; default NULL = all of 0 .. L */
    int64_t layers_count;
    bool all_tokens; /* default false: only the last token */
    const int64_t *
        from; /* [count prompts] the first token to return of each; NULL = according to all_tokens */
    /* [count prompts] length of each prompt, after which generated tokens begin; NULL: none were generated */
    const int64_t *prompt_tokens;
} cgam_lm_observe_opts;
CGAM_API cgam_lm_observe_opts cgam_lm_observe_opts_default(void);

/* Tokens first .. first + count - 1 of prompt `which`. */
typedef struct cgam_lm_span {
    int64_t which, first, count;
    const float *
        states; /* [layers, count, width], of HEADS [layers, count, heads, head_size]; NULL if not requested */
    const float *scores; /* [count, vocab] logits of the token after each, NULL if not requested */
} cgam_lm_span;
/* Called with the spans of a prompt, one or more, in order. Memory use is that of one batch. */
typedef cgam_status (*cgam_lm_span_sink)(void *user, const cgam_lm_span *span);

CGAM_API CGAM_NODISCARD cgam_status cgam_lm_observe(cgam_lm *lm, int64_t count,
                                                    const cgam_lm_prompt *prompts,
                                                    const cgam_lm_observe_opts *opts,
                                                    cgam_lm_span_sink sink, void *user);

/* Multiplies what heads put into the output projection of block `layer` with their columns of it. heads [count,
 * heads, head_size]; out [count, heads, width]: what each head adds to the stream. These sum to the
 * attention's output, to f32 rounding; where weights are quantised libllama rounds the numbers that it multiplies to 8 bits. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_heads_project(cgam_lm *lm, int64_t layer, int64_t count,
                                                          const float *heads, float *out);

/* A possible continuation of a prompt. */
typedef struct cgam_lm_candidate {
    int64_t prompt;        /* 0 .. count - 1; candidates of one prompt must be adjacent */
    const int32_t *tokens; /* [length], borrowed for the call */
    int64_t length;        /* 1 or more */
} cgam_lm_candidate;

/* out [candidates]: the log-probability of all tokens of a candidate after its prompt. A prompt is
 * computed once for all its candidates, a common beginning of all prompts once for all prompts. opts
 * NULL = defaults; edits of GENERATED act on the candidates' tokens. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_score(cgam_lm *lm, int64_t count,
                                                  const cgam_lm_prompt *prompts, int64_t candidates,
                                                  const cgam_lm_candidate *candidate,
                                                  const cgam_lm_capture_opts *opts, double *out);

/* ---- Generation of text, token by token, with edits of the residual stream. */

/* Why a text ended. */
typedef enum cgam_lm_stop {
    CGAM_LM_STOP_EOS,    /* the model's end-of-text token */
    CGAM_LM_STOP_LENGTH, /* max_tokens, or the model's context is full */
    CGAM_LM_STOP_WORD,   /* one of the stop words */
    CGAM_LM_STOP_INTERRUPT
} cgam_lm_stop;
CGAM_API extern const char *const cgam_lm_stop_words[];

typedef struct cgam_lm_token {
    int32_t id;
    double log_p; /* of this token when it was drawn, at temperature 1 and among all tokens */
    double neff;  /* exp of the entropy of that distribution */
} cgam_lm_token;

typedef struct cgam_lm_generate_opts {
    bool exact;              /* the plain pass; default false */
    int64_t max_tokens;      /* default 64 */
    double temperature;      /* default 0: greedy, ties to the lowest token */
    double top_p;            /* default 1: all tokens; the most probable one is always included */
    uint64_t seed;           /* default 0 */
    const char *const *stop; /* [stop_count] words that end a text; the text is cut before them */
    int64_t stop_count;
    /* A context c [width] whose scores go through the gate operator over the unembedding's rows at every token: scores +
     * lambda A(alpha)^-1 Z c', c' = c times the final norm's weights, divided by what the state is divided by.
     * default NULL: none; lambda 0 changes no bit */
    const float *gate;
    double gate_alpha, gate_lambda; /* default 0, 1 */
    cgam_lm_edits edits;            /* of every prompt; default none */
    const cgam_lm_edits
        *edits_each; /* [count prompts] edits of each prompt, applied after `edits`; NULL: none */
    /* Called with each token as it is drawn, in the order of the prompts; may be NULL. `text` holds the
     * bytes that are final with this token, possibly none: a possible beginning of a stop word or of a
     * multi-byte character is held back. Called with token NULL and the rest at the end of a text. */
    cgam_status (*each)(void *user, int64_t which, const cgam_lm_token *token, const char *text);
    void *user;
} cgam_lm_generate_opts;
CGAM_API cgam_lm_generate_opts cgam_lm_generate_opts_default(void);

/* tokens: all that were drawn, including those of a stop word, without the end-of-text token. */
typedef struct cgam_lm_text {
    char *text;
    cgam_lm_token *tokens;
    int64_t count;
    cgam_lm_stop stop;
} cgam_lm_text;

/* Continues every prompt; fills out [count]. Free it with cgam_lm_texts_free, also after a failure. An
 * interruption is not a failure: out holds the text so far. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_generate(cgam_lm *lm, int64_t count,
                                                     const cgam_lm_prompt *prompts,
                                                     const cgam_lm_generate_opts *opts,
                                                     cgam_lm_text *out);
CGAM_API void cgam_lm_texts_free(cgam_lm *lm, int64_t count, cgam_lm_text *texts);

/* ---- The lens: hidden states read through the unembedding. */

/* How a state h becomes scores over the vocabulary, <zeta, x>. */
typedef enum cgam_lens_kind {
    CGAM_LENS_RAW,  /* x = h */
    CGAM_LENS_GAIN, /* x = h, minus its mean if the norm is centred, times the final norm's weights:
                       linear in h; same argmax as NORM if nothing is added after the norm */
    CGAM_LENS_NORM  /* x = the final norm of h: the model's own scores at the last layer */
} cgam_lens_kind;
CGAM_API extern const char *const cgam_lens_words[];

/* Makes a bank of a model's unembedding: unchanged rows (RAW), or rows whose products with a state are
 * the scores of GAIN; stored as f32, f16 or bf16. Gives *out; free it with cgam_bank_free. The bank may
 * outlive the model. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_bank(cgam_lm *lm, cgam_lens_kind lens, cgam_dtype dtype,
                                                 cgam_bank **out);

typedef struct cgam_lens cgam_lens;

/* Reads the unembedding and the final norm; the lens may outlive the model. Compares its scores with
 * libllama's after one token: a model that transforms the scores further (scales or caps them) has no
 * NORM lens, and a request for its scores fails with CGAM_E_UNSUPPORTED. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_new(cgam_lm *lm, cgam_lens **out);

CGAM_API void cgam_lens_free(cgam_lens *lens); /* NULL is fine */

/* ---- The layer x token table: every position of a text after every layer, read through the lens.
 *
 * The final distribution of a position is the model's own: the last layer through the final norm.
 * Each cell is compared with it: KL(final || layer) in nats, and the rank of the final distribution's
 * most probable word. */

typedef struct cgam_lens_word {
    int32_t token;
    double p;
} cgam_lens_word;

typedef struct cgam_lens_cell {
    double neff;        /* exp of the entropy */
    double kl_final;    /* in nats; 0 after the last layer with NORM */
    int64_t rank_final; /* words that score above the final answer, or equal with a lower index */
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

/* Makes the table of a text, beginning-of-sequence token first. Fills *out; free it with
 * cgam_lens_view_free, which accepts {0}. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_view_make(cgam_lm *lm, const cgam_lens *lens,
                                                        const char *text,
                                                        const cgam_lens_view_opts *opts,
                                                        cgam_lens_view *out);
CGAM_API void cgam_lens_view_free(cgam_env *env, cgam_lens_view *view);

/* ---- Directions in the residual stream, one for each layer, in files and from data.
 *
 * Layers are counted as above: l = 0 .. L. A layer missing from a file is zero. Files:
 *   .gguf         llama.cpp's control vectors, also written by repeng and cvector-generator:
 *                 direction.k is added after block k counted from 0, so it is layer k + 1. Files
 *                 begin with direction.1; this format cannot store layers 0 and 1
 *   .npy          (layers + 1, width)
 *   .safetensors  an array `vectors` (layers + 1, width); if a file has a single array, it is
 *                 read under any name
 * Magnitudes are kept. */

typedef struct cgam_vector cgam_vector;

/* Copies data [rows, width], row l for layer l; NULL = zeros. Gives *out; free it with cgam_vector_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_new(cgam_env *env, int64_t rows, int64_t width,
                                                    const float *data, cgam_vector **out);
CGAM_API void cgam_vector_free(cgam_vector *v); /* NULL is fine */

/* Reads a file; its extension selects the format. Rejects a file that is not a vector, NaN and infinity; the
 * message says where. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_open(cgam_env *env, const char *path,
                                                     cgam_vector **out);
/* Writes a file; its extension selects the format. *left_out (may be NULL): number of nonzero layers that
 * the format cannot store (0, 1 or 2; only in .gguf). hint: the model's architecture, stored in .gguf;
 * NULL: none. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_write(const cgam_vector *v, const char *path,
                                                      const char *hint, int *left_out);

CGAM_API int64_t cgam_vector_rows(const cgam_vector *v); /* index of the last layer, plus 1 */
CGAM_API int64_t cgam_vector_width(const cgam_vector *v);
/* Returns row [width], owned by v; NULL past the last row. */
CGAM_API const float *cgam_vector_row(const cgam_vector *v, int64_t layer);

/* ---- Contrasts ---------------------------------------------------------------------------- */
typedef enum cgam_contrast_kind {
    CGAM_CONTRAST_MEAN, /* the mean of the differences */
    /* The principal direction of the differences d, not centred: the first eigenvector of the sum of
     * d d'. Its sign is that of its product with the mean; its length is the root mean square of the
     * differences' products with it: if all differences are equal, it is their mean. */
    CGAM_CONTRAST_PCA,
    /* The same of the differences minus their mean: the direction in which pairs differ from each other, which need not
     * be that in which the two texts differ. Its length is the differences' standard deviation (over n) along it. */
    CGAM_CONTRAST_PCA_CENTRED
} cgam_contrast_kind;
CGAM_API extern const char *const cgam_contrast_words[];

/* From differences [pairs, rows, width]: state of one text minus that of the other. Gives *out; free it
 * with cgam_vector_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_contrast(cgam_env *env, int64_t pairs, int64_t rows,
                                                         int64_t width, const float *differences,
                                                         cgam_contrast_kind kind,
                                                         cgam_vector **out);

#ifdef __cplusplus
}
#endif
#endif
