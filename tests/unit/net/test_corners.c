/* Flows, eigenvalues and trajectories at the ends of what can be asked of them. */
#include "lab/figures/net_files.h"
#include "unit/net/nets.h"

#include <cgam/flow.h>
#include <cgam/io.h>
#include <unistd.h>

#include "support/owned.h"

/* ---- flows ------------------------------------------------------------------------------------ */
/* One layer "x" [n]; x' = gain x: gain + 1 = twice the strength of a coupling with itself. */
static cgam_net *growing_net(cgam_env *env, int64_t n, double gain)
{
    cgam_net *net;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &n, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_coupling(net, "own", 0, 0, 0.5 * (gain + 1)));
    return net;
}

TEST_ENV(wrong_flows_are_refused_by_name)
{
    OWNED(cgam_net) net = growing_net(env, 2, -1);
    OWNED(cgam_net) empty = NULL;
    double x[] = {1, 2};
    const double nan[] = {0, NAN};
    cgam_flow_report r;
    const struct {
        cgam_clamp clamp;
        cgam_status status;
        const char *message;
    } clamps[] = {
        {{-1, 0, 1, NULL, false}, CGAM_E_ARG, "clamp 0: no layer -1 (there are 1"},
        {{1, 0, 1, NULL, false}, CGAM_E_ARG, "clamp 0: no layer 1 (there are 1"},
        {{0, -1, 1, NULL, false}, CGAM_E_ARG, "clamp 0 of layer 'x': from is -1 and to is 1"},
        {{0, 1, 1, NULL, false}, CGAM_E_ARG, "from is 1 and to is 1"},
        {{0, INFINITY, INFINITY, NULL, false}, CGAM_E_ARG, "from is inf and to is inf"},
        {{0, 0, 1, nan, false}, CGAM_E_VALUE, "clamp 0 of layer 'x': number 1 is not finite"},
    };
    for (size_t i = 0; i < sizeof clamps / sizeof *clamps; i++) {
        cgam_flow_opts f = cgam_flow_opts_default();
        const cgam_clamp two[] = {clamps[i].clamp, {0, 0, 1, NULL, false}};
        f.clamps = two;
        f.clamp_count = 2;
        CHECK_REFUSED(env, clamps[i].status, clamps[i].message, cgam_flow_run(net, 1, x, &f, &r));
    }
    cgam_flow_opts f = cgam_flow_opts_default();
    f.method = (cgam_flow_method)9;
    CHECK_REFUSED(env, CGAM_E_ARG, "method 9 of a flow", cgam_flow_run(net, 1, x, &f, &r));
    f = cgam_flow_opts_default();
    f.max_steps = 0;
    CHECK_REFUSED(env, CGAM_E_ARG, "max_steps is 0", cgam_flow_run(net, 1, x, &f, &r));
    f = cgam_flow_opts_default();
    f.watch = -2;
    CHECK_REFUSED(env, CGAM_E_ARG, "watch: no layer -2 (there are 1",
                  cgam_flow_run(net, 1, x, &f, &r));
    f.watch = 1;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_flow_run(net, 1, x, &f, &r));
    f.watch = -1;
    f.stop = CGAM_EVENT_WINNER;
    CHECK_REFUSED(env, CGAM_E_ARG, "stop at a winner requires a layer to watch",
                  cgam_flow_run(net, 1, x, &f, &r));
    CHECK_REFUSED(env, CGAM_E_ARG, "a flow needs at least 1 state and 1 layer, not 0 and 1",
                  cgam_flow_run(net, 0, x, NULL, &r));
    CHECK_STATUS(env, cgam_net_new(env, &empty));
    CHECK_REFUSED(env, CGAM_E_ARG, "a flow needs at least 1 state and 1 layer, not 1 and 0",
                  cgam_flow_run(empty, 1, x, NULL, &r));
}

