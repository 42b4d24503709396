/* key.c: see key.h. */
#include "app/key.h"

#include "app/input.h"
#include "app/lm.h"
#include "base/alloc.h"
#include "io/array.h"

#include <ctype.h>

/* "Z.npy", "Z.npz:A": an array file, which has no blank in its name. */
static bool is_array_name(const char *text)
{
    static const char *const endings[] = {".npy", ".npz", ".safetensors", ".csv"};
    for (const char *c = text; *c; c++)
        if (isspace((unsigned char)*c)) return false;
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        const char *at = strstr(text, endings[k]);
        if (at && at > text && (!at[strlen(endings[k])] || at[strlen(endings[k])] == ':'))
            return true;
    }
    return false;
}

static cgam_status alloc_vector(cgam_env *env, int64_t d, cgam_key *out)
{
    out->d = d;
    out->vector = cgam_alloc(env, (size_t)d, sizeof *out->vector);
    return out->vector ? CGAM_OK : cgam_fail_nomem(env, "a key");
}

static cgam_status read_file(cgam_env *env, const char *path, cgam_key *out)
{
    cgam_matrix matrix;
    cgam_status status = cgam_input_matrix(env, path, &matrix);
    if (status != CGAM_OK) return status;
    if (matrix.rows != 1)
        status = cgam_fail(env, CGAM_E_SHAPE, "key: %s has %lld rows, expected one vector",
                           cgam_path_tail(path), (long long)matrix.rows);
    if (status == CGAM_OK) status = alloc_vector(env, matrix.columns, out);
    for (int64_t j = 0; status == CGAM_OK && j < matrix.columns; j++)
        out->vector[j] = (float)matrix.data[j];
    cgam_free(env, matrix.data);
    return status;
}

cgam_status cgam_key_from_json(cgam_env *env, const json_t *value, cgam_key *out, bool *fits)
{
    size_t d = json_array_size(value);
    *fits = d > 0;
    for (size_t j = 0; j < d; j++) *fits &= json_is_number(json_array_get(value, j));
    if (!*fits) return CGAM_OK;
    cgam_status status = alloc_vector(env, (int64_t)d, out);
    for (size_t j = 0; j < d && status == CGAM_OK; j++)
        out->vector[j] = (float)json_number_value(json_array_get(value, j));
    return status;
}

cgam_status cgam_key_read(cgam_env *env, const char *text, cgam_key *out)
{
    size_t file = strlen(CGAM_KEY_FILE), plain = strlen(CGAM_KEY_TEXT);
    json_t *list = NULL;
    bool fits = false, no_memory = false;
    json_error_t error;
    *out = (cgam_key){0};
    if (strncmp(text, CGAM_KEY_FILE, file) == 0) return read_file(env, text + file, out);
    if (is_array_name(text)) return read_file(env, text, out);
    if (*text == '[') list = cgam_json_tree(text, strlen(text), &error, &no_memory);
    if (no_memory) return cgam_fail_nomem(env, "a key");
    cgam_status status = list ? cgam_key_from_json(env, list, out, &fits) : CGAM_OK;
    json_decref(list);
    if (status != CGAM_OK || fits) return status;
    out->text = strncmp(text, CGAM_KEY_TEXT, plain) == 0 ? text + plain : text;
    return *out->text ? CGAM_OK : cgam_fail(env, CGAM_E_ARG, "key: the text is empty");
}

/* ---- Texts as vectors ------------------------------------------------------------------------- */
static cgam_status embed_texts(cgam_call *call, cgam_lm *lm, const cgam_embed_opts *opts,
                               int64_t count, cgam_key *keys)
{
    cgam_env *env = call->env;
    int64_t texts = 0, width = cgam_lm_describe(lm).width;
    const char **list;
    float *out;
    cgam_status status =
        cgam_alloc_all(env, "keys", CGAM_ARRAY(list, count), CGAM_ARRAY(out, count * width));
    for (int64_t i = 0; status == CGAM_OK && i < count; i++)
        if (!keys[i].vector) list[texts++] = keys[i].text;
    if (status == CGAM_OK) status = cgam_lm_embed(lm, texts, list, opts, out);
    for (int64_t i = 0, k = 0; i < count && status == CGAM_OK; i++) {
        if (keys[i].vector) continue;
        status = alloc_vector(env, width, &keys[i]);
        if (status == CGAM_OK)
            memcpy(keys[i].vector, out + width * k++, (size_t)width * sizeof *out);
    }
    cgam_free_all(env, (void *)(uintptr_t)list, out);
    return status;
}

cgam_status cgam_keys_embed(cgam_call *call, cgam_semcache_maker *maker, int64_t count,
                            cgam_key *keys)
{
    cgam_lm *lm;
    cgam_line line;
    cgam_embed_opts opts = cgam_embed_opts_default();
    bool any = false;
    for (int64_t i = 0; i < count; i++) any |= !keys[i].vector;
    if (!any) return CGAM_OK;
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    cgam_lm_info info = cgam_lm_describe(lm);
    opts.layer = maker->layer = maker->layer < 0 ? info.layers : maker->layer;
    opts.pool = (cgam_pool)cgam_word_find(cgam_pool_words, maker->pool);
    opts.alone = true; /* a key has the same vector when it is put and when it is looked up */
    opts.progress = cgam_line_begin(&line, call->progress);
    snprintf(maker->model, sizeof maker->model, "%s", info.file);
    status = embed_texts(call, lm, &opts, count, keys);
    cgam_line_clear(&line);
    cgam_lm_done(call, lm);
    return status;
}
