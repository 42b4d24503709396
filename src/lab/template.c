/* template.c: sections of embedded files, with their holes filled. */
#include "lab/template.h"

#include "lab/embedded.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

enum { VALUES = 24 };

static void put_escaped(FILE *to, char c)
{
    switch (c) {
    case '<': fputs("&lt;", to); break;
    case '>': fputs("&gt;", to); break;
    case '&': fputs("&amp;", to); break;
    case '"': fputs("&quot;", to); break;
    default: fputc(c, to);
    }
}

void cgam_html_text(FILE *to, const char *text)
{
    for (; *text; text++) put_escaped(to, *text);
}

/* Does a name of one letter end before text[i]? Bytes above 127 are those of Greek letters. */
static bool symbol_before(const char *text, size_t i)
{
    if (i == 0) return false;
    if ((unsigned char)text[i - 1] >= 128) return true;
    return isalpha((unsigned char)text[i - 1]) && (i == 1 || !isalnum((unsigned char)text[i - 2]));
}

static void write_math(FILE *to, const char *text, bool tags)
{
    for (size_t i = 0; text[i]; i++) {
        bool spaced = i == 0 || strchr(" (=", text[i - 1]) != NULL;
        if (text[i] == '_' && symbol_before(text, i) && isalnum((unsigned char)text[i + 1])) {
            fputs("<sub>", to);
            while (isalnum((unsigned char)text[i + 1])) fputc(text[++i], to);
            fputs("</sub>", to);
        } else if (text[i] == '-' && spaced && isdigit((unsigned char)text[i + 1])) {
            fputs("−", to);
        } else if (tags) {
            fputc(text[i], to);
        } else {
            put_escaped(to, text[i]);
        }
    }
}

void cgam_html_math(FILE *to, const char *text) { write_math(to, text, false); }
void cgam_html_rich(FILE *to, const char *text) { write_math(to, text, true); }

const char *cgam_template_section(const char *file, const char *section, const char **end)
{
    char head[64], path[96];
    snprintf(path, sizeof path, "lab/%s", file);
    const cgam_embedded *whole = cgam_embedded_find(path);
    int length = snprintf(head, sizeof head, "### %s\n", section);
    const char *at = whole->bytes;
    while (at && strncmp(at, head, (size_t)length) != 0) {
        at = strstr(at, "\n###");
        if (at) at++;
    }
    assert(at); /* the file has the section */
    const char *next = strstr(at + length - 1, "\n###");
    if (end) *end = next ? next + 1 : whole->bytes + whole->size;
    return at + length;
}

typedef struct value {
    const char *name, *text;
    size_t length; /* of the name */
    bool used;
    char number[40];
} value;

/* One word of the format, "name=%.3f": its name, and the argument as text. Returns what follows it. */
static const char *read_value(const char *format, va_list *args, value *v)
{
    char as[16];
    size_t size = strcspn(format, " "), name = strcspn(format, "=");
    assert(name + 1 < size && size - name - 1 < sizeof as);
    snprintf(as, sizeof as, "%.*s", (int)(size - name - 1), format + name + 1);
    *v = (value){.name = format, .length = name};
    v->text = v->number;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    switch (as[strlen(as) - 1]) {
    case 's': v->text = va_arg(*args, const char *); break;
    case 'c': snprintf(v->number, sizeof v->number, as, va_arg(*args, int)); break;
    case 'd':
        if (strstr(as, "ll")) snprintf(v->number, sizeof v->number, as, va_arg(*args, long long));
        else snprintf(v->number, sizeof v->number, as, va_arg(*args, int));
        break;
    default: snprintf(v->number, sizeof v->number, as, va_arg(*args, double));
    }
#pragma GCC diagnostic pop
    return format + size + strspn(format + size, " ");
}

/* Writes the value of the hole that begins at `hole` and returns its length; 0: it is none. */
static size_t fill_hole(FILE *to, const char *hole, bool html, int count, value *values)
{
    size_t word = strspn(hole + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const char *form = hole + 1 + word;
    size_t length = word + 1 + strspn(form, ":abcdefghijklmnopqrstuvwxyz");
    for (int k = 0; k < count && hole[length] == '}'; k++) {
        if (values[k].length != word || strncmp(values[k].name, hole + 1, word) != 0) continue;
        values[k].used = true;
        if (!html || strncmp(form, ":raw", 4) == 0) fputs(values[k].text, to);
        else if (strncmp(form, ":math", 5) == 0) cgam_html_math(to, values[k].text);
        else cgam_html_text(to, values[k].text);
        return length + 1;
    }
    return 0;
}

void cgam_template_put(FILE *to, const char *file, const char *section)
{
    cgam_template_fill(to, file, section, " ");
}

void cgam_template_fill(FILE *to, const char *file, const char *section, const char *format, ...)
{
    value values[VALUES];
    int count = 0;
    va_list args;
    va_start(args, format);
    for (format += strspn(format, " "); *format; count++) {
        assert(count < VALUES);
        format = read_value(format, &args, &values[count]);
    }
    va_end(args);
    const bool html = strstr(file, ".html") != NULL;
    const char *end, *at = cgam_template_section(file, section, &end);
    while (at < end) {
        size_t length = strcspn(at, "{");
        if (length >= (size_t)(end - at)) length = (size_t)(end - at);
        fwrite(at, 1, length, to);
        at += length;
        if (at == end) break;
        length = fill_hole(to, at, html, count, values);
        if (length == 0) fputc('{', to);
        at += length ? length : 1;
    }
    for (int k = 0; k < count; k++) assert(values[k].used); /* otherwise its name is misspelt */
}
