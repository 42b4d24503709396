/* study_kept.c: what experiments have finished, in a journal, so that an interruption costs no more than
 * what was in hand. Its fingerprint is of what all numbers depend on: version, model, engine, data, seed. */
#include "lm/study.h"

#include <string.h>

static cgam_status fingerprint(const cgam_lm_study *study, uint64_t *out)
{
    const char *model;
    cgam_status status = cgam_lm_sha256(study->lm, &model);
    if (status != CGAM_OK) return status;
    char text[256];
    int length =
        snprintf(text, sizeof text, "%s %s %d %d %d %d %d %d %d %llu", cgam_version(), model,
                 study->exact, study->chat, study->shared, (int)study->order, (int)study->dtype,
                 study->answer_given, (int)study->answer, (unsigned long long)study->seed);
    uint64_t h = cgam_hash(CGAM_HASH, text, (size_t)length);
    h = cgam_hash(h, study->task.source, strlen(study->task.source));
    h = cgam_hash(h, &study->task.queries, sizeof study->task.queries);
    *out = cgam_hash(h, study->shots, (size_t)study->n_shots * sizeof *study->shots);
    return CGAM_OK;
}

cgam_status cgam_kept_open(cgam_lm_study *study, const char *path)
{
    uint64_t run;
    cgam_status status = fingerprint(study, &run);
    return status == CGAM_OK ? cgam_journal_open(study->env, path, run, &study->kept) : status;
}

static uint64_t key_of(const cgam_lm_study *study, const char *key)
{
    uint64_t h = cgam_hash(CGAM_HASH, study->task.source, strlen(study->task.source) + 1);
    return cgam_hash(h, key, strlen(key));
}

const void *cgam_kept_bytes(const cgam_lm_study *study, const char *key, size_t *size)
{
    cgam_record r;
    size_t at = 0;
    uint64_t wanted = key_of(study, key);
    while (study->kept && cgam_journal_next(study->kept, &at, &r)) {
        if (r.key != wanted) continue;
        *size = r.size;
        return r.bytes;
    }
    return NULL;
}

bool cgam_kept_find(const cgam_lm_study *study, const char *key, void *out, size_t size)
{
    size_t has;
    const void *bytes = cgam_kept_bytes(study, key, &has);
    if (!bytes || has != size) return false;
    memcpy(out, bytes, size);
    return true;
}

cgam_status cgam_kept_add(cgam_lm_study *study, const char *key, const void *bytes, size_t size)
{
    if (!study->kept) return CGAM_OK;
    return cgam_journal_add(study->kept, (cgam_record){key_of(study, key), size, bytes});
}

/* ---- Whole results ------------------------------------------------------------------------- */
typedef struct heap {
    cgam_env *env;
    char *at;
    size_t used, room;
    bool lost;
} heap;

static void put(heap *b, const void *from, size_t size)
{
    if (b->used + size > b->room && !b->lost) {
        size_t room = 2 * (b->used + size);
        char *larger = cgam_alloc(b->env, room, 1);
        b->lost = !larger;
        if (larger && b->used) memcpy(larger, b->at, b->used);
        if (larger) {
            cgam_free(b->env, b->at);
            b->at = larger;
            b->room = room;
        }
    }
    if (!b->lost && size > 0) memcpy(b->at + b->used, from, size);
    if (!b->lost) b->used += size;
}

static void put_text(heap *b, const char *text)
{
    uint64_t size = strlen(text) + 1;
    put(b, &size, sizeof size);
    put(b, text, (size_t)size);
}

