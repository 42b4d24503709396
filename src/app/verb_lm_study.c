/* verb_lm_study.c: experiments on the same data, one after the other. */
#include "app/lm.h"
#include "app/verbs.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_LM_ANSWER,
    CGAM_PARAM_WORDS("parts", "neff|sweep|steer|probe|inject|gates|fit|all",
                     "what is run, in this order; the first four if not given"),
    CGAM_PARAM_OUT(NULL, "write study.json, tables and figures of all parts here"),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_INTS("seeds", "N,N,..", NULL, 0, 9e15,
                    "the sweep under each of these seeds too: seeds.csv, and the mean and standard "
                    "deviation of every accuracy"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

/* ---- The study ----------------------------------------------------------------------------- */
/* Every part as soon as it is done, so that a study that is stopped leaves what it had. */
static cgam_status run_parts(cgam_call *call, cgam_lm_study *study, const char *out, json_t *files)
{
    cgam_status status = CGAM_OK;
    for (int i = 0; i < CGAM_LM_EXPERIMENTS && status == CGAM_OK; i++) {
        cgam_lm_part part = (cgam_lm_part)i;
        cgam_lm_result *result = NULL;
        if (!(study->parts >> i & 1)) continue;
        status = cgam_lm_study_part(study, part, &result);
        json_t *doc = result ? json_object() : json_null();
        if (result) status = cgam_lm_leave(call, out, part, result, doc, files);
        cgam_json_put(call->doc, cgam_lm_part_name(part), doc);
        cgam_lm_result_free(result);
    }
    return status;
}

/* --parts as the library takes them; 0: none is given. */
static unsigned parts_of(const cgam_args *args)
{
    const char *const *words;
    unsigned parts = 0;
    int64_t count = cgam_args_words(args, "parts", &words);
    for (int64_t i = 0; i < count; i++) {
        cgam_lm_part part;
        parts |= cgam_lm_part_find(words[i], &part) ? 1U << part : (1U << CGAM_LM_EXPERIMENTS) - 1;
    }
    return parts;
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
    cgam_lm_place to = {.report = NULL};
    cgam_line line;
    cgam_lm_study *study = NULL;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    int64_t n_seeds;
    uint64_t *seeds;
    cgam_status status = read_seeds(call, &n_seeds, &seeds);
    if (status == CGAM_OK) status = cgam_lm_place_find(call, &to);
    const char *out = to.out[0] ? to.out : NULL;
    json_t *files = json_array();
    opts.store = to.store[0] ? to.store : NULL;
    opts.parts = parts_of(call->args);
    char resume[CGAM_PATH_ROOM];
    if (status == CGAM_OK && out)
        status = cgam_path_join(call->env, out, ".study.progress", resume);
    if (out) opts.resume = resume;
    cgam_lm_put_command(call);
    if (status == CGAM_OK) status = cgam_lm_study_of(call, &opts, &study);
    if (status == CGAM_OK) status = run_parts(call, study, out, files);
    cgam_lm_study_done(call, study);
    if (status == CGAM_OK) status = run_seeds(call, &opts, n_seeds, seeds, out, files);
    cgam_free(call->env, seeds);
    cgam_line_clear(&line);
    if (status == CGAM_OK && out) status = cgam_json_save(call->env, out, "study.json", call->doc);
    if (status == CGAM_OK && out) remove(resume);
    json_array_append_new(files, json_string("study.json"));
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    if (status == CGAM_OK) status = cgam_lm_place_show(call, &to);
    return status;
}

static const cgam_verb *const printers[CGAM_LM_EXPERIMENTS] = {
    &cgam_verb_lm_neff,   &cgam_verb_lm_sweep, &cgam_verb_lm_steer, &cgam_verb_lm_probe,
    &cgam_verb_lm_inject, &cgam_verb_lm_gates, &cgam_verb_lm_fit};

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
    for (int i = 0; i < CGAM_LM_EXPERIMENTS; i++) {
        const json_t *inner = json_object_get(doc, cgam_lm_part_name((cgam_lm_part)i));
        if (!json_is_object(inner)) continue;
        fprintf(to, "%s== %s\n\n", i ? "\n" : "", cgam_lm_part_name((cgam_lm_part)i));
        printers[i]->print(inner, to);
    }
    if (json_object_get(doc, "spread")) print_spread(json_object_get(doc, "spread"), to);
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_study = {
    .name = "lm study",
    .summary = "neff, sweep, steer and probe in one go, and inject, gates, fit if asked for",
    .about =
        "Runs experiments with the same model, data and seed in one process that opens model, store and "
        "lens once: the first four of --parts, or those it names. Each is as its own verb has it "
        "without options. Steering is about facts: "
        "where the data have classes it takes the shipped countries and capitals. The probe is "
        "about classes: where the data are facts it is left out. With --store every prompt is "
        "run once for all parts. An interrupted study goes on where it was: states are in the store, and "
        "with --out or --report finished parts, alphas, layers of a fit and edits are in "
        ".study.progress there until all is done.\n\n"
        "--report puts the study into a folder of a report, keeps its states there, and makes the "
        "report's page again with a section on it and with the claims it decides. Where the report "
        "has no page yet, one is made; `cgam report` makes it part of its own.",
    .example = "cgam lm study --dataset sst2 --shots 0,1,4 --queries 100 --report report",
    .params = params,
    .run = run,
    .print = print,
};
