/* eigen.c: see eigen.h. An eigenvalue problem is reduced to tridiagonal form Q T Q' = A panel by panel, as dsytrd does; T is
 * decomposed by divide and conquer (dstedc), its eigenvalues alone by dsterf, a few of them by bisection and inverse
 * iteration (dstebz, dstein); and Q is applied to the vectors of T some at a time (dormtr). */
#include "num/eigen.h"

#include <math.h>
#include <string.h>

enum {
    PANEL = 32,        /* columns of a reduction, as LAPACK has it */
    PANEL_FACTOR = 64, /* and of the factorisation by Bunch and Kaufman */
    AT_ONCE = 256      /* vectors multiplied by Q at once */
};

typedef struct tridiagonal {
    cgam_env *env;
    lapack_int n;
    double *A;           /* becomes Q, as reflectors */
    double *d, *e, *tau; /* [n] each */
    double *work;        /* [n, PANEL], at least 5 n */
    lapack_int *iwork;   /* [5 n] */
    int power;           /* A is scaled by 2^-power */
} tridiagonal;

static cgam_status check_stop(cgam_env *env)
{
    return cgam_interrupted(env) ? cgam_fail(env, CGAM_E_INTERRUPTED, "stopped on request")
                                 : CGAM_OK;
}

/* The exponent that scales a matrix with extreme entries; 0 for all others. */
static cgam_status choose_scale(tridiagonal *t)
{
    double size = 0;
    bool finite = true;
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i <= j; i++) {
            double entry = t->A[j * t->n + i];
            size = fmax(size, fabs(entry));
            finite &= isfinite(entry) != 0;
        }
    if (!finite)
        return cgam_fail(t->env, CGAM_E_VALUE,
                         "an operator with entries beyond the range of double");
    if (size > 0 && (size < 0x1p-400 || size > 0x1p400)) frexp(size, &t->power);
    for (int64_t i = 0; t->power != 0 && i < (int64_t)t->n * t->n; i++)
        t->A[i] = ldexp(t->A[i], -t->power);
    return CGAM_OK;
}

static cgam_status open_tridiagonal(cgam_env *env, int64_t n, double *A, tridiagonal *t)
{
    size_t many = (size_t)n;
    *t = (tridiagonal){.env = env, .n = (lapack_int)n, .A = A};
    t->d = cgam_alloc(env, (3 + PANEL) * many, sizeof *t->d);
    t->iwork = cgam_alloc(env, 5 * many, sizeof *t->iwork);
    if (!t->d || !t->iwork) return cgam_fail_nomem(env, "an eigenvalue problem");
    t->e = t->d + n;
    t->tau = t->e + n;
    t->work = t->tau + n;
    return choose_scale(t);
}

static void close_tridiagonal(tridiagonal *t)
{
    cgam_free(t->env, t->d);
    cgam_free(t->env, t->iwork);
}

/* dsytrd of the upper triangle: one panel, then the update of the triangle before it. */
static cgam_status reduce(tridiagonal *t)
{
    const lapack_int n = t->n, width = PANEL;
    const lapack_int rest = n - (n - 1) / PANEL * PANEL; /* by columns, at the end */
    double *A = t->A;
    lapack_int info = 0;
    for (lapack_int i = n - PANEL; i >= rest; i -= PANEL) {
        const lapack_int end = i + PANEL;
        cgam_status status = check_stop(t->env);
        if (status != CGAM_OK) return status;
        cgam_fortran.dlatrd("U", &end, &width, A, &n, t->e, t->tau, t->work, &n, 1);
        cblas_dsyr2k(CblasColMajor, CblasUpper, CblasNoTrans, i, PANEL, -1, A + (int64_t)i * n, n,
                     t->work, n, 1, A, n);
        for (int64_t j = i; j < end; j++) {
            A[j * n + j - 1] = t->e[j - 1];
            t->d[j] = A[j * n + j];
        }
    }
    cgam_fortran.dsytd2("U", &rest, A, &n, t->d, t->e, t->tau, &info, 1);
    return check_stop(t->env);
}

/* Q times each row of X [count, n]. */
static cgam_status apply_reflectors(tridiagonal *t, int64_t count, double *X)
{
    cgam_status status = CGAM_OK;
    lapack_int size = AT_ONCE * PANEL + 65 * 64; /* of a panel, and of its block reflector */
    double *work = cgam_alloc(t->env, (size_t)size, sizeof *work);
    if (!work) return cgam_fail_nomem(t->env, "eigenvectors");
    for (int64_t j = 0; j < count && status == CGAM_OK; j += AT_ONCE) {
        lapack_int many = (lapack_int)(count - j < AT_ONCE ? count - j : AT_ONCE);
        lapack_int info = LAPACKE_dormtr_work(LAPACK_COL_MAJOR, 'L', 'U', 'N', t->n, many, t->A,
                                              t->n, t->tau, X + j * t->n, t->n, work, size);
        status = info == 0 ? check_stop(t->env)
                           : cgam_fail(t->env, CGAM_E_INTERNAL, "LAPACK: dormtr failed (info = %d)",
                                       (int)info);
    }
    cgam_free(t->env, work);
    return status;
}

