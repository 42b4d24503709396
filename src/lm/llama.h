/* llama.h (inside): libllama as a table of functions found at run time, and what the files that
 * use it share. Only src/lm/llama_*.c include this. A build without libllama's headers compiles
 * absent.c instead of them. */
#ifndef CGAM_SRC_LM_LLAMA_H
#define CGAM_SRC_LM_LLAMA_H

#include "base/alloc.h"
#include "lm/edit.h"
#include "lm/gguf.h"
#include "lm/iq2.h"
#include "lm/model.h"

#include <llama.h>

/* What we call. */
#define CGAM_LLAMA_FUNCTIONS(X)                                                                    \
    X(ggml_backend_load_all_from_path)                                                             \
    X(ggml_backend_tensor_get)                                                                     \
    X(ggml_backend_tensor_set)                                                                     \
    X(ggml_get_type_traits)                                                                        \
    X(ggml_log_set)                                                                                \
    X(ggml_set_abort_callback)                                                                     \
    X(llama_backend_init)                                                                          \
    X(llama_chat_apply_template)                                                                   \
    X(llama_context_default_params)                                                                \
    X(llama_decode)                                                                                \
    X(llama_free)                                                                                  \
    X(llama_get_logits_ith)                                                                        \
    X(llama_get_memory)                                                                            \
    X(llama_init_from_model)                                                                       \
    X(llama_log_set)                                                                               \
    X(llama_memory_clear)                                                                          \
    X(llama_memory_seq_cp)                                                                         \
    X(llama_memory_seq_rm)                                                                         \
    X(llama_model_chat_template)                                                                   \
    X(llama_model_default_params)                                                                  \
    X(llama_model_desc)                                                                            \
    X(llama_model_free)                                                                            \
    X(llama_model_get_vocab)                                                                       \
    X(llama_model_load_from_file)                                                                  \
    X(llama_model_n_ctx_train)                                                                     \
    X(llama_model_n_embd)                                                                          \
    X(llama_model_n_layer)                                                                         \
    X(llama_model_n_params)                                                                        \
    X(llama_set_adapter_cvec)                                                                      \
    X(llama_token_to_piece)                                                                        \
    X(llama_tokenize)                                                                              \
    X(llama_vocab_bos)                                                                             \
    X(llama_vocab_eos)                                                                             \
    X(llama_vocab_get_text)                                                                        \
    X(llama_vocab_is_eog)                                                                          \
    X(llama_vocab_n_tokens)

typedef struct cgam_llama {
#define CGAM_LLAMA_FIELD(name) __typeof__(&name) name;
    CGAM_LLAMA_FUNCTIONS(CGAM_LLAMA_FIELD)
#undef CGAM_LLAMA_FIELD
    const cgam_iq2 *iq2; /* how it widens IQ2_XXS; NULL: its format differs from iq2.h */
} cgam_llama;

/* Loads libllama on the first call; later calls return the same table. Thread-safe. */
CGAM_NODISCARD cgam_status cgam_llama_load(cgam_env *env, const cgam_llama **out);
/* The last error message of libllama, on one line; "" if none since the reset. */
const char *cgam_llama_complaint(void);
void cgam_llama_complaint_reset(void);

struct cgam_lm {
    cgam_env *env;
    const cgam_llama *f;
    char *path;
    struct llama_model *model;
    const struct llama_vocab *vocab;
    cgam_file file;
    cgam_gguf gguf; /* the file's header */
    cgam_lm_info info;
    char sha256[65]; /* "" until first requested */
    cgam_lens *lens; /* NULL until first requested */
};

/* A matrix of the file: `rows` rows of `columns` numbers in some ggml type. */
typedef struct cgam_weights {
    const cgam_lm *lm;
    const uint8_t *data;
    enum ggml_type type;
    int64_t rows, columns;
    size_t row_bytes;
    int block, block_bytes; /* numbers and bytes of a block */
} cgam_weights;

/* Finds a tensor by name. Returns CGAM_E_NOT_FOUND, or CGAM_E_FORMAT if it does not lie within the
 * file or is not a matrix. A vector is a matrix of one row. */
CGAM_NODISCARD cgam_status cgam_weights_find(const cgam_lm *lm, const char *name,
                                             cgam_weights *out);
/* out[count, columns] = rows [begin, begin + count) in f32. */
void cgam_weights_get(const cgam_weights *w, int64_t begin, int64_t count, float *out);

/* Numbers [from, from + count) of a row: their address, and their values in f32. Both bounds are multiples of 256,
 * or the end of the row. */
const void *cgam_weights_at(const cgam_weights *w, int64_t row, int64_t from);
void cgam_weights_part(const cgam_weights *w, int64_t row, int64_t from, int64_t count, float *out);

