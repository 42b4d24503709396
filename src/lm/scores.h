/* scores.h: the softmax of a model's scores over its vocabulary. */
#ifndef CGAM_SRC_LM_SCORES_H
#define CGAM_SRC_LM_SCORES_H

#include "num/softmax.h"

#include <stdint.h>

/* The most probable token; ties go to the lowest. */
static inline int64_t cgam_scores_top(const float *scores, int64_t vocab)
{
    int64_t top = 0;
    for (int64_t k = 1; k < vocab; k++)
        if (scores[k] > scores[top]) top = k;
    return top;
}

/* The sums of the softmax, relative to the largest score. */
static inline cgam_softmax cgam_scores_softmax(const float *scores, int64_t vocab)
{
    cgam_softmax all = cgam_softmax_from((double)scores[cgam_scores_top(scores, vocab)]);
    for (int64_t k = 0; k < vocab; k++) cgam_softmax_take(&all, 1, (double)scores[k]);
    return all;
}

static inline double cgam_scores_log_p(const cgam_softmax *all, double score)
{
    return score - all->top - log(all->sum);
}

#endif
