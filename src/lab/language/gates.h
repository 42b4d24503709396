/* gates.h: retrieval from a large bank under the gate operator, at many alpha.
 *
 *   first    r = Z q + lambda k A(alpha)^-1 Z c
 *   coupled  r = Z q + lambda A(alpha)^-1 (k Z c + lambda p),   p = softmax(r), self-consistently
 *
 * Queries q share a context c up to their own factor k; beta = 1. Scores of mode first are linear
 * in lambda, so the coupling is chosen separately at each alpha from an exact step function (sweep.h), on one
 * half of the queries for the other. A(alpha) is factored once for each alpha, for any number of
 * questions; with rows of equal norm one decomposition of Z'Z serves all of them. This file knows nothing of
 * models. */
#ifndef CGAM_SRC_LAB_LANGUAGE_GATES_H
#define CGAM_SRC_LAB_LANGUAGE_GATES_H

#include "base/alloc.h"
#include "lab/language/sweep.h"
#include <cgam/recall.h>

typedef struct cgam_gates cgam_gates;

/* Computes alpha_crit and the spectrum of the bank, which must outlive *out: O(n d^2). progress NULL =
 * none. */
CGAM_NODISCARD cgam_status cgam_gates_new(const cgam_bank *bank, const cgam_progress *progress,
                                          cgam_gates **out);
void cgam_gates_free(cgam_gates *gates); /* NULL is fine */

typedef struct cgam_gates_info {
    cgam_critical critical;
    cgam_gram_info gram;
    int64_t modes;
    const double *mu; /* [modes] eigenvalues of Z'Z, or of ZZ' if n <= d, ascending; owned by it */
} cgam_gates_info;
cgam_gates_info cgam_gates_describe(const cgam_gates *gates);

enum { CGAM_GATES_GRID = 24 };
/* A default grid of alphas, rising from 0: dense around 1 / mu_max, where the strongest mode is halved,
 * then by decades, then 0.5, 0.9 and 0.99 of alpha_crit. Returns their count. */
int64_t cgam_gates_grid(const cgam_gates *gates, double alpha[CGAM_GATES_GRID]);

/* Query i belongs to half i % 2. For each half h: the queries and the context used when a coupling is
 * chosen on half h and counted on the other. */
typedef struct cgam_gates_input {
    int64_t queries;
    const double *q[2];      /* [queries, d]; both may be the same */
    const double *c[2];      /* [d] */
    const double *factor[2]; /* [queries] of the context, > 0 */
    int64_t labels;
    const int32_t *tokens; /* [labels] rows of the bank, -1: not compared */
    const int32_t *target; /* [queries] labels; -1: the query is left out of every choice */
    /* For labels of several tokens, which may share their first row: [queries, labels] what the other tokens add to
     * a label's score, independent of alpha and lambda; NULL: nothing. */
    const double *after;
    /* [queries] over the vocabulary: are the right label's further tokens the most probable ones? NULL: yes */
    const bool *goes_on;
    cgam_sweep_over over; /* the set of answers by which a coupling is chosen */
} cgam_gates_input;

typedef struct cgam_gates_asked cgam_gates_asked;

/* Scores the queries: 2 queries x n doubles, or half if both q are the same. The arrays of in must
 * outlive *out. */
CGAM_NODISCARD cgam_status cgam_gates_ask(const cgam_gates *gates, const cgam_gates_input *in,
                                          cgam_gates_asked **out);
void cgam_gates_asked_free(cgam_gates_asked *asked); /* NULL is fine */

/* The answer of a query under the coupling chosen on the other half. */
typedef struct cgam_gates_answer {
    int64_t winner; /* largest score of all, ties to the lowest */
    int64_t label;  /* the label with the largest score; -1 if none */
    double p;       /* of the winner */
    double log_neff_entropy, log_neff_ipr;
    bool unique;        /* mode coupled: proved to be the only answer; mode first: true */
    bool settled;       /* mode coupled: converged, up to rounding; mode first: true */
    int64_t iterations; /* mode coupled */
} cgam_gates_answer;

typedef struct cgam_gates_answers {
    double lambda[2];           /* chosen on each half, for the other */
    double chosen[2];           /* accuracy on that half, NAN if it is empty */
    cgam_gates_answer *first;   /* [queries] owned by the caller; may be NULL */
    cgam_gates_answer *coupled; /* the same; needs A(alpha) positive definite */
} cgam_gates_answers;

/* Seconds spent in each part. */
typedef struct cgam_gates_seconds {
    double set_up, first, coupled;
} cgam_gates_seconds;

/* Answers all questions at one alpha: writes to the arrays first and coupled of out [count].
 * Adds to seconds unless it is NULL. */
CGAM_NODISCARD cgam_status cgam_gates_at(const cgam_gates *gates, double alpha, int64_t count,
                                         cgam_gates_asked *const *asked, cgam_gates_answers *out,
                                         cgam_gates_seconds *seconds);

/* The null of a change with alpha: mode first at alpha = 0 again, each half's coupling chosen on as many of its queries,
 * drawn with replacement. first [queries]. */
CGAM_NODISCARD cgam_status cgam_gates_resample(cgam_gates_asked *asked, cgam_rng *rng,
                                               cgam_gates_answer *first);
#endif
