/* prompts.c: queries, their demonstrations, and the prompts made of them.
 *
 * Demonstrations are drawn without replacement. With few labels the classes are cycled in an order
 * drawn anew for each round, so that they balance as far as k allows; with many (facts) examples are
 * drawn from all. Query i has a random stream of its own, so a prompt can be made again alone. */
#include "base/names.h"
#include "lm/dataset.h"

#include <cgam/rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cgam_prompts {
    cgam_env *env;
    const cgam_dataset *eval, *train;
    int64_t queries, shots_max, rounds; /* rounds: classes in a cycle; 1 for facts */
    int64_t *query;                     /* [queries] examples of eval */
    int64_t *pool, *class_first;        /* examples of train by class, and where each begins */
    int64_t *demo;                      /* [queries or 1, shots_max] examples of train */
    bool shared;
    cgam_dataset *foreign;   /* its labels are the objects of another relation */
    char *head, *cue, *tail; /* the template: before {x}, between, after {y} */
    uint64_t seed;
};

enum { STREAM_QUERIES = 0, STREAM_DEMOS = 1 };

CGAM_NAMES(cgam_demos, cgam_demos, "true", "flipped", "foreign")

cgam_prompts_opts cgam_prompts_opts_default(void)
{
    return (cgam_prompts_opts){.queries = 200, .shots_max = 8, .seed = 1};
}

