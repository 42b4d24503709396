/* recall.h (inside): a plan, and the vectors of one query on their way to a result. */
#ifndef CGAM_SRC_MEMORY_RECALL_H
#define CGAM_SRC_MEMORY_RECALL_H

#include <cgam/recall.h>

#include "memory/gate.h"
#include "memory/route.h"
#include "memory/twins.h"
#include "num/sketch.h"

struct cgam_recall {
    const cgam_bank *bank;
    cgam_recall_opts opts;
    int64_t d_c;
    const cgam_gate *gate;
    const cgam_twins *twins;   /* memories stored alike, NULL = none, or alpha = 0 */
    const cgam_sketch *sketch; /* with opts.fast: the bank's, or */
    cgam_sketch *own_sketch;   /* one made for the plan */
    cgam_reach can;            /* what ways the bank and A(alpha) allow */
    const cgam_dplr_inverse
        *small;                   /* where coupled feedback streams and memory allows, else NULL */
    cgam_gate *own_gate;          /* NULL: the gate is borrowed, */
    cgam_dplr_inverse *own_small; /* or has this too, */
    cgam_twins *own_twins;        /* and this */
    struct cgam_net *net;         /* mode flow, else NULL */
    double context_margin;        /* of a free context, else NAN */
    double weights_size;          /* of P or W: |P|_F, or the largest |W_i|_2; else 0 */
};

/* How far gates are from the exact A^-1 u: the largest entry and the 2-norm of the difference. */
typedef struct cgam_gates_off {
    double most, norm;
} cgam_gates_off;

/* One query. All vectors are [n], of which a rank has its rows' entries (num/ranks.h). */
typedef struct cgam_query {
    const double *q; /* [d] the query, and */
    const double *c; /* [d_c] its context, as they were given; NULL = none, or not clamped */
    const double *b; /* Z q */
    double *s0;      /* A^-1 u */
    double *a;       /* b + lambda s0: the scores without feedback */
    double *s, *r, *p;
    double half_us0;         /* u' A^-1 u / 2, the constant of the energy */
    cgam_gates_off s0_off;   /* of s0, on large banks; INFINITY: not known */
    cgam_gates_off feedback; /* of A^-1 p, where queries go together; INFINITY: not known */
    double top, sum;         /* max r, and sum exp(beta (r - top)); 1 with entmax, which has */
    double shift;            /* the shift of num/entmax.h */
    double lse;              /* log sum exp(beta r) = beta top + log sum, or entmax's L(beta r) */
    bool f32;                /* the last pass was in f32 */
    bool trails;             /* what the last pass began with came from one in f32 */
    bool trailed;            /* f32 had a part in energy_end */
    bool together; /* multiplied with others as matrices: passes of its own would cost more */
    bool level;    /* keep equal memories equal: set by whoever knows that u and b do */
    /* how it went (convergence.c) */
    int64_t iterations, newton_steps;
    int64_t newton_after; /* no further try before this iteration */
    cgam_end end;
    double change, change_norm, rate; /* last max|dp|, |dp|_2, and the observed contraction */
    double best;                      /* the least change so far, */
    int64_t since;                    /* and the iteration that made it */
    double energy_start, energy_end, energy_rise;
    double
        streamed; /* max |r| that refined steps found streamed ones off by, 0 where there are none */
    double time;  /* of a flow's end, else NAN */
} cgam_query;

/* v[d] = P c: what the context looks like in memory space. */
void cgam_recall_project(const cgam_recall *plan, const double *c, double *v);
/* u[n] = W c. */
void cgam_recall_weigh(const cgam_recall *plan, const double *c, double *u);
/* u[n] = W c or Z P c, and s0[n] = A^-1 u, each by itself. */
cgam_status cgam_recall_gates(const cgam_recall *plan, const double *c, double *u, double *s0);

/* All queries of a call: mode first in one pass or as matrices, without vectors of n numbers; and
 * the other ways, with them. */
cgam_status cgam_recall_by_pass(const cgam_recall *plan, const cgam_recall_in *in,
                                const cgam_recall_out *out);
cgam_status cgam_recall_by_vectors(const cgam_recall *plan, const cgam_recall_in *in,
                                   const cgam_recall_out *out);

/* top, sum and lse of r, with softmax. */
void cgam_query_sums(cgam_query *m, double beta, double top, double sum);

/* ---- The activation. Is it entmax, so that p has zeros and comes after all scores are known? */
static inline bool cgam_recall_sparse(const cgam_recall *plan) { return plan->opts.entmax > 0; }
/* By how much p moves with the scores, at most: |dp / dr| over beta. */
static inline double cgam_recall_lipschitz(const cgam_recall *plan)
{
    return cgam_recall_sparse(plan) ? 1 : 0.5;
}
/* p = act(beta r), top, sum or shift, and lse; false when a score is not a number. */
bool cgam_query_activate(const cgam_recall *plan, cgam_query *m);
/* The same without p. */
void cgam_query_measure(const cgam_recall *plan, cgam_query *m);
/* p of rows [i, i + rows) from r and what measure found. */
enum { CGAM_SETTLE_ROWS = 512 };
void cgam_query_weights(const cgam_recall *plan, const cgam_query *m, int64_t i, int64_t rows,
                        double *p);
