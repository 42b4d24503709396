/* gemm_simd.c: gemm.h with vectors of BYTES bytes, at most VECTORS of them side by side. A tile
 * has 6 VECTORS accumulators: the fewer vectors side by side, the more rows. The accumulators, the loads
 * of B and one element of A must fit into the registers. */
#include "num/cpu/gemm.h"

#include "num/cpu/exp_f32.h"

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

static void gather(int64_t n, const float *x, double *X)
{
    for (int64_t i = 0; i < n; i += BYTES / 8) store_f64(X + i, load_f64(X + i) + widen_f32(x + i));
}

extern const cgam_gemm JOIN(cgam_gemm, NAME);
const cgam_gemm JOIN(cgam_gemm, NAME) = CGAM_GEMM_TABLE(BYTES / 4, VECTORS);
