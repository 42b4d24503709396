/* help.c: help made from the table of verbs: texts, man pages, a JSON description. */
#include "app/verb.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char TAGLINE[] = "context-gated associative memory";

/* Prints text in lines of at most `width`, each after `indent` spaces. */
static void wrap(FILE *to, const char *text, int indent, int width)
{
    int column = 0;
    while (*text) {
        if (text[0] == '\n' && text[1] == '\n') {
            fprintf(to, "\n\n");
            column = 0;
            text += 2;
            continue;
        }
        if (isspace((unsigned char)*text)) {
            text++;
            continue;
        }
        int length = (int)strcspn(text, " \n");
        if (column > 0 && column + 1 + length > width) {
            fprintf(to, "\n");
            column = 0;
        }
        if (column == 0) column = fprintf(to, "%*s", indent, "");
        else column += fprintf(to, " ");
        column += fprintf(to, "%.*s", length, text);
        text += length;
    }
    fprintf(to, "\n");
}

enum { TITLE = 512 }; /* bytes of an option with its value, which may list many words */

static void param_title(const cgam_param *p, char *text, size_t size)
{
    const char *dots = p->many ? " .." : "";
    if (cgam_param_positional(p)) snprintf(text, size, "%s%s", p->name, dots);
    else if (p->kind == CGAM_FLAG) snprintf(text, size, "--%s", p->name);
    else if (p->bare) snprintf(text, size, "--%s [%s]%s", p->name, p->value, dots);
    else snprintf(text, size, "--%s %s%s", p->name, p->value, dots);
}

/* What the table adds to the help: " (required)", " (default 1; may be given several times)". */
static void param_notes(const cgam_param *p, char *text, size_t size)
{
    const char *join = p->fallback && p->many ? "; " : "";
    text[0] = '\0';
    if (p->fallback || p->many)
        snprintf(text, size, " (%s%s%s%s)", p->fallback ? "default " : "",
                 p->fallback ? p->fallback : "", join, p->many ? "may be given several times" : "");
    if (p->required) snprintf(text, size, p->many ? " (required, once or more)" : " (required)");
}

static void usage(FILE *to, const cgam_verb *verb)
{
    fprintf(to, "cgam %s", verb->name);
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++) {
        char title[TITLE];
        param_title(p, title, sizeof title);
        if (p->required) fprintf(to, " %s", title);
        else if (cgam_param_positional(p)) fprintf(to, " [%s]", title);
    }
    fprintf(to, " [options]");
}

/* The sections of the list of all verbs: a heading, and the first verb below it. */
static const struct {
    const char *heading;
    const char *first; /* verb */
} sections[] = {
    {"Recall and banks", "recall"},
    {"Theory and landscapes", "inspect"},
    {"Networks", "net run"},
    {"Studies of the paper", "report"},
    {"Language models", "lm get"},
    {"Server", "serve"},
    {"Tools", "demo"},
};

static void list_verbs(const char *group, FILE *to)
{
    for (int v = 0; cgam_verbs[v]; v++) {
        for (size_t i = 0; !group && i < sizeof sections / sizeof *sections; i++)
            if (strcmp(sections[i].first, cgam_verbs[v]->name) == 0)
                fprintf(to, "%s%s\n", i ? "\n" : "", sections[i].heading);
        if (cgam_verb_in(cgam_verbs[v], group))
            fprintf(to, "  %-20s %s\n", cgam_verbs[v]->name,
                    cgam_verb_words(cgam_verbs[v]).summary);
    }
}

bool cgam_help_search(const char *word, FILE *to)
{
    bool found = false;
    for (int v = 0; cgam_verbs[v]; v++) {
        const cgam_words words = cgam_verb_words(cgam_verbs[v]);
        bool mentions = strcasestr(words.summary, word) || strcasestr(words.about, word);
        const cgam_param *p;
        for (int i = 0; !mentions && (p = cgam_verb_param(cgam_verbs[v], i)); i++)
            mentions = strcasestr(p->name, word) || strcasestr(p->help, word);
        if (!mentions) continue;
        if (!found) fprintf(to, "No verb is called '%s'. These mention it:\n\n", word);
        fprintf(to, "  %-20s %s\n", cgam_verbs[v]->name, words.summary);
        found = true;
    }
    return found;
}

