/* store_tokens.c: the states of all tokens in a store, in the spans in which they were computed. */
#include "io/file.h"
#include "lm/collect.h"
#include "lm/model.h"
#include "lm/placed.h"
#include "lm/store.h"

#include <sodium.h>
#include <string.h>

cgam_status cgam_store_put_span(cgam_store *store, const cgam_state_key *key, int64_t first,
                                int64_t count, const void *data, size_t bytes)
{
    uint8_t digest[crypto_hash_sha256_BYTES], prompt[CGAM_STORE_DIGEST];
    cgam_status status = CGAM_OK;
    if (first == 0) { /* another run may have cut it otherwise */
        cgam_store_bind(store->no_spans, key, prompt);
        status = cgam_store_finish(store, store->no_spans);
    }
    if (status != CGAM_OK) return status;
    crypto_hash_sha256(digest, data, bytes);
    sqlite3_stmt *put = store->put_span;
    cgam_store_bind(put, key, prompt);
    sqlite3_bind_int64(put, 5, first);
    sqlite3_bind_int64(put, 6, count);
    sqlite3_bind_blob64(put, 7, data, bytes, SQLITE_STATIC);
    sqlite3_bind_blob(put, 8, digest, sizeof digest, SQLITE_STATIC);
    return cgam_store_finish(store, put);
}

static cgam_status hand_over_span(cgam_store *store, cgam_dtype dtype, const void *data,
                                  int64_t numbers, cgam_lm_span *span, cgam_lm_span_sink sink,
                                  void *user)
{
    float *wide = cgam_alloc(store->env, (size_t)numbers, sizeof *wide);
    if (!wide) return cgam_fail_nomem(store->env, "states");
    cgam_store_widen(dtype, data, numbers, wide);
    span->states = wide;
    cgam_status status = sink(user, span);
    cgam_free(store->env, wide);
    return status;
}

cgam_status cgam_store_get_spans(cgam_store *store, const cgam_state_key *key,
                                 const cgam_lm_info *info, cgam_lm_span_sink sink, void *user,
                                 bool *found)
{
    int64_t one = (info->layers + 1) * info->width, next = 0;
    sqlite3_stmt *ask = store->spans;
    cgam_status status = CGAM_OK;
    int code = SQLITE_DONE;
    bool fine = true;
    uint8_t prompt[CGAM_STORE_DIGEST];
    cgam_store_bind(ask, key, prompt);
    while (status == CGAM_OK && fine && (code = sqlite3_step(ask)) == SQLITE_ROW) {
        cgam_lm_span span = {.first = sqlite3_column_int64(ask, 2),
                             .count = sqlite3_column_int64(ask, 3)};
        fine = span.first == next && span.count > 0 && span.count <= key->prompt.count - next &&
               cgam_store_sound(ask, (size_t)(span.count * one) * cgam_dtype_size(key->dtype));
        if (!fine) break;
        next += span.count;
        if (sink)
            status = hand_over_span(store, key->dtype, sqlite3_column_blob(ask, 0),
                                    span.count * one, &span, sink, user);
    }
    if (status == CGAM_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = cgam_store_fail(store, code);
    sqlite3_reset(ask);
    sqlite3_clear_bindings(ask);
    *found = status == CGAM_OK && fine && next == key->prompt.count;
    return status;
}

/* ---- Export ------------------------------------------------------------------------------- */
typedef struct collected {
    cgam_store *store;
    const cgam_store_group *group;
    int64_t count, capacity;
    cgam_state_key *keys;     /* [count], with tokens of their own */
    char (*names)[2][32];     /* [count] of states and tokens */
    int64_t (*shapes)[2][3];  /* [count] */
    cgam_named_array *arrays; /* [2 count] */
    cgam_placed *file;
    int64_t writing; /* which */
} collected;

static void collected_free(collected *c)
{
    cgam_env *env = c->store->env;
    for (int64_t i = 0; i < c->count; i++)
        cgam_free(env, (void *)(uintptr_t)c->keys[i].prompt.tokens);
    cgam_free_all(env, c->keys, c->names, c->shapes, c->arrays);
}

#define WHOLE                                                                                      \
    " FROM state s WHERE s.model = ? AND s.engine = ? AND s.ids IS NOT NULL AND (SELECT "          \
    "sum(t.count) FROM span t WHERE t.model = s.model AND t.engine = s.engine AND "                \
    "t.prompt = s.prompt AND t.dtype = s.dtype) = s.tokens"

static cgam_status grow_states(collected *c)
{
    cgam_env *env = c->store->env;
    cgam_status status =
        cgam_store_numbers(c->store, "SELECT count(*)" WHOLE, c->group, 1, &c->capacity);
    if (status != CGAM_OK) return status;
    if (c->capacity < 1)
        return cgam_fail(env, CGAM_E_NOT_FOUND,
                         "%s holds no states of all tokens: lm capture --tokens all makes them",
                         cgam_path_tail(c->store->path));
    return cgam_alloc_all(env, "an export", CGAM_ZEROS(c->keys, c->capacity),
                          CGAM_ARRAY(c->names, c->capacity), CGAM_ARRAY(c->shapes, c->capacity),
                          CGAM_ARRAY(c->arrays, 2 * c->capacity));
}

static cgam_status read_token_row(collected *c, sqlite3_stmt *row)
{
    cgam_env *env = c->store->env;
    int64_t i = c->count, n = sqlite3_column_bytes(row, 0) / (int64_t)sizeof(int32_t);
    const char *dtype = (const char *)sqlite3_column_text(row, 1);
    const void *ids = sqlite3_column_blob(row, 0);
    if (!ids || n < 1 || cgam_store_bytes(c->group->layers, c->group->width, dtype) == 0)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: prompt %lld is damaged",
                         cgam_path_tail(c->store->path), (long long)i);
    cgam_state_key *key = &c->keys[i];
    *key = (cgam_state_key){.model = c->group->model,
                            .exact = strcmp(c->group->engine, "exact") == 0,
                            .dtype = (cgam_dtype)cgam_word_find(cgam_dtype_words, dtype)};
    int32_t *tokens = cgam_alloc(env, (size_t)n, sizeof *tokens);
    if (!tokens) return cgam_fail_nomem(env, "an export");
    memcpy(tokens, ids, (size_t)n * sizeof *tokens);
    key->prompt = (cgam_lm_prompt){tokens, n};
    c->count++;
    snprintf(c->names[i][0], sizeof c->names[i][0], "p%lld", (long long)i);
    snprintf(c->names[i][1], sizeof c->names[i][1], "p%lld_tokens", (long long)i);
    const int64_t shape[3] = {c->group->layers + 1, n, c->group->width};
    memcpy(c->shapes[i][0], shape, sizeof shape);
    c->shapes[i][1][0] = n;
    c->arrays[2 * i] = (cgam_named_array){c->names[i][0], CGAM_F32, 3, c->shapes[i][0], NULL};
    c->arrays[2 * i + 1] = (cgam_named_array){c->names[i][1], CGAM_I32, 1, c->shapes[i][1], NULL};
    return CGAM_OK;
}

