/* memory_fit.c: the loss of a memory over queries, for the trainer, and how well the result recalls. */
#include "lab/learn/memory_fit.h"

#include "base/alloc.h"
#include "lab/journal.h"
#include "lab/learn/model.h"
#include "memory/bank.h"

#include <math.h>
#include <string.h>

static const double STOP = 0.1; /* of the queries that are not held out */

cgam_memory_fit_opts cgam_memory_fit_opts_default(void)
{
    cgam_memory_fit_opts o = {.recall = cgam_recall_opts_default(),
                              .learn = CGAM_LEARN_P,
                              .loss = CGAM_LOSS_NLL,
                              .margin = 1,
                              .held_out = 0.2,
                              .train = cgam_train_opts_default()};
    o.train.ridge = 1e-3;
    return o;
}

void cgam_memory_fit_free(cgam_env *env, cgam_memory_fit *fit)
{
    cgam_trained_free(env, &fit->trained);
    cgam_train_split_free(env, &fit->split);
    *fit = (cgam_memory_fit){0};
}

typedef struct fitting {
    cgam_env *env;
    const cgam_examples *data;
    const cgam_memory_fit_opts *opts;
    cgam_memory_fit *out;
    cgam_model model;
    cgam_gate *gate; /* if neither Z nor alpha is learned */
    double *aims;    /* [queries, d] of loss readout: rows of the bank as given */
    /* A batch. */
    double *q, *c, *x, *weight, *loss; /* [queries, ..] */
    int64_t *target;
    bool *left_out;
    cgam_result *results;
} fitting;

static void fitting_free(fitting *f)
{
    cgam_gate_free(f->gate);
    cgam_model_free(&f->model);
    cgam_free_all(f->env, f->aims, f->q, f->c, f->x, f->weight, f->loss, f->target, f->left_out,
                  f->results);
}

static cgam_status fitting_new(fitting *f)
{
    const cgam_examples *data = f->data;
    size_t n = (size_t)data->queries, d = (size_t)f->model.d;
    bool readout = f->opts->loss == CGAM_LOSS_READOUT;
    cgam_status status =
        cgam_alloc_all(f->env, "a batch of queries", CGAM_ARRAY(f->q, n * d),
                       CGAM_ARRAY(f->c, n * (size_t)f->model.d_c),
                       CGAM_ARRAY(f->x, readout ? n * d : 1), CGAM_ARRAY(f->weight, n),
                       CGAM_ARRAY(f->loss, n), CGAM_ARRAY(f->target, n), CGAM_ARRAY(f->left_out, n),
                       CGAM_ARRAY(f->results, n), CGAM_ARRAY(f->aims, readout ? n * d : 1));
    for (size_t k = 0; k < n && readout && status == CGAM_OK; k++)
        status = cgam_bank_row(f->model.bank, cgam_bank_place(f->model.bank, data->target[k]),
                               f->aims + k * d);
    unsigned moves = CGAM_LEARN_Z | CGAM_LEARN_ALPHA;
    if (status == CGAM_OK && !(f->model.learn & moves))
        status = cgam_gate_new(f->model.bank, f->opts->recall.alpha, NULL, &f->gate);
    return status;
}

/* ---- A recall at the current parameters. ------------------------------------------------------- */
typedef struct memory {
    cgam_bank *bank; /* of Z; NULL: the one given */
    cgam_recall *plan;
} memory;

static void memory_free(memory *m)
{
    cgam_recall_free(m->plan);
    cgam_bank_free(m->bank);
}

static cgam_status memory_new(const fitting *f, memory *out)
{
    const cgam_model *m = &f->model;
    cgam_recall_opts o = m->opts;
    cgam_status status = CGAM_OK;
    *out = (memory){0};
    if (m->Z) status = cgam_bank_new(f->env, m->Z, CGAM_F64, m->n, m->d, NULL, &out->bank);
    o.gate = f->gate;
    return status == CGAM_OK ? cgam_recall_new(m->Z ? out->bank : m->bank, &o, &out->plan) : status;
}

/* Gathers the queries `index`. */
static cgam_recall_in gather(const fitting *f, int64_t count, const int64_t *index)
{
    const cgam_examples *data = f->data;
    int64_t d = f->model.d, d_c = f->model.d_c;
    for (int64_t k = 0; k < count; k++) {
        memcpy(f->q + k * d, data->q + index[k] * d, (size_t)d * sizeof *f->q);
        if (data->c && data->c_per_query)
            memcpy(f->c + k * d_c, data->c + index[k] * d_c, (size_t)d_c * sizeof *f->c);
        if (f->opts->loss == CGAM_LOSS_READOUT)
            memcpy(f->x + k * d, f->aims + index[k] * d, (size_t)d * sizeof *f->x);
        f->target[k] = data->target[index[k]];
        f->weight[k] = 1 / (double)count;
    }
    return (cgam_recall_in){.queries = count,
                            .q = f->q,
                            .c = data->c && data->c_per_query ? f->c : data->c,
                            .c_per_query = data->c_per_query,
                            .target = f->target};
}

