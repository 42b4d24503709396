/* Random numbers: the authors' known answers, and that streams are addresses. */
#include "base/env.h"
#include "support/check.h"

/* kat_vectors of the Random123 distribution, philox4x32 with 10 rounds. */
TEST(known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } list[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        cgam_rng rng = {.used = 4};
        memcpy(rng.counter, list[i].counter, sizeof rng.counter);
        memcpy(rng.key, list[i].key, sizeof rng.key);
        for (int k = 0; k < 4; k++) assert_int_equal(cgam_rng_bits(&rng), list[i].want[k]);
    }
}

TEST(a_stream_starts_where_it_says)
{
    cgam_rng a = cgam_rng_stream(7, 3), b = cgam_rng_stream(7, 3), c = cgam_rng_stream(7, 4),
             d = cgam_rng_stream(8, 3), e = cgam_rng_stream(7, 3 + ((uint64_t)1 << 32));
    int same_c = 0, same_d = 0, same_e = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t x = cgam_rng_bits(&a);
        assert_int_equal(x, cgam_rng_bits(&b));
        same_c += x == cgam_rng_bits(&c);
        same_d += x == cgam_rng_bits(&d);
        same_e += x == cgam_rng_bits(&e);
    }
    assert_true(same_c < 3 && same_d < 3 && same_e < 3);
}

TEST(the_counter_carries)
{
    cgam_rng low = cgam_rng_stream(1, 2), high = cgam_rng_stream(1, 2);
    low.counter[0] = 0xffffffff;
    for (int k = 0; k < 4; k++) cgam_rng_bits(&low);
    high.counter[1] = 1;
    for (int k = 0; k < 8; k++) assert_int_equal(cgam_rng_bits(&low), cgam_rng_bits(&high));
}

TEST(moments_are_those_of_the_distributions)
{
    enum { COUNT = 200000 };
    cgam_rng rng = cgam_rng_stream(11, 0);
    double mean = 0, square = 0, normal = 0, normal2 = 0, normal4 = 0;
    int64_t seen[7] = {0};
    for (int i = 0; i < COUNT; i++) {
        double u = cgam_rng_uniform(&rng), z = cgam_rng_normal(&rng);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        mean += u / COUNT;
        square += u * u / COUNT;
        normal += z / COUNT;
        normal2 += z * z / COUNT;
        normal4 += z * z * z * z / COUNT;
        int64_t k = cgam_rng_below(&rng, 7);
        assert_in_range(k, 0, 6);
        seen[k]++;
    }
    double five = 5 / sqrt(COUNT); /* five standard errors, times the standard deviation */
    CHECK_CLOSE(mean, 0.5, five * 0.289);
    CHECK_CLOSE(square, 1.0 / 3, five * 0.298);
    CHECK_CLOSE(normal, 0, five);
    CHECK_CLOSE(normal2, 1, five * 1.415);
    CHECK_CLOSE(normal4, 3, five * 9.8);
    for (int k = 0; k < 7; k++) CHECK_CLOSE((double)seen[k] / COUNT, 1.0 / 7, five * 0.35);
}
