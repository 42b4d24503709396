/* lm.c: opens a study from the values of a call, and writes its results to files. */
#include "app/lm.h"

#include "io/array.h"
#include "lab/figures/picture.h"
#include "lab/folder.h"
#include "lab/page/report.h"

#include <string.h>

cgam_lm_study_opts cgam_lm_opts(const cgam_call *call, cgam_line *line)
{
    const cgam_args *args = call->args;
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    opts.model = cgam_args_text(args, "model");
    opts.store = cgam_args_text(args, "store");
    const char *const *sets; /* the first if several are given; the verb reads the others */
    if (cgam_args_words(args, "dataset", &sets) > 0) opts.dataset = sets[0];
    opts.dtype = (cgam_dtype)cgam_word_find(cgam_dtype_words, cgam_args_text(args, "dtype"));
    cgam_args_fill(args, cgam_lm_study_opts_rows, &opts);
    cgam_args_fill(args, cgam_lm_answer_rows, &opts); /* skips --answer generate */
    opts.progress = cgam_line_begin(line, call->progress);
    return opts;
}

cgam_status cgam_lm_of(cgam_call *call, cgam_lm **out)
{
    const char *path = cgam_args_text(call->args, "model");
    return call->shelf ? cgam_shelf_model(call->shelf, path, out)
                       : cgam_lm_open(call->env, path, out);
}

void cgam_lm_done(cgam_call *call, cgam_lm *lm)
{
    if (call->shelf) cgam_shelf_model_done(call->shelf, lm);
    else cgam_lm_close(lm);
}

cgam_status cgam_lm_study_of(cgam_call *call, const cgam_lm_study_opts *opts, cgam_lm_study **out)
{
    cgam_lm_study_opts o = *opts;
    *out = NULL;
    cgam_status status = call->shelf ? cgam_shelf_model(call->shelf, o.model, &o.lm) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_lm_study_open(call->env, &o, out);
    if (status != CGAM_OK) cgam_shelf_model_done(call->shelf, o.lm);
    return status;
}

void cgam_lm_study_done(cgam_call *call, cgam_lm_study *study)
{
    cgam_lm *lm = study ? study->lm : NULL;
    cgam_lm_study_close(study);
    cgam_shelf_model_done(call->shelf, lm);
}

void cgam_lm_leave_out(const cgam_args *args, const char *option, const char *first, bool *no_first,
                       bool *no_second)
{
    const char *const *words;
    int64_t count = cgam_args_words(args, option, &words);
    *no_first = *no_second = count > 0;
    for (int64_t i = 0; i < count; i++)
        *(strcmp(words[i], first) == 0 ? no_first : no_second) = false;
}

json_t *cgam_lm_piece_json(const cgam_lm *lm, int32_t token)
{
    char piece[256];
    return cgam_json_lossy(cgam_lm_piece(lm, token, piece, sizeof piece));
}

cgam_status cgam_lm_leave(cgam_call *call, const char *out, cgam_lm_part part,
                          const cgam_lm_result *result, json_t *doc, json_t *files)
{
    bool figures = cgam_args_is(call->args, "figures", "yes");
    cgam_status status = cgam_models_leave(call->env, out, figures, part, result, doc, files);
    json_t *missing = json_object_get(doc, "figures_missing");
    if (missing && doc != call->doc)
        cgam_json_put(call->doc, "figures_missing", json_incref(missing));
    return status;
}

void cgam_lm_put_files(json_t *doc, const char *out, json_t *files)
{
    if (out) cgam_json_put_text(doc, "out", out);
    if (out) cgam_json_put(doc, "files", files);
    else json_decref(files);
}

static cgam_status run_at(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment,
                          const char *out, const char *store)
{
    cgam_line line;
    cgam_lm_study *study = NULL;
    cgam_lm_result *result = NULL;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    opts.store = store;
    cgam_status status = cgam_lm_study_of(call, &opts, &study);
    if (status == CGAM_OK) status = experiment(study, call->args, &result);
    cgam_line_clear(&line);
    json_t *files = json_array();
    if (status == CGAM_OK) status = cgam_lm_leave(call, out, part, result, call->doc, files);
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    cgam_lm_result_free(result);
    cgam_lm_study_done(call, study);
    return status;
}

