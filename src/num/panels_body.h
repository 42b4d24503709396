/* panels_body.h: panels.h with vectors of BYTES bytes, at most VECTORS of them side by side. A tile
 * has 6 VECTORS accumulators: the fewer vectors are side by side, the more rows. Those, the loads
 * of B and one element of A must fit the registers. Included by one file per CPU, which defines
 * NAME, BYTES, VECTORS and USABLE. */
#include "num/panels.h"
#include "num/vexp.h"

#include <string.h>

typedef float vf __attribute__((vector_size(BYTES)));
typedef double vd __attribute__((vector_size(BYTES)));
typedef int32_t vi __attribute__((vector_size(BYTES)));
typedef uint32_t vu __attribute__((vector_size(BYTES)));
typedef int64_t vl __attribute__((vector_size(BYTES)));
typedef uint64_t vul __attribute__((vector_size(BYTES)));
typedef float half __attribute__((vector_size(BYTES / 2)));

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

#define PRODUCTS(name, type, vec)                                                                  \
    INLINE vec load_##name(const type *p)                                                          \
    {                                                                                              \
        vec v;                                                                                     \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    INLINE const char *tile_##name(int rows, int vectors, int64_t depth, const type *A,            \
                                   int64_t ra, int64_t ka, const type *B, int64_t ldb, type *C,    \
                                   int64_t ldc, const char *next)                                  \
    {                                                                                              \
        enum { W = BYTES / sizeof(type) };                                                         \
        vec acc[12][VECTORS];                                                                      \
        int64_t lines = next ? 64 : 0;                                                             \
        UNROLL                                                                                     \
        for (int r = 0; r < rows; r++) {                                                           \
            UNROLL                                                                                 \
            for (int v = 0; v < vectors; v++)                                                      \
                acc[r][v] = (vec){0}, __builtin_prefetch(C + r * ldc + v * W, 1);                  \
        }                                                                                          \
        for (int64_t k = 0; k < depth; k++, A += ka, B += ldb) {                                   \
            vec b[VECTORS];                                                                        \
            if (lines && k % 2 == 0) __builtin_prefetch(next, 0, 2), next += lines;                \
            UNROLL                                                                                 \
            for (int v = 0; v < vectors; v++) b[v] = load_##name(B + v * W);                       \
            UNROLL                                                                                 \
            for (int r = 0; r < rows; r++) {                                                       \
                type a = A[r * ra];                                                                \
                UNROLL                                                                             \
                for (int v = 0; v < vectors; v++) acc[r][v] += a * b[v];                           \
            }                                                                                      \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int r = 0; r < rows; r++) {                                                           \
            UNROLL                                                                                 \
            for (int v = 0; v < vectors; v++) {                                                    \
                vec sum = load_##name(C + r * ldc + v * W) + acc[r][v];                            \
                memcpy(C + r * ldc + v * W, &sum, sizeof sum);                                     \
            }                                                                                      \
        }                                                                                          \
        return next;                                                                               \
    }                                                                                              \
    INLINE const char *strip_##name(int tall, int vectors, int64_t rows, int64_t depth,            \
                                    const type *A, int64_t ra, int64_t ka, const type *B,          \
                                    int64_t ldb, type *C, int64_t ldc, const char *next)           \
    {                                                                                              \
        for (; rows >= tall; rows -= tall, A += tall * ra, C += tall * ldc)                        \
            next = tile_##name(tall, vectors, depth, A, ra, ka, B, ldb, C, ldc, next);             \
        for (; rows >= 4; rows -= 4, A += 4 * ra, C += 4 * ldc)                                    \
            next = tile_##name(4, vectors, depth, A, ra, ka, B, ldb, C, ldc, next);                \
        if (rows >= 2) {                                                                           \
            next = tile_##name(2, vectors, depth, A, ra, ka, B, ldb, C, ldc, next);                \
            rows -= 2, A += 2 * ra, C += 2 * ldc;                                                  \
        }                                                                                          \
        if (rows) next = tile_##name(1, vectors, depth, A, ra, ka, B, ldb, C, ldc, next);          \
        return next;                                                                               \
    }                                                                                              \
    static void mul_##name(int64_t rows, int64_t columns, int64_t depth, const type *A,            \
                           int64_t ra, int64_t ka, const type *B, int64_t ldb, type *C,            \
                           int64_t ldc, const void *then)                                          \
    {                                                                                              \
        enum { W = BYTES / sizeof(type), THREE = VECTORS > 3 ? 3 : 1, TWO = VECTORS > 2 ? 2 : 1 }; \
        const char *next = then;                                                                   \
        int64_t c = 0;                                                                             \
        for (; c + VECTORS * W <= columns; c += VECTORS * W)                                       \
            next = strip_##name(6, VECTORS, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next); \
        for (; THREE > 1 && c + 3 * W <= columns; c += 3 * W)                                      \
            next = strip_##name(8, THREE, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next);   \
        for (; TWO > 1 && c + 2 * W <= columns; c += 2 * W)                                        \
            next = strip_##name(12, TWO, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next);    \
        for (; c + W <= columns; c += W)                                                           \
            next = strip_##name(12, 1, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next);      \
    }

