/* vexp.h: exp of a vector of doubles, whatever its width, to about 1 ulp (1.02 at the worst seen).
 *
 *   CGAM_VEXP(vexp, vd, vl, vu)   defines   static vd vexp(vd x)   and   static vd vexp_below(vd x)
 *
 * vd is a vector of doubles, vl and vu vectors of as many int64_t and uint64_t (GCC vector
 * extensions); one body serves every CPU, at the width and with the instructions its file is
 * compiled for.
 *
 * x = n ln 2 + r, |r| <= ln(2)/2, and exp x = 2^n (1 + (r + r^2 Q(r))). ln 2 is split in two so
 * that n LN2_HI is exact without fused arithmetic (LN2_HI ends in 32 zero bits, |n| < 2^11). Q has
 * degree 9 and was fitted by Remez' exchange to 6.8e-18 of exp on the interval, so what is seen is
 * the rounding of the last three operations. n is rounded by adding 1.5 * 2^52: it then stands in
 * the low bits of the sum, from where a shift puts it into an exponent.
 *
 * vexp        every double: gradual underflow, overflow to infinity, exp(NaN) = NaN.
 * vexp_below  for softmax: x <= 709 (or NaN); results under 2^-1021 come back as 0. */
#ifndef CGAM_SRC_NUM_CPU_VEXP_H
#define CGAM_SRC_NUM_CPU_VEXP_H

#include <stdint.h>

/* Below these a softmax counts exp as 0: the ends of the normal numbers, with room to shift. */
#define CGAM_EXP_ZERO (-707.0)
#define CGAM_EXP_ZERO_F32 (-87.0f)

#define CGAM_VEXP(name, vd, vl, vu)                                                                \
    static inline vd name##_pick_(vl mask, vd yes, vd no)                                          \
    {                                                                                              \
        return (vd)(((vl)yes & mask) | ((vl)no & ~mask));                                          \
    }                                                                                              \
    /* 1 + r + r^2 Q(r) for x = n ln 2 + r, and t = n + 1.5 * 2^52 */                              \
    static inline vd name##_reduced_(vd x, vd *t)                                                  \
    {                                                                                              \
        *t = x * 0x1.71547652b82fep0 + 0x1.8p52;                                                   \
        vd n = *t - 0x1.8p52;                                                                      \
        vd r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;                         \
        vd q = r * 0x1.ad51649fa6bd3p-26 + 0x1.28a06b947a5c4p-22;                                  \
        q = q * r + 0x1.71df3063e9a76p-19;                                                         \
        q = q * r + 0x1.a019a989b4e43p-16;                                                         \
        q = q * r + 0x1.a01a012fc51c1p-13;                                                         \
        q = q * r + 0x1.6c16c17dccc28p-10;                                                         \
        q = q * r + 0x1.1111111124328p-7;                                                          \
        q = q * r + 0x1.555555555298dp-5;                                                          \
        q = q * r + 0x1.5555555555516p-3;                                                          \
        q = q * r + 0x1.0000000000003p-1;                                                          \
        return (q * (r * r) + r) + 1;                                                              \
    }                                                                                              \
    static inline vd name##_below(vd x)                                                            \
    {                                                                                              \
        vd t, y = name##_reduced_(x, &t);                                                          \
        /* y lies in [0.7, 1.42], so adding n to its exponent cannot leave the range */            \
        vu bits = (vu)y + ((vu)t << 52);                                                           \
        /* the shift could turn a NaN into a number */                                             \
        return (vd)((bits & (vu) ~(x < CGAM_EXP_ZERO)) | (vu) ~(x <= __builtin_inf()));            \
    }                                                                                              \
    static inline __attribute__((unused)) vd name(vd x)                                            \
    {                                                                                              \
        /* beyond these every result is 0 or infinity; NaN compares false and stays */             \
        vd inside = name##_pick_(x < -746.0, (vd){0} - 746.0, x);                                  \
        inside = name##_pick_(x > 710.0, (vd){0} + 710.0, inside);                                 \
        vd t, y = name##_reduced_(inside, &t);                                                     \
        /* two factors: 2^(n -+ 128) is normal throughout, and the last product rounds once */     \
        vl low = (inside < -600.0), high = (inside > 600.0);                                       \
        vu shift = (vu)(low & 128) - (vu)(high & 128);                                             \
        vd scaled = (vd)((vu)y + (((vu)t + shift) << 52));                                         \
        vd last = name##_pick_(low, (vd){0} + 0x1p-128, (vd){0} + 1.0);                            \
        last = name##_pick_(high, (vd){0} + 0x1p128, last);                                        \
        return (vd)((vu)(scaled * last) | (vu) ~(x <= __builtin_inf()));                           \
    }

#endif
