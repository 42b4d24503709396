/* simd_avx2.h: the functions of simd.h with the instructions of AVX2, FMA and F16C. */

/* otherwise gcc 12 would convert the halves of a vector separately */
INLINE vd widen_f32(const float *p) { return (vd)_mm256_cvtps_pd(_mm_loadu_ps(p)); }

INLINE __m128i halves(const uint16_t *p) { return _mm_loadl_epi64((const __m128i *)p); }

INLINE vd widen_f16(const uint16_t *p) { return (vd)_mm256_cvtps_pd(_mm_cvtph_ps(halves(p))); }

INLINE vd widen_bf16(const uint16_t *p)
{
    __m128i words = _mm_slli_epi32(_mm_cvtepu16_epi32(halves(p)), 16);
    return (vd)_mm256_cvtps_pd(_mm_castsi128_ps(words));
}

INLINE vd larger_f64(vd a, vd b) { return (vd)_mm256_max_pd((__m256d)a, (__m256d)b); }

INLINE vf madd_f32(vf a, vf b, vf c)
{
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
INLINE vd madd_f64(vd a, vd b, vd c)
{
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

INLINE vd low(vf v) { return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)); }
INLINE vd high(vf v) { return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1)); }

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
    *a = (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    *b = (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)));
}

#define MASKED_F32
/* All ones in the first k lanes of eight. */
INLINE __m256i front(int64_t k)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)k), lane);
}

INLINE void some_f32(const float *p, int64_t k, vf *a, vf *b)
{
    *a = (vf)_mm256_maskload_ps(p, front(k));
    *b = k > 8 ? (vf)_mm256_maskload_ps(p + 8, front(k - 8)) : (vf){0};
}

/* The first k < 16 halves, which may begin at any byte pair; nothing behind them is read. */
INLINE __m256i some_halves(const uint16_t *p, int64_t k)
{
    __m256i pairs = _mm256_maskload_epi32((const int *)(const void *)p, front(k / 2));
    __m256i odd = _mm256_set1_epi32(k % 2 ? p[k - 1] : 0);
    return _mm256_or_si256(
        pairs, _mm256_andnot_si256(front(k / 2), _mm256_and_si256(odd, front(k / 2 + 1))));
}

INLINE void some_f16(const uint16_t *p, int64_t k, vf *a, vf *b)
{
    __m256i v = some_halves(p, k);
    *a = (vf)_mm256_cvtph_ps(_mm256_castsi256_si128(v));
    *b = (vf)_mm256_cvtph_ps(_mm256_extracti128_si256(v, 1));
}

INLINE void some_bf16(const uint16_t *p, int64_t k, vf *a, vf *b)
{
    vw v = (vw)some_halves(p, k);
    *a = (vf)(v << 16);
    *b = (vf)(v & 0xffff0000u);
}

INLINE void weave(vf *a, vf *b)
{
    __m256 near = _mm256_unpacklo_ps((__m256)*a, (__m256)*b);
    __m256 far = _mm256_unpackhi_ps((__m256)*a, (__m256)*b);
    *a = (vf)_mm256_permute2f128_ps(near, far, 0x20);
    *b = (vf)_mm256_permute2f128_ps(near, far, 0x31);
}

INLINE void reduce8(const vf *v, double *out)
{
    __m256 all = reduced8((const __m256 *)v);
    _mm256_storeu_pd(out, _mm256_cvtps_pd(_mm256_castps256_ps128(all)));
    _mm256_storeu_pd(out + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(all, 1)));
}
