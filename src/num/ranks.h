/* ranks.h (inside): rows that are spread over ranks (cgam/ranks.h), and what engines ask of the others.
 *
 * Every way to cut the rows - chunks of a pass, slices of a Gram matrix - is a power of two fixed by the
 * shape, so that they nest, and the coarsest of them is what ranks are cut by: a chunk of any kind is on
 * one rank. A pass does the chunks that are here; what they gathered is shared (records of a chunk) or joined
 * (sums, added up in pairs by a tree on the numbers of chunks, so that who adds makes no difference). Whatever
 * follows is done by every rank alike. With all rows here sharing costs nothing and joining is the same tree.
 *
 * A vector of one number a row has, on a rank, the entries of its rows alone, at their places: x[i] is row i's.
 * What is said of all of them - a sum, the largest - is a tally: of each chunk first, then of chunks in order.
 *
 * Each of these begins with a word of all ranks that they are well. A rank that failed does not come; it
 * says so in cgam_ranks_end, and its word is the one that the others wait for. */
#ifndef CGAM_SRC_NUM_RANKS_H
#define CGAM_SRC_NUM_RANKS_H

#include <cgam/ranks.h>

#include "num/rows.h"

enum {
    CGAM_BRING_WITH = 4,  /* vectors whose entries come with a row, its factor included */
    CGAM_TALLY_WIDTH = 8, /* numbers of a tally */
};

typedef struct cgam_shard {
    cgam_ranks *ranks;
    int64_t n, units;
    int64_t *at;        /* [ranks + 1] units: rank r has [at[r], at[r + 1]) */
    int64_t begin, end; /* rows that are here */
    int64_t first;      /* the row that data of the matrix begins with */
    int64_t count;      /* rows brought here, */
    int64_t *brought;   /* [count] ascending, */
    char *rows;         /* [count, step] as stored, and the entries that came along */
    size_t bytes, step; /* of a row, and with those */
    const double *with[CGAM_BRING_WITH]; /* the vectors they are of; NULL: none */
    double *tally;                       /* [CGAM_CHUNKS_MAX, CGAM_TALLY_WIDTH] */
    size_t *from;                        /* [ranks + 1] scratch */
} cgam_shard;

/* A word of all ranks that they are well; then each tells all, as `share` of the table has it, or rank 0 does. */
cgam_status cgam_ranks_agree(cgam_env *env, cgam_ranks *ranks);
cgam_status cgam_ranks_share(cgam_env *env, cgam_ranks *ranks, void *data, const size_t *at);
cgam_status cgam_ranks_tell(cgam_env *env, cgam_ranks *ranks, void *data, size_t bytes);

/* Of Z, which has its shape; *out = NULL where every rank has all rows. */
cgam_status cgam_shard_new(cgam_env *env, cgam_ranks *ranks, const cgam_rows *Z, cgam_shard **out);
void cgam_shard_free(cgam_env *env, cgam_shard *shard); /* NULL is fine */

/* Runs task for those of `chunks` that are here. */
cgam_status cgam_rows_run(cgam_env *env, const cgam_rows *Z, int64_t chunks, cgam_task task,
                          void *arg);
/* base [chunks] records of so many bytes: those of other ranks are filled in. chunks = n: of rows. */
cgam_status cgam_rows_share(cgam_env *env, const cgam_rows *Z, int64_t chunks, size_t bytes,
                            void *base);
/* Sums of chunks: room for those that are here, part k at + k * size. Free it with cgam_parts_free. */
double *cgam_parts_new(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size);
void cgam_parts_free(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                     double *parts); /* NULL is fine */
/* out[size] = sum over chunks of parts, which are lost. */
cgam_status cgam_rows_join(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                           double *parts, double *out);
/* The two halves of it: the pairs that are here, numbers [from, to) of each part; and all others. part [chunks]:
 * where the sums that are here are, NULL for those that have gone into another. *total: the one that has it all, of
 * `part`, or `room` where the first chunk is elsewhere. */
void cgam_rows_join_here(const cgam_rows *Z, int64_t chunks, int64_t size, int64_t from, int64_t to,
                         double *parts);
cgam_status cgam_rows_join_rest(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                                double *const *part, double *room, double **total);
/* Is [k, k + 2 step), cut off at `chunks`, here as a whole? */
bool cgam_rows_pair_here(const cgam_rows *Z, int64_t chunks, int64_t k, int64_t step);
/* The chunks that are here: [*from, *to). */
void cgam_rows_here(const cgam_rows *Z, int64_t chunks, int64_t *from, int64_t *to);

