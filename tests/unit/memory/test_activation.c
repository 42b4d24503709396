/* Recall by entmax: against dense long double in every mode, the energy and its certificates with the
 * constants of the activation, the margin, what is refused. */
#include "memory/certify.h"
#include "memory/results.h"
#include "support/one_env.h"

#include <cgam/theory.h>

#include "support/owned.h"

static const double orders[] = {1.1, 1.25, 1.5, 1.8, 2};
enum { ORDERS = 5 };

typedef struct problem {
    int64_t n, d;
    double *Z, *A, *q, *c, *b, *u;
    double alpha, eta;
    cgam_bank *bank;
} problem;

static problem draw(cgam_rng *rng, int64_t n, int64_t d)
{
    problem x = {.n = n, .d = d, .Z = dense_bank(rng, DENSE_UNIT, n, d)};
    x.alpha = dense_critical(n, d, x.Z) * dense_between(rng, 0, 0.8);
    x.A = dense_gate(n, d, x.Z, x.alpha);
    x.eta = dense_eigen(n, x.A, NULL)[0];
    x.q = dense_normals(rng, d, 1);
    x.c = dense_normals(rng, d, 1);
    x.b = dense_room(n);
    x.u = dense_room(n);
    dense_score(n, d, x.Z, x.q, x.b);
    dense_score(n, d, x.Z, x.c, x.u);
    x.bank = object_bank(env, n, d, x.Z);
    return x;
}

static cgam_result recall(const problem *x, const cgam_recall_opts *o, double *p, double *s,
                          double *r, double *readout)
{
    cgam_result result;
    OWNED(cgam_recall) plan = object_recall(env, x->bank, o);
    cgam_recall_in in = {.queries = 1, .q = x->q, .c = x->c};
    cgam_recall_out out = {.results = &result, .p = p, .s = s, .r = r, .readout = readout};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return result;
}

static void check_summary(const problem *x, double order, double beta, const double *p,
                          const cgam_result *got)
{
    double entropy = 0, squares = 0;
    int64_t support = 0;
    for (int64_t i = 0; i < x->n; i++) {
        support += p[i] > 0;
        squares += p[i] * p[i];
        entropy -= p[i] > 0 ? p[i] * log(p[i]) : 0;
    }
    assert_int_equal(got->support, support);
    CHECK_REL(got->neff_entropy, exp(entropy), 1e-12);
    CHECK_REL(got->neff_ipr, 1 / squares, 1e-12);
    assert_true(got->p == p[got->winner]);
    CHECK_CLOSE(got->log_p, log(got->p), 1e-14);
    assert_true(got->p_lower_bound_proved);
    CHECK_LE(got->p_lower_bound, got->p * (1 + 1e-12));
    CHECK_CLOSE(got->p_lower_bound, cgam_margin_bound(x->n, order, beta, got->gap), 1e-9);
    if (got->exact) assert_true(support == 1 && got->p == 1);
    if (support == 1 && (order - 1) * beta * got->gap > 1 + 1e-9) assert_true(got->exact);
}

TEST_WITH(set_up, tear_down, first_order_agrees_with_a_long_bisection)
{
    cgam_rng rng = cgam_rng_stream(3, 0);
    for (int round = 0; round < 60; round++) {
        int64_t n = 2 + cgam_rng_below(&rng, round % 10 ? 30 : 400),
                d = 2 + cgam_rng_below(&rng, 9);
        double order = orders[round % ORDERS], beta = dense_between_log(&rng, 0.1, 20);
        problem x = draw(&rng, n, d);
        cgam_recall_opts o = object_opts(CGAM_FIRST, x.alpha, beta, 0.7);
        double *p = dense_room(n), *want = dense_room(n), *s = dense_room(n), *r = dense_room(n);
        double *readout = dense_room(d), *combined = dense_room(d);
        o.entmax = order;
        cgam_result got = recall(&x, &o, p, NULL, NULL, readout);
        dense_solve(n, x.A, x.u, s);
        for (int64_t i = 0; i < n; i++) r[i] = x.b[i] + 0.7 * s[i];
        dense_entmax(n, order, beta, r, want);
        CHECK_CLOSE_ALL(p, want, n, 1e-12 * (1 + beta));
        dense_combine(n, d, x.Z, p, combined);
        CHECK_CLOSE_ALL(readout, combined, d, 1e-14);
        check_summary(&x, order, beta, p, &got);
        double eta = beta * 0.49 / got.contraction; /* known to a factor of 2 */
        CHECK_LE(eta, x.eta * (1 + 1e-9));
        CHECK_LE(x.eta, 2 * eta * (1 + 1e-9));
        CHECK_CLOSE(got.fold_margin, eta - 0.49 * beta, 1e-8 * (1 + beta));
        cgam_bank_free(x.bank);
        dense_reset();
    }
}

