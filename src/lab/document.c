/* document.c: prints trees as indented text, and finds values by the path of their keys. */
#include "lab/document.h"

#include "base/env.h"
#include "lab/folder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

json_t *cgam_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

void cgam_json_put_int(json_t *object, const char *name, int64_t value)
{
    cgam_json_put(object, name, json_integer(value));
}

void cgam_json_put_real(json_t *object, const char *name, double value)
{
    cgam_json_put(object, name, cgam_json_real(value));
}

void cgam_json_put_text(json_t *object, const char *name, const char *value)
{
    cgam_json_put(object, name, value ? cgam_json_lossy(value) : json_null());
}

/* jansson rejects invalid UTF-8, so we copy character by character, with U+FFFD for each invalid byte. */
json_t *cgam_json_lossy(const char *text)
{
    static const char MARK[] = "\xef\xbf\xbd";
    json_t *whole = json_string(text);
    if (whole) return whole;
    json_malloc_t make;
    json_free_t unmake;
    json_get_alloc_funcs(&make, &unmake);
    size_t used = 0;
    char *made = make(strlen(text) * (sizeof MARK - 1) + 1);
    while (made && *text) {
        size_t n = 1; /* bytes of the character here, if valid */
        unsigned char c = (unsigned char)*text;
        if (c >= 0xc0) n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        json_t *letter = strnlen(text, n) == n ? json_stringn(text, n) : NULL;
        size_t length = letter ? n : sizeof MARK - 1;
        memcpy(made + used, letter ? text : MARK, length);
        used += length;
        text += letter ? n : 1;
        json_decref(letter);
    }
    if (made) whole = json_stringn(made, used);
    unmake(made);
    return whole;
}

void cgam_json_put_bool(json_t *object, const char *name, bool value)
{
    cgam_json_put(object, name, json_boolean(value));
}

/* Puts the values of a format; a word of it is a name, perhaps ?, = and a conversion of printf. */
static void put_values(json_t *object, const char *format, va_list *args)
{
    char name[64];
    int number;
    while (*format) {
        size_t length = strcspn(format, "=?");
        bool truth = format[length] == '?';
        snprintf(name, sizeof name, "%.*s", (int)length, format);
        format += length + truth + strlen("=%");
        switch (*format) {
        case 'g': cgam_json_put_real(object, name, va_arg(*args, double)); break;
        case 's': cgam_json_put_text(object, name, va_arg(*args, const char *)); break;
        case 'p': cgam_json_put(object, name, va_arg(*args, json_t *)); break;
        case 'j': cgam_json_put_int(object, name, va_arg(*args, intmax_t)); break;
        default:
            number = va_arg(*args, int); /* %d */
            cgam_json_put(object, name, truth ? json_boolean(number) : json_integer(number));
        }
        format += strcspn(format, " ");
        format += *format == ' ';
    }
}

void cgam_json_add(json_t *object, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_values(object, format, &args);
    va_end(args);
}

json_t *cgam_json_object(const char *format, ...)
{
    json_t *object = json_object();
    va_list args;
    va_start(args, format);
    put_values(object, format, &args);
    va_end(args);
    return object;
}

json_t *cgam_json_reals(const double *values, int64_t n, int64_t stride)
{
    json_t *array = json_array();
    for (int64_t i = 0; array && i < n; i++)
        if (json_array_append_new(array, cgam_json_real(values[i * stride])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

const json_t *cgam_json_at(const json_t *doc, const char *path)
{
    while (doc && *path) {
        size_t length = strcspn(path, ".");
        doc = json_object_getn(doc, path, length);
        path += length + (path[length] == '.');
    }
    return doc;
}

double cgam_json_get_real(const json_t *doc, const char *path)
{
    const json_t *value = cgam_json_at(doc, path);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

int64_t cgam_json_get_int(const json_t *doc, const char *path)
{
    return json_integer_value(cgam_json_at(doc, path));
}

const char *cgam_json_get_text(const json_t *doc, const char *path)
{
    const char *text = json_string_value(cgam_json_at(doc, path));
    return text ? text : "";
}

double cgam_json_nth(const json_t *doc, const char *path, int64_t i)
{
    const json_t *value = i < 0 ? NULL : json_array_get(cgam_json_at(doc, path), (size_t)i);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

void cgam_json_tame(json_t *doc)
{
    const char *key;
    size_t i;
    json_t *one;
    if (json_is_string(doc))
        cgam_text_tame((char *)(uintptr_t)json_string_value(doc), "\n\t"); /* of the same length */
    json_array_foreach(doc, i, one) cgam_json_tame(one);
    json_object_foreach(doc, key, one) cgam_json_tame(one);
}

/* ---- Writing --------------------------------------------------------------------------------- */
static void write_string(FILE *to, const char *text, size_t length)
{
    size_t begin = 0; /* start of the bytes that need no escape */
    fputc('"', to);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= ' ' && c != 127 && c != '"' && c != '\\') continue;
        fwrite(text + begin, 1, i - begin, to);
        begin = i + 1;
        switch (c) {
        case '\n': fputs("\\n", to); break;
        case '\r': fputs("\\r", to); break;
        case '\t': fputs("\\t", to); break;
        case '"':
        case '\\': fprintf(to, "\\%c", c); break;
        default: fprintf(to, "\\u%04x", c);
        }
    }
    fwrite(text + begin, 1, length - begin, to);
    fputc('"', to);
}

static void new_line(FILE *to, int spaces)
{
    static const char blanks[] = "\n                               ";
    int some = spaces < (int)sizeof blanks - 2 ? spaces : (int)sizeof blanks - 2;
    fwrite(blanks, 1, (size_t)some + 1, to);
    for (; some < spaces; some++) fputc(' ', to);
}

static bool has_nested(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        if (json_is_array(item) || json_is_object(item)) return true;
    }
    return false;
}

static void write_value(FILE *to, const json_t *value, int indent, int level);

static void write_array(FILE *to, const json_t *array, int indent, int level)
{
    bool spread = indent > 0 && has_nested(array);
    fputc('[', to);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i) fputs(indent && !spread ? ", " : ",", to);
        if (spread) new_line(to, (level + 1) * indent);
        write_value(to, json_array_get(array, i), indent, level + 1);
    }
    if (spread) new_line(to, level * indent);
    fputc(']', to);
}

