/* dense.c: see dense.h. Written for clarity: every loop is the definition. */
#include "support/dense.h"
#include "base/blas.h"
#include "support/check.h"

enum { BLOCKS_MAX = 1 << 16 };
static void *blocks[BLOCKS_MAX];
static int blocks_used;

static void *room(size_t bytes)
{
    void *block = calloc(1, bytes ? bytes : 1);
    if (!block || blocks_used == BLOCKS_MAX) {
        free(block);
        fail_msg("the tests' heap is full: call dense_reset between cases");
    }
    blocks[blocks_used++] = block;
    return block;
}

double *dense_room(int64_t count) { return room((size_t)count * sizeof(double)); }
long double *dense_room_long(int64_t count) { return room((size_t)count * sizeof(long double)); }

void dense_reset(void)
{
    while (blocks_used > 0) free(blocks[--blocks_used]);
}

double *dense_normals(cgam_rng *rng, int64_t count, double scale)
{
    double *x = dense_room(count);
    for (int64_t i = 0; i < count; i++) x[i] = scale * cgam_rng_normal(rng);
    return x;
}

double dense_between(cgam_rng *rng, double low, double high)
{
    return low + (high - low) * cgam_rng_uniform(rng);
}

double dense_between_log(cgam_rng *rng, double low, double high)
{
    return exp(dense_between(rng, log(low), log(high)));
}

void dense_normalize(int64_t n, int64_t d, double *Z)
{
    for (int64_t i = 0; i < n; i++) {
        long double total = 0;
        for (int64_t j = 0; j < d; j++) total += (long double)Z[i * d + j] * Z[i * d + j];
        for (int64_t j = 0; j < d && total > 0; j++)
            Z[i * d + j] = (double)(Z[i * d + j] / sqrtl(total));
    }
}

double *dense_bank(cgam_rng *rng, dense_kind kind, int64_t n, int64_t d)
{
    double *Z = dense_normals(rng, n * d, 1 / sqrt((double)d));
    if (kind == DENSE_CLUSTER) {
        double *centre = dense_normals(rng, d, 2 / sqrt((double)d));
        for (int64_t i = 0; i < n * d; i++) Z[i] = 0.3 * Z[i] + centre[i % d];
    }
    for (int64_t i = 0; kind == DENSE_DUPLICATES && i < n / 2; i++)
        memcpy(Z + (n - 1 - i) * d, Z + i * d, (size_t)d * sizeof *Z);
    if (kind != DENSE_GAUSS && kind != DENSE_ZEROS) dense_normalize(n, d, Z);
    for (int64_t i = 0; i < n && kind == DENSE_NORMS; i++) {
        double factor = dense_between_log(rng, 0.3, 3);
        for (int64_t j = 0; j < d; j++) Z[i * d + j] *= factor;
    }
    for (int64_t i = 0; i < n && kind == DENSE_ZEROS; i += 3)
        memset(Z + i * d, 0, (size_t)d * sizeof *Z);
    return Z;
}

double *dense_matrix(int64_t n, int64_t d, const double *Z, const double *D, double a,
                     const double *w, double sigma)
{
    double *A = dense_room(n * n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            long double total = 0;
            for (int64_t k = 0; k < d; k++) total += (long double)Z[i * d + k] * Z[j * d + k];
            total *= a;
            if (w) total += (long double)sigma * w[i] * w[j];
            if (i == j && D) total += D[i];
            A[i * n + j] = A[j * n + i] = (double)total;
        }
    }
    return A;
}

double *dense_gate(int64_t n, int64_t d, const double *Z, double alpha)
{
    double *A = dense_matrix(n, d, Z, NULL, alpha, NULL, 0);
    for (int64_t i = 0; i < n; i++) A[i * n + i] = 1;
    return A;
}

double *dense_overlaps(int64_t n, int64_t d, const double *Z)
{
    double *G = dense_gate(n, d, Z, 1);
    for (int64_t i = 0; i < n; i++) G[i * n + i] = 0;
    return G;
}

double dense_critical(int64_t n, int64_t d, const double *Z)
{
    double low = dense_eigen(n, dense_overlaps(n, d, Z), NULL)[0];
    return low < -1e-6 ? -1 / low : 1;
}

