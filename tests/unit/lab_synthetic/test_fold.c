/* Folds followed in vector lanes against the library's own search, one bank at a time. */
#include "unit/lab_synthetic/banks.h"

#include <cgam/gate.h>
#include <cgam/theory.h>

#include "support/owned.h"

enum { N = 20, D = 12 }; /* the most there are */

TEST(folds_agree_with_the_library)
{
    OWNED(cgam_env) env = env_new(1);
    static const double lambdas[] = {0.3, 0.4, 0.8, 1.4};
    static const int64_t sizes[][2] = {{20, 5}, {8, 12}};
    int64_t folded = 0;
    for (int i = 0; cgam_cpu_all[1 + i / 2].name; i++) {
        const cgam_cpu *cpu = &cgam_cpu_all[1 + i / 2];
        const cgam_lanes *lanes = cgam_lanes_of(cpu);
        const int width = lanes->width;
        const int64_t n = sizes[i % 2][0], d = sizes[i % 2][1];
        if (!cpu->usable()) continue;
        cgam_banks *b = clusters(env, width, n, d, 0);
        double *room = cgam_alloc(env, cgam_lanes_fold_size(&b->g), sizeof *room);
        double *s = cgam_alloc(env, (size_t)(n * width), sizeof *s);
        double alpha[CGAM_LANES_MAX], folds[CGAM_LANES_MAX], most[CGAM_LANES_MAX];
        for (int l = 0; l < width; l++) most[l] = 0.9999 * b->alpha_crit[l];
        for (int k = 0; k < 4; k++) {
            cgam_lanes_fold f = {.beta = 5,
                                 .lambda = lambdas[k],
                                 .alpha_max = most,
                                 .tol = 1e-6,
                                 .work = room,
                                 .alpha = alpha,
                                 .folds = folds,
                                 .s = s};
            lanes->fold(&b->g, &f);
            for (int l = 0; l < (n > d ? 2 : width); l++) {
                double Z[N * D], none[N] = {0}, u[N];
                lane_of(b->g.Z, n * d, width, l, Z);
                for (int64_t j = 0; j < n; j++) u[j] = 1 / (double)n;
                OWNED(cgam_bank) bank = NULL;
                cgam_fold want;
                CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
                CHECK_STATUS(env,
                             cgam_fold_find(bank, lambdas[k], 5, none, u, most[l], 1e-6, &want));
                if (isnan(want.alpha)) CHECK_CLOSE(folds[l], 0, 0);
                else {
                    CHECK_CLOSE(folds[l], 1, 0);
                    CHECK_CLOSE(alpha[l], want.alpha, 1e-4);
                    folded += n <= d;
                }
            }
        }
        cgam_free(env, room);
        cgam_free(env, s);
        cgam_banks_free(b);
    }
    assert_true(folded > 0);
}

/* On either side of the fold: below it the plain iteration stays near uniform, above it leaves. */
TEST(the_iteration_leaves_the_branch_at_the_fold)
{
    OWNED(cgam_env) env = env_new(1);
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    const int width = lanes->width;
    const int64_t n = 50, d = 10;
    cgam_banks *b = clusters(env, width, n, d, 24);
    double *room = cgam_alloc(env, cgam_lanes_fold_size(&b->g), sizeof *room);
    double *s = cgam_alloc(env, (size_t)(n * width), sizeof *s);
    double alpha[CGAM_LANES_MAX], folds[CGAM_LANES_MAX], most[CGAM_LANES_MAX];
    for (int l = 0; l < width; l++) most[l] = 0.9999;
    cgam_lanes_fold f = {.beta = 5,
                         .lambda = 1.5,
                         .alpha_max = most,
                         .tol = 1e-6,
                         .work = room,
                         .alpha = alpha,
                         .folds = folds,
                         .s = s};
    lanes->fold(&b->g, &f);
    for (int l = 0; l < width; l++) {
        double Z[50 * 10];
        CHECK_CLOSE(folds[l], 1, 0);
        lane_of(b->g.Z, n * d, width, l, Z);
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
        for (int side = 0; side < 2; side++) {
            OWNED(cgam_gate) gate = NULL;
            double r[50], p[50], in[50], top = 0;
            CHECK_STATUS(env, cgam_gate_new(bank, alpha[l] + (side ? 1e-3 : -1e-3), NULL, &gate));
            lane_of(b->g.start, n, width, l, r);
            for (int k = 0; k < 4000; k++) {
                softmax_of(n, 5, r, p);
                for (int64_t i = 0; i < n; i++) in[i] = 1 / (double)n + 1.5 * p[i];
                CHECK_STATUS(env, cgam_gate_solve(gate, in, r, NULL));
                for (int64_t i = 0; i < n; i++) r[i] *= 1.5;
            }
            softmax_of(n, 5, r, p);
            for (int64_t i = 0; i < n; i++) top = fmax(top, p[i]);
            if (side) CHECK_LE(0.9, top);
            else CHECK_LE(top, 0.3);
        }
    }
    cgam_free(env, room);
    cgam_free(env, s);
    cgam_banks_free(b);
}
