/* models_claims.h (inside): a claim about language models, tested on every study that can decide it. */
#ifndef CGAM_SRC_LAB_CLAIMS_MODELS_CLAIMS_H
#define CGAM_SRC_LAB_CLAIMS_MODELS_CLAIMS_H

#include "lab/claims/claims.h"
#include "lab/document.h"

typedef enum outcome { SILENT, NO, YES } outcome; /* SILENT: the study cannot decide */
enum { QUERIES_MIN = 50 }; /* with fewer, absence of an effect shows nothing */

/* What a claim compares: answers by their paths in the entry of the most shots, or a kind of context. */
typedef struct rival {
    const char *path, *name;
} rival;
typedef struct subject {
    const char *own;
    rival against[6]; /* ends with a NULL path */
} subject;
typedef struct question {
    const json_t *study;
    const subject *of;
} question;

typedef struct claim_row {
    const char *key;                                     /* of claims.txt */
    outcome (*by)(const question *q, cgam_claim *claim); /* tests one study and adds its numbers */
    subject of;
    bool facts; /* about steering: decided by sets of facts if there are any */
} claim_row;

/* Of gates: models_claims_gates.c. */
enum { CGAM_GATES_CLAIMS = 4 };
extern const claim_row cgam_gates_claims[CGAM_GATES_CLAIMS];

/* The entry of the largest number of shots. */
const json_t *cgam_models_most_shots(const json_t *study, const char *path);
/* Is answer a right significantly more often than b? Both are strings of 0 and 1 by query. */
bool cgam_models_better(const char *a, const char *b, double tests);

#endif
