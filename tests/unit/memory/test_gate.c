/* The gate operator A(alpha) = I + alpha (G - diag G): where it turns singular, regimes, solves. */
#include "support/one_env.h"

#include "support/owned.h"

static char what[128];

static void expect(bool fine, const char *claim, double got, double want)
{
    if (!fine) fail_msg("%s: %s\n  got     %.17g\n  want    %.17g", what, claim, got, want);
}

/* Relative distance; equal infinities are not apart. */
static double apart(double got, double want) { return got == want ? 0 : fabs(got / want - 1); }

/* Eigenvalues of G - diag G, ascending. */
static const double *overlaps(int64_t n, int64_t d, const double *Z)
{
    return dense_eigen(n, dense_overlaps(n, d, Z), NULL);
}

static const int64_t shapes[][2] = {{2, 1},   {3, 7},   {8, 20}, {20, 20},
                                    {21, 20}, {60, 30}, {60, 4}, {90, 17}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST(alpha_crit_is_the_inverse_of_the_lowest_overlap)
{
    cgam_rng rng = cgam_rng_stream(7, 0);
    for (int k = 0; k < 6 * SHAPES * DENSE_KINDS; k++) {
        dense_kind kind = (dense_kind)(k % DENSE_KINDS);
        int64_t n = shapes[k / DENSE_KINDS % SHAPES][0], d = shapes[k / DENSE_KINDS % SHAPES][1];
        double *Z = dense_bank(&rng, kind, n, d), low = overlaps(n, d, Z)[0];
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        double want = low < -1e-13 ? -1 / low : INFINITY;
        cgam_critical free, full;
        snprintf(what, sizeof what, "kind %d, %lld x %lld", kind, (long long)n, (long long)d);
        CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FREE, &free));
        CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &full));
        double wide = 1 + 1e-13;
        expect(free.alpha_lo <= want * wide, "free lower bound", free.alpha_lo, want);
        expect(want <= free.alpha_hi * wide, "free upper bound", free.alpha_hi, want);
        expect(isnan(free.alpha) || apart(free.alpha, want) <= 1e-6, "free value", free.alpha,
               want);
        expect(!free.proved || apart(free.alpha, want) <= 1e-9, "free proof", free.alpha, want);
        expect(full.proved && apart(full.alpha, want) <= 1e-9, "value", full.alpha, want);
        expect(full.alpha_lo <= want * (1 + 1e-12), "lower bound", full.alpha_lo, want);
        expect(want <= full.alpha_hi * (1 + 1e-12), "upper bound", full.alpha_hi, want);
        if ((kind == DENSE_UNIT || kind == DENSE_CLUSTER || kind == DENSE_DUPLICATES) && n > d) {
            expect(free.proved && free.alpha == 1, "unit, n > d, free", free.alpha, 1);
            expect(full.alpha == 1, "unit, n > d", full.alpha, 1);
        }
        dense_reset();
    }
}

TEST(alpha_crit_of_known_banks)
{
    const double orthonormal[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    const double orthogonal[] = {3, 0, 0, 0, 0, 0.1, 0, 0, 0, 0, 7, 0};
    const double pair[] = {0.6, 0.8, 0, 0, 0.6, 0.8, 0, 0};         /* a memory twice */
    const double equal[] = {2, 0, 0, 2, 1.6, 1.2, -1.2, 1.6, 2, 0}; /* norm 2, n > d */
    const double zeros[] = {0, 0, 0, 0};
    const double single[] = {3, 4};
    const struct {
        const double *Z;
        int64_t n, d;
        double want;
    } list[] = {
        {orthonormal, 3, 4, INFINITY}, {orthogonal, 3, 4, INFINITY}, {pair, 2, 4, 1},
        {equal, 5, 2, 0.25},           {zeros, 2, 2, INFINITY},      {single, 1, 2, INFINITY}};
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        OWNED(cgam_bank) bank = object_bank(env, list[k].n, list[k].d, list[k].Z);
        cgam_critical crit;
        CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
        CHECK_REL(crit.alpha, list[k].want, 1e-15);
        assert_true(crit.proved);
        CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FREE, &crit));
        CHECK_LE(crit.alpha_lo, list[k].want * (1 + 1e-15));
        CHECK_LE(list[k].want, crit.alpha_hi * (1 + 1e-15));
    }
}

