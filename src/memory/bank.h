/* bank.h (inside): the fields and functions of a bank that the rest of memory/ uses. */
#ifndef CGAM_SRC_MEMORY_BANK_H
#define CGAM_SRC_MEMORY_BANK_H

#include <cgam/bank.h>
#include <cgam/io.h>

#include "io/shards.h"
#include "num/sketch.h"
#include "num/vec.h"

struct cgam_bank {
    cgam_env *env;
    cgam_rows Z;
    double *norm2;               /* [n] after normalising; vectors of n cover the rows held here */
    double *scale;               /* [n] or NULL; see below */
    double scale_min, scale_max; /* least and largest scale; both 1 where scale is NULL */
    void *owned;                 /* copied rows, or NULL */
    cgam_array array;            /* the open file, or {0} */
    cgam_sketch *sketch;         /* or NULL */
    struct cgam_packed *packed;  /* the packed file that holds the bank (pack.h), or NULL */
    const struct cgam_columns *columns; /* of its packed file, or NULL */
    bool unread;        /* the rows were not checked: they may hold NaN or infinity */
    int64_t *number;    /* [n] ascending: the numbers of these rows in the whole bank, or NULL */
    int64_t whole;      /* the number of rows of the whole bank; n where number is NULL */
    cgam_metric metric; /* of cgam_bank_metric, else CGAM_DOT */
    int64_t metric_d;   /* numbers of a query before it is mapped */
    double metric_unit; /* l2: k of metric.c */
    cgam_bank_info info;
};

/* cgam_bank_survey allocates the norms and fills norm2 with those of the rows as stored; bank has env and Z.
 * cgam_bank_settle derives the rest from norm2. `name` is for messages. cgam_bank_finish does both. */
cgam_status cgam_bank_survey(cgam_bank *bank, const char *name);
cgam_status cgam_bank_look(cgam_bank *bank, const char *name); /* the survey; norm2 is allocated */
cgam_status cgam_bank_settle(cgam_bank *bank, const cgam_bank_opts *opts, const char *name);
cgam_status cgam_bank_finish(cgam_bank *bank, const cgam_bank_opts *opts, const char *name);
/* Fails if a bank cannot have this shape. */
cgam_status cgam_bank_shape(cgam_env *env, const char *name, int64_t n, int64_t d);
/* Reads names, one per line, of the rows number[..] of `whole` (NULL: of all rows in order). */
cgam_status cgam_row_names_read(cgam_env *env, const char *name, const void *text, size_t size,
                                const int64_t *number, int64_t whole, cgam_row_names **out);
/* bank_ranks.c. cgam_bank_gather makes one bank of the rows that each rank gives. The other function keeps this
 * process's rows of files, which must be the same on all ranks: rows of one array are borrowed, rows of several are
 * copied. */
cgam_status cgam_bank_gather(cgam_env *env, const void *data, cgam_dtype dtype, int64_t n,
                             int64_t d, const cgam_bank_opts *opts, cgam_bank **out);
cgam_status cgam_bank_take_rows(cgam_bank *bank, cgam_shards *shards, const cgam_bank_opts *opts,
                                const char *path);
/* Returns CGAM_E_UNSUPPORTED, with `what` in the message, if the bank is spread over ranks. */
cgam_status cgam_bank_alone(const cgam_bank *bank, const char *what);
/* Returns the row that has this number in the whole bank; -1 if it is not held here. */
int64_t cgam_bank_place(const cgam_bank *bank, int64_t number);

/* Returns the number of memory i in the whole bank; i if the bank is not a part of another. */
int64_t cgam_bank_number(const cgam_bank *bank, int64_t i);
/* Returns the next row after i with the same name; -1 if there is none. */
int64_t cgam_row_names_next(const cgam_row_names *names, int64_t i);
/* Finds names that begin with a text; ASCII case is ignored. The exact name comes first, then the others in row
 * order, each name once with its lowest row. Fills row [room] and returns how many it wrote. */
int64_t cgam_row_names_search(const cgam_row_names *names, const char *text, int64_t capacity,
                              int64_t *row);
/* Reports whether the mask file is an array; otherwise it holds names. */
CGAM_NODISCARD cgam_status cgam_mask_is_array(cgam_env *env, const char *path, bool *array);

/* Like cgam_row_names_load, from [size] bytes of memory, which it copies. */
CGAM_NODISCARD cgam_status cgam_row_names_new(cgam_env *env, const char *text, size_t size,
                                              cgam_row_names **out);
int64_t cgam_row_names_count(const cgam_row_names *names);
/* Reads a mask for n rows: a .npy of booleans [n], or of integers that are row numbers. Any other file holds names,
 * one per line, each of which must be in `names` (NULL: names are not allowed). Gives *out; free it with
 * cgam_mask_free. */
CGAM_NODISCARD cgam_status cgam_mask_load(cgam_env *env, const char *path, int64_t n,
                                          const cgam_row_names *names, uint64_t **out);

#endif
