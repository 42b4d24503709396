/* verb_lm_capture.c: hidden states of prompts into a store. */
#include "app/lm.h"
#include "app/verbs.h"
#include "lm/collect.h"
#include "lm/model.h"
#include "lm/prompt_file.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(true),
    CGAM_PARAM_TEXT(
        "prompts", "FILE",
        "your own prompts instead of a dataset: one per line, or JSON lines with \"prompt\" "
        "and optionally \"label\"; - for standard input",
        .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_CHOICE("tokens", "last|all", "last",
                      "save states of the last token only, or of all tokens too"),
    CGAM_PARAM_END,
};

typedef struct census {
    const char *model; /* digest of our model */
    char last[65];     /* digest of the previous group */
    int64_t others;
} census;

/* Groups come model by model, so a digest that differs from the last one is another model. */
static cgam_status count_others(void *user, const cgam_store_group *g)
{
    census *c = user;
    if (strcmp(g->model, c->model) != 0 && strcmp(g->model, c->last) != 0) c->others++;
    snprintf(c->last, sizeof c->last, "%s", g->model);
    return CGAM_OK;
}

static cgam_status put_census(cgam_call *call, cgam_lm *lm, cgam_store *store)
{
    census c = {0};
    cgam_status status = cgam_lm_sha256(lm, &c.model);
    if (status == CGAM_OK) status = cgam_store_list(store, count_others, &c);
    cgam_json_add(call->doc, "store=%s other_models=%jd", cgam_args_text(call->args, "store"),
                  c.others);
    return status;
}

/* Rejects options that build prompts from a dataset if the prompts come from a file. */
static cgam_status check_alone(const cgam_call *call)
{
    static const char *const others[] = {"dataset",  "eval",   "train", "format",  "relation",
                                         "template", "labels", "shots", "queries", "demos",
                                         "order",    "seed",   NULL};
    for (int i = 0; others[i]; i++)
        if (cgam_args_given(call->args, others[i]))
            return cgam_fail(call->env, CGAM_E_ARG, "give prompts or %s, not both", others[i]);
    return CGAM_OK;
}

static cgam_status capture_prompts(cgam_call *call, const cgam_lm_study_opts *study)
{
    const char *path = cgam_args_text(call->args, "prompts");
    cgam_prompt_file *file = NULL;
    cgam_lm *lm = NULL;
    cgam_store *store = NULL;
    cgam_collected report = {0};
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.capture.exact = study->exact;
    opts.capture.progress = study->progress;
    opts.dtype = study->dtype;
    opts.all_tokens = study->all_tokens;
    opts.note = path;
    opts.chat = study->chat;
    cgam_status status = check_alone(call);
    if (status == CGAM_OK) status = cgam_prompt_file_open(call->env, path, &file);
    if (status == CGAM_OK) status = cgam_lm_of(call, &lm);
    if (status == CGAM_OK) status = cgam_store_open(call->env, study->store, true, &store);
    if (status == CGAM_OK) status = cgam_lm_collect_prompts(lm, store, file, &opts, NULL, &report);
    if (status == CGAM_OK) {
        cgam_put_lm(call->doc, lm);
        cgam_json_add(call->doc, "prompts=%s queries=%jd engine=%s", path,
                      cgam_prompt_file_count(file), study->exact ? "exact" : "llama");
        cgam_put_collected(call->doc, &report);
        status = put_census(call, lm, store);
    }
    cgam_store_close(store);
    cgam_lm_done(call, lm);
    cgam_prompt_file_close(file);
    return status;
}

static cgam_status capture_dataset(cgam_call *call, const cgam_lm_study_opts *opts)
{
    cgam_lm_study *study = NULL;
    cgam_lm_result *result = NULL;
    cgam_status status = cgam_lm_study_of(call, opts, &study);
    if (status == CGAM_OK) status = cgam_lm_study_capture(study, &result);
    if (status == CGAM_OK) {
        json_object_update(call->doc, result->doc);
        status = put_census(call, study->lm, study->store);
    }
    cgam_lm_result_free(result);
    cgam_lm_study_done(call, study);
    return status;
}

static cgam_status capture_states(cgam_call *call)
{
    cgam_line line;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    opts.all_tokens = cgam_args_is(call->args, "tokens", "all");
    cgam_json_put_text(call->doc, "tokens", cgam_args_text(call->args, "tokens"));
    cgam_status status = cgam_args_text(call->args, "prompts") ? capture_prompts(call, &opts)
                                                               : capture_dataset(call, &opts);
    cgam_line_clear(&line);
    return status;
}

const cgam_verb cgam_verb_lm_capture = {
    .name = "lm capture",
    .params = params,
    .run = capture_states,
};
