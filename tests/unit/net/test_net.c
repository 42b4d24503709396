/* Building networks: what is refused and how it is said, operators, one's own Lagrangians and
 * synapses, every allocation made to fail, trajectories on disk. */
#include "lab/figures/net_files.h"
#include "net/net.h"
#include "unit/net/nets.h"

#include "support/failing_alloc.h"

#include <cgam/flow.h>
#include <cgam/io.h>
#include <unistd.h>

#include "support/owned.h"

static cgam_net *two_layers(cgam_env *env, int64_t n, int64_t m)
{
    cgam_net *net;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "context", 1, &n, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "gates", 1, &m, NULL, NULL));
    return net;
}

TEST_ENV(wrong_shapes_name_the_layers)
{
    OWNED(cgam_net) net = two_layers(env, 3, 4);
    uint64_t seed = 1;
    const cgam_op *W = random_op(env, net, &seed, 1, 2, 3, false);
    const cgam_op *S = random_op(env, net, &seed, 1, 3, 3, false);
    const cgam_op *U[] = {W, random_op(env, net, &seed, 1, 2, 5, false)};
    CHECK_REFUSED(env, CGAM_E_SHAPE,
                  "weights are 2 x 3, layers 'gates' and 'context' have sizes 4 and 3",
                  cgam_net_add_bilinear(net, "h1", 1, 0, W, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "'gates'", cgam_net_add_self(net, "h2", 1, S, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "weights are 3 x 3, layer 'gates' has size 4",
                  cgam_net_add_gram(net, "h2", 1, S, 1, NULL));
    CHECK_REFUSED(env, CGAM_E_SHAPE,
                  "synapse 'h3': layers 'context' and 'gates' differ in size: 3 and 4",
                  cgam_net_add_coupling(net, "h3", 0, 1, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE,
                  "synapse 't': the tensor is 2 x 3, its layers up to 'gates' require 9 x 4",
                  cgam_net_add_tensor(net, "t", 3, (const int[]){0, 0, 1}, W, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "factor 1 is 2 x 5, layer 'gates'",
                  cgam_net_add_lowrank(net, "l", 2, (const int[]){0, 1}, U, NULL, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "layer 'gates' has size 4",
                  cgam_net_add_hidden(net, "m", 1, W, NULL, NULL, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "'context' and 'gates' have 3 and 4",
                  cgam_net_add_attention(net, "a", 0, 1, NULL, 1));
    CHECK_REFUSED(env, CGAM_E_ARG, "synapse 'gates': the name is already used",
                  cgam_net_add_bias(net, "gates", 0, (double[3]){0}, 1));
    CHECK_REFUSED(env, CGAM_E_ARG, "the name of a synapse has a control character, 10 at byte 1",
                  cgam_net_add_bias(net, "a\nb", 0, (double[3]){0}, 1));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_add_bias(net, "b", 2, (double[3]){0}, 1));
    CHECK_REFUSED(env, CGAM_E_VALUE, "number 1 is not finite",
                  cgam_net_add_bias(net, "b", 0, (double[]){0, NAN, 0}, 1));
    assert_int_equal(cgam_net_synapses(net), 0);
}

TEST_ENV(wrong_layers_are_refused)
{
    OWNED(cgam_net) net = two_layers(env, 3, 4);
    const int64_t none = 0, huge[] = {1 << 30, 1 << 30}, one = 1;
    cgam_layer_opts o = cgam_layer_opts_default();
    CHECK_REFUSED(env, CGAM_E_SHAPE, "layer 'x'",
                  cgam_net_add_layer(net, "x", 1, &none, NULL, NULL));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_net_add_layer(net, "x", 2, huge, NULL, NULL));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_add_layer(net, "gates", 1, &one, NULL, NULL));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_add_layer(net, "", 1, &one, NULL, NULL));
    o.tau = 0;
    CHECK_REFUSED(env, CGAM_E_ARG, "layer 'x': tau is 0",
                  cgam_net_add_layer(net, "x", 1, &one, &o, NULL));
    o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("softmax");
    o.param[0] = -1;
    CHECK_REFUSED(env, CGAM_E_ARG, "beta of softmax is -1",
                  cgam_net_add_layer(net, "x", 1, &one, &o, NULL));
    o = cgam_layer_opts_default();
    o.axes = 2;
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_net_add_layer(net, "x", 1, &one, &o, NULL));
    cgam_lagr empty = {.name = "empty"};
    o = cgam_layer_opts_default();
    o.lagr = &empty;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_add_layer(net, "x", 1, &one, &o, NULL));
    const cgam_op *op;
    CHECK_REFUSED(
        env, CGAM_E_VALUE, "row 1, column 1 is infinite",
        cgam_net_dense(net, (const double[]){0, 0, 0, INFINITY}, CGAM_F64, 2, 2, true, &op));
}

