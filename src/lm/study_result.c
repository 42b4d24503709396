/* study_result.c: what an experiment hands back: a document, and tables that grow row by row. */
#include "lm/answers.h"

#include "io/table.h"

#include <stdlib.h>
#include <string.h>

void cgam_lm_result_free(cgam_lm_result *r)
{
    if (!r) return;
    for (int64_t i = 0; i < r->tables; i++) {
        for (int64_t k = 0; r->names[i] && k < r->table[i].rows; k++)
            cgam_free(r->env, r->names[i][k]);
        cgam_free(r->env, r->names[i]);
        cgam_free(r->env, r->cells[i]);
    }
    json_decref(r->doc);
    cgam_free(r->env, r->json);
    for (int i = 0; i < CGAM_LM_EXPERIMENTS; i++) cgam_free(r->env, r->words[i]);
    cgam_free(r->env, r);
}

const char *cgam_lm_result_json(const cgam_lm_result *r) { return r->json; }

json_t *cgam_lm_result_document(const cgam_lm_result *r) { return r->doc; }

int64_t cgam_lm_result_tables(const cgam_lm_result *r) { return r->tables; }

const cgam_table *cgam_lm_result_table(const cgam_lm_result *r, int64_t i) { return &r->table[i]; }

cgam_status cgam_lm_result_new(cgam_lm_study *study, cgam_lm_result **out)
{
    study->collected = (cgam_collected){0};
    *out = cgam_zalloc(study->env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(study->env, "a result");
    (*out)->env = study->env;
    (*out)->doc = json_object();
    return CGAM_OK;
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
    size_t row = (size_t)t->columns * sizeof *values;
    if (t->rows == r->room[table]) {
        int64_t wanted = t->rows ? 2 * t->rows : 64;
        double *larger = cgam_alloc(r->env, (size_t)wanted, row);
        r->lost = r->lost || !larger;
        if (!larger) return;
        if (t->rows > 0) memcpy(larger, r->cells[table], (size_t)t->rows * row);
        cgam_free(r->env, r->cells[table]);
        t->cells = r->cells[table] = larger;
        r->room[table] = wanted;
    }
    memcpy(r->cells[table] + t->rows++ * t->columns, values, row);
}

void cgam_lm_result_named(cgam_lm_result *r, int table, const char *name, const double *values)
{
    cgam_table *t = &r->table[table];
    int64_t row = t->rows, room = r->room[table];
    if (row == 0) t->columns = cgam_heads_count(t->heads) - 1; /* one of them is the name */
    char *copy = r->lost ? NULL : cgam_strdup(r->env, name);
    r->lost = r->lost || !copy;
    if (copy) cgam_lm_result_row(r, table, values);
    if (!copy || t->rows == row) {
        cgam_free(r->env, copy);
        return;
    }
    if (r->room[table] != room) { /* the rows have moved: so do the names */
        char **larger = cgam_zalloc(r->env, (size_t)r->room[table], sizeof *larger);
        if (!larger) {
            cgam_free(r->env, copy);
            r->lost = true;
            t->rows = row;
            r->room[table] = room;
            return;
        }
        if (row > 0) memcpy(larger, r->names[table], (size_t)row * sizeof *larger);
        cgam_free(r->env, r->names[table]);
        r->names[table] = larger;
        t->labels = (const char *const *)larger;
    }
    r->names[table][row] = copy;
}

void cgam_lm_result_put(const cgam_lm_result *r, int table, int64_t rows, const char *columns,
                        json_t *to)
{
    const cgam_table *t = &r->table[table];
    if (!r->lost) cgam_table_put(to, t, t->rows - rows, rows, columns);
}

json_t *cgam_lm_curve(json_t *curves, int64_t k)
{
    json_t *curve = json_object();
    cgam_json_put_int(curve, "k", k);
    cgam_json_put_text(curve, "kind", k == 0 ? "zero" : "icl");
    json_array_append_new(curves, curve);
    return curve;
}

void cgam_put_lm(json_t *doc, const cgam_lm *lm)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    json_t *model = json_object();
    cgam_json_put_text(model, "name", info.name);
    cgam_json_put_text(model, "architecture", info.architecture);
    cgam_json_put_text(model, "description", info.description);
    cgam_json_put_int(model, "layers", info.layers);
    cgam_json_put_int(model, "width", info.width);
    cgam_json_put_int(model, "vocab", info.vocab);
    cgam_json_put_int(model, "context", info.context);
    cgam_json_put_int(model, "parameters", info.parameters);
    cgam_json_put_bool(model, "tied", info.tied);
    cgam_json_put(doc, "model", model);
}

void cgam_put_collected(json_t *doc, const cgam_collected *collected)
{
    json_t *capture = json_object();
    cgam_json_put_int(capture, "found", collected->found);
    cgam_json_put_int(capture, "computed", collected->computed);
    cgam_json_put_int(capture, "tokens", collected->tokens);
    cgam_json_put_real(capture, "seconds", collected->seconds);
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

void cgam_lm_put_labels(json_t *doc, const cgam_lm_task *task)
{
    json_t *words = json_array(), *tokens = json_array();
    for (int64_t i = 0; i < task->labels; i++) {
        json_array_append_new(words, cgam_json_lossy(cgam_dataset_word(task->eval, i)));
        if (task->tokens) json_array_append_new(tokens, json_integer(task->tokens[i]));
    }
    cgam_json_put(doc, "label_words", words);
    cgam_json_put(doc, "label_tokens", tokens);
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
    cgam_json_put_text(doc, "dataset", task->name);
    cgam_json_put_text(doc, "engine", study->exact ? "exact" : "llama");
    cgam_json_put_int(doc, "queries", task->queries);
    cgam_json_put_int(doc, "labels", task->labels);
    cgam_json_put_text(doc, "source", task->source);
    cgam_lm_put_labels(doc, task);
    cgam_json_put_bool(doc, "chat", study->chat);
    cgam_json_put_text(doc, "demos", study->shared ? "shared" : "per-query");
    cgam_json_put_text(doc, "order", cgam_order_name(study->order));
    cgam_json_put_int(doc, "seed", (int64_t)study->seed);
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
