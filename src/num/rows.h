/* rows.h: a tall matrix as it is stored, and the products that read it.
 *
 * Z [n, d] has rows zeta_i = scale_i * stored row i. It is read in chunks of consecutive rows, whose number
 * depends on n alone; one thread sums a chunk from zero, and chunks are joined in pairs (ranks.h), so that results
 * depend neither on the number of threads nor on the number of ranks. */
#ifndef CGAM_SRC_NUM_ROWS_H
#define CGAM_SRC_NUM_ROWS_H

#include "base/env.h"
#include "num/cpu/cpu.h"

typedef struct cgam_rows {
    const void *data; /* [n, stride] elements of dtype */
    cgam_dtype dtype; /* a float type */
    int64_t n, d, stride;
    const double *scale; /* [n], NULL = all one; a vector (vec.h) */
    const cgam_cpu *cpu;
    struct cgam_shard *shard; /* NULL: all rows are here; else see ranks.h */
} cgam_rows;

/* Returns stored row i, of rows that are spread over ranks. */
const void *cgam_shard_row(const cgam_rows *Z, int64_t i);
/* Returns stored row i. */
static inline const void *cgam_rows_at(const cgam_rows *Z, int64_t i)
{
    if (Z->shard) return cgam_shard_row(Z, i);
    return (const char *)Z->data + (size_t)(i * Z->stride) * cgam_dtype_size(Z->dtype);
}

/* The entry of row i in a vector x; entries of adjacent stored rows are adjacent. */
const double *cgam_shard_entries(const cgam_rows *Z, const double *x, int64_t i);
static inline const double *cgam_rows_entries(const cgam_rows *Z, const double *x, int64_t i)
{
    return Z->shard ? cgam_shard_entries(Z, x, i) : x + i;
}

enum {
    CGAM_CHUNKS_FEW = 64,   /* enough for 64 threads; partial sums cost this many d doubles */
    CGAM_CHUNKS_MAX = 1024, /* for banks so large that their cost is negligible */
};

/* Returns a power of two: the largest number of parts of n rows such that each has at least `least` rows, up to
 * `few`; or 2^16 rows or more, up to CGAM_CHUNKS_MAX. Part k of p begins at row n k / p, so that parts of different
 * numbers nest. */
int64_t cgam_rows_parts(int64_t n, int64_t least, int64_t few);
/* The number of chunks, at most CGAM_CHUNKS_MAX, and the first row of chunk k, which is rows [begin(k), begin(k + 1)). */
int64_t cgam_rows_chunks(const cgam_rows *Z);
int64_t cgam_rows_chunk_begin(const cgam_rows *Z, int64_t k);
/* The number of parts in the coarsest division of n rows of d numbers. */
int64_t cgam_rows_units(int64_t n, int64_t d);

/* Rows [begin, begin + count): out[i] = <zeta_{begin+i}, x>. */
void cgam_rows_dot(const cgam_rows *Z, int64_t begin, int64_t count, const double *x, double *out);
/* y += sum over those rows of w[i] zeta_{begin+i}. scratch: [count], used when rows are scaled. */
void cgam_rows_add(const cgam_rows *Z, int64_t begin, int64_t count, const double *w, double *y,
                   double *scratch);
/* out[count, d] = those rows, converted to double. */
void cgam_rows_get(const cgam_rows *Z, int64_t begin, int64_t count, double *out);

/* out[n] = Z x. */
cgam_status cgam_rows_score(cgam_env *env, const cgam_rows *Z, const double *x, double *out);
/* out[d] = Z' w. */
cgam_status cgam_rows_combine(cgam_env *env, const cgam_rows *Z, const double *w, double *out);

/* The same for several vectors in one pass over Z: X [count, d] -> out [count, n], in the layout of cgam_vec_new. The
 * bits of each result do not depend on the other vectors. */
cgam_status cgam_rows_score_many(cgam_env *env, const cgam_rows *Z, int64_t count, const double *X,
                                 double *out);
/* W [count, n] -> out [count, d]. */
cgam_status cgam_rows_combine_many(cgam_env *env, const cgam_rows *Z, int64_t count,
                                   const double *W, double *out);
/* The same for weights that are mostly 0: rows of weight 0 are not read. */
cgam_status cgam_rows_combine_some(cgam_env *env, const cgam_rows *Z, int64_t count,
                                   const double *W, double *out);

/* C += sum_i w[i] zeta_i zeta_i' over all rows, the lower triangle of C [d, d] at row distance
 * ldc; w NULL = ones; weights of any sign. */
cgam_status cgam_rows_gram(cgam_env *env, const cgam_rows *Z, const double *w, double *C,
                           int64_t ldc);
/* The number of parts of the rows that are summed separately in it. */
int64_t cgam_rows_gram_slices(int64_t n, int64_t d);
/* At most this many additions affect a term of such a sum. */
double cgam_rows_gram_roundings(int64_t n);
/* C = Z Z', the lower triangle of C [n, n]; all rows must be in this process. */
cgam_status cgam_rows_gram_outer(cgam_env *env, const cgam_rows *Z, double *C);

/* x'y with sums of 64, joined in double-double; and |x|, a plain sum that neither overflows nor
 * underflows. */
double cgam_array_dot(int64_t n, const double *x, const double *y);
double cgam_array_norm(int64_t n, const double *x);

#endif
