/* bank.h (inside): what the rest of memory/ may see of a bank. */
#ifndef CGAM_SRC_MEMORY_BANK_H
#define CGAM_SRC_MEMORY_BANK_H

#include <cgam/bank.h>
#include <cgam/io.h>

#include "num/sketch.h"

struct cgam_bank {
    cgam_env *env;
    cgam_rows Z;
    double *norm2;       /* [n] after normalising */
    double *scale;       /* [n] or NULL */
    void *owned;         /* copied rows, or NULL */
    cgam_array array;    /* the open file, or {0} */
    cgam_sketch *sketch; /* or NULL */
    int64_t *number;     /* [n] ascending: rows of a whole bank that these are, or NULL */
    int64_t whole;       /* how many that has; else n */
    cgam_bank_info info;
};

/* Surveys the rows of a bank that has env and Z; `name` is for messages. */
cgam_status cgam_bank_finish(cgam_bank *bank, const cgam_bank_opts *opts, const char *name);
/* The row whose number in the whole bank is given; -1 = it is not among these. */
int64_t cgam_bank_place(const cgam_bank *bank, int64_t number);

#endif
