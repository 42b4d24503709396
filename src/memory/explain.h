/* explain.h: explains a recall - the score of a memory in parts, and how far each parameter can change before the
 * kind of answer changes. */
#ifndef CGAM_SRC_MEMORY_EXPLAIN_H
#define CGAM_SRC_MEMORY_EXPLAIN_H

#include <cgam/recall.h>

/* r_i = evidence + bias + feedback. Not true of a flow that has not settled. */
typedef struct cgam_score_parts {
    double evidence; /* <zeta_i, q> */
    double bias;     /* lambda (A^-1 u)_i */
    double feedback; /* lambda^2 (A^-1 p)_i; 0 in mode first */
} cgam_score_parts;
/* Splits the scores of the `count` memories index[]. q [d]; c [d_c] or NULL = no context; p [n] as the recall
 * returned it, NULL in mode first. Returns CGAM_E_SINGULAR at the critical point, where A^-1 p is not defined. */
CGAM_NODISCARD cgam_status cgam_recall_parts(const cgam_recall *plan, const double *q,
                                             const double *c, const double *p, int64_t count,
                                             const int64_t *index, cgam_score_parts *out);

/* Each limit holds with the plan's other two parameters fixed. */
typedef struct cgam_marks {
    double alpha_crit; /* of the bank; infinite if no penalty is critical */
    double alpha_fold; /* where the branch of fixed points from alpha = 0 ends, to 1e-4; NAN: it
                           reaches alpha_crit, or 10 where that comes first */
    double
        lambda_unique_max;  /* the fixed point is proved unique up to here; 0 from alpha_crit on */
    double beta_unique_max; /* likewise; infinite at lambda = 0 */
} cgam_marks;
/* Costs as much as cgam_bank_inspect, plus many coupled recalls for the fold. */
CGAM_NODISCARD cgam_status cgam_recall_marks(const cgam_recall *plan, const double *q,
                                             const double *c, cgam_marks *out);

#endif
