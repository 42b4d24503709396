/* facts.c: what a set says of a subject, under any spelling, and what it therefore does not say.
 *
 * A relation may give a subject several objects ("Kingdom of Italy": Florence, Rome), and most
 * subjects share a few of them (two in three of P103 are French). An object is wrong for a
 * demonstration only if no row of either set gives it to that subject, and it must not give away the
 * query's answer. Texts and words are numbered so that spellings of the same have one number; the
 * pairs of numbers that occur, sorted, answer both questions. */
#include "lm/facts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
    int64_t text, word;
} pair;

struct cgam_facts {
    cgam_env *env;
    const cgam_dataset *eval, *train;
    int64_t rows, words;           /* of both sets together */
    int64_t train_row, train_word; /* where those of train begin */
    int64_t *text;                 /* [rows] */
    int64_t *word;                 /* [words] */
    int64_t *weight;               /* [labels of train] examples that have it */
    pair *said;                    /* [rows], sorted */
};

void cgam_facts_free(cgam_facts *facts)
{
    if (!facts) return;
    cgam_env *env = facts->env;
    void *blocks[] = {facts->text, facts->word, facts->weight, facts->said, facts};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
}

/* ---- Spellings ---------------------------------------------------------------------------- */
/* The next letter or digit in small, 0 at the end. Bytes of other alphabets count as they are. */
static int next_letter(const char **at)
{
    while (**at) {
        unsigned char c = (unsigned char)*(*at)++;
        if (c >= 128) return c;
        if (isalnum(c)) return tolower(c);
    }
    return 0;
}

int cgam_text_order(const char *a, const char *b)
{
    const char *x = a, *y = b;
    for (int letters = 0;; letters++) {
        int c = next_letter(&x), d = next_letter(&y);
        if (c != d) return c - d;
        if (c == 0) return letters > 0 ? 0 : strcmp(a, b);
    }
}

typedef struct named {
    const char *text;
    int64_t number;
} named;

static int by_text(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = cgam_text_order(x->text, y->text);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Gives each of n texts the lowest number of those that are spellings of it. Sorts the list. */
static void number(int64_t n, named *list, int64_t *out)
{
    qsort(list, (size_t)n, sizeof *list, by_text);
    for (int64_t i = 0, first = 0; i < n; i++) {
        if (cgam_text_order(list[first].text, list[i].text) != 0) first = i;
        out[list[i].number] = list[first].number;
    }
}

/* ---- What is said ------------------------------------------------------------------------- */
static int by_pair(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->text != y->text) return x->text < y->text ? -1 : 1;
    return (x->word > y->word) - (x->word < y->word);
}

static const char *word_at(const cgam_facts *facts, int64_t i)
{
    return i < facts->train_word ? cgam_dataset_word(facts->eval, i)
                                 : cgam_dataset_word(facts->train, i - facts->train_word);
}

static void read_sets(cgam_facts *facts, named *list)
{
    for (int64_t i = 0; i < facts->words; i++) list[i] = (named){word_at(facts, i), i};
    number(facts->words, list, facts->word);
    for (int64_t i = 0; i < facts->rows; i++) {
        bool of_train = i >= facts->train_row;
        cgam_example e = of_train ? cgam_dataset_example(facts->train, i - facts->train_row)
                                  : cgam_dataset_example(facts->eval, i);
        list[i] = (named){e.text, i};
        facts->said[i].word = facts->word[e.label + (of_train ? facts->train_word : 0)];
        if (of_train) facts->weight[e.label]++;
    }
    number(facts->rows, list, facts->text);
    for (int64_t i = 0; i < facts->rows; i++) facts->said[i].text = facts->text[i];
    qsort(facts->said, (size_t)facts->rows, sizeof *facts->said, by_pair);
}

cgam_status cgam_facts_new(cgam_env *env, const cgam_dataset *eval, const cgam_dataset *train,
                           cgam_facts **out)
{
    *out = NULL;
    cgam_facts *facts = cgam_zalloc(env, 1, sizeof *facts);
    if (!facts) return cgam_fail_nomem(env, "facts");
    facts->env = env;
    facts->eval = eval;
    facts->train = train;
    facts->train_row = train == eval ? 0 : cgam_dataset_size(eval);
    facts->train_word = train == eval ? 0 : cgam_dataset_labels(eval);
    facts->rows = facts->train_row + cgam_dataset_size(train);
    facts->words = facts->train_word + cgam_dataset_labels(train);
    size_t rows = (size_t)facts->rows, words = (size_t)facts->words;
    named *list = cgam_alloc(env, rows > words ? rows : words, sizeof *list);
    facts->text = cgam_alloc(env, rows, sizeof *facts->text);
    facts->said = cgam_alloc(env, rows, sizeof *facts->said);
    facts->word = cgam_alloc(env, words, sizeof *facts->word);
    facts->weight = cgam_zalloc(env, (size_t)cgam_dataset_labels(train), sizeof *facts->weight);
    bool fine = list && facts->text && facts->said && facts->word && facts->weight;
    if (fine) read_sets(facts, list);
    cgam_free(env, list);
    if (fine) *out = facts;
    else cgam_facts_free(facts);
    return fine ? CGAM_OK : cgam_fail_nomem(env, "facts");
}

int64_t cgam_facts_text(const cgam_facts *facts, bool of_train, int64_t example)
{
    return facts->text[example + (of_train ? facts->train_row : 0)];
}

int64_t cgam_facts_texts(const cgam_facts *facts) { return facts->rows; }

/* ---- Objects ------------------------------------------------------------------------------ */
/* Is word number `word` an object of the query's subject or of the demonstration's? */
static bool own(const cgam_facts *facts, int64_t query, int64_t demo, int64_t word)
{
    const pair of_query = {cgam_facts_text(facts, false, query), word};
    const pair of_demo = {cgam_facts_text(facts, true, demo), word};
    size_t rows = (size_t)facts->rows, size = sizeof *facts->said;
    return bsearch(&of_query, facts->said, rows, size, by_pair) ||
           bsearch(&of_demo, facts->said, rows, size, by_pair);
}

bool cgam_facts_own(const cgam_facts *facts, int64_t query, int64_t demo, const char *word)
{
    for (int64_t i = 0; i < facts->words; i++)
        if (cgam_text_order(word, word_at(facts, i)) == 0)
            return own(facts, query, demo, facts->word[i]);
    return false;
}

bool cgam_facts_wrong(const cgam_facts *facts, int64_t query, int64_t demo, cgam_rng *rng,
                      int64_t *label)
{
    int64_t labels = cgam_dataset_labels(facts->train), total = 0;
    const int64_t *word = facts->word + facts->train_word;
    for (int64_t k = 0; k < labels; k++)
        if (!own(facts, query, demo, word[k])) total += facts->weight[k];
    int64_t at = cgam_rng_below(rng, total > 0 ? total : 1);
    for (int64_t k = 0; k < labels && total > 0; k++) {
        if (own(facts, query, demo, word[k])) continue;
        at -= facts->weight[k];
        if (at >= 0) continue;
        *label = k;
        return true;
    }
    return false;
}
