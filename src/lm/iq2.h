/* iq2.h: the 2-bit numbers of the default model (ggml's IQ2_XXS), widened by tables.
 *
 * 256 numbers are 66 bytes: a factor d in f16, then for each 32 of them two words of 32 bits. Of the
 * first word each byte names one of 256 patterns of 8 numbers; of the second, 7 bits each name one of
 * 128 patterns of 8 signs, and the top 4 bits are a scale s:
 *
 *     w = d (1/2 + s) / 4 * pattern * sign.
 *
 * ggml's own loop takes 4 ns a number, since it asks for every sign by itself; that was half the time
 * of the plain pass. The patterns are not in the file format but in libllama, so they are learned from
 * its loop, which then judges ours; results are the same bits. */
#ifndef CGAM_SRC_LM_IQ2_H
#define CGAM_SRC_LM_IQ2_H

#include <cgam/base.h>

enum { CGAM_IQ2_NUMBERS = 256, CGAM_IQ2_BYTES = 66 }; /* of a block */

typedef struct cgam_iq2 {
    float pattern[256][8];
    uint32_t sign[128][8]; /* the bit to be turned */
    /* The same as codes, where patterns have at most four numbers, all positive: which it is, + 4 if turned. */
    bool coded;
    float number[4];
    uint8_t pattern_code[256][8], sign_code[128][8];
} cgam_iq2;

/* A loop that widens n numbers, as ggml has them. */
typedef void cgam_to_float(const void *blocks, float *out, int64_t n);

/* Fills the tables from `judge`; false when it does not read blocks as they are described above. */
bool cgam_iq2_learn(cgam_to_float *judge, cgam_iq2 *out);
/* n: a multiple of CGAM_IQ2_NUMBERS. */
void cgam_iq2_widen(const cgam_iq2 *tables, const void *blocks, int64_t n, float *out);
/* The same numbers as codes [n] and values [n / 32][8]: number k is values[k / 32][codes[k]]. Only where
 * tables->coded. */
void cgam_iq2_decode(const cgam_iq2 *tables, const void *blocks, int64_t n, uint8_t *codes,
                     float (*values)[8]);

#endif
