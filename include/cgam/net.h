/* net.h: modular energy networks - layers with Lagrangians, joined by synapses with energies.
 *
 *   layer    state x, convex Lagrangian L(x), activation a = grad L(x), energy <x, a> - L(x)
 *   synapse  a scalar energy of the activations of the layers it joins; the current into a layer
 *            is minus its gradient there
 *   network  E = the sum of all parts,   tau dx/dt = sum of currents - x,
 *            dE/dt = - sum over layers of tau x_t' (hess L) x_t <= 0
 *
 * (Krotov 2021, "Hierarchical associative memory"; Krotov, Hoover, Ram and Pham 2025.)
 * Build a network by adding layers and synapses; after that it is const and may be shared by
 * threads. States are not part of it: a state is an array [size] with the layers in order, and a
 * call takes a batch of independent states [batch, size], each of which gives the same bits alone
 * and in a batch. Integration in time is in flow.h. This header does not depend on memories,
 * queries or contexts.
 */
#ifndef CGAM_NET_H
#define CGAM_NET_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Lagrangians -------------------------------------------------------------------------- */
#define CGAM_LAGR_PARAMS 3

typedef struct cgam_lagr_param {
    const char *name; /* NULL ends the list */
    double value;     /* default */
    double min, max;  /* legal range, ends included */
} cgam_lagr_param;

/* An entry of the table or a custom Lagrangian: set value, activation and hessian; other fields may be
 * zero. `theta` are the layer's parameters in the order of `param`. The functions may be called from
 * several threads at once. A result outside the range of double is CGAM_E_VALUE. */
typedef struct cgam_lagr cgam_lagr;
struct cgam_lagr {
    const char *name;
    const char *formula; /* of L(x), for display */
    cgam_lagr_param param[CGAM_LAGR_PARAMS];
    bool elementwise; /* a sum over elements; `axes` of a layer is then ignored */
    /* *L = L(x), x [n] */
    cgam_status (*value)(const cgam_lagr *self, const double *theta, int64_t n, const double *x,
                         double *L);
    /* a[n] = grad L(x) */
    cgam_status (*activation)(const cgam_lagr *self, const double *theta, int64_t n,
                              const double *x, double *a);
    /* out[n] = (hess L(x)) v, where a is the activation at x; out is not v */
    cgam_status (*hessian)(const cgam_lagr *self, const double *theta, int64_t n, const double *x,
                           const double *a, const double *v, double *out);
    /* *E = <x, a> - L(x) without cancellation; NULL = by that formula */
    cgam_status (*energy)(const cgam_lagr *self, const double *theta, int64_t n, const double *x,
                          const double *a, double *E);
    void *user;
    /* For learning its parameters: dL[p] += dL/dtheta_p, and unless w is NULL wa[p] += <w, da/dtheta_p>, with a the
     * activation at x. NULL = by central differences */
    cgam_status (*slope)(const cgam_lagr *self, const double *theta, int64_t n, const double *x,
                         const double *a, const double *w, double *dL, double *wa);
};

/* Every Lagrangian of the library; NULL ends the table. */
CGAM_API extern const cgam_lagr *const cgam_lagrs[];
/* Returns the Lagrangian of that name, or NULL if the name is unknown. */
CGAM_API const cgam_lagr *cgam_lagr_find(const char *name);

/* ---- Operators: weights as functions ------------------------------------------------------ */
/* W [rows, cols], dense or not. A call takes `count` vectors, one after the other; the result of each
 * must not depend on the others. The functions may be called from several threads at once. */
typedef struct cgam_op {
    int64_t rows, cols;
    /* out[k] = W in[k]:  in [count, cols], out [count, rows] */
    cgam_status (*apply)(void *user, int64_t count, const double *in, double *out);
    /* out[k] = W' in[k]: in [count, rows], out [count, cols] */
    cgam_status (*apply_t)(void *user, int64_t count, const double *in, double *out);
    void *user;
    bool symmetric; /* W = W': one product then replaces two */
} cgam_op;

