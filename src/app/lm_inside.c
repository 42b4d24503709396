/* lm_inside.c: edits, prompts and tokens of a call. */
#include "app/lm_inside.h"

cgam_status cgam_lm_edit_set(cgam_call *call, cgam_lm *lm, cgam_edit_set **out)
{
    const char *const *vector, *const *edit;
    int64_t vectors = cgam_args_words(call->args, "vector", &vector), v = 0;
    int64_t edits = cgam_args_words(call->args, "edit", &edit), e = 0;
    cgam_status status = cgam_edit_set_new(lm, out);
    if (status != CGAM_OK) return status;
    while ((v < vectors || e < edits) && status == CGAM_OK) {
        bool first =
            e == edits || (v < vectors && cgam_args_before(call->args, vector[v], edit[e]));
        status =
            first ? cgam_edit_set_vectors(*out, vector[v++]) : cgam_edit_set_word(*out, edit[e++]);
    }
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
