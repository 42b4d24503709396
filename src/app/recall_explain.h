/* recall_explain.h: what `recall --explain` and `--marks` add to its document. */
#ifndef CGAM_SRC_APP_RECALL_EXPLAIN_H
#define CGAM_SRC_APP_RECALL_EXPLAIN_H

#include "app/verb.h"

/* The parts of the scores of index[count], into the document of a query: arrays in that order. */
void cgam_parts_put(json_t *query, const cgam_score_parts *parts, int64_t count);
/* "marks" of one query, q [d], c [d_c] or NULL. */
CGAM_NODISCARD cgam_status cgam_marks_put(json_t *doc, const cgam_recall *plan, const double *q,
                                          const double *c);

/* The same for people. */
void cgam_parts_print(const json_t *query, FILE *to);
void cgam_marks_print(const json_t *doc, FILE *to);

#endif
