/* cpu.h: the inner loops for the CPU at hand, chosen once: one table per set of instructions.
 *
 *   plain      X_plain.c: written without vectors, the reference for the others
 *   portable   X_simd.c, by vectors of 16 bytes, for any CPU
 *   avx2       the same files, 32 bytes: x86-64 with AVX2, FMA and F16C (2013 on)
 *   avxvnni    the loops of avx2, and sums of products of bytes by one instruction: with AVX-VNNI
 *   avx512     the same files, 64 bytes: x86-64 with AVX-512 F, BW, VL and DQ
 *   vnni       the loops of avx512, and such sums: with AVX-512 VNNI
 *   vnni_amd   the loops of vnni, without fetching lines of bf16 into the first-level cache: the same CPUs by AMD (Zen 4 on)
 *   amx        the loops of vnni, and products on tiles of bf16 and of bytes: with AMX and AVX-512 BF16 too, where
 *              the system lets us use them
 *   neon       the same files, 16 bytes: 64-bit Arm
 *   dotprod    the loops of neon, and sums of products of bytes by one instruction: with DotProd (2018 on)
 *
 * CMakeLists.txt compiles every X_simd.c once per set, with its name as NAME and its width as BYTES.
 * Another layer that has such a file (lab/synthetic/lanes_simd.c) declares one for each of CGAM_CPU_SETS, lists
 * them by CGAM_CPU_ROWS, and finds its own by a CPU's place in cgam_cpu_all. */
#ifndef CGAM_SRC_NUM_CPU_H
#define CGAM_SRC_NUM_CPU_H

#include "num/cpu/digits.h"
#include "num/cpu/f32.h"
#include "num/cpu/f64.h"
#include "num/cpu/gemm.h"
#include "num/cpu/int8.h"
#include "num/cpu/sift.h"
#include "num/cpu/split.h"

#if defined(__x86_64__)
#define CGAM_CPU_SETS(X) X(portable) X(avx2) X(avx512)
#define CGAM_CPU_ROWS(X) X(portable) X(avx2) X(avx2) X(avx512) X(avx512) X(avx512) X(avx512)
#elif defined(__aarch64__)
#define CGAM_CPU_SETS(X) X(portable) X(neon)
#define CGAM_CPU_ROWS(X) X(portable) X(neon) X(neon)
#else
#define CGAM_CPU_SETS(X) X(portable)
#define CGAM_CPU_ROWS(X) X(portable)
#endif

typedef struct cgam_cpu {
    const char *name;
    bool (*usable)(void);       /* does this CPU run it */
    const cgam_f64 *f64;        /* rows scored and read out in double; softmax */
    const cgam_f32 *f32;        /* the same in f32, where that is exact enough */
    const cgam_gemm *gemm;      /* products of matrices, softmax by columns */
    const cgam_int8 *int8;      /* rows of bytes by vectors of bytes */
    const cgam_int8 *int8_many; /* the same for many vectors, on a unit for tiles if there is one */
    const cgam_sift *sift;      /* decides which rows such scores leave open */
    const cgam_split *split;    /* products by tiles of bf16; NULL without such a unit */
    const cgam_digits *digits;  /* rows by many vectors, on tiles of bytes; NULL likewise */
} cgam_cpu;

/* Plain first, then by rising speed; ends with a NULL name. This CPU may not support all entries. */
extern const cgam_cpu cgam_cpu_all[];

/* Returns the fastest usable entry, or the one that the variable CGAM_CPU names, if this CPU can run it. */
const cgam_cpu *cgam_cpu_best(void);
/* Makes `cpu`, which must be usable, the best from now on; NULL = detect again. For tests and benches only; not
 * thread-safe. */
void cgam_cpu_pretend(const cgam_cpu *cpu);

#endif
