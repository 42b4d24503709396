/* prompts.c: queries, their demonstrations, and the prompts made of them.
 *
 * Demonstrations are drawn without replacement. With few labels the classes are cycled, in a new random order for each
 * round, so that they balance as far as k allows; with many labels (facts) examples are drawn from all. The examples
 * drawn are then shuffled: this makes every balanced order of k classes equally likely, whereas the cycle itself never
 * shows a class twice before it has shown all. Each query has its own random stream, by its rank among the queries
 * drawn, so any prompt can be made again alone; if demonstrations come from a separate file, it does not depend on the
 * number of queries. */
#include "base/alloc.h"
#include "base/rng.h"
#include "lab/language/dataset.h"
#include "lab/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Facts ----------------------------------------------------------------------------------- */
/* The objects that a set gives a subject under any of its spellings, and which objects are therefore wrong.
 *
 * A relation may give a subject several objects ("Kingdom of Italy": Florence, Rome), and most
 * subjects share a few of them (two in three of P103 are French). An object is wrong for a
 * demonstration only if no row of either set gives it to that subject, and it must not give away the
 * query's answer. Texts and words are numbered so that spellings of the same have one number; the
 * pairs of numbers that occur, sorted, answer both questions. */

typedef struct said_pair {
    int64_t text, word;
} said_pair;

typedef struct cgam_facts {
    cgam_env *env;
    const cgam_dataset *eval, *train;
    int64_t rows, words;           /* of both sets together */
    int64_t train_row, train_word; /* where those of train begin */
    int64_t *text;                 /* [rows] */
    int64_t *word;                 /* [words] */
    int64_t *weight;               /* [labels of train] examples that have it */
    said_pair *said;               /* [rows], sorted */
} cgam_facts;

static void facts_free(cgam_facts *facts)
{
    if (!facts) return;
    cgam_env *env = facts->env;
    cgam_free_all(env, facts->text, facts->word, facts->weight, facts->said, facts);
}

/* ---- Spellings ---------------------------------------------------------------------------- */
/* The next letter or digit in lower case, 0 at the end. Bytes of other alphabets are unchanged. */
static int next_letter(const char **at)
{
    while (**at) {
        unsigned char c = (unsigned char)*(*at)++;
        if (c >= 128) return c;
        if (isalnum(c)) return tolower(c);
    }
    return 0;
}

/* Order of two texts by their letters and digits alone: case, blanks and punctuation do not count, so
 * 0 is another spelling of the same. Texts without letters and digits are compared as they are. */
static int compare_texts(const char *a, const char *b)
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
    int order = compare_texts(x->text, y->text);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Gives each of n texts the lowest number of those that are spellings of it. Sorts the list. */
static void number_texts(int64_t n, named *list, int64_t *out)
{
    qsort(list, (size_t)n, sizeof *list, by_text);
    for (int64_t i = 0, first = 0; i < n; i++) {
        if (compare_texts(list[first].text, list[i].text) != 0) first = i;
        out[list[i].number] = list[first].number;
    }
}

/* ---- What is said ------------------------------------------------------------------------- */
static int by_pair(const void *a, const void *b)
{
    const said_pair *x = a, *y = b;
    if (x->text != y->text) return x->text < y->text ? -1 : 1;
    return (x->word > y->word) - (x->word < y->word);
}

static const char *word_at(const cgam_facts *facts, int64_t i)
{
    return i < facts->train_word ? facts->eval->label[i].word
                                 : facts->train->label[i - facts->train_word].word;
}

static void read_sets(cgam_facts *facts, named *list)
{
    for (int64_t i = 0; i < facts->words; i++) list[i] = (named){word_at(facts, i), i};
    number_texts(facts->words, list, facts->word);
    for (int64_t i = 0; i < facts->rows; i++) {
        bool of_train = i >= facts->train_row;
        cgam_example e =
            of_train ? facts->train->example[i - facts->train_row] : facts->eval->example[i];
        list[i] = (named){e.text, i};
        facts->said[i].word = facts->word[e.label + (of_train ? facts->train_word : 0)];
        if (of_train) facts->weight[e.label]++;
    }
    number_texts(facts->rows, list, facts->text);
    for (int64_t i = 0; i < facts->rows; i++) facts->said[i].text = facts->text[i];
    qsort(facts->said, (size_t)facts->rows, sizeof *facts->said, by_pair);
}