/* log p of a score; -INFINITY off the support. */
double cgam_query_log_p(const cgam_recall *plan, const cgam_query *m, double r);
/* dp / dr = beta w (diag pi - pi pi'): pi[n], and w is returned. pi = p and w = 1 with softmax. */
double cgam_recall_slopes(const cgam_recall *plan, const double *p, double *pi);

/* CGAM_E_VALUE where a bank whose rows nobody has looked at gave query k a score that is not finite. */
cgam_status cgam_scores_strange(const cgam_recall *plan, int64_t k);
cgam_status cgam_scores_check(const cgam_recall *plan, int64_t k, const double *r);

/* s of a coupled point from its scores: s0 + (r - a) / lambda. */
void cgam_query_gates(const cgam_recall *plan, cgam_query *m);

/* Mode coupled for `count` queries that have b, s0, a and half_us0. start: NULL, or the p to
 * begin with ([count, n]) instead of act(beta a). */
cgam_status cgam_coupled_solve(const cgam_recall *plan, int64_t count, cgam_query *m,
                               const double *start);
/* One step of `active` queries that share a pass over the bank: from p and g [active, d] to r, lse,
 * the energy and the next g = sum_i dinv_i p_i zeta_i, which with entmax is left as it is; and g of m
 * alone, at the start or when p was moved. */
cgam_status cgam_coupled_pass(const cgam_recall *plan, int64_t active, cgam_query **m, double *g,
                              double *energy);
cgam_status cgam_coupled_gather(const cgam_recall *plan, cgam_query *m, double *g);
/* Mode coupled for at most CGAM_RECALL_GROUP queries as matrices, to the same tolerance. Those in
 * back[*given_back] are left to cgam_coupled_solve. */
cgam_status cgam_coupled_together(const cgam_recall *plan, int64_t count, cgam_query *m,
                                  int64_t *back, int64_t *given_back);

/* Mode anneal for one query that has b, s0, a and half_us0; out: its branch, NULL = not wanted. */
cgam_status cgam_anneal_solve(const cgam_recall *plan, cgam_query *m, cgam_anneal *out);
/* Do p and gates depend on each other, without time? */
static inline bool cgam_recall_couples(const cgam_recall *plan)
{
    return plan->opts.mode == CGAM_COUPLED || plan->opts.mode == CGAM_ANNEAL;
}

/* The guarded Newton finish: from p (with r the scores it came from) to the fixed point that the
 * plain iteration is bound for. *moved says whether p was changed. */
cgam_status cgam_coupled_newton(const cgam_recall *plan, cgam_query *m, bool *moved);

/* The Newton step for A s = u + lambda p(s) from a point with s = A^-1 (u + lambda pi) and p there:
 * ds[n] solves (A - lambda^2 beta J) ds = lambda (p - pi), J = diag p - pp' or entmax's, and s + t ds
 * belongs to pi + t dpi. slopes: scratch [n]. */
cgam_status cgam_coupled_direction(const cgam_recall *plan, const double *p, const double *pi,
                                   double *slopes, double *ds, double *dpi);
/* Such steps from the gates of weights start[n], unguarded: to whatever fixed point they lead, if any,
 * and m is there. *residual: |p - pi|_2 there, INFINITY where nothing came of it; *length of the last
 * step. work: [6, n]. */
cgam_status cgam_coupled_polish(const cgam_recall *plan, cgam_query *m, const double *start,
                                double *work, double *residual, double *length);
/* A bound of |p - p*|_2, p* that of a critical point of the energy beside m, of any index; INFINITY: not
 * proved, as on more than CGAM_DPLR_SMALL memories. Softmax. */
cgam_status cgam_coupled_enclose(const cgam_recall *plan, const cgam_query *m, double *p_error);
/* The energy at s = A^-1 (u + lambda pi); sets r, p and lse there. */
double cgam_coupled_energy_at(const cgam_recall *plan, cgam_query *m, const double *s,
                              const double *pi);

/* ---- The books of an iteration: m->end and all before it in the struct. */
/* Nothing to iterate: what has no meaning is NAN. */
void cgam_books_direct(cgam_query *m, bool finite);
/* Before the first step, from a point of this energy. */
void cgam_books_open(cgam_query *m, double energy);
/* A step that changed p by `change`: count, rate, and the best so far. */
void cgam_books_change(cgam_query *m, double change);
/* The energy at its beginning; exact: in double from end to end, so that a rise would be one. */
void cgam_books_energy(cgam_query *m, double energy, bool exact);
/* Is this the end? Sets m->end. */
bool cgam_books_end(const cgam_recall *plan, cgam_query *m, bool exact);

