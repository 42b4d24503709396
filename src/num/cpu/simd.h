/* simd.h: what the loops on vectors share. f32_body.h, f64_body.h and gemm_body.h are
 * compiled once per CPU, by X_portable.c, X_avx2.c and X_avx512.c; each of those defines NAME, the
 * end of its own name, and BYTES, the width of its vectors, and includes this file first. */
#ifndef CGAM_SRC_NUM_CPU_SIMD_H
#define CGAM_SRC_NUM_CPU_SIMD_H

#include "num/cpu/cpu.h"

#include <stdint.h>
#include <string.h>
#if BYTES > 16
#include <immintrin.h>
#endif

typedef float vf __attribute__((vector_size(BYTES)));
typedef double vd __attribute__((vector_size(BYTES)));
typedef int32_t vi __attribute__((vector_size(BYTES)));
typedef uint32_t vw __attribute__((vector_size(BYTES)));
typedef int64_t vl __attribute__((vector_size(BYTES)));
typedef uint64_t vu __attribute__((vector_size(BYTES)));
typedef float half __attribute__((vector_size(BYTES / 2))); /* as many floats as vd has doubles */

/* UNROLL: a loop of constant length whose arrays are to become registers. INLINE: a function, often
 * with such a length among its arguments, of which every call gets a copy. Sanitizers check every
 * access in every copy, which takes minutes to compile, so where they are on, one copy serves. */
#if defined(CGAM_CHECKED)
#define UNROLL
#define INLINE static inline
#else
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

INLINE vf load_f32(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vd load_f64(const double *p)
{
    vd v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store_f32(float *p, vf v) { memcpy(p, &v, sizeof v); }
INLINE void store_f64(double *p, vd v) { memcpy(p, &v, sizeof v); }

/* The instructions are named where gcc 12 would convert both halves of a vector by themselves. */
INLINE vd widen_f32(const float *p)
{
#if BYTES == 64
    return (vd)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif BYTES == 32
    return (vd)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    half v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vd);
#endif
}

/* Halves are added up until one number is left. */
INLINE double lanes_sum(vd v)
{
    double lane[BYTES / 8];
    store_f64(lane, v);
    for (int k = BYTES / 16; k > 0; k /= 2)
        for (int j = 0; j < k; j++) lane[j] += lane[j + k];
    return lane[0];
}

/* The lines of `bytes` (a constant) bytes from p on, into the second-level cache. */
INLINE void prefetch_lines(const void *p, int bytes)
{
    UNROLL
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)p + line, 0, 2);
}

#endif
