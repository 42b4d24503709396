/* gradient.h (inside): one group of queries on its way to gradients (cgam/learn.h).
 *
 *   settle   p, s, r by the recall               aim     the loss and h = beta C g + dL/dr
 *   solve    t and w from h                      spread  the gradients from t and w
 *
 * Vectors are [n]; each kind of vector of a group is one array [count, n]. */
#ifndef CGAM_SRC_MEMORY_GRADIENT_H
#define CGAM_SRC_MEMORY_GRADIENT_H

#include <cgam/learn.h>

#include "memory/plan.h"

typedef struct cgam_slope {
    const cgam_recall *plan;
    const cgam_gradient_in *in;
    const cgam_gradient_opts *opts;
    const cgam_gradient *out;
    int64_t from, count;  /* queries [from, from + count) */
    bool reads;           /* the loss is one of the readout */
    bool of_rows;         /* dL/dZ is wanted */
    cgam_result *results; /* [count] */
    bool *none;           /* [count] no gradient: the query is left out */
    double *scale;        /* [count] omega: dp/dr = beta omega (diag pi - pi pi') */
    double *p, *s, *r;    /* [count, n] */
    double *pi;           /* [count, n]; p itself with softmax */
    double *h, *through;  /* [count, n] the right side, and its part dL/dr; through: NULL = 0 */
    double *t, *w;        /* [count, n] */
    double *y, *dy;       /* [count, d] the readout and dL/dy */
} cgam_slope;

/* X [count, d] -> out [count, n], and W [count, n] -> out [count, d]: one pass, as matrices where that pays. */
cgam_status cgam_slope_scores(const cgam_recall *plan, int64_t count, const double *X, double *out);
cgam_status cgam_slope_sums(const cgam_recall *plan, int64_t count, const double *W, double *out);

/* Fills loss, h and through. */
cgam_status cgam_slope_aim(cgam_slope *g);
/* out = omega (diag pi - pi pi') x of query k; out may be x. */
void cgam_slope_jacobian(const cgam_slope *g, int64_t k, const double *x, double *out);
/* Query k has no gradient: leaves it out, or fails. `why` follows "query 3". */
cgam_status cgam_slope_none(cgam_slope *g, int64_t k, cgam_status status, const char *why);

/* Fills t and w; leaves out queries whose H is not proved positive definite. */
cgam_status cgam_slope_solve(cgam_slope *g);
/* Proved bounds of |w - w*|_2 and |t - t*|_2 against the exact answer; NAN if there are none. */
cgam_status cgam_slope_bound(const cgam_slope *g, int64_t k, double *off_w, double *off_t);
/* Adds dL/dZ of the group. Zs, Zt [count, d]: Z's and Z't. */
cgam_status cgam_slope_rows(const cgam_slope *g, const double *Zs, const double *Zt);

#endif