/* Reads both sets once; they are borrowed. train may be eval. Gives *out; facts_free. */
static cgam_status facts_new(cgam_env *env, const cgam_dataset *eval, const cgam_dataset *train,
                             cgam_facts **out)
{
    *out = NULL;
    cgam_facts *facts = cgam_zalloc(env, 1, sizeof *facts);
    if (!facts) return cgam_fail_nomem(env, "facts");
    facts->env = env;
    facts->eval = eval;
    facts->train = train;
    facts->train_row = train == eval ? 0 : eval->examples;
    facts->train_word = train == eval ? 0 : eval->labels;
    facts->rows = facts->train_row + train->examples;
    facts->words = facts->train_word + train->labels;
    size_t rows = (size_t)facts->rows, words = (size_t)facts->words;
    named *list;
    cgam_status status =
        cgam_alloc_all(env, "facts", CGAM_ARRAY(list, rows > words ? rows : words),
                       CGAM_ARRAY(facts->text, rows), CGAM_ARRAY(facts->said, rows),
                       CGAM_ARRAY(facts->word, words), CGAM_ZEROS(facts->weight, train->labels));
    if (status == CGAM_OK) read_sets(facts, list);
    cgam_free(env, list);
    if (status == CGAM_OK) *out = facts;
    else facts_free(facts);
    return status;
}

/* The number of an example's text: the same for all that are spellings of one another, in both sets.
 * Below cgam_facts_texts. */
static int64_t text_number(const cgam_facts *facts, bool of_train, int64_t example)
{
    return facts->text[example + (of_train ? facts->train_row : 0)];
}

/* ---- Objects ------------------------------------------------------------------------------ */
/* Is word number `word` an object of the query's subject or of the demonstration's? */
static bool is_own_word(const cgam_facts *facts, int64_t query, int64_t demo, int64_t word)
{
    const said_pair of_query = {text_number(facts, false, query), word};
    const said_pair of_demo = {text_number(facts, true, demo), word};
    size_t rows = (size_t)facts->rows, size = sizeof *facts->said;
    return bsearch(&of_query, facts->said, rows, size, by_pair) ||
           bsearch(&of_demo, facts->said, rows, size, by_pair);
}

/* Is the word an object, anywhere in either set, of the query's subject or of the demonstration's? */
static bool is_own_object(const cgam_facts *facts, int64_t query, int64_t demo, const char *word)
{
    for (int64_t i = 0; i < facts->words; i++)
        if (compare_texts(word, word_at(facts, i)) == 0)
            return is_own_word(facts, query, demo, facts->word[i]);
    return false;
}

/* Draws a label of train that belongs to neither, in proportion to its frequency. False: there is none. Takes one
 * number of rng whatever it finds. */
static bool draw_wrong_label(const cgam_facts *facts, int64_t query, int64_t demo, cgam_rng *rng,
                             int64_t *label)
{
    int64_t labels = facts->train->labels, total = 0;
    const int64_t *word = facts->word + facts->train_word;
    for (int64_t k = 0; k < labels; k++)
        if (!is_own_word(facts, query, demo, word[k])) total += facts->weight[k];
    int64_t at = cgam_rng_below(rng, total > 0 ? total : 1);
    for (int64_t k = 0; k < labels && total > 0; k++) {
        if (is_own_word(facts, query, demo, word[k])) continue;
        at -= facts->weight[k];
        if (at >= 0) continue;
        *label = k;
        return true;
    }
    return false;
}

/* ---- Prompts --------------------------------------------------------------------------------- */
enum { SHOTS_MAX = 1024 };

/* Random streams; to those of demonstrations and wrong objects a rank is added, to that of orders
 * rank (SHOTS_MAX + 1) + k. */
static const uint64_t STREAM_QUERIES = 0, STREAM_DEMOS = 1, STREAM_ORDER = UINT64_C(1) << 60,
                      STREAM_WRONG = UINT64_C(1) << 61;

CGAM_NAMES(cgam_demos, cgam_demos, "true", "flipped", "foreign")
CGAM_NAMES(cgam_order, cgam_order, "balanced", "cycled")

cgam_prompts_opts cgam_prompts_opts_default(void)
{
    return (cgam_prompts_opts){.queries = 200, .shots_max = 8, .seed = 1};
}