/* Regime, inertia, eta_min and solves at alpha = factor times alpha_crit. */
static void check_at(cgam_rng *rng, int64_t n, int64_t d, double *Z, double alpha, double critical)
{
    double *A = dense_gate(n, d, Z, alpha);
    const double *values = dense_eigen(n, A, NULL);
    double norm = fmax(fabs(values[0]), fabs(values[n - 1])), closest = INFINITY, backward;
    for (int64_t i = 0; i < n; i++) closest = fmin(closest, fabs(values[i]));
    OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
    OWNED(cgam_gate) gate = object_gate(env, bank, alpha);
    cgam_gate_info info = cgam_gate_describe(gate);
    double distance = 1 - alpha / critical;
    cgam_regime regime = distance > 2e-9    ? CGAM_SUBCRITICAL
                         : distance < -2e-9 ? CGAM_SUPERCRITICAL
                                            : CGAM_CRITICAL;
    bool border = fabs(distance) > 0.5e-9 && fabs(distance) < 2e-9;
    expect(border || info.regime == regime, "regime", info.regime, regime);
    expect(info.eta_min_exact && fabs(info.eta_min - values[0]) <= 1e-9 * (1 + fabs(values[0])),
           "eta_min", info.eta_min, values[0]);
    expect(info.alpha == alpha && !info.iterative, "alpha", info.alpha, alpha);
    if (closest > 1e-13 * norm) {
        expect(info.negative == dense_negative(n, A, 0), "negative eigenvalues",
               (double)info.negative, (double)dense_negative(n, A, 0));
        double *x = dense_normals(rng, n, 1), *y = dense_room(n), *v = dense_normals(rng, d, 1);
        CHECK_STATUS(env, cgam_gate_solve(gate, x, y, &backward));
        double error = dense_backward(n, A, norm, x, y);
        expect(error <= 1e-14, "backward error", error, 1e-14);
        /* what it reports is measured with D + alpha n_i, which is 1 to this much */
        double norm_max = cgam_bank_describe(bank).norm_max;
        double slack = 4e-16 * (1 + alpha * norm_max * norm_max);
        expect(isnan(backward) || error <= backward + slack, "reported backward error", backward,
               error);
        dense_score(n, d, Z, v, x);
        CHECK_STATUS(env, cgam_gate_solve(gate, x, y, NULL));
        error = dense_backward(n, A, norm, x, y);
        expect(error <= 1e-14, "backward error in the range", error, 1e-14);
        CHECK_STATUS(env, cgam_gate_solve_range(gate, v, y));
        error = dense_backward(n, A, norm, x, y);
        expect(error <= 4e-12, "backward error of solve_range", error, 4e-12);
        double *product = dense_room(n);
        CHECK_STATUS(env, cgam_gate_apply(gate, y, product));
        dense_score(n, n, A, y, x);
        double off = dense_distance(n, product, x), size = dense_distance(n, y, dense_room(n));
        expect(off <= 1e-14 * norm * size, "a product", off, 0);
    }
    dense_reset();
}

TEST(solves_are_exact_for_a_nearby_operator)
{
    static const double factors[] = {0,         0.3,       0.95,     1 - 1e-4, 1 - 1e-8, 1 - 1.5e-9,
                                     1 - 1e-10, 1 + 1e-10, 1 + 1e-8, 1.2,      3};
    cgam_rng rng = cgam_rng_stream(7, 1);
    for (int kind = 0; kind < DENSE_KINDS; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            for (int f = 0; f < 11; f++) {
                int64_t n = shapes[s][0], d = shapes[s][1];
                double *Z = dense_bank(&rng, (dense_kind)kind, n, d), low = overlaps(n, d, Z)[0];
                if (low > -1e-6) continue;
                snprintf(what, sizeof what, "kind %d, %lld x %lld, alpha = alpha_crit (1 + %g)",
                         kind, (long long)n, (long long)d, factors[f] - 1);
                check_at(&rng, n, d, Z, -factors[f] / low, -1 / low);
            }
        }
    }
}

