/* columns_load.c: columns from files. A column of CSV holds integers or reals if every field is one - then an empty
 * field is a missing number - and text otherwise. Columns of .npz have the type of their arrays. */
#include "memory/columns.h"

#include "io/csv.h"
#include "io/npy.h"
#include "num/cpu/widen.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct loading {
    cgam_env *env;
    const char *name; /* of the file */
    cgam_columns *columns;
} loading;

static cgam_status check_rows(const loading *l, const char *what, int64_t got)
{
    if (got == l->columns->rows) return CGAM_OK;
    return cgam_fail(l->env, CGAM_E_SHAPE, "%s: %s%lld rows for %lld memories", l->name, what,
                     (long long)got, (long long)l->columns->rows);
}

/* ---- CSV ----------------------------------------------------------------------------------- */
/* Does the text begin with zeros that a number would lose, as codes like 00420 do? */
static bool has_leading_zero(const char *text)
{
    text += *text == '+' || *text == '-';
    return text[0] == '0' && isdigit((unsigned char)text[1]);
}

static bool read_integer(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !isspace((unsigned char)*text) && end > text && !*end && errno == 0;
}

/* The type of column k of the table. */
static cgam_column_kind kind_of(const cgam_csv_table *t, int64_t k)
{
    int64_t numbers = 0, integers = 0, value;
    for (int64_t i = 1; i <= t->rows; i++) {
        const char *cell = t->cell[i * t->columns + k];
        if (!*cell) continue;
        if (!cgam_csv_is_number(cell, cell + strlen(cell)) || has_leading_zero(cell))
            return CGAM_COLUMN_TEXT;
        numbers++;
        integers += read_integer(cell, &value);
    }
    return numbers == 0          ? CGAM_COLUMN_TEXT
           : integers == t->rows ? CGAM_COLUMN_INTEGER
                                 : CGAM_COLUMN_REAL;
}

static cgam_status read_cells(const loading *l, const cgam_csv_table *t, int64_t k, locale_t plain)
{
    const char *heading = t->cell[k];
    cgam_column_kind kind = kind_of(t, k);
    int64_t bytes = 0, integer;
    cgam_column *c;
    for (int64_t i = 1; i <= t->rows; i++) bytes += (int64_t)strlen(t->cell[i * t->columns + k]);
    cgam_status status = cgam_columns_append(l->columns, l->name, heading, kind, &c);
    if (status == CGAM_OK)
        status = cgam_columns_room(l->columns, c, kind == CGAM_COLUMN_TEXT ? bytes : 0);
    if (status != CGAM_OK) return status;
    int64_t *begin = c->own;
    for (int64_t i = 0; i < t->rows; i++) {
        const char *cell = t->cell[(1 + i) * t->columns + k];
        size_t length = strlen(cell);
        if (kind == CGAM_COLUMN_INTEGER) (void)read_integer(cell, &begin[i]);
        if (kind == CGAM_COLUMN_REAL) {
            ((double *)c->own)[i] = *cell ? strtod_l(cell, NULL, plain) : (double)NAN;
            uint64_t size = 0;
            if (read_integer(cell, &integer))
                size = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
            if (!cgam_fits(size, 53))
                return cgam_fail(l->env, CGAM_E_VALUE,
                                 "%s: column '%s', row %lld: no double holds %s, and the column "
                                 "has reals or empty fields",
                                 l->name, heading, (long long)i, cell);
        }
        if (kind != CGAM_COLUMN_TEXT) continue;
        memcpy((char *)c->own_text + begin[i], cell, length);
        begin[i + 1] = begin[i] + (int64_t)length;
    }
    return CGAM_OK;
}

static cgam_status load_csv(const loading *l, const cgam_file *file)
{
    cgam_csv_table t;
    cgam_status status = cgam_csv_table_read(l->env, l->name, file->bytes, file->size, &t);
    if (status != CGAM_OK) return status;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    status = plain ? check_rows(l, "", t.rows) : cgam_fail_nomem(l->env, l->name);
    for (int64_t k = 0; k < t.columns && status == CGAM_OK; k++)
        status = read_cells(l, &t, k, plain);
    if (plain) freelocale(plain);
    cgam_csv_table_free(l->env, &t);
    return status;
}

/* ---- .npz ---------------------------------------------------------------------------------- */
/* Appends a code point to at as UTF-8; returns false for one that does not exist. */
static bool put_code(uint32_t code, char **at)
{
    if (code > 0x10ffff || code >> 11 == 0x1b) return false;
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    *(*at)++ = (char)(lead[more] | code >> 6 * more);
    while (more-- > 0) *(*at)++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return true;
}

