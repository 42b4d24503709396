/* lm.h: what the `lm` verbs have in common: parameters, the study they open, the files they leave. */
#ifndef CGAM_SRC_APP_LM_H
#define CGAM_SRC_APP_LM_H

#include "app/params.h"
#include "app/progress.h"
#include "io/folder.h"
#include "lm/study.h"

#define CGAM_PARAM_LM_MODEL                                                                        \
    CGAM_PARAM_TEXT("model", "FILE", "GGUF file; the model of `cgam lm get` if not given",         \
                    .input = CGAM_INPUT_MODEL)
#define CGAM_PARAM_LM_DTYPE(help_) CGAM_PARAM_CHOICE("dtype", "f32|f16|bf16", "f32", help_)
#define CGAM_PARAM_LM_SCALE(help_)                                                                 \
    CGAM_PARAM_CHOICE("lambda-scale", "relative|absolute", "relative", help_)
#define CGAM_PARAM_LM_FIGURES                                                                      \
    CGAM_PARAM_FIGURES("draw the figures beside the tables (SVG, PNG, PDF; needs gnuplot)")

#define CGAM_PARAM_LM_ANSWER                                                                       \
    CGAM_PARAM_CHOICE("answer", "first|sequence|distinct", NULL,                                   \
                      "answers are compared by their first token, those that share it left out, "  \
                      "by the probability of all their tokens, or of those up to where each "      \
                      "parts from the others; first, or sequence where classes begin alike")

/* P for contexts: what the projection of the library's options is. */
#define CGAM_PARAM_LM_PROJECTION(help_)                                                            \
    CGAM_PARAM_TEXT("projection", "FILE[:NAME]", help_, .input = CGAM_INPUT_NUMBERS)

#define CGAM_PARAM_LM_REPORT                                                                       \
    CGAM_PARAM_TEXT("report", "DIR",                                                               \
                    "add it to the report in DIR: --out is then DIR/lm/NAME, --store "             \
                    "DIR/lm/states.db if not given",                                               \
                    .writes = true)

/* The names in cgam_dataset_tasks. */
#define CGAM_LM_TASKS                                                                              \
    "antonyms|plurals|past|comparatives|capitals|currencies|continents|colours|next-number|"       \
    "numerals|french|young|kinds"

/* Parameters that say what is run: the fields of cgam_lm_study_opts. */
#define CGAM_PARAMS_LM(store_needed_) CGAM_PARAMS_LM_SETS(store_needed_, false)
/* The same of a verb that may take several datasets. */
#define CGAM_PARAMS_LM_SETS(store_needed_, several_)                                               \
    CGAM_PARAM_LM_MODEL,                                                                           \
        CGAM_PARAM_TEXT("store", "FILE", "keep states here and take those that are there",         \
                        .required = (store_needed_), .writes = true, .input = CGAM_INPUT_STORE),   \
        CGAM_PARAM_CHOICE("dataset", "facts|sentiment|" CGAM_LM_TASKS "|sst2|agnews|trec|lama",    \
                          NULL, "shipped; the last four under $CGAM_DATA. sentiment if no --eval", \
                          .many = (several_)),                                                     \
        CGAM_PARAM_TEXT("eval", "FILE", "queries", .input = CGAM_INPUT_TEXT),                      \
        CGAM_PARAM_TEXT("train", "FILE",                                                           \
                        "demonstrations; what is left of the queries' file if not given",          \
                        .input = CGAM_INPUT_TEXT),                                                 \
        CGAM_PARAM_CHOICE("format", "tsv|facts|sst2|agnews|trec|lama|pairs", "tsv",                \
                          "of --eval and --train"),                                                \
        CGAM_PARAM(CGAM_TEXT, "relation", "ID", "P36", 0, 0, "of --dataset lama"),                 \
        CGAM_PARAM_TEXT("template", "TEXT",                                                        \
                        "with {x}, {y} and \\n: 'Review: {x}\\nSentiment: {y}\\n\\n'"),            \
        CGAM_PARAM_TEXT("labels", "KEY=WORD,..", "the word for each label of the file"),           \
        CGAM_PARAM_INTS("shots", "K,K,..", "0,1,4", 0, 1024,                                       \
                        "numbers of demonstrations; 0 is always run"),                             \
        CGAM_PARAM_INT("queries", "N", "200", 1, 1e6, "how many; fewer where the set has fewer"),  \
        CGAM_PARAM_CHOICE("demos", "per-query|shared", "per-query",                                \
                          "each query's own, or the same for all"),                                \
        CGAM_PARAM_CHOICE("order", "balanced|cycled", "balanced",                                  \
                          "of their classes: any balanced one, or none twice before all"),         \
        CGAM_PARAM_SEED("of queries and demonstrations"),                                          \
        CGAM_PARAM_FLAG("chat",                                                                    \
                        "a conversation in the model's chat template: demonstrations are turns"),  \
        CGAM_PARAM_FLAG("exact",                                                                   \
                        "states by the plain f32 pass instead of libllama's; Llama family"),       \
        CGAM_PARAM_LM_DTYPE("how states are stored")

