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

/* What makes a row that row. */
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
/* The one row of numbers that it gives. */
CGAM_NODISCARD cgam_status cgam_store_numbers(cgam_store *store, const char *sql,
                                              const cgam_store_group *of, int columns,
                                              int64_t *out);

/* Makes sure that the model is known; inside a transaction. */
CGAM_NODISCARD cgam_status cgam_store_model(cgam_store *store, cgam_lm *lm);
CGAM_NODISCARD cgam_status cgam_store_put(cgam_store *store, const cgam_state_key *key,
                                          const char *text, const char *note, const void *data,
                                          size_t bytes);
/* Keeps what a prompt is, once; its row must be there. Inside a transaction. */
CGAM_NODISCARD cgam_status cgam_store_put_place(cgam_store *store, const cgam_state_key *key,
                                                const cgam_store_place *place);
/* Reads a row of so many numbers; out NULL: only whether it is there and sound. */
CGAM_NODISCARD cgam_status cgam_store_get(cgam_store *store, const cgam_state_key *key,
                                          int64_t numbers, float *out, bool *found);
void cgam_store_widen(cgam_dtype dtype, const void *data, int64_t n, float *out);

/* Model, engine, prompt and dtype as the first values of a statement that is begun anew; the prompt's digest goes into room of the
 * caller's, which the statement borrows until its values are cleared: a copy of SQLite's own may find no memory. */
enum { CGAM_STORE_DIGEST = 32 };
void cgam_store_bind(sqlite3_stmt *s, const cgam_state_key *key, uint8_t *digest);
/* Runs a statement that gives no rows, and lets go of what is bound. */
cgam_status cgam_store_finish(cgam_store *store, sqlite3_stmt *s);
/* Bytes of the states of a token; 0 if the sizes or the type are invalid. */
size_t cgam_store_bytes(int64_t layers, int64_t width, const char *dtype);
/* Whether a row whose first columns are data and digest holds so many bytes, and those. */
bool cgam_store_sound(sqlite3_stmt *row, size_t bytes);

/* Keeps tokens first .. of a prompt, data [L + 1, count, d] in the key's dtype; those with first 0 take the
 * place of all that were there. Inside a transaction. */
CGAM_NODISCARD cgam_status cgam_store_put_span(cgam_store *store, const cgam_state_key *key,
                                               int64_t first, int64_t count, const void *data,
                                               size_t bytes);
/* Whether all tokens of a prompt are there and sound; sink NULL: they are not handed over. */
CGAM_NODISCARD cgam_status cgam_store_get_spans(cgam_store *store, const cgam_state_key *key,
                                                const cgam_lm_info *info, cgam_lm_span_sink sink,
                                                void *user, bool *found);

/* The group of that model and engine; NULL: the only one there is. */
CGAM_NODISCARD cgam_status cgam_store_pick(cgam_store *store, const cgam_store_group *group,
                                           cgam_store_group *out);
/* Where the index of an export goes: states.npy has states.index.csv. False: the path is too long. */
bool cgam_store_index_path(const char *path, char *out, size_t size);

#endif
