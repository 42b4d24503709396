/* The formulas of num/rounding.h at their edges: bounds are no less than what they bound and hardly more, and what is called exact is. */
#include "support/one_env.h"

#include "num/rounding.h"

#include <float.h>

#define U 0x1p-53
static const double TINY = 0x1p-1074;

TEST(gamma_is_its_formula)
{
    static const double counts[] = {1, 3, 100, 0x1p30, 0x1p51, 0x1p52 - 1};
    for (int k = 0; k < 6; k++) {
        long double exact = counts[k] * U / (1 - counts[k] * (long double)U);
        CHECK_LE((double)exact, cgam_gamma(counts[k]));
        CHECK_LE(cgam_gamma(counts[k]), (double)exact * (1 + 0x1p-19));
        CHECK_LE((double)exact * (1 + 0x1p-21), cgam_gamma(counts[k]));
    }
    assert_true(isinf(cgam_gamma(0x1p52)) && cgam_gamma(0) == 0);
}

TEST(neighbours_are_the_nearest)
{
    assert_true(cgam_above(1) == 1 + 0x1p-52 && cgam_below(1) == 1 - U);
    assert_true(cgam_above(-1) == -1 + U && cgam_below(0) == -TINY);
    static const double numbers[] = {0.1, 1 + 0x1p-30, 1 - 0x1p-30, 1e-50, 0x1.fffffffp127};
    for (int k = 0; k < 10; k++) {
        double x = numbers[k / 2] * (k % 2 ? -1 : 1);
        float up = cgam_above_f32(x), down = cgam_below_f32(x);
        assert_true((double)up >= x && (double)down <= x);
        assert_true(nextafterf(up, -INFINITY) == down);
    }
    assert_true(cgam_above_f32(0.5) == 0.5F && cgam_below_f32(0.5) == 0.5F);
    assert_true(cgam_above_f32(1e300) == INFINITY && cgam_above_f32(0x1p-1000) == 0x1p-149F);
}

TEST(a_widened_number_is_wide_enough)
{
    cgam_rng rng = cgam_rng_stream(61, 0);
    for (int k = 0; k < 2000; k++) {
        double x = dense_between_log(&rng, 1e-30, 1e30), wide = dense_between_log(&rng, 1e-17, 10);
        long double exact = (long double)x * (1 + (long double)wide);
        double got = cgam_widened(x, wide);
        assert_true((long double)got >= exact * (1 + 5 * (long double)U));
        assert_true((long double)got <= exact * (1 + 14 * (long double)U));
    }
    assert_true(cgam_widened(0, 1) == TINY);
}

TEST(lengths_are_not_too_short)
{
    assert_true(cgam_norm_error(0) == 64 * U && cgam_norm_error(100) == 364 * U);
    assert_true(cgam_length_above(7, 0) == 0);
    CHECK_REL(cgam_length_above(7, 9), 3 * (1 + 85 * U), 2 * U);
    assert_true(cgam_length_above(7, 9) > 3 * (1 + 80 * U));
    /* underflow may have taken d times half the least number there is */
    assert_true(cgam_length_above(63, TINY) >= sqrt(64) * sqrt(TINY) &&
                cgam_length_above(63, TINY) <= 0x1p-510);
}

/* x^2 y in long double, whose exponents reach. */
TEST(squares_are_not_too_small)
{
    cgam_rng rng = cgam_rng_stream(61, 1);
    for (int k = 0; k < 4000; k++) {
        double x = ldexp(dense_between(&rng, 1, 2), (int)dense_between(&rng, -500, 500));
        double y = ldexp(dense_between(&rng, 1, 2), (int)dense_between(&rng, -1000, 1000));
        long double exact = (long double)x * x * y;
        double got = cgam_square_times(x, y);
        if (exact > DBL_MAX) {
            assert_true(got >= DBL_MAX);
            continue;
        }
        assert_true((long double)got >= exact);
        assert_true((long double)got <= exact * (1 + 12 * (long double)U) + 2 * TINY);
    }
    assert_true(cgam_square_times(0, 3) == 0 && cgam_square_times(3, 0) == 0);
    assert_true(cgam_square_times(0x1p-600, 0x1p-600) == TINY * 2 ||
                cgam_square_times(0x1p-600, 0x1p-600) == TINY);
    CHECK_REL(cgam_square_times(0x1p600, 0x1p-900), 0x1p300, 12 * U); /* x^2 is none */
    CHECK_REL(cgam_square_times(0x1p-600, 0x1p900), 0x1p-300, 12 * U);
    CHECK_REL(cgam_square_times(3, 5), 45, 12 * U);
}

