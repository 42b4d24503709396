/* study_result.c: the result of an experiment: a document, and tables that grow row by row. */
#include "lab/language/study.h"
#include "lab/language/study_sweep.h"
#include "lab/table.h"
#include "lm/collect.h"
#include "lm/model.h"

#include <stdlib.h>
#include <string.h>

void cgam_lm_result_free(cgam_lm_result *r)
{
    if (!r) return;
    for (int64_t i = 0; i < r->tables; i++) {
        for (int64_t k = 0; r->names[i] && k < r->table[i].rows; k++)
            cgam_free(r->env, r->names[i][k]);
        cgam_free_all(r->env, r->names[i], r->cells[i]);
    }
    json_decref(r->doc);
    cgam_free(r->env, r->json);
    for (int i = 0; i < CGAM_LM_EXPERIMENTS; i++) cgam_free(r->env, r->words[i]);
    cgam_free(r->env, r);
}

cgam_status cgam_lm_result_empty(cgam_env *env, cgam_lm_result **out)
{
    *out = cgam_zalloc(env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "a result");
    **out = (cgam_lm_result){.env = env, .doc = json_object()};
    return CGAM_OK;
}

cgam_status cgam_lm_result_new(cgam_lm_study *study, cgam_lm_result **out)
{
    study->collected = (cgam_collected){0};
    return cgam_lm_result_empty(study->env, out);
}

int cgam_lm_result_add(cgam_lm_result *r, const char *name, const char *about, const char *heads)
{
    cgam_table *t = &r->table[r->tables];
    *t = (cgam_table){
        .name = name, .about = about, .heads = heads, .columns = cgam_heads_count(heads)};
    return (int)r->tables++;
}

void cgam_lm_result_row(cgam_lm_result *r, int table, const double *values)
{
    cgam_table *t = &r->table[table];
    int64_t used = t->rows * t->columns;
    for (int64_t k = 0; k < t->columns && !r->lost; k++) {
        r->lost =
            cgam_grow(r->env, "a table", r->cells[table], used + k, &r->capacity[table]) != CGAM_OK;
        if (!r->lost) r->cells[table][used + k] = values[k];
    }
    t->cells = r->cells[table];
    t->rows += !r->lost;
}

void cgam_lm_result_named(cgam_lm_result *r, int table, const char *name, const double *values)
{
    cgam_table *t = &r->table[table];
    int64_t row = t->rows;
    if (row == 0) t->columns = cgam_heads_count(t->heads) - 1; /* one of them is the name */
    char *copy = r->lost ? NULL : cgam_strdup(r->env, name);
    r->lost = !copy || cgam_grow(r->env, "a table", r->names[table], row,
                                 &r->names_capacity[table]) != CGAM_OK;
    if (!r->lost) cgam_lm_result_row(r, table, values);
    if (r->lost) {
        cgam_free(r->env, copy);
        return;
    }
    r->names[table][row] = copy;
    t->labels = (const char *const *)r->names[table];
}

void cgam_lm_result_put(const cgam_lm_result *r, int table, int64_t rows, const char *columns,
                        json_t *to)
{
    const cgam_table *t = &r->table[table];
    if (!r->lost) cgam_table_put(to, t, t->rows - rows, rows, columns);
}

json_t *cgam_lm_curve(json_t *curves, int64_t k)
{
    json_t *curve = cgam_json_object("k=%jd kind=%s", k, k == 0 ? "zero" : "icl");
    json_array_append_new(curves, curve);
    return curve;
}

void cgam_put_lm(json_t *doc, const cgam_lm *lm)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    json_t *model = cgam_json_object(
        "name=%s architecture=%s description=%s layers=%jd width=%jd vocab=%jd context=%jd "
        "parameters=%jd tied?=%d",
        info.name, info.architecture, info.description, info.layers, info.width, info.vocab,
        info.context, info.parameters, info.tied);
    cgam_json_put(doc, "model", model);
}

void cgam_put_collected(json_t *doc, const cgam_collected *collected)
{
    json_t *capture =
        cgam_json_object("found=%jd computed=%jd tokens=%jd seconds=%g", collected->found,
                         collected->computed, collected->tokens, collected->seconds);
    cgam_json_put(doc, "capture", capture);
}

