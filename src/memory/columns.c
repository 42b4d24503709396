/* columns.c: typed columns beside the rows of a bank: from CSV or .npz, joined, and in packed files. */
#include "memory/columns.h"

#include "base/alloc.h"
#include "io/json.h"

#include <math.h>
#include <string.h>

const char *const cgam_column_words[] = {"integer", "real", "text", NULL};

void cgam_columns_free(cgam_columns *columns)
{
    if (!columns) return;
    cgam_env *env = columns->env;
    for (int k = 0; columns->column && k < columns->count; k++) {
        cgam_free(env, columns->column[k].name);
        cgam_free(env, columns->column[k].own);
        cgam_free(env, columns->column[k].own_text);
    }
    cgam_free(env, columns->column);
    cgam_free(env, columns);
}

int cgam_columns_count(const cgam_columns *columns) { return columns->count; }

const char *cgam_columns_at(const cgam_columns *columns, int k, const char **type)
{
    if (type) *type = cgam_column_words[columns->column[k].kind];
    return columns->column[k].name;
}

const cgam_column *cgam_columns_find(const cgam_columns *columns, const char *name)
{
    for (int k = 0; k < columns->count; k++)
        if (strcmp(columns->column[k].name, name) == 0) return &columns->column[k];
    return NULL;
}

cgam_status cgam_columns_new(cgam_env *env, int64_t rows, cgam_columns **out)
{
    cgam_columns *c = *out = cgam_zalloc(env, 1, sizeof *c);
    if (!c) return cgam_fail_nomem(env, "columns");
    c->env = env;
    c->rows = c->whole = rows;
    c->column = cgam_zalloc(env, CGAM_COLUMNS_MAX, sizeof *c->column);
    if (c->column) return CGAM_OK;
    cgam_columns_free(c);
    *out = NULL;
    return cgam_fail_nomem(env, "columns");
}

cgam_status cgam_columns_append(cgam_columns *c, const char *file, const char *name,
                                cgam_column_kind kind, cgam_column **out)
{
    cgam_env *env = c->env;
    json_t *text = json_string(name); /* NULL unless it is UTF-8 */
    bool utf8 = text != NULL;
    json_decref(text);
    if (!*name || strlen(name) > CGAM_COLUMN_NAME_MAX || !utf8)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: column %d: a name must be UTF-8 text of 1 to %d bytes", file,
                         c->count + 1, CGAM_COLUMN_NAME_MAX);
    if (cgam_columns_find(c, name))
        return cgam_fail(env, CGAM_E_FORMAT, "%s: two columns named '%s'", file, name);
    if (c->count == CGAM_COLUMNS_MAX)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: more than %d columns", file, CGAM_COLUMNS_MAX);
    cgam_column *column = &c->column[c->count];
    *column = (cgam_column){.name = cgam_strdup(env, name), .kind = kind};
    if (!column->name) return cgam_fail_nomem(env, "columns");
    c->count++;
    *out = column;
    return CGAM_OK;
}

cgam_status cgam_columns_room(cgam_columns *c, cgam_column *column, int64_t bytes)
{
    size_t rows = (size_t)c->rows;
    column->own = cgam_zalloc(c->env, rows + 1, sizeof(int64_t));
    if (column->kind == CGAM_COLUMN_TEXT)
        column->own_text = cgam_alloc(c->env, (size_t)bytes + 1, 1);
    if (!column->own || (column->kind == CGAM_COLUMN_TEXT && !column->own_text))
        return cgam_fail_nomem(c->env, "columns");
    column->integer = column->kind == CGAM_COLUMN_INTEGER ? column->own : NULL;
    column->real = column->kind == CGAM_COLUMN_REAL ? column->own : NULL;
    column->begin = column->kind == CGAM_COLUMN_TEXT ? column->own : NULL;
    column->text = column->own_text;
    return CGAM_OK;
}

