/* template.c: sections of embedded files, and text as HTML. */
#include "lab/template.h"

#include "lab/embedded.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

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

const char *cgam_template_section(const char *file, const char *section)
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
    return at + length;
}
