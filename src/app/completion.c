/* completion.c: what a shell can complete at the end of a line, from the table of verbs. The scripts in
 *    completion/ call `cgam completion SHELL -- WORD..`, where the last word is the one at the
 * cursor, with a dot before it, so that it is never empty.
 *
 * An offer is a line: the word, a tab, a short description. ":files" and ":folders" leave it to
 * the shell, which knows its own file names. */
#include "app/verb.h"
#include "lab/embedded.h"

#include <string.h>

const char *cgam_completion_script(const char *shell)
{
    char name[64];
    snprintf(name, sizeof name, "app/completion/%s", shell);
    return cgam_embedded_find(name)->bytes;
}

/* ---- offers ----------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *word; /* at the cursor */
    int stem;         /* bytes at its start that stay: --name= and all before the last comma */
    FILE *to;
} cursor;

static void offer(const cursor *c, const char *before, const char *word, size_t length,
                  const char *about)
{
    const char *typed = c->word + c->stem;
    size_t dashes = strlen(before), n = strlen(typed);
    if (n > dashes + length || strncmp(typed, before, n < dashes ? n : dashes) != 0 ||
        (n > dashes && strncmp(typed + dashes, word, n - dashes) != 0))
        return;
    fprintf(c->to, "%.*s%s%.*s\t%.*s\n", c->stem, c->word, before, (int)length, word,
            (int)strcspn(about, ";\n"), about);
}

static void offer_first_words(const cursor *c)
{
    for (int v = 0; cgam_verbs[v]; v++) {
        const char *name = cgam_verbs[v]->name;
        size_t length = strcspn(name, " ");
        const char *last = v ? cgam_verbs[v - 1]->name : "";
        if (strcspn(last, " ") != length || strncmp(last, name, length) != 0)
            offer(c, "", name, length,
                  name[length] ? "several verbs" : cgam_verb_words(cgam_verbs[v]).summary);
    }
}

static void offer_value(cursor *c, const cgam_param *p)
{
    size_t length;
    const char *word = cgam_field_word(p, NULL, &length), *comma = strrchr(c->word, ',');
    if (comma && (p->kind == CGAM_WORDS || p->kind == CGAM_INTS || p->kind == CGAM_REALS))
        c->stem = (int)(comma + 1 - c->word);
    if (strcmp(p->value, "VERB") == 0) offer_first_words(c);
    else if (!word && strstr(p->value, "DIR")) fputs(":folders\n", c->to);
    else if (!word && strstr(p->value, "FILE")) fputs(":files\n", c->to);
    for (; word; word = cgam_field_word(p, word, &length)) offer(c, "", word, length, p->help);
}

/* The option whose value is at the cursor. Bash passes --name=value as three words. */
static const cgam_param *wanting(const cgam_verb *verb, int count, const char *const *before,
                                 cursor *c)
{
    const char *option = count > 0 ? before[count - 1] : "", *equals = strchr(c->word, '=');
    if (strcmp(c->word, "=") == 0 && strncmp(option, "--", 2) == 0) c->word = "";
    else if (strcmp(option, "=") == 0 && count > 1) option = before[count - 2];
    else if (strncmp(c->word, "--", 2) == 0 && equals) {
        option = c->word;
        c->stem = (int)(equals + 1 - c->word);
    }
    if (strncmp(option, "--", 2) != 0) return NULL;
    const cgam_param *p = cgam_verb_param_named(verb, option + 2, strcspn(option + 2, "="));
    return p && p->kind != CGAM_FLAG ? p : NULL;
}

static void offer_of_verb(const cgam_verb *verb, cursor *c)
{
    const cgam_param *p;
    bool options = true; /* for arguments that cannot be completed */
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        if (cgam_param_positional(p) && *c->word != '-') {
            offer_value(c, p);
            options = false;
        }
    for (int i = 0; options && (p = cgam_verb_param(verb, i)); i++)
        if (!cgam_param_positional(p)) offer(c, "--", p->name, strlen(p->name), p->help);
    if (options) offer(c, "--", "help", 4, "explain the verb");
}

void cgam_complete(int count, const char *const *before, const char *word, FILE *to)
{
    int used;
    cursor c = {.word = word, .to = to};
    const cgam_verb *verb = cgam_verb_find(count, before, &used);
    const cgam_param *p = verb ? wanting(verb, count, before, &c) : NULL;
    if (count == 0) {
        offer_first_words(&c);
        offer(&c, "--", "help", 4, "explain the program");
        offer(&c, "--", "version", 7, "print the version");
    }
    for (int v = 0; cgam_verbs[v] && count == 1; v++)
        if (cgam_verb_in(cgam_verbs[v], before[0])) {
            const char *second = cgam_verbs[v]->name + strlen(before[0]) + 1;
            offer(&c, "", second, strlen(second), cgam_verb_words(cgam_verbs[v]).summary);
        }
    if (p) offer_value(&c, p);
    else if (verb) offer_of_verb(verb, &c);
}
