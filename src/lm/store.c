/* store.c: the SQLite file. Write-ahead logging, so that readers and killed writers do no harm;
 * every row has the digest of its states. */
#include "lm/store.h"
#include "lm/collect.h"
#include "lm/model.h"

#include "io/file.h"
#include "num/cpu/widen.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { APPLICATION = 0x6367616d, VERSION = 3 }; /* "cgam" */
enum { PATIENCE = 10000, NAP = 2 }; /* with another's lock, and between two looks at it; ms */

cgam_status cgam_store_fail(cgam_store *store, int code)
{
    const char *said = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
    cgam_status status = CGAM_E_IO;
    if (code == SQLITE_CANTOPEN) status = CGAM_E_NOT_FOUND;
    if (code == SQLITE_NOMEM) status = CGAM_E_NOMEM;
    if (code == SQLITE_NOTADB)
        return cgam_fail(store->env, CGAM_E_FORMAT, "%s: %s", cgam_path_tail(store->path), said);
    /* What we ask is right for what we make, so that an error in it is one of the file. */
    if (code == SQLITE_CORRUPT || code == SQLITE_ERROR || code == SQLITE_MISMATCH ||
        code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG || code == SQLITE_RANGE)
        return cgam_fail(store->env, CGAM_E_FORMAT, "%s: a damaged store of states: %.*s",
                         cgam_path_tail(store->path), (int)strcspn(said, "\r\n"), said);
    return cgam_fail(store->env, status, "%s: %s", cgam_path_tail(store->path), said);
}

cgam_status cgam_store_do(cgam_store *store, const char *sql)
{
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? CGAM_OK : cgam_store_fail(store, code);
}

cgam_status cgam_store_ask(cgam_store *store, const char *sql, const cgam_store_group *of,
                           sqlite3_stmt **out)
{
    int code = sqlite3_prepare_v2(store->db, sql, -1, out, NULL);
    if (code != SQLITE_OK) return cgam_store_fail(store, code);
    if (of) sqlite3_bind_text(*out, 1, of->model, -1, SQLITE_STATIC);
    if (of) sqlite3_bind_text(*out, 2, of->engine, -1, SQLITE_STATIC);
    return CGAM_OK;
}

cgam_status cgam_store_numbers(cgam_store *store, const char *sql, const cgam_store_group *of,
                               int columns, int64_t *out)
{
    sqlite3_stmt *ask;
    cgam_status status = cgam_store_ask(store, sql, of, &ask);
    if (status != CGAM_OK) return status;
    int code = sqlite3_step(ask);
    if (code != SQLITE_ROW) status = cgam_store_fail(store, code);
    for (int k = 0; k < columns && code == SQLITE_ROW; k++) out[k] = sqlite3_column_int64(ask, k);
    sqlite3_finalize(ask);
    return status;
}

void cgam_store_close(cgam_store *store)
{
    if (!store) return;
    sqlite3_stmt *all[] = {store->put,      store->get,      store->place, store->ids,
                           store->put_span, store->no_spans, store->spans};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
    sqlite3_close(store->db);
    cgam_free_all(store->env, store->path, store);
}

