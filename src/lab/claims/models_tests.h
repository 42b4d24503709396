/* models_tests.h: is a difference between answers or measurements shown, refuted, or neither, given its error over
 * queries and over draws of demonstrations?
 *
 * Queries that share their demonstrations share their luck: the error over queries leaves it out, and only several
 * draws show it. Evidence from shared demonstrations must therefore pass twice, over queries and over draws, and one
 * draw of them decides nothing. Nothing is decided with fewer than CGAM_QUERIES_MIN queries either, whatever it would be. */
#ifndef CGAM_SRC_LAB_CLAIMS_MODELS_TESTS_H
#define CGAM_SRC_LAB_CLAIMS_MODELS_TESTS_H

#include "lab/claims/claims.h"
#include "lab/stats.h"

enum { CGAM_QUERIES_MIN = 50, CGAM_DRAWS_MAX = 32 };

/* SILENT: the study has no data for it. OPEN: not shown, and not refuted. In this order, so that what needs all of
 * several has the least of their outcomes. */
typedef enum outcome { SILENT, REFUTED, OPEN, SHOWN } outcome;

/* A difference whose sign is in question, draw by draw. Initialise to zero but for `shared`. */
typedef struct evidence {
    bool shared;        /* all queries of a draw have the same demonstrations */
    bool lacking;       /* a draw had no data */
    cgam_moments draws; /* of the draws' means */
    double squares;     /* sum of the squared errors of these means */
    int64_t queries, up, down;
    bool pair; /* 0 or 1 for each query, before and after: up and down count the changes */
} evidence;

/* A draw's mean of n queries, with its error over them. */
void cgam_evidence_add(evidence *e, double mean, double se, int64_t n);
/* A draw's answers to the same queries, 0 and 1, as the sum of weight[k] times of[k]. Any of them empty or of
 * another length: lacking. */
void cgam_evidence_answers(evidence *e, int kinds, const char *const *of, const double *weight);
/* Is it above 0 (SHOWN), below (REFUTED), or neither at 1% over this many tests? */
outcome cgam_evidence_judge(const evidence *e, double tests);

/* The probability that Student's t exceeds x. */
double cgam_student_tail(double x, int64_t freedom);
/* Both must be shown; either refutes. SILENT if either is. */
static inline outcome cgam_outcome_both(outcome a, outcome b) { return a < b ? a : b; }

#endif
