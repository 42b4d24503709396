/* rng.h: random numbers addressed, not drawn.
 *
 * Philox 4x32-10 (Salmon et al. 2011) is a function from (seed, stream, position) to bits: any number
 * of any stream can be made again alone, so results do not depend on the order of work or the number
 * of threads. Give every trial a stream of its own. Not for secrets.
 *
 * A cgam_rng is a plain value: copy it to go on twice from the same place, keep it on the stack, let
 * one thread at a time use it. Nothing here can fail or allocates. */
#ifndef CGAM_RNG_H
#define CGAM_RNG_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_rng {
    uint32_t key[2];     /* the seed */
    uint32_t counter[4]; /* {position low, position high, stream low, stream high} */
    uint32_t block[4];   /* the bits at the last position */
    int used;            /* how many of the four have been handed out */
} cgam_rng;

/* The start of stream `stream` of `seed`. Streams do not overlap: each holds 2^66 numbers. */
CGAM_API cgam_rng cgam_rng_stream(uint64_t seed, uint64_t stream);

CGAM_API uint32_t cgam_rng_bits(cgam_rng *rng);  /* 32 bits, the only source of the rest */
CGAM_API double cgam_rng_uniform(cgam_rng *rng); /* in [0, 1), 53 bits; takes two numbers */
CGAM_API double cgam_rng_normal(cgam_rng *rng);  /* mean 0, variance 1; takes four */
/* Uniform in 0 .. n-1, without bias to 2^-53; n >= 1. */
CGAM_API int64_t cgam_rng_below(cgam_rng *rng, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
