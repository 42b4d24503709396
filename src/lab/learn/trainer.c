/* trainer.c: parts, epochs, the end, and what is kept of a training. */
#include "lab/learn/trainer.h"

#include "base/alloc.h"
#include "lab/learn/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cgam_optimizer_words[] = {"lbfgs", "adam", NULL};
const char *const cgam_train_end_words[] = {"epochs", "converged", "early", "interrupted", NULL};

enum { EPOCHS_LBFGS = 200, EPOCHS_ADAM = 20, SPLIT_STREAM = 1 };
static const double KEEP_SECONDS = 1, KEEP_SHARE = 20; /* at least, and times what it took */
/* A mean loss above this many times the one at the start, and above this, is a divergence. */
static const double DIVERGED = 100;

cgam_train_opts cgam_train_opts_default(void)
{
    return (cgam_train_opts){.batch = 64, .rate = 1e-2, .patience = 10, .ridged = -1};
}

/* ---- Parts. ----------------------------------------------------------------------------------- */
static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t share_of(int64_t count, double share)
{
    if (!(share > 0)) return 0;
    int64_t part = (int64_t)(share * (double)count);
    return part < 1 ? 1 : part;
}

cgam_status cgam_train_split_new(cgam_env *env, int64_t examples, double held_out, double stop,
                                 uint64_t seed, cgam_train_split *out)
{
    *out = (cgam_train_split){0};
    if (!(held_out >= 0 && held_out < 1) || !(stop >= 0 && stop < 1))
        return cgam_fail(env, CGAM_E_ARG, "the share to hold out is %g, it must be in [0, 1)",
                         held_out >= 0 && held_out < 1 ? stop : held_out);
    out->held_out = share_of(examples, held_out);
    out->stop = share_of(examples - out->held_out, stop);
    out->train = examples - out->held_out - out->stop;
    if (examples < 1 || out->train < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "%lld examples leave none to learn from: %lld are held out and %lld "
                         "decide when to stop",
                         (long long)examples, (long long)out->held_out, (long long)out->stop);
    out->index = cgam_alloc(env, (size_t)examples, sizeof *out->index);
    if (!out->index) return cgam_fail_nomem(env, "the parts of the examples");
    cgam_rng rng = cgam_rng_stream(seed, SPLIT_STREAM);
    for (int64_t i = 0; i < examples; i++) {
        int64_t j = cgam_rng_below(&rng, i + 1);
        out->index[i] = out->index[j];
        out->index[j] = i;
    }
    int64_t *part = out->index;
    qsort(part, (size_t)out->train, sizeof *part, by_number);
    qsort(part + out->train, (size_t)out->stop, sizeof *part, by_number);
    qsort(part + out->train + out->stop, (size_t)out->held_out, sizeof *part, by_number);
    return CGAM_OK;
}

void cgam_train_split_free(cgam_env *env, cgam_train_split *split)
{
    cgam_free(env, split->index);
    *split = (cgam_train_split){0};
}

void cgam_trained_free(cgam_env *env, cgam_trained *trained)
{
    cgam_free(env, trained->epoch);
    *trained = (cgam_trained){0};
}

/* ---- Records. --------------------------------------------------------------------------------- */
bool cgam_training_replay(cgam_training *t, uint64_t kind, int64_t count, double *values)
{
    cgam_record r;
    if (t->read || !t->file) return false;
    size_t at = t->at;
    bool found = cgam_journal_next(t->file, &at, &r);
    if (!found || r.key != kind || r.size != (size_t)count * sizeof *values) {
        t->read = true; /* a run that was stopped between two records, or the end */
        return false;
    }
    memcpy(values, r.bytes, r.size);
    t->at = at;
    return true;
}

cgam_status cgam_training_record(cgam_training *t, uint64_t kind, int64_t count,
                                 const double *values)
{
    if (!t->file) return CGAM_OK;
    return cgam_journal_add(t->file, (cgam_record){kind, (size_t)count * sizeof *values, values});
}

/* Everything that the numbers depend on, except how long the training lasts. */
static uint64_t fingerprint(const cgam_training *t, const double *x)
{
    const cgam_train_opts *o = &t->opts;
    const cgam_train_split *s = t->split;
    static const char what[] = "training 1";
    bool adam = o->optimizer == CGAM_OPTIMIZER_ADAM;
    int64_t numbers[] = {t->of->params, s->train,         s->stop,
                         s->held_out,   o->optimizer,     adam ? o->batch : 0,
                         o->ridged,     o->centre != NULL};
    double reals[] = {adam ? o->rate : 0, o->ridge};
    uint64_t h = cgam_hash(CGAM_HASH, what, sizeof what);
    h = cgam_hash(h, &o->data, sizeof o->data);
    h = cgam_hash(h, &o->seed, sizeof o->seed);
    h = cgam_hash(h, numbers, sizeof numbers);
    h = cgam_hash(h, reals, sizeof reals);
    h = cgam_hash(h, s->index, (size_t)(s->train + s->stop + s->held_out) * sizeof *s->index);
    if (o->centre) h = cgam_hash(h, o->centre, (size_t)o->ridged * sizeof *o->centre);
    return cgam_hash(h, x, (size_t)t->of->params * sizeof *x);
}

