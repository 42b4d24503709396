/* lm_inside.c: edits, prompts and tokens of a call. */
#include "app/lm_inside.h"

cgam_status cgam_lm_edit_set(cgam_call *call, cgam_lm *lm, cgam_edit_set **out)
{
    const char *const *words;
    cgam_status status = cgam_edit_set_new(lm, out);
    if (status != CGAM_OK) return status;
    int64_t n = cgam_args_words(call->args, "vector", &words);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++)
        status = cgam_edit_set_vectors(*out, words[i]);
    n = status == CGAM_OK ? cgam_args_words(call->args, "edit", &words) : 0;
    for (int64_t i = 0; i < n && status == CGAM_OK; i++)
        status = cgam_edit_set_word(*out, words[i]);
    if (status != CGAM_OK) {
        cgam_edit_set_free(*out);
        *out = NULL;
    }
    return status;
}

json_t *cgam_lm_token_list(const cgam_lm *lm, int64_t count, const int32_t *tokens)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_t *token = json_object();
        cgam_json_put_int(token, "id", tokens[i]);
        cgam_json_put(token, "piece", cgam_lm_piece_json(lm, tokens[i]));
        json_array_append_new(list, token);
    }
    return list;
}

cgam_status cgam_lm_prompt_tokens(cgam_call *call, cgam_lm *lm, const char *system, bool chat,
                                  int32_t **tokens, int64_t *count)
{
    const char *text = cgam_args_text(call->args, "prompt");
    cgam_status status;
    if (chat) {
        const cgam_lm_message messages[] = {{"system", system}, {"user", text}};
        status = cgam_lm_chat(lm, system ? 2 : 1, system ? messages : messages + 1, tokens, count);
    } else {
        status = cgam_lm_tokenize(lm, text, true, tokens, count);
    }
    if (status == CGAM_OK && *count == 0) {
        cgam_lm_tokens_free(lm, *tokens);
        *tokens = NULL;
        status = cgam_fail(call->env, CGAM_E_ARG, "prompt: it has no tokens");
    }
    return status;
}
