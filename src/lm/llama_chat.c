/* llama_chat.c: conversations in the words of a model's chat template. */
#include "lm/chat.h"
#include "lm/llama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cgam_lm_ends(const cgam_lm *lm, int32_t token)
{
    return token >= 0 && token < lm->info.vocab && lm->f->llama_vocab_is_eog(lm->vocab, token);
}

/* Zephyr's way: <|role|>, a line of its own, the words, the token that ends a sequence. libllama knows
 * templates by marks in their text; where this one says eos_token instead of a mark, it is taken for
 * another family's, whose turns do not end. */
static bool ends_by_token(const char *form)
{
    return strstr(form, "'<|user|>\n' + message['content'] + eos_token") ||
           strstr(form, "'<|user|>\\n' + message['content'] + eos_token");
}

static cgam_status apply_ends(cgam_lm *lm, int64_t count, const cgam_lm_message *messages,
                              char **out)
{
    char *text = NULL;
    size_t size = 0;
    int32_t eos = lm->f->llama_vocab_eos(lm->vocab);
    const char *end = eos >= 0 ? lm->f->llama_vocab_get_text(lm->vocab, eos) : "";
    FILE *f = open_memstream(&text, &size);
    if (!f) return cgam_fail_nomem(lm->env, "a chat");
    for (int64_t i = 0; i < count; i++)
        fprintf(f, "<|%s|>\n%s%s\n", messages[i].role, messages[i].text, end);
    fprintf(f, "<|assistant|>\n");
    bool fine = !ferror(f);
    fine = fclose(f) == 0 && fine;
    *out = fine ? cgam_strdup(lm->env, text) : NULL; /* the stream's memory is the C library's */
    free(text);
    return *out ? CGAM_OK : cgam_fail_nomem(lm->env, "a chat");
}

/* The conversation as text; room for it is found by asking twice. */
static cgam_status apply(cgam_lm *lm, const char *form, int64_t count,
                         const struct llama_chat_message *messages, char **out)
{
    int32_t room = 0,
            n = lm->f->llama_chat_apply_template(form, messages, (size_t)count, true, NULL, 0);
    if (n < 0)
        return cgam_fail(lm->env, CGAM_E_UNSUPPORTED,
                         "%s: libllama does not know its chat template, which begins %.40s",
                         cgam_path_tail(lm->path), form);
    room = n + 1;
    *out = cgam_zalloc(lm->env, (size_t)room, 1);
    if (!*out) return cgam_fail_nomem(lm->env, "a chat");
    n = lm->f->llama_chat_apply_template(form, messages, (size_t)count, true, *out, room);
    (*out)[n >= 0 && n < room ? n : 0] = '\0';
    return CGAM_OK;
}

cgam_status cgam_lm_chat_tokens(cgam_lm *lm, const char *text, int32_t **out, int64_t *length)
{
    *out = NULL;
    *length = 0;
    int32_t bytes = (int32_t)strlen(text), room = bytes + 8;
    int32_t *tokens = cgam_alloc(lm->env, (size_t)room, sizeof *tokens);
    if (!tokens) return cgam_fail_nomem(lm->env, "tokens");
    int32_t n = lm->f->llama_tokenize(lm->vocab, text, bytes, tokens, room, true, true);
    if (n < 0) {
        cgam_free(lm->env, tokens);
        return cgam_fail(lm->env, CGAM_E_INTERNAL, "libllama cannot tokenize a chat of %d bytes",
                         bytes);
    }
    /* templates that write the first token themselves leave two of it */
    if (n > 1 && tokens[0] == tokens[1] && tokens[0] == lm->f->llama_vocab_bos(lm->vocab))
        memmove(tokens, tokens + 1, (size_t)--n * sizeof *tokens);
    *out = tokens;
    *length = n;
    return CGAM_OK;
}

cgam_status cgam_lm_chat_text(cgam_lm *lm, int64_t count, const cgam_lm_message *messages,
                              char **out)
{
    enum { BYTES_MAX = 1 << 24 };
    *out = NULL;
    size_t bytes = 0;
    const char *form = lm->f->llama_model_chat_template(lm->model, NULL);
    if (!form)
        return cgam_fail(lm->env, CGAM_E_UNSUPPORTED, "%s: the model has no chat template",
                         cgam_path_tail(lm->path));
    if (count < 1) return cgam_fail(lm->env, CGAM_E_ARG, "a chat without messages");
    struct llama_chat_message *chat = cgam_alloc(lm->env, (size_t)count, sizeof *chat);
    if (!chat) return cgam_fail_nomem(lm->env, "a chat");
    for (int64_t i = 0; i < count; i++) {
        chat[i] = (struct llama_chat_message){messages[i].role, messages[i].text};
        bytes += strlen(messages[i].text);
    }
    cgam_status status = CGAM_OK;
    if (bytes > BYTES_MAX)
        status = cgam_fail(lm->env, CGAM_E_ARG, "a chat of %zu bytes is too long", bytes);
    if (status == CGAM_OK)
        status = ends_by_token(form) ? apply_ends(lm, count, messages, out)
                                     : apply(lm, form, count, chat, out);
    cgam_free(lm->env, chat);
    return status;
}

cgam_status cgam_lm_chat(cgam_lm *lm, int64_t count, const cgam_lm_message *messages, int32_t **out,
                         int64_t *length)
{
    char *text;
    *out = NULL;
    *length = 0;
    cgam_status status = cgam_lm_chat_text(lm, count, messages, &text);
    if (status == CGAM_OK) status = cgam_lm_chat_tokens(lm, text, out, length);
    cgam_free(lm->env, text);
    return status;
}
