/* The loops that measure the machine do what they are timed for. */
#include "support/check.h"

#include "bench/limits.h"
#include <cgam/rng.h>

static void every_word_is_read(void **state)
{
    (void)state;
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
static void every_multiplication_is_made(void **state)
{
    (void)state;
    for (const cgam_cpu *cpu = cgam_cpu_all + 1; cpu->name; cpu++) {
        if (!cpu->usable()) continue;
        int64_t sums = cgam_limits_of(cpu)->burn_width / cpu->gemm->lanes32;
        assert_true(cgam_limits_of(cpu)->burn(64) == 2 * (float)sums);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_word_is_read),
                                       cmocka_unit_test(every_multiplication_is_made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