static cgam_status write_tokens(void *user, const cgam_lm_span *span)
{
    collected *c = user;
    int64_t layers = c->group->layers + 1, d = c->group->width;
    int64_t tokens = c->keys[c->writing].prompt.count;
    cgam_status status = CGAM_OK;
    for (int64_t l = 0; l < layers && status == CGAM_OK; l++)
        status = cgam_placed_put(c->file, (int)(2 * c->writing), (l * tokens + span->first) * d,
                                 span->count * d, span->states + l * span->count * d);
    return status;
}

static cgam_status write_all(collected *c, const char *path)
{
    const cgam_lm_info info = {.layers = c->group->layers, .width = c->group->width};
    cgam_status status =
        cgam_placed_begin(c->store->env, path, (int)(2 * c->count), c->arrays, &c->file);
    if (status != CGAM_OK) return status;
    for (c->writing = 0; c->writing < c->count && status == CGAM_OK; c->writing++) {
        const cgam_state_key *key = &c->keys[c->writing];
        bool found = false;
        status = cgam_placed_put(c->file, (int)(2 * c->writing) + 1, 0, key->prompt.count,
                                 key->prompt.tokens);
        if (status == CGAM_OK)
            status = cgam_store_get_spans(c->store, key, &info, write_tokens, c, &found);
        if (status == CGAM_OK && !found)
            status = cgam_fail(c->store->env, CGAM_E_FORMAT,
                               "%s: the states of all tokens of prompt %lld are damaged",
                               cgam_path_tail(c->store->path), (long long)c->writing);
    }
    if (status == CGAM_OK) return cgam_placed_finish(c->file);
    cgam_placed_abandon(c->file);
    return status;
}

cgam_status cgam_store_export_tokens(cgam_store *store, const cgam_store_group *group,
                                     const char *path, int64_t *rows)
{
    cgam_store_group found;
    sqlite3_stmt *ask = NULL;
    *rows = 0;
    if (!cgam_path_ends(path, ".safetensors"))
        return cgam_fail(store->env, CGAM_E_ARG, "%s: states of all tokens need .safetensors",
                         cgam_path_tail(path));
    cgam_status status = cgam_store_pick(store, group, &found);
    if (status != CGAM_OK) return status;
    collected c = {.store = store, .group = &found};
    status = grow_states(&c);
    if (status == CGAM_OK)
        status =
            cgam_store_ask(store, "SELECT s.ids, s.dtype" WHOLE " ORDER BY s.id", &found, &ask);
    int code = SQLITE_DONE;
    while (status == CGAM_OK && c.count < c.capacity && (code = sqlite3_step(ask)) == SQLITE_ROW)
        status = read_token_row(&c, ask);
    if (status == CGAM_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = cgam_store_fail(store, code);
    sqlite3_finalize(ask);
    if (status == CGAM_OK) status = write_all(&c, path);
    *rows = c.count;
    collected_free(&c);
    return status;
}
