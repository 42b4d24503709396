/* lm.h: what the `lm` verbs share: parameters, the study they open, the files they write. */
#ifndef CGAM_SRC_APP_LM_H
#define CGAM_SRC_APP_LM_H

#include "app/params.h"
#include "app/progress.h"
#include "lab/folder.h"
#include "lab/language/study.h"
#include "lm/edit.h"

#define CGAM_PARAM_LM_MODEL                                                                        \
    CGAM_PARAM_TEXT("model", "FILE", "GGUF file; default: the model of `cgam lm get`",             \
                    .input = CGAM_INPUT_MODEL)
#define CGAM_PARAM_LM_DTYPE(help_) CGAM_PARAM_CHOICE("dtype", "f32|f16|bf16", "f32", help_)
#define CGAM_PARAM_LM_FIGURES                                                                      \
    CGAM_PARAM_FIGURES("draw the figures beside the tables (SVG, PNG, PDF; needs gnuplot)")

#define CGAM_PARAM_LM_REPORT                                                                       \
    CGAM_PARAM_TEXT("report", "DIR",                                                               \
                    "add the results to the report in DIR; --out defaults to DIR/lm/NAME, "        \
                    "--store to DIR/lm/states.db",                                                 \
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
    CGAM_PARAM_FLAG("exact", "use the plain f32 pass instead of libllama's; Llama family only")

/* The names in cgam_dataset_tasks. */
#define CGAM_LM_TASKS                                                                              \
    "antonyms|plurals|past|comparatives|capitals|currencies|continents|colours|next-number|"       \
    "numerals|french|young|kinds"

/* Parameters for the fields of cgam_lm_study_opts. */
#define CGAM_PARAMS_LM(store_needed_) CGAM_PARAMS_LM_SETS(store_needed_, false)
/* The same for a verb that accepts several datasets. */
#define CGAM_PARAMS_LM_SETS(store_needed_, several_)                                               \
    CGAM_PARAM_LM_MODEL,                                                                           \
        CGAM_PARAM_TEXT("store", "FILE",                                                           \
                        "store of states: reads those it has, adds the missing ones",              \
                        .required = (store_needed_), .writes = true, .input = CGAM_INPUT_STORE),   \
        CGAM_PARAM_CHOICE("dataset", "facts|sentiment|" CGAM_LM_TASKS "|sst2|agnews|trec|lama",    \
                          NULL,                                                                    \
                          "built-in data; the last four are read from $CGAM_DATA. Default "        \
                          "without --eval: sentiment",                                             \
                          .many = (several_)),                                                     \
        CGAM_ROWS_OF(cgam_lm_study_opts_rows)

/* The options from the parameters of CGAM_PARAMS_LM. Progress is drawn on `line`, which the caller keeps until
 * cgam_line_clear. */
cgam_lm_study_opts cgam_lm_opts(const cgam_call *call, cgam_line *line);

/* Returns the model of --model, from the call's shelf or newly opened. Release it with cgam_lm_done; NULL is fine. */
cgam_status cgam_lm_of(cgam_call *call, cgam_lm **out);
void cgam_lm_done(cgam_call *call, cgam_lm *lm);
/* Returns a study on that model. Release it with cgam_lm_study_done, which accepts NULL. */
cgam_status cgam_lm_study_of(cgam_call *call, const cgam_lm_study_opts *opts, cgam_lm_study **out);
void cgam_lm_study_done(cgam_call *call, cgam_lm_study *study);

/* For an option that chooses between two kinds, the first called `first`: finds the kind to leave out. If the option
 * is not given, both are run. */
void cgam_lm_leave_out(const cgam_args *args, const char *option, const char *first, bool *no_first,
                       bool *no_second);

/* A token's bytes as a JSON text; invalid UTF-8 becomes U+FFFD. */
json_t *cgam_lm_piece_json(const cgam_lm *lm, int32_t token);

/* Writes a result into the folder `out` (NULL: writes nothing): its tables, the figures unless --figures no,
 * and the document as PART.json. `doc` gets the result's document, `files` the names. */
cgam_status cgam_lm_leave(cgam_call *call, const char *out, cgam_lm_part part,
                          const cgam_lm_result *result, json_t *doc, json_t *files);
/* Puts "out" and "files" if anything was written; takes over the reference to files. */
void cgam_lm_put_files(json_t *doc, const char *out, json_t *files);

/* Where a verb with --out, --store and --report writes its results. */
typedef struct cgam_lm_place {
    char out[CGAM_PATH_ROOM], store[CGAM_PATH_ROOM]; /* "": none */
    const char *report;                              /* NULL: none */
} cgam_lm_place;
/* Makes the folder. In a report it is named after the data, and after the model if one is given. */
cgam_status cgam_lm_place_find(const cgam_call *call, cgam_lm_place *to);
/* Puts "command": the command line that repeats the run, without its output folder. */
void cgam_lm_put_command(cgam_call *call);
/* Rewrites the report's page if there is a report; puts "study" and "report". */
cgam_status cgam_lm_place_show(cgam_call *call, const cgam_lm_place *at);

/* A verb that is one experiment: opens the study, runs it, writes the results into --out. */
typedef cgam_status (*cgam_lm_experiment)(cgam_lm_study *study, const cgam_args *args,
                                          cgam_lm_result **out);
cgam_status cgam_lm_run(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment);
/* The same for a verb with --report. */
cgam_status cgam_lm_run_reported(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment);

/* ---- Prompts under edits ------------------------------------------------------------------------ */
/* The edits of --vector and --edit, in the order given. Free *out with cgam_edit_set_free. */
cgam_status cgam_lm_edit_set(cgam_call *call, cgam_lm *lm, cgam_edit_set **out);

/* [{"id", "piece"}, ..] */
json_t *cgam_lm_token_list(const cgam_lm *lm, int64_t count, const int32_t *tokens);

/* Tokens of --prompt, in the model's chat template if `chat`, after a system message unless
 * system is NULL. Free *tokens [*count] with cgam_lm_tokens_free. */
cgam_status cgam_lm_prompt_tokens(cgam_call *call, cgam_lm *lm, const char *system, bool chat,
                                  int32_t **tokens, int64_t *count);

#endif
