/* The smallest eigenvalue of diag(D) + a Z Z' + sigma w w': value, bracket and vector against LAPACK
 * on the n x n matrix. */
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "num/dplr.h"

#include <math.h>
#include <stdio.h>

typedef struct problem {
    int64_t n, d;
    double *Z, *D, *norm2, *w;
    double a, sigma;
    cgam_rows rows;
} problem;

static problem with_rows(int64_t n, int64_t d, double *Z, double a)
{
    problem t = {.n = n, .d = d, .Z = Z, .a = a, .D = dense_room(n), .norm2 = dense_room(n)};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) t.norm2[i] += Z[i * d + j] * Z[i * d + j];
    t.rows = (cgam_rows){Z, CGAM_F64, n, d, d, NULL, cgam_cpu_best(), NULL};
    return t;
}

static cgam_dplr_spec spec_of(const problem *t)
{
    return (cgam_dplr_spec){&t->rows, t->norm2, t->D, t->a, t->w, t->sigma, 0, NULL};
}

/* From above the smallest eigenvalue a floor comes down until it is below that, and no further. */
static void check_floor(const cgam_dplr_spec *spec, double want, double scale, const char *what)
{
    double gap = 1e-3 * scale, under = 1e-3 * gap;
    bool nothing;
    CHECK_STATUS(env, cgam_dplr_above_near(env, spec, want + gap, scale, &under, &nothing));
    if (!(under >= 0.99 * gap && under <= 30 * gap) || nothing)
        fail_msg("%s: proved %.3g below, %.3g is true", what, under, gap);
    under = 1e-3 * gap;
    CHECK_STATUS(env, cgam_dplr_above_near(env, spec, want - gap, scale, &under, &nothing));
    if (under != 1e-3 * gap || !nothing)
        fail_msg("%s: %.3g below is too far, %.3g was asked for", what, under, 1e-3 * gap);
}

static void check(const problem *t, const char *what)
{
    int64_t n = t->n;
    double *T = dense_matrix(n, t->d, t->Z, t->D, t->a, t->w, t->sigma);
    const double *values = dense_eigen(n, T, NULL);
    double want = values[0], scale = 0, lo, hi;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(t->D[i]) + t->a * t->norm2[i] +
                                (t->w ? t->sigma * t->w[i] * t->w[i] : 0));
    /* what LAPACK and the forming of T may be off by */
    double noise = (double)n * 0x1p-52 * fmax(scale, fmax(fabs(want), fabs(values[n - 1])));
    cgam_dplr_spec spec = spec_of(t);
    cgam_lowest low;
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    if (!(lo <= want + noise && want - noise <= hi))
        fail_msg("%s: free bracket [%.17g, %.17g] misses %.17g", what, lo, hi, want);
    CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-12, true, &low));
    if (!(fabs(low.value - want) <= 1e-12 * scale + noise))
        fail_msg(
            "%s, %lld x %lld\n  got     %.17g\n  want    %.17g\n  off by  %.3g\n  allowed %.3g",
            what, (long long)n, (long long)t->d, low.value, want, fabs(low.value - want),
            1e-12 * scale + noise);
    if (!(low.lo <= want + noise && want - noise <= low.hi && low.lo <= low.value))
        fail_msg("%s: bracket [%.17g, %.17g] misses %.17g", what, low.lo, low.hi, want);
    /* Cholesky's method proves to gamma_{2n+8} of the trace, taken twice: 2 (n + 4) of the noise */
    if (!(low.hi - low.lo <= 1e-12 * scale + 3 * (double)(n + 4) * noise + 0x1p-1074))
        fail_msg("%s: bracket %.3g wide, scale %.3g", what, low.hi - low.lo, scale);
    /* a unit vector whose Rayleigh quotient is the value */
    double square = 0, quotient = 0, *Tv = dense_room(n);
    dense_score(n, n, T, low.vector, Tv);
    for (int64_t i = 0; i < n; i++) {
        square += low.vector[i] * low.vector[i];
        quotient += low.vector[i] * Tv[i];
    }
    CHECK_CLOSE(square, 1, 1e-13);
    CHECK_CLOSE(quotient, want, 2e-12 * scale + 2 * noise);
    cgam_free(env, low.vector);
    CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-12, false, &low));
    assert_null(low.vector);
    CHECK_CLOSE(low.value, want, 1e-12 * scale + noise);
    bool below;
    CHECK_STATUS(env, cgam_dplr_below(env, &spec, want + 1e-6 * scale + 8 * noise, &below));
    if (!below && scale > 0) fail_msg("%s: no vector below %.17g was found", what, want);
    CHECK_STATUS(env, cgam_dplr_below(env, &spec, want - noise, &below));
    if (below) fail_msg("%s: a vector below the smallest eigenvalue %.17g", what, want);
    if (n > CGAM_DPLR_SMALL && n > t->d && t->a > 0) check_floor(&spec, want, scale, what);
    dense_reset();
}

