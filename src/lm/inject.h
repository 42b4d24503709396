/* inject.h (inside): whether a model answers rightly under edits. */
#ifndef CGAM_SRC_LM_INJECT_H
#define CGAM_SRC_LM_INJECT_H

#include "lm/answers.h"

#include <cgam/baseline.h>

/* Decides answers of one task in one of three ways. */
typedef struct cgam_judge {
    cgam_lm_study *study;
    const cgam_lm_task *task;
    cgam_lm_answer how;
    int32_t *target; /* [queries] label of each query; -1: left out (FIRST: it begins as another) */
    int64_t counted; /* those that are not */
    cgam_answers answers; /* of SEQUENCE and GENERATE */
} cgam_judge;

/* Opens it for the study's task; close it with cgam_judge_close, which copes with half-open. */
CGAM_NODISCARD cgam_status cgam_judge_open(cgam_lm_study *study, cgam_lm_answer how,
                                           cgam_judge *out);
void cgam_judge_close(cgam_judge *judge);

/* One prompt of a query under its edits. */
typedef struct cgam_judge_job {
    int64_t query;
    cgam_lm_prompt prompt;
    cgam_lm_edits edits;
} cgam_judge_job;

/* right [count]; f1 [count], of words of the generated answer, NULL: not wanted. Jobs with the same
 * tokens share all but the last. */
CGAM_NODISCARD cgam_status cgam_judge_run(const cgam_judge *judge, int64_t count,
                                          const cgam_judge_job *jobs, bool *right, double *f1);

/* Whether two answers are the same but for case, outer blanks and the stops after them; *f1 the
 * harmonic mean of precision and recall of words. */
bool cgam_answer_same(const char *said, const char *wanted, double *f1);

#endif
