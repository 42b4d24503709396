/* fill.c: templates over documents. A place is read in one go: path, condition or format, body. */
#include "lab/fill.h"

#include "lab/embedded.h"
#include "lab/template.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A document and those around it, with the index of an item in its list, or its key. */
typedef struct scope {
    const json_t *doc;
    const struct scope *outer;
    size_t place;
    const char *key;
    bool html;               /* texts are escaped */
    const char *missing;     /* printed for a missing number */
    struct listing *listing; /* of the whole document; NULL: none, or an item is filled */
} scope;

typedef struct listing {
    const cgam_late *late;
    bool failed;
} listing;

static void fill(FILE *to, const char *text, const char *end, const scope *in);

/* A part of a path that is not a key: # and ## are the places of the item and of the one around it, $ its
 * key. */
static const json_t *step(const json_t *doc, const char *part, size_t length, const scope *in)
{
    if (length == 1 && *part == '$' && in->key) return json_object_get(doc, in->key);
    if (!json_is_array(doc)) return json_object_getn(doc, part, length);
    size_t place = strtoul(part, NULL, 10);
    if (*part == '#') place = length > 1 && in->outer ? in->outer->place : in->place;
    else if (strncmp(part, "last", length) == 0) place = json_array_size(doc) - 1;
    return json_array_get(doc, place);
}

static const json_t *find_value(const scope *in, const char *path, size_t length)
{
    const scope *here = in;
    size_t first = strcspn(path, ".?:=>*/%+-~}|");
    bool only = *path == '.'; /* in this document alone */
    const json_t *doc = in->doc;
    path += only;
    length -= only;
    for (; !only && here->outer; here = here->outer, doc = here->doc)
        if (json_is_array(doc) ? strchr("0123456789#", *path) != NULL
                               : json_object_getn(doc, path, first) != NULL)
            break;
    while (doc && length > 0) {
        const char *dot = memchr(path, '.', length);
        size_t part = dot ? (size_t)(dot - path) : length;
        doc = step(doc, path, part, in);
        length -= part + (dot != NULL);
        path += part + (dot != NULL);
    }
    return doc;
}

