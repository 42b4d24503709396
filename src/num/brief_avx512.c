/* brief_avx512.c: f32 scores and readouts for x86-64 with AVX-512 F, BW, VL and DQ. The dot products
 * of bf16 that later CPUs have (VDPBF16PS) round the query to bf16 too, so they are of no use. */
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
#define LANES 16
#define USABLE usable
#define LOW(v) ((vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)(v))))
#define HIGH(v) ((vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)(v), 1)))
#define FEW(k) ((uint32_t)((UINT64_C(1) << (k)) - 1)) /* a mask of the first k of 32 */
#define FRONT(k) ((__mmask16)FEW(k))
#define BACK(k) ((__mmask16)(FEW(k) >> 16))
#define HALF(p) _mm256_loadu_si256((const __m256i *)(p))
#define PAIR_F16(p, a, b)                                                                          \
    (*(a) = (vf)_mm512_cvtph_ps(HALF(p)), *(b) = (vf)_mm512_cvtph_ps(HALF((p) + 16)))
#define SOME_F32(p, k, a, b)                                                                       \
    (*(a) = (vf)_mm512_maskz_loadu_ps(FRONT(k), p),                                                \
     *(b) = (k) > 16 ? (vf)_mm512_maskz_loadu_ps(BACK(k), (p) + 16) : (vf){0})
#define SOME_F16(p, k, a, b)                                                                       \
    (*(a) = (vf)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FRONT(k), p)),                            \
     *(b) = (k) > 16 ? (vf)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(BACK(k), (p) + 16)) : (vf){0})
#define SOME_BF16(p, k, a, b)                                                                      \
    do {                                                                                           \
        vw some_ = (vw)_mm512_maskz_loadu_epi16(FEW(k), p);                                        \
        *(a) = (vf)(some_ << 16);                                                                  \
        *(b) = (vf)(some_ & 0xffff0000u);                                                          \
    } while (0)
#define WEAVE(a, b) weave(a, b)
#define REDUCE8(v, out) reduce8(v, out)

typedef float vf16 __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) void weave(vf16 *a, vf16 *b)
{
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high =
        _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    __m512 u = (__m512)*a, v = (__m512)*b;
    *a = (vf16)_mm512_permutex2var_ps(u, low, v);
    *b = (vf16)_mm512_permutex2var_ps(u, high, v);
}

/* The halves of each, then neighbours, until each of the eight is one number. */
static inline __attribute__((always_inline)) void reduce8(const vf16 *v, double *out)
{
    __m256 h[8];
    for (int i = 0; i < 8; i++)
        h[i] = _mm256_add_ps(_mm512_castps512_ps256((__m512)v[i]),
                             _mm512_extractf32x8_ps((__m512)v[i], 1));
    __m256 a = _mm256_hadd_ps(h[0], h[1]), b = _mm256_hadd_ps(h[2], h[3]);
    __m256 c = _mm256_hadd_ps(h[4], h[5]), d = _mm256_hadd_ps(h[6], h[7]);
    __m256 e = _mm256_hadd_ps(a, b), f = _mm256_hadd_ps(c, d);
    __m256 all =
        _mm256_add_ps(_mm256_permute2f128_ps(e, f, 0x20), _mm256_permute2f128_ps(e, f, 0x31));
    _mm512_storeu_pd(out, _mm512_cvtps_pd(all));
}
#include "num/brief_body.h"
#endif
