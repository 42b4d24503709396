/* ctest: labels=threads
 * Flows: closed forms, order of convergence, clamps, events, ends. */
#include "net/net.h"
#include "unit/net/nets.h"

#include <cgam/flow.h>

#include "support/owned.h"

static const cgam_flow_method methods[] = {CGAM_FLOW_AUTO, CGAM_FLOW_ADAMS, CGAM_FLOW_BDF,
                                           CGAM_FLOW_RK4, CGAM_FLOW_EULER};

/* tau x' = -A x + a: identity layer, self synapse A - I, bias a. */
static cgam_net *linear_net(cgam_env *env, int64_t n, const double *A, const double *a, double tau)
{
    cgam_net *net;
    const cgam_op *op;
    cgam_layer_opts o = cgam_layer_opts_default();
    double *W = malloc((size_t)(n * n) * sizeof *W);
    o.tau = tau;
    memcpy(W, A, (size_t)(n * n) * sizeof *W);
    for (int64_t i = 0; i < n; i++) W[i * n + i] -= 1;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &n, &o, NULL));
    CHECK_STATUS(env, cgam_net_dense(net, W, CGAM_F64, n, n, true, &op));
    CHECK_STATUS(env, cgam_net_add_self(net, "A", 0, op, 1));
    CHECK_STATUS(env, cgam_net_add_bias(net, "a", 0, a, 1));
    free(W);
    return net;
}

TEST_ENV(a_lone_layer_decays_exponentially)
{
    OWNED(cgam_net) net = NULL;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.tau = 2;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){3}, &o, NULL));
    for (int m = 0; m < 4; m++) {
        double x[] = {1, -2, 0.5};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        f.t_end = 3;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_HORIZON);
        CHECK_REL(r.time, 3, 0);
        CHECK_REL(x[0], exp(-1.5), 1e-6);
        CHECK_REL(x[1], -2 * exp(-1.5), 1e-6);
        CHECK_REL(r.energy_start, 0.5 * (1 + 4 + 0.25), 1e-15);
        CHECK_REL(r.energy_end, 0.5 * (1 + 4 + 0.25) * exp(-3), 1e-6);
        CHECK_CLOSE(r.energy_rise, 0, 0);
    }
}

/* A = [[2, 1], [1, 3]]: eigenvalues (5 -+ sqrt 5) / 2; s(t) = A^-1 a + modes. */
static const double A2[] = {2, 1, 1, 3}, a2[] = {1, -2};

static void closed_form(double tau, double t, const double *x0, double *x)
{
    double d = sqrt(5.0), rest[2] = {1, -1}; /* A^-1 a = (1, -1) */
    double low = (5 - d) / 2, high = (5 + d) / 2;
    /* eigenvectors (1, low - 2), (1, high - 2) */
    double v[2][2] = {{1, low - 2}, {1, high - 2}}, rate[2] = {low, high};
    x[0] = rest[0];
    x[1] = rest[1];
    for (int k = 0; k < 2; k++) {
        double n2 = v[k][0] * v[k][0] + v[k][1] * v[k][1];
        double c = ((x0[0] - rest[0]) * v[k][0] + (x0[1] - rest[1]) * v[k][1]) / n2;
        for (int i = 0; i < 2; i++) x[i] += c * exp(-rate[k] * t / tau) * v[k][i];
    }
}

static double error_at(cgam_env *env, cgam_flow_method method, double step)
{
    cgam_net *net = linear_net(env, 2, A2, a2, 1);
    double x[] = {0.3, 0.7}, x0[] = {0.3, 0.7}, want[2];
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    f.method = method;
    f.step = step;
    f.t_end = 1;
    f.steady = 0;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    closed_form(1, 1, x0, want);
    cgam_net_free(net);
    return hypot(x[0] - want[0], x[1] - want[1]);
}

TEST_ENV(fixed_steps_have_their_order)
{
    const struct {
        cgam_flow_method method;
        double order, step;
    } cases[] = {{CGAM_FLOW_EULER, 1, 1e-3}, {CGAM_FLOW_RK4, 4, 0.01}};
    for (int i = 0; i < 2; i++) {
        double coarse = error_at(env, cases[i].method, cases[i].step);
        double fine = error_at(env, cases[i].method, cases[i].step / 2);
        CHECK_CLOSE(log2(coarse / fine), cases[i].order, 0.1);
    }
    CHECK_LE(error_at(env, CGAM_FLOW_RK4, 1e-3), 1e-12);
}

