/* Gradients of networks: dE/dtheta of every synapse and Lagrangian, and the gradient of a loss by every way, against
 * central differences. */
#include "support/failing_alloc.h"
#include "unit/net/nets.h"

#include <cgam/flow.h>

enum { PARAMS = 1200, SIZE = 64, BATCH = 3 };

/* E = sum over i of t0 sin(t1 x[i]) y[i mod ny], with its parameters t. */
static cgam_status tuned_eval(void *user, int k, const int64_t *size, const double *const *act,
                              double *energy, double *const *current)
{
    const double *t = user;
    *energy = 0;
    for (int64_t i = 0; i < size[0]; i++) {
        int64_t j = i % size[k - 1];
        double s = t[0] * sin(t[1] * act[0][i]), c = t[0] * t[1] * cos(t[1] * act[0][i]);
        *energy += s * act[k - 1][j];
        if (current[0]) current[0][i] -= c * act[k - 1][j];
        if (current[k - 1]) current[k - 1][j] -= s;
    }
    return CGAM_OK;
}

static cgam_status tuned_slope(void *user, int k, const int64_t *size, const double *const *act,
                               double *out)
{
    const double *t = user;
    for (int64_t i = 0; i < size[0]; i++) {
        double x = act[0][i], y = act[k - 1][i % size[k - 1]];
        out[0] += sin(t[1] * x) * y;
        out[1] += t[0] * x * cos(t[1] * x) * y;
    }
    return CGAM_OK;
}

static void add_tuned(cgam_env *env, cgam_net *net, const char *name, double *theta)
{
    cgam_synapse table = {.eval = tuned_eval, .params = 2, .theta = theta, .slope = tuned_slope};
    CHECK_STATUS(env, cgam_net_add_synapse(net, name, 2, (const int[]){0, 1}, &table, theta));
}

/* A loss that couples all activations: sum of w a + (a - b)^2 / 2. */
typedef struct mixed {
    int64_t size;
    double w[SIZE], b[SIZE];
} mixed;

static cgam_status mixed_loss(void *user, int64_t state, const double *a, double *loss,
                              double *slope)
{
    const mixed *m = user;
    double shift = 0.1 * (double)state;
    *loss = 0;
    for (int64_t i = 0; i < m->size; i++) {
        double off = a[i] - m->b[i] - shift;
        *loss += m->w[i] * a[i] + 0.5 * off * off;
        if (slope) slope[i] += m->w[i] + off;
    }
    return CGAM_OK;
}

static mixed random_loss(uint64_t *seed, int64_t size)
{
    mixed m = {.size = size};
    normals(seed, 1, size, m.w);
    normals(seed, 1, size, m.b);
    return m;
}

/* Names of all that can be learned in a network. */
typedef struct names {
    int count;
    char text[64][48];
    const char *list[64];
} names;

static void add_name(names *n, const char *part, const char *word)
{
    if (!word) snprintf(n->text[n->count], sizeof n->text[0], "%s", part);
    else snprintf(n->text[n->count], sizeof n->text[0], "%s.%s", part, word);
    n->list[n->count] = n->text[n->count];
    n->count++;
}

static void check_slopes(cgam_env *env, const cgam_net *net, cgam_net_params *p, uint64_t *seed)
{
    int64_t count = cgam_net_params_count(p), size = cgam_net_describe(net).size;
    double theta[PARAMS], moved[PARAMS], slope[PARAMS], x[2 * SIZE], a[2 * SIZE], E[2][2];
    assert_true(count <= PARAMS && size <= SIZE);
    normals(seed, 1, 2 * size, x);
    cgam_net_params_get(p, theta);
    CHECK_STATUS(env, cgam_net_params_slope(p, 2, x, slope));
    CHECK_STATUS(env, cgam_net_eval(net, 2, x, NULL, &(cgam_net_values){.activation = a}));
    for (int64_t i = 0; i < count; i++) {
        const double h = 1e-5;
        for (int side = 0; side < 2; side++) {
            memcpy(moved, theta, sizeof moved);
            moved[i] += side ? -h : h;
            CHECK_STATUS(env, cgam_net_params_set(p, moved));
            CHECK_STATUS(env,
                         cgam_net_eval(net, 2, x, NULL, &(cgam_net_values){.energy = E[side]}));
        }
        /* the energy of a layer is taken at a fixed activation: what x moves cancels to first order for synapses alone */
        double difference = (E[0][0] + E[0][1] - E[1][0] - E[1][1]) / (2 * h);
        CHECK_CLOSE(slope[i], difference, 2e-8 * (1 + fabs(difference)));
    }
    CHECK_STATUS(env, cgam_net_params_set(p, theta));
}

