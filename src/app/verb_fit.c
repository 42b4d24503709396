/* verb_fit.c: learns parameters of a memory from queries whose memory is known. */
#include "app/input.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/file.h"
#include "lab/figures/loss_figure.h"
#include "lab/folder.h"
#include "lab/learn/memory_fit.h"
#include "memory/bank.h"
#include "memory/fields.h"

#include <math.h>
#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("queries", "FILE[:NAME]", "queries (B,d), or rows:.. as in recall",
                    .required = true, .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT(
        "targets", "FILE",
        "the memory of each query: row numbers (B) in .npy, or names in any other file, one "
        "per line",
        .required = true, .input = CGAM_INPUT_ROWS),
    CGAM_PARAM_TEXT("contexts", "FILE[:NAME]",
                    "one context (d_c) for all queries, or one for each (B,d_c)",
                    .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM(CGAM_WORDS, "learn", "P|W|Z|alpha|beta|lambda", "P", 0, 0, "what to learn"),
    CGAM_PARAM_INT(
        "rank", "R", NULL, 1, 1e9,
        "restrict P to start + U'V, with this many rows in U and V; default: any matrix"),
    CGAM_PARAM_TEXT("projection", "FILE[:NAME]", "start P from this (d,d_c); default: P = I",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("gate-weights", "FILE[:NAME]", "start W from this (N,d_c); default: W = Z P",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_CHOICE("mode", "first|coupled", "first", "of the recalls"),
    CGAM_ROW_OF(cgam_recall_opts_rows, "activation"),
    CGAM_ROW_OF(cgam_recall_opts_rows, "alpha"),
    CGAM_ROW_OF(cgam_recall_opts_rows, "beta"),
    CGAM_ROW_OF(cgam_recall_opts_rows, "lambda"),
    CGAM_PARAM_NORMALIZE,
    CGAM_PARAM_CHOICE(
        "loss", "nll|readout|margin", "nll",
        "-log p of the target, |Z'p - its row|^2, or by how much the lead of its score falls "
        "short of --margin"),
    CGAM_PARAM_REAL("margin", "X", "1", 0, INFINITY, "lead that --loss margin requires"),
    CGAM_PARAM_CHOICE("optimizer", "lbfgs|adam", "lbfgs",
                      "L-BFGS on all queries, or Adam on batches"),
    CGAM_PARAM_INT("epochs", "N", NULL, 1, 1e9,
                   "iterations of lbfgs (default 200), or passes of adam (default 20)"),
    CGAM_PARAM_INT(
        "patience", "N", "10", 0, 1e9,
        "stop after this many epochs without a lower loss on the stopping part; 0: never"),
    CGAM_PARAM_INT("batch", "N", "64", 1, 1e9, "queries in one step of adam"),
    CGAM_PARAM_REAL("rate", "X", "1e-2", CGAM_ABOVE_0, INFINITY, "step size of adam"),
    CGAM_PARAM_REAL("ridge", "X", "1e-3", 0, INFINITY,
                    "penalty on the squared distance of P, W and Z from their start"),
    CGAM_PARAM_REAL(
        "held-out", "X", "0.2", 0, 0.9,
        "share of the queries held out for counting; a tenth of the others decides when to stop"),
    CGAM_PARAM_SEED("seed of the split, the batches and a low-rank start"),
    CGAM_PARAM_TEXT("names", "FILE",
                    "names of the memories for --targets, one per line; default: those of the bank",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_TEXT("journal", "FILE", "save progress here; the same command resumes from it",
                    .writes = true),
    CGAM_PARAM_TEXT("out", "FILE.safetensors", "the result, for recall --fitted", .required = true,
                    .writes = true),
    CGAM_PARAM_TEXT("figure", "DIR", "write loss.csv, loss.json and the curve of the loss here",
                    .writes = true),
    CGAM_PARAM_FIGURES("draw the curve beside the table (SVG, PNG, PDF; needs gnuplot)"),
    CGAM_PARAM_END,
};

typedef struct job {
    cgam_call *call;
    cgam_bank *bank;
    cgam_matrix q, c, P, W;
    int64_t *target;
    cgam_memory_fit_opts opts;
    cgam_memory_fit fit;
} job;

static void close_job(job *j)
{
    cgam_env *env = j->call->env;
    cgam_memory_fit_free(env, &j->fit);
    cgam_free_all(env, j->q.data, j->c.data, j->P.data, j->W.data, j->target);
    cgam_input_bank_done(j->call, j->bank);
}

/* The rows of memories whose names are in a file, one for each query. */
static cgam_status read_names(job *j, const char *path)
{
    cgam_env *env = j->call->env;
    const cgam_row_names *names;
    cgam_row_names *wanted = NULL;
    cgam_status status = cgam_input_names(j->call, j->bank, &names);
    if (status == CGAM_OK) status = cgam_row_names_load(env, path, &wanted);
    if (status == CGAM_OK && cgam_row_names_count(wanted) != j->q.rows)
        status = cgam_fail(env, CGAM_E_SHAPE, "targets: %s has %lld names for %lld queries", path,
                           (long long)cgam_row_names_count(wanted), (long long)j->q.rows);
    if (status == CGAM_OK) j->target = cgam_alloc(env, (size_t)j->q.rows, sizeof *j->target);
    if (status == CGAM_OK && !j->target) status = cgam_fail_nomem(env, "targets");
    for (int64_t k = 0; k < j->q.rows && status == CGAM_OK; k++) {
        const char *name = cgam_row_names_at(wanted, k);
        j->target[k] = cgam_row_names_find(names, name);
        if (j->target[k] < 0)
            status = cgam_fail(env, CGAM_E_ARG, "targets: line %lld of %s: no memory '%.60s'",
                               (long long)k + 1, path, name);
    }
    cgam_row_names_free(wanted);
    return status;
}

static cgam_status read_targets(job *j)
{
    const char *path = cgam_args_text(j->call->args, "targets");
    bool array;
    int64_t below = cgam_bank_describe(j->bank).whole;
    cgam_status status = cgam_mask_is_array(j->call->env, path, &array);
    if (status != CGAM_OK) return status;
    return array ? cgam_input_indices(j->call->env, "target", path, j->q.rows, below, &j->target)
                 : read_names(j, path);
}

static cgam_status check_shape(cgam_env *env, const char *option, const char *what, int64_t got,
                               const char *expected, int64_t want)
{
    if (got == want) return CGAM_OK;
    return cgam_fail(env, CGAM_E_SHAPE, "%s: %s %lld, %s %lld", option, what, (long long)got,
                     expected, (long long)want);
}

static cgam_status open_job(job *j)
{
    cgam_call *call = j->call;
    cgam_env *env = call->env;
    const char *P = cgam_args_text(call->args, "projection");
    const char *W = cgam_args_text(call->args, "gate-weights");
    const char *contexts = cgam_args_text(call->args, "contexts");
    if (P && W) return cgam_fail(env, CGAM_E_ARG, "give projection or gate-weights, not both");
    cgam_status status = cgam_input_bank(call, &j->bank);
    if (status != CGAM_OK) return status;
    cgam_bank_info bank = cgam_bank_describe(j->bank);
    status =
        cgam_input_vectors(call, j->bank, "queries", cgam_args_text(call->args, "queries"), &j->q);
    if (status == CGAM_OK)
        status = check_shape(env, "queries", "queries have d =", j->q.columns,
                             "the bank has d =", bank.d);
    if (P && status == CGAM_OK) status = cgam_input_matrix(env, P, &j->P);
    if (P && status == CGAM_OK)
        status = check_shape(env, "projection", "the number of rows is", j->P.rows,
                             "the bank has d =", bank.d);
    if (W && status == CGAM_OK) status = cgam_input_matrix(env, W, &j->W);
    if (W && status == CGAM_OK)
        status = check_shape(env, "gate-weights", "the number of rows is", j->W.rows,
                             "the number of memories is", bank.n);
    if (contexts && status == CGAM_OK)
        status = cgam_input_vectors(call, j->bank, "contexts", contexts, &j->c);
    if (contexts && status == CGAM_OK && j->c.rows > 1)
        status = check_shape(env, "contexts", "the number of contexts is", j->c.rows,
                             "the number of queries is", j->q.rows);
    if (contexts && status == CGAM_OK && (P || W))
        status = check_shape(env, "contexts", "contexts have d_c =", j->c.columns,
                             P ? "P has d_c =" : "W has d_c =", P ? j->P.columns : j->W.columns);
    return status == CGAM_OK ? read_targets(j) : status;
}

static cgam_status read_options(job *j)
{
    const cgam_args *args = j->call->args;
    cgam_memory_fit_opts *o = &j->opts;
    cgam_train_opts *t;
    const char *const *words;
    *o = cgam_memory_fit_opts_default();
    t = &o->train;
    cgam_args_fill(args, cgam_recall_opts_rows, &o->recall);
    o->recall.mode = cgam_args_is(args, "mode", "coupled") ? CGAM_COUPLED : CGAM_FIRST;
    o->recall.P = j->P.data;
    o->recall.W = j->W.data;
    o->recall.d_c = j->c.data ? j->c.columns : j->P.data ? j->P.columns : j->W.columns;
    o->learn = 0;
    int64_t count = cgam_args_words(args, "learn", &words);
    for (int64_t k = 0; k < count; k++)
        o->learn |= 1u << cgam_word_find(cgam_learn_words, words[k]);
    o->rank = cgam_args_int(args, "rank");
    o->loss = (cgam_loss)cgam_args_choice(args, "loss");
    o->margin = cgam_args_real(args, "margin");
    o->held_out = cgam_args_real(args, "held-out");
    o->out = cgam_args_text(args, "out");
    t->optimizer = (cgam_optimizer)cgam_args_choice(args, "optimizer");
    t->epochs = cgam_args_int(args, "epochs");
    t->patience = cgam_args_int(args, "patience");
    t->batch = cgam_args_int(args, "batch");
    t->rate = cgam_args_real(args, "rate");
    t->ridge = cgam_args_real(args, "ridge");
    t->seed = (uint64_t)cgam_args_int(args, "seed");
    t->journal = cgam_args_text(args, "journal");
    if (o->out && !cgam_path_ends(o->out, ".safetensors"))
        return cgam_fail(j->call->env, CGAM_E_ARG, "out: %s must end in .safetensors", o->out);
    return CGAM_OK;
}

/* ---- The document. ----------------------------------------------------------------------------- */
static json_t *judged_json(const cgam_judged *x)
{
    return cgam_json_object("queries=%jd accuracy=%g se=%g nll=%g nll_se=%g", (intmax_t)x->queries,
                            x->accuracy, x->se, x->nll, x->nll_se);
}

static void put_results(const job *j)
{
    json_t *doc = j->call->doc, *learned = json_array();
    const cgam_memory_fit *f = &j->fit;
    cgam_bank_info bank = cgam_bank_describe(j->bank);
    for (int k = 0; cgam_learn_words[k]; k++)
        if (j->opts.learn >> k & 1)
            json_array_append_new(learned, json_string(cgam_learn_words[k]));
    cgam_json_put(doc, "learned", learned);
    cgam_json_add(doc, "n=%jd d=%jd", (intmax_t)bank.n, (intmax_t)bank.d);
    cgam_args_put(j->call->args, "mode loss optimizer ridge seed rank", doc);
    cgam_json_add(doc, "alpha=%g beta=%g lambda=%g", f->alpha, f->beta, f->lambda);
    cgam_json_put_text(doc, "end", cgam_word(cgam_train_end_words, f->trained.end));
    cgam_json_add(doc, "best_epoch=%jd evaluations=%jd left_out=%jd", (intmax_t)f->trained.best,
                  (intmax_t)f->trained.evaluations, (intmax_t)f->left_out);
    cgam_json_put(doc, "epochs", cgam_epochs_json(&f->trained));
    cgam_json_put(doc, "train", judged_json(&f->train));
    cgam_json_put(doc, "held_out", judged_json(&f->held_out));
    cgam_json_put(doc, "before", judged_json(&f->before));
    cgam_json_put_text(doc, "saved", j->opts.out);
}

static cgam_status fit_memory(job *j)
{
    cgam_call *call = j->call;
    cgam_line line;
    const char *figure = cgam_args_text(call->args, "figure");
    cgam_examples data = {.queries = j->q.rows,
                          .q = j->q.data,
                          .c = j->c.data,
                          .c_per_query = j->c.rows > 1 || (j->c.data && j->q.rows == 1),
                          .target = j->target};
    cgam_status status = read_options(j);
    if (status == CGAM_OK && figure) status = cgam_folder_make(call->env, figure);
    if (status != CGAM_OK) return status;
    j->opts.train.progress = cgam_line_begin(&line, call->progress);
    status = cgam_memory_learn(j->bank, &data, &j->opts, &j->fit);
    cgam_line_clear(&line);
    if (status != CGAM_OK) return status;
    put_results(j);
    if (!figure) return CGAM_OK;
    return cgam_loss_leave(call->env, call->doc, figure, cgam_args_is(call->args, "figures", "yes"),
                           &j->fit.trained);
}

static cgam_status run_fit(cgam_call *call)
{
    job j = {.call = call};
    cgam_status status = open_job(&j);
    if (status == CGAM_OK) status = fit_memory(&j);
    close_job(&j);
    return status;
}

const cgam_verb cgam_verb_fit = {
    .name = "fit",
    .params = params,
    .run = run_fit,
};
