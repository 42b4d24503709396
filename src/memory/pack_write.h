/* pack_write.h (inside): what a packed bank is made from. */
#ifndef CGAM_SRC_MEMORY_PACK_WRITE_H
#define CGAM_SRC_MEMORY_PACK_WRITE_H

#include "io/shards.h"
#include "memory/pack.h"

/* Rows that lie one after the other. */
typedef struct cgam_run {
    const void *at; /* [rows, d] of dtype */
    cgam_dtype dtype;
    int64_t rows;
} cgam_run;

typedef struct cgam_pack_job {
    cgam_env *env;
    const char *path, *from; /* to be written; where rows come from, for messages */
    cgam_dtype dtype;
    bool normalize, sketch;
    int64_t alphas;
    double alpha[CGAM_PACK_ALPHAS_MAX];
    int64_t n, d;
    int64_t live, count, capacity; /* rows; runs, and how many fit */
    cgam_run *runs;
    int64_t *number;   /* [live] or NULL = 0, 1, ...; its own */
    const char **name; /* [live] or NULL; the list is its own, the texts are not */
    /* (inside) */
    cgam_sealed *file;
    cgam_bank *bank;
} cgam_pack_job;

/* More rows, borrowed until cgam_pack_job_free. */
cgam_status cgam_pack_job_rows(cgam_pack_job *job, const void *at, cgam_dtype dtype, int64_t rows);
cgam_status cgam_pack_job_write(cgam_pack_job *job);
void cgam_pack_job_free(
    cgam_pack_job *job); /* what it holds; copes with one that only has an env */

/* Rows of a packed bank, or of arrays in files. */
typedef struct cgam_rows_source {
    cgam_packed *packed; /* or NULL: */
    cgam_shards shards;
    int64_t rows, d;
    cgam_dtype dtype; /* of the first */
} cgam_rows_source;
cgam_status cgam_rows_source_open(cgam_env *env, const char *path, cgam_rows_source *out);
void cgam_rows_source_close(cgam_env *env, cgam_rows_source *source); /* copes with {0} */

#endif
