/* verb_lm_study.c: neff, sweep, steer and probe on the same data, one after the other. Each is the
 * verb of its name, called with the words this one was given, so the study cannot disagree with
 * its parts. */
#include "app/lm.h"
#include "app/lm_draw.h"
#include "app/output.h"
#include "app/verbs.h"
#include "base/env.h"

#include <stdlib.h>

static const cgam_param params[] = {
    CGAM_PARAMS_QUIZ,
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help = "write study.json and the tables of all parts here"},
    CGAM_PARAM_FIGURES,
    {.name = ""},
};

typedef struct part {
    const char *key;
    const cgam_verb *verb;
    bool facts;   /* wants facts: takes the shipped ones where the data have classes */
    bool classes; /* wants classes: left out where the data have none */
} part;

static const part parts[] = {{"neff", &cgam_verb_lm_neff, false, false},
                             {"sweep", &cgam_verb_lm_sweep, false, false},
                             {"steer", &cgam_verb_lm_steer, true, false},
                             {"probe", &cgam_verb_lm_probe, false, true}};
enum { PARTS = sizeof parts / sizeof *parts };

static bool names_data(const char *name)
{
    static const char *const data[] = {"dataset", "eval",     "train",    "format",
                                       "labels",  "template", "relation", NULL};
    for (int i = 0; data[i]; i++)
        if (strcmp(data[i], name) == 0) return true;
    return false;
}

/* Are the data of this call facts? Judged by their name, since they are not open yet. */
static bool open_ended(const cgam_call *call)
{
    const char *set = cgam_args_text(call->args, "dataset");
    const char *format = cgam_args_text(call->args, "format");
    if (cgam_args_text(call->args, "eval"))
        return strcmp(format, "facts") == 0 || strcmp(format, "lama") == 0;
    return set && (strcmp(set, "facts") == 0 || strcmp(set, "lama") == 0);
}

static cgam_status run_part(cgam_call *call, const part *p)
{
    enum { WORDS = 64 };
    cgam_env *env = call->env;
    const char *words[WORDS];
    char *owned[WORDS];
    int count = 0, used = 0;
    bool other = p->facts && !open_ended(call);
    cgam_status status = CGAM_OK;
    for (const cgam_param *q = params; q->name[0] && status == CGAM_OK; q++) {
        if (!cgam_args_given(call->args, q->name) || (other && names_data(q->name))) continue;
        size_t room = strlen(q->name) + 4;
        const char *value = q->kind == CGAM_FLAG ? NULL : cgam_args_text(call->args, q->name);
        if (value) room += strlen(value);
        char *word = cgam_alloc(env, room, 1);
        if (!word) status = cgam_fail_nomem(env, "words");
        else snprintf(word, room, "--%s%s%s", q->name, value ? "=" : "", value ? value : "");
        if (word) words[count++] = owned[used++] = word;
    }
    if (other) words[count++] = "--dataset=facts";
    cgam_args *args = NULL;
    cgam_call inner = {.env = env, .doc = json_object(), .progress = call->progress};
    if (status == CGAM_OK) status = cgam_args_parse(env, p->verb, count, words, &args);
    inner.args = args;
    if (status == CGAM_OK) status = p->verb->run(&inner);
    cgam_put(call->doc, p->key, inner.doc);
    cgam_args_free(args);
    for (int i = 0; i < used; i++) cgam_free(env, owned[i]);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_status status = CGAM_OK;
    for (int i = 0; i < PARTS && status == CGAM_OK; i++) {
        if (parts[i].classes && open_ended(call)) cgam_put(call->doc, parts[i].key, json_null());
        else status = run_part(call, &parts[i]);
    }
    return status == CGAM_OK ? cgam_out_json(call, "study.json") : status;
}

static void print(const json_t *doc, FILE *to)
{
    for (int i = 0; i < PARTS; i++) {
        const json_t *inner = json_object_get(doc, parts[i].key);
        if (!json_is_object(inner)) continue;
        fprintf(to, "%s== %s\n\n", i ? "\n" : "", parts[i].key);
        parts[i].verb->print(inner, to);
    }
}

const cgam_verb cgam_verb_lm_study = {
    .name = "lm study",
    .summary = "neff, sweep, steer and probe in one go",
    .about =
        "Runs the four studies with the same model, data and seed. Steering is about facts: "
        "where the data have classes it takes the shipped countries and capitals. The probe is "
        "about classes: where the data are facts it is left out. With --store every prompt is "
        "run once for all parts, and an interrupted study goes on where it was.",
    .example = "cgam lm study --dataset sentiment --shots 4 --queries 40 --store s.db --out study",
    .params = params,
    .run = run,
    .print = print,
};
