/* widen.c: conversions between the storage types and double, in portable C. The kernels have
 * faster ones of their own and are tested against these. */
#include "num/cpu/widen.h"

#include <string.h>

/* Moves exponent and fraction to their places in a float, 112 too low, which a multiplication
 * corrects exactly, subnormals included; exponent 31 is set to the float's own infinity. */
static double from_f16(uint16_t h)
{
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    float f;
    if (bits >= (uint32_t)31 << 23) {
        bits |= 0x7f800000u;
        memcpy(&f, &bits, sizeof f);
    } else {
        memcpy(&f, &bits, sizeof f);
        f *= 0x1p112f;
    }
    return h & 0x8000 ? -f : f;
}

static double from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* m / 2^shift, to the nearest, ties to even; m < 2^62, 0 < shift < 63 */
static uint64_t shifted(uint64_t m, int shift)
{
    return (m + (UINT64_C(1) << (shift - 1)) - 1 + (m >> shift & 1)) >> shift;
}

/* Rounds to a 16-bit float of `fraction` stored bits with normal exponents emin .. emax.
 * Exponent and fraction of a double are neighbours, so with the exponent counted from emin - 1 the code is one
 * shift away, and a carry of the fraction raises the exponent, up to infinity. What is below the normal range has its leading
 * one written out and is shifted further. */
static uint16_t to_half(double x, int fraction, int emin, int emax)
{
    uint64_t bits, tiniest = (uint64_t)(1023 + emin) << 52, one = UINT64_C(1) << 52, code;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    uint16_t infinity = (uint16_t)((emax - emin + 2) << fraction);
    bits &= ~(UINT64_C(1) << 63);
    if (bits > UINT64_C(0x7ff) << 52) return (uint16_t)(sign | infinity | (1u << (fraction - 1)));
    if (bits >= tiniest) {
        code = shifted(bits - tiniest + one, 52 - fraction);
    } else { /* a double below its own normal range is zero here */
        int shift = 52 - fraction + (int)((tiniest >> 52) - (bits >> 52));
        code = shift < 63 ? shifted((bits & (one - 1)) | one, shift) : 0;
    }
    return sign | (code >= infinity ? infinity : (uint16_t)code);
}

void cgam_widen(cgam_dtype dtype, const void *src, int64_t n, double *dst)
{
    switch (dtype) {
    case CGAM_F64: memcpy(dst, src, (size_t)n * sizeof *dst); break;
    case CGAM_F32:
        for (int64_t i = 0; i < n; i++) dst[i] = ((const float *)src)[i];
        break;
    case CGAM_F16:
        for (int64_t i = 0; i < n; i++) dst[i] = from_f16(((const uint16_t *)src)[i]);
        break;
    case CGAM_BF16:
        for (int64_t i = 0; i < n; i++) dst[i] = from_bf16(((const uint16_t *)src)[i]);
        break;
    case CGAM_I64:
        for (int64_t i = 0; i < n; i++) dst[i] = (double)((const int64_t *)src)[i];
        break;
    case CGAM_I32:
        for (int64_t i = 0; i < n; i++) dst[i] = ((const int32_t *)src)[i];
        break;
    }
}

void cgam_narrow(cgam_dtype dtype, const double *src, int64_t n, void *dst)
{
    switch (dtype) {
    case CGAM_F64: memcpy(dst, src, (size_t)n * sizeof *src); break;
    case CGAM_F32:
        for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = (float)src[i];
        break;
    case CGAM_F16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)dst)[i] = to_half(src[i], 10, -14, 15);
        break;
    case CGAM_BF16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)dst)[i] = to_half(src[i], 7, -126, 127);
        break;
    default: break;
    }
}
