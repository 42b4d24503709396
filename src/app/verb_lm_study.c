/* verb_lm_study.c: neff, sweep, steer and probe on the same data, one after the other. Each is the
 * verb of its name, called with the words this one was given, so the study cannot disagree with
 * its parts. */
#include "app/lm.h"
#include "app/lm_draw.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/folder.h"

#include <limits.h>
#include <stdlib.h>

static const cgam_param params[] = {
    CGAM_PARAMS_PROMPTS,
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help = "write study.json, tables and figures of all parts here"},
    {.name = "report",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help =
         "add the study to the report in DIR: --out is then DIR/lm/NAME, --store DIR/lm/states.db "
         "if not given"},
    CGAM_PARAM_LM_FIGURES,
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

/* ---- Where it goes ------------------------------------------------------------------------- */
typedef struct place {
    char out[PATH_MAX], store[PATH_MAX]; /* "" : none */
    const char *report;                  /* NULL: none */
} place;

/* Letters, digits, points, dashes and underscores of a name without its folder and ending. */
static void add_stem(char *name, size_t size, const char *path)
{
    const char *from = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *end = strrchr(from, '.');
    size_t used = strlen(name), length = end && end > from ? (size_t)(end - from) : strlen(from);
    for (size_t i = 0; i < length && used + 1 < size; i++) {
        unsigned char c = (unsigned char)from[i];
        bool fine = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    c == '-' || c == '_' || (c == '.' && used > 0);
        name[used++] = fine ? (char)c : '-';
    }
    name[used] = '\0';
}

/* The name of the study: its data, its relation, and its model where that is not the default. */
static void name_of(const cgam_call *call, char *name, size_t size)
{
    const char *eval = cgam_args_text(call->args, "eval");
    const char *set = cgam_args_text(call->args, "dataset");
    const char *model = cgam_args_text(call->args, "model");
    name[0] = '\0';
    if (eval) add_stem(name, size, eval);
    else snprintf(name, size, "%s", set ? set : "sentiment");
    if (set && strcmp(set, "lama") == 0) {
        snprintf(name + strlen(name), size - strlen(name), "-");
        add_stem(name, size, cgam_args_text(call->args, "relation"));
    }
    if (model) {
        snprintf(name + strlen(name), size - strlen(name), "-");
        add_stem(name, size, model);
    }
}

static cgam_status find_place(const cgam_call *call, place *to)
{
    char name[100];
    const char *out = cgam_args_text(call->args, "out"),
               *store = cgam_args_text(call->args, "store");
    to->report = cgam_args_text(call->args, "report");
    if (to->report && out)
        return cgam_fail(call->env, CGAM_E_ARG, "--report and --out exclude each other");
    name_of(call, name, sizeof name);
    int a = snprintf(to->out, sizeof to->out, "%s%s%s",
                     to->report ? to->report
                     : out      ? out
                                : "",
                     to->report ? "/lm/" : "", to->report ? name : "");
    int b = snprintf(to->store, sizeof to->store, "%s%s",
                     store        ? store
                     : to->report ? to->report
                                  : "",
                     !store && to->report ? "/lm/states.db" : "");
    if (a >= (int)sizeof to->out || b >= (int)sizeof to->store)
        return cgam_fail(call->env, CGAM_E_ARG, "--report: the name is too long");
    return to->report ? cgam_folder_make(call->env, to->out) : CGAM_OK;
}

/* The command that makes the study again, without its place. */
static void put_command(cgam_call *call)
{
    char text[2048] = "cgam lm study";
    for (const cgam_param *q = params; q->name[0]; q++) {
        size_t used = strlen(text);
        const char *value = q->kind == CGAM_FLAG ? NULL : cgam_args_text(call->args, q->name);
        if (!cgam_args_given(call->args, q->name) || strcmp(q->name, "out") == 0 ||
            strcmp(q->name, "report") == 0 || strcmp(q->name, "store") == 0)
            continue;
        bool quoted = value && strpbrk(value, " \\{}'\"$&|;<>()*?[]`~#!");
        snprintf(text + used, sizeof text - used, " --%s%s%s%s%s", q->name, value ? " " : "",
                 quoted ? "'" : "", value ? value : "", quoted ? "'" : "");
    }
    cgam_json_put_text(call->doc, "command", text);
}

