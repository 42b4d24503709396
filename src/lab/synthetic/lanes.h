/* lanes.h: recalls of small banks, as many at a time as the CPU's vectors have lanes: gates, coupled iteration, flow and
 * fold, without certificates. Lane l of every array is problem l of a bundle, so one instruction advances a whole bundle
 * and problems never mix. The same body is compiled per CPU (see num/cpu/cpu.h).
 *
 * A bundle always has `width` real problems (those past the last one requested are computed but not counted), so the
 * result of a problem does not depend on how many others were requested.
 *
 * Shapes: [a, b] below is a C array double x[a][b][width], aligned to 64 bytes; [] is one number
 * per lane. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_LANES_H
#define CGAM_SRC_LAB_SYNTHETIC_LANES_H

#include "base/env.h"
#include "num/cpu/cpu.h"

enum { CGAM_LANES_MAX = 8, CGAM_LANES_TILE = 10, CGAM_FLOW_LEVEL_SIZE = 512 };

/* A bundle of banks of n unit memories, each in the eigenvectors of its own Gram matrix:
 *   G = V diag(mu) V',  A(alpha)^-1 = V diag(1/eta) V' + (1 - V V') / (1 - alpha),
 *   eta = 1 - alpha (1 - mu).
 * Modes are padded with zero columns to a multiple of CGAM_LANES_TILE. */
typedef struct cgam_bundle {
    const cgam_env *env; /* for stop requests; may be NULL */
    int width;
    int64_t n, d, m; /* memories, dimensions, modes (padded) */
    bool kernel;     /* V V' != 1: n > d */
    double *Z;       /* [n, d] the memories themselves */
    double *V;       /* [n, m] */
    double *mu;      /* [m], 1 for padding */
    double *c;       /* [m] V' u */
    double *rest;    /* [n] u - V c; zero without a kernel */
    double *start;   /* [n] r at the start */
} cgam_bundle;

/* Must the work on a bundle stop? Then the functions below return early and their results mean nothing: the caller
 * checks as well, before it uses them. */
static inline bool cgam_bundle_stopped(const cgam_bundle *g)
{
    return g->env && cgam_interrupted(g->env);
}

/* Where a coupled recall goes on: all [..] arrays belong to the caller. */
typedef struct cgam_lanes_coupled {
    double beta, lambda, tol;
    int max_iter;
    const double *gain;  /* [m] 1/eta - gain0 */
    const double *gain0; /* [] 1/(1 - alpha), or 0 without a kernel */
    const double *base;  /* [n] b + lambda A^-1 u */
    double *r;           /* [n] the start; on return the last iterate */
    double *e;           /* [n + m] scratch */
    int *iterations;     /* [] out; max_iter + 1 where it did not converge */
    const int *active;   /* [] 0: skip this lane */
} cgam_lanes_coupled;

/* The flow  tau_s s' = u + lambda p - A s,  tau_r r' = lambda s + Z q - r,  tau_q q' = Z'p - q. */
typedef struct cgam_lanes_flow {
    double alpha, beta, lambda, tau_s, tau_r, tau_q;
    bool query_free; /* false: q keeps x */
    double t_end;
    double tol, h_rate; /* step control, see lanes_flow.h */
    bool coarse;        /* a cheaper method of second order */
    bool same;          /* work holds the last call's weights: same bundle, alpha, taus, t_end */
    bool stop_one_hot;  /* a lane is done when p is one-hot and stays so */
    const double *root; /* [m] sqrt(mu), Z q = V (root x); NULL: no query */
    const double *x;    /* [m] the query in the modes' coordinates; NULL = 0 */
    const int *active;  /* [] */
    double *work;       /* cgam_lanes_flow_size() doubles */
    int64_t samples;    /* times to report at, increasing, within (0, t_end] */
    const double *at;   /* [samples] */
    /* s, r, p [n]; x [m], the query in the modes' coordinates */
    void (*seen)(void *user, int64_t sample, const double *s, const double *r, const double *p,
                 const double *x);
    void *user;
    double *s, *r, *p;          /* [n] out, when the lane was done; kept where not active */
    double *ended;              /* [] out: when the lane was done, t_end if it was not before */
    int64_t steps, turned_back; /* out */
} cgam_lanes_flow;

/* Follows the branch of fixed points from alpha = 0 to its fold. */
typedef struct cgam_lanes_fold {
    double beta, lambda, tol;
    const double *alpha_max; /* [] how far; may be infinite */
    double *work;            /* cgam_lanes_fold_size() doubles */
    double *alpha;           /* [] out: the last point, where the branch ends if it does */
    double *folds;           /* [] out: 1 = it does, 0 = not before alpha_max */
    double *s;               /* [n] out: gates at the last point */
    int64_t factorizations;
} cgam_lanes_fold;

/* Scores r = b + lambda s of a bundle against its targets. */
typedef struct cgam_lanes_judge {
    int64_t n, lambdas;
    double beta;
    const double *b, *s;   /* [n] */
    const double *lambda;  /* plain [lambdas] */
    const int64_t *target; /* [] */
    double *gap;           /* [lambdas] out: r_target - max of the others */
    double *log_p;         /* [lambdas] out: of the target; may be NULL */
    int *right;            /* [lambdas] out: 1 where the target wins, ties to the lowest */
} cgam_lanes_judge;

typedef struct cgam_lanes {
    const char *name;
    int width;
    /* s [n] = V (f c) + f0 rest, with f [m], f0 [] */
    void (*compose)(const cgam_bundle *g, const double *f, const double *f0, double *s);
    /* peak [] = max softmax(beta scale s), p [n] unless NULL; scale [], NULL = 1 */
    void (*peak)(int64_t n, double beta, const double *s, const double *scale, double *peak,
                 double *p);
    void (*coupled)(const cgam_bundle *g, cgam_lanes_coupled *w);
    void (*flow)(const cgam_bundle *g, cgam_lanes_flow *w);
    void (*fold)(const cgam_bundle *g, cgam_lanes_fold *w);
    /* y [n] = M x for a plain matrix M [n, d] that all lanes share, x [d] */
    void (*product)(int64_t n, int64_t d, const double *M, const double *x, double *y);
    void (*judge)(cgam_lanes_judge *w);
} cgam_lanes;

/* The loops for the entry of cgam_cpu_all; those of `portable` for `plain`. */
const cgam_lanes *cgam_lanes_of(const cgam_cpu *cpu);

size_t cgam_lanes_flow_size(const cgam_bundle *g);
size_t cgam_lanes_fold_size(const cgam_bundle *g);

#endif