TEST_ENV(a_nonlinear_net_converges_at_order_four_too)
{
    uint64_t seed = 3;
    OWNED(cgam_net) net = NULL;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    random_layer(env, net, &seed, cgam_lagr_find("tanh"), "x");
    random_layer(env, net, &seed, cgam_lagr_find("softmax"), "y");
    random_synapse(env, net, &seed, "bilinear", "W", 1.5);
    random_synapse(env, net, &seed, "self", "A", 0.5);
    double start[16], fine[16], x[16], errors[3];
    int64_t n = cgam_net_describe(net).size;
    normals(&seed, 1, n, start);
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    f.method = CGAM_FLOW_RK4;
    f.t_end = 1;
    f.steady = 0;
    memcpy(fine, start, sizeof fine);
    f.step = 1.0 / 1024;
    CHECK_STATUS(env, cgam_flow_run(net, 1, fine, &f, &r));
    for (int k = 0; k < 3; k++) {
        memcpy(x, start, sizeof x);
        f.step = 1.0 / (16 << k);
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        errors[k] = 0;
        for (int64_t i = 0; i < n; i++) errors[k] = fmax(errors[k], fabs(x[i] - fine[i]));
    }
    CHECK_CLOSE(log2(errors[0] / errors[1]), 4, 0.35);
    CHECK_CLOSE(log2(errors[1] / errors[2]), 4, 0.35);
}

TEST_ENV(every_method_reaches_the_steady_state)
{
    OWNED(cgam_net) net = linear_net(env, 2, A2, a2, 0.5);
    for (int m = 0; m < 5; m++) {
        double x[] = {5, 5};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_STEADY);
        CHECK_CLOSE(x[0], 1, 3e-8);
        CHECK_CLOSE(x[1], -1, 3e-8);
        CHECK_LE(r.residual, 1e-8);
        CHECK_LE(r.time, 20);
        assert_true(r.settled > 0 && r.settled <= r.time);
    }
}

/* Two layers, tau 1 and 1e-6: the fast one follows the slow one, x' = -x + W W' x, whose leading
 * behaviour is the slow system's. */
TEST_ENV(a_ratio_of_a_million_between_time_constants_is_no_trouble)
{
    uint64_t seed = 4;
    enum { N = 300, M = 40 }; /* beyond the dense Jacobian: GMRES */
    static double W[N * M];
    normals(&seed, 0.02, N * M, W);
    for (int small = 0; small < 2; small++) {
        int64_t n = small ? 5 : N, m = small ? 4 : M;
        OWNED(cgam_net) net = NULL;
        const cgam_op *op;
        cgam_layer_opts o = cgam_layer_opts_default();
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_add_layer(net, "slow", 1, &n, NULL, NULL));
        o.tau = 1e-6;
        CHECK_STATUS(env, cgam_net_add_layer(net, "fast", 1, &m, &o, NULL));
        CHECK_STATUS(env, cgam_net_dense(net, W, CGAM_F64, n, m, true, &op));
        CHECK_STATUS(env, cgam_net_add_bilinear(net, "W", 0, 1, op, 1));
        double x[N + M] = {0}, slow[N], start[N];
        normals(&seed, 1, n, x);
        memcpy(start, x, sizeof start);
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.t_end = 1;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_HORIZON);
        assert_int_equal(r.method, CGAM_FLOW_BDF);
        CHECK_LE((double)r.steps, 2000);
        /* the slow system alone, with the fast layer settled: a hidden synapse */
        OWNED(cgam_net) alone = NULL;
        CHECK_STATUS(env, cgam_net_new(env, &alone));
        CHECK_STATUS(env, cgam_net_add_layer(alone, "slow", 1, &n, NULL, NULL));
        double *Wt = malloc((size_t)(n * m) * sizeof *Wt);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) Wt[j * n + i] = W[i * m + j];
        CHECK_STATUS(env, cgam_net_dense(alone, Wt, CGAM_F64, m, n, true, &op));
        CHECK_STATUS(env, cgam_net_add_hidden(alone, "W", 0, op, NULL, NULL, 1));
        memcpy(slow, start, sizeof slow);
        CHECK_STATUS(env, cgam_flow_run(alone, 1, slow, &f, &r));
        /* the start-up of the fast layer moves the slow one by about 1e-6 */
        CHECK_CLOSE_ALL(x, slow, n, 5e-6);
        free(Wt);
    }
}