TEST_ENV(a_flow_ends_where_it_is_told)
{
    OWNED(cgam_net) net = growing_net(env, 2, -1);
    CHECK_STATUS(env, cgam_net_add_bias(net, "to", 0, (const double[]){1, 1}, 1));
    cgam_flow_report r;
    for (int m = CGAM_FLOW_AUTO; m <= CGAM_FLOW_EULER; m++) {
        cgam_flow_opts f = cgam_flow_opts_default();
        f.method = (cgam_flow_method)m;
        f.max_steps = 3;
        f.step_max = 0.125;
        double x[] = {3, 2}, rest[] = {1, 1};
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_STEPS);
        assert_int_equal(r.steps, 3);
        CHECK_LE(r.time, 3 * 0.125);
        f = cgam_flow_opts_default();
        f.method = (cgam_flow_method)m;
        f.settle = 1e-3;
        f.stop = CGAM_EVENT_SETTLED;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_SETTLED);
        CHECK_CLOSE(r.settled, r.time, 0);
        CHECK_STATUS(env, cgam_flow_run(net, 1, rest, NULL, &r)); /* steady from the start */
        assert_int_equal(r.end, CGAM_FLOW_STEADY);
        assert_int_equal(r.steps, 0);
    }
    /* steps beyond counting, and one step that is longer than the flow */
    cgam_flow_opts f = cgam_flow_opts_default();
    double x[] = {1, 2};
    f.method = CGAM_FLOW_EULER;
    f.step = 1e-300;
    f.max_steps = 2;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.end, CGAM_FLOW_STEPS);
    CHECK_CLOSE(x[1], 2, 1e-15);
    f.step = 1e300;
    f.t_end = 1e-30;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.end, CGAM_FLOW_HORIZON);
    assert_int_equal(r.steps, 1);
}

/* Nothing moves while all is held; what is held is another input later, and the winner with it. */
TEST_ENV(held_layers_stay_where_they_are_held)
{
    OWNED(cgam_net) net = growing_net(env, 2, -1);
    const double first[] = {3, 1}, second[] = {1, 3};
    const cgam_clamp clamps[] = {{0, 1, INFINITY, second, false}, {0, 0, 1, first, false}};
    for (int m = CGAM_FLOW_AUTO; m <= CGAM_FLOW_EULER; m++) {
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        double x[] = {7, 8};
        f.method = (cgam_flow_method)m;
        f.t_end = 2;
        f.steady = f.settle = 0;
        f.clamps = clamps;
        f.clamp_count = 2;
        f.watch = 0;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_HORIZON);
        CHECK_CLOSE(r.time, 2, 0);
        CHECK_CLOSE_ALL(x, second, 2, 0);
        assert_int_equal(r.winner, 1);
        assert_int_equal(r.winner_changes, 1);
        CHECK_CLOSE(r.winner_time, 1, 0);
    }
}

/* States that leave at different times, or never, end as each does alone. */
TEST_ENV(states_diverge_one_by_one)
{
    OWNED(cgam_net) net = growing_net(env, 1, 1);
    enum { STATES = 5 };
    const double start[STATES] = {1e-3, 1, 0, 1e-1, 1};
    for (int m = CGAM_FLOW_RK4; m <= CGAM_FLOW_EULER; m++) {
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report all[STATES], alone;
        double x[STATES];
        f.method = (cgam_flow_method)m;
        f.step = 0.1;
        f.t_end = 14;
        f.limit = 100;
        f.stop = 0;
        memcpy(x, start, sizeof x);
        CHECK_STATUS(env, cgam_flow_run(net, STATES, x, &f, all));
        for (int i = 0; i < STATES; i++) {
            double y = start[i];
            CHECK_STATUS(env, cgam_flow_run(net, 1, &y, &f, &alone));
            CHECK_CLOSE(x[i], y, 0);
            CHECK_CLOSE(all[i].time, alone.time, 0);
            assert_int_equal(all[i].end, i == 2 ? CGAM_FLOW_HORIZON : CGAM_FLOW_DIVERGED);
            assert_int_equal(all[i].end, alone.end);
        }
        assert_true(all[1].time < all[3].time && all[3].time < all[0].time);
    }
}