/* Texts of `width` code points or bytes each, padded with zeros. */
static cgam_status read_texts(const loading *l, const char *member, const cgam_layout *a,
                              int64_t width, const uint8_t *bytes)
{
    cgam_column *c;
    cgam_status status = cgam_columns_append(l->columns, l->name, member, CGAM_COLUMN_TEXT, &c);
    if (status == CGAM_OK) status = cgam_columns_room(l->columns, c, (int64_t)a->bytes);
    if (status != CGAM_OK) return status;
    const bool wide = a->type[1] == 'U';
    int64_t *begin = c->own;
    char *to = c->own_text, *from = to;
    for (int64_t i = 0; i < a->size; i++) {
        int64_t length = width;
        const uint8_t *text = bytes + i * a->item;
        uint32_t code = 0;
        for (; length > 0; length--) { /* zeros at the end do not belong to the text */
            memcpy(&code, text + (length - 1) * (wide ? 4 : 1), wide ? 4 : 1);
            if (code) break;
        }
        for (int64_t k = 0; k < length; k++) {
            code = text[k];
            if (wide) memcpy(&code, text + 4 * k, 4);
            if (!wide) *to++ = (char)code;
            else if (!put_code(code, &to))
                return cgam_fail(l->env, CGAM_E_VALUE, "%s: %s: row %lld is not Unicode", l->name,
                                 member, (long long)i);
        }
        begin[i + 1] = to - from;
    }
    return CGAM_OK;
}

/* Reads an integer of the file's type; false for one that is above 2^63 - 1. */
static bool whole_at(const cgam_layout *a, const uint8_t *at, int64_t *out)
{
    const bool sign = a->type[1] == 'i';
    uint64_t value = 0;
    memcpy(&value, at, (size_t)a->item);
    if (sign && a->item < 8 && value >> (8 * a->item - 1)) value |= ~UINT64_C(0) << 8 * a->item;
    *out = (int64_t)value;
    return sign || value <= INT64_MAX;
}

static cgam_status take_member(void *user, const char *member, const cgam_layout *a,
                               const void *data)
{
    const loading *l = user;
    const uint8_t *bytes = data;
    int64_t width;
    char what[96];
    cgam_column *c;
    if (a->ndim != 1)
        return cgam_fail(l->env, CGAM_E_SHAPE, "%s: %.60s: expected 1 dimension, the array has %d",
                         l->name, member, a->ndim);
    snprintf(what, sizeof what, "%.60s: ", member);
    cgam_status status = check_rows(l, what, a->size);
    if (status != CGAM_OK) return status;
    if (cgam_npy_is_text(a, &width)) return read_texts(l, member, a, width, bytes);
    const bool whole = a->whole || a->dtype == CGAM_I64 || a->dtype == CGAM_I32;
    status = cgam_columns_append(l->columns, l->name, member,
                                 whole ? CGAM_COLUMN_INTEGER : CGAM_COLUMN_REAL, &c);
    if (status == CGAM_OK) status = cgam_columns_room(l->columns, c, 0);
    if (status != CGAM_OK) return status;
    if (!whole) cgam_widen((cgam_dtype)a->dtype, bytes, a->size, c->own);
    for (int64_t i = 0; whole && i < a->size; i++)
        if (!whole_at(a, bytes + i * a->item, (int64_t *)c->own + i))
            return cgam_fail(l->env, CGAM_E_VALUE, "%s: %s: row %lld is above 2^63 - 1", l->name,
                             member, (long long)i);
    return CGAM_OK;
}

cgam_status cgam_columns_load(cgam_env *env, const char *path, int64_t rows, cgam_columns **out)
{
    *out = NULL;
    cgam_file file = {0};
    loading l = {env, cgam_file_name(path), NULL};
    cgam_status status = cgam_columns_new(env, rows, &l.columns);
    if (status == CGAM_OK) status = cgam_file_map(env, path, &file);
    if (status == CGAM_OK)
        status = cgam_npz_recognise(&file) ? cgam_npz_each(env, l.name, &file, take_member, &l)
                                           : load_csv(&l, &file);
    if (status == CGAM_OK && l.columns->count == 0)
        status = cgam_fail(env, CGAM_E_FORMAT, "%s: the file holds no columns", l.name);
    cgam_file_unmap(&file);
    if (status == CGAM_OK) *out = l.columns;
    else cgam_columns_free(l.columns);
    return status;
}
