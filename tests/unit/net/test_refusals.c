/* What cannot be part of a network is refused by name, and what a caller's own operator, Lagrangian or synapse says in the
 * middle of a computation comes back, whichever call it is. */
#include "net/net.h"
#include "unit/net/nets.h"

#include "base/env.h"
#include "support/failing_alloc.h"

#include <cgam/flow.h>
#include <limits.h>

#include "support/owned.h"

static const int64_t TERA = INT64_C(1) << 40;

static cgam_net *layers_of(cgam_env *env, int count, const int64_t (*shape)[3], const int *ndim)
{
    cgam_net *net;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    for (int i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "l%d", i);
        CHECK_STATUS(env, cgam_net_add_layer(net, name, ndim[i], shape[i], NULL, NULL));
    }
    return net;
}

/* ---- layers ----------------------------------------------------------------------------------- */
TEST_ENV(layers_that_cannot_be_are_refused)
{
    cgam_net *net;
    const int64_t one[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, below_zero = -1, all = TERA;
    const cgam_lagr *softmax = cgam_lagr_find("softmax");
    cgam_lagr own = *softmax;
    own.name = NULL;
    const struct {
        const char *name;
        int ndim;
        const int64_t *shape;
        cgam_layer_opts opts;
        cgam_status status;
        const char *message;
    } wrong[] = {
        {NULL, 1, one, cgam_layer_opts_default(), CGAM_E_ARG, "a layer needs a name"},
        {"\x7f", 1, one, cgam_layer_opts_default(), CGAM_E_ARG, "control character, 127 at byte 0"},
        {"x", -1, one, cgam_layer_opts_default(), CGAM_E_SHAPE, "-1 dimensions"},
        {"x", 9, one, cgam_layer_opts_default(), CGAM_E_SHAPE, "layer 'x': 9 dimensions"},
        {"x", 1, &below_zero, cgam_layer_opts_default(), CGAM_E_SHAPE, "shape -1 is empty"},
        {"x", 1, &all, cgam_layer_opts_default(), CGAM_E_SHAPE, "the state grows beyond 2^40"},
        {"x", 1, one, {.tau = INFINITY, .scale = 1}, CGAM_E_ARG, "tau is inf"},
        {"x", 1, one, {.tau = 1, .scale = 0}, CGAM_E_ARG, "scale is 0"},
        {"x", 1, one, {.tau = 1, .scale = INFINITY}, CGAM_E_ARG, "scale is inf"},
        {"x", 1, one, {.tau = 1, .scale = 1, .axes = -1}, CGAM_E_SHAPE, "axes is -1"},
        {"x", 1, one, {softmax, {1e300}, 1, 1, 0}, CGAM_E_ARG, "beta of softmax is 1e+300"},
        {"x", 1, one, {&own, {-1}, 1, 1, 0}, CGAM_E_ARG, "beta of a Lagrangian is -1"},
    };
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "first", 1, one, NULL, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_REFUSED(env, wrong[i].status, wrong[i].message,
                      cgam_net_add_layer(net, wrong[i].name, wrong[i].ndim, wrong[i].shape,
                                         &wrong[i].opts, NULL));
    }
    for (int missing = 0; missing < 3; missing++) {
        cgam_lagr half = *softmax;
        if (missing == 0) half.value = NULL;
        if (missing == 1) half.activation = NULL;
        if (missing == 2) half.hessian = NULL;
        cgam_layer_opts o = cgam_layer_opts_default();
        o.lagr = &half;
        CHECK_REFUSED(env, CGAM_E_ARG,
                      "layer 'x': a Lagrangian needs value, activation and Hessian-vector",
                      cgam_net_add_layer(net, "x", 1, one, &o, NULL));
    }
    assert_int_equal(cgam_net_describe(net).layers, 1);
    assert_int_equal(cgam_net_describe(net).size, 1);
    cgam_net_free(net);
    cgam_net_free(NULL);
}

