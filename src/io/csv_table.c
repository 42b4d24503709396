/* csv_table.c: reads a table of texts from CSV (RFC 4180). */
#include "io/csv.h"

#include "base/env.h"

#include <inttypes.h>
#include <string.h>

enum { FIELDS_BETWEEN_LOOKS = 1 << 16 };

/* A position in the text; fields are unescaped in place, so that `to` is never beyond `at`. */
typedef struct reader {
    cgam_env *env;
    const char *name;
    char *at, *end, *to;
    int64_t line; /* of `at`, from 1 */
    char separator;
} reader;

typedef enum ending { FIELD_ENDS, LINE_ENDS, TEXT_ENDS } ending;

static cgam_status fail_at(const reader *r, int64_t column, const char *why)
{
    return cgam_fail(r->env, CGAM_E_FORMAT, "%s: line %" PRId64 ", column %" PRId64 ": %s", r->name,
                     r->line, column, why);
}

/* Reads one field and terminates it by 0. column: for messages. */
static cgam_status read_field(reader *r, int64_t column, const char **out, ending *how)
{
    char *to = r->to;
    *out = to;
    bool quoted = r->at < r->end && *r->at == '"';
    if (quoted) {
        for (r->at++;; r->at++) {
            if (r->at == r->end) return fail_at(r, column, "the closing quote is missing");
            if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) break;
            r->at += *r->at == '"';
            r->line += *r->at == '\n';
            *to++ = *r->at;
        }
        r->at++;
    } else {
        while (r->at < r->end && *r->at != r->separator && *r->at != '\n') *to++ = *r->at++;
        if (r->at == r->end || *r->at == '\n') to -= to > *out && to[-1] == '\r';
    }
    if (quoted && r->at < r->end && *r->at == '\r') r->at++;
    *how = r->at == r->end ? TEXT_ENDS : *r->at == '\n' ? LINE_ENDS : FIELD_ENDS;
    if (*how == FIELD_ENDS && *r->at != r->separator)
        return fail_at(r, column, "text after the closing quote");
    r->line += *how == LINE_ENDS;
    r->at += *how != TEXT_ENDS;
    *to = 0; /* over the separator, or the last byte of the copy */
    r->to = to + 1;
    return CGAM_OK;
}

/* Reads all fields; cell has room for every one. */
static cgam_status read_rows(reader *r, cgam_csv_table *out)
{
    int64_t count = 0, column = 0;
    cgam_status status = CGAM_OK;
    for (ending how = FIELD_ENDS; r->at < r->end || how == FIELD_ENDS; count++) {
        bool first = column == 0;
        int64_t line = r->line;
        status = read_field(r, column + 1, &out->cell[count], &how);
        if (status == CGAM_OK && count % FIELDS_BETWEEN_LOOKS == 0 && cgam_interrupted(r->env))
            status = CGAM_E_INTERRUPTED;
        if (status != CGAM_OK) return status;
        column++;
        if (how == FIELD_ENDS) continue;
        if (!out->columns) out->columns = column;
        else out->rows++;
        if (column != out->columns)
            return cgam_fail(r->env, CGAM_E_FORMAT,
                             "%s: line %" PRId64 ": %" PRId64 " fields, the heading has %" PRId64,
                             r->name, line, first && !*out->cell[count] ? 0 : column, out->columns);
        column = 0;
    }
    return CGAM_OK;
}

cgam_status cgam_csv_table_read(cgam_env *env, const char *name, const void *bytes, size_t size,
                                cgam_csv_table *out)
{
    *out = (cgam_csv_table){0};
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* the mark of the byte order */
        bytes = (const char *)bytes + 3;
        size -= 3;
    }
    if (size == 0) return cgam_fail(env, CGAM_E_FORMAT, "%s: the file is empty", name);
    if (memchr(bytes, 0, size)) return cgam_fail(env, CGAM_E_FORMAT, "%s: a zero byte", name);
    out->text = cgam_alloc(env, size + 1, 1);
    if (!out->text) return cgam_fail_nomem(env, name);
    memcpy(out->text, bytes, size);
    out->text[size] = 0;
    size_t heading = strcspn(out->text, "\r\n"), fields = 2;
    reader r = {env, name, out->text, out->text + size, out->text, 1, ','};
    for (const char *mark = ",\t;"; *mark; mark++)
        if (memchr(out->text, *mark, heading)) {
            r.separator = *mark;
            break;
        }
    for (size_t i = 0; i < size; i++) fields += out->text[i] == '\n' || out->text[i] == r.separator;
    out->cell = cgam_alloc(env, fields, sizeof *out->cell);
    cgam_status status = out->cell ? read_rows(&r, out) : cgam_fail_nomem(env, name);
    if (status != CGAM_OK) cgam_csv_table_free(env, out);
    return status;
}

void cgam_csv_table_free(cgam_env *env, cgam_csv_table *table)
{
    cgam_free(env, table->text);
    cgam_free(env, (void *)(uintptr_t)table->cell);
    *table = (cgam_csv_table){0};
}
