/* entmax against a bisection in long double, its margin, and its two ends: softmax and the projection
 * on the simplex. */
#include "unit/net/nets.h"

#include "num/entmax.h"
#include "support/dense.h"

#include <float.h>

enum { N = 40 };

/* The shift by halving in 64 bits of fraction: it shares nothing with Newton's steps but exp_A. */
static long double weight_l(double order, long double v)
{
    long double k = (long double)order - 1, base = 1 + k * v;
    return base > 0 ? expl(log1pl(k * v) / k) : 0;
}

static long double shift_l(double order, double beta, int n, const double *x, double top)
{
    long double low = -2 * logl((long double)n) - 2, high = 0;
    if (order > 1.01) low = -1 / ((long double)order - 1);
    for (int round = 0; round < 200; round++) {
        long double middle = (low + high) / 2, sum = 0;
        for (int i = 0; i < n; i++)
            sum += weight_l(order, (long double)beta * ((long double)x[i] - top) + middle);
        *(sum > 1 ? &high : &low) = middle;
    }
    return low;
}

TEST(agrees_with_a_long_bisection)
{
    uint64_t seed = 11;
    const double orders[] = {1 + 1e-9, 1.001, 1.1, 1.5, 1.7, 2};
    for (int round = 0; round < 600; round++) {
        double order = orders[round % 6], x[N], beta = pow(10, 4 * uniform(&seed) - 2), sum = 0;
        int n = 1 + (int)(N * uniform(&seed)) % N;
        normals(&seed, 1, n, x);
        for (int i = 1; round % 5 == 0 && i < n; i += 2) x[i] = x[i - 1]; /* ties */
        cgam_entmax e = cgam_entmax_of(order, beta, n, x);
        long double shift = shift_l(order, beta, n, x, e.top);
        for (int i = 0; i < n; i++) {
            double p = cgam_entmax_weight(&e, x[i]);
            long double want =
                weight_l(order, (long double)beta * ((long double)x[i] - e.top) + shift);
            /* v is off by a few roundings of beta |x - top| and shift, and p by as much */
            CHECK_CLOSE(p, (double)want, 8 * DBL_EPSILON * (4 + fabs((double)shift)));
            sum += p;
        }
        CHECK_CLOSE(sum, 1, 4 * N * DBL_EPSILON);
    }
}

/* The answer is one-hot if and only if beta gap >= 1 / (A - 1), equality included. */
TEST(is_exact_from_its_margin_on)
{
    const double orders[] = {1.25, 1.5, 2}; /* 1 / (A - 1) and beta are powers of two */
    for (int k = 0; k < 3; k++) {
        double margin = 1 / (orders[k] - 1), beta = 0.5;
        double at[] = {3, 3 - margin / beta, -7};
        cgam_entmax e = cgam_entmax_of(orders[k], beta, 3, at);
        assert_true(e.shift == 0);
        assert_true(cgam_entmax_weight(&e, at[0]) == 1 && cgam_entmax_weight(&e, at[1]) == 0);
        double within[] = {3, nextafter(at[1], 3) + 1e-9, -7};
        e = cgam_entmax_of(orders[k], beta, 3, within);
        assert_true(e.shift < 0 || orders[k] < 2); /* steeper orders begin flat */
        assert_true(cgam_entmax_weight(&e, within[1]) > 0);
    }
}

TEST(ends_in_softmax_and_in_the_projection)
{
    uint64_t seed = 12;
    for (int round = 0; round < 100; round++) {
        double x[N], total = 0, beta = 3;
        normals(&seed, 1, N, x);
        cgam_entmax near = cgam_entmax_of(1 + 1e-9, beta, N, x),
                    flat = cgam_entmax_of(2, beta, N, x);
        for (int i = 0; i < N; i++) total += exp(beta * (x[i] - near.top));
        for (int i = 0; i < N; i++) {
            CHECK_REL(cgam_entmax_weight(&near, x[i]), exp(beta * (x[i] - near.top)) / total, 1e-6);
            /* Kuhn and Tucker: z - p is one number on the support and at most that off it */
            double p = cgam_entmax_weight(&flat, x[i]), rest = beta * x[i] - p;
            double level = beta * flat.top - 1 - flat.shift;
            if (p > 0) CHECK_CLOSE(rest, level, 1e-13);
            else CHECK_LE(rest, level + 1e-13);
        }
    }
}

