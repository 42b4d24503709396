/* input.h: files that several verbs read the same way. */
#ifndef CGAM_SRC_APP_INPUT_H
#define CGAM_SRC_APP_INPUT_H

#include "app/params.h"

#include <cgam/recall.h>

/* Returns the bank of --bank, with --normalize applied. "demo:" or "demo:SEED" is the bank of `cgam demo`. The
 * bank comes from the call's shelf if it is there, else it is loaded. Release it with cgam_input_bank_done, which
 * accepts NULL. */
cgam_status cgam_input_bank(cgam_call *call, cgam_bank **out);
void cgam_input_bank_done(cgam_call *call, cgam_bank *bank);
#define CGAM_DEMO_PREFIX "demo:"
cgam_status cgam_demo_bank(cgam_env *env, uint64_t seed, cgam_bank **out);

/* The 60 names of the demo bank. */
cgam_status cgam_demo_names(cgam_env *env, cgam_row_names **out);

/* The value of --names if it is given without a file. */
#define CGAM_NAMES_BESIDE ".names"
/* The path X.names of the names of bank X.npy. */
cgam_status cgam_names_beside(cgam_env *env, const char *bank, char *path, size_t size);
/* The names of the call's bank: those of --names, else the bank's own (from the shelf, the demo bank, or X.names
 * beside X.npy). The call or its shelf owns them. */
cgam_status cgam_input_names(cgam_call *call, const cgam_bank *bank, const cgam_row_names **out);
/* Reads --names (*names is NULL if not requested), --only, --except and --where. *some is a bank of the selected memories, over
 * `bank`, or NULL if all are selected. Names are looked up with cgam_input_names. */
cgam_status cgam_input_some(cgam_call *call, const cgam_bank *bank, const cgam_row_names **names,
                            cgam_bank **some);

/* A real matrix from a file, widened to double and checked: rows x columns, or one row if the array has
 * one dimension (then *vector is set). The caller frees it with cgam_free. */
typedef struct cgam_matrix {
    double *data; /* [rows, columns] */
    int64_t rows, columns;
    bool vector;
} cgam_matrix;
cgam_status cgam_input_matrix(cgam_env *env, const char *path, cgam_matrix *out);
/* Reads a matrix file, or sums of the bank's rows by number or name: "rows:7", "rows:7*0.5+23*0.5-2",
 * "rows:king-man+woman", "rows:'x-ray'"; ';' separates sums. option: for messages. */
#define CGAM_ROWS_PREFIX "rows:"
cgam_status cgam_input_vectors(cgam_call *call, const cgam_bank *bank, const char *option,
                               const char *text, cgam_matrix *out);

/* Prefixes of a key (CGAM_INPUT_KEY) that say what it is. */
#define CGAM_KEY_FILE "file:"
#define CGAM_KEY_TEXT "text:"

/* Returns CGAM_E_ARG if queries x rows exceeds the call's limits. */
cgam_status cgam_input_check_answer(cgam_call *call, int64_t queries, int64_t each);

/* Returns CGAM_E_NOMEM if the call would exceed its memory, before its work begins: `squares` matrices of the smaller
 * of n and d on each side, and `bytes` more. */
cgam_status cgam_input_expect(const cgam_call *call, const cgam_bank *bank, double squares,
                              double bytes);

/* Reads the vectors of an option if it was given: exactly one or any number, of the bank's dimension. */
cgam_status cgam_input_option(cgam_call *call, const cgam_bank *bank, const char *option, bool one,
                              cgam_matrix *out);

/* Reads `count` indices below `below` from "7" or from a file of integers. what: for messages. */
cgam_status cgam_input_indices(cgam_env *env, const char *what, const char *text, int64_t count,
                               int64_t below, int64_t **out);

/* Reads --metric. Unless it is dot, gives *out, a bank for the metric, and maps the queries q; gates are to see the rows
 * as they are: if W is not NULL (there is a context) and empty, fills it with them, for opts->W. Fails for options that
 * the metric does not serve. */
cgam_status cgam_input_metric(cgam_call *call, const cgam_bank *bank, cgam_recall_opts *opts,
                              cgam_matrix *q, cgam_matrix *W, cgam_bank **out);

#endif