/* Some rows with 1 - alpha n_i = 0 exactly, or of either sign, while A is positive definite. */
TEST(alpha_may_pass_the_inverse_of_the_largest_norm)
{
    cgam_rng rng = cgam_rng_stream(7, 2);
    int zero = 0, negative = 0;
    for (int k = 0; k < 300; k++) {
        int64_t n = 20 + cgam_rng_below(&rng, 40), d = 12 + cgam_rng_below(&rng, 30), longest = 0;
        int64_t tall = 1 + cgam_rng_below(&rng, d / 2);
        double *Z = dense_bank(&rng, DENSE_UNIT, n, d), *norm2 = dense_room(n);
        for (int64_t i = 0; i < tall; i++) /* a few rows of norm 2, so that 0.25 n = 1 exactly */
            for (int64_t j = 0; j < d; j++) Z[i * d + j] = i == j ? 2 : 0;
        for (int64_t i = tall; i < n && k % 2; i++)
            for (int64_t j = 0; j < d; j++) Z[i * d + j] *= 0.7;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < d; j++) norm2[i] += Z[i * d + j] * Z[i * d + j];
            if (norm2[i] > norm2[longest]) longest = i;
        }
        double critical = -1 / overlaps(n, d, Z)[0];
        double alpha = critical > 0.25 * 1.001 ? 0.25 : 0.5 * critical;
        if (k % 3 == 0 && critical > 0.26) alpha = dense_between(&rng, 0.25, critical);
        zero += alpha == 0.25;
        negative += alpha > 0.25;
        snprintf(what, sizeof what, "%lld x %lld, %lld long rows, alpha = %g of %g", (long long)n,
                 (long long)d, (long long)tall, alpha, critical);
        check_at(&rng, n, d, Z, alpha, critical);
    }
    assert_true(zero > 50);
    assert_true(negative > 20);
}

/* One memory overlaps with nothing: A = 1 whatever alpha. */
TEST(a_single_memory_has_no_rivals)
{
    cgam_rng rng = cgam_rng_stream(7, 3);
    static const double alphas[] = {0, 0.5, 1, 7, 1e8, 1e300};
    for (int k = 0; k < 6; k++) {
        double *Z = dense_normals(&rng, 5, 1), x = 0.7, y, backward, v[5] = {1, -1, 2, 0, 1}, u;
        OWNED(cgam_bank) bank = object_bank(env, 1, 5, Z);
        OWNED(cgam_gate) gate = object_gate(env, bank, alphas[k]);
        cgam_gate_info info = cgam_gate_describe(gate);
        assert_int_equal(info.regime, CGAM_SUBCRITICAL);
        assert_int_equal(info.negative, 0);
        CHECK_CLOSE(info.eta_min, 1, 0);
        CHECK_CLOSE(info.critical.alpha, INFINITY, 0);
        CHECK_STATUS(env, cgam_gate_solve(gate, &x, &y, &backward));
        CHECK_REL(y, x, 1e-15);
        CHECK_LE(backward, 1e-15);
        CHECK_STATUS(env, cgam_gate_apply(gate, &x, &y));
        CHECK_REL(y, x, 1e-15);
        CHECK_STATUS(env, cgam_gate_solve_range(gate, v, &y));
        dense_score(1, 5, Z, v, &u);
        CHECK_REL(y, u, 1e-14);
        dense_reset();
    }
}

/* At alpha_crit: an input that excites the critical modes has no answer, one that does not has. */
TEST(at_the_critical_point_the_range_is_still_solved)
{
    cgam_rng rng = cgam_rng_stream(7, 4);
    static const struct {
        dense_kind kind;
        int64_t n, d; /* duplicates leave a rank below both n and d */
    } cases[] = {{DENSE_UNIT, 30, 6},        {DENSE_CLUSTER, 50, 9},     {DENSE_DUPLICATES, 12, 20},
                 {DENSE_DUPLICATES, 30, 20}, {DENSE_DUPLICATES, 21, 20}, {DENSE_DUPLICATES, 40, 4}};
    for (int k = 0; k < 60; k++) {
        int64_t n = cases[k % 6].n, d = cases[k % 6].d;
        double *Z = dense_bank(&rng, cases[k % 6].kind, n, d);
        double *v = dense_normals(&rng, d, 1), *u = dense_room(n), *y = dense_room(n);
        double *x = dense_normals(&rng, n, 1), *back = dense_room(n);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_gate) gate = object_gate(env, bank, 1);
        assert_int_equal(cgam_gate_describe(gate).regime, CGAM_CRITICAL);
        CHECK_FAILS(env, CGAM_E_SINGULAR, cgam_gate_solve(gate, x, y, NULL));
        CHECK_STATUS(env, cgam_gate_solve_range(gate, v, y));
        dense_score(n, d, Z, v, u);
        CHECK_STATUS(env, cgam_gate_apply(gate, y, back)); /* A = G, and y = G^+ Z v */
        CHECK_CLOSE_ALL(back, u, n, 1e-11);
        double size = dense_distance(n, y, dense_room(n));
        if (size > 1e4) fail_msg("range solve at criticality has norm %g", size);
        dense_reset();
    }
}

