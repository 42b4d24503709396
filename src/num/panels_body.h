/* panels_body.h: panels.h with vectors of BYTES bytes, VECTORS of them side by side and six rows:
 * 6 VECTORS accumulators, VECTORS loads of B and one element of A must fit the registers. Included
 * by one file per CPU, which defines NAME, BYTES, VECTORS and USABLE. */
#include "num/panels.h"

#include <string.h>

typedef float vf __attribute__((vector_size(BYTES)));
typedef double vd __attribute__((vector_size(BYTES)));

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline))

#define PANELS(name, type, vec)                                                                    \
    INLINE vec load_##name(const type *p)                                                          \
    {                                                                                              \
        vec v;                                                                                     \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    INLINE void tile_##name(int rows, int vectors, int64_t depth, const type *A, int64_t ra,       \
                            int64_t ka, const type *B, int64_t ldb, type *C, int64_t ldc)          \
    {                                                                                              \
        enum { W = BYTES / sizeof(type) };                                                         \
        vec acc[6][VECTORS];                                                                       \
        UNROLL                                                                                     \
        for (int r = 0; r < rows; r++) {                                                           \
            UNROLL                                                                                 \
            for (int v = 0; v < vectors; v++)                                                      \
                acc[r][v] = (vec){0}, __builtin_prefetch(C + r * ldc + v * W, 1);                  \
        }                                                                                          \
        /* rows of a tall matrix: what the caller will want next comes right behind */             \
        for (int64_t k = 0; ka == 1 && k < depth; k += 64 / (int64_t)sizeof(type)) {               \
            UNROLL                                                                                 \
            for (int r = 0; r < rows; r++) __builtin_prefetch(A + r * ra + depth + k, 0, 2);       \
        }                                                                                          \
        for (int64_t k = 0; k < depth; k++, A += ka, B += ldb) {                                   \
            vec b[VECTORS];                                                                        \
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
    }                                                                                              \
    INLINE void strip_##name(int vectors, int64_t rows, int64_t depth, const type *A, int64_t ra,  \
                             int64_t ka, const type *B, int64_t ldb, type *C, int64_t ldc)         \
    {                                                                                              \
        for (; rows >= 6; rows -= 6, A += 6 * ra, C += 6 * ldc)                                    \
            tile_##name(6, vectors, depth, A, ra, ka, B, ldb, C, ldc);                             \
        if (rows >= 4) {                                                                           \
            tile_##name(4, vectors, depth, A, ra, ka, B, ldb, C, ldc);                             \
            rows -= 4, A += 4 * ra, C += 4 * ldc;                                                  \
        }                                                                                          \
        if (rows >= 2) {                                                                           \
            tile_##name(2, vectors, depth, A, ra, ka, B, ldb, C, ldc);                             \
            rows -= 2, A += 2 * ra, C += 2 * ldc;                                                  \
        }                                                                                          \
        if (rows) tile_##name(1, vectors, depth, A, ra, ka, B, ldb, C, ldc);                       \
    }                                                                                              \
    static void mul_##name(int64_t rows, int64_t columns, int64_t depth, const type *A,            \
                           int64_t ra, int64_t ka, const type *B, int64_t ldb, type *C,            \
                           int64_t ldc)                                                            \
    {                                                                                              \
        enum { W = BYTES / sizeof(type) };                                                         \
        int64_t c = 0;                                                                             \
        for (; c + VECTORS * W <= columns; c += VECTORS * W)                                       \
            strip_##name(VECTORS, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc);                 \
        for (; VECTORS > 2 && c + 2 * W <= columns; c += 2 * W)                                    \
            strip_##name(2, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc);                       \
        for (; c + W <= columns; c += W)                                                           \
            strip_##name(1, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc);                       \
    }

PANELS(f32, float, vf)
PANELS(f64, double, vd)

typedef int32_t vi __attribute__((vector_size(BYTES)));
typedef uint32_t vu __attribute__((vector_size(BYTES)));
typedef int64_t vl __attribute__((vector_size(BYTES)));
typedef float half __attribute__((vector_size(BYTES / 2)));
enum { LANES = BYTES / 8 };

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

INLINE vf narrow(vd u, vd v)
{
#ifdef NARROW
    return NARROW(u, v);
#else
    half h[2] = {__builtin_convertvector(u, half), __builtin_convertvector(v, half)};
    vf both;
    memcpy(&both, h, sizeof both);
    return both;
#endif
}

static void gather(int64_t n, const float *x, double *X)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vd v = load_f64(X + i) + widen(x + i);
        memcpy(X + i, &v, sizeof v);
    }
}

INLINE vd pick(vl mask, vd yes, vd no) { return (vd)(((vl)yes & mask) | ((vl)no & ~mask)); }
INLINE vf pick32(vi mask, vf yes, vf no) { return (vf)(((vi)yes & mask) | ((vi)no & ~mask)); }

static void tops(int64_t rows, int64_t columns, const double *R, double *top)
{
    for (int64_t c = 0; c < columns; c += 2 * LANES) {
        vd a = (vd){0} - __builtin_inf(), b = a;
        for (int64_t i = 0; i < rows; i++) {
            vd u = load_f64(R + i * columns + c), v = load_f64(R + i * columns + c + LANES);
            a = pick(u > a, u, a);
            b = pick(v > b, v, b);
        }
        memcpy(top + c, &a, sizeof a);
        memcpy(top + c + LANES, &b, sizeof b);
    }
}

/* exp x for x <= 0: n ln 2 + r, |r| <= ln(2)/2, Taylor's series up to r^7 / 7!, whose next term is
 * below 6e-9; n is rounded by adding 1.5 2^23 and then moved into the exponent. */
INLINE vf exp32(vf x)
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

static void soften(int64_t rows, int64_t columns, const double *R, double beta, const double *top,
                   float *E, float *sums)
{
    for (int64_t c = 0; c < columns; c += 2 * LANES) {
        vf one = {0}, two = {0}, tilt = {0};
        vd t0 = load_f64(top + c), t1 = load_f64(top + c + LANES);
        for (int64_t i = 0; i < rows; i++) {
            vf v = narrow(beta * (load_f64(R + i * columns + c) - t0),
                          beta * (load_f64(R + i * columns + c + LANES) - t1));
            v = pick32(v < -1000.0f, (vf){0} - 1000.0f, v); /* 0 * inf would be no number */
            vf e = exp32(v);
            memcpy(E + i * columns + c, &e, sizeof e);
            one += e;
            two += e * e;
            tilt += e * v;
        }
        memcpy(sums + c, &one, sizeof one);
        memcpy(sums + columns + c, &two, sizeof two);
        memcpy(sums + 2 * columns + c, &tilt, sizeof tilt);
    }
}

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
    .tops = tops,
    .soften = soften,
};
