/* Stability as a push: fixed points that are called stable get back to where they were, saddles do not; and the values of
 * `stable` and `readout_error_bound` in results of every mode. */
#include "support/one_env.h"

#include "support/dense.h"
#include "support/owned.h"

#include <cgam/flow.h>
#include <cgam/theory.h>

enum { N = 9, D = 4, SIZE = 2 * N + 2 * D };

typedef struct problem {
    double *Z, *q, *c;
    double alpha, beta, lambda;
} problem;

static problem draw(cgam_rng *rng)
{
    problem p = {.Z = dense_bank(rng, DENSE_UNIT, N, D),
                 .q = dense_normals(rng, D, 1),
                 .c = dense_normals(rng, D, 0.5),
                 .alpha = 0.8 * cgam_rng_uniform(rng),
                 .beta = dense_between_log(rng, 2, 20),
                 .lambda = dense_between_log(rng, 0.3, 1.2)};
    return p;
}

/* Flows from x for a time; context clamped, query unless free. */
static void flow(const cgam_bank *bank, const problem *p, bool free_query, double time, double *x)
{
    const cgam_clamp clamps[] = {{.layer = CGAM_NET_CONTEXT, .to = INFINITY},
                                 {.layer = CGAM_NET_QUERY, .to = INFINITY}};
    cgam_memory_net_opts net = cgam_memory_net_opts_default();
    cgam_flow_opts o = cgam_flow_opts_default();
    cgam_flow_report report;
    cgam_net *four;
    net.alpha = p->alpha;
    net.beta = p->beta;
    net.lambda = p->lambda;
    net.tau_s = 0.3;
    net.tau_q = 2;
    o.t_end = time;
    o.rtol = 1e-10;
    o.atol = 1e-12;
    o.steady = 0;
    o.clamps = clamps;
    o.clamp_count = free_query ? 1 : 2;
    CHECK_STATUS(env, cgam_memory_net_new(bank, &net, &four));
    CHECK_STATUS(env, cgam_flow_run(four, 1, x, &o, &report));
    cgam_net_free(four);
}

