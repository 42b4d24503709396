/* f32_avx512.c: f32 scores and readouts for x86-64 with AVX-512 F, BW, VL and DQ. The dot
 * products of bf16 that later CPUs have (VDPBF16PS) round the query to bf16 too, so they are of no
 * use. */
#if defined(__x86_64__)
#define NAME avx512
#define BYTES 64
#include "num/cpu/simd.h"

INLINE vd low(vf v) { return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)); }
INLINE vd high(vf v) { return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1)); }

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
    *a = (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    *b = (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p + 16)));
}

#define MASKED
/* Masks of the first k < 32 lanes of a pair: of both vectors, the first, the second. */
#define FEW(k) ((__mmask32)((UINT64_C(1) << (k)) - 1))
#define FRONT(k) ((__mmask16)FEW(k))
#define BACK(k) ((__mmask16)(FEW(k) >> 16))

INLINE void some_f32(const float *p, int64_t k, vf *a, vf *b)
{
    *a = (vf)_mm512_maskz_loadu_ps(FRONT(k), p);
    *b = k > 16 ? (vf)_mm512_maskz_loadu_ps(BACK(k), p + 16) : (vf){0};
}

INLINE void some_f16(const uint16_t *p, int64_t k, vf *a, vf *b)
{
    *a = (vf)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FRONT(k), p));
    *b = k > 16 ? (vf)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(BACK(k), p + 16)) : (vf){0};
}

INLINE void some_bf16(const uint16_t *p, int64_t k, vf *a, vf *b)
{
    vw v = (vw)_mm512_maskz_loadu_epi16(FEW(k), p);
    *a = (vf)(v << 16);
    *b = (vf)(v & 0xffff0000u);
}

INLINE void weave(vf *a, vf *b)
{
    const __m512i near = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i far =
        _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    __m512 u = (__m512)*a, v = (__m512)*b;
    *a = (vf)_mm512_permutex2var_ps(u, near, v);
    *b = (vf)_mm512_permutex2var_ps(u, far, v);
}

/* The halves of each, then neighbours, until each of the eight is one number. */
INLINE void reduce8(const vf *v, double *out)
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

#include "num/cpu/f32_body.h"
#endif
