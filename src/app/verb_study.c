/* verb_study.c: the studies as verbs. Their parameters and help come from the library's table (study.h),
 * adapted to the command line. */
#include "app/input.h"
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/env.h"
#include "lab/figures/figure.h"
#include "lab/figures/picture.h"
#include "lab/table.h"

#include <assert.h>
#include <string.h>

/* ---- Parameters ------------------------------------------------------------------------------ */
enum { PARAMS_MAX = 40, WORDS_MAX = 160 };

/* Parameters that every study has; --normalize only if it accepts a bank. */
static const cgam_param normalize_param =
    CGAM_PARAM_FLAG("normalize", "divide each memory of the file by its norm");
static const cgam_param door_params[] = {
    CGAM_PARAM_INT(
        "only-trial", "K", NULL, 0, 9e15,
        "print everything about trial K (0-based) as JSON and write nothing; with several "
        "banks, trial t of bank b is K = b * trials + t"),
    CGAM_PARAM_FIGURES("draw the figures (SVG, PNG, PDF; needs gnuplot)"),
    CGAM_PARAM_CHOICE(
        "tables", "yes|no", "no",
        "also put the tables into the document, as `table`: by name, a list for each column"),
    CGAM_PARAM_CHOICE("files", "yes|no", "yes", "no: write no files, only return the document"),
    CGAM_PARAM_OUT(
        NULL, "folder for tables (CSV), summary (JSON), figures and progress; the same command "
              "resumes there, and a folder with another run is rejected"),
    CGAM_PARAM_FLAG("overwrite", "replace another run in the folder"),
    CGAM_PARAM_END,
};
enum { DOOR_PARAMS = sizeof door_params / sizeof *door_params };

cgam_verb cgam_verb_study_kinds[CGAM_STUDY_KINDS];

/* The parameters and help that a verb of a study points to. */
static struct study_verb {
    cgam_param params[PARAMS_MAX];
    char name[64], folder[64];
    char words[PARAMS_MAX][WORDS_MAX], fallbacks[PARAMS_MAX][WORDS_MAX];
} made[CGAM_STUDY_KINDS];

/* A row of the study's table as a parameter of the command line. */
static cgam_param from_row(const cgam_study_param *p, const cgam_study_opts *usual,
                           struct study_verb *v, int k)
{
    static const struct {
        cgam_kind kind;
        const char *value;
    } forms[] = {
        [CGAM_FIELD_INT] = {CGAM_INT, "N"},       [CGAM_FIELD_REAL] = {CGAM_REAL, "X"},
        [CGAM_FIELD_LIST] = {CGAM_REALS, "LIST"}, [CGAM_FIELD_BOOL] = {CGAM_CHOICE, NULL},
        [CGAM_FIELD_AXIS] = {CGAM_CHOICE, NULL},  [CGAM_FIELD_BANK] = {CGAM_TEXT, "FILE[:NAME]"}};
    cgam_param out = {.name = p->name,
                      .kind = forms[p->kind].kind,
                      .value = forms[p->kind].value,
                      .min = p->low,
                      .max = p->high,
                      .help = p->help,
                      .input = p->kind == CGAM_FIELD_BANK ? CGAM_INPUT_BANK : CGAM_INPUT_NONE};
    char *words = v->words[k];
    for (int i = 0; p->words && p->words[i]; i++)
        snprintf(words + strlen(words), WORDS_MAX - strlen(words), "%s%s", i ? "|" : "",
                 p->words[i]);
    if (p->words) out.value = words;
    if (p->list_words) {
        snprintf(words, WORDS_MAX, "%s (default %s)", p->help, p->list_words);
        out.help = words;
    } else if (cgam_study_param_text(p, usual, v->fallbacks[k], WORDS_MAX) > 0) {
        out.fallback = v->fallbacks[k];
    }
    return out;
}

