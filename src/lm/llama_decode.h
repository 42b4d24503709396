/* llama_decode.h: decoding with libllama: a cache of keys and values, a batch of tokens, and what we
 * read from and write to the residual stream during the computation. */
#ifndef CGAM_SRC_LM_LLAMA_DECODE_H
#define CGAM_SRC_LM_LLAMA_DECODE_H

#include "lm/llama.h"
#include "lm/model.h"

enum {
    CGAM_PIECE = 64,         /* tokens of one decode: some seconds on a slow machine */
    CGAM_SEQUENCES_MAX = 128 /* libllama's limit is 256; more than this are not faster */
};

typedef struct cgam_decoder_opts {
    int64_t capacity;           /* tokens of a batch, which is decoded in pieces */
    int64_t cells, sequences;   /* of the cache; sequences are 0 .. sequences - 1 */
    const int64_t *layers;      /* [layers_count] layers whose states are kept */
    int64_t layers_count;       /* 0: none */
    cgam_lm_block_part part;    /* of these; not RESIDUAL: of blocks 1 .. L */
    bool scores;                /* compute scores over the vocabulary */
    const cgam_edit_plan *plan; /* NULL: no edits */
} cgam_decoder_opts;

/* A token of the batch. */
typedef struct cgam_decoder_row {
    int32_t seq;
    int64_t position;
    int64_t prompt; /* whose edits it has */
} cgam_decoder_row;

typedef struct cgam_decoder {
    cgam_lm *lm;
    struct llama_context *context;
    cgam_decoder_opts o;
    cgam_decoder_row *row; /* [capacity], rows of them filled */
    int64_t rows;
    llama_token *token; /* the same in libllama's form */
    llama_pos *pos;
    int32_t *n_seq;
    llama_seq_id **seq;
    int8_t *logits;

    /* The current piece: rows [from, from + tokens). */
    int64_t from, tokens;
    int64_t outputs; /* rows that have an output */
    int64_t *output; /* [CGAM_PIECE] their rows, counted from `from` */
    bool wanted;     /* false: libllama needs an output, but none was requested */
    int64_t *slot;   /* [L + 1] index of a layer among those kept, or -1 */
    int64_t width;   /* of a kept row: d, or all heads' */
    float *states;   /* [layers_count, outputs, width] */
    float *normed,
        *edit; /* [d] of the first output, from libllama's final norm; a row being edited */
    bool *
        shown; /* [2 L + 1] places of edits (edit.h) seen in this piece; a part is shown at the second */
    const struct ggml_tensor *attention, *mlp; /* of the current block */
    bool has_norm, adapted;
    char embedding[GGML_MAX_NAME]; /* the tensor whose value block 1 reads; "" until known */
    cgam_status status;

    float *gain, *bias; /* final norm; NULL if it is of another kind */
    cgam_lm_norm norm;
} cgam_decoder;

/* Always call cgam_decoder_close afterwards, even on failure. */
CGAM_NODISCARD cgam_status cgam_decoder_open(cgam_lm *lm, const cgam_decoder_opts *opts,
                                             cgam_decoder *d);
void cgam_decoder_close(cgam_decoder *d);

/* Appends tokens [count] as sequence `seq`, the first at `position`. The edits of prompt `which` apply.
 * Results are requested from position `wanted` on. */
void cgam_decoder_append(cgam_decoder *d, const int32_t *tokens, int64_t count, int64_t position,
                         int64_t which, int32_t seq, int64_t wanted);
/* Called after each piece; its outputs are valid results if `wanted`. */
typedef cgam_status (*cgam_decoder_taken)(void *user, cgam_decoder *d);
/* Decodes all rows in pieces of about the same size, and empties the batch. taken may be NULL. */
CGAM_NODISCARD cgam_status cgam_decoder_run(cgam_decoder *d, cgam_decoder_taken taken, void *user);
/* Scores [vocab] of output k of the piece. libllama owns them; valid until the next decode. NULL if it has none. */
const float *cgam_decoder_scores(const cgam_decoder *d, int64_t k);

/* Frees the cells of a sequence, or shares them with another sequence. */
void cgam_decoder_forget(cgam_decoder *d, int32_t seq);
void cgam_decoder_share(cgam_decoder *d, int32_t from, int32_t to);

/* Decodes the prefix of all prompts of a packing as sequence 0; then prompt order[first[b] + i] of batch b as
 * sequence i + 1, requesting its last token if candidates follow. */
CGAM_NODISCARD cgam_status cgam_llama_prefix(const cgam_running *r, cgam_decoder *d,
                                             cgam_decoder_taken taken, void *user);
CGAM_NODISCARD cgam_status cgam_llama_batch(const cgam_running *r, cgam_decoder *d, int64_t b,
                                            cgam_decoder_taken taken, void *user);

#endif