/* The options that CGAM_PARAMS_LM asks for; progress is drawn on `line`, which the caller keeps until
 * cgam_line_clear. */
cgam_lm_study_opts cgam_lm_opts(const cgam_call *call, cgam_line *line);

/* The model of --model: one that the call's shelf keeps open, or opened. Give it back with cgam_lm_done, NULL too. */
cgam_status cgam_lm_of(cgam_call *call, cgam_lm **out);
void cgam_lm_done(cgam_call *call, cgam_lm *lm);
/* A study on it. Give it back with cgam_lm_study_done, NULL too. */
cgam_status cgam_lm_study_of(cgam_call *call, const cgam_lm_study_opts *opts, cgam_lm_study **out);
void cgam_lm_study_done(cgam_call *call, cgam_lm_study *study);

/* A token's bytes as a text of a document: what is not UTF-8 is the sign for that. */
json_t *cgam_lm_piece_json(const cgam_lm *lm, int32_t token);

/* What a result leaves in the folder `out` (NULL: nothing): its tables, the figures unless --figures
 * no, and the document as PART.json. `doc` takes the result's document, `files` the names. */
cgam_status cgam_lm_leave(cgam_call *call, const char *out, cgam_lm_part part,
                          const cgam_lm_result *result, json_t *doc, json_t *files);
/* Puts "out" and "files" where anything was written; takes the reference. */
void cgam_lm_put_files(json_t *doc, const char *out, json_t *files);
/* How many queries count, of a document with `shots`: the same for every number of them. */
int64_t cgam_lm_counted(const json_t *doc);
/* No answer counts: says so. */
void cgam_lm_print_none(const json_t *doc, FILE *to);
void cgam_lm_print_files(const json_t *doc, FILE *to);
/* Prints two measures of every curve, layer by layer; `digits` of the first one behind the point. */
void cgam_lm_print_curves(const json_t *doc, const char *first, int digits, const char *second,
                          FILE *to);

/* Where a verb with --out, --store and --report leaves what it found. */
typedef struct cgam_lm_place {
    char out[CGAM_PATH_ROOM], store[CGAM_PATH_ROOM]; /* "": none */
    const char *report;                              /* NULL: none */
} cgam_lm_place;
/* Makes the folder; in a report it is called after the data, and after a model that is given. */
cgam_status cgam_lm_place_find(const cgam_call *call, cgam_lm_place *to);
/* Puts "command": what makes it again, without its place. */
void cgam_lm_put_command(cgam_call *call);
/* Makes the report's page again, where there is a report: puts "study" and "report". */
cgam_status cgam_lm_place_show(cgam_call *call, const cgam_lm_place *at);

/* A verb that is one experiment: opens the study, runs it, leaves what came out in --out. */
typedef cgam_status (*cgam_lm_experiment)(cgam_lm_study *study, const cgam_args *args,
                                          cgam_lm_result **out);
cgam_status cgam_lm_run(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment);
/* The same of a verb that has --report. */
cgam_status cgam_lm_run_reported(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment);

#endif