cgam_status cgam_lm_run(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment)
{
    const char *out = cgam_args_text(call->args, "out");
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (out) cgam_lm_put_command(call);
    return status == CGAM_OK
               ? run_at(call, part, experiment, out, cgam_args_text(call->args, "store"))
               : status;
}

cgam_status cgam_lm_run_reported(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment)
{
    cgam_lm_place to;
    cgam_status status = cgam_lm_place_find(call, &to);
    cgam_lm_put_command(call);
    if (status == CGAM_OK)
        status = run_at(call, part, experiment, to.out[0] ? to.out : NULL,
                        to.store[0] ? to.store : NULL);
    return status == CGAM_OK ? cgam_lm_place_show(call, &to) : status;
}

/* ---- The folder of a study in a report ------------------------------------------------------------- */

/* Appends the letters, digits, points, dashes and underscores of a file name without its folder and suffix. */
static void add_stem(char *name, size_t size, const char *path)
{
    const char *from = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *end = strrchr(from, '.');
    size_t used = strlen(name), length = end && end > from ? (size_t)(end - from) : strlen(from);
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        unsigned char c = (unsigned char)from[i];
        bool fine = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    c == '-' || c == '_' || (c == '.' && i > 0);
        name[used++] = fine ? (char)c : '-';
    }
    name[used] = '\0';
}

/* The option that names a folder: --folder where --out is a file. */
static const char *folder_of(const cgam_call *call)
{
    bool file = cgam_verb_param_named(call->verb, "folder", strlen("folder")) != NULL;
    return cgam_args_text(call->args, file ? "folder" : "out");
}

/* The name of the study: its data, its relation, and its model if that is not the default. */
static void add_name(const cgam_call *call, char *name, size_t size)
{
    const char *eval = cgam_args_text(call->args, "eval");
    const char *const *sets;
    int64_t count = cgam_args_words(call->args, "dataset", &sets);
    for (int64_t i = 0; i + 1 < count; i++) {
        add_stem(name, size, sets[i]);
        snprintf(name + strlen(name), size - strlen(name), "-");
    }
    const char *parts[] = {
        eval        ? eval
        : count > 0 ? sets[count - 1]
                    : "sentiment",
        cgam_args_is(call->args, "dataset", "lama") ? cgam_args_text(call->args, "relation") : NULL,
        cgam_args_text(call->args, "model")};
    for (int i = 0; i < 3; i++) {
        if (!parts[i]) continue;
        if (i > 0) snprintf(name + strlen(name), size - strlen(name), "-");
        add_stem(name, size, parts[i]);
    }
}

cgam_status cgam_lm_place_find(const cgam_call *call, cgam_lm_place *to)
{
    cgam_env *env = call->env;
    char name[128] = "lm/";
    const char *out = folder_of(call);
    const char *store = cgam_args_text(call->args, "store");
    *to = (cgam_lm_place){.report = cgam_args_text(call->args, "report")};
    if (to->report && out)
        return cgam_fail(env, CGAM_E_ARG, "give report or %s, not both",
                         out == cgam_args_text(call->args, "out") ? "out" : "folder");
    cgam_status status = CGAM_OK;
    add_name(call, name, sizeof name);
    if (to->report) status = cgam_path_join(env, to->report, name, to->out);
    else if (out) snprintf(to->out, sizeof to->out, "%s", out);
    if (store) snprintf(to->store, sizeof to->store, "%s", store);
    else if (to->report && status == CGAM_OK)
        status = cgam_path_join(env, to->report, "lm/states.db", to->store);
    return status == CGAM_OK && to->out[0] ? cgam_folder_make(env, to->out) : status;
}

