/* int8_dotprod.c: int8.h by the instruction that adds four products of bytes to a lane (Arm v8.2 DotProd). */
#include "num/cpu/int8.h"

#if defined(__aarch64__)
#include "num/cpu/simd.h"

typedef int8x16_t vb;

enum { BIAS = 0 };

INLINE vb load_row(const int8_t *p) { return vld1q_s8(p); }
INLINE vi dot4(vi a, vb z, vb x) { return (vi)vdotq_s32((int32x4_t)a, z, x); }

#include "num/cpu/int8_rows.h"

#include "num/cpu/int8_many.h"

extern const cgam_int8 cgam_int8_dotprod, cgam_int8_many_dotprod;
const cgam_int8 cgam_int8_dotprod = {room, lay, dot, CGAM_INT8_MOST, dot_wide};
const cgam_int8 cgam_int8_many_dotprod = {room_many, lay_many, dot_many, MOST_MANY, dot_wide};
#endif
