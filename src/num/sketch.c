/* sketch.c: see sketch.h. */
#include "num/sketch.h"

#include "num/rounding.h"

#include <math.h>
#include <string.h>

enum {
    MOST = 127,      /* the largest whole number of a sketch */
    TILE_ROWS = 128, /* scored at once, a multiple of CGAM_INT8_TILE */
    MANY = 16        /* vectors that are worth a unit for tiles */
};

/* A float that is not below x >= 0. */
static float above_f32(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

int cgam_sketch_exponent(double norm_max)
{
    int exponent = 0;
    frexp(norm_max * (1 + 0x1p-19), &exponent);
    return norm_max > 0 ? exponent : 0;
}

/* Rounds block x to whole numbers times a step, which it returns, and takes them from x; *squares is the
 * sum of their squares. To the nearest by adding and taking away 1.5 2^52. */
static float round_block(int64_t width, double *x, int8_t *out, double *squares)
{
    const double magic = 0x1.8p52;
    double most = 0, sum = 0;
    for (int64_t j = 0; j < width; j++) most = fmax(most, fabs(x[j]));
    float step = (float)(most / MOST);
    if (!(step >= 0x1p-126f)) step = 0; /* less is left out as it is */
    double inverse = step > 0 ? 1 / (double)step : 0;
    for (int64_t j = 0; j < width; j++) {
        double whole = (x[j] * inverse + magic) - magic;
        whole = whole > MOST ? MOST : whole < -MOST ? -MOST : whole;
        out[j] = (int8_t)whole;
        sum += whole * whole;
        x[j] -= whole * (double)step; /* 24 bits by 7 are exact, so this is rounded once */
    }
    *squares = sum * (double)step * (double)step;
    return step;
}

/* |x| from above, of numbers that are each off by at most u of themselves and 2^-1074. */
static double length_above(int64_t d, const double *x)
{
    return cgam_vec_norm(d, x) * (1 + (2 * (double)d + 16) * CGAM_U) + (double)d * 0x1p-1070;
}

typedef struct making {
    cgam_env *env;
    const cgam_rows *Z;
    int exponent;
    int64_t begin, count, parts;
    int8_t *rows;
    float *scale, *hat, *rest;
} making;

static cgam_status make_part(void *arg, int64_t part)
{
    const making *job = arg;
    int64_t d = job->Z->d, blocks = cgam_int8_blocks(d);
    int64_t end = job->count * (part + 1) / job->parts;
    double unit = ldexp(1, -job->exponent); /* no bank has rows outside 2^-500 .. 2^500 */
    double *row = cgam_alloc(job->env, (size_t)d, sizeof *row);
    if (!row) return cgam_fail_nomem(job->env, "a row");
    for (int64_t i = job->count * part / job->parts; i < end; i++) {
        double hat = 0, squares;
        cgam_rows_get(job->Z, job->begin + i, 1, row);
        for (int64_t j = 0; j < d; j++) row[j] *= unit;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t from = b * CGAM_INT8_BLOCK;
            int64_t width = d - from < CGAM_INT8_BLOCK ? d - from : CGAM_INT8_BLOCK;
            job->scale[i * blocks + b] =
                round_block(width, row + from, job->rows + i * d + from, &squares);
            hat += squares;
        }
        job->hat[i] = above_f32(sqrt(hat) * (1 + ((double)blocks + 8) * CGAM_U));
        job->rest[i] = above_f32(length_above(d, row));
    }
    cgam_free(job->env, row);
    return cgam_interrupted(job->env) ? CGAM_E_INTERRUPTED : CGAM_OK;
}

cgam_status cgam_sketch_rows(cgam_env *env, const cgam_rows *Z, int exponent, int64_t begin,
                             int64_t count, int8_t *rows, float *scale, float *hat, float *rest)
{
    making job = {
        env,  Z,     exponent, begin, count, count < CGAM_CHUNKS_MAX ? 1 : CGAM_CHUNKS_MAX,
        rows, scale, hat,      rest};
    return cgam_parallel(env, job.parts, make_part, &job);
}

void cgam_sketch_free(cgam_env *env, cgam_sketch *sketch)
{
    if (!sketch) return;
    cgam_free(env, (void *)(uintptr_t)sketch->rows);
    cgam_free(env, (void *)(uintptr_t)sketch->scale);
    cgam_free(env, (void *)(uintptr_t)sketch->hat);
    cgam_free(env, (void *)(uintptr_t)sketch->rest);
    cgam_free(env, sketch);
}