static void make_params(cgam_study_kind kind, struct study_verb *v)
{
    const cgam_study_opts usual = cgam_study_opts_default(kind);
    const cgam_study_param *p;
    int count = 0;
    for (; (p = cgam_study_param_at(kind, count)); count++) {
        assert(count + 1 + DOOR_PARAMS < PARAMS_MAX);
        v->params[count] = from_row(p, &usual, v, count);
    }
    if (cgam_study_param_find(kind, "bank")) v->params[count++] = normalize_param;
    memcpy(v->params + count, door_params, sizeof door_params);
    snprintf(v->folder, sizeof v->folder, "study/%s", cgam_studies[kind].name);
    for (int k = count; v->params[k].name; k++)
        if (strcmp(v->params[k].name, "out") == 0) v->params[k].fallback = v->folder;
}

/* *bank: the memories of the file if one is named; the caller frees it. */
static cgam_status take_options(cgam_call *call, cgam_study_kind kind, cgam_study_opts *o,
                                cgam_bank **bank)
{
    static const double whole[] = {0};
    const cgam_args *args = call->args;
    const cgam_study_param *p;
    *o = cgam_study_opts_default(kind);
    *bank = NULL;
    for (int64_t k = 0; (p = cgam_study_param_at(kind, k)); k++) {
        double number;
        cgam_list list = {&number, 1};
        if (!cgam_args_given(args, p->name)) continue;
        switch (p->kind) {
        case CGAM_FIELD_INT: number = (double)cgam_args_int(args, p->name); break;
        case CGAM_FIELD_REAL: number = cgam_args_real(args, p->name); break;
        case CGAM_FIELD_LIST: list.count = cgam_args_reals(args, p->name, &list.values); break;
        case CGAM_FIELD_BOOL:
        case CGAM_FIELD_AXIS: number = cgam_args_choice(args, p->name); break;
        case CGAM_FIELD_BANK: continue;
        }
        cgam_study_param_set(p, list, o);
    }
    if (!cgam_study_param_find(kind, "bank") || !cgam_args_given(args, "bank")) return CGAM_OK;
    cgam_status status = cgam_input_bank(call, bank);
    o->bank = *bank;
    if (status != CGAM_OK) return status;
    const int64_t rows = cgam_bank_describe(*bank).n;
    if (cgam_study_param_find(kind, "load")) {
        if (!cgam_args_given(args, "load")) o->load = (cgam_list){whole, 1};
    } else if (!cgam_args_given(args, "n") && rows < o->n) {
        o->n = rows;
    }
    return CGAM_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */
/* Adds the keys of a JSON text to the document. */
static cgam_status merge_text(cgam_call *call, const char *text)
{
    json_t *doc;
    cgam_status status = cgam_json_parse(call->env, "summary", text, strlen(text), &doc);
    if (status != CGAM_OK) return status;
    json_object_update(call->doc, doc);
    json_decref(doc);
    return CGAM_OK;
}

static cgam_status one_trial(cgam_call *call, const cgam_study_opts *o)
{
    char *text;
    cgam_status status =
        cgam_study_trial(call->env, o, cgam_args_int(call->args, "only-trial"), &text);
    if (status == CGAM_OK) status = merge_text(call, text);
    cgam_text_free(call->env, text);
    return status;
}

/* A theorem that failed is a negative answer. */
static bool violated(const cgam_study *study)
{
    const cgam_table *t = cgam_study_find(study, "checks");
    int64_t column = cgam_table_column(t, "violations");
    for (int64_t i = 0; i < t->rows; i++)
        if (t->cells[i * t->columns + column] > 0) return true;
    return false;
}

/* Every table as columns: labels are texts, a missing number is null. */
static void put_tables(const cgam_study *study, json_t *doc)
{
    json_t *all = json_object();
    for (int64_t i = 0; i < study->tables; i++) {
        const cgam_table *t = &study->table[i];
        json_t *one = json_object(), *labels = json_array();
        const char *numbers = t->labels ? strchr(t->heads, ',') + 1 : t->heads;
        for (int64_t k = 0; t->labels && k < t->rows; k++)
            json_array_append_new(labels, json_string(t->labels[k]));
        if (t->labels) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(t->heads, ","), t->heads);
            cgam_json_put(one, name, labels);
        } else {
            json_decref(labels);
        }
        if (t->rows > 0) cgam_table_put(one, t, 0, t->rows, numbers);
        cgam_json_put(all, t->name, one);
    }
    cgam_json_put(doc, "table", all);
}