/* ---- Results. */
/* What the scores of a query say, however they were gathered. */
typedef struct cgam_summary {
    int64_t winner, focus, rank;   /* of focus; -1 = the ghost */
    double p, log_p;               /* of focus */
    double entropy, ipr;           /* -sum p log p, 1 / sum p^2 */
    int64_t support;               /* p > 0; with softmax all */
    double gap, gap_raw, gap_gate; /* of focus over the best other; any number where n = 1 */
    double left_out;               /* weight that the sums passed over */
    double p_none;                 /* of the ghost */
} cgam_summary;
/* Is anything that is proved asked for: results, or leaders' p, which with fast are lower ends? */
static inline bool cgam_recall_proves(const cgam_recall *plan, const cgam_recall_out *out)
{
    return out->results || (plan->opts.fast && (out->top_p || out->top_log_p));
}
/* How many compete: the memories, and the ghost. */
static inline int64_t cgam_recall_rivals(const cgam_recall *plan)
{
    return plan->bank->Z.n + plan->opts.none;
}

/* The weights exp(beta (r - top)) of a query: of the memories scored, of the others from below and above; and
 * what scores may be off by, gates included. */
typedef struct cgam_weights {
    double top, known, low, high, off;
    int64_t scored;
} cgam_weights;
/* p of a score among them and the ghost, from below and above (docs/theorems/sketch.md). ghost: the score is that of
 * the ghost. */
void cgam_weights_share(const cgam_recall *plan, const cgam_weights *x, double r, bool ghost,
                        double share[2]);
/* p, log_p and the intervals of a result whose focus has the score r. */
void cgam_result_intervals(const cgam_recall *plan, const cgam_weights *x, double r,
                           cgam_result *out);

/* From the vectors of a query; target < 0 = none. */
cgam_status cgam_query_summary(const cgam_recall *plan, const cgam_query *m, int64_t target,
                               cgam_summary *out);
/* A result but for its certificates. */
void cgam_result_fill(const cgam_recall *plan, const cgam_summary *x, const cgam_query *m,
                      cgam_result *out);
/* The k largest r: indices by falling r, ties to the lowest. index: caller's [k]. */
cgam_status cgam_query_top(const cgam_recall *plan, const cgam_query *m, int64_t k, int64_t *index);

/* What rounding may have done to a query (docs/theorems/rounding.md). Scores are exact for the s at
 * hand: b + lambda s; p is exact for those. For queries that went together s is the exact A^-1 (u +
 * lambda p'), p' the p before the last step. */
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
/* A^-1 p by t and the border's entries, as cgam_dplr_reduce made them of g = Z' dinv p. */
cgam_status cgam_doubt_feedback(const cgam_recall *plan, const double *g, const double *p_border,
                                const double *t, const double *edges, cgam_gates_off *out);
/* Does a context reach the gates through A(alpha)? */
bool cgam_doubt_solved(const cgam_recall *plan, const double *c);

/* All of it, from the vectors of a query. measure: the gradient too, which takes three passes;
 * gates: that of the gates alone, A s - u. */
cgam_status cgam_doubt_measure(const cgam_recall *plan, const cgam_query *m, bool measure,
                               bool gates, cgam_doubt *out);

/* With entmax: doubt->weights, the doubt of p^(2 - A) on the support, from doubt->scores; INFINITY where a
 * memory may be in it or not. */
double cgam_doubt_slopes(const cgam_recall *plan, const cgam_query *m, const cgam_doubt *doubt);

/* What eta_min and p say without further work: spread = max p (1 - p), largest = max p. Scores may be
 * off by doubt->scores; INFINITY leaves p_lower_bound an estimate. */
void cgam_bound_freely(const cgam_recall *plan, double spread, double largest,
                       const cgam_doubt *doubt, cgam_result *out);
/* Contraction, uniqueness, fold margin, errors: the free bounds, or all with opts.certify. Takes back
 * that a recall converged where rounding, or an energy that rose, does not bear it out. */
cgam_status cgam_query_bounds(const cgam_recall *plan, const cgam_query *m, cgam_result *out);
/* The same, and with opts.certify a search for a second fixed point where uniqueness is open. */
cgam_status cgam_query_certify(const cgam_recall *plan, const cgam_query *m, cgam_result *out);

/* The largest theta < 1 for which "theta A - lambda^2 beta C(p) >= 0 at this point" proves that
 * the energy is strongly convex on a ball that holds the whole valley around the point; step is
 * the A-norm of the plain step there, *radius that of the ball. Negative: none. See
 * docs/theorems/basin.md. */
double cgam_basin_theta(double beta, double lambda, double eta_min, double step, double *radius);
/* The radius that goes with theta. */
double cgam_basin_radius(double beta, double lambda, double eta_min, double theta);

#endif
