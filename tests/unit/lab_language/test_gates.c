/* Gates over a vocabulary: scores, couplings and fixed points by n x n matrices on 400 rows, what one
 * decomposition gives for all alpha, and recalls by themselves.
 * ctest: labels=threads */
#include "lab/language/sweep.h"
#include "memory/gate.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "lab/language/gates.h"

#include "support/owned.h"

enum { N = 400, D = 24, QUERIES = 13, LABELS = 3 };

static float Z[N * D];
static double exact[N * D]; /* the same, at unit length where the bank is */
static double q[2][QUERIES * D], c[2][D], factor[2][QUERIES];
static const int32_t tokens[LABELS] = {17, 230, 8};
static int32_t target[QUERIES];

static cgam_bank *draw(cgam_env *env, bool unit)
{
    cgam_rng rng = cgam_rng_stream(41, 0);
    cgam_bank *bank;
    cgam_bank_opts opts = {.normalize = unit};
    for (int64_t i = 0; i < N; i++) {
        double size = dense_between(&rng, 0.5, 1.5);
        for (int64_t j = 0; j < D; j++)
            Z[i * D + j] = (float)(size * (0.2 * cgam_rng_normal(&rng) + (j == 0 ? 0.6 : 0)));
    }
    for (int64_t i = 0; i < N * D; i++) exact[i] = (double)Z[i];
    if (unit) dense_normalize(N, D, exact);
    for (int64_t i = 0; i < QUERIES; i++) {
        target[i] = i == 4 ? -1 : (int32_t)cgam_rng_below(&rng, LABELS);
        for (int h = 0; h < 2; h++) {
            factor[h][i] = dense_between(&rng, 0.5, 2);
            for (int64_t j = 0; j < D; j++) {
                double pull = target[i] < 0 ? 0 : exact[tokens[target[i]] * D + j];
                q[h][i * D + j] = 2 * pull + cgam_rng_normal(&rng);
            }
        }
    }
    for (int h = 0; h < 2; h++)
        for (int64_t j = 0; j < D; j++)
            c[h][j] = 2 * exact[tokens[2] * D + j] - exact[tokens[0] * D + j] +
                      0.5 * cgam_rng_normal(&rng);
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F32, N, D, &opts, &bank));
    return bank;
}

static cgam_gates_input input(cgam_sweep_over over)
{
    return (cgam_gates_input){.queries = QUERIES,
                              .q = {q[0], q[1]},
                              .c = {c[0], c[1]},
                              .factor = {factor[0], factor[1]},
                              .labels = LABELS,
                              .tokens = tokens,
                              .target = target,
                              .over = over};
}

/* ---- The judge ---------------------------------------------------------------------------- */
/* How many of a half are right at a coupling: over labels, or over all rows. */
static int64_t hits(int half, const double *b, const double *t, bool all, double lambda)
{
    int64_t held = 0;
    for (int64_t i = half; i < QUERIES; i += 2) {
        if (target[i] < 0) continue;
        bool first = true;
        int64_t y = tokens[target[i]];
        double scale = lambda * factor[half][i];
        for (int64_t m = 0; m < N && first; m++) {
            bool rival = all;
            for (int k = 0; k < LABELS; k++) rival = rival || tokens[k] == m;
            if (rival && m != y) first = b[i * N + y] + scale * t[y] > b[i * N + m] + scale * t[m];
        }
        held += first;
    }
    return held;
}

static void check_answer(const cgam_gates_answer *got, const double *r, double allowed)
{
    double p[N], entropy = 0, squares = 0;
    int64_t top = 0, label = 0;
    dense_softmax(N, 1, r, p);
    for (int64_t m = 0; m < N; m++) {
        top = r[m] > r[top] ? m : top;
        entropy -= p[m] > 0 ? p[m] * log(p[m]) : 0;
        squares += p[m] * p[m];
    }
    for (int k = 1; k < LABELS; k++) label = r[tokens[k]] > r[tokens[label]] ? k : label;
    assert_int_equal(got->winner, top);
    assert_int_equal(got->label, label);
    CHECK_CLOSE(got->p, p[top], allowed);
    CHECK_CLOSE(got->log_neff_entropy, entropy, 10 * allowed);
    CHECK_CLOSE(got->log_neff_ipr, -log(squares), 10 * allowed);
}

