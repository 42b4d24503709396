/* llama_model.c: a GGUF file as a model: its description, vocabulary and matrices. */
#include "io/file.h"
#include "lm/cache.h"
#include "lm/llama.h"
#include "lm/model.h"
#include "lm/model_check.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void cgam_lm_close(cgam_lm *lm)
{
    if (!lm) return;
    cgam_env *env = lm->env;
    cgam_lens_free(lm->lens);
    if (lm->model) lm->f->llama_model_free(lm->model);
    cgam_gguf_free(env, &lm->gguf);
    cgam_file_unmap(&lm->file);
    cgam_free_all(env, lm->path, lm);
}

static const cgam_gguf_value *value_of(const cgam_lm *lm, const char *name, cgam_gguf_kind kind)
{
    const cgam_gguf_value *v = cgam_model_value(&lm->gguf, name);
    return v && v->kind == kind && !v->array ? v : NULL;
}

bool cgam_gguf_uint(const cgam_lm *lm, const char *name, int64_t *out)
{
    const cgam_gguf_value *v = value_of(lm, name, CGAM_GGUF_U32);
    if (v) *out = (int64_t)cgam_gguf_number(v, 0);
    return v;
}

bool cgam_gguf_real(const cgam_lm *lm, const char *name, double *out)
{
    const cgam_gguf_value *v = value_of(lm, name, CGAM_GGUF_F32);
    if (v) *out = cgam_gguf_number(v, 0);
    return v;
}

cgam_status cgam_weights_find(const cgam_lm *lm, const char *name, cgam_weights *out)
{
    const cgam_gguf_tensor *t = cgam_gguf_tensor_find(&lm->gguf, name);
    *out = (cgam_weights){.lm = lm};
    if (!t)
        return cgam_fail(lm->env, CGAM_E_NOT_FOUND, "%s: no tensor %s", cgam_path_tail(lm->path),
                         name);
    if (t->shape[2] != 1 || t->shape[3] != 1 || t->size < 1)
        return cgam_fail(lm->env, CGAM_E_FORMAT, "%s: tensor %s is not a matrix",
                         cgam_path_tail(lm->path), name);
    out->type = (enum ggml_type)t->type;
    out->columns = t->shape[0];
    out->rows = t->shape[1];
    out->row_bytes = (size_t)t->bytes / (size_t)out->rows;
    out->block = cgam_gguf_block(t->type, &out->block_bytes);
    if (out->type != GGML_TYPE_F32 && !lm->f->ggml_get_type_traits(out->type)->to_float)
        return cgam_fail(lm->env, CGAM_E_UNSUPPORTED, "%s: tensor %s has an unsupported type",
                         cgam_path_tail(lm->path), name);
    out->data = lm->file.bytes + t->begin;
    return CGAM_OK;
}

const void *cgam_weights_at(const cgam_weights *w, int64_t row, int64_t from)
{
    return w->data + (size_t)row * w->row_bytes + (size_t)(from / w->block * w->block_bytes);
}

void cgam_weights_part(const cgam_weights *w, int64_t row, int64_t from, int64_t count, float *out)
{
    const cgam_llama *f = w->lm->f;
    const void *data = cgam_weights_at(w, row, from);
    if (w->type == GGML_TYPE_F32) memcpy(out, data, (size_t)count * sizeof *out);
    else if (w->type == GGML_TYPE_IQ2_XXS && f->iq2) cgam_iq2_widen(f->iq2, data, count, out);
    else f->ggml_get_type_traits(w->type)->to_float(data, out, count);
}

void cgam_weights_get(const cgam_weights *w, int64_t begin, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++)
        cgam_weights_part(w, begin + i, 0, w->columns, out + i * w->columns);
}