TEST(sums_and_products_know_whether_they_are_exact)
{
    double out;
    assert_true(cgam_sum_exactly(1, 0x1p-52, &out) && out == 1 + 0x1p-52);
    assert_true(!cgam_sum_exactly(1, U, &out) && !cgam_sum_exactly(U / 2, 1, &out));
    assert_true(cgam_sum_exactly(0.1, -0.1, &out) && out == 0);
    assert_false(cgam_sum_exactly(INFINITY, 1, &out));
    assert_false(cgam_sum_exactly(DBL_MAX, DBL_MAX, &out));
    assert_true(cgam_product_exactly(3, -5, &out) && out == -15);
    assert_false(cgam_product_exactly(0.1, 0.1, &out));
    assert_true(cgam_product_exactly(0, 0.1, &out) && out == 0);
    assert_true(cgam_product_exactly(0.1, 0, &out) && out == 0);
    assert_true(cgam_product_exactly(0x1p-500, 0x1p-459, &out) && out == 0x1p-959);
    assert_true(cgam_product_exactly(-0x1p-500, 0x1p-459, &out) && out == -0x1p-959);
    assert_false(cgam_product_exactly(0x1p-500, 0x1p-460, &out)); /* an error may be lost there */
    assert_false(cgam_product_exactly(0x1p-1000, 0x1p-1000, &out));
    const double x[] = {1, 2, 0x1p-30}, y[] = {3, -4, 0x1p-20}, z[] = {1, 0, 0x1p-23};
    assert_true(cgam_dot_exactly(3, x, y, &out) && out == -5 + 0x1p-50);
    assert_true(cgam_dot_exactly(2, x, y, &out) && out == -5);
    assert_true(cgam_dot_exactly(0, x, y, &out) && out == 0);
    assert_false(cgam_dot_exactly(3, x, z, &out)); /* 1 + 2^-53 */
    assert_false(cgam_dot_exactly(3, (double[]){0.1, 0, 0}, (double[]){0.1, 0, 0}, &out));
}

/* Dot2: off by its bound at most, which is the formula. */
TEST(a_product_as_if_in_twice_the_precision)
{
    double error;
    const double x[] = {0x1p60, 1, -0x1p60, 0x1p-30}, y[] = {1, 0x1p-20, 1, 1};
    double got = cgam_dot_twice(4, x, y, &error), gamma = 5 * U;
    assert_true(got == 0x1p-20 + 0x1p-30);
    double size = 0x1p61 + 0x1p-20 + 0x1p-30, want = U * got + gamma * gamma * size;
    CHECK_LE(want, error);
    CHECK_REL(error, want, 1e-5);
    assert_true(cgam_dot_twice(3, (double[3]){0}, x, &error) == 0 && error == 0);
    assert_true(cgam_underflow(0) == CGAM_TINY && cgam_underflow(0x1p900) == 0x1p-174);
    cgam_rng rng = cgam_rng_stream(61, 2);
    for (int k = 0; k < 300; k++) {
        int64_t d = 1 + k % 40;
        double *a = dense_normals(&rng, d, 1), *b = dense_normals(&rng, d, 1);
        long double sum = 0, abs = 0, big = 0;
        for (int64_t j = 0; j < d; j++) {
            sum += (long double)a[j] * b[j];
            abs += fabsl((long double)a[j] * b[j]);
            big = fmaxl(big, fabsl(sum));
        }
        got = cgam_dot_twice(d, a, b, &error);
        assert_true(fabsl(got - sum) <= error + (long double)d * 0x1p-63L * (big + abs));
        gamma = (double)(d + 1) * U;
        CHECK_REL(error, U * fabs(got) + gamma * gamma * (double)abs, 1e-5);
    }
    dense_reset();
}

