/* lm.h: what the `lm` verbs have in common: the model, the data, the prompts, the store. */
#ifndef CGAM_SRC_APP_LM_H
#define CGAM_SRC_APP_LM_H

#include "app/verb.h"

#include <string.h>

#define CGAM_HELP_MODEL "GGUF file; the model of `cgam lm get` if not given"

/* Parameters that say what is run. */
#define CGAM_PARAMS_PROMPTS                                                                        \
    {.name = "model", .kind = CGAM_TEXT, .value = "FILE", .help = CGAM_HELP_MODEL},                \
        {.name = "store",                                                                          \
         .kind = CGAM_TEXT,                                                                        \
         .value = "FILE",                                                                          \
         .help = "keep states here and take those that are there"},                                \
        {.name = "dataset",                                                                        \
         .kind = CGAM_CHOICE,                                                                      \
         .value = "facts|sentiment|sst2|agnews|trec|lama",                                         \
         .help =                                                                                   \
             "facts, sentiment: shipped; the others under $CGAM_DATA. sentiment if no --eval"},    \
        {.name = "eval", .kind = CGAM_TEXT, .value = "FILE", .help = "queries"},                   \
        {.name = "train",                                                                          \
         .kind = CGAM_TEXT,                                                                        \
         .value = "FILE",                                                                          \
         .help = "demonstrations; what is left of the queries' file if not given"},                \
        {.name = "format",                                                                         \
         .kind = CGAM_CHOICE,                                                                      \
         .value = "tsv|facts|sst2|agnews|trec|lama",                                               \
         .fallback = "tsv",                                                                        \
         .help = "of --eval and --train"},                                                         \
        {.name = "relation",                                                                       \
         .kind = CGAM_TEXT,                                                                        \
         .value = "ID",                                                                            \
         .fallback = "P36",                                                                        \
         .help = "of --dataset lama"},                                                             \
        {.name = "template",                                                                       \
         .kind = CGAM_TEXT,                                                                        \
         .value = "TEXT",                                                                          \
         .help = "with {x}, {y} and \\n: 'Review: {x}\\nSentiment: {y}\\n\\n'"},                   \
        {.name = "labels",                                                                         \
         .kind = CGAM_TEXT,                                                                        \
         .value = "KEY=WORD,..",                                                                   \
         .help = "the word for each label of the file"},                                           \
        {.name = "shots",                                                                          \
         .kind = CGAM_REALS,                                                                       \
         .value = "K,K,..",                                                                        \
         .fallback = "0,1,4",                                                                      \
         .max = 1024,                                                                              \
         .help = "numbers of demonstrations; 0 is always run"},                                    \
        {.name = "queries",                                                                        \
         .kind = CGAM_INT,                                                                         \
         .value = "N",                                                                             \
         .fallback = "200",                                                                        \
         .min = 1,                                                                                 \
         .max = 1e6,                                                                               \
         .help = "how many; fewer where the set has fewer"},                                       \
        {.name = "demos",                                                                          \
         .kind = CGAM_CHOICE,                                                                      \
         .value = "per-query|shared",                                                              \
         .fallback = "per-query",                                                                  \
         .help = "each query's own, or the same for all"},                                         \
        {.name = "seed",                                                                           \
         .kind = CGAM_INT,                                                                         \
         .value = "N",                                                                             \
         .fallback = "1",                                                                          \
         .max = 9e15,                                                                              \
         .help = "of queries and demonstrations"},                                                 \
        {.name = "exact",                                                                          \
         .kind = CGAM_FLAG,                                                                        \
         .help = "states by the plain f32 pass instead of libllama's; Llama family"},              \
    {                                                                                              \
        .name = "dtype", .kind = CGAM_CHOICE, .value = "f32|f16|bf16", .fallback = "f32",          \
        .help = "how states are stored"                                                            \
    }

/* The model of --model, or the default one. */
cgam_status cgam_input_lm(cgam_call *call, cgam_lm **out);
/* Puts "model": {name, architecture, layers, width, vocab, ...}. */
void cgam_put_lm(json_t *doc, const cgam_lm *lm);

/* Everything CGAM_PARAMS_PROMPTS asks for, open and ready. */
enum { CGAM_SHOTS_ROOM = 16 };
typedef struct cgam_lm_input {
    cgam_call *call;
    cgam_lm *lm;
    cgam_lm_info info;
    cgam_store *store; /* NULL without --store */
    cgam_dataset *eval, *train;
    cgam_prompts *prompts;
    const char *name;               /* of the data */
    int64_t shots[CGAM_SHOTS_ROOM]; /* rising, 0 first */
    int64_t n_shots;
    cgam_dtype dtype;
    bool exact;
    int64_t queries;
    int64_t found, computed, tokens; /* summed over cgam_lm_input_states */
    double seconds;
} cgam_lm_input;

cgam_status cgam_lm_input_open(cgam_call *call, cgam_lm_input *in);
void cgam_lm_input_close(cgam_lm_input *in); /* copes with half-open */

/* States of every query with k demonstrations, [queries, L + 1, d]; out NULL: into the store
 * alone. Gives *out; free it with cgam_free. */
cgam_status cgam_lm_input_states(cgam_lm_input *in, int64_t k, cgam_demos demos, float **out);

/* The first token of each label's word, as it follows the cue; [labels]. Two labels with the same
 * one are refused, except in open-ended sets, where both become -1. Gives *out; cgam_free. */
cgam_status cgam_lm_input_label_tokens(cgam_lm_input *in, int32_t **out);

/* Puts what was run: model, dataset, queries, seed, states found and computed. */
void cgam_put_lm_input(json_t *doc, const cgam_lm_input *in);

#endif