TEST_ENV(a_context_that_switches_is_followed)
{
    for (int m = 0; m < 5; m++) {
        OWNED(cgam_net) net = NULL;
        const double c1[] = {1, 0}, c2[] = {0, 2};
        const cgam_clamp clamps[] = {{0, 0, 2, c1, false}, {0, 2, 5, c2, false}};
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_add_layer(net, "c", 1, (const int64_t[]){2}, NULL, NULL));
        CHECK_STATUS(env, cgam_net_add_layer(net, "s", 1, (const int64_t[]){2}, NULL, NULL));
        CHECK_STATUS(env, cgam_net_add_coupling(net, "sc", 0, 1, 0.5));
        double x[] = {9, 9, 0, 0};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        f.step = 1e-3;
        f.t_end = 5;
        f.clamps = clamps;
        f.clamp_count = 2;
        f.watch = 1;
        f.steady = 0;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        double e2 = exp(-2), e3 = exp(-3), s1 = 0.5 * (1 - e2);
        double allowed = methods[m] == CGAM_FLOW_EULER ? 1e-3 : 1e-6;
        CHECK_CLOSE(x[2], s1 * e3, allowed);
        CHECK_CLOSE(x[3], 1 - e3, allowed);
        CHECK_CLOSE(x[0], 0, 0);
        CHECK_CLOSE(x[1], 2, 0);
        assert_int_equal(r.end, CGAM_FLOW_HORIZON);
        /* s starts with winner 0 (tie), ends with 1; they cross where s1 e = 1 - e */
        assert_int_equal(r.winner, 1);
        assert_int_equal(r.winner_changes, 1);
        CHECK_CLOSE(r.winner_time, 2 + log(1 + s1), methods[m] == CGAM_FLOW_EULER ? 1e-3 : 1e-6);
        CHECK_CLOSE(r.energy_rise, 0, 1e-9);
    }
}

TEST_ENV(a_released_layer_moves_on_from_where_it_was_held)
{
    OWNED(cgam_net) net = NULL;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){1}, NULL, NULL));
    const cgam_clamp clamp = {0, 1, 3, NULL, false}; /* holds what is there at 1 */
    double x[] = {1};
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    f.t_end = 4;
    f.clamps = &clamp;
    f.clamp_count = 1;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    CHECK_REL(x[0], exp(-2), 1e-7);
}

typedef struct tape {
    int calls, samples, starts, ends, clamps, winners, steady, settled;
    double last, stop_at;
    bool ordered;
} tape;

static int listen(void *user, const cgam_flow_moment *m)
{
    tape *t = user;
    t->ordered = (t->calls == 0 || m->time >= t->last) && (t->calls == 0 || t->ordered);
    t->calls++;
    t->last = m->time;
    t->samples += !!(m->events & CGAM_EVENT_SAMPLE);
    t->starts += !!(m->events & CGAM_EVENT_START);
    t->ends += !!(m->events & CGAM_EVENT_END);
    t->clamps += !!(m->events & CGAM_EVENT_CLAMP);
    t->winners += !!(m->events & CGAM_EVENT_WINNER);
    t->steady += !!(m->events & CGAM_EVENT_STEADY);
    t->settled += !!(m->events & CGAM_EVENT_SETTLED);
    return t->stop_at > 0 && m->time >= t->stop_at;
}

TEST_ENV(the_monitor_sees_samples_and_events_in_order)
{
    for (int m = 0; m < 5; m++) {
        OWNED(cgam_net) net = linear_net(env, 2, A2, a2, 1);
        double x[] = {-3, 5}; /* ends at (1, -1): the winner changes */
        tape t = {0};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        f.t_end = 40;
        f.sample = 0.5;
        f.watch = 0;
        f.monitor = listen;
        f.user = &t;
        f.stop = 0;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_true(t.ordered);
        assert_int_equal(t.samples, 81);
        assert_int_equal(t.starts, 1);
        assert_int_equal(t.ends, 1);
        assert_int_equal(t.winners, 1);
        assert_int_equal(t.steady, 1);
        assert_int_equal(t.settled, 1);
        assert_int_equal(r.end, CGAM_FLOW_HORIZON);
        t = (tape){.stop_at = 2};
        x[0] = -3, x[1] = 5;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_STOPPED);
        CHECK_CLOSE(t.last, 2, 0.5);
    }
}

