/* dplr_inverse.c: the inverse of the small system K = P U B U'P' (Bunch and Kaufman), kept in square
 * blocks on and below the diagonal, and products with it.
 *
 * A block is multiplied both directly and transposed while in cache, so a product reads half of the inverse once.
 * Every block has its own sums, which are joined in order: the result does not depend on the number of threads. */
#include "base/blas.h"
#include "num/dplr_parts.h"

#include <math.h>
#include <string.h>

enum { BLOCK_MAX = 256 };

struct cgam_dplr_inverse {
    const cgam_dplr *T;
    int64_t size, block; /* of K, and of a block */
    int64_t side;        /* blocks in a row of blocks */
    double *blocks;      /* [side (side + 1) / 2, block, block], by rows; zeros beyond K */
    float *f32;          /* the same in f32 */
    bool borrowed;       /* blocks are borrowed */
};

static int64_t block_at(const cgam_dplr_inverse *M, int64_t i, int64_t j)
{
    return (i * (i + 1) / 2 + j) * M->block * M->block;
}

/* ---- Making it ----------------------------------------------------------------------------- */
typedef struct making {
    cgam_dplr_inverse *M;
    double *U,
        *off; /* unit triangular factor with the blocks' diagonals, and their off-diagonal entries */
} making;

static void swap_rows(double *X, int64_t wide, int64_t i, int64_t j)
{
    if (i != j) cblas_dswap((int)wide, X + i * wide, 1, X + j * wide, 1);
}

/* X [size, wide] becomes B^-1 X, B made of 1 x 1 and 2 x 2 blocks. */
static void divide_by_blocks(const making *job, double *X)
{
    const lapack_int *pivots = job->M->T->pivots;
    int64_t size = job->M->size, wide = job->M->block;
    for (int64_t k = 0; k < size; k++) {
        double *x = X + k * wide, *y = x + wide, here = job->U[k * size + k];
        if (pivots[k] > 0) {
            for (int64_t j = 0; j < wide; j++) x[j] /= here;
            continue;
        }
        double cross = job->off[k + 1], next = job->U[(k + 1) * size + k + 1];
        double a = here / cross, b = next / cross, det = a * b - 1;
        for (int64_t j = 0; j < wide; j++) {
            double u = x[j] / cross, v = y[j] / cross;
            x[j] = (b * u - v) / det;
            y[j] = (a * v - u) / det;
        }
        k++;
    }
}

/* A column of blocks: K^-1 times columns of the identity. X is by rows, so U acts on the right,
 * transposed. */
static cgam_status make_column(void *arg, int64_t column)
{
    const making *job = arg;
    cgam_dplr_inverse *M = job->M;
    const lapack_int *pivots = M->T->pivots;
    int64_t size = M->size, wide = M->block, from = column * wide;
    if (cgam_interrupted(M->T->env)) return CGAM_E_INTERRUPTED;
    double *X = cgam_zalloc(M->T->env, (size_t)(size * wide), sizeof *X);
    if (!X) return cgam_fail_nomem(M->T->env, "columns of an inverse");
    for (int64_t k = 0; k < wide && from + k < size; k++) X[(from + k) * wide + k] = 1;
    for (int64_t k = size - 1; k >= 0; k--) {
        if (pivots[k] > 0) swap_rows(X, wide, k, pivots[k] - 1);
        else if (k > 0) swap_rows(X, wide, k - 1, -pivots[k] - 1), k--;
    }
    cblas_dtrsm(CblasColMajor, CblasRight, CblasUpper, CblasTrans, CblasUnit, (int)wide, (int)size,
                1, job->U, (int)size, X, (int)wide);
    divide_by_blocks(job, X);
    cblas_dtrsm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasUnit, (int)wide,
                (int)size, 1, job->U, (int)size, X, (int)wide);
    for (int64_t k = 0; k < size; k++) {
        if (pivots[k] > 0) swap_rows(X, wide, k, pivots[k] - 1);
        else if (k + 1 < size) swap_rows(X, wide, k, -pivots[k] - 1), k++;
    }
    for (int64_t i = column; i < M->side; i++) {
        int64_t rows = size - i * wide < wide ? size - i * wide : wide;
        int64_t to = block_at(M, i, column), from_row = i * wide * wide;
        for (int64_t k = 0; k < rows * wide; k++) {
            M->blocks[to + k] = X[from_row + k];
            M->f32[to + k] = (float)X[from_row + k];
        }
    }
    cgam_free(M->T->env, X);
    return CGAM_OK;
}

