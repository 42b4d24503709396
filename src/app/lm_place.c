/* lm_place.c: where a study and what is beside it go in a report, and the command that makes it again. */
#include "app/lm.h"

#include "io/array.h"
#include "io/folder.h"
#include "report/models.h"

#include <string.h>

/* Letters, digits, points, dashes and underscores of a name without its folder and ending. */
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

/* The name of the study: its data, its relation, and its model where that is not the default. */
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
        return cgam_fail(env, CGAM_E_ARG, "report and %s exclude each other",
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

/* An option with a value as a shell takes it; "" for a flag. */
static void add_option(char *text, size_t size, size_t *used, const char *name, const char *value)
{
    const char *quote = strpbrk(value, " \\{}'\"$&|;<>()*?[]`~#!") ? "'" : "";
    cgam_text_add(text, size, used, " --%s%s%s", name, *value ? " " : "", quote);
    for (; *value; value++) /* a quote within quotes: out of them, itself, into them again */
        cgam_text_add(text, size, used, *value == '\'' ? "'\\'%c" : "%c", *value);
    cgam_text_add(text, size, used, "%s", quote);
}

void cgam_lm_put_command(cgam_call *call)
{
    char text[2048];
    size_t used = 0;
    cgam_text_add(text, sizeof text, &used, "cgam %s", call->verb->name);
    for (const cgam_param *q = call->verb->params; q->name[0]; q++) {
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
    cgam_json_put_text(call->doc, "study", at->out);
    cgam_json_put_text(call->doc, "report", status == CGAM_OK ? page : NULL);
    return status;
}
