/* nets.h: what the tests of networks share - a generator of numbers and of networks. */
#ifndef CGAM_TESTS_UNIT_NET_NETS_H
#define CGAM_TESTS_UNIT_NET_NETS_H

#include "support/check.h"

#include <cgam/net.h>

/* splitmix64, and normal numbers by Box and Muller */
static inline uint64_t next_bits(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline double uniform(uint64_t *seed)
{
    return ((double)(next_bits(seed) >> 11) + 0.5) * 0x1p-53;
}

static inline double normal(uint64_t *seed)
{
    double r = sqrt(-2 * log(uniform(seed))), angle = 6.283185307179586 * uniform(seed);
    return r * cos(angle);
}

static inline void normals(uint64_t *seed, double scale, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = scale * normal(seed);
}

static inline int below(uint64_t *seed, int n) { return (int)(next_bits(seed) % (uint64_t)n); }

static inline cgam_env *new_env(void)
{
    cgam_env *env;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 1;
    assert_int_equal(cgam_env_new(&opts, &env), CGAM_OK);
    return env;
}

static inline double dot(int64_t n, const double *a, const double *b)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += a[i] * b[i];
    return total;
}

/* Dense weights of random numbers, copied into the network. */
static inline const cgam_op *random_op(cgam_env *env, cgam_net *net, uint64_t *seed, double scale,
                                       int64_t rows, int64_t cols, bool symmetric)
{
    double *W = malloc((size_t)(rows * cols) * sizeof *W);
    const cgam_op *op;
    assert_non_null(W);
    normals(seed, scale, rows * cols, W);
    for (int64_t i = 0; symmetric && i < rows; i++)
        for (int64_t j = 0; j < i; j++) W[i * cols + j] = W[j * cols + i];
    CHECK_STATUS(env, cgam_net_dense(net, W, CGAM_F64, rows, cols, true, &op));
    free(W);
    return op;
}

/* A synapse of the user's: E = sum over i of cos(x[i]) y[i mod ny]. */
static inline cgam_status wave_eval(void *user, int k, const int64_t *size,
                                    const double *const *act, double *energy,
                                    double *const *current)
{
    double gain = *(const double *)user;
    *energy = 0;
    for (int64_t i = 0; i < size[0]; i++) {
        int64_t j = i % size[k - 1];
        double c = gain * cos(act[0][i]), s = gain * sin(act[0][i]);
        *energy += c * act[k - 1][j];
        if (current[0]) current[0][i] += s * act[k - 1][j];
        if (current[k - 1]) current[k - 1][j] -= c;
    }
    return CGAM_OK;
}

static inline cgam_status wave_tangent(void *user, int k, const int64_t *size,
                                       const double *const *act, const double *const *v,
                                       double *const *change)
{
    double gain = *(const double *)user;
    for (int64_t i = 0; i < size[0]; i++) {
        int64_t j = i % size[k - 1];
        double c = gain * cos(act[0][i]), s = gain * sin(act[0][i]);
        if (change[0]) change[0][i] += c * v[0][i] * act[k - 1][j] + s * v[k - 1][j];
        if (change[k - 1]) change[k - 1][j] += s * v[0][i];
    }
    return CGAM_OK;
}

/* Adds one synapse of the named kind over random layers. Fails the test on a kind it does not
 * know, so that a kind cannot be added to the table without being tested. */
