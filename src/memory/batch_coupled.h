/* batch_coupled.h: many coupled recalls at once, as products of matrices. */
#ifndef CGAM_SRC_MEMORY_BATCH_COUPLED_H
#define CGAM_SRC_MEMORY_BATCH_COUPLED_H

#include "memory/recall.h"

enum { CGAM_COUPLED_BATCH = 64 };

/* Is a group of so many queries one for cgam_coupled_batch? */
bool cgam_coupled_batches(const cgam_recall *plan, int64_t count);
/* Mode coupled for at most CGAM_COUPLED_BATCH queries that have b, s0, a and half_us0, to the
 * tolerance that cgam_coupled_solve keeps. Those in back[*given_back] are left to that. */
cgam_status cgam_coupled_batch(const cgam_recall *plan, int64_t count, cgam_query *m, int64_t *back,
                               int64_t *given_back);

#endif