/* All eigenvalues of T into d, and its vectors, one per row of V [n, n]. */
static cgam_status decompose(tridiagonal *t, double *V)
{
    const lapack_int n = t->n;
    int64_t size = 1 + 4 * (int64_t)n + (int64_t)n * n;
    double *work = cgam_alloc(t->env, (size_t)size, sizeof *work);
    lapack_int *iwork = cgam_alloc(t->env, (size_t)(3 + 5 * n), sizeof *iwork);
    cgam_status status = CGAM_OK;
    if (!work || !iwork) status = cgam_fail_nomem(t->env, "eigenvectors");
    else {
        lapack_int info = LAPACKE_dstedc_work(LAPACK_COL_MAJOR, 'I', n, t->d, t->e, V, n, work,
                                              (lapack_int)size, iwork, 3 + 5 * n);
        if (info != 0)
            status =
                cgam_fail(t->env, CGAM_E_INTERNAL, "LAPACK: dstedc failed (info = %d)", (int)info);
    }
    cgam_free(t->env, work);
    cgam_free(t->env, iwork);
    return status == CGAM_OK ? check_stop(t->env) : status;
}

cgam_status cgam_eigen_all(cgam_env *env, int64_t n, bool vectors, double *A, double *values)
{
    tridiagonal t;
    double *V = NULL;
    cgam_status status = open_tridiagonal(env, n, A, &t);
    if (status == CGAM_OK) status = reduce(&t);
    if (status == CGAM_OK && vectors) {
        V = cgam_alloc(env, (size_t)n * (size_t)n, sizeof *V);
        status = V ? decompose(&t, V) : cgam_fail_nomem(env, "eigenvectors");
        if (status == CGAM_OK) status = apply_reflectors(&t, n, V);
        if (status == CGAM_OK) memcpy(A, V, (size_t)n * (size_t)n * sizeof *A);
    } else if (status == CGAM_OK) {
        lapack_int info = LAPACKE_dsterf(t.n, t.d, t.e);
        if (info != 0)
            status =
                cgam_fail(env, CGAM_E_INTERNAL, "LAPACK: dsterf failed (info = %d)", (int)info);
    }
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) values[i] = ldexp(t.d[i], t.power);
    cgam_free(env, V);
    close_tridiagonal(&t);
    return status;
}

/* Finds the eigenvalues of ranks from .. to of T, by the blocks of T, and their vectors. */
static cgam_status find_some(tridiagonal *t, lapack_int from, lapack_int to, double *found,
                             double *vectors)
{
    const lapack_int n = t->n, many = to - from + 1;
    lapack_int *block = t->iwork, *split = block + n, *scratch = split + n, blocks, got = 0;
    lapack_int *failed = scratch + 2 * (int64_t)n;
    lapack_int info = LAPACKE_dstebz_work('I', 'B', n, 0, 0, from + 1, to + 1, 0, t->d, t->e, &got,
                                          &blocks, found, block, split, t->work, scratch);
    if (info != 0 || got != many)
        return cgam_fail(t->env, CGAM_E_INTERNAL, "LAPACK: dstebz failed (info = %d)", (int)info);
    info = LAPACKE_dstein_work(LAPACK_COL_MAJOR, n, t->d, t->e, many, found, block, split, vectors,
                               n, t->work, scratch, failed);
    return info == 0
               ? check_stop(t->env)
               : cgam_fail(t->env, CGAM_E_INTERNAL, "LAPACK: dstein failed (info = %d)", (int)info);
}

/* Sorts values in ascending order, with their vectors. */
static void sort_pairs(lapack_int n, int64_t many, double *values, double *vectors)
{
    for (int64_t i = 1; i < many; i++)
        for (int64_t j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double value = values[j];
            values[j] = values[j - 1];
            values[j - 1] = value;
            cblas_dswap(n, vectors + j * n, 1, vectors + (j - 1) * n, 1);
        }
}

cgam_status cgam_eigen_some(cgam_env *env, int64_t n, int64_t from, int64_t to, double *A,
                            double *values, double *vectors)
{
    tridiagonal t;
    int64_t many = to - from + 1;
    double *found = cgam_alloc(env, (size_t)n, sizeof *found);
    cgam_status status = open_tridiagonal(env, n, A, &t);
    if (status == CGAM_OK && !found) status = cgam_fail_nomem(env, "an eigenvalue problem");
    if (status == CGAM_OK) status = reduce(&t);
    if (status == CGAM_OK) status = find_some(&t, (lapack_int)from, (lapack_int)to, found, vectors);
    if (status == CGAM_OK) status = apply_reflectors(&t, many, vectors);
    if (status == CGAM_OK) {
        sort_pairs(t.n, many, found, vectors);
        for (int64_t i = 0; i < many; i++) values[i] = ldexp(found[i], t.power);
    }
    cgam_free(env, found);
    close_tridiagonal(&t);
    return status;
}
