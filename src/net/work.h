/* work.h: the work area in which a network is evaluated, and the plan of its products.
 *
 * The jobs of all synapses are sorted into groups: same operator, same direction, same phase. A
 * group is one call of the operator with several vectors, that is one pass over the weights. Jobs
 * with the same input are one. Products that depend only on clamped layers are computed once per clamp. A work is not
 * thread-safe: use it from one thread. */
#ifndef CGAM_SRC_NET_WORK_H
#define CGAM_SRC_NET_WORK_H

#include "net/net.h"

typedef struct cgam_work cgam_work;

typedef struct cgam_work_opts {
    int64_t batch;       /* at most this many states at a time */
    const bool *clamped; /* [layers], copied; NULL = none */
    bool all;            /* currents into clamped layers too */
    int64_t tangents; /* at most this many tangent vectors at a time; 0 = none, else batch is 1 */
} cgam_work_opts;

CGAM_NODISCARD cgam_status cgam_work_new(const cgam_net *net, const cgam_work_opts *opts,
                                         cgam_work **out);
void cgam_work_free(cgam_work *work); /* NULL is allowed */

/* Tangent k then belongs to state k of the batch, of as many tangents as states; before the first evaluation. */
void cgam_work_pair(cgam_work *work);
/* Currents and activations only: no energies. Dense weights are multiplied by BLAS, so that the bits of a state depend
 * on the batch. For learning, where a batch is one sum. */
void cgam_work_hurry(cgam_work *work);

/* Copies the layers that move, one after the other [packed], out of a whole state [size], and back into one; clamped
 * layers of the state are unchanged. */
void cgam_work_pack(const cgam_work *work, const double *x, double *packed);
void cgam_work_unpack(const cgam_work *work, const double *packed, double *x);

/* Discards the stored products of clamped layers: call it if their states change or states are reordered. */
void cgam_work_refresh(cgam_work *work);

/* Evaluates x [batch, size], which is borrowed until the next call: tangents and power read it. */
CGAM_NODISCARD cgam_status cgam_work_eval(cgam_work *work, int64_t batch, const double *x);
/* Results of the last call. */
const double *cgam_work_activation(const cgam_work *work); /* [batch, size] */
const double *cgam_work_current(const cgam_work *work);    /* [batch, size] */
const double *cgam_work_parts(const cgam_work *work);      /* [batch, parts] */
double cgam_work_energy(const cgam_work *work, int64_t state);
double cgam_work_magnitude(const cgam_work *work, int64_t state); /* sum of |parts| */

/* rate[batch, size] = (current - x) / tau, 0 where clamped. */
void cgam_work_rate(const cgam_work *work, double *rate);
/* dE/dt of one state from its rate [size]. */
CGAM_NODISCARD cgam_status cgam_work_power(cgam_work *work, int64_t state, const double *rate,
                                           double *power);

/* At the last state evaluated: change[count, size] = (d current / d x) v - v over tau, 0 where clamped; v of clamped
 * layers is ignored. */
CGAM_NODISCARD cgam_status cgam_work_jacobian(cgam_work *work, int64_t count, const double *v,
                                              double *change);

/* The two factors of it. hessian: out[count, size] = H v, H the Hessians of the Lagrangians; out is not v. curvature:
 * change[count, size] = D u, the derivative of the currents along u, which is in the space of activations. Both are 0
 * where clamped; at most `tangents` at a time. feed does the part of curvature that gradients of weights need
 * (gradient.h). */
CGAM_NODISCARD cgam_status cgam_work_hessian(cgam_work *work, int64_t count, const double *v,
                                             double *out);
CGAM_NODISCARD cgam_status cgam_work_curvature(cgam_work *work, int64_t count, const double *u,
                                               double *change);
CGAM_NODISCARD cgam_status cgam_work_feed(cgam_work *work, int64_t count, const double *u);

#endif
