/* gemm_body.h: gemm.h with vectors of BYTES bytes, at most VECTORS of them side by side. A tile
 * has 6 VECTORS accumulators: the fewer vectors are side by side, the more rows. Those, the loads
 * of B and one element of A must fit the registers. Included by one file per CPU, which defines
 * VECTORS. */
#include "num/cpu/gemm.h"
#include "num/cpu/simd.h"
#include "num/cpu/vexp.h"

CGAM_VEXP(vexp, vd, vl, vu)

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
    /* the shift could make a number of what is none */
    return (vf)((((vw)y + ((vw)t << 23)) & (vw) ~(x < -87.0f)) | (vw) ~(x <= __builtin_inff()));
}

INLINE vd exp_f64(vd x) { return vexp_below(x); }

#define OF(name) name##_f32
#define TYPE float
#define VEC vf
#define MASK vi
#define FLOOR -1000.0f
#include "num/cpu/gemm_real.h"

#define OF(name) name##_f64
#define TYPE double
#define VEC vd
#define MASK vl
#define FLOOR -10000.0
#include "num/cpu/gemm_real.h"

#include "num/cpu/gemm_couple.h"

static void gather(int64_t n, const float *x, double *X)
{
    for (int64_t i = 0; i < n; i += BYTES / 8) store_f64(X + i, load_f64(X + i) + widen_f32(x + i));
}

static float burn(int64_t rounds)
{
    vf a[6 * VECTORS], half_one = (vf){0} + 0.5f, all = {0};
    UNROLL
    for (int k = 0; k < 6 * VECTORS; k++) a[k] = (vf){0} + (float)k;
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int k = 0; k < 6 * VECTORS; k++) a[k] = a[k] * half_one + 1.0f;
    }
    UNROLL
    for (int k = 0; k < 6 * VECTORS; k++) all += a[k];
    return all[0];
}

const cgam_gemm JOIN(cgam_gemm, NAME) = {
    .name = TEXT(NAME),
    .usable = JOIN(cgam_cpu, NAME),
    .lanes32 = BYTES / 4,
    .lanes64 = BYTES / 8,
    .best32 = VECTORS * BYTES / 4,
    .best64 = VECTORS * BYTES / 8,
    .mul32 = mul_f32,
    .mul64 = mul_f64,
    .gather = gather,
    .tops32 = tops_f32,
    .tops64 = tops_f64,
    .soften32 = soften_f32,
    .soften64 = soften_f64,
    .couple = couple,
    .burn_width = 6 * VECTORS * BYTES / 4,
    .burn = burn,
};
