/* The vector exponential against long double, as any CPU compiles it. The wider vectors of the fast
 * loops are tested with them, in tests/unit/bench/test_limits.c. */
#include "num/cpu/vexp.h"

#include "support/check.h"

typedef double vd __attribute__((vector_size(16)));
typedef int64_t vl __attribute__((vector_size(16)));
typedef uint64_t vu __attribute__((vector_size(16)));
CGAM_VEXP(vexp, vd, vl, vu)

static double one(double x)
{
    vd y = vexp((vd){x, x});
    assert_memory_equal(&y, (double *)&y + 1, sizeof(double));
    return y[0];
}

static double one_below(double x) { return vexp_below((vd){0, x})[1]; }

TEST(every_range_is_within_an_ulp)
{
    double worst = 0, at = 0;
    for (int i = 0; i < 400000; i++) {
        /* the whole range, then close to 0, then close to the ends */
        double share = (i * 2654435761u % 1000003) / 1000003.0;
        double x = i % 3 == 0 ? -745 + 1454 * share : i % 3 == 1 ? -2 * share : 709.7 - share;
        double off = check_ulps(one(x), expl((long double)x));
        if (off > worst) {
            worst = off;
            at = x;
        }
    }
    if (worst > 1.05) printf("worst at %a\n", at);
    CHECK_LE(worst, 1.05);
}

TEST(the_ends_are_right)
{
    CHECK_CLOSE(one(0.0), 1, 0);
    CHECK_CLOSE(one(-0.0), 1, 0);
    CHECK_CLOSE(one(-INFINITY), 0, 0);
    CHECK_CLOSE(one(INFINITY), INFINITY, 0);
    CHECK_CLOSE(one(1e308), INFINITY, 0);
    CHECK_CLOSE(one(-1e308), 0, 0);
    CHECK_CLOSE(one(710), INFINITY, 0);
    CHECK_CLOSE(one(709.78), exp(709.78), 4e292);
    CHECK_CLOSE(one(-745.1), 0x1p-1074, 0);
    CHECK_CLOSE(one(-745.2), 0, 0);
    assert_true(isnan(one(NAN)));
}

TEST(the_softmax_form_drops_what_is_tiny)
{
    CHECK_CLOSE(one_below(0), 1, 0);
    CHECK_REL(one_below(-1), exp(-1), 3e-16);
    CHECK_REL(one_below(-706), exp(-706), 3e-16);
    CHECK_REL(one_below(709), exp(709), 3e-16);
    CHECK_CLOSE(one_below(-708), 0, 0);
    CHECK_CLOSE(one_below(-1e300), 0, 0);
    CHECK_CLOSE(one_below(-INFINITY), 0, 0);
    assert_true(isnan(one_below(NAN)));
    for (int bits = 1; bits < 4096; bits += 37) { /* whatever it carries */
        char payload[16];
        snprintf(payload, sizeof payload, "%d", bits);
        assert_true(isnan(one(nan(payload))) && isnan(one_below(nan(payload))));
    }
}
