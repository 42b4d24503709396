/* f64_avx512.c: the kernels for x86-64 with AVX-512 F, BW, VL and DQ. */
#if defined(__x86_64__)
#define NAME avx512
#define BYTES 64
#include "num/cpu/simd.h"

INLINE vd from_f16(__m128i h) { return (vd)_mm512_cvtps_pd(_mm256_cvtph_ps(h)); }

INLINE vd from_bf16(__m128i h)
{
    __m256i words = _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
    return (vd)_mm512_cvtps_pd(_mm256_castsi256_ps(words));
}

INLINE __m128i halves(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
INLINE vd widen_f16(const uint16_t *p) { return from_f16(halves(p)); }
INLINE vd widen_bf16(const uint16_t *p) { return from_bf16(halves(p)); }

#define MASKED
/* A mask of the first k lanes. */
INLINE __mmask8 few(int64_t k) { return (__mmask8)((1u << k) - 1); }

INLINE vd first_f64(const double *p, int64_t k) { return (vd)_mm512_maskz_loadu_pd(few(k), p); }

INLINE vd first_f32(const float *p, int64_t k)
{
    return (vd)_mm512_cvtps_pd(_mm256_maskz_loadu_ps(few(k), p));
}

INLINE vd first_f16(const uint16_t *p, int64_t k)
{
    return from_f16(_mm_maskz_loadu_epi16(few(k), p));
}

INLINE vd first_bf16(const uint16_t *p, int64_t k)
{
    return from_bf16(_mm_maskz_loadu_epi16(few(k), p));
}

#include "num/cpu/f64_body.h"
#endif
