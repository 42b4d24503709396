/* lagr.h: the Lagrangians of the library, and a Lagrangian as a layer uses it.
 *
 * lagr.c has those that act on each element separately, lagr_joint.c those that depend on all elements. */
#ifndef CGAM_SRC_NET_LAGR_H
#define CGAM_SRC_NET_LAGR_H

#include <cgam/net.h>

#include "base/env.h"

extern const cgam_lagr cgam_lagr_identity, cgam_lagr_softmax, cgam_lagr_relu, cgam_lagr_power,
    cgam_lagr_exponential, cgam_lagr_rexp, cgam_lagr_tanh, cgam_lagr_sigmoid, cgam_lagr_layer_norm,
    cgam_lagr_spherical_norm, cgam_lagr_ghost, cgam_lagr_sparsemax, cgam_lagr_entmax15,
    cgam_lagr_entmax;

/* The inverse temperature as an entry of `param`. */
#define BETA                                                                                       \
    {                                                                                              \
        "beta", 1, 1e-9, 1e12                                                                      \
    }

/* scale times the sum over groups of L(group; theta). */
typedef struct cgam_lagr_use {
    const cgam_lagr *lagr;
    double theta[CGAM_LAGR_PARAMS];
    double scale;
    int64_t groups, width; /* x is [groups, width] */
} cgam_lagr_use;

/* Checks parameters against their ranges; `where` begins the message. param NULL or NAN: default. */
CGAM_NODISCARD cgam_status cgam_lagr_use_make(cgam_env *env, const char *where,
                                              const cgam_lagr *lagr, const double *param,
                                              double scale, int64_t groups, int64_t width,
                                              cgam_lagr_use *out);

CGAM_NODISCARD cgam_status cgam_lagr_use_value(const cgam_lagr_use *u, const double *x, double *L);
/* a = grad L, and *E = <x, a> - L unless NULL. */
CGAM_NODISCARD cgam_status cgam_lagr_use_activate(const cgam_lagr_use *u, const double *x,
                                                  double *a, double *E);
/* out = (hess L) v; a as activate gave it; scratch [width]; out is not v. */
CGAM_NODISCARD cgam_status cgam_lagr_use_hessian(const cgam_lagr_use *u, const double *x,
                                                 const double *a, const double *v, double *scratch,
                                                 double *out);
/* dL[p] = dL/dtheta_p and wa[p] = <w, da/dtheta_p>, [CGAM_LAGR_PARAMS + 1], the last with respect to the scale; w NULL:
 * wa is unset. a as activate gave it; scratch [2 width]. */
CGAM_NODISCARD cgam_status cgam_lagr_use_slope(const cgam_lagr_use *u, const double *x,
                                               const double *a, const double *w, double *scratch,
                                               double *dL, double *wa);

#endif
