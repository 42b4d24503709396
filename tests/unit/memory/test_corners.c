/* Corners of the mathematics: one memory, memories of zeros, no feedback, a fold that is passed, rows of a bank by the numbers of the
 * whole, gate weights of one's own under a context that moves - each against what a closed form or another way says. */
#include "memory/gate.h"
#include "memory/pack.h"
#include "support/one_env.h"

#include <cgam/bank.h>
#include <cgam/recall.h>
#include <cgam/theory.h>
#include <unistd.h>

#include "support/owned.h"

/* Zeros have no modes: A is the identity, whatever alpha is, and only the kernel moves. */
TEST_WITH(set_up, tear_down, zeros_have_no_modes)
{
    enum { N = 5, D = 3 };
    const double Z[N * D] = {0}, x[N] = {1, -2, 3, 0.5, 4}, q[D] = {1, 1, 1};
    OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
    OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
    double y[N];
    const cgam_spectrum_info info = cgam_spectrum_describe(sp);
    assert_int_equal(info.modes, 0);
    assert_int_equal(info.kernel, N);
    assert_true(isinf(info.alpha_crit));
    CHECK_STATUS(env, cgam_spectrum_solve(sp, 7, x, y));
    CHECK_CLOSE_ALL(y, x, N, 0);
    CHECK_STATUS(env, cgam_spectrum_solve_range(sp, 7, q, y));
    for (int i = 0; i < N; i++) CHECK_CLOSE(y[i], 0, 0);
    CHECK_STATUS(env, cgam_spectrum_project_min(sp, x, y));
    CHECK_CLOSE_ALL(y, x, N, 0);
    /* s' = u - s from 0: (1 - exp(-2)) u */
    CHECK_STATUS(env, cgam_spectrum_transient(sp, 7, 1, 2, x, NULL, y));
    for (int i = 0; i < N; i++) CHECK_CLOSE(y[i], -expm1(-2) * x[i], 1e-14);
}

/* Two ways to A^-1 Z v where norms differ, so that modes are those of the n x n matrix. */
TEST_WITH(set_up, tear_down, modes_and_factors_agree_where_norms_differ)
{
    enum { N = 9, D = 4 };
    cgam_rng rng = cgam_rng_stream(31, 0);
    const double *Z = dense_bank(&rng, DENSE_NORMS, N, D), *v = dense_normals(&rng, D, 1);
    OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
    OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
    const double alpha = 0.5 * cgam_spectrum_describe(sp).alpha_crit;
    OWNED(cgam_gate) gate = object_gate(env, bank, alpha);
    double by_modes[N], by_factors[N];
    CHECK_STATUS(env, cgam_spectrum_solve_range(sp, alpha, v, by_modes));
    CHECK_STATUS(env, cgam_gate_solve_range(gate, v, by_factors));
    CHECK_CLOSE_ALL(by_modes, by_factors, N, 1e-11);
    /* alpha_crit of modes is where they cannot be solved for */
    double u[N];
    CHECK_STATUS(env, cgam_bank_score(bank, v, u));
    CHECK_FAILS(env, CGAM_E_SINGULAR, cgam_spectrum_solve(sp, 2 * alpha, u, by_modes));
    CHECK_FAILS(env, CGAM_E_SINGULAR, cgam_spectrum_solve_range(sp, 2 * alpha, v, by_modes));
    dense_reset();
}

TEST_WITH(set_up, tear_down, one_memory_has_no_rivals)
{
    const double z[] = {0.6, 0.8}, u[] = {1}, p[] = {1};
    OWNED(cgam_bank) bank = object_bank(env, 1, 2, z);
    OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
    OWNED(cgam_gate) gate = object_gate(env, bank, 0.5);
    cgam_winner winner;
    cgam_coupled_critical critical;
    double value = 1;
    bool proved = false;
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 3, u, NULL, &winner));
    assert_int_equal(winner.index, -1);
    assert_non_null(winner.reason);
    CHECK_STATUS(env, cgam_contraction_local(gate, 1, 1, p, &value, &proved));
    CHECK_CLOSE(value, 0, 0);
    assert_true(proved);
    CHECK_STATUS(env, cgam_coupled_critical_find(bank, 0.5, 1, &critical));
    assert_true(isnan(critical.alpha));
}

/* Two orthogonal memories and no preference: past lambda^2 beta = 2 the middle is a saddle from the start. */
TEST_WITH(set_up, tear_down, a_fold_that_is_passed_is_at_zero)
{
    const double Z[] = {1, 0, 0, 1}, none[] = {0, 0}, tilted[] = {0.3, 0};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_fold fold;
    CHECK_STATUS(env, cgam_fold_find(bank, 1.5, 1, none, none, 5, 1e-3, &fold));
    CHECK_CLOSE(fold.alpha, 0, 0);
    CHECK_LE(fold.margin, 0);
    CHECK_STATUS(env, cgam_fold_find(bank, 0.5, 1, tilted, none, 5, 1e-3, &fold));
    assert_true(isnan(fold.alpha));
    CHECK_LE(0.5, fold.margin);
}

