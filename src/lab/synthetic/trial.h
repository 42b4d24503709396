/* trial.h: shared by the trials of several studies. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_TRIAL_H
#define CGAM_SRC_LAB_SYNTHETIC_TRIAL_H

#include "lab/synthetic/stream.h"
#include "lab/synthetic/study.h"

#include <cgam/gate.h>

/* How many of the study's trials are in block i, of `block` trials each. */
static inline int64_t cgam_block_trials(const cgam_study_opts *o, int64_t block, int64_t i)
{
    int64_t rest = o->trials - i * block;
    return rest < block ? rest : block;
}

/* n rows of d normals each, divided by their norms. */
void cgam_trial_memories(cgam_rng *rng, int64_t n, int64_t d, double *Z);

/* The memories of a study, Z [n, d]: n random unit vectors, or n random rows of the given bank in their order. */
cgam_status cgam_trial_bank(const cgam_study *study, int stream, int64_t set, int64_t cell,
                            int64_t trial, int64_t n, double *Z);

/* p = softmax(beta r), which may be one array. */
void cgam_trial_softmax(int64_t n, double beta, const double *r, double *p);

/* Where the cues of trials come from and go to: a target among n memories, q = zeta + sigma_q eps
 * and c = zeta + sigma_c eta. */
typedef struct cgam_cues {
    int stream; /* CGAM_STREAM_SEPARATION ... */
    int64_t set, cell;
    int64_t n, d;
    double sigma_q;
    const double *Z; /* [n, d]: plain and shared by the lanes, or each lane's own */
    bool own;        /* which of the two */
    double *q, *c;   /* [d] out */
    int64_t *target; /* [] out */
} cgam_cues;
/* Trials first .. first + width - 1, one a lane. */
void cgam_trial_cues(const cgam_study *study, const cgam_cues *u, int64_t first);

/* A trial by itself: memories of its own, a target, a query and a context, the bank over them, and what
 * both say to it. All plain; close copes with {0}. */
typedef struct cgam_problem {
    int64_t n, d, target;
    double *Z, *q, *c, *b, *u; /* [n, d], [d], [d], Z q [n], Z c [n] */
    cgam_bank *bank;
} cgam_problem;
/* Memories are those of (stream, trial), the noise is that of the cell too. */
cgam_status cgam_problem_open(const cgam_study *study, int stream, double sigma_q, int64_t cell,
                              int64_t trial, cgam_problem *p);
void cgam_problem_close(const cgam_study *study, cgam_problem *p);
void cgam_problem_put(const cgam_problem *p, json_t *doc); /* target, Z, q, c */

/* out = softmax(beta (b + lambda A^-1 (u + lambda p))), which may be p; room [2, n]. */
cgam_status cgam_trial_map(const cgam_gate *gate, int64_t n, double beta, double lambda,
                           const double *b, const double *u, const double *p, double *room,
                           double *out);

/* Arrays of [size] per lane, zero, in one block. */
typedef struct cgam_slice {
    double **at;
    int64_t size;
} cgam_slice;
/* Free *slices[0].at with cgam_free. */
cgam_status cgam_trial_room(const cgam_study *study, int count, const cgam_slice *slices);

/* Rows of a matrix as an array of arrays; row i begins at values + i * columns * stride. */
json_t *cgam_trial_rows(const double *values, int64_t rows, int64_t columns, int64_t stride);

#endif