TEST(too_little_memory_means_conjugate_gradients_or_a_message)
{
    cgam_rng rng = cgam_rng_stream(7, 5);
    for (int k = 0; k < 60; k++) {
        int64_t n = shapes[k % SHAPES][0], d = shapes[k % SHAPES][1];
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), largest = 1e-300,
               backward;
        for (int64_t i = 0; i < n; i++) {
            double square = 0;
            for (int64_t j = 0; j < d; j++) square += Z[i * d + j] * Z[i * d + j];
            largest = fmax(largest, square);
        }
        double alpha = dense_between(&rng, 0.01, 0.999) / largest;
        double *A = dense_gate(n, d, Z, alpha), *x = dense_normals(&rng, n, 1), *y = dense_room(n);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_gate_opts opts = cgam_gate_opts_default();
        opts.memory_max = 1;
        cgam_gate *gate;
        CHECK_STATUS(env, cgam_gate_new(bank, alpha, &opts, &gate));
        cgam_gate_info info = cgam_gate_describe(gate);
        assert_true(info.iterative);
        assert_int_equal(info.regime, CGAM_SUBCRITICAL);
        CHECK_LE(info.eta_min, dense_eigen(n, A, NULL)[0] + 1e-14 * dense_norm(n, A));
        assert_true(info.eta_min > 0);
        CHECK_STATUS(env, cgam_gate_solve(gate, x, y, &backward));
        CHECK_LE(dense_backward(n, A, dense_norm(n, A), x, y), 1e-14);
        double *v = dense_normals(&rng, d, 1);
        dense_score(n, d, Z, v, x);
        CHECK_STATUS(env, cgam_gate_solve_range(gate, v, y));
        CHECK_LE(dense_backward(n, A, dense_norm(n, A), x, y), 1e-14);
        cgam_gate_free(gate);
        if (cgam_bank_describe(bank).zero_rows < n && n > 1) {
            CHECK_REFUSED(env, CGAM_E_NOMEM, "MiB",
                          cgam_gate_new(bank, 1.01 / largest, &opts, &gate));
            CHECK_MESSAGE(
                env, "0 MiB), and conjugate gradients need alpha below 1 / max |memory|^2; alpha");
            assert_null(gate);
        }
        dense_reset();
    }
}

TEST(alpha_outside_its_range_is_refused)
{
    const double Z[] = {1, 0, 0, 1};
    cgam_bank *bank = object_bank(env, 2, 2, Z);
    static const double bad[] = {-1e-300, -1, NAN, INFINITY};
    for (int k = 0; k < 4; k++) {
        cgam_gate *gate;
        CHECK_REFUSED(env, CGAM_E_ARG, "alpha is", cgam_gate_new(bank, bad[k], NULL, &gate));
    }
    cgam_bank_free(bank);
    const double far[] = {1e100, 1e-300, 0, 1e100};
    cgam_gate *gate;
    bank = object_bank(env, 2, 2, far);
    CHECK_REFUSED(env, CGAM_E_ARG,
                  "alpha is 1e+200 and the longest memory has norm 1e+100: alpha norm^2 leaves",
                  cgam_gate_new(bank, 1e200, NULL, &gate));
    cgam_bank_free(bank);
    cgam_gate_free(NULL);
    assert_string_equal(cgam_word(cgam_regime_words, CGAM_SUBCRITICAL), "subcritical");
    assert_string_equal(cgam_word(cgam_regime_words, CGAM_CRITICAL), "critical");
    assert_string_equal(cgam_word(cgam_regime_words, CGAM_SUPERCRITICAL), "supercritical");
}

/* Rows with much in common, as those of an unembedding: rounding keeps the proof away from the value, and
 * the value is known all the same. */
TEST(alpha_crit_is_known_where_its_proof_is_rough)
{
    enum { ROWS = 3000, COLUMNS = 256 };
    cgam_rng rng = cgam_rng_stream(77, 0);
    double *Z = dense_normals(&rng, ROWS * COLUMNS, 1.0 / 16);
    cgam_critical crit;
    for (int64_t i = 0; i < ROWS; i++) {
        double size = dense_between(&rng, 0.5, 1.5);
        for (int64_t j = 0; j < COLUMNS; j++) Z[i * COLUMNS + j] = size * Z[i * COLUMNS + j] + 0.05;
    }
    OWNED(cgam_bank) bank = object_bank(env, ROWS, COLUMNS, Z);
    CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
    assert_true(isfinite(crit.alpha));
    CHECK_LE(crit.alpha_lo, crit.alpha);
    CHECK_LE(crit.alpha, crit.alpha_hi);
    CHECK_LE(crit.alpha_hi - crit.alpha_lo, 1e-6 * crit.alpha_lo);
    dense_reset();
}

TEST_GROUP(set_up, tear_down)
