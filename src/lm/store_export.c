/* store_export.c: exports states from the store to files, with an index that describes each row. */
#include "io/array.h"
#include "io/csv.h"
#include "io/file.h"
#include "lm/collect.h"
#include "lm/store.h"

#include <cgam/io.h>
#include <string.h>

bool cgam_store_index_path(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    int stem = (int)(dot && dot > (slash ? slash : path) ? (size_t)(dot - path) : strlen(path));
    return snprintf(out, size, "%.*s.index.csv", stem, path) < (int)size;
}

typedef struct pick {
    const cgam_store_group *wanted;
    cgam_store_group found;
    int64_t groups;
} pick;

static cgam_status match_group(void *user, const cgam_store_group *g)
{
    pick *p = user;
    if (p->wanted &&
        (strcmp(p->wanted->model, g->model) != 0 || strcmp(p->wanted->engine, g->engine) != 0))
        return CGAM_OK;
    p->found = *g;
    p->groups++;
    return CGAM_OK;
}

cgam_status cgam_store_pick(cgam_store *store, const cgam_store_group *group, cgam_store_group *out)
{
    pick p = {.wanted = group};
    cgam_status status = cgam_store_list(store, match_group, &p);
    if (status != CGAM_OK) return status;
    if (p.groups == 0)
        return cgam_fail(store->env, CGAM_E_NOT_FOUND,
                         "%s holds no states of that model by that engine",
                         cgam_path_tail(store->path));
    if (p.groups > 1)
        return cgam_fail(store->env, CGAM_E_ARG,
                         "%s holds states of %lld models or engines; name one",
                         cgam_path_tail(store->path), (long long)p.groups);
    *out = p.found;
    return CGAM_OK;
}

/* ---- Rows --------------------------------------------------------------------------------- */
enum { DATA, DIGEST, DTYPE, TOKENS, ID, SOURCE, DEMOS, LABEL, SEED, SHOTS, QUERY, IDS, TEXT };

#define WHICH " FROM state s LEFT JOIN place p ON p.state = s.id WHERE s.model = ? AND s.engine = ?"
static const char count_rows[] = "SELECT count(*), coalesce(sum(length(s.ids)) / 4, 0)" WHICH;
static const char each_row[] =
    "SELECT s.data, s.digest, s.dtype, s.tokens, s.id, coalesce(p.source, ''), coalesce(p.demos, ''),"
    " coalesce(p.label, ''), coalesce(p.seed, -1), coalesce(p.shots, -1), coalesce(p.query, -1),"
    " s.ids, coalesce(s.text, '')" WHICH
    " ORDER BY min(p.id) OVER (PARTITION BY p.source, p.seed, p.demos, p.shots), p.query, s.id";

typedef struct export_sheet {
    cgam_store *store;
    const cgam_store_group *group;
    FILE *index;
    int64_t rows, capacity, words, words_capacity;
    float *states; /* [capacity, L + 1, d] */
    /* [capacity] each; first has one more */
    int64_t *tokens, *query, *shots, *seed, *label, *first;
    int32_t *ids;  /* [words_capacity] */
    char **labels; /* [capacity] those that came */
    int64_t n_labels;
} export_sheet;

static void sheet_free(export_sheet *s)
{
    cgam_env *env = s->store->env;
    for (int64_t i = 0; i < s->n_labels; i++) cgam_free(env, s->labels[i]);
    cgam_free_all(env, s->states, s->tokens, s->ids, s->labels);
}

static cgam_status sheet_new(export_sheet *s)
{
    cgam_env *env = s->store->env;
    int64_t counts[2];
    cgam_status status = cgam_store_numbers(s->store, count_rows, s->group, 2, counts);
    if (status != CGAM_OK) return status;
    s->capacity = counts[0];
    s->words_capacity = counts[1];
    size_t n = (size_t)s->capacity;
    status = cgam_alloc_all(
        env, "the states of the store",
        CGAM_ARRAY(s->states, n * (size_t)((s->group->layers + 1) * s->group->width)),
        CGAM_ARRAY(s->tokens, 6 * n + 1), CGAM_ARRAY(s->ids, s->words_capacity),
        CGAM_ZEROS(s->labels, n));
    if (status != CGAM_OK) return status;
    int64_t **columns[] = {&s->query, &s->shots, &s->seed, &s->label, &s->first};
    for (size_t i = 0; i < 5; i++) *columns[i] = s->tokens + (i + 1) * n;
    return CGAM_OK;
}

/* The number of a label, counted as they come; -1 for none. */
static cgam_status label_number(export_sheet *s, const char *word, int64_t *out)
{
    *out = -1;
    if (!*word) return CGAM_OK;
    for (*out = 0; *out < s->n_labels; ++*out)
        if (strcmp(s->labels[*out], word) == 0) return CGAM_OK;
    s->labels[s->n_labels] = cgam_strdup(s->store->env, word);
    if (!s->labels[s->n_labels]) return cgam_fail_nomem(s->store->env, "a label");
    s->n_labels++;
    return CGAM_OK;
}