/* The number at a path; also the number of items of a list, ".count", and the index of the item, "#". */
static double find_number(const scope *in, const char *path, size_t length, const json_t *value)
{
    static const char count[] = ".count";
    size_t end = sizeof count - 1;
    if (length == 1 && *path == '#') return (double)in->place;
    if (length > end && strncmp(path + length - end, count, end) == 0) {
        const json_t *list = find_value(in, path, length - end);
        if (json_is_array(list)) return (double)json_array_size(list);
    }
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool is_true(const json_t *value, double number)
{
    if (json_is_string(value)) return *json_string_value(value) != 0;
    if (json_is_array(value)) return json_array_size(value) > 0;
    return json_is_object(value) || json_is_true(value) || (!isnan(number) && number != 0);
}

static bool is_equal(const scope *in, const json_t *value, double number, const char *word,
                     size_t length)
{
    if (*word == '@') return json_equal(value, find_value(in, word + 1, length - 1));
    if (length == 4 && strncmp(word, "null", 4) == 0) return !value || json_is_null(value);
    if (json_is_string(value))
        return json_string_length(value) == length &&
               strncmp(json_string_value(value), word, length) == 0;
    return !isnan(number) && number == strtod(word, NULL);
}

/* The end of a template that begins at `text`: an unmatched brace, or a bar where one ends it. */
static const char *skip(const char *text, bool bar)
{
    for (int depth = 0; *text; text++) {
        if (*text == '\\' && text[1]) {
            text++;
            continue;
        }
        depth += *text == '{';
        if (depth == 0 && (*text == '}' || (bar && *text == '|'))) break;
        depth -= *text == '}';
    }
    return text;
}

/* Prints a value by a format without its percent sign: width, precision, letter. */
static void print_value(FILE *to, const json_t *value, double number, const char *format,
                        size_t length, const scope *in)
{
    char kind = length ? format[length - 1] : 0, *point;
    int width = (int)strtol(format, &point, 10);
    int digits = *point == '.' ? (int)strtol(point + 1, NULL, 10) : -1;
    bool whole = number == floor(number) && fabs(number) < 1e15;
    if (length == 4 && strncmp(format, "json", 4) == 0) (void)cgam_json_write(to, value, 1);
    else if (in->html && json_is_string(value))
        (length == 4 ? cgam_html_math : cgam_html_text)(to, json_string_value(value));
    else if (json_is_string(value)) fprintf(to, "%*.*s", width, digits, json_string_value(value));
    else if (json_is_boolean(value)) fprintf(to, "%*s", width, json_is_true(value) ? "yes" : "no");
    else if (isnan(number)) fprintf(to, "%*s", width, in->missing);
    else if (kind == 'd' || (!kind && whole)) fprintf(to, "%*lld", width, (long long)number);
    else if (kind == 'f') fprintf(to, "%*.*f", width, digits, number);
    else if (kind == 'e') fprintf(to, "%*.*e", width, digits, number);
    else fprintf(to, "%*.*g", width, digits, number);
}

static void fill_items(FILE *to, const char *text, const char *end, const json_t *value,
                       const scope *in)
{
    size_t i;
    json_t *item;
    const char *key;
    json_array_foreach(value, i, item)
        fill(to, text, end, &(scope){item, in, i, NULL, in->html, in->missing, NULL});
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
        fill(to, text, end, &(scope){item, in, 0, key, in->html, in->missing, NULL});
}

static bool is_late(const scope *in, const char *path, size_t length)
{
    const char *name = in->listing ? in->listing->late->name : NULL;
    return name && strlen(name) == length && strncmp(path, name, length) == 0;
}

static void fill_late(FILE *to, const char *text, const char *end, const scope *in)
{
    listing *list = in->listing;
    for (int64_t i = 0; i < list->late->count && !list->failed; i++) {
        json_t *item = list->late->item(list->late->of, i);
        list->failed = !item || ferror(to);
        if (!list->failed)
            fill(to, text, end, &(scope){item, in, (size_t)i, NULL, in->html, in->missing, NULL});
        json_decref(item);
    }
}

static void fill_file(FILE *to, const char *name, size_t length, const scope *in)
{
    char path[128];
    snprintf(path, sizeof path, "%.*s", (int)length, name);
    const cgam_embedded *file = cgam_embedded_find(path);
    scope here = *in;
    here.html = strstr(path, ".html") != NULL;
    here.missing = here.html ? "–" : strstr(path, ".gp") ? "NaN" : "-";
    if (file) fill(to, file->bytes, file->bytes + file->size, &here);
}

/* Prints " ± 0.25" if the error of a number is known: the number at a given path, or at the number's path and a
 * suffix. */
static void print_error(FILE *to, const scope *in, const char *path, size_t length,
                        const char *error, const char *format, size_t size)
{
    char made[128];
    size_t all = strcspn(error, ":}");
    snprintf(made, sizeof made, "%.*s%.*s", *error == '_' ? (int)length : 0, path, (int)all, error);
    double number = find_number(in, made, strlen(made), find_value(in, made, strlen(made)));
    if (isnan(number)) return;
    fputs(" ± ", to);
    print_value(to, NULL, number, format, size, in);
}

/* Fills one place, which begins after its brace; returns the text after it. */
static const char *fill_place(FILE *to, const char *text, const scope *in)
{
    char mark = *text && strchr("@&<", *text) ? *text++ : 0;
    size_t length = strcspn(text, mark == '<' ? "}" : "?:=>*/%+-~}");
    if (mark == '<') {
        fill_file(to, text, length, in);
        return text + length + 1;
    }
    json_t *key = length == 1 && *text == '$' && in->key ? json_string(in->key) : NULL;
    const json_t *value = key ? key : find_value(in, text, length);
    double number = find_number(in, text, length, value);
    const char *path = text, *error = text[length] == '~' ? text + length + 1 : NULL;
    text += length + (error ? 1 + strcspn(error, ":}") : 0);
    while (*text && strchr("*/%+-", *text)) {
        char *end, sign = *text;
        double by = strtod(text + 1, &end);
        number = sign == '*'   ? number * by
                 : sign == '/' ? number / by
                 : sign == '%' ? fmod(number, by)
                 : sign == '+' ? number + by
                               : number - by;
        text = end;
    }
    bool holds = is_true(value, number);
    if (*text == '=' || *text == '>') {
        size_t word = strcspn(text + 1, "?");
        holds = *text == '=' ? is_equal(in, value, number, text + 1, word)
                             : number > strtod(text + 1, NULL);
        text += 1 + word;
    }
    const char *body = text + (*text == '?' || *text == ':'), *end = skip(body, false);
    if (*text == '?') {
        const char *bar = skip(body, true);
        if (holds) fill(to, body, bar, in);
        else if (bar < end) fill(to, bar + 1, end, in);
    } else if (mark == '@' && is_late(in, path, length)) fill_late(to, body, end, in);
    else if (mark == '@') fill_items(to, body, end, value, in);
    else if (mark == '&' && json_is_object(value))
        fill(to, body, end, &(scope){value, in, in->place, NULL, in->html, in->missing, NULL});
    else if (!mark) {
        size_t size = (size_t)(end - body);
        print_value(to, value, number, body, size, in);
        if (error && !isnan(number)) print_error(to, in, path, length, error, body, size);
    }
    json_decref(key);
    return end + (*end == '}');
}

static void fill(FILE *to, const char *text, const char *end, const scope *in)
{
    while (text < end) {
        size_t length = strcspn(text, "{\\");
        if (length > (size_t)(end - text)) length = (size_t)(end - text);
        fwrite(text, 1, length, to);
        text += length;
        if (text < end && *text == '{') text = fill_place(to, text + 1, in);
        else if (text + 1 < end) {
            if (text[1] != '\n') fputc(text[1], to);
            text += 2;
        } else text = end;
    }
}

void cgam_fill(FILE *to, const char *text, const json_t *doc)
{
    (void)cgam_fill_late(to, text, doc, &(cgam_late){.count = 0});
}

bool cgam_fill_late(FILE *to, const char *text, const json_t *doc, const cgam_late *late)
{
    listing list = {.late = late};
    fill(to, text, text + strlen(text), &(scope){.doc = doc, .missing = "-", .listing = &list});
    return !list.failed;
}
