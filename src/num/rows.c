/* rows.c: products with a tall stored matrix, one streaming pass each. */
#include "num/rows.h"

#include "num/cpu/widen.h"
#include "num/gemm_pass.h"
#include "num/ranks.h"

#include <math.h>
#include <string.h>

enum {
    CHUNK_ROWS_MIN = 256, /* smaller chunks do not outweigh the cost of a task */
    TILE_BYTES = 1 << 18, /* a quarter of a small L2 cache, as stored */
    TILE_ROWS_MAX = 1024,
};

int64_t cgam_rows_parts(int64_t n, int64_t least, int64_t few)
{
    int64_t most = n >> 16 > few ? n >> 16 : few, parts = 1;
    if (most > CGAM_CHUNKS_MAX) most = CGAM_CHUNKS_MAX;
    while (2 * parts <= most && 2 * parts * least <= n) parts *= 2;
    return parts;
}

int64_t cgam_rows_chunks(const cgam_rows *Z)
{
    return cgam_rows_parts(Z->n, CHUNK_ROWS_MIN, CGAM_CHUNKS_FEW);
}

int64_t cgam_rows_units(int64_t n, int64_t d)
{
    int64_t units = cgam_rows_parts(n, CHUNK_ROWS_MIN, CGAM_CHUNKS_FEW);
    int64_t many = cgam_gemm_pass_chunks(n, CGAM_GEMM_PASS_ROWS),
            gram = cgam_rows_gram_slices(n, d);
    if (many < units) units = many;
    return gram < units ? gram : units;
}

int64_t cgam_rows_chunk_begin(const cgam_rows *Z, int64_t k)
{
    /* n * k stays below 2^63 for any n that memory can index, since k <= 1024 */
    return Z->n * k / cgam_rows_chunks(Z);
}

/* The number of rows that stay in a core's cache while two loops read them. */
static int64_t tile_rows(const cgam_rows *Z)
{
    int64_t rows = TILE_BYTES / (int64_t)((size_t)Z->stride * cgam_dtype_size(Z->dtype));
    return rows < 8 ? 8 : rows > TILE_ROWS_MAX ? TILE_ROWS_MAX : rows;
}

void cgam_rows_dot(const cgam_rows *Z, int64_t begin, int64_t count, const double *x, double *out)
{
    Z->cpu->f64->dot[Z->dtype](cgam_rows_at(Z, begin), Z->stride, count, Z->d, x, out);
    const double *scale = Z->scale ? cgam_rows_entries(Z, Z->scale, begin) : NULL;
    for (int64_t i = 0; scale && i < count; i++) out[i] *= scale[i];
}

void cgam_rows_add(const cgam_rows *Z, int64_t begin, int64_t count, const double *w, double *y,
                   double *scratch)
{
    if (Z->scale) {
        const double *scale = cgam_rows_entries(Z, Z->scale, begin);
        for (int64_t i = 0; i < count; i++) scratch[i] = w[i] * scale[i];
        w = scratch;
    }
    Z->cpu->f64->sum[Z->dtype](cgam_rows_at(Z, begin), Z->stride, count, Z->d, w, y);
}

void cgam_rows_get(const cgam_rows *Z, int64_t begin, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = out + i * Z->d;
        cgam_widen(Z->dtype, cgam_rows_at(Z, begin + i), Z->d, row);
        if (Z->scale)
            for (int64_t j = 0; j < Z->d; j++) row[j] *= *cgam_rows_entries(Z, Z->scale, begin + i);
    }
}

typedef struct product {
    cgam_env *env;
    const cgam_rows *Z;
    int64_t count;
    const double *in;
    double *out;   /* score: [count, n]; combine: [chunks, count, d] partial sums */
    int64_t apart; /* distance between vectors of n numbers */
} product;

static cgam_status score_chunk(void *arg, int64_t k)
{
    product *job = arg;
    const cgam_rows *Z = job->Z;
    int64_t end = cgam_rows_chunk_begin(Z, k + 1), tile = tile_rows(Z);
    if (cgam_interrupted(job->env)) return CGAM_E_INTERRUPTED;
    for (int64_t i = cgam_rows_chunk_begin(Z, k); i < end; i += tile) {
        int64_t rows = end - i < tile ? end - i : tile;
        for (int64_t v = 0; v < job->count; v++)
            cgam_rows_dot(Z, i, rows, job->in + v * Z->d, job->out + v * job->apart + i);
    }
    return CGAM_OK;
}

