/* quiz.c: queries, their demonstrations, and the prompts made of them.
 *
 * Demonstrations are drawn without replacement. With few labels the classes are cycled in an order
 * drawn anew for each round, so that they balance as far as k allows; with many (facts) examples are
 * drawn from all. Query i has a random stream of its own, so a prompt can be made again alone. */
#include "lm/dataset.h"

#include <cgam/rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cgam_quiz {
    cgam_env *env;
    const cgam_dataset *eval, *train;
    int64_t queries, shots_max, rounds; /* rounds: classes in a cycle; 1 for facts */
    int64_t *query;                     /* [queries] examples of eval */
    int64_t *pool, *class_first;        /* examples of train by class, and where each begins */
    int64_t *demo;                      /* [queries or 1, shots_max] examples of train */
    bool shared, languages;             /* languages: what the labels are */
    char *head, *cue, *tail;            /* the template: before {x}, between, after {y} */
    uint64_t seed;
};

enum { STREAM_QUERIES = 0, STREAM_DEMOS = 1 };

cgam_quiz_opts cgam_quiz_opts_default(void)
{
    return (cgam_quiz_opts){.queries = 200, .shots_max = 8, .seed = 1};
}

void cgam_quiz_free(cgam_quiz *quiz)
{
    if (!quiz) return;
    cgam_env *env = quiz->env;
    void *blocks[] = {quiz->query, quiz->pool, quiz->class_first, quiz->demo,
                      quiz->head,  quiz->cue,  quiz->tail};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    cgam_free(env, quiz);
}

static char *piece(cgam_env *env, const char *begin, size_t length)
{
    char *copy = cgam_alloc(env, length + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, begin, length);
    copy[length] = '\0';
    return copy;
}

/* The cue loses its blanks at the end: the prompt stops at the colon, and the answer brings the
 * blank along. */
static cgam_status cut_template(cgam_quiz *quiz, const char *template)
{
    const char *x = strstr(template, "{x}"), *y = x ? strstr(x, "{y}") : NULL;
    if (!y)
        return cgam_fail(quiz->env, CGAM_E_ARG, "template '%.80s': {x} and after it {y} are needed",
                         template);
    size_t between = (size_t)(y - x) - 3;
    while (between > 0 && x[3 + between - 1] == ' ') between--;
    quiz->head = piece(quiz->env, template, (size_t)(x - template));
    quiz->cue = piece(quiz->env, x + 3, between);
    quiz->tail = piece(quiz->env, y + 3, strlen(y + 3));
    return quiz->head && quiz->cue && quiz->tail ? CGAM_OK
                                                 : cgam_fail_nomem(quiz->env, "a template");
}

static void shuffle(cgam_rng *rng, int64_t *list, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = cgam_rng_below(rng, i + 1), held = list[i];
        list[i] = list[j];
        list[j] = held;
    }
}

/* Queries: the first of a shuffled eval. Pool: the rest of it, or all of train; by class. */
static cgam_status choose(cgam_quiz *quiz, int64_t wanted, bool apart)
{
    cgam_env *env = quiz->env;
    int64_t n = cgam_dataset_size(quiz->eval), m = cgam_dataset_size(quiz->train);
    int64_t classes = quiz->rounds, held = apart ? 0 : quiz->shots_max * (classes > 1 ? 2 : 1);
    int64_t most = n - held;
    if (most < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "%lld examples are too few for queries and %lld demonstrations",
                         (long long)n, (long long)quiz->shots_max);
    quiz->queries = wanted < most ? wanted : most;
    int64_t *order = cgam_alloc(env, (size_t)n, sizeof *order);
    bool *taken = cgam_zalloc(env, (size_t)m, sizeof *taken);
    quiz->query = cgam_alloc(env, (size_t)quiz->queries, sizeof *quiz->query);
    quiz->pool = cgam_alloc(env, (size_t)m, sizeof *quiz->pool);
    quiz->class_first = cgam_zalloc(env, (size_t)classes + 1, sizeof *quiz->class_first);
    cgam_status status = CGAM_OK;
    if (!order || !taken || !quiz->query || !quiz->pool || !quiz->class_first)
        status = cgam_fail_nomem(env, "a quiz");
    if (status == CGAM_OK) {
        cgam_rng rng = cgam_rng_stream(quiz->seed, STREAM_QUERIES);
        for (int64_t i = 0; i < n; i++) order[i] = i;
        shuffle(&rng, order, n);
        memcpy(quiz->query, order, (size_t)quiz->queries * sizeof *order);
        for (int64_t i = 0; i < quiz->queries && !apart; i++) taken[order[i]] = true;
        int64_t used = 0;
        for (int64_t c = 0; c < classes; c++) {
            quiz->class_first[c] = used;
            for (int64_t i = 0; i < m; i++)
                if (!taken[i] && (classes == 1 || cgam_dataset_example(quiz->train, i).label == c))
                    quiz->pool[used++] = i;
            int64_t there = used - quiz->class_first[c];
            int64_t needed = (quiz->shots_max + classes - 1) / classes;
            if (there < needed && status == CGAM_OK)
                status = cgam_fail(env, CGAM_E_ARG,
                                   "label %s has %lld examples to demonstrate it, %lld are needed",
                                   classes > 1 ? cgam_dataset_word(quiz->train, c) : "any",
                                   (long long)there, (long long)needed);
        }
        quiz->class_first[classes] = used;
    }
    cgam_free(env, order);
    cgam_free(env, taken);
    return status;
}

