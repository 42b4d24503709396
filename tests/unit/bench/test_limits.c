/* The loops that measure the machine do what they are timed for, exp as the other loops have it
 * among them. */
#include "support/check.h"
#include "support/dense.h"

#include "bench/limits.h"

TEST(every_word_is_read)
{
    uint64_t words[200];
    cgam_rng rng = cgam_rng_stream(2, 0);
    for (int i = 0; i < 200; i++) words[i] = (uint64_t)(cgam_rng_uniform(&rng) * 0x1p63);
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++) {
        if (!cpu->usable()) continue;
        for (int64_t n = 0; n <= 190; n++) {
            uint64_t all = 0;
            for (int64_t i = 0; i < n; i++) all ^= words[n % 5 + i];
            assert_true(cgam_limits_of(cpu)->read(words + n % 5, n) == all);
        }
    }
}

/* Every sum goes to 2, the fixed point of x / 2 + 1, and has arrived in f32 after 64 rounds. */
TEST(every_multiplication_is_made)
{
    for (const cgam_cpu *cpu = cgam_cpu_all + 1; cpu->name; cpu++) {
        if (!cpu->usable()) continue;
        int64_t sums = cgam_limits_of(cpu)->burn_width / cpu->gemm->lanes32;
        assert_true(cgam_limits_of(cpu)->burn(64) == 2 * (float)sums);
    }
}

TEST(exponentials_are_good_to_two_ulp)
{
    enum { COUNT = 20000 };
    const double odd[] = {0,    -0.0, INFINITY, -INFINITY, 1e6, -1e6, 5e-324, 710,
                          -746, NAN,  1,        -1,        709, -709, 1e-300, -1e-300};
    double *x = dense_room(COUNT), *y = dense_room(COUNT);
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++) {
        if (!cpu->usable()) continue;
        cgam_rng rng = cgam_rng_stream(2, 1);
        for (int i = 0; i < COUNT; i++) x[i] = dense_between(&rng, -745, 709.7);
        for (int i = 0; i < 100; i++) x[i] = dense_between(&rng, -1e-3, 1e-3) * (i % 7);
        cgam_limits_of(cpu)->exp(x, COUNT, y);
        for (int i = 0; i < COUNT; i++) CHECK_LE(check_ulps(y[i], expl((long double)x[i])), 2);
        cgam_limits_of(cpu)->exp(odd, 16, y);
        for (int i = 0; i < 9; i++) CHECK_CLOSE(y[i], exp(odd[i]), 0);
        assert_true(isnan(y[9]));
    }
    dense_reset();
}
