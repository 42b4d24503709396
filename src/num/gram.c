/* gram.c: Gram matrices of a tall stored matrix, in double.
 *
 * Z'WZ is made of products of DEPTH rows at a time with the register kernels of cpu/gemm.h, which
 * take both sides by rows: a group of rows is converted twice, plain and weighted, in blocks of columns, so that rows
 * are less than a page apart. Only tiles on and below the diagonal are computed, by strips of two vectors across it.
 * Weights may be of both signs, so this is no dsyrk; docs/roofline.md compares it with dgemm. */
#include "base/blas.h"
#include "num/cpu/gemm.h"
#include "num/ranks.h"

#include <math.h>
#include <string.h>

enum {
    DEPTH = 128,     /* rows summed in registers, */
    DEPTH_MAX = 384, /* and if rows are so short that they all stay in cache */
    BLOCK = 256,     /* columns widened side by side */
    WIDTH_MAX = 64,  /* of a vector panel */
    LANES_MAX = 32,  /* of two vectors */
    PANEL = 512,     /* columns of C that one item computes */
    SLICE_ROWS = 2048,
    SLICES_MAX = 16,
    OUTER_ROWS = 256, /* rows widened at a time for Z Z' */
};

typedef struct gram {
    cgam_env *env;
    const cgam_rows *Z;
    const cgam_gemm *gemm;
    const double *w;
    double *C;
    int64_t ldc, items, slices, ld, depth;
    int64_t first;        /* slice that is computed, */
    double *const *slice; /* and where it and those after it go */
} gram;

/* Converts columns [c, c + wide) of `count` rows from i on, times w if given, to blocks [depth, ld] of BLOCK columns.
 * Entries beyond the last column are unchanged. */
static void widen_columns(const gram *job, int64_t i, int64_t count, int64_t c, int64_t wide,
                          const double *w, double *to)
{
    const cgam_rows *Z = job->Z;
    int64_t size = (int64_t)cgam_dtype_size(Z->dtype), ld = job->ld;
    for (int64_t j = 0; j < wide; j += BLOCK, to += job->depth * ld) {
        int64_t some = wide - j < BLOCK ? wide - j : BLOCK;
        for (int64_t k = 0; k < count; k++) {
            double factor = (Z->scale ? Z->scale[i + k] : 1) * (w ? w[i + k] : 1);
            const char *row = (const char *)cgam_rows_at(Z, i + k) + (c + j) * size;
            Z->cpu->f64->scaled[Z->dtype](row, some, factor, to + k * ld);
        }
    }
}

static const double *column_at(const gram *job, const double *blocks, int64_t j)
{
    return blocks + j / BLOCK * job->depth * job->ld + j % BLOCK;
}

/* Adds the tiles at the diagonal in columns [q, q + step): strips of two vectors, their lower part. */
static void add_corner(const gram *job, int64_t q, int64_t count, int64_t tall, int64_t width,
                       const double *left, const double *right, double *C)
{
    int64_t step = job->gemm->best64, ld = job->ld;
    int64_t lanes = step > job->gemm->lanes64 ? 2 * job->gemm->lanes64 : step;
    int64_t bottom = q + step < tall ? q + step : tall;
    for (int64_t s = q; s < q + step && s < width; s += lanes) {
        double tile[WIDTH_MAX * LANES_MAX];
        memset(tile, 0, (size_t)((bottom - s) * lanes) * sizeof *tile);
        job->gemm->mul64(bottom - s, lanes, count, column_at(job, left, s), 1, ld,
                         column_at(job, right, s), ld, tile, lanes, NULL, NULL);
        for (int64_t r = s; r < bottom; r++)
            for (int64_t k = s; k < s + lanes && k < width && k <= r; k++)
                C[r * job->ldc + k] += tile[(r - s) * lanes + k - s];
    }
}

