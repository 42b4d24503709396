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
};
