/* stages.h (inside): the stages of one query in a recall. Each stage has a type with the fields that are valid there.
 *
 *   scored     b = Z q, s0 = A^-1 u, a = b + lambda s0: the terms of every score from query and context
 *   iterating  (modes coupled and anneal) a step makes r_new = a + lambda^2 A^-1 p_old and p_new = act(beta r_new)
 *   settled    gates s, scores r and weights p = act(beta r) that belong together, and the trace of the iteration:
 *              what results (results.h) and certificates (certify.h) are made of
 *
 * act is softmax or entmax. Vectors are [n]. */
#ifndef CGAM_SRC_MEMORY_STAGES_H
#define CGAM_SRC_MEMORY_STAGES_H

#include "memory/plan.h"

/* The error of gates against the exact A^-1 u: the largest entry and the 2-norm of the difference. */
typedef struct cgam_gates_off {
    double most, norm;
} cgam_gates_off;

/* ---- Scored. */
typedef struct cgam_scored {
    const double *q; /* [d] the query, and */
    const double *c; /* [d_c] its context, as the caller gave them; NULL = none, or not clamped */
    const double *b, *s0, *a;
    double half_us0;       /* u' A^-1 u / 2, the constant of the energy */
    cgam_gates_off s0_off; /* of s0, on large banks; INFINITY: unknown */
    bool level;            /* b and u treat equal memories alike, so p should too */
} cgam_scored;

/* Returns CGAM_E_VALUE if a bank whose rows were not checked gave query k a score that is not finite. */
cgam_status cgam_scores_strange(const cgam_recall *plan, int64_t k);
cgam_status cgam_scores_check(const cgam_recall *plan, int64_t k, const double *r);

/* ---- The activation of scores r. */
typedef struct cgam_activated {
    double top, sum; /* max r, and sum exp(beta (r - top)); 1 with entmax, which has */
    double shift;    /* the shift of num/entmax.h */
    double lse;      /* log sum exp(beta r) = beta top + log sum, or entmax's L(beta r) */
} cgam_activated;

/* Softmax, from top and sum. */
cgam_activated cgam_activated_softmax(double beta, double top, double sum);
/* Computes p = act(beta r); returns false if a score is NaN. */
bool cgam_activate(const cgam_recall *plan, const double *r, double *p, cgam_activated *out);
/* The same without p. */
cgam_activated cgam_activated_of(const cgam_recall *plan, const double *r);
/* p of rows [i, i + rows). */
enum { CGAM_SETTLE_ROWS = 512 };
void cgam_activated_weights(const cgam_recall *plan, const cgam_activated *act, const double *r,
                            int64_t i, int64_t rows, double *p);
/* Returns log p of a score; -INFINITY off the support. */
double cgam_activated_log_p(const cgam_recall *plan, const cgam_activated *act, double r);

/* ---- Settled. */
typedef struct cgam_trace {
    int64_t iterations, newton_steps;
    cgam_end end;
    double change, change_norm, rate; /* last max|dp|, |dp|_2, and the observed contraction */
    double energy_start, energy_end, energy_rise;
    double streamed; /* max |difference| of r between refined and streamed steps, 0 if none */
    double time;     /* end time of a flow, else NAN */
} cgam_trace;

typedef struct cgam_settled {
    cgam_scored in;
    double *s, *r, *p;
    cgam_activated act;
    cgam_trace trace;
    bool together; /* solved with others as matrices: passes of its own would cost more */
    bool
        followed; /* solved alone; its last step bounds its error, and a pass is made only if that is too wide */
    cgam_gates_off feedback; /* of A^-1 p, in both cases; INFINITY: unknown */
} cgam_settled;

/* The trace of mode first, which does not iterate; fields that do not apply are NAN. */
cgam_trace cgam_trace_direct(bool finite);

/* ---- Iterating (convergence.c). */
typedef struct cgam_iterating {
    cgam_scored in;
    double *p_old, *r_new, *p_new;
    cgam_activated act; /* of r_new */
    cgam_trace trace;
    double best;          /* the least change so far, */
    int64_t since;        /* and the iteration of that change */
    int64_t newton_after; /* Newton is not tried again before this iteration */
    bool rough;           /* trace.energy_end was computed partly in f32 */
    bool together, followed;
    cgam_gates_off feedback;
} cgam_iterating;

/* Starts the iteration from the scores of m, and uses its s, r, p as buffers. Sets r_new = a, where memories of a
 * family of `level` (NULL: none) get their mean, and p_new = act(beta r_new), or the weights start[n]. p_old is not
 * set. If scores are NaN, trace.end is CGAM_END_DIVERGED. */
cgam_status cgam_iterating_begin(const cgam_recall *plan, const cgam_settled *m,
                                 const double *start, const cgam_twins *level, cgam_iterating *out);
/* Returns r_new and p_new as settled, with s = s0 + (r_new - a) / lambda in the buffer of p_old. */
cgam_settled cgam_iterating_settle(const cgam_recall *plan, const cgam_iterating *x);

/* Counts a step that changed p by `change`: updates the count, the rate and the least change. */
void cgam_iterating_count(cgam_iterating *x, double change);
/* Notes the energy at the beginning of a step. exact: computed in double throughout, so that a rise is a real one. */
void cgam_iterating_energy(cgam_iterating *x, double energy, bool exact);
/* Returns true if the iteration ends here, and sets trace.end. */
bool cgam_iterating_ends(const cgam_recall *plan, cgam_iterating *x, bool exact);

#endif
