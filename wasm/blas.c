/* blas.c: BLAS and LAPACK for WebAssembly, in place of base/blas.c: plain loops over banks of a few hundred rows. It has
 * what a recall in modes first and coupled calls; what only networks call (dgees, dgeev, dtrexc) is a null pointer, and
 * page.c offers nothing that gets there. Matrices of LAPACK are by columns, and their upper triangle counts.
 * tests/system/wasm.js compares the answers with the oracle's. */
#include "base/blas.h"

#include <math.h>
#include <stdlib.h>

cgam_blas_table cgam_blas;
cgam_lapack_table cgam_lapack;
cgam_fortran_table cgam_fortran;

static void axpy(int n, double a, const double *x, int sx, double *y, int sy)
{
    for (int i = 0; i < n; i++) y[(size_t)i * sy] += a * x[(size_t)i * sx];
}

static double dot(int n, const double *x, int sx, const double *y, int sy)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[(size_t)i * sx] * y[(size_t)i * sy];
    return sum;
}

static void gemm(CBLAS_LAYOUT order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                 double alpha, const double *A, int lda, const double *B, int ldb, double beta,
                 double *C, int ldc)
{
    int row = order == CblasRowMajor;
    size_t ai = (ta == CblasNoTrans) == row ? lda : 1, ak = (ta == CblasNoTrans) == row ? 1 : lda;
    size_t bk = (tb == CblasNoTrans) == row ? ldb : 1, bj = (tb == CblasNoTrans) == row ? 1 : ldb;
    size_t ci = row ? ldc : 1, cj = row ? 1 : ldc;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0, *c = C + i * ci + j * cj;
            for (int l = 0; l < k; l++) sum += A[i * ai + l * ak] * B[l * bk + j * bj];
            *c = alpha * sum + (beta == 0 ? 0 : beta * *c);
        }
}

static void gemv(CBLAS_LAYOUT order, CBLAS_TRANSPOSE t, int m, int n, double alpha, const double *A,
                 int lda, const double *x, int sx, double beta, double *y, int sy)
{
    int row = order == CblasRowMajor, flip = t != CblasNoTrans;
    size_t ri = row ? lda : 1, rj = row ? 1 : lda;
    for (int i = 0; i < (flip ? n : m); i++) {
        double sum = 0;
        for (int j = 0; j < (flip ? m : n); j++)
            sum += A[flip ? j * ri + i * rj : i * ri + j * rj] * x[(size_t)j * sx];
        y[(size_t)i * sy] = alpha * sum + (beta == 0 ? 0 : beta * y[(size_t)i * sy]);
    }
}
/* Upper triangle in either order; 'L' in column order is 'U' in row order. */
static lapack_int potrf(int layout, char uplo, lapack_int n, double *A, lapack_int lda)
{
    size_t r = (layout == LAPACK_ROW_MAJOR) == (uplo == 'U') ? lda : 1, c = r == 1 ? lda : 1;
    for (int j = 0; j < n; j++) {
        for (int i = 0; i <= j; i++) {
            double sum = A[i * r + j * c];
            for (int k = 0; k < i; k++) sum -= A[k * r + i * c] * A[k * r + j * c];
            if (i < j) A[i * r + j * c] = sum / A[i * r + i * c];
            else if (!(sum > 0)) return j + 1;
            else A[j * r + j * c] = sqrt(sum);
        }
    }
    return 0;
}
static lapack_int potrs(int layout, char uplo, lapack_int n, lapack_int m, const double *A,
                        lapack_int lda, double *B, lapack_int ldb)
{
    size_t r = (layout == LAPACK_ROW_MAJOR) == (uplo == 'U') ? lda : 1, c = r == 1 ? lda : 1;
    size_t bi = layout == LAPACK_ROW_MAJOR ? ldb : 1, bj = layout == LAPACK_ROW_MAJOR ? 1 : ldb;
    for (int k = 0; k < m; k++) {
        double *x = B + k * bj;
        for (int i = 0; i < n; i++) {
            double sum = x[i * bi];
            for (int j = 0; j < i; j++) sum -= A[j * r + i * c] * x[j * bi];
            x[i * bi] = sum / A[i * r + i * c];
        }
        for (int i = n; i-- > 0;) {
            double sum = x[i * bi];
            for (int j = i + 1; j < n; j++) sum -= A[i * r + j * c] * x[j * bi];
            x[i * bi] = sum / A[i * r + i * c];
        }
    }
    return 0;
}