void cgam_lm_put_right(cgam_env *env, json_t *to, const char *name, int64_t n,
                       const int32_t *target, const bool *right)
{
    char *text = cgam_alloc(env, (size_t)n, 1);
    int64_t used = 0;
    for (int64_t i = 0; i < n && text; i++)
        if (target[i] >= 0) text[used++] = right[i] ? '1' : '0';
    cgam_json_put(to, name,
                  text ? json_stringn(text, (size_t)used) : NULL); /* NULL: told at the end */
    cgam_free(env, text);
}

void cgam_lm_put_share(json_t *to, const char *name, cgam_share share)
{
    char key[64];
    snprintf(key, sizeof key, "%s_se", name);
    cgam_json_put_real(to, name, share.mean);
    cgam_json_put_real(to, key, share.se);
}

void cgam_lm_put_recovery(json_t *to, const char *name, const cgam_recovery *r)
{
    char key[64];
    snprintf(key, sizeof key, "%s_95", name);
    cgam_lm_put_share(to, name, (cgam_share){r->recovered, r->recovered_se});
    cgam_json_put(to, key, cgam_json_reals((double[]){r->recovered_low, r->recovered_high}, 2, 1));
}

void cgam_lm_put_overs(const cgam_lm_study *study, json_t *to, int64_t n, const int32_t *target,
                       const bool *const right[2], bool bare)
{
    for (int over = 0; over < 2; over++) {
        char key[32];
        const char *name = cgam_sweep_over_name(over);
        cgam_share share = cgam_baseline_share(n, target, right[over], NULL, study->seed);
        if (bare) cgam_json_put_real(to, name, share.mean);
        else cgam_lm_put_share(to, name, share);
        snprintf(key, sizeof key, "%s_right", name);
        cgam_lm_put_right(study->env, to, key, n, target, right[over]);
    }
}

void cgam_lm_put_labels(json_t *doc, const cgam_lm_task *task)
{
    json_t *words = json_array(), *tokens = json_array();
    for (int64_t i = 0; i < task->labels; i++) {
        json_array_append_new(words, cgam_json_lossy(task->eval->label[i].word));
        if (task->tokens) json_array_append_new(tokens, json_integer(task->tokens[i]));
    }
    cgam_json_add(doc, "label_words=%p label_tokens=%p", words, tokens);
    if (!task->answers) return;
    json_t *whole = json_array();
    for (int64_t i = 0; i < task->labels; i++) {
        const cgam_lm_tokens *word = &task->answers->word[i];
        json_t *one = json_array();
        for (int64_t t = 0; t < word->count; t++)
            json_array_append_new(one, json_integer(word->tokens[t]));
        json_array_append_new(whole, one);
    }
    cgam_json_put(doc, "answer_tokens", whole);
}

void cgam_lm_result_describe(cgam_lm_result *r, const cgam_lm_study *study,
                             const cgam_lm_task *task)
{
    json_t *doc = r->doc;
    cgam_put_lm(doc, study->lm);
    cgam_json_put_text(json_object_get(doc, "model"), "file", study->info.file);
    cgam_json_add(doc, "dataset=%s engine=%s queries=%jd labels=%jd source=%s", task->name,
                  study->exact ? "exact" : "llama", task->queries, task->labels, task->source);
    cgam_lm_put_labels(doc, task);
    cgam_json_add(doc, "chat?=%d demos=%s order=%s seed=%jd", study->chat,
                  study->shared ? "shared" : "per-query", cgam_order_name(study->order),
                  (int64_t)study->seed);
    cgam_put_collected(doc, &study->collected);
}

cgam_status cgam_lm_result_end(cgam_lm_result *r, cgam_status status, cgam_lm_result **out)
{
    if (status == CGAM_OK && r->lost) status = cgam_fail_nomem(r->env, "the rows of a table");
    if (status == CGAM_OK) status = cgam_json_text(r->env, r->doc, &r->json);
    *out = status == CGAM_OK ? r : NULL;
    if (status != CGAM_OK) cgam_lm_result_free(r);
    return status;
}

/* ---- Results that are kept ------------------------------------------------------------------- */
/* What experiments have finished, in a journal, so that an interruption costs no more than
 * what was in hand. Its fingerprint is of what all numbers depend on: version, model, engine, data, seed. */

