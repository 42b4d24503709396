/* kernels_body.h: the kernels of kernels.h with vectors of LANES doubles. Included by one file per
 * CPU, which defines NAME, LANES, USABLE and, where the CPU converts better than the compiler
 * knows, WIDEN_F32(p), WIDEN_F16(p), WIDEN_BF16(p) (LANES values at p as doubles) and
 * FIRST_F64(p, k) and so on (the first k < LANES of them, zeros behind).
 *
 * What was measured on a core that reads 16 GB/s (f32, d = 4096, times in units of one reading):
 * dot without prefetching 1.37, with 1.09; a readout from the second-level cache 0.33 more, but
 * only 0.09 more where it takes turns with dot, since it then fills the time in which dot waits.
 * Rows side by side at power-of-two distances collide in the cache (1.4), so rows are read one
 * after another. */
#include "num/kernels.h"
#include "num/vexp.h"
#include "num/widen.h"

#include <string.h>

typedef double vd __attribute__((vector_size(8 * LANES)));
typedef int64_t vl __attribute__((vector_size(8 * LANES)));
typedef uint64_t vu __attribute__((vector_size(8 * LANES)));
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef uint32_t vw __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));

CGAM_VEXP(vexp, vd, vl, vu)

enum {
    WIDE = 8,            /* accumulators of a readout panel */
    STEP = WIDE * LANES, /* its columns */
    BLOCK = 1024,        /* columns of a pass: their part of x stays in the first-level cache */
    SMALL = 16,          /* vectors of a row whose whole readout stays in registers */
    AHEAD = 16384,       /* bytes that prefetching is ahead of the reading */
};

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE vd load_f64(const double *p)
{
    vd v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vd load_f32(const float *p)
{
#ifdef WIDEN_F32
    return WIDEN_F32(p);
#else
    vf v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vd);
#endif
}

INLINE vd load_bf16(const uint16_t *p)
{
#ifdef WIDEN_BF16
    return WIDEN_BF16(p);
#else
    vh v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector((vf)(__builtin_convertvector(v, vw) << 16), vd);
#endif
}

INLINE vd load_f16(const uint16_t *p)
{
#ifdef WIDEN_F16
    return WIDEN_F16(p);
#else
    vd v;
    double wide[LANES];
    cgam_widen(CGAM_F16, p, LANES, wide);
    memcpy(&v, wide, sizeof v);
    return v;
#endif
}

/* The first k < LANES values, zeros behind them; nothing behind p[k - 1] is read. */
#ifdef FIRST_F64
#define FIRST(name, type, NAME_)                                                                   \
    INLINE vd first_##name(const type *p, int64_t k) { return FIRST_##NAME_(p, k); }
#else
#define FIRST(name, type, NAME_)                                                                   \
    INLINE vd first_##name(const type *p, int64_t k)                                               \
    {                                                                                              \
        type part[LANES] = {0};                                                                    \
        for (int64_t j = 0; j < k; j++) part[j] = p[j];                                            \
        return load_##name(part);                                                                  \
    }
#endif
FIRST(f64, double, F64)
FIRST(f32, float, F32)
FIRST(f16, uint16_t, F16)
FIRST(bf16, uint16_t, BF16)

INLINE void store(double *p, vd v) { memcpy(p, &v, sizeof v); }

INLINE double lanes_sum(vd v)
{
    double lane[LANES], total = 0;
    memcpy(lane, &v, sizeof v);
    for (int k = LANES / 2; k > 0; k /= 2)
        for (int j = 0; j < k; j++) lane[j] += lane[j + k];
    total = lane[0];
    return total;
}

/* The lines of `bytes` (a constant) bytes from p on. */
INLINE void prefetch_lines(const void *p, int bytes)
{
    UNROLL
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)p + line, 0, 2);
}

