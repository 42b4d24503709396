/* Annealing: the pitchfork of two tied memories in closed form, a fold found by a scan, and on random banks
 * the branch against a fine walk of the plain map from beta = 0, written here. */
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include <cgam/recall.h>
#include <cgam/theory.h>

#include "support/owned.h"

static cgam_recall_opts annealed(double alpha, double beta, double lambda)
{
    return object_opts(CGAM_ANNEAL, alpha, beta, lambda);
}

static cgam_result anneal(const cgam_bank *bank, const cgam_recall_opts *o, const double *q,
                          const double *c, double *p, cgam_anneal *path)
{
    OWNED(cgam_recall) plan = object_recall(env, bank, o);
    cgam_result result;
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out out = {.results = &result, .p = p, .anneal = path};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return result;
}

static int count_of(const cgam_anneal *path, cgam_transition_kind kind, double *beta)
{
    int count = 0;
    for (int64_t i = 0; i < path->transitions; i++) {
        if (path->transition[i].kind != kind) continue;
        if (count++ == 0 && beta) *beta = path->transition[i].beta;
    }
    return count;
}

/* x = 1 / (1 + exp(-kappa (2x - 1))), kappa = beta lambda^2 / (1 - alpha), splits at kappa = 2. */
TEST(two_tied_memories_part_at_their_pitchfork)
{
    const double Z[] = {1, 0, 1, 0}, q[] = {0.3, 0.7};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    for (int k = 0; k < 12; k++) {
        double alpha = k % 3 * 0.3, lambda = 0.7 + 0.1 * k,
               beta_c = 2 * (1 - alpha) / (lambda * lambda);
        const double ends[] = {0.9, 1.1, 2, 10};
        for (int e = 0; e < 4; e++) {
            cgam_recall_opts o = annealed(alpha, ends[e] * beta_c, lambda);
            cgam_anneal path;
            double p[2], at = 0;
            cgam_result result = anneal(bank, &o, q, NULL, p, &path);
            assert_int_equal(result.end, CGAM_END_CONVERGED);
            assert_int_equal(count_of(&path, CGAM_TRANSITION_FOLD, NULL), 0);
            assert_int_equal(count_of(&path, CGAM_TRANSITION_PITCHFORK, &at), e > 0);
            assert_int_equal(count_of(&path, CGAM_TRANSITION_WINNER, NULL), 0);
            if (e > 0) assert_int_equal(result.winner, 0); /* the lowest index is favoured */
            if (e > 0) CHECK_REL(at, beta_c, 1e-5);
            /* by bisection */
            double low = 0.5 + 1e-9, high = 1, kappa = 2 * ends[e];
            for (int i = 0; i < 100; i++) {
                double x = (low + high) / 2;
                *(1 / (1 + exp(-kappa * (2 * x - 1))) > x ? &low : &high) = x;
            }
            CHECK_CLOSE(p[0], e > 0 ? low : 0.5, 1e-9);
            const cgam_anneal_point *last = &path.path[path.points - 1];
            assert_true(last->beta == o.beta && last->p == p[last->winner]); /* what is returned */
            for (int64_t i = 1; i < path.points; i++)
                CHECK_LE(path.path[i - 1].beta, path.path[i].beta);
            cgam_anneal_free(env, &path);
        }
    }
}

/* Sparsemax, orthogonal memories, no penalty, lambda = 1: p1 - p2 = beta gap / (1 - beta), which is steep
 * as beta nears 1 / (1 + gap), where it is 1 and the margin all but gone; yet nothing is a transition. */