/* E(s) = s'As/2 - u's - L(beta r) / beta, L = <z, p> + sum (p - p^A) / (A (A - 1)). */
static double energy_of(const problem *x, double order, double beta, double lambda, const double *s)
{
    int64_t n = x->n;
    double *r = dense_room(n), *p = dense_room(n);
    long double E = 0;
    for (int64_t i = 0; i < n; i++) r[i] = x->b[i] + lambda * s[i];
    dense_entmax(n, order, beta, r, p);
    for (int64_t i = 0; i < n; i++) {
        long double As = 0;
        for (int64_t j = 0; j < n; j++) As += (long double)x->A[i * n + j] * s[j];
        E += s[i] * (As / 2 - x->u[i]) - r[i] * (long double)p[i];
        if (p[i] > 0) E -= (p[i] - powl(p[i], order)) / (order * (order - 1)) / beta;
    }
    return (double)E;
}

/* Small banks by solves of their own, tall ones streamed. */
TEST_WITH(set_up, tear_down, coupled_recall_rests_where_the_dense_iteration_does)
{
    cgam_rng rng = cgam_rng_stream(5, 0);
    int streamed = 0, proved = 0;
    for (int round = 0; round < 60; round++) {
        bool tall = round % 6 == 0;
        int64_t n = tall ? 250 : 2 + cgam_rng_below(&rng, 20), d = tall ? 6 : 8;
        double order = orders[round % ORDERS], beta = dense_between_log(&rng, 0.3, 8);
        double lambda = dense_between_log(&rng, 0.1, 1.2);
        problem x = draw(&rng, n, d);
        cgam_recall_opts o = object_opts(CGAM_COUPLED, x.alpha, beta, lambda);
        double *p = dense_room(n), *want = dense_room(n), *s = dense_room(n);
        long double *inverse = dense_inverse(n, x.A);
        o.entmax = order;
        o.certify = round % 2;
        cgam_result got = recall(&x, &o, p, s, NULL, NULL);
        if (dense_coupled_entmax(n, order, inverse, beta, lambda, x.b, x.u, NULL, 1e-17, 3000,
                                 want) > 1e-16 ||
            got.end != CGAM_END_CONVERGED) {
            dense_reset();
            cgam_bank_free(x.bank);
            continue; /* slow, at the edge of a fold */
        }
        streamed += tall;
        CHECK_CLOSE_ALL(p, want, n, 1e-8);
        check_summary(&x, order, beta, p, &got);
        CHECK_CLOSE(got.energy_end, energy_of(&x, order, beta, lambda, s), 1e-10);
        CHECK_LE(got.energy_end, got.energy_start + 1e-12);
        CHECK_LE(got.energy_rise, 1e-12);
        assert_int_equal(got.newton_steps, 0);
        double constant = beta * lambda * lambda / x.eta; /* eta is known to a factor of 2 */
        CHECK_LE(constant * (1 - 1e-6), got.contraction);
        CHECK_LE(got.contraction, (o.certify ? 1 : 2) * constant * (1 + 1e-6));
        if (got.p_error_proved) CHECK_LE(dense_distance(n, p, want), got.p_error);
        proved += got.p_error_proved;
        if (o.certify && got.fold_margin_exact) { /* diag w - ww' / sum w written out */
            double *H = dense_room(n * n), *w = dense_room(n), sum = 0;
            for (int64_t i = 0; i < n; i++) sum += w[i] = p[i] > 0 ? pow(p[i], 2 - order) : 0;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    H[i * n + j] = x.A[i * n + j] -
                                   lambda * lambda * beta * ((i == j) * w[i] - w[i] * w[j] / sum);
            CHECK_CLOSE(got.fold_margin, dense_eigen(n, H, NULL)[0], 1e-8);
        }
        cgam_bank_free(x.bank);
        dense_reset();
    }
    assert_true(streamed > 3 && proved > 20);
}

