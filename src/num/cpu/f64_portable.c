/* f64_portable.c: the kernels for any CPU; the compiler turns two-lane vectors into whatever
 * there is (SSE2, NEON, or scalars). */
#define NAME portable
#define BYTES 16
#include "num/cpu/simd.h"
#include "num/cpu/widen.h"

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

#include "num/cpu/f64_body.h"
