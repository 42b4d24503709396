/* exact.h: the plain forward pass over a batch of segments. */
#ifndef CGAM_SRC_LM_EXACT_H
#define CGAM_SRC_LM_EXACT_H

#include "lm/llama.h"
#include "num/cpu/cpu.h"

typedef struct cgam_exact_shape {
    int64_t layers, width, heads, heads_kv, head, ff; /* head: numbers per head */
    double epsilon, rope_base, rope_scale;
} cgam_exact_shape;

/* A run of consecutive tokens of one prompt. */
typedef struct cgam_exact_segment {
    int64_t begin, count; /* rows of the batch */
    int64_t position;     /* of its first token */
    int64_t parent;       /* the segment that precedes it, or -1 */
    int64_t
        cache; /* the sequence of the cache that it continues, or -1; its parents are stored there too */
    int64_t prompt; /* the prompt whose edits apply */
} cgam_exact_segment;

/* Keys and values of sequences, kept between passes: row `position` of a sequence after each layer. */
typedef struct cgam_exact_cache {
    int64_t sequences, capacity; /* capacity: tokens of each */
    float *k, *v;                /* [layers, sequences, capacity, heads_kv head] */
} cgam_exact_cache;

typedef struct cgam_exact {
    cgam_lm *lm;
    cgam_exact_shape s;
    const float *factors; /* [head / 2] divides the rotary angles, or NULL */
    int64_t tokens, segments;
    int64_t tokens_max, segments_max;
    cgam_exact_segment *segment;
    int32_t *token;                           /* [tokens] */
    float *x, *n, *q, *k, *v, *a, *gate, *up; /* [tokens, .] */
    float *gain, *rope_factors;
    const cgam_split *split; /* products on tiles; NULL: sgemm */
    char *panels;            /* their packed operands */
    cgam_exact_cache cache;
    int64_t layer; /* the current block */
    const cgam_edit_plan *plan;
    cgam_lm_block_part part; /* what is kept of each block */
    float *attention;        /* [tokens, width] its attention's output; NULL unless part is that */
} cgam_exact;

/* The part of the current block: rows of cgam_running_width, valid until the next block. */
const float *cgam_exact_part(const cgam_exact *p);

/* Allocates for batches of that size. cached: also a cache of that many sequences and tokens of each, 0:
 * no cache. Always call cgam_exact_free afterwards, even on failure. */
CGAM_NODISCARD cgam_status cgam_exact_new(cgam_exact *p, cgam_lm *lm, int64_t tokens,
                                          int64_t segments, int64_t cached, int64_t cache_capacity);
void cgam_exact_free(cgam_exact *p);

/* Appends a segment to the batch; seg holds its position, parent, cache and prompt.
 * p->tokens = p->segments = 0 empties the batch. */
void cgam_exact_append(cgam_exact *p, const int32_t *tokens, int64_t count, cgam_exact_segment seg);
/* Fills in the prompts of batch `number` of a packing and returns their count. Segment 0 is the prefix of all,
 * segments 1 .. count are the prompts, then come the prefixes of stems. cached: all of prompt i is stored in
 * sequence i of the cache. */
int64_t cgam_exact_fill(cgam_exact *p, const cgam_running *r, int64_t number, bool cached);
/* x = the embeddings, edited; then block l (0 .. L - 1) and the edits after it. */
CGAM_NODISCARD cgam_status cgam_exact_embed(cgam_exact *p);
CGAM_NODISCARD cgam_status cgam_exact_block(cgam_exact *p, int64_t l);
/* out [count, vocab]: the scores of rows [count] of x after all blocks. Overwrites n;
 * count is at most tokens_max. */
CGAM_NODISCARD cgam_status cgam_exact_scores(cgam_exact *p, int64_t count, const int64_t *rows,
                                             float *out);

#endif