#define KERNELS(name, dtype, type)                                                                   \
    /* <row, x> */                                                                                   \
    INLINE double dot_row_##name(const type *row, int64_t d, const double *x)                        \
    {                                                                                                \
        vd a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                                   \
        int64_t j = 0;                                                                               \
        for (; j + 4 * LANES <= d; j += 4 * LANES) {                                                 \
            prefetch_lines((const char *)(row + j) + AHEAD, 4 * LANES * (int)sizeof(type));          \
            a0 += load_##name(row + j) * load_f64(x + j);                                            \
            a1 += load_##name(row + j + LANES) * load_f64(x + j + LANES);                            \
            a2 += load_##name(row + j + 2 * LANES) * load_f64(x + j + 2 * LANES);                    \
            a3 += load_##name(row + j + 3 * LANES) * load_f64(x + j + 3 * LANES);                    \
        }                                                                                            \
        for (; j + LANES <= d; j += LANES) a0 += load_##name(row + j) * load_f64(x + j);             \
        if (j < d) a1 += first_##name(row + j, d - j) * first_f64(x + j, d - j);                     \
        return lanes_sum((a0 + a1) + (a2 + a3));                                                     \
    }                                                                                                \
    /* The same in the order of `both`: by blocks where d is large. */                               \
    INLINE double dot_long_##name(const type *row, int64_t d, const double *x)                       \
    {                                                                                                \
        if (d / LANES <= SMALL) return dot_row_##name(row, d, x);                                    \
        double total = 0;                                                                            \
        int64_t whole = d / STEP * STEP;                                                             \
        for (int64_t j = 0; j < whole; j += BLOCK)                                                   \
            total += dot_row_##name(row + j, whole - j < BLOCK ? whole - j : BLOCK, x + j);          \
        return whole == d ? total : total + dot_row_##name(row + whole, d - whole, x + whole);       \
    }                                                                                                \
    static void dot_##name(const void *rows, int64_t stride, int64_t n, int64_t d,                   \
                           const double *x, double *out)                                             \
    {                                                                                                \
        const type *row = rows;                                                                      \
        for (int64_t i = 0; i < n; i++, row += stride) out[i] = dot_long_##name(row, d, x);          \
    }                                                                                                \
    /* y[0 .. nv LANES + tail) += the columns of the rows, weighted. Row i is row at[i] where `at` \
     * is given. */ \
    INLINE void sum_panel_##name(int nv, int64_t tail, const type *rows, int64_t stride,             \
                                 const int32_t *at, int64_t n, const double *w, double *y)           \
    {                                                                                                \
        vd a[WIDE + 1];                                                                              \
        for (int k = 0; k <= WIDE; k++) a[k] = (vd){0};                                              \
        for (int64_t i = 0; i < n; i++) {                                                            \
            const type *row = rows + (at ? (int64_t)at[i] : i) * stride;                             \
            UNROLL                                                                                   \
            for (int k = 0; k < nv; k++) a[k] += w[i] * load_##name(row + k * LANES);                \
            if (tail) a[WIDE] += w[i] * first_##name(row + nv * LANES, tail);                        \
        }                                                                                            \
        UNROLL                                                                                       \
        for (int k = 0; k < nv; k++) store(y + k * LANES, load_f64(y + k * LANES) + a[k]);           \
        double last[LANES];                                                                          \
        store(last, a[WIDE]);                                                                        \
        for (int64_t j = 0; j < tail; j++) y[nv * LANES + j] += last[j];                             \
    }                                                                                                \
    static void sum_from_##name(const type *rows, int64_t stride, const int32_t *at, int64_t n,      \
                                int64_t d, const double *w, double *y)                               \
    {                                                                                                \
        int64_t j = 0;                                                                               \
        for (; j + STEP <= d; j += STEP)                                                             \
            sum_panel_##name(WIDE, 0, rows + j, stride, at, n, w, y + j);                            \
        int64_t tail = (d - j) % LANES;                                                              \
        switch ((d - j) / LANES) {                                                                   \
        case 7: sum_panel_##name(7, tail, rows + j, stride, at, n, w, y + j); break;                 \
        case 6: sum_panel_##name(6, tail, rows + j, stride, at, n, w, y + j); break;                 \
        case 5: sum_panel_##name(5, tail, rows + j, stride, at, n, w, y + j); break;                 \
        case 4: sum_panel_##name(4, tail, rows + j, stride, at, n, w, y + j); break;                 \
        case 3: sum_panel_##name(3, tail, rows + j, stride, at, n, w, y + j); break;                 \
        case 2: sum_panel_##name(2, tail, rows + j, stride, at, n, w, y + j); break;                 \
        case 1: sum_panel_##name(1, tail, rows + j, stride, at, n, w, y + j); break;                 \
        default: sum_panel_##name(0, tail, rows + j, stride, at, n, w, y + j);                       \
        }                                                                                            \
    }                                                                                                \
    static void sum_##name(const void *rows, int64_t stride, int64_t n, int64_t d,                   \
                           const double *w, double *y)                                               \
    {                                                                                                \
        sum_from_##name(rows, stride, NULL, n, d, w, y);                                             \
    }                                                                                                \
    static void sum_at_##name(const void *rows, int64_t stride, const int32_t *at, int64_t n,        \
                              int64_t d, const double *w, double *y)                                 \
    {                                                                                                \
        sum_from_##name(rows, stride, at, n, d, w, y);                                               \
    }                                                                                                \
    static void to_f32_##name(const void *row_, int64_t n, float *out)                               \
    {                                                                                                \
        const type *row = row_;                                                                      \
        int64_t i = 0;                                                                               \
        for (; i + LANES <= n; i += LANES) {                                                         \
            vf v = __builtin_convertvector(load_##name(row + i), vf);                                \
            memcpy(out + i, &v, sizeof v);                                                           \
        }                                                                                            \
        double last[LANES];                                                                          \
        if (i < n) store(last, first_##name(row + i, n - i));                                        \
        for (int64_t k = 0; i + k < n; k++) out[i + k] = (float)last[k];                             \
    }                                                                                                \
    /* Short rows, nv vectors and a tail: all of y in registers, row by row. */                      \
    INLINE void both_short_##name(int nv, int64_t tail, const type *fresh, const type *stale,        \
                                  int64_t stride, int64_t n, int64_t d, const double *x,             \
                                  double *out, const double *w, double *y)                           \
    {                                                                                                \
        vd a[SMALL + 1];                                                                             \
        for (int k = 0; k <= SMALL; k++) a[k] = (vd){0};                                             \
        for (int64_t i = 0; i < n; i++, fresh += stride, stale += stride) {                          \
            out[i] = dot_row_##name(fresh, d, x);                                                    \
            UNROLL                                                                                   \
            for (int k = 0; k < nv; k++) a[k] += w[i] * load_##name(stale + k * LANES);              \
            if (tail) a[SMALL] += w[i] * first_##name(stale + nv * LANES, tail);                     \
        }                                                                                            \
        UNROLL                                                                                       \
        for (int k = 0; k < nv; k++) store(y + k * LANES, load_f64(y + k * LANES) + a[k]);           \
        double last[LANES];                                                                          \
        store(last, a[SMALL]);                                                                       \
        for (int64_t j = 0; j < tail; j++) y[nv * LANES + j] += last[j];                             \
    }                                                                                                \
    /* d a multiple of STEP: one step of dot, one step of a readout panel, and so on. out += */      \
    static void both_block_##name(const type *fresh, const type *stale, int64_t stride, int64_t n,   \
                                  int64_t d, const double *x, double *out, const double *w,          \
                                  double *y)                                                         \
    {                                                                                                \
        vd a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                                   \
        int64_t at = 0;                                                                              \
        /* the block of the row that will be read AHEAD bytes from now */                            \
        int64_t next = 2 * stride * (int64_t)sizeof(type);                                           \
        if (next < AHEAD) next = AHEAD;                                                              \
        for (int64_t j = 0; j < d; j += STEP) {                                                      \
            vd a[WIDE];                                                                              \
            for (int k = 0; k < WIDE; k++) a[k] = (vd){0};                                           \
            const type *row = stale + j;                                                             \
            for (int64_t i = 0; i < n; i++, row += stride) {                                         \
                const type *z = fresh + at;                                                          \
                const double *v = x + at;                                                            \
                prefetch_lines((const char *)z + next, STEP * (int)sizeof(type));                    \
                UNROLL                                                                               \
                for (int k = 0; k < WIDE; k += 4) {                                                  \
                    a0 += load_##name(z + k * LANES) * load_f64(v + k * LANES);                      \
                    a1 += load_##name(z + (k + 1) * LANES) * load_f64(v + (k + 1) * LANES);          \
                    a2 += load_##name(z + (k + 2) * LANES) * load_f64(v + (k + 2) * LANES);          \
                    a3 += load_##name(z + (k + 3) * LANES) * load_f64(v + (k + 3) * LANES);          \
                }                                                                                    \
                UNROLL                                                                               \
                for (int k = 0; k < WIDE; k++) a[k] += w[i] * load_##name(row + k * LANES);          \
                at += STEP;                                                                          \
                if (at == d) {                                                                       \
                    *out++ += lanes_sum((a0 + a1) + (a2 + a3));                                      \
                    a0 = a1 = a2 = a3 = (vd){0};                                                     \
                    fresh += stride;                                                                 \
                    at = 0;                                                                          \
                }                                                                                    \
            }                                                                                        \
            UNROLL                                                                                   \
            for (int k = 0; k < WIDE; k++)                                                           \
                store(y + j + k * LANES, load_f64(y + j + k * LANES) + a[k]);                        \
        }                                                                                            \
    }                                                                                                \
    static void both_##name(const void *fresh_, const void *stale_, int64_t stride, int64_t n,       \
                            int64_t d, const double *x, double *out, const double *w, double *y)     \
    {                                                                                                \
        const type *fresh = fresh_, *stale = stale_;                                                 \
        if (d / LANES <= SMALL) {                                                                    \
            int64_t tail = d % LANES;                                                                \
            switch (d / LANES) {                                                                     \
                EACH_SHORT(CASE_SHORT, name)                                                         \
            }                                                                                        \
            return;                                                                                  \
        }                                                                                            \
        int64_t j = 0, whole = d / STEP * STEP;                                                      \
        for (int64_t i = 0; i < n; i++) out[i] = 0;                                                  \
        for (; j < whole; j += BLOCK) {                                                              \
            int64_t width = whole - j < BLOCK ? whole - j : BLOCK;                                   \
            both_block_##name(fresh + j, stale + j, stride, n, width, x + j, out, w, y + j);         \
        }                                                                                            \
        if (whole == d) return;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                              \
            out[i] += dot_row_##name(fresh + i * stride + whole, d - whole, x + whole);              \
        sum_from_##name(stale + whole, stride, NULL, n, d - whole, w, y + whole);                    \
    }