/* ---- operators -------------------------------------------------------------------------------- */
TEST_ENV(weights_that_cannot_be_are_refused)
{
    OWNED(cgam_net) net = NULL;
    const cgam_op *op;
    const double numbers[4] = {1, 2, 3, NAN};
    const struct {
        cgam_dtype dtype;
        int64_t rows, cols;
        cgam_status status;
        const char *message;
    } dense[] = {
        {CGAM_I64, 2, 2, CGAM_E_UNSUPPORTED, "weights cannot be i64"},
        {CGAM_F64, 0, 2, CGAM_E_SHAPE, "unsupported size of weights: 0 x 2"},
        {CGAM_F64, 2, 0, CGAM_E_SHAPE, "unsupported size of weights: 2 x 0"},
        {CGAM_F64, 1, INT32_MAX, CGAM_E_SHAPE, "unsupported size of weights: 1 x 2147483647"},
        {CGAM_F64, TERA, 2, CGAM_E_SHAPE, "unsupported size of weights: 1099511627776 x 2"},
        {CGAM_F64, 2, 2, CGAM_E_VALUE, "row 1, column 1 is NaN"},
    };
    CHECK_STATUS(env, cgam_net_new(env, &net));
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) {
        CHECK_REFUSED(
            env, dense[i].status, dense[i].message,
            cgam_net_dense(net, numbers, dense[i].dtype, dense[i].rows, dense[i].cols, false, &op));
        assert_null(op);
    }
    const cgam_conv sound = {2, 2, 1, 1, 2, 2, 1, 1, false};
    cgam_conv c = sound;
    CHECK_REFUSED(env, CGAM_E_VALUE, "weight 3 is not finite",
                  cgam_net_conv(net, &c, numbers, &op));
    c.in_channels = 0;
    CHECK_REFUSED(env, CGAM_E_SHAPE, "convolution: a size is 0, it must be from 1 to 32768",
                  cgam_net_conv(net, &c, numbers, &op));
    c.in_channels = 32769;
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_net_conv(net, &c, numbers, &op));
    c = sound;
    c.kernel_width = 3;
    CHECK_REFUSED(env, CGAM_E_SHAPE, "convolution: a kernel of 2 x 3 does not fit into 2 x 2",
                  cgam_net_conv(net, &c, numbers, &op));
    c.kernel_width = 1; /* fewer weights, all of them numbers; more places than the kernel needs */
    c.stride_y = c.stride_x = 3;
    c.same = true;
    CHECK_STATUS(env, cgam_net_conv(net, &c, numbers, &op));
    assert_int_equal(op->rows, 1);
}

/* ---- synapses --------------------------------------------------------------------------------- */
static cgam_status never(void *user, int64_t count, const double *in, double *out)
{
    (void)user, (void)count, (void)in, (void)out;
    return CGAM_E_INTERNAL;
}

/* No operator at all, one without a product, one without the other. */
static const cgam_op *half_op(int which, int64_t rows, int64_t cols)
{
    static cgam_op half;
    half = (cgam_op){.rows = rows, .cols = cols, .apply = never, .apply_t = never};
    if (which == 1) half.apply = NULL;
    if (which == 2) half.apply_t = NULL;
    return which ? &half : NULL;
}

