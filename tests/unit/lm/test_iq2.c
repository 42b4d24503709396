/* The 2-bit numbers: a judge with tables of its own, written number by number, is learned. */
#include "lm/iq2.h"
#include "support/check.h"

static uint8_t grid[256][8]; /* any will do; ggml's holds 8, 25 and 43 */
static int kinds;            /* of numbers in it */
static int first_bit;        /* of the signs: another layout when it is not 0 */

static float half_of(const uint8_t *p)
{
    int bits = p[0] | p[1] << 8, power = bits >> 10 & 31, digits = bits & 1023;
    double size = power == 0 ? ldexp(digits, -24) : ldexp(1024 + digits, power - 25);
    return (float)(bits >> 15 ? -size : size);
}

/* Signs of 8 numbers from 7 bits: an even number of them is turned. */
static float turned(uint32_t seven, int j)
{
    uint32_t all = seven | (uint32_t)__builtin_parity(seven) << 7;
    return all >> j & 1 ? -1.0F : 1.0F;
}

static void judge(const void *blocks, float *out, int64_t n)
{
    const uint8_t *block = blocks;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *b = block + i / 256 * 66, *part = b + 2 + i % 256 / 32 * 8;
        int which = (int)(i % 32 / 8), j = (int)(i % 8);
        uint32_t word = (uint32_t)part[4] | (uint32_t)part[5] << 8 | (uint32_t)part[6] << 16 |
                        (uint32_t)part[7] << 24;
        float factor = half_of(b) * (0.5F + (float)(word >> 28)) * 0.25F;
        uint32_t seven = word >> (7 * ((which + first_bit) % 4)) & 127;
        out[i] = factor * (float)grid[part[which]][j] * turned(seven, j);
    }
}

static void fill(cgam_rng *rng)
{
    for (int k = 0; k < 256; k++)
        for (int j = 0; j < 8; j++)
            grid[k][j] = (uint8_t)(1 + 17 * cgam_rng_below(rng, (uint64_t)kinds));
}

TEST(what_is_learned_gives_the_same_bits)
{
    enum { BLOCKS = 500, NUMBERS = BLOCKS * CGAM_IQ2_NUMBERS };
    static cgam_iq2 tables;
    static uint8_t blocks[BLOCKS * CGAM_IQ2_BYTES], codes[NUMBERS];
    static float got[NUMBERS], want[NUMBERS], values[NUMBERS / 32][8];
    cgam_rng rng = cgam_rng_stream(5, 0);
    first_bit = 0;
    for (kinds = 1; kinds <= 12; kinds++) {
        fill(&rng);
        assert_true(cgam_iq2_learn(judge, &tables));
        for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (uint8_t)cgam_rng_below(&rng, 256);
        for (int b = 0; b < BLOCKS; b++) blocks[b * CGAM_IQ2_BYTES + 1] &= 0xbf; /* d is finite */
        judge(blocks, want, NUMBERS);
        cgam_iq2_widen(&tables, blocks, NUMBERS, got);
        assert_memory_equal(got, want, sizeof got);
        assert_true(tables.coded == (kinds <= 4)); /* no room for more */
        if (!tables.coded) continue;
        cgam_iq2_decode(&tables, blocks, NUMBERS, codes, values);
        for (int i = 0; i < NUMBERS; i++) got[i] = values[i / 32][codes[i]];
        assert_memory_equal(got, want, sizeof got);
    }
}

TEST(a_judge_of_another_layout_is_not_believed)
{
    static cgam_iq2 tables;
    cgam_rng rng = cgam_rng_stream(6, 0);
    kinds = 3;
    fill(&rng);
    first_bit = 1;
    assert_false(cgam_iq2_learn(judge, &tables));
}
