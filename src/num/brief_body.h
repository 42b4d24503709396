/* brief_body.h: brief.h with vectors of LANES floats. Included by one file per CPU, which defines
 * NAME, LANES, USABLE and, where the CPU knows better than the compiler,
 *   LOW(v), HIGH(v)          half of a vector as doubles
 *   PAIR_F16(p, a, b)        2 LANES halves as two vectors
 *   SOME_F32(p, k, a, b) ..  the first k < 2 LANES numbers at p, zeros behind
 *   WEAVE(a, b, u, v)        a0 b0 a1 b1 .. as two vectors
 *   REDUCE8(v, out)          out[i] = sum of the lanes of v[i], i < 8
 *
 * Rows are read in PAIRS of vectors. Two bf16 numbers share a 32-bit word, so a shift gives those
 * at even places and a mask those at odd ones: x is laid out in that order, and readouts are woven
 * back when they leave the registers.
 *
 * Times in units of one reading (one core, d = 2048; f32, bf16): scores 1.03, 1.06; scores, then the
 * readout of the tile from cache 1.20; in turns 1.10, 1.22. At d = 100: 1.05 and 1.15. */
#include "num/brief.h"
#include "num/widen.h"

#include <string.h>

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef uint32_t vw __attribute__((vector_size(4 * LANES)));
typedef double vd __attribute__((vector_size(4 * LANES)));

enum {
    PAIR = 2 * LANES,
    WIDE = 4,                       /* pairs of a readout panel */
    STEP = WIDE * PAIR,             /* its columns */
    BLOCK = 128 * LANES,            /* columns of a pass: 4 accumulators sum 32 terms a lane */
    SHORT = 5,                      /* pairs of a row whose whole readout stays in registers */
    UNROLLED = LANES == 16 ? 4 : 0, /* pairs of a row up to which eight rows are one run of code */
    GROUP = 8,                      /* rows whose sums are added up side by side */
    AHEAD = 16384,                  /* bytes that prefetching is ahead of the reading */
    ROWS = CGAM_BRIEF_ROWS,
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLL /* checks in every copy would take minutes to compile */
#elif defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE vf load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

#ifndef LOW
INLINE vd half_of(vf v, int from)
{
    float lane[LANES];
    double wide[LANES / 2];
    vd half;
    memcpy(lane, &v, sizeof v);
    for (int k = 0; k < LANES / 2; k++) wide[k] = lane[from + k];
    memcpy(&half, wide, sizeof half);
    return half;
}
#define LOW(v) half_of(v, 0)
#define HIGH(v) half_of(v, LANES / 2)
#endif

INLINE void pair_f32(const float *p, vf *a, vf *b)
{
    *a = load(p);
    *b = load(p + LANES);
}

INLINE void pair_bf16(const uint16_t *p, vf *a, vf *b)
{
    vw v;
    memcpy(&v, p, sizeof v);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    *b = (vf)(v << 16);
    *a = (vf)(v & 0xffff0000u);
#else
    *a = (vf)(v << 16);
    *b = (vf)(v & 0xffff0000u);
#endif
}

INLINE void pair_f16(const uint16_t *p, vf *a, vf *b)
{
#ifdef PAIR_F16
    PAIR_F16(p, a, b);
#else
    float wide[PAIR];
    for (int k = 0; k < PAIR; k++) {
        double z;
        cgam_widen(CGAM_F16, p + k, 1, &z);
        wide[k] = (float)z;
    }
    pair_f32(wide, a, b);
#endif
}

/* The first k < PAIR numbers, zeros behind them; nothing behind p[k - 1] is read. */
#ifdef SOME_F32
#define SOME(name, type, NAME_)                                                                    \
    INLINE void some_##name(const type *p, int64_t k, vf *a, vf *b) { SOME_##NAME_(p, k, a, b); }
#else
#define SOME(name, type, NAME_)                                                                    \
    INLINE void some_##name(const type *p, int64_t k, vf *a, vf *b)                                \
    {                                                                                              \
        type part[PAIR] = {0};                                                                     \
        for (int64_t j = 0; j < k; j++) part[j] = p[j];                                            \
        pair_##name(part, a, b);                                                                   \
    }
#endif
SOME(f32, float, F32)
SOME(f16, uint16_t, F16)
SOME(bf16, uint16_t, BF16)

/* Where the number at place k of a pair stands in the two vectors. */
INLINE int straight(int k) { return k; }
INLINE int woven(int k) { return k / 2 + (k % 2) * LANES; }

INLINE void plain_order(vf *a, vf *b)
{
    (void)a;
    (void)b;
}

INLINE void woven_order(vf *a, vf *b)
{
#ifdef WEAVE
    WEAVE(a, b);
#else
    float from[PAIR], to[PAIR];
    memcpy(from, a, sizeof *a);
    memcpy(from + LANES, b, sizeof *b);
    for (int k = 0; k < PAIR; k++) to[k] = from[woven(k)];
    pair_f32(to, a, b);
#endif
}

INLINE void add_to(double *y, vd v)
{
    vd old;
    memcpy(&old, y, sizeof old);
    old += v;
    memcpy(y, &old, sizeof old);
}

INLINE double total(vd v)
{
    double lane[LANES / 2];
    memcpy(lane, &v, sizeof v);
    for (int k = LANES / 4; k > 0; k /= 2)
        for (int j = 0; j < k; j++) lane[j] += lane[j + k];
    return lane[0];
}

/* The four accumulators of a score. */
INLINE double score_sum(const vf *s)
{
    vf all = (s[0] + s[1]) + (s[2] + s[3]);
    return total(LOW(all) + HIGH(all));
}

/* out[i] = sum of the lanes of v[i]. */
INLINE void reduce(const vf *v, double *out)
{
#ifdef REDUCE8
    REDUCE8(v, out);
#else
    for (int i = 0; i < GROUP; i++) out[i] = total(LOW(v[i]) + HIGH(v[i]));
#endif
}

/* The lines of `bytes` (a constant) bytes from p on. */
INLINE void prefetch_lines(const void *p, int bytes)
{
    UNROLL
    for (int line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)p + line, 0, 2);
}

