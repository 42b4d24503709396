/* semantic_cache.c: a cache of answers that is asked by meaning, and knows when it does not know.
 *
 *     semantic_cache [WORDS.npy]
 *
 * A question is the mean of its words' vectors, less what these have in common: GloVe vectors
 * (Pennington, Socher and Manning 2014), of which examples/words.npy has 117 that carry meaning, with words.names
 * beside it. Questions that were answered are the rows of a packed bank, their answers the names. A new question meets the bank and a
 * ghost memory, "none of these": where the ghost wins, the answer is worked out and added to
 * the file. p is a proved interval. */
#define _POSIX_C_SOURCE 200809L /* strdup, strtok_r in a strict C11 build */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 512 };
static const double BETA = 20,
                    NONE = 0.5; /* the ghost stands where questions have a cosine of 1/2 */

typedef struct cache {
    cgam_env *env;
    cgam_bank *words;
    cgam_row_names *vocabulary;
    int64_t d;
    double *mean;                 /* [d] of all words */
    char rows[PATH], names[PATH]; /* what is to be added */
    char file[PATH];              /* the packed bank */
    bool begun;                   /* there is one */
} cache;

/* out[d]: a unit vector; unknown words are skipped. */
static cgam_status embed(const cache *c, const char *question, double *out)
{
    char text[PATH];
    double *row = malloc((size_t)c->d * sizeof *row), length = 0;
    if (!row) return CGAM_E_NOMEM;
    memset(out, 0, (size_t)c->d * sizeof *out);
    snprintf(text, sizeof text, "%s", question);
    cgam_status status = CGAM_OK;
    char *rest, *word = strtok_r(text, " ", &rest);
    for (; word && status == CGAM_OK; word = strtok_r(NULL, " ", &rest)) {
        int64_t i = cgam_row_names_find(c->vocabulary, word);
        double size = 0;
        if (i < 0) continue;
        status = cgam_bank_row(c->words, i, row);
        for (int64_t j = 0; j < c->d; j++) size += (row[j] - c->mean[j]) * (row[j] - c->mean[j]);
        for (int64_t j = 0; j < c->d; j++) out[j] += (row[j] - c->mean[j]) / sqrt(size);
    }
    for (int64_t j = 0; j < c->d; j++) length += out[j] * out[j];
    for (int64_t j = 0; j < c->d && length > 0; j++) out[j] /= sqrt(length);
    free(row);
    return status;
}

/* Into the file: readers of it, of this program or others, see the bank before or after. */
static cgam_status learn(cache *c, const double *x, const char *answer)
{
    FILE *names = fopen(c->names, "w");
    if (!names) return CGAM_E_IO;
    fprintf(names, "%s\n", answer);
    if (fclose(names) != 0) return CGAM_E_IO;
    cgam_pack_opts opts = cgam_pack_opts_default();
    opts.names = c->names;
    cgam_status status = cgam_npy_write(c->env, c->rows, CGAM_F64, 2, (int64_t[]){1, c->d}, x);
    if (status != CGAM_OK) return status;
    status = c->begun ? cgam_pack_add(c->env, c->file, c->rows, c->names)
                      : cgam_pack(c->env, c->rows, &opts, c->file);
    c->begun |= status == CGAM_OK;
    return status;
}

/* *answer: from the cache, to be freed, or NULL: it is not known. */
static cgam_status ask(const cache *c, const double *x, char **answer, cgam_result *r)
{
    cgam_bank *bank;
    cgam_row_names *names = NULL;
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.beta = BETA;
    opts.fast = opts.none = true;
    opts.none_score = NONE;
    *answer = NULL;
    cgam_status status = cgam_bank_load(c->env, c->file, NULL, &bank);
    if (status != CGAM_OK) return status;
    status = cgam_recall_once(bank, x, NULL, &opts, r);
    if (status == CGAM_OK) status = cgam_pack_names(bank, &names);
    if (status == CGAM_OK && r->winner >= 0) *answer = strdup(cgam_row_names_at(names, r->winner));
    cgam_row_names_free(names);
    cgam_bank_free(bank);
    return status;
}