static double distance(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

/* Shares of the retrieval of x. */
static void shares(const problem *p, const double *x, double *out)
{
    dense_softmax(N, p->beta, x + D + N, out);
}

/* c, s, r, q of the fixed point with these shares. */
static void place(const cgam_bank *bank, const problem *p, const double *share, double *x)
{
    OWNED(cgam_gate) gate = object_gate(env, bank, p->alpha);
    double b[N], u[N];
    CHECK_STATUS(env, cgam_bank_score(bank, p->q, b));
    CHECK_STATUS(env, cgam_bank_score(bank, p->c, u));
    for (int i = 0; i < N; i++) u[i] += p->lambda * share[i];
    CHECK_STATUS(env, cgam_gate_solve(gate, u, x + D, NULL));
    for (int i = 0; i < N; i++) x[D + N + i] = b[i] + p->lambda * x[D + i];
    memcpy(x, p->c, D * sizeof *x);
    memcpy(x + D + 2 * N, p->q, D * sizeof *x);
}

static void push(cgam_rng *rng, double size, double *x)
{
    for (int i = D; i < D + 2 * N; i++) x[i] += size * cgam_rng_normal(rng);
}

TEST(minima_return_and_saddles_leave)
{
    cgam_rng rng = cgam_rng_stream(71, 1);
    int returned = 0, left = 0;
    for (int k = 0; k < check_trials(60); k++) {
        problem p = draw(&rng);
        OWNED(cgam_bank) bank = object_bank(env, N, D, p.Z);
        cgam_recall_opts o = object_opts(CGAM_COUPLED, p.alpha, p.beta, p.lambda);
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        cgam_landscape land;
        CHECK_STATUS(env, cgam_landscape_find(plan, p.q, p.c, NULL, &land));
        for (int64_t j = 0; j < land.count; j++) {
            const cgam_point *point = &land.points[j];
            if (fabs(point->fold_margin) < 0.1 || !point->fold_margin_proved) continue;
            double x[SIZE], after[N];
            const double size = 1e-5;
            place(bank, &p, land.p + j * N, x);
            push(&rng, size, x);
            flow(bank, &p, false, point->minimum ? 300 : 400, x);
            shares(&p, x, after);
            double off = distance(after, land.p + j * N, N);
            if (point->minimum) {
                if (!(off < 1e-7)) fail_msg("problem %d: a minimum is left, %g", k, off);
                returned++;
            } else {
                if (!(off > 100 * size))
                    fail_msg("problem %d: a saddle keeps what is near, %g", k, off);
                left++;
            }
        }
        cgam_landscape_free(env, &land);
        dense_reset();
    }
    assert_true(returned > check_trials(60) && left > check_trials(15));
}

TEST(a_free_query_returns_where_the_margin_is_positive)
{
    cgam_rng rng = cgam_rng_stream(72, 1);
    int counted = 0;
    for (int k = 0; k < check_trials(60); k++) {
        problem p = draw(&rng);
        double x[SIZE], rest[SIZE], before[N], after[N], most = 0;
        OWNED(cgam_bank) bank = object_bank(env, N, D, p.Z);
        OWNED(cgam_gate) gate = object_gate(env, bank, p.alpha);
        for (int i = 0; i < N; i++) before[i] = 1.0 / N;
        place(bank, &p, before, x);
        flow(bank, &p, true, 1000, x);
        memcpy(rest, x, sizeof rest);
        shares(&p, x, before);
        for (int i = 0; i < N; i++) most = fmax(most, before[i]);
        double eta = cgam_gate_describe(gate).eta_min;
        if (cgam_stability_margin_free_query(eta, p.beta, p.lambda, 1, most) > 0.05) {
            push(&rng, 1e-4, x);
            for (int i = SIZE - D; i < SIZE; i++) x[i] += 1e-4 * cgam_rng_normal(&rng);
            flow(bank, &p, true, 400, x);
            shares(&p, x, after);
            CHECK_CLOSE(distance(after, before, N), 0, 1e-7);
            CHECK_CLOSE(distance(x + SIZE - D, rest + SIZE - D, D), 0, 1e-6);
            counted++;
        }
        dense_reset();
    }
    assert_true(counted > check_trials(10));
}

static cgam_result recall(const cgam_bank *bank, const problem *p, cgam_recall_opts o,
                          const int64_t *target, double *readout)
{
    OWNED(cgam_recall) plan = object_recall(env, bank, &o);
    cgam_result result;
    cgam_recall_in in = {.queries = 1, .q = p->q, .c = p->c, .target = target};
    cgam_recall_out out = {.results = &result, .readout = readout};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return result;
}

TEST(the_readout_is_within_its_bound_in_every_mode)
{
    const cgam_mode modes[] = {CGAM_FIRST, CGAM_COUPLED, CGAM_ANNEAL, CGAM_FLOW};
    cgam_rng rng = cgam_rng_stream(73, 1);
    for (int k = 0; k < check_trials(200); k++) {
        problem p = draw(&rng);
        OWNED(cgam_bank) bank = object_bank(env, N, D, p.Z);
        cgam_recall_opts o = object_opts(modes[k % 4], p.alpha, p.beta, p.lambda);
        if (k % 3 == 0) o.entmax = 1.5;
        double readout[D];
        int64_t target = cgam_rng_below(&rng, N);
        cgam_result r = recall(bank, &p, o, k % 5 == 0 ? &target : NULL, readout);
        double off = distance(readout, p.Z + r.focus * D, D);
        if (!(off <= r.readout_error_bound + 1e-14))
            fail_msg("problem %d: %g, bound %g", k, off, r.readout_error_bound);
        assert_true(r.readout_error_bound_proved == r.p_lower_bound_proved);
        if (k % 3 != 0) CHECK_CLOSE(r.readout_error_bound, 2 * (1 - r.p), 1e-7 + 2 * (1 - r.p));
        dense_reset();
    }
}

TEST(stable_is_what_is_known)
{
    cgam_rng rng = cgam_rng_stream(74, 1);
    problem p = draw(&rng);
    p.beta = 2;
    p.lambda = 0.3;
    OWNED(cgam_bank) bank = object_bank(env, N, D, p.Z);
    cgam_recall_opts o = object_opts(CGAM_FIRST, 0.5, 2, 0.3);
    cgam_result r = recall(bank, &p, o, NULL, NULL);
    assert_true(r.stable == 1 && r.stable_proved);
    o.alpha = 1.5; /* unit memories, more than dimensions: alpha_crit = 1 */
    r = recall(bank, &p, o, NULL, NULL);
    assert_true(r.stable == 0 && r.stable_proved);
    const cgam_mode modes[] = {CGAM_COUPLED, CGAM_ANNEAL, CGAM_FLOW};
    for (int k = 0; k < 3; k++) {
        o = object_opts(modes[k], 0.5, 2, 0.3);
        r = recall(bank, &p, o, NULL, NULL);
        assert_true(r.unique == 1 && r.stable == 1 && r.stable_proved);
        o.certify = CGAM_CERTIFY_NONE;
        r = recall(bank, &p, o, NULL, NULL);
        assert_true(r.stable == -1 && !r.stable_proved && isnan(r.readout_error_bound));
    }
    o = object_opts(CGAM_FLOW, 0.5, 2, 0.3);
    o.free_query = true;
    r = recall(bank, &p, o, NULL, NULL);
    assert_true(!r.stable_proved);
    o.t_max = 0.1;
    r = recall(bank, &p, o, NULL, NULL);
    assert_true(r.end == CGAM_END_HORIZON && r.stable == -1);
}

TEST(formulas)
{
    CHECK_CLOSE(cgam_stability_margin(0.8, 5, 1, 0.99), 0.8 - 10 * 0.99 * 0.01, 1e-15);
    CHECK_CLOSE(cgam_stability_margin(0.8, 5, 1, 0.2), 0.8 - 2.5, 1e-15);
    CHECK_CLOSE(cgam_stability_margin_free_query(0.8, 5, 0.5, 2, 0.9), 0.8 - 0.5 * 16.5, 1e-13);
    CHECK_CLOSE(cgam_stability_margin_free_query(3, 5, 0, 1, 1), 1, 0);
    CHECK_CLOSE(cgam_readout_bound(1, 5, NAN, 2), 0, 0);
    CHECK_REL(cgam_readout_bound(81, 5, 2, 3), 6 * 80 * exp(-10) / (1 + 80 * exp(-10)), 1e-13);
    CHECK_REL(cgam_readout_bound(81, 5, -200, 3), 6, 1e-13);
    CHECK_REL(cgam_readout_bound(3, 5, 100, 3), 12 * exp(-500), 1e-12);
}
TEST_GROUP(set_up, tear_down)
