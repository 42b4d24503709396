/* verb.c: finds verbs in the table by name, and the nearest name to a mistyped one. */
#include "app/verb.h"
#include "lab/embedded.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

bool cgam_param_positional(const cgam_param *p) { return isupper((unsigned char)p->name[0]) != 0; }

/* The text of the file app/FOLDER/NAME.txt; "" where there is none. */
static const char *find_text(const char *folder, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "app/%s/%s.txt", folder, name);
    for (char *c = path; *c; c++)
        if (*c == ' ') *c = '-';
    const cgam_embedded *file = cgam_embedded_find(path);
    return file ? file->bytes : "";
}

/* Copies a line; returns what follows it. */
static const char *take_line(const char *text, char *line, size_t size)
{
    int length = (int)strcspn(text, "\n");
    snprintf(line, size, "%.*s", length, text);
    return text + length + (text[length] != '\0');
}

cgam_words cgam_verb_words(const cgam_verb *verb)
{
    cgam_words w;
    const char *text = verb->words ? verb->words : find_text("about", verb->name);
    text = take_line(text, w.summary, sizeof w.summary);
    text = take_line(text, w.example, sizeof w.example);
    int length = snprintf(w.about, sizeof w.about, "%s%s%s", text + (*text == '\n'),
                          verb->more ? "\n" : "", verb->more ? find_text("about", verb->more) : "");
    assert(length < (int)sizeof w.about);
    (void)length;
    return w;
}

bool cgam_verb_print(const cgam_verb *verb, const json_t *doc, const cgam_late *late, FILE *to)
{
    if (!verb->print)
        return cgam_fill_late(to, find_text("text", verb->text ? verb->text : verb->name), doc,
                              late);
    verb->print(doc, to);
    return true;
}

const cgam_param *cgam_verb_param(const cgam_verb *verb, int i)
{
    const cgam_param *p = verb->params;
    for (; p && *p->name; p++) {
        bool table = p->name[0] == '*';
        for (const cgam_param *row = p->of; table && *row->name; row++)
            if (i-- == 0) return row;
        if (!table && i-- == 0) return p->of ? cgam_field_find(p->of, p->name, strlen(p->name)) : p;
    }
    for (p = cgam_params_common; *p->name && i > 0; p++) i--;
    return *p->name ? p : NULL;
}

const cgam_param *cgam_verb_param_named(const cgam_verb *verb, const char *name, size_t length)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        if (strlen(p->name) == length && strncmp(p->name, name, length) == 0) return p;
    return NULL;
}

bool cgam_verb_in(const cgam_verb *verb, const char *group)
{
    size_t length = group ? strlen(group) : 0;
    return !group || (strncmp(verb->name, group, length) == 0 && verb->name[length] == ' ');
}

bool cgam_verb_group(const char *word)
{
    for (int v = 0; cgam_verbs[v]; v++)
        if (cgam_verb_in(cgam_verbs[v], word)) return true;
    return false;
}

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

cgam_near cgam_verb_suggest(const char *typed)
{
    cgam_near near = {.typed = typed};
    for (int v = 0; cgam_verbs[v]; v++) {
        const char *name = cgam_verbs[v]->name;
        cgam_near_try(&near, name, strlen(name));
        if (!strchr(typed, ' ')) cgam_near_try(&near, name, strcspn(name, " "));
    }
    return near;
}

static const char BREAKS[] = " :;,"; /* between the words of a message */

static bool is_option(const cgam_verb *verb, const char *word)
{
    const cgam_param *p = cgam_verb_param_named(verb, word, strcspn(word, BREAKS));
    return p && !cgam_param_positional(p);
}

/* Did the user type the word as a value? */
static bool is_typed(int count, const char *const *typed, const char *word)
{
    size_t length = strcspn(word, BREAKS);
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(typed[i], '=');
        const char *value = typed[i][0] == '-' && equals ? equals + 1 : typed[i];
        if (strlen(value) == length && strncmp(value, word, length) == 0) return true;
    }
    return false;
}

/* A message about an option begins with its name or with `give`. Other names follow words that require one. */
void cgam_help_message(const cgam_verb *verb, int count, const char *const *typed,
                       const char *message, FILE *to)
{
    static const char *const asks[] = {"and",      "or",   "needs", "without", "take",
                                       "requires", "give", "use",   NULL};
    bool about = verb && ((is_option(verb, message) && !is_typed(count, typed, message)) ||
                          strncmp(message, "give ", 5) == 0);
    bool here = about;
    while (*message) {
        size_t length = strcspn(message, BREAKS);
        bool option = here && is_option(verb, message);
        if (option) fputs("--", to);
        here = option && message[length] == ','; /* a list of options */
        for (int i = 0; about && asks[i] && message[length] == ' '; i++)
            here |= strlen(asks[i]) == length && strncmp(message, asks[i], length) == 0;
        length += strspn(message + length, BREAKS);
        fprintf(to, "%.*s", (int)length, message);
        message += length;
    }
}