/* ---- Networks ----------------------------------------------------------------------------- */
typedef struct cgam_net cgam_net;

CGAM_API CGAM_NODISCARD cgam_status cgam_net_new(cgam_env *env, cgam_net **out);
CGAM_API void cgam_net_free(cgam_net *net); /* NULL is fine */

typedef struct cgam_layer_opts {
    const cgam_lagr *lagr;          /* borrowed; default NULL = identity */
    double param[CGAM_LAGR_PARAMS]; /* default NAN = the entry's own */
    double scale;                   /* > 0, L becomes scale L; default 1 */
    double tau;                     /* > 0, time constant; default 1 */
    int axes; /* number of trailing axes that one Lagrangian covers; default 0 = all */
} cgam_layer_opts;
CGAM_API cgam_layer_opts cgam_layer_opts_default(void);

/* Adds a layer; sets *index (may be NULL) to its number, from 0. Copies name and shape. Names of layers
 * and synapses must be unique, not empty and without control characters. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_layer(cgam_net *net, const char *name, int ndim,
                                                       const int64_t *shape,
                                                       const cgam_layer_opts *opts, int *index);

/* Dense weights [rows, cols] as an operator that lives as long as the network; unless `copy`, data must
 * outlive the network. Rejects NaN and infinity, naming row and column. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_dense(cgam_net *net, const void *data,
                                                   cgam_dtype dtype, int64_t rows, int64_t cols,
                                                   bool copy, const cgam_op **out);

/* Convolution of images [height, width, in_channels] with kernels [out_channels, in_channels,
 * kernel_height, kernel_width] as an operator from input image to output image (channels last);
 * copies the kernels. Pixels outside the image are zero; "same" padding gives ceil(size / stride). */
typedef struct cgam_conv {
    int64_t height, width, in_channels, out_channels, kernel_height, kernel_width;
    int64_t stride_y, stride_x; /* 0 = 1 */
    bool same;                  /* false: only positions where the whole kernel fits */
} cgam_conv;
CGAM_API CGAM_NODISCARD cgam_status cgam_net_conv(cgam_net *net, const cgam_conv *conv,
                                                  const double *kernels, const cgam_op **out);

/* Synapses. x, y, layers: numbers of layers (a layer may appear twice). Operators must
 * outlive the network; synapses with the same operator share passes over it. Small vectors are
 * copied. A wrong shape fails with CGAM_E_SHAPE; the message names layer and sizes. */
#define CGAM_SYNAPSE_LAYERS 8

/* -gain x' W y */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_bilinear(cgam_net *net, const char *name, int x,
                                                          int y, const cgam_op *W, double gain);
/* gain/2 x' W x */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_self(cgam_net *net, const char *name, int x,
                                                      const cgam_op *W, double gain);
/* gain/2 x' (Z Z' - diag(diagonal)) x, never formed; diagonal [n] or NULL = 0 */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_gram(cgam_net *net, const char *name, int x,
                                                      const cgam_op *Z, double gain,
                                                      const double *diagonal);
/* -gain x' y */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_coupling(cgam_net *net, const char *name, int x,
                                                          int y, double gain);
/* -gain a' x */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_bias(cgam_net *net, const char *name, int x,
                                                      const double *a, double gain);
/* -gain sum T[i1, .., ik] x1[i1] .. xk[ik], 2 <= k: T as an operator [n1 .. n(k-1), nk] */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_tensor(cgam_net *net, const char *name, int k,
                                                        const int *layers, const cgam_op *T,
                                                        double gain);
/* -gain sum over r of w[r] <U1[r], x1> .. <Uk[r], xk>, Uj [rank, nj]; w [rank] or NULL = ones */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_lowrank(cgam_net *net, const char *name, int k,
                                                         const int *layers, const cgam_op *const *U,
                                                         const double *w, double gain);