void cgam_prompts_free(cgam_prompts *prompts)
{
    if (!prompts) return;
    cgam_env *env = prompts->env;
    cgam_dataset_close(prompts->foreign);
    facts_free(prompts->facts);
    cgam_free_all(env, prompts->query, prompts->rank, prompts->pool, prompts->class_first,
                  prompts->demo, prompts->head, prompts->cue, prompts->gap, prompts->tail, prompts);
}

/* Removes blanks at the end of the cue: the prompt stops at the colon, and the answer starts with the
 * blanks, if there are any. {x} and {y} must occur once each; any other {name} is an error. */
static cgam_status cut_template(cgam_prompts *prompts, const char *template)
{
    const char *x = strstr(template, "{x}"), *y = x ? strstr(x, "{y}") : NULL;
    if (!y)
        return cgam_fail(prompts->env, CGAM_E_ARG,
                         "template '%.80s': must contain {x} and, after it, {y}", template);
    for (const char *at = template; (at = strchr(at, '{')); at++) {
        size_t name =
            strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        if (name > 0 && at[name + 1] == '}' && at != x && at != y)
            return cgam_fail(prompts->env, CGAM_E_ARG, "template '%.80s': %.*s occurs twice",
                             template, (int)(name + 2 < 40 ? name + 2 : 40), at);
    }
    size_t between = (size_t)(y - x) - 3;
    while (between > 0 && x[3 + between - 1] == ' ') between--;
    prompts->head = cgam_strndup(prompts->env, template, (size_t)(x - template));
    prompts->cue = cgam_strndup(prompts->env, x + 3, between);
    prompts->gap = cgam_strndup(prompts->env, x + 3 + between, (size_t)(y - x) - 3 - between);
    prompts->tail = cgam_strndup(prompts->env, y + 3, strlen(y + 3));
    return prompts->head && prompts->cue && prompts->gap && prompts->tail
               ? CGAM_OK
               : cgam_fail_nomem(prompts->env, "a template");
}

static void shuffle(cgam_rng *rng, int64_t *list, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = cgam_rng_below(rng, i + 1), held = list[i];
        list[i] = list[j];
        list[j] = held;
    }
}

/* How many texts there are to ask. */
static int64_t count_distinct(const cgam_prompts *prompts)
{
    int64_t n = prompts->eval->examples, count = 0;
    /* a text's number is that of its first spelling */
    for (int64_t i = 0; i < n; i++) count += text_number(prompts->facts, false, i) == i;
    return count;
}

/* Halves are the even and the odd queries. Sorted by label, labels in order of first occurrence, the queries are
 * assigned to the halves in turn, so that a label's counts in the halves differ by at most one; within a half they
 * keep the order drawn. order [queries]: examples of eval in the order drawn. */
static cgam_status split_in_halves(cgam_prompts *prompts, const int64_t *order)
{
    cgam_env *env = prompts->env;
    int64_t labels = prompts->eval->labels, n = prompts->queries;
    int64_t *next = cgam_zalloc(env, 2 * (size_t)labels, sizeof *next), at = 0, place[2] = {0, 1};
    if (!next) return cgam_fail_nomem(env, "halves");
    int64_t *count = next + labels;
    for (int64_t i = 0; i < n; i++) count[prompts->eval->example[order[i]].label]++;
    for (int64_t i = 0; i < n; i++) { /* where each label's row of queries begins */
        int64_t label = prompts->eval->example[order[i]].label;
        if (count[label] == 0) continue;
        next[label] = at;
        at += count[label];
        count[label] = 0;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t half = next[prompts->eval->example[order[i]].label]++ % 2;
        prompts->query[place[half]] = order[i];
        prompts->rank[place[half]] = i;
        place[half] += 2;
    }
    cgam_free(env, next);
    return CGAM_OK;
}

/* The pool, by class: the examples of train whose text is not a query. */
static cgam_status fill_pool(cgam_prompts *prompts, const bool *asked)
{
    int64_t classes = prompts->rounds, used = 0, m = prompts->train->examples;
    int64_t needed = (prompts->shots_max + classes - 1) / classes;
    cgam_status status = CGAM_OK;
    for (int64_t c = 0; c < classes; c++) {
        prompts->class_first[c] = used;
        for (int64_t i = 0; i < m; i++)
            if (!asked[text_number(prompts->facts, true, i)] &&
                (classes == 1 || prompts->train->example[i].label == c))
                prompts->pool[used++] = i;
        int64_t there = used - prompts->class_first[c];
        if (there < needed && status == CGAM_OK)
            status = cgam_fail(prompts->env, CGAM_E_ARG,
                               "label %s has %lld examples for demonstrations, %lld are needed",
                               classes > 1 ? prompts->train->label[c].word : "any",
                               (long long)there, (long long)needed);
    }
    prompts->class_first[classes] = used;
    return status;
}

