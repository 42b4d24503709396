/* simd.h: what loops on vectors share: X_simd.c, each compiled once per set of instructions, with NAME,
 * what the set is called, and BYTES, the width of its vectors (see cpu.h).
 *
 * Of the set's own instructions, in simd_avx2.h, simd_avx512.h, simd_neon.h (NEON defined) or simd_portable.h:
 *   widen_f32(p), _f16, _bf16   as many numbers at p as vd has lanes, as doubles
 *   larger_f64(a, b)            a > b ? a : b, so the second where one is NaN
 *   madd_f32(a, b, c), _f64     a b + c, rounded once where the CPU has an instruction for it. Compilers contract a * b + c
 *                               if both are in one basic block, so copies of a loop would differ in their last bits
 *   low(v), high(v)             half of a vector of floats as doubles
 *   pair_f16(p, &a, &b)         halves at p as two vectors of floats
 *   weave(&a, &b)               a0 b0 a1 b1 .. as two vectors
 *   reduce8(v, out)             out[i] = sum of the lanes of v[i], i < 8
 * and, where the set has masked loads, first_* of f64_rows.h (MASKED) and some_* of f32_rows.h (MASKED_F32). */
#ifndef CGAM_SRC_NUM_CPU_SIMD_H
#define CGAM_SRC_NUM_CPU_SIMD_H

#include "num/cpu/vexp.h"

#include <stdint.h>
#include <string.h>
#if BYTES > 16
#include <immintrin.h>
#elif defined(NEON)
#include <arm_neon.h>
#endif

typedef float vf __attribute__((vector_size(BYTES)));
typedef double vd __attribute__((vector_size(BYTES), may_alias));
typedef int32_t vi __attribute__((vector_size(BYTES)));
typedef uint32_t vw __attribute__((vector_size(BYTES)));
typedef int64_t vl __attribute__((vector_size(BYTES), may_alias));
typedef uint64_t vu __attribute__((vector_size(BYTES)));
typedef float half __attribute__((vector_size(BYTES / 2))); /* as many floats as vd has doubles */

enum { VECTORS = BYTES == 64 ? 4 : 2 }; /* of a matrix, side by side in registers */

CGAM_VEXP(vexp, vd, vl, vu)

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

/* The cases of a switch over 0 .. 4, 7 or 16: f(k, ..) with k known to the compiler. */
#define CASE(k, f, ...)                                                                            \
    case k:                                                                                        \
        f(k, __VA_ARGS__);                                                                         \
        break;
#define CASES_4(...)                                                                               \
    CASE(0, __VA_ARGS__)                                                                           \
    CASE(1, __VA_ARGS__) CASE(2, __VA_ARGS__) CASE(3, __VA_ARGS__) CASE(4, __VA_ARGS__)
#define CASES_7(...)                                                                               \
    CASES_4(__VA_ARGS__) CASE(5, __VA_ARGS__) CASE(6, __VA_ARGS__) CASE(7, __VA_ARGS__)
#define CASES_16(...)                                                                              \
    CASES_7(__VA_ARGS__)                                                                           \
    CASE(8, __VA_ARGS__)                                                                           \
    CASE(9, __VA_ARGS__)                                                                           \
    CASE(10, __VA_ARGS__)                                                                          \
    CASE(11, __VA_ARGS__)                                                                          \
    CASE(12, __VA_ARGS__)                                                                          \
    CASE(13, __VA_ARGS__) CASE(14, __VA_ARGS__) CASE(15, __VA_ARGS__) CASE(16, __VA_ARGS__)

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

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

/* x in every lane; x - 0 is x, x + 0 is not where x = -0 and would be computed. */
INLINE vf all_f32(float x) { return x - (vf){0}; }
INLINE vd all_f64(double x) { return x - (vd){0}; }

INLINE void store_f32(float *p, vf v) { memcpy(p, &v, sizeof v); }
INLINE void store_f64(double *p, vd v) { memcpy(p, &v, sizeof v); }

/* Adds halves until one number is left. */
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

/* The same into the first-level cache. */
INLINE void prefetch_near(const void *p, int bytes)
{
    UNROLL
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)p + line, 0, 3);
}

INLINE vf pick_f32(vi mask, vf yes, vf no) { return (vf)(((vi)yes & mask) | ((vi)no & ~mask)); }
INLINE vd pick_f64(vl mask, vd yes, vd no) { return (vd)(((vl)yes & mask) | ((vl)no & ~mask)); }

#if BYTES > 16
/* Adds neighbours until each of the eight is one number. */
INLINE __m256 reduced8(const __m256 *v)
{
    __m256 a = _mm256_hadd_ps(v[0], v[1]), b = _mm256_hadd_ps(v[2], v[3]);
    __m256 c = _mm256_hadd_ps(v[4], v[5]), d = _mm256_hadd_ps(v[6], v[7]);
    __m256 e = _mm256_hadd_ps(a, b), f = _mm256_hadd_ps(c, d);
    return _mm256_add_ps(_mm256_permute2f128_ps(e, f, 0x20), _mm256_permute2f128_ps(e, f, 0x31));
}
#endif

#if BYTES == 64
#include "num/cpu/simd_avx512.h"
#elif BYTES == 32
#include "num/cpu/simd_avx2.h"
#elif defined(NEON)
#include "num/cpu/simd_neon.h"
#else
#include "num/cpu/simd_portable.h"
#endif

#endif
