/* certify.h (inside): what rounding may have done to a settled query (doubt.c), and what can be promised of it (certify.c).
 * See docs/theorems/rounding.md.
 *
 * Scores are exact for the s at hand: b + lambda s; p is exact for those. For queries that went together s is the exact
 * A^-1 (u + lambda p'), p' the p before the last step. */
#ifndef CGAM_SRC_MEMORY_CERTIFY_H
#define CGAM_SRC_MEMORY_CERTIFY_H

#include "memory/stages.h"
#include <cgam/theory.h>

typedef struct cgam_doubt {
    double scores;   /* max |r_i - exact|, INFINITY where one left the range of double */
    double weights;  /* max |log(p_i / exact)|, where p_i is not next to nothing */
    double sum;      /* of the sum of weights, relative: 1 - p_i of a winner is off by as much */
    double p;        /* |p - exact|_2 */
    double gradient; /* |A s - u - lambda p|_2; INFINITY where it was not measured */
    double moves;    /* |softmax(beta (b + lambda A^-1 (u + lambda p))) - p|_2, from the same */
    double step;     /* what the scores of the last step may be off by, gates included */
    double own;      /* with entmax: what its arguments are off by, were r exact */
} cgam_doubt;

/* Scores of gates that are not solved for: |b + lambda Z v| by two sums of d products a row. */
double cgam_doubt_scores(const cgam_recall *plan, const double *q, const double *c);
/* Gates by a direction e and the border's entries, as cgam_dplr_range made them of c, P c = v; and
 * others, solved for all queries of a call. INFINITY where nothing is known. */
cgam_status cgam_doubt_range(const cgam_recall *plan, const double *c, const double *v,
                             const double *e, const double *edges, cgam_gates_off *out);
cgam_status cgam_doubt_gates(const cgam_recall *plan, const double *c, double *s,
                             cgam_gates_off *out);
/* dinv_i <zeta_i, x>, where x of this size is off by x_off, dinv by its own rounding, and the product by
 * that of a sum; entries of the border are off by `border`. */
cgam_gates_off cgam_doubt_over_rows(const cgam_recall *plan, double size, double x_off,
                                    double border);
/* Gates where A = I: the context as it reaches each memory. */
cgam_gates_off cgam_doubt_context(const cgam_recall *plan, const double *c);
/* A^-1 p by t and the border's entries, as cgam_dplr_reduce made them of g = Z' dinv p. Each term of g has gone through at
 * most `terms` additions; its weights are p but for `weights`, relative, or so little that 2^-54 covers all of them. */
cgam_status cgam_doubt_feedback(const cgam_recall *plan, double terms, double weights,
                                const double *g, const double *p_border, const double *t,
                                const double *edges, cgam_gates_off *out);
/* Does a context reach the gates through A(alpha)? */
bool cgam_doubt_solved(const cgam_recall *plan, const double *c);

/* All of it, from the vectors of a query. measure: the gradient too, which takes three passes;
 * gates: that of the gates alone, A s - u. */
cgam_status cgam_doubt_measure(const cgam_recall *plan, const cgam_settled *m, bool measure,
                               bool gates, cgam_doubt *out);

/* With entmax: doubt->weights, the doubt of p^(2 - A) on the support, from doubt->scores; INFINITY where a
 * memory may be in it or not. */
double cgam_doubt_slopes(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt);

/* What eta_min and p say without further work: spread = max p (1 - p), largest = max p. Scores may be
 * off by doubt->scores; INFINITY leaves p_lower_bound an estimate. */
void cgam_bound_freely(const cgam_recall *plan, double spread, double largest,
                       const cgam_doubt *doubt, cgam_result *out);
/* After cgam_bound_freely, of a coupled recall: p_error, and takes back that it converged where rounding, or an
 * energy that rose, does not bear it out. Of m it reads in.half_us0, act, trace and together. True: much is left open. */
bool cgam_bound_coupled(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt,
                        cgam_result *out);
/* Nothing is proved. */
void cgam_result_bare(cgam_result *out);
/* The certificates of another result of the same query. */
void cgam_result_take_proofs(const cgam_result *from, cgam_result *out);
/* Contraction, uniqueness, fold margin, errors: the free bounds, or all with opts.certify FULL. Takes back
 * that a recall converged where rounding, or an energy that rose, does not bear it out. */
cgam_status cgam_settled_bounds(const cgam_recall *plan, const cgam_settled *m, cgam_result *out);
/* The same, and with opts.certify FULL a search for a second fixed point where uniqueness is open. */
cgam_status cgam_settled_certify(const cgam_recall *plan, const cgam_settled *m, cgam_result *out);

/* A bound of |p - p*|_2, p* that of a critical point of the energy beside m, of any index; INFINITY: not
 * proved, as on more than CGAM_DPLR_SMALL memories. Softmax. (newton.c) */
cgam_status cgam_coupled_enclose(const cgam_recall *plan, const cgam_settled *m, double *p_error);

/* The gap from which on that is so: 1 / ((A - 1) beta). */
double cgam_margin_gap(double order, double beta);
double cgam_margin_bound_below(int64_t n, double order, double beta, double gap);

#endif