double *dense_hessian(int64_t n, const double *A, double lambda, double beta, const double *p)
{
    double *H = dense_room(n * n), factor = lambda * lambda * beta;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            H[i * n + j] = A[i * n + j] - factor * ((i == j ? p[i] : 0) - p[i] * p[j]);
    return H;
}

double *dense_eigen(int64_t n, const double *A, double *V)
{
    double *copy = dense_room(n * n), *values = dense_room(n);
    memcpy(copy, A, (size_t)(n * n) * sizeof *copy);
    const char *why;
    assert_int_equal(cgam_blas_load(&why), CGAM_OK);
    lapack_int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, V ? 'V' : 'N', 'U', (lapack_int)n, copy,
                                     (lapack_int)n, values);
    if (info != 0) fail_msg("dsyevd: %d", (int)info);
    if (V) memcpy(V, copy, (size_t)(n * n) * sizeof *copy);
    return values;
}

double dense_norm(int64_t n, const double *A)
{
    const double *values = dense_eigen(n, A, NULL);
    return fmax(fabs(values[0]), fabs(values[n - 1]));
}

int64_t dense_negative(int64_t n, const double *A, double small)
{
    const double *values = dense_eigen(n, A, NULL);
    int64_t count = 0;
    while (count < n && values[count] < -small) count++;
    return count;
}

/* Reduces [A | X] in place, X [n, m]; X becomes A^-1 X. */
static void eliminate(int64_t n, int64_t m, long double *A, long double *X)
{
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t i = c + 1; i < n; i++)
            if (fabsl(A[i * n + c]) > fabsl(A[pivot * n + c])) pivot = i;
        for (int64_t j = 0; j < n && pivot != c; j++) {
            long double swap = A[c * n + j];
            A[c * n + j] = A[pivot * n + j];
            A[pivot * n + j] = swap;
        }
        for (int64_t j = 0; j < m && pivot != c; j++) {
            long double swap = X[c * m + j];
            X[c * m + j] = X[pivot * m + j];
            X[pivot * m + j] = swap;
        }
        for (int64_t i = 0; i < n; i++) {
            if (i == c || A[i * n + c] == 0) continue;
            long double factor = A[i * n + c] / A[c * n + c];
            for (int64_t j = c; j < n; j++) A[i * n + j] -= factor * A[c * n + j];
            for (int64_t j = 0; j < m; j++) X[i * m + j] -= factor * X[c * m + j];
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) X[i * m + j] /= A[i * n + i];
}

void dense_solve(int64_t n, const double *A, const double *x, double *y)
{
    long double *copy = malloc((size_t)(n * n + n) * sizeof *copy), *z = copy + n * n;
    assert_non_null(copy);
    for (int64_t i = 0; i < n * n; i++) copy[i] = A[i];
    for (int64_t i = 0; i < n; i++) z[i] = x[i];
    eliminate(n, 1, copy, z);
    for (int64_t i = 0; i < n; i++) y[i] = (double)z[i];
    free(copy);
}

long double *dense_inverse(int64_t n, const double *A)
{
    long double *copy = dense_room_long(n * n), *X = dense_room_long(n * n);
    for (int64_t i = 0; i < n * n; i++) copy[i] = A[i];
    for (int64_t i = 0; i < n; i++) X[i * n + i] = 1;
    eliminate(n, n, copy, X);
    return X;
}

double dense_backward(int64_t n, const double *A, double norm, const double *x, const double *y)
{
    long double residual = 0, size_x = 0, size_y = 0;
    for (int64_t i = 0; i < n; i++) {
        long double r = -x[i];
        for (int64_t j = 0; j < n; j++) r += (long double)A[i * n + j] * y[j];
        residual += r * r;
        size_x += (long double)x[i] * x[i];
        size_y += (long double)y[i] * y[i];
    }
    return residual == 0 ? 0 : (double)(sqrtl(residual) / (norm * sqrtl(size_y) + sqrtl(size_x)));
}

void dense_score(int64_t n, int64_t d, const double *Z, const double *x, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        long double total = 0;
        for (int64_t j = 0; j < d; j++) total += (long double)Z[i * d + j] * x[j];
        out[i] = (double)total;
    }
}

