/* claims.h: writing one row of the claims table. */
#ifndef CGAM_SRC_REPORT_CLAIMS_H
#define CGAM_SRC_REPORT_CLAIMS_H

#include "report/report.h"

/* Chance of an error that all comparisons behind one verdict share. */
#define CGAM_CLAIM_LEVEL 0.01

/* The z that a comparison must exceed, one-sided, when `tests` are made at once. */
double cgam_claim_limit(double tests);
/* A new row; the texts are borrowed for good. */
cgam_claim *cgam_claim_add(cgam_claims *c, const char *where, const char *says, const char *test);
/* Adds to the row's numbers. Clauses end in "; "; cgam_claims_tidy takes the last one off. */
void cgam_claim_tell(cgam_claim *claim, const char *format, ...) CGAM_PRINTF(2, 3);
void cgam_claim_decide(cgam_claim *claim, bool plain, bool otherwise, const char *under);
void cgam_claims_tidy(cgam_claims *out);

#endif