/* What makes a store of version i one of version i + 1. */
static const char *const steps[VERSION] = {
    "CREATE TABLE model (sha256 TEXT PRIMARY KEY, name TEXT, description TEXT,"
    "  layers INTEGER NOT NULL, width INTEGER NOT NULL, vocab INTEGER NOT NULL);"
    "CREATE TABLE state (id INTEGER PRIMARY KEY,"
    "  model TEXT NOT NULL REFERENCES model (sha256), engine TEXT NOT NULL,"
    "  prompt BLOB NOT NULL," /* SHA-256 of the tokens */
    "  tokens INTEGER NOT NULL, text TEXT, note TEXT, dtype TEXT NOT NULL,"
    "  data BLOB NOT NULL, digest BLOB NOT NULL,"
    "  made TEXT NOT NULL DEFAULT (datetime('now')),"
    "  UNIQUE (model, engine, prompt, dtype));"
    "PRAGMA application_id = 1667719533;" /* "cgam" */
    "PRAGMA user_version = 1",
    "ALTER TABLE state ADD COLUMN ids BLOB;" /* the tokens, i32 */
    "CREATE TABLE place (id INTEGER PRIMARY KEY, state INTEGER NOT NULL REFERENCES state (id),"
    "  source TEXT NOT NULL, demos TEXT NOT NULL, label TEXT NOT NULL,"
    "  seed INTEGER NOT NULL, shots INTEGER NOT NULL, query INTEGER NOT NULL,"
    "  UNIQUE (state, source, demos, seed, shots, query));"
    "PRAGMA user_version = 2",
    /* States of all tokens: tokens first .. first + count - 1 as [layers + 1, count, width]. */
    "CREATE TABLE span (id INTEGER PRIMARY KEY, model TEXT NOT NULL REFERENCES model (sha256),"
    "  engine TEXT NOT NULL, prompt BLOB NOT NULL, dtype TEXT NOT NULL,"
    "  first INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL,"
    "  UNIQUE (model, engine, prompt, dtype, first));"
    "PRAGMA user_version = 3"};

/* In one transaction, so that two programs that open an old store do not both change it. */
static cgam_status bring_up(cgam_store *store)
{
    int64_t version = 0;
    cgam_status status = cgam_store_do(store, "BEGIN IMMEDIATE");
    if (status != CGAM_OK) return status;
    status = cgam_store_numbers(store, "PRAGMA user_version", NULL, 1, &version);
    for (int64_t i = version; i < VERSION && status == CGAM_OK; i++)
        status = cgam_store_do(store, steps[i]);
    if (status == CGAM_OK) return cgam_store_do(store, "COMMIT");
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static cgam_status prepare_statements(cgam_store *store)
{
    const struct {
        sqlite3_stmt **to;
        const char *sql;
    } all[] = {
        /* The id stays, since places refer to it. */
        {&store->put,
         "INSERT INTO state (model, engine, prompt, dtype, tokens, text, note, data, digest, ids)"
         " VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (model, engine, prompt, dtype) DO UPDATE SET"
         " tokens = excluded.tokens, text = excluded.text, note = excluded.note,"
         " data = excluded.data, digest = excluded.digest, ids = excluded.ids"},
        {&store->get, "SELECT data, digest FROM state WHERE model = ? AND engine = ? AND "
                      "prompt = ? AND dtype = ?"},
        {&store->place,
         "INSERT OR IGNORE INTO place (state, source, demos, label, seed, shots, query)"
         " SELECT id, ?5, ?6, ?7, ?8, ?9, ?10 FROM state WHERE model = ?1 AND engine = ?2 AND"
         " prompt = ?3 AND dtype = ?4"},
        {&store->put_span, "INSERT OR REPLACE INTO span (model, engine, prompt, dtype, first,"
                           " count, data, digest) VALUES (?,?,?,?,?,?,?,?)"},
        {&store->no_spans, "DELETE FROM span WHERE model = ? AND engine = ? AND prompt = ? AND"
                           " dtype = ?"},
        {&store->spans, "SELECT data, digest, first, count FROM span WHERE model = ? AND engine ="
                        " ? AND prompt = ? AND dtype = ? ORDER BY first"},
        {&store->ids, "UPDATE state SET ids = ?5 WHERE model = ?1 AND engine = ?2 AND prompt = ?3"
                      " AND dtype = ?4 AND ids IS NULL"},
    };
    cgam_status status = CGAM_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == CGAM_OK; i++)
        status = cgam_store_ask(store, all[i].sql, NULL, all[i].to);
    return status;
}

