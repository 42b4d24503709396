/* Recalls on small banks by the engine of memory/small.c: it asks for no memory when a plan is used again, agrees with
 * the engine of vectors, and gives the same on every CPU.
 * ctest: labels=threads */
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "num/cpu/cpu.h"

enum { QUERIES = 37, TOP = 4, SHAPES = 6 };
static const int64_t shapes[SHAPES][2] = {{1, 3}, {5, 2}, {50, 10}, {57, 56}, {130, 33}, {300, 64}};

typedef struct scene {
    int64_t n, d;
    double *Z, *q, *c;
    cgam_recall_opts opts;
} scene;

typedef struct answers {
    cgam_result results[QUERIES];
    int64_t top[QUERIES * TOP];
    double top_p[QUERIES * TOP];
    double *p, *s, *r, *readout;
} answers;

/* Scene k: all shapes, modes and alphas in turn; queries between two memories. */
static scene draw(cgam_rng *rng, int k)
{
    scene x = {.n = shapes[k % SHAPES][0], .d = shapes[k % SHAPES][1]};
    x.Z = dense_bank(rng, DENSE_UNIT, x.n, x.d);
    x.q = dense_normals(rng, QUERIES * x.d, 0.3 / sqrt((double)x.d));
    x.c = dense_normals(rng, QUERIES * x.d, 0.5 / sqrt((double)x.d));
    for (int64_t v = 0; v < QUERIES; v++) {
        int64_t a = cgam_rng_below(rng, x.n), b = cgam_rng_below(rng, x.n);
        for (int64_t j = 0; j < x.d; j++)
            x.q[v * x.d + j] += 0.6 * x.Z[a * x.d + j] + 0.55 * x.Z[b * x.d + j];
    }
    x.opts = cgam_recall_opts_default();
    x.opts.mode = k / SHAPES % 2 ? CGAM_COUPLED : CGAM_FIRST;
    x.opts.alpha = k / SHAPES / 2 % 2 ? 0.3 : 0;
    x.opts.lambda = k % 5 ? 0.5 : 0.9;
    x.opts.beta = k % 3 ? 15 : 4;
    return x;
}

static answers room(const scene *x)
{
    return (answers){.p = dense_room(QUERIES * x->n),
                     .s = dense_room(QUERIES * x->n),
                     .r = dense_room(QUERIES * x->n),
                     .readout = dense_room(QUERIES * x->d)};
}

static void run(cgam_env *env, const cgam_recall *plan, const scene *x, int64_t queries, bool own,
                const double *start, answers *a)
{
    const cgam_recall_in in = {
        .queries = queries, .q = x->q, .c = x->c, .c_per_query = own, .start = start};
    const cgam_recall_out out = {.results = a->results,
                                 .top = TOP,
                                 .top_index = a->top,
                                 .top_p = a->top_p,
                                 .p = a->p,
                                 .s = a->s,
                                 .r = a->r,
                                 .readout = a->readout};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
}

TEST(a_plan_that_is_used_again_asks_for_no_memory)
{
    for (int threads = 1; threads <= 2; threads++) {
        failing_alloc counter = {0};
        cgam_env_opts opts = failing_alloc_opts(&counter, threads);
        cgam_env *env;
        CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
        cgam_rng rng = cgam_rng_stream(34, 1);
        for (int k = 0; k < 4 * SHAPES; k++) {
            scene x = draw(&rng, k);
            answers a = room(&x);
            cgam_bank *bank = object_bank(env, x.n, x.d, x.Z);
            cgam_recall *plan = object_recall(env, bank, &x.opts);
            for (int own = 0; own < 2; own++) {
                run(env, plan, &x, QUERIES, own, NULL, &a);
                bool slow = false; /* what coupled.c or the measured bounds were needed for */
                for (int v = 0; v < QUERIES; v++)
                    slow |= a.results[v].newton_steps > 0 || a.results[v].end != CGAM_END_CONVERGED;
                slow &= x.opts.mode == CGAM_COUPLED;
                int64_t before = atomic_load(&counter.requests);
                run(env, plan, &x, QUERIES, own, NULL, &a);
                run(env, plan, &x, 1, own, NULL, &a);
                int64_t asked = atomic_load(&counter.requests) - before;
                if (!slow && asked > 0)
                    fail_msg("scene %d, %lld x %lld, mode %d: %lld requests", k, (long long)x.n,
                             (long long)x.d, (int)x.opts.mode, (long long)asked);
            }
            cgam_recall_free(plan);
            cgam_bank_free(bank);
            dense_reset();
        }
        cgam_env_free(env);
    }
}

