/* recalls.h: how near the engine comes to what the machine can do - limits and recalls measured by
 * turns in one run, the best of several, as ratios.
 *
 * Limits: one reading of the bank, multiply-adds in registers, the sgemm and dgemm of the BLAS, on
 * the threads that the recalls have too, and exp on one. Times are wall seconds; CPU seconds stand
 * beside them.
 *
 * Queries are memories spread over the bank, the one that goes alone from its middle, so that what
 * a peaked softmax may leave out is known only from there on. Coupled recalls start between two
 * memories, which keeps every iteration in motion. */
#ifndef CGAM_BENCH_RECALLS_H
#define CGAM_BENCH_RECALLS_H

#include <cgam/base.h>

enum { CGAM_BENCH_PIECES = 16, CGAM_BENCH_RATIOS = 8 };

/* A time over that of a reading, or a rate over that of the BLAS. */
typedef struct cgam_bench_ratio {
    const char *work, *limit;
    double goal; /* 0 = none */
    bool at_most;
    double wall, cpu;
} cgam_bench_ratio;

typedef struct cgam_bench {
    const char *name[CGAM_BENCH_PIECES];
    double wall[CGAM_BENCH_PIECES], cpu[CGAM_BENCH_PIECES]; /* seconds of the best round */
    double read_gb_s, sgemm_gflop_s, dgemm_gflop_s, fma_gflop_s, exp_g_s;
    cgam_bench_ratio ratio[CGAM_BENCH_RATIOS];
} cgam_bench;

/* A random bank of `rows` memories, f32 and bf16; `runs` rounds of every piece. */
cgam_status cgam_bench_run(cgam_env *env, int64_t rows, int64_t columns, int64_t runs,
                           uint64_t seed, cgam_bench *out);

#endif
