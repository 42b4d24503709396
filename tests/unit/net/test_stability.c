/* The leading eigenvalues of the Jacobian: dense against closed forms, iterated against dense. */
#include "unit/net/nets.h"

#include <cgam/flow.h>

#include "support/owned.h"

/* A chain x' = -x + 0.3 (neighbours): eigenvalues -1 + 0.6 cos(k pi / (n + 1)). */
static cgam_net *chain(cgam_env *env, int64_t n, double tau)
{
    cgam_net *net;
    const cgam_op *op;
    cgam_layer_opts o = cgam_layer_opts_default();
    double *W = calloc((size_t)(n * n), sizeof *W);
    assert_non_null(W);
    for (int64_t i = 0; i + 1 < n; i++) W[i * n + i + 1] = W[(i + 1) * n + i] = -0.3;
    o.tau = tau;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &n, &o, NULL));
    CHECK_STATUS(env, cgam_net_dense(net, W, CGAM_F64, n, n, true, &op));
    CHECK_STATUS(env, cgam_net_add_self(net, "W", 0, op, 1));
    free(W);
    return net;
}

TEST_ENV(a_chain_has_its_known_eigenvalues)
{
    const int64_t sizes[] = {5, 60, 400}; /* the last by iteration */
    for (int s = 0; s < 3; s++) {
        int64_t n = sizes[s];
        OWNED(cgam_net) net = chain(env, n, 0.5);
        double *x = calloc((size_t)n, sizeof *x), values[4];
        cgam_eigen info;
        CHECK_STATUS(env, cgam_net_eigen(net, x, NULL, 4, 1e-10, values, &info));
        assert_true(info.converged);
        assert_int_equal(info.all, n < 200);
        assert_int_equal(info.found, 4);
        for (int k = 0; k < 4; k++)
            CHECK_CLOSE(values[k],
                        2 * (-1 + 0.6 * cos((k + 1) * 3.141592653589793 / (double)(n + 1))), 1e-9);
        CHECK_CLOSE(info.imaginary, 0, 1e-7);
        free(x);
    }
}

/* Two layers, one clamped away: as if it were not there. */
TEST_ENV(clamped_layers_have_no_say)
{
    OWNED(cgam_net) net = chain(env, 30, 1);
    int64_t m = 7;
    uint64_t seed = 2;
    CHECK_STATUS(env, cgam_net_add_layer(net, "y", 1, &m, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "xy", 0, 1,
                                            random_op(env, net, &seed, 1, 30, 7, false), 1));
    double x[37] = {0}, values[50];
    bool clamped[] = {false, true};
    cgam_eigen info;
    CHECK_STATUS(env, cgam_net_eigen(net, x, clamped, 50, 0, values, &info));
    assert_int_equal(info.found, 30);
    for (int k = 0; k < 30; k++)
        CHECK_CLOSE(values[k], -1 + 0.6 * cos((k + 1) * 3.141592653589793 / 31), 1e-12);
}

TEST_ENV(eigenvalues_are_real_at_random_points_of_random_nets)
{
    uint64_t seed = 3;
    int kinds = 0;
    while (cgam_synapse_kinds[kinds].name) kinds++;
    for (int round = 0; round < 200; round++) {
        OWNED(cgam_net) net = NULL;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        random_layer(env, net, &seed, cgam_lagr_find("tanh"), "x");
        random_layer(env, net, &seed, cgam_lagr_find("softmax"), "y");
        random_layer(env, net, &seed, cgam_lagr_find("spherical_norm"), "z");
        for (int i = 0; i < 3; i++)
            random_synapse(env, net, &seed, cgam_synapse_kinds[below(&seed, kinds)].name,
                           (const char *[]){"a", "b", "c"}[i], 1);
        double x[32], values[32];
        cgam_eigen info;
        normals(&seed, 1, cgam_net_describe(net).size, x);
        CHECK_STATUS(env, cgam_net_eigen(net, x, NULL, 32, 0, values, &info));
        /* a cluster of k equal values splits by the k-th root of rounding when not symmetric; a
         * synapse of the user's without a tangent is differenced */
        CHECK_LE(info.imaginary, 1e-4 * (1 + fabs(values[info.found - 1])));
    }
}

/* A softmax over many units with a large bank in the middle: iterated = dense. */
TEST_ENV(iteration_and_decomposition_agree)
{
    uint64_t seed = 4;
    enum { N = 230, D = 12 };
    int64_t n = N, d = D;
    OWNED(cgam_net) net = NULL;
    cgam_layer_opts o = cgam_layer_opts_default();
    CHECK_STATUS(env, cgam_net_new(env, &net));
    o.lagr = cgam_lagr_find("softmax");
    o.param[0] = 2;
    CHECK_STATUS(env, cgam_net_add_layer(net, "r", 1, &n, &o, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "q", 1, &d, NULL, NULL));
    CHECK_STATUS(
        env, cgam_net_add_bilinear(net, "Z", 0, 1, random_op(env, net, &seed, 1, N, D, false), 1));
    double x[N + D], few[3], all[N + D];
    cgam_eigen info;
    normals(&seed, 0.3, N + D, x);
    CHECK_STATUS(env, cgam_net_eigen(net, x, NULL, 3, 1e-11, few, &info));
    assert_false(info.all);
    assert_true(info.converged);
    CHECK_STATUS(env, cgam_net_eigen(net, x, NULL, N + D, 0, all, &info));
    assert_true(info.all);
    CHECK_CLOSE_ALL(few, all, 3, 1e-8);
}

/* A pitchfork: tanh units with self-excitation w. At 0 the leading eigenvalue is w - 1. */
TEST_ENV(the_sign_of_the_leading_eigenvalue_decides_stability)
{
    for (double w = 0.5; w < 2; w += 1) {
        OWNED(cgam_net) net = NULL;
        const cgam_op *op;
        cgam_layer_opts o = cgam_layer_opts_default();
        o.lagr = cgam_lagr_find("tanh");
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){1}, &o, NULL));
        CHECK_STATUS(env, cgam_net_dense(net, &(double){-w}, CGAM_F64, 1, 1, true, &op));
        CHECK_STATUS(env, cgam_net_add_self(net, "W", 0, op, 1));
        double x = 0, value;
        cgam_eigen info;
        cgam_flow_report r;
        CHECK_STATUS(env, cgam_net_eigen(net, &x, NULL, 1, 0, &value, &info));
        CHECK_CLOSE(value, w - 1, 1e-14);
        x = 1e-3;
        CHECK_STATUS(env, cgam_flow_run(net, 1, &x, NULL, &r));
        assert_int_equal(r.end, CGAM_FLOW_STEADY);
        if (w < 1) CHECK_CLOSE(x, 0, 1e-7);
        else CHECK_CLOSE(x, w * tanh(x), 1e-7);
        assert_true(w < 1 || x > 0.5);
    }
}
