/* sift_simd.c: sift.h with vectors of BYTES bytes, one lane per vector of the scores. Open rows are rare, so
 * their bits are collected separately. */
#include "num/cpu/sift.h"
#include "num/cpu/simd.h"

enum { LANES = BYTES / 4 };

/* Lanes where something holds, as few operations as the set has for it; and 2^y to 8e-5 of itself, at most 2^-124
 * below that: y = n + f, a polynomial of the third degree in f, fitted to the relative error. */
#if BYTES == 64
typedef __mmask16 where;
INLINE where less(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
INLINE uint64_t bits(where w) { return w; }
INLINE vf add_where(vf a, where w, vf b)
{
    return (vf)_mm512_mask_add_ps((__m512)a, w, (__m512)a, (__m512)b);
}
INLINE vi count_where(vi a, where w)
{
    return (vi)_mm512_mask_add_epi32((__m512i)a, w, (__m512i)a, _mm512_set1_epi32(1));
}
INLINE vf power(vf y)
{
    vf f = (vf)_mm512_reduce_ps((__m512)y, _MM_FROUND_TO_NEG_INF);
    vf p = f * 0x1.3f96a2p-4f + 0x1.cefc4ep-3f;
    p = p * f + 0x1.64444cp-1f;
    p = p * f + 0x1.fff632p-1f;
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)y);
}
#else
typedef vi where;
INLINE where less(vf a, vf b) { return a < b; }
INLINE uint64_t bits(where w)
{
#if BYTES == 32
    return (uint64_t)(unsigned)_mm256_movemask_ps((__m256)w);
#elif defined(NEON)
    return vaddvq_u32((uint32x4_t)(w & (vi){1, 2, 4, 8}));
#else
    return (uint64_t)((w[0] & 1) | (w[1] & 2) | (w[2] & 4) | (w[3] & 8));
#endif
}
INLINE vf add_where(vf a, where w, vf b) { return a + (vf)((vi)b & w); }
INLINE vi count_where(vi a, where w) { return a - w; }
INLINE vf power(vf y)
{
    y = pick_f32(y > -125.0f, y, (vf){0} - 125.0f);
    vf t = y + 0x1.8p23f, f = y - (t - 0x1.8p23f);
    vf p = f * 0x1.c3f75cp-5f + 0x1.f0de1ap-3f;
    p = p * f + 0x1.62f31ap-1f;
    p = p * f + 0x1.fff692p-1f;
    return (vf)((vw)p + ((vw)t << 23));
}
#endif

/* A lower bound of exp(-2 x), x = rate E ln 2: (1 - x / 2)^4; ln 2 / 2 is rounded up. */
INLINE vf share(vf rate, vf off)
{
    vf z = 1 - rate * 0x1.62e432p-2f * off;
    z = pick_f32(z > 0, z, (vf){0});
    z *= z;
    return z * z;
}

/* LANES columns from `at` on. */
INLINE void columns(bool focus, int64_t rows, int64_t width, int64_t at, const float *S,
                    const float *hat, const float *rest, const float most[2],
                    const cgam_sift_by *by, uint64_t *open, float *high, float *low, int32_t *above)
{
    const where all = less((vf){0}, (vf){0} + 1);
    vf hat_by = load_f32(by->hat + at), rest_by = load_f32(by->rest + at);
    vf floor = load_f32(by->floor + at), shift = load_f32(by->shift + at);
    vf rate = load_f32(by->rate + at), sum = {0};
    vf focus_low = load_f32(by->focus_low + at), focus_high = load_f32(by->focus_high + at);
    vi count = {0};
    for (int64_t i = 0; i < rows; i++) {
        vf a = load_f32(S + i * width + at);
        vf u = a + hat_by * hat[i] + rest_by * rest[i];
        where closed = less(u, floor);
        if (focus) {
            where up = less(focus_high, a - (hat_by * hat[i] + rest_by * rest[i]));
            closed &= up | less(u, focus_low);
            count = count_where(count, closed & up);
        }
        if (__builtin_expect(bits(closed) != bits(all), 0))
            open[i] |= (bits(closed) ^ bits(all)) << at;
        sum = add_where(sum, closed, power(u * rate - shift));
    }
    store_f32(high + at, sum);
    store_f32(low + at, sum * share(rate, hat_by * most[0] + rest_by * most[1]));
    memcpy(above + at, &count, sizeof count);
}

/* The largest of n numbers, none negative. A plain loop takes a tenth of the time of everything else. */
INLINE float largest(int64_t n, const float *x)
{
    vf most = {0};
    float lane[LANES], top = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf a = load_f32(x + i);
        most = pick_f32(a > most, a, most);
    }
    store_f32(lane, most);
    for (int k = 0; k < LANES; k++) top = lane[k] > top ? lane[k] : top;
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static void run(int64_t rows, int64_t width, const float *S, const float *hat, const float *rest,
                const cgam_sift_by *by, bool focus, uint64_t *open, float *high, float *low,
                int32_t *above)
{
    const float most[2] = {largest(rows, hat), largest(rows, rest)};
    memset(open, 0, (size_t)rows * sizeof *open);
    for (int64_t at = 0; at < width; at += LANES) {
        if (focus) columns(true, rows, width, at, S, hat, rest, most, by, open, high, low, above);
        else columns(false, rows, width, at, S, hat, rest, most, by, open, high, low, above);
    }
}

static void one(int64_t groups, const float *S, const float *hat, const float *rest,
                const cgam_sift_one *by, uint64_t *open, double sums[2])
{
    const where all = less((vf){0}, (vf){0} + 1);
    vf hat_by = (vf){0} + by->hat, rest_by = (vf){0} + by->rest, floor = (vf){0} + by->floor;
    vf rate = (vf){0} + by->rate, shift = (vf){0} + by->shift;
    vd total[2] = {{0}};
    for (int64_t g = 0; g < groups; g++) {
        vf sum = {0}, least = {0};
        uint64_t opens = 0;
        for (int k = 0; k < CGAM_SIFT_WIDTH; k += LANES, S += LANES, hat += LANES, rest += LANES) {
            vf off = hat_by * load_f32(hat) + rest_by * load_f32(rest), u = load_f32(S) + off;
            where closed = less(u, floor);
            opens |= (bits(closed) ^ bits(all)) << k;
            vf weight = power(u * rate - shift);
            sum = add_where(sum, closed, weight);
            least = add_where(least, closed, weight * share(rate, off));
        }
        open[g] = opens;
        total[0] += low(sum) + high(sum);
        total[1] += low(least) + high(least);
    }
    sums[0] = lanes_sum(total[0]);
    sums[1] = lanes_sum(total[1]);
}

extern const cgam_sift JOIN(cgam_sift, NAME);
const cgam_sift JOIN(cgam_sift, NAME) = {run, one};
