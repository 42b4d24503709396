/* Energies and currents of whole networks: every kind of synapse, every Lagrangian. The workhorse
 * is dE/dx = H(x) (x - F(x)), F(x) the sum of currents, H the Hessian of the Lagrangians: it ties
 * energy, activation, Hessian and current together, and a misplaced factor anywhere breaks it. */
#include "unit/net/nets.h"

#include "support/owned.h"

enum { ROUNDS = 60 };

/* Three layers with random Lagrangians from the table (or identity), and `kinds` synapses. */
static cgam_net *random_net(cgam_env *env, uint64_t *seed, const char *only, bool linear)
{
    cgam_net *net;
    int lagrs = 0, kinds = 0;
    while (cgam_lagrs[lagrs]) lagrs++;
    while (cgam_synapse_kinds[kinds].name) kinds++;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    for (int i = 0; i < 3; i++) {
        const cgam_lagr *l = linear ? cgam_lagrs[0] : cgam_lagrs[below(seed, lagrs)];
        random_layer(env, net, seed, l, (const char *[]){"x", "y", "z"}[i]);
    }
    for (int i = 0; i < (only ? 1 : 4); i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        random_synapse(env, net, seed, only ? only : cgam_synapse_kinds[below(seed, kinds)].name,
                       name, 0.5 + uniform(seed));
    }
    return net;
}

static double energy_at(cgam_env *env, const cgam_net *net, const double *x)
{
    double E;
    CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.energy = &E}));
    return E;
}

static double parts_at(cgam_env *env, const cgam_net *net, const double *x, double *parts)
{
    double E;
    CHECK_STATUS(env,
                 cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.energy = &E, .parts = parts}));
    return E;
}

/* Layers with the identity (scale 1) have activation = state, so that a difference in the state is
 * one in the activation. */
static cgam_net *plain_net(cgam_env *env, uint64_t *seed, const char *kind)
{
    cgam_net *net;
    static const int64_t shapes[][2] = {{5, 1}, {2, 3}, {3, 2}};
    CHECK_STATUS(env, cgam_net_new(env, &net));
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(env, cgam_net_add_layer(net, (const char *[]){"x", "y", "z"}[i],
                                             i == 0 ? 1 : 2, shapes[i], NULL, NULL));
    random_synapse(env, net, seed, kind, "s", 0.5 + uniform(seed));
    return net;
}

TEST_ENV(currents_are_minus_the_gradient_for_every_synapse)
{
    uint64_t seed = 11;
    for (int t = 0; cgam_synapse_kinds[t].name; t++) {
        for (int round = 0; round < ROUNDS; round++) {
            OWNED(cgam_net) net = plain_net(env, &seed, cgam_synapse_kinds[t].name);
            double x[32], current[32], parts[8];
            int64_t n = cgam_net_describe(net).size;
            normals(&seed, 1, n, x);
            CHECK_STATUS(env,
                         cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.current = current}));
            for (int64_t i = 0; i < n; i++) {
                double h = 1e-5, keep = x[i];
                x[i] = keep + h;
                parts_at(env, net, x, parts);
                double up = parts[3];
                x[i] = keep - h;
                parts_at(env, net, x, parts);
                x[i] = keep;
                /* central difference at 1e-5: h^2 E''' and rounding both near 1e-10 of E */
                CHECK_CLOSE(-(up - parts[3]) / (2 * h), current[i], 2e-8 * (1 + fabs(up)));
            }
        }
    }
}

TEST_ENV(energy_and_map_agree)
{
    uint64_t seed = 12;
    for (int round = 0; round < 400; round++) {
        OWNED(cgam_net) net = random_net(env, &seed, NULL, false);
        double x[32], v[32], rate[32], power, h = 1e-6, y[32];
        int64_t n = cgam_net_describe(net).size;
        normals(&seed, 1, n, x);
        CHECK_STATUS(
            env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.rate = rate, .power = &power}));
        /* H (x - F) = -H tau rate; along the direction tau-scaled rate it is the power */
        for (int64_t i = 0; i < n; i++) v[i] = rate[i];
        for (int64_t i = 0; i < n; i++) y[i] = x[i] + h * v[i];
        double up = energy_at(env, net, y);
        for (int64_t i = 0; i < n; i++) y[i] = x[i] - h * v[i];
        double down = energy_at(env, net, y), size = 1 + fabs(up) + fabs(power);
        CHECK_LE(power, 0);
        CHECK_CLOSE((up - down) / (2 * h), power, 1e-6 * size * (1 + sqrt(dot(n, v, v))));
        /* and in every single direction: dE/dx_i = -(H tau rate)_i. H is read off the
         * activations by differences, so nothing of the library's Hessian is used. */
        for (int64_t i = 0; i < n; i++) {
            double a[32], b[32], g = 0;
            memcpy(y, x, sizeof y);
            y[i] = x[i] + h;
            CHECK_STATUS(env, cgam_net_eval(net, 1, y, NULL,
                                            &(cgam_net_values){.energy = &up, .activation = a}));
            y[i] = x[i] - h;
            CHECK_STATUS(env, cgam_net_eval(net, 1, y, NULL,
                                            &(cgam_net_values){.energy = &down, .activation = b}));
            for (int l = 0; l < 3; l++) {
                cgam_layer_view layer = cgam_net_layer(net, l);
                for (int64_t j = layer.offset; j < layer.offset + layer.size; j++)
                    g -= (a[j] - b[j]) / (2 * h) * layer.tau * rate[j];
            }
            CHECK_CLOSE((up - down) / (2 * h), g, 1e-6 * (1 + fabs(up) + fabs(g)));
        }
    }
}

