/* lm_inside.h: what the verbs that run prompts under edits have in common. */
#ifndef CGAM_SRC_APP_LM_INSIDE_H
#define CGAM_SRC_APP_LM_INSIDE_H

#include "app/lm.h"

#include <cgam/edit.h>

#define CGAM_PARAM_LM_EDIT                                                                         \
    CGAM_PARAM_TEXT("edit", "L:KIND:WHERE:X:FILE[:ROW]",                                           \
                    "after layer L add, or replace by, X times the vector in FILE (.npy), at "     \
                    "WHERE: last, prompt, generated, all, i or i-j (-1: the prompt's last)",       \
                    .many = true, .input = CGAM_INPUT_NUMBERS)
#define CGAM_PARAM_LM_VECTORS                                                                      \
    CGAM_PARAM_TEXT("vector", "FILE[:X[:FROM-TO]]",                                                \
                    "add X times the vectors in FILE (.gguf, .npy, .safetensors) at all tokens, "  \
                    "after layers FROM to TO",                                                     \
                    .many = true, .input = CGAM_INPUT_NUMBERS)
#define CGAM_PARAM_LM_EXACT                                                                        \
    CGAM_PARAM_FLAG("exact", "the plain f32 pass instead of libllama's; Llama family")

/* The edits of --vector and --edit, in the order given. Gives *out; cgam_edit_set_free. */
cgam_status cgam_lm_edit_set(cgam_call *call, cgam_lm *lm, cgam_edit_set **out);

/* [{"id", "piece"}, ..] */
json_t *cgam_lm_token_list(const cgam_lm *lm, int64_t count, const int32_t *tokens);

/* Tokens of --prompt, in the model's chat template if `chat`, with a system message before it unless
 * system is NULL. Gives *tokens [*count]; cgam_lm_tokens_free. */
cgam_status cgam_lm_prompt_tokens(cgam_call *call, cgam_lm *lm, const char *system, bool chat,
                                  int32_t **tokens, int64_t *count);

#endif
