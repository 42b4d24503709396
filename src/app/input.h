/* input.h: files that several verbs read the same way. */
#ifndef CGAM_SRC_APP_INPUT_H
#define CGAM_SRC_APP_INPUT_H

#include "app/params.h"

/* The bank of --bank, with --normalize. "demo:" or "demo:SEED" is that of `cgam demo`. From the call's
 * shelf where it is on it, else loaded. Give it back with cgam_input_bank_done, NULL too. */
cgam_status cgam_input_bank(cgam_call *call, cgam_bank **out);
void cgam_input_bank_done(cgam_call *call, cgam_bank *bank);
#define CGAM_DEMO_PREFIX "demo:"
cgam_status cgam_demo_bank(cgam_env *env, uint64_t seed, cgam_bank **out);

/* 60 words. */
cgam_status cgam_demo_names(cgam_env *env, cgam_row_names **out);

/* What --names is without a file. */
#define CGAM_NAMES_BESIDE ".names"
/* The path of X.names, where X.npy has its names. */
cgam_status cgam_names_beside(cgam_env *env, const char *bank, char *path, size_t size);
/* The names of the call's bank: those of --names, else the bank's own: of the shelf, of the demo bank, of X.names beside
 * X.npy. They belong to the call or its shelf. */
cgam_status cgam_input_names(cgam_call *call, const cgam_bank *bank, const cgam_row_names **out);
/* --names, NULL = not asked for, and --only: *some is a bank of the memories that count, over `bank`; NULL = all do.
 * Names in the file of --only are those of cgam_input_names. */
cgam_status cgam_input_only(cgam_call *call, const cgam_bank *bank, const cgam_row_names **names,
                            cgam_bank **some);

/* A real matrix from a file, widened and checked: rows x columns, or one row when the array has
 * one dimension (*vector then). Gives *out; free it with cgam_free. */
typedef struct cgam_matrix {
    double *data; /* [rows, columns] */
    int64_t rows, columns;
    bool vector;
} cgam_matrix;
cgam_status cgam_input_matrix(cgam_env *env, const char *path, cgam_matrix *out);
/* The same, or sums of the bank's rows, by number or name: "rows:7", "rows:7*0.5+23*0.5-2", "rows:king-man+woman",
 * "rows:'x-ray'", ';' before the next sum. option: for messages. */
#define CGAM_ROWS_PREFIX "rows:"
cgam_status cgam_input_vectors(cgam_call *call, const cgam_bank *bank, const char *option,
                               const char *text, cgam_matrix *out);

/* CGAM_E_ARG if an answer of so many rows for each of so many queries is beyond the call's limits. */
cgam_status cgam_input_check_answer(cgam_call *call, int64_t queries, int64_t each);

/* The vectors of an option, if it was given: one or any number, of the bank's dimension. */
cgam_status cgam_input_option(cgam_call *call, const cgam_bank *bank, const char *option, bool one,
                              cgam_matrix *out);

/* A list of `count` indices below `below` from "7" or a file of integers. what: for messages. */
cgam_status cgam_input_indices(cgam_env *env, const char *what, const char *text, int64_t count,
                               int64_t below, int64_t **out);

#endif
