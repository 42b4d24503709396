/* limits.h: the best rates of a CPU, to compare recall with. */
#ifndef CGAM_BENCH_LIMITS_H
#define CGAM_BENCH_LIMITS_H

#include "num/cpu/cpu.h"

typedef struct cgam_limits {
    /* The exclusive or of all 64-bit words: what reading alone costs. */
    uint64_t (*read)(const uint64_t *words, int64_t n);
    /* `rounds` times burn_width multiply-adds in f32 that nothing holds up. */
    int64_t burn_width;
    float (*burn)(int64_t rounds);
    /* out[i] = exp(x[i]) to 2 ulp; n a multiple of 8 */
    void (*exp)(const double *x, int64_t n, double *out);
} cgam_limits;

/* The loops for the entry of cgam_cpu_all; those of `portable` for `plain`. */
const cgam_limits *cgam_limits_of(const cgam_cpu *cpu);

/* `rounds` times four products of tiles, each 16 x 16 x 32 multiply-adds of bf16. Only where a CPU has
 * `split`. */
void cgam_limits_tiles(int64_t rounds);

#endif