/* -gain L(W x): a hidden layer with Lagrangian L that is always settled. param as in a layer
 * (NULL = the entry's own). */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_hidden(cgam_net *net, const char *name, int x,
                                                        const cgam_op *W, const cgam_lagr *lagr,
                                                        const double *param, double gain);

typedef struct cgam_attention_opts {
    double beta;       /* > 0; default 1 */
    int64_t heads;     /* default 1 */
    int64_t width;     /* of a head; default 0: queries and keys are not projected */
    const double *WQ;  /* [heads, width, dx], copied; required with width */
    const double *WK;  /* [heads, width, dy], copied; required with width */
    bool exclude_self; /* query i does not see key i; default false */
} cgam_attention_opts;
CGAM_API cgam_attention_opts cgam_attention_opts_default(void);
/* -gain/beta sum over heads and queries of log sum over keys of exp(beta <query, key>): queries
 * are the rows of layer x [nq, dx], keys those of layer y [nk, dy] */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_attention(cgam_net *net, const char *name, int x,
                                                           int y, const cgam_attention_opts *opts,
                                                           double gain);

/* A custom synapse. */
typedef struct cgam_synapse {
    /* *energy = E(a1 .. ak), and current[j] += -dE/daj where current[j] is not NULL; act[j] has
     * size[j] numbers. May be called from several threads at once. */
    cgam_status (*eval)(void *user, int k, const int64_t *size, const double *const *act,
                        double *energy, double *const *current);
    /* change[j] += the derivative of current j in the direction v; NULL = by central differences */
    cgam_status (*tangent)(void *user, int k, const int64_t *size, const double *const *act,
                           const double *const *v, double *const *change);
    void (*free)(void *user); /* called when the network is freed; NULL = nothing to free */
    /* Parameters to learn: theta [params] is read by eval and written by cgam_net_params_set, and slope adds dE/dtheta
     * to out [params]. Zero and NULL = none */
    int64_t params;
    double *theta; /* must live as long as the network */
    cgam_status (*slope)(void *user, int k, const int64_t *size, const double *const *act,
                         double *out);
} cgam_synapse;
/* Copies the table. On success the network owns `user`. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_add_synapse(cgam_net *net, const char *name, int k,
                                                         const int *layers,
                                                         const cgam_synapse *synapse, void *user);

/* The synapse kinds above, for menus, documents and tests; name NULL ends the table. */
typedef struct cgam_synapse_info {
    const char *name, *formula;
    int layers_min, layers_max;
} cgam_synapse_info;
CGAM_API extern const cgam_synapse_info cgam_synapse_kinds[];

/* ---- Description -------------------------------------------------------------------------- */
typedef struct cgam_net_info {
    int layers;
    int parts;    /* layers + synapses */
    int64_t size; /* numbers in one state */
} cgam_net_info;
CGAM_API cgam_net_info cgam_net_describe(const cgam_net *net);

typedef struct cgam_layer_view {
    const char *name;
    int ndim;
    const int64_t *shape;
    int64_t size, offset; /* the layer is state[offset .. offset + size) */
    const cgam_lagr *lagr;
    const double *param;
    double scale, tau;
} cgam_layer_view;
CGAM_API cgam_layer_view cgam_net_layer(const cgam_net *net, int layer);

/* Returns the number of a layer, or -1 if the name is unknown. */
CGAM_API int cgam_net_find(const cgam_net *net, const char *layer);

/* ---- Values at a point -------------------------------------------------------------------- */
typedef struct cgam_net_values { /* any pointer may be NULL */
    double *energy;              /* [batch] */
    double *parts;               /* [batch, parts] by layer, then by synapse */
    double *activation;          /* [batch, size] */
    double *current;             /* [batch, size] */
    double *rate;                /* [batch, size] dx/dt, 0 in clamped layers */
    double *power;               /* [batch] dE/dt, predicted from the Hessians */
} cgam_net_values;

