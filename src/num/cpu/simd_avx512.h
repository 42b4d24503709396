/* simd_avx512.h: the functions of simd.h with the instructions of AVX-512 F, BW, VL and DQ. The dot products of bf16
 * of later CPUs (VDPBF16PS) also round the query to bf16, so they cannot be used. */

/* otherwise gcc 12 would convert the halves of a vector separately */
INLINE vd widen_f32(const float *p) { return (vd)_mm512_cvtps_pd(_mm256_loadu_ps(p)); }

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

INLINE vd larger_f64(vd a, vd b) { return (vd)_mm512_max_pd((__m512d)a, (__m512d)b); }

INLINE vf madd_f32(vf a, vf b, vf c)
{
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
INLINE vd madd_f64(vd a, vd b, vd c)
{
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

INLINE vd low(vf v) { return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)); }
INLINE vd high(vf v) { return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1)); }

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
    *a = (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    *b = (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p + 16)));
}

#define MASKED_F32
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

INLINE void reduce8(const vf *v, double *out)
{
    __m256 h[8];
    for (int i = 0; i < 8; i++)
        h[i] = _mm256_add_ps(_mm512_castps512_ps256((__m512)v[i]),
                             _mm512_extractf32x8_ps((__m512)v[i], 1));
    _mm512_storeu_pd(out, _mm512_cvtps_pd(reduced8(h)));
}
