/* brief_avx2.c: f32 scores and readouts for x86-64 with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

static bool usable(void)
{
    unsigned a, b, c, d; /* clang 14 has no name for F16C, so the CPU is asked itself */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#define NAME avx2
#define LANES 8
#define USABLE usable
#define LOW(v) ((vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)(v))))
#define HIGH(v) ((vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)(v), 1)))
#define PAIR_F16(p, a, b)                                                                          \
    (*(a) = (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p))),                            \
     *(b) = (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((p) + 8))))
#define WEAVE(a, b) weave(a, b)
#define REDUCE8(v, out) reduce8(v, out)

typedef float vf8 __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void weave(vf8 *a, vf8 *b)
{
    __m256 low = _mm256_unpacklo_ps((__m256)*a, (__m256)*b);
    __m256 high = _mm256_unpackhi_ps((__m256)*a, (__m256)*b);
    *a = (vf8)_mm256_permute2f128_ps(low, high, 0x20);
    *b = (vf8)_mm256_permute2f128_ps(low, high, 0x31);
}

/* Neighbours are added up until each of the eight is one number. */
static inline __attribute__((always_inline)) void reduce8(const vf8 *v, double *out)
{
    __m256 a = _mm256_hadd_ps((__m256)v[0], (__m256)v[1]);
    __m256 b = _mm256_hadd_ps((__m256)v[2], (__m256)v[3]);
    __m256 c = _mm256_hadd_ps((__m256)v[4], (__m256)v[5]);
    __m256 d = _mm256_hadd_ps((__m256)v[6], (__m256)v[7]);
    __m256 e = _mm256_hadd_ps(a, b), f = _mm256_hadd_ps(c, d);
    __m256 all =
        _mm256_add_ps(_mm256_permute2f128_ps(e, f, 0x20), _mm256_permute2f128_ps(e, f, 0x31));
    _mm256_storeu_pd(out, _mm256_cvtps_pd(_mm256_castps256_ps128(all)));
    _mm256_storeu_pd(out + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(all, 1)));
}
#include "num/brief_body.h"
#endif
