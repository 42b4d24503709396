/* verb_net_train.c: learns the weights of a network in a JSON file from rows of data. */
#include "app/input.h"
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/alloc.h"
#include "io/array.h"
#include "io/file.h"
#include "lab/figures/loss_figure.h"
#include "lab/folder.h"
#include "lab/learn/net_save.h"
#include "lab/learn/net_train.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_TEXT("FILE", "FILE.json", "a network: docs/format/network.md", .required = true,
                    .input = CGAM_INPUT_JSON),
    CGAM_PARAM_TEXT("data", "FILE[:NAME]", "examples, one per row", .required = true,
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT(
        "labels", "FILE",
        "the class of each example, counted from 0: an array (.npy, .csv), or any other file "
        "with one number per line",
        .input = CGAM_INPUT_ROWS),
    CGAM_PARAM_FLAG("normalize", "divide each example by its norm"),
    CGAM_PARAM_REAL("divide", "X", "1", CGAM_ABOVE_0, INFINITY,
                    "divide all numbers of the data by this"),
    CGAM_PARAM_TEXT("test", "FILE[:NAME]", "test examples, counted before and after training",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("test-labels", "FILE", "classes of the test examples",
                    .input = CGAM_INPUT_ROWS),
    CGAM_PARAM_TEXT(
        "clamp", "LAYER",
        "layer that an example fills; it is held, or, if it is also --read, is only the start",
        .required = true),
    CGAM_PARAM_TEXT("read", "LAYER", "layer whose activations the loss compares", .required = true),
    CGAM_PARAM_WORDS(
        "learn", "NAME,..",
        "what to learn: a synapse (all its weights), or single parameters: SYNAPSE.gain, "
        "SYNAPSE.beta, LAYER.beta, LAYER.scale, ..",
        .required = true),
    CGAM_PARAM_CHOICE(
        "loss", "denoise|classify", NULL,
        "mean squared difference from the example, or -log of the probability of the label; "
        "default: classify if labels are given"),
    CGAM_PARAM_REAL(
        "noise", "X", "0", 0, INFINITY,
        "standard deviation of the noise added to each number of an example, new in each "
        "epoch; classes are judged without it"),
    CGAM_PARAM_INT(
        "steps", "N", NULL, 1, 100000,
        "number of explicit steps, differentiated exactly in reverse; default: the network "
        "settles instead"),
    CGAM_PARAM_REAL(
        "step-size", "X", NULL, CGAM_ABOVE_0, INFINITY,
        "length of a step, in units of the shortest tau if the network settles; default 1"),
    CGAM_PARAM_REAL(
        "steady", "X", NULL, CGAM_ABOVE_0, INFINITY,
        "settled if |x - F(x)| is at most this, relative to the largest |x| or 1; default 1e-8"),
    CGAM_PARAM_INT(
        "max-steps", "N", "1000", 1, 1e9,
        "steps in which the network should settle; after them an adaptive integrator continues"),
    CGAM_PARAM_CHOICE(
        "method", "implicit|adjoint|equilibrium", NULL,
        "how to differentiate a network that settles: by the implicit function theorem "
        "(default), along its trajectory until --t-end, or by centred equilibrium propagation"),
    CGAM_PARAM_REAL("t-end", "T", "10", CGAM_ABOVE_0, INFINITY,
                    "method adjoint: length of the trajectory"),
    CGAM_PARAM_REAL("nudge", "X", "1e-3", CGAM_ABOVE_0, INFINITY,
                    "method equilibrium: weight of the loss in the energy"),
    CGAM_PARAM_INT("nudged-steps", "N", "0", 0, 100000,
                   "method equilibrium: steps of each nudged phase; 0: until it settles"),
    CGAM_PARAM_CHOICE("optimizer", "adam|lbfgs", "adam",
                      "Adam on batches, or L-BFGS on all examples"),
    CGAM_PARAM_INT("epochs", "N", NULL, 1, 1e9,
                   "passes of adam (default 20), or iterations of lbfgs (default 200)"),
    CGAM_PARAM_INT(
        "patience", "N", "10", 0, 1e9,
        "stop after this many epochs without a lower loss on the stopping part; 0: never"),
    CGAM_PARAM_INT("batch", "N", "64", 1, 1000000, "examples in one step of adam"),
    CGAM_PARAM_REAL("rate", "X", "1e-2", CGAM_ABOVE_0, INFINITY, "step size of adam"),
    CGAM_PARAM_REAL("ridge", "X", "0", 0, INFINITY,
                    "penalty on the squares of all learned numbers"),
    CGAM_PARAM_REAL("held-out", "X", "0", 0, 0.9, "share of the examples held out for counting"),
    CGAM_PARAM_REAL("stop", "X", "0", 0, 0.9,
                    "share of the other examples that decides when to end, and which epoch is "
                    "kept"),
    CGAM_PARAM_SEED("seed of the split, the batches and the noise"),
    CGAM_PARAM_TEXT("journal", "FILE", "save progress here; the same command resumes from it",
                    .writes = true),
    CGAM_PARAM_TEXT("out", "FILE.json",
                    "network file to write; its weights are written next to it as .safetensors",
                    .required = true, .writes = true),
    CGAM_PARAM_TEXT("figure", "DIR", "folder for the curve of the losses and their table",
                    .writes = true),
    CGAM_PARAM_FIGURES("with --figure: draw the curve (SVG, PNG, PDF; needs gnuplot)"),
    CGAM_PARAM_END,
};

typedef struct job {
    cgam_call *call;
    cgam_net_file file;
    cgam_array x, test;
    int64_t *label, *test_label;
    cgam_net_train_opts opts;
    cgam_net_trained result;
} job;

/* ---- inputs ----------------------------------------------------------------------------------- */

static cgam_status open_rows(cgam_env *env, const char *option, const char *path, cgam_array *out)
{
    cgam_status status = cgam_array_open(env, path, out);
    if (status == CGAM_OK) status = cgam_array_reals(env, path, out);
    if (status == CGAM_OK && (out->ndim < 1 || out->shape[0] < 1 || out->size < 1))
        status =
            cgam_fail(env, CGAM_E_SHAPE, "%s: %s holds no examples", option, cgam_path_tail(path));
    return status;
}

/* Numbers of a text, one per line. */
static cgam_status parse_labels(cgam_env *env, const char *path, const cgam_file *text, int64_t n,
                                int64_t *out)
{
    const char *at = (const char *)text->bytes, *end = at + text->size;
    int64_t count = 0;
    while (at < end) {
        int64_t value = 0;
        const char *line = at;
        for (; at < end && *at >= '0' && *at <= '9' && at - line < 10; at++)
            value = 10 * value + (*at - '0');
        bool fine = at > line;
        if (at < end && *at == '\r') at++;
        if (!fine || (at < end && *at != '\n'))
            return cgam_fail(env, CGAM_E_FORMAT, "%s: line %lld is not a class, a number from 0",
                             cgam_path_tail(path), (long long)count + 1);
        at++;
        if (count < n) out[count] = value;
        count++;
    }
    if (count == n) return CGAM_OK;
    return cgam_fail(env, CGAM_E_SHAPE, "%s: %lld labels for %lld examples", cgam_path_tail(path),
                     (long long)count, (long long)n);
}

static cgam_status read_label_array(cgam_env *env, const char *path, int64_t n, int64_t *out)
{
    cgam_array a = {0};
    double *values = NULL;
    cgam_status status = cgam_array_open(env, path, &a);
    if (status == CGAM_OK && a.size != n)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: %lld labels for %lld examples",
                           cgam_path_tail(path), (long long)a.size, (long long)n);
    if (status == CGAM_OK) status = cgam_alloc_all(env, "labels", CGAM_ARRAY(values, n));
    if (status == CGAM_OK) status = cgam_array_read_f64(env, &a, cgam_path_tail(path), values);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        if (!(values[i] >= 0 && values[i] < 1e9 && values[i] == floor(values[i])))
            status = cgam_fail(env, CGAM_E_VALUE, "%s: label %lld is %g, not a class from 0",
                               cgam_path_tail(path), (long long)i, values[i]);
        else out[i] = (int64_t)values[i];
    }
    cgam_free(env, values);
    cgam_array_close(env, &a);
    return status;
}

