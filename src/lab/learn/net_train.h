/* net_train.h: learns the weights of a network in a JSON file from rows of data.
 *
 * An example is one row. It fills the layer that takes the data, which is clamped, unless it is also the layer that is
 * read: then the row is its start. Other layers start as the file says, and those that the file clamps at time 0 stay.
 * Losses, of the activations a of the layer that is read:
 *
 *   denoise    the mean of (a - row)^2 over its numbers, where noise was added to the row that the network saw
 *   classify   -log a[label] if a is a softmax, else -log softmax(a)[label]
 *
 * Weights whose numbers in the file are normalised ("normalize": true) keep rows of norm 1: what is trained is a matrix
 * V with W = V / |V| by rows, which starts as the file has it before it is normalised. Numbers that must be positive are trained by their logarithm. */
#ifndef CGAM_SRC_LAB_LEARN_NET_TRAIN_H
#define CGAM_SRC_LAB_LEARN_NET_TRAIN_H

#include "lab/learn/trainer.h"
#include "lab/net_file.h"

#include <cgam/io.h>

typedef enum cgam_net_target { CGAM_NET_DENOISE, CGAM_NET_CLASSIFY } cgam_net_target;
extern const char *const cgam_net_target_words[]; /* "denoise", "classify", NULL */

/* Rows as they are stored; each is divided by `divide`, then by its norm if `normalize`. */
typedef struct cgam_net_data {
    const cgam_array *x;  /* [n, ..] */
    const int64_t *label; /* [n], or NULL */
    bool normalize;
    double divide; /* 0 = 1 */
} cgam_net_data;

typedef struct cgam_net_train_opts {
    const char *clamp, *read; /* layers */
    int count;                /* of names to learn, as for cgam_net_params_new */
    const char *const *learn;
    cgam_net_target target;
    double
        noise; /* standard deviation, of each number, drawn anew in each epoch; classify is judged without */
    cgam_net_learn_opts way; /* clamped is set by the training */
    double held_out, stop;   /* shares, see trainer.h */
    cgam_train_opts train;   /* data, keep and user are set by the training */
    const char *out;         /* NET2.json; its weights go beside it, as .safetensors */
} cgam_net_train_opts;

typedef struct cgam_net_judged {
    int64_t examples;     /* 0: none, and the rest is NAN */
    double loss, loss_se; /* mean, and its standard error */
    double accuracy, se;  /* of classify; else NAN */
} cgam_net_judged;

typedef struct cgam_net_trained {
    int64_t params;
    cgam_trained trained;
    cgam_net_judged before, train, held_out,
        test; /* before: the start, on the test data, else on those held out, else
                                                      on those for steps */
    cgam_net_learn_report
        worst;      /* over all batches: the most steps, the largest residual, the least margin */
    double seconds; /* of the training alone */
} cgam_net_trained;
void cgam_net_trained_free(cgam_env *env, cgam_net_trained *trained); /* leaves it empty */

/* path: the file that `file` was read from. test may be NULL. Free *out in any case. Errors of cgam_train and of
 * cgam_net_learner_run; CGAM_E_ARG and CGAM_E_SHAPE if layers, names and data do not fit together. After
 * CGAM_E_INTERRUPTED the best so far is in opts->out. */
CGAM_NODISCARD cgam_status cgam_net_train(cgam_env *env, const char *path, cgam_net_file *file,
                                          const cgam_net_data *data, const cgam_net_data *test,
                                          const cgam_net_train_opts *opts, cgam_net_trained *out);

#endif
