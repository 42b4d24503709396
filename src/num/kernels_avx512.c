/* kernels_avx512.c: the kernels for x86-64 with AVX-512 F, BW, VL and DQ. */
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

static bool usable(void)
{
    unsigned a, b, c, d; /* clang 14 has no name for F16C, so the CPU is asked itself */
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#define NAME avx512
#define LANES 8
#define USABLE usable
#define FEW(k) ((1u << (k)) - 1) /* a mask of the first k lanes */
#define HALVES(p) _mm_loadu_si128((const __m128i *)(p))
#define FROM_BF16(h)                                                                               \
    _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)))
#define WIDEN_F32(p) ((vd)_mm512_cvtps_pd(_mm256_loadu_ps(p)))
#define WIDEN_F16(p) ((vd)_mm512_cvtps_pd(_mm256_cvtph_ps(HALVES(p))))
#define WIDEN_BF16(p) ((vd)FROM_BF16(HALVES(p)))
#define FIRST_F64(p, k) ((vd)_mm512_maskz_loadu_pd((__mmask8)FEW(k), p))
#define FIRST_F32(p, k) ((vd)_mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)FEW(k), p)))
#define FIRST_F16(p, k)                                                                            \
    ((vd)_mm512_cvtps_pd(_mm256_cvtph_ps(_mm_maskz_loadu_epi16((__mmask8)FEW(k), p))))
#define FIRST_BF16(p, k) ((vd)FROM_BF16(_mm_maskz_loadu_epi16((__mmask8)FEW(k), p)))
#include "num/kernels_body.h"
#endif
