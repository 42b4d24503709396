/* memory_fit.h: learns parameters of a memory from queries whose memory is known.
 *
 * The loss of a query is that of cgam/learn.h at its target: -log p, the squared distance of the readout from the
 * target's row (of the bank as given), or a margin. What is learned is P, or W, or Z, and the numbers alpha, beta and
 * lambda. Numbers stay in range by what is trained in their place (x):
 *
 *     beta = exp x,  lambda = exp x,  alpha = limit / (1 + exp -x),  limit = alpha_crit; 1 / max |zeta|^2 if Z is learned
 *
 * (alpha = exp x where there is no limit). The trainer's ridge pulls P, W and Z to their start; P of rank k is
 * start + U'V, and the ridge pulls U and V to 0. */
#ifndef CGAM_SRC_LAB_LEARN_MEMORY_FIT_H
#define CGAM_SRC_LAB_LEARN_MEMORY_FIT_H

#include "lab/learn/trainer.h"

#include <cgam/learn.h>

/* What to learn: bits in the order of the words "P", "W", "Z", "alpha", "beta", "lambda". */
enum {
    CGAM_LEARN_P = 1,
    CGAM_LEARN_W = 2,
    CGAM_LEARN_Z = 4,
    CGAM_LEARN_ALPHA = 8,
    CGAM_LEARN_BETA = 16,
    CGAM_LEARN_LAMBDA = 32
};
extern const char *const cgam_learn_words[];

typedef struct cgam_memory_fit_opts {
    /* The start: mode first or coupled, alpha, beta, lambda, entmax; P or W, d_c. Without P: ones on the diagonal. */
    cgam_recall_opts recall;
    unsigned learn;        /* default CGAM_LEARN_P */
    int64_t rank;          /* of P - start; default 0 = any */
    cgam_loss loss;        /* default NLL; not OWN */
    double margin;         /* of MARGIN, default 1 */
    double held_out;       /* share of the queries, default 0.2 */
    cgam_train_opts train; /* ridge 1e-3; ridged, centre, data, keep and user are set by the fit */
    const char *out;       /* .safetensors for the result; default NULL = none */
} cgam_memory_fit_opts;
cgam_memory_fit_opts cgam_memory_fit_opts_default(void);

typedef struct cgam_examples {
    int64_t queries;
    const double *q; /* [queries, d] */
    const double *c; /* NULL, [d_c], or [queries, d_c] */
    bool c_per_query;
    const int64_t *target; /* [queries] */
} cgam_examples;

/* Recalls of some queries. */
typedef struct cgam_judged {
    int64_t queries;
    double accuracy, se; /* share whose winner is the target, and its standard error */
    double nll, nll_se;  /* the mean of -log p of the target, and its standard error */
} cgam_judged;

typedef struct cgam_memory_fit {
    cgam_trained trained;
    cgam_train_split split;
    cgam_judged train, held_out; /* of the result */
    cgam_judged before;          /* of the start, on the queries held out */
    double alpha, beta, lambda;  /* of the result */
    int64_t
        left_out; /* gradients that did not exist (a fold), over all evaluations; their queries were left out */
} cgam_memory_fit;
void cgam_memory_fit_free(cgam_env *env, cgam_memory_fit *fit); /* leaves it empty */

/* Free *out in any case. Errors of cgam_train and of recalls; CGAM_E_ARG for what cannot be learned. After
 * CGAM_E_INTERRUPTED the best so far is in opts->out. */
CGAM_NODISCARD cgam_status cgam_memory_learn(const cgam_bank *bank, const cgam_examples *data,
                                             const cgam_memory_fit_opts *opts,
                                             cgam_memory_fit *out);

/* ---- Files. ------------------------------------------------------------------------------------ */
/* The arrays of a file that cgam_memory_learn wrote; NULL or NAN for what it does not have. */
typedef struct cgam_fitted {
    double *Z, *P, *W;
    int64_t n, d, d_c; /* of them; 0: unknown */
    double alpha, beta, lambda;
} cgam_fitted;
/* Free *out with cgam_fitted_free, also after a failure. */
CGAM_NODISCARD cgam_status cgam_fitted_read(cgam_env *env, const char *path, cgam_fitted *out);
void cgam_fitted_free(cgam_env *env, cgam_fitted *fitted); /* leaves it empty */

#endif