/* ---- Vectors of one number a row. ------------------------------------------------------------ */
typedef struct cgam_span {
    int64_t from, to, size; /* rows [from, to) are here */
} cgam_span;
cgam_span cgam_rows_span(const cgam_rows *Z);
static inline bool cgam_span_has(cgam_span here, int64_t i)
{
    return i >= here.from && i < here.to;
}
/* `count` vectors, vector k at + k * span.size; not set. Free them with cgam_vectors_free. */
double *cgam_vectors_new(cgam_env *env, const cgam_rows *Z, int64_t count);
void cgam_vectors_free(cgam_env *env, const cgam_rows *Z, double *x); /* NULL is fine */
void cgam_vectors_copy(const cgam_rows *Z, double *to, const double *x);
void cgam_vectors_fill(const cgam_rows *Z, double *to, double value);
/* all[n] = x, on every rank: for whom the caller asked for it. */
cgam_status cgam_vectors_gather(cgam_env *env, const cgam_rows *Z, const double *x, double *all);
/* x'y, and |x|, as cgam_vec_dot and cgam_vec_norm have them; NAN where a rank has failed, which the next message
 * tells. */
double cgam_vectors_dot(cgam_env *env, const cgam_rows *Z, const double *x, const double *y);
double cgam_vectors_norm(cgam_env *env, const cgam_rows *Z, const double *x);

/* Numbers told of all rows. `how` has a sign for each: + a sum, > the largest, < the least; 2 and the next: a sum and
 * what rounding left of it; ^ and the next: the largest and its row, the first of equals (as a double).
 *     cgam_tally t;
 *     cgam_tally_open(&t, Z, "+>");
 *     while (cgam_tally_next(&t))
 *         for (int64_t i = t.from; i < t.to; i++) { t.x[0] += ..; t.x[1] = fmax(t.x[1], ..); }
 *     cgam_status status = cgam_tally_close(env, &t);        then t.x has them
 * A status that nobody looks at is not lost, since all have it: whatever goes between ranks next fails with it. */
typedef struct cgam_tally {
    const cgam_rows *Z;
    const char *how;
    int64_t chunks, chunk, stop;
    int64_t from, to; /* rows of the chunk */
    double x[CGAM_TALLY_WIDTH], all[CGAM_TALLY_WIDTH];
} cgam_tally;
void cgam_tally_open(cgam_tally *t, const cgam_rows *Z, const char *how);
bool cgam_tally_next(cgam_tally *t);
cgam_status cgam_tally_close(cgam_env *env, cgam_tally *t);

/* A failure that has been told to all ranks, after which sums are NaN; else CGAM_OK. */
cgam_status cgam_rows_ended(const cgam_rows *Z);
/* Keeps a failure of this rank alone, where it cannot be returned: the others hear of it with the next message. */
void cgam_rows_failed(const cgam_rows *Z, cgam_status status);

/* Records of so many bytes, `mine` of this rank: *all is an array of those of all, by rank, `*total` of them; free it
 * with cgam_free. */
cgam_status cgam_rows_collect(cgam_env *env, const cgam_rows *Z, size_t bytes, int64_t mine,
                              const void *records, int64_t *total, void **all);

/* Those of rank `from` alone, `mine` where it is this one: *theirs is an array of `*count`; free it with cgam_free. */
cgam_status cgam_rows_tell(cgam_env *env, const cgam_rows *Z, int from, size_t bytes, int64_t mine,
                           const void *records, int64_t *count, void **theirs);
/* flag[count]: true where it is on any rank. */
cgam_status cgam_rows_any(cgam_env *env, const cgam_rows *Z, int64_t count, char *flag);

/* Makes these rows readable here, one by one, until others are brought; row < 0 is none. The entries of vectors
 * come with them (NULL, or at most CGAM_BRING_WITH - 1 of which some may be NULL), for cgam_rows_entries. */
cgam_status cgam_rows_bring(cgam_env *env, const cgam_rows *Z, int64_t count, const int64_t *row);
cgam_status cgam_rows_bring_with(cgam_env *env, const cgam_rows *Z, int64_t count,
                                 const int64_t *row, const double *const *with, int vectors);
/* values [count, each]: row[k]'s are known where that row is, then everywhere. */
cgam_status cgam_rows_pick(cgam_env *env, const cgam_rows *Z, int64_t count, const int64_t *row,
                           int64_t each, double *values);
/* values [count] = x of these rows. */
cgam_status cgam_vectors_pick(cgam_env *env, const cgam_rows *Z, const double *x, int64_t count,
                              const int64_t *row, double *values);
/* The largest of all ranks' values [many], each by itself. */
cgam_status cgam_rows_most(cgam_env *env, const cgam_rows *Z, int64_t many, double *values);
/* The least of all ranks' values. */
cgam_status cgam_rows_least(cgam_env *env, const cgam_rows *Z, double *value);
/* task(arg, i), i < count, each of which may pass over Z: side by side, or in turn where that takes messages. */
cgam_status cgam_rows_each(cgam_env *env, const cgam_rows *Z, int64_t count, cgam_task task,
                           void *arg);
/* What goes between ranks from here on belongs to an iteration; no longer, and so many are complete. */
void cgam_rows_iterates(const cgam_rows *Z);
void cgam_rows_iterated(const cgam_rows *Z, int64_t iterations);

#endif