void cgam_help_list(const char *group, FILE *to)
{
    if (group) fprintf(to, "Usage: cgam %s VERB [options]\n\n", group);
    else fprintf(to, "cgam %s: %s\n\nUsage: cgam VERB [options]\n\n", cgam_version(), TAGLINE);
    list_verbs(group, to);
    fprintf(to,
            "\n  %-20s what a verb takes and gives\n"
            "  cgam VERB --json     one JSON document on standard output\n",
            "cgam help VERB");
    if (group) return;
    fprintf(to, "  cgam completion      completion for bash, zsh and fish\n\n"
                "Exit status: 0 done; 1 done, but the answer is negative; 2 bad input or usage;\n"
                "3 the machine failed us (memory, disk).\n");
}

void cgam_help_verb(const cgam_verb *verb, FILE *to)
{
    const cgam_param *p;
    const cgam_words words = cgam_verb_words(verb);
    fprintf(to, "cgam %s: %s\n\nUsage: ", verb->name, words.summary);
    usage(to, verb);
    fprintf(to, "\n\n");
    wrap(to, words.about, 0, 88);
    fprintf(to, "\nOptions\n");
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++) {
        char title[TITLE], notes[512], help[1536];
        param_title(p, title, sizeof title);
        param_notes(p, notes, sizeof notes);
        snprintf(help, sizeof help, "%s%s", p->help, notes);
        fprintf(to, "  %s\n", title);
        wrap(to, help, 8, 88);
    }
    if (*words.example) fprintf(to, "\nExample\n  %s\n", words.example);
    if (cgam_verb_group(verb->name)) {
        fprintf(to, "\nVerbs\n");
        list_verbs(verb->name, to);
    }
}

/* ---- colours ---------------------------------------------------------------------------------- */

bool cgam_help_colours(FILE *to)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(none && *none) && term && strcmp(term, "dumb") != 0 && isatty(fileno(to));
}

/* Headings and what can be typed are bold; their indentation identifies them. */
void cgam_help_print(const char *text, FILE *to)
{
    bool colours = cgam_help_colours(to);
    while (*text) {
        size_t length = strcspn(text, "\n"), bold = 0, indent = strspn(text, " ");
        size_t word = strcspn(text, ": \n");
        const char *gap = indent == 2 ? strstr(text + 2, "  ") : NULL;
        if (indent == 2) bold = gap && gap < text + length ? (size_t)(gap - text) : length;
        else if (isupper((unsigned char)*text) && text[word] != ' ') bold = word;
        if (colours && bold) fprintf(to, "\033[1m%.*s\033[0m", (int)bold, text);
        else bold = 0;
        length += text[length] == '\n';
        fprintf(to, "%.*s", (int)(length - bold), text + bold);
        text += length;
    }
}

/* ---- man pages -------------------------------------------------------------------------------- */

/* Man pages: a hyphen in an option is \-, a leading dot or quote is escaped. */
static void man_text(FILE *to, const char *text)
{
    bool start = true;
    for (; *text && strcmp(text, "\n") != 0; text++) {
        if (text[0] == '\n' && text[1] == '\n') {
            fprintf(to, "\n.PP\n");
            text++;
            start = true;
            continue;
        }
        if (start && (*text == '.' || *text == '\'')) fprintf(to, "\\&");
        if (*text == '-') fprintf(to, "\\-");
        else if (*text == '\\') fprintf(to, "\\e");
        else fputc(*text, to);
        start = *text == '\n';
    }
}

static void man_params(FILE *to, const cgam_verb *verb)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++) {
        char title[TITLE], notes[512];
        param_title(p, title, sizeof title);
        param_notes(p, notes, sizeof notes);
        fprintf(to, ".TP\n.B ");
        man_text(to, title);
        fprintf(to, "\n");
        man_text(to, p->help);
        man_text(to, notes);
        fprintf(to, "\n");
    }
}

static void man_status(FILE *to)
{
    fprintf(to, ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\ndone, but the answer is negative: a "
                "check failed, a solve did not converge\n.TP\n.B 2\nbad input or usage; one line "
                "on standard error says which, where and why\n.TP\n.B 3\nthe machine failed us: "
                "memory, disk, input or output\n");
}

