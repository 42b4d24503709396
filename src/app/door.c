/* door.c: cgam_ask runs a verb by name with options from JSON; cgam_call_run prepares and cleans up every call. */
#include "app/verbs.h"
#include "base/env.h"
#include "lab/folder.h"
#include "num/cpu/cpu.h"

#include <cgam/ask.h>
#include <stdlib.h>
#include <string.h>

cgam_ask_opts cgam_ask_opts_default(void) { return (cgam_ask_opts){.progress = false}; }

/* The value of --out; NULL if the verb has no such option or it was not given. */
static const char *folder_of(const cgam_call *call)
{
    const cgam_param *p = cgam_verb_param_named(call->verb, "out", 3);
    return p && strcmp(p->value, "DIR") == 0 ? cgam_args_text(call->args, "out") : NULL;
}

/* An invalid CGAM_CPU is reported here, since the code that chooses the loops cannot report. */
static cgam_status check_cpu(cgam_env *env)
{
    const char *wish = getenv("CGAM_CPU");
    char usable[120] = "";
    if (!wish || strcmp(wish, cgam_cpu_best()->name) == 0) return CGAM_OK;
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++) {
        size_t end = strlen(usable);
        if (cpu->usable()) snprintf(usable + end, sizeof usable - end, ", %s", cpu->name);
    }
    return cgam_fail(env, CGAM_E_ARG, "CGAM_CPU: invalid value '%.40s' (valid on this CPU: %s)",
                     wish, usable + 2);
}

void cgam_call_abandon(const cgam_call *call)
{
    if (call->folder) cgam_folder_unmake(call->folder, call->folder_there);
}

size_t cgam_call_memory(const cgam_call *call)
{
    size_t bytes = (size_t)cgam_args_int(call->args, "max-memory") << 20;
    return bytes > 0 ? bytes : cgam_env_used(call->env) + cgam_memory_available() / 10 * 9;
}

/* Calls of a server share its env, so they share its limit. */
static void limit_memory(const cgam_call *call)
{
    if (call->shelf) return;
    cgam_env_limit(call->env, cgam_call_memory(call));
    cgam_json_limit(cgam_call_memory(call));
}

cgam_status cgam_call_run(cgam_call *call)
{
    if (!call->doc) return cgam_fail_nomem(call->env, "the document");
    if (check_cpu(call->env) != CGAM_OK) return CGAM_E_ARG;
    const char *out = folder_of(call);
    call->folder_there = out ? cgam_folder_there(out) : 0;
    call->folder = out;
    limit_memory(call);
    (void)cgam_json_ran_short(); /* others */
    cgam_status status = call->verb->run(call);
    if (status != CGAM_OK) cgam_call_abandon(call); /* a failed call leaves no empty folders */
    if (status == CGAM_OK && cgam_json_ran_short())
        status = cgam_fail_nomem(call->env, "the document");
    return status;
}

void cgam_call_end(cgam_call *call)
{
    if (call->late.free) call->late.free(call->late.of);
    call->late = (cgam_late){0};
    cgam_row_names_free(call->names);
    call->names = NULL;
}

/* Cuts the text at its blanks, in place. Returns the number of words, or most + 1 if there are more. */
static int split(char *text, const char **words, int most)
{
    int count = 0;
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)); count++) {
        if (count == most) return most + 1;
        words[count] = word;
    }
    return count;
}

/* Returns NULL and sets *status if no verb has the name. */
static const cgam_verb *find_verb(cgam_env *env, const char *name, cgam_status *status)
{
    enum { WORDS = 4 };
    const char *words[WORDS] = {""};
    char text[80];
    int used = 0;
    snprintf(text, sizeof text, "%s", name);
    int count = split(text, words, WORDS);
    bool fits = strlen(name) < sizeof text && count <= WORDS;
    const cgam_verb *verb = fits ? cgam_verb_find(count, words, &used) : NULL;
    if (verb && used == count) return verb;
    *status = cgam_verb_fail(env, count < 1 ? 1 : count < WORDS ? count : WORDS, words);
    return NULL;
}

cgam_status cgam_ask(cgam_env *env, const char *verb, const char *options,
                     const cgam_ask_opts *opts, cgam_document *out)
{
    *out = (cgam_document){0};
    cgam_ask_opts o = opts ? *opts : cgam_ask_opts_default();
    cgam_call call = {.env = env, .progress.line = o.progress, .streams = true};
    json_t *object = NULL;
    cgam_args *args = NULL;
    cgam_status status = CGAM_OK;
    call.verb = find_verb(env, verb, &status);
    if (!call.verb) return status;
    if (options) status = cgam_json_parse(env, "options", options, strlen(options), &object);
    if (status == CGAM_OK && !object && !(object = json_object()))
        status = cgam_fail_nomem(env, "options");
    if (status == CGAM_OK) status = cgam_args_json(env, call.verb, object, &args);
    if (status == CGAM_OK) {
        call.args = args;
        call.doc = json_object();
        status = cgam_call_run(&call);
    }
    if (status == CGAM_OK) status = cgam_json_text_late(env, call.doc, &call.late, &out->text);
    cgam_call_end(&call);
    out->negative = status == CGAM_OK && call.negative;
    json_decref(call.doc);
    json_decref(object);
    cgam_args_free(args);
    return status;
}