#define EACH_SHORT(CASE, name)                                                                     \
    CASE(1, name)                                                                                  \
    CASE(2, name)                                                                                  \
    CASE(3, name)                                                                                  \
    CASE(4, name)                                                                                  \
    CASE(5, name)                                                                                  \
    CASE(6, name)                                                                                  \
    CASE(7, name)                                                                                  \
    CASE(8, name)                                                                                  \
    CASE(9, name)                                                                                  \
    CASE(10, name)                                                                                 \
    CASE(11, name)                                                                                 \
    CASE(12, name)                                                                                 \
    CASE(13, name)                                                                                 \
    CASE(14, name)                                                                                 \
    CASE(15, name)                                                                                 \
    CASE(16, name) default : both_short_##name(0, tail, fresh, stale, stride, n, d, x, out, w, y);
#define CASE_SHORT(nv, name)                                                                       \
    case nv: both_short_##name(nv, tail, fresh, stale, stride, n, d, x, out, w, y); break;

KERNELS(f64, CGAM_F64, double)
KERNELS(f32, CGAM_F32, float)
KERNELS(f16, CGAM_F16, uint16_t)
KERNELS(bf16, CGAM_BF16, uint16_t)

static double largest(const double *x, int64_t n)
{
    double lane[LANES], top = -__builtin_inf();
    vd a = (vd){0} - __builtin_inf(), b = a;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vd v = load_f64(x + i), u = load_f64(x + i + LANES);
        a = vexp_pick_(v > a, v, a);
        b = vexp_pick_(u > b, u, b);
    }
    a = vexp_pick_(b > a, b, a);
    store(lane, a);
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

