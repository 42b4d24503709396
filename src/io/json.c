/* json.c: strict reading, and a printer whose numbers survive the way out and in again. */
#include "io/json.h"

#include "base/env.h"
#include "io/file.h"
#include "io/folder.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 28 }; /* bytes; the tree in memory is some ten times larger */

cgam_status cgam_json_parse(cgam_env *env, const char *name, const void *bytes, size_t size,
                            json_t **out)
{
    *out = NULL;
    if (size > FILE_MAX)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s: %zu bytes of JSON; at most %d are read",
                         name, size, FILE_MAX);
    json_error_t error;
    bool no_memory;
    *out = cgam_json_tree(bytes, size, &error, &no_memory);
    if (*out) return CGAM_OK;
    if (no_memory) return cgam_fail_nomem(env, name);
    return cgam_fail(env, CGAM_E_FORMAT, "%s:%d:%d: %s", name, error.line, error.column,
                     error.text);
}

cgam_status cgam_json_load(cgam_env *env, const char *path, json_t **out)
{
    *out = NULL;
    cgam_file file;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status != CGAM_OK) return status;
    const char *name = cgam_file_name(path);
    if (file.size == 0) status = cgam_fail(env, CGAM_E_FORMAT, "%s: the file is empty", name);
    else status = cgam_json_parse(env, name, file.bytes, file.size, out);
    cgam_file_unmap(&file);
    return status;
}

json_t *cgam_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* ---- Documents: jansson's *_set_new calls take the reference even when they fail, so nothing leaks.
 * An array that could not grow looks like a shorter one. So jansson's requests are watched, wherever they come from. */
static _Thread_local bool ran_short;
static json_malloc_t plain_malloc;
static json_free_t plain_free;

static void *watched_malloc(size_t size)
{
    void *block = plain_malloc(size);
    ran_short |= !block;
    return block;
}

__attribute__((constructor)) static void watch_allocations(void)
{
    json_get_alloc_funcs(&plain_malloc, &plain_free);
    json_set_alloc_funcs(watched_malloc, plain_free);
}

/* A program that has set functions of its own since keeps them. */
__attribute__((destructor)) static void unwatch_allocations(void)
{
    json_malloc_t now;
    json_free_t back;
    json_get_alloc_funcs(&now, &back);
    if (now == watched_malloc) json_set_alloc_funcs(plain_malloc, back);
}

bool cgam_json_ran_short(void)
{
    bool was = ran_short;
    ran_short = false;
    return was;
}

cgam_status cgam_json_nomem(cgam_env *env, const char *what)
{
    ran_short = false;
    return cgam_fail_nomem(env, what);
}

json_t *cgam_json_tree(const void *bytes, size_t size, json_error_t *error, bool *no_memory)
{
    bool before = cgam_json_ran_short(); /* a document that is being made */
    json_t *tree = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, error);
    *no_memory = cgam_json_ran_short();
    ran_short = before;
    return tree;
}

void cgam_json_put(json_t *object, const char *name, json_t *value)
{
    ran_short |= json_object_set_new(object, name, value) != 0;
}

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

/* jansson makes no string of what is not UTF-8: letter by letter, and a mark for each byte that begins none. */
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
        size_t n = 1; /* bytes of the letter here, if it is one */
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
static void print_digits(double value, int digits, char *text)
{
#ifdef __GLIBC__ /* printf, as it is hardened, reads its format twice */
    static const char *const format[] = {"%.15g", "%.16g", "%.17g"};
    strfromd(text, CGAM_REAL_TEXT, format[digits - 15], value);
#else
    snprintf(text, CGAM_REAL_TEXT, "%.*g", digits, value);
#endif
}

/* The 16th and 17th digit of a text of 17 digits, as one number; %g leaves out zeros at the end. */
static int late_digits(const char *text)
{
    int seen = 0, late = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (seen || *text != '0'))
            late = ++seen > 15 ? 10 * late + (*text - '0') : 0;
    for (; seen < 17; seen++) late = 10 * late;
    return late;
}

/* The shortest of 15, 16 and 17 digits. What fifteen digits tell apart lies within half a unit in the
 * last place, 1.2e-16 of a normal value: within 11 of the seventeenth digit. Few values need that try. */
static void print_shortest(double value, char *text)
{
    char tried[CGAM_REAL_TEXT];
    print_digits(value, 17, text);
    int late = late_digits(text);
    bool few = late <= 11 || late >= 89 || fabs(value) < DBL_MIN;
    for (int digits = few ? 15 : 16; digits < 17; digits++) {
        print_digits(value, digits, tried);
        if (strtod(tried, NULL) != value) continue;
        memcpy(text, tried, sizeof tried);
        return;
    }
}

/* Both ways follow the program's locale: the decimal point may be a comma or even
 * several bytes. The round trip is tried before that is put right. */
const char *cgam_real_text(double value, char *text)
{
    if (fabs(value) < 1e15 && value == (double)(int64_t)value && !(value == 0 && signbit(value))) {
        snprintf(text, CGAM_REAL_TEXT, "%lld.0",
                 (long long)value); /* the commonest need no search */
        return text;
    }
    print_shortest(value, text);
    char *to = text;
    bool real = false, point = false;
    for (const char *from = text; *from; from++) {
        bool plain = strchr("0123456789+-e", *from) != NULL;
        real = real || !plain || *from == 'e';
        if (plain) *to++ = *from;
        else if (!point) *to++ = '.';
        point = point || !plain;
    }
    memcpy(to, real ? "" : ".0", real ? 1 : 3);
    return text;
}

static void write_string(FILE *to, const char *text, size_t length)
{
    size_t begin = 0; /* of what goes out as it is */
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

static void write_object(FILE *to, const json_t *object, int indent, int level)
{
    bool spread = indent > 0 && json_object_size(object) > 0, first = true;
    json_t *tree = (json_t *)(uintptr_t)object; /* jansson's iterators do not take const */
    fputc('{', to);
    for (void *it = json_object_iter(tree); it; it = json_object_iter_next(tree, it)) {
        if (!first) fputc(',', to);
        first = false;
        if (spread) new_line(to, (level + 1) * indent);
        const char *key = json_object_iter_key(it);
        write_string(to, key, strlen(key));
        fputs(indent ? ": " : ":", to);
        write_value(to, json_object_iter_value(it), indent, level + 1);
    }
    if (spread) new_line(to, level * indent);
    fputc('}', to);
}

static void write_value(FILE *to, const json_t *value, int indent, int level)
{
    char text[CGAM_REAL_TEXT];
    switch (value ? json_typeof(value) : JSON_NULL) { /* NULL: it could not be made */
    case JSON_OBJECT: write_object(to, value, indent, level); break;
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

char *cgam_json_line(const json_t *value)
{
    bool before = cgam_json_ran_short();
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (ran_short) {
        free(text);
        text = NULL;
    }
    ran_short |= before;
    return text;
}

cgam_status cgam_json_text(cgam_env *env, const json_t *doc, char **out)
{
    char *text = NULL; /* the stream's memory is the C library's */
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    bool fine = to && cgam_json_write(to, doc, 1) && fputc('\n', to) != EOF;
    fine = to && fclose(to) == 0 && fine && !cgam_json_ran_short();
    *out = fine ? cgam_strdup(env, text) : NULL;
    free(text);
    return *out ? CGAM_OK : cgam_fail_nomem(env, "a document as text");
}