void cgam_prompts_free(cgam_prompts *prompts)
{
    if (!prompts) return;
    cgam_env *env = prompts->env;
    cgam_dataset_close(prompts->foreign);
    void *blocks[] = {prompts->query, prompts->pool, prompts->class_first, prompts->demo,
                      prompts->head,  prompts->cue,  prompts->tail};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    cgam_free(env, prompts);
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
 * blank along. {x} and {y} stand once each; another {name} is a slip. */
static cgam_status cut_template(cgam_prompts *prompts, const char *template)
{
    const char *x = strstr(template, "{x}"), *y = x ? strstr(x, "{y}") : NULL;
    if (!y)
        return cgam_fail(prompts->env, CGAM_E_ARG,
                         "template '%.80s': {x} and after it {y} are needed", template);
    for (const char *at = template; (at = strchr(at, '{')); at++) {
        size_t name =
            strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        if (name > 0 && at[name + 1] == '}' && at != x && at != y)
            return cgam_fail(prompts->env, CGAM_E_ARG,
                             "template '%.80s': %.*s is one too many, {x} and {y} are put in once",
                             template, (int)(name + 2 < 40 ? name + 2 : 40), at);
    }
    size_t between = (size_t)(y - x) - 3;
    while (between > 0 && x[3 + between - 1] == ' ') between--;
    prompts->head = piece(prompts->env, template, (size_t)(x - template));
    prompts->cue = piece(prompts->env, x + 3, between);
    prompts->tail = piece(prompts->env, y + 3, strlen(y + 3));
    return prompts->head && prompts->cue && prompts->tail
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

/* Queries: the first of a shuffled eval. Pool: the rest of it, or all of train; by class. */
static cgam_status choose(cgam_prompts *prompts, int64_t wanted, bool apart)
{
    cgam_env *env = prompts->env;
    int64_t n = cgam_dataset_size(prompts->eval), m = cgam_dataset_size(prompts->train);
    int64_t classes = prompts->rounds,
            held = apart ? 0 : prompts->shots_max * (classes > 1 ? 2 : 1);
    int64_t most = n - held;
    if (most < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "%lld examples are too few for queries and %lld demonstrations",
                         (long long)n, (long long)prompts->shots_max);
    prompts->queries = wanted < most ? wanted : most;
    int64_t *order = cgam_alloc(env, (size_t)n, sizeof *order);
    bool *taken = cgam_zalloc(env, (size_t)m, sizeof *taken);
    prompts->query = cgam_alloc(env, (size_t)prompts->queries, sizeof *prompts->query);
    prompts->pool = cgam_alloc(env, (size_t)m, sizeof *prompts->pool);
    prompts->class_first = cgam_zalloc(env, (size_t)classes + 1, sizeof *prompts->class_first);
    cgam_status status = CGAM_OK;
    if (!order || !taken || !prompts->query || !prompts->pool || !prompts->class_first)
        status = cgam_fail_nomem(env, "prompts");
    if (status == CGAM_OK) {
        cgam_rng rng = cgam_rng_stream(prompts->seed, STREAM_QUERIES);
        for (int64_t i = 0; i < n; i++) order[i] = i;
        shuffle(&rng, order, n);
        memcpy(prompts->query, order, (size_t)prompts->queries * sizeof *order);
        for (int64_t i = 0; i < prompts->queries && !apart; i++) taken[order[i]] = true;
        int64_t used = 0;
        for (int64_t c = 0; c < classes; c++) {
            prompts->class_first[c] = used;
            for (int64_t i = 0; i < m; i++)
                if (!taken[i] &&
                    (classes == 1 || cgam_dataset_example(prompts->train, i).label == c))
                    prompts->pool[used++] = i;
            int64_t there = used - prompts->class_first[c];
            int64_t needed = (prompts->shots_max + classes - 1) / classes;
            if (there < needed && status == CGAM_OK)
                status = cgam_fail(env, CGAM_E_ARG,
                                   "label %s has %lld examples to demonstrate it, %lld are needed",
                                   classes > 1 ? cgam_dataset_word(prompts->train, c) : "any",
                                   (long long)there, (long long)needed);
        }
        prompts->class_first[classes] = used;
    }
    cgam_free(env, order);
    cgam_free(env, taken);
    return status;
}

/* The demonstrations of query i, the last ones first, into demo [shots_max]. */
static cgam_status draw(cgam_prompts *prompts, int64_t i)
{
    cgam_rng rng = cgam_rng_stream(prompts->seed, STREAM_DEMOS + (uint64_t)i);
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
    cgam_status status = cgam_dataset_shipped(prompts->env, "languages", &prompts->foreign);
    if (status != CGAM_OK) return status;
    int64_t n = cgam_dataset_labels(prompts->train), hits = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < cgam_dataset_labels(prompts->foreign); k++)
            hits += strcmp(cgam_dataset_word(prompts->train, i),
                           cgam_dataset_word(prompts->foreign, k)) == 0;
    if (10 * hits <= n) return CGAM_OK;
    cgam_dataset_close(prompts->foreign);
    return cgam_dataset_shipped(prompts->env, "facts", &prompts->foreign);
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

cgam_status cgam_prompts_new(cgam_env *env, const cgam_dataset *eval, const cgam_dataset *train,
                             const cgam_prompts_opts *opts, cgam_prompts **out)
{
    enum { SHOTS_MAX = 1024 };
    *out = NULL;
    cgam_prompts_opts o = opts ? *opts : cgam_prompts_opts_default();
    if (o.queries < 1 || o.shots_max < 0 || o.shots_max > SHOTS_MAX)
        return cgam_fail(env, CGAM_E_ARG, "%lld queries with up to %lld demonstrations",
                         (long long)o.queries, (long long)o.shots_max);
    cgam_prompts *prompts = cgam_zalloc(env, 1, sizeof *prompts);
    if (!prompts) return cgam_fail_nomem(env, "prompts");
    prompts->env = env;
    prompts->eval = eval;
    prompts->train = train ? train : eval;
    prompts->shots_max = o.shots_max;
    prompts->shared = o.shared;
    prompts->seed = o.seed;
    prompts->rounds = cgam_dataset_open_ended(eval) ? 1 : cgam_dataset_labels(eval);
    cgam_status status = same_labels(env, eval, prompts->train);
    if (status == CGAM_OK) status = open_foreign(prompts);
    if (status == CGAM_OK)
        status = cut_template(prompts, o.wording ? o.wording : cgam_dataset_template(eval));
    if (status == CGAM_OK) status = choose(prompts, o.queries, train != NULL);
    int64_t sheets = o.shared ? 1 : prompts->queries;
    if (status == CGAM_OK) {
        prompts->demo = cgam_alloc(env, (size_t)(sheets * o.shots_max), sizeof *prompts->demo);
        if (!prompts->demo) status = cgam_fail_nomem(env, "prompts");
    }
    for (int64_t i = 0; i < sheets && status == CGAM_OK; i++) status = draw(prompts, i);
    if (status == CGAM_OK) *out = prompts;
    else cgam_prompts_free(prompts);
    return status;
}

int64_t cgam_prompts_count(const cgam_prompts *prompts) { return prompts->queries; }

int64_t cgam_prompts_label(const cgam_prompts *prompts, int64_t query)
{
    return cgam_dataset_example(prompts->eval, prompts->query[query]).label;
}

const cgam_dataset *cgam_prompts_dataset(const cgam_prompts *prompts) { return prompts->eval; }

const char *cgam_prompts_cue(const cgam_prompts *prompts) { return prompts->cue; }

/* The word a demonstration shows. Facts are flipped among the demonstrations at hand. */
static const char *shown_word(const cgam_prompts *prompts, cgam_demos demos, const int64_t *demo,
                              int64_t j, int64_t k)
{
    int64_t label = cgam_dataset_example(prompts->train, demo[j]).label;
    if (demos == CGAM_DEMOS_FOREIGN)
        return cgam_dataset_word(prompts->foreign,
                                 (demo[j] + j) % cgam_dataset_labels(prompts->foreign));
    if (demos == CGAM_DEMOS_FLIPPED)
        label = prompts->rounds > 1 ? (label + 1) % prompts->rounds
                                    : cgam_dataset_example(prompts->train, demo[(j + 1) % k]).label;
    return cgam_dataset_word(prompts->train, label);
}

cgam_status cgam_prompts_text(const cgam_prompts *prompts, int64_t query, int64_t k,
                              cgam_demos demos, char **out)
{
    *out = NULL;
    if (query < 0 || query >= prompts->queries || k < 0 || k > prompts->shots_max)
        return cgam_fail(prompts->env, CGAM_E_ARG, "query %lld of %lld with %lld of %lld shots",
                         (long long)query, (long long)prompts->queries, (long long)k,
                         (long long)prompts->shots_max);
    const int64_t *demo = prompts->demo + (prompts->shared ? 0 : query) * prompts->shots_max;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return cgam_fail_nomem(prompts->env, "a prompt");
    for (int64_t j = k - 1; j >= 0; j--) {
        fprintf(f, "%s%s%s %s%s", prompts->head, cgam_dataset_example(prompts->train, demo[j]).text,
                prompts->cue, shown_word(prompts, demos, demo, j, k), prompts->tail);
    }
    fprintf(f, "%s%s%s", prompts->head,
            cgam_dataset_example(prompts->eval, prompts->query[query]).text, prompts->cue);
    bool fine = !ferror(f);
    fine = fclose(f) == 0 && fine;
    /* The stream's memory is the C library's; ours is handed out. */
    if (fine) *out = cgam_strdup(prompts->env, text);
    free(text);
    return *out ? CGAM_OK : cgam_fail_nomem(prompts->env, "a prompt");
}