PRODUCTS(f32, float, vf)
PRODUCTS(f64, double, vd)

CGAM_VEXP(vexp, vd, vl, vul)

INLINE vd widen(const float *p)
{
#ifdef WIDEN
    return WIDEN(p);
#else
    half v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vd);
#endif
}

static void gather(int64_t n, const float *x, double *X)
{
    enum { LANES = BYTES / 8 };
    for (int64_t i = 0; i < n; i += LANES) {
        vd v = load_f64(X + i) + widen(x + i);
        memcpy(X + i, &v, sizeof v);
    }
}

/* exp x for x <= 20: n ln 2 + r, |r| <= ln(2)/2, Taylor's series up to r^7 / 7!, whose next term is
 * below 6e-9; n is rounded by adding 1.5 2^23 and then moved into the exponent. */
INLINE vf exp_f32(vf x)
{
    vf t = x * 0x1.715476p0f + 0x1.8p23f, n = t - 0x1.8p23f;
    vf r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    vf q = r * 0x1.a01a02p-13f + 0x1.6c16c2p-10f;
    q = q * r + 0x1.111112p-7f;
    q = q * r + 0x1.555556p-5f;
    q = q * r + 0x1.555556p-3f;
    q = q * r + 0x1p-1f;
    vf y = (q * (r * r) + r) + 1;
    return (vf)(((vu)y + ((vu)t << 23)) & (vu) ~(x < -87.0f));
}

INLINE vd exp_f64(vd x) { return vexp_below(x); }

/* x is kept above `floor`, where exp is 0, since 0 times infinity would be no number. */
#define SOFTMAX(name, type, vec, ivec, floor)                                                      \
    INLINE vec pick_##name(ivec mask, vec yes, vec no)                                             \
    {                                                                                              \
        return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));                                     \
    }                                                                                              \
    static void tops_##name(int64_t rows, int64_t columns, const type *R, double *top)             \
    {                                                                                              \
        enum { W = BYTES / sizeof(type) };                                                         \
        for (int64_t c = 0; c < columns; c += W) {                                                 \
            vec a = (vec){0} - __builtin_inff();                                                   \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                vec u = load_##name(R + i * columns + c);                                          \
                a = pick_##name(u > a, u, a);                                                      \
            }                                                                                      \
            for (int k = 0; k < W; k++) top[c + k] = a[k];                                         \
        }                                                                                          \
    }                                                                                              \
    static void soften_##name(int64_t rows, int64_t columns, type *R, double beta,                 \
                              const double *top, double *sums)                                     \
    {                                                                                              \
        enum { W = BYTES / sizeof(type) };                                                         \
        for (int64_t c = 0; c < columns; c += W) {                                                 \
            vec one = {0}, two = {0}, tilt = {0}, high;                                            \
            for (int k = 0; k < W; k++) high[k] = (type)top[c + k];                                \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                vec x = (type)beta * (load_##name(R + i * columns + c) - high);                    \
                x = pick_##name(x < (type)(floor), (vec){0} + (type)(floor), x);                   \
                vec e = exp_##name(x);                                                             \
                memcpy(R + i * columns + c, &e, sizeof e);                                         \
                one += e;                                                                          \
                two += e * e;                                                                      \
                tilt += e * x;                                                                     \
            }                                                                                      \
            for (int k = 0; k < W; k++) {                                                          \
                sums[c + k] = one[k];                                                              \
                sums[columns + c + k] = two[k];                                                    \
                sums[2 * columns + c + k] = tilt[k];                                               \
            }                                                                                      \
        }                                                                                          \
    }

SOFTMAX(f32, float, vf, vi, -1000)
SOFTMAX(f64, double, vd, vl, -10000)

#define TABLE_(name) cgam_panels_##name
#define TABLE(name) TABLE_(name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

const cgam_panels TABLE(NAME) = {
    .name = TEXT(NAME),
    .usable = USABLE,
    .lanes32 = BYTES / 4,
    .lanes64 = BYTES / 8,
    .best32 = VECTORS * BYTES / 4,
    .best64 = VECTORS * BYTES / 8,
    .mul32 = mul_f32,
    .mul64 = mul_f64,
    .gather = gather,
    .tops32 = tops_f32,
    .tops64 = tops_f64,
    .soften32 = soften_f32,
    .soften64 = soften_f64,
};