TEST_ENV(jacobian_is_the_derivative_of_the_rates)
{
    uint64_t seed = 13;
    for (int t = 0; cgam_synapse_kinds[t].name; t++) {
        for (int round = 0; round < ROUNDS; round++) {
            OWNED(cgam_net) net = random_net(env, &seed, cgam_synapse_kinds[t].name, false);
            bool clamped[3] = {below(&seed, 3) == 0, below(&seed, 3) == 0, false};
            double x[32], v[3 * 32], Jv[3 * 32], up[32], down[32], y[32], h = 1e-6;
            int64_t n = cgam_net_describe(net).size;
            normals(&seed, 1, n, x);
            normals(&seed, 1, 3 * n, v);
            for (int l = 0; l < 3; l++)
                for (int64_t j = 0; clamped[l] && j < cgam_net_layer(net, l).size; j++)
                    for (int k = 0; k < 3; k++) v[k * n + cgam_net_layer(net, l).offset + j] = 0;
            CHECK_STATUS(env, cgam_net_jacobian(net, x, clamped, 3, v, Jv));
            for (int k = 0; k < 3; k++) {
                double size = 1;
                for (int64_t i = 0; i < n; i++) y[i] = x[i] + h * v[k * n + i];
                CHECK_STATUS(env,
                             cgam_net_eval(net, 1, y, clamped, &(cgam_net_values){.rate = up}));
                for (int64_t i = 0; i < n; i++) y[i] = x[i] - h * v[k * n + i];
                CHECK_STATUS(env,
                             cgam_net_eval(net, 1, y, clamped, &(cgam_net_values){.rate = down}));
                for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(up[i]));
                for (int64_t i = 0; i < n; i++)
                    CHECK_CLOSE((up[i] - down[i]) / (2 * h), Jv[k * n + i],
                                2e-6 * (size + fabs(Jv[k * n + i])));
            }
        }
    }
}

/* The same network with its layers added in another order. */
static cgam_net *chain(cgam_env *env, const int *order, const double *W, const double *T)
{
    static const char *const names[] = {"x", "y", "z"};
    static const int64_t sizes[] = {4, 3, 5};
    static const char *const lagrs[] = {"tanh", "softmax", "identity"};
    static const double taus[] = {1, 0.1, 3};
    cgam_net *net;
    const cgam_op *w, *t;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    for (int i = 0; i < 3; i++) {
        cgam_layer_opts o = cgam_layer_opts_default();
        o.lagr = cgam_lagr_find(lagrs[order[i]]);
        o.tau = taus[order[i]];
        CHECK_STATUS(env, cgam_net_add_layer(net, names[order[i]], 1, &sizes[order[i]], &o, NULL));
    }
    int x = cgam_net_find(net, "x"), y = cgam_net_find(net, "y"), z = cgam_net_find(net, "z");
    CHECK_STATUS(env, cgam_net_dense(net, W, CGAM_F64, 4, 3, true, &w));
    CHECK_STATUS(env, cgam_net_dense(net, T, CGAM_F64, 12, 5, true, &t));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "xy", x, y, w, 1.5));
    CHECK_STATUS(env, cgam_net_add_tensor(net, "xyz", 3, (const int[]){x, y, z}, t, 0.7));
    CHECK_STATUS(env, cgam_net_add_self(net, "zz", z,
                                        random_op(env, net, &(uint64_t){5}, 1, 5, 5, true), 0.4));
    return net;
}

