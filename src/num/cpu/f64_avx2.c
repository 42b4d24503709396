/* f64_avx2.c: the kernels for x86-64 with AVX2, FMA and F16C (2013 on). */
#if defined(__x86_64__)
#define NAME avx2
#define BYTES 32
#include "num/cpu/simd.h"

INLINE __m128i halves(const uint16_t *p) { return _mm_loadl_epi64((const __m128i *)p); }

INLINE vd widen_f16(const uint16_t *p) { return (vd)_mm256_cvtps_pd(_mm_cvtph_ps(halves(p))); }

INLINE vd widen_bf16(const uint16_t *p)
{
    __m128i words = _mm_slli_epi32(_mm_cvtepu16_epi32(halves(p)), 16);
    return (vd)_mm256_cvtps_pd(_mm_castsi128_ps(words));
}

#include "num/cpu/f64_body.h"
#endif
