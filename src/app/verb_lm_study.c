/* verb_lm_study.c: neff, sweep, steer and probe on the same data, one after the other. */
#include "app/lm.h"
#include "app/verbs.h"
#include "io/array.h"
#include "io/folder.h"
#include "report/models.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_OUT(NULL, "write study.json, tables and figures of all parts here"),
    CGAM_PARAM_TEXT("report", "DIR",
                    "add the study to the report in DIR: --out is then DIR/lm/NAME, --store "
                    "DIR/lm/states.db if not given",
                    .writes = true),
    CGAM_PARAM_INTS("seeds", "N,N,..", NULL, 0, 9e15,
                    "the sweep under each of these seeds too: seeds.csv, and the mean and standard "
                    "deviation of every accuracy"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

/* ---- Where it goes ------------------------------------------------------------------------- */
typedef struct place {
    char out[CGAM_PATH_ROOM], store[CGAM_PATH_ROOM]; /* "" : none */
    const char *report;                              /* NULL: none */
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
                    c == '-' || c == '_' || (c == '.' && i > 0);
        name[used++] = fine ? (char)c : '-';
    }
    name[used] = '\0';
}

/* The name of the study: its data, its relation, and its model where that is not the default. */
static void add_name(const cgam_call *call, char *name, size_t size)
{
    const char *eval = cgam_args_text(call->args, "eval");
    const char *set = cgam_args_text(call->args, "dataset");
    const char *parts[] = {
        eval  ? eval
        : set ? set
              : "sentiment",
        cgam_args_is(call->args, "dataset", "lama") ? cgam_args_text(call->args, "relation") : NULL,
        cgam_args_text(call->args, "model")};
    for (int i = 0; i < 3; i++) {
        if (!parts[i]) continue;
        if (i > 0) snprintf(name + strlen(name), size - strlen(name), "-");
        add_stem(name, size, parts[i]);
    }
}

static cgam_status find_place(const cgam_call *call, place *to)
{
    cgam_env *env = call->env;
    char name[128] = "lm/";
    const char *out = cgam_args_text(call->args, "out");
    const char *store = cgam_args_text(call->args, "store");
    *to = (place){.report = cgam_args_text(call->args, "report")};
    if (to->report && out) return cgam_fail(env, CGAM_E_ARG, "report and out exclude each other");
    cgam_status status = CGAM_OK;
    add_name(call, name, sizeof name);
    if (to->report) status = cgam_path_join(env, to->report, name, to->out);
    else if (out) snprintf(to->out, sizeof to->out, "%s", out);
    if (store) snprintf(to->store, sizeof to->store, "%s", store);
    else if (to->report && status == CGAM_OK)
        status = cgam_path_join(env, to->report, "lm/states.db", to->store);
    return status == CGAM_OK && to->out[0] ? cgam_folder_make(env, to->out) : status;
}

/* The command that makes the study again, without its place. */
static void put_command(cgam_call *call)
{
    char text[2048];
    size_t used = 0;
    cgam_text_add(text, sizeof text, &used, "cgam lm study");
    for (const cgam_param *q = params; q->name[0]; q++) {
        const char *value = q->kind == CGAM_FLAG ? "" : cgam_args_text(call->args, q->name);
        if (!cgam_args_given(call->args, q->name) || strcmp(q->name, "out") == 0 ||
            strcmp(q->name, "report") == 0 || strcmp(q->name, "store") == 0)
            continue;
        const char *quote = strpbrk(value, " \\{}'\"$&|;<>()*?[]`~#!") ? "'" : "";
        cgam_text_add(text, sizeof text, &used, " --%s%s%s", q->name, *value ? " " : "", quote);
        for (; *value; value++) /* a quote within quotes: out of them, itself, into them again */
            cgam_text_add(text, sizeof text, &used, *value == '\'' ? "'\\'%c" : "%c", *value);
        cgam_text_add(text, sizeof text, &used, "%s", quote);
    }
    cgam_json_put_text(call->doc, "command", text);
}

/* ---- The study ----------------------------------------------------------------------------- */
/* Every part as soon as it is done, so that a study that is stopped leaves what it had. */
static cgam_status run_parts(cgam_call *call, cgam_lm_study *study, const char *out, json_t *files)
{
    cgam_status status = CGAM_OK;
    for (int i = 0; i < CGAM_LM_PARTS && status == CGAM_OK; i++) {
        cgam_lm_part part = (cgam_lm_part)i;
        cgam_lm_result *result = NULL;
        status = cgam_lm_study_part(study, part, &result);
        json_t *doc = result ? json_object() : json_null();
        if (result) status = cgam_lm_leave(call, out, part, result, doc, files);
        cgam_json_put(call->doc, cgam_lm_part_name(part), doc);
        cgam_lm_result_free(result);
    }
    return status;
}

