/* lm_input.c: from the words of the command line to prompts and their states. */
#include "app/lm.h"
#include "app/lm_bar.h"
#include "base/env.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void cgam_lm_input_close(cgam_lm_input *in)
{
    cgam_prompts_free(in->prompts);
    cgam_dataset_close(in->eval);
    cgam_dataset_close(in->train);
    cgam_store_close(in->store);
    cgam_lm_close(in->lm);
    *in = (cgam_lm_input){0};
}

static int rising(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static cgam_status read_shots(cgam_lm_input *in)
{
    const double *given;
    int64_t n = cgam_args_reals(in->call->args, "shots", &given);
    in->shots[in->n_shots++] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (given[i] != floor(given[i]))
            return cgam_fail(in->call->env, CGAM_E_ARG, "--shots: %g is not a whole number",
                             given[i]);
        bool known = false;
        for (int64_t j = 0; j < in->n_shots; j++)
            known = known || in->shots[j] == (int64_t)given[i];
        if (known) continue;
        if (in->n_shots == CGAM_SHOTS_ROOM)
            return cgam_fail(in->call->env, CGAM_E_ARG, "--shots: at most %d numbers",
                             CGAM_SHOTS_ROOM - 1);
        in->shots[in->n_shots++] = (int64_t)given[i];
    }
    qsort(in->shots, (size_t)in->n_shots, sizeof *in->shots, rising);
    return CGAM_OK;
}

/* Where the publishers' files are under $CGAM_DATA. */
static const struct {
    const char *name, *eval, *train;
} known[] = {{"sst2", "sst2/dev.tsv", "sst2/train.tsv"},
             {"agnews", "agnews/test.csv", "agnews/train_part.csv"},
             {"trec", "trec/TREC_10.label", "trec/train_5500.label"}};

static cgam_status open_known(cgam_lm_input *in, const char *name, const char *labels)
{
    cgam_env *env = in->call->env;
    const char *folder = getenv("CGAM_DATA");
    char path[1024];
    if (!folder || !folder[0])
        return cgam_fail(env, CGAM_E_NOT_FOUND,
                         "--dataset %s: CGAM_DATA does not name the folder that holds it", name);
    if (strcmp(name, "lama") == 0) {
        snprintf(path, sizeof path, "%s/lama/TREx/%s.jsonl", folder,
                 cgam_args_text(in->call->args, "relation"));
        return cgam_dataset_open(env, "lama", path, labels, &in->eval);
    }
    cgam_status status = CGAM_E_NOT_FOUND;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, known[i].eval);
        status = cgam_dataset_open(env, name, path, labels, &in->eval);
        snprintf(path, sizeof path, "%s/%s", folder, known[i].train);
        if (status == CGAM_OK) status = cgam_dataset_open(env, name, path, labels, &in->train);
    }
    return status;
}

static cgam_status open_data(cgam_lm_input *in)
{
    const cgam_args *args = in->call->args;
    cgam_env *env = in->call->env;
    const char *name = cgam_args_text(args, "dataset"), *eval = cgam_args_text(args, "eval");
    const char *train = cgam_args_text(args, "train"), *labels = cgam_args_text(args, "labels");
    if (name && (eval || train))
        return cgam_fail(env, CGAM_E_ARG, "--dataset and --eval exclude each other");
    if (!eval && train) return cgam_fail(env, CGAM_E_ARG, "--train needs --eval");
    if (eval) {
        const char *format = cgam_args_text(args, "format");
        in->name = eval;
        cgam_status status = cgam_dataset_open(env, format, eval, labels, &in->eval);
        if (status == CGAM_OK && train)
            status = cgam_dataset_open(env, format, train, labels, &in->train);
        return status;
    }
    in->name = name ? name : "sentiment";
    bool shipped = strcmp(in->name, "facts") == 0 || strcmp(in->name, "sentiment") == 0;
    return shipped ? cgam_dataset_shipped(env, in->name, &in->eval)
                   : open_known(in, in->name, labels);
}

