/* eigen.h: eigenvalues and eigenvectors of dense symmetric matrices, and their factorisations, by LAPACK in pieces of
 * a fraction of a second. Between two pieces the functions check whether to stop (cgam_interrupted) and then return
 * CGAM_E_INTERRUPTED. The pieces are those that LAPACK cuts its own work into, so results have the same bits. */
#ifndef CGAM_SRC_NUM_EIGEN_H
#define CGAM_SRC_NUM_EIGEN_H

#include "base/blas.h"
#include "base/env.h"

/* Matrices are [n, n], column-major with the upper triangle given: the lower triangle by rows. All are overwritten. */

/* All eigenvalues, ascending; with `vectors` A becomes the eigenvectors, one per row. CGAM_E_VALUE if an entry is not finite. */
cgam_status cgam_eigen_all(cgam_env *env, int64_t n, bool vectors, double *A, double *values);
/* The eigenvalues of ranks from .. to, counted from 0 in ascending order, and their vectors [to - from + 1, n]. */
cgam_status cgam_eigen_some(cgam_env *env, int64_t n, int64_t from, int64_t to, double *A,
                            double *values, double *vectors);

/* Bunch and Kaufman's factorisation U D U', as in dsytrf. *singular: D is singular. Returns CGAM_E_VALUE if an entry
 * is NaN. */
cgam_status cgam_factor_symmetric(cgam_env *env, int64_t n, double *A, lapack_int *pivots,
                                  bool *singular);
/* Overwrites the columns of X [count, n] with the solutions of that system. */
cgam_status cgam_factor_solve(cgam_env *env, int64_t n, const double *A, const lapack_int *pivots,
                              int64_t count, double *X);
/* Cholesky's factorisation R'R in the upper triangle; *positive: it completed. */
cgam_status cgam_factor_cholesky(cgam_env *env, int64_t n, double *A, bool *positive);

#endif
