/* store.h (inside): rows of a store. */
#ifndef CGAM_SRC_LM_STORE_H
#define CGAM_SRC_LM_STORE_H

#include "base/alloc.h"

#include "lm/collect.h"

#include <sqlite3.h>
#include <stdio.h>

struct cgam_store {
    cgam_env *env;
    char *path;
    sqlite3 *db;
    sqlite3_stmt *put, *get, *place, *ids, *put_span, *no_spans, *spans;
};

/* The key of a row. */
typedef struct cgam_state_key {
    const char *model; /* digest */
    bool exact;
    cgam_lm_prompt prompt;
    cgam_dtype dtype;
} cgam_state_key;

cgam_status cgam_store_fail(cgam_store *store, int code);
CGAM_NODISCARD cgam_status cgam_store_do(cgam_store *store, const char *sql);
/* Prepares a statement, whose first values are the group's model and engine unless `of` is NULL. */
CGAM_NODISCARD cgam_status cgam_store_ask(cgam_store *store, const char *sql,
                                          const cgam_store_group *of, sqlite3_stmt **out);
/* Reads the statement's only row, of numbers. */
CGAM_NODISCARD cgam_status cgam_store_numbers(cgam_store *store, const char *sql,
                                              const cgam_store_group *of, int columns,
                                              int64_t *out);

/* Adds the model to the store if it is missing. Call inside a transaction. */
CGAM_NODISCARD cgam_status cgam_store_model(cgam_store *store, cgam_lm *lm);
CGAM_NODISCARD cgam_status cgam_store_put(cgam_store *store, const cgam_state_key *key,
                                          const char *text, const char *note, const void *data,
                                          size_t bytes);
/* Stores a prompt's place, once; its row must exist. Call inside a transaction. */
CGAM_NODISCARD cgam_status cgam_store_put_place(cgam_store *store, const cgam_state_key *key,
                                                const cgam_store_place *place);
/* Reads a row of that many numbers; out NULL: only checks that it exists and is sound. */
CGAM_NODISCARD cgam_status cgam_store_get(cgam_store *store, const cgam_state_key *key,
                                          int64_t numbers, float *out, bool *found);
void cgam_store_widen(cgam_dtype dtype, const void *data, int64_t n, float *out);

/* Resets a statement and binds model, engine, prompt and dtype as its first values. The prompt's digest goes into a
 * buffer of the caller, which the statement borrows until its values are cleared: a copy by SQLite could run out
 * of memory. */
enum { CGAM_STORE_DIGEST = 32 };
void cgam_store_bind(sqlite3_stmt *s, const cgam_state_key *key, uint8_t *digest);
/* Runs a statement that returns no rows, and clears its values. */
cgam_status cgam_store_finish(cgam_store *store, sqlite3_stmt *s);
/* Bytes of the states of a token; 0 if the sizes or the type are invalid. */
size_t cgam_store_bytes(int64_t layers, int64_t width, const char *dtype);
/* Does a row, whose first columns are data and digest, hold that many bytes with that digest? */
bool cgam_store_sound(sqlite3_stmt *row, size_t bytes);

/* Stores tokens first .. of a prompt, data [L + 1, count, d] in the key's dtype; first 0 replaces all stored
 * tokens. Call inside a transaction. */
CGAM_NODISCARD cgam_status cgam_store_put_span(cgam_store *store, const cgam_state_key *key,
                                               int64_t first, int64_t count, const void *data,
                                               size_t bytes);
/* Checks that all tokens of a prompt are in the store and sound, and passes them to sink unless it is NULL. */
CGAM_NODISCARD cgam_status cgam_store_get_spans(cgam_store *store, const cgam_state_key *key,
                                                const cgam_lm_info *info, cgam_lm_span_sink sink,
                                                void *user, bool *found);

/* Finds the group of that model and engine; NULL: the store's only group. */
CGAM_NODISCARD cgam_status cgam_store_pick(cgam_store *store, const cgam_store_group *group,
                                           cgam_store_group *out);
/* The path of an export's index: states.npy has states.index.csv. Returns false if the path is too long. */
bool cgam_store_index_path(const char *path, char *out, size_t size);

#endif