/* Columns [c, c + width) of the lower triangle over a slice of the rows:
 * C[c.., c..c+width) += Z[:, c..]' W Z[:, c..c+width). */
static cgam_status gram_columns(void *arg, int64_t item)
{
    gram *job = arg;
    const cgam_rows *Z = job->Z;
    int64_t slice = item / job->items, c = item % job->items * PANEL, tall = Z->d - c;
    int64_t width = tall < PANEL ? tall : PANEL, step = job->gemm->best64, ld = job->ld;
    int64_t from = Z->n * (job->first + slice) / job->slices;
    int64_t end = Z->n * (job->first + slice + 1) / job->slices;
    double *C = job->slice[slice] + c * job->ldc + c;
    size_t block = (size_t)(job->depth * ld);
    double *left =
        cgam_zalloc(job->env, (size_t)((tall + BLOCK - 1) / BLOCK) * block, sizeof *left);
    double *right = cgam_zalloc(job->env, (size_t)(PANEL / BLOCK) * block, sizeof *right);
    cgam_status status = CGAM_OK;
    if (!left || !right) status = cgam_fail_nomem(job->env, "rows of a Gram matrix");
    for (int64_t i = from; status == CGAM_OK && i < end; i += job->depth) {
        int64_t count = end - i < job->depth ? end - i : job->depth;
        if (cgam_interrupted(job->env)) status = CGAM_E_INTERRUPTED;
        widen_columns(job, i, count, c, tall, NULL, left);
        widen_columns(job, i, count, c, width, job->w, right);
        for (int64_t j = 0; j < tall; j += BLOCK)
            for (int64_t q = 0; q < width && q < j + BLOCK; q += step) {
                int64_t top = q + step > j ? q + step : j;
                int64_t bottom = j + BLOCK < tall ? j + BLOCK : tall;
                if (q >= j) add_corner(job, q, count, tall, width, left, right, C);
                if (top < bottom)
                    job->gemm->mul64(bottom - top, step, count, column_at(job, left, top), 1, ld,
                                     column_at(job, right, q), ld, C + top * job->ldc + q, job->ldc,
                                     NULL, NULL);
            }
    }
    cgam_free(job->env, left);
    cgam_free(job->env, right);
    return status;
}

double cgam_rows_gram_roundings(int64_t n)
{
    return fmin((double)n, (double)DEPTH_MAX + (double)n / DEPTH) + SLICES_MAX + 2;
}

int64_t cgam_rows_gram_slices(int64_t n, int64_t d)
{
    if (d <= WIDTH_MAX) return cgam_rows_parts(n, SLICE_ROWS / 8, SLICES_MAX);
    if (d <= 2 * PANEL)
        return cgam_rows_parts(n, SLICE_ROWS,
                               d <= PANEL / 2 ? SLICES_MAX
                               : d <= PANEL   ? SLICES_MAX / 2
                                              : SLICES_MAX / 4);
    return cgam_rows_parts(n, 4 * SLICE_ROWS, SLICES_MAX / 4);
}

/* Partial sums of slices: the sum of [k, k + step), in order. */
typedef struct sum {
    int64_t k, step;
    double *C;
} sum;

enum { SUMS_MAX = 32 };

/* Adds slice k; complete pairs are joined. */
static void take_slice(const gram *job, int64_t k, double *C, sum *sums, int64_t *count)
{
    int64_t size = job->Z->d * job->Z->d;
    sums[(*count)++] = (sum){k, 1, C};
    while (*count > 1) {
        sum *left = &sums[*count - 2], *right = left + 1;
        if (left->step != right->step || left->k % (2 * left->step) != 0 ||
            left->k + left->step != right->k ||
            !cgam_rows_pair_here(job->Z, job->slices, left->k, left->step))
            break;
        for (int64_t i = 0; i < size; i++) left->C[i] += right->C[i];
        cgam_free(job->env, right->C);
        left->step *= 2;
        --*count;
    }
}