/* The demonstrations of query i, the last ones first, into demo [shots_max]. */
static cgam_status draw(cgam_quiz *quiz, int64_t i)
{
    cgam_rng rng = cgam_rng_stream(quiz->seed, STREAM_DEMOS + (uint64_t)i);
    int64_t *demo = quiz->demo + i * quiz->shots_max, classes = quiz->rounds;
    int64_t *cycle = cgam_alloc(quiz->env, (size_t)classes, sizeof *cycle);
    if (!cycle) return cgam_fail_nomem(quiz->env, "a quiz");
    for (int64_t c = 0; c < classes; c++) cycle[c] = c;
    for (int64_t k = 0; k < quiz->shots_max; k++) {
        if (k % classes == 0) shuffle(&rng, cycle, classes);
        int64_t c = cycle[k % classes], first = quiz->class_first[c];
        int64_t size = quiz->class_first[c + 1] - first;
        for (bool fresh = false; !fresh;) { /* the pool has enough, so this ends */
            demo[k] = quiz->pool[first + cgam_rng_below(&rng, size)];
            fresh = true;
            for (int64_t j = 0; j < k; j++) fresh = fresh && demo[j] != demo[k];
        }
    }
    cgam_free(quiz->env, cycle);
    return CGAM_OK;
}

/* Are more than a few of the labels names of languages? */
static bool are_languages(const cgam_dataset *set)
{
    int64_t n = cgam_dataset_labels(set), hits = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; cgam_shipped_languages[k]; k++)
            hits += strcmp(cgam_dataset_word(set, i), cgam_shipped_languages[k]) == 0;
    return 10 * hits > n;
}

static cgam_status same_labels(cgam_env *env, const cgam_dataset *a, const cgam_dataset *b)
{
    if (cgam_dataset_open_ended(a) && cgam_dataset_open_ended(b)) return CGAM_OK;
    bool same = cgam_dataset_labels(a) == cgam_dataset_labels(b);
    for (int64_t i = 0; same && i < cgam_dataset_labels(a); i++)
        same = strcmp(cgam_dataset_word(a, i), cgam_dataset_word(b, i)) == 0;
    return same ? CGAM_OK
                : cgam_fail(env, CGAM_E_ARG,
                            "queries and demonstrations have other labels; name them with labels");
}

