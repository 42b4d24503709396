/* f32_portable.c: f32 scores and readouts for any CPU; the compiler turns vectors of four into
 * whatever there is (SSE2, NEON, or scalars). */
#define NAME portable
#define BYTES 16
#include "num/cpu/simd.h"
#include "num/cpu/widen.h"

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

#include "num/cpu/f32_body.h"