/* W = Z P gives the recall, and the margin of a moving context, of the projection P itself. */
TEST_WITH(set_up, tear_down, weights_of_ones_own_are_those_of_a_projection)
{
    enum { N = 6, D = 4, DC = 2 };
    cgam_rng rng = cgam_rng_stream(32, 0);
    const double *Z = dense_bank(&rng, DENSE_UNIT, N, D), *P = dense_normals(&rng, D * DC, 0.3);
    const double *q = dense_normals(&rng, D, 1), *c = dense_normals(&rng, DC, 1);
    double *W = dense_room(N * DC);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < DC; j++)
            for (int k = 0; k < D; k++) W[i * DC + j] += Z[i * D + k] * P[k * DC + j];
    OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
    cgam_recall_opts o = object_opts(CGAM_FLOW, 0.2, 2, 0.5);
    o.free_context = true;
    o.t_max = 1;
    o.d_c = DC;
    cgam_result r[2];
    double margin[2];
    for (int own = 0; own < 2; own++) {
        o.P = own ? NULL : P;
        o.W = own ? W : NULL;
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        margin[own] = cgam_recall_context_margin(plan);
        CHECK_STATUS(env, cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q, .c = c},
                                          &(cgam_recall_out){.results = &r[own]}));
    }
    CHECK_CLOSE(margin[1], margin[0], 1e-12);
    CHECK_CLOSE(r[1].p, r[0].p, 1e-9);
    assert_int_equal(r[1].winner, r[0].winner);
    dense_reset();
}

/* Numbers of the whole come out of every list; no answer has no number. */
TEST_WITH(set_up, tear_down, rows_that_count_keep_their_numbers)
{
    enum { N = 6, D = 3 };
    const double Z[N * D] = {1, 0, 0, 0, 1, 0, 0, 0, 1, -1, 0, 0, 0, -1, 0, 0, 0, -1};
    const double q[D] = {0.1, -2, 0};
    const uint64_t mask[] = {0x34}; /* 2, 4 and 5 */
    OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
    OWNED(cgam_bank) some = NULL;
    CHECK_STATUS(env, cgam_bank_only(bank, mask, &some));
    cgam_recall_opts o = cgam_recall_opts_default();
    o.none = true;
    int64_t top[2];
    cgam_result r;
    const cgam_recall_in in = {.queries = 1, .q = q};
    for (int won = 0; won < 2; won++) {
        o.none_score = won ? -9 : 9;
        OWNED(cgam_recall) plan = object_recall(env, some, &o);
        CHECK_STATUS(
            env, cgam_recall_run(plan, &in,
                                 &(cgam_recall_out){.results = &r, .top = 2, .top_index = top}));
        assert_int_equal(r.winner, won ? 4 : -1);
        assert_int_equal(top[0], 4);
        CHECK_STATUS(env,
                     cgam_recall_run(plan, &in, &(cgam_recall_out){.top = 1, .top_index = top}));
        assert_int_equal(top[0], 4);
    }
    cgam_anneal path = {0};
    o = object_opts(CGAM_ANNEAL, 0, 2, 0.5);
    cgam_recall *plan = object_recall(env, some, &o);
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &(cgam_recall_out){.anneal = &path}));
    assert_true(path.points > 0);
    assert_int_equal(path.path[path.points - 1].winner, 4);
    cgam_anneal_free(env, &path);
    cgam_recall_free(plan);
    const int64_t gone = 3;
    plan = object_recall(env, some, NULL);
    CHECK_REFUSED(env, CGAM_E_ARG, "target 3 of query 0",
                  cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q, .target = &gone},
                                  &(cgam_recall_out){.results = &r}));
    cgam_recall_free(plan);
}

TEST_WITH(set_up, tear_down, packing_is_refused_what_it_cannot_keep)
{
    const double Z[] = {1, 0, 0, 1}, wrong[] = {1, INFINITY}, none[] = {0};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    const struct {
        int dtype;
        int64_t alphas;
        const double *alpha;
        const char *path, *message;
    } list[] = {
        {-1, 0, NULL, "/tmp/bank.npy", ".safetensors"},
        {CGAM_I64, 0, NULL, "/tmp/b.safetensors", "a bank cannot hold i64"},
        {-1, -1, NULL, "/tmp/b.safetensors", "-1 values of alpha (at most 64)"},
        {-1, 1000, NULL, "/tmp/b.safetensors", "1000 values of alpha (at most 64)"},
        {-1, 2, wrong, "/tmp/b.safetensors", "alpha is inf"},
        {-1, 1, none, "/tmp/b.safetensors", "alpha is 0,"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        cgam_pack_opts o = cgam_pack_opts_default();
        o.dtype = list[i].dtype;
        o.alphas = list[i].alphas;
        o.alpha = list[i].alpha;
        CHECK_REFUSED(env, CGAM_E_ARG, list[i].message,
                      cgam_pack(env, "/nowhere.npy", &o, list[i].path));
    }
    CHECK_FAILS(env, CGAM_E_NOT_FOUND,
                cgam_pack(env, "/nowhere.npy", NULL, "/tmp/cgam-none.safetensors"));
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_pack_add(env, "/tmp/cgam-none.safetensors", "x", NULL));
    assert_int_equal(cgam_pack_describe(bank).alphas, 0);
}