TEST_ENV(operators_that_do_not_fit_are_refused)
{
    cgam_net *net = layers_of(env, 3, (const int64_t[][3]){{3}, {4}, {3}}, (const int[]){1, 1, 1});
    const int pair[] = {0, 1};
    const cgam_op full = {.rows = 3, .cols = 4, .apply = never, .apply_t = never};
    for (int which = 0; which < 3; which++) {
        const cgam_op *op = half_op(which, 3, 4), *factors[] = {op, &full};
        CHECK_REFUSED(env, CGAM_E_ARG, "synapse 's': an operator needs both products",
                      cgam_net_add_bilinear(net, "s", 0, 1, op, 1));
        CHECK_FAILS(env, CGAM_E_SHAPE, cgam_net_add_tensor(net, "s", 2, pair, op, 1));
        CHECK_FAILS(env, CGAM_E_SHAPE, cgam_net_add_hidden(net, "s", 1, op, NULL, NULL, 1));
        CHECK_REFUSED(env, CGAM_E_ARG, "synapse 's': factor 0 needs both products",
                      cgam_net_add_lowrank(net, "s", 2, pair, factors, NULL, 1));
    }
    const cgam_op wide = {.rows = 3, .cols = 5, .apply = never, .apply_t = never};
    const cgam_op *ranks[] = {&(cgam_op){2, 3, never, never, NULL, false}, &full};
    const cgam_op *sound[] = {&(cgam_op){2, 3, never, never, NULL, false},
                              &(cgam_op){2, 4, never, never, NULL, false}};
    CHECK_REFUSED(env, CGAM_E_SHAPE, "weights are 3 x 5, layers 'l0' and 'l1' have sizes 3 and 4",
                  cgam_net_add_bilinear(net, "s", 0, 1, &wide, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "the tensor is 3 x 5",
                  cgam_net_add_tensor(net, "s", 2, pair, &wide, 1));
    CHECK_REFUSED(env, CGAM_E_ARG, "a tensor joins 2 layers or more",
                  cgam_net_add_tensor(net, "s", 1, pair, &wide, 1));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "factor 1 is 3 x 4, layer 'l1' and the rank require 2 x 4",
                  cgam_net_add_lowrank(net, "s", 2, pair, ranks, NULL, 1));
    CHECK_REFUSED(env, CGAM_E_VALUE, "synapse 's': number 1 is not finite",
                  cgam_net_add_lowrank(net, "s", 2, pair, sound, (const double[]){1, INFINITY}, 1));
    CHECK_FAILS(env, CGAM_E_VALUE,
                cgam_net_add_gram(net, "s", 0, &full, 1, (const double[]){1, 1, NAN}));
    CHECK_REFUSED(env, CGAM_E_ARG, "synapse 's': no layer -1 (there are 3",
                  cgam_net_add_coupling(net, "s", -1, 0, 1));
    CHECK_REFUSED(env, CGAM_E_ARG, "synapse 's': gain is nan",
                  cgam_net_add_coupling(net, "s", 0, 2, NAN));
    const cgam_synapse table = {.eval = wave_eval}, empty = {.eval = NULL};
    CHECK_REFUSED(env, CGAM_E_ARG, "synapse 's': 0 layers, their number must be from 1 to 8",
                  cgam_net_add_synapse(net, "s", 0, pair, &table, NULL));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_add_synapse(net, "s", 9, pair, &table, NULL));
    CHECK_REFUSED(env, CGAM_E_ARG, "synapse 's' needs a function",
                  cgam_net_add_synapse(net, "s", 2, pair, &empty, NULL));
    assert_int_equal(cgam_net_synapses(net), 0);
    cgam_net_free(net);
    /* the rows that a tensor asks for do not fit into an integer, and one layer is to come */
    net = layers_of(env, 2, (const int64_t[][3]){{TERA / 2}, {2}}, (const int[]){1, 1});
    CHECK_REFUSED(env, CGAM_E_SHAPE,
                  "synapse 't': the tensor is 3 x 4, its layers up to 'l1' require -1 x 2",
                  cgam_net_add_tensor(net, "t", 5, (const int[]){0, 0, 0, 1, 1}, &full, 1));
    cgam_net_free(net);
}

