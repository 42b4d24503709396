/* tiny_gguf.h: small Llama models with random weights, written as GGUF files for the tests.
 *
 * The vocabulary has the 256 bytes and a few words, so any text has tokens. */
#ifndef CGAM_TESTS_TINY_GGUF_H
#define CGAM_TESTS_TINY_GGUF_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tiny_type { TINY_F32 = 0, TINY_F16 = 1, TINY_Q8_0 = 8 } tiny_type; /* ggml's codes */

/* A key in place of one of ours, or beside them: a number of its type, or a text; neither leaves it out. Names begin with the
 * architecture where ours do. */
typedef enum tiny_kind { TINY_NONE = 0, TINY_NUMBER = 4, TINY_REAL = 6, TINY_TEXT = 8 } tiny_kind;
typedef struct tiny_key {
    const char *name;
    tiny_kind kind;
    double number;
    const char *text;
} tiny_key;

typedef struct tiny_shape {
    int layers, width, heads, heads_kv, ff, context; /* width and ff: multiples of 32 */
    tiny_type type;
    bool tied;
    bool rope_factors;        /* with a table that divides the rotary angles */
    bool bpe;                 /* the words by merges, as GPT-2 has them, instead of scores */
    const char *architecture; /* NULL: llama; "stablelm" has layer norms with a bias */
    const tiny_key *keys;     /* NULL: none; a name of NULL ends them */
    const char *tensor;       /* one whose shape is another; with no columns it is left out */
    int columns, rows;        /* of it; rows 0: a vector */
    uint64_t seed;
} tiny_shape;

tiny_shape tiny_shape_default(void);
/* The words after the bytes, in order; NULL ends. Each is written with a blank before it. */
extern const char *const tiny_words[];
int tiny_vocab(void); /* without bpe */

/* Fails the test when the file cannot be written. */
void tiny_write(const char *path, tiny_shape shape);

#endif
