/* verb_help.c: help and version. */
#include "app/params.h"
#include "app/verbs.h"
#include "base/env.h"

#include <stdlib.h>

static const cgam_param help_params[] = {
    CGAM_PARAM_TEXT("VERB", "VERB", "the verb to explain"),
    CGAM_PARAM_TEXT("SECOND", "WORD", "its second word, if it has two"),
    CGAM_PARAM_FLAG("man", "print the man page source"),
    CGAM_PARAM_FLAG("verbs", "print the names of all verbs, one a line"),
    CGAM_PARAM_END,
};

/* What was asked for, as text in the document: the door prints it as it stands. */
static cgam_status help_run(cgam_call *call)
{
    const char *first = cgam_args_text(call->args, "VERB");
    const char *second = cgam_args_text(call->args, "SECOND");
    const cgam_verb *verb = NULL;
    if (first) {
        const char *words[] = {first, second};
        int count = second ? 2 : 1, used;
        verb = cgam_verb_find(count, words, &used);
        if (!verb || used != count) {
            const char *near = cgam_verb_suggest(first);
            return cgam_fail(call->env, CGAM_E_ARG, "no verb '%s%s%s'%s%s%s", first,
                             second ? " " : "", second ? second : "", near ? "; did you mean " : "",
                             near ? near : "", near ? "?" : "");
        }
    }
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return cgam_fail_nomem(call->env, "help");
    if (cgam_args_flag(call->args, "verbs"))
        for (int v = 0; cgam_verbs[v]; v++) fprintf(to, "%s\n", cgam_verbs[v]->name);
    else if (cgam_args_flag(call->args, "man")) cgam_help_man(verb, to);
    else if (verb) cgam_help_verb(verb, to);
    else cgam_help_all(to);
    if (fclose(to) != 0) return cgam_fail_nomem(call->env, "help");
    cgam_json_put_text(call->doc, "text", text);
    free(text);
    return CGAM_OK;
}

static void help_print(const json_t *doc, FILE *to) { fputs(cgam_json_get_text(doc, "text"), to); }

const cgam_verb cgam_verb_help = {
    .name = "help",
    .summary = "explain the program or one verb",
    .about = "Without a verb, lists them all.",
    .example = "cgam help recall",
    .params = help_params,
    .run = help_run,
    .print = help_print,
};

static cgam_status version_run(cgam_call *call)
{
    cgam_json_put_text(call->doc, "version", cgam_version());
    return CGAM_OK;
}

static void version_print(const json_t *doc, FILE *to)
{
    fprintf(to, "cgam %s\n", cgam_json_get_text(doc, "version"));
}

const cgam_verb cgam_verb_version = {
    .name = "version",
    .summary = "print the version",
    .about = "Prints the version of the program and library.",
    .run = version_run,
    .print = version_print,
};
