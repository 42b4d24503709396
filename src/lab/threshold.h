/* threshold.h: the lowest score at which a cache may answer, from pairs that are known to mean the same or not. */
#ifndef CGAM_SRC_LAB_THRESHOLD_H
#define CGAM_SRC_LAB_THRESHOLD_H

#include <cgam/base.h>

typedef struct cgam_pair_score {
    double score;
    bool same;
} cgam_pair_score;

/* A pair hits if its score is at least the threshold; the hit is false if the pair does not mean the same. */
typedef struct cgam_threshold {
    double threshold;
    int64_t same, different, same_hits, different_hits; /* pairs */
    double false_hits, false_from,
        false_to;   /* share of the different pairs; its interval of 95 % */
    double hits;    /* share of the pairs that are the same; NAN without any */
    int64_t needed; /* different pairs with which the budget can be met if none hits */
    bool met; /* false_to is at most the budget, and at least one pair that is the same hits */
} cgam_threshold;

/* Sorts the pairs. 0 < budget < 1; CGAM_E_ARG without a pair that differs. */
CGAM_NODISCARD cgam_status cgam_threshold_choose(cgam_env *env, int64_t n, cgam_pair_score *pairs,
                                                 double budget, cgam_threshold *out);

#endif
