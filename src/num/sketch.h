/* sketch.h: a bank in a quarter of its bytes, with error bounds.
 *
 * Row i in units of 2^exponent, in which no row is longer than 1, is zeta_hat_i + e_i: zeta_hat has
 * whole numbers from -127 to 127 times a scale for each CGAM_INT8_BLOCK columns, and |zeta_hat_i| and |e_i|
 * are stored, rounded up. A vector x is sketched likewise, in one or two terms, or in one term of wide numbers, in
 * its own units; then
 *
 *     |<zeta_i, x> - a_i| <= |e_i| |x| + |zeta_hat_i| (|x - x_hat| + rounding (|x| + |x - x_hat|)),
 *
 * a_i as cpu/int8.h evaluates <zeta_hat_i, x_hat> (docs/theorems/sketch.md). The arrays are plain: made here, or
 * pages of a file. */
#ifndef CGAM_SRC_NUM_SKETCH_H
#define CGAM_SRC_NUM_SKETCH_H

#include "num/rows.h"

typedef struct cgam_sketch {
    int64_t n, d;
    int exponent;
    const int8_t *rows; /* [n, d], followed by CGAM_INT8_PAD readable bytes */
    const float *scale; /* [n, blocks] */
    const float *hat;   /* [n] |zeta_hat_i| */
    const float *rest;  /* [n] |e_i| */
} cgam_sketch;

/* Returns the units for a bank whose longest row has this norm, which may be off by a factor 1 + 2^-20. */
int cgam_sketch_exponent(double norm_max);
/* The sketch of rows [begin, begin + count), in units of 2^exponent; each array begins with row
 * `begin`. */
cgam_status cgam_sketch_rows(cgam_env *env, const cgam_rows *Z, int exponent, int64_t begin,
                             int64_t count, int8_t *rows, float *scale, float *hat, float *rest);

/* Allocates a sketch. Gives *out; free it with cgam_sketch_free. Takes one reading of the bank and d + 4 blocks + 8
 * bytes a row. */
cgam_status cgam_sketch_new(cgam_env *env, const cgam_rows *Z, double norm_max, cgam_sketch **out);
void cgam_sketch_free(cgam_env *env,
                      cgam_sketch *sketch); /* made by cgam_sketch_new; NULL is allowed */

enum { CGAM_SKETCH_TERMS = 2 };

/* A vector and its sketch. */
typedef struct cgam_sketched {
    int exponent;                   /* its units */
    double size;                    /* upper bound of |x|, in them */
    double left[CGAM_SKETCH_TERMS]; /* upper bound of |x - x_hat| with one term, and with two */
    int8_t *terms;                  /* [CGAM_SKETCH_TERMS, d] caller's buffer */
    float *step;                    /* [CGAM_SKETCH_TERMS, blocks] caller's buffer */
} cgam_sketched;
/* Sketches x [d], all finite; the numbers of its first term are -most .. most; rest: [d], scratch. */
void cgam_sketch_vector(const cgam_cpu *cpu, int64_t d, const double *x, int most, double *rest,
                        cgam_sketched *out);

/* Sketches x in one term of wide numbers, [blocks CGAM_INT8_BLOCK]; out->terms is unchanged. */
void cgam_sketch_vector_wide(int64_t d, const double *x, double *rest, int16_t *numbers,
                             cgam_sketched *out);

/* Error bound of a score of row i, in units of both, with `terms` of x; includes the rounding of the same product in
 * double: a |zeta_hat_i| + b |e_i|, and 2^-100. */
typedef struct cgam_sketch_error {
    double hat, rest;
} cgam_sketch_error;
cgam_sketch_error cgam_sketch_bound(int64_t d, const cgam_sketched *x, int terms);

/* Computes scores of all rows by m vectors: out [m, n]. x [m, d], of -most .. most, and step [m, blocks] are terms of
 * sketched vectors. The bits are the same for any number of threads. */
cgam_status cgam_sketch_scan(cgam_env *env, const cgam_sketch *sketch, const cgam_cpu *cpu,
                             int64_t m, const int8_t *x, const float *step, int most, float *out);
/* Scores rows [begin, begin + count) by one vector of wide numbers, in the calling thread: out [count]. */
void cgam_sketch_scan_wide(const cgam_sketch *sketch, const cgam_cpu *cpu, const int16_t *x,
                           const float *step, int64_t begin, int64_t count, float *out);

#endif