TEST(whether_a_product_is_zero_is_decided)
{
    const double e = 0x1p-30, big = 0x1p500;
    assert_int_equal(cgam_dot_sign(3, (double[]){1 + e, -1, e}, (double[]){1 - e, 1, e}),
                     CGAM_SIGN_ZERO);
    assert_int_equal(cgam_dot_sign(2, (double[]){1 + e, -1}, (double[]){1 - e, 1}),
                     CGAM_SIGN_NOT_ZERO);
    /* sums that lose what is left: (1 + u^2) - 1 - u^2, and the same with a little more */
    const double a[] = {big, 0x1p-400, -big, -0x1p-400}, one[] = {1, 1, 1, 1, 1};
    assert_int_equal(cgam_dot_sign(4, a, one), CGAM_SIGN_ZERO);
    assert_int_equal(cgam_dot_sign(3, a, one), CGAM_SIGN_NOT_ZERO);
    const double b[] = {big, 0x1p-400, -big, -0x1p-400, 0x1p-450};
    assert_int_equal(cgam_dot_sign(5, b, one), CGAM_SIGN_NOT_ZERO);
    assert_int_equal(cgam_dot_sign(0, a, one), CGAM_SIGN_ZERO);
    assert_int_equal(cgam_dot_sign(2, (double[]){0, 3}, (double[]){0x1p-1000, 0}), CGAM_SIGN_ZERO);
    /* products next to underflow say nothing, and neither do infinite ones */
    const double c[] = {0x1p-480, -0x1p-480};
    assert_int_equal(cgam_dot_sign(2, c, (double[]){0x1p-480, 0x1p-480}), CGAM_SIGN_UNKNOWN);
    assert_int_equal(cgam_dot_sign(2, c, (double[]){0x1p-479, 0x1p-479}), CGAM_SIGN_ZERO);
    assert_int_equal(cgam_dot_sign(2, (double[]){0x1p600, -0x1p600}, (double[]){0x1p600, 0x1p600}),
                     CGAM_SIGN_UNKNOWN);
}

/* By the loops up to 48 rows and by LAPACK beyond: M = L L' + x I, x on both sides of what is left. */
TEST(cholesky_ends_where_a_matrix_is_positive)
{
    static const int64_t sizes[] = {1, 2, 3, 47, 48, 49, 80};
    bool ends;
    for (int k = 0; k < 7; k++) {
        int64_t n = sizes[k];
        for (int bad = 0; bad < 4; bad++) {
            double *B = dense_room(n * n);
            for (int64_t i = 0; i < n; i++) /* min(i, j) + 1 = L L' with L all ones */
                for (int64_t j = 0; j < n; j++) B[i * n + j] = (double)(i < j ? i : j) + 1;
            if (bad) B[n * n - 1] -= bad == 1 ? 1 : bad == 2 ? 1 + 1e-9 : 1 - 1e-9;
            if (bad == 1 && n > 48) continue; /* 0 with another rounding */
            assert_int_equal(cgam_cholesky_ends(env, n, B, &ends), CGAM_OK);
            assert_int_equal(ends, bad == 0 || bad == 3);
            if (bad || n > 48) continue;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j <= i; j++) assert_true(B[i * n + j] == 1); /* which is L */
        }
        for (int64_t at = 0; at<n; at += n - 1> 0 ? n - 1 : 1) {
            double *B = dense_room(n * n);
            for (int64_t i = 0; i < n; i++) B[i * n + i] = 1;
            B[(n - 1) * n + at] = NAN;
            assert_int_equal(cgam_cholesky_ends(env, n, B, &ends), CGAM_OK);
            assert_false(ends);
        }
        dense_reset();
    }
}

TEST(cholesky_is_off_by_its_formula)
{
    for (int64_t n = 1; n < 2000; n += 1 + n / 2) {
        double gamma = (2 * (double)n + 8) * U;
        gamma = gamma / (1 - gamma);
        double want = gamma / (1 - gamma) * 3;
        CHECK_LE(want * (1 + 0x1p-21), cgam_cholesky_error(n, 3));
        CHECK_REL(cgam_cholesky_error(n, 3), want, 1e-5);
        CHECK_REL(cgam_cholesky_error(n, 0), (double)(n * n) * 0x1p-1060, 1e-3);
        assert_true(cgam_cholesky_error(n, -1) == cgam_cholesky_error(n, 0));
    }
    assert_true(isinf(cgam_cholesky_error((int64_t)1 << 51, 1)));
    assert_true(isfinite(cgam_cholesky_error((int64_t)1 << 30, 1)));
}

TEST_GROUP(set_up, tear_down)