/* ---- Joining ------------------------------------------------------------------------------- */
/* Copies row i of `from` to row k of `to`. */
static void copy_row(const cgam_column *from, int64_t i, cgam_column *to, int64_t k)
{
    if (from->kind == CGAM_COLUMN_INTEGER) ((int64_t *)to->own)[k] = from->integer[i];
    if (from->kind == CGAM_COLUMN_REAL) ((double *)to->own)[k] = from->real[i];
    if (from->kind != CGAM_COLUMN_TEXT) return;
    int64_t *begin = to->own, length = from->begin[i + 1] - from->begin[i];
    memcpy((char *)to->own_text + begin[k], from->text + from->begin[i], (size_t)length);
    begin[k + 1] = begin[k] + length;
}

static int64_t text_bytes(const cgam_column *c, int64_t rows)
{
    return c && c->kind == CGAM_COLUMN_TEXT ? c->begin[rows] : 0;
}

static cgam_status check_same(const cgam_columns *a, const cgam_columns *b)
{
    for (int k = 0; k < b->count; k++)
        if (!cgam_columns_find(a, b->column[k].name))
            return cgam_fail(a->env, CGAM_E_ARG, "columns: the bank has no column '%s'",
                             b->column[k].name);
    for (int k = 0; k < a->count; k++) {
        const cgam_column *x = &a->column[k], *y = cgam_columns_find(b, x->name);
        if (!y) return cgam_fail(a->env, CGAM_E_ARG, "columns: no column '%s'", x->name);
        bool widens = x->kind == CGAM_COLUMN_REAL && y->kind == CGAM_COLUMN_INTEGER;
        if (x->kind != y->kind && !widens)
            return cgam_fail(a->env, CGAM_E_ARG, "columns: '%s' holds %s, the bank has %s", x->name,
                             cgam_column_words[y->kind], cgam_column_words[x->kind]);
    }
    return CGAM_OK;
}

/* The rows of y, integers perhaps where to has reals, follow row k of `to`. */
static cgam_status copy_more(const cgam_columns *b, const cgam_column *y, cgam_column *to,
                             int64_t k)
{
    for (int64_t i = 0; i < b->rows; i++) {
        if (y->kind == to->kind) {
            copy_row(y, i, to, k + i);
            continue;
        }
        uint64_t size = y->integer[i] < 0 ? 0 - (uint64_t)y->integer[i] : (uint64_t)y->integer[i];
        if (!cgam_fits(size, 53))
            return cgam_fail(b->env, CGAM_E_VALUE, "columns: '%s': no double holds %lld", y->name,
                             (long long)y->integer[i]);
        ((double *)to->own)[k + i] = (double)y->integer[i];
    }
    return CGAM_OK;
}

cgam_status cgam_columns_join(const cgam_columns *a, int64_t count, const int64_t *keep,
                              const cgam_columns *b, cgam_columns **out)
{
    cgam_columns *c = NULL;
    *out = NULL;
    cgam_status status = b ? check_same(a, b) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_columns_new(a->env, count + (b ? b->rows : 0), &c);
    for (int k = 0; k < a->count && status == CGAM_OK; k++) {
        const cgam_column *x = &a->column[k], *y = b ? cgam_columns_find(b, x->name) : NULL;
        cgam_column *to;
        int64_t bytes = text_bytes(x, a->rows) + text_bytes(y, b ? b->rows : 0);
        status = cgam_columns_append(c, "columns", x->name, x->kind, &to);
        if (status == CGAM_OK) status = cgam_columns_room(c, to, bytes);
        for (int64_t i = 0; i < count && status == CGAM_OK; i++) copy_row(x, keep[i], to, i);
        if (y && status == CGAM_OK) status = copy_more(b, y, to, count);
    }
    if (status == CGAM_OK) *out = c;
    else cgam_columns_free(c);
    return status;
}

/* ---- Packed files -------------------------------------------------------------------------- */
static cgam_status fail_column(const cgam_packed *p, int k, const char *why)
{
    return cgam_fail(p->env, CGAM_E_FORMAT, "packed bank: column%d %s", k, why);
}