cgam_status cgam_sketch_new(cgam_env *env, const cgam_rows *Z, double norm_max, cgam_sketch **out)
{
    *out = NULL;
    cgam_sketch *sketch = cgam_zalloc(env, 1, sizeof *sketch);
    if (!sketch) return cgam_fail_nomem(env, "a sketch");
    *sketch = (cgam_sketch){.n = Z->n, .d = Z->d, .exponent = cgam_sketch_exponent(norm_max)};
    size_t n = (size_t)Z->n;
    int8_t *rows = cgam_alloc(env, n * (size_t)Z->d + CGAM_INT8_PAD, 1);
    float *scale = cgam_alloc(env, n * (size_t)cgam_int8_blocks(Z->d), sizeof *scale);
    float *hat = cgam_alloc(env, n, sizeof *hat), *rest = cgam_alloc(env, n, sizeof *rest);
    sketch->rows = rows;
    sketch->scale = scale;
    sketch->hat = hat;
    sketch->rest = rest;
    cgam_status status = CGAM_OK;
    if (!rows || !scale || !hat || !rest) status = cgam_fail_nomem(env, "a sketch");
    if (status == CGAM_OK) {
        memset(rows + n * (size_t)Z->d, 0, CGAM_INT8_PAD);
        status = cgam_sketch_rows(env, Z, sketch->exponent, 0, Z->n, rows, scale, hat, rest);
    }
    if (status == CGAM_OK) *out = sketch;
    else cgam_sketch_free(env, sketch);
    return status;
}

void cgam_sketch_vector(int64_t d, const double *x, double *rest, cgam_sketched *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    double most = 0, squares;
    for (int64_t j = 0; j < d; j++) most = fmax(most, fabs(x[j]));
    out->exponent = 0;
    if (most > 0) frexp(most, &out->exponent);
    for (int64_t j = 0; j < d; j++) rest[j] = ldexp(x[j], -out->exponent);
    out->size = length_above(d, rest);
    for (int t = 0; t < CGAM_SKETCH_TERMS; t++) {
        for (int64_t b = 0; b < blocks; b++) {
            int64_t from = b * CGAM_INT8_BLOCK;
            int64_t width = d - from < CGAM_INT8_BLOCK ? d - from : CGAM_INT8_BLOCK;
            out->step[t * blocks + b] =
                round_block(width, rest + from, out->terms + t * d + from, &squares);
        }
        out->left[t] = length_above(d, rest) + (t > 0 ? out->left[t - 1] * 4 * CGAM_U : 0);
    }
}

cgam_sketch_error cgam_sketch_bound(int64_t d, const cgam_sketched *x, int terms)
{
    double left = x->left[terms - 1], all = x->size + left;
    /* f32: each term by itself, their sum, and that plus the bound; then the product in double */
    double f32 = (CGAM_INT8_ROUNDINGS(cgam_int8_blocks(d)) + 4) * 0x1p-24;
    double f64 = cgam_gamma(2 * (double)d + 16);
    /* the terms' sizes add up to at most |x| and thrice what the first leaves out */
    all += terms > 1 ? 3 * x->left[0] : 0;
    return (cgam_sketch_error){(left + f32 * all + f64 * x->size) * CGAM_SLACK,
                               x->size * (1 + f64) * CGAM_SLACK};
}

typedef struct scan {
    cgam_env *env;
    const cgam_sketch *sketch;
    const cgam_int8 *loops;
    int64_t m, parts;
    const void *X;
    float *out;
} scan;

static cgam_status scan_part(void *arg, int64_t part)
{
    const scan *job = arg;
    const cgam_sketch *s = job->sketch;
    int64_t m = job->m, blocks = cgam_int8_blocks(s->d), end = s->n * (part + 1) / job->parts;
    if (cgam_interrupted(job->env)) return CGAM_E_INTERRUPTED;
    float *tile = m > 1 ? cgam_alloc(job->env, (size_t)(TILE_ROWS * m), sizeof *tile) : NULL;
    if (m > 1 && !tile) return cgam_fail_nomem(job->env, "a tile of scores");
    for (int64_t i = s->n * part / job->parts, rows; i < end; i += rows) {
        int64_t left = end - i; /* the last are not too few for a unit for tiles */
        rows = left <= TILE_ROWS ? left : left < TILE_ROWS + CGAM_INT8_TILE ? left / 2 : TILE_ROWS;
        float *to = m > 1 ? tile : job->out + i;
        job->loops->dot(s->rows + i * s->d, s->scale + i * blocks, rows, s->d, m, job->X, to);
        for (int64_t v = 0; m > 1 && v < m; v++)
            for (int64_t r = 0; r < rows; r++) job->out[v * s->n + i + r] = tile[r * m + v];
    }
    cgam_free(job->env, tile);
    return CGAM_OK;
}

cgam_status cgam_sketch_scan(cgam_env *env, const cgam_sketch *sketch, const cgam_cpu *cpu,
                             int64_t m, const int8_t *x, const float *step, float *out)
{
    enum { PART_ROWS = 256 };
    bool tiles = cpu->int8_tiles && m >= MANY && sketch->n >= CGAM_INT8_TILE;
    const cgam_int8 *loops = tiles ? cpu->int8_tiles : cpu->int8;
    int64_t parts = (sketch->n + PART_ROWS - 1) / PART_ROWS;
    if (parts > CGAM_CHUNKS_MAX) parts = CGAM_CHUNKS_MAX;
    void *X = cgam_alloc(env, loops->room(m, sketch->d), 1);
    if (!X) return cgam_fail_nomem(env, "a sketch of queries");
    loops->lay(m, sketch->d, x, step, X);
    scan job = {env, sketch, loops, m, parts, X, out};
    cgam_status status = cgam_parallel(env, parts, scan_part, &job);
    cgam_free(env, X);
    return status;
}
