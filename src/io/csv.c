/* csv.c: reads a matrix of numbers from text, and writes texts as fields.
 *
 * Lines end with \n or \r\n. Fields are separated by the first of `,` `\t` `;` in the first line, or by blanks if it
 * has none of these; other blanks around fields are ignored. Lines that begin with # may come first, then a heading:
 * a line none of whose fields is a number. Empty lines may follow the last row. A number is written as in C without
 * hexadecimals; nan and inf are accepted, so that the caller can report their position. Numbers are read the same in
 * every locale.
 */
#include "io/csv.h"

#include "base/env.h"
#include "io/array.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIELD_MAX = 512, LINES_BETWEEN_LOOKS = 4096 };

typedef struct text {
    cgam_env *env;
    const char *name;
    const char *at, *end;
    int64_t line; /* of `at`, from 1 */
    char separator;
    locale_t c_locale;
} text;

typedef struct span {
    const char *at, *end;
} span;

static span next_line(text *t)
{
    span line = {t->at, memchr(t->at, '\n', (size_t)(t->end - t->at))};
    t->at = line.end ? line.end + 1 : t->end;
    if (!line.end) line.end = t->end;
    if (line.end > line.at && line.end[-1] == '\r') line.end--;
    return line;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_blank_span(span s)
{
    for (; s.at < s.end; s.at++)
        if (!is_blank(*s.at)) return false;
    return true;
}

static bool is_separator(char c, char separator)
{
    return separator == ' ' ? is_blank(c) : c == separator;
}

/* Cuts the next field off the line, without the blanks around it. Returns false if there is none; line->at is NULL
 * after the last one. */
static bool next_field(span *line, char separator, bool quotes, span *field)
{
    if (!line->at) return false;
    while (separator == ' ' && line->at < line->end && is_blank(*line->at)) line->at++;
    const char *p = line->at;
    bool quoted = false;
    for (; p < line->end && (quoted || !is_separator(*p, separator)); p++)
        if (quotes && *p == '"') quoted = !quoted;
    *field = (span){line->at, p};
    while (separator == ' ' && p + 1 < line->end && is_blank(p[1])) p++;
    line->at = p < line->end && !(separator == ' ' && p + 1 == line->end) ? p + 1 : NULL;
    while (field->at < field->end && is_blank(*field->at)) field->at++;
    while (field->end > field->at && is_blank(field->end[-1])) field->end--;
    return true;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p;
}

static bool is_word(span s, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(s.end - s.at) == length && strncasecmp(s.at, word, length) == 0;
}

/* [+-] digits [. digits] [e [+-] digits], or nan, inf, infinity. */
static bool is_number(span s)
{
    if (s.at < s.end && (*s.at == '+' || *s.at == '-')) s.at++;
    if (is_word(s, "nan") || is_word(s, "inf") || is_word(s, "infinity")) return true;
    const char *p = skip_digits(s.at, s.end);
    ptrdiff_t digits = p - s.at;
    if (p < s.end && *p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p, s.end);
        digits += p - fraction;
    }
    if (digits == 0) return false;
    if (p < s.end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < s.end && (*p == '+' || *p == '-')) p++;
        const char *exponent = p;
        p = skip_digits(p, s.end);
        if (p == exponent) return false;
    }
    return p == s.end;
}

bool cgam_csv_is_number(const char *at, const char *end) { return is_number((span){at, end}); }

static cgam_status parse_field(const text *t, span field, int64_t column, double *out)
{
    int shown = field.end - field.at > 40 ? 40 : (int)(field.end - field.at);
    const char *why = NULL;
    if (field.at == field.end) {
        why = "an empty field";
    } else if (!is_number(field)) {
        why = "not a number";
    } else if (field.end - field.at >= FIELD_MAX) {
        why = "too long for a number";
    } else {
        char copy[FIELD_MAX];
        memcpy(copy, field.at, (size_t)(field.end - field.at));
        copy[field.end - field.at] = 0;
        errno = 0;
        *out = strtod_l(copy, NULL, t->c_locale);
        if (errno == ERANGE && (*out > 1 || *out < -1)) why = "beyond the range of a double";
    }
    if (!why) return CGAM_OK;
    if (shown == 0)
        return cgam_fail(t->env, CGAM_E_FORMAT, "%s: line %" PRId64 ", column %" PRId64 ": %s",
                         t->name, t->line, column, why);
    return cgam_fail(t->env, CGAM_E_FORMAT,
                     "%s: line %" PRId64 ", column %" PRId64 ": '%.*s' is %s", t->name, t->line,
                     column, shown, field.at, why);
}

/* A heading has no number among its fields; one of words between blanks may ("layer 5"). */
static bool is_heading(span line, char separator)
{
    span field;
    while (next_field(&line, separator, true, &field)) {
        if (is_number(field)) return false;
        if (separator == ' ') return true;
    }
    return true;
}

static char find_separator(span line)
{
    const char *candidates = ",\t;";
    for (; *candidates; candidates++)
        if (memchr(line.at, *candidates, (size_t)(line.end - line.at))) return *candidates;
    return ' ';
}