TEST_WITH(set_up, tear_down, the_flow_and_the_branch_end_at_the_same_point)
{
    cgam_rng rng = cgam_rng_stream(7, 0);
    for (int round = 0; round < 15; round++) {
        problem x = draw(&rng, 9, 5);
        double lambda = sqrt(0.6 * x.eta / 3), p[3][9];
        const cgam_mode modes[] = {CGAM_COUPLED, CGAM_FLOW, CGAM_ANNEAL};
        for (int k = 0; k < 3; k++) {
            cgam_recall_opts o = object_opts(modes[k], x.alpha, 3, lambda);
            o.entmax = orders[round % ORDERS];
            o.t_max = 1000;
            cgam_result got = recall(&x, &o, p[k], NULL, NULL, NULL);
            assert_int_equal(got.end, CGAM_END_CONVERGED);
            assert_true(got.unique == 1 && got.unique_proved);
            CHECK_CLOSE_ALL(p[k], p[0], 9, k == 1 ? 1e-7 : 1e-9);
        }
        cgam_bank_free(x.bank);
        dense_reset();
    }
}

/* At p = (1/2, 1/2) the slope is beta 2^(A-2), so two tied memories part at
 * beta lambda^2 2^(A-2) = 1 - alpha. */
TEST_WITH(set_up, tear_down, two_tied_memories_part_where_their_slope_says)
{
    const double Z[] = {1, 0, 1, 0}, q[] = {0.3, 0.7};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    for (int k = 0; k < ORDERS; k++) {
        double alpha = 0.3, lambda = 0.9, at = pow(2, 2 - orders[k]) * 0.7 / 0.81;
        for (int past = 0; past < 2; past++) {
            cgam_recall_opts o = object_opts(CGAM_ANNEAL, alpha, (past ? 1.5 : 0.9) * at, lambda);
            cgam_anneal path;
            cgam_result result;
            cgam_recall_in in = {.queries = 1, .q = q};
            cgam_recall_out out = {.results = &result, .anneal = &path};
            o.entmax = orders[k];
            OWNED(cgam_recall) plan = object_recall(env, bank, &o);
            CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
            assert_int_equal(path.transitions, past);
            if (past) assert_int_equal(result.winner, 0);
            if (past) assert_int_equal(path.transition[0].kind, CGAM_TRANSITION_PITCHFORK);
            if (past) CHECK_REL(path.transition[0].beta, at, 1e-5);
            if (!past) CHECK_CLOSE(result.p, 0.5, 1e-9);
            cgam_anneal_free(env, &path);
        }
    }
}

/* As A goes to 1 the bound goes to softmax's, and what is proved of it stays as good. */
TEST_WITH(set_up, tear_down, the_bound_is_good_beside_softmax)
{
    const double less[] = {1e-9, 1e-6, 1e-3};
    for (int k = 0; k < 3; k++)
        for (double gap = -3; gap < 8; gap += 0.25)
            for (int64_t n = 2; n < 1000; n *= 5) {
                double order = 1 + less[k], p = cgam_margin_bound(n, order, 1.5, gap);
                CHECK_CLOSE(p, cgam_separation_bound(n, 1.5, gap), 100 * less[k]);
                CHECK_LE(cgam_margin_bound_below(n, order, 1.5, gap), p);
                CHECK_CLOSE(cgam_margin_bound_below(n, order, 1.5, gap), p, 1e-12);
            }
}

/* Powers of two, so that nothing rounds: exact at equality, one ulp short of it not. */
TEST_WITH(set_up, tear_down, the_margin_includes_equality)
{
    const double Z[] = {1, 0, 0, 0, 1, 0, 0, 0, 0.5}, e[] = {0, 1, 0}, c[] = {0, 0.5, 0};
    const double powers[] = {1.0625, 1.25, 1.5, 2};
    OWNED(cgam_bank) bank = object_bank(env, 3, 3, Z);
    for (int k = 0; k < 4; k++)
        for (int context = 0; context < 2; context++)
            for (int short_of = 0; short_of < 3; short_of++) {
                double gap = context ? 2 : 1, beta = 1 / ((powers[k] - 1) * gap), p[3];
                cgam_recall_opts o = object_opts(CGAM_FIRST, 0, beta, 2); /* r = q + 2 c */
                o.entmax = powers[k];
                if (short_of == 1) o.beta = nextafter(beta, 0);
                if (short_of == 2) o.beta = 0.9 * beta;
                problem x = {.n = 3, .d = 3, .bank = bank, .q = (double *)(uintptr_t)e};
                if (context) x.c = (double *)(uintptr_t)c;
                cgam_result got = recall(&x, &o, p, NULL, NULL, NULL);
                assert_int_equal(got.winner, 1);
                assert_true(cgam_margin_exact(o.entmax, o.beta, gap) == !short_of);
                assert_true(got.exact == !short_of);
                assert_true((got.p_lower_bound == 1) == !short_of);
                if (!short_of) assert_true(p[0] == 0 && p[1] == 1 && p[2] == 0);
                if (short_of == 2) assert_true(got.support == 3 && got.p < 1);
            }
}

