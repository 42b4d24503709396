/* gemm_simd.c: gemm.h with vectors of BYTES bytes, at most VECTORS of them side by side. A tile
 * has 6 VECTORS accumulators: the fewer vectors are side by side, the more rows. Those, the loads
 * of B and one element of A must fit the registers. */
#include "num/cpu/gemm.h"
#include "num/cpu/simd.h"

enum { VECTORS = BYTES == 64 ? 4 : 2 };

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
#define FLOOR -1000.0f
#include "num/cpu/gemm_real.h"

#define OF(name) name##_f64
#define TYPE double
#define VEC vd
#define FLOOR -10000.0
#include "num/cpu/gemm_real.h"

#include "num/cpu/gemm_couple.h"

static void gather(int64_t n, const float *x, double *X)
{
    for (int64_t i = 0; i < n; i += BYTES / 8) store_f64(X + i, load_f64(X + i) + widen_f32(x + i));
}

extern const cgam_gemm JOIN(cgam_gemm, NAME);
const cgam_gemm JOIN(cgam_gemm, NAME) = CGAM_GEMM_TABLE(BYTES / 4, VECTORS);
