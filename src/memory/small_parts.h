/* small_parts.h: what small.c and small_coupled.c share: work areas, and the state of a query. */
#ifndef CGAM_SRC_MEMORY_SMALL_PARTS_H
#define CGAM_SRC_MEMORY_SMALL_PARTS_H

#include "memory/small.h"
#include "memory/stages.h"

#include <pthread.h>

/* Indices of a query's vectors of n numbers: those of mode first, then the rest. */
enum {
    B,
    S0,
    R,
    F,
    VALUE,
    ROW,
    FIRST_VECTORS,
    A = FIRST_VECTORS,
    S,
    P,
    F1,
    RHO1,
    F2,
    RHO2,
    CENTER,
    VECTORS
};
/* Indices of its vectors of d numbers: P c, M^-1 P c, the g of p, f, f1 and f2, t, a residual, the g of the centre.
 * */
enum { V, E, G, G0, G1, G2, T, REST, G_CENTER, SHORTS };
typedef struct cgam_small_work {
    struct cgam_small_work *next;
    double *vectors; /* [tile, vectors, size] */
    double *shorts;  /* [tile, SHORTS, width] */
    double *sums;    /* [tile, d, 8] */
} cgam_small_work;

struct cgam_small {
    cgam_env *env;
    const cgam_small_loops *loops;
    cgam_blocked Z, M, inverse; /* M and its inverse if alpha > 0 */
    double *dinv, *zeros;       /* [size] */
    int64_t size, width, tile, vectors;
    double system_size, system_error; /* |M|_F, and the rounding error of M */
    bool unique;                      /* the fixed point is proved unique */
    pthread_mutex_t lock;
    cgam_small_work *idle;
};

/* The gates of a context. */
typedef struct cgam_small_gates {
    const double *s0; /* [size] */
    double half_us0;
    cgam_gates_off off;
} cgam_small_gates;

typedef struct cgam_small_call {
    const cgam_recall *plan;
    cgam_small *x;
    const cgam_recall_in *in;
    const cgam_recall_out *out;
    int64_t top; /* leaders to report */
    bool proves;
    cgam_small_gates shared; /* of a context for all queries, or of no context */
} cgam_small_call;

/* The state of a query. */
typedef struct cgam_small_query {
    int64_t at;
    const double *q, *c;
    cgam_small_gates gates;
    double *vector[VECTORS], *brief[SHORTS];
    cgam_small_step step;
    double sums[3]; /* of the weights */
    double whole;   /* F over this is p */
    double log_sum; /* log sums[0] */
    double off[2];  /* errors of gates and scores, see cgam_small_loops.gates */
    /* Mode coupled. */
    cgam_iterating x;
    int window;            /* earlier points that F1, F2 .. hold */
    double stretch;        /* p is a combination of softmaxes; the sum of |factors| */
    bool mixed;            /* p comes from Anderson's method */
    bool ball;             /* CENTER holds the point where the ball was entered, */
    double radius, travel; /* its radius, and the distance p has moved since */
    double norm1;          /* |f - p| of the previous point */
    bool left;             /* left to coupled.c, or without finite weights */
} cgam_small_query;

/* Fills pointers to the vectors of queries, from row `from`. */
static inline void cgam_small_point(int64_t count, cgam_small_query *const *k, bool brief,
                                    int which, double **out)
{
    for (int64_t v = 0; v < count; v++) out[v] = brief ? k[v]->brief[which] : k[v]->vector[which];
}

/* Mode coupled: from B and the gates computes R, its weights F and sums, and the trace in x; or sets left = true. */
cgam_status cgam_small_iterate(const cgam_small_call *job, cgam_small_work *w, int64_t count,
                               cgam_small_query *all);

/* Bound of |x - S^-1 f| for the computed solution x of S x = f, from the residual, which is written to `rest`. |S^-1|
 * <= 1 for S = M. */
double cgam_small_system_off(const cgam_small *x, const double *solution, const double *f,
                             double f_off, double *rest);
/* Writes everything that the caller requested of one query. */
cgam_status cgam_small_report(const cgam_small_call *job, cgam_small_work *w, cgam_small_query *k);

#endif
