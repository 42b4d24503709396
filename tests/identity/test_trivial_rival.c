/* At alpha = 0 and W = Z P the first-order gate is the query q + lambda P c: context and gates are gone, and the recall
 * without a context at that query gives the same answer. So in every dtype and on every route, for one query and many. */
#include "support/check.h"

#include <cgam/recall.h>

#include <math.h>

#include "support/owned.h"

enum { N = 37, D = 9, DC = 5, QUERIES = 12 };

static void fill(cgam_rng *rng, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = cgam_rng_normal(rng);
}

/* One plan for the gate, one without a context, the same numbers. */
static void compare(cgam_env *env, const cgam_bank *bank, const double *P, double lambda,
                    double beta)
{
    double q[QUERIES * D], c[QUERIES * DC], mixed[QUERIES * D], pg[QUERIES * N], pm[QUERIES * N];
    double zg[QUERIES * D], zm[QUERIES * D];
    cgam_rng rng = cgam_rng_stream(5, 2);
    fill(&rng, q, QUERIES * D);
    fill(&rng, c, QUERIES * DC);
    for (int k = 0; k < QUERIES; k++)
        for (int i = 0; i < D; i++) {
            mixed[k * D + i] = q[k * D + i];
            for (int j = 0; j < DC; j++) mixed[k * D + i] += lambda * P[i * DC + j] * c[k * DC + j];
        }
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.beta = beta;
    opts.lambda = lambda;
    opts.alpha = 0;
    opts.mode = CGAM_FIRST;
    opts.P = P;
    opts.d_c = DC;
    OWNED(cgam_recall) gate = NULL;
    CHECK_STATUS(env, cgam_recall_new(bank, &opts, &gate));
    opts.P = NULL;
    opts.d_c = 0;
    OWNED(cgam_recall) plain = NULL;
    CHECK_STATUS(env, cgam_recall_new(bank, &opts, &plain));
    cgam_result a[QUERIES], b[QUERIES];
    cgam_recall_in in = {.queries = QUERIES, .q = q, .c = c, .c_per_query = true};
    cgam_recall_out out = {.results = a, .p = pg, .readout = zg};
    CHECK_STATUS(env, cgam_recall_run(gate, &in, &out));
    in = (cgam_recall_in){.queries = QUERIES, .q = mixed};
    out = (cgam_recall_out){.results = b, .p = pm, .readout = zm};
    CHECK_STATUS(env, cgam_recall_run(plain, &in, &out));
    CHECK_CLOSE_ALL(pg, pm, QUERIES * N, 1e-12);
    CHECK_CLOSE_ALL(zg, zm, QUERIES * D, 1e-12);
    for (int k = 0; k < QUERIES; k++) {
        assert_int_equal(a[k].winner, b[k].winner);
        CHECK_CLOSE(a[k].gap, b[k].gap, 1e-11);
        CHECK_CLOSE(a[k].neff_entropy, b[k].neff_entropy, 1e-10 * N);
        CHECK_CLOSE(a[k].p_lower_bound, b[k].p_lower_bound, 1e-11);
    }
}

TEST(without_a_penalty_the_gate_is_a_query)
{
    static const double lambdas[] = {0, 0.3, 2, 16};
    double Z[N * D], P[D * DC];
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    cgam_rng rng = cgam_rng_stream(5, 1);
    fill(&rng, Z, N * D); /* of any norms */
    fill(&rng, P, D * DC);
    OWNED(cgam_bank) bank = NULL;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, N, D, NULL, &bank));
    for (int i = 0; i < 4; i++) compare(env, bank, P, lambdas[i], 0.7);
}
