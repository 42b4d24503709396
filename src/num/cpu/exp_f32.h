/* exp_f32.h: exp and exp - 1 of a vector of floats. */
#ifndef CGAM_SRC_NUM_CPU_EXP_F32_H
#define CGAM_SRC_NUM_CPU_EXP_F32_H

#include "num/cpu/simd.h"

/* exp(r) - 1 for x = n ln 2 + r, |r| <= ln(2)/2, and t = n + 1.5 2^23: Taylor's series up to
 * r^7 / 7!, whose next term is below 6e-9. */
INLINE vf reduced_f32(vf x, vf *t)
{
    *t = x * 0x1.715476p0f + 0x1.8p23f;
    vf n = *t - 0x1.8p23f;
    vf r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    vf q = r * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
    q = q * r + 0x1.111112p-7f;
    q = q * r + 0x1.555556p-5f;
    q = q * r + 0x1.555556p-3f;
    q = q * r + 0x1p-1f;
    return q * (r * r) + r;
}

/* exp x for x <= 20: n is moved from t into the exponent. */
INLINE vf exp_f32(vf x)
{
    vf t, y = reduced_f32(x, &t) + 1;
    /* the shift could turn a NaN into a number */
    return (vf)((((vw)y + ((vw)t << 23)) & (vw) ~(x < CGAM_EXP_ZERO_F32)) |
                (vw) ~(x <= __builtin_inff()));
}

/* exp(x) - 1 to 3 ulp for CGAM_EXP_ZERO_F32 <= x <= 80: with x = n ln 2 + r it is 2^n (exp(r) - 1) + (2^n - 1). */
INLINE vf expm1_f32(vf x)
{
    vf t, low = reduced_f32(x, &t);
    vf scale = (vf)(((vw)t << 23) + 0x3f800000u);
    return scale * low + (scale - 1);
}

#endif