TEST_ENV(a_flow_can_stop_when_the_winner_changes)
{
    for (int m = 0; m < 5; m++) {
        OWNED(cgam_net) net = linear_net(env, 2, A2, a2, 1);
        double x[] = {-3, 5}, x0[] = {-3, 5}, want[2];
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        f.watch = 0;
        f.step = 1e-3;
        f.stop = CGAM_EVENT_WINNER;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_WINNER);
        CHECK_CLOSE(x[0], x[1], 1e-6);
        closed_form(1, r.time, x0, want);
        CHECK_CLOSE_ALL(x, want, 2, methods[m] == CGAM_FLOW_EULER ? 5e-3 : 1e-5);
    }
}

TEST_ENV(a_rise_of_the_energy_is_an_error_of_integration)
{
    const double stiff[] = {100, 0, 0, 1};
    OWNED(cgam_net) net = linear_net(env, 2, stiff, a2, 1);
    double x[] = {1, 1};
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    f.method = CGAM_FLOW_EULER; /* unstable above a step of 2 / 100 */
    f.step = 0.03;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.end, CGAM_FLOW_ROSE);
    CHECK_LE(1e-3, r.energy_rise);
    CHECK_LE(r.time, 0.1);
    f.step = 0.01;
    x[0] = x[1] = 1;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.end, CGAM_FLOW_STEADY);
    CHECK_CLOSE(r.energy_rise, 0, 1e-15); /* rounding of an energy near 1 */
}

TEST_ENV(growth_without_bound_ends_as_diverged)
{
    const double grows[] = {-1, 0, 0, 2};
    for (int m = 0; m < 5; m++) {
        OWNED(cgam_net) net = linear_net(env, 2, grows, a2, 1);
        double x[] = {1, 0};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        f.t_end = 1000;
        f.limit = 1e30;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_DIVERGED);
        CHECK_CLOSE(r.time, log(1e30), 2);
        CHECK_CLOSE(r.energy_rise, 0, 0);
    }
}

/* x' = exp(x) - x through an exponential layer on itself: blows up in finite time. */
TEST_ENV(an_activation_beyond_double_ends_as_diverged_too)
{
    for (int m = 0; m < 5; m++) {
        OWNED(cgam_net) net = NULL;
        cgam_layer_opts o = cgam_layer_opts_default();
        o.lagr = cgam_lagr_find("exponential");
        const cgam_op *op;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){1}, &o, NULL));
        CHECK_STATUS(env, cgam_net_dense(net, (const double[]){-1}, CGAM_F64, 1, 1, true, &op));
        CHECK_STATUS(env, cgam_net_add_self(net, "W", 0, op, 1));
        double x[] = {1};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = methods[m];
        f.step = 1e-3;
        f.t_end = 2;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_DIVERGED);
        CHECK_LE(r.time, 1);
        assert_true(isfinite(x[0]) && x[0] > 3);
        double two[] = {1, -5};
        cgam_flow_report rs[2];
        CHECK_STATUS(env, cgam_flow_run(net, 2, two, &f, rs));
        assert_int_equal(rs[0].end, CGAM_FLOW_DIVERGED);
        assert_int_equal(rs[1].end, CGAM_FLOW_HORIZON);
        CHECK_CLOSE(two[0], x[0], 0);
    }
}

TEST(states_of_a_batch_flow_as_if_alone)
{
    enum { BATCH = 9 };
    for (int threads = 1; threads <= 3; threads += 2) {
        OWNED(cgam_env) env = NULL;
        cgam_env_opts eo = cgam_env_opts_default();
        eo.threads = threads;
        assert_int_equal(cgam_env_new(&eo, &env), CGAM_OK);
        uint64_t seed = 8;
        OWNED(cgam_net) net = NULL;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        random_layer(env, net, &seed, cgam_lagr_find("sigmoid"), "x");
        random_layer(env, net, &seed, cgam_lagr_find("softmax"), "y");
        random_synapse(env, net, &seed, "bilinear", "W", 1);
        random_synapse(env, net, &seed, "bias", "b", 1);
        int64_t n = cgam_net_describe(net).size;
        double *clamp = malloc(BATCH * 16 * sizeof *clamp);
        normals(&seed, 1, BATCH * 16, clamp);
        for (int m = 1; m < 5; m++) {
            double x[BATCH * 16], alone[16];
            cgam_flow_report r[BATCH], one;
            cgam_flow_opts f = cgam_flow_opts_default();
            cgam_clamp c = {0, 0, 1, clamp, true};
            f.method = methods[m];
            f.t_end = 3;
            f.steady = 1e-2; /* so that states end at different times */
            f.clamps = &c;
            f.clamp_count = 1;
            uint64_t again = 9;
            normals(&again, 1, BATCH * n, x);
            CHECK_STATUS(env, cgam_flow_run(net, BATCH, x, &f, r));
            again = 9;
            for (int b = 0; b < BATCH; b++) {
                normals(&again, 1, n, alone);
                c.value = clamp + b * cgam_net_layer(net, 0).size;
                CHECK_STATUS(env, cgam_flow_run(net, 1, alone, &f, &one));
                assert_memory_equal(alone, x + b * n, (size_t)n * sizeof *x);
                assert_int_equal(one.end, r[b].end);
                assert_int_equal(one.steps, r[b].steps);
                CHECK_CLOSE(one.energy_end, r[b].energy_end, 0);
                CHECK_CLOSE(one.time, r[b].time, 0);
            }
        }
        free(clamp);
    }
}

