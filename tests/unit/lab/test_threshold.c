/* Exact intervals of a probability by the binomial sum itself, and the threshold that a budget allows. */
#include "base/env.h"
#include "lab/stats.h"
#include "lab/threshold.h"
#include "support/check.h"
#include "support/one_env.h"

#include <math.h>

/* P(X <= k), term by term. */
static double binomial_below(int64_t k, int64_t n, double p)
{
    double sum = 0;
    for (int64_t i = 0; i <= k; i++)
        sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) +
                   (double)i * log(p) + (double)(n - i) * log1p(-p));
    return sum;
}

TEST(each_end_of_the_interval_leaves_half_of_the_rest)
{
    static const int64_t cases[][2] = {{1, 3}, {0, 10}, {10, 10}, {3, 40}, {17, 600}, {500, 1000}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t k = cases[c][0], n = cases[c][1];
        double from, to;
        cgam_binomial_interval(k, n, 0.95, &from, &to);
        if (k < n) CHECK_CLOSE(binomial_below(k, n, to), 0.025, 1e-10);
        else CHECK_CLOSE(to, 1, 0);
        if (k > 0) CHECK_CLOSE(1 - binomial_below(k - 1, n, from), 0.025, 1e-10);
        else CHECK_CLOSE(from, 0, 0);
    }
}

/* No hit among n: the upper end is 1 - 0.025^(1 / n). */
TEST(no_hits_at_all_have_a_closed_form)
{
    double from, to;
    cgam_binomial_interval(0, 368, 0.95, &from, &to);
    CHECK_CLOSE(to, 1 - pow(0.025, 1.0 / 368), 1e-13);
    cgam_binomial_interval(0, 0, 0.95, &from, &to);
    assert_true(from == 0 && to == 1);
}

TEST(equal_scores_hit_together_or_not_at_all)
{
    enum { N = 800 };
    cgam_pair_score pairs[N];
    cgam_threshold t;
    /* 400 different pairs: ten at 0.9, beside ten that are the same; the others of both far below */
    for (int i = 0; i < N; i++) pairs[i] = (cgam_pair_score){i / 2 < 10 ? 0.9 : 0.1, i % 2 == 1};
    CHECK_STATUS(env, cgam_threshold_choose(env, N, pairs, 0.01, &t));
    assert_true(!t.met && t.different_hits == 0 && t.same_hits == 0 && t.threshold > 0.9);
    CHECK_STATUS(env, cgam_threshold_choose(env, N, pairs, 0.05, &t));
    assert_true(t.met && t.different_hits == 10 && t.same_hits == 10);
    assert_true(t.threshold > 0.1 && t.threshold < 0.9);
    CHECK_STATUS(env, cgam_threshold_choose(env, N, pairs, 0.999999, &t));
    assert_true(t.same_hits == 10 || t.same_hits == 400);
    assert_true(cgam_threshold_choose(env, 1, &(cgam_pair_score){1, true}, 0.1, &t) == CGAM_E_ARG);
}

TEST_GROUP(set_up, tear_down)