cgam_status cgam_quiz_new(cgam_env *env, const cgam_dataset *eval, const cgam_dataset *train,
                          const cgam_quiz_opts *opts, cgam_quiz **out)
{
    enum { SHOTS_MAX = 1024 };
    *out = NULL;
    cgam_quiz_opts o = opts ? *opts : cgam_quiz_opts_default();
    if (o.queries < 1 || o.shots_max < 0 || o.shots_max > SHOTS_MAX)
        return cgam_fail(env, CGAM_E_ARG, "%lld queries with up to %lld demonstrations",
                         (long long)o.queries, (long long)o.shots_max);
    cgam_quiz *quiz = cgam_zalloc(env, 1, sizeof *quiz);
    if (!quiz) return cgam_fail_nomem(env, "a quiz");
    quiz->env = env;
    quiz->eval = eval;
    quiz->train = train ? train : eval;
    quiz->shots_max = o.shots_max;
    quiz->shared = o.shared;
    quiz->languages = are_languages(quiz->train);
    quiz->seed = o.seed;
    quiz->rounds = cgam_dataset_open_ended(eval) ? 1 : cgam_dataset_labels(eval);
    cgam_status status = same_labels(env, eval, quiz->train);
    if (status == CGAM_OK)
        status = cut_template(quiz, o.wording ? o.wording : cgam_dataset_template(eval));
    if (status == CGAM_OK) status = choose(quiz, o.queries, train != NULL);
    int64_t sheets = o.shared ? 1 : quiz->queries;
    if (status == CGAM_OK) {
        quiz->demo = cgam_alloc(env, (size_t)(sheets * o.shots_max), sizeof *quiz->demo);
        if (!quiz->demo) status = cgam_fail_nomem(env, "a quiz");
    }
    for (int64_t i = 0; i < sheets && status == CGAM_OK; i++) status = draw(quiz, i);
    if (status == CGAM_OK) *out = quiz;
    else cgam_quiz_free(quiz);
    return status;
}

int64_t cgam_quiz_queries(const cgam_quiz *quiz) { return quiz->queries; }

int64_t cgam_quiz_label(const cgam_quiz *quiz, int64_t query)
{
    return cgam_dataset_example(quiz->eval, quiz->query[query]).label;
}

const cgam_dataset *cgam_quiz_set(const cgam_quiz *quiz) { return quiz->eval; }

const char *cgam_quiz_cue(const cgam_quiz *quiz) { return quiz->cue; }

/* Of another relation: a language, or a capital where the labels are languages themselves. */
static const char *foreign_word(const cgam_quiz *quiz, int64_t which)
{
    int64_t languages = 1, capitals = 1; /* neither table is empty */
    while (cgam_shipped_languages[languages]) languages++;
    while (cgam_shipped_facts[capitals][0]) capitals++;
    return quiz->languages ? cgam_shipped_facts[which % capitals][1]
                           : cgam_shipped_languages[which % languages];
}

/* The word a demonstration shows. Facts are flipped among the demonstrations at hand. */
static const char *shown_word(const cgam_quiz *quiz, cgam_demos demos, const int64_t *demo,
                              int64_t j, int64_t k)
{
    int64_t label = cgam_dataset_example(quiz->train, demo[j]).label;
    if (demos == CGAM_DEMOS_FOREIGN) return foreign_word(quiz, demo[j] + j);
    if (demos == CGAM_DEMOS_FLIPPED)
        label = quiz->rounds > 1 ? (label + 1) % quiz->rounds
                                 : cgam_dataset_example(quiz->train, demo[(j + 1) % k]).label;
    return cgam_dataset_word(quiz->train, label);
}

cgam_status cgam_quiz_prompt(const cgam_quiz *quiz, int64_t query, int64_t k, cgam_demos demos,
                             char **out)
{
    *out = NULL;
    if (query < 0 || query >= quiz->queries || k < 0 || k > quiz->shots_max)
        return cgam_fail(quiz->env, CGAM_E_ARG, "query %lld of %lld with %lld of %lld shots",
                         (long long)query, (long long)quiz->queries, (long long)k,
                         (long long)quiz->shots_max);
    const int64_t *demo = quiz->demo + (quiz->shared ? 0 : query) * quiz->shots_max;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return cgam_fail_nomem(quiz->env, "a prompt");
    for (int64_t j = k - 1; j >= 0; j--) {
        fprintf(f, "%s%s%s %s%s", quiz->head, cgam_dataset_example(quiz->train, demo[j]).text,
                quiz->cue, shown_word(quiz, demos, demo, j, k), quiz->tail);
    }
    fprintf(f, "%s%s%s", quiz->head, cgam_dataset_example(quiz->eval, quiz->query[query]).text,
            quiz->cue);
    bool fine = !ferror(f);
    fine = fclose(f) == 0 && fine;
    /* The stream's memory is the C library's; ours is handed out. */
    if (fine) *out = cgam_strdup(quiz->env, text);
    free(text);
    return *out ? CGAM_OK : cgam_fail_nomem(quiz->env, "a prompt");
}

void cgam_quiz_release(const cgam_quiz *quiz, char *prompt) { cgam_free(quiz->env, prompt); }