TEST_ENV(wrong_options_are_refused_by_name)
{
    OWNED(cgam_net) net = linear_net(env, 2, A2, a2, 1);
    double x[] = {0, 0}, nan[] = {NAN, 0};
    cgam_flow_report r;
    cgam_flow_opts f = cgam_flow_opts_default();
    f.rtol = 0;
    CHECK_REFUSED(env, CGAM_E_ARG, "rtol is 0", cgam_flow_run(net, 1, x, &f, &r));
    f = cgam_flow_opts_default();
    f.t_end = INFINITY;
    CHECK_REFUSED(env, CGAM_E_ARG, "t_end", cgam_flow_run(net, 1, x, &f, &r));
    f = cgam_flow_opts_default();
    f.sample = 1e-300;
    CHECK_REFUSED(env, CGAM_E_ARG, "sample is 1e-300, which makes 1e+302 samples until 100",
                  cgam_flow_run(net, 1, x, &f, &r));
    f = cgam_flow_opts_default();
    f.watch = 1;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_flow_run(net, 1, x, &f, &r));
    f = cgam_flow_opts_default();
    cgam_clamp clamps[] = {{0, 0, 2, NULL, false}, {0, 1, 3, NULL, false}};
    f.clamps = clamps;
    f.clamp_count = 2;
    CHECK_REFUSED(env, CGAM_E_ARG, "clamps 0 and 1 of layer 'x' overlap",
                  cgam_flow_run(net, 1, x, &f, &r));
    f.clamp_count = 1;
    clamps[0].value = nan;
    CHECK_REFUSED(env, CGAM_E_VALUE, "layer 'x'", cgam_flow_run(net, 1, x, &f, &r));
    CHECK_REFUSED(env, CGAM_E_VALUE, "layer 'x', number 0 is not finite",
                  cgam_flow_run(net, 1, nan, NULL, &r));
}

/* A tolerance below rounding: every state of a batch says why it did not move, whichever thread had it. */
TEST_ENV(who_is_stuck_says_why)
{
    enum { STATES = 8 };
    OWNED(cgam_net) net = linear_net(env, 2, A2, a2, 1);
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r[STATES];
    double x[2 * STATES];
    for (int i = 0; i < 2 * STATES; i++) x[i] = i - 7.5;
    CHECK_STATUS(env, cgam_flow_run(net, STATES, x, &f, r));
    for (int i = 0; i < STATES; i++) assert_string_equal(r[i].reason, "");
    for (int i = 0; i < 2 * STATES; i++) x[i] = i - 7.5;
    f.rtol = 1e-16;
    f.atol = 1e-18;
    CHECK_STATUS(env, cgam_flow_run(net, STATES, x, &f, r));
    for (int i = 0; i < STATES; i++) {
        assert_int_equal(r[i].end, CGAM_FLOW_STUCK);
        assert_non_null(strstr(r[i].reason, "too much accuracy"));
    }
}

TEST(words_are_found_again)
{
    for (int i = 0; i <= (int)CGAM_FLOW_EULER; i++)
        assert_int_equal(
            cgam_word_find(cgam_flow_method_words, cgam_word(cgam_flow_method_words, i)), i);
    for (int i = 0; i <= (int)CGAM_FLOW_STUCK; i++)
        assert_int_equal(cgam_word_find(cgam_flow_end_words, cgam_word(cgam_flow_end_words, i)), i);
    assert_int_equal(1u << cgam_word_find(cgam_event_words, "start"), CGAM_EVENT_START);
    assert_int_equal(1u << cgam_word_find(cgam_event_words, "steady"), CGAM_EVENT_STEADY);
    assert_int_equal(1u << cgam_word_find(cgam_event_words, "end"), CGAM_EVENT_END);
    assert_int_equal(cgam_word_find(cgam_event_words, "never"), -1);
}
