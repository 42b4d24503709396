/* report.h: all studies, their verdicts on the paper's claims, and one page with everything. */
#ifndef CGAM_SRC_LAB_PAGE_REPORT_H
#define CGAM_SRC_LAB_PAGE_REPORT_H

#include "lab/claims/models.h"
#include "lab/figures/figure.h"

typedef struct cgam_run {
    cgam_study *study;
    cgam_figures figures;
    double seconds;
    char folder[64]; /* under the report's */
} cgam_run;

/* ---- The report ------------------------------------------------------------------------------ */
typedef struct cgam_report_opts {
    const char *out;          /* folder; index.html is made in it */
    uint64_t seed;            /* default 1 */
    double scale;             /* of all numbers of trials, default 1 */
    bool figures;             /* default true */
    cgam_progress progress;   /* gets the share done of each study; default: none */
    struct cgam_ranks *ranks; /* ranks that share the trials; rank 0 writes; default NULL */
} cgam_report_opts;

typedef struct cgam_report {
    cgam_env *env;
    cgam_report_opts opts;
    cgam_run runs[CGAM_RUNS];
    cgam_claims claims;
    cgam_models *models; /* studies of language models in the folder */
    cgam_claims model_claims;
    bool figures_missing; /* gnuplot was not found */
    double seconds, figure_seconds;
} cgam_report;

cgam_report_opts cgam_report_opts_default(void);
/* Runs everything and writes it. Free *out with cgam_report_free. On ranks above 0 it holds only the studies. */
cgam_status cgam_report_make(cgam_env *env, const cgam_report_opts *opts, cgam_report **out);
void cgam_report_free(cgam_report *report); /* NULL is fine */

/* index.html (contents.c). */
cgam_status cgam_report_page(const cgam_report *report);

/* Puts the current studies of language models into DIR/index.html, which is made if it does not exist, and their
 * claims into DIR/lm/claims.csv. */
cgam_status cgam_models_refresh(cgam_env *env, const char *folder);

#endif
