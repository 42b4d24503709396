/* gram.c: Gram matrices of a tall stored matrix, in double.
 *
 * Z'WZ is made of products of DEPTH rows at a time with the register kernels of panels.h. A block of
 * rows is widened and packed twice, as strips of STRIP columns and, weighted, as strips of a
 * vector panel's width; so the inner loop reads consecutive memory only, and about a seventh more
 * is reached than with OpenBLAS, whose dsyrk does not take weights of both signs anyway. */
#include "num/panels.h"
#include "num/rows.h"

#include <cblas.h>
#include <string.h>

enum {
    DEPTH = 128,    /* rows summed in registers; a weighted strip is 32 KiB with AVX-512 */
    STRIP = 6,      /* rows of a register tile */
    WIDTH_MAX = 64, /* of a vector panel */
    TALL = 504,     /* rows of C taken together: their strips stay in the second-level cache */
    PANEL = 512,    /* columns of C that one item computes */
    SLICE_ROWS = 4096,
    SLICES_MAX = 16,
    OUTER_ROWS = 256, /* rows widened at a time for Z Z' */
};

typedef struct gram {
    cgam_env *env;
    const cgam_rows *Z;
    const cgam_panels *panels;
    const double *w;
    double *C; /* [slices] matrices where the rows are cut into slices */
    int64_t ldc, items, slices;
} gram;

/* Columns [c, c + tall) of DEPTH rows from i on, zeros where there are none:
 * left [strips][DEPTH][STRIP] as they are, right [strips][DEPTH][step] those before `width`,
 * weighted. */
static void pack(const gram *job, int64_t i, int64_t count, int64_t c, int64_t tall, int64_t width,
                 double *row, double *left, double *right)
{
    const cgam_rows *Z = job->Z;
    int64_t step = job->panels->best64, size = (int64_t)cgam_dtype_size(Z->dtype);
    memset(row, 0, (size_t)(tall + STRIP + WIDTH_MAX) * sizeof *row);
    for (int64_t k = 0; k < DEPTH; k++) {
        double factor = k >= count ? 0 : Z->scale ? Z->scale[i + k] : 1;
        double weight = k >= count ? 0 : job->w ? job->w[i + k] : 1;
        memset(row, 0, (size_t)tall * sizeof *row);
        if (k < count) /* a sum over one row widens it */
            Z->kernels->sum[Z->dtype]((const char *)Z->data + ((i + k) * Z->stride + c) * size,
                                      Z->stride, 1, tall, &factor, row);
        for (int64_t j = 0; j < tall; j += STRIP)
            memcpy(left + j * DEPTH + k * STRIP, row + j, STRIP * sizeof *row);
        for (int64_t j = 0; j < width; j += step) {
            double *to = right + j * DEPTH + k * step;
            for (int64_t q = 0; q < step; q++) to[q] = weight * row[j + q];
        }
    }
}

/* Rows [top, top + TALL) of the strip of columns [q, q + step). What a tile computes above the
 * diagonal or beyond the edge is dropped. */
static void add_tiles(const gram *job, int64_t top, int64_t q, int64_t count, int64_t tall,
                      int64_t width, const double *left, const double *B, double *C)
{
    int64_t step = job->panels->best64, bottom = top + TALL < tall ? top + TALL : tall;
    int64_t begin = q / STRIP * STRIP > top ? q / STRIP * STRIP : top;
    for (int64_t j = begin; j < bottom; j += STRIP) {
        const double *A = left + j * DEPTH;
        if (j >= q + step && j + STRIP <= tall && q + step <= width) {
            job->panels->mul64(STRIP, step, count, A, 1, STRIP, B, step, C + j * job->ldc + q,
                               job->ldc, NULL);
            continue;
        }
        double tile[STRIP * WIDTH_MAX] = {0};
        job->panels->mul64(STRIP, step, count, A, 1, STRIP, B, step, tile, step, NULL);
        for (int64_t r = j; r < j + STRIP && r < tall; r++)
            for (int64_t s = q; s < q + step && s < width && s <= r; s++)
                C[r * job->ldc + s] += tile[(r - j) * step + s - q];
    }
}

/* Columns [c, c + width) of the lower triangle over a slice of the rows:
 * C[c.., c..c+width) += Z[:, c..]' W Z[:, c..c+width). */
