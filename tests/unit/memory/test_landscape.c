/* Landscapes whose fixed points are known: two tied memories, N tied memories without penalty, unique
 * ones; and on random banks what holds of any: the points are fixed, the Morse sum is 1, the lowest is
 * no higher than where a recall ends. */
#include "support/one_env.h"

#include <cgam/recall.h>
#include <cgam/theory.h>

#include "support/owned.h"

static cgam_recall_opts coupled(double alpha, double beta, double lambda)
{
    cgam_recall_opts o = object_opts(CGAM_COUPLED, alpha, beta, lambda);
    o.certify = true;
    return o;
}

static cgam_landscape find(const cgam_bank *bank, const cgam_recall_opts *o, const double *q,
                           const double *c, int64_t starts)
{
    OWNED(cgam_recall) plan = object_recall(env, bank, o);
    cgam_landscape_opts opts = cgam_landscape_opts_default();
    cgam_landscape found;
    opts.starts = starts;
    CHECK_STATUS(env, cgam_landscape_find(plan, q, c, &opts, &found));
    return found;
}

/* The root x > 1/2 of x = 1 / (1 + exp(-kappa (2x - 1))), in long double. */
static long double leaning(long double kappa)
{
    long double low = 0.5L + 1e-12L, high = 1;
    for (int k = 0; k < 200; k++) {
        long double x = (low + high) / 2;
        *(1 / (1 + expl(-kappa * (2 * x - 1))) > x ? &low : &high) = x;
    }
    return low;
}

/* Two equal memories, a query that cannot tell them apart: with difference mode 1 - alpha n of A the
 * map is x -> sigma(kappa (2x - 1)), kappa = beta lambda^2 / (1 - alpha), and splits at kappa = 2. */
TEST(two_tied_memories_have_a_pitchfork)
{
    const double Z[] = {1, 0, 1, 0}, q[] = {0.3, 0.7}, c[] = {0.2, 0};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    const double alphas[] = {0, 0.4}, kappas[] = {1.5, 1.99, 2.05, 3, 20};
    for (int a = 0; a < 2; a++) {
        for (int k = 0; k < 5; k++) {
            double beta = 2, lambda = sqrt(kappas[k] * (1 - alphas[a]) / beta);
            cgam_recall_opts o = coupled(alphas[a], beta, lambda);
            cgam_landscape x = find(bank, &o, q, c, 16);
            assert_int_equal(x.unresolved, 0);
            assert_int_equal(x.euler, 1);
            if (kappas[k] < 2) {
                assert_int_equal(x.count, 1);
                assert_true(x.points[0].minimum && x.unique == 1 && x.unique_proved);
                assert_true(x.points[0].basin == 1);
            } else {
                double lean = (double)leaning(kappas[k]);
                assert_int_equal(x.count, 3);
                assert_true(x.unique == 0 && x.unique_proved);
                for (int i = 0; i < 2; i++) {
                    assert_true(x.points[i].minimum && x.points[i].fold_margin > 0);
                    CHECK_CLOSE(x.points[i].p, lean, 1e-11 / (kappas[k] - 2));
                    CHECK_LE(x.points[i].energy, x.points[2].energy);
                }
                assert_int_equal(x.points[0].winner + x.points[1].winner, 1);
                CHECK_CLOSE(x.points[0].energy, x.points[1].energy, 1e-13);
                assert_true(!x.points[2].minimum && x.points[2].index == 1);
                CHECK_CLOSE(x.points[2].p, 0.5, 1e-12);
                /* 1 - alpha - lambda^2 beta / 2 along (1, -1) */
                CHECK_CLOSE(x.points[2].fold_margin, (1 - alphas[a]) * (1 - kappas[k] / 2), 1e-8);
                CHECK_LE(0.25, x.points[0].basin);
                CHECK_CLOSE(x.points[0].basin, x.points[1].basin, 0.3);
            }
            cgam_landscape_free(env, &x);
        }
    }
}

/* Orthogonal memories, no query, no penalty: each p_i is one of two values, and far past the threshold
 * every set of k >= 1 equal leaders is one point of index k - 1: 2^n - 1 in all. */