/* Gathers the sums of other ranks too, in *all [d, d]. */
static cgam_status gather_sums(const gram *job, sum *sums, int64_t count, double **all)
{
    int64_t size = job->Z->d * job->Z->d;
    double *part[CGAM_CHUNKS_MAX] = {0};
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < count; i++) part[sums[i].k] = sums[i].C;
    double *total, *buffer = part[0] ? NULL : cgam_alloc(job->env, (size_t)size, sizeof *buffer);
    if (!part[0] && !buffer) return cgam_fail_nomem(job->env, "slices of a Gram matrix");
    status = cgam_rows_join_rest(job->env, job->Z, job->slices, size, part, buffer, &total);
    *all = buffer;
    if (!buffer) { /* the first of this rank has it */
        *all = sums[0].C;
        sums[0].C = NULL;
    }
    return status;
}

/* A wide matrix has enough panels for all threads, and its slices are computed one after the other. */
static cgam_status gram_by_slices(gram *job, double **all)
{
    const cgam_rows *Z = job->Z;
    int64_t from, to, count = 0, batch = job->items > 2 ? 1 : SLICES_MAX;
    sum sums[SUMS_MAX] = {0};
    double *buffer[SLICES_MAX];
    cgam_status status = CGAM_OK;
    cgam_rows_here(Z, job->slices, &from, &to);
    for (int64_t k = from; k < to && status == CGAM_OK; k += batch) {
        int64_t some = to - k < batch ? to - k : batch, made = 0;
        for (; made < some; made++) {
            buffer[made] = cgam_zalloc(job->env, (size_t)(Z->d * Z->d), sizeof **buffer);
            if (!buffer[made]) break;
        }
        job->first = k;
        job->slice = buffer;
        if (made < some) status = cgam_fail_nomem(job->env, "slices of a Gram matrix");
        else status = cgam_parallel(job->env, some * job->items, gram_columns, job);
        for (int64_t i = 0; i < made; i++) {
            if (status == CGAM_OK) take_slice(job, k + i, buffer[i], sums, &count);
            else cgam_free(job->env, buffer[i]);
        }
    }
    if (status == CGAM_OK) status = gather_sums(job, sums, count, all);
    for (int64_t i = 0; i < count; i++) cgam_free(job->env, sums[i].C);
    job->slice = NULL;
    return status;
}

/* The rows are cut into slices with a matrix each; the number of slices depends only on the shape. */
cgam_status cgam_rows_gram(cgam_env *env, const cgam_rows *Z, const double *w, double *C,
                           int64_t ldc)
{
    int64_t d = Z->d;
    gram job = {.env = env,
                .Z = Z,
                .gemm = Z->cpu->gemm,
                .w = w,
                .ldc = ldc,
                .items = (d + PANEL - 1) / PANEL,
                .slices = cgam_rows_gram_slices(Z->n, d),
                .depth = d <= BLOCK ? DEPTH_MAX : DEPTH,
                .slice = &C};
    if (job.depth > Z->n) job.depth = Z->n; /* a small bank's rows need no more buffer */
    /* whole vector panels, and no power of two */
    job.ld = (d < BLOCK ? (d + WIDTH_MAX - 1) / WIDTH_MAX * WIDTH_MAX : BLOCK) + 8;
    if (job.slices == 1) return cgam_parallel(env, job.items, gram_columns, &job);
    job.ldc = d;
    double *all = NULL;
    cgam_status status = gram_by_slices(&job, &all);
    for (int64_t i = 0; i < d && status == CGAM_OK; i++)
        for (int64_t j = 0; j <= i; j++) C[i * ldc + j] += all[i * d + j];
    cgam_free(env, all);
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
    if (Z->shard)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "products of all memories with each other need them in one process, and "
                         "this bank is spread over ranks");
    return cgam_parallel(env, (Z->n + OUTER_ROWS - 1) / OUTER_ROWS, outer_rows, &job);
}
