/* lm.h: what the `lm` verbs have in common: parameters, the study they open, the files they leave. */
#ifndef CGAM_SRC_APP_LM_H
#define CGAM_SRC_APP_LM_H

#include "app/params.h"
#include "app/progress.h"
#include "lab/folder.h"
#include "lab/language/study.h"
#include "lm/edit.h"

#define CGAM_PARAM_LM_MODEL                                                                        \
    CGAM_PARAM_TEXT("model", "FILE", "GGUF file; the model of `cgam lm get` if not given",         \
                    .input = CGAM_INPUT_MODEL)
#define CGAM_PARAM_LM_DTYPE(help_) CGAM_PARAM_CHOICE("dtype", "f32|f16|bf16", "f32", help_)
#define CGAM_PARAM_LM_FIGURES                                                                      \
    CGAM_PARAM_FIGURES("draw the figures beside the tables (SVG, PNG, PDF; needs gnuplot)")

#define CGAM_PARAM_LM_REPORT                                                                       \
    CGAM_PARAM_TEXT("report", "DIR",                                                               \
                    "add it to the report in DIR: --out is then DIR/lm/NAME, --store "             \
                    "DIR/lm/states.db if not given",                                               \
                    .writes = true)

#define CGAM_PARAM_LM_EDIT                                                                         \
    CGAM_PARAM_TEXT("edit", "L:KIND:WHERE:X:FILE[:ROW]",                                           \
                    "after layer L add, or replace by, X times the vector in FILE (.npy), at "     \
                    "WHERE: last, prompt, generated, all, i or i-j (-1: the prompt's last)",       \
                    .many = true, .input = CGAM_INPUT_NUMBERS)
#define CGAM_PARAM_LM_VECTORS                                                                      \
    CGAM_PARAM_TEXT("vector", "FILE[:X[:FROM-TO]]",                                                \
                    "add X times the vectors in FILE (.gguf, .npy, .safetensors) at all tokens, "  \
                    "after layers FROM to TO",                                                     \
                    .many = true, .input = CGAM_INPUT_NUMBERS)
#define CGAM_PARAM_LM_EXACT                                                                        \
    CGAM_PARAM_FLAG("exact", "the plain f32 pass instead of libllama's; Llama family")

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
        CGAM_ROWS_OF(cgam_lm_study_opts_rows)

/* The options that CGAM_PARAMS_LM asks for; progress is drawn on `line`, which the caller keeps until
 * cgam_line_clear. */
cgam_lm_study_opts cgam_lm_opts(const cgam_call *call, cgam_line *line);

/* The model of --model: one that the call's shelf keeps open, or opened. Give it back with cgam_lm_done, NULL too. */
cgam_status cgam_lm_of(cgam_call *call, cgam_lm **out);
void cgam_lm_done(cgam_call *call, cgam_lm *lm);
/* A study on it. Give it back with cgam_lm_study_done, NULL too. */
cgam_status cgam_lm_study_of(cgam_call *call, const cgam_lm_study_opts *opts, cgam_lm_study **out);
void cgam_lm_study_done(cgam_call *call, cgam_lm_study *study);

/* Of two kinds, the first of which is called `first`, those that an option of words does not name; where it is not given,
 * both are run. */
void cgam_lm_leave_out(const cgam_args *args, const char *option, const char *first, bool *no_first,
                       bool *no_second);

/* A token's bytes as a text of a document: what is not UTF-8 is the sign for that. */
json_t *cgam_lm_piece_json(const cgam_lm *lm, int32_t token);

/* What a result leaves in the folder `out` (NULL: nothing): its tables, the figures unless --figures
 * no, and the document as PART.json. `doc` takes the result's document, `files` the names. */
cgam_status cgam_lm_leave(cgam_call *call, const char *out, cgam_lm_part part,
                          const cgam_lm_result *result, json_t *doc, json_t *files);
/* Puts "out" and "files" where anything was written; takes the reference. */
void cgam_lm_put_files(json_t *doc, const char *out, json_t *files);

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

/* ---- Prompts under edits ------------------------------------------------------------------------ */
/* The edits of --vector and --edit, in the order given. Gives *out; cgam_edit_set_free. */
cgam_status cgam_lm_edit_set(cgam_call *call, cgam_lm *lm, cgam_edit_set **out);

/* [{"id", "piece"}, ..] */
json_t *cgam_lm_token_list(const cgam_lm *lm, int64_t count, const int32_t *tokens);

/* Tokens of --prompt, in the model's chat template if `chat`, with a system message before it unless
 * system is NULL. Gives *tokens [*count]; cgam_lm_tokens_free. */
cgam_status cgam_lm_prompt_tokens(cgam_call *call, cgam_lm *lm, const char *system, bool chat,
                                  int32_t **tokens, int64_t *count);

#endif