TEST_ENV(order_of_layers_changes_nothing)
{
    uint64_t seed = 14;
    double W[12], T[60], x[12], want[12], want_E = 0, want_power = 0;
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    normals(&seed, 1, 12, W);
    normals(&seed, 1, 60, T);
    normals(&seed, 1, 12, x);
    for (int k = 0; k < 6; k++) {
        OWNED(cgam_net) net = chain(env, orders[k], W, T);
        double state_k[12], rate[12], E, power;
        static const int64_t at[] = {0, 4, 7};
        static const char *const names[] = {"x", "y", "z"};
        for (int l = 0; l < 3; l++) {
            cgam_layer_view layer = cgam_net_layer(net, cgam_net_find(net, names[l]));
            memcpy(state_k + layer.offset, x + at[l], (size_t)layer.size * sizeof *x);
        }
        CHECK_STATUS(
            env, cgam_net_eval(net, 1, state_k, NULL,
                               &(cgam_net_values){.energy = &E, .rate = rate, .power = &power}));
        for (int l = 0; l < 3; l++) {
            cgam_layer_view layer = cgam_net_layer(net, cgam_net_find(net, names[l]));
            if (k == 0) memcpy(want + at[l], rate + layer.offset, (size_t)layer.size * sizeof *x);
            else CHECK_CLOSE_ALL(rate + layer.offset, want + at[l], layer.size, 0);
        }
        if (k == 0) want_E = E, want_power = power;
        /* energies are summed layer by layer, so their order may move the last bit */
        CHECK_REL(E, want_E, 4e-16);
        CHECK_REL(power, want_power, 4e-16);
    }
}

TEST_ENV(a_state_has_the_same_bits_alone_and_in_a_batch)
{
    uint64_t seed = 15;
    for (int round = 0; round < 40; round++) {
        enum { BATCH = 70 }; /* more than are taken at once */
        OWNED(cgam_net) net = random_net(env, &seed, NULL, false);
        int64_t n = cgam_net_describe(net).size;
        int parts = cgam_net_describe(net).parts;
        double *x = malloc(BATCH * (size_t)n * sizeof *x), *rate = malloc(BATCH * (size_t)n * 8);
        double all[BATCH * 8], E[BATCH], one[8], E1, rate1[32];
        normals(&seed, 1, BATCH * n, x);
        CHECK_STATUS(env,
                     cgam_net_eval(net, BATCH, x, NULL,
                                   &(cgam_net_values){.energy = E, .parts = all, .rate = rate}));
        for (int b = 0; b < BATCH; b++) {
            CHECK_STATUS(
                env, cgam_net_eval(net, 1, x + b * n, NULL,
                                   &(cgam_net_values){.energy = &E1, .parts = one, .rate = rate1}));
            assert_memory_equal(&E1, &E[b], sizeof E1);
            assert_memory_equal(one, all + b * parts, (size_t)parts * sizeof *one);
            assert_memory_equal(rate1, rate + b * n, (size_t)n * sizeof *rate1);
        }
        free(x);
        free(rate);
    }
}

TEST_ENV(clamps_leave_energy_and_free_rates_alone)
{
    uint64_t seed = 16;
    for (int round = 0; round < 200; round++) {
        OWNED(cgam_net) net = random_net(env, &seed, NULL, false);
        int64_t n = cgam_net_describe(net).size;
        double x[2 * 32], rate[2 * 32], held[2 * 32], E[2], E2[2];
        bool clamped[3] = {below(&seed, 2), below(&seed, 2), below(&seed, 2)};
        normals(&seed, 1, 2 * n, x);
        CHECK_STATUS(env,
                     cgam_net_eval(net, 2, x, NULL, &(cgam_net_values){.energy = E, .rate = rate}));
        CHECK_STATUS(
            env, cgam_net_eval(net, 2, x, clamped, &(cgam_net_values){.energy = E2, .rate = held}));
        for (int b = 0; b < 2; b++) {
            CHECK_CLOSE(E2[b], E[b], 1e-13 * (1 + fabs(E[b])));
            for (int l = 0; l < 3; l++) {
                cgam_layer_view layer = cgam_net_layer(net, l);
                for (int64_t j = 0; j < layer.size; j++) {
                    int64_t i = b * n + layer.offset + j;
                    CHECK_CLOSE(held[i], clamped[l] ? 0 : rate[i], 1e-13 * (1 + fabs(rate[i])));
                }
            }
        }
    }
}

TEST_ENV(weights_of_any_type_give_what_their_numbers_give)
{
    uint64_t seed = 17;
    double W[12], x[7], current[7], want[7];
    normals(&seed, 1, 12, W);
    normals(&seed, 1, 7, x);
    for (int i = 0; i < 12; i++) W[i] = (float)W[i];
    float narrow[12];
    for (int i = 0; i < 12; i++) narrow[i] = (float)W[i];
    for (int wide = 1; wide >= 0; wide--) {
        OWNED(cgam_net) net = NULL;
        const cgam_op *op;
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){4}, NULL, NULL));
        CHECK_STATUS(env, cgam_net_add_layer(net, "y", 1, (const int64_t[]){3}, NULL, NULL));
        CHECK_STATUS(env, cgam_net_dense(net, wide ? (void *)W : (void *)narrow,
                                         wide ? CGAM_F64 : CGAM_F32, 4, 3, false, &op));
        CHECK_STATUS(env, cgam_net_add_bilinear(net, "W", 0, 1, op, 1));
        CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL,
                                        &(cgam_net_values){.current = wide ? want : current}));
    }
    CHECK_CLOSE_ALL(current, want, 7, 1e-15);
}