void dense_combine(int64_t n, int64_t d, const double *Z, const double *w, double *out)
{
    for (int64_t j = 0; j < d; j++) {
        long double total = 0;
        for (int64_t i = 0; i < n; i++) total += (long double)Z[i * d + j] * w[i];
        out[j] = (double)total;
    }
}

static void softmax_long(int64_t n, double beta, const long double *r, long double *p)
{
    long double top = r[0], sum = 0;
    for (int64_t i = 1; i < n; i++) top = r[i] > top ? r[i] : top;
    for (int64_t i = 0; i < n; i++) sum += p[i] = expl(beta * (r[i] - top));
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

/* p = [1 + k (beta (r - top) + t)]_+^(1/k), k = order - 1, with t by halving until no number of long
 * double is left between. order 0: softmax. */
static void activate_long(int64_t n, double order, long double beta, const long double *r,
                          long double *p)
{
    if (order == 0) {
        softmax_long(n, beta, r, p);
        return;
    }
    long double k = (long double)order - 1, top = r[0], low = -1 / k, high = 0;
    for (int64_t i = 1; i < n; i++) top = fmaxl(top, r[i]);
    for (bool more = true; more;) {
        long double t = (low + high) / 2, sum = 0;
        more = t > low && t < high;
        for (int64_t i = 0; i < n; i++) {
            long double v = k * (beta * (r[i] - top) + (more ? t : high));
            p[i] = v > -1 ? expl(log1pl(v) / k) : 0;
            sum += p[i];
        }
        *(sum > 1 ? &high : &low) = t;
    }
}

static void activate(int64_t n, double order, double beta, const double *r, double *p)
{
    long double *x = malloc((size_t)(2 * n) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = r[i];
    activate_long(n, order, beta, x, x + n);
    for (int64_t i = 0; i < n; i++) p[i] = (double)x[n + i];
    free(x);
}

void dense_softmax(int64_t n, double beta, const double *r, double *p)
{
    activate(n, 0, beta, r, p);
}

void dense_entmax(int64_t n, double order, double beta, const double *r, double *p)
{
    activate(n, order, beta, r, p);
}

double dense_coupled(int64_t n, const long double *inverse, double beta, double lambda,
                     const double *b, const double *u, const double *start, double tol,
                     int64_t most, double *p)
{
    return dense_coupled_entmax(n, 0, inverse, beta, lambda, b, u, start, tol, most, p);
}

double dense_coupled_entmax(int64_t n, double order, const long double *inverse, double beta,
                            double lambda, const double *b, const double *u, const double *start,
                            double tol, int64_t most, double *p)
{
    long double *a = malloc((size_t)(4 * n) * sizeof *a), l = lambda, moved = INFINITY;
    assert_non_null(a);
    long double *r = a + n, *now = r + n, *next = now + n;
    for (int64_t i = 0; i < n; i++) {
        a[i] = b[i];
        for (int64_t j = 0; u && j < n; j++) a[i] += l * inverse[i * n + j] * u[j];
    }
    activate_long(n, order, beta, a, now);
    for (int64_t i = 0; start && i < n; i++) now[i] = start[i];
    for (int64_t k = 0; k < most && moved > tol; k++) {
        for (int64_t i = 0; i < n; i++) {
            r[i] = a[i];
            for (int64_t j = 0; j < n; j++) r[i] += l * l * inverse[i * n + j] * now[j];
        }
        activate_long(n, order, beta, r, next);
        moved = 0;
        for (int64_t i = 0; i < n; i++) {
            moved = fmaxl(moved, fabsl(next[i] - now[i]));
            now[i] = next[i];
        }
    }
    for (int64_t i = 0; i < n; i++) p[i] = (double)now[i];
    free(a);
    return (double)moved;
}

double dense_distance(int64_t n, const double *x, const double *y)
{
    long double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += ((long double)x[i] - y[i]) * ((long double)x[i] - y[i]);
    return (double)sqrtl(total);
}

double dense_largest(int64_t n, const double *x, const double *y)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs(x[i] - y[i]);
        if (!(off <= most)) most = off; /* keeps a NaN */
        if (isnan(most)) return most;
    }
    return most;
}