TEST_ENV(a_state_out_of_range_is_named)
{
    OWNED(cgam_net) net = NULL;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("exponential");
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "hot", 1, (const int64_t[]){2}, &o, NULL));
    double x[] = {0, 800}, nan[] = {0, NAN}, E;
    CHECK_REFUSED(env, CGAM_E_VALUE,
                  "layer 'hot' leaves the range of double, its state reaches 800",
                  cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.energy = &E}));
    CHECK_REFUSED(env, CGAM_E_VALUE, "layer 'hot', number 1 is not finite",
                  cgam_net_eval(net, 1, nan, NULL, &(cgam_net_values){.energy = &E}));
}

/* ---- one's own Lagrangian: L = sum x^4 / 4 + x^2 / 2 ------------------------------------------ */
static cgam_status quartic_value(const cgam_lagr *self, const double *theta, int64_t n,
                                 const double *x, double *L)
{
    (void)self, (void)theta;
    *L = 0;
    for (int64_t i = 0; i < n; i++) *L += x[i] * x[i] * (0.25 * x[i] * x[i] + 0.5);
    return CGAM_OK;
}
static cgam_status quartic_activation(const cgam_lagr *self, const double *theta, int64_t n,
                                      const double *x, double *a)
{
    (void)self, (void)theta;
    for (int64_t i = 0; i < n; i++) a[i] = x[i] * x[i] * x[i] + x[i];
    return CGAM_OK;
}
static cgam_status quartic_hessian(const cgam_lagr *self, const double *theta, int64_t n,
                                   const double *x, const double *a, const double *v, double *out)
{
    (void)self, (void)theta, (void)a;
    for (int64_t i = 0; i < n; i++) out[i] = (3 * x[i] * x[i] + 1) * v[i];
    return CGAM_OK;
}

TEST_ENV(three_functions_make_a_lagrangian)
{
    const cgam_lagr quartic = {.name = "quartic",
                               .value = quartic_value,
                               .activation = quartic_activation,
                               .hessian = quartic_hessian};
    OWNED(cgam_net) net = NULL;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = &quartic;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "x", 1, (const int64_t[]){2}, &o, NULL));
    CHECK_STATUS(env, cgam_net_add_bias(net, "b", 0, (double[]){1, -1}, 1));
    double x[] = {2, 0.5}, E, power, rate[2];
    CHECK_STATUS(env,
                 cgam_net_eval(net, 1, x, NULL,
                               &(cgam_net_values){.energy = &E, .rate = rate, .power = &power}));
    /* x a - L = 3/4 x^4 + x^2 / 2, minus b'a */
    CHECK_CLOSE(E, 0.75 * 16 + 2 + 0.75 / 16 + 0.125 - (10 - 0.625), 1e-14);
    CHECK_CLOSE(power, -(13 * 1 + 1.75 * 2.25), 1e-13);
    cgam_flow_report r;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, NULL, &r));
    assert_int_equal(r.end, CGAM_FLOW_STEADY);
    CHECK_CLOSE(x[0], 1, 1e-8);
}

/* ---- operators -------------------------------------------------------------------------------- */
TEST_ENV(convolution_and_its_transpose_belong_together)
{
    uint64_t seed = 5;
    for (int round = 0; round < 40; round++) {
        OWNED(cgam_net) net = NULL;
        const cgam_op *op;
        cgam_conv c = {.height = 3 + below(&seed, 4),
                       .width = 3 + below(&seed, 4),
                       .in_channels = 1 + below(&seed, 2),
                       .out_channels = 1 + below(&seed, 3),
                       .kernel_height = 1 + below(&seed, 3),
                       .kernel_width = 1 + below(&seed, 3),
                       .stride_y = 1 + below(&seed, 2),
                       .stride_x = below(&seed, 3),
                       .same = below(&seed, 2)};
        double kernels[2 * 3 * 9], in[72], out[200], back[72], other[200];
        normals(&seed, 1, 54, kernels);
        CHECK_STATUS(env, cgam_net_new(env, &net));
        CHECK_STATUS(env, cgam_net_conv(net, &c, kernels, &op));
        assert_int_equal(op->cols, c.height * c.width * c.in_channels);
        normals(&seed, 1, op->cols, in);
        normals(&seed, 1, op->rows, other);
        CHECK_STATUS(env, op->apply(op->user, 1, in, out));
        CHECK_STATUS(env, op->apply_t(op->user, 1, other, back));
        CHECK_CLOSE(dot(op->rows, out, other), dot(op->cols, in, back), 1e-12);
    }
    /* a kernel that is 1 in its middle copies the image; a mean over 3 x 3 counts neighbours */
    OWNED(cgam_net) net = NULL;
    const cgam_op *op;
    cgam_conv c = {.height = 4,
                   .width = 5,
                   .in_channels = 1,
                   .out_channels = 1,
                   .kernel_height = 3,
                   .kernel_width = 3,
                   .same = true};
    double middle[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0}, ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    double image[20], out[20], full[20];
    normals(&seed, 1, 20, image);
    for (int i = 0; i < 20; i++) full[i] = 1;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_conv(net, &c, middle, &op));
    CHECK_STATUS(env, op->apply(op->user, 1, image, out));
    CHECK_CLOSE_ALL(out, image, 20, 0);
    CHECK_STATUS(env, cgam_net_conv(net, &c, ones, &op));
    CHECK_STATUS(env, op->apply(op->user, 1, full, out));
    CHECK_CLOSE(out[0], 4, 0);
    CHECK_CLOSE(out[1], 6, 0);
    CHECK_CLOSE(out[6], 9, 0);
    c.same = false;
    c.kernel_height = 5;
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_net_conv(net, &c, ones, &op));
}

