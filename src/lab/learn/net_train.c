/* net_train.c: the parameters of a network as those of a training. */
#include "lab/learn/net_train.h"

#include "base/alloc.h"
#include "io/array.h"
#include "io/json.h"
#include "lab/journal.h"
#include "lab/learn/net_save.h"
#include "num/cpu/widen.h"

#include <math.h>
#include <string.h>

const char *const cgam_net_target_words[] = {"denoise", "classify", NULL};

/* Numbers of a task over parameters, examples of a task over rows, states at a time of L-BFGS. */
enum { NUMBERS = 1 << 15, ROWS = 8, TOGETHER = 256 };

/* Rows [from, to) of a block. */
typedef struct piece {
    const cgam_block *block;
    bool unit, log;
    int64_t from, to;
} piece;

typedef struct job {
    cgam_env *env;
    const char *path;
    json_t *doc;
    cgam_net_file *file;
    const cgam_net_train_opts *opts;
    const cgam_net *net;
    int clamp, read;
    int64_t d, size, most; /* numbers of a row, of a state; states at a time */
    bool *clamped;         /* [layers] */
    cgam_net_params *params;
    cgam_net_learner *learner;
    piece *piece;
    int64_t pieces;
    const double *phi; /* [params] what is trained, of a call */
    double *gradient;
    double *theta, *slope, *part; /* [params] */
    const cgam_net_data *data;    /* of a call */
    const int64_t *index;
    int64_t count, from; /* of the call, and of the batch in it */
    int64_t epoch;       /* 0: outside of epochs */
    bool judging;        /* classes are judged without noise */
    double *x;           /* [most, size] */
    double *clean;       /* [most, d] */
    double *loss;        /* [most] of each state */
    bool *right;         /* [most] */
    bool softmax;        /* the layer that is read gives probabilities */
    cgam_net_trained *result;
} job;

/* ---- parameters ------------------------------------------------------------------------------- */

static cgam_status make_pieces(job *j)
{
    int64_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int b = 0; b < j->params->blocks; b++) {
            const cgam_block *block = &j->params->block[b];
            int64_t step = NUMBERS / block->cols > 0 ? NUMBERS / block->cols : 1;
            for (int64_t from = 0; from < block->rows; from += step, count++) {
                if (pass == 0) continue;
                int64_t to = from + step < block->rows ? from + step : block->rows;
                j->piece[count] = (piece){block, cgam_net_block_unit(j->doc, j->net, block),
                                          block->min > 0, from, to};
            }
        }
        if (pass == 1) break;
        cgam_status status =
            cgam_alloc_all(j->env, "parameters of a network", CGAM_ARRAY(j->piece, count));
        if (status != CGAM_OK) return status;
    }
    j->pieces = count;
    return CGAM_OK;
}

/* theta from phi: W = V / |V| by rows, exp, or the same. */
static cgam_status forth(void *arg, int64_t k)
{
    const job *j = arg;
    const piece *p = &j->piece[k];
    const int64_t cols = p->block->cols;
    for (int64_t i = p->from; i < p->to; i++) {
        int64_t at = p->block->from + i * cols;
        double norm = 0;
        for (int64_t c = at; p->unit && c < at + cols; c++) norm += j->phi[c] * j->phi[c];
        double factor = p->unit && norm > 0 ? 1 / sqrt(norm) : 1;
        for (int64_t c = at; c < at + cols; c++)
            j->theta[c] = p->log ? exp(j->phi[c]) : factor * j->phi[c];
    }
    return CGAM_OK;
}

