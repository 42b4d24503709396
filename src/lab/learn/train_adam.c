/* train_adam.c: Adam (Kingma and Ba 2015, algorithm 1) on shuffled batches.
 *
 *   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   x <- x - rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)
 *
 * The order of the examples in epoch e is that of stream e of the seed, so an epoch can be computed from the state at
 * its beginning alone: a journal holds that state. */
#include "base/alloc.h"
#include "lab/learn/training.h"

#include <math.h>
#include <string.h>

static const double B1 = 0.9, B2 = 0.999, EPS = 1e-8;
enum { ORDER_STREAM = 16 }; /* + the epoch */

/* The state after an epoch, as it is in the journal: the losses, then x, m and v. */
enum { LOSSES = 4 };
typedef struct adam {
    cgam_training *t;
    int64_t *order;    /* [train] */
    double *state;     /* [LOSSES + 3 params] */
    double *x, *m, *v; /* in state */
    double *g;         /* [params] */
    int64_t steps;
} adam;

static void step(adam *a)
{
    double rate = a->t->opts.rate, one = 1 - pow(B1, (double)++a->steps),
           two = 1 - pow(B2, (double)a->steps);
    for (int64_t i = 0; i < a->t->of->params; i++) {
        a->m[i] = B1 * a->m[i] + (1 - B1) * a->g[i];
        a->v[i] = B2 * a->v[i] + (1 - B2) * a->g[i] * a->g[i];
        a->x[i] -= rate * (a->m[i] / one) / (sqrt(a->v[i] / two) + EPS);
    }
}

static void shuffle(adam *a, int64_t epoch)
{
    const cgam_train_split *s = a->t->split;
    cgam_rng rng = cgam_rng_stream(a->t->opts.seed, (uint64_t)(ORDER_STREAM + epoch));
    for (int64_t i = 0; i < s->train; i++) {
        int64_t j = cgam_rng_below(&rng, i + 1);
        a->order[i] = a->order[j];
        a->order[j] = s->index[i];
    }
}

/* One epoch; *loss: the mean along it. */
static cgam_status run_epoch(adam *a, int64_t epoch, double *loss)
{
    cgam_training *t = a->t;
    int64_t train = t->split->train, most = t->opts.batch;
    double sum = 0;
    shuffle(a, epoch);
    if (t->of->begin) t->of->begin(t->of->user, epoch + 1);
    for (int64_t at = 0; at < train; at += most) {
        int64_t count = train - at < most ? train - at : most;
        double mean;
        if (cgam_interrupted(t->env)) return CGAM_E_INTERRUPTED;
        cgam_status status = t->of->loss(t->of->user, a->x, count, a->order + at, &mean, a->g);
        if (status != CGAM_OK) return status;
        t->out->evaluations++;
        if (!isfinite(mean)) return cgam_training_diverged(t, epoch + 1, at / most + 1, mean);
        sum += mean * (double)count;
        cgam_training_ridge(t, a->x, a->g);
        step(a);
        cgam_training_show(t, (double)epoch + (double)(at + count) / (double)train,
                           sum / (double)(at + count));
    }
    *loss = sum / (double)train;
    return CGAM_OK;
}

cgam_status cgam_train_adam(cgam_training *t, const double *start)
{
    int64_t params = t->of->params, size = LOSSES + 3 * params;
    int64_t batches = (t->split->train + t->opts.batch - 1) / t->opts.batch;
    adam a = {.t = t};
    bool ends = false;
    cgam_status status =
        cgam_alloc_all(t->env, "the state of Adam", CGAM_ARRAY(a.order, t->split->train),
                       CGAM_ZEROS(a.state, size), CGAM_ARRAY(a.g, params));
    if (status == CGAM_OK) {
        a.x = a.state + LOSSES;
        a.m = a.x + params;
        a.v = a.m + params;
        memcpy(a.x, start, (size_t)params * sizeof *start);
    }
    for (int64_t e = 0; e < t->opts.epochs && status == CGAM_OK && !ends; e++) {
        double *l = a.state;
        cgam_epoch epoch;
        if (cgam_training_replay(t, CGAM_TRAIN_ADAM, size, a.state)) {
            epoch = (cgam_epoch){l[0], l[1], l[2]};
            a.steps += batches;
            t->out->evaluations += batches;
        } else {
            status = run_epoch(&a, e, &epoch.loss);
            if (status == CGAM_OK) status = cgam_training_judge(t, a.x, &epoch);
            if (status != CGAM_OK) break;
            l[0] = epoch.loss, l[1] = epoch.stop_loss, l[2] = epoch.held_out_loss;
            l[3] = epoch.loss + cgam_training_ridge(t, a.x, NULL);
            status = cgam_training_record(t, CGAM_TRAIN_ADAM, size, a.state);
        }
        if (status == CGAM_OK) status = cgam_training_note(t, a.x, l[3], &epoch, &ends);
    }
    cgam_free_all(t->env, a.order, a.state, a.g);
    return status;
}