/* Rates of change that are none, that overflow, and a start beyond the limit: a method is chosen all the same. */
TEST_ENV(strange_rates_have_a_method_too)
{
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    double x[] = {1, 2};
    f.stop = 0;
    f.t_end = 1;
    cgam_net *net = growing_net(env, 2, 0);
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.method, CGAM_FLOW_ADAMS);
    assert_int_equal(r.end, CGAM_FLOW_HORIZON);
    CHECK_CLOSE(x[1], 2, 1e-12);
    f.limit = 1e-20;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.end, CGAM_FLOW_DIVERGED);
    CHECK_CLOSE(r.time, 0, 0);
    cgam_net_free(net);
    net = growing_net(env, 2, -1e200);
    f.limit = 1e100;
    x[0] = x[1] = 0;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    assert_int_equal(r.method, CGAM_FLOW_ADAMS);
    cgam_net_free(net);
}

/* BDF where the network is large and few numbers of it move, and where a layer before them is held. */
TEST_ENV(held_layers_have_no_part_in_newtons_method)
{
    OWNED(cgam_net) net = NULL;
    enum { HELD = 600, FREE = 3 };
    const int64_t held = HELD, moving = FREE;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "held", 1, &held, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &moving, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_coupling(net, "own", 1, 1, -49.5)); /* x' = -100 x */
    static double x[HELD + FREE];
    for (int i = 0; i < HELD + FREE; i++) x[i] = 1;
    const cgam_clamp clamp = {0, 0, INFINITY, NULL, false};
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    f.method = CGAM_FLOW_BDF;
    f.t_end = 0.01;
    f.stop = 0;
    f.clamps = &clamp;
    f.clamp_count = 1;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    CHECK_CLOSE(x[0], 1, 0);
    for (int i = 0; i < FREE; i++) CHECK_CLOSE(x[HELD + i], exp(-1), 1e-7);
}

/* ---- eigenvalues ------------------------------------------------------------------------------ */
TEST_ENV(eigenvalues_that_cannot_be_had_are_refused)
{
    enum { N = 240 };
    static double x[N], values[30];
    cgam_eigen info;
    const bool all[] = {true};
    cgam_net *net = growing_net(env, N, -3);
    CHECK_REFUSED(env, CGAM_E_ARG, "the number of eigenvalues must be at least 1",
                  cgam_net_eigen(net, x, NULL, 0, 0, values, &info));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_eigen(net, x, NULL, 1, -1, values, &info));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_eigen(net, x, NULL, 1, NAN, values, &info));
    CHECK_STATUS(env, cgam_net_eigen(net, x, all, 1, 0, values, &info)); /* nothing moves */
    assert_int_equal(info.found, 0);
    /* one eigenvalue 240 times: the basis is invariant after each product, and no tolerance is met exactly */
    CHECK_STATUS(env, cgam_net_eigen(net, x, NULL, 25, 0, values, &info));
    assert_false(info.all);
    assert_true(info.converged);
    for (int i = 0; i < 25; i++) CHECK_CLOSE(values[i], -3, 1e-12);
    cgam_net_free(net);
    CHECK_STATUS(env, cgam_net_new(env, &net));
    const int64_t wide = 20000, more = INT64_C(1) << 32;
    CHECK_STATUS(env, cgam_net_add_layer(net, "wide", 1, &wide, NULL, NULL));
    CHECK_REFUSED(env, CGAM_E_NOMEM, "4000 eigenvalues of 20000: too many to decompose",
                  cgam_net_eigen(net, x, NULL, 4000, 0, values, &info));
    CHECK_STATUS(env, cgam_net_add_layer(net, "more", 1, &more, NULL, NULL));
    CHECK_FAILS(env, CGAM_E_NOMEM, cgam_net_eigen(net, x, NULL, 1, 0, values, &info));
    cgam_net_free(net);
}