static cgam_status fingerprint_study(const cgam_lm_study *study, uint64_t *out)
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
    cgam_status status = fingerprint_study(study, &run);
    return status == CGAM_OK ? cgam_journal_open(study->env, path, run, &study->kept) : status;
}

static uint64_t record_key(const cgam_lm_study *study, const char *key)
{
    uint64_t h = cgam_hash(CGAM_HASH, study->task.source, strlen(study->task.source) + 1);
    return cgam_hash(h, key, strlen(key));
}

const void *cgam_kept_bytes(const cgam_lm_study *study, const char *key, size_t *size)
{
    cgam_record r;
    size_t at = 0;
    uint64_t wanted = record_key(study, key);
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
    return cgam_journal_add(study->kept, (cgam_record){record_key(study, key), size, bytes});
}

/* ---- Whole results ------------------------------------------------------------------------- */
static void write_bytes(FILE *to, const void *bytes, size_t size)
{
    if (size > 0) fwrite(bytes, size, 1, to);
}

static void write_text(FILE *to, const char *text)
{
    uint64_t size = strlen(text) + 1;
    write_bytes(to, &size, sizeof size);
    write_bytes(to, text, (size_t)size);
}

cgam_status cgam_kept_add_result(cgam_lm_study *study, const char *key, const cgam_lm_result *r)
{
    char *bytes = NULL;
    size_t size = 0;
    if (!study->kept) return CGAM_OK;
    FILE *to = open_memstream(&bytes, &size);
    if (!to) return cgam_fail_nomem(study->env, "a result");
    write_text(to, r->json);
    write_bytes(to, &r->tables, sizeof r->tables);
    for (int64_t i = 0; i < r->tables; i++) {
        const cgam_table *t = &r->table[i];
        const int64_t sizes[] = {t->rows, t->columns, r->names[i] != NULL};
        write_text(to, t->name);
        write_text(to, t->about);
        write_text(to, t->heads);
        write_bytes(to, sizes, sizeof sizes);
        write_bytes(to, t->cells, (size_t)(t->rows * t->columns) * sizeof *t->cells);
        for (int64_t k = 0; r->names[i] && k < t->rows; k++) write_text(to, r->names[i][k]);
    }
    bool fine = !ferror(to);
    fine = fclose(to) == 0 && fine;
    cgam_status status =
        fine ? cgam_kept_add(study, key, bytes, size) : cgam_fail_nomem(study->env, "a result");
    free(bytes);
    return status;
}

/* The other way round. A file from outside may say anything: what does not fit is bad. */
typedef struct kept_reader {
    const char *at, *end;
    bool bad;
} kept_reader;

static const char *take_bytes(kept_reader *from, uint64_t size)
{
    const char *at = from->at;
    from->bad = from->bad || size > (uint64_t)(from->end - at);
    if (from->bad) return NULL;
    from->at += size;
    return at;
}

static int64_t take_int(kept_reader *from, int64_t most)
{
    int64_t value = 0;
    const char *bytes = take_bytes(from, sizeof value);
    if (bytes) memcpy(&value, bytes, sizeof value);
    from->bad = from->bad || value < 0 || value > most;
    return from->bad ? 0 : value;
}

static const char *take_text(kept_reader *from)
{
    int64_t size = take_int(from, from->end - from->at);
    const char *text = take_bytes(from, (uint64_t)size);
    from->bad = from->bad || size < 1 || text[size - 1] != '\0';
    return from->bad ? "" : text;
}

static void take_table(cgam_lm_result *r, kept_reader *from)
{
    int64_t i = r->tables++, left = from->end - from->at;
    cgam_table *t = &r->table[i];
    t->name = take_text(from);
    t->about = take_text(from);
    t->heads = take_text(from);
    int64_t rows = take_int(from, left);
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
    cgam_lm_result *r;
    cgam_status status = cgam_lm_result_empty(study->env, &r);
    if (status != CGAM_OK) return status;
    char *words = r->words[0] = cgam_alloc(r->env, size + 1, 1); /* tables keep theirs in it */
    r->lost = !words;
    kept_reader from = {words, words ? words + size : NULL, !words};
    if (words) {
        memcpy(words, bytes, size);
        json_decref(r->doc);
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
