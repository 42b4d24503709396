/* f64_simd.c: f64.h with vectors of BYTES bytes.
 *
 * What was measured on a core that reads 16 GB/s (f32, d = 4096, times in units of one reading):
 * dot without prefetching 1.37, with 1.09; a readout from the second-level cache 0.33 more, but
 * only 0.09 more where it takes turns with dot, since it then fills the time in which dot waits.
 * Rows side by side at power-of-two distances collide in the cache (1.4), so rows are read one
 * after another. */
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

extern const cgam_f64 JOIN(cgam_f64, NAME);
const cgam_f64 JOIN(cgam_f64, NAME) = CGAM_F64_TABLE;