/* Reads the integer key `ARCHITECTURE.name`. Returns false if it is absent or not such an integer. */
bool cgam_gguf_uint(const cgam_lm *lm, const char *name, int64_t *out);
bool cgam_gguf_real(const cgam_lm *lm, const char *name, double *out);

/* Prompts order[first .. first + count) of one batch, whose first `tokens` tokens are equal and
 * computed once. For a single prompt these are the tokens that all prompts share. */
typedef struct cgam_stem {
    int64_t first, count, tokens;
} cgam_stem;

/* Prompts grouped into batches. order [count] holds prompts, stem by stem, longest first;
 * batch b is order[first[b] .. first[b + 1]). */
typedef struct cgam_packing {
    int64_t *order, *first; /* [count], [batches + 1] */
    cgam_stem *stem;        /* [count] at most */
    int64_t *of;            /* [count] the stem of each prompt */
    int64_t batches;
    int64_t shared;                      /* tokens that all prompts begin with, computed once */
    int64_t tokens;                      /* to be computed in all */
    int64_t batch_tokens, batch_prompts; /* the most in one batch, without those shared */
} cgam_packing;

/* A run: its prompts and the requested results. */
typedef struct cgam_running {
    cgam_lm *lm;
    const cgam_lm_prompt *prompts; /* [count] */
    int64_t count;
    const cgam_edit_plan *plan;
    const cgam_lm_observe_opts *opts;
    const int64_t *layers; /* [layers_count] layers whose states are requested */
    int64_t layers_count;
    cgam_lm_span_sink sink;
    cgam_lm_sink last; /* instead of it, gets the states of last tokens only */
    void *user;
    /* Continuations to score instead: those of prompt i are candidate[first[i] .. first[i + 1]). */
    const cgam_lm_candidate *candidate;
    const int64_t *first;
    double *log_p; /* [candidates] */
    cgam_packing packing;
} cgam_running;

/* Reads the number of heads and their size into the model's info; leaves 0 if the file does not say one number for all
 * blocks. Fails if they are not known. */
void cgam_lm_heads_read(cgam_lm *lm);
CGAM_NODISCARD cgam_status cgam_lm_heads_known(const cgam_lm *lm);

/* Numbers of one requested row of one layer: the width, or all heads'. */
static inline int64_t cgam_running_width(const cgam_running *r)
{
    const cgam_lm_info *info = &r->lm->info;
    return r->opts->part == CGAM_LM_HEADS ? info->heads * info->head_size : info->width;
}
/* The first token of prompt i whose states are requested. */
int64_t cgam_running_from(const cgam_running *r, int64_t i);
/* Number of tokens run for the candidates of prompt i: all but each one's last. */
int64_t cgam_running_tail(const cgam_running *r, int64_t i);
/* Tokens of batch b if the caller already has the states of all its prompts; 0 if the batch must be run. */
int64_t cgam_running_needless(const cgam_running *r, int64_t b);
/* Number of tokens that all prompts begin with; 0 if sharing them is not worthwhile. */
int64_t cgam_running_shared(const cgam_running *r);
/* Packs prompts into batches of at most that many tokens and prompts. with_tails: tokens of candidates count. */
CGAM_NODISCARD cgam_status cgam_packing_new(const cgam_running *r, int64_t batch_tokens,
                                            int64_t batch_prompts, bool with_tails,
                                            cgam_packing *out);
void cgam_packing_free(cgam_env *env, cgam_packing *packing);
/* Fails if lengths or tokens of prompts do not fit the model. */
CGAM_NODISCARD cgam_status cgam_prompts_check(cgam_lm *lm, int64_t count,
                                              const cgam_lm_prompt *prompts);
/* Adds the log-probabilities of the first tokens of prompt i's candidates, from the scores [vocab] after the
 * prompt; then of token k of candidate c, from the scores after the previous token. */
void cgam_running_first(const cgam_running *r, int64_t i, const float *scores);
void cgam_running_next(const cgam_running *r, int64_t c, int64_t k, const float *scores);
/* Passes a span to the sink. Returns CGAM_E_VALUE if it holds a number that is not finite. */
CGAM_NODISCARD cgam_status cgam_running_hand(const cgam_running *r, const cgam_lm_span *span);
void cgam_running_tell(const cgam_running *r, const char *what, double done);

/* The two ways to run prompts. */
cgam_status cgam_exact_run(cgam_running *r);
/* Returns CGAM_OK if the plain pass supports the model, else fails with the reason. */
cgam_status cgam_exact_knows(const cgam_lm *lm);

#endif