/* Views, triggers, virtual tables and columns that are computed are programs; a store has none. */
static const char strange[] =
    "SELECT (SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') OR"
    " (type = 'index' AND sql IS NOT NULL) OR (type = 'table' AND (rootpage = 0 OR"
    " name NOT IN ('model', 'state', 'place', 'span')))) + (SELECT count(*) FROM sqlite_master m,"
    " pragma_table_xinfo(m.name) x WHERE m.type = 'table' AND x.hidden <> 0)";

/* Of several that open a new store at once SQLite makes all but one fail here, without the waiting that it does elsewhere. */
static cgam_status log_ahead(cgam_store *store)
{
    static const char wal[] = "PRAGMA journal_mode = WAL";
    int code;
    double until = cgam_clock() + PATIENCE / 1e3;
    while ((code = sqlite3_exec(store->db, wal, NULL, NULL, NULL)) == SQLITE_BUSY &&
           cgam_clock() < until)
        sqlite3_sleep(NAP);
    return code == SQLITE_OK ? cgam_store_do(store, "PRAGMA synchronous = FULL")
                             : cgam_store_fail(store, code);
}

static cgam_status prepare_database(cgam_store *store)
{
    int64_t application = 0, version = 0, tables = 0, others = 0;
    sqlite3_busy_timeout(store->db, PATIENCE);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    const struct {
        const char *sql;
        int64_t *to;
    } all[] = {{"SELECT count(*) FROM sqlite_master", &tables},
               {"PRAGMA application_id", &application},
               {"PRAGMA user_version", &version}};
    cgam_status status = CGAM_OK;
    for (int i = 0; i < 3 && status == CGAM_OK; i++)
        status = cgam_store_numbers(store, all[i].sql, NULL, 1, all[i].to);
    if (status != CGAM_OK) return status;
    if (tables > 0 && application != APPLICATION)
        return cgam_fail(store->env, CGAM_E_FORMAT, "%s: a database, but not a store of states",
                         cgam_path_tail(store->path));
    status = cgam_store_numbers(store, strange, NULL, 1, &others);
    if (status != CGAM_OK) return status;
    if (others > 0)
        return cgam_fail(store->env, CGAM_E_FORMAT, "%s: a damaged store of states: unknown tables",
                         cgam_path_tail(store->path));
    if (version < 0 || version > VERSION)
        return cgam_fail(store->env, CGAM_E_UNSUPPORTED,
                         "%s: unsupported version %lld of the store (supported: up to %d)",
                         cgam_path_tail(store->path), (long long)version, VERSION);
    status = log_ahead(store);
    if (status == CGAM_OK && version < VERSION) status = bring_up(store);
    return status == CGAM_OK ? prepare_statements(store) : status;
}

cgam_status cgam_store_open(cgam_env *env, const char *path, bool create, cgam_store **out)
{
    *out = NULL;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s: not a file", cgam_path_tail(path));
    cgam_store *store = cgam_zalloc(env, 1, sizeof *store);
    if (!store) return cgam_fail_nomem(env, "a store");
    store->env = env;
    store->path = cgam_strdup(env, path);
    cgam_status status = store->path ? CGAM_OK : cgam_fail_nomem(env, "a store");
    if (status == CGAM_OK) {
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
        int code = sqlite3_open_v2(path, &store->db, flags, NULL);
        status = code == SQLITE_OK ? prepare_database(store) : cgam_store_fail(store, code);
    }
    if (status == CGAM_OK) *out = store;
    else cgam_store_close(store);
    return status;
}

cgam_status cgam_store_model(cgam_store *store, cgam_lm *lm)
{
    sqlite3_stmt *put;
    const char *sha;
    cgam_lm_info info = cgam_lm_describe(lm);
    cgam_status status = cgam_lm_sha256(lm, &sha);
    if (status == CGAM_OK)
        status =
            cgam_store_ask(store, "INSERT OR IGNORE INTO model VALUES (?,?,?,?,?,?)", NULL, &put);
    if (status != CGAM_OK) return status;
    sqlite3_bind_text(put, 1, sha, -1, SQLITE_STATIC);
    sqlite3_bind_text(put, 2, info.name, -1, SQLITE_STATIC);
    sqlite3_bind_text(put, 3, info.description, -1, SQLITE_STATIC);
    sqlite3_bind_int64(put, 4, info.layers);
    sqlite3_bind_int64(put, 5, info.width);
    sqlite3_bind_int64(put, 6, info.vocab);
    status = cgam_store_finish(store, put);
    sqlite3_finalize(put);
    return status;
}