static cgam_status read_labels(cgam_env *env, const char *path, int64_t n, int64_t **out)
{
    static const char *const arrays[] = {".npy", ".csv", ".npz", ".safetensors"};
    cgam_file text = {0};
    cgam_status status = cgam_alloc_all(env, "labels", CGAM_ARRAY(*out, n));
    if (status != CGAM_OK) return status;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (cgam_path_ends(path, arrays[i]) || (strchr(path, ':') && !cgam_file_exists(path)))
            return read_label_array(env, path, n, *out);
    status = cgam_file_map(env, path, &text);
    if (status == CGAM_OK) status = parse_labels(env, path, &text, n, *out);
    cgam_file_unmap(&text);
    return status;
}

static cgam_status open_job(job *j)
{
    const cgam_args *args = j->call->args;
    cgam_env *env = j->call->env;
    const char *labels = cgam_args_text(args, "labels"), *test = cgam_args_text(args, "test");
    const char *test_labels = cgam_args_text(args, "test-labels");
    if (test_labels && !test) return cgam_fail(env, CGAM_E_ARG, "test-labels requires test");
    if (labels && test && !test_labels)
        return cgam_fail(env, CGAM_E_ARG, "test requires test-labels where labels are given");
    cgam_status status = cgam_net_file_open(env, cgam_args_text(args, "FILE"), &j->file);
    if (status == CGAM_OK) status = open_rows(env, "data", cgam_args_text(args, "data"), &j->x);
    if (status == CGAM_OK && labels) status = read_labels(env, labels, j->x.shape[0], &j->label);
    if (status == CGAM_OK && test) status = open_rows(env, "test", test, &j->test);
    if (status == CGAM_OK && test_labels)
        status = read_labels(env, test_labels, j->test.shape[0], &j->test_label);
    return status;
}