TEST_ENV(a_tolerance_of_nothing_ends_too)
{
    enum { N = 240 };
    static double x[N];
    double values[2];
    cgam_eigen info;
    OWNED(cgam_net) net = NULL;
    const int64_t n = N;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("tanh");
    for (int i = 0; i < N; i++) x[i] = 0.01 * i;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &n, &o, NULL));
    CHECK_STATUS(env, cgam_net_add_coupling(net, "own", 0, 0, 0.5));
    CHECK_STATUS(env, cgam_net_eigen(net, x, NULL, 2, 1e-300, values, &info));
    /* J = -1 + sech^2 x_i on the diagonal; the largest is 0 at x_0 = 0 */
    CHECK_CLOSE(values[0], 0, 1e-9);
    CHECK_CLOSE(values[1], 1 / (cosh(0.01) * cosh(0.01)) - 1, 1e-9);
}

/* ---- trajectories ----------------------------------------------------------------------------- */
TEST_ENV(trajectories_of_any_shape_are_written)
{
    OWNED(cgam_net) net = NULL;
    const int64_t shape[8] = {2, 1, 1, 1, 1, 1, 1, 1};
    int index = -1;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "deep", 8, shape, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "lone", 0, NULL, NULL, &index));
    assert_int_equal(index, 1);
    char path[64], member[96];
    snprintf(path, sizeof path, "/tmp/cgam-corners-%d.npz", (int)getpid());
    for (int keep = 0; keep < 2; keep++) {
        cgam_trajectory *t;
        cgam_array a;
        double x[] = {1, 2, 3};
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        CHECK_STATUS(env, cgam_trajectory_new(net, keep, &t));
        CHECK_REFUSED(env, CGAM_E_ARG, "the trajectory is empty",
                      cgam_trajectory_write(net, t, path));
        f.method = CGAM_FLOW_EULER;
        f.t_end = 1; /* 100 steps: more than there is room for at first */
        f.stop = 0;
        f.monitor = cgam_trajectory_monitor;
        f.user = t;
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
        assert_int_equal(cgam_trajectory_look(t).count, 101);
        CHECK_CLOSE(cgam_trajectory_look(t).time[100], 1, 1e-12);
        CHECK_STATUS(env, cgam_trajectory_write(net, t, path));
        CHECK_FAILS(env, CGAM_E_IO, cgam_trajectory_write(net, t, "/nowhere/at/all.csv"));
        snprintf(member, sizeof member, "%s:layer/deep", path);
        if (keep) {
            CHECK_STATUS(env, cgam_array_open(env, member, &a));
            assert_int_equal(a.ndim, 2); /* an array has at most eight dimensions */
            assert_int_equal(a.shape[1], 2);
            CHECK_CLOSE(((const double *)a.data)[201], x[1], 0);
            cgam_array_close(env, &a);
        } else {
            CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_array_open(env, member, &a));
        }
        cgam_trajectory_free(t);
        unlink(path);
    }
    cgam_trajectory_free(NULL);
}

/* ---- values ----------------------------------------------------------------------------------- */
TEST_ENV(a_batch_larger_than_a_group_is_evaluated_alike)
{
    enum { STATES = 150 };
    OWNED(cgam_net) net = growing_net(env, 2, -3);
    static double x[2 * STATES], current[2 * STATES], v[2 * STATES], Jv[2 * STATES];
    for (int i = 0; i < 2 * STATES; i++) x[i] = v[i] = 0.5 * i;
    CHECK_STATUS(env, cgam_net_eval(net, STATES, x, NULL, &(cgam_net_values){.current = current}));
    CHECK_STATUS(env, cgam_net_jacobian(net, x, NULL, STATES, v, Jv));
    for (int i = 0; i < 2 * STATES; i++) {
        CHECK_CLOSE(current[i], -2 * x[i], 0);
        CHECK_CLOSE(Jv[i], -3 * v[i], 0);
    }
    CHECK_STATUS(env, cgam_net_eval(net, 0, NULL, NULL, &(cgam_net_values){0}));
    CHECK_STATUS(env, cgam_net_jacobian(net, x, NULL, 0, NULL, NULL));
    x[1] = INFINITY;
    CHECK_FAILS(env, CGAM_E_VALUE, cgam_net_jacobian(net, x, NULL, 1, v, Jv));
}
