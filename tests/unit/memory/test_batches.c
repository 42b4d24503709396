/* A query gives the same bits alone, in a batch, with a shared context or its own copy of it, and on
 * any number of threads.
 * ctest: labels=threads */
#include "support/check.h"
#include "support/dense.h"
#include "support/objects.h"

#include "num/cpu/widen.h"

#include <pthread.h>

#include "support/owned.h"

enum { QUERIES = 13, TOP = 3 };

typedef struct problem {
    int64_t n, d, d_c;
    cgam_dtype dtype;
    void *data;
    double *q, *c;
    bool normalize;
    cgam_recall_opts opts;
} problem;

typedef struct answers {
    cgam_result results[QUERIES];
    int64_t top[QUERIES * TOP];
    double top_p[QUERIES * TOP];
    double *p, *s, *r, *readout;
} answers;

static problem draw(cgam_rng *rng, int k)
{
    /* tall banks of one chunk and of several, square and wide ones */
    static const int64_t shapes[][2] = {{40, 7}, {1300, 12}, {20, 20}, {9, 30}, {700, 40}};
    problem t = {.n = shapes[k % 5][0], .d = shapes[k % 5][1], .dtype = (cgam_dtype)(k / 5 % 4)};
    double *Z = dense_bank(rng, k % 3 ? DENSE_NORMS : DENSE_UNIT, t.n, t.d);
    t.data = dense_room(t.n * t.d);
    cgam_narrow(t.dtype, Z, t.n * t.d, t.data);
    t.normalize = k % 2;
    t.opts = cgam_recall_opts_default();
    t.opts.mode = k / 2 % 2 ? CGAM_COUPLED : CGAM_FIRST;
    t.opts.alpha = k % 7 == 0 ? 0 : t.normalize ? 0.4 : 0.05;
    t.opts.beta = 4;
    t.opts.lambda = k % 4 == 3 ? 0.9 : 0.5;
    t.opts.certify = t.n < 100 && k % 3 == 0;
    t.d_c = t.d;
    if (k % 6 >= 4) {
        t.d_c = t.opts.d_c = 5;
        double *M = dense_normals(rng, (k % 6 == 4 ? t.d : t.n) * t.d_c, 0.3);
        if (k % 6 == 4) t.opts.P = M;
        else t.opts.W = M;
    }
    t.q = dense_normals(rng, QUERIES * t.d, 1);
    t.c = dense_normals(rng, QUERIES * t.d_c, 0.5);
    return t;
}

static cgam_bank *bank_of(cgam_env *env, const problem *t)
{
    cgam_bank_opts opts = {.normalize = t->normalize};
    cgam_bank *bank;
    CHECK_STATUS(env, cgam_bank_new(env, t->data, t->dtype, t->n, t->d, &opts, &bank));
    return bank;
}

static answers *room_for(const problem *t)
{
    answers *a = (answers *)dense_room((int64_t)(sizeof *a / sizeof(double)) + 1);
    a->p = dense_room(QUERIES * t->n);
    a->s = dense_room(QUERIES * t->n);
    a->r = dense_room(QUERIES * t->n);
    a->readout = dense_room(QUERIES * t->d);
    return a;
}

/* Queries [from, from + count); own: each with its context, else all with the first. */
static cgam_status run(const cgam_recall *plan, const problem *t, int64_t from, int64_t count,
                       bool own, answers *a)
{
    cgam_recall_in in = {.queries = count,
                         .q = t->q + from * t->d,
                         .c = own ? t->c + from * t->d_c : t->c,
                         .c_per_query = own};
    cgam_recall_out out = {.results = a->results + from,
                           .top = TOP,
                           .top_index = a->top + from * TOP,
                           .top_p = a->top_p + from * TOP,
                           .p = a->p + from * t->n,
                           .s = a->s + from * t->n,
                           .r = a->r + from * t->n,
                           .readout = a->readout + from * t->d};
    return cgam_recall_run(plan, &in, &out);
}

static void same_double(double x, double y, const char *what)
{
    if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y)))
        fail_msg("%s differs: %.17g and %.17g", what, x, y);
}

static void same_bits(const problem *t, const answers *x, const answers *y, int64_t queries)
{
    size_t n = (size_t)(queries * t->n) * sizeof(double);
    assert_memory_equal(x->r, y->r, n);
    assert_memory_equal(x->p, y->p, n);
    assert_memory_equal(x->s, y->s, n);
    assert_memory_equal(x->readout, y->readout, (size_t)(queries * t->d) * sizeof(double));
    assert_memory_equal(x->top, y->top, (size_t)(queries * TOP) * sizeof(int64_t));
    assert_memory_equal(x->top_p, y->top_p, (size_t)(queries * TOP) * sizeof(double));
    for (int64_t k = 0; k < queries; k++) {
        const cgam_result *a = &x->results[k], *b = &y->results[k];
        assert_true(a->winner == b->winner && a->iterations == b->iterations && a->end == b->end &&
                    a->newton_steps == b->newton_steps && a->unique == b->unique);
        same_double(a->p, b->p, "p");
        same_double(a->log_p, b->log_p, "log p");
        same_double(a->gap, b->gap, "gap");
        same_double(a->neff_entropy, b->neff_entropy, "N_eff");
        same_double(a->energy_end, b->energy_end, "energy");
        same_double(a->energy_rise, b->energy_rise, "energy rise");
        same_double(a->contraction, b->contraction, "contraction");
        same_double(a->fold_margin, b->fold_margin, "fold margin");
        same_double(a->p_error, b->p_error, "error");
        same_double(a->local_contraction, b->local_contraction, "local contraction");
    }
}

