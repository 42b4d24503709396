/* pack_write.h (inside): the inputs from which a packed bank is written. */
#ifndef CGAM_SRC_MEMORY_PACK_WRITE_H
#define CGAM_SRC_MEMORY_PACK_WRITE_H

#include "io/shards.h"
#include "memory/pack.h"

/* Consecutive rows. */
typedef struct cgam_run {
    const void *at; /* [rows, d] of dtype */
    cgam_dtype dtype;
    int64_t rows;
} cgam_run;

typedef struct cgam_pack_job {
    cgam_env *env;
    const char *path, *from; /* file to write; source of the rows, for messages */
    cgam_dtype dtype;
    bool normalize, sketch;
    int64_t alphas;
    double alpha[CGAM_PACK_ALPHAS_MAX];
    int64_t n, d;
    int64_t live, count, capacity; /* rows; runs, and how many fit */
    cgam_run *runs;
    int64_t *number;       /* [live], owned; NULL = 0, 1, ... */
    const char **name;     /* [live] or NULL; owns the list, borrows the texts */
    cgam_columns *columns; /* [live] or NULL; owned */
    /* (inside) */
    cgam_sealed *file;
    cgam_bank *bank;
} cgam_pack_job;

/* Adds rows, borrowed until cgam_pack_job_free. */
cgam_status cgam_pack_job_rows(cgam_pack_job *job, const void *at, cgam_dtype dtype, int64_t rows);
cgam_status cgam_pack_job_write(cgam_pack_job *job);
void cgam_pack_job_free(
    cgam_pack_job *job); /* frees what it holds; a job with only env set is allowed */

/* Rows of a packed bank, or of arrays in files. */
typedef struct cgam_rows_source {
    cgam_packed *packed; /* or NULL, then: */
    cgam_shards shards;
    int64_t rows, d;
    cgam_dtype dtype; /* of the first */
} cgam_rows_source;
cgam_status cgam_rows_source_open(cgam_env *env, const char *path, cgam_rows_source *out);
void cgam_rows_source_close(cgam_env *env, cgam_rows_source *source); /* {0} is allowed */

#endif