/* dloss/dphi from dloss/dtheta, which is in j->slope. */
static cgam_status back(void *arg, int64_t k)
{
    const job *j = arg;
    const piece *p = &j->piece[k];
    const int64_t cols = p->block->cols;
    const double scale = 1 / (double)j->count;
    for (int64_t i = p->from; i < p->to; i++) {
        int64_t at = p->block->from + i * cols;
        double norm = 0, along = 0;
        for (int64_t c = at; p->unit && c < at + cols; c++) {
            norm += j->phi[c] * j->phi[c];
            along += j->theta[c] * j->slope[c];
        }
        double factor = scale * (p->unit && norm > 0 ? 1 / sqrt(norm) : 1);
        for (int64_t c = at; c < at + cols; c++)
            j->gradient[c] = p->log    ? scale * j->slope[c] * j->theta[c]
                             : p->unit ? factor * (j->slope[c] - along * j->theta[c])
                                       : scale * j->slope[c];
    }
    return CGAM_OK;
}

/* The start of phi: V is what the file has before it is normalised. */
static cgam_status begin_phi(const job *j, double *phi)
{
    cgam_status status = CGAM_OK;
    cgam_net_params_get(j->params, phi);
    for (int b = 0; b < j->params->blocks && status == CGAM_OK; b++) {
        const cgam_block *block = &j->params->block[b];
        if (cgam_net_block_unit(j->doc, j->net, block))
            status = cgam_net_block_raw(j->env, j->path, j->doc, j->net, block, phi + block->from);
    }
    for (int64_t k = 0; k < j->pieces; k++) {
        const piece *p = &j->piece[k];
        int64_t at = p->block->from + p->from * p->block->cols;
        for (int64_t c = at; p->log && c < p->block->from + p->to * p->block->cols; c++)
            phi[c] = log(phi[c]);
    }
    return status;
}

static cgam_status place(job *j, const double *phi)
{
    j->phi = phi;
    cgam_status status = cgam_parallel(j->env, j->pieces, forth, j);
    return status == CGAM_OK ? cgam_net_params_set(j->params, j->theta) : status;
}

/* ---- examples --------------------------------------------------------------------------------- */

/* Adds noise to a row, from the numbers that belong to this epoch and example: Box and Muller's pairs. */
static void add_noise(const job *j, int64_t example, double *x)
{
    uint64_t stream = ((uint64_t)j->epoch << 40) + (uint64_t)example;
    cgam_rng rng = cgam_rng_stream(j->opts->train.seed ^ UINT64_C(0x6e6f697365), stream);
    for (int64_t i = 0; i < j->d; i += 2) {
        double radius = j->opts->noise * sqrt(-2 * log1p(-cgam_rng_uniform(&rng)));
        double angle = 2 * M_PI * cgam_rng_uniform(&rng);
        x[i] += radius * cos(angle);
        if (i + 1 < j->d) x[i + 1] += radius * sin(angle);
    }
}

static cgam_status read_row(const job *j, int64_t example, double *out)
{
    const cgam_array *a = j->data->x;
    double norm = 0, factor = j->data->divide > 0 ? 1 / j->data->divide : 1;
    const char *bytes = a->data;
    cgam_widen(a->dtype, bytes + (size_t)(example * j->d) * cgam_dtype_size(a->dtype), j->d, out);
    for (int64_t i = 0; i < j->d; i++) {
        if (!isfinite(out[i]))
            return cgam_fail(j->env, CGAM_E_VALUE, "data: row %lld, column %lld is %s",
                             (long long)example, (long long)i, isnan(out[i]) ? "NaN" : "infinite");
        out[i] *= factor;
        norm += out[i] * out[i];
    }
    if (j->data->normalize && !(norm > 0))
        return cgam_fail(j->env, CGAM_E_VALUE, "data: row %lld is zero and has no direction",
                         (long long)example);
    for (int64_t i = 0; j->data->normalize && i < j->d; i++) out[i] /= sqrt(norm);
    return CGAM_OK;
}

