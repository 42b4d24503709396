/* Energy never rises: a thousand random networks of every kind, by adaptive and by fixed steps,
 * and the identities that HAMUX publishes with its code (energies of aligned unit vectors, descent
 * at steps of .001, .01 and .1). */
#include "unit/net/nets.h"

#include <cgam/flow.h>

#include "support/owned.h"

typedef struct fall {
    double last, worst; /* energy before, largest rise relative to the sum of |parts| */
    double time, power; /* before */
    int64_t moments;
    int parts;
} fall;

static int watch(void *user, const cgam_flow_moment *m)
{
    fall *f = user;
    double size = 0;
    for (int i = 0; i < f->parts; i++) size += fabs(m->parts[i]);
    if (f->moments++ > 0) f->worst = fmax(f->worst, (m->energy - f->last) / (size + 1e-300));
    f->last = m->energy;
    return m->power > 0; /* the prediction is never positive */
}

TEST_ENV(energy_falls_along_a_thousand_random_networks)
{
    uint64_t seed = 21;
    int lagrs = 0, kinds = 0, ends[9] = {0};
    while (cgam_lagrs[lagrs]) lagrs++;
    while (cgam_synapse_kinds[kinds].name) kinds++;
    for (int round = 0; round < check_trials(1000); round++) {
        OWNED(cgam_net) net = NULL;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        for (int i = 0; i < 3; i++)
            random_layer(env, net, &seed, cgam_lagrs[below(&seed, lagrs)],
                         (const char *[]){"x", "y", "z"}[i]);
        for (int i = 0; i < 4; i++) {
            char name[8];
            snprintf(name, sizeof name, "s%d", i);
            random_synapse(env, net, &seed, cgam_synapse_kinds[below(&seed, kinds)].name, name,
                           0.3 + 0.7 * uniform(&seed));
        }
        double x[32];
        fall f = {.parts = cgam_net_describe(net).parts};
        normals(&seed, 1, cgam_net_describe(net).size, x);
        cgam_flow_opts o = cgam_flow_opts_default();
        cgam_flow_report r;
        double tau = INFINITY;
        for (int i = 0; i < 3; i++) tau = fmin(tau, cgam_net_layer(net, i).tau);
        bool fixed = round % 4 == 0;
        o.method = fixed ? CGAM_FLOW_RK4 : CGAM_FLOW_AUTO;
        o.step = 0.02 * tau;
        o.t_end = fixed ? 100 * o.step : 5;
        o.limit = 8; /* some have no minimum, and the exponentials run away for good */
        o.monitor = watch;
        o.user = &f;
        cgam_clamp clamp = {below(&seed, 3), 0, INFINITY, NULL, false};
        o.clamps = &clamp;
        o.clamp_count = below(&seed, 2);
        CHECK_STATUS(env, cgam_flow_run(net, 1, x, &o, &r));
        ends[r.end]++;
        assert_int_not_equal(r.end, CGAM_FLOW_ROSE);
        assert_int_not_equal(r.end, CGAM_FLOW_STOPPED);
        assert_int_not_equal(r.end, CGAM_FLOW_STUCK);
        /* adaptive steps err by up to rtol = 1e-8 each way */
        CHECK_LE(f.worst, fixed ? 1e-13 : 1e-8);
    }
    /* most of them get somewhere; few run away */
    assert_true(ends[CGAM_FLOW_HORIZON] + ends[CGAM_FLOW_STEADY] > check_trials(700));
}

TEST_ENV(predicted_power_is_the_slope_of_the_energy)
{
    uint64_t seed = 22;
    for (int round = 0; round < 50; round++) {
        OWNED(cgam_net) net = NULL;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        random_layer(env, net, &seed, cgam_lagr_find("tanh"), "x");
        random_layer(env, net, &seed, cgam_lagr_find("softmax"), "y");
        random_synapse(env, net, &seed, "bilinear", "W", 1);
        random_synapse(env, net, &seed, "tensor", "T", 0.5);
        double x[32], rate[32], E[2], power, h = 1e-7;
        int64_t n = cgam_net_describe(net).size;
        normals(&seed, 1, n, x);
        CHECK_STATUS(
            env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.rate = rate, .power = &power}));
        for (int side = 0; side < 2; side++) {
            double y[32];
            for (int64_t i = 0; i < n; i++) y[i] = x[i] + (side ? -h : h) * rate[i];
            CHECK_STATUS(env,
                         cgam_net_eval(net, 1, y, NULL, &(cgam_net_values){.energy = &E[side]}));
        }
        CHECK_REL((E[0] - E[1]) / (2 * h), power, 1e-5);
    }
}

/* ---- identities of HAMUX ---------------------------------------------------------------------- */

/* A dense synapse that stores unit vectors u, v, .. has energy -1 where its layers show them, +1
 * where one is turned round, and 0 where one is orthogonal; for any number of layers. */