cgam_status cgam_rows_score_many(cgam_env *env, const cgam_rows *Z, int64_t count, const double *X,
                                 double *out)
{
    product job = {env, Z, count, X, out, cgam_vec_size(Z)};
    return cgam_rows_run(env, Z, cgam_rows_chunks(Z), score_chunk, &job);
}

cgam_status cgam_rows_score(cgam_env *env, const cgam_rows *Z, const double *x, double *out)
{
    return cgam_rows_score_many(env, Z, 1, x, out);
}

static cgam_status combine_chunk(void *arg, int64_t k)
{
    product *job = arg;
    const cgam_rows *Z = job->Z;
    double *y = job->out + k * job->count * Z->d;
    double scratch[TILE_ROWS_MAX];
    if (cgam_interrupted(job->env)) return CGAM_E_INTERRUPTED;
    memset(y, 0, (size_t)(job->count * Z->d) * sizeof *y);
    int64_t end = cgam_rows_chunk_begin(Z, k + 1), tile = tile_rows(Z);
    for (int64_t i = cgam_rows_chunk_begin(Z, k); i < end; i += tile) {
        int64_t rows = end - i < tile ? end - i : tile;
        for (int64_t v = 0; v < job->count; v++)
            cgam_rows_add(Z, i, rows, job->in + v * job->apart + i, y + v * Z->d, scratch);
    }
    return CGAM_OK;
}

/* Row by row, and only rows with weight. */
static cgam_status combine_some_chunk(void *arg, int64_t k)
{
    product *job = arg;
    const cgam_rows *Z = job->Z;
    double scratch[1];
    memset(job->out + k * job->count * Z->d, 0, (size_t)(job->count * Z->d) * sizeof *job->out);
    if (cgam_interrupted(job->env)) return CGAM_E_INTERRUPTED;
    for (int64_t v = 0; v < job->count; v++) {
        const double *w = job->in + v * job->apart;
        double *y = job->out + (k * job->count + v) * Z->d;
        for (int64_t i = cgam_rows_chunk_begin(Z, k); i < cgam_rows_chunk_begin(Z, k + 1); i++)
            if (w[i] != 0) cgam_rows_add(Z, i, 1, w + i, y, scratch);
    }
    return CGAM_OK;
}

static cgam_status combine(cgam_env *env, const cgam_rows *Z, int64_t count, const double *W,
                           cgam_status (*chunk)(void *, int64_t), double *out)
{
    int64_t chunks = cgam_rows_chunks(Z), size = count * Z->d;
    double *partial = cgam_parts_new(env, Z, chunks, size);
    if (!partial) return cgam_fail_nomem(env, "partial sums");
    product job = {env, Z, count, W, partial, cgam_vec_size(Z)};
    cgam_status status = cgam_rows_run(env, Z, chunks, chunk, &job);
    if (status == CGAM_OK) status = cgam_rows_join(env, Z, chunks, size, partial, out);
    cgam_parts_free(env, Z, chunks, size, partial);
    return status;
}

cgam_status cgam_rows_combine_many(cgam_env *env, const cgam_rows *Z, int64_t count,
                                   const double *W, double *out)
{
    return combine(env, Z, count, W, combine_chunk, out);
}

cgam_status cgam_rows_combine_some(cgam_env *env, const cgam_rows *Z, int64_t count,
                                   const double *W, double *out)
{
    return combine(env, Z, count, W, combine_some_chunk, out);
}

cgam_status cgam_rows_combine(cgam_env *env, const cgam_rows *Z, const double *w, double *out)
{
    return cgam_rows_combine_many(env, Z, 1, w, out);
}

double cgam_array_dot(int64_t n, const double *x, const double *y)
{
    double high = 0, low = 0;
    for (int64_t i = 0; i < n; i += 64) {
        int64_t end = i + 64 < n ? i + 64 : n;
        double block = 0;
        for (int64_t j = i; j < end; j++) block += x[j] * y[j];
        /* Knuth's two-sum: high + block = total + error exactly */
        double total = high + block, part = total - high;
        low += (high - (total - part)) + (block - part);
        high = total;
    }
    return high + low;
}

double cgam_array_norm(int64_t n, const double *x)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) return x[i]; /* fmax would skip it */
        largest = fmax(largest, fabs(x[i]));
    }
    if (largest == 0 || !isfinite(largest)) return largest;
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += (x[i] / largest) * (x[i] / largest);
    return largest * sqrt(total);
}