static cgam_status loss_of(void *user, const double *x, int64_t count, const int64_t *index,
                           double *loss, double *gradient)
{
    fitting *f = user;
    cgam_model *m = &f->model;
    memory at;
    cgam_model_take(m, x);
    cgam_status status = memory_new(f, &at);
    cgam_gradient_in in = {.recall = gather(f, count, index), .weight = f->weight, .x = f->x};
    cgam_gradient_opts how = cgam_gradient_opts_default();
    cgam_gradient out = {.loss = f->loss, .left_out = f->left_out};
    how.loss = f->opts->loss;
    how.margin = f->opts->margin;
    how.leave_out = true;
    if (gradient) {
        out.P = m->dP, out.W = m->dW, out.Z = m->dZ;
        if (m->learn & CGAM_LEARN_ALPHA) out.alpha = &m->dalpha;
        if (m->learn & CGAM_LEARN_BETA) out.beta = &m->dbeta;
        if (m->learn & CGAM_LEARN_LAMBDA) out.lambda = &m->dlambda;
    }
    if (status == CGAM_OK) status = cgam_recall_gradient(at.plan, &in, &how, &out);
    int64_t left = 0;
    *loss = 0;
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        *loss += f->loss[k] / (double)count;
        left += gradient && f->left_out[k];
    }
    f->out->left_out += left;
    if (status == CGAM_OK && gradient && left == count && isfinite(*loss))
        status =
            cgam_fail(f->env, CGAM_E_NOT_POSITIVE,
                      "none of %lld queries has a gradient: their recalls are at a fold or did "
                      "not settle; a smaller lambda or beta keeps them away from it",
                      (long long)count);
    if (status == CGAM_OK && gradient) cgam_model_pull(m, x, gradient);
    memory_free(&at);
    return status;
}

/* ---- Judging. ---------------------------------------------------------------------------------- */
static cgam_status judge(const fitting *f, int64_t from, int64_t count, cgam_judged *out)
{
    memory at;
    *out = (cgam_judged){.queries = count, .accuracy = NAN, .se = NAN, .nll = NAN, .nll_se = NAN};
    if (count == 0) return CGAM_OK;
    cgam_status status = memory_new(f, &at);
    cgam_recall_in in = gather(f, count, f->out->split.index + from);
    cgam_recall_out to = {.results = f->results};
    if (status == CGAM_OK) status = cgam_recall_run(at.plan, &in, &to);
    memory_free(&at);
    if (status != CGAM_OK) return status;
    double right = 0, sum = 0, squares = 0, n = (double)count;
    for (int64_t k = 0; k < count; k++) {
        right += f->results[k].winner == f->target[k];
        sum -= f->results[k].log_p;
    }
    out->accuracy = right / n;
    out->nll = sum / n;
    for (int64_t k = 0; k < count; k++) {
        double away = -f->results[k].log_p - out->nll;
        squares += away * away;
    }
    if (count > 1) {
        out->se = sqrt(out->accuracy * (1 - out->accuracy) / n);
        out->nll_se = sqrt(squares / (n * (n - 1)));
    }
    return CGAM_OK;
}

/* ---- The fit. ---------------------------------------------------------------------------------- */
static cgam_status keep(void *user, const double *x, const cgam_trained *so_far)
{
    fitting *f = user;
    (void)so_far;
    if (!f->opts->out) return CGAM_OK;
    cgam_model_take(&f->model, x);
    return cgam_model_write(&f->model, f->opts->out);
}

/* Identifies bank, examples and options in a journal. The bank by the scores of one fixed vector: any change of a row
 * changes its score. */
static cgam_status fingerprint(const fitting *f, uint64_t *out)
{
    const cgam_examples *data = f->data;
    const cgam_model *m = &f->model;
    const cgam_recall_opts *r = &f->opts->recall;
    int64_t numbers[] = {m->n,    m->d,          m->d_c,        m->rank,         m->learn,
                         r->mode, f->opts->loss, data->queries, data->c != NULL, data->c_per_query};
    double reals[] = {r->alpha, r->beta, r->lambda, r->entmax, f->opts->margin}, *x, *scores;
    size_t queries = (size_t)data->queries, width = sizeof *x;
    cgam_status status =
        cgam_alloc_all(f->env, "a fingerprint", CGAM_ARRAY(x, m->d), CGAM_ARRAY(scores, m->n));
    cgam_rng rng = cgam_rng_stream(0, 0);
    for (int64_t j = 0; j < m->d && status == CGAM_OK; j++) x[j] = cgam_rng_normal(&rng);
    if (status == CGAM_OK) status = cgam_bank_score(m->bank, x, scores);
    if (status == CGAM_OK) {
        uint64_t h = cgam_hash(CGAM_HASH, numbers, sizeof numbers);
        h = cgam_hash(h, reals, sizeof reals);
        h = cgam_hash(h, scores, (size_t)m->n * width);
        h = cgam_hash(h, data->q, queries * (size_t)m->d * width);
        if (data->c)
            h = cgam_hash(h, data->c, (data->c_per_query ? queries : 1) * (size_t)m->d_c * width);
        h = cgam_hash(h, data->target, queries * sizeof *data->target);
        if (m->start) h = cgam_hash(h, m->start, (size_t)((m->W ? m->n : m->d) * m->d_c) * width);
        *out = h;
    }
    cgam_free_all(f->env, x, scores);
    return status;
}