static void apply(const long double *inverse, const double *x, double *y)
{
    for (int64_t i = 0; i < N; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < N; j++) sum += inverse[i * N + j] * (long double)x[j];
        y[i] = (double)sum;
    }
}

/* Both modes at one alpha by A itself. */
static void judge(double alpha, const cgam_gates_answers *got, bool all)
{
    double *A = dense_gate(N, D, exact, alpha);
    const long double *inverse = dense_inverse(N, A);
    double t[2][N], u[N], r[N], p[N];
    double *b = dense_room(QUERIES * N);
    for (int h = 0; h < 2; h++) {
        dense_score(N, D, exact, c[h], u);
        apply(inverse, u, t[h]);
        for (int64_t i = 0; i < QUERIES; i++) dense_score(N, D, exact, q[h] + i * D, b + i * N);
        int64_t most = 0;
        for (double lambda = 1e-3; lambda < 1e3; lambda *= 1.03) {
            int64_t held = hits(h, b, t[h], all, lambda);
            most = held > most ? held : most;
        }
        int64_t there = hits(h, b, t[h], all, got->lambda[h]);
        assert_true(there >= most);
        int64_t counted = 0;
        for (int64_t i = h; i < QUERIES; i += 2) counted += target[i] >= 0;
        CHECK_CLOSE(got->chosen[h], (double)there / (double)counted, 1e-15);
        for (int64_t i = 1 - h; i < QUERIES; i += 2) {
            double scale = got->lambda[h] * factor[h][i];
            for (int64_t m = 0; m < N; m++) r[m] = b[i * N + m] + scale * t[h][m];
            check_answer(&got->first[i], r, 1e-10);
            for (int64_t m = 0; m < N; m++) p[m] = factor[h][i] * u[m];
            double *gated = dense_room(N), *fed = dense_room(N);
            CHECK_LE(dense_coupled(N, inverse, 1, got->lambda[h], b + i * N, p, NULL, 1e-13, 2000,
                                   gated),
                     1e-12);
            apply(inverse, gated, fed);
            for (int64_t m = 0; m < N; m++) r[m] += got->lambda[h] * got->lambda[h] * fed[m];
            check_answer(&got->coupled[i], r, 1e-9);
            assert_true(got->coupled[i].settled);
        }
    }
    dense_reset();
}

TEST(answers_are_those_of_dense_solves)
{
    OWNED(cgam_env) env = object_env(2);
    for (int unit = 0; unit < 2; unit++)
        for (int over = 0; over < 2; over++) {
            OWNED(cgam_bank) bank = draw(env, unit);
            OWNED(cgam_gates) gates = NULL;
            OWNED(cgam_gates_asked) asked = NULL;
            double alpha[CGAM_GATES_GRID];
            cgam_gates_answer first[QUERIES], coupled[QUERIES];
            cgam_gates_answers out = {.first = first, .coupled = coupled};
            cgam_gates_input in = input((cgam_sweep_over)over);
            CHECK_STATUS(env, cgam_gates_new(bank, NULL, &gates));
            CHECK_STATUS(env, cgam_gates_ask(gates, &in, &asked));
            int64_t count = cgam_gates_grid(gates, alpha);
            for (int64_t k = over; k < count; k += 5) {
                CHECK_STATUS(env, cgam_gates_at(gates, alpha[k], 1, &asked, &out, NULL));
                judge(alpha[k], &out, over);
            }
        }
}

