/* ranks.h (inside): rows that are spread over ranks (cgam/ranks.h), for the engines of src/num.
 *
 * Every division of the rows - chunks of a pass, slices of a Gram matrix - has a power of two of parts, fixed by the
 * shape, so that divisions nest. Ranks divide the rows by the coarsest of them: no chunk of any kind is on two
 * ranks. A rank computes its own chunks. Then the ranks share records of chunks, or join sums of chunks: those are
 * added in pairs, by a tree on the chunk numbers, so that the result does not depend on which rank adds. All ranks
 * compute everything after that identically. In one process sharing costs nothing and joining is the same tree.
 *
 * Vectors of one number per row, and reductions over them, are in vec.h.
 *
 * Every exchange begins with a vote in which each rank reports its status. A rank that failed skips the exchanges and
 * reports its status in cgam_ranks_end, whose vote the other ranks wait for. */
#ifndef CGAM_SRC_NUM_RANKS_H
#define CGAM_SRC_NUM_RANKS_H

#include <cgam/base.h>

#include "num/vec.h"

enum { CGAM_BRING_WITH = 4 }; /* vectors whose entries come with a row, its factor included */

typedef struct cgam_shard {
    cgam_env *env; /* of the bank */
    cgam_ranks *ranks;
    int64_t n, units;
    int64_t *at;        /* [ranks + 1] units: rank r has [at[r], at[r + 1]) */
    int64_t begin, end; /* rows stored here */
    int64_t first;      /* the row that data of the matrix begins with */
    int64_t count;      /* rows brought here, */
    int64_t *brought;   /* [count] ascending, */
    char *rows;         /* [count, step] as stored, and the entries that came along */
    size_t bytes, step; /* of a row, and with those */
    const double *with[CGAM_BRING_WITH]; /* the vectors of these entries; NULL: none */
    double *terms;                       /* [CGAM_CHUNKS_MAX, CGAM_REDUCE_WIDTH] */
    size_t *from;                        /* [ranks + 1] scratch */
} cgam_shard;

/* _agree votes on the status of all ranks. The other two vote; then in _share every rank sends its part to all
 * (`share` of the table), in _tell only rank 0. */
cgam_status cgam_ranks_agree(cgam_env *env, cgam_ranks *ranks);
cgam_status cgam_ranks_share(cgam_env *env, cgam_ranks *ranks, void *data, const size_t *at);
cgam_status cgam_ranks_tell(cgam_env *env, cgam_ranks *ranks, void *data, size_t bytes);

/* Z has its shape already. *out = NULL if every rank has all rows. */
cgam_status cgam_shard_new(cgam_env *env, cgam_ranks *ranks, const cgam_rows *Z, cgam_shard **out);
void cgam_shard_free(cgam_env *env, cgam_shard *shard); /* NULL is allowed */

/* Returns the first chunk of `chunks` (or row of n) that rank r has. */
int64_t cgam_shard_first(const cgam_shard *shard, int64_t chunks, int r);

/* Runs task for the chunks that this rank has. */
cgam_status cgam_rows_run(cgam_env *env, const cgam_rows *Z, int64_t chunks, cgam_task task,
                          void *arg);
/* Fills in the other ranks' records of base [chunks], of so many bytes each. chunks = n: a record per row. */
cgam_status cgam_rows_share(cgam_env *env, const cgam_rows *Z, int64_t chunks, size_t bytes,
                            void *base);
/* Memory for the sums of this rank's chunks; those of chunk k begin at + k * size. Free it with cgam_parts_free. */
double *cgam_parts_new(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size);
void cgam_parts_free(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                     double *parts); /* NULL is allowed */
/* out[size] = the sum of parts over chunks; overwrites parts. */
cgam_status cgam_rows_join(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                           double *parts, double *out);
/* The two halves of it: the pairs of this rank, numbers [from, to) of each part; and all others. part [chunks] points
 * to this rank's sums, NULL where a sum was added to another. *total points to the whole sum: one of `part`, or `buffer`
 * if another rank has the first chunk. */
void cgam_rows_join_here(const cgam_rows *Z, int64_t chunks, int64_t size, int64_t from, int64_t to,
                         double *parts);
cgam_status cgam_rows_join_rest(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                                double *const *part, double *buffer, double **total);
/* Does this rank have all of the chunks [k, k + 2 step) below `chunks`? */
bool cgam_rows_pair_here(const cgam_rows *Z, int64_t chunks, int64_t k, int64_t step);
/* This rank has the chunks [*from, *to). */
void cgam_rows_here(const cgam_rows *Z, int64_t chunks, int64_t *from, int64_t *to);

/* Records a failure of this rank that cannot be returned; the next vote reports it to the others. */
void cgam_rows_failed(const cgam_rows *Z, cgam_status status);

/* Like cgam_rows_bring, and entries of vectors come with the rows (NULL, or at most CGAM_BRING_WITH - 1 vectors, some
 * of which may be NULL), for cgam_rows_entries. */
cgam_status cgam_rows_bring_with(cgam_env *env, const cgam_rows *Z, int64_t count,
                                 const int64_t *row, const double *const *with, int vectors);
/* values [many] = the maximum over all ranks, for each value separately. */
cgam_status cgam_rows_most(cgam_env *env, const cgam_rows *Z, int64_t many, double *values);

#endif