/* Appends an option and its value, quoted for a shell; value "" for a flag. */
static void add_option(char *text, size_t size, size_t *used, const char *name, const char *value)
{
    const char *quote = strpbrk(value, " \\{}'\"$&|;<>()*?[]`~#!") ? "'" : "";
    cgam_text_add(text, size, used, " --%s%s%s", name, *value ? " " : "", quote);
    for (; *value; value++) /* ' becomes '\'' */
        cgam_text_add(text, size, used, *value == '\'' ? "'\\'%c" : "%c", *value);
    cgam_text_add(text, size, used, "%s", quote);
}

void cgam_lm_put_command(cgam_call *call)
{
    char text[2048];
    size_t used = 0;
    cgam_text_add(text, sizeof text, &used, "cgam %s", call->verb->name);
    const cgam_param *q;
    for (int k = 0; (q = cgam_verb_param(call->verb, k)); k++) {
        if (cgam_field_find(cgam_params_common, q->name, strlen(q->name))) break;
        if (!cgam_args_given(call->args, q->name) || strcmp(q->name, "out") == 0 ||
            strcmp(q->name, "folder") == 0 || strcmp(q->name, "report") == 0 ||
            strcmp(q->name, "store") == 0)
            continue;
        const char *const *values;
        int64_t count = q->many ? cgam_args_words(call->args, q->name, &values) : 0;
        for (int64_t i = 0; i < count; i++)
            add_option(text, sizeof text, &used, q->name, values[i]);
        if (!q->many)
            add_option(text, sizeof text, &used, q->name,
                       q->kind == CGAM_FLAG ? "" : cgam_args_text(call->args, q->name));
    }
    cgam_json_put_text(call->doc, "command", text);
}

cgam_status cgam_lm_place_show(cgam_call *call, const cgam_lm_place *at)
{
    char page[CGAM_PATH_ROOM];
    if (!at->report) return CGAM_OK;
    cgam_status status = cgam_models_refresh(call->env, at->report);
    if (status == CGAM_OK) status = cgam_path_join(call->env, at->report, "index.html", page);
    cgam_json_add(call->doc, "study=%s report=%s", at->out, status == CGAM_OK ? page : NULL);
    return status;
}

/* ---- Prompts under edits ------------------------------------------------------------------------ */

cgam_status cgam_lm_edit_set(cgam_call *call, cgam_lm *lm, cgam_edit_set **out)
{
    const char *const *vector, *const *edit;
    int64_t vectors = cgam_args_words(call->args, "vector", &vector), v = 0;
    int64_t edits = cgam_args_words(call->args, "edit", &edit), e = 0;
    cgam_status status = cgam_edit_set_new(lm, out);
    if (status != CGAM_OK) return status;
    while ((v < vectors || e < edits) && status == CGAM_OK) {
        bool first =
            e == edits || (v < vectors && cgam_args_before(call->args, vector[v], edit[e]));
        status =
            first ? cgam_edit_set_vectors(*out, vector[v++]) : cgam_edit_set_word(*out, edit[e++]);
    }
    if (status != CGAM_OK) {
        cgam_edit_set_free(*out);
        *out = NULL;
    }
    return status;
}

json_t *cgam_lm_token_list(const cgam_lm *lm, int64_t count, const int32_t *tokens)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(
            list, cgam_json_object("id=%d piece=%p", tokens[i], cgam_lm_piece_json(lm, tokens[i])));
    }
    return list;
}

cgam_status cgam_lm_prompt_tokens(cgam_call *call, cgam_lm *lm, const char *system, bool chat,
                                  int32_t **tokens, int64_t *count)
{
    const char *text = cgam_args_text(call->args, "prompt");
    cgam_status status;
    if (chat) {
        const cgam_lm_message messages[] = {{"system", system}, {"user", text}};
        status = cgam_lm_chat(lm, system ? 2 : 1, system ? messages : messages + 1, tokens, count);
    } else {
        status = cgam_lm_tokenize(lm, text, true, tokens, count);
    }
    if (status == CGAM_OK && *count == 0) {
        cgam_lm_tokens_free(lm, *tokens);
        *tokens = NULL;
        status = cgam_fail(call->env, CGAM_E_ARG, "prompt: has no tokens");
    }
    return status;
}