/* The seeds to spread over, checked before anything is run; *out NULL: none. Gives *out; cgam_free. */
static cgam_status read_seeds(const cgam_call *call, int64_t *n, uint64_t **out)
{
    const int64_t *list;
    *out = NULL;
    *n = cgam_args_ints(call->args, "seeds", &list);
    if (*n == 0) return CGAM_OK;
    *out = cgam_alloc(call->env, (size_t)*n, sizeof **out);
    if (!*out) return cgam_fail_nomem(call->env, "seeds");
    for (int64_t i = 0; i < *n; i++) (*out)[i] = (uint64_t)list[i];
    return cgam_lm_seeds_check(call->env, *n, *out);
}

static cgam_status run_seeds(cgam_call *call, const cgam_lm_study_opts *opts, int64_t n,
                             const uint64_t *seeds, const char *out, json_t *files)
{
    cgam_lm_result *result = NULL;
    if (n == 0) return CGAM_OK;
    cgam_status status = cgam_lm_seeds(call->env, opts, n, seeds, &result);
    if (status == CGAM_OK) {
        cgam_json_put(call->doc, "spread", json_incref(cgam_lm_result_document(result)));
        if (out) status = cgam_table_write(call->env, cgam_lm_result_table(result, 0), out);
        if (out) json_array_append_new(files, json_string("seeds.csv"));
    }
    cgam_lm_result_free(result);
    return status;
}

static cgam_status run(cgam_call *call)
{
    place to = {.report = NULL};
    cgam_line line;
    cgam_lm_study *study = NULL;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    int64_t n_seeds;
    uint64_t *seeds;
    cgam_status status = read_seeds(call, &n_seeds, &seeds);
    if (status == CGAM_OK) status = find_place(call, &to);
    const char *out = to.out[0] ? to.out : NULL;
    json_t *files = json_array();
    opts.store = to.store[0] ? to.store : NULL;
    put_command(call);
    if (status == CGAM_OK) status = cgam_lm_study_open(call->env, &opts, &study);
    if (status == CGAM_OK) status = run_parts(call, study, out, files);
    cgam_lm_study_close(study);
    if (status == CGAM_OK) status = run_seeds(call, &opts, n_seeds, seeds, out, files);
    cgam_free(call->env, seeds);
    cgam_line_clear(&line);
    if (status == CGAM_OK && out) status = cgam_json_save(call->env, out, "study.json", call->doc);
    json_array_append_new(files, json_string("study.json"));
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    if (status == CGAM_OK && to.report) {
        char page[CGAM_PATH_ROOM];
        status = cgam_models_refresh(call->env, to.report);
        if (status == CGAM_OK) status = cgam_path_join(call->env, to.report, "index.html", page);
        cgam_json_put_text(call->doc, "study", to.out);
        cgam_json_put_text(call->doc, "report", status == CGAM_OK ? page : NULL);
    }
    return status;
}

static const cgam_verb *const printers[CGAM_LM_PARTS] = {&cgam_verb_lm_neff, &cgam_verb_lm_sweep,
                                                         &cgam_verb_lm_steer, &cgam_verb_lm_probe};

static void print_spread(const json_t *spread, FILE *to)
{
    static const char *const names[] = {"zero_shot", "icl",        "retrieval",
                                        "flipped",   "other_task", "label_mean"};
    size_t i;
    json_t *entry;
    fprintf(to, "\n== over %zu seeds: mean +- standard deviation\n\n%22s",
            json_array_size(json_object_get(spread, "seeds")), "");
    for (int w = 0; w < 6; w++) fprintf(to, " %15s", names[w]);
    fputc('\n', to);
    json_array_foreach(json_object_get(spread, "shots"), i, entry) for (int over = 0; over < 2;
                                                                        over++)
    {
        const json_t *all = json_object_get(entry, over ? "full" : "restricted");
        fprintf(to, "%3lld shots, %-11s", (long long)cgam_json_get_int(entry, "k"),
                over ? "all words" : "labels");
        for (int w = 0; w < 6; w++) {
            const json_t *one = json_object_get(all, names[w]);
            fprintf(to, "  %6.3f +- %.3f", cgam_json_get_real(one, "mean"),
                    cgam_json_get_real(one, "sd"));
        }
        fputc('\n', to);
    }
}

static void print(const json_t *doc, FILE *to)
{
    for (int i = 0; i < CGAM_LM_PARTS; i++) {
        const json_t *inner = json_object_get(doc, cgam_lm_part_name((cgam_lm_part)i));
        if (!json_is_object(inner)) continue;
        fprintf(to, "%s== %s\n\n", i ? "\n" : "", cgam_lm_part_name((cgam_lm_part)i));
        printers[i]->print(inner, to);
    }
    if (json_object_get(doc, "spread")) print_spread(json_object_get(doc, "spread"), to);
    const char *study = cgam_json_get_text(doc, "study"), *page = cgam_json_get_text(doc, "report");
    if (*page) fprintf(to, "\nThe study is in %s and in %s\n", study, page);
    else cgam_lm_print_files(doc, to);
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
        "has no page yet, one is made; `cgam report` makes it part of its own.",
    .example = "cgam lm study --dataset sst2 --shots 0,1,4 --queries 100 --report report",
    .params = params,
    .run = run,
    .print = print,
};
