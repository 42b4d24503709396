/* dataset.c: examples and labels, whatever file they came from. */
#include "lm/dataset.h"

#include "base/embedded.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void cgam_dataset_close(cgam_dataset *set)
{
    if (!set) return;
    cgam_env *env = set->env;
    for (int64_t i = 0; i < set->labels; i++) {
        cgam_free(env, set->label[i].key);
        cgam_free(env, set->label[i].word);
    }
    for (int64_t i = 0; i < set->examples; i++) cgam_free(env, set->example[i].text);
    cgam_free(env, set->label);
    cgam_free(env, set->example);
    cgam_free(env, set->template);
    cgam_free(env, set);
}

cgam_status cgam_dataset_new(cgam_env *env, const char *template, bool facts, cgam_dataset **out)
{
    *out = NULL;
    cgam_dataset *set = cgam_zalloc(env, 1, sizeof *set);
    if (!set) return cgam_fail_nomem(env, "a dataset");
    set->env = env;
    set->facts = set->grows = facts;
    set->template = cgam_strdup(env, template);
    if (!set->template) {
        cgam_dataset_close(set);
        return cgam_fail_nomem(env, "a dataset");
    }
    *out = set;
    return CGAM_OK;
}

/* Room for one more in a list that doubles. */
static cgam_status grow(cgam_env *env, void **list, int64_t used, int64_t *room, size_t size)
{
    if (used < *room) return CGAM_OK;
    int64_t wanted = *room ? 2 * *room : 64;
    void *larger = cgam_alloc(env, (size_t)wanted, size);
    if (!larger) return cgam_fail_nomem(env, "a dataset");
    if (used > 0) memcpy(larger, *list, (size_t)used * size);
    cgam_free(env, *list);
    *list = larger;
    *room = wanted;
    return CGAM_OK;
}

/* A copy without outer blanks, and with one blank where there were several or a control
 * character. NULL when out of memory. */
static char *clean(cgam_env *env, const char *text, size_t length)
{
    char *copy = cgam_alloc(env, length + 1, 1), *to = copy;
    if (!copy) return NULL;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c > ' ' && c != 127) *to++ = (char)c;
        else if (to > copy && to[-1] != ' ') *to++ = ' ';
    }
    if (to > copy && to[-1] == ' ') to--;
    *to = '\0';
    return copy;
}

static cgam_status add_label(cgam_dataset *set, const char *key, size_t key_length,
                             const char *word, size_t word_length)
{
    void *list = set->label;
    cgam_status status = grow(set->env, &list, set->labels, &set->labels_room, sizeof *set->label);
    set->label = list;
    if (status != CGAM_OK) return status;
    cgam_label *l = &set->label[set->labels++];
    *l = (cgam_label){clean(set->env, key, key_length), clean(set->env, word, word_length)};
    if (!l->key || !l->word) return cgam_fail_nomem(set->env, "a label");
    return CGAM_OK;
}

static int64_t find_label(const cgam_dataset *set, const char *key)
{
    for (int64_t i = 0; i < set->labels; i++)
        if (strcmp(set->label[i].key, key) == 0) return i;
    return -1;
}

cgam_status cgam_dataset_declare(cgam_dataset *set, const char *labels)
{
    set->grows = labels == NULL;
    cgam_status status = CGAM_OK;
    for (const char *at = labels; at && *at && status == CGAM_OK;) {
        size_t length = strcspn(at, ","), equal = strcspn(at, "=,");
        if (equal == 0 || equal + 1 >= length || at[equal] != '=')
            return cgam_fail(set->env, CGAM_E_ARG, "labels '%s': KEY=WORD,KEY=WORD is expected",
                             labels);
        status = add_label(set, at, equal, at + equal + 1, length - equal - 1);
        if (status == CGAM_OK && find_label(set, set->label[set->labels - 1].key) + 1 < set->labels)
            status = cgam_fail(set->env, CGAM_E_ARG, "labels '%s': %s is there twice", labels,
                               set->label[set->labels - 1].key);
        at += length + (at[length] == ',');
    }
    return status;
}

