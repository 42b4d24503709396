/* help.c: words about verbs, made from their table: --help, man pages, suggestions. */
#include "app/verb.h"

#include <ctype.h>
#include <string.h>

static const char TAGLINE[] = "context-gated associative memory";

const cgam_verb *cgam_verb_find(int argc, const char *const *argv, int *used)
{
    const cgam_verb *best = NULL;
    *used = 0;
    for (int v = 0; cgam_verbs[v]; v++) {
        const char *name = cgam_verbs[v]->name;
        int words = 0;
        while (*name && words < argc) {
            size_t length = strcspn(name, " ");
            if (strlen(argv[words]) != length || strncmp(argv[words], name, length) != 0) break;
            words++;
            name += length;
            if (*name == ' ') name++;
        }
        if (!*name && words > *used) {
            best = cgam_verbs[v];
            *used = words;
        }
    }
    return best;
}

/* Edits that turn a into b. */
static int edits(const char *a, const char *b, int length)
{
    int row[64];
    if (length > 63) return 99;
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int change = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            int other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < other ? change : other;
        }
    }
    return row[length];
}

void cgam_near_try(cgam_near *near, const char *name, size_t length)
{
    size_t typed = strlen(near->typed);
    int allowed = typed < 4 ? 1 : 2;
    int distance = edits(near->typed, name, (int)length);
    if (typed > 2 && typed < length && strncmp(near->typed, name, typed) == 0) distance = 1;
    if (typed < 2 || distance > allowed || (near->best && distance >= near->least)) return;
    near->best = name;
    near->length = (int)length;
    near->least = distance;
}

const char *cgam_verb_suggest(const char *typed)
{
    cgam_near near = {.typed = typed};
    for (int v = 0; cgam_verbs[v]; v++)
        cgam_near_try(&near, cgam_verbs[v]->name, strlen(cgam_verbs[v]->name));
    return near.best;
}

static bool is_option(const cgam_verb *verb, const char *word, size_t length)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        if (strlen(p->name) == length && strncmp(p->name, word, length) == 0)
            return !cgam_param_positional(p);
    return false;
}

/* Names of options stand at the start of a message, or after a word that asks for one. */
void cgam_help_message(const cgam_verb *verb, const char *message, FILE *to)
{
    static const char *const asks[] = {"and", "or", "needs", "without", "take", NULL};
    for (bool here = true; *message;) {
        size_t length = strcspn(message, " :;,");
        if (here && verb && is_option(verb, message, length)) fputs("--", to);
        here = false;
        for (int i = 0; asks[i] && message[length] == ' '; i++)
            here |= strlen(asks[i]) == length && strncmp(message, asks[i], length) == 0;
        length += strspn(message + length, " :;,");
        fprintf(to, "%.*s", (int)length, message);
        message += length;
    }
}

void cgam_help_all(FILE *to)
{
    fprintf(to, "cgam %s: %s\n\nUsage: cgam VERB [options]\n\n", cgam_version(), TAGLINE);
    for (int v = 0; cgam_verbs[v]; v++)
        fprintf(to, "  %-20s %s\n", cgam_verbs[v]->name, cgam_verbs[v]->summary);
    fprintf(to, "\n  cgam help VERB       what a verb takes and gives\n"
                "  cgam VERB --json     one JSON document on standard output\n\n"
                "Exit status: 0 done; 1 done, but the answer is negative; 2 bad input or usage;\n"
                "3 the machine failed us (memory, disk).\n");
}

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

static void param_title(const cgam_param *p, char *text, size_t size)
{
    if (cgam_param_positional(p)) snprintf(text, size, "%s", p->name);
    else if (p->kind == CGAM_FLAG) snprintf(text, size, "--%s", p->name);
    else snprintf(text, size, "--%s %s", p->name, p->value);
}

static void param_lines(FILE *to, const cgam_param *p)
{
    for (; p && *p->name; p++) {
        char title[96], words[1024];
        param_title(p, title, sizeof title);
        snprintf(words, sizeof words, "%s%s%s%s%s", p->help, p->required ? " (required)" : "",
                 p->fallback ? " (default " : "", p->fallback ? p->fallback : "",
                 p->fallback ? ")" : "");
        fprintf(to, "  %s\n", title);
        wrap(to, words, 8, 88);
    }
}

static void usage(FILE *to, const cgam_verb *verb)
{
    fprintf(to, "cgam %s", verb->name);
    for (const cgam_param *p = verb->params; p && *p->name; p++) {
        char title[96];
        param_title(p, title, sizeof title);
        if (p->required) fprintf(to, " %s", title);
        else if (cgam_param_positional(p)) fprintf(to, " [%s]", title);
    }
    fprintf(to, " [options]");
}

void cgam_help_verb(const cgam_verb *verb, FILE *to)
{
    fprintf(to, "cgam %s: %s\n\nUsage: ", verb->name, verb->summary);
    usage(to, verb);
    fprintf(to, "\n\n");
    wrap(to, verb->about, 0, 88);
    fprintf(to, "\nOptions\n");
    param_lines(to, verb->params);
    param_lines(to, cgam_params_common);
    if (verb->example) fprintf(to, "\nExample\n  %s\n", verb->example);
}

/* Man pages: a hyphen in an option is \-, a leading dot or quote is escaped. */
static void man_text(FILE *to, const char *text)
{
    bool start = true;
    for (; *text; text++) {
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

static void man_params(FILE *to, const cgam_param *p)
{
    for (; p && *p->name; p++) {
        char title[96];
        param_title(p, title, sizeof title);
        fprintf(to, ".TP\n.B ");
        man_text(to, title);
        fprintf(to, "\n");
        man_text(to, p->help);
        if (p->required) fprintf(to, " (required)");
        if (p->fallback) {
            fprintf(to, " (default ");
            man_text(to, p->fallback);
            fprintf(to, ")");
        }
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
    if (verb) {
        snprintf(page, sizeof page, "cgam-%s", verb->name);
        for (char *c = page; *c; c++)
            if (*c == ' ') *c = '-';
    }
    fprintf(to, ".TH \"%s\" 1 \"\" \"cgam %s\" \"User Commands\"\n.SH NAME\n", page,
            cgam_version());
    man_text(to, page);
    fprintf(to, " \\- ");
    man_text(to, verb ? verb->summary : TAGLINE);
    fprintf(to, "\n.SH SYNOPSIS\n.B ");
    if (verb) usage(to, verb);
    else fprintf(to, "cgam VERB [options]");
    fprintf(to, "\n.SH DESCRIPTION\n");
    if (verb) {
        man_text(to, verb->about);
        fprintf(to, "\n.SH OPTIONS\n");
        man_params(to, verb->params);
        man_params(to, cgam_params_common);
        if (verb->example) {
            fprintf(to, ".SH EXAMPLE\n.nf\n");
            man_text(to, verb->example);
            fprintf(to, "\n.fi\n");
        }
    } else {
        fprintf(to, "A bank of memories is searched by a query while a context decides, before and "
                    "during recall, which memories may win.\n.SH VERBS\n");
        for (int v = 0; cgam_verbs[v]; v++) {
            fprintf(to, ".TP\n.B %s\n", cgam_verbs[v]->name);
            man_text(to, cgam_verbs[v]->summary);
            fprintf(to, "\n");
        }
    }
    man_status(to);
}