TEST(a_batch_gives_the_bits_of_each_query_alone)
{
    OWNED(cgam_env) env = object_env(2);
    for (int k = 0; k < 30; k++) {
        cgam_rng rng = cgam_rng_stream(12, (uint64_t)k);
        problem t = draw(&rng, k);
        OWNED(cgam_bank) bank = bank_of(env, &t);
        OWNED(cgam_recall) plan = object_recall(env, bank, &t.opts);
        for (int own = 0; own < 2; own++) {
            answers *batch = room_for(&t), *alone = room_for(&t);
            CHECK_STATUS(env, run(plan, &t, 0, QUERIES, own, batch));
            for (int64_t i = 0; i < QUERIES; i++)
                CHECK_STATUS(env, run(plan, &t, i, 1, own, alone));
            same_bits(&t, batch, alone, QUERIES);
        }
        /* the context of query 0 shared, or copied for each */
        answers *shared = room_for(&t), *copied = room_for(&t);
        CHECK_STATUS(env, run(plan, &t, 0, QUERIES, false, shared));
        for (int64_t i = 1; i < QUERIES; i++)
            memcpy(t.c + i * t.d_c, t.c, (size_t)t.d_c * sizeof *t.c);
        CHECK_STATUS(env, run(plan, &t, 0, QUERIES, true, copied));
        same_bits(&t, shared, copied, QUERIES);
        dense_reset();
    }
}

TEST(threads_do_not_change_a_bit)
{
    static const int threads[] = {1, 2, 5};
    for (int k = 0; k < 30; k++) {
        cgam_rng rng = cgam_rng_stream(12, (uint64_t)(100 + k));
        problem t = draw(&rng, k);
        answers *a[3];
        for (int i = 0; i < 3; i++) {
            OWNED(cgam_env) env = object_env(threads[i]);
            OWNED(cgam_bank) bank = bank_of(env, &t);
            OWNED(cgam_recall) plan = object_recall(env, bank, &t.opts);
            a[i] = room_for(&t);
            CHECK_STATUS(env, run(plan, &t, 0, QUERIES, true, a[i]));
            same_bits(&t, a[i], a[0], QUERIES);
        }
        dense_reset();
    }
}

typedef struct caller {
    const cgam_recall *plan;
    const problem *t;
    answers *a;
    cgam_status status;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    c->status = CGAM_OK;
    for (int k = 0; k < 5 && c->status == CGAM_OK; k++)
        c->status = run(c->plan, c->t, 0, QUERIES, true, c->a);
    return NULL;
}

TEST(several_threads_may_run_one_plan)
{
    enum { CALLERS = 3 };
    for (int k = 1; k < 5; k++) {
        cgam_rng rng = cgam_rng_stream(12, (uint64_t)(200 + k));
        problem t = draw(&rng, k);
        OWNED(cgam_env) env = object_env(3);
        OWNED(cgam_bank) bank = bank_of(env, &t);
        OWNED(cgam_recall) plan = object_recall(env, bank, &t.opts);
        answers *want = room_for(&t);
        CHECK_STATUS(env, run(plan, &t, 0, QUERIES, true, want));
        caller callers[CALLERS];
        pthread_t ids[CALLERS];
        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (caller){plan, &t, room_for(&t), CGAM_OK};
            assert_int_equal(pthread_create(&ids[i], NULL, call, &callers[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++) {
            assert_int_equal(pthread_join(ids[i], NULL), 0);
            CHECK_STATUS(env, callers[i].status);
            same_bits(&t, callers[i].a, want, QUERIES);
        }
        dense_reset();
    }
}

static _Atomic int asked;
static bool on_the_tenth(void *user)
{
    (void)user;
    return asked++ >= 10;
}

TEST(a_recall_stops_on_request)
{
    cgam_rng rng = cgam_rng_stream(12, 300);
    problem t = draw(&rng, 3);
    cgam_env_opts opts = {.threads = 2, .interrupted = on_the_tenth};
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    asked = -1000000;
    OWNED(cgam_bank) bank = bank_of(env, &t);
    OWNED(cgam_recall) plan = object_recall(env, bank, &t.opts);
    answers *a = room_for(&t);
    asked = 0;
    CHECK_FAILS(env, CGAM_E_INTERRUPTED, run(plan, &t, 0, QUERIES, true, a));
    dense_reset();
}
