/* report.h: all studies, what they say about the paper's claims, and one page with everything. */
#ifndef CGAM_SRC_REPORT_REPORT_H
#define CGAM_SRC_REPORT_REPORT_H

#include "report/figure.h"

#include <cgam/study.h>

/* The runs behind a report. Some studies are run twice, where a claim depends on a choice that the
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
    CGAM_RUNS
};

typedef struct cgam_run {
    cgam_study *study;
    cgam_figures figures;
    double seconds;
    char folder[64]; /* under the report's */
} cgam_run;

/* ---- Claims ---------------------------------------------------------------------------------- */
typedef enum cgam_verdict {
    CGAM_HOLDS,
    CGAM_HOLDS_UNDER,
    CGAM_DOES_NOT_HOLD,
    CGAM_NOT_DECIDED /* too little data */
} cgam_verdict;
enum { CGAM_VERDICTS = CGAM_NOT_DECIDED + 1 };

enum { CGAM_CLAIMS_MAX = 40, CGAM_CLAIM_TEXT = 2000 };

typedef struct cgam_claim {
    const char *where; /* "section 3.3, fig. 2a" */
    const char *says;  /* the statement */
    const char *test;  /* how it is decided */
    cgam_verdict verdict;
    char under[160];               /* the condition, for CGAM_HOLDS_UNDER */
    bool on;                       /* it names the data on which the claim holds */
    char numbers[CGAM_CLAIM_TEXT]; /* from this run */
} cgam_claim;

typedef struct cgam_claims {
    int count;
    cgam_claim claim[CGAM_CLAIMS_MAX];
} cgam_claims;

/* Decides every claim from the tables of the runs. */
void cgam_claims_decide(const cgam_run runs[CGAM_RUNS], cgam_claims *out);
/* "holds", "holds under ...", "holds on ...", "does not hold", "not decided by this run", into text[200]. */
const char *cgam_verdict_text(const cgam_claim *claim, char *text);

/* ---- The report ------------------------------------------------------------------------------ */
typedef struct cgam_report_opts {
    const char *out;          /* folder; index.html is made in it */
    uint64_t seed;            /* default 1 */
    double scale;             /* of all numbers of trials, default 1 */
    bool figures;             /* default true */
    cgam_progress progress;   /* told the share done of each study; default: nobody */
    struct cgam_ranks *ranks; /* that share the trials; rank 0 writes; default NULL */
} cgam_report_opts;

typedef struct cgam_report {
    cgam_env *env;
    cgam_report_opts opts;
    cgam_run runs[CGAM_RUNS];
    cgam_claims claims;
    struct cgam_models *models; /* studies of language models in the folder; models.h */
    cgam_claims model_claims;
    bool figures_missing; /* gnuplot was not found */
    double seconds, figure_seconds;
} cgam_report;

cgam_report_opts cgam_report_opts_default(void);
/* Runs everything and writes it; gives *out, free it with cgam_report_free. Ranks above 0 have the studies alone. */
cgam_status cgam_report_make(cgam_env *env, const cgam_report_opts *opts, cgam_report **out);
void cgam_report_free(cgam_report *report); /* NULL is fine */

/* index.html (contents.c) and claims.csv. */
cgam_status cgam_report_page(const cgam_report *report);
cgam_status cgam_claims_write(cgam_env *env, const cgam_claims *claims, const char *folder);

#endif
