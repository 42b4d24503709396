/* Bundles of banks: spectra, transients at every distance from alpha_crit, the grids of alpha. */
#include "unit/lab_synthetic/banks.h"

#include "lab/synthetic/alphas.h"

#include <cgam/gate.h>
#include <cgam/theory.h>

#include <float.h>

#include "support/owned.h"

enum { ROOM = 64 };

/* The closed-form transient of one lane against the library's, from far below to far above. */
static void compare(cgam_env *env, int64_t n, int64_t d, double alpha, double time)
{
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    const int width = lanes->width;
    cgam_banks *b = clusters(env, width, n, d, 3);
    double *s = cgam_alloc(env, (size_t)((n + b->g.m + 1) * width), sizeof *s);
    double *f = s + n * width, *f0 = f + b->g.m * width, t[CGAM_LANES_MAX], scale[CGAM_LANES_MAX];
    for (int l = 0; l < width; l++) t[l] = time;
    cgam_banks_weights(b, alpha, t, f, f0, scale);
    lanes->compose(&b->g, f, f0, s);
    for (int l = 0; l < width; l++) {
        double Z[ROOM * 16], got[ROOM], want[ROOM], u[ROOM], size = 0;
        lane_of(b->g.Z, n * d, width, l, Z);
        lane_of(s, n, width, l, got);
        OWNED(cgam_bank) bank = NULL;
        OWNED(cgam_spectrum) spectrum = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
        CHECK_STATUS(env, cgam_spectrum_new(bank, &spectrum));
        for (int64_t i = 0; i < n; i++) u[i] = 1 / (double)n;
        if (cgam_banks_subcritical(b, l, alpha))
            CHECK_STATUS(env, cgam_spectrum_solve(spectrum, alpha, u, want));
        else CHECK_STATUS(env, cgam_spectrum_transient(spectrum, alpha, 1, time, u, NULL, want));
        CHECK_CLOSE(b->alpha_crit[l], cgam_spectrum_describe(spectrum).alpha_crit,
                    1e-9 * b->alpha_crit[l]);
        for (int64_t i = 0; i < n; i++) {
            got[i] *= scale[l];
            size = fmax(size, fabs(want[i]));
        }
        for (int64_t i = 0; i < n; i++) {
            if (fabs(want[i]) >= DBL_MAX) assert_true(fabs(got[i]) > 1e300 && got[i] * want[i] > 0);
            else CHECK_CLOSE(got[i], want[i], 1e-9 * size);
        }
    }
    cgam_free(env, s);
    cgam_banks_free(b);
}

TEST(transients_are_those_of_the_library)
{
    OWNED(cgam_env) env = env_new(1);
    static const double alphas[] = {0, 0.5, 0.999, 1 - 1e-12, 1, 1 + 1e-12, 1 + 1e-6, 1.1, 2, 5};
    for (int i = 0; i < 10; i++) {
        compare(env, 30, 8, alphas[i], 0.01);
        compare(env, 30, 8, alphas[i], 50);
        compare(env, 6, 12, alphas[i], 7); /* n <= d: every trial has its own alpha_crit */
    }
}

/* Whatever the time, the peak is a number between 1/n and 1. */
TEST(no_time_is_too_long)
{
    OWNED(cgam_env) env = env_new(1);
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    const int width = lanes->width;
    const int64_t n = 50, d = 10;
    cgam_banks *b = clusters(env, width, n, d, 0);
    double *s = cgam_alloc(env, (size_t)((n + b->g.m + 1) * width), sizeof *s);
    double *f = s + n * width, *f0 = f + b->g.m * width, t[CGAM_LANES_MAX];
    double peak[CGAM_LANES_MAX] __attribute__((aligned(64)));
    double scale[CGAM_LANES_MAX] __attribute__((aligned(64)));
    static const double alphas[] = {1, 1 + 1e-12, 1.001, 1.3, 2, 1000},
                        times[] = {1e-9, 1, 1e3, 1e9, 1e12};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 5; k++) {
            for (int l = 0; l < width; l++) t[l] = times[k];
            cgam_banks_weights(b, alphas[i], t, f, f0, scale);
            lanes->compose(&b->g, f, f0, s);
            lanes->peak(n, 3.5, s, scale, peak, NULL);
            for (int l = 0; l < width; l++) {
                CHECK_LE(1 / (double)n - 1e-15, peak[l]);
                CHECK_LE(peak[l], 1);
                if ((alphas[i] - 1) * times[k] > 100 && times[k] > 500) CHECK_LE(0.999, peak[l]);
            }
        }
    cgam_free(env, s);
    cgam_banks_free(b);
}

/* Equal memories, or two of any kind: u has nothing in the modes that grow first, so nothing may
 * grow out of rounding, whether they are a kernel (n > d) or not. */
