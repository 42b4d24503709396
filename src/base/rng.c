/* rng.c: Philox 4x32-10. Constants and rounds as in J. K. Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3" (2011), table 2; tested against the authors' known answers. */
#include "base/rng.h"

#include <math.h>

static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

cgam_rng cgam_rng_stream(uint64_t seed, uint64_t stream)
{
    return (cgam_rng){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                      .counter = {0, 0, (uint32_t)stream, (uint32_t)(stream >> 32)},
                      .used = 4};
}

uint32_t cgam_rng_bits(cgam_rng *rng)
{
    if (rng->used == 4) {
        philox(rng->counter, rng->key, rng->block);
        if (++rng->counter[0] == 0) rng->counter[1]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

double cgam_rng_uniform(cgam_rng *rng)
{
    uint64_t high = cgam_rng_bits(rng), low = cgam_rng_bits(rng);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

double cgam_rng_normal(cgam_rng *rng)
{
    /* Box and Muller; 1 - u is in (0, 1], so the logarithm is finite. The second number of the pair is discarded: so
     * a normal depends only on its position. */
    double u = 1 - cgam_rng_uniform(rng), v = cgam_rng_uniform(rng);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

int64_t cgam_rng_below(cgam_rng *rng, int64_t n)
{
    return (int64_t)(cgam_rng_uniform(rng) * (double)n);
}
