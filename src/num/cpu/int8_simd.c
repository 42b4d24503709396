/* int8_simd.c: int8.h with the instructions that every CPU of a set has. Products are formed in 16 bits, where the sum of
 * two fits because neither factor is -128, and are summed in 32 bits. */
#include "num/cpu/int8.h"
#include "num/cpu/simd.h"

typedef int8_t vb __attribute__((vector_size(BYTES)));

enum { BIAS = 0 };

INLINE vb load_row(const int8_t *p)
{
    vb v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vi dot4(vi a, vb z, vb x)
{
#if BYTES == 64
    __m512i negated = _mm512_mask_sub_epi8((__m512i)x, _mm512_movepi8_mask((__m512i)z),
                                           _mm512_setzero_si512(), (__m512i)x);
    __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8((__m512i)z), negated);
    return a + (vi)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif BYTES == 32
    __m256i pairs =
        _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)z), _mm256_sign_epi8((__m256i)x, (__m256i)z));
    return a + (vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#elif defined(NEON)
    int8x16_t u = (int8x16_t)z, v = (int8x16_t)x;
    int32x4_t front = vpaddlq_s16(vmull_s8(vget_low_s8(u), vget_low_s8(v)));
    int32x4_t back = vpaddlq_s16(vmull_high_s8(u, v));
    return a + (vi)vpaddq_s32(front, back);
#else
    typedef int16_t wide __attribute__((vector_size(2 * BYTES)));
    wide product = __builtin_convertvector(z, wide) * __builtin_convertvector(x, wide);
    for (int k = 0; k < BYTES; k++) a[k / 4] += product[k];
    return a;
#endif
}

#include "num/cpu/int8_rows.h"

#if BYTES == 32
/* With z + 128 for z no sign has to change hands: three operations instead of five, where two products, at most
 * 255 most each, fit 16 bits. */
enum { BIAS_MANY = 128, MOST_MANY = 64, TALL = 4 };

INLINE vb load_many(const int8_t *p) { return load_row(p) ^ (int8_t)-128; }

INLINE vi dot4_many(vi a, vb z, vb x)
{
    __m256i pairs = _mm256_maddubs_epi16((__m256i)z, (__m256i)x);
    return a + (vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#define MANY_APART
#endif

#include "num/cpu/int8_many.h"

extern const cgam_int8 JOIN(cgam_int8, NAME), JOIN(cgam_int8_many, NAME);
const cgam_int8 JOIN(cgam_int8, NAME) = {room, lay, dot, CGAM_INT8_MOST, dot_wide};
const cgam_int8 JOIN(cgam_int8_many, NAME) = {room_many, lay_many, dot_many, MOST_MANY, dot_wide};