static void close_job(job *j)
{
    cgam_env *env = j->call->env;
    cgam_net_trained_free(env, &j->result);
    cgam_free_all(env, j->label, j->test_label);
    cgam_array_close(env, &j->x);
    cgam_array_close(env, &j->test);
    cgam_net_file_close(&j->file);
}

/* ---- options ---------------------------------------------------------------------------------- */

static cgam_status read_way(const job *j, cgam_net_learn_opts *way)
{
    const cgam_args *args = j->call->args;
    cgam_env *env = j->call->env;
    bool steps = cgam_args_given(args, "steps"), settles = cgam_args_given(args, "steady");
    *way = cgam_net_learn_opts_default();
    if (steps && (settles || cgam_args_given(args, "method")))
        return cgam_fail(env, CGAM_E_ARG, "steps and %s cannot be combined",
                         settles ? "steady" : "method");
    way->way = steps ? CGAM_NET_STEPS : CGAM_NET_IMPLICIT;
    if (cgam_args_is(args, "method", "adjoint")) way->way = CGAM_NET_ADJOINT;
    if (cgam_args_is(args, "method", "equilibrium")) way->way = CGAM_NET_EQUILIBRIUM;
    if (steps) way->steps = cgam_args_int(args, "steps");
    if (settles) way->steady = cgam_args_real(args, "steady");
    if (cgam_args_given(args, "step-size")) way->step = cgam_args_real(args, "step-size");
    way->max_steps = cgam_args_int(args, "max-steps");
    way->t_end = cgam_args_real(args, "t-end");
    way->nudge = cgam_args_real(args, "nudge");
    way->nudged_steps = cgam_args_int(args, "nudged-steps");
    return CGAM_OK;
}

static cgam_status read_options(job *j)
{
    const cgam_args *args = j->call->args;
    cgam_env *env = j->call->env;
    cgam_net_train_opts *o = &j->opts;
    cgam_train_opts *t = &o->train;
    const char *const *words;
    int64_t count = cgam_args_words(args, "learn", &words);
    *o = (cgam_net_train_opts){.clamp = cgam_args_text(args, "clamp"),
                               .read = cgam_args_text(args, "read"),
                               .count = count > INT_MAX ? INT_MAX : (int)count,
                               .learn = words,
                               .noise = cgam_args_real(args, "noise"),
                               .held_out = cgam_args_real(args, "held-out"),
                               .stop = cgam_args_real(args, "stop"),
                               .out = cgam_args_text(args, "out"),
                               .train = cgam_train_opts_default()};
    o->target = j->label ? CGAM_NET_CLASSIFY : CGAM_NET_DENOISE;
    if (cgam_args_given(args, "loss"))
        o->target = cgam_args_is(args, "loss", "classify") ? CGAM_NET_CLASSIFY : CGAM_NET_DENOISE;
    t->optimizer =
        cgam_args_is(args, "optimizer", "adam") ? CGAM_OPTIMIZER_ADAM : CGAM_OPTIMIZER_LBFGS;
    t->epochs = cgam_args_int(args, "epochs");
    t->patience = cgam_args_int(args, "patience");
    t->batch = cgam_args_int(args, "batch");
    t->rate = cgam_args_real(args, "rate");
    t->ridge = cgam_args_real(args, "ridge");
    t->seed = (uint64_t)cgam_args_int(args, "seed");
    t->journal = cgam_args_text(args, "journal");
    if (!cgam_path_ends(o->out, ".json"))
        return cgam_fail(env, CGAM_E_ARG, "out: %s must end in .json", cgam_path_tail(o->out));
    return read_way(j, &o->way);
}