TEST(tied_memories_without_penalty_are_counted)
{
    for (int64_t n = 2; n <= 4; n++) {
        double Z[16] = {0}, q[4] = {0}, choose = 1;
        for (int64_t i = 0; i < n; i++) Z[i * n + i] = 1;
        OWNED(cgam_bank) bank = object_bank(env, n, n, Z);
        cgam_recall_opts o = coupled(0, 12, 1);
        cgam_landscape x = find(bank, &o, q, NULL, 200);
        int64_t at = 0;
        assert_int_equal(x.count, (1 << n) - 1);
        assert_int_equal(x.unresolved, 0);
        for (int64_t k = 1; k <= n; k++) { /* energies rise with the number that shares */
            choose = choose * (double)(n - k + 1) / (double)k;
            for (int j = 0; j < (int)choose; j++, at++) {
                assert_int_equal(x.points[at].index, k - 1);
                CHECK_CLOSE(x.points[at].neff_entropy, (double)k, 0.1 * (double)k);
            }
        }
        cgam_landscape_free(env, &x);
    }
}

TEST(any_landscape_is_made_of_fixed_points)
{
    cgam_rng rng = cgam_rng_stream(31, 0);
    int several = 0, whole = 0, all = 0, saddles = 0;
    for (int k = 0; k < 120; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 5), d = 1 + cgam_rng_below(&rng, 6);
        double *Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_KINDS), n, d);
        double *q = dense_normals(&rng, d, 0.2), *c = dense_normals(&rng, d, 0.2);
        double *b = dense_room(n), *u = dense_room(n);
        double alpha = dense_critical(n, d, Z) * dense_between(&rng, 0, 0.8);
        double lambda = dense_between_log(&rng, 0.3, 2), beta = dense_between_log(&rng, 0.5, 10);
        cgam_recall_opts o = coupled(alpha, beta, lambda);
        double *A = dense_gate(n, d, Z, alpha), *s = dense_room(n), *r = dense_room(n);
        double *p = dense_room(n), eta = dense_eigen(n, A, NULL)[0];
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_landscape x = find(bank, &o, q, c, 60);
        dense_score(n, d, Z, q, b);
        dense_score(n, d, Z, c, u);
        for (int64_t i = 0; i < x.count; i++) {
            const cgam_point *at = &x.points[i];
            double *w = dense_room(n), basin = 0;
            for (int64_t j = 0; j < n; j++) w[j] = u[j] + o.lambda * x.p[i * n + j];
            dense_solve(n, A, w, s);
            for (int64_t j = 0; j < n; j++) r[j] = b[j] + o.lambda * s[j];
            dense_softmax(n, o.beta, r, p);
            CHECK_LE(dense_distance(n, p, x.p + i * n),
                     (1 + o.beta * o.lambda * o.lambda / eta) * (at->p_error + 1e-11));
            /* the Hessian, written out: its index and its least eigenvalue */
            double *H = dense_room(n * n);
            for (int64_t j = 0; j < n; j++)
                for (int64_t l = 0; l < n; l++)
                    H[j * n + l] = A[j * n + l] -
                                   o.lambda * o.lambda * o.beta * (p[j] * (j == l) - p[j] * p[l]);
            double *values = dense_eigen(n, H, NULL);
            int64_t down = 0;
            for (int64_t j = 0; j < n; j++) down += values[j] < 0;
            assert_int_equal(down, at->index);
            if (fabs(values[0]) > 1e-3) assert_true(at->p_error_proved && at->p_error < 1e-6);
            saddles += !at->minimum;
            CHECK_CLOSE(at->fold_margin, values[0], 1e-6 * (1 + fabs(values[0])));
            for (int64_t j = 0; j < x.count; j++) basin += x.points[j].basin;
            CHECK_LE(basin, 1 + 1e-12);
            if (i > 0) CHECK_LE(x.points[i - 1].energy, at->energy);
        }
        cgam_result end;
        o.certify = false;
        CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &end));
        assert_true(x.count >= 1);
        CHECK_LE(x.points[0].energy, end.energy_end + 1e-10 * (1 + fabs(end.energy_end)));
        if (end.unique == 1) assert_true(x.count == 1 && x.unique == 1);
        several += x.count > 1;
        whole += x.euler == 1;
        assert_int_equal(x.unresolved, 0);
        all++;
        cgam_landscape_free(env, &x);
        dense_reset();
    }
    CHECK_LE(20, several);
    CHECK_LE(20, saddles);
    assert_int_equal(whole, all);
}

