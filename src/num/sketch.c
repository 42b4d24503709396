/* sketch.c: see sketch.h. */
#include "num/sketch.h"

#include "num/rounding.h"

#include <math.h>
#include <string.h>

enum {
    TILE_ROWS = 128, /* scored at once, a multiple of CGAM_INT8_TILE */
    MANY = 16        /* from this many vectors on a unit for tiles is faster */
};

int cgam_sketch_exponent(double norm_max)
{
    int exponent = 0;
    frexp(norm_max * (1 + 0x1p-19), &exponent);
    return norm_max > 0 ? exponent : 0;
}

/* Upper bound of |x| from the computed sum of squares, whose terms each have an error of at most u of themselves plus
 * 2^-1074; squares below 2^-1074 may have been lost. */
static double length_above(int64_t d, double squares)
{
    return sqrt(squares) * (1 + (2 * (double)d + 16) * CGAM_U) + (double)d * 0x1p-530;
}

/* Rounds x [d] to numbers and steps and leaves the remainder in x; returns upper bounds of its norm and theirs. */
static double round_all(const cgam_cpu *cpu, int64_t d, int most, double *x, int8_t *out,
                        float *step, double *hat)
{
    double left = 0, numbers = 0, sums[2];
    int64_t blocks = cgam_int8_blocks(d);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = b * CGAM_INT8_BLOCK;
        int64_t width = d - from < CGAM_INT8_BLOCK ? d - from : CGAM_INT8_BLOCK;
        step[b] = cpu->f64->whole(x + from, width, most, out + from, sums);
        numbers += sums[0] * (double)step[b] * (double)step[b];
        left += sums[1];
    }
    *hat = sqrt(numbers) * (1 + ((double)blocks + 8) * CGAM_U);
    return length_above(d, left);
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
    const cgam_cpu *cpu = job->Z->cpu;
    double unit = ldexp(1, -job->exponent); /* no bank has rows outside 2^-500 .. 2^500 */
    double *row = cgam_alloc(job->env, (size_t)d, sizeof *row);
    if (!row) return cgam_fail_nomem(job->env, "a row");
    for (int64_t i = job->count * part / job->parts; i < end; i++) {
        double hat, by = job->Z->scale ? job->Z->scale[job->begin + i] * unit : unit;
        cpu->f64->scaled[job->Z->dtype](cgam_rows_at(job->Z, job->begin + i), d, by, row);
        double left = round_all(cpu, d, CGAM_INT8_MOST, row, job->rows + i * d,
                                job->scale + i * blocks, &hat);
        job->hat[i] = cgam_above_f32(hat);
        job->rest[i] = cgam_above_f32(left);
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

/* Scales x to its own units, and sets their exponent and its size. */
static void scale_vector(int64_t d, const double *x, double *scaled, cgam_sketched *out)
{
    double size = 0, squares = 0;
    for (int64_t j = 0; j < d; j++) size = fabs(x[j]) > size ? fabs(x[j]) : size;
    out->exponent = 0;
    if (size > 0) frexp(size, &out->exponent);
    int half = -out->exponent / 2; /* the power of two may be out of range, its factors are not */
    double by = ldexp(1, half), then = ldexp(1, -out->exponent - half);
    for (int64_t j = 0; j < d; j++) {
        scaled[j] = x[j] * by * then;
        squares += scaled[j] * scaled[j];
    }
    out->size = length_above(d, squares);
}

void cgam_sketch_vector(const cgam_cpu *cpu, int64_t d, const double *x, int most, double *rest,
                        cgam_sketched *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    double hat;
    scale_vector(d, x, rest, out);
    for (int t = 0; t < CGAM_SKETCH_TERMS; t++) {
        double left = round_all(cpu, d, t == 0 ? most : CGAM_INT8_MOST, rest, out->terms + t * d,
                                out->step + t * blocks, &hat);
        out->left[t] = left + (t > 0 ? out->left[t - 1] * 4 * CGAM_U : 0);
    }
}

void cgam_sketch_vector_wide(int64_t d, const double *x, double *rest, int16_t *numbers,
                             cgam_sketched *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    double left = 0;
    memset(numbers, 0, (size_t)(blocks * CGAM_INT8_BLOCK) * sizeof *numbers);
    scale_vector(d, x, rest, out);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = b * CGAM_INT8_BLOCK;
        int64_t end = d < from + CGAM_INT8_BLOCK ? d : from + CGAM_INT8_BLOCK;
        double size = 0;
        for (int64_t j = from; j < end; j++) size = fmax(size, fabs(rest[j]));
        float step = out->step[b] = cgam_f64_step(size, CGAM_INT8_WIDE);
        for (int64_t j = from; j < end; j++) { /* 24 bits by 15 are exact, and it is rounded once */
            double w = step > 0 ? nearbyint(rest[j] / (double)step) : 0;
            numbers[j] = (int16_t)w;
            rest[j] -= w * (double)step;
            left += rest[j] * rest[j];
        }
    }
    out->left[0] = length_above(d, left);
}

cgam_sketch_error cgam_sketch_bound(int64_t d, const cgam_sketched *x, int terms)
{
    double left = x->left[terms - 1], all = x->size + left;
    /* f32: each term by itself, their sum, and that plus the bound; then the product in double */
    double f32 = (CGAM_INT8_ROUNDINGS(cgam_int8_blocks(d)) + 4) * 0x1p-24;
    double f64 = cgam_gamma(2 * (double)d + 16);
    /* the sizes of the terms sum to at most |x| plus three times the remainder of the first */
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
        int64_t left = end - i; /* the remaining rows still fill a unit for tiles */
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
                             int64_t m, const int8_t *x, const float *step, int most, float *out)
{
    enum { PART_ROWS = 256 };
    bool many = m >= MANY && m % CGAM_INT8_SIDE == 0 && sketch->n >= CGAM_INT8_TILE &&
                most <= cpu->int8_many->most;
    const cgam_int8 *loops = many ? cpu->int8_many : cpu->int8;
    void *X = cgam_alloc(env, loops->room(m, sketch->d), 1);
    if (!X) return cgam_fail_nomem(env, "a sketch of queries");
    loops->lay(m, sketch->d, x, step, X);
    scan job = {.env = env, .sketch = sketch, .loops = loops, .m = m, .X = X, .out = out};
    job.parts = (sketch->n + PART_ROWS - 1) / PART_ROWS;
    if (job.parts > CGAM_CHUNKS_MAX) job.parts = CGAM_CHUNKS_MAX;
    cgam_status status = cgam_parallel(env, job.parts, scan_part, &job);
    cgam_free(env, X);
    return status;
}

void cgam_sketch_scan_wide(const cgam_sketch *sketch, const cgam_cpu *cpu, const int16_t *x,
                           const float *step, int64_t begin, int64_t count, float *out)
{
    int64_t d = sketch->d;
    cpu->int8->dot_wide(sketch->rows + begin * d, sketch->scale + begin * cgam_int8_blocks(d),
                        count, d, x, step, out);
}