/* \n and \t in a template, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool escape = *at == '\\' && (at[1] == 'n' || at[1] == 't' || at[1] == '\\');
        if (!escape) *to++ = *at;
        else {
            at++;
            *to++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : '\\';
        }
    }
    *to = '\0';
}

static cgam_status open_prompts(cgam_lm_input *in)
{
    const cgam_args *args = in->call->args;
    cgam_env *env = in->call->env;
    cgam_prompts_opts opts = cgam_prompts_opts_default();
    opts.queries = cgam_args_int(args, "queries");
    opts.shots_max = in->shots[in->n_shots - 1];
    opts.shared = strcmp(cgam_args_text(args, "demos"), "shared") == 0;
    opts.seed = (uint64_t)cgam_args_int(args, "seed");
    char *wording = NULL;
    if (cgam_args_text(args, "template")) {
        wording = cgam_strdup(env, cgam_args_text(args, "template"));
        if (!wording) return cgam_fail_nomem(env, "a template");
        unescape(wording);
        opts.wording = wording;
    }
    cgam_status status = cgam_prompts_new(env, in->eval, in->train, &opts, &in->prompts);
    cgam_free(env, wording);
    if (status == CGAM_OK) in->queries = cgam_prompts_count(in->prompts);
    return status;
}

cgam_status cgam_lm_input_open(cgam_call *call, cgam_lm_input *in)
{
    *in = (cgam_lm_input){.call = call, .exact = cgam_args_flag(call->args, "exact")};
    const char *store = cgam_args_text(call->args, "store");
    const char *dtype = cgam_args_text(call->args, "dtype");
    for (int i = CGAM_F32; i <= CGAM_BF16; i++)
        if (strcmp(dtype, cgam_dtype_name((cgam_dtype)i)) == 0) in->dtype = (cgam_dtype)i;
    cgam_status status = read_shots(in);
    if (status == CGAM_OK) status = open_data(in);
    if (status == CGAM_OK) status = open_prompts(in);
    if (status == CGAM_OK) status = cgam_input_lm(call, &in->lm);
    if (status == CGAM_OK) in->info = cgam_lm_describe(in->lm);
    if (status == CGAM_OK && store) status = cgam_store_open(call->env, store, true, &in->store);
    return status;
}

/* ---- Prompts ------------------------------------------------------------------------------ */
typedef struct sheet {
    char **text;
    int32_t **tokens;
    cgam_lm_prompt *prompt;
} sheet;

static void sheet_free(cgam_lm_input *in, sheet *s)
{
    cgam_env *env = in->call->env;
    for (int64_t i = 0; i < in->queries; i++) {
        if (s->text) cgam_prompts_release(in->prompts, s->text[i]);
        if (s->tokens) cgam_lm_tokens_free(in->lm, s->tokens[i]);
    }
    cgam_free(env, s->text);
    cgam_free(env, s->tokens);
    cgam_free(env, s->prompt);
}

static cgam_status sheet_fill(cgam_lm_input *in, int64_t k, cgam_demos demos, sheet *s)
{
    cgam_env *env = in->call->env;
    size_t n = (size_t)in->queries;
    *s = (sheet){cgam_zalloc(env, n, sizeof *s->text), cgam_zalloc(env, n, sizeof *s->tokens),
                 cgam_zalloc(env, n, sizeof *s->prompt)};
    if (!s->text || !s->tokens || !s->prompt) return cgam_fail_nomem(env, "prompts");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < in->queries && status == CGAM_OK; i++) {
        status = cgam_prompts_text(in->prompts, i, k, demos, &s->text[i]);
        if (status != CGAM_OK) break;
        status = cgam_lm_tokenize(in->lm, s->text[i], true, &s->tokens[i], &s->prompt[i].count);
        s->prompt[i].tokens = s->tokens[i];
    }
    return status;
}

cgam_status cgam_lm_input_states(cgam_lm_input *in, int64_t k, cgam_demos demos, float **out)
{
    cgam_env *env = in->call->env;
    size_t one = (size_t)((in->info.layers + 1) * in->info.width);
    char note[256];
    sheet s;
    cgam_collected report = {0};
    snprintf(note, sizeof note, "%s, %lld shots%s, seed %lld", in->name, (long long)k,
             demos == CGAM_DEMOS_FLIPPED   ? " flipped"
             : demos == CGAM_DEMOS_FOREIGN ? " foreign"
                                           : "",
             (long long)cgam_args_int(in->call->args, "seed"));
    cgam_status status = sheet_fill(in, k, demos, &s);
    if (out) {
        *out = status == CGAM_OK ? cgam_alloc(env, (size_t)in->queries * one, sizeof **out) : NULL;
        if (status == CGAM_OK && !*out) status = cgam_fail_nomem(env, "states");
    }
    cgam_bar bar;
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.capture.exact = in->exact;
    opts.capture.progress = cgam_bar_begin(in->call, &bar);
    opts.dtype = in->dtype;
    opts.note = note;
    if (status == CGAM_OK)
        status = cgam_lm_collect(in->lm, in->store, in->queries, s.prompt,
                                 (const char *const *)s.text, &opts, out ? *out : NULL, &report);
    cgam_bar_end(&bar);
    sheet_free(in, &s);
    in->found += report.found;
    in->computed += report.computed;
    in->tokens += report.tokens;
    in->seconds += report.seconds;
    if (status != CGAM_OK && out) {
        cgam_free(env, *out);
        *out = NULL;
    }
    return status;
}

