/* net.h (inside): the parts of a network.
 *
 * A synapse kind lists the products with operators that it needs (its *jobs*), fills inputs that are not plain
 * activations (*feed*), and turns products into an energy and currents (*eval*). The network gathers the jobs of all
 * synapses, so that synapses over the same operator share one pass over it: work.c. A kind processes one state at a
 * time and stores no state. */
#ifndef CGAM_SRC_NET_NET_H
#define CGAM_SRC_NET_NET_H

#include <cgam/flow.h>
#include <cgam/io.h>
#include <cgam/net.h>

#include "base/env.h"
#include "net/lagr.h"

enum { SLOTS = CGAM_SYNAPSE_LAYERS, JOBS = 2 * SLOTS };

typedef struct cgam_layer {
    char *name;
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS];
    int64_t size, offset;
    cgam_lagr_use use;
    double tau;
} cgam_layer;

typedef enum cgam_phase {
    CGAM_PHASE_ANY,   /* input is an activation and no feed needs the result */
    CGAM_PHASE_FIRST, /* before the feeds of the second phase */
    CGAM_PHASE_SECOND /* input is made from results of the first */
} cgam_phase;

typedef struct cgam_job {
    const cgam_op *op; /* NULL: not needed */
    bool transposed;
    int slot; /* input is the activation of this slot; -1: feed fills it in */
    cgam_phase phase;
} cgam_job;

typedef struct cgam_syn cgam_syn;

/* One synapse at one state. In a tangent, v and d* are derivatives, and cur takes those of the
 * currents. */
typedef struct cgam_frame {
    const double *act[SLOTS];
    double *cur[SLOTS];       /* NULL: not requested */
    const double *prod[JOBS]; /* NULL: not requested */
    double *in[JOBS];
    const double *v[SLOTS];
    const double *dprod[JOBS];
    double *din[JOBS];
    bool still[SLOTS]; /* the layer is clamped: v is 0 */
    double *scratch;   /* [syn->scratch] */
    double energy;
} cgam_frame;

/* factor left right', a term of dE/dW. */
typedef struct cgam_outer {
    double factor;
    const double *left, *right; /* [rows], [cols] of the operator */
} cgam_outer;

typedef struct cgam_syn_kind {
    const char *name;
    /* Fills jobs[JOBS], zeroed on entry, for currents into the requested slots. NULL: no jobs. */
    void (*plan)(const cgam_syn *s, const bool *wanted, cgam_job *jobs);
    /* Fills the inputs of slot -1, which all have one phase. */
    cgam_status (*feed)(const cgam_syn *s, cgam_frame *f);
    cgam_status (*feed_tangent)(const cgam_syn *s, cgam_frame *f);
    cgam_status (*eval)(const cgam_syn *s, cgam_frame *f); /* energy, and currents unless below */
    cgam_status (*tangent)(const cgam_syn *s,
                           cgam_frame *f); /* NULL: currents are constant, or below */
    /* Currents that are linear in activations and products: applied to derivatives, they give the tangent. NULL: not
     * linear. */
    void (*currents)(const cgam_syn *s, const double *const *act, const double *const *prod,
                     double *const *cur);
    /* Fills the terms of dE/dW, W the operator of a slot, and returns their number, at most 2. In a tangent: of its
     * derivative along v. The pointers of one state are valid until the next, if scratched. */
    int (*terms)(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent, cgam_outer *out);
    bool scratched;
    /* out += factor dE/dtheta of parameters other than operators (`what` is a cgam_learned), or its derivative. */
    cgam_status (*slope)(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                         double factor, double *out);
} cgam_syn_kind;

struct cgam_syn {
    char *name;
    const cgam_syn_kind *kind;
    int k;
    int layer[SLOTS];
    int64_t size[SLOTS];
    double gain;
    const cgam_op *op[SLOTS];
    double *vector;    /* bias: a; gram: diagonal or NULL; low rank: w or NULL */
    bool follows;      /* gram: the diagonal is that of ZZ', also while Z is learned */
    cgam_lagr_use use; /* hidden */
    struct cgam_attention *attention;
    cgam_synapse table; /* defined by the user */
    void *user;
    int64_t scratch; /* doubles that eval and feed may use */
};

struct cgam_attention {
    cgam_attention_opts opts; /* WQ and WK belong to the synapse */
    int64_t queries, keys, dx, dy;
};

