/* verb_recall.c: queries meet a bank. */
#include "app/input.h"
#include "app/recall_explain.h"
#include "app/recall_print.h"
#include "app/verbs.h"
#include "base/env.h"
#include "num/ranks.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAU(option, layer)                                                                         \
    CGAM_PARAM_REAL(option, "X", "1", CGAM_ABOVE_0, INFINITY,                                      \
                    "mode flow: time constant of the " layer)

static const cgam_param params[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("query", "FILE[:NAME]",
                    "one query (d) or several (B,d); or a sum of memories by number or name, "
                    "rows:7*0.5+king*0.5, several separated by ;, 'in quotes' where a name has "
                    "one of +-*;' in it or begins with a digit",
                    .required = true, .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT(
        "context", "FILE[:NAME]",
        "one context (d_c) for all queries, or one for each (B,d_c), or rows:.. as for a "
        "query; without it c = 0",
        .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT("projection", "FILE[:NAME]", "P (d,d_c): gates see Z P c; without it P = I",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("gate-weights", "FILE[:NAME]", "W (N,d_c): gates see W c instead",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_LAMBDA("1"),
    CGAM_PARAM_ALPHA("0"),
    CGAM_PARAM_BETA("1"),
    CGAM_PARAM_CHOICE("mode", "first|coupled|flow|anneal", "first",
                      "first order (gates from the context alone), the self-consistent fixed "
                      "point, the network in time, from rest to a steady state or --t-max at any "
                      "alpha, or the fixed point on the branch from beta = 0"),
    CGAM_PARAM_REAL(
        "beta-start", "X", NULL, CGAM_ABOVE_0, INFINITY,
        "mode anneal: where the branch begins; without it half the beta below which the "
        "fixed point is unique"),
    CGAM_PARAM(
        CGAM_TEXT, "activation", "NAME", "softmax", 0, 0,
        "how scores become weights: softmax, sparsemax, entmax15, or entmax:A with 1 < A <= 2; "
        "all but softmax give most memories the weight 0, and exact answers from a margin on"),
    CGAM_PARAM_NORMALIZE,
    CGAM_PARAM_INT("top", "K", "5", 0, 1e9, "how many of the most probable memories to list"),
    CGAM_PARAM_TEXT("target", "FILE|INDEX",
                    "the memory that gaps, bound and p speak of, instead of the winner: an index, "
                    "or a file with one per query",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_FLAG("certify",
                    "also compute what costs more than the recall: exact fold margin and local "
                    "contraction, alpha_crit, a search for a second fixed point"),
    CGAM_PARAM_FLAG("fast",
                    "mode first: search by an int8 sketch of the bank, with proof, and read "
                    "only rows that it leaves open; p as an interval"),
    CGAM_PARAM_REAL("tol-p", "X", NULL, 0, 1,
                    "with --fast: read on until the interval of p is that narrow"),
    CGAM_PARAM_REAL("none", "X", NULL, -INFINITY, INFINITY,
                    "mode first: a ghost memory of score X stands for none of these"),
    CGAM_PARAM_TEXT("only", "FILE",
                    "recall among these memories: .npy of booleans (N) or of row numbers, any "
                    "other file has names, one a line; rows keep their numbers",
                    .input = CGAM_INPUT_ROWS),
    CGAM_PARAM_TEXT(
        "names", "FILE",
        "list names beside numbers: a file with one a line; without FILE those of the "
        "bank, in it where it is packed, else X.names beside X.npy. Names in rows:.. and "
        "--only are these",
        .bare = CGAM_NAMES_BESIDE, .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_FLAG("check", "a packed bank: read all of it and compare the digests first"),
    CGAM_PARAM_REAL("min-p", "X", NULL, 0, 1, "leave out of the list what is less probable"),
    CGAM_PARAM_FLAG("explain", "the scores of the top memories in parts: query evidence, context "
                               "bias, feedback"),
    CGAM_PARAM_FLAG("marks", "how far alpha, lambda and beta can go: alpha_crit, the fold, the "
                             "bounds of uniqueness; of the first query"),
    CGAM_PARAM_FLAG("plain", "mode coupled: no Newton finish"),
    CGAM_PARAM_REAL("tol", "X", "1e-12", 0, 1, "mode coupled: stop when p changes by at most this"),
    CGAM_PARAM_INT("max-iter", "N", "10000", 1, 1e9,
                   "mode coupled: stop after this many iterations"),
    TAU("tau-c", "context"),
    TAU("tau-s", "gates"),
    TAU("tau-r", "retrieval"),
    TAU("tau-q", "query"),
    CGAM_PARAM_REAL("t-max", "T", "100", CGAM_ABOVE_0, INFINITY, "mode flow: horizon"),
    CGAM_PARAM_REAL("steady", "X", "1e-9", 0, 1,
                    "mode flow: stop when |x - F(x)| is within this, relative to the largest |x| "
                    "or 1; 0 goes on to --t-max"),
    CGAM_PARAM_FLAG("free-context",
                    "mode flow: the context moves from where it is given instead of being held. "
                    "Whether it can settle is checked first and told as context_margin"),
    CGAM_PARAM_FLAG("free-query",
                    "mode flow: the query moves from where it is given instead of being held"),
    CGAM_PARAM_TEXT("save-p", "FILE.npy", "write p, f64 (B,N)", .writes = true),
    CGAM_PARAM_TEXT("save-readout", "FILE.npy", "write the readout Z'p, f64 (B,d)", .writes = true),
    CGAM_PARAM_END,
};

/* Everything a call opens, so that one function closes it. */
typedef struct job {
    cgam_call *call;
    cgam_bank *bank, *some;      /* the whole, and with --only what counts; else NULL */
    const cgam_row_names *names; /* or NULL */
    double *p_whole;             /* [n] with --save-p where not all of them count */
    cgam_recall *plan;
    const cgam_gate *gate; /* on the call's shelf, shared by plans; NULL: none */
    cgam_matrix q, c, P, W;
    int64_t *target;
    cgam_route route;
    cgam_npy_writer *save_p, *save_readout;
    cgam_result *results;
    cgam_anneal *anneal; /* [queries] mode anneal, else NULL */
    int64_t top, *top_index;
    double min_p; /* of what is listed */
    double *top_p, *top_log_p, *p, *readout;
    cgam_score_parts *parts; /* [queries, top], with --explain */
} job;

static void job_close(job *j)
{
    cgam_env *env = j->call->env;
    cgam_npy_abandon(j->save_p);
    cgam_npy_abandon(j->save_readout);
    cgam_recall_free(j->plan);
    cgam_bank_free(j->some);
    cgam_free(env, j->p_whole);
    cgam_shelf_gate_done(j->call->shelf, j->gate);
    cgam_input_bank_done(j->call, j->bank);
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

static cgam_status shape(cgam_env *env, const char *option, const char *what, int64_t got,
                         const char *expected, int64_t want)
{
    if (got == want) return CGAM_OK;
    return cgam_fail(env, CGAM_E_SHAPE, "%s: %s %lld, %s %lld", option, what, (long long)got,
                     expected, (long long)want);
}

/* The memories that take part. */
static const cgam_bank *counts(const job *j) { return j->some ? j->some : j->bank; }

/* What the options say, but for files. */
static cgam_status options(cgam_call *call, cgam_recall_opts *out)
{
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_mode_find(cgam_args_text(call->args, "mode"), &o.mode);
    o.alpha = cgam_args_real(call->args, "alpha");
    o.beta = cgam_args_real(call->args, "beta");
    o.lambda = cgam_args_real(call->args, "lambda");
    o.tol = cgam_args_real(call->args, "tol");
    o.max_iter = cgam_args_int(call->args, "max-iter");
    o.plain = cgam_args_flag(call->args, "plain");
    o.certify = cgam_args_flag(call->args, "certify");
    o.fast = cgam_args_flag(call->args, "fast");
    if (cgam_args_given(call->args, "tol-p")) o.tol_p = cgam_args_real(call->args, "tol-p");
    o.none = cgam_args_given(call->args, "none");
    if (o.none) o.none_score = cgam_args_real(call->args, "none");
    const char *activation = cgam_args_text(call->args, "activation");
    if (!cgam_activation_find(activation, &o.entmax))
        return cgam_fail(
            call->env, CGAM_E_ARG,
            "activation: '%s' is none of softmax, sparsemax, entmax15, and entmax:A with "
            "1 + 1e-9 <= A <= 2",
            activation);
    if (o.entmax > 0 && cgam_args_flag(call->args, "marks"))
        return cgam_fail(call->env, CGAM_E_ARG, "marks are those of softmax: leave out activation");
    o.tau_c = cgam_args_real(call->args, "tau-c");
    o.tau_s = cgam_args_real(call->args, "tau-s");
    o.tau_r = cgam_args_real(call->args, "tau-r");
    o.tau_q = cgam_args_real(call->args, "tau-q");
    o.t_max = cgam_args_real(call->args, "t-max");
    o.steady = cgam_args_real(call->args, "steady");
    o.free_context = cgam_args_flag(call->args, "free-context");
    o.free_query = cgam_args_flag(call->args, "free-query");
    if (cgam_args_given(call->args, "beta-start")) {
        o.beta_start = cgam_args_real(call->args, "beta-start");
        if (o.mode != CGAM_ANNEAL)
            return cgam_fail(call->env, CGAM_E_ARG, "beta-start needs mode anneal");
    }
    if (o.mode != CGAM_FLOW && (o.free_context || o.free_query))
        return cgam_fail(call->env, CGAM_E_ARG, "free-%s needs mode flow",
                         o.free_context ? "context" : "query");
    *out = o;
    return CGAM_OK;
}

/* The path without links and dots; of a file that is not there yet, by its folder. */
static void resolve(const char *path, char out[2 * PATH_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (realpath(path, out)) return;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(name - path) : 1, slash ? path : ".");
    if (!realpath(folder, out)) snprintf(out, PATH_MAX, "%s", folder); /* it will be refused */
    snprintf(out + strlen(out), PATH_MAX, "/%s", name);
}

static bool same_file(const char *a, const char *b)
{
    char x[2 * PATH_MAX], y[2 * PATH_MAX];
    resolve(a, x);
    resolve(b, y);
    return strcmp(x, y) == 0;
}

/* Opens the files and checks that they fit together. */
static cgam_status job_open(job *j)
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
        return cgam_fail(env, CGAM_E_ARG, "save-p and save-readout name the same file");
    if (P && W) return cgam_fail(env, CGAM_E_ARG, "projection and gate-weights exclude each other");
    cgam_status status = cgam_input_bank(call, &j->bank);
    if (status != CGAM_OK) return status;
    cgam_bank_info bank = cgam_bank_describe(j->bank);
    status = cgam_input_vectors(call, j->bank, "query", cgam_args_text(call->args, "query"), &j->q);
    if (status == CGAM_OK)
        status = shape(env, "query", "queries have d =", j->q.columns, "the bank has", bank.d);
    int64_t d_c = bank.d;
    if (P && status == CGAM_OK) {
        status = cgam_input_matrix(env, P, &j->P);
        if (status == CGAM_OK)
            status =
                shape(env, "projection", "rows are", j->P.vector ? 1 : j->P.rows, "d is", bank.d);
        d_c = j->P.columns;
    }
    if (W && status == CGAM_OK) {
        status = cgam_input_matrix(env, W, &j->W);
        if (status == CGAM_OK)
            status = shape(env, "gate-weights", "rows are", j->W.rows, "memories are", bank.whole);
        d_c = j->W.columns;
    }
    if (context && status == CGAM_OK) {
        status = cgam_input_vectors(call, j->bank, "context", context, &j->c);
        if (status == CGAM_OK)
            status =
                shape(env, "context", "contexts have d_c =", j->c.columns, "the gates expect", d_c);
        if (status == CGAM_OK && j->c.rows > 1)
            status = shape(env, "context", "contexts are", j->c.rows, "queries are", j->q.rows);
    }
    if (status == CGAM_OK) status = cgam_input_only(call, j->bank, &j->names, &j->some);
    if (target && status == CGAM_OK)
        status = cgam_input_indices(env, "target", target, j->q.rows, bank.whole, &j->target);
    if (status != CGAM_OK) return status;

    cgam_recall_opts o;
    status = options(call, &o);
    if (status != CGAM_OK) return status;
    o.P = j->P.data;
    o.W = j->W.data; /* of what counts */
    for (int64_t i = 0; o.W && i < cgam_bank_describe(counts(j)).n; i++)
        memmove(j->W.data + i * d_c, j->W.data + cgam_bank_number(counts(j), i) * d_c,
                (size_t)d_c * sizeof *j->W.data);
    o.d_c = d_c;
    if (!j->some) status = cgam_shelf_gate(call->shelf, j->bank, &o, &j->gate);
    o.gate = j->gate;
    return status == CGAM_OK ? cgam_recall_new(counts(j), &o, &j->plan) : status;
}

static cgam_status job_room(job *j)
{
    cgam_env *env = j->call->env;
    cgam_bank_info bank = cgam_bank_describe(counts(j));
    bool writes = CGAM_CALL_WRITES(j->call);
    const char *p = cgam_args_text(j->call->args, "save-p");
    const char *readout = cgam_args_text(j->call->args, "save-readout");
    int64_t B = j->q.rows, piece = B < CGAM_RECALL_GROUP ? B : CGAM_RECALL_GROUP;
    j->top = cgam_args_int(j->call->args, "top");
    if (j->top > bank.n) j->top = bank.n;
    if (cgam_args_given(j->call->args, "min-p")) j->min_p = cgam_args_real(j->call->args, "min-p");
    j->results = cgam_zalloc(env, (size_t)B, sizeof *j->results);
    j->top_index = cgam_alloc(env, (size_t)(B * j->top), sizeof *j->top_index);
    j->top_p = cgam_alloc(env, (size_t)(B * j->top), sizeof *j->top_p);
    j->top_log_p = cgam_alloc(env, (size_t)(B * j->top), sizeof *j->top_log_p);
    bool explain = cgam_args_flag(j->call->args, "explain");
    bool want_p = p || (explain && !cgam_args_is(j->call->args, "mode", "first"));
    if (want_p) j->p = cgam_alloc(env, (size_t)piece * (size_t)bank.n, sizeof *j->p);
    bool fewer = bank.n < bank.whole;
    if (p && fewer) j->p_whole = cgam_zalloc(env, (size_t)bank.whole, sizeof *j->p_whole);
    if (explain) j->parts = cgam_alloc(env, (size_t)(B * j->top), sizeof *j->parts);
    if (readout) j->readout = cgam_alloc(env, (size_t)piece * (size_t)bank.d, sizeof *j->readout);
    bool anneals = cgam_args_is(j->call->args, "mode", "anneal");
    if (anneals) j->anneal = cgam_zalloc(env, (size_t)B, sizeof *j->anneal);
    if (!j->results || (anneals && !j->anneal) || !j->top_index || !j->top_p || !j->top_log_p ||
        (want_p && !j->p) || (readout && !j->readout) || (explain && !j->parts) ||
        (p && fewer && !j->p_whole))
        return cgam_fail_nomem(env, "results");
    cgam_status status = CGAM_OK;
    if (p && writes)
        status = cgam_npy_begin(env, p, CGAM_F64, 2, (int64_t[]){B, bank.whole}, &j->save_p);
    if (readout && writes && status == CGAM_OK)
        status =
            cgam_npy_begin(env, readout, CGAM_F64, 2, (int64_t[]){B, bank.d}, &j->save_readout);
    return status;
}

/* The parts of the scores of the queries of `in`, the first of which is query `from`. */
static cgam_status job_explain(job *j, const cgam_recall_in *in, int64_t from)
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

/* p of `count` queries, with zeros for memories that do not count. */
static cgam_status job_save_p(job *j, int64_t count)
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

static cgam_status job_recall(job *j)
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
        if (status == CGAM_OK && j->save_p) status = job_save_p(j, count);
        if (status == CGAM_OK && j->parts) status = job_explain(j, &in, from);
        if (status == CGAM_OK && j->save_readout)
            status = cgam_npy_append(j->save_readout, j->readout, count * bank.d);
    }
    if (status == CGAM_OK && j->call->ranks)
        status = cgam_ranks_agree(j->call->env, j->call->ranks); /* before anything is named */
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

static void put_proof(json_t *certificates, const char *name, double value, bool proved)
{
    if (isfinite(value)) cgam_json_put_text(certificates, name, proved ? "proved" : "estimate");
}

/* What was asked of the recall beyond its answer. */
static void put_extras(const job *j, const cgam_result *r, json_t *doc)
{
    bool none = cgam_args_given(j->call->args, "none");
    if (none) cgam_json_put_real(doc, "p_none", r->p_none);
    if (!cgam_args_flag(j->call->args, "fast")) return;
    json_t *fast = json_object();
    cgam_json_put_int(fast, "rescored", r->rescored);
    cgam_json_put_real(fast, "p_from", r->p_from);
    cgam_json_put_real(fast, "p_to", r->p_to);
    cgam_json_put_bool(fast, "fallback", r->fallback);
    cgam_json_put(doc, "fast", fast);
    if (none) cgam_json_put_real(doc, "p_none_from", r->p_none_from);
    if (none) cgam_json_put_real(doc, "p_none_to", r->p_none_to);
}

/* What only a sparse activation has. */
static void put_sparse(const job *j, const cgam_result *r, json_t *doc)
{
    if (cgam_args_is(j->call->args, "activation", "softmax")) return;
    cgam_json_put_int(doc, "support", r->support);
    cgam_json_put_bool(doc, "exact", r->exact);
}

static void put_index(json_t *doc, const char *name, int64_t index)
{
    cgam_json_put(doc, name, index < 0 ? json_null() : json_integer(index));
}

static void put_branch(json_t *doc, const cgam_anneal *branch)
{
    json_t *path = json_array(), *transitions = json_array();
    for (int64_t i = 0; i < branch->points; i++) {
        const cgam_anneal_point *x = &branch->path[i];
        json_t *point = json_object();
        cgam_json_put_real(point, "beta", x->beta);
        cgam_json_put_real(point, "energy", x->energy);
        cgam_json_put_int(point, "winner", x->winner);
        cgam_json_put_real(point, "p", x->p);
        cgam_json_put_real(point, "fold_margin", x->fold_margin);
        json_array_append_new(path, point);
    }
    for (int64_t i = 0; i < branch->transitions; i++) {
        json_t *turn = json_object();
        cgam_json_put_real(turn, "beta", branch->transition[i].beta);
        cgam_json_put_text(turn, "kind", cgam_transition_kind_name(branch->transition[i].kind));
        json_array_append_new(transitions, turn);
    }
    cgam_json_put(doc, "path", path);
    cgam_json_put(doc, "transitions", transitions);
}

static json_t *result_doc(const job *j, int64_t k)
{
    const cgam_result *r = &j->results[k];
    json_t *doc = json_object(), *top = json_array(), *logs = json_array(), *names = json_array();
    put_index(doc, "winner", r->winner);
    cgam_json_put_real(doc, "p", r->p);
    cgam_json_put_real(doc, "log_p", r->log_p);
    put_extras(j, r, doc);
    for (int64_t i = 0; i < j->top; i++) {
        if (j->top_p[k * j->top + i] < j->min_p) break; /* p falls */
        json_t *pair = json_array();
        json_array_append_new(pair, json_integer(j->top_index[k * j->top + i]));
        json_array_append_new(pair, cgam_json_real(j->top_p[k * j->top + i]));
        json_array_append_new(top, pair);
        json_array_append_new(logs, cgam_json_real(j->top_log_p[k * j->top + i]));
        if (j->names)
            json_array_append_new(
                names, cgam_json_lossy(cgam_row_names_at(j->names, j->top_index[k * j->top + i])));
    }
    int64_t listed = (int64_t)json_array_size(top);
    cgam_json_put(doc, "top", top);
    cgam_json_put(doc, "top_log_p", logs);
    if (j->names) cgam_json_put(doc, "top_names", names);
    else json_decref(names);
    if (j->parts) cgam_parts_put(doc, j->parts + k * j->top, listed);
    if (j->target) {
        cgam_json_put_int(doc, "target", r->focus);
        cgam_json_put_real(doc, "target_p", r->p);
        cgam_json_put_int(doc, "target_rank", r->focus_rank);
    }
    cgam_json_put_real(doc, "neff_entropy", r->neff_entropy);
    cgam_json_put_real(doc, "neff_ipr", r->neff_ipr);
    put_sparse(j, r, doc);
    cgam_json_put_real(doc, "gap", r->gap);
    cgam_json_put_real(doc, "gap_raw", r->gap_raw);
    cgam_json_put_real(doc, "gap_gate", r->gap_gate);
    cgam_json_put_real(doc, "p_lower_bound", r->p_lower_bound);
    cgam_json_put_real(doc, "readout_left_out", r->readout_left_out);
    cgam_json_put_int(doc, "iterations", r->iterations);
    cgam_json_put_int(doc, "newton_steps", r->newton_steps);
    cgam_json_put_text(doc, "end", cgam_end_name(r->end));
    cgam_json_put_real(doc, "change", r->change);
    cgam_json_put_real(doc, "time", r->time);
    cgam_json_put_real(doc, "energy_start", r->energy_start);
    cgam_json_put_real(doc, "energy_end", r->energy_end);
    cgam_json_put_real(doc, "energy_rise", r->energy_rise);
    cgam_json_put_real(doc, "contraction", r->contraction);
    cgam_json_put_real(doc, "local_contraction", r->local_contraction);
    cgam_json_put(doc, "unique", r->unique < 0 ? json_null() : json_boolean(r->unique));
    cgam_json_put_real(doc, "fold_margin", r->fold_margin);
    cgam_json_put_bool(doc, "fold_margin_exact", r->fold_margin_exact);
    cgam_json_put_real(doc, "p_error", r->p_error);
    json_t *proofs = json_object();
    put_proof(proofs, "p_lower_bound", r->p_lower_bound, r->p_lower_bound_proved);
    put_proof(proofs, "contraction", r->contraction, r->contraction_proved);
    put_proof(proofs, "local_contraction", r->local_contraction, r->local_contraction_proved);
    put_proof(proofs, "fold_margin", r->fold_margin, r->fold_margin_proved);
    put_proof(proofs, "p_error", r->p_error, r->p_error_proved);
    put_proof(proofs, "unique", r->unique < 0 ? NAN : r->unique, r->unique_proved);
    cgam_json_put(doc, "certificates", proofs);
    if (j->anneal) put_branch(doc, &j->anneal[k]);
    return doc;
}

static void job_doc(job *j)
{
    json_t *doc = j->call->doc, *queries = json_array(), *route = json_object();
    cgam_bank_info bank = cgam_bank_describe(j->bank);
    cgam_gate_info gate = cgam_gate_describe(cgam_recall_gate(j->plan));
    cgam_json_put_int(doc, "n", bank.whole);
    if (j->some || bank.n < bank.whole)
        cgam_json_put_int(doc, "among", cgam_bank_describe(counts(j)).n);
    cgam_json_put_int(doc, "d", bank.d);
    cgam_json_put_text(doc, "mode", cgam_args_text(j->call->args, "mode"));
    if (!cgam_args_is(j->call->args, "activation", "softmax"))
        cgam_json_put_text(doc, "activation", cgam_args_text(j->call->args, "activation"));
    cgam_json_put_real(doc, "alpha", gate.alpha);
    cgam_json_put_real(doc, "beta", cgam_args_real(j->call->args, "beta"));
    cgam_json_put_real(doc, "lambda", cgam_args_real(j->call->args, "lambda"));
    cgam_json_put_text(route, "path", cgam_path_name(j->route.path));
    cgam_json_put_text(route, "precision", cgam_dtype_name(j->route.precision));
    cgam_json_put_int(route, "group", j->route.group);
    cgam_json_put(doc, "route", route);
    cgam_json_put_text(doc, "regime", cgam_regime_name(gate.regime));
    cgam_json_put_real(doc, "alpha_crit", gate.critical.alpha);
    cgam_json_put_text(doc, "alpha_crit_known",
                       isnan(gate.critical.alpha)   ? "bounds"
                       : isinf(gate.critical.alpha) ? "none"
                       : gate.critical.proved       ? "proved"
                                                    : "estimate");
    cgam_json_put(
        doc, "alpha_crit_bounds",
        cgam_json_reals((double[]){gate.critical.alpha_lo, gate.critical.alpha_hi}, 2, 1));
    cgam_json_put_real(doc, "eta_min", gate.eta_min);
    cgam_json_put_bool(doc, "eta_min_exact", gate.eta_min_exact);
    if (cgam_args_flag(j->call->args, "free-context")) {
        double margin = cgam_recall_context_margin(j->plan);
        cgam_json_put_real(doc, "context_margin", margin);
        cgam_json_put_bool(doc, "context_stable", margin > 0);
    }
    for (int64_t k = 0; k < j->q.rows; k++) {
        cgam_end end = j->results[k].end;
        j->call->negative |=
            end != CGAM_END_DIRECT && end != CGAM_END_CONVERGED && end != CGAM_END_HORIZON;
        json_array_append_new(queries, result_doc(j, k));
    }
    cgam_json_put(doc, "queries", queries);
}

static cgam_status run(cgam_call *call)
{
    job j = {.call = call};
    cgam_status status = job_open(&j);
    if (status == CGAM_OK) status = job_room(&j);
    if (status == CGAM_OK) status = job_recall(&j);
    if (status == CGAM_OK) job_doc(&j);
    if (status == CGAM_OK && cgam_args_flag(call->args, "marks") && j.q.rows > 0)
        status = cgam_marks_put(call->doc, j.plan, j.q.data, j.c.data);
    job_close(&j);
    return status;
}

const cgam_verb cgam_verb_recall = {
    .name = "recall",
    .summary = "find memories by query and context",
    .about =
        "Scores every memory of the bank by the query and by what the context does to the gates, "
        "and reports who wins, how surely, and what of that is proved.\n\n"
        "Mode first: s = A^-1 u, r = Z q + lambda s with u = Z P c. Mode coupled: the fixed point "
        "of p = softmax(beta r), s = A^-1 (u + lambda p), reached by an iteration whose energy "
        "cannot rise; it needs alpha below alpha_crit. Mode flow: the four layers of the memory in "
        "time, tau_s s' = u - A s + lambda p, tau_r r' = b + lambda s - r, at any alpha; context "
        "and query are held unless they are set free. Mode anneal: the fixed point at the end of the "
        "branch that begins at small beta, where there is only one, with every fold, pitchfork and "
        "change of leader on the way; the answer depends on no start.\n\n"
        "Every certificate in the JSON document is marked proved or estimate. What is undefined "
        "or was not computed is null; --certify computes it. Its route tells which way the recall "
        "took - pass, matrices, vectors, sketch, coupled, coupled-together, flow or anneal - whether most of the "
        "arithmetic was in f64 or f32, and how many queries went together.\n\n"
        "--fast makes a sketch of the bank (in the time of some four recalls, once for all queries), scans that "
        "and scores only rows that its proved bounds leave open: winner, list and gaps are those "
        "without it, p is an interval. Where that would cost more, all rows are read and fast.fallback "
        "says so. --none X adds a ghost memory of score X to every sum, gap and bound; where it wins, "
        "winner is null. Both serve mode first: the others need every score, and p acts on gates, of which a ghost has "
        "none (docs/guide/banks.md has a row for it that serves all modes). --only makes it a "
        "recall among some of the memories, in every mode.\n\n"
        "--activation sparsemax, entmax15 or entmax:A puts alpha-entmax of order A (2, 1.5) in the place "
        "of softmax: p = [1 + (A-1)(beta r - tau)]_+^(1/(A-1)). support counts the memories with p > 0; "
        "exact is true where p is proved to be 1 for the winner and 0 for all others, which a gap of "
        "1 / ((A-1) beta) does. All bounds are then those of the activation. It runs in double; --fast, "
        "--none and --marks are softmax's.",
    .example = "cgam recall --bank Z.npy --query q.npy --context c.npy --lambda 2 --beta 4",
    .params = params,
    .ranks = CGAM_RANKS_ALL,
    .run = run,
    .print = cgam_recall_print,
};