TEST(a_steep_branch_is_no_fold)
{
    const double Z[] = {1, 0, 0, 1};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    for (double gap = 1e-2; gap > 5e-7; gap /= 10) {
        const double q[] = {gap, 0};
        cgam_recall_opts o = annealed(0, 1.5, 1);
        cgam_anneal path;
        double p[2];
        o.entmax = 2;
        cgam_result result = anneal(bank, &o, q, NULL, p, &path);
        assert_true(p[0] == 1 && result.exact);
        assert_int_equal(path.transitions, 0);
        CHECK_LE(path.points, 100);
        for (int64_t i = 0; i < path.points; i++) {
            double beta = path.path[i].beta, apart = fmin(beta * gap / (1 - beta), 1);
            if (beta > 1 / (1 + gap)) apart = 1;
            CHECK_CLOSE(path.path[i].p, (1 + apart) / 2, 1e-9 / gap);
        }
        cgam_anneal_free(env, &path);
    }
}

/* Five thousand steps of beta in equal ratios, and the plain map to rest at each. */
static void walk_finely(int64_t n, const double *Y, const double *a, double l2, double beta,
                        double *p, double *jump, double *where)
{
    enum { STEPS = 5000 };
    double from = 1e-2 * beta, r[8], next[8], before[8];
    for (int64_t i = 0; i < n; i++) p[i] = 1.0 / (double)n;
    *jump = 0;
    for (int k = 0; k <= STEPS; k++) {
        double now = from * pow(beta / from, (double)k / STEPS), moved, total = 0;
        memcpy(before, p, (size_t)n * sizeof *p);
        int rounds = 0;
        do {
            dense_score(n, n, Y, p, r);
            for (int64_t i = 0; i < n; i++) r[i] = a[i] + l2 * r[i];
            dense_softmax(n, now, r, next);
            moved = dense_distance(n, next, p);
            memcpy(p, next, (size_t)n * sizeof *p);
        } while (moved > 1e-13 && ++rounds < 200000);
        for (int64_t i = 0; i < n; i++) total = fmax(total, fabs(p[i] - before[i]));
        if (k > 0 && total > *jump) *jump = total, *where = now;
    }
}

TEST(the_branch_is_that_of_a_fine_walk)
{
    cgam_rng rng = cgam_rng_stream(41, 0);
    int folds = 0, smooth = 0, lower = 0;
    for (int k = 0; k < 100; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 6), d = 2 + cgam_rng_below(&rng, 5);
        double *Z = dense_bank(&rng, DENSE_UNIT, n, d), *a = dense_room(n), *Y = dense_room(n * n);
        double *q = dense_normals(&rng, d, 0.05), *c = dense_normals(&rng, d, 0.05),
               *e = dense_room(n);
        double *b = dense_room(n), *u = dense_room(n), *p = dense_room(n), *want = dense_room(n);
        double jump, where = 0, at = 0;
        double alpha = dense_critical(n, d, Z) * dense_between(&rng, 0, 0.7);
        double lambda = dense_between_log(&rng, 0.4, 1.2), beta = dense_between_log(&rng, 2, 30);
        cgam_recall_opts o = annealed(alpha, beta, lambda);
        double *A = dense_gate(n, d, Z, alpha);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++) e[j] = i == j;
            dense_solve(n, A, e, Y + i * n);
        }
        dense_score(n, d, Z, q, b);
        dense_score(n, d, Z, c, u);
        dense_score(n, n, Y, u, e);
        for (int64_t i = 0; i < n; i++) a[i] = b[i] + o.lambda * e[i];
        walk_finely(n, Y, a, o.lambda * o.lambda, o.beta, want, &jump, &where);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_anneal path;
        cgam_result result = anneal(bank, &o, q, c, p, &path), plain;
        int folded = count_of(&path, CGAM_TRANSITION_FOLD, &at);
        CHECK_CLOSE_ALL(p, want, n, 1e-6);
        if (folded == 1 && jump > 0.05) CHECK_REL(at, where, 3e-3);
        if (jump > 0.2) assert_true(folded > 0);
        if (jump < 0.005) assert_int_equal(folded, 0);
        o.mode = CGAM_COUPLED;
        CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &plain));
        lower += result.energy_end < plain.energy_end - 1e-9;
        folds += folded > 0;
        smooth += folded == 0;
        cgam_anneal_free(env, &path);
        dense_reset();
    }
    print_message("%d branches with folds, %d without, %d lower than the plain iteration\n", folds,
                  smooth, lower);
    CHECK_LE(5, folds);
    CHECK_LE(5, smooth);
}