#define BRIEF(name, type, place, order)                                                              \
    static void lay_##name(const double *x, int64_t d, float *out)                                   \
    {                                                                                                \
        for (int64_t j = 0; j < d; j += PAIR)                                                        \
            for (int k = 0; k < PAIR; k++) out[j + place(k)] = j + k < d ? (float)x[j + k] : 0;      \
    }                                                                                                \
    INLINE void score_step_##name(const type *z, const float *x, vf *s)                              \
    {                                                                                                \
        UNROLL                                                                                       \
        for (int k = 0; k < WIDE; k++) {                                                             \
            vf a, b;                                                                                 \
            pair_##name(z + k * PAIR, &a, &b);                                                       \
            s[k % 2 * 2] += a * load(x + k * PAIR);                                                  \
            s[k % 2 * 2 + 1] += b * load(x + k * PAIR + LANES);                                      \
        }                                                                                            \
    }                                                                                                \
    INLINE void score_some_##name(const type *z, int64_t left, const float *x, vf *s)                \
    {                                                                                                \
        vf a, b;                                                                                     \
        some_##name(z, left, &a, &b);                                                                \
        s[2] += a * load(x);                                                                         \
        if (place(1) != 1 || left > LANES) s[3] += b * load(x + LANES);                              \
    }                                                                                                \
    /* The columns behind the last whole step. */                                                    \
    INLINE void score_rest_##name(const type *z, int64_t left, const float *x, vf *s)                \
    {                                                                                                \
        vf a, b;                                                                                     \
        for (; left >= PAIR; left -= PAIR, z += PAIR, x += PAIR) {                                   \
            pair_##name(z, &a, &b);                                                                  \
            s[0] += a * load(x);                                                                     \
            s[1] += b * load(x + LANES);                                                             \
        }                                                                                            \
        if (left) score_some_##name(z, left, x, s);                                                  \
    }                                                                                                \
    INLINE double score_long_##name(const type *z, int64_t d, const float *x)                        \
    {                                                                                                \
        double sum = 0;                                                                              \
        int64_t whole = d / STEP * STEP;                                                             \
        for (int64_t j = 0; j < whole;) {                                                            \
            int64_t end = whole - j < BLOCK ? whole : j + BLOCK;                                     \
            vf s[4] = {{0}, {0}, {0}, {0}};                                                          \
            for (; j < end; j += STEP) {                                                             \
                prefetch_lines((const char *)(z + j) + AHEAD, STEP * (int)sizeof(type));             \
                score_step_##name(z + j, x + j, s);                                                  \
            }                                                                                        \
            if (end == whole) score_rest_##name(z + whole, d - whole, x + whole, s);                 \
            sum += score_sum(s);                                                                     \
        }                                                                                            \
        return sum;                                                                                  \
    }                                                                                                \
    INLINE void flush_##name(vf a, vf b, double *y)                                                  \
    {                                                                                                \
        order(&a, &b);                                                                               \
        add_to(y, LOW(a));                                                                           \
        add_to(y + LANES / 2, HIGH(a));                                                              \
        add_to(y + LANES, LOW(b));                                                                   \
        add_to(y + LANES + LANES / 2, HIGH(b));                                                      \
    }                                                                                                \
    INLINE void flush_some_##name(vf a, vf b, int64_t left, double *y)                               \
    {                                                                                                \
        double last[PAIR] = {0};                                                                     \
        flush_##name(a, b, last);                                                                    \
        for (int64_t k = 0; k < left; k++) y[k] += last[k];                                          \
    }                                                                                                \
    /* a[] += w row, `pairs` pairs of it and `left` numbers more. */                                 \
    INLINE void add_row_##name(int pairs, int64_t left, const type *row, float w, vf *a)             \
    {                                                                                                \
        vf u, v;                                                                                     \
        UNROLL                                                                                       \
        for (int k = 0; k < pairs; k++) {                                                            \
            pair_##name(row + k * PAIR, &u, &v);                                                     \
            a[2 * k] += w * u;                                                                       \
            a[2 * k + 1] += w * v;                                                                   \
        }                                                                                            \
        if (!left) return;                                                                           \
        some_##name(row + pairs * PAIR, left, &u, &v);                                               \
        a[2 * pairs] += w * u;                                                                       \
        if (place(1) != 1 || left > LANES) a[2 * pairs + 1] += w * v;                                \
    }                                                                                                \
    INLINE void flush_row_##name(int pairs, int64_t left, const vf *a, double *y)                    \
    {                                                                                                \
        UNROLL                                                                                       \
        for (int k = 0; k < pairs; k++) flush_##name(a[2 * k], a[2 * k + 1], y + k * PAIR);          \
        if (left) flush_some_##name(a[2 * pairs], a[2 * pairs + 1], left, y + pairs * PAIR);         \
    }                                                                                                \
    INLINE void sum_panel_##name(int pairs, int64_t left, const type *rows, int64_t stride,          \
                                 int64_t n, const float *w, double *y)                               \
    {                                                                                                \
        vf a[2 * SHORT + 2];                                                                         \
        UNROLL                                                                                       \
        for (int k = 0; k < 2 * pairs + 2; k++) a[k] = (vf){0};                                      \
        for (int64_t i = 0; i < n; i++) add_row_##name(pairs, left, rows + i * stride, w[i], a);     \
        flush_row_##name(pairs, left, a, y);                                                         \
    }                                                                                                \
    INLINE void sum_rest_##name(const type *rows, int64_t stride, int64_t n, int64_t left,           \
                                const float *w, double *y)                                           \
    {                                                                                                \
        int64_t some = left % PAIR;                                                                  \
        switch (left / PAIR) {                                                                       \
        case 3: sum_panel_##name(3, some, rows, stride, n, w, y); break;                             \
        case 2: sum_panel_##name(2, some, rows, stride, n, w, y); break;                             \
        case 1: sum_panel_##name(1, some, rows, stride, n, w, y); break;                             \
        default:                                                                                     \
            if (some) sum_panel_##name(0, some, rows, stride, n, w, y);                              \
        }                                                                                            \
    }                                                                                                \
    /* Short rows: scores of eight at a time, and where rows wait, all of y in registers. */         \
    INLINE vf short_score_##name(int pairs, int64_t left, const type *z, const float *x)             \
    {                                                                                                \
        vf s[4] = {{0}, {0}, {0}, {0}};                                                              \
        prefetch_lines((const char *)z + AHEAD, pairs * PAIR * (int)sizeof(type));                   \
        __builtin_prefetch((const char *)(z + pairs * PAIR + left) + AHEAD, 0, 2);                   \
        UNROLL                                                                                       \
        for (int k = 0; k < pairs; k++) {                                                            \
            vf p, q;                                                                                 \
            pair_##name(z + k * PAIR, &p, &q);                                                       \
            s[k % 2 * 2] += p * load(x + k * PAIR);                                                  \
            s[k % 2 * 2 + 1] += q * load(x + k * PAIR + LANES);                                      \
        }                                                                                            \
        if (left) score_some_##name(z + pairs * PAIR, left, x + pairs * PAIR, s);                    \
        return (s[0] + s[1]) + (s[2] + s[3]);                                                        \
    }                                                                                                \
    INLINE void short_##name(int pairs, bool adds, const type *fresh, const type *stale,             \
                             int64_t stride, int64_t n, int64_t d, const float *x, double *out,      \
                             const float *w, double *y)                                              \
    {                                                                                                \
        vf a[2 * SHORT + 2], v[GROUP];                                                               \
        int64_t left = d - pairs * PAIR, i = 0;                                                      \
        UNROLL                                                                                       \
        for (int k = 0; k < 2 * pairs + 2; k++) a[k] = (vf){0};                                      \
        for (; i + GROUP <= n; i += GROUP, fresh += GROUP * stride, stale += GROUP * stride) {       \
            if (pairs <= UNROLLED) {                                                                 \
                UNROLL                                                                               \
                for (int r = 0; r < GROUP; r++) {                                                    \
                    v[r] = short_score_##name(pairs, left, fresh + r * stride, x);                   \
                    if (adds) add_row_##name(pairs, left, stale + r * stride, w[i + r], a);          \
                }                                                                                    \
            } else {                                                                                 \
                for (int r = 0; r < GROUP; r++) {                                                    \
                    v[r] = short_score_##name(pairs, left, fresh + r * stride, x);                   \
                    if (adds) add_row_##name(pairs, left, stale + r * stride, w[i + r], a);          \
                }                                                                                    \
            }                                                                                        \
            reduce(v, out + i);                                                                      \
        }                                                                                            \
        if (i < n) {                                                                                 \
            double sums[GROUP];                                                                      \
            for (int r = 0; r < GROUP; r++) v[r] = (vf){0};                                          \
            for (int64_t r = 0; r < n - i; r++) {                                                    \
                v[r] = short_score_##name(pairs, left, fresh + r * stride, x);                       \
                if (adds) add_row_##name(pairs, left, stale + r * stride, w[i + r], a);              \
            }                                                                                        \
            reduce(v, sums);                                                                         \
            for (int64_t r = 0; r < n - i; r++) out[i + r] = sums[r];                                \
        }                                                                                            \
        if (adds) flush_row_##name(pairs, left, a, y);                                               \
    }                                                                                                \
    static void short_any_##name(bool adds, const type *fresh, const type *stale, int64_t stride,    \
                                 int64_t n, int64_t d, const float *x, double *out,                  \
                                 const float *w, double *y)                                          \
    {                                                                                                \
        switch (d / PAIR) {                                                                          \
            EACH_SHORT(CASE_SHORT, name)                                                             \
        }                                                                                            \
    }                                                                                                \
    static void dot_##name(const void *rows, int64_t stride, int64_t n, int64_t d, const float *x,   \
                           double *out)                                                              \
    {                                                                                                \
        const type *row = rows;                                                                      \
        if (d < SHORT * PAIR) {                                                                      \
            short_any_##name(false, row, NULL, stride, n, d, x, out, NULL, NULL);                    \
            return;                                                                                  \
        }                                                                                            \
        for (int64_t i = 0; i < n; i++, row += stride) out[i] = score_long_##name(row, d, x);        \
    }                                                                                                \
    static void sum_##name(const void *rows_, int64_t stride, int64_t n, int64_t d,                  \
                           const float *w, double *y)                                                \
    {                                                                                                \
        const type *rows = rows_;                                                                    \
        for (int64_t i = 0; i < n; i += ROWS, rows += ROWS * stride, w += ROWS) {                    \
            int64_t count = n - i < ROWS ? n - i : ROWS, j = 0;                                      \
            for (; j + STEP <= d; j += STEP)                                                         \
                sum_panel_##name(WIDE, 0, rows + j, stride, count, w, y + j);                        \
            sum_rest_##name(rows + j, stride, count, d - j, w, y + j);                               \
        }                                                                                            \
    }                                                                                                \
    /* One step of a score, one step of a readout panel, and so on: `width` columns, and for the   \
     * score `left` more behind them. out += */ \
    static void both_block_##name(const type *fresh, const type *stale, int64_t stride, int64_t n,   \
                                  int64_t width, int64_t left, const float *x, double *out,          \
                                  const float *w, double *y)                                         \
    {                                                                                                \
        vf s[4] = {{0}, {0}, {0}, {0}};                                                              \
        int64_t at = 0, bytes = stride * (int64_t)sizeof(type);                                      \
        int64_t next = bytes < AHEAD ? (AHEAD + bytes - 1) / bytes * bytes : bytes;                  \
        for (int64_t j = 0; j < width; j += STEP) {                                                  \
            vf a[2 * WIDE];                                                                          \
            UNROLL                                                                                   \
            for (int k = 0; k < 2 * WIDE; k++) a[k] = (vf){0};                                       \
            const type *row = stale + j;                                                             \
            for (int64_t i = 0; i < n; i++, row += stride) {                                         \
                const type *z = fresh + at;                                                          \
                prefetch_lines((const char *)z + next, STEP * (int)sizeof(type));                    \
                score_step_##name(z, x + at, s);                                                     \
                add_row_##name(WIDE, 0, row, w[i], a);                                               \
                at += STEP;                                                                          \
                if (at == width) {                                                                   \
                    if (left) {                                                                      \
                        prefetch_lines((const char *)(fresh + width) + next,                         \
                                       STEP * (int)sizeof(type));                                    \
                        score_rest_##name(fresh + width, left, x + width, s);                        \
                    }                                                                                \
                    *out++ += score_sum(s);                                                          \
                    s[0] = s[1] = s[2] = s[3] = (vf){0};                                             \
                    fresh += stride;                                                                 \
                    at = 0;                                                                          \
                }                                                                                    \
            }                                                                                        \
            flush_row_##name(WIDE, 0, a, y + j);                                                     \
        }                                                                                            \
    }                                                                                                \
    static void both_##name(const void *fresh_, const void *stale_, int64_t stride, int64_t n,       \
                            int64_t d, const float *x, double *out, const float *w, double *y)       \
    {                                                                                                \
        const type *fresh = fresh_, *stale = stale_;                                                 \
        int64_t whole = d / STEP * STEP;                                                             \
        for (int64_t i = 0; i < n; i += ROWS) {                                                      \
            int64_t count = n - i < ROWS ? n - i : ROWS;                                             \
            if (d < SHORT * PAIR)                                                                    \
                short_any_##name(true, fresh, stale, stride, count, d, x, out, w, y);                \
            else {                                                                                   \
                for (int64_t k = 0; k < count; k++) out[k] = 0;                                      \
                for (int64_t j = 0; j < whole; j += BLOCK) {                                         \
                    bool last = whole - j <= BLOCK;                                                  \
                    both_block_##name(fresh + j, stale + j, stride, count,                           \
                                      last ? whole - j : BLOCK, last ? d - whole : 0, x + j, out,    \
                                      w, y + j);                                                     \
                }                                                                                    \
                sum_rest_##name(stale + whole, stride, count, d - whole, w, y + whole);              \
            }                                                                                        \
            fresh += count * stride;                                                                 \
            stale += count * stride;                                                                 \
            out += count;                                                                            \
            w += count;                                                                              \
        }                                                                                            \
    }

#define EACH_SHORT(CASE, name)                                                                     \
    CASE(0, name)                                                                                  \
    CASE(1, name)                                                                                  \
    CASE(2, name)                                                                                  \
    CASE(3, name)                                                                                  \
    CASE(4, name)
#define CASE_SHORT(pairs, name)                                                                    \
    case pairs:                                                                                    \
        if (adds) short_##name(pairs, true, fresh, stale, stride, n, d, x, out, w, y);             \
        else short_##name(pairs, false, fresh, stale, stride, n, d, x, out, w, y);                 \
        break;

BRIEF(f32, float, straight, plain_order)
BRIEF(f16, uint16_t, straight, plain_order)
BRIEF(bf16, uint16_t, woven, woven_order)

#define TABLE_(name) cgam_brief_##name
#define TABLE(name) TABLE_(name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

const cgam_brief TABLE(NAME) = {
    .name = TEXT(NAME),
    .usable = USABLE,
    .lay = {NULL, lay_f32, lay_f16, lay_bf16},
    .dot = {NULL, dot_f32, dot_f16, dot_bf16},
    .sum = {NULL, sum_f32, sum_f16, sum_bf16},
    .both = {NULL, both_f32, both_f16, both_bf16},
};