/* ---- Parts --------------------------------------------------------------------------------- */
static cgam_status run_part(cgam_call *call, const part *p, const place *to)
{
    enum { WORDS = 64 };
    cgam_env *env = call->env;
    const char *words[WORDS];
    char *owned[WORDS];
    int count = 0, used = 0;
    bool other = p->facts && !open_ended(call);
    cgam_status status = CGAM_OK;
    for (const cgam_param *q = params; q->name[0] && status == CGAM_OK; q++) {
        bool placed = strcmp(q->name, "out") == 0 || strcmp(q->name, "store") == 0 ||
                      strcmp(q->name, "report") == 0;
        if (!cgam_args_given(call->args, q->name) || (other && names_data(q->name)) || placed)
            continue;
        size_t room = strlen(q->name) + 4;
        const char *value = q->kind == CGAM_FLAG ? NULL : cgam_args_text(call->args, q->name);
        if (value) room += strlen(value);
        char *word = cgam_alloc(env, room, 1);
        if (!word) status = cgam_fail_nomem(env, "words");
        else snprintf(word, room, "--%s%s%s", q->name, value ? "=" : "", value ? value : "");
        if (word) words[count++] = owned[used++] = word;
    }
    if (other) words[count++] = "--dataset=facts";
    char out[PATH_MAX + 8], store[PATH_MAX + 8];
    snprintf(out, sizeof out, "--out=%s", to->out);
    snprintf(store, sizeof store, "--store=%s", to->store);
    if (to->out[0]) words[count++] = out;
    if (to->store[0]) words[count++] = store;
    cgam_args *args = NULL;
    cgam_call inner = {.env = env, .doc = json_object(), .progress = call->progress};
    if (status == CGAM_OK) status = cgam_args_parse(env, p->verb, count, words, &args);
    inner.args = args;
    if (status == CGAM_OK) status = p->verb->run(&inner);
    cgam_json_put(call->doc, p->key, inner.doc);
    cgam_args_free(args);
    for (int i = 0; i < used; i++) cgam_free(env, owned[i]);
    return status;
}

static cgam_status run(cgam_call *call)
{
    place to;
    cgam_status status = find_place(call, &to);
    put_command(call);
    for (int i = 0; i < PARTS && status == CGAM_OK; i++) {
        if (parts[i].classes && open_ended(call))
            cgam_json_put(call->doc, parts[i].key, json_null());
        else status = run_part(call, &parts[i], &to);
    }
    if (status == CGAM_OK && to.out[0])
        status = cgam_json_save(call->env, to.out, "study.json", call->doc);
    if (status == CGAM_OK && to.report) {
        bool made;
        char page[PATH_MAX + 16];
        status = cgam_models_refresh(call->env, to.report, &made);
        snprintf(page, sizeof page, "%s/index.html", to.report);
        cgam_json_put_text(call->doc, "study", to.out);
        cgam_json_put_text(call->doc, "report", made ? page : NULL);
    }
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    for (int i = 0; i < PARTS; i++) {
        const json_t *inner = json_object_get(doc, parts[i].key);
        if (!json_is_object(inner)) continue;
        fprintf(to, "%s== %s\n\n", i ? "\n" : "", parts[i].key);
        parts[i].verb->print(inner, to);
    }
    const char *study = cgam_json_get_text(doc, "study"), *page = cgam_json_get_text(doc, "report");
    if (*page) fprintf(to, "\nThe study is in %s and in %s\n", study, page);
    else if (*study)
        fprintf(to, "\nThe study is in %s; `cgam report` takes it into its page\n", study);
}

const cgam_verb cgam_verb_lm_study = {
    .name = "lm study",
    .summary = "neff, sweep, steer and probe in one go",
    .about =
        "Runs the four studies with the same model, data and seed. Steering is about facts: "
        "where the data have classes it takes the shipped countries and capitals. The probe is "
        "about classes: where the data are facts it is left out. With --store every prompt is "
        "run once for all parts, and an interrupted study goes on where it was.\n\n"
        "--report puts the study into a folder of a report, keeps its states there, and makes the "
        "report's page again with a section on it and with the claims it decides. Where the report "
        "has no page yet, `cgam report` will find the study.",
    .example = "cgam lm study --dataset sst2 --shots 0,1,4 --queries 100 --report report",
    .params = params,
    .run = run,
    .print = print,
};
