/* printed.h: a verb run on words, as the command line does, and what it prints for people. */
#ifndef CGAM_TESTS_UNIT_APP_PRINTED_H
#define CGAM_TESTS_UNIT_APP_PRINTED_H

#include "app/verbs.h"
#include "support/check.h"

/* Runs the words, which blanks part; an underscore in one stands for a blank. Printed: what a person sees, free() it; NULL: the env has the refusal. */
static inline char *printed(cgam_env *env, const char *line)
{
    enum { WORDS = 40 };
    const char *words[WORDS];
    char copy[1000], *text = NULL;
    size_t size = 0;
    int count = 0, used = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *rest = copy, *word; count < WORDS && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    for (char *c = copy; c < copy + sizeof copy; c++) *c = (char)(*c == '_' ? ' ' : *c);
    cgam_call call = {.env = env, .verb = cgam_verb_find(count, words, &used)};
    assert_non_null(call.verb);
    cgam_args *args = NULL;
    cgam_status status = cgam_args_parse(env, call.verb, count - used, words + used, &args);
    call.args = args;
    call.doc = json_object();
    if (status == CGAM_OK) status = cgam_call_run(&call);
    if (status == CGAM_OK) {
        FILE *to = open_memstream(&text, &size);
        assert_non_null(to);
        cgam_verb_print(call.verb, call.doc, to);
        fclose(to);
    }
    json_decref(call.doc);
    cgam_args_free(args);
    return text;
}

#endif
