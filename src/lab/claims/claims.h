/* claims.h: decides the paper's claims on the runs of a report: a table with a row for each claim.
 *
 * A test has three outcomes. A difference is shown or refuted when it is significant in one or the
 * other direction and open in between; with fewer than CGAM_CLAIM_TRIALS trials all is open.
 * Comparisons behind one verdict share the level (Bonferroni). */
#ifndef CGAM_SRC_LAB_CLAIMS_CLAIMS_H
#define CGAM_SRC_LAB_CLAIMS_CLAIMS_H

#include "lab/synthetic/study.h"

/* The runs behind a report. Some studies are run twice because a claim depends on a choice that the
 * paper leaves open. */
enum {
    CGAM_RUN_SEPARATION,
    CGAM_RUN_SEPARATION_VECTOR, /* context noise sigma_c/sqrt(d) per component */
    CGAM_RUN_COMPETITION,
    CGAM_RUN_COMPETITION_UNCAPPED, /* t* without a cap */
    CGAM_RUN_COUPLED,
    CGAM_RUN_TIMESCALE,
    CGAM_RUN_TIMESCALE_STARTED, /* r(0) = Z q */
    CGAM_RUN_TIMESCALE_FREE,    /* the query follows its own equation */
    CGAM_RUN_THEOREMS,
    CGAM_RUN_CAPACITY,
    CGAM_RUN_PHASE,
    CGAM_RUN_PHASE_PENALTY, /* alpha against load */
    CGAM_RUN_CONVERGENCE,
    CGAM_RUN_ANNEALING,
    CGAM_RUN_SPARSE,
    CGAM_RUN_SPARSE_COUPLED, /* with feedback */
    CGAM_RUN_RIVALS,
    CGAM_RUNS
};

typedef enum cgam_verdict {
    CGAM_HOLDS,
    CGAM_HOLDS_UNDER,
    CGAM_DOES_NOT_HOLD,
    CGAM_NOT_DECIDED /* too little data, or neither shown nor refuted */
} cgam_verdict;
enum { CGAM_VERDICTS = CGAM_NOT_DECIDED + 1 };

enum { CGAM_CLAIMS_MAX = 48, CGAM_CLAIM_TEXT = 2000, CGAM_CLAIM_LINE = 400, CGAM_READINGS = 4 };

typedef struct cgam_claim {
    /* "section 3.3, fig. 2a", the statement, and how it is decided */
    char where[CGAM_CLAIM_LINE], says[CGAM_CLAIM_LINE], test[CGAM_CLAIM_LINE];
    cgam_verdict verdict;
    char under[200];         /* the condition, for CGAM_HOLDS_UNDER: readings that are shown, */
    char without[200];       /* and those that are refuted */
    int printed;             /* the reading that stands in the paper, -1 = our choice */
    bool unprinted, unshown; /* it is refuted; or neither shown nor refuted */
    bool unshown_all;        /* for CGAM_NOT_DECIDED: there were enough trials */
    int reading;             /* the one that is being decided */
    char brief[CGAM_READINGS][80]; /* what refutes it, "10 of 60 steps fall" */
    bool on; /* `under` names the data on which the claim holds, or does not */
    char numbers[CGAM_CLAIM_TEXT]; /* from this run */
    char null[CGAM_CLAIM_TEXT]; /* what the same test says of what carries nothing; "": not run */
} cgam_claim;

typedef struct cgam_claims {
    int count;
    cgam_claim claim[CGAM_CLAIMS_MAX];
} cgam_claims;

/* Decides every claim from the tables of the runs. */
void cgam_claims_decide(const cgam_study *const runs[CGAM_RUNS], cgam_claims *out);
/* "holds", "not as printed (10 of 60 steps fall); holds with ...", "holds with ...; not with ...", "holds on ...",
 * "does not hold", "does not hold on ...", "not decided: not shown", "not decided by this run" (too few trials), into
 * text[CGAM_VERDICT_TEXT]. */