/* x [batch, size]; clamped [layers] or NULL = none. Fails with CGAM_E_VALUE if an activation
 * leaves the range of double; the message names the layer. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_eval(const cgam_net *net, int64_t batch,
                                                  const double *x, const bool *clamped,
                                                  const cgam_net_values *out);

/* out[count, size] = J v[k], J the Jacobian of the rates at x [size]; clamped layers do not move,
 * and their entries of v are ignored. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_jacobian(const cgam_net *net, const double *x,
                                                      const bool *clamped, int64_t count,
                                                      const double *v, double *out);

/* ---- Stability ---------------------------------------------------------------------------- */
/* J is similar to a symmetric matrix (the Hessian of a layer commutes with its tau), so its
 * eigenvalues are real; imaginary parts found by an iteration are rounding errors. */
typedef struct cgam_eigen {
    int64_t found;    /* `count`, or the size of the free layers if that is smaller */
    double imaginary; /* largest imaginary part found */
    double residual;  /* largest |J v - value v| of those returned; 0 if all were computed */
    bool all;         /* all were computed, by a dense decomposition */
    bool converged;   /* residual within tol */
    int64_t products; /* number of products with J */
} cgam_eigen;
/* Computes the `count` largest eigenvalues of J at x, falling, into values[count]. A steady x is stable
 * if all are negative. Small networks are decomposed; large ones use Krylov-Schur iteration until the
 * residual is at most tol times the largest |value| found; tol 0 = 1e-9. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_eigen(const cgam_net *net, const double *x,
                                                   const bool *clamped, int64_t count, double tol,
                                                   double *values, cgam_eigen *out);

/* ---- Learning ----------------------------------------------------------------------------- */
/* The parameters of a network that are learned, as one vector theta. Names are those of synapses, for all their
 * weights, or PART.WORD for one number: "memories.gain", "memories.beta" of a hidden or attention synapse, "pixels.gamma"
 * or "pixels.scale" of a layer. Synapses with the same operator learn it together. The network takes a copy in double of
 * borrowed weights; weights given by functions are rejected. `net` must outlive *out, and while it learns it is no longer
 * const: cgam_net_params_set changes it, and no other call may use it at that moment. */
typedef struct cgam_net_params cgam_net_params;
CGAM_API CGAM_NODISCARD cgam_status cgam_net_params_new(cgam_net *net, int count,
                                                        const char *const *names,
                                                        cgam_net_params **out);
CGAM_API void cgam_net_params_free(cgam_net_params *params); /* NULL is fine */

/* theta[from .. from + rows * cols) is one matrix, vector (rows = 1) or number, with values in [min, max]. */
typedef struct cgam_net_block {
    const char *name;
    int64_t from, rows, cols;
    double min, max;
} cgam_net_block;
CGAM_API int64_t cgam_net_params_count(const cgam_net_params *params);
CGAM_API int cgam_net_params_blocks(const cgam_net_params *params);
CGAM_API cgam_net_block cgam_net_params_block(const cgam_net_params *params, int block);
CGAM_API void cgam_net_params_get(const cgam_net_params *params, double *theta);
/* Fails with CGAM_E_VALUE, and changes nothing, if a number is not finite or out of its range. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_params_set(cgam_net_params *params,
                                                        const double *theta);

/* slope[count] = the sum over states x [batch, size] of dE/dtheta, at fixed activations. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_params_slope(const cgam_net_params *params,
                                                          int64_t batch, const double *x,
                                                          double *slope);

/* A loss of the activations a [size] at the end of a flow: *loss, and slope[size] += dloss/da unless it is NULL. state
 * counts from 0 in the batch. May be called from several threads at once. */
typedef struct cgam_net_loss {
    cgam_status (*eval)(void *user, int64_t state, const double *a, double *loss, double *slope);
    void *user;
} cgam_net_loss;

