/* int8_vnni.c: int8.h with the instruction that adds four products of bytes to a lane (AVX-512 VNNI). One of its
 * factors is unsigned, so rows are read as z + 128. */
#include "num/cpu/int8.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"

typedef __m512i vb;

enum { BIAS = 128 };

INLINE vb load_row(const int8_t *p)
{
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
}

INLINE vi dot4(vi a, vb z, vb x) { return (vi)_mm512_dpbusd_epi32((__m512i)a, z, x); }

#include "num/cpu/int8_rows.h"

#include "num/cpu/int8_many.h"

extern const cgam_int8 cgam_int8_vnni, cgam_int8_many_vnni;
const cgam_int8 cgam_int8_vnni = {room, lay, dot, CGAM_INT8_MOST, dot_wide};
const cgam_int8 cgam_int8_many_vnni = {room_many, lay_many, dot_many, MOST_MANY, dot_wide};
#endif