/* Queries: the first of a shuffled eval, each text once. */
static cgam_status choose_queries(cgam_prompts *prompts, int64_t wanted, bool apart)
{
    cgam_env *env = prompts->env;
    int64_t n = prompts->eval->examples, m = prompts->train->examples;
    int64_t classes = prompts->rounds,
            held = apart ? 0 : prompts->shots_max * (classes > 1 ? 2 : 1);
    int64_t most = count_distinct(prompts) - held;
    if (most < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "%lld examples are too few for queries and %lld demonstrations",
                         (long long)n, (long long)prompts->shots_max);
    prompts->queries = wanted < most ? wanted : most;
    int64_t *order;
    bool *asked;
    cgam_status status = cgam_alloc_all(
        env, "prompts", CGAM_ARRAY(order, n), CGAM_ZEROS(asked, prompts->facts->rows),
        CGAM_ARRAY(prompts->query, prompts->queries), CGAM_ARRAY(prompts->rank, prompts->queries),
        CGAM_ARRAY(prompts->pool, m), CGAM_ZEROS(prompts->class_first, classes + 1));
    if (status == CGAM_OK) {
        cgam_rng rng = cgam_rng_stream(prompts->seed, STREAM_QUERIES);
        for (int64_t i = 0; i < n; i++) order[i] = i;
        shuffle(&rng, order, n);
        for (int64_t i = 0, used = 0; used < prompts->queries; i++) {
            int64_t text = text_number(prompts->facts, false, order[i]);
            if (!asked[text]) order[used++] = order[i];
            asked[text] = true;
        }
        status = split_in_halves(prompts, order);
    }
    if (status == CGAM_OK) status = fill_pool(prompts, asked);
    cgam_free_all(env, order, asked);
    return status;
}

/* The number of a query's sheet of demonstrations in random streams. */
static uint64_t sheet_of(const cgam_prompts *prompts, int64_t query)
{
    return prompts->shared ? 0 : (uint64_t)prompts->rank[query];
}

/* The demonstrations of query i, the last ones first, into demo [shots_max]. */
static cgam_status draw_demos(cgam_prompts *prompts, int64_t i)
{
    cgam_rng rng = cgam_rng_stream(prompts->seed, STREAM_DEMOS + sheet_of(prompts, i));
    int64_t *demo = prompts->demo + i * prompts->shots_max, classes = prompts->rounds;
    int64_t *cycle = cgam_alloc(prompts->env, (size_t)classes, sizeof *cycle);
    if (!cycle) return cgam_fail_nomem(prompts->env, "prompts");
    for (int64_t c = 0; c < classes; c++) cycle[c] = c;
    for (int64_t k = 0; k < prompts->shots_max; k++) {
        if (k % classes == 0) shuffle(&rng, cycle, classes);
        int64_t c = cycle[k % classes], first = prompts->class_first[c];
        int64_t size = prompts->class_first[c + 1] - first;
        for (bool fresh = false; !fresh;) { /* the pool has enough, so this ends */
            demo[k] = prompts->pool[first + cgam_rng_below(&rng, size)];
            fresh = true;
            for (int64_t j = 0; j < k; j++) fresh = fresh && demo[j] != demo[k];
        }
    }
    cgam_free(prompts->env, cycle);
    return CGAM_OK;
}

/* Objects of another relation: languages, or capitals where more than a few of the labels are
 * languages themselves. */
static cgam_status open_foreign(cgam_prompts *prompts)
{
    cgam_status status = cgam_dataset_shipped(prompts->env, "languages", NULL, &prompts->foreign);
    if (status != CGAM_OK) return status;
    int64_t n = prompts->train->labels, hits = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < prompts->foreign->labels; k++)
            hits += strcmp(prompts->train->label[i].word, prompts->foreign->label[k].word) == 0;
    if (10 * hits <= n) return CGAM_OK;
    cgam_dataset_close(prompts->foreign);
    return cgam_dataset_shipped(prompts->env, "facts", NULL, &prompts->foreign);
}

