/* verb_lm_inject.c: contexts inside the model, beside the readout and their controls. */
#include "app/lm.h"
#include "app/verbs.h"
#include "io/folder.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_TEXT("suite", "shipped|DIR",
                    "all shipped tasks, or all files of pairs in a folder, instead of data"),
    CGAM_PARAM_WORDS("kinds", "add|replace",
                     "what is done to the last token's state; both if not given"),
    CGAM_PARAM_INTS("layers", "all|L,L,..", "all", 0, 10000,
                    "after which layers; 0 is the embedding"),
    CGAM_PARAM_REALS("scales", "X,X,..", "1", -1e6, 1e6, "factors of the vectors"),
    CGAM_PARAM_CHOICE("answer", "first|sequence|distinct|generate", NULL,
                      "judged by the first token among all words, by the whole answer's "
                      "log-probability among the task's, by that of its tokens up to where it "
                      "parts from the others, or by greedy text; first, or sequence where classes "
                      "begin alike"),
    CGAM_PARAM_LM_PROJECTION(
        "P (d,d), as `lm fit` writes it: what `add` adds, and the readout, is P c"),
    CGAM_PARAM_OUT(NULL, "write inject.json, inject.csv and figures here"),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_lm_inject_opts options(const cgam_args *args)
{
    cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
    const char *const *kinds;
    int64_t count = cgam_args_words(args, "kinds", &kinds);
    opts.no_add = opts.no_replace = count > 0;
    for (int64_t i = 0; i < count; i++) {
        opts.no_add = opts.no_add && strcmp(kinds[i], "add") != 0;
        opts.no_replace = opts.no_replace && strcmp(kinds[i], "replace") != 0;
    }
    if (!cgam_args_is(args, "layers", "all"))
        opts.layers_count = cgam_args_ints(args, "layers", &opts.layers);
    opts.scales_count = cgam_args_reals(args, "scales", &opts.scales);
    const char *answer = cgam_args_text(args, "answer");
    if (answer) cgam_lm_answer_find(answer, &opts.answer);
    opts.projection = cgam_args_text(args, "projection");
    return opts;
}

static cgam_status inject(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_inject_opts opts = options(args);
    cgam_status status = CGAM_OK;
    if (!cgam_args_given(args, "answer")) status = cgam_lm_study_answer(study, &opts.answer);
    return status == CGAM_OK ? cgam_lm_inject(study, &opts, out) : status;
}

/* All tasks: a document, and suite.json and suite.csv in --out. */
static cgam_status run_suite(cgam_call *call)
{
    cgam_line line;
    cgam_lm_result *result = NULL;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    cgam_lm_inject_opts inject_opts = options(call->args);
    const char *out = cgam_args_text(call->args, "out");
    if (cgam_args_given(call->args, "report"))
        return cgam_fail(call->env, CGAM_E_ARG, "suite and report exclude each other");
    json_t *files = json_array();
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK)
        status = cgam_lm_inject_suite(call->env, &opts, cgam_args_text(call->args, "suite"),
                                      &inject_opts, &result);
    cgam_line_clear(&line);
    if (status == CGAM_OK) json_object_update(call->doc, cgam_lm_result_document(result));
    if (status == CGAM_OK && out) {
        status = cgam_table_write(call->env, cgam_lm_result_table(result, 0), out);
        json_array_append_new(files, json_string("suite.csv"));
        json_array_append_new(files, json_string("suite.json"));
        if (status == CGAM_OK) status = cgam_json_save(call->env, out, "suite.json", call->doc);
    }
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    cgam_lm_result_free(result);
    return status;
}

static cgam_status run(cgam_call *call)
{
    return cgam_args_given(call->args, "suite")
               ? run_suite(call)
               : cgam_lm_run_reported(call, CGAM_LM_INJECT, inject);
}

/* ---- For people --------------------------------------------------------------------------- */
static void print_share(FILE *to, const json_t *of, const char *key, const char *name)
{
    char error[48];
    snprintf(error, sizeof error, "%s_se", key);
    double share = cgam_json_get_real(of, key);
    if (isnan(share)) fprintf(to, "  %-34s %8s\n", name, "-");
    else fprintf(to, "  %-34s %8.3f  +- %.3f\n", name, share, cgam_json_get_real(of, error));
}

static void print_best(FILE *to, const json_t *of, const char *name)
{
    if (!of) return;
    double recovered = cgam_json_get_real(of, "recovered");
    fprintf(to, "  %-34s %8.3f  +- %.3f", name, cgam_json_get_real(of, "held_out"),
            cgam_json_get_real(of, "held_out_se"));
    if (isfinite(recovered))
        fprintf(to, "  recovers %.2f +- %.2f", recovered, cgam_json_get_real(of, "recovered_se"));
    fprintf(to, "  (best on all %.3f: %s, layer %lld, scale %g)\n",
            cgam_json_get_real(of, "accuracy"), cgam_json_get_text(of, "kind"),
            (long long)cgam_json_get_int(of, "layer"), cgam_json_get_real(of, "scale"));
}

