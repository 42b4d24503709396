/* json.c: strict reading, and a printer whose numbers survive the way out and in again. */
#include "io/json.h"

#include "base/env.h"
#include "io/file.h"

#include <math.h>
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
    *out = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (*out) return CGAM_OK;
    if (json_error_code(&error) == json_error_out_of_memory) return cgam_fail_nomem(env, name);
    return cgam_fail(env, CGAM_E_FORMAT, "%s:%d:%d: %s", name, error.line, error.column,
                     error.text);
}

cgam_status cgam_json_load(cgam_env *env, const char *path, json_t **out)
{
    *out = NULL;
    cgam_file file;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status != CGAM_OK) return status;
    const char *name = cgam_path_tail(path);
    if (file.size == 0) status = cgam_fail(env, CGAM_E_FORMAT, "%s: the file is empty", name);
    else status = cgam_json_parse(env, name, file.bytes, file.size, out);
    cgam_file_unmap(&file);
    return status;
}

json_t *cgam_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* printf and strtod follow the program's locale, so the decimal point may be a comma or even
 * several bytes. The round trip is tried before that is put right. */
const char *cgam_real_text(double value, char *text)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, CGAM_REAL_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
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
    fputc('"', to);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        switch (c) {
        case '"': fputs("\\\"", to); break;
        case '\\': fputs("\\\\", to); break;
        case '\n': fputs("\\n", to); break;
        case '\r': fputs("\\r", to); break;
        case '\t': fputs("\\t", to); break;
        default:
            if (c < ' ' || c == 127) fprintf(to, "\\u%04x", c);
            else fputc(c, to);
        }
    }
    fputc('"', to);
}

static void new_line(FILE *to, int spaces) { fprintf(to, "\n%*s", spaces, ""); }

static bool nested(const json_t *array)
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
    bool spread = indent > 0 && nested(array);
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
    switch (json_typeof(value)) {
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
    write_value(to, value, indent, 0);
    return !ferror(to);
}