TEST_ENV(attention_that_cannot_be_is_refused)
{
    enum { ROWS, WIDER, MORE, ONE, IMAGE, LONG, BROAD, MANY };
    OWNED(cgam_net)
    net = layers_of(
        env, 8,
        (const int64_t[][3]){
            {3, 2}, {3, 32}, {5, 2}, {2}, {2, 2, 2}, {INT32_MAX, 1}, {1, INT32_MAX}, {1 << 21, 1}},
        (const int[]){2, 2, 2, 1, 3, 2, 2, 2});
    const double W[8] = {1, 2, 3, 4, 5, 6, 7, 8}, bad[8] = {1, NAN};
    const struct {
        int x, y;
        cgam_attention_opts opts;
        cgam_status status;
        const char *message;
    } wrong[] = {
        {IMAGE, ROWS, {1, 1, 0, NULL, NULL, 0}, CGAM_E_SHAPE, "layer 'l4' has 3 dimensions"},
        {ROWS, IMAGE, {1, 1, 0, NULL, NULL, 0}, CGAM_E_SHAPE, "layer 'l4' has 3 dimensions"},
        {LONG, ROWS, {1, 1, 0, NULL, NULL, 0}, CGAM_E_SHAPE, "layer 'l5' is too large"},
        {BROAD, ROWS, {1, 1, 0, NULL, NULL, 0}, CGAM_E_SHAPE, "layer 'l6' is too large"},
        {ROWS, ROWS, {NAN, 1, 0, NULL, NULL, 0}, CGAM_E_ARG, "beta is nan"},
        {ROWS, ROWS, {INFINITY, 1, 0, NULL, NULL, 0}, CGAM_E_ARG, "beta is inf"},
        {ROWS, ROWS, {1, 0, 0, NULL, NULL, 0}, CGAM_E_ARG, "synapse 'a': beta is 1 and heads is 0"},
        {ROWS,
         ROWS,
         {1, 65537, 0, NULL, NULL, 0},
         CGAM_E_ARG,
         "synapse 'a': beta is 1 and heads is 65537"},
        {ROWS, ROWS, {1, 1, -1, W, W, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, ROWS, {1, 1, 1 << 21, W, W, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, ROWS, {1, 1, 1, NULL, W, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, ROWS, {1, 1, 1, W, NULL, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, ROWS, {1, 1, 0, W, NULL, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, ROWS, {1, 1, 0, NULL, W, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, ROWS, {1, 2, 0, NULL, NULL, 0}, CGAM_E_ARG, "give the width and both projections"},
        {ROWS, WIDER, {1, 1, 0, NULL, NULL, 0}, CGAM_E_SHAPE, "'l0' and 'l1' have 2 and 32"},
        {ROWS, MORE, {1, 1, 0, NULL, NULL, 1}, CGAM_E_SHAPE, "there are 3 and 5"},
        {ONE, ONE, {1, 1, 0, NULL, NULL, 1}, CGAM_E_SHAPE, "there are 1 and 1"},
        {WIDER, ROWS, {1, 1 << 16, 1 << 20, W, W, 0}, CGAM_E_SHAPE, "are too many"},
        {ROWS, WIDER, {1, 1 << 16, 1 << 20, W, W, 0}, CGAM_E_SHAPE, "are too many"},
        {MANY, MANY, {1, 1, 0, NULL, NULL, 0}, CGAM_E_SHAPE, "too many pairs of rows"},
        {ROWS, ROWS, {1, 1, 2, bad, W, 0}, CGAM_E_VALUE, "projection: number 1 is not finite"},
        {ROWS, ROWS, {1, 1, 2, W, bad, 0}, CGAM_E_VALUE, "projection: number 1 is not finite"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_REFUSED(env, wrong[i].status, wrong[i].message,
                      cgam_net_add_attention(net, "a", wrong[i].x, wrong[i].y, &wrong[i].opts, 1));
    }
    CHECK_FAILS(env, CGAM_E_ARG, cgam_net_add_attention(net, "a", 0, 9, NULL, 1));
    assert_int_equal(cgam_net_synapses(net), 0);
}

/* ---- callers' functions that fail ------------------------------------------------------------- */
/* Every call of a caller's function is counted, and the k-th gives `status`. */
typedef struct caller {
    cgam_env *env;
    cgam_status status;
    int64_t at, seen;
    double W[6 * 6];
    cgam_op op;
    cgam_lagr lagr;
    cgam_synapse synapse;
} caller;

static cgam_status called(caller *c)
{
    if (++c->seen != c->at) return CGAM_OK;
    return cgam_fail(c->env, c->status, "the caller's own words");
}

static cgam_status caller_apply(void *user, int64_t count, const double *in, double *out)
{
    caller *c = user;
    for (int64_t k = 0; k < count; k++)
        for (int i = 0; i < 6; i++) out[6 * k + i] = dot(6, c->W + 6 * (int64_t)i, in + 6 * k);
    return called(c);
}

static cgam_status caller_value(const cgam_lagr *self, const double *theta, int64_t n,
                                const double *x, double *L)
{
    (void)theta;
    *L = 0;
    for (int64_t i = 0; i < n; i++) *L += 0.5 * x[i] * x[i];
    return called(self->user);
}

static cgam_status caller_activation(const cgam_lagr *self, const double *theta, int64_t n,
                                     const double *x, double *a)
{
    (void)theta;
    memcpy(a, x, (size_t)n * sizeof *a);
    return called(self->user);
}

static cgam_status caller_hessian(const cgam_lagr *self, const double *theta, int64_t n,
                                  const double *x, const double *a, const double *v, double *out)
{
    (void)theta, (void)x, (void)a;
    memcpy(out, v, (size_t)n * sizeof *out);
    return called(self->user);
}

static cgam_status caller_eval(void *user, int k, const int64_t *size, const double *const *act,
                               double *energy, double *const *current)
{
    (void)k;
    *energy = -0.1 * dot(size[0], act[0], act[1]);
    for (int64_t i = 0; i < size[0]; i++) {
        if (current[0]) current[0][i] += 0.1 * act[1][i];
        if (current[1]) current[1][i] += 0.1 * act[0][i];
    }
    return called(user);
}

/* Two layers of 6 that settle: every kind of synapse that takes an operator, over the caller's. */
static cgam_net *callers_net(caller *c)
{
    uint64_t seed = 11;
    cgam_net *net;
    cgam_layer_opts o = cgam_layer_opts_default();
    const int64_t six = 6, pairs[] = {3, 2};
    const int both[] = {0, 1};
    normals(&seed, 0.1, 36, c->W);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) c->W[6 * i + j] = c->W[6 * j + i]; /* W is its own transpose */
    c->op = (cgam_op){6, 6, caller_apply, caller_apply, c, false};
    c->lagr = (cgam_lagr){.name = "own",
                          .value = caller_value,
                          .activation = caller_activation,
                          .hessian = caller_hessian,
                          .user = c};
    c->synapse = (cgam_synapse){.eval = caller_eval};
    o.lagr = &c->lagr;
    o.scale = 2;
    o.axes = 1;
    const cgam_op *U[] = {&c->op, &c->op};
    CHECK_STATUS(c->env, cgam_net_new(c->env, &net));
    CHECK_STATUS(c->env, cgam_net_add_layer(net, "x", 2, pairs, &o, NULL));
    CHECK_STATUS(c->env, cgam_net_add_layer(net, "y", 1, &six, NULL, NULL));
    CHECK_STATUS(c->env, cgam_net_add_bilinear(net, "b", 0, 1, &c->op, 0.1));
    CHECK_STATUS(c->env, cgam_net_add_gram(net, "g", 1, &c->op, 0.1, NULL));
    CHECK_STATUS(c->env, cgam_net_add_hidden(net, "h", 1, &c->op, &c->lagr, NULL, 0.1));
    CHECK_STATUS(c->env, cgam_net_add_tensor(net, "t", 2, both, &c->op, 0.1));
    CHECK_STATUS(c->env, cgam_net_add_lowrank(net, "l", 2, both, U, NULL, 0.1));
    CHECK_STATUS(c->env, cgam_net_add_synapse(net, "u", 2, both, &c->synapse, c));
    /* y begins with its first number ahead and is drawn to its fifth */
    CHECK_STATUS(c->env, cgam_net_add_bias(net, "to", 1, (const double[]){0, 0, 0, 0, 2, 0}, 1));
    return net;
}

static int go_on(void *user, const cgam_flow_moment *moment)
{
    (void)user, (void)moment;
    return 0;
}

/* Everything that can be asked of a network; `what` numbers the questions. */
enum { VALUES, JACOBIAN, EIGEN, FLOWS, TO_THE_WINNER = FLOWS + 5, QUESTIONS = FLOWS + 10 };
static cgam_status ask(const cgam_net *net, int what, cgam_flow_report *r)
{
    double x[12] = {0.5, -1, 0.2, 0.1, 0.3, 0.4, 1, 0, -0.3, 0.2, 0.9, -0.8}, out[24], E, power;
    cgam_eigen info;
    if (what == VALUES)
        return cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.energy = &E, .power = &power});
    if (what == JACOBIAN) return cgam_net_jacobian(net, x, NULL, 2, (double[24]){1, 2, 3}, out);
    if (what == EIGEN) return cgam_net_eigen(net, x, NULL, 3, 0, out, &info);
    cgam_flow_opts f = cgam_flow_opts_default();
    const cgam_clamp clamp = {1, 0.2, 0.4, NULL, false};
    f.method = (cgam_flow_method)((what - FLOWS) % 5);
    if (what >= TO_THE_WINNER) f.stop = CGAM_EVENT_WINNER;
    f.t_end = 1;
    f.rtol = f.atol = 1e-3;
    f.step = 0.25;
    f.sample = 0.3;
    f.watch = 1;
    f.monitor = go_on;
    f.clamps = &clamp;
    f.clamp_count = 1;
    f.energy_tol = 1;
    return cgam_flow_run(net, 1, x, &f, r);
}

TEST(what_a_callers_function_says_comes_back)
{
    caller c = {.env = new_env(), .status = CGAM_E_INTERNAL};
    cgam_net *net = callers_net(&c);
    for (int what = 0; what < QUESTIONS; what++) {
        cgam_flow_report r = {0};
        c.at = c.seen = 0;
        CHECK_STATUS(c.env, ask(net, what, &r));
        const int64_t all = c.seen;
        assert_true(all > 10);
        for (c.at = 1; c.at <= all; c.at++) {
            c.seen = 0;
            CHECK_REFUSED(c.env, CGAM_E_INTERNAL, "the caller's own words", ask(net, what, &r));
        }
    }
    cgam_net_free(net);
    cgam_env_free(c.env);
}

/* A result beyond double is an answer of a flow where a smaller step might help, else an error that names the part. */
TEST(what_leaves_the_range_is_named_or_ends_a_flow)
{
    caller c = {.env = new_env(), .status = CGAM_E_VALUE};
    cgam_net *net = callers_net(&c);
    for (int what = 0; what < QUESTIONS; what++) {
        cgam_flow_report r = {0};
        c.at = c.seen = 0;
        CHECK_STATUS(c.env, ask(net, what, &r));
        const int64_t all = c.seen;
        int64_t survived = 0;
        for (c.at = 1; c.at <= all; c.at++) {
            c.seen = 0;
            cgam_status status = ask(net, what, &r);
            if (status == CGAM_OK) survived++;
            else CHECK_FAILS(c.env, CGAM_E_VALUE, status);
        }
        if (what < FLOWS) assert_int_equal(survived, 0);
        else assert_in_range(survived, all / 4, all - 1); /* none helps at the start */
    }
    cgam_net_free(net);
    cgam_env_free(c.env);
}

static cgam_status endless(void *user, int k, const int64_t *size, const double *const *act,
                           double *energy, double *const *current)
{
    (void)user, (void)k, (void)size, (void)act, (void)current;
    *energy = INFINITY;
    return CGAM_OK;
}

static void no_release(void *user)
{
    (void)user;
    fail_msg("there was nothing to free");
}

/* A synapse that calls an infinite energy a success; and one that has nothing to be freed. */
TEST_ENV(an_energy_beyond_double_is_noticed)
{
    OWNED(cgam_net) net = layers_of(env, 1, (const int64_t[][3]){{2}}, (const int[]){1});
    const cgam_synapse table = {.eval = endless, .free = no_release};
    const double x[2] = {1, 2};
    double E;
    CHECK_STATUS(env, cgam_net_add_synapse(net, "deep", 1, (const int[]){0}, &table, NULL));
    CHECK_REFUSED(env, CGAM_E_VALUE, "synapse 'deep' leaves the range of double",
                  cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.energy = &E}));
}

/* ---- values and eigenvalues, every allocation -------------------------------------------------------- */
static int many_values(cgam_env *env, void *arg)
{
    (void)arg;
    enum { STATES = 130 };
    static double x[3 * STATES], rate[3 * STATES];
    const int64_t n = 3;
    OWNED(cgam_net) net = NULL;
    TRY(cgam_net_new(env, &net));
    TRY(cgam_net_add_layer(net, "x", 1, &n, NULL, NULL));
    TRY(cgam_net_add_coupling(net, "own", 0, 0, 0.1));
    TRY(cgam_net_eval(net, STATES, x, NULL, &(cgam_net_values){.rate = rate}));
    TRY(cgam_net_eval(net, STATES, x, NULL, &(cgam_net_values){.power = rate}));
    TRY(cgam_net_jacobian(net, x, NULL, STATES, x, rate));
    return CGAM_OK;
}

static int leading_values(cgam_env *env, void *arg)
{
    (void)arg;
    enum { N = 240 };
    static double x[N], a[N];
    const int64_t n = N;
    OWNED(cgam_net) net = NULL;
    cgam_eigen info;
    double values[2];
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = cgam_lagr_find("tanh");
    for (int i = 0; i < N; i++) x[i] = 0.01 * i, a[i] = 1;
    TRY(cgam_net_new(env, &net));
    TRY(cgam_net_add_layer(net, "x", 1, &n, &o, NULL));
    TRY(cgam_net_add_bias(net, "a", 0, a, 1));
    TRY(cgam_net_add_coupling(net, "own", 0, 0, 0.1));
    TRY(cgam_net_eigen(net, x, NULL, 2, 1e-6, values, &info));
    /* it was to be iterated */
    if (info.all) TRY(CGAM_E_INTERNAL);
    return CGAM_OK;
}

TEST(values_give_back_what_they_had)
{
    assert_true(check_every_allocation(leading_values, NULL) > 20);
    assert_true(check_every_allocation(many_values, NULL) > 10);
}
