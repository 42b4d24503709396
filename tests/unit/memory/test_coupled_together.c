/* Many coupled recalls as products of matrices: the answers of the one-by-one path, to its
 * tolerance, and the same bits on any number of threads.
 * ctest: labels=threads */
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "num/cpu/widen.h"

#include "support/owned.h"

enum { N = 2700, D = 100, QUERIES = 21 };

typedef struct problem {
    cgam_dtype dtype;
    void *data;
    double *q, *c;
    bool normalize;
    cgam_recall_opts opts;
} problem;

typedef struct answers {
    cgam_result results[QUERIES];
    double *p, *s, *r, *readout;
} answers;

static problem draw(cgam_rng *rng, int k)
{
    problem t = {.dtype = (cgam_dtype)(CGAM_F32 + k % 3), .normalize = k % 2};
    double *Z = dense_bank(rng, k % 3 ? DENSE_NORMS : DENSE_UNIT, N, D);
    t.data = dense_room(N * D);
    cgam_narrow(t.dtype, Z, N * D, t.data);
    t.opts = cgam_recall_opts_default();
    t.opts.mode = CGAM_COUPLED;
    t.opts.alpha = t.normalize ? 0.3 : 0.02;
    t.opts.beta = k < 4 ? 4 : 10;
    t.opts.lambda = k % 4 == 3 ? 0.9 : 0.4;
    t.q = dense_normals(rng, QUERIES * D, 0.1);
    for (int64_t v = 0; v < QUERIES; v++) /* near a memory, so that there is something to recall */
        for (int64_t j = 0; j < D; j++) t.q[v * D + j] += (v % 3 ? 0.8 : 0) * Z[(31 * v) * D + j];
    t.c = k % 5 == 4 ? NULL : dense_normals(rng, QUERIES * D, 0.1);
    return t;
}

static answers *ask(cgam_env *env, const problem *t, bool together)
{
    cgam_bank_opts bank_opts = {.normalize = t->normalize};
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    answers *a = (answers *)(void *)dense_room((int64_t)(sizeof *a / sizeof(double)) + 1);
    a->p = dense_room(QUERIES * N);
    a->s = dense_room(QUERIES * N);
    a->r = dense_room(QUERIES * N);
    a->readout = dense_room(QUERIES * D);
    CHECK_STATUS(env, cgam_bank_new(env, t->data, t->dtype, N, D, &bank_opts, &bank));
    CHECK_STATUS(env, cgam_recall_new(bank, &t->opts, &plan));
    for (int64_t v = 0; v < QUERIES; v += together ? QUERIES : 1) {
        cgam_recall_in in = {.queries = together ? QUERIES : 1,
                             .q = t->q + v * D,
                             .c = t->c ? t->c + v * D : NULL,
                             .c_per_query = true};
        cgam_recall_out out = {.results = a->results + v,
                               .p = a->p + v * N,
                               .s = a->s + v * N,
                               .r = a->r + v * N,
                               .readout = a->readout + v * D};
        assert_int_equal(cgam_recall_route(plan, &in, &out).path,
                         together ? CGAM_PATH_COUPLED_TOGETHER : CGAM_PATH_COUPLED);
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    }
    return a;
}

TEST(together_is_one_by_one)
{
    OWNED(cgam_env) env = object_env(2);
    for (int k = 0; k < 9; k++) {
        cgam_rng rng = cgam_rng_stream(71, (uint64_t)k);
        problem t = draw(&rng, k);
        const answers *want = ask(env, &t, false), *got = ask(env, &t, true);
        for (int64_t v = 0; v < QUERIES; v++) {
            const cgam_result *x = &got->results[v], *y = &want->results[v];
            assert_int_equal(x->end, CGAM_END_CONVERGED);
            assert_int_equal(x->winner, y->winner);
            CHECK_LE(x->change, t.opts.tol);
            CHECK_CLOSE(x->p, y->p, 1e-10);
            CHECK_CLOSE(x->energy_start, y->energy_start, 1e-10);
            CHECK_CLOSE(x->energy_end, y->energy_end, 1e-10);
            CHECK_LE(x->energy_rise, 1e-12);
            /* a reference costs a step in double, and at least one in f32 that finds it settled */
            CHECK_LE(fabs((double)(x->iterations - y->iterations)),
                     6 + 0.2 * (double)y->iterations);
        }
        CHECK_CLOSE_ALL(got->p, want->p, QUERIES * N, 1e-10);
        CHECK_CLOSE_ALL(got->r, want->r, QUERIES * N, 1e-10);
        CHECK_CLOSE_ALL(got->s, want->s, QUERIES * N, 1e-9);
        CHECK_CLOSE_ALL(got->readout, want->readout, QUERIES * D, 1e-10);
        dense_reset();
    }
}

