/* gradient.h: derivatives of the energy with respect to the parameters of a network.
 *
 * Weights W of an operator enter an energy through products, so dE/dW is a sum of a few outer products of vectors that an
 * evaluation has already made: factor left right'. A synapse kind lists these *terms*; a batch of them is one product of
 * matrices. Along a direction v of the activations the derivative of dE/dW is again such a sum. */
#ifndef CGAM_SRC_NET_GRADIENT_H
#define CGAM_SRC_NET_GRADIENT_H

#include "net/work_inside.h"

typedef enum cgam_learned {
    CGAM_LEARNED_WEIGHTS, /* an operator */
    CGAM_LEARNED_VECTOR,  /* of a synapse: bias, weights of a low rank */
    CGAM_LEARNED_QUERIES, /* attention */
    CGAM_LEARNED_KEYS,
    CGAM_LEARNED_BETA,
    CGAM_LEARNED_OWN,  /* of a user's synapse */
    CGAM_LEARNED_LAGR, /* of a hidden synapse */
    CGAM_LEARNED_GAIN,
    CGAM_LEARNED_LAYER /* of a layer's Lagrangian, its scale included */
} cgam_learned;

/* One block of the parameters. */
typedef struct cgam_block {
    char *name;
    cgam_learned kind;
    int part;          /* layer, or synapse */
    int index;         /* LAGR, LAYER: which parameter; CGAM_LAGR_PARAMS: the scale */
    const cgam_op *op; /* WEIGHTS */
    double *data;      /* where the network keeps it */
    int64_t from, rows, cols;
    double min, max;
} cgam_block;

struct cgam_net_params {
    cgam_net *net;
    cgam_env *env;
    cgam_block *block;
    int blocks, capacity;
    int64_t count;
    bool layers; /* parameters of layers are among them */
};

/* slope[count] += factor times the sum over the batch of dE/dtheta at the states of the last evaluation; of synapses and
 * layers. tangent: of the derivative of dE/dtheta along the directions of the last cgam_work_feed or
 * cgam_work_curvature; of synapses only. spare [size]. */
CGAM_NODISCARD cgam_status cgam_gradient_add(cgam_work *work, const cgam_net_params *params,
                                             bool tangent, double factor, double *spare,
                                             double *slope);
/* slope += the sum over states x [batch, size], with activations a, of <w, da/dtheta>, for the parameters of layers;
 * w [batch, size]; scratch [2 size]. */
CGAM_NODISCARD cgam_status cgam_gradient_layers(const cgam_net_params *params, int64_t batch,
                                                const double *x, const double *a, const double *w,
                                                double *scratch, double *slope);

#endif