TEST(energy_slopes_of_all_synapses_match_differences)
{
    cgam_env *env = new_env();
    for (int kind = 0; cgam_synapse_kinds[kind].name; kind++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            uint64_t s = seed + 100 * (uint64_t)kind;
            const char *word = cgam_synapse_kinds[kind].name;
            double theta[2] = {0.7, 1.3};
            bool user = strcmp(word, "user") == 0;
            cgam_net *net;
            names n = {0};
            cgam_net_params *p;
            CHECK_STATUS(env, cgam_net_new(env, &net));
            random_layer(env, net, &s, cgam_lagr_find("tanh"), "x");
            random_layer(env, net, &s, cgam_lagr_find("identity"), "y");
            if (user) add_tuned(env, net, "s", theta);
            else random_synapse(env, net, &s, word, "s", 0.8);
            if (strcmp(word, "coupling") != 0) add_name(&n, "s", NULL);
            if (!user) add_name(&n, "s", "gain");
            if (strcmp(word, "attention") == 0) add_name(&n, "s", "beta");
            CHECK_STATUS(env, cgam_net_params_new(net, n.count, n.list, &p));
            check_slopes(env, net, p, &s);
            cgam_net_params_free(p);
            cgam_net_free(net);
        }
    cgam_env_free(env);
}

/* A network in which every kind of synapse and a given Lagrangian take part, contracting, so that it settles. */
static cgam_net *whole_net(cgam_env *env, uint64_t seed, const cgam_lagr *lagr, double *theta,
                           names *n)
{
    cgam_net *net;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    uint64_t s = seed;
    cgam_layer_opts o = cgam_layer_opts_default();
    int64_t shape[2] = {2, 3};
    o.lagr = lagr;
    o.scale = 0.9;
    o.tau = 1.4;
    o.axes = 1;
    for (int i = 0; i < CGAM_LAGR_PARAMS && lagr->param[i].name; i++) {
        bool order = strcmp(lagr->param[i].name, "order") == 0;
        o.param[i] = strcmp(lagr->param[i].name, "epsilon") == 0 ? 0.5
                     : strcmp(lagr->param[i].name, "power") == 0 ? 2.5
                     : order                                     ? 1.4
                     : strcmp(lagr->param[i].name, "delta") == 0 ? 0.2
                                                                 : 0.6;
        add_name(n, "x", lagr->param[i].name);
    }
    add_name(n, "x", "scale");
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 2, shape, &o, NULL));
    o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("tanh");
    o.tau = 0.7;
    CHECK_STATUS(env, cgam_net_add_layer(net, "y", 2, shape, &o, NULL));
    shape[0] = 4;
    CHECK_STATUS(env, cgam_net_add_layer(net, "held", 1, shape, NULL, NULL));
    for (int kind = 0; cgam_synapse_kinds[kind].name; kind++) {
        const char *word = cgam_synapse_kinds[kind].name;
        if (strcmp(word, "user") == 0) add_tuned(env, net, word, theta);
        else random_synapse(env, net, &s, word, word, 0.08);
        if (strcmp(word, "coupling") != 0) add_name(n, word, NULL);
        if (strcmp(word, "user") != 0) add_name(n, word, "gain");
        if (strcmp(word, "attention") == 0) add_name(n, word, "beta");
    }
    const cgam_op *W = random_op(env, net, &s, 0.2, 6, 4, false);
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "input", 0, 2, W, 0.5));
    add_name(n, "input", NULL);
    const cgam_op *V = random_op(env, net, &s, 0.4, 5, 6, false);
    CHECK_STATUS(env, cgam_net_add_hidden(net, "soft", 0, V, cgam_lagr_find("softmax"),
                                          (const double[]){1.7}, 0.1));
    add_name(n, "soft", NULL);
    add_name(n, "soft", "beta");
    const cgam_op *K;
    double kernels[3] = {0.1, -0.2, 0.15};
    const cgam_conv c = {1, 6, 1, 1, 1, 3, 1, 1, true};
    CHECK_STATUS(env, cgam_net_conv(net, &c, kernels, &K));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "conv", 1, 0, K, 0.3));
    add_name(n, "conv", NULL);
    return net;
}