static cgam_status fill_rows(void *arg, int64_t k)
{
    job *j = arg;
    int64_t end = j->count - j->from < j->most ? j->count - j->from : j->most;
    cgam_status status = CGAM_OK;
    for (int64_t b = k * ROWS; b < end && b < (k + 1) * ROWS && status == CGAM_OK; b++) {
        double *x = j->x + b * j->size, *clean = j->clean + b * j->d;
        int64_t example = j->index[j->from + b];
        memcpy(x, j->file->x, (size_t)j->size * sizeof *x);
        status = read_row(j, example, clean);
        x += j->net->layer[j->clamp].offset;
        memcpy(x, clean, (size_t)j->d * sizeof *x);
        bool noisy =
            j->opts->target == CGAM_NET_DENOISE || j->epoch > 0; /* classes are judged without */
        if (j->opts->noise > 0 && noisy) add_noise(j, example, x);
    }
    return status;
}

/* -log softmax(a)[label], and whether the label's is the largest. */
static double cross_entropy(const job *j, int64_t n, const double *a, int64_t label, double *slope)
{
    double top = -INFINITY, sum = 0;
    if (j->softmax) {
        double p = fmax(a[label], 1e-300);
        if (slope) slope[label] -= 1 / p;
        return -log(p);
    }
    for (int64_t i = 0; i < n; i++) top = fmax(top, a[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(a[i] - top);
    for (int64_t i = 0; slope && i < n; i++) slope[i] += exp(a[i] - top) / sum - (i == label);
    return log(sum) - (a[label] - top);
}

static cgam_status state_loss(void *user, int64_t state, const double *a, double *loss,
                              double *slope)
{
    job *j = user;
    const cgam_layer *layer = &j->net->layer[j->read];
    const double *clean = j->clean + state * j->d;
    a += layer->offset;
    if (slope) slope += layer->offset;
    *loss = 0;
    if (j->opts->target == CGAM_NET_CLASSIFY) {
        int64_t label = j->data->label[j->index[j->from + state]], best = 0;
        for (int64_t i = 1; i < layer->size; i++)
            if (a[i] > a[best]) best = i;
        *loss = cross_entropy(j, layer->size, a, label, slope);
        j->right[state] = best == label;
    } else {
        double scale = 1 / (double)j->d;
        for (int64_t i = 0; i < j->d; i++) {
            double off = a[i] - clean[i];
            *loss += scale * off * off;
            if (slope) slope[i] += 2 * scale * off;
        }
    }
    j->loss[state] = *loss;
    return CGAM_OK;
}

static void note_worst(job *j, const cgam_net_learn_report *r)
{
    cgam_net_learn_report *w = &j->result->worst;
    if (r->steps > w->steps) w->steps = r->steps;
    if (r->iterations > w->iterations) w->iterations = r->iterations;
    w->residual = fmax(w->residual, r->residual);
    w->margin = fmin(w->margin, r->margin);
}

/* One batch from j->from on: *total = the sum of its losses, part its slope. */
static cgam_status run_batch(job *j, double *total, double *part)
{
    int64_t batch = j->count - j->from < j->most ? j->count - j->from : j->most;
    cgam_net_loss loss = {state_loss, j};
    cgam_net_learn_report report;
    cgam_status status = cgam_parallel(j->env, (batch + ROWS - 1) / ROWS, fill_rows, j);
    if (status == CGAM_OK)
        status = cgam_net_learner_run(j->learner, batch, j->x, &loss, total, part, &report);
    if (status == CGAM_OK) note_worst(j, &report);
    return status;
}

static cgam_status mean_loss(void *user, const double *phi, int64_t count, const int64_t *index,
                             double *loss, double *gradient)
{
    job *j = user;
    cgam_status status = place(j, phi);
    j->index = index;
    j->count = count;
    j->gradient = gradient;
    *loss = 0;
    j->judging = false;
    if (!gradient) j->epoch = 0; /* losses of parts are compared, so their noise stays */
    for (j->from = 0; j->from < count && status == CGAM_OK; j->from += j->most) {
        double total = 0;
        double *to = j->from > 0 ? j->part : j->slope;
        status = run_batch(j, &total, gradient ? to : NULL);
        *loss += total;
        for (int64_t i = 0; gradient && j->from > 0 && i < j->params->count; i++)
            j->slope[i] += j->part[i];
    }
    *loss /= (double)count;
    if (status != CGAM_OK || !gradient) return status;
    return cgam_parallel(j->env, j->pieces, back, j);
}

static void begin_epoch(void *user, int64_t epoch) { ((job *)user)->epoch = epoch; }

/* ---- judging ---------------------------------------------------------------------------------- */

static double standard_error(double sum, double squares, int64_t n)
{
    if (n < 2) return NAN;
    double mean = sum / (double)n;
    return sqrt(fmax(squares / (double)n - mean * mean, 0) / (double)(n - 1));
}

static cgam_status judge(job *j, const cgam_net_data *data, int64_t count, const int64_t *index,
                         cgam_net_judged *out)
{
    double sum = 0, squares = 0, right = 0, total;
    cgam_status status = CGAM_OK;
    *out = (cgam_net_judged){count, NAN, NAN, NAN, NAN};
    j->data = data;
    j->index = index;
    j->count = count;
    j->epoch = 0;
    j->judging = true;
    for (j->from = 0; j->from < count && status == CGAM_OK; j->from += j->most) {
        int64_t batch = count - j->from < j->most ? count - j->from : j->most;
        status = run_batch(j, &total, NULL);
        for (int64_t b = 0; b < batch && status == CGAM_OK; b++) {
            sum += j->loss[b];
            squares += j->loss[b] * j->loss[b];
            right += j->right[b];
        }
    }
    if (count == 0 || status != CGAM_OK) return status;
    out->loss = sum / (double)count;
    out->loss_se = standard_error(sum, squares, count);
    if (j->opts->target != CGAM_NET_CLASSIFY) return CGAM_OK;
    out->accuracy = right / (double)count;
    out->se = standard_error(right, right, count);
    return CGAM_OK;
}

/* All rows of a test set. */
static cgam_status judge_all(job *j, const cgam_net_data *data, cgam_net_judged *out)
{
    int64_t n = data->x->shape[0], *index = NULL;
    cgam_status status = cgam_alloc_all(j->env, "examples", CGAM_ARRAY(index, n));
    for (int64_t i = 0; status == CGAM_OK && i < n; i++) index[i] = i;
    if (status == CGAM_OK) status = judge(j, data, n, index, out);
    cgam_free(j->env, index);
    return status;
}

/* ---- set-up ----------------------------------------------------------------------------------- */

static cgam_status find_layer(const job *j, const char *option, const char *name, int *out)
{
    *out = cgam_net_find(j->net, name);
    if (*out >= 0) return CGAM_OK;
    return cgam_fail(j->env, CGAM_E_ARG, "%s: no layer named '%.80s'", option, name);
}

static cgam_status check_data(const job *j, const char *option, const cgam_net_data *data)
{
    const cgam_layer *clamp = &j->net->layer[j->clamp], *read = &j->net->layer[j->read];
    const cgam_array *x = data->x;
    int64_t n = x->ndim > 0 ? x->shape[0] : 0;
    if (n < 1 || x->size / n != clamp->size)
        return cgam_fail(j->env, CGAM_E_SHAPE, "%s: rows of %lld numbers, layer '%s' has %lld",
                         option, n > 0 ? (long long)(x->size / n) : 0, clamp->name,
                         (long long)clamp->size);
    if (j->opts->target == CGAM_NET_DENOISE) {
        if (read->size == clamp->size) return CGAM_OK;
        return cgam_fail(j->env, CGAM_E_SHAPE,
                         "loss denoise compares layer '%s', %lld numbers, with rows of %lld",
                         read->name, (long long)read->size, (long long)clamp->size);
    }
    if (!data->label) return cgam_fail(j->env, CGAM_E_ARG, "loss classify requires labels");
    for (int64_t i = 0; i < n; i++)
        if (data->label[i] < 0 || data->label[i] >= read->size)
            return cgam_fail(j->env, CGAM_E_ARG,
                             "%s: label %lld is %lld, layer '%s' has %lld numbers (valid: 0 to "
                             "%lld)",
                             option, (long long)i, (long long)data->label[i], read->name,
                             (long long)read->size, (long long)(read->size - 1));
    return CGAM_OK;
}

static void hold_layers(job *j)
{
    const cgam_flow_opts *flow = &j->file->flow;
    for (int i = 0; i < flow->clamp_count; i++) {
        const cgam_clamp *c = &flow->clamps[i];
        const cgam_layer *layer = &j->net->layer[c->layer];
        if (c->from > 0) continue;
        j->clamped[c->layer] = true;
        if (c->value)
            memcpy(j->file->x + layer->offset, c->value, (size_t)layer->size * sizeof *c->value);
    }
    j->clamped[j->clamp] = j->clamp != j->read;
}

static cgam_status open_job(job *j, const cgam_net_data *data, const cgam_net_data *test)
{
    const cgam_net_train_opts *o = j->opts;
    cgam_net_learn_opts way = o->way;
    cgam_status status = find_layer(j, "clamp", o->clamp, &j->clamp);
    if (status == CGAM_OK) status = find_layer(j, "read", o->read, &j->read);
    if (status != CGAM_OK) return status;
    j->d = j->net->layer[j->clamp].size;
    j->size = j->net->size;
    j->softmax = j->net->layer[j->read].use.lagr == cgam_lagr_find("softmax");
    j->most = o->train.optimizer == CGAM_OPTIMIZER_ADAM ? o->train.batch : TOGETHER;
    if (j->most < 1 || j->most > INT32_MAX)
        return cgam_fail(j->env, CGAM_E_ARG, "batch is %lld", (long long)j->most);
    status = check_data(j, "data", data);
    if (status == CGAM_OK && test) status = check_data(j, "test", test);
    if (status == CGAM_OK) status = cgam_json_load(j->env, j->path, &j->doc);
    if (status == CGAM_OK)
        status = cgam_net_params_new(j->file->net, o->count, o->learn, &j->params);
    if (status == CGAM_OK) status = make_pieces(j);
    if (status == CGAM_OK)
        status = cgam_alloc_all(
            j->env, "a training", CGAM_ZEROS(j->clamped, j->net->layers),
            CGAM_ARRAY(j->theta, j->params->count), CGAM_ARRAY(j->slope, j->params->count),
            CGAM_ARRAY(j->part, j->params->count), CGAM_ARRAY(j->x, j->most * j->size),
            CGAM_ARRAY(j->clean, j->most * j->d), CGAM_ARRAY(j->loss, j->most),
            CGAM_ZEROS(j->right, j->most));
    if (status != CGAM_OK) return status;
    hold_layers(j);
    way.clamped = j->clamped;
    return cgam_net_learner_new(j->params, &way, j->most, &j->learner);
}

static void close_job(job *j)
{
    cgam_net_learner_free(j->learner);
    cgam_net_params_free(j->params);
    json_decref(j->doc);
    cgam_free_all(j->env, j->piece, j->clamped, j->theta, j->slope, j->part, j->x, j->clean,
                  j->loss, j->right);
}

static cgam_status keep_best(void *user, const double *phi, const cgam_trained *so_far)
{
    (void)so_far;
    job *j = user;
    cgam_status status = place(j, phi);
    if (status != CGAM_OK || !j->opts->out) return status;
    return cgam_net_save(j->env, j->path, j->doc, j->params, j->opts->out);
}

/* What the losses depend on beside what the trainer knows. */
static uint64_t fingerprint(const job *j, const cgam_net_data *data)
{
    const cgam_net_train_opts *o = j->opts;
    cgam_net_learn_opts way = o->way;
    double reals[] = {o->noise, way.step, way.steady, way.tol,      way.t_end,
                      way.rtol, way.atol, way.nudge,  data->divide, data->normalize};
    int64_t numbers[] = {j->clamp,  j->read,       o->target,       way.way,
                         way.steps, way.max_steps, way.nudged_steps};
    char *text = json_dumps(j->doc, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t h = cgam_hash(CGAM_HASH, reals, sizeof reals);
    h = cgam_hash(h, numbers, sizeof numbers);
    if (text) h = cgam_hash(h, text, strlen(text));
    free(text);
    for (int i = 0; i < o->count; i++) h = cgam_hash(h, o->learn[i], strlen(o->learn[i]) + 1);
    if (data->label) h = cgam_hash(h, data->label, (size_t)data->x->shape[0] * sizeof *data->label);
    return cgam_hash(h, data->x->data, (size_t)data->x->size * cgam_dtype_size(data->x->dtype));
}

static cgam_status train(job *j, const cgam_net_data *data, const cgam_net_data *test, double *phi)
{
    const cgam_net_train_opts *o = j->opts;
    cgam_net_trained *out = j->result;
    cgam_train_split split;
    cgam_train_opts t = o->train;
    cgam_train_problem problem = {.params = j->params->count,
                                  .examples = data->x->shape[0],
                                  .user = j,
                                  .loss = mean_loss,
                                  .begin = begin_epoch};
    t.data = fingerprint(j, data);
    t.keep = keep_best;
    t.user = j;
    cgam_status status =
        cgam_train_split_new(j->env, data->x->shape[0], o->held_out, o->stop, t.seed, &split);
    const int64_t *held = status == CGAM_OK ? split.index + split.train + split.stop : NULL;
    if (status == CGAM_OK) status = begin_phi(j, phi);
    if (status == CGAM_OK) status = place(j, phi);
    if (status == CGAM_OK)
        status = test ? judge_all(j, test, &out->before)
                      : judge(j, data, split.held_out ? split.held_out : split.train,
                              split.held_out ? held : split.index, &out->before);
    double began = cgam_clock();
    j->data = data;
    if (status == CGAM_OK) status = cgam_train(j->env, &problem, &split, &t, phi, &out->trained);
    out->seconds = cgam_clock() - began;
    if (status == CGAM_OK) status = place(j, phi);
    if (status == CGAM_OK) status = judge(j, data, split.train, split.index, &out->train);
    if (status == CGAM_OK) status = judge(j, data, split.held_out, held, &out->held_out);
    if (status == CGAM_OK && test) status = judge_all(j, test, &out->test);
    cgam_train_split_free(j->env, &split);
    return status;
}

void cgam_net_trained_free(cgam_env *env, cgam_net_trained *trained)
{
    cgam_trained_free(env, &trained->trained);
    *trained = (cgam_net_trained){0};
}

cgam_status cgam_net_train(cgam_env *env, const char *path, cgam_net_file *file,
                           const cgam_net_data *data, const cgam_net_data *test,
                           const cgam_net_train_opts *opts, cgam_net_trained *out)
{
    const cgam_net_judged none = {0, NAN, NAN, NAN, NAN};
    job j = {.env = env,
             .path = path,
             .file = file,
             .opts = opts,
             .net = file->net,
             .data = data,
             .result = out};
    double *phi = NULL;
    *out = (cgam_net_trained){.before = none, .train = none, .held_out = none, .test = none};
    out->worst.margin = NAN;
    cgam_status status = open_job(&j, data, test);
    if (status == CGAM_OK) {
        out->params = j.params->count;
        status = cgam_alloc_all(env, "parameters", CGAM_ARRAY(phi, j.params->count));
    }
    if (status == CGAM_OK) status = train(&j, data, test, phi);
    cgam_free(env, phi);
    close_job(&j);
    return status;
}