/* Reads one row of *cols fields to `to`; the first row (*cols 0) sets their number. */
static cgam_status parse_row(const text *t, span line, int64_t *cols, double *to)
{
    span field;
    int64_t column = 0;
    for (; next_field(&line, t->separator, false, &field); column++) {
        if (*cols && column == *cols)
            return cgam_fail(t->env, CGAM_E_FORMAT,
                             "%s: line %" PRId64 ", column %" PRId64
                             ": too many fields, expected %" PRId64,
                             t->name, t->line, column + 1, *cols);
        cgam_status status = parse_field(t, field, column + 1, &to[column]);
        if (status != CGAM_OK) return status;
    }
    if (column < *cols)
        return cgam_fail(t->env, CGAM_E_FORMAT,
                         "%s: line %" PRId64 ", column %" PRId64
                         ": missing field, expected %" PRId64,
                         t->name, t->line, column + 1, *cols);
    *cols = column;
    return CGAM_OK;
}

/* Fills values[] row by row; the caller allocates as many as there can be fields. */
static cgam_status parse_rows(text *t, double *values, int64_t *rows, int64_t *cols)
{
    *rows = *cols = 0;
    bool headed = false; /* the heading was read */
    int64_t empty = 0;   /* the first of the empty lines just read */
    for (t->line = 1; t->at < t->end; t->line++) {
        if (t->line % LINES_BETWEEN_LOOKS == 0 && cgam_interrupted(t->env))
            return cgam_fail(t->env, CGAM_E_INTERRUPTED, "%s: stopped on request", t->name);
        span line = next_line(t);
        if (is_blank_span(line)) {
            empty = empty ? empty : t->line;
            continue;
        }
        if (empty)
            return cgam_fail(t->env, CGAM_E_FORMAT, "%s: line %" PRId64 " is empty", t->name,
                             empty);
        if (*rows == 0 && *line.at == '#') continue;
        if (*rows == 0) {
            if (!headed || t->separator == ' ') t->separator = find_separator(line);
            if (!headed && is_heading(line, t->separator)) {
                headed = true;
                continue;
            }
        }
        cgam_status status = parse_row(t, line, cols, values + *rows * *cols);
        if (status != CGAM_OK) return status;
        ++*rows;
    }
    if (*rows == 0) return cgam_fail(t->env, CGAM_E_FORMAT, "%s: no row of numbers found", t->name);
    return CGAM_OK;
}

/* An upper bound on the fields: every separator and every line end starts one more. */
static size_t count_fields(const text *t)
{
    size_t count = 1;
    for (const char *p = t->at; p < t->end; p++)
        count += *p == '\n' || *p == ',' || *p == ';' || *p == '\t' ||
                 (*p == ' ' && p + 1 < t->end && p[1] != ' ');
    return count;
}

static void skip_mark(text *t) /* of the byte order */
{
    if (t->end - t->at >= 3 && memcmp(t->at, "\xef\xbb\xbf", 3) == 0) t->at += 3;
}

/* Text whose first line, or the one after a heading, begins with a number. */
static bool recognise(const cgam_file *file)
{
    enum { LOOK = 4096 };
    text t = {.at = (const char *)file->bytes};
    t.end = t.at + (file->size < LOOK ? file->size : LOOK);
    for (const char *p = t.at; p < t.end; p++)
        if (((unsigned char)*p < ' ' && !strchr("\t\r\n", *p)) || *p == 127 || !*p) return false;
    skip_mark(&t);
    for (int seen = 0; seen < 2 && t.at < t.end;) {
        span line = next_line(&t), field;
        if (is_blank_span(line) || *line.at == '#') continue;
        next_field(&line, find_separator(line), true, &field);
        if (is_number(field)) return true;
        seen++;
    }
    return false;
}

static cgam_status read_csv(cgam_env *env, const char *name, const cgam_file *file,
                            cgam_layout *layout, double **values)
{
    text t = {.env = env, .name = name, .at = (const char *)file->bytes};
    t.end = t.at + file->size;
    skip_mark(&t);
    *layout = (cgam_layout){.dtype = CGAM_F64, .ndim = 2};
    *values = cgam_alloc(env, count_fields(&t), sizeof **values);
    t.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    cgam_status status;
    if (!*values || !t.c_locale) status = cgam_fail_nomem(env, name);
    else status = parse_rows(&t, *values, &layout->shape[0], &layout->shape[1]);
    if (t.c_locale) freelocale(t.c_locale);
    if (status == CGAM_OK) status = cgam_layout_measure(env, name, layout, sizeof **values);
    if (status != CGAM_OK) {
        cgam_free(env, *values);
        *values = NULL;
    }
    return status;
}

static cgam_status open_csv(cgam_env *env, const char *name, cgam_file *file, const char *member,
                            cgam_array *out)
{
    cgam_layout layout;
    double *values;
    cgam_status status = cgam_member_none(env, name, member);
    if (status == CGAM_OK) status = read_csv(env, name, file, &layout, &values);
    if (status != CGAM_OK) return status;
    status = cgam_array_own(env, name, &layout, values, out);
    if (status != CGAM_OK) cgam_free(env, values);
    return status;
}

const cgam_format cgam_format_csv = {.ending = ".csv", .recognise = recognise, .open = open_csv};

void cgam_csv_text(FILE *to, const char *field)
{
    if (!strpbrk(field, ",\";\t\r\n")) {
        fputs(field, to);
        return;
    }
    fputc('"', to);
    for (; *field; field++) {
        if (*field == '"') fputc('"', to);
        fputc(*field, to);
    }
    fputc('"', to);
}
