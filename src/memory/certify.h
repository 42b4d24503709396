/* certify.h (inside): error bounds (doubt.c) and certificates (certify.c) of a settled query. See
 * docs/theorems/rounding.md.
 *
 * Errors are relative to the exact scores b + lambda s of the given s, and the exact p of these. For queries solved
 * together s is the exact A^-1 (u + lambda p'), where p' is the p before the last step. */
#ifndef CGAM_SRC_MEMORY_CERTIFY_H
#define CGAM_SRC_MEMORY_CERTIFY_H

#include "memory/stages.h"
#include <cgam/theory.h>

typedef struct cgam_doubt {
    double scores;  /* max |r_i - exact|; INFINITY if a score is not finite */
    double weights; /* max |log(p_i / exact)| over the p_i that are not negligible */
    double sum; /* relative error of the sum of weights; 1 - p_i of a winner has the same error */
    double p;   /* |p - exact|_2 */
    double gradient; /* |A s - u - lambda p|_2; INFINITY if not measured */
    double moves;    /* |softmax(beta (b + lambda A^-1 (u + lambda p))) - p|_2, from the same */
    double step;     /* error bound of the scores of the last step, gates included */
    double own;      /* with entmax: error bound of its arguments if r were exact */
} cgam_doubt;

/* Error of scores whose gates need no solve: |b + lambda Z v| by two sums of d products a row. */
double cgam_doubt_scores(const cgam_recall *plan, const double *q, const double *c);
/* Error of gates that come from a direction e and the border's entries, made by cgam_dplr_range from c, P c = v.
 * cgam_doubt_gates does other gates, solved for all queries of a call. INFINITY: unknown. */
cgam_status cgam_doubt_range(const cgam_recall *plan, const double *c, const double *v,
                             const double *e, const double *edges, cgam_gates_off *out);
cgam_status cgam_doubt_gates(const cgam_recall *plan, const double *c, double *s,
                             cgam_gates_off *out);
/* Error of dinv_i <zeta_i, x>: |x| is `size`, x is off by x_off, dinv by its own rounding, and the product by that of
 * a sum. Entries of the border are off by `border`. */
cgam_gates_off cgam_doubt_over_rows(const cgam_recall *plan, double size, double x_off,
                                    double border);
/* Error of gates where A = I: of the context term of each memory. */
cgam_gates_off cgam_doubt_context(const cgam_recall *plan, const double *c);
/* Error of A^-1 p, computed from t and the border's entries, which cgam_dplr_reduce made from g = Z' dinv p. Each
 * term of g went through at most `terms` additions. Its weights equal p up to a relative error `weights`, or are so
 * small that 2^-54 covers all of them. */
cgam_status cgam_doubt_feedback(const cgam_recall *plan, double terms, double weights,
                                const double *g, const double *p_border, const double *t,
                                const double *edges, cgam_gates_off *out);
/* Returns true if a context reaches the gates through A(alpha). */
bool cgam_doubt_solved(const cgam_recall *plan, const double *c);

/* Fills a whole cgam_doubt from the vectors of a query. measure: computes the gradient too, which takes three passes;
 * gates: the gradient of the gates alone, A s - u. */
cgam_status cgam_doubt_measure(const cgam_recall *plan, const cgam_settled *m, bool measure,
                               bool gates, cgam_doubt *out);

/* With entmax: returns the error of p^(2 - A) on the support, from doubt->scores. INFINITY if the support is not
 * known exactly. */
double cgam_doubt_slopes(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt);

/* The bounds that eta_min and p give without further work: spread = max p (1 - p), largest = max p. Scores are off by
 * at most doubt->scores; with INFINITY p_lower_bound stays an estimate. */
void cgam_bound_freely(const cgam_recall *plan, double spread, double largest,
                       const cgam_doubt *doubt, cgam_result *out);
/* Call after cgam_bound_freely, for a coupled recall: sets p_error, and clears `converged` if rounding, or a rise of
 * the energy, contradicts it. Reads in.half_us0, act, trace and together of m. Returns true if much remains unproved.
 * */
bool cgam_bound_coupled(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt,
                        cgam_result *out);
/* Sets every certificate to "not proved"; p_lower_bound is an estimate. */
void cgam_result_bare(const cgam_recall *plan, cgam_result *out);
/* Sets readout_error_bound, from p_lower_bound or p, whichever says more: scores are off by at most `scores`, p by p_off.
 * (theory_stability.c) */
void cgam_bound_readout(const cgam_recall *plan, double scores, double p_off, cgam_result *out);
/* Sets stable, from the certificates that the result has. (theory_stability.c) */
void cgam_bound_stability(const cgam_recall *plan, cgam_result *out);
/* Copies the certificates of another result of the same query. */
void cgam_result_take_proofs(const cgam_result *from, cgam_result *out);
/* Contraction, uniqueness, fold margin, errors: the free bounds, or all with opts.certify FULL. Clears `converged` if
 * rounding, or a rise of the energy, contradicts it. */
cgam_status cgam_settled_bounds(const cgam_recall *plan, const cgam_settled *m, cgam_result *out);
/* Like cgam_settled_bounds; with opts.certify FULL it also searches for a second fixed point if uniqueness is open.
 * */
cgam_status cgam_settled_certify(const cgam_recall *plan, const cgam_settled *m, cgam_result *out);

/* Returns a bound of |p - p*|_2, where p* belongs to a critical point of the energy near m, of any index. Returns
 * INFINITY if nothing is proved, as always above CGAM_DPLR_SMALL memories. Softmax only. (newton.c) */
cgam_status cgam_coupled_enclose(const cgam_recall *plan, const cgam_settled *m, double *p_error);

/* Margins of entmax. Exact retrieval: with p = entmax_A(beta r), 1 < A <= 2, p(mu) = 1 and every other p is 0 if and
 * only if (A - 1) beta gap >= 1, equality included. Products are computed as if in twice the precision. */
bool cgam_margin_exact(double order, double beta, double gap);
/* P(mu) >= the first entry of entmax_A(beta gap, 0, .., 0) of n entries. n = 1 gives 1. */
double cgam_margin_bound(int64_t n, double order, double beta, double gap);
/* A double at most cgam_margin_bound, rounding included; 1 only if retrieval is exact. */
double cgam_margin_bound_below(int64_t n, double order, double beta, double gap);

#endif
