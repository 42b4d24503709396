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
    cgam_bank_info info;
};

#endif
