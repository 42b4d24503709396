/* trainer.h: finds parameters that make the mean loss over examples small.
 *
 * The trainer does not know what the parameters x [params] mean. A problem gives the loss of some of its examples and
 * the gradient; the trainer adds  ridge |x - centre|^2  and lowers the sum, by L-BFGS (liblbfgs) on all examples or by
 * Adam (Kingma and Ba 2015) on shuffled batches. Examples of the stopping part take no part in steps: training ends
 * when their loss has not fallen for some epochs, and its result is the x with their least loss; without a stopping
 * part, the x with the least loss that steps have seen, the ridge included. Examples that are held out are only
 * counted.
 *
 *     cgam_train_split parts;
 *     status = cgam_train_split_new(env, examples, 0.2, 0.1, seed, &parts);
 *     status = cgam_train(env, &problem, &parts, &opts, x, &trained);
 *     ..
 *     cgam_trained_free(env, &trained);
 *     cgam_train_split_free(env, &parts);
 *
 * Same problem, split and options give the same bits, on any number of threads and after any number of interruptions:
 * a journal keeps what a run has computed (every evaluation of L-BFGS, the state of Adam after each epoch). */
#ifndef CGAM_SRC_LAB_LEARN_TRAINER_H
#define CGAM_SRC_LAB_LEARN_TRAINER_H

#include <cgam/base.h>

/* ---- Problems. -------------------------------------------------------------------------------- */
typedef struct cgam_train_problem {
    int64_t params;
    int64_t examples;
    void *user;
    /* *loss = the mean over these examples at x, and unless gradient is NULL its gradient [params], both without the
     * ridge. The order of `index` is that in which sums are to be made. A loss that is not finite ends the training
     * with CGAM_E_VALUE. One call at a time, from the thread that trains. */
    cgam_status (*loss)(void *user, const double *x, int64_t count, const int64_t *index,
                        double *loss, double *gradient);
    /* Called before the first step of an epoch of Adam, which counts from 1; NULL = not called. */
    void (*begin)(void *user, int64_t epoch);
} cgam_train_problem;

/* ---- Parts. ----------------------------------------------------------------------------------- */
/* The numbers 0 .. examples-1, shuffled by the seed: first those for steps, then the stopping part, then those that
 * are held out, each part in rising order. */
typedef struct cgam_train_split {
    int64_t train, stop, held_out;
    int64_t *index; /* [train + stop + held_out] */
} cgam_train_split;

/* held_out: share of all examples, stop: share of the others; both in [0, 1). A share above 0 gives at least one
 * example. CGAM_E_ARG if no example would be left for steps. Free it with cgam_train_split_free, also after a
 * failure. */
CGAM_NODISCARD cgam_status cgam_train_split_new(cgam_env *env, int64_t examples, double held_out,
                                                double stop, uint64_t seed, cgam_train_split *out);
void cgam_train_split_free(cgam_env *env, cgam_train_split *split);

/* ---- Training. -------------------------------------------------------------------------------- */
typedef enum cgam_optimizer { CGAM_OPTIMIZER_LBFGS, CGAM_OPTIMIZER_ADAM } cgam_optimizer;
extern const char *const cgam_optimizer_words[]; /* "lbfgs", "adam", NULL */

typedef enum cgam_train_end {
    CGAM_TRAIN_EPOCHS,     /* all epochs done */
    CGAM_TRAIN_CONVERGED,  /* L-BFGS: the gradient vanishes, or no step lowers the loss any more */
    CGAM_TRAIN_EARLY,      /* the loss of the stopping part did not fall for `patience` epochs */
    CGAM_TRAIN_INTERRUPTED /* stopped on request */
} cgam_train_end;
extern const char
    *const cgam_train_end_words[]; /* "epochs", "converged", "early", "interrupted", NULL */

/* One pass over the examples (Adam), or one iteration (L-BFGS). Losses are means without the ridge; NAN for an empty
 * part. */
typedef struct cgam_epoch {
    double
        loss; /* of the examples for steps: at the end (L-BFGS), or the mean along the epoch (Adam) */
    double stop_loss, held_out_loss; /* at the end */
} cgam_epoch;

typedef struct cgam_trained {
    cgam_train_end end;
    int64_t epochs; /* that were finished */
    int64_t best;   /* the epoch that x is from; 0 = the start */
    int64_t evaluations;
    cgam_epoch before; /* at the start */
    cgam_epoch *epoch; /* [epochs] */
} cgam_trained;
void cgam_trained_free(cgam_env *env, cgam_trained *trained); /* leaves it empty */

typedef struct cgam_train_opts {
    cgam_optimizer optimizer; /* default LBFGS */
    int64_t epochs;           /* at most; default 0: 200 with lbfgs, 20 with adam */
    int64_t batch;            /* examples of a step of adam, default 64 */
    double rate;              /* of adam, > 0, default 1e-2 */
    int64_t patience;         /* epochs; default 10; 0 = never ends early */
    double ridge;             /* >= 0, default 0 */
    int64_t ridged;           /* it applies to the first `ridged` parameters; default -1 = all */
    const double *centre;     /* [ridged], default NULL = zeros */
    uint64_t seed;            /* of the order of batches; default 0 */
    const char *journal;      /* default NULL = none */
    /* Identifies everything else that the losses depend on (cgam_hash of data and options, see journal.h). A journal
     * of another value, or of other options above, is rejected. */
    uint64_t data;
    cgam_progress progress; /* in epochs, the phase shows the loss */
    /* Called with the best x after an epoch that improved it, at most once a second, and at the end, also after an
     * interruption; an error ends the training. Default NULL. */
    cgam_status (*keep)(void *user, const double *x, const cgam_trained *so_far);
    void *user;
} cgam_train_opts;
cgam_train_opts cgam_train_opts_default(void);

/* x [params] holds the start on entry and the best point on return, also after an interruption, a divergence or a
 * failure of the problem; *out then has the epochs that were finished. Fails with
 *   CGAM_E_INTERRUPTED  stopped on request; with a journal the same call continues
 *   CGAM_E_VALUE        diverged; the message says in which epoch and batch
 *   CGAM_E_ARG          options out of range, or the journal is of other data or options.
 * Free *out with cgam_trained_free in any case. opts NULL = defaults. */
CGAM_NODISCARD cgam_status cgam_train(cgam_env *env, const cgam_train_problem *problem,
                                      const cgam_train_split *split, const cgam_train_opts *opts,
                                      double *x, cgam_trained *out);

#endif
