/* verb_recall.c: recalls queries from a bank. */
#include "app/input.h"
#include "app/verbs.h"
#include "base/alloc.h"
#include "io/npy.h"
#include "lab/learn/memory_fit.h"
#include "memory/bank.h"
#include "memory/explain.h"
#include "memory/fields.h"
#include "num/ranks.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OPTION(name_) CGAM_ROW_OF(cgam_recall_opts_rows, name_)

static const cgam_param params[] = {
    CGAM_PARAM_BANK_IF(false),
    CGAM_PARAM_TEXT(
        "query", "FILE[:NAME]",
        "one query (d) or several (B,d); or a sum of memories by number or name, "
        "rows:7*0.5+king*0.5, several separated by ;. Put a name in 'quotes' if it contains "
        "one of +-*;' or begins with a digit",
        .required = true, .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT(
        "context", "FILE[:NAME]",
        "one context (d_c) for all queries, or one for each (B,d_c), or rows:.. as for a "
        "query; default: c = 0",
        .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT("projection", "FILE[:NAME]", "P (d,d_c): gates see Z P c; default: P = I",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("gate-weights", "FILE[:NAME]", "W (N,d_c): gates see W c instead",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT(
        "fitted", "FILE.safetensors",
        "use what `cgam fit` learned: memories, projection or gate weights, alpha, beta, "
        "lambda; options on the command line take precedence",
        .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_CHOICE("metric", "dot|cosine|l2", "dot",
                      "how query and memories are compared: <z,q>, <z,q>/(|z||q|) or -|z-q|^2/2; "
                      "gates see the memories as they are"),
    OPTION("lambda"),
    OPTION("alpha"),
    OPTION("beta"),
    OPTION("mode"),
    OPTION("beta-start"),
    OPTION("activation"),
    CGAM_PARAM_NORMALIZE,
    CGAM_PARAM_INT("top", "K", "5", 0, 1e9, "number of memories to list, most probable first"),
    CGAM_PARAM_TEXT(
        "target", "FILE|INDEX",
        "the memory that gaps, bound and p refer to, instead of the winner: an index, or a "
        "file with one per query",
        .input = CGAM_INPUT_NUMBERS),
    OPTION("certify"),
    OPTION("fast"),
    OPTION("tol-p"),
    OPTION("none"),
    CGAM_PARAM_TEXT("only", "FILE|N,N-N,..|NAME,..",
                    "recall among these memories only: a list of numbers or of names; or a file, "
                    "booleans (N) or row numbers in .npy, or names in any other file, one per "
                    "line; rows keep their numbers",
                    .input = CGAM_INPUT_ROWS),
    CGAM_PARAM_TEXT("except", "FILE|N,N-N,..|NAME,..",
                    "leave these memories out; given as for --only, or as rows:7",
                    .input = CGAM_INPUT_ROWS),
    CGAM_PARAM_TEXT(
        "where", "PREDICATE",
        "recall among the memories whose columns satisfy this: \"lang = 'de' and year >= 2020\"; "
        "operators: = != < <= > >= in and or not, parentheses"),
    CGAM_PARAM_TEXT("columns", "FILE",
                    "columns for --where: .csv with a heading, or .npz; default: those of the "
                    "packed bank",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_TEXT(
        "names", "FILE",
        "list names beside numbers: a file with one per line; without FILE those in a packed "
        "bank, or X.names beside X.npy. rows:.., --only and --except use the same names",
        .bare = CGAM_NAMES_BESIDE, .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_FLAG("check", "packed bank: read the whole file and verify its digests first"),
    CGAM_PARAM_REAL("min-p", "X", NULL, 0, 1, "list only memories at least this probable"),
    CGAM_PARAM_FLAG("explain", "the scores of the top memories in parts: query evidence, context "
                               "bias, feedback"),
    CGAM_PARAM_FLAG(
        "marks", "limits of alpha, lambda and beta for the first query: alpha_crit, the fold, the "
                 "bounds of uniqueness"),
    OPTION("plain"),
    OPTION("tol"),
    OPTION("max-iter"),
    OPTION("tau-c"),
    OPTION("tau-s"),
    OPTION("tau-r"),
    OPTION("tau-q"),
    OPTION("t-max"),
    OPTION("steady"),
    OPTION("free-context"),
    OPTION("free-query"),
    CGAM_PARAM_TEXT("save-p", "FILE.npy", "write p, f64 (B,N)", .writes = true),
    CGAM_PARAM_TEXT("save-readout", "FILE.npy", "write the readout Z'p, f64 (B,d)", .writes = true),
    CGAM_PARAM_END,
};

/* Everything a call opens, so that one function closes it. */
typedef struct job {
    cgam_call *call;
    cgam_bank *measured;         /* for the metric, over the selected memories; or NULL */
    cgam_bank *bank, *some;      /* the whole bank; the selected memories, or NULL */
    const cgam_row_names *names; /* or NULL */
    double *p_whole;             /* [n] for --save-p of selected memories */
    cgam_recall *plan;
    const cgam_gate *gate; /* from the call's shelf, shared by plans; or NULL */
    cgam_matrix q, c, P, W;
    cgam_fitted fitted; /* of --fitted; P and W move to the matrices above */
    cgam_recall_opts opts;
    int64_t *target;
    cgam_route route;
    cgam_npy_writer *save_p, *save_readout;
    cgam_result *results;
    cgam_anneal *anneal; /* [queries] mode anneal, else NULL */
    int64_t top, *top_index;
    double min_p; /* least probability listed */
    double *top_p, *top_log_p, *p, *readout;
    cgam_score_parts *parts; /* [queries, top], with --explain */
} job;

static void close_job(job *j)
{
    cgam_env *env = j->call->env;
    cgam_npy_abandon(j->save_p);
    cgam_npy_abandon(j->save_readout);
    cgam_recall_free(j->plan);
    cgam_bank_free(j->measured);
    cgam_bank_free(j->some);
    cgam_free(env, j->p_whole);
    cgam_shelf_gate_done(j->call->shelf, j->gate);
    cgam_input_bank_done(j->call, j->bank);
    cgam_fitted_free(env, &j->fitted);
    double *blocks[] = {j->q.data, j->c.data,    j->P.data, j->W.data,
                        j->top_p,  j->top_log_p, j->p,      j->readout};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    cgam_free(env, j->target);
    for (int64_t k = 0; j->anneal && k < j->q.rows; k++) cgam_anneal_free(env, &j->anneal[k]);
    cgam_free(env, j->anneal);
    cgam_free(env, j->results);
    cgam_free(env, j->top_index);
    cgam_free(env, j->parts);
}

static cgam_status check_shape(cgam_env *env, const char *option, const char *what, int64_t got,
                               const char *expected, int64_t want)
{
    if (got == want) return CGAM_OK;
    return cgam_fail(env, CGAM_E_SHAPE, "%s: %s %lld, %s %lld", option, what, (long long)got,
                     expected, (long long)want);
}

/* The memories that take part. */
static const cgam_bank *counts(const job *j)
{
    return j->measured ? j->measured : j->some ? j->some : j->bank;
}

/* Reads all options but the files; numbers of --fitted stand in for those that are not given. */
static cgam_status read_options(const cgam_call *call, const cgam_fitted *fitted,
                                cgam_recall_opts *o)
{
    *o = cgam_recall_opts_default();
    cgam_args_fill(call->args, cgam_recall_opts_rows, o);
    if (cgam_args_given(call->args, "fitted")) {
        if (!cgam_args_given(call->args, "alpha")) o->alpha = fitted->alpha;
        if (!cgam_args_given(call->args, "beta")) o->beta = fitted->beta;
        if (!cgam_args_given(call->args, "lambda")) o->lambda = fitted->lambda;
    }
    if (o->entmax > 0 && cgam_args_flag(call->args, "marks"))
        return cgam_fail(call->env, CGAM_E_ARG, "marks requires activation softmax");
    if (cgam_args_given(call->args, "beta-start") && o->mode != CGAM_ANNEAL)
        return cgam_fail(call->env, CGAM_E_ARG, "beta-start requires mode anneal");
    if (o->mode != CGAM_FLOW && (o->free_context || o->free_query))
        return cgam_fail(call->env, CGAM_E_ARG, "free-%s requires mode flow",
                         o->free_context ? "context" : "query");
    return CGAM_OK;
}

/* Resolves links and dots of a path. If the file does not exist yet, resolves its folder. */
static void resolve(const char *path, char out[2 * PATH_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (realpath(path, out)) return;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(name - path) : 1, slash ? path : ".");
    if (!realpath(folder, out)) snprintf(out, PATH_MAX, "%s", folder); /* opening it will fail */
    snprintf(out + strlen(out), PATH_MAX, "/%s", name);
}

static bool same_file(const char *a, const char *b)
{
    char x[2 * PATH_MAX], y[2 * PATH_MAX];
    resolve(a, x);
    resolve(b, y);
    return strcmp(x, y) == 0;
}

/* Opens the file of --fitted: its P or W, unless one is given, and its memories, unless a bank is. */
static cgam_status open_fitted(job *j, bool weighs)
{
    const cgam_call *call = j->call;
    const char *path = cgam_args_text(call->args, "fitted");
    bool bank = cgam_args_given(call->args, "bank");
    cgam_fitted *f = &j->fitted;
    cgam_bank_opts opts = cgam_bank_opts_default();
    if (!path)
        return bank ? CGAM_OK
                    : cgam_fail(call->env, CGAM_E_ARG, "bank is missing; see: cgam help recall");
    cgam_status status = cgam_fitted_read(call->env, path, f);
    if (status != CGAM_OK) return status;
    if (!bank && !f->Z)
        return cgam_fail(call->env, CGAM_E_ARG,
                         "bank is missing: %s has no memories, since Z was not learned", path);
    if (!bank && call->ranks)
        return cgam_fail(call->env, CGAM_E_UNSUPPORTED, "fitted memories require one process");
    opts.normalize = cgam_args_flag(call->args, "normalize");
    if (!bank) status = cgam_bank_new(call->env, f->Z, CGAM_F64, f->n, f->d, &opts, &j->bank);
    if (status != CGAM_OK || weighs) return status;
    if (f->P) j->P = (cgam_matrix){f->P, f->d, f->d_c, false};
    if (f->W) j->W = (cgam_matrix){f->W, f->n, f->d_c, false};
    f->P = f->W = NULL;
    return CGAM_OK;
}

/* Reads projection or gate weights, if given, and checks those of --fitted too. */
static cgam_status open_weights(job *j, cgam_bank_info bank, int64_t *d_c)
{
    cgam_env *env = j->call->env;
    const char *P = cgam_args_text(j->call->args, "projection");
    const char *W = cgam_args_text(j->call->args, "gate-weights");
    cgam_status status = CGAM_OK;
    *d_c = bank.d;
    if (P) status = cgam_input_matrix(env, P, &j->P);
    if (W && status == CGAM_OK) status = cgam_input_matrix(env, W, &j->W);
    if (j->P.data && status == CGAM_OK) {
        status = check_shape(env, P ? "projection" : "fitted", "the number of rows is",
                             j->P.vector ? 1 : j->P.rows, "the bank has d =", bank.d);
        *d_c = j->P.columns;
    }
    if (j->W.data && status == CGAM_OK) {
        status = check_shape(env, W ? "gate-weights" : "fitted", "the number of rows is", j->W.rows,
                             "the number of memories is", bank.whole);
        *d_c = j->W.columns;
    }
    return status;
}

/* What the results take, and the matrices of a plan at alpha > 0 unless the bank's file or the shelf has them. Results in
 * a tree take more than in memory. */
static cgam_status expect(const job *j, const cgam_recall_opts *o)
{
    enum {
        RESULT = 4500,
        ROW = 230
    }; /* bytes of a tree, measured: 100,000 queries, top 5 and 50 */
    const cgam_call *call = j->call;
    cgam_bank_info info = cgam_bank_describe(counts(j));
    int64_t B = j->q.rows, top = cgam_args_int(call->args, "top");
    if (top > info.n) top = info.n;
    double each = sizeof *j->results + (double)top * 3 * sizeof(double);
    if (cgam_args_flag(call->args, "explain")) each += (double)top * sizeof *j->parts;
    if (!call->streams) each += RESULT + (double)top * ROW;
    bool stored = call->shelf || counts(j)->packed;
    double squares = o->alpha > 0 && !stored ? 1 : 0;
    if (o->certify == CGAM_CERTIFY_FULL)
        squares = squares > 0 ? 3.7 : 1.9; /* measured: 3.8 to 4.2; 1.9 to 3 */
    return cgam_input_expect(call, counts(j), squares, (double)B * each);
}

/* Opens the files and checks that they fit together. */
static cgam_status open_job(job *j)
{
    cgam_call *call = j->call;
    cgam_env *env = call->env;
    const char *context = cgam_args_text(call->args, "context");
    const char *P = cgam_args_text(call->args, "projection");
    const char *W = cgam_args_text(call->args, "gate-weights");
    const char *target = cgam_args_text(call->args, "target");
    const char *save_p = cgam_args_text(call->args, "save-p");
    const char *save_readout = cgam_args_text(call->args, "save-readout");
    if (save_p && save_readout && same_file(save_p, save_readout))
        return cgam_fail(env, CGAM_E_ARG, "save-p and save-readout must be different files");
    if (P && W) return cgam_fail(env, CGAM_E_ARG, "give projection or gate-weights, not both");
    cgam_status status = open_fitted(j, P || W);
    if (status == CGAM_OK && !j->bank) status = cgam_input_bank(call, &j->bank);
    if (status != CGAM_OK) return status;
    cgam_bank_info bank = cgam_bank_describe(j->bank);
    status = cgam_input_vectors(call, j->bank, "query", cgam_args_text(call->args, "query"), &j->q);
    if (status == CGAM_OK)
        status =
            check_shape(env, "query", "queries have d =", j->q.columns, "the bank has d =", bank.d);
    int64_t top = cgam_args_int(call->args, "top");
    if (status == CGAM_OK)
        status = cgam_input_check_answer(call, j->q.rows, top < bank.n ? top : bank.n);
    int64_t d_c = bank.d;
    if (status == CGAM_OK) status = open_weights(j, bank, &d_c);
    if (context && status == CGAM_OK) {
        status = cgam_input_vectors(call, j->bank, "context", context, &j->c);
        if (status == CGAM_OK)
            status = check_shape(env, "context", "contexts have d_c =", j->c.columns,
                                 "the gates expect d_c =", d_c);
        if (status == CGAM_OK && j->c.rows > 1)
            status = check_shape(env, "context", "the number of contexts is", j->c.rows,
                                 "the number of queries is", j->q.rows);
    }
    if (status == CGAM_OK) status = cgam_input_some(call, j->bank, &j->names, &j->some);
    if (target && status == CGAM_OK)
        status = cgam_input_indices(env, "target", target, j->q.rows, bank.whole, &j->target);
    if (status != CGAM_OK) return status;

    cgam_recall_opts o;
    status = read_options(call, &j->fitted, &o);
    if (status != CGAM_OK) return status;
    j->opts = o;
    o.P = j->P.data;
    o.W = j->W.data; /* for the selected memories */
    for (int64_t i = 0; o.W && i < cgam_bank_describe(counts(j)).n; i++)
        memmove(j->W.data + i * d_c, j->W.data + cgam_bank_number(counts(j), i) * d_c,
                (size_t)d_c * sizeof *j->W.data);
    o.d_c = d_c;
    status = cgam_input_metric(call, counts(j), &o, &j->q, j->c.data ? &j->W : NULL, &j->measured);
    if (status == CGAM_OK) status = expect(j, &o);
    if (status != CGAM_OK) return status;
    if (!j->some && !j->measured) status = cgam_shelf_gate(call->shelf, j->bank, &o, &j->gate);
    o.gate = j->gate;
    return status == CGAM_OK ? cgam_recall_new(counts(j), &o, &j->plan) : status;
}

static cgam_status make_outputs(job *j)
{
    cgam_env *env = j->call->env;
    cgam_bank_info bank = cgam_bank_describe(counts(j));
    bool writes = CGAM_CALL_WRITES(j->call);
    const char *p = cgam_args_text(j->call->args, "save-p");
    const char *readout = cgam_args_text(j->call->args, "save-readout");
    const int64_t B = j->q.rows, piece = B < CGAM_RECALL_GROUP ? B : CGAM_RECALL_GROUP;
    j->top = cgam_args_int(j->call->args, "top");
    if (j->top > bank.n) j->top = bank.n;
    if (cgam_args_given(j->call->args, "min-p")) j->min_p = cgam_args_real(j->call->args, "min-p");
    const bool explain = cgam_args_flag(j->call->args, "explain");
    const bool want_p = p || (explain && !cgam_args_is(j->call->args, "mode", "first"));
    cgam_status status = cgam_alloc_all(
        env, "results", CGAM_ZEROS(j->results, B), CGAM_ARRAY(j->top_index, B * j->top),
        CGAM_ARRAY(j->top_p, B * j->top), CGAM_ARRAY(j->top_log_p, B * j->top));
    if (status == CGAM_OK && want_p)
        status = cgam_alloc_all(env, "results", CGAM_ARRAY(j->p, piece * bank.n));
    if (status == CGAM_OK && p && bank.n < bank.whole)
        status = cgam_alloc_all(env, "results", CGAM_ZEROS(j->p_whole, bank.whole));
    if (status == CGAM_OK && explain)
        status = cgam_alloc_all(env, "results", CGAM_ARRAY(j->parts, B * j->top));
    if (status == CGAM_OK && readout)
        status = cgam_alloc_all(env, "results", CGAM_ARRAY(j->readout, piece * bank.d));
    if (status == CGAM_OK && cgam_args_is(j->call->args, "mode", "anneal"))
        status = cgam_alloc_all(env, "results", CGAM_ZEROS(j->anneal, B));
    if (status != CGAM_OK) return status;
    if (p && writes)
        status = cgam_npy_begin(env, p, CGAM_F64, 2, (int64_t[]){B, bank.whole}, &j->save_p);
    if (readout && writes && status == CGAM_OK)
        status =
            cgam_npy_begin(env, readout, CGAM_F64, 2, (int64_t[]){B, bank.d}, &j->save_readout);
    return status;
}

/* Computes the parts of the scores of the queries of `in`, whose first is query `from`. */
static cgam_status explain_top(job *j, const cgam_recall_in *in, int64_t from)
{
    cgam_bank_info bank = cgam_bank_describe(counts(j));
    bool first = cgam_args_is(j->call->args, "mode", "first");
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < in->queries && status == CGAM_OK; k++)
        status =
            cgam_recall_parts(j->plan, in->q + k * bank.d,
                              in->c && in->c_per_query ? in->c + k * j->c.columns : in->c,
                              first ? NULL : j->p + k * bank.n, j->top,
                              j->top_index + (from + k) * j->top, j->parts + (from + k) * j->top);
    return status;
}

/* Appends p of `count` queries, with zeros for memories that are not selected. */
static cgam_status append_p(job *j, int64_t count)
{
    cgam_bank_info bank = cgam_bank_describe(counts(j));
    cgam_status status = CGAM_OK;
    if (!j->p_whole) return cgam_npy_append(j->save_p, j->p, count * bank.n);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        for (int64_t i = 0; i < bank.n; i++)
            j->p_whole[cgam_bank_number(counts(j), i)] = j->p[k * bank.n + i];
        status = cgam_npy_append(j->save_p, j->p_whole, bank.whole);
    }
    return status;
}

static cgam_status recall_queries(job *j)
{
    cgam_bank_info bank = cgam_bank_describe(counts(j));
    cgam_status status = CGAM_OK;
    bool own = j->c.rows > 1 || (j->c.rows == 1 && j->q.rows == 1);
    for (int64_t from = 0, count; from < j->q.rows && status == CGAM_OK; from += count) {
        count = j->q.rows - from < CGAM_RECALL_GROUP ? j->q.rows - from : CGAM_RECALL_GROUP;
        cgam_recall_in in = {.queries = count,
                             .q = j->q.data + from * bank.d,
                             .c = j->c.data ? j->c.data + (own ? from * j->c.columns : 0) : NULL,
                             .c_per_query = own,
                             .target = j->target ? j->target + from : NULL};
        cgam_recall_out out = {.results = j->results + from,
                               .top = j->top,
                               .top_index = j->top_index + from * j->top,
                               .top_p = j->top_p + from * j->top,
                               .top_log_p = j->top_log_p + from * j->top,
                               .p = j->p,
                               .readout = j->readout,
                               .anneal = j->anneal ? j->anneal + from : NULL};
        if (from == 0) j->route = cgam_recall_route(j->plan, &in, &out);
        status = cgam_recall_run(j->plan, &in, &out);
        if (status == CGAM_OK && j->save_p) status = append_p(j, count);
        if (status == CGAM_OK && j->parts) status = explain_top(j, &in, from);
        if (status == CGAM_OK && j->save_readout)
            status = cgam_npy_append(j->save_readout, j->readout, count * bank.d);
    }
    if (status == CGAM_OK && j->call->ranks)
        status = cgam_ranks_agree(j->call->env, j->call->ranks); /* before files are named */
    if (status == CGAM_OK && j->save_p) {
        status = cgam_npy_finish(j->save_p);
        j->save_p = NULL;
    }
    if (status == CGAM_OK && j->save_readout) {
        status = cgam_npy_finish(j->save_readout);
        j->save_readout = NULL;
    }
    return status;
}

/* ---- The document ------------------------------------------------------------------------------- */
static void put_branch(json_t *doc, const cgam_anneal *branch)
{
    cgam_json_put(doc, "path",
                  cgam_fields_list(cgam_anneal_point_rows, branch->path, branch->points,
                                   sizeof *branch->path));
    cgam_json_put(doc, "transitions",
                  cgam_fields_list(cgam_transition_rows, branch->transition, branch->transitions,
                                   sizeof *branch->transition));
}

/* The parts of the scores of `count` memories: arrays in their order. */
static json_t *parts_json(const cgam_score_parts *parts, int64_t count)
{
    enum { STRIDE = sizeof *parts / sizeof(double) };
    json_t *doc = json_object();
    cgam_json_put(doc, "evidence", cgam_json_reals(&parts->evidence, count, STRIDE));
    cgam_json_put(doc, "bias", cgam_json_reals(&parts->bias, count, STRIDE));
    cgam_json_put(doc, "feedback", cgam_json_reals(&parts->feedback, count, STRIDE));
    return doc;
}

static void put_top(const job *j, int64_t k, json_t *doc)
{
    json_t *top = json_array(), *logs = json_array(), *names = json_array();
    for (int64_t i = k * j->top; i < (k + 1) * j->top; i++) {
        if (j->top_p[i] < j->min_p) break; /* p is sorted, largest first */
        json_t *pair = json_array();
        json_array_append_new(pair, json_integer(j->top_index[i]));
        json_array_append_new(pair, cgam_json_real(j->top_p[i]));
        json_array_append_new(top, pair);
        json_array_append_new(logs, cgam_json_real(j->top_log_p[i]));
        if (j->names)
            json_array_append_new(names,
                                  cgam_json_lossy(cgam_row_names_at(j->names, j->top_index[i])));
    }
    if (j->parts)
        cgam_json_put(doc, "parts",
                      parts_json(j->parts + k * j->top, (int64_t)json_array_size(top)));
    cgam_json_put(doc, "top", top);
    cgam_json_put(doc, "top_log_p", logs);
    if (j->names) cgam_json_put(doc, "top_names", names);
    else json_decref(names);
}

static json_t *result_json(const job *j, int64_t k)
{
    const cgam_args *args = j->call->args;
    unsigned facts = (cgam_args_given(args, "none") ? CGAM_WITH_NONE : 0) |
                     (cgam_args_flag(args, "fast") ? CGAM_WITH_FAST : 0) |
                     (j->target ? CGAM_WITH_TARGET : 0) | (j->names ? CGAM_WITH_NAMES : 0) |
                     (j->parts ? CGAM_WITH_PARTS : 0) | (j->anneal ? CGAM_WITH_BRANCH : 0) |
                     (cgam_args_is(args, "activation", "softmax") ? 0 : CGAM_WITH_SPARSE);
    json_t *doc = cgam_fields_json(cgam_result_rows, &j->results[k], facts);
    put_top(j, k, doc);
    if (j->anneal) put_branch(doc, &j->anneal[k]);
    return doc;
}

/* Where the list is made later, the document holds its first items: templates ask whether there is one, and for the facts
 * of the first. */
static void put_results(job *j)
{
    enum { FEW = 2 };
    json_t *doc = j->call->doc, *queries = json_array();
    cgam_bank_info bank = cgam_bank_describe(j->bank);
    cgam_gate_info gate = cgam_gate_describe(cgam_recall_gate(j->plan));
    if (j->measured) /* the limits of gates of mapped rows are not those of the bank */
        gate.critical.alpha = NAN, gate.critical.alpha_lo = 0, gate.critical.alpha_hi = INFINITY;
    cgam_fields_put_some(doc, "n=whole", cgam_bank_info_rows, &bank);
    if (j->some || bank.n < bank.whole)
        cgam_json_put_int(doc, "among", cgam_bank_describe(counts(j)).n);
    cgam_fields_put_some(doc, "d", cgam_bank_info_rows, &bank);
    cgam_args_put(j->call->args,
                  cgam_args_is(j->call->args, "activation", "softmax") ? "mode" : "mode activation",
                  doc);
    if (j->measured) cgam_json_put_text(doc, "metric", cgam_args_text(j->call->args, "metric"));
    cgam_json_add(doc, "alpha=%g beta=%g lambda=%g", j->opts.alpha, j->opts.beta, j->opts.lambda);
    cgam_json_put(doc, "route", cgam_fields_json(cgam_route_rows, &j->route, 0));
    cgam_fields_put_some(doc, "regime alpha_crit", cgam_gate_info_rows, &gate);
    cgam_json_add(doc, "alpha_crit_known=%s alpha_crit_bounds=%p",
                  isnan(gate.critical.alpha)   ? "bounds"
                  : isinf(gate.critical.alpha) ? "none"
                  : gate.critical.proved       ? "proved"
                                               : "estimate",
                  cgam_json_reals(&gate.critical.alpha_lo, 2, 1));
    cgam_fields_put_some(doc, "eta_min eta_min_exact", cgam_gate_info_rows, &gate);
    if (cgam_args_flag(j->call->args, "free-context")) {
        double margin = cgam_recall_context_margin(j->plan);
        cgam_json_add(doc, "context_margin=%g context_stable?=%d", margin, margin > 0);
    }
    for (int64_t k = 0; k < j->q.rows; k++) {
        cgam_end end = j->results[k].end;
        j->call->negative |=
            end != CGAM_END_DIRECT && end != CGAM_END_CONVERGED && end != CGAM_END_HORIZON;
        if (!j->call->streams || k < FEW) json_array_append_new(queries, result_json(j, k));
    }
    cgam_json_put(doc, "queries", queries);
}

/* Puts the limits of alpha, lambda and beta for the first query. */
static cgam_status put_marks(const job *j)
{
    cgam_marks marks;
    cgam_status status = cgam_recall_marks(j->plan, j->q.data, j->c.data, &marks);
    if (status == CGAM_OK)
        cgam_json_put(j->call->doc, "marks", cgam_fields_json(cgam_marks_rows, &marks, 0));
    return status;
}

static json_t *late_result(void *of, int64_t k)
{
    const job *j = of;
    return cgam_interrupted(j->call->env) ? NULL : result_json(j, k);
}

static void free_late(void *of)
{
    job *j = of;
    cgam_env *env = j->call->env;
    close_job(j);
    cgam_free(env, j);
}

/* Leaves the results to the code that prints the document: as a tree they would take some 6 KB each. */
static cgam_status leave_results(const job *j)
{
    job *left;
    cgam_status status = cgam_alloc_all(j->call->env, "results", CGAM_ZEROS(left, 1));
    if (status != CGAM_OK) return status;
    *left = *j;
    j->call->late = (cgam_late){"queries", j->q.rows, late_result, free_late, left};
    return CGAM_OK;
}

static cgam_status run_recall(cgam_call *call)
{
    job j = {.call = call};
    cgam_status status = open_job(&j);
    if (status == CGAM_OK) status = make_outputs(&j);
    if (status == CGAM_OK) status = recall_queries(&j);
    if (status == CGAM_OK) put_results(&j);
    if (status == CGAM_OK && cgam_args_flag(call->args, "marks") && j.q.rows > 0)
        status = put_marks(&j);
    if (status == CGAM_OK && call->streams) status = leave_results(&j);
    if (!call->late.of) close_job(&j);
    return status;
}

const cgam_verb cgam_verb_recall = {
    .name = "recall",
    .params = params,
    .ranks = CGAM_RANKS_ALL,
    .run = run_recall,
};