/* A recall that starts at a corner ends where the iteration from it does, and one that starts at a minimum
 * stays; weights count up to their sum. */
TEST(a_recall_may_start_anywhere)
{
    const double Z[] = {1, 0, 1, 0}, q[] = {0.3, 0.7, 0.3, 0.7, 0.3, 0.7};
    double start[] = {2, 0, 0, 3, 1, 1}, p[6];
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall_opts o = coupled(0, 2, sqrt(1.5));
    cgam_recall *plan = object_recall(env, bank, &o);
    cgam_recall_in in = {.queries = 3, .q = q, .start = start};
    cgam_recall_out out = {.p = p};
    double lean = (double)leaning(3);
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    CHECK_CLOSE(p[0], lean, 1e-10);
    CHECK_CLOSE(p[3], lean, 1e-10);
    CHECK_CLOSE(p[4], 0.5, 1e-12); /* on the ridge */
    start[2] = -1;
    CHECK_REFUSED(env, CGAM_E_ARG, "the start of query 1 has weight -1 at 0",
                  cgam_recall_run(plan, &in, &out));
    start[2] = start[3] = 0;
    CHECK_REFUSED(env, CGAM_E_ARG, "the weights of the start of query 1 sum to 0",
                  cgam_recall_run(plan, &in, &out));
    cgam_recall_free(plan);
    o.mode = CGAM_FIRST;
    plan = object_recall(env, bank, &o);
    CHECK_REFUSED(env, CGAM_E_ARG, "start requires mode coupled, not mode first",
                  cgam_recall_run(plan, &in, &out));
    cgam_recall_free(plan);
}

/* Who listens hears of minima, then of saddles, each as far as it has come, to the end; and finds what others find. */
typedef struct heard {
    int calls[2], wrong;
    cgam_progress_at last[2];
} heard;

static void hear(void *user, const cgam_progress_at *at)
{
    heard *h = user;
    int saddles = strcmp(at->phase, "saddles") == 0;
    h->wrong += !saddles && (strcmp(at->phase, "minima") != 0 || h->calls[1] > 0);
    h->wrong += !(at->done > h->last[saddles].done) || !(at->done <= at->total);
    h->calls[saddles]++;
    h->last[saddles] = *at;
}

TEST(a_long_search_tells_how_far_it_is)
{
    const double Z[] = {1, 0, 0, 1, -1, 0}, q[] = {0.02, 0.019};
    OWNED(cgam_bank) bank = object_bank(env, 3, 2, Z);
    cgam_recall_opts o = coupled(0, 8, 1);
    OWNED(cgam_recall) plan = object_recall(env, bank, &o);
    heard h = {.wrong = 0};
    cgam_landscape quiet, told;
    cgam_landscape_opts opts = {.starts = 20};
    CHECK_STATUS(env, cgam_landscape_find(plan, q, NULL, &opts, &quiet));
    opts.progress = (cgam_progress){hear, &h};
    CHECK_STATUS(env, cgam_landscape_find(plan, q, NULL, &opts, &told));
    assert_true(told.count == quiet.count && told.euler == quiet.euler && told.count > 1);
    assert_int_equal(h.wrong, 0);
    assert_in_range(h.calls[0], 2, told.starts);
    assert_true(h.last[0].done == (double)told.starts && h.last[0].total == h.last[0].done);
    assert_true(h.calls[1] > h.calls[0] && h.last[1].done == h.last[1].total);
    cgam_landscape_free(env, &quiet);
    cgam_landscape_free(env, &told);
}

TEST(what_has_no_landscape_is_refused)
{
    const double Z[] = {1, 0, 0, 1}, q[] = {1, 0};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_recall *plan = object_recall(env, bank, &o);
    cgam_landscape x;
    CHECK_REFUSED(env, CGAM_E_ARG, "landscape requires mode coupled, not first",
                  cgam_landscape_find(plan, q, NULL, NULL, &x));
    cgam_recall_free(plan);
    o.mode = CGAM_COUPLED;
    plan = object_recall(env, bank, &o);
    cgam_landscape_opts opts = {.starts = -1};
    CHECK_FAILS(env, CGAM_E_ARG, cgam_landscape_find(plan, q, NULL, &opts, &x));
    assert_true(x.points == NULL && x.p == NULL);
    cgam_recall_free(plan);
}

TEST_GROUP(set_up, tear_down)
