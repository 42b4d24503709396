/* alphas.h: the paper's grids of penalties. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_ALPHAS_H
#define CGAM_SRC_LAB_SYNTHETIC_ALPHAS_H

#include "lab/synthetic/study.h"

enum { CGAM_ALPHAS_MAX = 4096 };

/* A set of penalties, rising. */
typedef struct cgam_alphas {
    int64_t count;
    double at[CGAM_ALPHAS_MAX];
} cgam_alphas;

/* Adds count values evenly spaced over [low, high]. */
void cgam_alphas_span(cgam_alphas *set, double low, double high, int64_t count);
/* Rounds to four decimals, sorts, and removes duplicates and what is below 0. */
void cgam_alphas_tidy(cgam_alphas *set);
/* 17 points on [0, 2], 60 between alpha_crit and 1.25, and alpha_crit: 75 for alpha_crit = 1. */
void cgam_alphas_competition(cgam_alphas *set, double alpha_crit);
/* Those and 100 on [0, 2]: 173. */
void cgam_alphas_coupled(cgam_alphas *set, double alpha_crit);
/* The user's own values, as they are, sorted, each once. */
void cgam_alphas_given(cgam_alphas *set, cgam_list list);

/* 1 / (1 - mean mu_min) over the clusters of the first trials (at most 1000), as the paper
 * estimates it. With n > d every mu_min is 0 and nothing is drawn. */
cgam_status cgam_alphas_critical(cgam_study *study, int stream, double *alpha_crit);

#endif
