/* rng.h: random numbers, counter-based.
 *
 * Philox 4x32-10 (Salmon et al. 2011) is a function from (seed, stream, position) to bits: any number
 * of any stream can be computed alone, so results do not depend on the order of work or the number
 * of threads. Give each trial its own stream. Not for cryptography.
 *
 * A cgam_rng is a plain value: copy it to repeat the numbers from the same position, keep it on the
 * stack, use it in one thread at a time. Nothing here fails or allocates. */
#ifndef CGAM_SRC_BASE_RNG_H
#define CGAM_SRC_BASE_RNG_H

#include <stdint.h>

typedef struct cgam_rng {
    uint32_t key[2];     /* the seed */
    uint32_t counter[4]; /* {position low, position high, stream low, stream high} */
    uint32_t block[4];   /* the bits at the last position */
    int used;            /* how many of the four have been used */
} cgam_rng;

/* The start of stream `stream` of `seed`. Streams do not overlap: each holds 2^66 numbers. */
cgam_rng cgam_rng_stream(uint64_t seed, uint64_t stream);

double cgam_rng_uniform(cgam_rng *rng); /* in [0, 1), 53 bits; takes two numbers */
double cgam_rng_normal(cgam_rng *rng);  /* mean 0, variance 1; takes four */
/* Uniform in 0 .. n-1, without bias to 2^-53; n >= 1. */
int64_t cgam_rng_below(cgam_rng *rng, int64_t n);
/* 32 random bits, the only source of all random numbers. */
uint32_t cgam_rng_bits(cgam_rng *rng);

#endif
