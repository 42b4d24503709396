/* gemm_pass.h: one pass over a tall matrix for many vectors at once, as products of matrices.
 *
 * Each tile of rows, while in cache, is scored against all vectors, S = Z_tile X; a callback turns the scores into
 * weights, and E'Z_tile is added to the sums. No n x vectors matrix is written. Rows are read in place unless their
 * type must be converted. The chunks depend only on the shape, and each has its own sums, so results do not depend on
 * the number of threads.
 *
 * Arithmetic in f32: CGAM_GEMM_PASS_DEPTH products are summed from zero and then added to the score,
 * so with eps = 2^-24 and vectors rounded to f32
 *     |S - S exact| <= (CGAM_GEMM_PASS_DEPTH + d / CGAM_GEMM_PASS_DEPTH + 2) eps sum_j |zeta_j x_j| ,
 * where a hundredth of it is observed. Weighted sums are f32 over a tile and over the tiles of CGAM_GEMM_PASS_FLUSH
 * rows, double beyond. Arithmetic in double: the same with eps = 2^-53.
 *
 * If the CPU has a unit for tiles of bytes, products in f32 of many vectors run there, each number by three digits
 * (cpu/digits.h). With |zeta| |x| in place of sum_j |zeta_j x_j| the bound holds as it stands:
 * cgam_digits_roundings(d) and one of the vectors are less than CGAM_GEMM_PASS_DEPTH + d / CGAM_GEMM_PASS_DEPTH + 2.
 * Numbers too small for digits (below 2^-100, and products of steps below 2^-126) are negligible against the rest of
 * the bound, 2^-20 |zeta| |x| of the lengths in recall.h: these are above 1e-8 (cgam_f32_holds), or the arithmetic is
 * in double. A weighted sum is off by CGAM_DIGITS_READ 2^-24 of the sum over rows of weight times the largest number
 * in the same 256 columns, where the 288 rows of a tile can be off by 288 2^-24 of that with the number itself:
 * columns k times smaller than neighbouring ones lose log2 k bits. */
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
/* The relative error bound of a sum of weights, f32 within a tile and double beyond. */
#define CGAM_GEMM_PASS_SUM ((CGAM_GEMM_PASS_ROWS + 1) * 0x1p-24)

/* A scored tile: rows [begin, begin + count) of a chunk. */
typedef struct cgam_gemm_pass_tile {
    int64_t chunk, begin, count;
    void *S, *S2;   /* [count, width] scores of the two sets, scaled like the rows */
    double *shrink; /* [width] all 1 on entry */
    bool shrinks;
    void *note; /* of the chunk, if notes > 0: zero before its first tile */
} cgam_gemm_pass_tile;

typedef struct cgam_gemm_pass {
    cgam_env *env;
    const cgam_rows *Z;
    bool wide;        /* arithmetic in double, else in f32 */
    int64_t vectors;  /* 1 .. CGAM_GEMM_PASS_WIDTH */
    const double *X;  /* [vectors, d], or NULL: no scores */
    const double *X2; /* [vectors, d] a second set, or NULL */
    bool reads;       /* are sums requested */
    /* Turns t->S into weights (columns beyond the vectors are ignored). If the callback sets t->shrink and
     * t->shrinks, earlier sums of the chunk are first multiplied by t->shrink. */
    void (*weigh)(void *arg, cgam_gemm_pass_tile *t);
    void *arg;
    const void *state; /* [n] rows of state_row bytes that weigh reads, for prefetching; or NULL */
    int64_t state_row;
    size_t notes; /* bytes of notes that weigh keeps per chunk, or 0 */
    /* set by cgam_gemm_pass_new */
    const cgam_gemm *gemm;
    const cgam_digits *digits; /* products by digits, else NULL */
    int64_t width, chunks, tile, ld;
    void *Q, *Q2; /* panels one after the other, each [d, its width]; or as digits lay them */
    double *Y;    /* [chunks, panel] the sums: [d / block, width, block] */
    int64_t panel, block;
    char *noted; /* [chunks, notes] */
} cgam_gemm_pass;

/* Fills in the other fields; free it after a failure too. */
cgam_status cgam_gemm_pass_new(cgam_gemm_pass *s);
void cgam_gemm_pass_free(cgam_gemm_pass *s);
int64_t cgam_gemm_pass_begin(const cgam_gemm_pass *s, int64_t chunk);
/* The number of chunks of n rows with tiles of this size. */
int64_t cgam_gemm_pass_chunks(int64_t n, int64_t tile);
/* Runs the pass. It may be repeated with other vectors after cgam_gemm_pass_load, also without scores (X = NULL) or
 * sums (reads = false); a pass made without them cannot add them later. */
cgam_status cgam_gemm_pass_run(cgam_gemm_pass *s);
void cgam_gemm_pass_load(cgam_gemm_pass *s);
/* out [count, n] = Z X' in double, any count; X [count, d]. */
cgam_status cgam_gemm_pass_scores(cgam_env *env, const cgam_rows *Z, int64_t count, const double *X,
                                  double *out);
/* _share collects the notes of all chunks, after a pass; _noted returns those of chunk k, NULL past the last. */
cgam_status cgam_gemm_pass_share(const cgam_gemm_pass *s);
const void *cgam_gemm_pass_noted(const cgam_gemm_pass *s, int64_t k);
/* Y[vectors, d] = sum over chunks c of factor[c, v] (NULL: 1) times the sums of vector v, which are overwritten. */
cgam_status cgam_gemm_pass_join(const cgam_gemm_pass *s, const double *factor, double *const *Y);
/* Computes S[width] of a single row, with the same bits as in the pass; buffers of [width] doubles each. */
cgam_status cgam_gemm_pass_look(const cgam_gemm_pass *s, int64_t row, void *S, void *S2);

#endif