static int products;
static cgam_status count_apply(void *user, int64_t count, const double *in, double *out)
{
    products++;
    const cgam_op *inner = user;
    return inner->apply(inner->user, count, in, out);
}
static cgam_status count_apply_t(void *user, int64_t count, const double *in, double *out)
{
    products++;
    const cgam_op *inner = user;
    return inner->apply_t(inner->user, count, in, out);
}

/* Two bilinear synapses and a Gram one over the same operator: one pass forth, one back; with one
 * side clamped the rest needs no pass of its own. */
TEST_ENV(synapses_over_one_operator_share_its_passes)
{
    OWNED(cgam_net) net = NULL;
    uint64_t seed = 6;
    int64_t n = 9, d = 4;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "c", 1, &d, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "s", 1, &n, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "r", 1, &n, NULL, NULL));
    CHECK_STATUS(env, cgam_net_add_layer(net, "q", 1, &d, NULL, NULL));
    cgam_op Z = *random_op(env, net, &seed, 1, n, d, false);
    cgam_op counted = Z;
    counted.apply = count_apply;
    counted.apply_t = count_apply_t;
    counted.user = &Z;
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "h1", 1, 0, &counted, 1));
    CHECK_STATUS(env, cgam_net_add_gram(net, "h2", 1, &counted, 0.3, NULL));
    CHECK_STATUS(env, cgam_net_add_coupling(net, "h3", 1, 2, 1));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "h4", 2, 3, &counted, 1));
    double x[26], rate[26];
    normals(&seed, 1, 26, x);
    products = 0;
    CHECK_STATUS(env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.rate = rate}));
    assert_int_equal(products, 2);
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    const cgam_clamp clamps[] = {{0, 0, INFINITY, NULL, false}, {3, 0, INFINITY, NULL, false}};
    f.method = CGAM_FLOW_EULER;
    f.step = 0.01;
    f.t_end = 1;
    f.clamps = clamps;
    f.clamp_count = 2;
    f.stop = 0;
    products = 0;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    /* the clamped sides once, then two passes at the start and after each of 100 steps */
    assert_int_equal(r.steps, 100);
    assert_int_equal(products, 1 + 2 * 101);
}

/* ---- allocations ------------------------------------------------------------------------------ */
typedef struct scenario {
    cgam_flow_method method;
    const char *path;
} scenario;

static cgam_status build(cgam_env *env, cgam_net **net)
{
    static const double W[12] = {.1, .2, .3, -.1, .5, .2, .1, .1, .9, -.3, .2, .4};
    const cgam_op *op = NULL, *U[2] = {NULL};
    const int64_t n = 4, m = 3;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("softmax");
    cgam_attention_opts at = cgam_attention_opts_default();
    at.width = 1;
    at.WQ = at.WK = W;
    TRY(cgam_net_new(env, net));
    TRY(cgam_net_add_layer(*net, "x", 1, &n, NULL, NULL));
    TRY(cgam_net_add_layer(*net, "y", 1, &m, &o, NULL));
    TRY(cgam_net_dense(*net, W, CGAM_F64, n, m, true, &op));
    TRY(cgam_net_dense(*net, W, CGAM_F64, 2, n, false, &U[0]));
    TRY(cgam_net_dense(*net, W, CGAM_F64, 2, m, false, &U[1]));
    TRY(cgam_net_add_bilinear(*net, "W", 0, 1, op, 1));
    TRY(cgam_net_add_gram(*net, "G", 0, op, 0.3, W));
    TRY(cgam_net_add_bias(*net, "b", 0, W, 1));
    TRY(cgam_net_add_lowrank(*net, "U", 2, (const int[]){0, 1}, U, W, 0.1));
    TRY(cgam_net_add_tensor(*net, "T", 2, (const int[]){0, 1}, op, 0.1));
    TRY(cgam_net_add_hidden(*net, "H", 1, U[1], NULL, NULL, 0.1));
    TRY(cgam_net_add_attention(*net, "A", 0, 1, &at, 0.1));
    return CGAM_OK;
}

