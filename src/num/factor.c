/* factor.c: factorisations of dense symmetric matrices in pieces, see eigen.h. */
#include "num/eigen.h"

#include <math.h>

enum {
    PANEL = 64,   /* columns of a piece of Bunch and Kaufman's factorisation, as LAPACK has it */
    AT_ONCE = 64, /* right sides solved at once */
    CHOLESKY_PANEL = 256, /* rows of a panel of Cholesky's, */
    CHOLESKY_WHOLE = 1024 /* and the largest matrix that is one piece; also columns of an update */
};

static cgam_status check_stop(cgam_env *env)
{
    return cgam_interrupted(env) ? cgam_fail(env, CGAM_E_INTERRUPTED, "stopped on request")
                                 : CGAM_OK;
}

static bool has_nan(int64_t n, const double *A)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++)
            if (isnan(A[j * n + i])) return true;
    return false;
}

/* dsytrf of the upper triangle: panels from the last column to the first. */
cgam_status cgam_factor_symmetric(cgam_env *env, int64_t n, double *A, lapack_int *pivots,
                                  bool *singular)
{
    *singular = false;
    if (has_nan(n, A))
        return cgam_fail(env, CGAM_E_VALUE, "an operator with entries beyond the range of double");
    double *work = cgam_alloc(env, (size_t)n * PANEL, sizeof *work);
    if (!work) return cgam_fail_nomem(env, "work of dsytrf");
    const lapack_int size = (lapack_int)n, panel = PANEL;
    lapack_int left = size, done, info;
    cgam_status status = CGAM_OK;
    for (; left > 0 && status == CGAM_OK; left -= done) {
        info = 0;
        done = left;
        if (left > PANEL && n > PANEL)
            cgam_fortran.dlasyf("U", &left, &panel, &done, A, &size, pivots, work, &size, &info, 1);
        else cgam_fortran.dsytf2("U", &left, A, &size, pivots, &info, 1);
        *singular |= info > 0;
        status = check_stop(env);
    }
    cgam_free(env, work);
    return status;
}

cgam_status cgam_factor_solve(cgam_env *env, int64_t n, const double *A, const lapack_int *pivots,
                              int64_t count, double *X)
{
    cgam_status status = CGAM_OK;
    for (int64_t j = 0; j < count && status == CGAM_OK; j += AT_ONCE) {
        lapack_int many = (lapack_int)(count - j < AT_ONCE ? count - j : AT_ONCE);
        lapack_int info = LAPACKE_dsytrs_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, many, A,
                                              (lapack_int)n, pivots, X + j * n, (lapack_int)n);
        status = info == 0 ? check_stop(env)
                           : cgam_fail(env, CGAM_E_INTERNAL, "LAPACK: dsytrs failed (info = %d)",
                                       (int)info);
    }
    return status;
}

/* A rows from .. from + panel are factored: computes their part of the other columns, and the update of the rest. */
static cgam_status update_rest(cgam_env *env, int64_t n, int64_t from, int panel, double *A)
{
    int64_t first = from + panel;
    int lda = (int)n;
    double *P = A + first * n + from; /* the panel's part of the column `first` */
    if (first < n)
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, panel,
                    (int)(n - first), 1, A + from * n + from, lda, P, lda);
    for (int64_t j = first; j < n; j += CHOLESKY_WHOLE) {
        int many = (int)(n - j < CHOLESKY_WHOLE ? n - j : CHOLESKY_WHOLE);
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)(j - first) + many, many, panel,
                    -1, P, lda, P + (j - first) * n, lda, 1, A + j * n + first, lda);
        if (cgam_interrupted(env)) return check_stop(env);
    }
    return CGAM_OK;
}

cgam_status cgam_factor_cholesky(cgam_env *env, int64_t n, double *A, bool *positive)
{
    const int step = n > CHOLESKY_WHOLE ? CHOLESKY_PANEL : CHOLESKY_WHOLE;
    cgam_status status = CGAM_OK;
    *positive = !has_nan(n, A); /* OpenBLAS does not report NaN */
    for (int64_t i = 0; i < n && *positive && status == CGAM_OK; i += step) {
        int panel = (int)(n - i < step ? n - i : step);
        *positive =
            LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', panel, A + i * n + i, (lapack_int)n) == 0;
        if (*positive) status = update_rest(env, n, i, panel, A);
    }
    return status;
}