/* ---- The grid ----------------------------------------------------------------------------- */
TEST_ENV(the_grid_rises_from_zero_to_just_below_critical)
{
    for (int unit = 0; unit < 2; unit++) {
        OWNED(cgam_bank) bank = draw(env, unit);
        OWNED(cgam_gates) gates = NULL;
        double alpha[CGAM_GATES_GRID], *mu, *G;
        CHECK_STATUS(env, cgam_gates_new(bank, NULL, &gates));
        cgam_gates_info info = cgam_gates_describe(gates);
        int64_t count = cgam_gates_grid(gates, alpha);
        assert_true(count >= 8 && alpha[0] == 0);
        int64_t near = 0;
        for (int64_t k = 1; k < count; k++) {
            assert_true(alpha[k] > alpha[k - 1]);
            near += fabs(log10(alpha[k] * info.gram.mu_max)) <= 0.51;
        }
        assert_true(near >= 5);
        CHECK_REL(alpha[count - 1], 0.99 * info.critical.alpha_lo, 1e-14);
        G = dense_matrix(N, D, exact, NULL, 1, NULL, 0);
        mu = dense_eigen(N, G, NULL);
        for (int64_t k = 0; k < D; k++) CHECK_CLOSE(info.mu[k], mu[N - D + k], 1e-9 * mu[N - 1]);
        for (int64_t i = 0; i < N; i++) G[i * N + i] = 0;
        CHECK_REL(info.critical.alpha, -1 / dense_eigen(N, G, NULL)[0], 1e-6);
        dense_reset();
    }
}

/* ---- One decomposition -------------------------------------------------------------------- */
/* A^-1 Z v = Z ((1 - alpha) I + alpha Z'Z)^-1 v on unit rows, by modes and by a gate that is made of them,
 * whose feedback is that of a gate by itself. */
TEST_ENV(alpha_whitens_the_context_on_unit_rows)
{
    OWNED(cgam_bank) bank = draw(env, true);
    OWNED(cgam_spectrum) modes = object_spectrum(env, bank);
    cgam_critical critical;
    CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &critical));
    for (double alpha = 1e-4; alpha < 1; alpha *= 9.7) {
        double *C = dense_room(D * D), *v = dense_room(D), *want = dense_room(N);
        double *y = dense_room(N), *x = dense_room(N), back, one;
        OWNED(cgam_gate) shared = NULL;
        OWNED(cgam_gate) alone = object_gate(env, bank, alpha);
        cgam_gate_opts opts = cgam_gate_opts_default();
        opts.spectrum = modes;
        opts.critical = &critical;
        opts.coupled = true;
        CHECK_STATUS(env, cgam_gate_new(bank, alpha, &opts, &shared));
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < D; j++) {
                double sum = 0;
                for (int64_t m = 0; m < N; m++) sum += exact[m * D + i] * exact[m * D + j];
                C[i * D + j] = alpha * sum + (i == j ? 1 - alpha : 0);
            }
        dense_solve(D, C, c[0], v);
        dense_score(N, D, exact, v, want);
        CHECK_STATUS(env, cgam_spectrum_solve_range(modes, alpha, c[0], y));
        CHECK_CLOSE_ALL(y, want, N, 1e-12);
        CHECK_STATUS(env, cgam_gate_solve_range(shared, c[0], y));
        CHECK_CLOSE_ALL(y, want, N, 1e-12);
        for (int64_t m = 0; m < N; m++) x[m] = sin((double)m);
        CHECK_STATUS(env, cgam_gate_solve(shared, x, y, &back));
        CHECK_STATUS(env, cgam_gate_solve(alone, x, want, &one));
        CHECK_CLOSE_ALL(y, want, N, 1e-12 / (1 - alpha));
        CHECK_LE(back, 1e-14);
        assert_int_equal(cgam_gate_describe(shared).regime, CGAM_SUBCRITICAL);
        CHECK_CLOSE(cgam_gate_describe(shared).eta_min, 1 - alpha, 1e-9);
        dense_reset();
    }
}

/* ---- Recalls ------------------------------------------------------------------------------ */
static void run_all(cgam_env *env, const cgam_bank *bank, const cgam_recall_opts *opts,
                    cgam_result *results, double *r)
{
    double contexts[QUERIES * D];
    OWNED(cgam_recall) plan = object_recall(env, bank, opts);
    for (int64_t i = 0; i < QUERIES; i++)
        for (int64_t j = 0; j < D; j++) contexts[i * D + j] = factor[0][i] * c[0][j];
    cgam_recall_in in = {.queries = QUERIES, .q = q[0], .c = contexts, .c_per_query = true};
    cgam_recall_out out = {.results = results, .r = r};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
}

