/* Conversions: every 16-bit pattern there and back, and how halves are rounded. */
#include "base/env.h"
#include "support/check.h"

#include "num/cpu/widen.h"

#include <float.h>

/* What a pattern means, by its definition: sign, exponent, fraction. */
static double meaning(uint16_t bits, int fraction, int bias)
{
    int exponent = (bits & 0x7fff) >> fraction, all = 0x7fff >> fraction;
    int part = bits & ((1 << fraction) - 1);
    double size;
    if (exponent == all) size = part ? NAN : INFINITY;
    else if (exponent == 0) size = ldexp(part, 1 - bias - fraction);
    else size = ldexp(part + (1 << fraction), exponent - bias - fraction);
    return bits & 0x8000 ? -size : size;
}

static void every_pattern_of(cgam_dtype dtype, int fraction, int bias)
{
    for (int32_t k = 0; k < 65536; k++) {
        uint16_t bits = (uint16_t)k, back = 0x5a5a;
        double x, want = meaning(bits, fraction, bias);
        cgam_widen(dtype, &bits, 1, &x);
        cgam_narrow(dtype, &x, 1, &back);
        if (isnan(want)) {
            double again;
            cgam_widen(dtype, &back, 1, &again);
            assert_true(isnan(x) && isnan(again));
            assert_int_equal(back & 0x8000, bits & 0x8000);
        } else {
            CHECK_CLOSE(x, want, 0);
            assert_int_equal(signbit(x) != 0, bits >> 15);
            if (back != bits) fail_msg("0x%04x became %g and went back to 0x%04x", bits, x, back);
        }
    }
}

TEST(every_f16_pattern_goes_there_and_back) { every_pattern_of(CGAM_F16, 10, 15); }

TEST(every_bf16_pattern_goes_there_and_back) { every_pattern_of(CGAM_BF16, 7, 127); }

/* Between neighbours lo < hi: the nearer one, and half-way the even one. */
static void rounds_between_neighbours(cgam_dtype dtype, uint16_t largest)
{
    for (int32_t k = 0; k < largest; k++) {
        uint16_t lo = (uint16_t)k, hi = (uint16_t)(k + 1), even = k % 2 ? hi : lo, got[6];
        double a, b;
        cgam_widen(dtype, &lo, 1, &a);
        cgam_widen(dtype, &hi, 1, &b);
        double middle = a + (b - a) / 2;
        double x[6] = {middle,  nextafter(middle, -INFINITY), nextafter(middle, INFINITY),
                       -middle, nextafter(b, -INFINITY),      nextafter(a, INFINITY)};
        uint16_t want[6] = {even, lo, hi, (uint16_t)(even | 0x8000), hi, lo};
        cgam_narrow(dtype, x, 6, got);
        for (int i = 0; i < 6; i++)
            if (got[i] != want[i])
                fail_msg("%s: %.17g became 0x%04x, not 0x%04x", cgam_word(cgam_dtype_words, dtype),
                         x[i], got[i], want[i]);
    }
}

TEST(narrowing_rounds_to_nearest_even)
{
    rounds_between_neighbours(CGAM_F16, 0x7bff);
    rounds_between_neighbours(CGAM_BF16, 0x7f7f);
}

TEST(what_is_too_large_becomes_infinite)
{
    static const struct {
        cgam_dtype dtype;
        double x;
        uint16_t want;
    } list[] = {
        {CGAM_F16, 65504, 0x7bff},
        {CGAM_F16, 65519.999, 0x7bff},
        {CGAM_F16, 65520, 0x7c00},
        {CGAM_F16, -1e300, 0xfc00},
        {CGAM_F16, DBL_MAX, 0x7c00},
        {CGAM_F16, INFINITY, 0x7c00},
        {CGAM_F16, 0, 0},
        {CGAM_F16, -0.0, 0x8000},
        {CGAM_F16, DBL_TRUE_MIN, 0},
        {CGAM_F16, 0x1p-25, 0},
        {CGAM_F16, 0x1.0000001p-25, 1},
        {CGAM_BF16, 0x1.fep127, 0x7f7f},
        {CGAM_BF16, 0x1.ffp127, 0x7f80},
        {CGAM_BF16, -DBL_MAX, 0xff80},
        {CGAM_BF16, 0, 0},
        {CGAM_BF16, 1, 0x3f80},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        uint16_t got;
        cgam_narrow(list[i].dtype, &list[i].x, 1, &got);
        if (got != list[i].want) fail_msg("%.17g became 0x%04x", list[i].x, got);
    }
}

TEST(floats_and_integers_widen_exactly)
{
    cgam_rng rng = cgam_rng_stream(1, 0);
    for (int k = 0; k < 10000; k++) {
        uint32_t bits = cgam_rng_bits(&rng);
        float f, back;
        int32_t i;
        memcpy(&f, &bits, sizeof f);
        memcpy(&i, &bits, sizeof i);
        int64_t l = (int64_t)i * 1048573;
        double x;
        cgam_widen(CGAM_F32, &f, 1, &x);
        if (isnan(f)) {
            assert_true(isnan(x));
        } else {
            CHECK_CLOSE(x, f, 0);
            cgam_narrow(CGAM_F32, &x, 1, &back);
            assert_memory_equal(&back, &f, sizeof f);
        }
        cgam_widen(CGAM_I32, &i, 1, &x);
        CHECK_CLOSE(x, i, 0);
        cgam_widen(CGAM_I64, &l, 1, &x);
        CHECK_CLOSE(x, (double)l, 0);
        double d = x, copy, again;
        cgam_widen(CGAM_F64, &d, 1, &copy);
        cgam_narrow(CGAM_F64, &copy, 1, &again);
        assert_memory_equal(&again, &d, sizeof d);
    }
}