/* The loss and gradient at theta from the given starts. */
static double loss_at(cgam_env *env, cgam_net_params *p, cgam_net_learner *l, const double *theta,
                      const double *start, int64_t size, mixed *m, double *gradient)
{
    double x[BATCH * SIZE], total;
    cgam_net_loss loss = {mixed_loss, m};
    CHECK_STATUS(env, cgam_net_params_set(p, theta));
    memcpy(x, start, (size_t)(BATCH * size) * sizeof *x);
    CHECK_STATUS(env, cgam_net_learner_run(l, BATCH, x, &loss, &total, gradient, NULL));
    return total;
}

/* Along random directions of theta, and along each number of it for some. */
static void check_gradient(cgam_env *env, cgam_net *net, const names *n,
                           const cgam_net_learn_opts *opts, uint64_t seed, double h, double allowed)
{
    cgam_net_params *p;
    cgam_net_learner *l;
    const int64_t size = cgam_net_describe(net).size;
    double theta[PARAMS], gradient[PARAMS], moved[PARAMS], start[BATCH * SIZE];
    mixed m = random_loss(&seed, size);
    CHECK_STATUS(env, cgam_net_params_new(net, n->count, n->list, &p));
    CHECK_STATUS(env, cgam_net_learner_new(p, opts, BATCH, &l));
    int64_t count = cgam_net_params_count(p);
    assert_true(count <= PARAMS && size <= SIZE);
    normals(&seed, 0.8, BATCH * size, start);
    cgam_net_params_get(p, theta);
    loss_at(env, p, l, theta, start, size, &m, gradient);
    for (int b = 0; b < cgam_net_params_blocks(p); b++) {
        cgam_net_block block = cgam_net_params_block(p, b);
        double along[PARAMS], predicted = 0, loss[2];
        normals(&seed, 1 / sqrt((double)(block.rows * block.cols)), block.rows * block.cols, along);
        for (int side = 0; side < 2; side++) {
            memcpy(moved, theta, sizeof moved);
            for (int64_t i = 0; i < block.rows * block.cols; i++)
                moved[block.from + i] += (side ? -h : h) * along[i];
            loss[side] = loss_at(env, p, l, moved, start, size, &m, NULL);
        }
        for (int64_t i = 0; i < block.rows * block.cols; i++)
            predicted += gradient[block.from + i] * along[i];
        double difference = (loss[0] - loss[1]) / (2 * h);
        if (!(fabs(predicted - difference) <= allowed * (1 + fabs(difference))))
            print_message("block %s of a network with %s\n", block.name,
                          cgam_net_layer(net, 0).lagr->name);
        CHECK_CLOSE(predicted, difference, allowed * (1 + fabs(difference)));
    }
    CHECK_STATUS(env, cgam_net_params_set(p, theta));
    cgam_net_learner_free(l);
    cgam_net_params_free(p);
}

static void check_way(cgam_net_learn_opts opts, double h, double allowed)
{
    cgam_env *env = new_env();
    const bool clamped[] = {false, false, true};
    opts.clamped = clamped;
    for (int i = 0; cgam_lagrs[i]; i++) {
        double theta[2] = {0.05, 1.3};
        names n = {0};
        cgam_net *net = whole_net(env, 11 + (uint64_t)i, cgam_lagrs[i], theta, &n);
        check_gradient(env, net, &n, &opts, 5 + (uint64_t)i, h, allowed);
        cgam_net_free(net);
    }
    cgam_env_free(env);
}