/* Plans that share a gate give the bits of plans with gates of their own; another bank's or alpha's is
 * refused. */
TEST(a_shared_gate_changes_no_bit)
{
    OWNED(cgam_env) env = object_env(2);
    OWNED(cgam_bank) bank = draw(env, false);
    static double alone[QUERIES * N], shared[QUERIES * N];
    cgam_result results[QUERIES], again[QUERIES];
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_gate_opts gate_opts = cgam_gate_opts_default();
    OWNED(cgam_gate) gate = NULL;
    cgam_recall *plan;
    opts.mode = CGAM_COUPLED;
    opts.alpha = 0.05;
    gate_opts.coupled = true;
    CHECK_STATUS(env, cgam_gate_new(bank, opts.alpha, &gate_opts, &gate));
    for (int k = 0; k < 3; k++) {
        opts.lambda = 0.3 + k;
        opts.gate = NULL;
        run_all(env, bank, &opts, results, alone);
        opts.gate = gate;
        run_all(env, bank, &opts, again, shared);
        assert_memory_equal(alone, shared, sizeof alone);
        for (int64_t i = 0; i < QUERIES; i++) assert_int_equal(results[i].end, again[i].end);
    }
    opts.alpha = 0.06;
    CHECK_REFUSED(env, CGAM_E_ARG, "a different bank or alpha",
                  cgam_recall_new(bank, &opts, &plan));
}

/* At alpha = 0 feedback adds lambda^2 p, which rises with the score: no two scores change places. */
TEST(feedback_keeps_the_order_at_alpha_zero)
{
    OWNED(cgam_env) env = object_env(2);
    OWNED(cgam_bank) bank = draw(env, false);
    static double before[QUERIES * N], after[QUERIES * N];
    cgam_result results[QUERIES];
    cgam_recall_opts opts = cgam_recall_opts_default();
    for (double lambda = 0.1; lambda < 20; lambda *= 3) {
        opts.lambda = lambda;
        opts.mode = CGAM_FIRST;
        run_all(env, bank, &opts, results, before);
        opts.mode = CGAM_COUPLED;
        run_all(env, bank, &opts, results, after);
        for (int64_t i = 0; i < QUERIES; i++)
            for (int64_t m = 0; m < N; m++)
                for (int64_t k = 0; k < m; k++)
                    if (before[i * N + m] > before[i * N + k])
                        assert_true(after[i * N + m] >= after[i * N + k]);
                    else if (before[i * N + m] < before[i * N + k])
                        assert_true(after[i * N + m] <= after[i * N + k]);
    }
}

/* What is asked for changes none of what comes back: with and without the gate, with and without feedback. */
TEST(each_kind_of_answer_may_be_asked_for_alone)
{
    static const double alphas[] = {0, 0.05};
    OWNED(cgam_env) env = object_env(2);
    for (int unit = 0; unit < 2; unit++)
        for (int a = 0; a < 2; a++) {
            OWNED(cgam_bank) bank = draw(env, unit);
            OWNED(cgam_gates) gates = NULL;
            OWNED(cgam_gates_asked) asked = NULL;
            cgam_gates_answer both[2][QUERIES] = {0}, alone[2][QUERIES] = {0};
            cgam_gates_input in = input(CGAM_OVER_LABELS);
            CHECK_STATUS(env, cgam_gates_new(bank, NULL, &gates));
            CHECK_STATUS(env, cgam_gates_ask(gates, &in, &asked));
            cgam_gates_answers out = {.first = both[0], .coupled = both[1]};
            CHECK_STATUS(env, cgam_gates_at(gates, alphas[a], 1, &asked, &out, NULL));
            out = (cgam_gates_answers){.first = alone[0]};
            CHECK_STATUS(env, cgam_gates_at(gates, alphas[a], 1, &asked, &out, NULL));
            out = (cgam_gates_answers){.coupled = alone[1]};
            CHECK_STATUS(env, cgam_gates_at(gates, alphas[a], 1, &asked, &out, NULL));
            for (int k = 0; k < 2; k++)
                for (int64_t i = 0; i < QUERIES; i++) {
                    assert_int_equal(both[k][i].winner, alone[k][i].winner);
                    CHECK_CLOSE(both[k][i].p, alone[k][i].p, 1e-9); /* solved in two ways */
                }
            static const int32_t beyond[] = {0, N};
            in.tokens = beyond;
            in.labels = 2;
            cgam_gates_asked *none;
            CHECK_REFUSED(env, CGAM_E_ARG, "label 1 is token 400",
                          cgam_gates_ask(gates, &in, &none));
            assert_null(none);
        }
}