/* ---- the document ----------------------------------------------------------------------------- */

static json_t *judged_json(const cgam_net_judged *x)
{
    if (x->examples == 0) return json_null();
    return cgam_json_object("examples=%jd loss=%g loss_se=%g accuracy=%g se=%g",
                            (intmax_t)x->examples, x->loss, x->loss_se, x->accuracy, x->se);
}

static void put_results(const job *j)
{
    json_t *doc = j->call->doc, *learned = json_array();
    const cgam_net_train_opts *o = &j->opts;
    const cgam_net_trained *r = &j->result;
    const cgam_net_learn_report *w = &r->worst;
    char weights[PATH_MAX];
    for (int i = 0; i < o->count; i++) json_array_append_new(learned, json_string(o->learn[i]));
    cgam_json_add(doc, "title=%s learned=%p params=%jd", j->file.title, learned,
                  (intmax_t)r->params);
    cgam_json_put_text(doc, "loss", cgam_net_target_words[o->target]);
    cgam_json_put_text(doc, "method", cgam_net_way_words[o->way.way]);
    cgam_args_put(j->call->args, "optimizer noise ridge seed", doc);
    cgam_json_put_text(doc, "end", cgam_word(cgam_train_end_words, r->trained.end));
    cgam_json_add(doc, "best_epoch=%jd evaluations=%jd", (intmax_t)r->trained.best,
                  (intmax_t)r->trained.evaluations);
    cgam_json_put(doc, "epochs", cgam_epochs_json(&r->trained));
    cgam_json_put(doc, "before", judged_json(&r->before));
    cgam_json_put(doc, "train", judged_json(&r->train));
    cgam_json_put(doc, "held_out", judged_json(&r->held_out));
    cgam_json_put(doc, "test", judged_json(&r->test));
    bool steady = o->way.way == CGAM_NET_IMPLICIT || o->way.way == CGAM_NET_EQUILIBRIUM;
    if (steady)
        cgam_json_add(doc, "settling_steps=%jd residual=%g margin=%g", (intmax_t)w->steps,
                      w->residual, w->margin);
    cgam_json_add(doc, "seconds=%g", r->seconds);
    cgam_json_put_text(doc, "saved", o->out);
    if (cgam_net_save_weights(o->out, weights, sizeof weights))
        cgam_json_put_text(doc, "weights", weights);
}

static cgam_status run_train(cgam_call *call)
{
    job j = {.call = call};
    cgam_line line;
    cgam_env *env = call->env;
    const char *figure = cgam_args_text(call->args, "figure");
    cgam_status status = open_job(&j);
    if (status == CGAM_OK) status = read_options(&j);
    if (status == CGAM_OK && figure) status = cgam_folder_make(env, figure);
    if (status == CGAM_OK) {
        bool normalize = cgam_args_flag(call->args, "normalize");
        double divide = cgam_args_real(call->args, "divide");
        cgam_net_data data = {&j.x, j.label, normalize, divide};
        cgam_net_data test = {&j.test, j.test_label, normalize, divide};
        j.opts.train.progress = cgam_line_begin(&line, call->progress);
        status = cgam_net_train(env, cgam_args_text(call->args, "FILE"), &j.file, &data,
                                j.test.size > 0 ? &test : NULL, &j.opts, &j.result);
        cgam_line_clear(&line);
    }
    if (status == CGAM_OK) put_results(&j);
    if (status == CGAM_OK && figure)
        status = cgam_loss_leave(env, call->doc, figure, cgam_args_is(call->args, "figures", "yes"),
                                 &j.result.trained);
    close_job(&j);
    return status;
}

const cgam_verb cgam_verb_net_train = {
    .name = "net train",
    .params = params,
    .run = run_train,
};