/* A resource that lives as long as the network. */
typedef struct cgam_kept {
    struct cgam_kept *next;
    void (*free)(cgam_env *env, void *thing);
    void *thing;
} cgam_kept;

struct cgam_net {
    cgam_env *env;
    int layers, synapses, layers_capacity, synapses_capacity;
    cgam_layer *layer;
    cgam_syn *synapse;
    cgam_kept *kept;
    int64_t size;
};

/* Gives `thing` to the network; frees it at once on failure. */
CGAM_NODISCARD cgam_status cgam_net_keep(cgam_net *net, void (*release)(cgam_env *, void *),
                                         void *thing);
/* Makes an operator of `rows` rows from an array that stays open as long as the network. */
CGAM_NODISCARD cgam_status cgam_net_dense_array(cgam_net *net, const char *name, cgam_array *array,
                                                int64_t rows, const cgam_op **out);
/* Makes the weights of a dense operator a copy in double that may be changed, *data [rows, cols], unless they are one.
 * Returns CGAM_E_UNSUPPORTED if W was not made by cgam_net_dense. */
CGAM_NODISCARD cgam_status cgam_net_dense_own(cgam_net *net, const cgam_op *W, double **data);
/* The same product as apply or apply_t, by BLAS. Returns false, and does nothing, if the weights are not stored in
 * double. */
bool cgam_op_multiply(const cgam_op *W, bool transposed, int64_t count, const double *in,
                      double *out);
/* The kernels of a convolution, *count numbers; NULL if the operator is none. */
double *cgam_net_conv_kernels(const cgam_op *op, int64_t *count);
/* Fills their shape [out, in, height, width]; returns 4. */
int cgam_net_conv_shape(const cgam_op *op, int64_t *shape);
/* slope += factor times the sum over k of the derivatives of left[k]' W right[k] with respect to the kernels. Vectors
 * are `left_step` and `right_step` numbers apart. */
void cgam_net_conv_slope(const cgam_op *op, int64_t count, double factor, const double *left,
                         int64_t left_step, const double *right, int64_t right_step, double *slope);
/* diagonal[rows] of W W'. Returns CGAM_E_ARG if W was not made by cgam_net_dense. */
CGAM_NODISCARD cgam_status cgam_net_dense_norm2(cgam_net *net, const cgam_op *W, double *diagonal);

/* Returns CGAM_E_VALUE, naming the first number of states [batch, size] that is not finite; what: "state". */
CGAM_NODISCARD cgam_status cgam_net_check_states(const cgam_net *net, const char *what,
                                                 int64_t batch, const double *x);

/* Makes a new synapse over `k` layers, checked and zeroed; cgam_net_end adds it to the network. */
CGAM_NODISCARD cgam_status cgam_net_begin(cgam_net *net, const cgam_syn_kind *kind,
                                          const char *name, int k, const int *layers, double gain,
                                          cgam_syn **out);
/* Adds the synapse to the network, or frees it if status is a failure; returns the status. */
cgam_status cgam_net_end(cgam_net *net, cgam_status status);
/* Copies the synapse's vector [n]; NaN and infinity are rejected. */
CGAM_NODISCARD cgam_status cgam_syn_vector(cgam_net *net, cgam_syn *s, const double *from,
                                           int64_t n);
/* Currents of kinds whose current into slot j is gain times product k + j. */
void cgam_syn_currents_second(const cgam_syn *s, const double *const *act,
                              const double *const *prod, double *const *cur);
/* cur += gain x [n]; cur NULL: not requested. */
static inline void cgam_syn_add(double *cur, double gain, const double *x, int64_t n)
{
    for (int64_t i = 0; cur && i < n; i++) cur[i] += gain * x[i];
}

extern const cgam_syn_kind cgam_syn_bilinear, cgam_syn_self, cgam_syn_gram, cgam_syn_coupling,
    cgam_syn_bias, cgam_syn_tensor, cgam_syn_lowrank, cgam_syn_hidden, cgam_syn_attention,
    cgam_syn_user;

typedef struct cgam_synapse_view {
    const char *name, *kind;
    int k;
    const int *layers;
    double gain;
} cgam_synapse_view;
int cgam_net_synapses(const cgam_net *net);
cgam_synapse_view cgam_net_synapse(const cgam_net *net, int synapse);
/* Returns the name of part i: layers first, then synapses. */
const char *cgam_net_part_name(const cgam_net *net, int part);

#endif
