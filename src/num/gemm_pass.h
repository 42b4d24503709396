/* gemm_pass.h: one pass over a tall matrix for many vectors at once, as products of matrices.
 *
 * While a tile of rows is in cache, it is scored against all vectors, S = Z_tile X, a caller turns
 * the scores into weights, and E'Z_tile is added to the sums; no n x vectors matrix is written.
 * Rows are read where they lie, unless their type has to be converted. The rows are cut into
 * chunks by shape alone, each with sums of its own; results do not depend on the number of threads.
 *
 * Arithmetic in f32: CGAM_GEMM_PASS_DEPTH products are summed from zero and then added to the score,
 * so with eps = 2^-24 and vectors rounded to f32
 *     |S - S exact| <= (CGAM_GEMM_PASS_DEPTH + d / CGAM_GEMM_PASS_DEPTH + 2) eps sum_j |zeta_j x_j| ,
 * of which a hundredth is seen. Weighted sums are f32 over a tile and over the tiles of
 * CGAM_GEMM_PASS_FLUSH rows, double beyond. Arithmetic in double: the same with eps = 2^-53.
 *
 * Where the CPU has a unit for tiles of bytes, products in f32 of many vectors run there, each number by
 * three digits (cpu/digits.h). With |zeta| |x| in place of sum_j |zeta_j x_j| the bound holds as it stands:
 * cgam_digits_roundings(d) and one of the vectors are less than CGAM_GEMM_PASS_DEPTH + d /
 * CGAM_GEMM_PASS_DEPTH + 2. What is too small for digits, numbers below 2^-100 and products of steps below
 * 2^-126, is nothing beside what is left, 2^-20 |zeta| |x| of the lengths in recall.h's bound, as these are above
 * 1e-8 (cgam_f32_holds), or the arithmetic is in double. A weighted sum is off by CGAM_DIGITS_READ 2^-24 of the
 * sum over rows of weight times the largest number in the same 256 columns, where the 288 rows of a tile can be
 * off by 288 2^-24 of that with the number itself: columns k times smaller than others beside them lose log2 k bits. */
#ifndef CGAM_SRC_NUM_GEMM_PASS_H
#define CGAM_SRC_NUM_GEMM_PASS_H

#include "num/cpu/digits.h"
#include "num/cpu/gemm.h"
#include "num/rows.h"

#define CGAM_GEMM_PASS_ERROR(d)                                                                    \
    ((CGAM_GEMM_PASS_DEPTH + (double)(d) / CGAM_GEMM_PASS_DEPTH + 2) * 0x1p-24)
enum {
    CGAM_GEMM_PASS_DEPTH = 128,
    CGAM_GEMM_PASS_FLUSH = 8192,
    CGAM_GEMM_PASS_WIDTH = 64,
    CGAM_GEMM_PASS_ROWS = 288, /* of a tile, at most */
};
/* What a sum of weights, f32 within a tile and double beyond, is off by, relative. */
#define CGAM_GEMM_PASS_SUM ((CGAM_GEMM_PASS_ROWS + 1) * 0x1p-24)

/* A scored tile: rows [begin, begin + count) of a chunk. */
typedef struct cgam_gemm_pass_tile {
    int64_t chunk, begin, count;
    void *S, *S2;   /* [count, width] scores of the two sets, scaled as the rows are */
    double *shrink; /* [width] all one */
    bool shrinks;
    void *note; /* of the chunk, with notes: zero before its first tile */
} cgam_gemm_pass_tile;

typedef struct cgam_gemm_pass {
    cgam_env *env;
    const cgam_rows *Z;
    bool wide;        /* arithmetic in double, else in f32 */
    int64_t vectors;  /* 1 .. CGAM_GEMM_PASS_WIDTH */
    const double *X;  /* [vectors, d], or NULL: nothing is scored */
    const double *X2; /* [vectors, d] a second set, or NULL */
    bool reads;       /* are sums wanted */
    /* Turns t->S into weights (columns beyond the vectors count for nothing). Earlier sums of the
     * chunk are first multiplied by t->shrink where the caller sets it and t->shrinks. */
    void (*weigh)(void *arg, cgam_gemm_pass_tile *t);
    void *arg;
    const void
        *state; /* [n] rows of state_row bytes that weigh reads, to be fetched ahead; or NULL */
    int64_t state_row;
    size_t notes; /* bytes that weigh notes of a chunk, or 0 */
    /* by cgam_gemm_pass_new */
    const cgam_gemm *gemm;
    const cgam_digits *digits; /* products by digits, else NULL */
    int64_t width, chunks, tile, ld;
    void *Q, *Q2; /* panels one after the other, each [d, its width]; or as digits lay them */
    double *Y;    /* [chunks, panel] the sums: [d / block, width, block] */
    int64_t panel, block;
    char *noted; /* [chunks, notes] */
} cgam_gemm_pass;

/* Fills in the rest; to be freed also after a failure. */
cgam_status cgam_gemm_pass_new(cgam_gemm_pass *s);
void cgam_gemm_pass_free(cgam_gemm_pass *s);
int64_t cgam_gemm_pass_begin(const cgam_gemm_pass *s, int64_t chunk);
/* Chunks of n rows in tiles of so many. */
int64_t cgam_gemm_pass_chunks(int64_t n, int64_t tile);
/* The pass. It may be repeated with other vectors after cgam_gemm_pass_load, without scores (X = NULL) or
 * sums (reads = false) too; what it was made without it cannot do later. */
cgam_status cgam_gemm_pass_run(cgam_gemm_pass *s);
void cgam_gemm_pass_load(cgam_gemm_pass *s);
/* out [count, n] = Z X' in double, any count; X [count, d]. */
cgam_status cgam_gemm_pass_scores(cgam_env *env, const cgam_rows *Z, int64_t count, const double *X,
                                  double *out);
/* The notes of all chunks, after a pass; NULL past the last. */
cgam_status cgam_gemm_pass_share(const cgam_gemm_pass *s);
const void *cgam_gemm_pass_noted(const cgam_gemm_pass *s, int64_t k);
/* Y[vectors, d] = sum over chunks c of factor[c, v] (NULL: 1) times the sums of vector v, which are lost. */
cgam_status cgam_gemm_pass_join(const cgam_gemm_pass *s, const double *factor, double *const *Y);
/* S[width] of a single row, in the bits that the pass has; room for [width] doubles each. */
cgam_status cgam_gemm_pass_look(const cgam_gemm_pass *s, int64_t row, void *S, void *S2);

#endif