TEST(without_a_lead_there_is_no_winner)
{
    OWNED(cgam_env) env = env_new(1);
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    const int width = lanes->width;
    static const struct {
        int64_t n, d;
        double spread;
    } cases[] = {{20, 5, 0}, {8, 12, 0}, {8, 8, 0}, {2, 10, 0.3}, {2, 3, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t n = cases[c].n;
        cgam_banks *b;
        CHECK_STATUS(env, cgam_banks_new(env, width, n, cases[c].d, &b));
        for (int l = 0; l < width; l++) cgam_banks_draw(b, l, 1, 2, 0, l, 2, cases[c].spread);
        CHECK_STATUS(env, cgam_banks_decompose(b, NULL));
        double lead[CGAM_LANES_MAX], t[CGAM_LANES_MAX],
            scale[CGAM_LANES_MAX] __attribute__((aligned(64)));
        double peak[CGAM_LANES_MAX] __attribute__((aligned(64)));
        double *s = cgam_alloc(env, (size_t)((n + b->g.m + 1) * width), sizeof *s);
        double *f = s + n * width, *f0 = f + b->g.m * width;
        cgam_banks_lead(b, lead);
        for (int l = 0; l < width; l++) {
            CHECK_CLOSE(lead[l], 0, 0);
            t[l] = 50;
        }
        for (double factor = 1; factor < 5; factor += 0.5) {
            double alpha = 0;
            for (int l = 0; l < width; l++) alpha = fmax(alpha, factor * b->alpha_crit[l]);
            cgam_banks_weights(b, alpha, t, f, f0, scale);
            lanes->compose(&b->g, f, f0, s);
            lanes->peak(n, 3.5, s, scale, peak, NULL);
            for (int l = 0; l < width; l++) CHECK_CLOSE(peak[l], 1 / (double)n, 1e-12);
        }
        cgam_free(env, s);
        cgam_banks_free(b);
    }
}

TEST(the_lead_is_the_gap_of_the_horizon)
{
    OWNED(cgam_env) env = env_new(1);
    static const int64_t sizes[][2] = {{40, 10}, {7, 11}};
    for (int c = 0; c < 2; c++) {
        int64_t n = sizes[c][0], d = sizes[c][1];
        const int width = cgam_lanes_of(cgam_cpu_best())->width;
        cgam_banks *b = clusters(env, width, n, d, 5);
        double lead[CGAM_LANES_MAX], Z[ROOM * 16], u[ROOM];
        cgam_banks_lead(b, lead);
        for (int64_t i = 0; i < n; i++) u[i] = 1 / (double)n;
        for (int l = 0; l < width; l++) {
            lane_of(b->g.Z, n * d, width, l, Z);
            OWNED(cgam_bank) bank = NULL;
            OWNED(cgam_spectrum) spectrum = NULL;
            cgam_horizon h;
            CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
            CHECK_STATUS(env, cgam_spectrum_new(bank, &spectrum));
            CHECK_STATUS(env, cgam_supercritical_horizon(spectrum, 1.1 * b->alpha_crit[l], 1, 3.5,
                                                         0.01, u, NULL, false, &h));
            CHECK_CLOSE(lead[l], h.gap, 1e-12);
        }
        cgam_banks_free(b);
    }
}

TEST(the_grids_have_75_and_173_points)
{
    static cgam_alphas a;
    cgam_alphas_competition(&a, 1);
    assert_int_equal(a.count, 75);
    cgam_alphas_coupled(&a, 1);
    assert_int_equal(a.count, 173);
    for (int64_t i = 0; i < a.count; i++) {
        CHECK_CLOSE(a.at[i] * 1e4, rint(a.at[i] * 1e4), 1e-9);
        if (i) assert_true(a.at[i] > a.at[i - 1]);
    }
    CHECK_CLOSE(a.at[0], 0, 0);
    CHECK_CLOSE(a.at[172], 2, 0);
    cgam_alphas_competition(&a, 1.4); /* the dense part then lies between 1.25 and alpha_crit */
    bool there = false;
    for (int64_t i = 0; i < a.count; i++) there |= a.at[i] == 1.4;
    assert_true(there);
}

/* A stream's numbers are a function of its name alone, and no two names share them. */
TEST(streams_do_not_meet)
{
    enum { COUNT = 7 * 7 * 4 };
    double first[COUNT];
    int n = 0;
    for (int study = 1; study <= 7; study++)
        for (int purpose = 1; purpose <= 7; purpose++)
            for (int k = 0; k < 4; k++) {
                cgam_rng a = cgam_stream(7, study, purpose, k == 1, k == 2, k == 3);
                cgam_rng b = cgam_stream(7, study, purpose, k == 1, k == 2, k == 3);
                first[n] = cgam_rng_uniform(&a);
                CHECK_CLOSE(cgam_rng_uniform(&b), first[n], 0);
                for (int i = 0; i < n; i++) assert_true(first[i] != first[n]);
                n++;
            }
}
