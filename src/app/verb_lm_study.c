/* verb_lm_study.c: experiments on the same data, one after the other. */
#include "app/lm.h"
#include "app/verbs.h"
#include "lab/table.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_ROWS_OF(cgam_lm_answer_rows),
    CGAM_PARAM_WORDS("parts", "neff|sweep|steer|probe|inject|gates|fit|all",
                     "parts to run, in this order; default: the first four"),
    CGAM_PARAM_OUT(NULL, "write study.json, tables and figures of all parts here"),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_INTS(
        "seeds", "N,N,..", NULL, 0, 9e15,
        "also run all parts with each of these seeds, which draws new queries and "
        "demonstrations; writes draws.csv, and reports the spread of every main number"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

/* ---- The study ----------------------------------------------------------------------------- */
/* Writes each part as soon as it is done, so that a stopped study keeps its finished parts. */
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

/* --parts as flags of the library; 0: not given. */
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

/* The seeds to repeat over, checked before any run; *out is NULL if there are none. Free it with cgam_free. */
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
    static const char *const names[] = {"seeds.csv", "draws.csv"};
    cgam_lm_result *result = NULL;
    if (n == 0) return CGAM_OK;
    cgam_status status = cgam_lm_seeds(call->env, opts, n, seeds, call->doc, &result);
    if (status == CGAM_OK) { /* draws stand beside the parts, of which they are others */
        json_object_set(call->doc, "draws", json_object_get(result->doc, "draws"));
        json_object_del(result->doc, "draws");
        cgam_json_put(call->doc, "spread", json_incref(result->doc));
    }
    for (int t = 0; t < 2 && out && status == CGAM_OK; t++) {
        if (result->table[t].rows == 0) continue;
        status = cgam_table_write(call->env, &result->table[t], out);
        json_array_append_new(files, json_string(names[t]));
    }
    cgam_lm_result_free(result);
    return status;
}

static cgam_status run_lm_study(cgam_call *call)
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
    cgam_line_clear(&line);
    if (status == CGAM_OK && out) status = cgam_json_save(call->env, out, "study.json", call->doc);
    if (status == CGAM_OK && out) remove(resume);
    for (int64_t i = 0; i < n_seeds && status == CGAM_OK && out; i++) {
        char one[CGAM_PATH_ROOM];
        if (cgam_lm_seed_path(call->env, resume, seeds[i], one) == CGAM_OK) remove(one);
    }
    json_array_append_new(files, json_string("study.json"));
    cgam_free(call->env, seeds);
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    if (status == CGAM_OK) status = cgam_lm_place_show(call, &to);
    return status;
}

const cgam_verb cgam_verb_lm_study = {
    .name = "lm study",
    .params = params,
    .run = run_lm_study,
};
