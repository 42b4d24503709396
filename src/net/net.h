/* net.h (inside): what a network is made of.
 *
 * A synapse kind says which products with operators it needs (its *jobs*), fills in those inputs
 * that are not plain activations (*feed*), and turns products into an energy and currents (*eval*).
 * The network gathers the jobs of all synapses, so that synapses over the same operator share one
 * pass over it: work.c. A kind handles one state at a time and holds no state of its own. */
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
    CGAM_PHASE_ANY,   /* input is an activation and no feed waits for the result */
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
    double *cur[SLOTS];       /* NULL: not wanted */
    const double *prod[JOBS]; /* NULL: not asked for */
    double *in[JOBS];
    const double *v[SLOTS];
    const double *dprod[JOBS];
    double *din[JOBS];
    double *scratch; /* [syn->scratch] */
    double energy;
} cgam_frame;

typedef struct cgam_syn_kind {
    const char *name;
    /* Fills jobs[JOBS], which come zeroed, for currents into the slots wanted. NULL: there are none. */
    void (*plan)(const cgam_syn *s, const bool *wanted, cgam_job *jobs);
    /* Fills the inputs of slot -1, which are all of one phase. */
    cgam_status (*feed)(const cgam_syn *s, cgam_frame *f);
    cgam_status (*feed_tangent)(const cgam_syn *s, cgam_frame *f);
    cgam_status (*eval)(const cgam_syn *s, cgam_frame *f); /* energy, and currents unless below */
    cgam_status (*tangent)(const cgam_syn *s,
                           cgam_frame *f); /* NULL: currents are constant, or below */
    /* Currents that are linear in activations and products. Those of their derivatives are the tangent. NULL: they are not. */
    void (*currents)(const cgam_syn *s, const double *const *act, const double *const *prod,
                     double *const *cur);
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
    cgam_lagr_use use; /* hidden */
    struct cgam_attention *attention;
    cgam_synapse table; /* the user's own */
    void *user;
    int64_t scratch; /* doubles that eval and feed may use */
};

struct cgam_attention {
    cgam_attention_opts opts; /* WQ and WK are the synapse's own */
    int64_t queries, keys, dx, dy;
};

/* What lives as long as the network. */
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

/* Hands `thing` to the network; frees it at once when that fails. */
CGAM_NODISCARD cgam_status cgam_net_keep(cgam_net *net, void (*release)(cgam_env *, void *),
                                         void *thing);
/* An array that stays open as long as the network, as an operator of `rows` rows. */
CGAM_NODISCARD cgam_status cgam_net_dense_array(cgam_net *net, const char *name, cgam_array *array,
                                                int64_t rows, const cgam_op **out);
/* diagonal[rows] of W W'. CGAM_E_ARG when W is not one of cgam_net_dense. */
CGAM_NODISCARD cgam_status cgam_net_dense_norm2(cgam_net *net, const cgam_op *W, double *diagonal);

/* CGAM_E_VALUE names the first number of states [batch, size] that is not finite; what: "state". */
CGAM_NODISCARD cgam_status cgam_net_check_states(const cgam_net *net, const char *what,
                                                 int64_t batch, const double *x);

/* A new synapse over `k` layers, checked and zeroed; it counts after cgam_net_end. */
CGAM_NODISCARD cgam_status cgam_net_begin(cgam_net *net, const cgam_syn_kind *kind,
                                          const char *name, int k, const int *layers, double gain,
                                          cgam_syn **out);
/* Takes the synapse into the network, or frees it when status is a failure; gives the status. */
cgam_status cgam_net_end(cgam_net *net, cgam_status status);
/* Copies the synapse's vector [n]; NaN and infinity are rejected. */
CGAM_NODISCARD cgam_status cgam_syn_vector(cgam_net *net, cgam_syn *s, const double *from,
                                           int64_t n);
/* The currents of kinds whose current into slot j is gain times product k + j. */
void cgam_syn_currents_second(const cgam_syn *s, const double *const *act,
                              const double *const *prod, double *const *cur);
/* cur += gain x [n]; cur NULL: not wanted. */
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
/* Name of part i: layers first, then synapses. */
const char *cgam_net_part_name(const cgam_net *net, int part);

#endif
