/* dplr_parts.h: what dplr.c and dplr_inverse.c know of each other. */
#ifndef CGAM_SRC_NUM_DPLR_PARTS_H
#define CGAM_SRC_NUM_DPLR_PARTS_H

#include "base/blas.h"
#include "num/dplr.h"

struct cgam_dplr {
    cgam_env *env;
    const cgam_rows *Z;
    const double *norm2;
    double a, sigma;
    const double *w;
    bool dense;
    int64_t n, d, k, m; /* k columns of B, m border rows; size of K is k + m, or n when dense */
    double *D, *dinv;   /* [n]; dinv is 0 on border rows */
    int64_t *border;    /* [m], ascending */
    double *K;          /* factored, lower triangle by rows = LAPACK's upper by columns */
    lapack_int *pivots;
    int64_t negative;
    bool singular;  /* K has an exact zero pivot: no solves */
    bool vanishing; /* pivots had to be shifted: singular to working precision */
    double norm;    /* largest |diagonal entry| of T, a lower bound of |T| */
};

#endif