/* Memories that are alike share their probability, also where a query is near them and rounding would
 * pick one past a fold. */
TEST(equal_memories_stay_equal_together)
{
    OWNED(cgam_env) env = object_env(2);
    static const int64_t twins[] = {31, 32, 1900};
    for (int k = 0; k < 6; k++) {
        cgam_rng rng = cgam_rng_stream(73, (uint64_t)k);
        problem t = draw(&rng, k);
        size_t row = D * cgam_dtype_size(t.dtype);
        char *rows = t.data;
        for (int i = 1; i < 3; i++)
            memcpy(rows + (size_t)twins[i] * row, rows + (size_t)twins[0] * row, row);
        t.opts.lambda = 1.2; /* query 1 is near the first of them */
        const answers *want = ask(env, &t, false), *got = ask(env, &t, true);
        for (int64_t v = 0; v < QUERIES; v++) {
            const double *p = got->p + v * N;
            assert_true(p[twins[1]] == p[twins[0]] && p[twins[2]] == p[twins[0]]);
            assert_int_equal(got->results[v].winner, want->results[v].winner);
            assert_int_equal(got->results[v].end, want->results[v].end);
        }
        CHECK_CLOSE_ALL(got->p, want->p, QUERIES * N, 1e-9);
        dense_reset();
    }
}

/* Feedback so strong that scores leap by more than f32 can hold, and a memory or two whose pivot nearly
 * vanishes, are no reason to go alone. */
TEST(leaps_and_small_pivots_stay_together)
{
    OWNED(cgam_env) env = object_env(2);
    for (int k = 0; k < 4; k++) {
        cgam_rng rng = cgam_rng_stream(75, (uint64_t)k);
        problem t = draw(&rng, 1);
        float *Z = t.data;
        t.dtype = CGAM_F32;
        t.normalize = false;
        t.opts.beta = 1;
        t.opts.lambda = k < 2 ? 12 : 0.5;
        for (int64_t i = 0; i < N * D; i++) Z[i] = (float)(0.1 * cgam_rng_normal(&rng));
        float *longest = Z + (k == 3 ? 2000 * D : 0); /* first, or after many others */
        for (int64_t j = 0; j < D; j++) longest[j] *= 3;
        double norm2 = 0;
        for (int64_t j = 0; j < D; j++) norm2 += (double)longest[j] * (double)longest[j];
        t.opts.alpha = (k % 2 ? 0.995 : 0.3) / norm2;
        const answers *want = ask(env, &t, false), *got = ask(env, &t, true);
        for (int64_t v = 0; v < QUERIES; v++) {
            const cgam_result *x = &got->results[v], *y = &want->results[v];
            assert_int_equal(x->end, y->end);
            assert_int_equal(x->winner, y->winner);
            CHECK_CLOSE(x->energy_end, y->energy_end, 1e-9 * fabs(y->energy_end));
            CHECK_LE((double)x->iterations, 8 + 1.5 * (double)y->iterations);
        }
        CHECK_CLOSE_ALL(got->p, want->p, QUERIES * N, 1e-9);
        CHECK_CLOSE_ALL(got->r, want->r, QUERIES * N, 1e-7);
        dense_reset();
    }
}

/* A last iteration that is not the fixed point is one exact step from the last but one. */
TEST(stopping_early_says_so)
{
    OWNED(cgam_env) env = object_env(2);
    for (int most = 1; most <= 4; most++) {
        cgam_rng rng = cgam_rng_stream(72, 0);
        problem t = draw(&rng, 7);
        t.opts.plain = true;
        t.opts.tol = 0;
        t.opts.max_iter = most;
        const answers *want = ask(env, &t, false), *got = ask(env, &t, true);
        for (int64_t v = 0; v < QUERIES; v++) {
            assert_int_equal(got->results[v].end, CGAM_END_MAX_ITER);
            assert_int_equal(got->results[v].iterations, most);
        }
        CHECK_CLOSE_ALL(got->p, want->p, QUERIES * N, 1e-6);
        dense_reset();
    }
}

/* Few digits asked for: no more iterations than they need, alone or together. */
TEST(a_loose_tolerance_is_soon_met)
{
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(74, 0);
    problem t = draw(&rng, 6);
    t.opts.tol = 1e-3;
    const answers *alone = ask(env, &t, false), *got = ask(env, &t, true);
    for (int64_t v = 0; v < QUERIES; v++) {
        assert_int_equal(alone->results[v].end, CGAM_END_CONVERGED);
        assert_int_equal(got->results[v].end, CGAM_END_CONVERGED);
        CHECK_LE(fabs((double)(got->results[v].iterations - alone->results[v].iterations)), 4);
    }
    dense_reset();
}