/* ---- Losses. ---------------------------------------------------------------------------------- */
double cgam_training_ridge(const cgam_training *t, const double *x, double *gradient)
{
    double sum = 0, ridge = t->opts.ridge;
    const double *centre = t->opts.centre;
    for (int64_t i = 0; ridge > 0 && i < t->opts.ridged; i++) {
        double away = x[i] - (centre ? centre[i] : 0);
        sum += away * away;
        if (gradient) gradient[i] += 2 * ridge * away;
    }
    return ridge * sum;
}

static cgam_status part_loss(const cgam_training *t, const double *x, int64_t from, int64_t count,
                             double *loss)
{
    *loss = NAN;
    if (count == 0) return CGAM_OK;
    return t->of->loss(t->of->user, x, count, t->split->index + from, loss, NULL);
}

cgam_status cgam_training_judge(const cgam_training *t, const double *x, cgam_epoch *epoch)
{
    const cgam_train_split *s = t->split;
    cgam_status status = part_loss(t, x, s->train, s->stop, &epoch->stop_loss);
    if (status != CGAM_OK) return status;
    return part_loss(t, x, s->train + s->stop, s->held_out, &epoch->held_out_loss);
}

cgam_status cgam_training_diverged(const cgam_training *t, int64_t epoch, int64_t batch,
                                   double loss)
{
    if (epoch == 0)
        return cgam_fail(t->env, CGAM_E_VALUE, "the loss at the start is %g: it must be finite",
                         loss);
    if (batch < 0)
        return cgam_fail(t->env, CGAM_E_VALUE,
                         "training diverged: the loss is %g in iteration %lld of lbfgs", loss,
                         (long long)epoch);
    char place[32] = "";
    if (batch > 0) snprintf(place, sizeof place, ", batch %lld", (long long)batch);
    return cgam_fail(t->env, CGAM_E_VALUE,
                     "training diverged: the loss is %g in epoch %lld%s, at rate %g; use a smaller "
                     "rate",
                     loss, (long long)epoch, place, t->opts.rate);
}

/* ---- Epochs. ---------------------------------------------------------------------------------- */
void cgam_training_show(const cgam_training *t, double epochs, double loss)
{
    char phase[64];
    double gone = cgam_clock() - t->began, made = epochs - (double)t->done_before;
    double left = (double)t->opts.epochs - epochs;
    snprintf(phase, sizeof phase, "training, loss %.4g", loss);
    cgam_progress_at at = {.phase = phase,
                           .done = epochs,
                           .total = (double)t->opts.epochs,
                           .unit = "epochs",
                           .seconds_left = made > 0 ? gone * left / made : (double)NAN};
    cgam_progress_tell(&t->opts.progress, at);
}

/* Gives the best x to the caller's function. */
static cgam_status keep_best(cgam_training *t)
{
    if (!t->opts.keep || !t->unsaved) return CGAM_OK;
    double now = cgam_clock();
    t->unsaved = false;
    cgam_status status = t->opts.keep(t->opts.user, t->best, t->out);
    t->kept = cgam_clock();
    t->pause = fmax(KEEP_SECONDS, KEEP_SHARE * (t->kept - now));
    return status;
}

cgam_status cgam_training_note(cgam_training *t, const double *x, double total,
                               const cgam_epoch *epoch, bool *ends)
{
    cgam_trained *out = t->out;
    double score = t->split->stop > 0 ? epoch->stop_loss : total;
    cgam_status status = cgam_grow(t->env, "epochs", out->epoch, (size_t)out->epochs, &t->room);
    *ends = false;
    if (status != CGAM_OK) return status;
    out->epoch[out->epochs++] = *epoch;
    if (score < t->least) {
        t->least = score;
        out->best = out->epochs;
        t->unsaved = true;
        memcpy(t->best, x, (size_t)t->of->params * sizeof *x);
    }
    if (!t->file || t->read) cgam_training_show(t, (double)out->epochs, epoch->loss);
    else t->done_before = out->epochs, t->began = cgam_clock();
    if (!(fabs(epoch->loss) <= DIVERGED * (fabs(out->before.loss) + 1)))
        return cgam_training_diverged(
            t, out->epochs, t->opts.optimizer == CGAM_OPTIMIZER_ADAM ? 0 : -1, epoch->loss);
    *ends =
        t->opts.patience > 0 && t->split->stop > 0 && out->epochs - out->best >= t->opts.patience;
    if (*ends) out->end = CGAM_TRAIN_EARLY;
    return cgam_clock() - t->kept >= t->pause ? keep_best(t) : CGAM_OK;
}