/* At its edge the margin is decided without rounding, or not at all: where a product or a sum of the scores rounds, nothing is called exact,
 * although double has it so. */
TEST_WITH(set_up, tear_down, what_rounds_is_not_called_exact)
{
    static const struct {
        double z, q, c, lambda, order; /* r = z q + lambda z c, and 0 of the other memory */
        bool exact;
    } cases[] = {
        {1, 1, 0, 1, 2, true},      {1, 1, 0.5, 0, 2, true},    /* a context that nobody hears */
        {1, 1, 0.5, 0.5, 2, true},  {0.1, 0.3, 0, 1, 2, false}, /* z q rounds, */
        {0.1, 1, 0.3, 1, 2, false},                             /* z c, */
        {1, 1, 0.1, 0.3, 2, false},                             /* lambda z c, */
        {1, 1, 0.5, 0.3, 2, false},                             /* the sum of both, */
        {1, 1, 0, 1, 1.1, false},                               /* and (order - 1) beta */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double Z[] = {cases[k].z, 0, 0, 1}, q[] = {cases[k].q, 0}, c[] = {cases[k].c, 0}, p[2];
        cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 1, cases[k].lambda);
        problem x = {.n = 2, .d = 2, .bank = object_bank(env, 2, 2, Z), .q = q};
        if (cases[k].c != 0) x.c = c;
        o.entmax = cases[k].order;
        double gap = recall(&x, &o, p, NULL, NULL, NULL).gap;
        o.beta = nextafter(1 / ((o.entmax - 1) * gap), 0);
        while (!cgam_margin_exact(o.entmax, o.beta, gap)) o.beta = nextafter(o.beta, INFINITY);
        cgam_result got = recall(&x, &o, p, NULL, NULL, NULL);
        if (got.exact != cases[k].exact || (got.p_lower_bound == 1) != cases[k].exact)
            fail_msg("case %zu: exact %d, p at least %.17g", k, got.exact, got.p_lower_bound);
        CHECK_LE(1 - 1e-7, got.p_lower_bound);
        cgam_bank_free(x.bank);
    }
}

TEST_WITH(set_up, tear_down, scores_of_a_million_do_no_harm)
{
    cgam_rng rng = cgam_rng_stream(9, 0);
    for (int round = 0; round < 40; round++) {
        problem x = draw(&rng, 20, 6);
        double p[20], sum = 0, order = orders[round % ORDERS];
        cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 1e6, 1);
        o.entmax = order;
        if (round % 2) /* all memories alike: a tie at the top */
            for (int64_t i = 6; i < 120; i++) x.Z[i] = x.Z[i % 6];
        cgam_bank_free(x.bank);
        x.bank = object_bank(env, 20, 6, x.Z);
        cgam_result got = recall(&x, &o, p, NULL, NULL, NULL);
        for (int i = 0; i < 20; i++) sum += p[i];
        CHECK_CLOSE(sum, 1, 20 * 0x1p-52);
        assert_int_equal(got.end, CGAM_END_DIRECT);
        if (round % 2) CHECK_CLOSE(got.p, 0.05, 1e-15);
        cgam_bank_free(x.bank);
        dense_reset();
    }
}

TEST_WITH(set_up, tear_down, what_does_not_go_with_it_is_refused_in_a_line)
{
    const double Z[] = {1, 0, 0, 1};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall *plan;
    const double bad[] = {1, 0.5, 2.001, -1, NAN, INFINITY, 1 + 1e-12};
    cgam_recall_opts o = cgam_recall_opts_default();
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        o.entmax = bad[k];
        CHECK_REFUSED(env, CGAM_E_ARG, "the order of entmax is", cgam_recall_new(bank, &o, &plan));
    }
    const struct {
        const char *name;
        double order; /* -1: no such name */
    } names[] = {{"softmax", 0},   {"sparsemax", 2},   {"entmax15", 1.5}, {"entmax:1.25", 1.25},
                 {"entmax", -1},   {"entmax:", -1},    {"entmax:1", -1},  {"entmax:2.5", -1},
                 {"entmax:x", -1}, {"entmax:nan", -1}, {"relu", -1},      {"entmax:1.5 ", -1}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        double order = -1;
        assert_true(cgam_activation_find(names[k].name, &order) == (names[k].order >= 0));
        assert_true(order == names[k].order);
    }
}
