/* coupled.h: shared by the parts of the coupled study that compute and those that report. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_COUPLED_H
#define CGAM_SRC_LAB_SYNTHETIC_COUPLED_H

#include "lab/synthetic/alphas.h"
#include "lab/synthetic/banks.h"

enum {
    CGAM_COUPLED_BLOCK = 8,
    CGAM_COUPLED_SUMS = 3
}; /* trials a block; sums per (lambda, alpha) */

typedef struct cgam_coupling {
    double alpha_crit;
    cgam_alphas all;  /* every alpha that some lambda needs */
    cgam_alphas *own; /* [lambdas] the grid of each */
    int32_t *place;   /* [lambdas, all.count] index in own, -1 = not in it */
    int64_t *at;      /* [lambdas + 1] where the sums of a lambda begin in a record */
    int64_t folds;    /* where [lambdas, BLOCK] folds begin */
    int64_t record;
} cgam_coupling;

typedef struct cgam_coupling_room {
    cgam_banks *banks;
    double *s0, *scale;   /* [n] A^-1 u, or s(t_cap) / scale where that grows; [] */
    double *base, *x, *e; /* [n], [n], [n + m]: the plain iteration's */
    double *fs, *fr, *fp; /* [n] each: the flow's */
    double *s, *r, *p;    /* [n] each: the point, if all of it is requested */
    double *f, *gain;     /* [m + 1] each: weights behind s0; 1/eta - g0, g0 */
    double *flow, *fold;
} cgam_coupling_room;

/* How a point was found. */
typedef struct cgam_coupling_point {
    double peak[CGAM_LANES_MAX] __attribute__((aligned(64)));
    int iterations[CGAM_LANES_MAX]; /* plain iterations; 0 for a transient */
    double ended[CGAM_LANES_MAX];   /* time at the end of the transient; NAN for a fixed point */
} cgam_coupling_point;

/* alpha_crit (1 - lambda^2 beta / n), NAN if the theorem does not apply. */
double cgam_coupling_theory(const cgam_study_opts *o, double alpha_crit, double lambda);
cgam_status cgam_coupling_open(cgam_study *study, cgam_coupling *c);
void cgam_coupling_close(cgam_study *study, cgam_coupling *c);
cgam_status cgam_coupling_room_open(cgam_study *study, void *arg, void *opened);
void cgam_coupling_room_close(cgam_study *study, void *arg, void *opened);

/* Those and the tables are given a cgam_coupling as arg, and a cgam_coupling_room. */

/* The bundle's clusters and noise. */
cgam_status cgam_coupling_draw(cgam_study *study, int64_t first, cgam_coupling_room *w);
/* What all lambdas share at an alpha, then the point for one lambda. `again`: alpha and bundle are
 * those of the call before. slow: what the transients of this lambda were like at the last alpha,
 * false at first; NULL: all transients finely, and the whole point into w->r, w->s and w->p. */
void cgam_coupling_alpha(const cgam_study *study, double alpha, cgam_coupling_room *w);
void cgam_coupling_solve(const cgam_study *study, double alpha, double lambda, bool again,
                         bool *slow, cgam_coupling_room *w, cgam_coupling_point *out);
/* alpha []: where each lane's branch ends below its own alpha_crit, NAN = it does not. */
void cgam_coupling_fold(const cgam_study *study, double lambda, cgam_coupling_room *w,
                        double *alpha);

cgam_status cgam_coupling_tables(cgam_study *study, void *arg, const cgam_blocks *b);

#endif