/* Its items are objects. */
static bool write_late(FILE *to, const cgam_late *late, int indent)
{
    bool fine = true;
    fputc('[', to);
    for (int64_t i = 0; i < late->count && fine; i++) {
        json_t *item = late->item(late->of, i);
        fine = item && !ferror(to);
        if (i) fputc(',', to);
        if (indent) new_line(to, 2 * indent);
        if (fine) write_value(to, item, indent, 2);
        json_decref(item);
    }
    if (indent && late->count > 0) new_line(to, indent);
    fputc(']', to);
    return fine;
}

/* late: NULL but for the document itself. */
static bool write_object(FILE *to, const json_t *object, int indent, int level,
                         const cgam_late *late)
{
    bool spread = indent > 0 && json_object_size(object) > 0, first = true, fine = true;
    json_t *tree = (json_t *)(uintptr_t)object; /* jansson's iterators do not take const */
    fputc('{', to);
    for (void *it = json_object_iter(tree); it; it = json_object_iter_next(tree, it)) {
        if (!first) fputc(',', to);
        first = false;
        if (spread) new_line(to, (level + 1) * indent);
        const char *key = json_object_iter_key(it);
        write_string(to, key, strlen(key));
        fputs(indent ? ": " : ":", to);
        if (late && late->name && strcmp(key, late->name) == 0) {
            fine = write_late(to, late, indent);
            if (!fine) break;
        } else write_value(to, json_object_iter_value(it), indent, level + 1);
    }
    if (spread) new_line(to, level * indent);
    fputc('}', to);
    return fine;
}

static void write_value(FILE *to, const json_t *value, int indent, int level)
{
    char text[CGAM_REAL_TEXT];
    switch (value ? json_typeof(value) : JSON_NULL) { /* NULL: out of memory */
    case JSON_OBJECT: (void)write_object(to, value, indent, level, NULL); break;
    case JSON_ARRAY: write_array(to, value, indent, level); break;
    case JSON_STRING: write_string(to, json_string_value(value), json_string_length(value)); break;
    case JSON_INTEGER: fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); break;
    case JSON_REAL: fputs(cgam_real_text(json_real_value(value), text), to); break;
    case JSON_TRUE: fputs("true", to); break;
    case JSON_FALSE: fputs("false", to); break;
    case JSON_NULL: fputs("null", to); break;
    }
}

bool cgam_json_write(FILE *to, const json_t *value, int indent)
{
    flockfile(to); /* once, not for every character */
    int locking = __fsetlocking(to, FSETLOCKING_BYCALLER);
    write_value(to, value, indent, 0);
    __fsetlocking(to, locking);
    funlockfile(to);
    return !ferror(to);
}

bool cgam_json_write_late(FILE *to, const json_t *doc, int indent, const cgam_late *late)
{
    flockfile(to);
    int locking = __fsetlocking(to, FSETLOCKING_BYCALLER);
    bool fine = write_object(to, doc, indent, 0, late);
    __fsetlocking(to, locking);
    funlockfile(to);
    return fine && !ferror(to);
}

cgam_status cgam_json_save(cgam_env *env, const char *folder, const char *name, const json_t *doc)
{
    cgam_outfile *file;
    if (!folder) return CGAM_OK;
    cgam_status status = cgam_outfile_in(env, folder, name, &file);
    if (status != CGAM_OK) return status;
    cgam_json_write(cgam_outfile_stream(file), doc, 1);
    fputc('\n', cgam_outfile_stream(file));
    if (!cgam_json_ran_short()) return cgam_outfile_commit(file);
    cgam_outfile_abandon(file);
    return cgam_fail_nomem(env, name);
}

cgam_status cgam_json_text(cgam_env *env, const json_t *doc, char **out)
{
    return cgam_json_text_late(env, doc, &(cgam_late){.count = 0}, out);
}

cgam_status cgam_json_text_late(cgam_env *env, const json_t *doc, const cgam_late *late, char **out)
{
    char *text = NULL; /* the stream's memory is the C library's */
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    bool fine = to && cgam_json_write_late(to, doc, 1, late) && fputc('\n', to) != EOF;
    fine = to && fclose(to) == 0 && fine && !cgam_json_ran_short();
    *out = fine ? cgam_strdup(env, text) : NULL;
    free(text);
    if (*out) return CGAM_OK;
    return cgam_interrupted(env) ? CGAM_E_INTERRUPTED : cgam_fail_nomem(env, "a document as text");
}