TEST_ENV(aligned_unit_vectors_have_energy_minus_one)
{
    uint64_t seed = 23;
    enum { D = 4 };
    for (int k = 2; k <= 4; k++) {
        double u[4][D], T[D * D * D * D], x[4 * D], parts[8];
        for (int j = 0; j < k; j++) {
            normals(&seed, 1, D, u[j]);
            double norm = sqrt(dot(D, u[j], u[j]));
            for (int i = 0; i < D; i++) u[j][i] /= norm;
        }
        int64_t rows = 1, entries = 1;
        for (int j = 0; j < k; j++) entries *= D;
        rows = entries / D;
        for (int64_t e = 0; e < entries; e++) {
            int64_t rest = e;
            T[e] = 1;
            for (int j = k - 1; j >= 0; j--) {
                T[e] *= u[j][rest % D];
                rest /= D;
            }
        }
        OWNED(cgam_net) net = NULL;
        const cgam_op *op;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        for (int j = 0; j < k; j++)
            CHECK_STATUS(env, cgam_net_add_layer(net, (const char *[]){"a", "b", "c", "d"}[j], 1,
                                                 (const int64_t[]){D}, NULL, NULL));
        CHECK_STATUS(env, cgam_net_dense(net, T, CGAM_F64, rows, D, true, &op));
        if (k == 2) CHECK_STATUS(env, cgam_net_add_bilinear(net, "T", 0, 1, op, 1));
        else CHECK_STATUS(env, cgam_net_add_tensor(net, "T", k, (const int[]){0, 1, 2, 3}, op, 1));
        for (int j = 0; j < k; j++) memcpy(x + j * D, u[j], sizeof u[j]);
        CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.parts = parts}));
        CHECK_CLOSE(parts[k], -1, 1e-14);
        for (int i = 0; i < D; i++) x[i] = -x[i];
        CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.parts = parts}));
        CHECK_CLOSE(parts[k], 1, 1e-14);
        double apart[D], along;
        normals(&seed, 1, D, apart);
        along = dot(D, apart, u[0]);
        for (int i = 0; i < D; i++) x[i] = apart[i] - along * u[0][i];
        CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.parts = parts}));
        CHECK_CLOSE(parts[k], 0, 1e-14);
    }
}

TEST_ENV(gradients_of_a_dense_synapse_are_linear_layers)
{
    uint64_t seed = 24;
    enum { N = 10, M = 20 };
    double W[N * M], b[M], x[N + M], current[N + M], want[N + M] = {0};
    normals(&seed, 0.02, N * M, W);
    normals(&seed, 1, N + M, x);
    for (int j = 0; j < M; j++) b[j] = j + 1;
    OWNED(cgam_net) net = NULL;
    const cgam_op *op;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){N}, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "y", 1, (const int64_t[]){M}, NULL, NULL));
    CHECK_STATUS(env, cgam_net_dense(net, W, CGAM_F64, N, M, true, &op));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "W", 0, 1, op, 1));
    CHECK_STATUS(env, cgam_net_add_bias(net, "b", 1, b, 1));
    CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.current = current}));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            want[i] += W[i * M + j] * x[N + j];
            want[N + j] += W[i * M + j] * x[i];
        }
    for (int j = 0; j < M; j++) want[N + j] += b[j];
    CHECK_CLOSE_ALL(current, want, N + M, 1e-13);
}

TEST_ENV(descent_is_monotone_at_three_step_sizes)
{
    const double steps[] = {.001, .01, .1};
    static const char *const pairs[][2] = {{"sigmoid", "softmax"}, {"tanh", "softmax"},
                                           {"relu", "identity"},   {"identity", "softmax"},
                                           {"layer_norm", "relu"}, {"spherical_norm", "tanh"}};
    for (int s = 0; s < 3; s++) {
        for (int p = 0; p < 6; p++) {
            uint64_t seed = 25 + (uint64_t)p;
            OWNED(cgam_net) net = NULL;
            CHECK_STATUS(env, cgam_net_new(env, &net));
            for (int l = 0; l < 2; l++) {
                cgam_layer_opts o = cgam_layer_opts_default();
                o.lagr = cgam_lagr_find(pairs[p][l]);
                CHECK_STATUS(env, cgam_net_add_layer(net, l ? "y" : "x", 1,
                                                     (const int64_t[]){l ? 20 : 10}, &o, NULL));
            }
            CHECK_STATUS(env,
                         cgam_net_add_bilinear(net, "W", 0, 1,
                                               random_op(env, net, &seed, 0.02, 10, 20, false), 1));
            double x[30];
            fall f = {.parts = 3};
            normals(&seed, 1, 30, x);
            cgam_flow_opts o = cgam_flow_opts_default();
            cgam_flow_report r;
            o.method = CGAM_FLOW_EULER;
            o.step = steps[s];
            o.t_end = 200 * steps[s];
            o.monitor = watch;
            o.user = &f;
            o.stop = 0;
            CHECK_STATUS(env, cgam_flow_run(net, 1, x, &o, &r));
            assert_int_equal(r.end, CGAM_FLOW_HORIZON);
            assert_int_equal(r.steps, 200);
            CHECK_LE(f.worst, 1e-15);
            CHECK_LE(r.energy_end, r.energy_start);
        }
    }
}