void cgam_help_man(const cgam_verb *verb, FILE *to)
{
    char page[64] = "cgam";
    cgam_words words = {.example = ""};
    if (verb) {
        words = cgam_verb_words(verb);
        snprintf(page, sizeof page, "cgam-%s", verb->name);
        for (char *c = page; *c; c++)
            if (*c == ' ') *c = '-';
    }
    fprintf(to, ".TH \"%s\" 1 \"\" \"cgam %s\" \"User Commands\"\n.SH NAME\n", page,
            cgam_version());
    man_text(to, page);
    fprintf(to, " \\- ");
    man_text(to, verb ? words.summary : TAGLINE);
    fprintf(to, "\n.SH SYNOPSIS\n.B ");
    if (verb) usage(to, verb);
    else fprintf(to, "cgam VERB [options]");
    fprintf(to, "\n.SH DESCRIPTION\n");
    if (verb) {
        man_text(to, words.about);
        fprintf(to, "\n.SH OPTIONS\n");
        man_params(to, verb);
        if (*words.example) {
            fprintf(to, ".SH EXAMPLE\n.nf\n");
            man_text(to, words.example);
            fprintf(to, "\n.fi\n");
        }
    } else {
        fprintf(to, "A bank of memories is searched by a query while a context decides, before and "
                    "during recall, which memories may win.\n.SH VERBS\n");
        for (int v = 0; cgam_verbs[v]; v++) {
            fprintf(to, ".TP\n.B %s\n", cgam_verbs[v]->name);
            man_text(to, cgam_verb_words(cgam_verbs[v]).summary);
            fprintf(to, "\n");
        }
    }
    man_status(to);
}

/* ---- the table as JSON ------------------------------------------------------------------------ */

static json_t *param_json(const cgam_param *p)
{
    static const char *const kinds[] = {"flag",   "int",  "real",  "text",
                                        "choice", "ints", "reals", "words"};
    bool ranged = p->min != 0 || p->max != 0;
    json_t *one = cgam_json_object("name=%s positional?=%d kind=%s value=%s", p->name,
                                   cgam_param_positional(p), kinds[p->kind], p->value);
    if (p->kind == CGAM_CHOICE || p->kind == CGAM_WORDS || p->kind == CGAM_INTS ||
        p->kind == CGAM_REALS) {
        json_t *words = json_array();
        size_t length;
        const char *word = NULL;
        while ((word = cgam_field_word(p, word, &length)))
            json_array_append_new(words, json_stringn(word, length));
        cgam_json_put(one, "words", words);
    }
    cgam_json_add(one, "default=%s help=%s min=%g max=%g required?=%d many?=%d", p->fallback,
                  p->help, ranged ? p->min : NAN, ranged ? p->max : NAN, p->required, p->many);
    if (p->bare) cgam_json_put_text(one, "bare", p->bare);
    cgam_json_put_bool(one, "writes", p->writes);
    if (p->input) cgam_json_put_text(one, "input", cgam_input_name(p->input));
    return one;
}

/* A text as a JSON array of paragraphs, their lines joined. */
static json_t *paragraphs_json(const char *text)
{
    size_t length = strlen(text);
    json_t *whole = json_stringn(text, length && text[length - 1] == '\n' ? length - 1 : length);
    char *at = (char *)(uintptr_t)json_string_value(whole); /* edited in place, same length */
    for (; at && *at; at++)
        if (*at == '\n' && at[1] == '\n') at++;
        else if (*at == '\n') *at = ' ';
    return whole;
}

json_t *cgam_help_json(const cgam_verb *verb)
{
    json_t *doc = json_object(), *params = json_array();
    const cgam_words words = cgam_verb_words(verb);
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        json_array_append_new(params, param_json(p));
    cgam_json_add(doc, "name=%s summary=%s about=%p example=%s local?=%d parameters=%p", verb->name,
                  words.summary, paragraphs_json(words.about),
                  *words.example ? words.example : NULL, verb->local, params);
    return doc;
}

json_t *cgam_help_json_list(const char *group)
{
    json_t *list = json_array();
    for (int v = 0; cgam_verbs[v]; v++)
        if (cgam_verb_in(cgam_verbs[v], group))
            json_array_append_new(list, cgam_help_json(cgam_verbs[v]));
    return list;
}
