/* learner.h (inside): what the ways to find a gradient share. A batch is cut into lanes of states; each has its own
 * work, buffers and gradient, and gradients are added in the order of the lanes. */
#ifndef CGAM_SRC_NET_LEARNER_H
#define CGAM_SRC_NET_LEARNER_H

#include "net/gradient.h"

typedef struct cgam_lane {
    const cgam_net_learner *of;
    cgam_work *work;
    int64_t first, count;   /* states of the batch */
    double *act;            /* [count, size] activations at the end */
    double *slope;          /* [count, size] dloss/da */
    double *v, *m, *change; /* [count, size] */
    double *more;           /* [count, 3 size] of IMPLICIT */
    double *path;           /* [steps, count, size] of STEPS */
    double *spare;          /* [3 size] */
    double *gradient;       /* [params] */
    double total;
    cgam_net_learn_report report;
} cgam_lane;

struct cgam_net_learner {
    const cgam_net_params *params;
    const cgam_net *net;
    cgam_env *env;
    cgam_net_learn_opts opts;
    bool *clamped;  /* [layers] */
    double fastest; /* the shortest tau of layers that move */
    int64_t batch, lanes;
    cgam_lane *lane;
    /* of a call */
    double *x;
    const cgam_net_loss *loss;
    double *gradient;
};

/* Losses at states x [count, size] of the lane with activations a: adds them to lane->total, and slope = dloss/da
 * unless it is NULL. */
CGAM_NODISCARD cgam_status cgam_lane_losses(cgam_lane *lane, const double *a, double *slope);
/* Moves x to a steady state of E + nudge loss; the last evaluation of the lane's work is there. steps > 0: as many
 * steps instead. */
CGAM_NODISCARD cgam_status cgam_lane_settle(cgam_lane *lane, double *x, double nudge,
                                            int64_t steps);

CGAM_NODISCARD cgam_status cgam_lane_steps(cgam_lane *lane, double *x);
CGAM_NODISCARD cgam_status cgam_lane_implicit(cgam_lane *lane, double *x);
CGAM_NODISCARD cgam_status cgam_lane_equilibrium(cgam_lane *lane, double *x);
CGAM_NODISCARD cgam_status cgam_lane_adjoint(cgam_lane *lane, double *x);

#endif