TEST(steps_match_differences_for_every_synapse_and_lagrangian)
{
    cgam_net_learn_opts opts = cgam_net_learn_opts_default();
    opts.step = 0.4;
    for (int64_t steps = 1; steps <= 4; steps += 3) {
        opts.steps = steps;
        check_way(opts, 1e-5, 1e-8);
    }
}

TEST(implicit_gradients_match_differences_for_every_synapse_and_lagrangian)
{
    cgam_net_learn_opts opts = cgam_net_learn_opts_default();
    opts.way = CGAM_NET_IMPLICIT;
    opts.step = 0.5;
    opts.steady = 1e-13;
    opts.max_steps = 5000;
    check_way(opts, 1e-5, 1e-7);
}

TEST(adjoints_of_trajectories_match_differences_for_every_synapse_and_lagrangian)
{
    cgam_net_learn_opts opts = cgam_net_learn_opts_default();
    opts.way = CGAM_NET_ADJOINT;
    opts.t_end = 1.5;
    opts.rtol = 1e-11;
    opts.atol = 1e-13;
    check_way(opts, 1e-4, 1e-5); /* an integrator crosses the edges of sparse supports */
}

/* Its difference from the implicit gradient falls as the square of the nudge. */
TEST(equilibrium_propagation_approaches_the_implicit_gradient)
{
    cgam_env *env = new_env();
    const bool clamped[] = {false, false, true};
    for (int i = 0; cgam_lagrs[i]; i++) {
        double theta[2] = {0.05, 1.3}, start[BATCH * SIZE], at[PARAMS], exact[PARAMS], off[2];
        names n = {0};
        uint64_t seed = 3 + (uint64_t)i;
        /* the kinks of relu and its like and the edges of sparse supports are crossed by a finite nudge */
        const char *word = cgam_lagrs[i]->name;
        bool smooth = !strstr(word, "relu") && !strstr(word, "power") && !strstr(word, "rect") &&
                      !strstr(word, "sparsemax") && !strstr(word, "entmax");
        cgam_net *net = whole_net(env, 11 + (uint64_t)i, cgam_lagrs[i], theta, &n);
        const int64_t size = cgam_net_describe(net).size;
        mixed m = random_loss(&seed, size);
        cgam_net_params *p;
        cgam_net_learn_opts opts = cgam_net_learn_opts_default();
        opts.clamped = clamped;
        opts.step = 0.5;
        opts.steady = 1e-13;
        opts.max_steps = 5000;
        CHECK_STATUS(env, cgam_net_params_new(net, n.count, n.list, &p));
        cgam_net_params_get(p, at);
        normals(&seed, 0.8, BATCH * size, start);
        double largest = 0;
        for (int k = 0; k < 3; k++) {
            double gradient[PARAMS];
            cgam_net_learner *l;
            opts.way = k == 0 ? CGAM_NET_IMPLICIT : CGAM_NET_EQUILIBRIUM;
            opts.nudge = k == 1 ? 1e-3 : 2.5e-4;
            CHECK_STATUS(env, cgam_net_learner_new(p, &opts, BATCH, &l));
            loss_at(env, p, l, at, start, size, &m, k == 0 ? exact : gradient);
            for (int64_t j = 0; k > 0 && j < cgam_net_params_count(p); j++) {
                double d = fabs(gradient[j] - exact[j]);
                off[k - 1] = j == 0 || d > off[k - 1] ? d : off[k - 1];
                largest = fmax(largest, fabs(exact[j]));
            }
            cgam_net_learner_free(l);
        }
        CHECK_CLOSE(off[1], 0, 1e-5 * largest);
        if (smooth && off[0] > 3e-8) CHECK_CLOSE(off[0] / off[1], 16, 2);
        cgam_net_params_free(p);
        cgam_net_free(net);
    }
    cgam_env_free(env);
}