static void swap(int n, double *x, int sx, double *y, int sy)
{
    for (int i = 0; i < n; i++) {
        double t = x[(size_t)i * sx];
        x[(size_t)i * sx] = y[(size_t)i * sy];
        y[(size_t)i * sy] = t;
    }
}
static void scal(int n, double a, double *x, int sx)
{
    for (int i = 0; i < n; i++) x[(size_t)i * sx] *= a;
}
static double nrm2(int n, const double *x, int sx)
{
    double norm = 0;
    for (int i = 0; i < n; i++) norm = hypot(norm, x[(size_t)i * sx]);
    return norm;
}
static void syr2k(CBLAS_LAYOUT order, CBLAS_UPLO uplo, CBLAS_TRANSPOSE t, int n, int k,
                  double alpha, const double *A, int lda, const double *B, int ldb, double beta,
                  double *C, int ldc)
{
    int row = order == CblasRowMajor, flip = t != CblasNoTrans;
    size_t ai = row != flip ? lda : 1, ak = row != flip ? 1 : lda, bi = row != flip ? ldb : 1,
           bk = row != flip ? 1 : ldb;
    size_t ci = row ? ldc : 1, cj = row ? 1 : ldc;
    for (int i = 0; i < n; i++)
        for (int j = uplo == CblasUpper ? i : 0; j < (uplo == CblasUpper ? n : i + 1); j++) {
            double sum = 0, *c = C + i * ci + j * cj;
            for (int l = 0; l < k; l++)
                sum += A[i * ai + l * ak] * B[j * bi + l * bk] +
                       B[i * bi + l * bk] * A[j * ai + l * ak];
            *c = alpha * sum + (beta == 0 ? 0 : beta * *c);
        }
}
static void trsm(CBLAS_LAYOUT order, CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE t,
                 CBLAS_DIAG diag, int m, int n, double alpha, const double *A, int lda, double *B,
                 int ldb)
{
    int row = order == CblasRowMajor, left = side == CblasLeft, size = left ? m : n,
        many = left ? n : m;
    int flip = (t != CblasNoTrans) != !left; /* x A = b is A' x' = b' */
    int upper = (uplo == CblasUpper) != flip;
    size_t ai = row != flip ? lda : 1, aj = row != flip ? 1 : lda;
    size_t xi = row == left ? ldb : 1, xk = row == left ? 1 : ldb;
    for (int k = 0; k < many; k++) {
        double *x = B + k * xk;
        for (int step = 0; step < size; step++) {
            int i = upper ? size - 1 - step : step;
            double sum = alpha * x[i * xi];
            for (int j = upper ? i + 1 : 0; j < (upper ? size : i); j++)
                sum -= A[i * ai + j * aj] * x[j * xi];
            x[i * xi] = diag == CblasUnit ? sum : sum / A[i * ai + i * aj];
        }
    }
}
/* I - tau v v' with v = (1, x) takes (alpha, x) to (beta, 0); x becomes v's, alpha beta. */
static double reflector(int n, double *alpha, double *x)
{
    double norm = nrm2(n - 1, x, 1);
    if (n <= 1 || norm == 0) return 0;
    double beta = -copysign(hypot(*alpha, norm), *alpha), tau = (beta - *alpha) / beta;
    scal(n - 1, 1 / (*alpha - beta), x, 1);
    *alpha = beta;
    return tau;
}
/* y = A v, of the upper triangle of A. */
static void symv(int n, const double *A, int lda, const double *v, double *y)
{
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int j = 0; j < n; j++)
            y[i] += (i <= j ? A[(size_t)j * lda + i] : A[(size_t)i * lda + j]) * v[j];
    }
}
static void sytd2(const char *uplo, const lapack_int *n_, double *A, const lapack_int *lda_,
                  double *d, double *e, double *tau, lapack_int *info, size_t length)
{
    (void)uplo, (void)length;
    int n = *n_, lda = *lda_;
    *info = 0;
    for (int i = n - 1; i > 0; i--) { /* column i keeps rows i - 1 and i */
        double *v = A + (size_t)i * lda;
        double t = reflector(i, v + i - 1, v);
        e[i - 1] = v[i - 1];
        if (t != 0) {
            v[i - 1] = 1;
            symv(i, A, lda, v, tau);
            scal(i, t, tau, 1);
            axpy(i, -t / 2 * dot(i, tau, 1, v, 1), v, 1, tau, 1);
            for (int k = 0; k < i; k++)
                for (int j = 0; j <= k; j++)
                    A[(size_t)k * lda + j] -= v[j] * tau[k] + tau[j] * v[k];
            v[i - 1] = e[i - 1];
        }
        d[i] = v[i];
        tau[i - 1] = t;
    }
    if (n > 0) d[0] = A[0];
}
/* The last nb columns of the same, with W such that the rest is A - V W' - W V'. */
static void latrd(const char *uplo, const lapack_int *n_, const lapack_int *nb, double *A,
                  const lapack_int *lda_, double *e, double *tau, double *W, const lapack_int *ldw_,
                  size_t length)
{
    (void)uplo, (void)length;
    int n = *n_, lda = *lda_, ldw = *ldw_;
    for (int i = n - 1; i >= n - *nb; i--) {
        double *v = A + (size_t)i * lda, *w = W + (size_t)(i - n + *nb) * ldw;
        for (int k = i + 1; k < n; k++) { /* A's column i, updated by those before */
            const double *V = A + (size_t)k * lda, *U = W + (size_t)(k - n + *nb) * ldw;
            for (int j = 0; j <= i; j++) v[j] -= V[j] * U[i] + U[j] * V[i];
        }
        if (i == 0) break;
        double t = tau[i - 1] = reflector(i, v + i - 1, v);
        e[i - 1] = v[i - 1];
        v[i - 1] = 1;
        symv(i, A, lda, v, w);
        for (int k = i + 1; k < n; k++) {
            const double *V = A + (size_t)k * lda, *U = W + (size_t)(k - n + *nb) * ldw;
            double uv = dot(i, U, 1, v, 1), vv = dot(i, V, 1, v, 1);
            for (int j = 0; j < i; j++) w[j] -= V[j] * uv + U[j] * vv;
        }
        scal(i, t, w, 1);
        axpy(i, -t / 2 * dot(i, w, 1, v, 1), v, 1, w, 1);
    }
}
/* Q X, of the reflectors of sytd2. */
static lapack_int ormtr(int layout, char side, char uplo, char trans, lapack_int n, lapack_int many,
                        const double *A, lapack_int lda, const double *tau, double *X,
                        lapack_int ldx, double *work, lapack_int size)
{
    (void)work, (void)size;
    if (layout != LAPACK_COL_MAJOR || side != 'L' || uplo != 'U' || trans != 'N') return -1;
    for (int i = 1; i < n; i++) /* Q = H(n-1) .. H(1), so H(1) comes first */
        for (int k = 0; k < many; k++) {
            const double *v = A + (size_t)i * lda;
            double *x = X + (size_t)k * ldx, c = tau[i - 1] * (dot(i - 1, v, 1, x, 1) + x[i - 1]);
            axpy(i - 1, -c, v, 1, x, 1);
            x[i - 1] -= c;
        }
    return 0;
}
/* Implicit QL of a symmetric tridiagonal matrix (Bowdler, Martin, Reinsch and Wilkinson 1968); columns of V are turned along. */
static lapack_int ql(int n, double *d, const double *off, double *V, int ldv)
{
    double *e = calloc((size_t)n + 1, sizeof *e);
    if (!e) return -1011;
    for (int i = 0; i + 1 < n; i++) e[i] = off[i];
    lapack_int info = 0;
    for (int l = 0; l < n && info == 0; l++)
        for (int turns = 0;; turns++) {
            int m = l;
            while (m < n - 1 && fabs(e[m]) > 0x1p-53 * sqrt(fabs(d[m])) * sqrt(fabs(d[m + 1])) &&
                   fabs(e[m]) > 1e-300)
                m++;
            if (m == l) break;
            if (turns == 80) {
                info = l + 1;
                break;
            }
            double g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, 1);
            g = d[m] - d[l] + e[l] / (g + copysign(r, g));
            double s = 1, c = 1, p = 0;
            int i = m - 1;
            for (; i >= l; i--) {
                double f = s * e[i], b = c * e[i];
                e[i + 1] = r = hypot(f, g);
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / r, c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                d[i + 1] = g + (p = s * r);
                g = c * r - b;
                for (int k = 0; V && k < n; k++) {
                    double x = V[(size_t)(i + 1) * ldv + k], y = V[(size_t)i * ldv + k];
                    V[(size_t)(i + 1) * ldv + k] = s * y + c * x;
                    V[(size_t)i * ldv + k] = c * y - s * x;
                }
            }
            if (r == 0 && i >= l) continue;
            d[l] -= p, e[l] = g, e[m] = 0;
        }
    for (int i = 0; i < n; i++) {
        int least = i;
        for (int j = i + 1; j < n; j++)
            if (d[j] < d[least]) least = j;
        swap(1, d + i, 1, d + least, 1);
        if (V && least != i) swap(n, V + (size_t)i * ldv, 1, V + (size_t)least * ldv, 1);
    }
    free(e);
    return info;
}
static lapack_int sterf(lapack_int n, double *d, double *e) { return ql(n, d, e, NULL, 0); }
static lapack_int steqr(int layout, char vectors, lapack_int n, double *d, double *e, double *V,
                        lapack_int ldv)
{
    if (layout != LAPACK_COL_MAJOR || vectors != 'I') return -1;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) V[(size_t)j * ldv + i] = i == j;
    return ql(n, d, e, V, ldv);
}
static lapack_int stedc(int layout, char vectors, lapack_int n, double *d, double *e, double *V,
                        lapack_int ldv, double *work, lapack_int size, lapack_int *iwork,
                        lapack_int isize)
{
    (void)work, (void)size, (void)iwork, (void)isize;
    return steqr(layout, vectors, n, d, e, V, ldv);
}
/* Eigenvalues from .. to, and their vectors, of one block: all of them by QL, and those that are asked for. */
static lapack_int some(lapack_int n, const double *d, const double *e, lapack_int from,
                       lapack_int many, double *values, double *vectors, lapack_int ldv)
{
    double *all = malloc(((size_t)n + 1) * sizeof *all),
           *V = vectors ? malloc((size_t)n * n * sizeof *V) : NULL;
    lapack_int info = !all || (vectors && !V) ? -1010 : 0;
    if (info == 0) {
        for (int i = 0; i < n; i++) all[i] = d[i];
        for (int i = 0; V && i < n * n; i++) V[i] = i / n == i % n;
        info = ql(n, all, e, V, n);
    }
    for (int k = 0; info == 0 && k < many; k++) {
        if (!V) values[k] = all[from + k];
        for (int i = 0; V && i < n; i++)
            vectors[(size_t)k * ldv + i] = V[(size_t)(from + k) * n + i];
    }
    free(all);
    free(V);
    return info;
}
static lapack_int stebz(char range, char order, lapack_int n, double low, double high,
                        lapack_int from, lapack_int to, double tolerance, const double *d,
                        const double *e, lapack_int *got, lapack_int *blocks, double *values,
                        lapack_int *block, lapack_int *split, double *work, lapack_int *iwork)
{
    (void)order, (void)low, (void)high, (void)tolerance, (void)work, (void)iwork;
    if (range != 'I') return -1;
    *got = to - from + 1, *blocks = 1, split[0] = n;
    for (int k = 0; k < *got; k++) block[k] = 1;
    iwork[0] = from - 1; /* for stein, which gets the same iwork and no ranks */
    return some(n, d, e, from - 1, *got, values, NULL, 0);
}
static lapack_int stein(int layout, lapack_int n, const double *d, const double *e, lapack_int many,
                        const double *values, const lapack_int *block, const lapack_int *split,
                        double *V, lapack_int ldv, double *work, lapack_int *iwork,
                        lapack_int *failed)
{
    (void)values, (void)block, (void)split, (void)work, (void)failed;
    return layout == LAPACK_COL_MAJOR ? some(n, d, e, iwork[0], many, NULL, V, ldv) : -1;
}
static void exchange(double *A, int lda, int k,
                     int p) /* rows and columns p < k of the leading upper triangle */
{
#define AT(i, j) A[(size_t)(j)*lda + (i)]
    for (int i = 0; i < p; i++) swap(1, &AT(i, k), 1, &AT(i, p), 1);
    for (int i = p + 1; i < k; i++) swap(1, &AT(i, k), 1, &AT(p, i), 1);
    swap(1, &AT(k, k), 1, &AT(p, p), 1);
}
/* Bunch and Kaufman's factorisation A = U D U' of the upper triangle (1977), with LAPACK's pivots. */
static void sytf2(const char *uplo, const lapack_int *n_, double *A, const lapack_int *lda_,
                  lapack_int *pivots, lapack_int *info, size_t length)
{
    (void)uplo, (void)length;
    const double bound = (1 + sqrt(17)) / 8;
    int lda = *lda_, k = *n_ - 1;
    *info = 0;
    while (k >= 0) {
        int step = 1, pivot = k, most = 0;
        double own = fabs(AT(k, k)), largest = 0;
        for (int i = 0; i < k; i++)
            if (fabs(AT(i, k)) > largest) largest = fabs(AT(i, k)), most = i;
        if (!(fmax(own, largest) > 0)) {
            if (*info == 0) *info = k + 1;
        } else {
            if (own < bound * largest) {
                double row = 0;
                for (int j = 0; j < k; j++)
                    if (j != most) row = fmax(row, fabs(j < most ? AT(j, most) : AT(most, j)));
                row = fmax(row, largest);
                if (own >= bound * largest * (largest / row)) pivot = k;
                else if (fabs(AT(most, most)) >= bound * row) pivot = most;
                else pivot = most, step = 2;
            }
            int at = k - step + 1;
            if (pivot != at) {
                exchange(A, lda, at, pivot);
                if (step == 2) swap(1, &AT(at, k), 1, &AT(pivot, k), 1);
            }
            if (step == 1) {
                for (int j = 0; j < k; j++)
                    for (int i = 0; i <= j; i++) AT(i, j) -= AT(i, k) * AT(j, k) / AT(k, k);
                for (int i = 0; i < k; i++) AT(i, k) /= AT(k, k);
            } else if (k > 1) {
                double d12 = AT(k - 1, k), d22 = AT(k - 1, k - 1) / d12, d11 = AT(k, k) / d12,
                       t = 1 / (d11 * d22 - 1) / d12;
                for (int j = k - 2; j >= 0; j--) {
                    double u = t * (d11 * AT(j, k - 1) - AT(j, k)),
                           w = t * (d22 * AT(j, k) - AT(j, k - 1));
                    for (int i = j; i >= 0; i--) AT(i, j) -= AT(i, k) * w + AT(i, k - 1) * u;
                    AT(j, k) = w, AT(j, k - 1) = u;
                }
            }
        }
        if (step == 1) pivots[k] = pivot + 1;
        else pivots[k] = pivots[k - 1] = -(pivot + 1);
        k -= step;
    }
}
static void lasyf(const char *uplo, const lapack_int *n, const lapack_int *nb, lapack_int *kb,
                  double *A, const lapack_int *lda, lapack_int *pivots, double *W,
                  const lapack_int *ldw, lapack_int *info, size_t length)
{
    (void)nb, (void)W, (void)ldw;
    *kb = *n; /* all columns at once */
    sytf2(uplo, n, A, lda, pivots, info, length);
}
static lapack_int sytrs(int layout, char uplo, lapack_int n, lapack_int many, const double *A,
                        lapack_int lda, const lapack_int *pivots, double *B, lapack_int ldb)
{
    if (layout != LAPACK_COL_MAJOR || uplo != 'U') return -1;
    for (int c = 0; c < many; c++) {
        double *b = B + (size_t)c * ldb;
        for (int k = n - 1; k >= 0;) {
            int step = pivots[k] > 0 ? 1 : 2, at = k - step + 1, p = abs(pivots[k]) - 1;
            if (p != at) swap(1, b + p, 1, b + at, 1);
            for (int s = at; s <= k; s++)
                for (int i = 0; i < at; i++) b[i] -= AT(i, s) * b[s];
            if (step == 1) b[k] /= AT(k, k);
            else {
                double off = AT(k - 1, k), x = AT(k - 1, k - 1) / off, y = AT(k, k) / off,
                       det = x * y - 1;
                double u = b[k - 1] / off, w = b[k] / off;
                b[k - 1] = (y * u - w) / det, b[k] = (x * w - u) / det;
            }
            k -= step;
        }
        for (int k = 0; k < n;) {
            int step = pivots[k] > 0 ? 1 : 2, p = abs(pivots[k]) - 1;
            for (int s = k; s < k + step; s++) b[s] -= dot(k, &AT(0, s), 1, b, 1);
            if (p != k) swap(1, b + p, 1, b + k, 1);
            k += step;
        }
    }
    return 0;
}

