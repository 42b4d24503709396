/* learn.h: gradients of a recall.
 *
 * A loss L of the weights p that a recall settles at is a function of everything the recall was given. At a settled
 * answer the implicit function theorem gives its gradient by one linear system, whatever the number of iterations was
 * (docs/theorems/implicit-gradient.md). With C = diag p - pp' (entmax: its Jacobian J, recall.h) and g = dL/dp:
 *
 *     coupled  H t = beta C g,  w = A t,  H = A - beta lambda^2 C        first  w = beta C g,  t = A^-1 w
 *     dL/db = w             dL/du = lambda t                 dL/dq = Z'w              dL/dc = lambda P'Z't, or lambda W't
 *     dL/dP = lambda (Z't) c'     dL/dW = lambda t c'        dL/dbeta = w'r / beta
 *     dL/dlambda = t'(u + 2 lambda p)  (first: t'u)          dL/dalpha = -lambda t'(G - diag G) s
 *     dL/dZ = w q' + lambda t (P c)' - lambda alpha [t (Z's)' + s (Z't)' - 2 diag(t s) Z] + p (dL/dy)'
 *
 * where y = Z'p is the readout, with g = Z dL/dy, and W given in place of P drops the term lambda t (P c)'. There is
 * no matrix of n x n numbers, and nothing is unrolled.
 *
 * H is positive definite at a stable answer and singular at a fold, where the gradient does not exist. A gradient is
 * computed only where H is proved positive definite (mode first: where A is invertible). */
#ifndef CGAM_LEARN_H
#define CGAM_LEARN_H

#include <cgam/recall.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The loss of a query. */
typedef enum cgam_loss {
    CGAM_LOSS_NLL,     /* -log p of the target */
    CGAM_LOSS_READOUT, /* |Z'p - x|^2 */
    CGAM_LOSS_MARGIN, /* max(0, margin - gap), gap = r of the target - the largest other r, the ghost's too */
    CGAM_LOSS_OWN /* anything else, by its derivatives */
} cgam_loss;
CGAM_API extern const char *const cgam_loss_words[]; /* "nll", "readout", "margin", "own" */

typedef struct cgam_gradient_in {
    cgam_recall_in recall; /* the queries; NLL and MARGIN require targets */
    const double *weight;  /* [queries] L = sum_k weight[k] L_k; NULL = all 1 */
    const double *x;       /* [queries, d] of READOUT */
    /* Of OWN, at the answers of the same recall: derivatives of L_k, any of them NULL. r counts in addition to p. */
    const double *dp; /* [queries, n] dL/dp */
    const double *dr; /* [queries, n] dL/dr */
    const double *dy; /* [queries, d] dL/dy */
} cgam_gradient_in;

typedef struct cgam_gradient_opts {
    cgam_loss loss; /* default NLL */
    double margin;  /* of MARGIN, default 1 */
    /* A query without a gradient is left out of all sums and marked in out.left_out, which must be given; default
     * false: the call fails. */
    bool leave_out;
    /* dL/dZ row by row: called with rows [from, from + count) of the bank and [count, d] numbers, the sum over the
     * queries of a group (CGAM_RECALL_GROUP), valid during the call. Groups come in order; in a group each row comes
     * once, in order, from one thread. An error ends the call. Default NULL. */
    cgam_status (*rows)(void *user, int64_t from, int64_t count, const double *dZ);
    void *user;
} cgam_gradient_opts;
CGAM_API cgam_gradient_opts cgam_gradient_opts_default(void);

/* Any pointer may be NULL. What belongs to all queries is the gradient of L, what belongs to one is that of its
 * weight[k] L_k. */
typedef struct cgam_gradient {
    double *loss;         /* [queries] L_k, without its weight */
    cgam_result *results; /* [queries] the recall's */
    double *p, *r;        /* [queries, n] the recall's */
    double *readout;      /* [queries, d] Z'p */
    double *
        positive; /* [queries] a number above 0 where H is proved positive definite: lambda_min(H) is above it,
                         or, if that is all that is known, the least double above 0. NAN in mode first */
    bool *left_out; /* [queries] */
    double *b, *u;  /* [queries, n] */
    /* [queries] proved bounds, rounding included, of the 2-norm of the difference between dL/db, or dL/du, and that of
     * the exact answer to the given numbers. All other gradients follow from these two
     * (docs/theorems/implicit-gradient.md). Made of p_error and the fold margin: NAN unless both are proved, in mode
     * first, with entmax, and for losses of the readout or the margin. Two passes over the bank. */
    double *b_error, *u_error;
    double *q; /* [queries, d] */
    double *c; /* [queries, d_c], or [d_c] if the context is shared */
    double *P; /* [d, d_c]; without P, as if P were the identity */
    double *W; /* [n, d_c] */
    double *
        Z; /* [n, d] of the memories as they are used: after normalising, if the bank is normalised */
    double *alpha, *beta, *lambda; /* [1] */
} cgam_gradient;

/* Runs the recall and computes the gradients that `out` asks for. plan: mode first or coupled; not over ranks. A
 * start in in->recall, such as an earlier p, shortens the recall. If `out` asks for no gradient, only the recall and
 * the losses are computed.
 *
 * CGAM_E_NOT_POSITIVE, with the query and its margin in the message, if H is not proved positive definite at an answer
 * or the recall did not settle; CGAM_E_SINGULAR if mode first has no inverse of A; CGAM_E_VALUE if a loss has no
 * gradient (-log 0). Results have the same bits on any number of threads. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_recall_gradient(const cgam_recall *plan,
                                                         const cgam_gradient_in *in,
                                                         const cgam_gradient_opts *opts,
                                                         const cgam_gradient *out);

#ifdef __cplusplus
}
#endif
#endif
