/* iq2.c: see iq2.h. */
#include "lm/iq2.h"
#include "base/rng.h"

#include "num/cpu/widen.h"

#include <string.h>

enum { PARTS = 8, PATTERNS = 4, LANES = 8 }; /* of a block, of a part, of a pattern */

typedef float numbers __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

void cgam_iq2_widen(const cgam_iq2 *tables, const void *blocks, int64_t n, float *out)
{
    const uint8_t *at = blocks;
    for (int64_t b = 0; b < n / CGAM_IQ2_NUMBERS; b++, at += CGAM_IQ2_BYTES) {
        float d = (float)cgam_stored(CGAM_F16, at, 0);
        for (int part = 0; part < PARTS; part++) {
            const uint8_t *which = at + 2 + PARTS * part;
            uint32_t word;
            memcpy(&word, which + PATTERNS, sizeof word);
            float factor = d * (0.5F + (float)(word >> 28)) * 0.25F;
            for (int i = 0; i < PATTERNS; i++, out += LANES) {
                words pattern, sign;
                numbers w;
                memcpy(&pattern, tables->pattern[which[i]], sizeof pattern);
                memcpy(&sign, tables->sign[word >> 7 * i & 127], sizeof sign);
                pattern ^= sign;
                memcpy(&w, &pattern, sizeof w);
                w *= factor;
                memcpy(out, &w, sizeof w);
            }
        }
    }
}

void cgam_iq2_decode(const cgam_iq2 *tables, const void *blocks, int64_t n, uint8_t *codes,
                     float (*values)[8])
{
    const uint8_t *at = blocks;
    for (int64_t b = 0; b < n / CGAM_IQ2_NUMBERS; b++, at += CGAM_IQ2_BYTES) {
        float d = (float)cgam_stored(CGAM_F16, at, 0);
        for (int part = 0; part < PARTS; part++, values++) {
            const uint8_t *which = at + 2 + PARTS * part;
            uint32_t word;
            memcpy(&word, which + PATTERNS, sizeof word);
            float factor = d * (0.5F + (float)(word >> 28)) * 0.25F;
            for (int k = 0; k < 4; k++) {
                (*values)[k] = factor * tables->number[k];
                (*values)[k + 4] = -(*values)[k];
            }
            for (int i = 0; i < PATTERNS; i++, codes += LANES) {
                uint64_t code, sign;
                memcpy(&code, tables->pattern_code[which[i]], sizeof code);
                memcpy(&sign, tables->sign_code[word >> 7 * i & 127], sizeof sign);
                code |= sign;
                memcpy(codes, &code, sizeof code);
            }
        }
    }
}

/* A block of factor 1 in which everything is pattern `pattern` with the signs `sign`. */
static void fill_uniform_block(int pattern, uint32_t sign, uint8_t *block)
{
    const uint16_t eight = 0x4800; /* in f16: 8 (1/2 + 0) / 4 is 1 */
    uint32_t word = sign * (1 + (1U << 7) + (1U << 14) + (1U << 21));
    memcpy(block, &eight, sizeof eight);
    for (int part = 0; part < PARTS; part++) {
        memset(block + 2 + PARTS * part, pattern, PATTERNS);
        memcpy(block + 2 + PARTS * part + PATTERNS, &word, sizeof word);
    }
}

static bool tables_agree(cgam_to_float *judge, const cgam_iq2 *tables)
{
    enum { TRIALS = 100 };
    cgam_rng rng = cgam_rng_stream(1, 0);
    uint8_t block[CGAM_IQ2_BYTES];
    float got[CGAM_IQ2_NUMBERS], want[CGAM_IQ2_NUMBERS];
    for (int t = 0; t < TRIALS; t++) {
        for (int i = 0; i < CGAM_IQ2_BYTES; i++) block[i] = (uint8_t)cgam_rng_below(&rng, 256);
        block[1] &= 0xbf; /* d below 2, not infinite */
        judge(block, want, CGAM_IQ2_NUMBERS);
        cgam_iq2_widen(tables, block, CGAM_IQ2_NUMBERS, got);
        for (int i = 0; i < CGAM_IQ2_NUMBERS; i++)
            if (got[i] != want[i]) return false;
    }
    return true;
}

static bool learn_codes(cgam_iq2 *t)
{
    int count = 0;
    for (int k = 0; k < 256 * LANES; k++) {
        float number = t->pattern[k / LANES][k % LANES];
        int which = 0;
        while (which < count && t->number[which] != number) which++;
        if (which == 4 || !(number > 0)) return false;
        if (which == count) t->number[count++] = number;
        t->pattern_code[k / LANES][k % LANES] = (uint8_t)which;
    }
    for (int k = 0; k < 128 * LANES; k++)
        t->sign_code[k / LANES][k % LANES] = t->sign[k / LANES][k % LANES] ? 4 : 0;
    return true;
}

bool cgam_iq2_learn(cgam_to_float *judge, cgam_iq2 *out)
{
    uint8_t block[CGAM_IQ2_BYTES];
    float first[CGAM_IQ2_NUMBERS], turned[CGAM_IQ2_NUMBERS];
    for (int k = 0; k < 256; k++) {
        fill_uniform_block(k, 0, block);
        judge(block, first, CGAM_IQ2_NUMBERS);
        memcpy(out->pattern[k], first, sizeof out->pattern[k]);
    }
    for (uint32_t s = 0; s < 128; s++) {
        fill_uniform_block(255, s, block);
        judge(block, turned, CGAM_IQ2_NUMBERS);
        for (int j = 0; j < LANES; j++) {
            uint32_t a, b;
            memcpy(&a, &first[j], sizeof a);
            memcpy(&b, &turned[j], sizeof b);
            out->sign[s][j] = (a ^ b) & 0x80000000U;
        }
    }
    out->coded = learn_codes(out);
    return tables_agree(judge, out);
}
