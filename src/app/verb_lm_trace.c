/* verb_lm_trace.c: how long a context keeps affecting what a model computes. */
#include "app/lm.h"
#include "app/verbs.h"
#include "lab/figures/picture.h"
#include "lab/folder.h"

#include "lab/language/trace.h"

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("prompt", "TEXT", "the text to continue", .required = true),
    CGAM_PARAM_TEXT("system", "TEXT", "the context: a system message, in the chat template"),
    CGAM_PARAM_FLAG("chat", "use the chat template even without --system"),
    CGAM_PARAM_LM_VECTORS,
    CGAM_PARAM_LM_EDIT,
    CGAM_PARAM_INT("max-tokens", "N", "64", 1, 65536, "maximum number of tokens to generate"),
    CGAM_PARAM_LM_EXACT,
    CGAM_PARAM_OUT(NULL, "write trace.json, its tables and the figure here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static void put_trace(cgam_call *call, const cgam_lm *lm, const cgam_lm_trace *t)
{
    json_t *tokens = json_array();
    for (int64_t j = 0; j < t->count; j++) {
        json_array_append_new(
            tokens,
            cgam_json_object(
                "id=%d piece=%p kl=%g neff_with=%g neff_without=%g context_norm=%p persistence=%p",
                t->text.tokens[j].id, cgam_lm_piece_json(lm, t->text.tokens[j].id), t->kl[j],
                t->neff_with[j], t->neff_without[j],
                cgam_json_reals(t->norm + j * t->layers, t->layers, 1),
                cgam_json_reals(t->persistence + j * t->layers, t->layers, 1)));
    }
    cgam_json_add(call->doc, "text=%s tokens=%p stop=%s", t->text.text ? t->text.text : "", tokens,
                  cgam_word(cgam_lm_stop_words, t->text.stop));
}

static cgam_status leave_trace(cgam_call *call, const char *out, const cgam_lm_trace *t)
{
    json_t *files = json_array();
    cgam_status status = cgam_trace_table_write(call->env, out, t);
    json_array_append_new(files, json_string("trace.csv"));
    if (status == CGAM_OK)
        return cgam_picture_leave(call->env, call->doc, out, "trace",
                                  t->count > 0 && cgam_args_is(call->args, "figures", "yes"),
                                  cgam_trace_figures_write, files);
    json_decref(files);
    return status;
}

/* The prompt with the context and without it. */
typedef struct sides {
    int32_t *tokens[2];
    cgam_lm_prompt prompt[2];
} sides;

static cgam_status trace(cgam_call *call, cgam_lm *lm, const cgam_edit_set *set, const sides *s)
{
    cgam_line line;
    cgam_lm_trace t;
    const char *out = cgam_args_text(call->args, "out");
    cgam_lm_trace_opts o = cgam_lm_trace_opts_default();
    o.text.exact = cgam_args_flag(call->args, "exact");
    o.text.max_tokens = cgam_args_int(call->args, "max-tokens");
    o.text.edits = cgam_edit_set_edits(set);
    o.progress = cgam_line_begin(&line, call->progress);
    cgam_status status = cgam_lm_trace_make(lm, &s->prompt[0], &s->prompt[1], &o, &t);
    cgam_line_clear(&line);
    if (status != CGAM_OK) return status;
    cgam_put_lm(call->doc, lm);
    cgam_json_add(call->doc, "engine=%s prompt_tokens=%jd", o.text.exact ? "exact" : "llama",
                  s->prompt[0].count);
    put_trace(call, lm, &t);
    if (out) status = leave_trace(call, out, &t);
    cgam_lm_trace_free(lm, &t);
    return status;
}

static cgam_status run_trace(cgam_call *call)
{
    const cgam_args *args = call->args;
    const char *system = cgam_args_text(args, "system"), *out = cgam_args_text(args, "out");
    bool chat = system || cgam_args_flag(args, "chat");
    cgam_lm *lm = NULL;
    cgam_edit_set *set = NULL;
    sides s = {0};
    if (!system && !cgam_args_given(args, "vector") && !cgam_args_given(args, "edit"))
        return cgam_fail(call->env, CGAM_E_ARG, "give system, vector or edit (the context)");
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_lm_of(call, &lm);
    if (status == CGAM_OK) status = cgam_lm_edit_set(call, lm, &set);
    for (int i = 0; i < 2 && status == CGAM_OK; i++) {
        status = cgam_lm_prompt_tokens(call, lm, i == 0 ? system : NULL, chat, &s.tokens[i],
                                       &s.prompt[i].count);
        s.prompt[i].tokens = s.tokens[i];
    }
    if (status == CGAM_OK) status = trace(call, lm, set, &s);
    for (int i = 0; i < 2 && lm; i++) cgam_lm_tokens_free(lm, s.tokens[i]);
    cgam_edit_set_free(set);
    cgam_lm_done(call, lm);
    return status;
}

const cgam_verb cgam_verb_lm_trace = {
    .name = "lm trace",
    .params = params,
    .run = run_trace,
};