/* Finds the part "columnK.WHAT". */
static cgam_status find_part(const cgam_packed *p, int k, const char *what, const char *type,
                             int64_t *size, const void **out)
{
    char name[32];
    snprintf(name, sizeof name, "column%d.%s", k, what);
    return cgam_packed_part(p, name, type, 1, size, out);
}

static cgam_status read_column(const cgam_packed *p, int k, const char *name, cgam_columns *c)
{
    const void *integer, *real, *begin, *text = NULL;
    int64_t live = p->live, begins = p->live + 1, size = -1;
    cgam_column *column;
    cgam_status status = find_part(p, k, "integer", "I64", &live, &integer);
    if (status == CGAM_OK) status = find_part(p, k, "real", "F64", &live, &real);
    if (status == CGAM_OK) status = find_part(p, k, "begin", "I64", &begins, &begin);
    if (status == CGAM_OK && begin) status = find_part(p, k, "text", "U8", &size, &text);
    if (status != CGAM_OK) return status;
    if (!integer + !real + !begin != 2 || !begin != !text)
        return fail_column(p, k, "is missing, or has several types");
    const int64_t *at = begin;
    for (int64_t i = 0; at && i < p->live; i++)
        if (at[i] > at[i + 1]) return fail_column(p, k, "has texts that overlap");
    if (at && (at[0] != 0 || at[p->live] != size))
        return fail_column(p, k, "has texts beyond its end");
    cgam_column_kind kind = integer ? CGAM_COLUMN_INTEGER
                            : real  ? CGAM_COLUMN_REAL
                                    : CGAM_COLUMN_TEXT;
    status = cgam_columns_append(c, "packed bank", name, kind, &column);
    if (status != CGAM_OK) return status;
    column->integer = integer;
    column->real = real;
    column->begin = begin;
    column->text = text;
    return CGAM_OK;
}

cgam_status cgam_columns_read(const cgam_packed *p, cgam_columns **out)
{
    char key[24];
    *out = NULL;
    if (!cgam_tensor_table_note(&p->table, "column0")) return CGAM_OK;
    cgam_columns *c;
    cgam_status status = cgam_columns_new(p->env, p->live, &c);
    if (status != CGAM_OK) return status;
    c->number = p->number;
    c->whole = p->n;
    for (int k = 0; k < CGAM_COLUMNS_MAX && status == CGAM_OK; k++) {
        snprintf(key, sizeof key, "column%d", k);
        const char *name = cgam_tensor_table_note(&p->table, key);
        if (!name) break;
        status = read_column(p, k, name, c);
    }
    if (status == CGAM_OK) *out = c;
    else cgam_columns_free(c);
    return status;
}

cgam_status cgam_columns_write(cgam_sealed *file, const cgam_columns *columns)
{
    cgam_status status = CGAM_OK;
    char key[24], name[32], more[32];
    for (int k = 0; k < columns->count && status == CGAM_OK; k++) {
        const cgam_column *c = &columns->column[k];
        const bool text = c->kind == CGAM_COLUMN_TEXT;
        snprintf(key, sizeof key, "column%d", k);
        snprintf(name, sizeof name, "%s.%s", key, text ? "begin" : cgam_column_words[c->kind]);
        snprintf(more, sizeof more, "%s.text", key);
        const void *data = text ? c->begin : c->integer ? (const void *)c->integer : c->real;
        const int64_t rows = columns->rows + text;
        status = cgam_sealed_note(file, key, c->name);
        if (status == CGAM_OK)
            status = cgam_sealed_part(
                file,
                &(cgam_part){name, c->kind == CGAM_COLUMN_REAL ? "F64" : "I64", 1, {rows}, data});
        if (status == CGAM_OK && text)
            status = cgam_sealed_part(
                file, &(cgam_part){more, "U8", 1, {c->begin[columns->rows]}, c->text});
    }
    return status;
}

size_t cgam_columns_header(const cgam_columns *columns)
{
    enum { COLUMN = 1024, ESCAPED = 6 };
    size_t size = 0;
    for (int k = 0; k < columns->count; k++)
        size += COLUMN + ESCAPED * strlen(columns->column[k].name);
    return size;
}
