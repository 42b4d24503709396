/* limits_simd.c: limits.h with vectors of BYTES bytes. */
#include "bench/limits.h"
#include "num/cpu/simd.h"

enum {
    LANES = BYTES / 8,
    SUMS = BYTES == 64 ? 24 : 12, /* as many as registers hold */
    AHEAD = 16384,                /* bytes that prefetching is ahead of the reading */
};

static uint64_t read_all(const uint64_t *words, int64_t n)
{
    vl a = {0}, b = {0}, c = {0}, e = {0}, v[4];
    int64_t i = 0;
    uint64_t lane[LANES], all = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        prefetch_lines(words + i + AHEAD / 8, 32 * LANES);
        memcpy(v, words + i, sizeof v);
        a ^= v[0];
        b ^= v[1];
        c ^= v[2];
        e ^= v[3];
    }
    a ^= b ^ c ^ e;
    memcpy(lane, &a, sizeof a);
    for (int k = 0; k < LANES; k++) all ^= lane[k];
    for (; i < n; i++) all ^= words[i];
    return all;
}

static float burn(int64_t rounds)
{
    vf a[SUMS], half_one = (vf){0} + 0.5f, all = {0};
    UNROLL
    for (int k = 0; k < SUMS; k++) a[k] = (vf){0} + (float)k;
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int k = 0; k < SUMS; k++) a[k] = a[k] * half_one + 1.0f;
    }
    UNROLL
    for (int k = 0; k < SUMS; k++) all += a[k];
    return all[0];
}

static void exp_all(const double *x, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i += LANES) store_f64(out + i, vexp(load_f64(x + i)));
}

extern const cgam_limits JOIN(cgam_limits, NAME);
const cgam_limits JOIN(cgam_limits, NAME) = {
    .read = read_all, .burn_width = SUMS * BYTES / 4, .burn = burn, .exp = exp_all};