static cgam_status gram_columns(void *arg, int64_t item)
{
    gram *job = arg;
    const cgam_rows *Z = job->Z;
    int64_t slice = item / job->items, c = item % job->items * PANEL, tall = Z->d - c;
    int64_t width = tall < PANEL ? tall : PANEL, step = job->panels->best64;
    int64_t from = Z->n * slice / job->slices, end = Z->n * (slice + 1) / job->slices;
    double *C = job->C + slice * job->ldc * Z->d + c * job->ldc + c;
    int64_t room = tall + STRIP + WIDTH_MAX;
    double *row = cgam_alloc(job->env, (size_t)room, sizeof *row);
    double *left = cgam_alloc(job->env, (size_t)(room * DEPTH), sizeof *left);
    double *right = cgam_alloc(job->env, (size_t)((width + WIDTH_MAX) * DEPTH), sizeof *right);
    cgam_status status = CGAM_OK;
    if (!row || !left || !right) status = cgam_fail_nomem(job->env, "rows of a Gram matrix");
    for (int64_t i = from; status == CGAM_OK && i < end; i += DEPTH) {
        int64_t count = end - i < DEPTH ? end - i : DEPTH;
        if (cgam_interrupted(job->env)) status = CGAM_E_INTERRUPTED;
        pack(job, i, count, c, tall, width, row, left, right);
        for (int64_t top = 0; top < tall; top += TALL)
            for (int64_t q = 0; q < width; q += step)
                add_tiles(job, top, q, count, tall, width, left, right + q * DEPTH, C);
    }
    cgam_free(job->env, row);
    cgam_free(job->env, left);
    cgam_free(job->env, right);
    return status;
}

/* A wide matrix has panels enough for all threads. A narrow one is cut into slices of rows, whose
 * number depends on the shape alone, with a matrix each. */
cgam_status cgam_rows_gram(cgam_env *env, const cgam_rows *Z, const double *w, double *C,
                           int64_t ldc)
{
    int64_t d = Z->d, slices = Z->n / SLICE_ROWS;
    slices = d > PANEL || slices < 2 ? 1 : slices < SLICES_MAX ? slices : SLICES_MAX;
    gram job = {env,   Z, cgam_panels_with(Z->kernels->name), w, C, ldc, (d + PANEL - 1) / PANEL,
                slices};
    if (slices == 1) return cgam_parallel(env, job.items, gram_columns, &job);
    job.C = cgam_zalloc(env, (size_t)(slices * d * d), sizeof *job.C);
    job.ldc = d;
    if (!job.C) return cgam_fail_nomem(env, "slices of a Gram matrix");
    cgam_status status = cgam_parallel(env, slices * job.items, gram_columns, &job);
    for (int64_t s = 0; s < slices && status == CGAM_OK; s++)
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j <= i; j++) C[i * ldc + j] += job.C[(s * d + i) * d + j];
    cgam_free(env, job.C);
    return status;
}

/* Rows [c, c + height) of the lower triangle of Z Z', by blocks of OUTER_ROWS x d. */
static cgam_status outer_rows(void *arg, int64_t k)
{
    gram *job = arg;
    const cgam_rows *Z = job->Z;
    int64_t c = k * OUTER_ROWS, height = Z->n - c < OUTER_ROWS ? Z->n - c : OUTER_ROWS;
    cgam_status status = CGAM_OK;
    double *mine = cgam_alloc(job->env, (size_t)(height * Z->d), sizeof *mine);
    double *other = cgam_alloc(job->env, (size_t)(OUTER_ROWS * Z->d), sizeof *other);
    if (!mine || !other) status = cgam_fail_nomem(job->env, "rows of a Gram matrix");
    if (status == CGAM_OK) cgam_rows_get(Z, c, height, mine);
    for (int64_t i = 0; status == CGAM_OK && i <= c; i += OUTER_ROWS) {
        int64_t count = Z->n - i < OUTER_ROWS ? Z->n - i : OUTER_ROWS;
        if (cgam_interrupted(job->env)) status = CGAM_E_INTERRUPTED;
        if (i < c) cgam_rows_get(Z, i, count, other);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)height, (int)count, (int)Z->d, 1,
                    mine, (int)Z->d, i < c ? other : mine, (int)Z->d, 0, job->C + c * Z->n + i,
                    (int)Z->n);
    }
    cgam_free(job->env, mine);
    cgam_free(job->env, other);
    return status;
}

cgam_status cgam_rows_gram_outer(cgam_env *env, const cgam_rows *Z, double *C)
{
    gram job = {.env = env, .Z = Z, .C = C, .ldc = Z->n};
    return cgam_parallel(env, (Z->n + OUTER_ROWS - 1) / OUTER_ROWS, outer_rows, &job);
}