cgam_status cgam_kept_add_result(cgam_lm_study *study, const char *key, const cgam_lm_result *r)
{
    heap b = {.env = study->env};
    if (!study->kept) return CGAM_OK;
    put_text(&b, r->json);
    put(&b, &r->tables, sizeof r->tables);
    for (int64_t i = 0; i < r->tables; i++) {
        const cgam_table *t = &r->table[i];
        int64_t named = r->names[i] != NULL;
        put_text(&b, t->name);
        put_text(&b, t->about);
        put_text(&b, t->heads);
        put(&b, &t->rows, sizeof t->rows);
        put(&b, &t->columns, sizeof t->columns);
        put(&b, &named, sizeof named);
        put(&b, t->cells, (size_t)(t->rows * t->columns) * sizeof *t->cells);
        for (int64_t k = 0; named && k < t->rows; k++) put_text(&b, r->names[i][k]);
    }
    cgam_status status =
        b.lost ? cgam_fail_nomem(study->env, "a result") : cgam_kept_add(study, key, b.at, b.used);
    cgam_free(study->env, b.at);
    return status;
}

/* The other way round. A file from outside may say anything: what does not fit is bad. */
typedef struct reader {
    const char *at, *end;
    bool bad;
} reader;

static const char *take_bytes(reader *from, uint64_t size)
{
    const char *at = from->at;
    from->bad = from->bad || size > (uint64_t)(from->end - at);
    if (from->bad) return NULL;
    from->at += size;
    return at;
}

static int64_t take_int(reader *from, int64_t most)
{
    int64_t value = 0;
    const char *bytes = take_bytes(from, sizeof value);
    if (bytes) memcpy(&value, bytes, sizeof value);
    from->bad = from->bad || value < 0 || value > most;
    return from->bad ? 0 : value;
}

static const char *take_text(reader *from)
{
    int64_t size = take_int(from, from->end - from->at);
    const char *text = take_bytes(from, (uint64_t)size);
    from->bad = from->bad || size < 1 || text[size - 1] != '\0';
    return from->bad ? "" : text;
}

static void take_table(cgam_lm_result *r, reader *from)
{
    int64_t i = r->tables++, room = from->end - from->at;
    cgam_table *t = &r->table[i];
    t->name = take_text(from);
    t->about = take_text(from);
    t->heads = take_text(from);
    int64_t rows = take_int(from, room);
    t->columns = take_int(from, 1024);
    bool named = take_int(from, 1) == 1;
    size_t cells = (size_t)(rows * t->columns);
    const char *bytes = take_bytes(from, cells * sizeof *r->cells[i]);
    if (from->bad) return;
    r->cells[i] = cgam_alloc(r->env, cells + 1, sizeof *r->cells[i]);
    if (named) r->names[i] = cgam_zalloc(r->env, (size_t)rows + 1, sizeof *r->names[i]);
    r->lost = r->lost || !r->cells[i] || (named && !r->names[i]);
    if (r->lost) return;
    if (cells > 0) memcpy(r->cells[i], bytes, cells * sizeof *r->cells[i]);
    t->cells = r->cells[i];
    t->labels = (const char *const *)r->names[i];
    for (; t->rows < rows && !r->lost; t->rows += !r->lost)
        if (named) {
            r->names[i][t->rows] = cgam_strdup(r->env, take_text(from));
            r->lost = !r->names[i][t->rows];
        }
}

cgam_status cgam_kept_result(cgam_lm_study *study, const char *key, cgam_lm_result **out)
{
    size_t size;
    const char *bytes = cgam_kept_bytes(study, key, &size);
    *out = NULL;
    if (!bytes) return CGAM_OK;
    cgam_lm_result *r = cgam_zalloc(study->env, 1, sizeof *r);
    if (!r) return cgam_fail_nomem(study->env, "a result");
    r->env = study->env;
    char *words = r->words[0] = cgam_alloc(r->env, size + 1, 1); /* tables keep theirs in it */
    r->lost = !words;
    reader from = {words, words ? words + size : NULL, !words};
    if (words) {
        memcpy(words, bytes, size);
        r->doc = json_loads(take_text(&from), 0, NULL);
        int64_t tables = take_int(&from, CGAM_LM_TABLES);
        while (r->tables < tables && !r->lost && !from.bad) take_table(r, &from);
    }
    if (!r->lost && (from.bad || !r->doc)) { /* as if it were not there */
        cgam_lm_result_free(r);
        return CGAM_OK;
    }
    return cgam_lm_result_end(r, CGAM_OK, out);
}
