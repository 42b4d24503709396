/* Means, spreads and order statistics: closed forms, and no cancellation. */
#include "support/check.h"

#include "lab/stats.h"

TEST(a_short_series_has_the_spread_of_the_textbook)
{
    cgam_moments a = {0};
    assert_true(isnan(cgam_moments_variance(&a)) && isnan(cgam_moments_se(&a)));
    cgam_moments_add(&a, 3);
    assert_true(a.mean == 3 && a.squares == 0 && isnan(cgam_moments_sd(&a)));
    const double more[] = {5, 7, 9, 11};
    for (int i = 0; i < 4; i++) cgam_moments_add(&a, more[i]);
    /* 3 5 7 9 11: mean 7, squared deviations 16 + 4 + 0 + 4 + 16 = 40 */
    CHECK_CLOSE(a.mean, 7, 1e-15);
    CHECK_CLOSE(cgam_moments_variance(&a), 10, 1e-14);
    CHECK_CLOSE(cgam_moments_sd(&a), sqrt(10), 1e-14);
    CHECK_CLOSE(cgam_moments_se(&a), sqrt(2), 1e-14);
}

/* x^2 near 1e24 leaves nothing of a spread of 1 when two sums are subtracted. */
TEST(a_large_mean_does_not_eat_the_spread)
{
    cgam_moments a = {0}, alike = {0};
    for (int i = 0; i < 1000; i++) cgam_moments_add(&a, 1e12 + (i % 2 ? 1 : -1));
    CHECK_CLOSE(cgam_moments_variance(&a), 1000.0 / 999, 1e-9);
    for (int i = 0; i < 1000; i++) cgam_moments_add(&alike, 0.1);
    assert_true(cgam_moments_se(&alike) == 0);
}

TEST(joined_series_are_one_series)
{
    cgam_rng rng = cgam_rng_stream(11, 0);
    cgam_moments whole = {0}, parts = {0}, part = {0};
    double mean = 0, squares = 0;
    int64_t n = 0;
    for (int i = 0; i < 999; i++) {
        double x = 40 + cgam_rng_normal(&rng);
        cgam_moments_add(&whole, x);
        if (i < 700) cgam_record_add(&mean, &squares, ++n, x);
        else cgam_moments_add(&part, x);
    }
    cgam_moments_join(&parts, mean, squares, (double)n);
    cgam_moments_join(&parts, 12, 0, 0); /* nothing */
    cgam_moments_join(&parts, part.mean, part.squares, part.n);
    assert_true(parts.n == whole.n);
    CHECK_CLOSE(parts.mean, whole.mean, 1e-13);
    CHECK_CLOSE(parts.squares, whole.squares, 1e-10);
}

TEST(quantiles_lie_between_order_statistics)
{
    double x[] = {4, 1, 3, 2};
    cgam_sort(x, 4);
    for (int i = 0; i < 4; i++) assert_true(x[i] == i + 1);
    CHECK_CLOSE(cgam_quantile(x, 4, 0.5), 2.5, 0);
    CHECK_CLOSE(cgam_quantile(x, 4, 0.25), 1.75, 0);
    assert_true(cgam_quantile(x, 4, 0) == 1 && cgam_quantile(x, 4, 1) == 4);
    assert_true(isnan(cgam_quantile(x, 0, 0.5)) && cgam_quantile(x, 1, 0.7) == 1);
}
