/* LAPACK in pieces: the answers of the whole, at sizes on both sides of every panel, and an end soon after a stop is
 * asked for. */
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "num/eigen.h"

#include <math.h>
#include <string.h>

static const int64_t sizes[] = {1, 2, 3, 31, 32, 33, 64, 65, 100, 257, 300};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* A symmetric matrix, by rows. */
static double *make_symmetric(uint64_t seed, int64_t n)
{
    cgam_rng rng = cgam_rng_stream(seed, 1);
    double *A = dense_normals(&rng, n * n, 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) A[j * n + i] = A[i * n + j];
    return A;
}

static double *copy_of(int64_t count, const double *x)
{
    double *copy = dense_room(count);
    memcpy(copy, x, (size_t)count * sizeof *x);
    return copy;
}

/* |A v - value v| of a row of V. */
static double residual(int64_t n, const double *A, double value, const double *v)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = -value * v[i];
        for (int64_t j = 0; j < n; j++) sum += A[i * n + j] * v[j];
        most = fmax(most, fabs(sum));
    }
    return most;
}

TEST(all_eigenvalues_are_those_of_lapack)
{
    for (int k = 0; k < SIZES; k++) {
        int64_t n = sizes[k];
        double *A = make_symmetric(7, n), *want = dense_eigen(n, A, NULL);
        double *values = dense_room(n), *V = copy_of(n * n, A);
        CHECK_STATUS(env, cgam_eigen_all(env, n, false, copy_of(n * n, A), values));
        for (int64_t i = 0; i < n; i++) CHECK_LE(fabs(values[i] - want[i]), 1e-13 * (double)n);
        CHECK_STATUS(env, cgam_eigen_all(env, n, true, V, values));
        for (int64_t i = 0; i < n; i++) {
            CHECK_LE(fabs(values[i] - want[i]), 1e-13 * (double)n);
            CHECK_LE(residual(n, A, values[i], V + i * n), 1e-12 * (double)n);
        }
        dense_reset();
    }
}

TEST(some_eigenvalues_are_those_of_all)
{
    for (int k = 0; k < SIZES; k++) {
        int64_t n = sizes[k], from = n > 2 ? n - 2 : 0;
        double *A = make_symmetric(8, n), *want = dense_eigen(n, A, NULL);
        double values[2], *V = dense_room(2 * n);
        CHECK_STATUS(env, cgam_eigen_some(env, n, 0, 0, copy_of(n * n, A), values, V));
        CHECK_LE(fabs(values[0] - want[0]), 1e-13 * (double)n);
        CHECK_LE(residual(n, A, values[0], V), 1e-12 * (double)n);
        CHECK_STATUS(env, cgam_eigen_some(env, n, from, n - 1, copy_of(n * n, A), values, V));
        for (int64_t i = from; i < n; i++) {
            CHECK_LE(fabs(values[i - from] - want[i]), 1e-13 * (double)n);
            CHECK_LE(residual(n, A, values[i - from], V + (i - from) * n), 1e-12 * (double)n);
        }
        dense_reset();
    }
}

TEST(a_scale_beyond_the_squares_of_doubles_changes_nothing)
{
    double A[9] = {4e300, 1e300, 0, 1e300, 3e300, 1e299, 0, 1e299, 1e300}, values[3], want[3];
    double B[9];
    for (int i = 0; i < 9; i++) B[i] = A[i] * 1e-300;
    CHECK_STATUS(env, cgam_eigen_all(env, 3, false, A, values));
    CHECK_STATUS(env, cgam_eigen_all(env, 3, false, B, want));
    for (int i = 0; i < 3; i++) CHECK_LE(fabs(values[i] / 1e300 - want[i]), 1e-15 * want[2]);
}

TEST(what_is_not_finite_is_named)
{
    double A[4] = {1, 0, NAN, 1}, B[4] = {1, 0, INFINITY, 1}, values[2], vector[2];
    lapack_int pivots[2];
    bool flag;
    assert_int_equal(cgam_eigen_all(env, 2, true, A, values), CGAM_E_VALUE);
    assert_int_equal(cgam_eigen_some(env, 2, 0, 0, B, values, vector), CGAM_E_VALUE);
    assert_int_equal(cgam_factor_symmetric(env, 2, A, pivots, &flag), CGAM_E_VALUE);
    CHECK_STATUS(env, cgam_factor_cholesky(env, 2, A, &flag));
    assert_false(flag);
}