/* A start, or a sketch with p asked for, take queries to the engine of vectors. */
TEST(lanes_and_vectors_agree)
{
    cgam_env *env = object_env(2);
    cgam_rng rng = cgam_rng_stream(34, 2);
    int64_t proved = 0, fewer = 0;
    for (int k = 0; k < 4 * SHAPES; k++) {
        scene x = draw(&rng, k);
        answers fast = room(&x), slow = room(&x);
        cgam_bank *bank = object_bank(env, x.n, x.d, x.Z);
        cgam_recall *plan = object_recall(env, bank, &x.opts);
        const cgam_recall_in in = {.queries = QUERIES, .q = x.q, .c = x.c, .c_per_query = true};
        const cgam_recall_out out = {.results = fast.results};
        bool lanes = cgam_recall_route(plan, &in, &out).path == CGAM_PATH_LANES;
        assert_true(lanes || x.opts.alpha > 0);
        run(env, plan, &x, QUERIES, true, NULL, &fast);
        cgam_recall_free(plan);
        bool coupled = x.opts.mode == CGAM_COUPLED;
        cgam_recall_opts opts = x.opts;
        opts.mode = CGAM_FIRST;
        opts.fast = !coupled;
        plan = object_recall(env, bank, &opts);
        run(env, plan, &x, QUERIES, true, NULL, &slow);
        cgam_recall_free(plan);
        double *start = dense_room(QUERIES * x.n);
        memcpy(start, slow.p, (size_t)(QUERIES * x.n) * sizeof *start);
        plan = object_recall(env, bank, &x.opts);
        if (coupled) run(env, plan, &x, QUERIES, true, start, &slow);
        cgam_recall_free(plan);
        for (int v = 0; v < QUERIES; v++) {
            const cgam_result *a = &fast.results[v], *b = &slow.results[v];
            double apart = coupled ? 1e-9 : 1e-12;
            if (a->end != CGAM_END_CONVERGED && coupled) continue;
            CHECK_CLOSE_ALL(fast.p + v * x.n, slow.p + v * x.n, x.n, apart);
            CHECK_CLOSE_ALL(fast.s + v * x.n, slow.s + v * x.n, x.n, apart);
            CHECK_CLOSE_ALL(fast.readout + v * x.d, slow.readout + v * x.d, x.d, apart);
            assert_int_equal(a->winner, b->winner);
            int64_t top = x.n < TOP ? x.n : TOP;
            for (int64_t j = v * top; j < (v + 1) * top; j++)
                CHECK_CLOSE(fast.top_p[j], fast.p[v * x.n + fast.top[j]], 0);
            if (x.n > 1) CHECK_CLOSE(a->gap_gate, b->gap_gate, apart);
            CHECK_CLOSE(a->neff_entropy, b->neff_entropy, 1e3 * apart * (double)x.n);
            if (!coupled) continue;
            CHECK_CLOSE(a->energy_end, b->energy_end, 1e-12 * (1 + fabs(b->energy_end)));
            proved += b->p_error_proved;
            fewer += b->p_error_proved && !a->p_error_proved;
            CHECK_LE(a->p_error_proved ? a->p_error : 0, 1e-8);
        }
        cgam_bank_free(bank);
        dense_reset();
    }
    print_message("%lld bounds of p, %lld of them by vectors alone\n", (long long)proved,
                  (long long)fewer);
    assert_true(proved > 150 && 100 * fewer < proved);
    cgam_env_free(env);
}

TEST(every_cpu_gives_the_same)
{
    cgam_env *env = object_env(1);
    for (int k = 0; k < 4 * SHAPES; k++) {
        answers first = {.p = NULL}, wide = {.p = NULL};
        for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++) {
            if (!cpu->usable()) continue;
            cgam_cpu_pretend(cpu);
            cgam_rng rng = cgam_rng_stream(34, 3 + (uint64_t)k);
            scene x = draw(&rng, k);
            answers a = room(&x);
            cgam_bank *bank = object_bank(env, x.n, x.d, x.Z);
            cgam_recall *plan = object_recall(env, bank, &x.opts);
            run(env, plan, &x, QUERIES, true, NULL, &a);
            cgam_recall_free(plan);
            cgam_bank_free(bank);
            if (first.p) CHECK_CLOSE_ALL(a.p, first.p, QUERIES * x.n, 1e-10);
            else first = a;
            /* sets with fused operations add up in the same order, whatever their width */
            bool fused = strncmp(cpu->name, "avx", 3) == 0;
            if (fused && wide.p)
                assert_memory_equal(a.p, wide.p, (size_t)(QUERIES * x.n) * sizeof *a.p);
            if (fused && !wide.p && x.opts.alpha == 0) wide = a; /* with alpha LAPACK has a part */
        }
        dense_reset();
    }
    cgam_cpu_pretend(NULL);
    cgam_env_free(env);
}