/* The factors of sytf2 as U alone, with its rows in their final order, and the off-diagonal entries of D in e. */
static lapack_int syconv(int layout, char uplo, char way, lapack_int n, double *A, lapack_int lda,
                         const lapack_int *pivots, double *e)
{
    if (layout != LAPACK_COL_MAJOR || uplo != 'U' || way != 'C') return -1;
    for (int i = n - 1; i >= 0; i--) {
        e[i] = 0;
        if (pivots[i] > 0 || i == 0) continue;
        e[i] = AT(i - 1, i);
        AT(i - 1, i) = 0;
        e[--i] = 0;
    }
    for (int i = n - 1; i >= 0; i--) {
        int p = abs(pivots[i]) - 1, step = pivots[i] > 0 ? 0 : 1;
        for (int j = i + 1; j < n; j++) swap(1, &AT(p, j), 1, &AT(i - step, j), 1);
        i -= step;
    }
    return 0;
}

static void gemm_float(CBLAS_LAYOUT order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n,
                       int k, float alpha, const float *A, int lda, const float *B, int ldb,
                       float beta, float *C, int ldc)
{
    int row = order == CblasRowMajor;
    size_t ai = (ta == CblasNoTrans) == row ? lda : 1, ak = (ta == CblasNoTrans) == row ? 1 : lda;
    size_t bk = (tb == CblasNoTrans) == row ? ldb : 1, bj = (tb == CblasNoTrans) == row ? 1 : ldb;
    size_t ci = row ? ldc : 1, cj = row ? 1 : ldc;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0, *c = C + i * ci + j * cj;
            for (int l = 0; l < k; l++) sum += A[i * ai + l * ak] * B[l * bk + j * bj];
            *c = alpha * sum + (beta == 0 ? 0 : beta * *c);
        }
}