/* Eigenvalues of Z'Z sum up to the squares of all numbers, whatever the shape, and as many are 0 as there are columns
 * without a number. */
TEST_ENV(a_spectrum_holds_all_of_the_bank)
{
    enum { ROWS = 12, COLUMNS = 8, EMPTY = 3 };
    cgam_rng rng = cgam_rng_stream(7, 0);
    for (int shape = 0; shape < 4; shape++) { /* tall, wide, tall with unit rows, all zero */
        const int64_t n = shape == 1 ? COLUMNS : ROWS, d = shape == 1 ? ROWS : COLUMNS;
        const bool unit = shape == 2, zero = shape == 3;
        float rows[ROWS * COLUMNS];
        double squares = 0, sum = 0, alpha[CGAM_GATES_GRID];
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < d; j++) {
                const bool empty = zero || (!zero && shape != 1 && j >= d - EMPTY);
                rows[i * d + j] = empty ? 0 : (float)cgam_rng_normal(&rng);
                squares += (double)rows[i * d + j] * (double)rows[i * d + j];
            }
        cgam_bank_opts opts = {.normalize = unit};
        OWNED(cgam_bank) bank = NULL;
        OWNED(cgam_gates) gates = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, rows, CGAM_F32, n, d, &opts, &bank));
        CHECK_STATUS(env, cgam_gates_new(bank, NULL, &gates));
        const cgam_gates_info info = cgam_gates_describe(gates);
        assert_int_equal(info.modes, COLUMNS);
        for (int64_t k = 0; k < info.modes; k++) sum += info.mu[k];
        CHECK_CLOSE(sum, unit ? (double)n : squares, 1e-6 * (1 + squares));
        for (int64_t k = 0; k < EMPTY && shape != 1; k++) CHECK_CLOSE(info.mu[k], 0, 1e-6);
        const int64_t points = cgam_gates_grid(gates, alpha);
        assert_true(alpha[0] == 0 && (zero ? points == 1 : points > 1));
    }
}

/* ---- Failures ----------------------------------------------------------------------------- */
static int scenario(cgam_env *env, void *arg)
{
    bool unit = *(bool *)arg;
    cgam_bank_opts opts = {.normalize = unit};
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_gates) gates = NULL;
    OWNED(cgam_gates_asked) asked = NULL;
    cgam_gates_answer first[6], coupled[6];
    cgam_gates_answers out = {.first = first, .coupled = coupled};
    cgam_gates_input in = input(CGAM_OVER_LABELS);
    in.queries = 6;
    TRY(cgam_bank_new(env, Z, CGAM_F32, 230 + 20, D, &opts, &bank));
    TRY(cgam_gates_new(bank, NULL, &gates));
    TRY(cgam_gates_ask(gates, &in, &asked));
    TRY(cgam_gates_at(gates, 0.1, 1, &asked, &out, NULL));
    return CGAM_OK;
}

TEST_ENV(every_allocation_may_fail)
{
    cgam_bank_free(draw(env, false)); /* fills Z */
    for (int unit = 0; unit < 2; unit++) {
        bool is = unit;
        check_some_allocations(scenario, &is, 7);
    }
}