static cgam_status check_examples(const cgam_bank *bank, const cgam_examples *data,
                                  const cgam_memory_fit_opts *o)
{
    cgam_env *env = bank->env;
    cgam_bank_info info = cgam_bank_describe(bank);
    unsigned by_context = CGAM_LEARN_P | CGAM_LEARN_W;
    if (data->queries < 1) return cgam_fail(env, CGAM_E_ARG, "there are no queries to learn from");
    for (int64_t k = 0; k < data->queries; k++)
        if (data->target[k] < 0 || data->target[k] >= info.whole ||
            cgam_bank_place(bank, data->target[k]) < 0)
            return cgam_fail(env, CGAM_E_ARG,
                             "target %lld of query %lld: no such memory (valid: 0 to %lld)",
                             (long long)data->target[k], (long long)k, (long long)info.whole - 1);
    if ((o->learn & by_context) && !data->c)
        return cgam_fail(env, CGAM_E_ARG,
                         "learn %s requires contexts: without them it has no effect",
                         o->learn & CGAM_LEARN_P ? "P" : "W");
    if ((o->learn & CGAM_LEARN_Z) && info.whole != info.n)
        return cgam_fail(env, CGAM_E_ARG,
                         "learn Z requires all memories of the bank: it has %lld of %lld",
                         (long long)info.n, (long long)info.whole);
    if ((unsigned)o->loss >= CGAM_LOSS_OWN)
        return cgam_fail(env, CGAM_E_ARG, "invalid loss %d (valid: 0 to %d)", (int)o->loss,
                         CGAM_LOSS_MARGIN);
    return CGAM_OK;
}

/* Trains from x0, and judges start and result. */
static cgam_status learn(fitting *f, double *x)
{
    cgam_memory_fit *out = f->out;
    cgam_train_split *s = &out->split;
    cgam_train_opts train = f->opts->train;
    cgam_train_problem problem = {
        .params = f->model.params, .examples = f->data->queries, .user = f, .loss = loss_of};
    double *centre = NULL;
    /* before: the numbers as given, P, W and Z from x */
    cgam_recall_opts given = f->opts->recall;
    cgam_model_take(&f->model, x);
    f->model.opts.alpha = given.alpha;
    f->model.opts.beta = given.beta;
    f->model.opts.lambda = given.lambda;
    cgam_status status = judge(f, s->train + s->stop, s->held_out, &out->before);
    if (status == CGAM_OK) status = fingerprint(f, &train.data);
    train.ridged = f->model.tensors;
    if (status == CGAM_OK && train.ridged > 0) {
        centre = cgam_zalloc(f->env, (size_t)train.ridged, sizeof *centre);
        if (!centre) return cgam_fail_nomem(f->env, "parameters");
        int64_t from = f->model.rank > 0 ? f->model.at_Z : 0; /* U and V are pulled to 0 */
        memcpy(centre + from, x + from, (size_t)(train.ridged - from) * sizeof *x);
        train.centre = centre;
    }
    train.keep = keep;
    train.user = f;
    if (status == CGAM_OK) status = cgam_train(f->env, &problem, s, &train, x, &out->trained);
    cgam_free(f->env, centre);
    if (status != CGAM_OK) return status;
    cgam_model_take(&f->model, x);
    out->alpha = f->model.opts.alpha;
    out->beta = f->model.opts.beta;
    out->lambda = f->model.opts.lambda;
    status = judge(f, 0, s->train + s->stop, &out->train);
    return status == CGAM_OK ? judge(f, s->train + s->stop, s->held_out, &out->held_out) : status;
}

cgam_status cgam_memory_learn(const cgam_bank *bank, const cgam_examples *data,
                              const cgam_memory_fit_opts *opts, cgam_memory_fit *out)
{
    cgam_memory_fit_opts o = opts ? *opts : cgam_memory_fit_opts_default();
    cgam_env *env = bank->env;
    fitting f = {.env = env, .data = data, .opts = &o, .out = out};
    double *x = NULL;
    *out = (cgam_memory_fit){0};
    cgam_status status = check_examples(bank, data, &o);
    if (status == CGAM_OK)
        status =
            cgam_train_split_new(env, data->queries, o.held_out, STOP, o.train.seed, &out->split);
    if (status == CGAM_OK) status = cgam_model_new(bank, &o, &f.model, &x);
    if (status == CGAM_OK) status = fitting_new(&f);
    if (status == CGAM_OK) status = learn(&f, x);
    cgam_free(env, x);
    fitting_free(&f);
    return status;
}
