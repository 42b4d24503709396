/* chat.h (inside): a conversation as the text that a model's chat template makes of it. */
#ifndef CGAM_SRC_LM_CHAT_H
#define CGAM_SRC_LM_CHAT_H

#include <cgam/lm.h>

/* What cgam_lm_chat makes tokens of, up to where the next answer of the assistant begins. Gives *out;
 * free it with cgam_free. */
CGAM_NODISCARD cgam_status cgam_lm_chat_text(cgam_lm *lm, int64_t count,
                                             const cgam_lm_message *messages, char **out);
/* Tokens of such a text, special ones as what they are. Gives *out [*length]; cgam_lm_tokens_free. */
CGAM_NODISCARD cgam_status cgam_lm_chat_tokens(cgam_lm *lm, const char *text, int32_t **out,
                                               int64_t *length);

#endif
