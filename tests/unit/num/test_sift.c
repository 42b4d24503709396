/* What scores within a bound leave open: the loops of every CPU against the plain ones, in double. */
#include "support/check.h"
#include "support/dense.h"

#include "num/cpu/cpu.h"

typedef struct found {
    uint64_t open[CGAM_SIFT_ROWS];
    float high[CGAM_SIFT_WIDTH], low[CGAM_SIFT_WIDTH];
    int32_t above[CGAM_SIFT_WIDTH];
} found;

static float S[CGAM_SIFT_ROWS * CGAM_SIFT_WIDTH], hat[CGAM_SIFT_ROWS], rest[CGAM_SIFT_ROWS];
static cgam_sift_by by;
static found got, want;

static void make(cgam_rng *rng, int64_t rows, int64_t width)
{
    double size = dense_between_log(rng, 1e-3, 1e3);
    for (int64_t i = 0; i < rows; i++) {
        hat[i] = (float)dense_between(rng, 0, 1);
        rest[i] = (float)dense_between(rng, 0, 0.01);
    }
    for (int64_t i = 0; i < rows * width; i++) S[i] = (float)(size * cgam_rng_normal(rng));
    for (int64_t v = 0; v < width; v++) {
        double rate = dense_between_log(rng, 1e-3, 100) / size;
        by.hat[v] = (float)(size * dense_between(rng, 0, 0.1));
        by.rest[v] = (float)(size * dense_between(rng, 0, 1));
        by.floor[v] = (float)(size * dense_between(rng, -1, 4));
        by.rate[v] = (float)rate;
        by.shift[v] = (float)(rate * (double)by.floor[v] - dense_between(rng, 0, 20));
        by.focus_low[v] = (float)(size * dense_between(rng, -3, 3));
        by.focus_high[v] = by.focus_low[v] + (float)(size * 0x1p-20);
        if (v % 3 == 0) by.focus_low[v] = by.focus_high[v] = INFINITY;
    }
}

/* Is row i by vector v within rounding of a comparison? */
static bool is_near(int64_t i, int64_t width, int64_t v, bool focus)
{
    double a = (double)S[i * width + v];
    double off = (double)by.hat[v] * (double)hat[i] + (double)by.rest[v] * (double)rest[i];
    double fine = 8 * 0x1p-24 * (fabs(a) + off);
    if (fabs(a + off - (double)by.floor[v]) <= fine) return true;
    return focus && (fabs(a + off - (double)by.focus_low[v]) <= fine ||
                     fabs(a - off - (double)by.focus_high[v]) <= fine);
}

static void judge(int64_t rows, int64_t width, bool focus)
{
    for (int64_t v = 0; v < width; v++) {
        bool near = false;
        for (int64_t i = 0; i < rows; i++) {
            bool here = is_near(i, width, v, focus);
            near |= here;
            if (!here) assert_int_equal(got.open[i] >> v & 1, want.open[i] >> v & 1);
        }
        if (near) continue;
        double slack = CGAM_SIFT_SLACK(by.shift[v]), few = (double)rows * 0x1p-124;
        double high = (double)want.high[v], low = (double)want.low[v];
        CHECK_CLOSE(got.high[v], high, slack * high + few);
        CHECK_LE((double)got.low[v], low * (1 + slack) + few);
        if (focus) assert_int_equal(got.above[v], want.above[v]);
    }
}

TEST(every_cpu_sifts_alike)
{
    cgam_rng rng = cgam_rng_stream(46, 0);
    for (int k = 0; cgam_cpu_all[k].name; k++) {
        if (!cgam_cpu_all[k].usable()) continue;
        for (int t = 0; t < 200; t++) {
            int64_t rows = 1 + cgam_rng_below(&rng, CGAM_SIFT_ROWS);
            int64_t width = 16 * (1 + cgam_rng_below(&rng, 4));
            make(&rng, rows, width);
            memset(&got, 0x5a, sizeof got);
            cgam_cpu_all[0].sift->run(rows, width, S, hat, rest, &by, t % 2, want.open, want.high,
                                      want.low, want.above);
            cgam_cpu_all[k].sift->run(rows, width, S, hat, rest, &by, t % 2, got.open, got.high,
                                      got.low, got.above);
            judge(rows, width, t % 2);
        }
    }
}

/* One vector by groups of rows: rows of the same are vectors of the other, in whose bound they may change places. */
TEST(one_vector_is_sifted_like_many)
{
    enum { GROUPS = 3, ALL = GROUPS * CGAM_SIFT_WIDTH };
    cgam_rng rng = cgam_rng_stream(48, 0);
    float score[ALL], hats[ALL], rests[ALL];
    for (int k = 0; cgam_cpu_all[k].name; k++) {
        if (!cgam_cpu_all[k].usable()) continue;
        for (int t = 0; t < 100; t++) {
            uint64_t open[GROUPS];
            double sums[2], high = 0, low = 0;
            bool near = false;
            make(&rng, 1, CGAM_SIFT_WIDTH);
            cgam_sift_one is = {hat[0], rest[0], by.floor[0], by.rate[0], by.shift[0]};
            for (int g = 0; g < GROUPS; g++) {
                make(&rng, 1, CGAM_SIFT_WIDTH);
                hat[0] = is.hat;
                rest[0] = is.rest;
                for (int v = 0; v < CGAM_SIFT_WIDTH; v++) {
                    by.floor[v] = is.floor;
                    by.rate[v] = is.rate;
                    by.shift[v] = is.shift;
                    near |= is_near(0, CGAM_SIFT_WIDTH, v, false);
                }
                size_t bytes = CGAM_SIFT_WIDTH * sizeof *S;
                memcpy(score + g * CGAM_SIFT_WIDTH, S, bytes);
                memcpy(hats + g * CGAM_SIFT_WIDTH, by.hat, bytes);
                memcpy(rests + g * CGAM_SIFT_WIDTH, by.rest, bytes);
                cgam_cpu_all[0].sift->run(1, CGAM_SIFT_WIDTH, S, hat, rest, &by, false,
                                          want.open + g, want.high, want.low, want.above);
                for (int v = 0; v < CGAM_SIFT_WIDTH; v++) {
                    high += (double)want.high[v];
                    low += (double)want.low[v];
                }
            }
            if (near) continue;
            cgam_cpu_all[k].sift->one(GROUPS, score, hats, rests, &is, open, sums);
            assert_memory_equal(open, want.open, sizeof open);
            double slack = CGAM_SIFT_SLACK(is.shift), few = ALL * 0x1p-124;
            CHECK_CLOSE(sums[0], high, slack * high + few);
            CHECK_LE(sums[1], low * (1 + slack) + few);
            CHECK_LE(0, sums[1]);
        }
    }
}

/* A score that is no number is nobody's to close. */
TEST(what_is_no_number_is_open)
{
    cgam_rng rng = cgam_rng_stream(47, 0);
    for (int k = 0; cgam_cpu_all[k].name; k++) {
        if (!cgam_cpu_all[k].usable()) continue;
        make(&rng, 5, 16);
        for (int64_t v = 0; v < 16; v++) by.floor[v] = INFINITY;
        S[3 * 16 + 7] = NAN;
        cgam_cpu_all[k].sift->run(5, 16, S, hat, rest, &by, false, got.open, got.high, got.low,
                                  got.above);
        for (int64_t i = 0; i < 5; i++) assert_int_equal(got.open[i], i == 3 ? 1 << 7 : 0);
        assert_true(isfinite((double)got.high[7]));
    }
}
