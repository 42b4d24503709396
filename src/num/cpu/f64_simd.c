/* f64_simd.c: f64.h with vectors of BYTES bytes.
 *
 * Measured on a core that reads 16 GB/s (f32, d = 4096, in units of one read of the rows): dot without
 * prefetching 1.37, with it 1.09. A readout from the second-level cache adds 0.33 on its own, but only 0.09
 * if it alternates with dot, because it then fills the time in which dot waits. Rows read side by side at
 * power-of-two distances collide in the cache (1.4), so rows are read one after another. */
#include "num/cpu/f64.h"
#include "num/cpu/simd.h"

enum {
    LANES = BYTES / 8,
    WIDE = 8,            /* accumulators of a readout panel */
    STEP = WIDE * LANES, /* its columns */
    BLOCK = 1024,        /* columns of a pass: their part of x stays in the first-level cache */
    SMALL = 16,          /* vectors of a row whose whole readout stays in registers */
    AHEAD = 16384,       /* bytes that prefetching is ahead of the reading */
};

INLINE vd widen_f64(const double *p) { return load_f64(p); }

/* y[0 .. nv LANES + tail) += a and the first numbers of rest. */
INLINE void add_sums(int nv, const vd *a, int64_t tail, vd rest, double *y)
{
    UNROLL
    for (int k = 0; k < nv; k++) store_f64(y + k * LANES, load_f64(y + k * LANES) + a[k]);
    double last[LANES];
    store_f64(last, rest);
    for (int64_t j = 0; j < tail; j++) y[nv * LANES + j] += last[j];
}

#define OF(name) name##_f64
#define TYPE double
#include "num/cpu/f64_rows.h"

#define OF(name) name##_f32
#define TYPE float
#include "num/cpu/f64_rows.h"

#define OF(name) name##_f16
#define TYPE uint16_t
#include "num/cpu/f64_rows.h"

#define OF(name) name##_bf16
#define TYPE uint16_t
#include "num/cpu/f64_rows.h"

static double largest(const double *x, int64_t n)
{
    double lane[LANES], top = -__builtin_inf();
    vd a = (vd){0} - __builtin_inf(), b = a;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vd v = load_f64(x + i), u = load_f64(x + i + LANES);
        a = pick_f64(v > a, v, a);
        b = pick_f64(u > b, u, b);
    }
    a = pick_f64(b > a, b, a);
    store_f64(lane, a);
    for (int k = 0; k < LANES; k++) top = lane[k] > top ? lane[k] : top;
    for (; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static int64_t above(const double *x, int64_t n, double limit)
{
    vl within = {0}; /* a comparison gives -1 where it holds */
    int64_t lane[LANES], count = n, i = 0;
    for (; i + LANES <= n; i += LANES) {
        vd v = load_f64(x + i);
        within += (vl)(((v <= limit) & (v >= -limit)));
    }
    memcpy(lane, &within, sizeof within);
    for (int k = 0; k < LANES; k++) count += lane[k];
    for (; i < n; i++) count -= x[i] <= limit && x[i] >= -limit;
    return count;
}

/* x = -inf would make 0 * inf of e x; any x below CGAM_EXP_ZERO has weight 0 */
INLINE vd not_below(vd x) { return pick_f64(x < -1000.0, (vd){0} - 1000.0, x); }

static void softmax(const double *r, int64_t n, double beta, double top, double *e, double *sums)
{
    vd one = {0}, two = {0}, tilt = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vd x = not_below(beta * (load_f64(r + i) - top)), v = vexp_below(x);
        store_f64(e + i, v);
        one += v;
        two += v * v;
        tilt += v * x;
    }
    if (i < n) {
        double last[LANES];
        /* lanes beyond n count as scores of -1000, whose weight is 0 */
        vd gap = not_below(beta * (first_f64(r + i, n - i) - top));
        store_f64(last, gap);
        for (int64_t k = n - i; k < LANES; k++) last[k] = -1000;
        vd x = load_f64(last), v = vexp_below(x);
        store_f64(last, v);
        for (int64_t k = 0; k < n - i; k++) e[i + k] = last[k];
        one += v;
        two += v * v;
        tilt += v * x;
    }
    sums[0] = lanes_sum(one);
    sums[1] = lanes_sum(two);
    sums[2] = lanes_sum(tilt);
}

/* LANES of x by whole; to the nearest by adding and taking away 1.5 2^52, whose low bits are then the number. */
INLINE vd whole_of(vd x, double inverse, double step, vd *w, int8_t *out)
{
#if BYTES < 32
    typedef int8_t bytes __attribute__((vector_size(LANES)));
#endif
    const double magic = 0x1.8p52;
    vd y = x * inverse + magic; /* |x inverse| <= most (1 + 2^-23), so no number is beyond it */
#if BYTES == 64
    _mm_storel_epi64((__m128i *)(void *)out, _mm512_cvtepi64_epi8((__m512i)y));
#elif BYTES == 32 /* gcc 12 would take the four lanes one by one */
    const __m256i firsts = _mm256_broadcastsi128_si256(_mm_cvtsi32_si128(0x0800));
    __m256i pairs = _mm256_shuffle_epi8((__m256i)y, firsts);
    __m128i four =
        _mm_unpacklo_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    memcpy(out, &four, LANES);
#else
    bytes b = __builtin_convertvector((vl)y, bytes);
    memcpy(out, &b, sizeof b);
#endif
    *w = y - magic;
    return x - *w * step; /* 24 bits by 7 are exact, so this is rounded once */
}

static float whole(double *x, int64_t n, int most, int8_t *out, double *sums)
{
    vd sizes = {0}, squares = {0}, left = {0}, w;
    double last[LANES] = {0}, top = 0, lane[LANES];
    int8_t few[LANES];
    int64_t i = 0, end = n / LANES * LANES;
    for (; i < end; i += LANES) {
        vd v = load_f64(x + i);
        sizes = larger_f64(sizes, larger_f64(v, -v));
    }
    store_f64(lane, sizes);
    for (int k = 0; k < LANES; k++) top = lane[k] > top ? lane[k] : top;
    for (; i < n; i++) {
        last[i - end] = x[i];
        top = x[i] > top ? x[i] : -x[i] > top ? -x[i] : top;
    }
    float step = cgam_f64_step(top, most);
    double by = (double)step, inverse = step > 0 ? 1 / by : 0;
    for (i = 0; i < end; i += LANES) {
        vd v = whole_of(load_f64(x + i), inverse, by, &w, out + i);
        store_f64(x + i, v);
        squares += w * w;
        left += v * v;
    }
    vd v = whole_of(load_f64(last), inverse, by, &w, few);
    squares += w * w;
    left += v * v;
    store_f64(last, v);
    for (; i < n; i++) {
        out[i] = few[i - end];
        x[i] = last[i - end];
    }
    sums[0] = lanes_sum(squares);
    sums[1] = lanes_sum(left);
    return step;
}

extern const cgam_f64 JOIN(cgam_f64, NAME);
const cgam_f64 JOIN(cgam_f64, NAME) = CGAM_F64_TABLE;
