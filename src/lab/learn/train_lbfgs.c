/* train_lbfgs.c: L-BFGS of liblbfgs on all examples, with its own line search.
 *
 * liblbfgs keeps its history to itself, so a journal holds the answers it was given: every loss and gradient. An
 * interrupted run gives it the same answers again, and then computes on. */
#include "base/env.h"
#include "lab/learn/training.h"

#include <lbfgs.h>
#include <math.h>
#include <string.h>

typedef struct descent {
    cgam_training *t;
    double *answer; /* [1 + params] the loss of all examples and its gradient, without the ridge */
    double loss;    /* at the last evaluation */
    cgam_status status;
    bool ends;
} descent;

static cgam_status evaluate(descent *job, const double *x)
{
    cgam_training *t = job->t;
    int64_t size = 1 + t->of->params;
    if (cgam_training_replay(t, CGAM_TRAIN_EVALUATION, size, job->answer)) return CGAM_OK;
    if (cgam_interrupted(t->env)) return CGAM_E_INTERRUPTED;
    cgam_status status =
        t->of->loss(t->of->user, x, t->split->train, t->split->index, job->answer, job->answer + 1);
    if (status == CGAM_OK && !isfinite(job->answer[0]))
        status = cgam_training_diverged(t, t->out->epochs + 1, -1, job->answer[0]);
    return status == CGAM_OK ? cgam_training_record(t, CGAM_TRAIN_EVALUATION, size, job->answer)
                             : status;
}

static lbfgsfloatval_t at_point(void *user, const lbfgsfloatval_t *x, lbfgsfloatval_t *g,
                                const int n, const lbfgsfloatval_t step)
{
    descent *job = user;
    (void)step;
    if (job->status == CGAM_OK) job->status = evaluate(job, x);
    if (job->status != CGAM_OK) { /* after_step ends the run */
        memset(g, 0, (size_t)n * sizeof *g);
        return (double)NAN;
    }
    job->t->out->evaluations++;
    job->loss = job->answer[0];
    memcpy(g, job->answer + 1, (size_t)n * sizeof *g);
    return job->loss + cgam_training_ridge(job->t, x, g);
}

static int after_step(void *user, const lbfgsfloatval_t *x, const lbfgsfloatval_t *g,
                      const lbfgsfloatval_t fx, const lbfgsfloatval_t xnorm,
                      const lbfgsfloatval_t gnorm, const lbfgsfloatval_t step, int n, int k, int ls)
{
    descent *job = user;
    cgam_training *t = job->t;
    cgam_epoch epoch = {.loss = job->loss};
    double losses[2];
    (void)g, (void)xnorm, (void)gnorm, (void)step, (void)n, (void)k, (void)ls;
    if (job->status != CGAM_OK) return 1;
    if (cgam_training_replay(t, CGAM_TRAIN_EPOCH, 2, losses)) {
        epoch.stop_loss = losses[0];
        epoch.held_out_loss = losses[1];
    } else {
        job->status = cgam_training_judge(t, x, &epoch);
        losses[0] = epoch.stop_loss, losses[1] = epoch.held_out_loss;
        if (job->status == CGAM_OK)
            job->status = cgam_training_record(t, CGAM_TRAIN_EPOCH, 2, losses);
    }
    if (job->status == CGAM_OK) job->status = cgam_training_note(t, x, fx, &epoch, &job->ends);
    return job->status != CGAM_OK || job->ends; /* nonzero stops */
}

cgam_status cgam_train_lbfgs(cgam_training *t, const double *start)
{
    int n = (int)t->of->params;
    descent job = {.t = t};
    lbfgs_parameter_t how;
    lbfgs_parameter_init(&how);
    how.max_iterations = (int)t->opts.epochs;
    job.answer = cgam_alloc(t->env, (size_t)n + 1, sizeof *job.answer);
    lbfgsfloatval_t *x = job.answer ? lbfgs_malloc(n) : NULL;
    if (!x) {
        cgam_free(t->env, job.answer);
        return cgam_fail_nomem(t->env, "an optimiser");
    }
    memcpy(x, start, (size_t)n * sizeof *start);
    int ended = lbfgs(n, x, NULL, at_point, after_step, &job, &how);
    lbfgs_free(x);
    cgam_free(t->env, job.answer);
    if (job.status != CGAM_OK) return job.status;
    if (ended == LBFGSERR_OUTOFMEMORY) return cgam_fail_nomem(t->env, "an optimiser");
    /* A line search that finds no lower point is the end that rounding allows. */
    if (!job.ends)
        t->out->end = ended == LBFGSERR_MAXIMUMITERATION ? CGAM_TRAIN_EPOCHS : CGAM_TRAIN_CONVERGED;
    return CGAM_OK;
}