/* What the end of a flow is, and how the gradient is found:
 *   STEPS       n steps x += step (F(x) - x) / tau, differentiated exactly, in reverse
 *   IMPLICIT    the steady state, by the implicit function theorem. With D the derivative of the currents with respect
 *               to the activations and H the Hessians of the Lagrangians, (1 - D H) m = dloss/da is solved by conjugate
 *               gradients in the inner product <u, H v>, and dloss/dtheta = (H m)' dF/dtheta + m' da/dtheta
 *   ADJOINT     the state at t_end, by the adjoint equation of CVODES along the trajectory
 *   EQUILIBRIUM the steady state, by the centred difference of dE/dtheta at the steady states of E +- nudge * loss
 *               (Scellier and Bengio 2017; Laborieux et al. 2021); its error is of order nudge^2 */
typedef enum cgam_net_way {
    CGAM_NET_STEPS,
    CGAM_NET_IMPLICIT,
    CGAM_NET_ADJOINT,
    CGAM_NET_EQUILIBRIUM
} cgam_net_way;
CGAM_API extern const char *const cgam_net_way_words[]; /* "steps", "implicit", .. */

typedef struct cgam_net_learn_opts {
    cgam_net_way way;    /* default STEPS */
    const bool *clamped; /* [layers], copied; layers that keep their start; default NULL = none */
    int64_t steps;       /* of STEPS; default 1 */
    double
        step; /* of STEPS, and times the shortest tau of the search for a steady state; default 1 */
    double
        steady; /* steady if |x - F(x)| is within this, relative to the largest |x| or 1; default 1e-8 */
    int64_t max_steps; /* of the search for a steady state; default 1000 */
    double tol;        /* of conjugate gradients, relative; default 1e-10 */
    double t_end;      /* of ADJOINT; default 10 */
    double rtol, atol; /* of ADJOINT; default 1e-9 and 1e-11 */
    double nudge;      /* of EQUILIBRIUM, > 0; default 1e-3 */
    int64_t
        nudged_steps; /* of EQUILIBRIUM: as many steps for each nudged state instead of a steady one, which makes a
                             cheap estimate; default 0 = until steady */
} cgam_net_learn_opts;
CGAM_API cgam_net_learn_opts cgam_net_learn_opts_default(void);

typedef struct cgam_net_learn_report {
    int64_t steps;      /* the most that a search for a steady state took */
    int64_t iterations; /* of conjugate gradients, the most of a state */
    double residual;    /* the largest |x - F(x)| of a steady state */
    double
        margin; /* IMPLICIT: the least eigenvalue of 1 - D H that the conjugate gradients have seen; 0 at a fold. NAN:
                      not known */
} cgam_net_learn_report;

/* Computes losses and gradients of batches of at most `batch` states; keeps the buffers for it. `params` must outlive
 * it. One call at a time. */
typedef struct cgam_net_learner cgam_net_learner;
CGAM_API CGAM_NODISCARD cgam_status cgam_net_learner_new(const cgam_net_params *params,
                                                         const cgam_net_learn_opts *opts,
                                                         int64_t batch, cgam_net_learner **out);
CGAM_API void cgam_net_learner_free(cgam_net_learner *learner); /* NULL is fine */
/* x [batch, size] holds the starts on entry, clamped layers included, and the ends on return. *total = the sum of the
 * losses, and gradient[count] its gradient, or NULL. report may be NULL. Results do not depend on the number of threads.
 * Fails with
 *   CGAM_E_NOT_CONVERGED   no steady state within max_steps; the message has the residual
 *   CGAM_E_NOT_POSITIVE    IMPLICIT: 1 - D H is not positive definite along the gradient, or its margin is below what
 *                          `steady` can tell from 0: the state is at a fold or a saddle, and the gradient means nothing
 *   CGAM_E_VALUE           a state leaves the range of double. */
CGAM_API CGAM_NODISCARD cgam_status cgam_net_learner_run(cgam_net_learner *learner, int64_t batch,
                                                         double *x, const cgam_net_loss *loss,
                                                         double *total, double *gradient,
                                                         cgam_net_learn_report *report);

#ifdef __cplusplus
}
#endif
#endif