static void gemv_float(CBLAS_LAYOUT order, CBLAS_TRANSPOSE t, int m, int n, float alpha,
                       const float *A, int lda, const float *x, int sx, float beta, float *y,
                       int sy)
{
    int row = order == CblasRowMajor, flip = t != CblasNoTrans;
    size_t ri = row ? lda : 1, rj = row ? 1 : lda;
    for (int i = 0; i < (flip ? n : m); i++) {
        float sum = 0;
        for (int j = 0; j < (flip ? m : n); j++)
            sum += A[flip ? j * ri + i * rj : i * ri + j * rj] * x[(size_t)j * sx];
        y[(size_t)i * sy] = alpha * sum + (beta == 0 ? 0 : beta * y[(size_t)i * sy]);
    }
}

cgam_status cgam_blas_load(const char **why)
{
    cgam_blas = (cgam_blas_table){.daxpy = axpy,
                                  .ddot = dot,
                                  .dgemm = gemm,
                                  .dgemv = gemv,
                                  .dnrm2 = nrm2,
                                  .dscal = scal,
                                  .dswap = swap,
                                  .dsyr2k = syr2k,
                                  .dtrsm = trsm,
                                  .sgemm = gemm_float,
                                  .sgemv = gemv_float};
    cgam_lapack = (cgam_lapack_table){.dormtr_work = ormtr,
                                      .dpotrf_work = potrf,
                                      .dpotrs_work = potrs,
                                      .dstebz_work = stebz,
                                      .dstedc_work = stedc,
                                      .dstein_work = stein,
                                      .dsteqr = steqr,
                                      .dsterf = sterf,
                                      .dsyconv_work = syconv,
                                      .dsytrs_work = sytrs};
    cgam_fortran =
        (cgam_fortran_table){.dlasyf = lasyf, .dlatrd = latrd, .dsytd2 = sytd2, .dsytf2 = sytf2};
    *why = "";
    return CGAM_OK;
}

bool cgam_blas_fits(int threads) { return threads > 0; }

cgam_status cgam_blas_check_space(cgam_env *env)
{
    (void)env;
    return CGAM_OK;
}
