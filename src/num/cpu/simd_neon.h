/* simd_neon.h: the functions of simd.h with the instructions that every 64-bit Arm CPU has. */
INLINE vd widen_f32(const float *p) { return (vd)vcvt_f64_f32(vld1_f32(p)); }

/* Two halves as they lie in memory, the first in the low half of the word. */
INLINE uint32_t two(const uint16_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

INLINE vf from_f16(uint16x4_t halves) { return (vf)vcvt_f32_f16(vreinterpret_f16_u16(halves)); }

INLINE vd low(vf v) { return (vd)vcvt_f64_f32(vget_low_f32((float32x4_t)v)); }
INLINE vd high(vf v) { return (vd)vcvt_high_f64_f32((float32x4_t)v); }

INLINE vd widen_f16(const uint16_t *p)
{
    return low(from_f16(vreinterpret_u16_u32(vdup_n_u32(two(p)))));
}

INLINE vd widen_bf16(const uint16_t *p)
{
    uint32_t word = two(p);
    const uint32_t words[2] = {word << 16, word & 0xffff0000u};
    return (vd)vcvt_f64_f32(vreinterpret_f32_u32(vld1_u32(words)));
}

INLINE vd larger_f64(vd a, vd b)
{
    float64x2_t u = (float64x2_t)a, v = (float64x2_t)b;
    return (vd)vbslq_f64(vcgtq_f64(u, v), u, v);
}

INLINE vf madd_f32(vf a, vf b, vf c)
{
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
INLINE vd madd_f64(vd a, vd b, vd c)
{
    return (vd)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
    *a = from_f16(vld1_u16(p));
    *b = from_f16(vld1_u16(p + 4));
}

INLINE void weave(vf *a, vf *b)
{
    float32x4_t u = (float32x4_t)*a, v = (float32x4_t)*b;
    *a = (vf)vzip1q_f32(u, v);
    *b = (vf)vzip2q_f32(u, v);
}

/* Adds neighbours until each of the eight is one number. */
INLINE void reduce8(const vf *v, double *out)
{
    for (int i = 0; i < 8; i += 4) {
        vf four = (vf)vpaddq_f32(vpaddq_f32((float32x4_t)v[i], (float32x4_t)v[i + 1]),
                                 vpaddq_f32((float32x4_t)v[i + 2], (float32x4_t)v[i + 3]));
        store_f64(out + i, low(four));
        store_f64(out + i + 2, high(four));
    }
}