cgam_status cgam_dataset_add(cgam_dataset *set, const char *where, const char *text,
                             const char *label)
{
    cgam_env *env = set->env;
    void *list = set->example;
    cgam_status status = grow(env, &list, set->examples, &set->examples_room, sizeof *set->example);
    set->example = list;
    if (status != CGAM_OK) return status;
    char *words = clean(env, text, strlen(text)), *key = clean(env, label, strlen(label));
    if (!words || !key) status = cgam_fail_nomem(env, "an example");
    else if (!*words || !*key)
        status =
            cgam_fail(env, CGAM_E_FORMAT, "%s: the %s is empty", where, *words ? "label" : "text");
    int64_t index = status == CGAM_OK ? find_label(set, key) : -1;
    if (status == CGAM_OK && index < 0 && !set->grows)
        status = cgam_fail(env, CGAM_E_FORMAT, "%s: label '%.40s' has no word", where, key);
    if (status == CGAM_OK && index < 0) {
        status = add_label(set, key, strlen(key), key, strlen(key));
        index = set->labels - 1;
    }
    cgam_free(env, key);
    if (status != CGAM_OK) {
        cgam_free(env, words);
        return status;
    }
    set->example[set->examples].text = words;
    set->example[set->examples++].label = index;
    return CGAM_OK;
}

const char *const cgam_dataset_tasks[] = {
    "antonyms", "plurals",     "past",     "comparatives", "capitals", "currencies", "continents",
    "colours",  "next-number", "numerals", "french",       "young",    "kinds",      NULL};

/* Files in src/lm/shipped. The sentences were written for this project, 80 of each sentiment, in
 * pairs of like build so that words other than the judging ones tell little. The tasks above have a
 * file each, but capitals, which are the facts asked in another way. */
static const struct {
    const char *name, *file, *format, *template, *labels;
} shipped[] = {
    {"facts", "lm/shipped/facts.tsv", "facts", "The capital of {x} is {y}.\n", NULL},
    {"languages", "lm/shipped/languages.tsv", "facts", "The language of {x} is {y}.\n", NULL},
    {"sentiment", "lm/shipped/sentiment.tsv", "tsv", "Review: {x}\nSentiment: {y}\n\n",
     "negative=negative,positive=positive"},
};

cgam_status cgam_dataset_shipped(cgam_env *env, const char *name, cgam_dataset **out)
{
    return cgam_dataset_shipped_as(env, name, NULL, out);
}

cgam_status cgam_dataset_shipped_as(cgam_env *env, const char *name, const char *labels,
                                    cgam_dataset **out)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        if (strcmp(name, shipped[i].name) != 0) continue;
        const cgam_embedded *bytes = cgam_embedded_find(shipped[i].file);
        cgam_file file = cgam_file_borrow(bytes->bytes, bytes->size);
        return cgam_dataset_read(env, shipped[i].format, name, &file, shipped[i].template,
                                 labels ? labels : shipped[i].labels, out);
    }
    for (size_t i = 0; cgam_dataset_tasks[i]; i++) {
        if (strcmp(name, cgam_dataset_tasks[i]) != 0) continue;
        char path[64];
        snprintf(path, sizeof path, "lm/shipped/%s.tsv",
                 strcmp(name, "capitals") == 0 ? "facts" : name);
        const cgam_embedded *bytes = cgam_embedded_find(path);
        cgam_file file = cgam_file_borrow(bytes->bytes, bytes->size);
        return cgam_dataset_read(env, "facts", name, &file, cgam_dataset_qa, labels, out);
    }
    return cgam_fail(env, CGAM_E_NOT_FOUND,
                     "no set '%s' comes with cgam; there are facts, languages, sentiment and the "
                     "tasks antonyms, plurals, ..",
                     name);
}

int64_t cgam_dataset_size(const cgam_dataset *set) { return set->examples; }

cgam_example cgam_dataset_example(const cgam_dataset *set, int64_t i)
{
    return (cgam_example){set->example[i].text, set->example[i].label};
}

int64_t cgam_dataset_labels(const cgam_dataset *set) { return set->labels; }

const char *cgam_dataset_word(const cgam_dataset *set, int64_t label)
{
    return set->label[label].word;
}

bool cgam_dataset_open_ended(const cgam_dataset *set) { return set->facts; }

const char *cgam_dataset_template(const cgam_dataset *set) { return set->template; }
