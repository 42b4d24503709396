/* iq2.h: the 2-bit numbers of the default model (ggml's IQ2_XXS), widened by tables.
 *
 * 256 numbers are 66 bytes: a factor d in f16, then two words of 32 bits for each 32 numbers. Each byte of the
 * first word selects one of 256 patterns of 8 numbers. In the second, each 7 bits select one of
 * 128 patterns of 8 signs, and the top 4 bits are a scale s:
 *
 *     w = d (1/2 + s) / 4 * pattern * sign.
 *
 * ggml's own loop takes 4 ns a number, since it tests every sign separately; that was half the time
 * of the plain pass. The patterns are not in the file format but in libllama. So we learn them from
 * its loop, and then check our loop against it; results are bit-identical. */
#ifndef CGAM_SRC_LM_IQ2_H
#define CGAM_SRC_LM_IQ2_H

#include <cgam/base.h>

enum { CGAM_IQ2_NUMBERS = 256, CGAM_IQ2_BYTES = 66 }; /* of a block */

typedef struct cgam_iq2 {
    float pattern[256][8];
    uint32_t sign[128][8]; /* the sign bit to flip */
    /* The same as codes, if patterns use at most four numbers, all positive: the index, + 4 if negated. */
    bool coded;
    float number[4];
    uint8_t pattern_code[256][8], sign_code[128][8];
} cgam_iq2;

/* A loop that widens n numbers, with ggml's signature. */
typedef void cgam_to_float(const void *blocks, float *out, int64_t n);

/* Fills the tables from `judge`. Returns false if `judge` does not read blocks as described above. */
bool cgam_iq2_learn(cgam_to_float *judge, cgam_iq2 *out);
/* n: a multiple of CGAM_IQ2_NUMBERS. */
void cgam_iq2_widen(const cgam_iq2 *tables, const void *blocks, int64_t n, float *out);
/* The same numbers as codes [n] and values [n / 32][8]: number k is values[k / 32][codes[k]]. Requires
   tables->coded. */
void cgam_iq2_decode(const cgam_iq2 *tables, const void *blocks, int64_t n, uint8_t *codes,
                     float (*values)[8]);

#endif