/* x = -inf would make 0 * inf of e x; any x below -708 has weight 0 */
INLINE vd not_below(vd x) { return vexp_pick_(x < -1000.0, (vd){0} - 1000.0, x); }

static void soft(const double *r, int64_t n, double beta, double top, double *e, double *sums)
{
    vd one = {0}, two = {0}, tilt = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vd x = not_below(beta * (load_f64(r + i) - top)), v = vexp_below(x);
        store(e + i, v);
        one += v;
        two += v * v;
        tilt += v * x;
    }
    if (i < n) {
        double last[LANES];
        /* lanes beyond n count as scores of -1000, whose weight is 0 */
        vd gap = not_below(beta * (first_f64(r + i, n - i) - top));
        store(last, gap);
        for (int64_t k = n - i; k < LANES; k++) last[k] = -1000;
        vd x = load_f64(last), v = vexp_below(x);
        store(last, v);
        for (int64_t k = 0; k < n - i; k++) e[i + k] = last[k];
        one += v;
        two += v * v;
        tilt += v * x;
    }
    sums[0] = lanes_sum(one);
    sums[1] = lanes_sum(two);
    sums[2] = lanes_sum(tilt);
}

static void exp_all(const double *x, int64_t n, double *out)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(out + i, vexp(load_f64(x + i)));
    if (i < n) {
        double last[LANES];
        store(last, vexp(first_f64(x + i, n - i)));
        for (int64_t k = 0; k < n - i; k++) out[i + k] = last[k];
    }
}

