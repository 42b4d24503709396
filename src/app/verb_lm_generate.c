/* verb_lm_generate.c: text from a model, under edits. */
#include "app/lm.h"
#include "app/verbs.h"

#include <cgam/lm.h>

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("prompt", "TEXT", "the text to continue", .required = true),
    CGAM_PARAM_FLAG("chat", "use the prompt as the user's turn in the model's chat template"),
    CGAM_PARAM_TEXT("system", "TEXT", "system message before it; implies --chat"),
    CGAM_PARAM_LM_VECTORS,
    CGAM_PARAM_LM_EDIT,
    CGAM_PARAM_TEXT("gate", "FILE[:ROW]",
                    "context vector (.npy) whose scores are added at every token, through the gate "
                    "operator over the vocabulary",
                    .input = CGAM_INPUT_NUMBERS),
    CGAM_ROWS_OF(cgam_lm_generate_opts_rows),
    CGAM_PARAM_END,
};

/* Shows text on a terminal as it comes. */
static cgam_status show_token(void *user, int64_t which, const cgam_lm_token *token,
                              const char *text)
{
    (void)which, (void)token;
    const cgam_call *call = user;
    char *shown = cgam_strdup(call->env, text);
    if (!shown) return cgam_fail_nomem(call->env, "text");
    cgam_text_tame(shown, "\n\t"); /* whole characters, as cgam_json_tame treats them */
    fputs(shown, call->live);
    fflush(call->live);
    cgam_free(call->env, shown);
    return CGAM_OK;
}

/* Replaces \n and \\, which a shell passes unchanged, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool pair = at[0] == '\\' && (at[1] == 'n' || at[1] == '\\');
        if (pair) at++;
        *to++ = pair && *at == 'n' ? '\n' : *at;
    }
    *to = '\0';
}

typedef struct stops {
    char **word;
    int64_t count;
} stops;

static cgam_status read_stops(cgam_call *call, stops *s)
{
    const char *const *words;
    *s = (stops){.count = 0};
    int64_t n = cgam_args_words(call->args, "stop", &words);
    if (n == 0) return CGAM_OK;
    s->word = cgam_zalloc(call->env, (size_t)n, sizeof *s->word);
    if (!s->word) return cgam_fail_nomem(call->env, "stop");
    for (; s->count < n; s->count++) {
        s->word[s->count] = cgam_strdup(call->env, words[s->count]);
        if (!s->word[s->count]) return cgam_fail_nomem(call->env, "stop");
        unescape(s->word[s->count]);
    }
    return CGAM_OK;
}

static void stops_free(cgam_env *env, stops *s)
{
    for (int64_t i = 0; i < s->count; i++) cgam_free(env, s->word[i]);
    cgam_free(env, s->word);
}

static void put_text(cgam_call *call, const cgam_lm *lm, const cgam_lm_text *text)
{
    json_t *tokens = json_array();
    for (int64_t i = 0; i < text->count; i++) {
        const cgam_lm_token *t = &text->tokens[i];
        json_array_append_new(tokens,
                              cgam_json_object("id=%d piece=%p log_p=%g neff=%g", t->id,
                                               cgam_lm_piece_json(lm, t->id), t->log_p, t->neff));
    }
    cgam_json_add(call->doc, "text=%s tokens=%p stop=%s", text->text ? text->text : "", tokens,
                  cgam_word(cgam_lm_stop_words, text->stop));
    if (call->live) cgam_json_put_bool(call->doc, "shown", true);
}

/* The vector of --gate, read as that of an edit after the last layer; *set owns it. */
static cgam_status read_gate(cgam_call *call, cgam_lm *lm, cgam_edit_set **set,
                             cgam_lm_generate_opts *o)
{
    char word[CGAM_PATH_ROOM + 64];
    const char *file = cgam_args_text(call->args, "gate");
    *set = NULL;
    if (!file &&
        (cgam_args_given(call->args, "gate-alpha") || cgam_args_given(call->args, "gate-lambda")))
        return cgam_fail(call->env, CGAM_E_ARG, "gate-alpha and gate-lambda require gate");
    if (!file) return CGAM_OK;
    if (snprintf(word, sizeof word, "%lld:add:all:1:%s", (long long)cgam_lm_describe(lm).layers,
                 file) >= (int)sizeof word)
        return cgam_fail(call->env, CGAM_E_ARG, "gate: the name of the file is too long");
    cgam_status status = cgam_edit_set_new(lm, set);
    if (status == CGAM_OK) status = cgam_edit_set_word(*set, word);
    if (status == CGAM_OK) o->gate = cgam_edit_set_edits(*set).edit[0].vector;
    return status;
}

static cgam_status generate(cgam_call *call, cgam_lm *lm, cgam_lm_generate_opts *o)
{
    const cgam_args *args = call->args;
    const char *system = cgam_args_text(args, "system");
    cgam_edit_set *set = NULL, *gate = NULL;
    stops stop;
    int32_t *tokens = NULL;
    int64_t count = 0;
    cgam_lm_text text = {0};
    cgam_status status = read_stops(call, &stop);
    o->stop = (const char *const *)stop.word;
    o->stop_count = stop.count;
    if (status == CGAM_OK) status = read_gate(call, lm, &gate, o);
    if (status == CGAM_OK) status = cgam_lm_edit_set(call, lm, &set);
    if (status == CGAM_OK) {
        o->edits = cgam_edit_set_edits(set);
        status = cgam_lm_prompt_tokens(call, lm, system, system || cgam_args_flag(args, "chat"),
                                       &tokens, &count);
    }
    if (status == CGAM_OK)
        status = cgam_lm_generate(lm, 1, &(cgam_lm_prompt){tokens, count}, o, &text);
    if (status == CGAM_OK) {
        cgam_put_lm(call->doc, lm);
        cgam_json_put_int(call->doc, "prompt_tokens", count);
        put_text(call, lm, &text);
    }
    cgam_lm_texts_free(lm, 1, &text);
    cgam_lm_tokens_free(lm, tokens);
    cgam_edit_set_free(set);
    cgam_edit_set_free(gate);
    stops_free(call->env, &stop);
    return status;
}

static cgam_status generate_text(cgam_call *call)
{
    cgam_lm *lm;
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    cgam_args_fill(call->args, cgam_lm_generate_opts_rows, &o);
    if (call->live) {
        o.each = show_token;
        o.user = call;
    }
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    status = generate(call, lm, &o);
    cgam_lm_done(call, lm);
    return status;
}

const cgam_verb cgam_verb_lm_generate = {
    .name = "lm generate",
    .params = params,
    .run = generate_text,
};