void cgam_store_bind(sqlite3_stmt *s, const cgam_state_key *key, uint8_t *digest)
{
    _Static_assert(CGAM_STORE_DIGEST == crypto_hash_sha256_BYTES, "a digest is one of SHA-256");
    crypto_hash_sha256(digest, (const uint8_t *)key->prompt.tokens,
                       (size_t)key->prompt.count * sizeof *key->prompt.tokens);
    sqlite3_reset(s);
    sqlite3_bind_text(s, 1, key->model, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, key->exact ? "exact" : "llama", -1, SQLITE_STATIC);
    sqlite3_bind_blob(s, 3, digest, CGAM_STORE_DIGEST, SQLITE_STATIC);
    sqlite3_bind_text(s, 4, cgam_word(cgam_dtype_words, key->dtype), -1, SQLITE_STATIC);
}

static void bind_ids(sqlite3_stmt *s, int which, const cgam_state_key *key)
{
    sqlite3_bind_blob64(s, which, key->prompt.tokens,
                        (size_t)key->prompt.count * sizeof *key->prompt.tokens, SQLITE_STATIC);
}

cgam_status cgam_store_finish(cgam_store *store, sqlite3_stmt *s)
{
    int code = sqlite3_step(s);
    cgam_status status = code == SQLITE_DONE ? CGAM_OK : cgam_store_fail(store, code);
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return status;
}