/* Two layers that excite each other: x = w tanh y, y = w tanh x has a fold at w = 1 in 0. */
static cgam_net *pair_net(cgam_env *env, const double *w)
{
    cgam_net *net;
    const cgam_op *W;
    const int64_t one = 1;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("tanh");
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &one, &o, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "y", 1, &one, &o, NULL));
    CHECK_STATUS(env, cgam_net_dense(net, w, CGAM_F64, 1, 1, true, &W));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "W", 0, 1, W, 1));
    return net;
}

TEST_ENV(a_fold_is_a_status_with_its_margin)
{
    const double weights[] = {0.5, 0.999, 1, 1.5};
    for (int i = 0; i < 4; i++) {
        cgam_net *net = pair_net(env, &weights[i]);
        const char *name = "W";
        cgam_net_params *p;
        cgam_net_learner *l;
        mixed m = {.size = 2, .w = {1, 0.5}};
        double x[2] = {0, 0}, total, gradient;
        cgam_net_learn_report r;
        cgam_net_loss loss = {mixed_loss, &m};
        cgam_net_learn_opts opts = cgam_net_learn_opts_default();
        opts.way = CGAM_NET_IMPLICIT;
        CHECK_STATUS(env, cgam_net_params_new(net, 1, &name, &p));
        CHECK_STATUS(env, cgam_net_learner_new(p, &opts, 1, &l));
        cgam_status status = cgam_net_learner_run(l, 1, x, &loss, &total, &gradient, &r);
        if (weights[i] < 1) { /* 1 - D H has the eigenvalues 1 +- w at 0 */
            CHECK_STATUS(env, status);
            CHECK_CLOSE(r.margin, 1 - weights[i], 1e-9);
        } else {
            assert_int_equal(status, CGAM_E_NOT_POSITIVE);
            assert_non_null(strstr(cgam_env_message(env), "fold"));
        }
        cgam_net_learner_free(l);
        cgam_net_params_free(p);
        cgam_net_free(net);
    }
}

TEST(gradients_do_not_depend_on_the_number_of_threads)
{
    double gradient[2][40], total[2];
    for (int threads = 1; threads <= 2; threads++) {
        cgam_env *env;
        cgam_env_opts eo = cgam_env_opts_default();
        eo.threads = threads == 1 ? 1 : 3;
        assert_int_equal(cgam_env_new(&eo, &env), CGAM_OK);
        uint64_t seed = 4;
        const int64_t sizes[] = {5, 8};
        cgam_net *net;
        cgam_net_params *p;
        cgam_net_learner *l;
        const char *name = "W";
        mixed m = {.size = 13, .w = {1, 2, 3}};
        static double x[300 * 13];
        cgam_net_loss loss = {mixed_loss, &m};
        cgam_layer_opts o = cgam_layer_opts_default();
        o.lagr = cgam_lagr_find("tanh");
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, &sizes[0], &o, NULL));
        CHECK_STATUS(env, cgam_net_add_layer(net, "y", 1, &sizes[1], &o, NULL));
        const cgam_op *W = random_op(env, net, &seed, 0.3, 5, 8, false);
        CHECK_STATUS(env, cgam_net_add_bilinear(net, "W", 0, 1, W, 1));
        CHECK_STATUS(env, cgam_net_params_new(net, 1, &name, &p));
        CHECK_STATUS(env, cgam_net_learner_new(p, NULL, 300, &l));
        normals(&seed, 1, 300 * 13, x);
        CHECK_STATUS(env, cgam_net_learner_run(l, 300, x, &loss, &total[threads - 1],
                                               gradient[threads - 1], NULL));
        cgam_net_learner_free(l);
        cgam_net_params_free(p);
        cgam_net_free(net);
        cgam_env_free(env);
    }
    assert_memory_equal(gradient[0], gradient[1], sizeof gradient[0]);
    assert_memory_equal(&total[0], &total[1], sizeof total[0]);
}