/* Fails unless the tensors that the lens needs are in the file and have the model's shape. */
static cgam_status survey_tensors(cgam_lm *lm)
{
    cgam_lm_info *info = &lm->info;
    cgam_weights embedding, output, norm;
    cgam_status status = cgam_weights_find(lm, "token_embd.weight", &embedding);
    if (status == CGAM_OK) status = cgam_weights_find(lm, "output_norm.weight", &norm);
    if (status != CGAM_OK) return status;
    info->tied = !cgam_gguf_tensor_find(&lm->gguf, "output.weight");
    status = info->tied ? CGAM_OK : cgam_weights_find(lm, "output.weight", &output);
    if (info->tied) output = embedding;
    if (status == CGAM_OK && (output.rows != info->vocab || output.columns != info->width ||
                              norm.columns != info->width))
        status =
            cgam_fail(lm->env, CGAM_E_FORMAT,
                      "%s: the unembedding is %lld x %lld, the model has %lld words in %lld "
                      "dimensions",
                      cgam_path_tail(lm->path), (long long)output.rows, (long long)output.columns,
                      (long long)info->vocab, (long long)info->width);
    return status;
}

static cgam_status open_model(cgam_lm *lm)
{
    cgam_env *env = lm->env;
    const cgam_llama *f = lm->f;
    const char *name = cgam_path_tail(lm->path);
    cgam_status status = cgam_file_map(env, lm->path, &lm->file);
    if (status != CGAM_OK) return status;
    status = cgam_gguf_parse(env, name, lm->file.bytes, lm->file.size, &lm->gguf);
    if (status == CGAM_OK) status = cgam_model_check(env, name, &lm->gguf);
    if (status != CGAM_OK) return status;
    snprintf(lm->info.architecture, sizeof lm->info.architecture, "%s", lm->gguf.architecture);
    const cgam_gguf_value *title = cgam_gguf_find(&lm->gguf, "general.name");
    if (title && title->kind == CGAM_GGUF_TEXT && title->count > 0) {
        const uint8_t *at = title->items;
        cgam_gguf_text text = cgam_gguf_next(&at);
        snprintf(lm->info.name, sizeof lm->info.name, "%.*s",
                 (int)(text.length < 255 ? text.length : 255), text.at);
    }
    cgam_llama_complaint_reset();
    struct llama_model_params params = f->llama_model_default_params();
    lm->model = f->llama_model_load_from_file(lm->path, params);
    if (!lm->model)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: libllama cannot load it: %s", name,
                         cgam_llama_complaint());
    lm->vocab = f->llama_model_get_vocab(lm->model);
    lm->info.layers = f->llama_model_n_layer(lm->model);
    lm->info.width = f->llama_model_n_embd(lm->model);
    lm->info.vocab = f->llama_vocab_n_tokens(lm->vocab);
    lm->info.context = f->llama_model_n_ctx_train(lm->model);
    lm->info.parameters = (int64_t)f->llama_model_n_params(lm->model);
    f->llama_model_desc(lm->model, lm->info.description, sizeof lm->info.description);
    cgam_lm_heads_read(lm);
    status = survey_tensors(lm);
    lm->info.exact = status == CGAM_OK && cgam_exact_knows(lm) == CGAM_OK;
    return status;
}

