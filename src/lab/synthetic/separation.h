/* separation.h: shared by the parts of the separation study that count and those that report. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_SEPARATION_H
#define CGAM_SRC_LAB_SYNTHETIC_SEPARATION_H

#include "lab/synthetic/banks.h"
#include "lab/synthetic/study.h"

enum { CGAM_SEPARATION_BLOCK = 64 }; /* trials a block */

/* Parts of a block's record, in this order; see separation.c. */
enum {
    RIGHT,
    GAINED,
    LOST,
    GAINED0,
    LOST0,
    P,
    P2,
    GAP,
    SHIFT,
    POINTS,
    IN_WINDOW,
    SAMPLE,
    STOPPED,
    PARTS
};

typedef struct cgam_separation {
    int64_t n, d, sigmas, lambdas, window, blocks_a_bank;
    double *Z, *S;     /* [banks, n, d] memories and A^-1 Z */
    int64_t at[PARTS]; /* where each part of a record begins */
    int64_t record;
} cgam_separation;

/* One thread's arrays, all [..] per lane. */
typedef struct cgam_separation_room {
    cgam_banks *banks;           /* mode coupled: the shared bank in every lane */
    int64_t set;                 /* which bank it holds, -1 = none */
    double *q, *c;               /* [d] */
    double *b, *s;               /* [n] Z q and A^-1 Z c */
    double *gap, *log_p;         /* [lambdas] */
    double *sums;                /* [2] Delta_raw, Delta_gate */
    double *r, *e, *base, *gain; /* mode coupled: see cgam_lanes_coupled */
    int64_t target[CGAM_LANES_MAX];
    int right[CGAM_STUDY_LAMBDAS_MAX * CGAM_LANES_MAX]; /* [lambdas] */
    /* [lambdas] mode coupled: the iteration did not converge */
    int stopped[CGAM_STUDY_LAMBDAS_MAX * CGAM_LANES_MAX];
} cgam_separation_room;

/* arg is the cgam_separation, the room a cgam_separation_room. */
cgam_status cgam_separation_open(cgam_study *study, cgam_separation *u);
void cgam_separation_close(cgam_study *study, cgam_separation *u);
cgam_status cgam_separation_room_open(cgam_study *study, void *arg, void *opened);
void cgam_separation_room_close(cgam_study *study, void *arg, void *opened);

/* Draws of trials first .. first + width - 1 at one noise level, one a lane. */
void cgam_separation_draw(const cgam_study *study, const cgam_separation *u, int64_t set,
                          int64_t cell, int64_t first, cgam_separation_room *w);
/* b, s and, for lambdas [from, to), gap, log p and winner of the draws in w. */
cgam_status cgam_separation_recall(cgam_study *study, const cgam_separation *u, int64_t set,
                                   int64_t from, int64_t to, cgam_separation_room *w);

/* Tables and summary from the blocks' records. */
cgam_status cgam_separation_tables(cgam_study *study, void *arg, const cgam_blocks *b);

#endif