typedef struct scenario {
    cgam_net_way way;
} scenario;

static int learn_once(cgam_env *env, void *arg)
{
    const scenario *sc = arg;
    const int64_t sizes[] = {3, 4};
    const double weights[12] = {0.1, 0.2, -0.1, 0.3, 0.2, 0.1, -0.2, 0.1, 0.05, 0.2, 0.1, -0.3};
    cgam_net *net = NULL;
    cgam_net_params *p = NULL;
    cgam_net_learner *l = NULL;
    const cgam_op *W;
    const char *parts[] = {"W", "H", "x.beta"};
    mixed m = {.size = 7, .w = {1, 2, 3}};
    double x[14] = {0.1, 0.2, 0.3}, total, gradient[40];
    cgam_net_loss loss = {mixed_loss, &m};
    cgam_layer_opts o = cgam_layer_opts_default();
    cgam_net_learn_opts opts = cgam_net_learn_opts_default();
    opts.way = sc->way;
    opts.t_end = 0.1;
    o.lagr = cgam_lagr_find("tanh");
    int status = cgam_net_new(env, &net);
    if (!status) status = cgam_net_add_layer(net, "x", 1, &sizes[0], &o, NULL);
    if (!status) status = cgam_net_add_layer(net, "y", 1, &sizes[1], &o, NULL);
    if (!status) status = cgam_net_dense(net, weights, CGAM_F64, 3, 4, false, &W);
    if (!status) status = cgam_net_add_bilinear(net, "W", 0, 1, W, 1);
    if (!status) status = cgam_net_add_hidden(net, "H", 1, W, &cgam_lagrs[1][0], NULL, 0.1);
    if (!status) status = cgam_net_params_new(net, 3, parts, &p);
    if (!status) status = cgam_net_params_slope(p, 2, x, gradient);
    if (!status) status = cgam_net_learner_new(p, &opts, 2, &l);
    if (!status) status = cgam_net_learner_run(l, 2, x, &loss, &total, gradient, NULL);
    cgam_net_learner_free(l);
    cgam_net_params_free(p);
    cgam_net_free(net);
    return status;
}

TEST(every_allocation_of_learning_may_fail)
{
    for (int way = 0; cgam_net_way_words[way]; way++)
        check_every_allocation(learn_once, &(scenario){(cgam_net_way)way});
}

TEST_ENV(what_cannot_be_learned_is_rejected)
{
    const double w = 0.5;
    cgam_net *net = pair_net(env, &w);
    cgam_net_params *p;
    cgam_net_learner *l;
    const struct {
        const char *name, *part;
    } wrong[] = {{"V", "no synapse or layer named 'V'"},
                 {"x", "'x' is a layer"},
                 {"W.beta", "synapse 'W' has no 'beta'"},
                 {"x.gamma", "layer 'x' has no 'gamma'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(cgam_net_params_new(net, 1, &wrong[i].name, &p), CGAM_E_ARG);
        assert_non_null(strstr(cgam_env_message(env), wrong[i].part));
        assert_null(p);
    }
    const char *beta = "x.beta";
    const bool clamped[] = {true, false};
    double theta = NAN;
    CHECK_STATUS(env, cgam_net_params_new(net, 1, &beta, &p));
    assert_int_equal(cgam_net_params_set(p, &theta), CGAM_E_VALUE);
    theta = -1;
    assert_int_equal(cgam_net_params_set(p, &theta), CGAM_E_VALUE);
    cgam_net_learn_opts opts = cgam_net_learn_opts_default();
    opts.clamped = clamped;
    assert_int_equal(cgam_net_learner_new(p, &opts, 1, &l), CGAM_E_ARG);
    assert_non_null(strstr(cgam_env_message(env), "clamped"));
    opts = cgam_net_learn_opts_default();
    opts.nudge = 0;
    assert_int_equal(cgam_net_learner_new(p, &opts, 1, &l), CGAM_E_ARG);
    cgam_net_params_free(p);
    cgam_net_free(net);
}
