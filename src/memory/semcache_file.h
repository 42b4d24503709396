/* semcache_file.h (inside): an open cache, for the two files that read and write it. */
#ifndef CGAM_SRC_MEMORY_SEMCACHE_FILE_H
#define CGAM_SRC_MEMORY_SEMCACHE_FILE_H

#include "base/alloc.h"
#include "memory/pack.h"
#include "memory/semcache.h"

struct cgam_semcache {
    cgam_env *env;
    const char *name; /* in messages */
    cgam_file file;   /* {0} once the bank owns it */
    cgam_tensor_table table;
    cgam_semcache_info info;
    const float *rows;    /* [n, d] */
    const int64_t *begin; /* [3 n + 1] */
    const char *text;
    const double *time; /* [n, 2] */
    cgam_bank *bank;    /* or NULL */
};

#endif
