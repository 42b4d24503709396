/* f32_avx2.c: f32 scores and readouts for x86-64 with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#define NAME avx2
#define BYTES 32
#include "num/cpu/simd.h"

INLINE vd low(vf v) { return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)); }
INLINE vd high(vf v) { return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1)); }

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
    *a = (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    *b = (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)));
}

INLINE void weave(vf *a, vf *b)
{
    __m256 near = _mm256_unpacklo_ps((__m256)*a, (__m256)*b);
    __m256 far = _mm256_unpackhi_ps((__m256)*a, (__m256)*b);
    *a = (vf)_mm256_permute2f128_ps(near, far, 0x20);
    *b = (vf)_mm256_permute2f128_ps(near, far, 0x31);
}

/* Neighbours are added up until each of the eight is one number. */
INLINE void reduce8(const vf *v, double *out)
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

#include "num/cpu/f32_body.h"
#endif