static void print_entry(FILE *to, const json_t *e)
{
    const json_t *controls = json_object_get(e, "controls"), *kinds = json_object_get(e, "by_kind");
    fprintf(to, "\n%lld shots, %lld queries\n", (long long)cgam_json_get_int(e, "k"),
            (long long)cgam_json_get_int(e, "queries"));
    print_share(to, e, "zero_shot", "zero-shot");
    print_share(to, e, "icl", "with demonstrations");
    print_share(to, e, "readout", "readout, query + lambda context");
    print_best(to, json_object_get(kinds, "add"), "add, held out");
    print_best(to, json_object_get(kinds, "replace"), "replace, held out");
    print_best(to, json_object_get(e, "best"), "the better of them, held out");
    print_share(to, controls, "random", "control: random, same norm");
    print_share(to, controls, "flipped", "control: flipped demonstrations");
    print_share(to, controls, "other_task", "control: another task");
    print_share(to, controls, "label_rows", "control: mean of the answers' rows");
}

static void print_cell(FILE *to, const json_t *entry, const char *path)
{
    char error[64];
    snprintf(error, sizeof error, "%s_se", path);
    double share = cgam_json_get_real(entry, path);
    if (isnan(share)) fprintf(to, "  %11s", "-");
    else fprintf(to, "  %5.2f +-%.2f", share, cgam_json_get_real(entry, error));
}

/* One line for each task and number of shots. */
static void print_suite(const json_t *doc, FILE *to)
{
    size_t i, j;
    json_t *task, *entry;
    fprintf(to, "%-24s %5s %7s  %-11s  %-11s  %-11s  %-11s  %-11s  %-11s\n", "task", "shots",
            "queries", "zero-shot", "ICL", "readout", "add", "replace", "recovered");
    json_array_foreach(json_object_get(doc, "tasks"), i, task)
    {
        const char *reason = cgam_json_get_text(task, "reason");
        if (*reason) fprintf(to, "%-24s %s\n", cgam_json_get_text(task, "task"), reason);
        json_array_foreach(json_object_get(task, "shots"), j, entry)
        {
            fprintf(to, "%-24s %5lld %7lld", cgam_json_get_text(task, "task"),
                    (long long)cgam_json_get_int(entry, "k"),
                    (long long)cgam_json_get_int(entry, "queries"));
            print_cell(to, entry, "zero_shot");
            print_cell(to, entry, "icl");
            print_cell(to, entry, "readout");
            print_cell(to, entry, "by_kind.add.held_out");
            print_cell(to, entry, "by_kind.replace.held_out");
            print_cell(to, entry, "best.recovered");
            fputc('\n', to);
        }
    }
    cgam_lm_print_files(doc, to);
}

static void print(const json_t *doc, FILE *to)
{
    if (json_object_get(doc, "tasks")) {
        print_suite(doc, to);
        return;
    }
    size_t i;
    json_t *entry;
    fprintf(to, "%s, answers judged by %s\n", cgam_json_get_text(doc, "dataset"),
            cgam_json_get_text(doc, "answer"));
    json_array_foreach(json_object_get(doc, "shots"), i, entry) print_entry(to, entry);
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_inject = {
    .name = "lm inject",
    .summary = "contexts put into the model, layer by layer, beside the readout and controls",
    .about =
        "Edits the last token of prompts without demonstrations after each layer in turn. `add` "
        "adds the mean effect of demonstrations there; `replace` puts there the state that another "
        "query's prompt with its demonstrations has (task vectors, Hendel et al. 2023). Beside it: "
        "no edit, demonstrations in the prompt, and the additive score of `lm sweep` on the same "
        "queries: of first tokens over all words, of whole answers among the task's with --answer "
        "sequence or distinct, of every token in its place with generate.\n\n"
        "Vectors come from the other half of the queries. Kind, layer and scale are chosen on one "
        "half under its own vectors, and the other half is counted there under those; of cells "
        "that do equally well the latest layer is taken, then the smallest scale, then add. "
        "Controls at the chosen cell: a random vector of the same norm for each query, "
        "demonstrations with wrong answers, another task, the mean of the answers' unembedding "
        "rows. `recovered` is the share of the gain of demonstrations. Errors are by drawing "
        "queries with replacement.\n\n"
        "--suite runs all tasks and prints one table. --report puts the injection into a report, "
        "beside what `lm study --report` has left of the same data there, with its table, its "
        "figures and what it says of the claims.",
    .example = "cgam lm inject --dataset capitals --shots 4 --queries 40 --store s.db --out inject",
    .params = params,
    .run = run,
    .print = print,
};