void cgam_dplr_inverse_free(cgam_dplr_inverse *M)
{
    if (!M) return;
    cgam_env *env = M->T->env;
    if (!M->borrowed) cgam_free(env, M->blocks);
    cgam_free(env, M->f32);
    cgam_free(env, M);
}

size_t cgam_dplr_inverse_bytes(const cgam_dplr_inverse *M)
{
    if (!M) return 0;
    size_t numbers = (size_t)block_at(M, M->side, 0);
    return numbers * (sizeof(double) + (M->f32 ? sizeof(float) : 0));
}

/* Is there an inverse? Sets its shape. */
static bool lay_out(const cgam_dplr *T, cgam_dplr_inverse *M)
{
    if (T->dense || T->k == 0 || T->m > T->k / 8) return false;
    int64_t size = T->k + T->m, block = size < BLOCK_MAX ? size : BLOCK_MAX;
    *M = (cgam_dplr_inverse){
        .T = T, .size = size, .block = block, .side = (size + block - 1) / block};
    return true;
}

const double *cgam_dplr_inverse_kept(const cgam_dplr_inverse *M, int64_t *count)
{
    *count = block_at(M, M->side, 0);
    return M->blocks;
}

cgam_status cgam_dplr_inverse_restore(const cgam_dplr *T, const double *blocks, int64_t count,
                                      cgam_dplr_inverse **out)
{
    cgam_dplr_inverse shape;
    *out = NULL;
    if (!lay_out(T, &shape) || block_at(&shape, shape.side, 0) != count)
        return cgam_fail(T->env, CGAM_E_FORMAT,
                         "the stored inverse does not match the gate operator");
    cgam_dplr_inverse *M = cgam_zalloc(T->env, 1, sizeof *M);
    if (!M) return cgam_fail_nomem(T->env, "the inverse of a small system");
    *M = shape;
    M->borrowed = true;
    M->blocks = (double *)(uintptr_t)blocks;
    M->f32 = cgam_alloc(T->env, (size_t)count, sizeof *M->f32);
    for (int64_t i = 0; M->f32 && i < count; i++) M->f32[i] = (float)blocks[i];
    if (M->f32) *out = M;
    else cgam_dplr_inverse_free(M);
    return *out ? CGAM_OK : cgam_fail_nomem(T->env, "the inverse of a small system");
}

cgam_status cgam_dplr_inverse_new(const cgam_dplr *T, cgam_dplr_inverse **out)
{
    *out = NULL;
    cgam_env *env = T->env;
    cgam_dplr_inverse shape;
    if (T->singular) return cgam_fail(env, CGAM_E_SINGULAR, "the gate operator is singular");
    if (!lay_out(T, &shape)) return CGAM_OK;
    int64_t size = shape.size, side = shape.side;
    cgam_dplr_inverse *M = cgam_zalloc(env, 1, sizeof *M);
    if (!M) return cgam_fail_nomem(env, "the inverse of a small system");
    *M = shape;
    size_t numbers = (size_t)block_at(M, side, 0);
    M->blocks = cgam_zalloc(env, numbers, sizeof *M->blocks);
    M->f32 = cgam_zalloc(env, numbers, sizeof *M->f32);
    making job = {.M = M,
                  .U = cgam_alloc(env, (size_t)(size * size), sizeof *job.U),
                  .off = cgam_zalloc(env, (size_t)size, sizeof *job.off)};
    cgam_status status = CGAM_OK;
    if (!M->blocks || !M->f32 || !job.U || !job.off) {
        status = cgam_fail_nomem(env, "the inverse of a small system");
    } else {
        memcpy(job.U, T->K, (size_t)(size * size) * sizeof *job.U);
        LAPACKE_dsyconv_work(LAPACK_COL_MAJOR, 'U', 'C', (lapack_int)size, job.U, (lapack_int)size,
                             T->pivots, job.off);
        status = cgam_parallel(env, side, make_column, &job);
    }
    cgam_free(env, job.U);
    cgam_free(env, job.off);
    if (status == CGAM_OK) *out = M;
    else cgam_dplr_inverse_free(M);
    return status;
}

