/* fields.c: rows by name, the words and numbers of a row, and structs as JSON, row by row. */
#include "app/fields.h"

#include <math.h>
#include <string.h>

const cgam_field *cgam_field_find(const cgam_field *rows, const char *name, size_t length)
{
    for (; rows && rows->name && *rows->name; rows++)
        if (strlen(rows->name) == length && strncmp(rows->name, name, length) == 0) return rows;
    return NULL;
}

const char *cgam_field_word(const cgam_field *f, const char *word, size_t *length)
{
    bool numbers = f->kind != CGAM_CHOICE && f->kind != CGAM_WORDS;
    if (f->kind == CGAM_FLAG || f->kind == CGAM_TEXT || !f->value || !strchr(f->value, '|'))
        return NULL;
    if (word) word += strcspn(word, "|");
    else word = f->value;
    word += *word == '|';
    *length = strcspn(word, "|");
    /* Where numbers are allowed, the last word describes their format and is not a choice. */
    return !*word || (numbers && !word[*length]) ? NULL : word;
}

int cgam_field_choice(const cgam_field *f, const char *text)
{
    size_t length;
    const char *word = NULL;
    for (int k = 0; (word = cgam_field_word(f, word, &length)); k++)
        if (strlen(text) == length && strncmp(word, text, length) == 0) return k;
    return -1;
}

double cgam_field_number(const cgam_field *f, const void *object)
{
    const void *at = (const char *)object + f->offset;
    switch (f->type) {
    case CGAM_TYPE_BOOL: return *(const bool *)at;
    case CGAM_TYPE_INT: return *(const int *)at;
    case CGAM_TYPE_INT64: return (double)*(const int64_t *)at;
    case CGAM_TYPE_UINT64: return (double)*(const uint64_t *)at;
    case CGAM_TYPE_DOUBLE: return *(const double *)at;
    case CGAM_TYPE_FLOAT: return (double)*(const float *)at;
    default: return 0;
    }
}

const char *cgam_input_name(cgam_input input)
{
    static const char *const names[] = {"",      "numbers", "rows", "vectors", "bank", "store",
                                        "model", "text",    "json", "cache",   "key"};
    return names[input];
}

/* ---- Structs as JSON ----------------------------------------------------------------------- */
/* The word of a choice; JSON null if the number has no word. */
static json_t *word_of(const cgam_field *f, int value)
{
    size_t length;
    const char *word = NULL;
    if (f->type == CGAM_TYPE_BOOL && strncmp(f->value, "yes|", 4) == 0) value = !value;
    for (int k = 0; (word = cgam_field_word(f, word, &length)); k++)
        if (k == value) return json_stringn(word, length);
    return json_null();
}

json_t *cgam_json_ints(const int64_t *values, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(values ? values[i] : i));
    return list;
}

static json_t *list_of(const cgam_field *f, const void *object)
{
    const void *const *items = (const void *)((const char *)object + f->offset);
    int64_t count = *(const int64_t *)((const char *)object + f->count);
    if (f->kind == CGAM_REALS) return cgam_json_reals(*items, count, 1);
    return cgam_json_ints(*items, count);
}

static json_t *text_of(const cgam_field *f, const void *at)
{
    const char *text = at;
    if (f->type == CGAM_TYPE_POINTER) memcpy(&text, at, sizeof text);
    return text ? cgam_json_lossy(text) : json_null();
}

static json_t *value_of(const cgam_field *f, const void *object)
{
    double number = cgam_field_number(f, object);
    switch (f->kind) {
    case CGAM_FLAG: return json_boolean(number != 0);
    case CGAM_INDEX:
        if (number < 0) return json_null();
        return json_integer((int64_t)number);
    case CGAM_INT: /* exact: every count is below 2^53 */ return json_integer((int64_t)number);
    case CGAM_MAYBE: /* false means undecided */
        if (number < 0 || (number == 0 && f->type == CGAM_TYPE_BOOL)) return json_null();
        return json_boolean(number != 0);
    case CGAM_CHOICE: return word_of(f, (int)number);
    case CGAM_PROOF: return json_string(number != 0 ? "proved" : "estimate");
    case CGAM_INTS:
    case CGAM_REALS: return list_of(f, object);
    case CGAM_TEXT:
    case CGAM_WORDS: return text_of(f, (const char *)object + f->offset);
    case CGAM_PART: return json_object(); /* keeps the position until the caller fills it */
    case CGAM_REAL: break;
    }
    return cgam_json_real(number);
}

/* Puts a value under "a.b", member b of the object a. Creates a if it does not exist. */
static void put_at(json_t *doc, const char *path, size_t length, json_t *value)
{
    const char *dot = memchr(path, '.', length);
    if (dot) {
        json_t *inner = json_object_getn(doc, path, (size_t)(dot - path));
        if (!inner) {
            inner = json_object();
            json_object_setn_new(doc, path, (size_t)(dot - path), inner);
        }
        doc = inner;
        length -= (size_t)(dot + 1 - path);
        path = dot + 1;
    }
    json_object_setn_new(doc, path, length, value);
}

void cgam_fields_put(json_t *doc, const cgam_field *rows, const void *object, unsigned facts)
{
    for (const cgam_field *f = rows; f->name && *f->name; f++) {
        const char *last = strrchr(f->name, '.');
        if (f->when & ~facts) continue;
        if (f->kind == CGAM_PROOF && last && !json_is_null(json_object_get(doc, last + 1)))
            put_at(doc, f->name, strlen(f->name), value_of(f, object));
        else if (f->kind != CGAM_PROOF) put_at(doc, f->name, strlen(f->name), value_of(f, object));
    }
}

void cgam_fields_put_some(json_t *doc, const char *names, const cgam_field *rows,
                          const void *object)
{
    while (*names) {
        size_t length = strcspn(names, " "), as = strcspn(names, "= ");
        const char *name = as < length ? names + as + 1 : names;
        const cgam_field *f = cgam_field_find(rows, name, (size_t)(names + length - name));
        if (f) put_at(doc, names, as, value_of(f, object));
        names += length + (names[length] == ' ');
    }
}

json_t *cgam_fields_json(const cgam_field *rows, const void *object, unsigned facts)
{
    json_t *doc = json_object();
    cgam_fields_put(doc, rows, object, facts);
    return doc;
}

json_t *cgam_fields_list(const cgam_field *rows, const void *objects, int64_t count, size_t size)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list,
                              cgam_fields_json(rows, (const char *)objects + (size_t)i * size, 0));
    return list;
}

static void print_line(FILE *to, const cgam_field *f, const json_t *doc)
{
    const json_t *value = json_object_get(doc, f->name);
    if (json_is_number(value))
        fprintf(to, "  %-18s %-14.9g %s\n", f->name, json_number_value(value), f->help);
    else fprintf(to, "  %-18s %-14s %s\n", f->name, "-", f->help);
}

void cgam_fields_print(FILE *to, const char *names, const cgam_field *rows, const json_t *doc)
{
    for (const cgam_field *f = rows; !names && *f->name; f++) print_line(to, f, doc);
    while (names && *names) {
        size_t length = strcspn(names, " ");
        const cgam_field *f = cgam_field_find(rows, names, length);
        if (f) print_line(to, f, doc);
        names += length + (names[length] == ' ');
    }
}