TEST(a_factored_system_is_solved)
{
    for (int k = 0; k < SIZES; k++) {
        int64_t n = sizes[k], count = n < 70 ? 3 : 130;
        bool singular;
        double *A = make_symmetric(9, n), *F = copy_of(n * n, A), *X = dense_room(count * n);
        lapack_int *pivots = cgam_alloc(env, (size_t)n, sizeof *pivots);
        for (int64_t i = 0; i < count * n; i++) X[i] = cos((double)i);
        double *want = copy_of(count * n, X);
        CHECK_STATUS(env, cgam_factor_symmetric(env, n, F, pivots, &singular));
        assert_false(singular);
        CHECK_STATUS(env, cgam_factor_solve(env, n, F, pivots, count, X));
        for (int64_t c = 0; c < count; c++)
            for (int64_t i = 0; i < n; i++) {
                double sum = -want[c * n + i], size = 1;
                for (int64_t j = 0; j < n; j++) {
                    sum += A[i * n + j] * X[c * n + j];
                    size += fabs(A[i * n + j] * X[c * n + j]);
                }
                CHECK_LE(fabs(sum), 1e-13 * (double)n * size);
            }
        cgam_free(env, pivots);
        dense_reset();
    }
}

/* 1,100 rows are several panels: R'R is the matrix, and one pivot below zero in the last panel is noticed. */
TEST(cholesky_in_panels_is_cholesky)
{
    const int64_t n = 1100;
    cgam_rng rng = cgam_rng_stream(10, 1);
    double *L = dense_normals(&rng, n * n, 1 / sqrt((double)n)), *A = dense_room(n * n);
    bool positive;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = i == j;
            for (int64_t k = 0; k < 40; k++) sum += L[i * n + k] * L[j * n + k];
            A[i * n + j] = sum;
        }
    double *R = copy_of(n * n, A);
    CHECK_STATUS(env, cgam_factor_cholesky(env, n, R, &positive));
    assert_true(positive);
    for (int64_t i = 0; i < n; i += 37)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = 0; k <= j; k++) sum += R[i * n + k] * R[j * n + k];
            CHECK_LE(fabs(sum - A[i * n + j]), 1e-12);
        }
    A[n * n - 1] = -1;
    CHECK_STATUS(env, cgam_factor_cholesky(env, n, A, &positive));
    assert_false(positive);
    dense_reset();
}

static int factor_everything(cgam_env *e, void *arg)
{
    const int64_t n = 300;
    bool flag;
    (void)arg;
    double *A = cgam_alloc(e, (size_t)(2 * n * n + 2 * n), sizeof *A);
    lapack_int *pivots = cgam_alloc(e, (size_t)n, sizeof *pivots);
    cgam_status status = A && pivots ? CGAM_OK : cgam_fail_nomem(e, "a test");
    double *from = A ? A + n * n : NULL, *values = A ? from + n * n : NULL;
    for (int64_t i = 0; i < n * n && status == CGAM_OK; i++) from[i] = i % (n + 1) == 0 ? 3 : 0;
    if (status == CGAM_OK) {
        memcpy(A, from, (size_t)(n * n) * sizeof *A);
        status = cgam_eigen_all(e, n, true, A, values);
    }
    if (status == CGAM_OK) {
        memcpy(A, from, (size_t)(n * n) * sizeof *A);
        status = cgam_eigen_some(e, n, 0, 0, A, values, values + n);
    }
    if (status == CGAM_OK) {
        memcpy(A, from, (size_t)(n * n) * sizeof *A);
        status = cgam_factor_symmetric(e, n, A, pivots, &flag);
    }
    if (status == CGAM_OK) status = cgam_factor_solve(e, n, A, pivots, n, from);
    cgam_free(e, A);
    cgam_free(e, pivots);
    return status;
}

TEST(every_allocation_may_fail_and_every_look_may_stop)
{
    assert_true(check_every_allocation(factor_everything, NULL) >= 8);
}

static _Atomic int looks;

static bool count_look(void *user)
{
    (void)user;
    looks++;
    return false;
}

/* A look for each panel: 300 columns are nine panels and more. */
TEST(there_is_a_look_between_panels)
{
    cgam_env_opts opts = cgam_env_opts_default();
    cgam_env *other;
    opts.threads = 1;
    opts.interrupted = count_look;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &other));
    double *A = make_symmetric(11, 300), *values = dense_room(300);
    looks = 0;
    CHECK_STATUS(other, cgam_eigen_all(other, 300, false, A, values));
    assert_true(looks >= 9);
    cgam_env_free(other);
    dense_reset();
}

TEST_GROUP(set_up, tear_down)