/* ---- Products ------------------------------------------------------------------------------ */
typedef struct product {
    const cgam_dplr_inverse *M;
    int64_t count;
    bool f32;
    const double *X; /* [side block, count] */
    double *Y;       /* [blocks, 2, block, count]: a block's part of its rows and its columns */
    const float *X32;
    float *Y32; /* the same with f32 */
} product;

static void multiply_part(const product *job, CBLAS_TRANSPOSE turned, int64_t block, int64_t from,
                          int64_t to)
{
    int side = (int)job->M->block, count = (int)job->count;
    if (job->f32) {
        const float *A = job->M->f32 + block, *x = job->X32 + from;
        float *y = job->Y32 + to;
        if (count == 1) cblas_sgemv(CblasRowMajor, turned, side, side, 1, A, side, x, 1, 0, y, 1);
        else
            cblas_sgemm(CblasRowMajor, turned, CblasNoTrans, side, count, side, 1, A, side, x,
                        count, 0, y, count);
    } else {
        const double *A = job->M->blocks + block, *x = job->X + from;
        double *y = job->Y + to;
        if (count == 1) cblas_dgemv(CblasRowMajor, turned, side, side, 1, A, side, x, 1, 0, y, 1);
        else
            cblas_dgemm(CblasRowMajor, turned, CblasNoTrans, side, count, side, 1, A, side, x,
                        count, 0, y, count);
    }
}

static cgam_status multiply_block(void *arg, int64_t item)
{
    const product *job = arg;
    int64_t i = 0, strip = job->M->block * job->count;
    while ((i + 1) * (i + 2) / 2 <= item) i++;
    int64_t j = item - i * (i + 1) / 2, block = block_at(job->M, i, j);
    multiply_part(job, CblasNoTrans, block, j * strip, item * 2 * strip);
    if (j < i) multiply_part(job, CblasTrans, block, i * strip, (item * 2 + 1) * strip);
    return CGAM_OK;
}

/* out[v] = entry `row` of product v: the sum over blocks, in order. */
static void join_row(const product *job, int64_t row, double *out)
{
    int64_t rows = job->M->block, i = row / rows, strip = rows * job->count;
    memset(out, 0, (size_t)job->count * sizeof *out);
    for (int64_t j = 0; j < job->M->side; j++) {
        int64_t block = j <= i ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i;
        int64_t at = (2 * block + (j > i)) * strip + row % rows * job->count;
        for (int64_t v = 0; v < job->count; v++)
            out[v] += job->f32 ? (double)job->Y32[at + v] : job->Y[at + v];
    }
}

cgam_status cgam_dplr_inverse_reduce(const cgam_dplr_inverse *M, int64_t count, bool f32,
                                     const double *g, const double *x_border, double *t,
                                     double *y_border)
{
    const cgam_dplr *T = M->T;
    int64_t k = T->k, m = T->m, blocks = M->side * (M->side + 1) / 2, strip = M->block * count;
    int64_t in = M->side * strip, out = 2 * blocks * strip;
    double root = sqrt(T->a);
    double *X = cgam_alloc(T->env, (size_t)(in + out + count), sizeof *X);
    float *X32 = f32 ? cgam_alloc(T->env, (size_t)(in + out), sizeof *X32) : NULL;
    cgam_status status = CGAM_OK;
    if (!X || (f32 && !X32)) {
        status = cgam_fail_nomem(T->env, "a small system");
        goto done;
    }
    memset(X + M->size * count, 0, (size_t)(in - M->size * count) * sizeof *X);
    for (int64_t v = 0; v < count; v++) {
        for (int64_t i = 0; i < k; i++) X[i * count + v] = -root * g[v * k + i];
        for (int64_t i = 0; i < m; i++) X[(k + i) * count + v] = x_border[v * m + i];
    }
    for (int64_t i = 0; f32 && i < in; i++) X32[i] = (float)X[i];
    product job = {M, count, f32, X, X + in, X32, f32 ? X32 + in : NULL};
    double *row = X + in + out;
    status = cgam_parallel(T->env, blocks, multiply_block, &job);
    for (int64_t i = 0; i < M->size && status == CGAM_OK; i++) {
        join_row(&job, i, row);
        for (int64_t v = 0; v < count; v++) {
            if (i < k) t[v * k + i] = root * row[v];
            else y_border[v * m + i - k] = row[v];
        }
    }
done:
    cgam_free(T->env, X);
    cgam_free(T->env, X32);
    return status;
}
