/* widen.c: conversions between the storage types and double, in portable C. The kernels have
 * faster ones of their own and are tested against these. */
#include "num/cpu/widen.h"

#include <math.h>
#include <string.h>

/* Moves exponent and fraction to their places in a float, 112 too low, which a multiplication
 * mends exactly, subnormals included; exponent 31 is set to the float's own infinity. */
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

/* Rounds to a 16-bit float of `fraction` stored bits with normal exponents emin .. emax.
 * A normal number of u units in the last place at exponent e has the code
 *   ((e - emin + 1) << fraction) + (u - (1 << fraction)) = ((e - emin) << fraction) + u,
 * and with e = emin the same sum is right for subnormals and for a carry into the exponent. */
static uint16_t to_half(double x, int fraction, int emin, int emax)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)((emax - emin + 2) << fraction);
    if (isnan(x)) return (uint16_t)(sign | infinity | (1u << (fraction - 1)));
    x = fabs(x);
    if (isinf(x)) return sign | infinity;
    int e = emin; /* zero counts with the smallest */
    if (x > 0) frexp(x, &e);
    e = e - 1 < emin ? emin : e - 1;
    double units = nearbyint(ldexp(x, fraction - e)); /* in units of the last place */
    double code = units + ldexp(e - emin, fraction);
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