static cgam_status same_labels(cgam_env *env, const cgam_dataset *a, const cgam_dataset *b)
{
    if (a->facts && b->facts) return CGAM_OK;
    bool same = a->labels == b->labels;
    for (int64_t i = 0; same && i < a->labels; i++)
        same = strcmp(a->label[i].word, b->label[i].word) == 0;
    return same ? CGAM_OK
                : cgam_fail(env, CGAM_E_ARG,
                            "queries and demonstrations have different labels; map them with "
                            "labels");
}

cgam_status cgam_prompts_new(cgam_env *env, const cgam_dataset *eval, const cgam_dataset *train,
                             const cgam_prompts_opts *opts, cgam_prompts **out)
{
    *out = NULL;
    cgam_prompts_opts o = opts ? *opts : cgam_prompts_opts_default();
    if (o.queries < 1 || o.shots_max < 0 || o.shots_max > SHOTS_MAX)
        return cgam_fail(
            env, CGAM_E_ARG,
            "the number of queries must be at least 1, and of demonstrations from 0 to %d; not %lld and %lld",
            SHOTS_MAX, (long long)o.queries, (long long)o.shots_max);
    cgam_prompts *prompts = cgam_zalloc(env, 1, sizeof *prompts);
    if (!prompts) return cgam_fail_nomem(env, "prompts");
    prompts->env = env;
    prompts->eval = eval;
    prompts->train = train ? train : eval;
    prompts->shots_max = o.shots_max;
    prompts->shared = o.shared;
    prompts->order = o.order;
    prompts->seed = o.seed;
    prompts->rounds = eval->facts ? 1 : eval->labels;
    cgam_status status = cut_template(prompts, o.wording ? o.wording : eval->template);
    if (status == CGAM_OK) status = same_labels(env, eval, prompts->train);
    if (status == CGAM_OK && o.shots_max > 0) status = open_foreign(prompts);
    if (status == CGAM_OK) status = facts_new(env, eval, prompts->train, &prompts->facts);
    if (status == CGAM_OK) status = choose_queries(prompts, o.queries, train != NULL);
    int64_t sheets = o.shared ? 1 : prompts->queries;
    if (status == CGAM_OK) {
        prompts->demo = cgam_alloc(env, (size_t)(sheets * o.shots_max), sizeof *prompts->demo);
        if (!prompts->demo) status = cgam_fail_nomem(env, "prompts");
    }
    for (int64_t i = 0; i < sheets && status == CGAM_OK; i++) status = draw_demos(prompts, i);
    if (status == CGAM_OK) *out = prompts;
    else cgam_prompts_free(prompts);
    return status;
}

int64_t cgam_prompts_label(const cgam_prompts *prompts, int64_t query)
{
    return prompts->eval->example[prompts->query[query]].label;
}

/* The k demonstrations of a query, the last ones first. */
static void order_demos(const cgam_prompts *prompts, int64_t query, int64_t k, int64_t *demo)
{
    const int64_t *drawn = prompts->demo + (prompts->shared ? 0 : query) * prompts->shots_max;
    for (int64_t j = 0; j < k; j++) demo[j] = drawn[j];
    if (prompts->order != CGAM_ORDER_BALANCED || prompts->rounds == 1) return;
    cgam_rng rng = cgam_rng_stream(
        prompts->seed, STREAM_ORDER + sheet_of(prompts, query) * (SHOTS_MAX + 1) + (uint64_t)k);
    shuffle(&rng, demo, k);
}

/* An object of another relation, neither the query's nor the demonstration's. */
static const char *foreign_word(const cgam_prompts *prompts, int64_t query, int64_t demo, int64_t j)
{
    int64_t n = prompts->foreign->labels;
    for (int64_t i = 0; i < n; i++) {
        const char *word = prompts->foreign->label[(demo + j + i) % n].word;
        if (!is_own_object(prompts->facts, prompts->query[query], demo, word)) return word;
    }
    return NULL;
}

/* The words that demonstrations show, [k]. Wrong objects are drawn one after the other, so a
 * demonstration shows the same one for every k. */