/* Tokens of cue + blank + word that follow those of the cue alone: what the model would have to
 * say next. */
static cgam_status first_token(cgam_lm_input *in, const char *word, int32_t *out)
{
    const char *cue = cgam_prompts_cue(in->prompts);
    char text[1024];
    int32_t *before = NULL, *with = NULL;
    int64_t n = 0, m = 0;
    int length = snprintf(text, sizeof text, "%s %s", cue, word);
    if (length >= (int)sizeof text)
        return cgam_fail(in->call->env, CGAM_E_ARG, "a label of %d characters is too long", length);
    cgam_status status = cgam_lm_tokenize(in->lm, cue, false, &before, &n);
    if (status == CGAM_OK) status = cgam_lm_tokenize(in->lm, text, false, &with, &m);
    if (status == CGAM_OK) {
        bool prefix = m > n;
        for (int64_t i = 0; i < n && prefix; i++) prefix = before[i] == with[i];
        if (prefix) *out = with[n];
        else
            status = cgam_fail(in->call->env, CGAM_E_ARG,
                               "the label '%s' does not begin with a token of its own after '%s'",
                               word, cue);
    }
    cgam_lm_tokens_free(in->lm, before);
    cgam_lm_tokens_free(in->lm, with);
    return status;
}

cgam_status cgam_lm_input_label_tokens(cgam_lm_input *in, int32_t **out)
{
    cgam_env *env = in->call->env;
    const cgam_dataset *set = in->eval;
    int64_t labels = cgam_dataset_labels(set);
    *out = cgam_alloc(env, (size_t)labels, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "labels");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < labels && status == CGAM_OK; i++)
        status = first_token(in, cgam_dataset_word(set, i), &(*out)[i]);
    for (int64_t i = 0; i < labels && status == CGAM_OK; i++) {
        int32_t token = (*out)[i];
        for (int64_t j = i + 1; j < labels && token >= 0; j++) {
            if ((*out)[j] != token) continue;
            char text[32];
            if (!cgam_dataset_open_ended(set)) {
                status = cgam_fail(env, CGAM_E_ARG,
                                   "labels %s and %s begin with the same token '%s'; name other "
                                   "words with --labels",
                                   cgam_dataset_word(set, i), cgam_dataset_word(set, j),
                                   cgam_lm_piece(in->lm, token, text, sizeof text));
                break;
            }
            (*out)[i] = (*out)[j] = -1;
        }
    }
    if (status != CGAM_OK) {
        cgam_free(env, *out);
        *out = NULL;
    }
    return status;
}

void cgam_put_lm_input(json_t *doc, const cgam_lm_input *in)
{
    char path[1024];
    const char *file = cgam_args_text(in->call->args, "model");
    if (!file && cgam_lm_model_path(in->call->env, path, sizeof path) == CGAM_OK) file = path;
    cgam_put_lm(doc, in->lm);
    if (file && strrchr(file, '/')) file = strrchr(file, '/') + 1;
    cgam_json_put_text(json_object_get(doc, "model"), "file", file);
    cgam_json_put_text(doc, "dataset", in->name);
    cgam_json_put_text(doc, "engine", in->exact ? "exact" : "llama");
    cgam_json_put_int(doc, "queries", in->queries);
    cgam_json_put_int(doc, "labels", cgam_dataset_labels(in->eval));
    cgam_json_put_text(doc, "demos", cgam_args_text(in->call->args, "demos"));
    cgam_json_put_int(doc, "seed", cgam_args_int(in->call->args, "seed"));
    json_t *capture = json_object();
    cgam_json_put_int(capture, "found", in->found);
    cgam_json_put_int(capture, "computed", in->computed);
    cgam_json_put_int(capture, "tokens", in->tokens);
    cgam_json_put_real(capture, "seconds", in->seconds);
    cgam_json_put(doc, "capture", capture);
}
