/* model.h (inside): the parameters of a memory as one vector x, and back.
 *
 *     x = [P, or U and V] or [W], [Z], [alpha], [beta], [lambda]      of these, what is learned */
#ifndef CGAM_SRC_LAB_LEARN_MODEL_H
#define CGAM_SRC_LAB_LEARN_MODEL_H

#include "lab/learn/memory_fit.h"

typedef struct cgam_model {
    cgam_env *env;
    const cgam_bank *bank; /* as given */
    unsigned learn;
    int64_t n, d, d_c, rank;
    int64_t params, tensors; /* of x; of P, W and Z in it */
    int64_t at_P, at_Z;      /* P, U or W; Z */
    int64_t at_alpha, at_beta, at_lambda;
    double limit;    /* of alpha; INFINITY: none */
    int64_t longest; /* the row that sets the limit, if Z is learned */
    double
        *start; /* [d, d_c] or [n, d_c]: P or W at the start; NULL: neither is given or learned */
    /* At the x of cgam_model_take. */
    double *P, *W; /* start, or what is learned; NULL: neither */
    double *Z;     /* [n, d], or NULL */
    cgam_recall_opts opts;
    /* Gradients, in the shapes of the above; NULL if not learned. */
    double *dP, *dW, *dZ, dalpha, dbeta, dlambda;
} cgam_model;

/* x0 [params] is allocated: the start. Free with cgam_model_free also after a failure. */
cgam_status cgam_model_new(const cgam_bank *bank, const cgam_memory_fit_opts *o, cgam_model *m,
                           double **x0);
void cgam_model_free(cgam_model *m);
void cgam_model_take(cgam_model *m, const double *x);
/* g [params] from dP, dW, dZ and the numbers, at the x that was taken last. */
void cgam_model_pull(const cgam_model *m, const double *x, double *g);
cgam_status cgam_model_write(const cgam_model *m, const char *path);

#endif