/* J = diag w - ww' / sum w: differences of p, symmetric, rows that add up to 0, eigenvalues in [0, 1]. */
TEST(has_the_slope_of_its_support)
{
    enum { M = 9 };
    uint64_t seed = 13;
    const double orders[] = {1.1, 1.3, 1.5, 1.8, 2};
    for (int round = 0; round < 50; round++) {
        double order = orders[round % 5], x[M], w[M], J[M * M], sum = 0, h = 1e-7;
        normals(&seed, 1, M, x);
        cgam_entmax e = cgam_entmax_of(order, 1, M, x);
        bool clear = true; /* of the border where a memory joins */
        for (int i = 0; i < M; i++) {
            clear &= fabs(1 + (order - 1) * cgam_entmax_argument(&e, x[i])) > 0.02;
            sum += w[i] = cgam_entmax_slope(order, cgam_entmax_weight(&e, x[i]));
        }
        for (int i = 0; i < M * M; i++)
            J[i] = (i % M == i / M) * w[i % M] - w[i / M] * w[i % M] / sum;
        for (int i = 0; i < M; i++) {
            double total = 0;
            for (int j = 0; j < M; j++) total += J[i * M + j];
            CHECK_CLOSE(total, 0, 1e-15);
            for (int j = 0; clear && j < M; j++) {
                double at = x[j];
                x[j] = at + h;
                cgam_entmax up = cgam_entmax_of(order, 1, M, x);
                double rise = cgam_entmax_weight(&up, x[i]);
                x[j] = at - h;
                cgam_entmax down = cgam_entmax_of(order, 1, M, x);
                double fall = cgam_entmax_weight(&down, x[i]);
                x[j] = at;
                /* h^2 of third derivatives, which grow towards the border, and 1e-16 / h */
                CHECK_CLOSE((rise - fall) / (2 * h), J[i * M + j], 1e-6);
            }
        }
        const double *values = dense_eigen(M, J, NULL);
        CHECK_LE(-1e-14, values[0]);
        CHECK_LE(values[M - 1], 1 + 1e-14);
        dense_reset();
    }
}

TEST(takes_large_arguments_and_refuses_what_is_no_number)
{
    double x[] = {1e6, 1e6 - 0.25, -1e6}, bad[] = {1, NAN}, far[] = {1, INFINITY};
    cgam_entmax e = cgam_entmax_of(2, 1, 3, x);
    CHECK_REL(cgam_entmax_weight(&e, x[0]), 0.625, 1e-15);
    CHECK_REL(cgam_entmax_weight(&e, x[1]), 0.375, 1e-15);
    assert_true(cgam_entmax_weight(&e, x[2]) == 0);
    assert_true(isnan(cgam_entmax_of(1.5, 1, 2, bad).shift));
    assert_true(isnan(cgam_entmax_of(1.5, 1, 2, far).shift));
}

/* n equal scores: p = 1 / n, so that shift = log_A(1 / n). A sum of so many that kept no roundings would be off by hundreds of ulp. */
TEST(adds_up_long_rows_of_equal_scores)
{
    static double x[100000];
    static const int64_t sizes[] = {2, 1000, 1024, 1025, 100000};
    static const double orders[] = {1.25, 1.5, 2};
    for (int i = 0; i < 100000; i++) x[i] = 3;
    for (int k = 0; k < 15; k++) {
        double order = orders[k % 3];
        int64_t n = sizes[k / 3];
        cgam_entmax e = cgam_entmax_of(order, 0.7, n, x);
        double want = (pow((double)n, 1 - order) - 1) / (order - 1);
        CHECK_CLOSE(e.shift, want, 4 * DBL_EPSILON * fabs(want));
        /* L = <z, p> + H_A(p) - beta top = (1 - n^(1 - A)) / (A (A - 1)) */
        CHECK_REL(cgam_entmax_value(&e, n, x), -want / order, 1e-13 * (double)n);
        CHECK_REL(cgam_entmax_tilt(&e, n, x), want, 1e-13 * (double)n);
    }
}
