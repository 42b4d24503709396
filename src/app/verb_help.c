/* verb_help.c: help, completion and version. */
#include "app/params.h"
#include "app/verbs.h"
#include "base/env.h"

#include <stdlib.h>

static const cgam_param help_params[] = {
    CGAM_PARAM_TEXT("VERB", "VERB", "the verb to explain, or the first word of several",
                    .many = true),
    CGAM_PARAM_FLAG("man", "print the man page source"),
    CGAM_PARAM_FLAG("verbs", "print the names of all verbs, one per line"),
    CGAM_PARAM_END,
};

cgam_status cgam_verb_fail(cgam_env *env, int count, const char *const *words)
{
    char typed[80];
    int used;
    bool two = count > 1 && (cgam_verb_group(words[0]) || cgam_verb_find(1, words, &used));
    snprintf(typed, sizeof typed, "%s%s%s", words[0], two ? " " : "", two ? words[1] : "");
    cgam_near near = cgam_verb_suggest(typed);
    return cgam_fail(env, CGAM_E_ARG, "no verb '%s'%s%.*s%s see: cgam help%s%s", typed,
                     near.best ? "; did you mean " : ";", near.length, near.best ? near.best : "",
                     near.best ? "?" : "", two ? " " : "", two ? words[0] : "");
}

/* Puts the text printed to a stream in memory into the document. */
static cgam_status put_text(cgam_call *call, FILE *to, char **text)
{
    bool fine = to && fclose(to) == 0 && *text;
    if (fine) cgam_json_put_text(call->doc, "text", *text);
    free(*text);
    return fine ? CGAM_OK : cgam_fail_nomem(call->env, "a text");
}

static void print_help(const cgam_args *args, const cgam_verb *verb, const char *group, FILE *to)
{
    if (cgam_args_flag(args, "verbs"))
        for (int v = 0; cgam_verbs[v]; v++) fprintf(to, "%s\n", cgam_verbs[v]->name);
    else if (cgam_args_flag(args, "man")) cgam_help_man(verb, to);
    else if (verb) cgam_help_verb(verb, to);
    else cgam_help_list(group, to);
}

/* Puts the requested help, as text and as the rows of the table. */
static cgam_status help_run(cgam_call *call)
{
    const char *const *words, *group = NULL;
    int count = (int)cgam_args_words(call->args, "VERB", &words), used = 0;
    const cgam_verb *verb = cgam_verb_find(count, words, &used);
    if (count == 1 && cgam_verb_group(words[0])) group = words[0];
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    bool search = count == 1 && used == 0 && !group && !cgam_verb_suggest(words[0]).best;
    if (count != used && !group && !(search && to && cgam_help_search(words[0], to))) {
        if (to) fclose(to);
        free(text);
        return cgam_verb_fail(call->env, count, words);
    }
    if (verb) {
        json_t *about = cgam_help_json(verb);
        json_object_update(call->doc, about);
        json_decref(about);
    }
    if (group || !verb) cgam_json_put(call->doc, "verbs", cgam_help_json_list(group));
    cgam_json_put_text(call->doc, "version", cgam_version());
    if (to && (count == used || group)) print_help(call->args, verb, group, to);
    return put_text(call, to, &text);
}

static void text_print(const json_t *doc, FILE *to)
{
    cgam_help_print(cgam_json_get_text(doc, "text"), to);
}

const cgam_verb cgam_verb_help = {
    .name = "help",
    .ranks = CGAM_RANKS_FIRST,
    .wordy = true,
    .params = help_params,
    .run = help_run,
    .print = text_print,
};

static const cgam_param completion_params[] = {
    CGAM_PARAM_CHOICE("SHELL", "bash|zsh|fish", NULL, "the shell", .required = true),
    CGAM_PARAM_TEXT(
        "WORD", "WORD",
        "instead of a script, complete the words after --; the last word is preceded by a dot",
        .many = true),
    CGAM_PARAM_END,
};

static cgam_status completion_run(cgam_call *call)
{
    const char *const *words, *shell = cgam_args_text(call->args, "SHELL");
    int count = (int)cgam_args_words(call->args, "WORD", &words);
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    cgam_json_put_text(call->doc, "shell", shell);
    if (to && count) cgam_complete(count - 1, words, words[count - 1] + 1, to);
    else if (to) fputs(cgam_completion_script(shell), to);
    return put_text(call, to, &text);
}

const cgam_verb cgam_verb_completion = {
    .name = "completion",
    .ranks = CGAM_RANKS_FIRST,
    .wordy = true,
    .local = true,
    .params = completion_params,
    .run = completion_run,
    .print = text_print,
};

static cgam_status version_run(cgam_call *call)
{
    cgam_json_put_text(call->doc, "version", cgam_version());
    return CGAM_OK;
}

const cgam_verb cgam_verb_version = {
    .name = "version",
    .ranks = CGAM_RANKS_FIRST,
    .wordy = true,
    .run = version_run,
};