static cgam_status choose_words(const cgam_prompts *prompts, int64_t query, int64_t k,
                                cgam_demos demos, const int64_t *demo, const char **words)
{
    cgam_rng rng = cgam_rng_stream(prompts->seed, STREAM_WRONG + sheet_of(prompts, query));
    bool facts = prompts->eval->facts;
    for (int64_t j = 0; j < k; j++) {
        cgam_example e = prompts->train->example[demo[j]];
        int64_t label = e.label;
        words[j] = NULL;
        if (demos == CGAM_DEMOS_FLIPPED && !facts) label = (label + 1) % prompts->rounds;
        if (demos == CGAM_DEMOS_FLIPPED && facts &&
            !draw_wrong_label(prompts->facts, prompts->query[query], demo[j], &rng, &label))
            label = -1;
        if (demos == CGAM_DEMOS_FOREIGN) words[j] = foreign_word(prompts, query, demo[j], j);
        else if (label >= 0) words[j] = prompts->train->label[label].word;
        if (!words[j])
            return cgam_fail(
                prompts->env, CGAM_E_ARG,
                "no wrong object for '%.60s': all are its own or those of the query '%.60s'",
                e.text, prompts->eval->example[prompts->query[query]].text);
    }
    return CGAM_OK;
}

static cgam_status choose_demos(const cgam_prompts *prompts, int64_t query, int64_t k,
                                cgam_demos demos, int64_t *demo, const char **words)
{
    if (query < 0 || query >= prompts->queries || k < 0 || k > prompts->shots_max)
        return cgam_fail(prompts->env, CGAM_E_ARG,
                         "invalid query %lld (there are %lld) or shots %lld (at most %lld)",
                         (long long)query, (long long)prompts->queries, (long long)k,
                         (long long)prompts->shots_max);
    order_demos(prompts, query, k, demo);
    return choose_words(prompts, query, k, demos, demo, words);
}

/* Head, text and cue, as one. */
static char *question_text(const cgam_prompts *prompts, const char *text)
{
    size_t size = strlen(prompts->head) + strlen(text) + strlen(prompts->cue) + 1;
    char *out = cgam_alloc(prompts->env, size, 1);
    if (out) snprintf(out, size, "%s%s%s", prompts->head, text, prompts->cue);
    return out;
}

cgam_status cgam_prompts_turns(const cgam_prompts *prompts, int64_t query, int64_t k,
                               cgam_demos demos, char **out)
{
    int64_t demo[SHOTS_MAX];
    const char *words[SHOTS_MAX];
    for (int64_t i = 0; i < 2 * k + 1; i++) out[i] = NULL;
    cgam_status status = choose_demos(prompts, query, k, demos, demo, words);
    if (status != CGAM_OK) return status;
    bool fine = true;
    for (int64_t j = 0; j < k && fine; j++) { /* the last ones are drawn first */
        char **turn = out + 2 * (k - 1 - j);
        turn[0] = question_text(prompts, prompts->train->example[demo[j]].text);
        turn[1] = cgam_strdup(prompts->env, words[j]);
        fine = turn[0] && turn[1];
    }
    if (fine)
        out[2 * k] = question_text(prompts, prompts->eval->example[prompts->query[query]].text);
    return out[2 * k] ? CGAM_OK : cgam_fail_nomem(prompts->env, "a prompt");
}

cgam_status cgam_prompts_text(const cgam_prompts *prompts, int64_t query, int64_t k,
                              cgam_demos demos, char **out)
{
    int64_t demo[SHOTS_MAX];
    const char *words[SHOTS_MAX];
    *out = NULL;
    cgam_status status = choose_demos(prompts, query, k, demos, demo, words);
    if (status != CGAM_OK) return status;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return cgam_fail_nomem(prompts->env, "a prompt");
    for (int64_t j = k - 1; j >= 0; j--)
        fprintf(f, "%s%s%s%s%s%s", prompts->head, prompts->train->example[demo[j]].text,
                prompts->cue, prompts->gap, words[j], prompts->tail);
    fprintf(f, "%s%s%s", prompts->head, prompts->eval->example[prompts->query[query]].text,
            prompts->cue);
    bool fine = !ferror(f);
    fine = fclose(f) == 0 && fine;
    /* The stream's memory belongs to the C library; a copy of ours is returned. */
    if (fine) *out = cgam_strdup(prompts->env, text);
    free(text);
    return *out ? CGAM_OK : cgam_fail_nomem(prompts->env, "a prompt");
}
