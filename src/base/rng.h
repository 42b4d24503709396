/* rng.h: random numbers addressed, not drawn: Philox 4x32-10 (Salmon et al. 2011), a function from
 * (seed, stream, counter) to bits. Any number of any stream can be made again alone, so results do
 * not depend on the order of work or the number of threads. */
#ifndef CGAM_SRC_BASE_RNG_H
#define CGAM_SRC_BASE_RNG_H

#include <stdint.h>

typedef struct cgam_rng {
    uint32_t key[2];     /* the seed */
    uint32_t counter[4]; /* {position low, position high, stream low, stream high} */
    uint32_t block[4];
    int used; /* numbers of the block already handed out */
} cgam_rng;

/* The start of stream `stream` of `seed`. Streams do not overlap. */
cgam_rng cgam_rng_stream(uint64_t seed, uint64_t stream);
uint32_t cgam_rng_bits(cgam_rng *rng);
double cgam_rng_uniform(cgam_rng *rng); /* in [0, 1), 53 bits */
double cgam_rng_normal(cgam_rng *rng);  /* mean 0, variance 1; takes two uniforms */
/* Uniform in 0 .. n-1, n >= 1, without bias to 2^-53. */
int64_t cgam_rng_below(cgam_rng *rng, int64_t n);

#endif
