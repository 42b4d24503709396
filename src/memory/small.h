/* small.h: recalls on banks of fewer than 2^18 numbers (small.c) and their loops (small_simd.c), in double.
 *
 * The lanes of a vector are eight rows of the bank. So vectors of n numbers are plain arrays, and a single query
 * fills the lanes. Its bits do not depend on the other queries: a tile of queries shares only the reading of rows.
 * Rows come in blocks, Z [blocks, d, 8]; the last block is padded with copies of the last row, which get its score
 * and weight 0. The same body is compiled per CPU (see num/cpu/cpu.h), with the same order of additions at every
 * width.
 *
 *   r = a + lambda^2 dinv (p - Z t),   t = alpha M^-1 g,   g = Z' dinv p,   M = I + alpha Z' D^-1 Z   (num/dplr.h)
 *   f = softmax(beta r) */
#ifndef CGAM_SRC_MEMORY_SMALL_H
#define CGAM_SRC_MEMORY_SMALL_H

#include "memory/route.h"

enum { CGAM_SMALL_ROWS = 8, CGAM_SMALL_TILE = 4 /* queries */, CGAM_SMALL_WINDOW = 2 };

/* A matrix of n rows in blocks. */
typedef struct cgam_blocked {
    int64_t n, d, blocks;
    double *rows; /* [blocks, d, 8] */
} cgam_blocked;

/* The inputs and outputs of one step of a query, [8 blocks] each. */
typedef struct cgam_small_step {
    const cgam_blocked *Z;
    double beta, feedback;  /* lambda^2 */
    const double *a, *dinv; /* NULL: A = 1, and no product is computed */
    const double *p;
    double *r;                   /* Z t on entry, the scores on return */
    double *f;                   /* exp(beta (r - top)), then the share */
    double *w;                   /* dinv times that; unused if dinv is NULL */
    double top, gain;            /* out: max r, sum p (r - a) */
    double sums[3];              /* out: sum e, sum e^2, sum e beta (r - top) */
    double change, change_norm2; /* out: max |f - p|, |f - p|^2 */
    const double *rho1,
        *rho2; /* f - p of the previous point, and of the one before it or the same; NULL: none */
    double products
        [5]; /* out: d0 d0, d0 d1, d1 d1, d0 rho, d1 rho, d0 = rho - rho1, d1 = rho1 - rho2 */
} cgam_small_step;

/* Anderson's method with a window of two on the residuals f - p:
 *     next = f - c[0] (f - f1) - c[1] (f1 - f2) ,   c minimises |rho - c[0] (rho - rho1) - c[1] (rho1 - rho2)| */
typedef struct cgam_small_mix {
    int64_t size; /* 8 blocks */
    int window;   /* 1 or 2 */
    const double *f, *p;
    const double *f1;
    double *f2, *rho2; /* with window 1 scratch; on return `next` and rho */
    double c[CGAM_SMALL_WINDOW];
    double moved; /* out: |next - p|^2 */
} cgam_small_mix;

typedef struct cgam_small_loops {
    /* out[v] = Z x[v] for v < count <= CGAM_SMALL_TILE */
    void (*score)(const cgam_blocked *Z, int64_t count, const double *const *x, double *const *out);
    /* y[v] [d] = Z' w[v]; sums: scratch [count, d, 8] */
    void (*combine)(const cgam_blocked *Z, int64_t count, const double *const *w, double *sums,
                    double *const *y);
    void (*step)(cgam_small_step *x);   /* r, top and gain */
    void (*weigh)(cgam_small_step *x);  /* f, w and sums, from r and top */
    void (*settle)(cgam_small_step *x); /* f as shares, the changes and products */
    void (*mix)(cgam_small_mix *x);
    /* r = b + lambda s, its largest entry */
    double (*join)(int64_t size, const double *b, const double *s, double lambda, double *r);
    /* s = s0 + (r - a) / lambda; off = {max |r - (b + lambda s)| + 3 u (|b| + lambda |s|),
     * max 2 u |r| / lambda + 8 u |r - a| / lambda + 2 u |s|} */
    void (*gates)(int64_t size, const double *r, const double *a, const double *b, const double *s0,
                  double lambda, double *s, double off[2]);
    /* The k largest of x [n] and their rows, ties to the lowest. */
    void (*leaders)(int64_t n, const double *x, int64_t k, double *value, int64_t *row);
} cgam_small_loops;

/* Returns the loops for an entry of cgam_cpu_all; `plain` gets those of `portable`. */
const cgam_small_loops *cgam_small_loops_of(const cgam_cpu *cpu);

typedef struct cgam_small cgam_small;
/* Prepares a plan for this engine. *out is NULL if the engine does not suit the plan; it then takes no queries. */
cgam_status cgam_small_new(const cgam_recall *plan, cgam_small **out);
void cgam_small_free(cgam_env *env, cgam_small *x); /* NULL is allowed */

#endif