static inline void random_synapse(cgam_env *env, cgam_net *net, uint64_t *seed, const char *kind,
                                  const char *name, double gain)
{
    int layers = cgam_net_describe(net).layers, at[3];
    int64_t n[3];
    for (int i = 0; i < 3; i++) {
        at[i] = below(seed, layers);
        n[i] = cgam_net_layer(net, at[i]).size;
    }
    if (!strcmp(kind, "bilinear")) {
        const cgam_op *W = random_op(env, net, seed, 0.5, n[0], n[1], false);
        CHECK_STATUS(env, cgam_net_add_bilinear(net, name, at[0], at[1], W, gain));
    } else if (!strcmp(kind, "self")) {
        const cgam_op *W = random_op(env, net, seed, 0.5, n[0], n[0], below(seed, 2));
        CHECK_STATUS(env, cgam_net_add_self(net, name, at[0], W, gain));
    } else if (!strcmp(kind, "gram")) {
        double diagonal[64];
        const cgam_op *Z = random_op(env, net, seed, 0.5, n[0], 3, false);
        normals(seed, 1, n[0], diagonal);
        CHECK_STATUS(
            env, cgam_net_add_gram(net, name, at[0], Z, gain, below(seed, 2) ? diagonal : NULL));
    } else if (!strcmp(kind, "coupling")) {
        int partner = at[0];
        for (int i = 0; i < layers; i++)
            if (cgam_net_layer(net, i).size == n[0]) partner = i;
        CHECK_STATUS(env, cgam_net_add_coupling(net, name, at[0], partner, gain));
    } else if (!strcmp(kind, "bias")) {
        double a[64];
        normals(seed, 1, n[0], a);
        CHECK_STATUS(env, cgam_net_add_bias(net, name, at[0], a, gain));
    } else if (!strcmp(kind, "tensor")) {
        int k = 2 + below(seed, 2);
        int64_t rows = k == 2 ? n[0] : n[0] * n[1];
        const cgam_op *T = random_op(env, net, seed, 0.3, rows, n[k - 1], false);
        CHECK_STATUS(env, cgam_net_add_tensor(net, name, k, at, T, gain));
    } else if (!strcmp(kind, "lowrank")) {
        const cgam_op *U[3];
        double w[2];
        normals(seed, 1, 2, w);
        int k = 1 + below(seed, 3);
        for (int i = 0; i < k; i++) U[i] = random_op(env, net, seed, 0.4, 2, n[i], false);
        CHECK_STATUS(env,
                     cgam_net_add_lowrank(net, name, k, at, U, below(seed, 2) ? w : NULL, gain));
    } else if (!strcmp(kind, "hidden")) {
        static const char *const which[] = {"softmax", "tanh", "relu", "identity"};
        const cgam_op *W = random_op(env, net, seed, 0.5, 4, n[0], false);
        CHECK_STATUS(env, cgam_net_add_hidden(net, name, at[0], W,
                                              cgam_lagr_find(which[below(seed, 4)]), NULL, gain));
    } else if (!strcmp(kind, "attention")) {
        cgam_attention_opts o = cgam_attention_opts_default();
        double WQ[256], WK[256];
        int64_t dx = cgam_net_layer(net, at[0]).shape[cgam_net_layer(net, at[0]).ndim - 1];
        int64_t dy = cgam_net_layer(net, at[1]).shape[cgam_net_layer(net, at[1]).ndim - 1];
        o.beta = 0.5 + uniform(seed);
        o.heads = 2;
        o.width = 2;
        normals(seed, 0.5, 4 * dx, WQ);
        normals(seed, 0.5, 4 * dy, WK);
        o.WQ = WQ;
        o.WK = WK;
        o.exclude_self = n[0] / dx == n[1] / dy && n[0] / dx > 1 && below(seed, 2);
        CHECK_STATUS(env, cgam_net_add_attention(net, name, at[0], at[1], &o, gain));
    } else if (!strcmp(kind, "user")) {
        double *own = malloc(sizeof *own);
        *own = gain;
        cgam_synapse table = {
            .eval = wave_eval, .tangent = below(seed, 2) ? wave_tangent : NULL, .free = free};
        CHECK_STATUS(env, cgam_net_add_synapse(net, name, 2, at, &table, own));
    } else {
        fail_msg("no test for synapses of kind %s", kind);
    }
}

/* A layer with the Lagrangian and random parameters within what a test can difference. */
static inline void random_layer(cgam_env *env, cgam_net *net, uint64_t *seed, const cgam_lagr *lagr,
                                const char *name)
{
    static const int64_t shapes[][3] = {{5}, {2, 3}, {3, 2}, {6}, {2, 2, 2}, {2, 3}};
    static const int ndims[] = {1, 2, 2, 1, 3, 2};
    cgam_layer_opts o = cgam_layer_opts_default();
    int which = below(seed, 6);
    o.lagr = lagr;
    o.scale = below(seed, 2) ? 1 : 0.5 + uniform(seed);
    o.tau = exp(2 * normal(seed));
    o.axes = below(seed, ndims[which] + 1);
    for (int i = 0; i < CGAM_LAGR_PARAMS && lagr->param[i].name; i++) {
        if (!strcmp(lagr->param[i].name, "power")) o.param[i] = 2 + 2 * uniform(seed);
        else if (!strcmp(lagr->param[i].name, "epsilon")) o.param[i] = 0.1;
        else if (!strcmp(lagr->param[i].name, "order")) o.param[i] = 1.2 + 0.6 * uniform(seed);
        else if (!strcmp(lagr->param[i].name, "delta")) o.param[i] = normal(seed);
        else o.param[i] = 0.5 + uniform(seed);
    }
    int ndim = ndims[which];
    /* attention takes rows, so most layers have at most two dimensions */
    if (ndim == 3) ndim = 2;
    CHECK_STATUS(env, cgam_net_add_layer(net, name, ndim, shapes[which],
                                         (o.axes = o.axes > ndim ? ndim : o.axes, &o), NULL));
}

#endif
