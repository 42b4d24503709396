/* training.h (inside): a training that runs: what the optimisers share. */
#ifndef CGAM_SRC_LAB_LEARN_TRAINING_H
#define CGAM_SRC_LAB_LEARN_TRAINING_H

#include "lab/journal.h"
#include "lab/learn/trainer.h"

typedef struct cgam_training {
    cgam_env *env;
    const cgam_train_problem *of;
    const cgam_train_split *split;
    cgam_train_opts opts;
    cgam_trained *out;
    int64_t room;       /* of out->epoch */
    cgam_journal *file; /* NULL = none */
    size_t at;          /* the next record of an earlier run */
    bool read;          /* all of those have been used */
    double *best;       /* [params] */
    double
        least; /* what was least there: the stopping part's loss, or that of all with the ridge */
    double began, kept; /* seconds of the clock: the first new epoch, the last call of opts.keep */
    double pause;       /* at least so many between two of those */
    int64_t done_before;
    bool unsaved; /* best has changed since that call */
} cgam_training;

/* Kinds of records: an evaluation of L-BFGS, an epoch of L-BFGS, the state of Adam after an epoch. */
enum { CGAM_TRAIN_EVALUATION = 1, CGAM_TRAIN_EPOCH, CGAM_TRAIN_ADAM };

/* Copies the next record of an earlier run if it is of this kind and size [count]; false: none is left. */
bool cgam_training_replay(cgam_training *t, uint64_t kind, int64_t count, double *values);
cgam_status cgam_training_record(cgam_training *t, uint64_t kind, int64_t count,
                                 const double *values);

/* Adds ridge |x - centre|^2 and its gradient. */
double cgam_training_ridge(const cgam_training *t, const double *x, double *gradient);
/* The losses of the stopping part and of the examples that are held out. */
cgam_status cgam_training_judge(const cgam_training *t, const double *x, cgam_epoch *epoch);
/* CGAM_E_VALUE, with the place. epoch 0: the start; batch 0: the whole epoch, below 0: an iteration of L-BFGS. */
cgam_status cgam_training_diverged(const cgam_training *t, int64_t epoch, int64_t batch,
                                   double loss);
/* Notes a finished epoch at x. total: the loss with the ridge. *ends: training stops early. */
cgam_status cgam_training_note(cgam_training *t, const double *x, double total,
                               const cgam_epoch *epoch, bool *ends);
/* Reports progress: `epochs` done, a fraction allowed, and the loss. */
void cgam_training_show(const cgam_training *t, double epochs, double loss);

cgam_status cgam_train_lbfgs(cgam_training *t, const double *start);
cgam_status cgam_train_adam(cgam_training *t, const double *start);

#endif