static int build_and_flow(cgam_env *env, void *arg)
{
    const scenario *s = arg;
    OWNED(cgam_net) net = NULL;
    OWNED(cgam_trajectory) t = NULL;
    double x[2 * 7] = {1, 0, -1, 2, 0.3, 0.2, 0.1, 0.5}, values[7];
    cgam_flow_report r[2];
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_eigen info;
    const cgam_clamp clamp = {1, 0, 0.5, NULL, false};
    TRY(build(env, &net));
    TRY(cgam_trajectory_new(net, true, &t));
    f.method = s->method;
    f.step = 0.1;
    f.t_end = 1;
    f.sample = 0.25;
    f.watch = 0;
    f.clamps = &clamp;
    f.clamp_count = 1;
    f.monitor = cgam_trajectory_monitor;
    f.user = t;
    TRY(cgam_flow_run(net, 2, x, &f, r));
    TRY(cgam_trajectory_look(t).status);
    if (s->path) TRY(cgam_trajectory_write(net, t, s->path));
    TRY(cgam_net_eigen(net, x, NULL, 7, 0, values, &info));
    return CGAM_OK;
}

TEST(every_failed_allocation_comes_back)
{
    static const cgam_flow_method methods[] = {CGAM_FLOW_RK4, CGAM_FLOW_ADAMS, CGAM_FLOW_BDF};
    char path[64];
    snprintf(path, sizeof path, "/tmp/cgam-net-%d.npz", (int)getpid());
    for (int m = 0; m < 3; m++) {
        scenario s = {methods[m], m == 0 ? path : NULL};
        assert_true(check_every_allocation(build_and_flow, &s) > 60);
    }
    unlink(path);
}

/* ---- trajectories ----------------------------------------------------------------------------- */
TEST_ENV(trajectories_are_written_and_read_back)
{
    OWNED(cgam_net) net = two_layers(env, 2, 2);
    OWNED(cgam_trajectory) t = NULL;
    CHECK_STATUS(env, cgam_net_add_coupling(net, "a, \"b\"", 0, 1, 0.5));
    CHECK_STATUS(env, cgam_trajectory_new(net, true, &t));
    double x[] = {1, 2, 0, 0};
    cgam_flow_opts f = cgam_flow_opts_default();
    cgam_flow_report r;
    f.t_end = 1;
    f.sample = 0.1;
    f.monitor = cgam_trajectory_monitor;
    f.user = t;
    CHECK_STATUS(env, cgam_flow_run(net, 1, x, &f, &r));
    cgam_trajectory_view v = cgam_trajectory_look(t);
    assert_int_equal(v.count, 11);
    char path[64], member[96];
    snprintf(path, sizeof path, "/tmp/cgam-net-%d.npz", (int)getpid());
    CHECK_STATUS(env, cgam_trajectory_write(net, t, path));
    cgam_array a;
    snprintf(member, sizeof member, "%s:layer/gates", path);
    CHECK_STATUS(env, cgam_array_open(env, member, &a));
    assert_int_equal(a.shape[0], 11);
    assert_int_equal(a.shape[1], 2);
    for (int k = 0; k < 11; k++)
        for (int j = 0; j < 2; j++)
            CHECK_CLOSE(((const double *)a.data)[2 * k + j], v.states[4 * k + 2 + j], 0);
    cgam_array_close(env, &a);
    unlink(path);
    snprintf(path, sizeof path, "/tmp/cgam-net-%d.csv", (int)getpid());
    CHECK_STATUS(env, cgam_trajectory_write(net, t, path));
    FILE *file = fopen(path, "r");
    char line[512];
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "time,energy,power,residual,events,winner,context,gates,"
                              "\"a, \"\"b\"\"\"\n");
    int lines = 0;
    while (fgets(line, sizeof line, file)) lines++;
    assert_int_equal(lines, 11);
    fclose(file);
    unlink(path);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_trajectory_write(net, t, "trajectory.png"));
}