/* More queries than go side by side: the last group is short. */
TEST(groups_follow_one_another)
{
    enum { MANY = 75 };
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(75, 0);
    problem t = draw(&rng, 3);
    double *q = dense_room(MANY * D), *p = dense_room(MANY * N), *one = dense_room(N);
    for (int64_t v = 0; v < MANY; v++)
        for (int64_t j = 0; j < D; j++)
            q[v * D + j] = t.q[v % QUERIES * D + j] * (1 + (double)(v / QUERIES));
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_bank_opts bank_opts = {.normalize = t.normalize};
    CHECK_STATUS(env, cgam_bank_new(env, t.data, t.dtype, N, D, &bank_opts, &bank));
    CHECK_STATUS(env, cgam_recall_new(bank, &t.opts, &plan));
    cgam_recall_in in = {.queries = MANY, .q = q};
    cgam_recall_out out = {.p = p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    for (int64_t v = 0; v < MANY; v += 9) {
        cgam_recall_in alone = {.queries = 1, .q = q + v * D};
        cgam_recall_out single = {.p = one};
        CHECK_STATUS(env, cgam_recall_run(plan, &alone, &single));
        CHECK_CLOSE_ALL(p + v * N, one, N, 1e-10);
    }
    dense_reset();
}

/* Every request of a run fails, and a stop is wished at any time: it is told, nothing is left, and the plan answers as before. */
TEST(a_run_that_fails_leaves_its_plan_as_it_was)
{
    enum { FEW = 8 };
    cgam_rng rng = cgam_rng_stream(76, 0);
    problem t = draw(&rng, 5);
    t.opts.tol = 1e-9; /* two references */
    failing_alloc memory = {0};
    const cgam_env_opts opts = failing_alloc_opts(&memory, 1);
    cgam_env *env;
    cgam_bank *bank;
    cgam_recall *plan;
    cgam_result first[FEW], again[FEW];
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    const cgam_bank_opts bank_opts = {.normalize = t.normalize};
    CHECK_STATUS(env, cgam_bank_new(env, t.data, t.dtype, N, D, &bank_opts, &bank));
    CHECK_STATUS(env, cgam_recall_new(bank, &t.opts, &plan));
    const cgam_recall_in in = {.queries = FEW, .q = t.q};
    const cgam_recall_out one = {.results = first}, other = {.results = again};
    assert_int_equal(cgam_recall_route(plan, &in, &one).path, CGAM_PATH_COUPLED_TOGETHER);
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &one));
    for (int stop = 0; stop < 2; stop++) {
        int64_t k = 1, step = 6 - check_trials(5); /* fewer under a sanitizer */
        for (;; k += step) {
            int64_t live = memory.live;
            memory.requests = memory.looks = 0;
            *(stop ? &memory.stop_at : &memory.fail_at) = k;
            const cgam_status status = cgam_recall_run(plan, &in, &other);
            memory.stop_at = memory.fail_at = 0;
            if ((stop ? memory.looks : memory.requests) < k) break;
            if (status != (stop ? CGAM_E_INTERRUPTED : CGAM_E_NOMEM) || memory.live != live)
                fail_msg("%s %d: status %d, and %d blocks more", stop ? "look" : "request", (int)k,
                         status, (int)(memory.live - live));
            if (!stop) CHECK_MESSAGE(env, "out of memory");
            if (stop && k > 8) k += k / 4;
        }
        assert_true(k > 8);
        memset(again, 0, sizeof again);
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &other));
        for (int v = 0; v < FEW; v++) {
            assert_int_equal(again[v].winner, first[v].winner);
            CHECK_CLOSE(again[v].p, first[v].p, 0);
        }
    }
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    cgam_env_free(env);
    assert_int_equal(memory.live, 0);
    dense_reset();
}

TEST(threads_change_no_bit)
{
    const answers *first = NULL;
    cgam_rng rng = cgam_rng_stream(73, 0);
    problem t = draw(&rng, 5);
    for (int threads = 1; threads <= 3; threads++) {
        OWNED(cgam_env) env = object_env(threads);
        const answers *a = ask(env, &t, true);
        if (!first) first = a;
        assert_memory_equal(first->p, a->p, QUERIES * N * sizeof(double));
        assert_memory_equal(first->r, a->r, QUERIES * N * sizeof(double));
        assert_memory_equal(first->readout, a->readout, QUERIES * D * sizeof(double));
    }
    dense_reset();
}
