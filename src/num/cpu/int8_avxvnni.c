/* int8_avxvnni.c: int8_vnni.c for CPUs that have the instruction for 32 bytes only (AVX-VNNI). */
#include "num/cpu/int8.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"

typedef __m256i vb;

enum { BIAS = 128 };

INLINE vb load_row(const int8_t *p)
{
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)p),
                            _mm256_set1_epi8(-128));
}

INLINE vi dot4(vi a, vb z, vb x) { return (vi)_mm256_dpbusd_avx_epi32((__m256i)a, z, x); }

#include "num/cpu/int8_rows.h"

#include "num/cpu/int8_many.h"

extern const cgam_int8 cgam_int8_avxvnni, cgam_int8_many_avxvnni;
const cgam_int8 cgam_int8_avxvnni = {room, lay, dot, CGAM_INT8_MOST, dot_wide};
const cgam_int8 cgam_int8_many_avxvnni = {room_many, lay_many, dot_many, MOST_MANY, dot_wide};
#endif
