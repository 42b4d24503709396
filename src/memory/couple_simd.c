/* couple_simd.c: couple.h with vectors of BYTES bytes. Up to VECTORS of them, all of queries, are processed side by
 * side, so that whole rows are read. */
#include "memory/couple.h"

#include "num/cpu/exp_f32.h"

enum { W = BYTES / 4 };

INLINE vf larger_f32(vf a, vf b) { return pick_f32(a > b, a, b); }

INLINE void couple_strip(int vectors, int64_t rows, int64_t columns, float *S, float *state,
                         const double *dinv, float gain, const float *factor, float *stats)
{
    const vi sign = (vi){0} + INT32_MIN;
    vf sum[VECTORS], spread[VECTORS], largest[VECTORS], peak[VECTORS], leap[VECTORS];
    vf c[VECTORS], more[VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        sum[v] = spread[v] = largest[v] = peak[v] = (vf){0};
        leap[v] = (vf){0} - __builtin_inff();
        c[v] = load_f32(factor + v * W);
        more[v] = load_f32(factor + columns + v * W);
    }
    for (int64_t r = 0; r < rows; r++) {
        float D = dinv ? (float)dinv[r] : 0;
        UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t at = r * columns + v * W;
            float *p2 = state + 3 * r * columns + v * W, *delta = p2 + 2 * columns;
            vf base = load_f32(p2), from = load_f32(p2 + columns);
            vf rest = more[v] * (base - from), old = c[v] * load_f32(delta) + rest;
            vf score = load_f32(S + at), y = gain * (dinv ? D * (old - score) : score);
            leap[v] = larger_f32(y, leap[v]);
            y = pick_f32(y < CGAM_EXP_ZERO_F32, (vf){0} + CGAM_EXP_ZERO_F32, y);
            y = pick_f32(y > CGAM_COUPLE_MOST, (vf){0} + CGAM_COUPLE_MOST, y);
            vf up = base * expm1_f32(y), now = from + up;
            vf step = c[v] * now + rest - old;
            store_f32(delta, now);
            store_f32(S + at, D * now);
            sum[v] += up;
            spread[v] += (vf)((vi)now & ~sign);
            largest[v] = larger_f32((vf)((vi)step & ~sign), largest[v]);
            peak[v] = larger_f32(base + up, peak[v]);
        }
    }
    UNROLL
    for (int v = 0; v < vectors; v++) {
        store_f32(stats + v * W, sum[v]);
        store_f32(stats + columns + v * W, spread[v]);
        store_f32(stats + 2 * columns + v * W, largest[v]);
        store_f32(stats + 3 * columns + v * W, peak[v]);
        store_f32(stats + 4 * columns + v * W, leap[v]);
    }
}

cgam_couple JOIN(cgam_couple, NAME);
void JOIN(cgam_couple, NAME)(int64_t rows, int64_t columns, float *S, float *state,
                             const double *dinv, double gain, const float *factor, float *stats)
{
    int64_t c = 0;
    for (; c + VECTORS * W <= columns; c += VECTORS * W)
        couple_strip(VECTORS, rows, columns, S + c, state + c, dinv, (float)gain, factor + c,
                     stats + c);
    for (; c < columns; c += W)
        couple_strip(1, rows, columns, S + c, state + c, dinv, (float)gain, factor + c, stats + c);
}
