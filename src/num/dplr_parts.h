/* dplr_parts.h: shared by dplr.c, dplr_inverse.c and dplr_proof.c. */
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
    double *D, *dinv;   /* [n]; dinv is 0 on border rows. Dense: D is the diagonal of T */
    int64_t *border;    /* [m], ascending */
    double *K;          /* factored, lower triangle by rows = LAPACK's upper by columns; dense: T
                           itself is in the upper one */
    lapack_int *pivots;
    int64_t negative;
    bool singular;  /* K has an exact zero pivot: no solves */
    bool vanishing; /* pivots had to be shifted: singular to working precision */
    double norm;    /* largest |diagonal entry| of T, a lower bound of |T| */
    /* Of K for sigma = 0, not dense: its diagonal before it was factored, the rest of it being in the
     * upper triangle by rows, |K|_F, what rounding did to K, |K^-1| from above, INFINITY where that is
     * not known, and what rounding did to dinv at most, relative. */
    double *diagonal, size, error, gain, pivot_off;
    bool borrowed; /* all arrays are borrowed and must not be written */
};

/* y = Z Z'x, and an upper bound of |Z'x| if requested. */
cgam_status cgam_dplr_outer(cgam_env *env, const cgam_rows *Z, const double *x, double *y,
                            double *size);

/* Keeps the data for residuals of the small system, before it is factored. */
cgam_status cgam_dplr_keep(cgam_dplr *T, const cgam_dplr_spec *spec);

/* Returns true if T would be n x n inside. */
bool cgam_dplr_is_dense(const cgam_dplr_spec *spec);

/* Number of columns of B = [sqrt(a) Z, sqrt(sigma) w]. */
static inline int64_t cgam_dplr_columns(const cgam_dplr_spec *s)
{
    return (s->a > 0 ? s->Z->d : 0) + (s->w && s->sigma > 0 ? 1 : 0);
}

#endif
