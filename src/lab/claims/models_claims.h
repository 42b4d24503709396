/* models_claims.h (inside): a claim about language models, tested on every study that can decide it, and on its
 * nulls. */
#ifndef CGAM_SRC_LAB_CLAIMS_MODELS_CLAIMS_H
#define CGAM_SRC_LAB_CLAIMS_MODELS_CLAIMS_H

#include "lab/claims/claims.h"
#include "lab/claims/models_tests.h"
#include "lab/document.h"

/* What a claim's own answers or contexts are compared with. A null carries nothing of what the claim is about: it is
 * put in place of the claim's own, and must not pass. */
typedef struct rival {
    const char *path, *name;
    bool null;
    const char *base; /* what it is a gain over, where the claim is about gains */
} rival;
enum { CGAM_RIVALS = 8 };
typedef struct subject {
    const char *list;       /* where answers are: entries by number of shots, or one document */
    const char *own, *base; /* paths in the entry of the most shots, or, after '<', of the fewest */
    const char *zero,
        *icl; /* a share of what demonstrations gain is claimed; default NULL: none is */
    rival against[CGAM_RIVALS]; /* ends with a NULL name */
} subject;

typedef struct question {
    int draws;
    const json_t *draw[CGAM_DRAWS_MAX]; /* documents by part; the first is the one shown */
    bool shared;
    const subject *of;
    const rival *null; /* in place of the claim's own; NULL: the claim itself */
} question;

typedef struct claim_row {
    const char *key;                                     /* of claims.txt */
    outcome (*by)(const question *q, cgam_claim *claim); /* tests one study and adds its numbers */
    subject of;
    bool facts; /* about steering: decided by sets of facts if there are any */
} claim_row;

/* The rows of each file, in the order of the table. */
typedef struct claim_rows {
    const claim_row *row;
    int count;
} claim_rows;
extern const claim_rows cgam_curve_rows, cgam_answer_rows, cgam_steer_rows, cgam_probe_rows,
    cgam_gates_rows;

/* The entry of the largest number of shots; of the smallest that is not 0. */
const json_t *cgam_models_most_shots(const json_t *study, const char *path);
const json_t *cgam_models_least_shots(const json_t *study, const char *path);
/* Is a above b? a[d] and b[d] are the answers of draw d, strings of 0 and 1 by query. */
outcome cgam_models_above(const question *q, const char *const *a, const char *const *b,
                          double tests);
double cgam_models_share(const char *right); /* of 1 in a string; NAN if it is empty or NULL */
static inline evidence cgam_evidence_of(const question *q)
{
    return (evidence){.shared = q->shared};
}

#endif
