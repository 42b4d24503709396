/* verb_lm_states.c: hidden states of any text. */
#include "app/lm.h"
#include "app/verbs.h"
#include "lm/model.h"
#include "lm/prompt_file.h"

#include <cgam/lm.h>

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("prompt", "TEXT", "one text"),
    CGAM_PARAM_TEXT(
        "prompts", "FILE",
        "several texts: one per line, or JSON lines with \"prompt\"; - for standard input",
        .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_INTS("layers", "all|L,L,..", "all", 0, 1e6,
                    "0 is the embedding, L the stream after block L"),
    CGAM_PARAM_CHOICE("tokens", "last|all", "last", "tokens of each text whose states are written"),
    CGAM_PARAM_CHOICE("part", "residual|attention|mlp|heads", "residual",
                      "the stream, or what each block (1 to L) adds to it"),
    CGAM_PARAM_LM_VECTORS,
    CGAM_PARAM_LM_EDIT,
    CGAM_PARAM_TEXT(
        "save", "FILE",
        "file to write: .npy (prompts, layers, d), or with --tokens all (layers, tokens, d) "
        "of one text, of heads (.., heads, d); or .safetensors",
        .writes = true),
    CGAM_PARAM_LM_EXACT,
    CGAM_PARAM_END,
};

typedef struct texts {
    cgam_lm *lm;
    cgam_prompt_file *file; /* NULL: --prompt */
    int64_t count;
    cgam_lm_prompt *prompts; /* [count] */
} texts;

static void texts_free(texts *t)
{
    for (int64_t i = 0; i < t->count && t->prompts; i++)
        cgam_lm_tokens_free(t->lm, (void *)(uintptr_t)t->prompts[i].tokens);
    if (t->lm) cgam_free(cgam_lm_env(t->lm), t->prompts);
    cgam_prompt_file_close(t->file);
}

static cgam_status read_texts(cgam_call *call, cgam_lm *lm, texts *t)
{
    const char *text = cgam_args_text(call->args, "prompt");
    const char *path = cgam_args_text(call->args, "prompts");
    *t = (texts){.lm = lm};
    if (text && path) return cgam_fail(call->env, CGAM_E_ARG, "give prompt or prompts, not both");
    if (!text && !path) return cgam_fail(call->env, CGAM_E_ARG, "give prompt or prompts");
    cgam_status status = path ? cgam_prompt_file_open(call->env, path, &t->file) : CGAM_OK;
    if (status != CGAM_OK) return status;
    int64_t count = path ? cgam_prompt_file_count(t->file) : 1;
    t->prompts = cgam_zalloc(call->env, (size_t)count, sizeof *t->prompts);
    if (!t->prompts) return cgam_fail_nomem(call->env, "prompts");
    for (t->count = 0; t->count < count && status == CGAM_OK; t->count++) {
        int32_t *tokens = NULL;
        cgam_lm_prompt *p = &t->prompts[t->count];
        status = cgam_lm_tokenize(lm, path ? cgam_prompt_file_get(t->file, t->count).text : text,
                                  true, &tokens, &p->count);
        p->tokens = tokens;
    }
    return status;
}

static json_t *prompt_list(const texts *t)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < t->count; i++) {
        json_t *prompt = json_object();
        cgam_json_put(prompt, "tokens",
                      cgam_lm_token_list(t->lm, t->prompts[i].count, t->prompts[i].tokens));
        json_array_append_new(list, prompt);
    }
    return list;
}

static json_t *layer_list(const cgam_lm_observe_opts *o, const cgam_lm_info *info)
{
    if (o->layers) return cgam_json_ints(o->layers, o->layers_count);
    json_t *list = json_array();
    for (int64_t l = o->part == CGAM_LM_RESIDUAL ? 0 : 1; l <= info->layers; l++)
        json_array_append_new(list, json_integer(l));
    return list;
}

/* Without a file to save to, the prompts are still run, so that errors are found. */
static cgam_status drop(void *user, const cgam_lm_span *span)
{
    (void)user, (void)span;
    return CGAM_OK;
}

static cgam_status run_model(cgam_call *call, cgam_lm *lm, const texts *t, cgam_lm_observe_opts *o)
{
    const char *save = cgam_args_text(call->args, "save");
    cgam_edit_set *set = NULL;
    cgam_status status = cgam_lm_edit_set(call, lm, &set);
    if (status != CGAM_OK) return status;
    o->run.edits = cgam_edit_set_edits(set);
    status = save ? cgam_lm_states_write(lm, t->count, t->prompts, o, save)
                  : cgam_lm_observe(lm, t->count, t->prompts, o, drop, NULL);
    cgam_edit_set_free(set);
    return status;
}

static cgam_status run_states(cgam_call *call)
{
    cgam_line line;
    cgam_lm *lm = NULL;
    texts t = {0};
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    cgam_lm_info info = cgam_lm_describe(lm);
    status = read_texts(call, lm, &t);
    o.run.exact = cgam_args_flag(call->args, "exact");
    o.all_tokens = cgam_args_is(call->args, "tokens", "all");
    const char *part = cgam_args_text(call->args, "part");
    o.part = (cgam_lm_block_part)cgam_word_find(cgam_lm_block_part_words, part);
    if (!cgam_args_is(call->args, "layers", "all"))
        o.layers_count = cgam_args_ints(call->args, "layers", &o.layers);
    o.run.progress = cgam_line_begin(&line, call->progress);
    if (status == CGAM_OK) status = run_model(call, lm, &t, &o);
    cgam_line_clear(&line);
    if (status == CGAM_OK) {
        cgam_put_lm(call->doc, lm);
        cgam_json_add(call->doc, "part=%s width=%jd layers=%p prompts=%p saved=%s", part,
                      info.width, layer_list(&o, &info), prompt_list(&t),
                      cgam_args_text(call->args, "save"));
        if (o.part == CGAM_LM_HEADS) cgam_json_put_int(call->doc, "heads", info.heads);
    }
    texts_free(&t);
    cgam_lm_done(call, lm);
    return status;
}

const cgam_verb cgam_verb_lm_states = {
    .name = "lm states",
    .params = params,
    .run = run_states,
};