enum { CGAM_VERDICT_TEXT = 700 };
const char *cgam_verdict_text(const cgam_claim *claim, char *text);
/* An array with every claim: where, claim, verdict, numbers, test, null. */
json_t *cgam_claims_json(const cgam_claims *claims);
/* Writes claims.csv into the folder. */
cgam_status cgam_claims_write(cgam_env *env, const cgam_claims *claims, const char *folder);

/* ---- Deciding a row ------------------------------------------------------------------------- */
/* Chance of an error that all comparisons behind one verdict share. */
#define CGAM_CLAIM_LEVEL 0.01

enum { CGAM_CLAIM_TRIALS = 100 };

typedef enum cgam_outcome { CGAM_REFUTED, CGAM_OPEN, CGAM_SHOWN } cgam_outcome;

/* The z that a comparison must exceed, one-sided, when `tests` are made at once. */
double cgam_claim_limit(double tests);
/* Is x above 0, given its standard error and the z to exceed? An unknown error decides nothing. */
cgam_outcome cgam_claim_above(double x, double se, double z);

/* A new row, with the words under a key of claims.txt. */
cgam_claim *cgam_claim_add(cgam_claims *c, const char *key);
/* Appends to the row's numbers. Clauses end in "; "; cgam_claims_tidy removes the last one. */
void cgam_claim_tell(cgam_claim *claim, const char *format, ...) CGAM_PRINTF(2, 3);
/* What refutes the reading that is being decided, in a few words. */
void cgam_claim_brief(cgam_claim *claim, const char *format, ...) CGAM_PRINTF(2, 3);
/* Sets the verdict from the outcomes of a claim's readings. The claim holds if all are shown, holds with
 * the shown ones if only some are, does not hold if all are refuted, and is not decided otherwise: what is not
 * shown is not refuted. names[i] completes "holds with ". */
void cgam_claim_decide(cgam_claim *claim, int64_t trials, int readings,
                       const cgam_outcome *outcomes, const char *const *names);
void cgam_claims_tidy(cgam_claims *out);

/* Combines two outcomes: shown if both are, refuted if one is. */
static inline cgam_outcome cgam_claim_both(cgam_outcome a, cgam_outcome b) { return a < b ? a : b; }
static inline cgam_outcome cgam_claim_if(bool shown) { return shown ? CGAM_SHOWN : CGAM_REFUTED; }
static inline void cgam_claim_decide_one(cgam_claim *claim, int64_t trials, cgam_outcome only)
{
    cgam_claim_decide(claim, trials, 1, &only, NULL);
}

/* ---- Statements with a reading for each choice that the paper leaves open ---------------------- */
typedef struct cgam_reading {
    const cgam_study *study;
    const char *name;  /* in front of its numbers */
    const char *under; /* like the names of cgam_claim_decide */
} cgam_reading;

typedef struct cgam_statement {
    const char *key; /* of claims.txt */
    /* Appends the numbers of one reading and decides it. */
    cgam_outcome (*decide)(const cgam_study *study, cgam_claim *claim, const char *name);
} cgam_statement;

/* A row for each statement of the list, which ends with {0}; `printed` as in cgam_claim. */
void cgam_claims_state(cgam_claims *c, const cgam_statement *list, int printed, int count,
                       const cgam_reading *readings);

/* ---- The rows of each study: claims_<study>.c ------------------------------------------------ */
void cgam_claims_separation(const cgam_study *const *runs, cgam_claims *c);
void cgam_claims_competition(const cgam_study *const *runs, cgam_claims *c);
/* Returns whether the theorem's threshold is wrong on these banks, which are not balanced. */
cgam_outcome cgam_claims_coupled(const cgam_study *const *runs, cgam_claims *c);
void cgam_claims_timescale(const cgam_study *const *runs, cgam_claims *c);
void cgam_claims_points(const cgam_study *const *runs, cgam_claims *c);
void cgam_claims_rivals(const cgam_study *const *runs, cgam_claims *c);
/* Is the noise range of the gates above that of query mixing? */
cgam_outcome cgam_claims_range_beats_mixing(const cgam_study *rivals, cgam_claim *claim);
/* apart: the threshold with feedback is wrong on banks that are not balanced. */
void cgam_claims_theorems(const cgam_study *const *runs, cgam_claims *c, cgam_outcome apart);

#endif