/* ---- The whole. ------------------------------------------------------------------------------- */
static cgam_status check_opts(const cgam_training *t)
{
    const cgam_train_opts *o = &t->opts;
    cgam_env *env = t->env;
    if ((unsigned)o->optimizer > CGAM_OPTIMIZER_ADAM)
        return cgam_fail(env, CGAM_E_ARG, "invalid optimizer %d (valid: 0 to %d)",
                         (int)o->optimizer, CGAM_OPTIMIZER_ADAM);
    if (o->epochs < 0 || o->epochs > INT32_MAX)
        return cgam_fail(env, CGAM_E_ARG, "epochs is %lld, it must be from 0 to %d",
                         (long long)o->epochs, INT32_MAX);
    if (o->batch < 1)
        return cgam_fail(env, CGAM_E_ARG, "batch is %lld, it must be 1 or more",
                         (long long)o->batch);
    if (!(o->rate > 0 && isfinite(o->rate)))
        return cgam_fail(env, CGAM_E_ARG, "rate is %g, it must be above 0", o->rate);
    if (!(o->ridge >= 0 && isfinite(o->ridge)))
        return cgam_fail(env, CGAM_E_ARG, "ridge is %g, it must be 0 or more", o->ridge);
    if (o->patience < 0)
        return cgam_fail(env, CGAM_E_ARG, "patience is %lld, it must be 0 or more",
                         (long long)o->patience);
    if (t->of->params < 1 || t->of->params > INT32_MAX / 2)
        return cgam_fail(env, CGAM_E_ARG, "%lld parameters are not possible (valid: 1 to %d)",
                         (long long)t->of->params, INT32_MAX / 2);
    return CGAM_OK;
}

/* The losses at the start, from the journal or computed. */
static cgam_status judge_start(cgam_training *t, const double *x)
{
    cgam_epoch *e = &t->out->before;
    double losses[3];
    if (cgam_training_replay(t, CGAM_TRAIN_EPOCH, 3, losses)) {
        *e = (cgam_epoch){losses[0], losses[1], losses[2]};
    } else {
        cgam_status status = part_loss(t, x, 0, t->split->train, &e->loss);
        if (status == CGAM_OK) status = cgam_training_judge(t, x, e);
        if (status == CGAM_OK && !isfinite(e->loss))
            status = cgam_training_diverged(t, 0, 0, e->loss);
        memcpy(losses, (double[]){e->loss, e->stop_loss, e->held_out_loss}, sizeof losses);
        if (status == CGAM_OK) status = cgam_training_record(t, CGAM_TRAIN_EPOCH, 3, losses);
        if (status != CGAM_OK) return status;
    }
    t->least = t->split->stop > 0 ? e->stop_loss : e->loss + cgam_training_ridge(t, x, NULL);
    cgam_training_show(t, 0, e->loss);
    return CGAM_OK;
}

cgam_status cgam_train(cgam_env *env, const cgam_train_problem *problem,
                       const cgam_train_split *split, const cgam_train_opts *opts, double *x,
                       cgam_trained *out)
{
    double now = cgam_clock();
    *out = (cgam_trained){.before = {NAN, NAN, NAN}};
    cgam_training t = {.env = env,
                       .of = problem,
                       .split = split,
                       .opts = opts ? *opts : cgam_train_opts_default(),
                       .out = out,
                       .began = now,
                       .kept = now,
                       .pause = KEEP_SECONDS};
    bool adam = t.opts.optimizer == CGAM_OPTIMIZER_ADAM;
    if (t.opts.epochs == 0) t.opts.epochs = adam ? EPOCHS_ADAM : EPOCHS_LBFGS;
    if (t.opts.ridged < 0 || t.opts.ridged > problem->params) t.opts.ridged = problem->params;
    cgam_status status = check_opts(&t);
    if (status != CGAM_OK) return status;
    size_t bytes = (size_t)problem->params * sizeof *x;
    t.best = cgam_alloc(env, (size_t)problem->params, sizeof *x);
    if (!t.best) return cgam_fail_nomem(env, "parameters");
    memcpy(t.best, x, bytes);
    if (t.opts.journal)
        status = cgam_journal_resume(env, t.opts.journal, fingerprint(&t, x), &t.file);
    if (status == CGAM_OK) status = judge_start(&t, x);
    if (status == CGAM_OK) status = (adam ? cgam_train_adam : cgam_train_lbfgs)(&t, x);
    if (status == CGAM_E_INTERRUPTED) out->end = CGAM_TRAIN_INTERRUPTED;
    if (status == CGAM_OK) {
        t.unsaved = true; /* the end is new in any case */
        status = keep_best(&t);
    } else if (status == CGAM_E_INTERRUPTED && keep_best(&t) != CGAM_OK) {
        status = CGAM_E_INTERRUPTED;
    }
    memcpy(x, t.best, bytes);
    cgam_free(env, t.best);
    cgam_journal_close(t.file);
    return status;
}
