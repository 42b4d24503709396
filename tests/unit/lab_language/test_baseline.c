/* Baselines: on data where the answer is known by construction. */
#include "support/objects.h"

#include "lab/language/baseline.h"

enum { N = 400 };

static cgam_env *env;
static double score[N];
static int32_t target[N];

static int set_up(void **state)
{
    (void)state;
    env = object_env(1);
    cgam_rng rng = cgam_rng_stream(6, 0);
    for (int i = 0; i < N; i++) {
        target[i] = i % 50 == 9 ? -1 : i / 2 % 2;
        score[i] = cgam_rng_normal(&rng) + target[i] - 3; /* separable in part, far off centre */
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

TEST(a_threshold_bounds_every_border)
{
    double bound, best = 0;
    CHECK_STATUS(env, cgam_baseline_threshold(env, N, score, target, false, &bound));
    for (int t = 0; t <= 4000; t++) {
        int64_t hits = 0, n = 0;
        for (int i = 0; i < N; i++) {
            if (target[i] < 0) continue;
            n++;
            hits += (score[i] > -8 + 0.003 * t) == (target[i] == 1);
        }
        best = fmax(best, (double)hits / (double)n);
    }
    CHECK_LE(best, bound);
    CHECK_CLOSE(bound, best, 0.01);
    const double same[] = {2, 2, 2};
    const int32_t labels[] = {1, 0, 1};
    CHECK_STATUS(env, cgam_baseline_threshold(env, 3, same, labels, false, &bound));
    CHECK_CLOSE(bound, 2.0 / 3, 1e-15);
}

/* With a context for each half, each half has a border of its own. */
TEST(borders_of_halves_bound_shifts_of_halves)
{
    double whole, apart;
    CHECK_STATUS(env, cgam_baseline_threshold(env, N, score, target, false, &whole));
    CHECK_STATUS(env, cgam_baseline_threshold(env, N, score, target, true, &apart));
    CHECK_LE(whole, apart);
    double shifted[N];
    for (int i = 0; i < N; i++) shifted[i] = score[i] + 100 * (i % 2);
    double moved;
    CHECK_STATUS(env, cgam_baseline_threshold(env, N, shifted, target, true, &moved));
    CHECK_CLOSE(moved, apart, 1e-15);
    CHECK_STATUS(env, cgam_baseline_threshold(env, N, shifted, target, false, &moved));
    CHECK_LE(moved, apart - 0.05); /* one border cannot serve both */
}

TEST(centring_mends_a_bias)
{
    double two[2 * N];
    bool right[N];
    int64_t plain = 0, centred = 0, n = 0;
    for (int i = 0; i < N; i++) {
        two[2 * i] = 0;
        two[2 * i + 1] = score[i];
        n += target[i] >= 0;
        plain += target[i] >= 0 && (score[i] > 0) == (target[i] == 1);
    }
    CHECK_STATUS(env, cgam_baseline_centred(env, N, 2, two, target, false, right));
    for (int i = 0; i < N; i++) centred += right[i];
    CHECK_LE((double)plain / (double)n, 0.52);   /* says "0" to nearly all */
    CHECK_LE(0.62, (double)centred / (double)n); /* Phi(1/2) = 0.69 */
    /* Held out: a bias that the other half does not have is not mended. */
    for (int i = 1; i < N; i += 2) two[2 * i + 1] += 100;
    CHECK_STATUS(env, cgam_baseline_centred(env, N, 2, two, target, false, right));
    centred = 0;
    for (int i = 0; i < N; i++) centred += right[i];
    CHECK_LE((double)centred / (double)n, 0.55);
    /* Its own half has it. */
    CHECK_STATUS(env, cgam_baseline_centred(env, N, 2, two, target, true, right));
    centred = 0;
    for (int i = 0; i < N; i++) centred += right[i];
    CHECK_LE(0.62, (double)centred / (double)n);

    /* Equal scores of all queries: what rounding leaves of them is no lead, label 0 is taken. */
    for (int i = 0; i < N; i++) {
        two[2 * i] = 0.1;
        two[2 * i + 1] = 0.7 * (1 + (i % 3 - 1) * 2e-16);
    }
    CHECK_STATUS(env, cgam_baseline_centred(env, N, 2, two, target, false, right));
    for (int i = 0; i < N; i++) assert_int_equal(right[i], target[i] == 0);
}

TEST(the_area_counts_pairs)
{
    const double s[] = {1, 2, 2, 3};
    const int32_t y[] = {0, 0, 1, 1};
    CHECK_CLOSE(cgam_baseline_auc(4, s, y), 3.5 / 4, 1e-15);
    assert_true(isnan(cgam_baseline_auc(2, s, y)));
    CHECK_CLOSE(cgam_baseline_auc(N, score, target), 0.76, 0.06); /* Phi(1/sqrt 2) */
}

TEST(shifts_are_means_over_halves)
{
    float with[4 * 2 * 3], without[4 * 2 * 3], out[3];
    for (int i = 0; i < 24; i++) {
        with[i] = (float)(i * i);
        without[i] = (float)i;
    }
    cgam_baseline_shift(4, 2, 3, with, without, 1, 1, out); /* queries 1 and 3, layer 1 */
    CHECK_CLOSE((double)out[2], ((11.0 * 11 - 11) + (23.0 * 23 - 23)) / 2, 1e-4);
    cgam_baseline_shift(4, 2, 3, with, without, 0, 2, out);
    CHECK_CLOSE((double)out[0], (0.0 + (36 - 6) + (144 - 12) + (324 - 18)) / 4, 1e-4);
    CHECK_CLOSE(cgam_baseline_cosine(3, with + 1, with + 1), 1, 1e-12);
    assert_true(isnan(cgam_baseline_cosine(1, with, with))); /* a zero */
}

TEST(errors_are_those_of_the_binomial)
{
    bool zero[N], icl[N], half[N];
    int64_t n = 0;
    for (int i = 0; i < N; i++) {
        n += target[i] >= 0;
        zero[i] = i % 4 == 0;
        icl[i] = i % 4 != 1;
        half[i] = i % 2 == 0;
    }
    cgam_recovery r = cgam_baseline_recovery(N, target, zero, icl, half, 3);
    CHECK_CLOSE(r.retrieval_se, sqrt(r.retrieval * (1 - r.retrieval) / (double)n), 0.003);
    CHECK_CLOSE(r.recovered, (r.retrieval - r.zero) / (r.icl - r.zero), 1e-15);
    CHECK_LE(r.recovered_se, 0.2);
    CHECK_LE(r.recovered_low, r.recovered);
    CHECK_LE(r.recovered, r.recovered_high);
    CHECK_CLOSE(r.recovered_high - r.recovered_low, 4 * r.recovered_se, 0.6 * r.recovered_se);
    cgam_share s = cgam_baseline_share(N, target, half, NULL, 3);
    CHECK_CLOSE(s.mean, r.retrieval, 1e-15);
    CHECK_CLOSE(s.se, r.retrieval_se, 1e-12); /* the same draws */
    s = cgam_baseline_share(N, target, half, half, 3);
    CHECK_CLOSE(s.mean, 0, 0);
    CHECK_CLOSE(s.se, 0, 0); /* what is in common cancels */
    s = cgam_baseline_share(N, target, icl, zero, 3);
    CHECK_CLOSE(s.mean, r.icl - r.zero, 1e-15);
    r = cgam_baseline_recovery(N, target, icl, zero, half, 3);
    assert_true(isnan(r.recovered) && isnan(r.recovered_se));
    /* A gain of a query or two is no scale to measure by: it would be 2.2 with an error of 3.3. */
    for (int i = 0; i < N; i++) icl[i] = i < 4 ? !zero[i] : zero[i];
    r = cgam_baseline_recovery(N, target, zero, icl, half, 3);
    CHECK_LE(1e-9, r.icl - r.zero);
    assert_true(isnan(r.recovered) && isnan(r.recovered_se) && isnan(r.recovered_low));
}

TEST_GROUP(set_up, tear_down)
