/* bank.h (inside): what the rest of memory/ may see of a bank. */
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
    double *norm2; /* [n] after normalising; as all vectors of n, of the rows that are here */
    double *scale; /* [n] or NULL, */
    double scale_min, scale_max; /* and their ends: 1 where there are none */
    void *owned;                 /* copied rows, or NULL */
    cgam_array array;            /* the open file, or {0} */
    cgam_sketch *sketch;         /* or NULL */
    struct cgam_packed *packed;  /* the packed file it is (pack.h), or NULL */
    bool unread;                 /* the rows were not checked: they may hold NaN or infinity */
    int64_t *number;             /* [n] ascending: rows of a whole bank that these are, or NULL */
    int64_t whole;               /* how many that has; else n */
    cgam_bank_info info;
};

/* Room for norms, and the survey of the rows of a bank that has env and Z: norm2 as they are stored. Then what follows
 * from the norms. `name` is for messages. cgam_bank_finish does both. */
cgam_status cgam_bank_survey(cgam_bank *bank, const char *name);
cgam_status cgam_bank_look(cgam_bank *bank, const char *name); /* the survey, with room for norms */
cgam_status cgam_bank_settle(cgam_bank *bank, const cgam_bank_opts *opts, const char *name);
cgam_status cgam_bank_finish(cgam_bank *bank, const cgam_bank_opts *opts, const char *name);
/* Can a bank have this shape? */
cgam_status cgam_bank_shape(cgam_env *env, const char *name, int64_t n, int64_t d);
/* Names that stand one a line in a text, of the rows number[..] of `whole` (NULL: of all, in their order). */
cgam_status cgam_row_names_read(cgam_env *env, const char *name, const void *text, size_t size,
                                const int64_t *number, int64_t whole, cgam_row_names **out);
/* bank_ranks.c: a bank of the rows that each rank gives; and the rows that this process keeps of files, which must hold
 * the same on all ranks: of one array where they lie, of several as a copy. */
cgam_status cgam_bank_gather(cgam_env *env, const void *data, cgam_dtype dtype, int64_t n,
                             int64_t d, const cgam_bank_opts *opts, cgam_bank **out);
cgam_status cgam_bank_take_rows(cgam_bank *bank, cgam_shards *shards, const cgam_bank_opts *opts,
                                const char *path);
/* CGAM_E_UNSUPPORTED, naming `what`, for a bank that is spread over ranks. */
cgam_status cgam_bank_alone(const cgam_bank *bank, const char *what);
/* The row whose number in the whole bank is given; -1 = it is not among these. */
int64_t cgam_bank_place(const cgam_bank *bank, int64_t number);

/* The number of memory i in the whole bank; i itself where the bank is one. */
int64_t cgam_bank_number(const cgam_bank *bank, int64_t i);
/* The next row after i that is called as it is; -1: there is none. */
int64_t cgam_row_names_next(const cgam_row_names *names, int64_t i);
/* Names that begin with a text, ASCII letters in either case: first the name that is the text, then in the order of
 * rows, each once, by its lowest row. Fills row [room]; how many there are of these. */
int64_t cgam_row_names_search(const cgam_row_names *names, const char *text, int64_t capacity,
                              int64_t *row);
/* Is the file of a mask an array? Else it has names. */
CGAM_NODISCARD cgam_status cgam_mask_is_array(cgam_env *env, const char *path, bool *array);

/* Makes the sketch by which recalls with opts.fast search: int8 rows with proved errors, d + d / 128 + 8 bytes a
 * memory, in the time of some four recalls. Before the bank is shared; once is enough. */
CGAM_NODISCARD cgam_status cgam_bank_sketch(cgam_bank *bank);

/* cgam_row_names_load from memory, [size] bytes, which it copies. */
CGAM_NODISCARD cgam_status cgam_row_names_new(cgam_env *env, const char *text, size_t size,
                                              cgam_row_names **out);
int64_t cgam_row_names_count(const cgam_row_names *names);
/* A mask for n rows from a file: a .npy of booleans [n], or of integers, the numbers of rows; any other file
 * has names, one a line, each of which must be one of `names` (NULL = there are none). Gives *out; free it
 * with cgam_mask_free. */
CGAM_NODISCARD cgam_status cgam_mask_load(cgam_env *env, const char *path, int64_t n,
                                          const cgam_row_names *names, uint64_t **out);
void cgam_mask_free(cgam_env *env, uint64_t *mask); /* NULL is fine */

#endif