static cgam_status run_kind(cgam_call *call, cgam_study_kind kind)
{
    cgam_study_opts o;
    cgam_bank *bank;
    cgam_study *study = NULL;
    double begun = cgam_clock();
    const char *out =
        cgam_args_is(call->args, "files", "yes") ? cgam_args_text(call->args, "out") : NULL;
    cgam_status status = take_options(call, kind, &o, &bank);
    bool single = cgam_args_given(call->args, "only-trial"), writes = CGAM_CALL_WRITES(call);
    cgam_line bar;
    o.out = out;
    o.overwrite = cgam_args_given(call->args, "overwrite");
    o.progress = cgam_line_begin(&bar, call->progress);
    o.ranks = call->ranks;
    if (status == CGAM_OK && single) {
        if (writes) status = one_trial(call, &o);
        cgam_input_bank_done(call, bank);
        return status;
    }
    if (status == CGAM_OK) status = cgam_study_run(call->env, &o, &study);
    cgam_line_clear(&bar);
    if (!writes) out = NULL;
    if (status == CGAM_OK && out) status = cgam_results_write(study, out);
    if (status == CGAM_OK) status = merge_text(call, study->json);
    if (status == CGAM_OK && cgam_args_is(call->args, "tables", "yes"))
        put_tables(study, call->doc);
    if (status == CGAM_OK && out && cgam_args_is(call->args, "figures", "yes")) {
        cgam_figures figures;
        status = cgam_figures_write(study, out, &figures);
        if (status == CGAM_OK)
            status = cgam_figures_leave(call->env, out, &figures, call->doc, NULL);
    }
    if (status == CGAM_OK) {
        if (kind == CGAM_STUDY_THEOREMS) call->negative = violated(study);
        if (writes && cgam_studies[kind].time) status = cgam_studies[kind].time(study, call->doc);
        if (out) cgam_json_put_text(call->doc, "out", out);
        cgam_json_put_real(call->doc, "seconds", cgam_clock() - begun);
        if (writes) cgam_study_forget(study);
    }
    cgam_study_free(study);
    cgam_input_bank_done(call, bank);
    return status;
}

/* ---- The verbs ------------------------------------------------------------------------------- */
static cgam_status run_study(cgam_call *call)
{
    return run_kind(call, (cgam_study_kind)(call->verb - cgam_verb_study_kinds));
}

/* Runs before main, so that all other code sees a constant table. */
__attribute__((constructor)) static void make_verbs(void)
{
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        const cgam_study_kind kind = (cgam_study_kind)k;
        struct study_verb *v = &made[k];
        make_params(kind, v);
        snprintf(v->name, sizeof v->name, "study %s", cgam_studies[kind].name);
        cgam_verb_study_kinds[k] = (cgam_verb){.name = v->name,
                                               .more = "study-every",
                                               .params = v->params,
                                               .ranks = CGAM_RANKS_TRIALS,
                                               .run = run_study};
    }
}

/* ---- The list -------------------------------------------------------------------------------- */
static const cgam_param list_params[] = {
    CGAM_PARAM_TEXT("NAME", "NAME", "one of the studies"),
    CGAM_PARAM_END,
};

/* Reached only if no study has the name that was typed. */
static cgam_status list_run(cgam_call *call)
{
    const char *typed = cgam_args_text(call->args, "NAME");
    if (typed) {
        char all[256] = "";
        for (int k = 0; k < CGAM_STUDY_KINDS; k++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? ", " : "",
                     cgam_studies[k].name);
        return cgam_fail(call->env, CGAM_E_ARG, "no study '%s' (valid: %s)", typed, all);
    }
    json_t *list = json_array();
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        json_array_append_new(list,
                              cgam_json_object("name=%s about=%s", cgam_studies[k].name,
                                               cgam_verb_words(&cgam_verb_study_kinds[k]).summary));
    }
    cgam_json_put(call->doc, "studies", list);
    return CGAM_OK;
}

const cgam_verb cgam_verb_study = {
    .name = "study",
    .params = list_params,
    .ranks = CGAM_RANKS_FIRST,
    .run = list_run,
};