cgam_status cgam_lm_open(cgam_env *env, const char *path, cgam_lm **out)
{
    *out = NULL;
    const cgam_llama *f;
    char cached[CGAM_PATH_ROOM];
    cgam_status status = path ? CGAM_OK : cgam_lm_model_path(env, cached, sizeof cached);
    if (status == CGAM_OK && !path && !cgam_file_exists(cached))
        status = cgam_fail(env, CGAM_E_NOT_FOUND,
                           "the default model is not in the cache; fetch it with: cgam lm get, or "
                           "name another as model");
    if (status == CGAM_OK) status = cgam_llama_load(env, &f);
    if (status != CGAM_OK) return status;
    if (!path) path = cached;
    cgam_lm *lm = cgam_zalloc(env, 1, sizeof *lm);
    if (!lm) return cgam_fail_nomem(env, "a model");
    lm->env = env;
    lm->f = f;
    lm->path = cgam_strdup(env, path);
    snprintf(lm->info.file, sizeof lm->info.file, "%.255s",
             strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    status = lm->path ? open_model(lm) : cgam_fail_nomem(env, "a model");
    if (status == CGAM_OK) *out = lm;
    else cgam_lm_close(lm);
    return status;
}

cgam_lm_info cgam_lm_describe(const cgam_lm *lm) { return lm->info; }

cgam_env *cgam_lm_env(const cgam_lm *lm) { return lm->env; }

size_t cgam_lm_bytes(const cgam_lm *lm)
{
    size_t words = (size_t)(lm->info.vocab * lm->info.width);
    return lm->file.size + (lm->lens ? words * sizeof(float) : 0);
}

cgam_status cgam_lm_lens(cgam_lm *lm, const cgam_lens **out)
{
    cgam_status status = lm->lens ? CGAM_OK : cgam_lens_new(lm, &lm->lens);
    *out = lm->lens;
    return status;
}

cgam_status cgam_lm_sha256(cgam_lm *lm, const char **out)
{
    enum { PIECE = 1 << 24 };
    *out = lm->sha256;
    if (lm->sha256[0]) return CGAM_OK;
    uint8_t digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state sha;
    crypto_hash_sha256_init(&sha);
    for (size_t at = 0; at < lm->file.size; at += PIECE) {
        size_t left = lm->file.size - at;
        size_t size = left < PIECE ? left : PIECE;
        crypto_hash_sha256_update(&sha, lm->file.bytes + at, size);
        /* read once: libllama has a mapping of its own, and two of them count twice */
        madvise((void *)(uintptr_t)(lm->file.bytes + at), size, MADV_DONTNEED);
        if (cgam_interrupted(lm->env)) return CGAM_E_INTERRUPTED;
    }
    crypto_hash_sha256_final(&sha, digest);
    sodium_bin2hex(lm->sha256, sizeof lm->sha256, digest, sizeof digest);
    return CGAM_OK;
}

/* special: parse special tokens in the text. */
static cgam_status tokenize_text(cgam_lm *lm, const char *text, bool begin, bool special,
                                 int32_t **out, int64_t *count)
{
    *out = NULL;
    *count = 0;
    size_t length = strlen(text);
    if (length > 1 << 24)
        return cgam_fail(lm->env, CGAM_E_ARG, "a text of %zu bytes is too long to tokenize",
                         length);
    /* A token usually has at least one byte; otherwise libllama returns the count needed. */
    int32_t capacity = (int32_t)length + 8, n = -1;
    for (int turn = 0; turn < 2 && n < 0 && capacity > 0; turn++) {
        cgam_free(lm->env, *out);
        *out = cgam_alloc(lm->env, (size_t)capacity, sizeof **out);
        if (!*out) return cgam_fail_nomem(lm->env, "tokens");
        n = lm->f->llama_tokenize(lm->vocab, text, (int32_t)length, *out, capacity, begin, special);
        capacity = n > INT32_MIN ? -n : 0;
    }
    if (n < 0) {
        cgam_free(lm->env, *out);
        *out = NULL;
        return cgam_fail(lm->env, CGAM_E_INTERNAL, "libllama cannot tokenize %zu bytes", length);
    }
    *count = n;
    return CGAM_OK;
}

cgam_status cgam_lm_tokenize(cgam_lm *lm, const char *text, bool begin, int32_t **out,
                             int64_t *count)
{
    return tokenize_text(lm, text, begin, false, out, count);
}

void cgam_lm_tokens_free(cgam_lm *lm, void *block) { cgam_free(lm->env, block); }

const char *cgam_lm_piece(const cgam_lm *lm, int32_t token, char *text, size_t size)
{
    if (size == 0) return text;
    int32_t n = 0;
    if (token >= 0 && token < lm->info.vocab)
        n = lm->f->llama_token_to_piece(lm->vocab, token, text, (int32_t)size - 1, 0, true);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

typedef struct row_reading {
    const cgam_weights *w;
    float *out;
} row_reading;

enum { ROWS_AT_ONCE = 512 };

static cgam_status read_rows(void *arg, int64_t k)
{
    const row_reading *job = arg;
    int64_t begin = k * ROWS_AT_ONCE, left = job->w->rows - begin;
    cgam_weights_get(job->w, begin, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE,
                     job->out + begin * job->w->columns);
    return CGAM_OK;
}

cgam_status cgam_lm_unembedding(cgam_lm *lm, float *Z)
{
    cgam_weights w;
    cgam_status status =
        cgam_weights_find(lm, lm->info.tied ? "token_embd.weight" : "output.weight", &w);
    row_reading job = {&w, Z};
    if (status == CGAM_OK)
        status =
            cgam_parallel(lm->env, (w.rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, read_rows, &job);
    return status;
}

/* Reads a vector of the file; fills in zeros if it is missing. */
static cgam_status read_optional(cgam_lm *lm, const char *name, int64_t size, float *out,
                                 bool *there)
{
    cgam_weights w;
    memset(out, 0, (size_t)size * sizeof *out);
    *there = cgam_gguf_tensor_find(&lm->gguf, name) != NULL;
    if (!*there) return CGAM_OK;
    cgam_status status = cgam_weights_find(lm, name, &w);
    if (status == CGAM_OK && (w.rows != 1 || w.columns != size))
        status = cgam_fail(lm->env, CGAM_E_FORMAT, "%s: %s is %lld x %lld, not %lld numbers",
                           cgam_path_tail(lm->path), name, (long long)w.rows, (long long)w.columns,
                           (long long)size);
    if (status == CGAM_OK) cgam_weights_get(&w, 0, 1, out);
    return status;
}

cgam_status cgam_lm_final_norm(cgam_lm *lm, float *weights, float *bias, cgam_lm_norm *out)
{
    *out = (cgam_lm_norm){0};
    cgam_weights w;
    cgam_status status = cgam_weights_find(lm, "output_norm.weight", &w);
    if (status != CGAM_OK) return status;
    if (!cgam_gguf_real(lm, "attention.layer_norm_rms_epsilon", &out->epsilon)) {
        out->centred = true;
        if (!cgam_gguf_real(lm, "attention.layer_norm_epsilon", &out->epsilon))
            return cgam_fail(lm->env, CGAM_E_UNSUPPORTED,
                             "%s: does not say which final norm this %s model uses",
                             cgam_path_tail(lm->path), lm->info.architecture);
    }
    cgam_weights_get(&w, 0, 1, weights);
    return read_optional(lm, "output_norm.bias", lm->info.width, bias, &out->biased);
}

cgam_status cgam_lm_score_bias(cgam_lm *lm, float *out, bool *any)
{
    return read_optional(lm, "output.bias", lm->info.vocab, out, any);
}

/* ---- Chats ----------------------------------------------------------------------------------- */
/* Conversations in the words of a model's chat template. */

bool cgam_lm_ends(const cgam_lm *lm, int32_t token)
{
    return token >= 0 && token < lm->info.vocab && lm->f->llama_vocab_is_eog(lm->vocab, token);
}

/* Zephyr's format: <|role|> on its own line, the words, the end-of-sequence token. libllama recognises templates by marks
 * in their text; if this one has eos_token instead of a mark, libllama takes it for another family's, whose turns
 * do not end. */
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
    *out =
        fine ? cgam_strdup(lm->env, text) : NULL; /* the stream's memory belongs to the C library */
    free(text);
    return *out ? CGAM_OK : cgam_fail_nomem(lm->env, "a chat");
}

/* The conversation as text; the first of two calls gives its length. */
static cgam_status apply_template(cgam_lm *lm, const char *form, int64_t count,
                                  const struct llama_chat_message *messages, char **out)
{
    int32_t capacity = 0,
            n = lm->f->llama_chat_apply_template(form, messages, (size_t)count, true, NULL, 0);
    if (n < 0)
        return cgam_fail(lm->env, CGAM_E_UNSUPPORTED,
                         "%s: libllama does not know its chat template, which begins %.40s",
                         cgam_path_tail(lm->path), form);
    capacity = n + 1;
    *out = cgam_zalloc(lm->env, (size_t)capacity, 1);
    if (!*out) return cgam_fail_nomem(lm->env, "a chat");
    n = lm->f->llama_chat_apply_template(form, messages, (size_t)count, true, *out, capacity);
    (*out)[n >= 0 && n < capacity ? n : 0] = '\0';
    return CGAM_OK;
}

cgam_status cgam_lm_chat_tokens(cgam_lm *lm, const char *text, int32_t **out, int64_t *length)
{
    cgam_status status = tokenize_text(lm, text, true, true, out, length);
    int32_t *tokens = *out;
    /* a template that writes the first token itself makes it appear twice */
    if (*length > 1 && tokens[0] == tokens[1] && tokens[0] == lm->f->llama_vocab_bos(lm->vocab))
        memmove(tokens, tokens + 1, (size_t)-- * length * sizeof *tokens);
    return status;
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
    if (count < 1) return cgam_fail(lm->env, CGAM_E_ARG, "the chat has no messages");
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
                                     : apply_template(lm, form, count, chat, out);
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