TEST(what_cannot_be_annealed_is_refused)
{
    const double Z[] = {1, 0, 0, 1};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall *plan;
    cgam_recall_opts o = annealed(0, 2, 1);
    o.beta_start = 3;
    CHECK_REFUSED(env, CGAM_E_ARG, "beta-start is 3", cgam_recall_new(bank, &o, &plan));
    o.beta_start = 0;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_recall_new(bank, &o, &plan));
}

/* Without room for the factored operator the path is followed by the iteration alone, which ends where the other does; and where
 * the beginning is chosen, the branch is the same from there on. */
TEST(the_end_of_a_smooth_branch_is_the_same_by_all_ways)
{
    cgam_rng rng = cgam_rng_stream(43, 0);
    enum { N = 6, D = 4 };
    for (int k = 0; k < 4; k++) {
        double *Z = dense_bank(&rng, DENSE_UNIT, N, D), *q = dense_normals(&rng, D, 0.3);
        double p[3][N], alpha = 0.1 * k;
        OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
        for (int way = 0; way < 3; way++) {
            cgam_recall_opts o = annealed(alpha, 3, 0.6);
            cgam_anneal path;
            if (way == 1) o.memory_max = 1;
            if (way == 2) o.beta_start = 1.5;
            cgam_result result = anneal(bank, &o, q, q, p[way], &path);
            assert_int_equal(result.end, CGAM_END_CONVERGED);
            assert_int_equal(count_of(&path, CGAM_TRANSITION_FOLD, NULL), 0);
            if (way == 2) assert_true(path.path[0].beta == 1.5);
            for (int64_t i = 0; way == 1 && i < path.points; i++) /* who leads is read off p */
                assert_in_range(path.path[i].winner, 0, N - 1);
            cgam_anneal_free(env, &path);
        }
        CHECK_CLOSE_ALL(p[1], p[0], N, 1e-7);
        CHECK_CLOSE_ALL(p[2], p[0], N, 1e-7);
        dense_reset();
    }
}

/* A pitchfork; a fold at which the winner changes. */
typedef struct branch {
    int64_t n;
    const double *Z, *q, *c;
    double beta, lambda;
    int64_t transitions; /* at least */
    size_t memory_max;
} branch;

static int follow(cgam_env *own, void *arg)
{
    const branch *b = arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_result r;
    cgam_anneal path = {0};
    cgam_recall_opts o = annealed(0, b->beta, b->lambda);
    o.memory_max = b->memory_max;
    const cgam_recall_in in = {.queries = 1, .q = b->q, .c = b->c};
    cgam_status status =
        cgam_bank_new(own, b->Z, CGAM_F64, b->n, 2, &(cgam_bank_opts){.copy = true}, &bank);
    if (status == CGAM_OK) status = cgam_recall_new(bank, &o, &plan);
    if (status == CGAM_OK)
        status = cgam_recall_run(plan, &in, &(cgam_recall_out){.results = &r, .anneal = &path});
    if (status == CGAM_OK && path.transitions < b->transitions) status = CGAM_E_INTERNAL;
    cgam_anneal_free(own, &path);
    return status;
}

TEST(memory_may_end_at_any_turn_of_a_branch)
{
    const double tied[] = {1, 0, 1, 0}, apart[] = {1, 0, 0, 1, -1, 0}, q[] = {0.3, 0.7},
                 towards[] = {0.02, 0.019}, away[] = {-0.02, 0.03};
    branch cases[] = {
        {2, tied, q, NULL, 6, 1, 1, 0},
        {3, apart, towards, away, 12, 1, 0, 0},
        {3, apart, towards, away, 12, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t requests = check_every_allocation(follow, &cases[i]);
        assert_true(requests > 20);
    }
}

TEST_GROUP(set_up, tear_down)