static const int64_t shapes[][2] = {{1, 1},  {2, 1},    {10, 3},  {30, 29}, {60, 40},  {60, 8},
                                    {70, 3}, {150, 10}, {20, 20}, {7, 30},  {300, 12}, {400, 5}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void of_the_overlaps_of_memories(void **state)
{
    (void)state;
    cgam_rng rng = cgam_rng_stream(5, 0);
    for (int kind = 0; kind < DENSE_KINDS; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            int64_t n = shapes[s][0], d = shapes[s][1];
            problem t = with_rows(n, d, dense_bank(&rng, (dense_kind)kind, n, d), 1);
            for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
            check(&t, "overlaps");
        }
    }
}

/* Norms equal to some digits: the bottom of the spectrum is a cluster about as wide. */
static void of_memories_with_almost_equal_norms(void **state)
{
    (void)state;
    cgam_rng rng = cgam_rng_stream(5, 1);
    for (int k = 0; k < 120; k++) {
        int64_t n = shapes[k % SHAPES][0], d = shapes[k % SHAPES][1];
        double *Z = dense_bank(&rng, k % 2 ? DENSE_CLUSTER : DENSE_UNIT, n, d);
        double spread = dense_between_log(&rng, 1e-15, 1e-2);
        for (int64_t i = 0; i < n; i++) {
            double factor = 1 + spread * cgam_rng_normal(&rng);
            for (int64_t j = 0; j < d; j++)
                Z[i * d + j] = k % 3 ? factor * Z[i * d + j] : (double)(float)Z[i * d + j];
        }
        problem t = with_rows(n, d, Z, 1);
        for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
        check(&t, "almost equal norms");
    }
}

static void of_the_hessian_of_the_energy(void **state)
{
    (void)state;
    cgam_rng rng = cgam_rng_stream(5, 2);
    for (int k = 0; k < 200; k++) {
        int64_t n = shapes[k % SHAPES][0], d = shapes[k % SHAPES][1];
        double alpha = k % 5 ? dense_between(&rng, 0, 0.6) : 0;
        double factor = dense_between_log(&rng, 0.1, 100);
        problem t = with_rows(n, d, dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), alpha);
        t.w = dense_normals(&rng, n, dense_between(&rng, 0.1, 8));
        dense_softmax(n, 1, t.w, t.w);
        t.sigma = factor;
        for (int64_t i = 0; i < n; i++) t.D[i] = 1 - alpha * t.norm2[i] - factor * t.w[i];
        check(&t, "Hessian");
    }
}

static void of_a_diagonal(void **state)
{
    (void)state;
    cgam_rng rng = cgam_rng_stream(5, 3);
    for (int64_t n = 1; n < 30; n++) {
        problem t = with_rows(n, 4, dense_bank(&rng, DENSE_GAUSS, n, 4), 0);
        for (int64_t i = 0; i < n; i++) t.D[i] = cgam_rng_normal(&rng);
        check(&t, "diagonal");
    }
}

static int lowest(cgam_env *other, void *arg)
{
    cgam_dplr_spec spec = spec_of(arg);
    cgam_lowest low = {0};
    cgam_status status = cgam_dplr_lowest(other, &spec, 1e-12, true, &low);
    cgam_free(other, low.vector);
    bool below;
    if (status == CGAM_OK) status = cgam_dplr_below(other, &spec, low.hi - 1, &below);
    return status;
}

static void it_copes_with_every_failed_allocation(void **state)
{
    (void)state;
    cgam_rng rng = cgam_rng_stream(5, 4);
    for (int k = 0; k < 2; k++) {
        int64_t n = k ? 4 : 12, d = k ? 9 : 3;
        problem t = with_rows(n, d, dense_bank(&rng, DENSE_NORMS, n, d), 1);
        for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
        assert_true(check_every_allocation(lowest, &t) > 4);
        dense_reset();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_overlaps_of_memories),
        cmocka_unit_test(of_memories_with_almost_equal_norms),
        cmocka_unit_test(of_the_hessian_of_the_energy),
        cmocka_unit_test(of_a_diagonal),
        cmocka_unit_test(it_copes_with_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