static cgam_status work(cache *c)
{
    static const char *const known[][2] = {{"capital city of france", "Paris"},
                                           {"temperature at which water boils", "100 degrees"},
                                           {"who wrote hamlet", "Shakespeare"},
                                           {"price of a barrel of crude oil", "80 dollars"},
                                           {"fastest train from london to paris", "Eurostar"}};
    static const char *const questions[] = {"what is the boiling point of water",
                                            "author of the play hamlet",
                                            "recipe for chicken soup",
                                            "how much does a barrel of oil cost",
                                            "how to make soup with chicken",
                                            "who won the last football world cup",
                                            "fast rail journey from paris to london"};
    double *x = malloc((size_t)c->d * sizeof *x);
    cgam_status status = x ? CGAM_OK : CGAM_E_NOMEM;
    for (size_t k = 0; k < sizeof known / sizeof *known && status == CGAM_OK; k++) {
        status = embed(c, known[k][0], x);
        if (status == CGAM_OK) status = learn(c, x, known[k][1]);
    }
    for (size_t k = 0; k < sizeof questions / sizeof *questions && status == CGAM_OK; k++) {
        char *answer = NULL, made[PATH];
        cgam_result r = {0};
        status = embed(c, questions[k], x);
        if (status == CGAM_OK) status = ask(c, x, &answer, &r);
        if (status != CGAM_OK) break;
        printf("%-39s %-22s p in [%.4f, %.4f]\n", questions[k], answer ? answer : "not known",
               r.p_from, r.p_to);
        snprintf(made, sizeof made, "answer to question %zu", k);
        if (!answer) status = learn(c, x, made);
        free(answer);
    }
    free(x);
    return status;
}

static cgam_status open_words(cache *c, const char *path)
{
    char names[PATH];
    const char *ending = strstr(path, ".npy");
    snprintf(names, sizeof names, "%.*s.names", (int)(ending ? ending - path : 0), path);
    cgam_status status = cgam_bank_load(c->env, path, NULL, &c->words);
    if (status == CGAM_OK) status = cgam_row_names_load(c->env, names, &c->vocabulary);
    if (status != CGAM_OK) return status;
    cgam_bank_info info = cgam_bank_describe(c->words);
    c->d = info.d;
    c->mean = malloc((size_t)c->d * sizeof *c->mean);
    double *equal = malloc((size_t)info.n * sizeof *equal);
    for (int64_t i = 0; equal && i < info.n; i++) equal[i] = 1.0 / (double)info.n;
    status = c->mean && equal ? cgam_bank_combine(c->words, equal, c->mean) : CGAM_E_NOMEM;
    free(equal);
    return status;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/cgam-cache-XXXXXX", path[PATH];
    const char *source = getenv("CGAM_SRC");
    snprintf(path, sizeof path, "%s/examples/words.npy", source ? source : ".");
    cache c = {0};
    if (!mkdtemp(folder) || cgam_env_new(NULL, &c.env) != CGAM_OK) return 3;
    snprintf(c.file, sizeof c.file, "%s/answers.safetensors", folder);
    snprintf(c.rows, sizeof c.rows, "%s/new.npy", folder);
    snprintf(c.names, sizeof c.names, "%s/new.names", folder);
    cgam_status status = open_words(&c, argc > 1 ? argv[1] : path);
    if (status == CGAM_OK) status = work(&c);
    if (status != CGAM_OK) fprintf(stderr, "%s\n", cgam_env_message(c.env));
    unlink(c.file);
    unlink(c.rows);
    unlink(c.names);
    rmdir(folder);
    free(c.mean);
    cgam_row_names_free(c.vocabulary);
    cgam_bank_free(c.words);
    cgam_env_free(c.env);
    return status == CGAM_OK ? 0 : 1;
}
