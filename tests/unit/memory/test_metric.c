/* Metrics: scores against long double, within the bound that proofs use (docs/theorems/metrics.md), for rows and queries whose norms
 * are far apart; banks that are refused; every allocation. */
#include "memory/bank.h"
#include "num/rounding.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include <cgam/bank.h>
#include <math.h>

#include "support/owned.h"

enum { N = 20, D = 11, ROOM = D + 8 };

static long double length(const double *x)
{
    long double sum = 0;
    for (int j = 0; j < D; j++) sum += (long double)x[j] * x[j];
    return sqrtl(sum);
}

/* The metric of a row and a query. */
static long double exact(cgam_metric metric, const double *x, const double *q)
{
    long double sum = 0;
    for (int j = 0; j < D; j++)
        sum += metric == CGAM_L2 ? -((long double)x[j] - q[j]) * ((long double)x[j] - q[j]) / 2
                                 : (long double)x[j] * q[j];
    long double norms = length(x) * length(q);
    return metric == CGAM_L2 ? sum : norms > 0 ? sum / norms : 0;
}

TEST_ENV(products_of_mapped_vectors_are_the_metric)
{
    for (uint64_t t = 0; t < 400; t++) {
        cgam_rng rng = cgam_rng_stream(71, t);
        const bool narrow = t % 2;
        const cgam_metric metric = t / 2 % 2 ? CGAM_L2 : CGAM_COSINE;
        double Z[N * D], q[D], mapped[ROOM], row[ROOM];
        float small[N * D];
        const double scale = ldexp(1, (int)cgam_rng_below(&rng, 80) - 40);
        const double other = ldexp(scale, (int)cgam_rng_below(&rng, 40) - 20);
        for (int i = 0; i < N; i++) {
            const double own = ldexp(scale, -(int)cgam_rng_below(&rng, t % 3 ? 2 : 60));
            for (int j = 0; j < D; j++) {
                small[i * D + j] = (float)(own * cgam_rng_normal(&rng) * (i != 3));
                Z[i * D + j] =
                    narrow ? (double)small[i * D + j] : own * cgam_rng_normal(&rng) * (i != 3);
            }
        }
        for (int j = 0; j < D; j++) /* close to a memory, or anywhere */
            q[j] = t % 5 == 0 ? Z[j] * (1 + 0x1p-40 * cgam_rng_normal(&rng))
                              : other * cgam_rng_normal(&rng);
        OWNED(cgam_bank) bank = NULL;
        OWNED(cgam_bank) measured = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, narrow ? (void *)small : (void *)Z,
                                        narrow ? CGAM_F32 : CGAM_F64, N, D, NULL, &bank));
        CHECK_STATUS(env, cgam_bank_metric(bank, metric, &measured));
        int64_t all = cgam_bank_describe(measured).d;
        assert_int_equal(all, metric == CGAM_COSINE ? D : narrow ? D + 5 : D + 4);
        CHECK_STATUS(env, cgam_metric_queries(measured, 1, q, mapped));
        for (int i = 0; i < N; i++) {
            CHECK_STATUS(env, cgam_bank_row(measured, i, row));
            long double sum = 0, row_size = 0, size = 0, want = exact(metric, Z + i * D, q);
            for (int64_t j = 0; j < all; j++) {
                sum += (long double)row[j] * mapped[j];
                row_size += (long double)row[j] * row[j];
                size += (long double)mapped[j] * mapped[j];
            }
            /* what rounding.md leaves for the mapping: (d + 16) u; a normalised row has its own bound */
            long double left = ((long double)all + 16) * CGAM_U;
            if (metric == CGAM_COSINE) left += (long double)cgam_norm_error(D);
            left += (long double)all * 0x1p-64L; /* of the sum here */
            if (!(fabsl(sum - want) <= left * sqrtl(row_size * size)))
                print_message("t %d row %d: %Lg, want %Lg\n", (int)t, i, sum, want);
            assert_true(fabsl(sum - want) <= left * sqrtl(row_size * size));
        }
    }
}

TEST_ENV(what_a_metric_does_not_serve_is_refused)
{
    double Z[2 * D] = {0}, q[D] = {0}, out[ROOM];
    cgam_bank_opts unit = cgam_bank_opts_default();
    unit.normalize = true;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_bank) normal = NULL;
    OWNED(cgam_bank) huge = NULL;
    OWNED(cgam_bank) zeros = NULL;
    cgam_bank *none;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, 2, D, NULL, &bank));
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, 2, D, &unit, &normal));
    assert_int_equal(cgam_bank_metric(bank, CGAM_DOT, &none), CGAM_E_ARG);
    assert_int_equal(cgam_bank_metric(normal, CGAM_L2, &none), CGAM_E_UNSUPPORTED);
    assert_int_equal(cgam_metric_queries(bank, 1, q, out), CGAM_E_ARG);
    CHECK_STATUS(env, cgam_bank_metric(bank, CGAM_L2, &zeros)); /* all zeros: k is 1 */
    CHECK_STATUS(env, cgam_metric_queries(zeros, 1, q, out));
    q[0] = 1e200;
    assert_int_equal(cgam_metric_queries(zeros, 1, q, out), CGAM_E_VALUE);
    double far[2 * D] = {1e120};
    CHECK_STATUS(env, cgam_bank_new(env, far, CGAM_F64, 2, D, NULL, &huge));
    assert_int_equal(cgam_bank_metric(huge, CGAM_L2, &none), CGAM_E_VALUE);
    assert_null(none);
}

static cgam_status measure(cgam_env *env, void *rows)
{
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_bank) some = NULL;
    OWNED(cgam_bank) measured = NULL;
    OWNED(cgam_bank) angles = NULL;
    TRY(cgam_bank_new(env, rows, CGAM_F64, N, D, NULL, &bank));
    TRY(cgam_bank_only(bank, (uint64_t[]){0xf0f0f}, &some));
    TRY(cgam_bank_metric(some, CGAM_L2, &measured));
    TRY(cgam_bank_metric(some, CGAM_COSINE, &angles));
    return CGAM_OK;
}

TEST(every_allocation_may_fail)
{
    cgam_rng rng = cgam_rng_stream(72, 0);
    check_every_allocation(measure, dense_bank(&rng, DENSE_UNIT, N, D));
    dense_reset();
}
