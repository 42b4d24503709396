/* blas.h: BLAS and LAPACK, loaded at run time. Include it in place of cblas.h and lapacke.h; the names are theirs.
 *
 * OpenBLAS reads its environment once, while it is loaded: it starts a thread per core, which we do not want (the
 * env's own threads call it, one call each) and which hang a process with little address space; and for an unknown
 * CPU it uses the kernels of 2004. So it is not linked but loaded here, by the first env, after setting its
 * variables: every program that uses the library gets the same, and a program without an env does not load it.
 *
 * To add a function, add one word to a list and one line at the end. */
#ifndef CGAM_SRC_BASE_BLAS_H
#define CGAM_SRC_BASE_BLAS_H

#include <cblas.h>
#include <cgam/base.h>
#include <lapacke.h>

#define CGAM_BLAS_LIST(X)                                                                          \
    X(daxpy)                                                                                       \
    X(ddot) X(dgemm) X(dgemv) X(dnrm2) X(dscal) X(dswap) X(dsyr2k) X(dtrsm) X(sgemm) X(sgemv)
#define CGAM_LAPACK_LIST(X)                                                                        \
    X(dgees)                                                                                       \
    X(dgeev)                                                                                       \
    X(dormtr_work)                                                                                 \
    X(dpotrf_work)                                                                                 \
    X(dpotrs_work)                                                                                 \
    X(dstebz_work)                                                                                 \
    X(dstedc_work)                                                                                 \
    X(dstein_work)                                                                                 \
    X(dsteqr)                                                                                      \
    X(dsterf) X(dsyconv_work) X(dsyev_work) X(dsyevd) X(dsytrs_work) X(dtrexc)

typedef struct cgam_blas_table {
#define MEMBER(name) __typeof__(cblas_##name) *name;
    CGAM_BLAS_LIST(MEMBER)
#undef MEMBER
} cgam_blas_table;

typedef struct cgam_lapack_table {
#define MEMBER(name) __typeof__(LAPACKE_##name) *name;
    CGAM_LAPACK_LIST(MEMBER)
#undef MEMBER
} cgam_lapack_table;

/* The parts of LAPACK's blocked algorithms (num/eigen.h), which LAPACKE leaves out: with their Fortran interface, and
 * the length of each text at the end. */
typedef struct cgam_fortran_table {
    void (*dlasyf)(const char *uplo, const lapack_int *n, const lapack_int *nb, lapack_int *kb,
                   double *a, const lapack_int *lda, lapack_int *pivots, double *w,
                   const lapack_int *ldw, lapack_int *info, size_t uplo_length);
    void (*dlatrd)(const char *uplo, const lapack_int *n, const lapack_int *nb, double *a,
                   const lapack_int *lda, double *e, double *tau, double *w, const lapack_int *ldw,
                   size_t uplo_length);
    void (*dsytd2)(const char *uplo, const lapack_int *n, double *a, const lapack_int *lda,
                   double *d, double *e, double *tau, lapack_int *info, size_t uplo_length);
    void (*dsytf2)(const char *uplo, const lapack_int *n, double *a, const lapack_int *lda,
                   lapack_int *pivots, lapack_int *info, size_t uplo_length);
} cgam_fortran_table;
#define CGAM_FORTRAN_LIST(X) X(dlasyf) X(dlatrd) X(dsytd2) X(dsytf2)

extern cgam_blas_table cgam_blas;
extern cgam_lapack_table cgam_lapack;
extern cgam_fortran_table cgam_fortran;

/* Fills the tables, once; cgam_env_new calls it. Returns CGAM_E_NOT_FOUND if a library or one of its functions is
 * missing, CGAM_E_NOMEM if there is no address space for them; *why is then a constant line about it. */
cgam_status cgam_blas_load(const char **why);

/* Is there address space for this many concurrent calls? OpenBLAS takes 128 MB for each calling thread and waits
 * forever if it gets none, so we check first (`ulimit -v`). */
bool cgam_blas_fits(int threads);
/* Returns CGAM_E_NOMEM if there is not enough for the env's threads. Called by constructors of objects that call
 * BLAS: banks, networks, lenses, studies. */
cgam_status cgam_blas_check_space(cgam_env *env);

#define cblas_daxpy cgam_blas.daxpy
#define cblas_ddot cgam_blas.ddot
#define cblas_dgemm cgam_blas.dgemm
#define cblas_dgemv cgam_blas.dgemv
#define cblas_dnrm2 cgam_blas.dnrm2
#define cblas_dscal cgam_blas.dscal
#define cblas_dswap cgam_blas.dswap
#define cblas_dsyr2k cgam_blas.dsyr2k
#define cblas_dtrsm cgam_blas.dtrsm
#define cblas_sgemm cgam_blas.sgemm
#define cblas_sgemv cgam_blas.sgemv
#define LAPACKE_dgees cgam_lapack.dgees
#define LAPACKE_dgeev cgam_lapack.dgeev
#define LAPACKE_dormtr_work cgam_lapack.dormtr_work
#define LAPACKE_dpotrf_work cgam_lapack.dpotrf_work
#define LAPACKE_dpotrs_work cgam_lapack.dpotrs_work
#define LAPACKE_dstebz_work cgam_lapack.dstebz_work
#define LAPACKE_dstedc_work cgam_lapack.dstedc_work
#define LAPACKE_dstein_work cgam_lapack.dstein_work
#define LAPACKE_dsteqr cgam_lapack.dsteqr
#define LAPACKE_dsterf cgam_lapack.dsterf
#define LAPACKE_dsyconv_work cgam_lapack.dsyconv_work
#define LAPACKE_dsyev_work cgam_lapack.dsyev_work
#define LAPACKE_dsyevd cgam_lapack.dsyevd
#define LAPACKE_dsytrs_work cgam_lapack.dsytrs_work
#define LAPACKE_dtrexc cgam_lapack.dtrexc

#endif
