/* verb_lm_generate.c: text from a model, under edits. */
#include "app/lm_inside.h"
#include "app/verbs.h"

#include <cgam/generate.h>

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("prompt", "TEXT", "what is continued", .required = true),
    CGAM_PARAM_FLAG("chat", "put the prompt into the model's chat template, as the user's turn"),
    CGAM_PARAM_TEXT("system", "TEXT", "the system's turn before it; implies --chat"),
    CGAM_PARAM_LM_VECTORS,
    CGAM_PARAM_LM_EDIT,
    CGAM_PARAM_INT("max-tokens", "N", "64", 1, 1048576, "the most that are generated"),
    CGAM_PARAM_REAL("temperature", "X", "0", 0, 1e6, "0 takes the most probable token"),
    CGAM_PARAM_REAL("top-p", "X", "1", CGAM_ABOVE_0, 1,
                    "draw among the fewest tokens that hold this share"),
    CGAM_PARAM_SEED("of what is drawn"),
    CGAM_PARAM_TEXT("stop", "TEXT", "end before this text; \\n is a line's end", .many = true),
    CGAM_PARAM_LM_EXACT,
    CGAM_PARAM_END,
};

/* Shows text on a terminal as it comes. */
static cgam_status show(void *user, int64_t which, const cgam_lm_token *token, const char *text)
{
    (void)which, (void)token;
    const cgam_call *call = user;
    char *shown = cgam_strdup(call->env, text);
    if (!shown) return cgam_fail_nomem(call->env, "text");
    cgam_text_tame(shown, "\n\t"); /* whole letters, as cgam_json_tame has them */
    fputs(shown, call->live);
    fflush(call->live);
    cgam_free(call->env, shown);
    return CGAM_OK;
}

/* \n and \\ as a shell hands them on; in place. */
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
        json_t *token = json_object();
        cgam_json_put_int(token, "id", t->id);
        cgam_json_put(token, "piece", cgam_lm_piece_json(lm, t->id));
        cgam_json_put_real(token, "log_p", t->log_p);
        cgam_json_put_real(token, "neff", t->neff);
        json_array_append_new(tokens, token);
    }
    cgam_json_put_text(call->doc, "text", text->text ? text->text : "");
    cgam_json_put(call->doc, "tokens", tokens);
    cgam_json_put_text(call->doc, "stop", cgam_lm_stop_name(text->stop));
    if (call->live) cgam_json_put_bool(call->doc, "shown", true);
}

static cgam_status generate(cgam_call *call, cgam_lm *lm, cgam_lm_generate_opts *o)
{
    const cgam_args *args = call->args;
    const char *system = cgam_args_text(args, "system");
    cgam_edit_set *set = NULL;
    stops stop;
    int32_t *tokens = NULL;
    int64_t count = 0;
    cgam_lm_text text = {0};
    cgam_status status = read_stops(call, &stop);
    o->stop = (const char *const *)stop.word;
    o->stop_count = stop.count;
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
    stops_free(call->env, &stop);
    return status;
}

static cgam_status run(cgam_call *call)
{
    const cgam_args *args = call->args;
    cgam_lm *lm;
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    o.exact = cgam_args_flag(args, "exact");
    o.max_tokens = cgam_args_int(args, "max-tokens");
    o.temperature = cgam_args_real(args, "temperature");
    o.top_p = cgam_args_real(args, "top-p");
    o.seed = (uint64_t)cgam_args_int(args, "seed");
    if (call->live) {
        o.each = show;
        o.user = call;
    }
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    status = generate(call, lm, &o);
    cgam_lm_done(call, lm);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    if (!json_is_true(json_object_get(doc, "shown"))) fputs(cgam_json_get_text(doc, "text"), to);
    fputc('\n', to);
}

const cgam_verb cgam_verb_lm_generate = {
    .name = "lm generate",
    .summary = "continue a text, with vectors put into the model",
    .about =
        "Continues a prompt token by token, greedily unless --temperature says otherwise. On a "
        "terminal the text appears as it comes; Ctrl-C ends it with what there is.\n\n"
        "--vector adds control vectors at every token of prompt and answer; --edit adds or "
        "replaces at one layer and chosen tokens. --json has the log-probability of every token "
        "and N_eff, the exponential of the entropy of what it was drawn from.",
    .example = "cgam lm generate --prompt 'Once upon a time' --vector v.gguf:4:10-14",
    .params = params,
    .run = run,
    .print = print,
};
