/* Memories stored alike share their probability, and one long memory does not spoil the rest. */
#define ENV_THREADS 2
#include "support/one_env.h"

#include "support/owned.h"

/* Half of n memories repeat the other half; alpha a share of alpha_crit. */
static void check_shared(int64_t n, int64_t d, double share, double lambda, cgam_mode mode)
{
    cgam_rng rng = cgam_rng_stream(31, (uint64_t)(n * 1000 + d));
    for (int round = 0; round < 20; round++) {
        double *Z = dense_normals(&rng, n * d, 1 / sqrt((double)d));
        for (int64_t i = 0; i < n / 2; i++)
            for (int64_t j = 0; j < d; j++) Z[(n - 1 - i) * d + j] = Z[i * d + j];
        double *q = dense_normals(&rng, d, 1), *c = dense_normals(&rng, d, 1);
        double *p = dense_room(n);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_critical crit;
        CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = mode;
        opts.lambda = lambda;
        opts.alpha = share * crit.alpha;
        OWNED(cgam_recall) plan = object_recall(env, bank, &opts);
        cgam_result result;
        cgam_recall_in in = {.queries = 1, .q = q, .c = c, .c_per_query = true};
        cgam_recall_out out = {.results = &result, .p = p};
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        for (int64_t i = 0; i < n / 2; i++) assert_true(p[i] == p[n - 1 - i]);
        assert_true(result.winner < (n + 1) / 2); /* ties go to the lowest index */
        dense_reset();
    }
}

TEST(equal_memories_share_their_probability)
{
    static const double shares[] = {0.1, 0.6, 0.99, 1 - 1e-5};
    for (int k = 0; k < 4; k++) {
        check_shared(6, 8, shares[k], 2, CGAM_COUPLED);  /* n <= d: dense inside */
        check_shared(40, 5, shares[k], 2, CGAM_COUPLED); /* streams, with border rows near crit */
        check_shared(6, 8, shares[k], 2, CGAM_FIRST);
        check_shared(40, 5, shares[k], 2, CGAM_FIRST);
    }
}

/* Weights of their own may tell equal memories apart. */
TEST(gate_weights_tell_twins_apart)
{
    static const double Z[3][4] = {{1, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}};
    static const double W[3] = {0, 1, 0}, q[4] = {1, 0, 0, 0}, c[1] = {1};
    OWNED(cgam_bank) bank = object_bank(env, 3, 4, &Z[0][0]);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.alpha = 0.3;
    opts.W = W;
    opts.d_c = 1;
    cgam_result result;
    CHECK_STATUS(env, cgam_recall_once(bank, q, c, &opts, &result));
    assert_int_equal(result.winner, 1);
}

/* A memory a million times as long as the others, and orthogonal to them, changes nothing. */
TEST(one_long_memory_leaves_alpha_crit_alone)
{
    for (double length = 1; length <= 1e8; length *= 100) {
        double tall[5][3] = {{length, 0, 0}, {0, 1, 0}, {0, 1, 0}, {0, 0, 0.5}, {0, 0, 0.2}};
        OWNED(cgam_bank) bank = object_bank(env, 5, 3, &tall[0][0]);
        cgam_critical crit;
        CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
        assert_true(crit.proved);
        CHECK_CLOSE(crit.alpha, 1, 1e-9); /* the two equal memories */
        CHECK_LE(crit.alpha_lo, 1);
        CHECK_LE(1, crit.alpha_hi);
    }
}

TEST_GROUP(set_up, tear_down)