cgam_status cgam_store_put(cgam_store *store, const cgam_state_key *key, const char *text,
                           const char *note, const void *data, size_t bytes)
{
    uint8_t digest[crypto_hash_sha256_BYTES], prompt[CGAM_STORE_DIGEST];
    crypto_hash_sha256(digest, data, bytes);
    sqlite3_stmt *put = store->put;
    cgam_store_bind(put, key, prompt);
    sqlite3_bind_int64(put, 5, key->prompt.count);
    sqlite3_bind_text(put, 6, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(put, 7, note, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(put, 8, data, bytes, SQLITE_STATIC);
    sqlite3_bind_blob(put, 9, digest, sizeof digest, SQLITE_STATIC);
    bind_ids(put, 10, key);
    return cgam_store_finish(store, put);
}

cgam_status cgam_store_put_place(cgam_store *store, const cgam_state_key *key,
                                 const cgam_store_place *place)
{
    const char *texts[] = {place->source, place->demos, place->label};
    const int64_t numbers[] = {place->seed, place->shots, place->query};
    sqlite3_stmt *put = store->place, *ids = store->ids;
    uint8_t prompt[CGAM_STORE_DIGEST];
    cgam_store_bind(put, key, prompt);
    for (int i = 0; i < 3; i++)
        sqlite3_bind_text(put, 5 + i, texts[i] ? texts[i] : "", -1, SQLITE_STATIC);
    for (int i = 0; i < 3; i++) sqlite3_bind_int64(put, 8 + i, numbers[i]);
    cgam_status status = cgam_store_finish(store, put);
    if (status != CGAM_OK || sqlite3_changes(store->db) == 0) return status;
    cgam_store_bind(ids, key, prompt); /* a row of version 1 has none */
    bind_ids(ids, 5, key);
    return cgam_store_finish(store, ids);
}

size_t cgam_store_bytes(int64_t layers, int64_t width, const char *dtype_name)
{
    enum { LAYERS_MAX = 1 << 12, WIDTH_MAX = 1 << 20 };
    int dtype = dtype_name ? cgam_word_find(cgam_dtype_words, dtype_name) : -1;
    if (layers < 0 || layers > LAYERS_MAX || width < 1 || width > WIDTH_MAX ||
        (dtype != CGAM_F32 && dtype != CGAM_F16 && dtype != CGAM_BF16))
        return 0;
    return (size_t)(layers + 1) * (size_t)width * cgam_dtype_size((cgam_dtype)dtype);
}

bool cgam_store_sound(sqlite3_stmt *row, size_t bytes)
{
    uint8_t digest[crypto_hash_sha256_BYTES];
    const void *data = sqlite3_column_blob(row, 0), *want = sqlite3_column_blob(row, 1);
    if (!data || !want || bytes == 0 || sqlite3_column_bytes(row, 1) != sizeof digest ||
        (size_t)sqlite3_column_bytes(row, 0) != bytes)
        return false;
    crypto_hash_sha256(digest, data, bytes);
    return memcmp(digest, want, sizeof digest) == 0;
}

cgam_status cgam_store_get(cgam_store *store, const cgam_state_key *key, int64_t numbers,
                           float *out, bool *found)
{
    *found = false;
    sqlite3_stmt *get = store->get;
    uint8_t prompt[CGAM_STORE_DIGEST];
    cgam_store_bind(get, key, prompt);
    int code = sqlite3_step(get);
    cgam_status status = CGAM_OK;
    if (code == SQLITE_ROW) {
        /* A row that does not hold what its digest says is as good as absent: it is made anew. */
        *found = cgam_store_sound(get, (size_t)numbers * cgam_dtype_size(key->dtype));
        if (*found && out) cgam_store_widen(key->dtype, sqlite3_column_blob(get, 0), numbers, out);
    } else if (code != SQLITE_DONE) {
        status = cgam_store_fail(store, code);
    }
    sqlite3_reset(get);
    sqlite3_clear_bindings(get);
    return status;
}

void cgam_store_widen(cgam_dtype dtype, const void *data, int64_t n, float *out)
{
    enum { PIECE = 1024 };
    double wide[PIECE];
    if (dtype == CGAM_F32) {
        memcpy(out, data, (size_t)n * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t m = n - i < PIECE ? n - i : PIECE;
        cgam_widen(dtype, (const char *)data + (size_t)i * cgam_dtype_size(dtype), m, wide);
        for (int64_t j = 0; j < m; j++) out[i + j] = (float)wide[j];
    }
}

/* ---- Looking in --------------------------------------------------------------------------- */
static void copy_column(sqlite3_stmt *row, int column, char *to, size_t size)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    snprintf(to, size, "%s", text ? (const char *)text : "");
}

cgam_status cgam_store_list(cgam_store *store,
                            cgam_status (*each)(void *user, const cgam_store_group *g), void *user)
{
    sqlite3_stmt *ask;
    cgam_status status = cgam_store_ask(
        store,
        "SELECT m.sha256, coalesce(m.name, ''), s.engine, m.layers, m.width, count(*),"
        " sum(length(s.data)), (SELECT count(DISTINCT t.prompt || t.dtype) FROM span t WHERE"
        "  t.model = s.model AND t.engine = s.engine), coalesce((SELECT sum(length(t.data)) FROM"
        "  span t WHERE t.model = s.model AND t.engine = s.engine), 0)"
        " FROM state s JOIN model m ON m.sha256 = s.model"
        " GROUP BY s.model, s.engine ORDER BY m.rowid, min(s.id)",
        NULL, &ask);
    if (status != CGAM_OK) return status;
    int code;
    while (status == CGAM_OK && (code = sqlite3_step(ask)) == SQLITE_ROW) {
        cgam_store_group g = {.layers = sqlite3_column_int64(ask, 3),
                              .width = sqlite3_column_int64(ask, 4),
                              .rows = sqlite3_column_int64(ask, 5),
                              .bytes = sqlite3_column_int64(ask, 6) + sqlite3_column_int64(ask, 8),
                              .all_tokens = sqlite3_column_int64(ask, 7)};
        copy_column(ask, 0, g.model, sizeof g.model);
        copy_column(ask, 1, g.name, sizeof g.name);
        copy_column(ask, 2, g.engine, sizeof g.engine);
        if (cgam_store_bytes(g.layers, g.width, "f32") == 0)
            status =
                cgam_fail(store->env, CGAM_E_FORMAT,
                          "%s: a damaged store of states: a model of %lld layers and width %lld",
                          cgam_path_tail(store->path), (long long)g.layers, (long long)g.width);
        else status = each(user, &g);
    }
    if (status == CGAM_OK && code != SQLITE_DONE) status = cgam_store_fail(store, code);
    sqlite3_finalize(ask);
    return status;
}

/* Did the machine fail to read, and not the store to hold? SQLite's check tells of it among what it finds: of a page that it cannot get,
 * although it is one of the file's, or by the code of a failure. */
static bool not_read(const char *said)
{
    static const char words[] = "error code"; /* and a blank, or = */
    if (said && strstr(said, "failed to get page")) return true;
    while (said && (said = strstr(said, words))) {
        said += strlen(words);
        int code = (int)strtol(said + (*said == '='), NULL, 10) & 255;
        if (code == SQLITE_IOERR || code == SQLITE_NOMEM) return true;
    }
    return false;
}

/* SQLite's own check: one line, "ok", or what it found. */
static cgam_status check_pages(cgam_store *store, bool *sound)
{
    sqlite3_stmt *ask;
    cgam_status status = cgam_store_ask(store, "PRAGMA integrity_check", NULL, &ask);
    if (status != CGAM_OK) return status;
    int code, lines = 0;
    bool fine = false, failed = false;
    while ((code = sqlite3_step(ask)) == SQLITE_ROW) {
        const char *said = (const char *)sqlite3_column_text(ask, 0);
        fine = lines++ == 0 && said && strcmp(said, "ok") == 0;
        failed |= !said || not_read(said);
    }
    *sound = fine && code == SQLITE_DONE;
    if (failed) /* which SQLite itself does not call one */
        status = cgam_fail(store->env, CGAM_E_IO, "%s: %s", cgam_path_tail(store->path),
                           sqlite3_errstr(SQLITE_IOERR));
    else if (code != SQLITE_DONE && code != SQLITE_CORRUPT && code != SQLITE_NOTADB)
        status = cgam_store_fail(store, code);
    sqlite3_finalize(ask);
    return status;
}

cgam_status cgam_store_check(cgam_store *store, cgam_store_verdict *out)
{
    *out = (cgam_store_verdict){.first_bad = -1};
    sqlite3_stmt *ask;
    int code;
    cgam_status status = check_pages(store, &out->sound);
    if (status == CGAM_OK)
        status = cgam_store_ask(store,
                                "SELECT data, digest, id, dtype, layers, width, 1 FROM state"
                                " LEFT JOIN model ON sha256 = model UNION ALL "
                                "SELECT data, digest, id, dtype, layers, width, count FROM span"
                                " LEFT JOIN model ON sha256 = model",
                                NULL, &ask);
    if (status != CGAM_OK) return status;
    while ((code = sqlite3_step(ask)) == SQLITE_ROW) {
        size_t one = cgam_store_bytes(sqlite3_column_int64(ask, 4), sqlite3_column_int64(ask, 5),
                                      (const char *)sqlite3_column_text(ask, 3));
        int64_t count = sqlite3_column_int64(ask, 6); /* of tokens */
        out->rows++;
        if (!cgam_store_sound(ask, count > 0 && count <= INT32_MAX ? one * (size_t)count : 0) &&
            out->bad++ == 0)
            out->first_bad = sqlite3_column_int64(ask, 2);
    }
    sqlite3_finalize(ask);
    if (code != SQLITE_DONE) return cgam_store_fail(store, code);
    out->sound = out->sound && out->bad == 0;
    return CGAM_OK;
}