/* Columns of text are never null; what comes back so found no memory. */
static const char *text_of(sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

static void write_number(FILE *to, int64_t number)
{
    if (number >= 0) fprintf(to, "%lld", (long long)number);
    fputc(',', to);
}

static void write_line(const export_sheet *s, sqlite3_stmt *row)
{
    FILE *to = s->index;
    int64_t i = s->rows;
    fprintf(to, "%lld,", (long long)i);
    cgam_csv_text(to, text_of(row, SOURCE));
    fputc(',', to);
    cgam_csv_text(to, text_of(row, DEMOS));
    fputc(',', to);
    write_number(to, s->seed[i]);
    write_number(to, s->shots[i]);
    write_number(to, s->query[i]);
    cgam_csv_text(to, text_of(row, LABEL));
    fprintf(to, ",%lld,", (long long)s->tokens[i]);
    for (int64_t t = s->first[i]; t < s->words; t++)
        fprintf(to, "%s%d", t > s->first[i] ? " " : "", (int)s->ids[t]);
    fputc(',', to);
    cgam_csv_text(to, text_of(row, TEXT));
    fputc('\n', to);
}

static cgam_status read_row(export_sheet *s, sqlite3_stmt *row)
{
    int64_t numbers = (s->group->layers + 1) * s->group->width, i = s->rows;
    const char *name = (const char *)sqlite3_column_text(row, DTYPE);
    size_t bytes = cgam_store_bytes(s->group->layers, s->group->width, name);
    const void *ids = sqlite3_column_blob(row, IDS), *data = sqlite3_column_blob(row, DATA);
    int64_t words = sqlite3_column_bytes(row, IDS) / (int64_t)sizeof *s->ids;
    if (!cgam_store_sound(row, bytes) || s->words + words > s->words_capacity)
        return cgam_fail(
            s->store->env, CGAM_E_FORMAT,
            "%s: row %lld is damaged (wrong digest); lm store --check counts such rows, lm "
            "capture recomputes them",
            cgam_path_tail(s->store->path), (long long)sqlite3_column_int64(row, ID));
    cgam_dtype dtype = (cgam_dtype)cgam_word_find(cgam_dtype_words, name); /* a sound one */
    cgam_store_widen(dtype, data, numbers, s->states + i * numbers);
    if (words > 0) memcpy(s->ids + s->words, ids, (size_t)words * sizeof *s->ids);
    s->first[i] = s->words;
    s->words += words;
    s->tokens[i] = sqlite3_column_int64(row, TOKENS);
    s->seed[i] = sqlite3_column_int64(row, SEED);
    s->shots[i] = sqlite3_column_int64(row, SHOTS);
    s->query[i] = sqlite3_column_int64(row, QUERY);
    cgam_status status = label_number(s, text_of(row, LABEL), &s->label[i]);
    if (status != CGAM_OK) return status;
    write_line(s, row);
    s->rows++;
    return CGAM_OK;
}

static cgam_status read_group(export_sheet *s)
{
    sqlite3_stmt *ask;
    cgam_status status = cgam_store_ask(s->store, each_row, s->group, &ask);
    if (status != CGAM_OK) return status;
    int code = SQLITE_DONE;
    fputs("row,source,demos,seed,shots,query,label,tokens,token_ids,text\n", s->index);
    while (status == CGAM_OK && s->rows < s->capacity && (code = sqlite3_step(ask)) == SQLITE_ROW)
        status = read_row(s, ask);
    s->first[s->rows] = s->words;
    if (status == CGAM_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = cgam_store_fail(s->store, code);
    sqlite3_finalize(ask);
    return status;
}

static cgam_status write_arrays(const export_sheet *s, const char *path)
{
    cgam_env *env = s->store->env;
    const int64_t shape[] = {s->rows, s->group->layers + 1, s->group->width};
    const int64_t more[] = {s->rows + 1}, words[] = {s->words};
    const cgam_named_array arrays[] = {
        {"states", CGAM_F32, 3, shape, s->states},    {"query", CGAM_I64, 1, shape, s->query},
        {"shots", CGAM_I64, 1, shape, s->shots},      {"seed", CGAM_I64, 1, shape, s->seed},
        {"label", CGAM_I64, 1, shape, s->label},      {"tokens", CGAM_I64, 1, shape, s->tokens},
        {"token_first", CGAM_I64, 1, more, s->first}, {"token_ids", CGAM_I32, 1, words, s->ids}};
    if (cgam_path_ends(path, ".npy"))
        return cgam_npy_write(env, path, CGAM_F32, 3, shape, s->states);
    return cgam_arrays_write(env, path, sizeof arrays / sizeof *arrays, arrays);
}

cgam_status cgam_store_export(cgam_store *store, const cgam_store_group *group, const char *path,
                              int64_t *rows)
{
    cgam_env *env = store->env;
    char index[CGAM_PATH_ROOM];
    cgam_outfile *file = NULL;
    cgam_store_group found;
    *rows = 0;
    cgam_status status = cgam_store_pick(store, group, &found);
    if (status != CGAM_OK) return status;
    if (!cgam_store_index_path(path, index, sizeof index))
        return cgam_fail(env, CGAM_E_ARG, "%s: the path is too long", cgam_path_tail(path));
    export_sheet s = {.store = store, .group = &found};
    status = sheet_new(&s);
    if (status == CGAM_OK) status = cgam_outfile_begin(env, index, &file);
    if (status == CGAM_OK) {
        s.index = cgam_outfile_stream(file);
        status = read_group(&s);
    }
    if (status == CGAM_OK) status = write_arrays(&s, path);
    if (status == CGAM_OK) status = cgam_outfile_commit(file);
    else if (file) cgam_outfile_abandon(file);
    *rows = s.rows;
    sheet_free(&s);
    return status;
}