static uint64_t read_all(const uint64_t *words, int64_t n)
{
    vl a = {0}, b = {0}, c = {0}, e = {0}, v[4];
    int64_t i = 0;
    uint64_t lane[LANES], all = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        prefetch_lines(words + i + AHEAD / 8, 32 * LANES);
        memcpy(v, words + i, sizeof v);
        a ^= v[0];
        b ^= v[1];
        c ^= v[2];
        e ^= v[3];
    }
    a ^= b ^ c ^ e;
    memcpy(lane, &a, sizeof a);
    for (int k = 0; k < LANES; k++) all ^= lane[k];
    for (; i < n; i++) all ^= words[i];
    return all;
}

#define TABLE_(name) cgam_kernels_##name
#define TABLE(name) TABLE_(name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

const cgam_kernels TABLE(NAME) = {
    .name = TEXT(NAME),
    .usable = USABLE,
    .dot = {dot_f64, dot_f32, dot_f16, dot_bf16},
    .sum = {sum_f64, sum_f32, sum_f16, sum_bf16},
    .sum_at = {sum_at_f64, sum_at_f32, sum_at_f16, sum_at_bf16},
    .both = {both_f64, both_f32, both_f16, both_bf16},
    .to_f32 = {to_f32_f64, to_f32_f32, to_f32_f16, to_f32_bf16},
    .largest = largest,
    .above = above,
    .soft = soft,
    .exp = exp_all,
    .read = read_all,
};
