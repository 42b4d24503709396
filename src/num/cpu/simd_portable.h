/* simd_portable.h: the functions of simd.h for any CPU: the compiler turns vectors of 16 bytes into the available
 * instructions (SSE2, NEON, or scalars). */
#include "num/cpu/widen.h"

INLINE vd widen_f32(const float *p)
{
    half v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vd);
}

INLINE vd widen_f16(const uint16_t *p)
{
    double wide[2];
    cgam_widen(CGAM_F16, p, 2, wide);
    return load_f64(wide);
}

INLINE vd widen_bf16(const uint16_t *p)
{
    const uint32_t words[2] = {(uint32_t)p[0] << 16, (uint32_t)p[1] << 16};
    float wide[2];
    memcpy(wide, words, sizeof wide);
    return widen_f32(wide);
}

INLINE vd larger_f64(vd a, vd b) { return pick_f64(a > b, a, b); }

#if defined(__FP_FAST_FMA) || defined(__ARM_FEATURE_FMA)
INLINE vf madd_f32(vf a, vf b, vf c)
{
    for (int k = 0; k < 4; k++) c[k] = __builtin_fmaf(a[k], b[k], c[k]);
    return c;
}
INLINE vd madd_f64(vd a, vd b, vd c)
{
    for (int k = 0; k < 2; k++) c[k] = __builtin_fma(a[k], b[k], c[k]);
    return c;
}
#else
INLINE vf madd_f32(vf a, vf b, vf c) { return a * b + c; }
INLINE vd madd_f64(vd a, vd b, vd c) { return a * b + c; }
#endif

INLINE vd low(vf v) { return (vd){v[0], v[1]}; }
INLINE vd high(vf v) { return (vd){v[2], v[3]}; }

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
    double wide[8];
    cgam_widen(CGAM_F16, p, 8, wide);
    for (int k = 0; k < 4; k++) {
        (*a)[k] = (float)wide[k];
        (*b)[k] = (float)wide[4 + k];
    }
}

INLINE void weave(vf *a, vf *b)
{
    vf u = *a, v = *b;
    *a = (vf){u[0], v[0], u[1], v[1]};
    *b = (vf){u[2], v[2], u[3], v[3]};
}

INLINE void reduce8(const vf *v, double *out)
{
    for (int i = 0; i < 8; i++) out[i] = lanes_sum(low(v[i]) + high(v[i]));
}
