/* ranks.h: a bank over several processes, whatever carries their messages.
 *
 * Rows of a bank with opts.ranks are spread over the ranks: each reads its own, and sums of d numbers go between them.
 * Vectors of one number a memory (norms, gates, p) that a call takes or fills are [n] as ever, of which a rank reads
 * and writes the entries of its own rows (cgam_ranks_cut); but starts and gate weights W are given whole, and p, s and r
 * of a recall are filled whole where they are asked for. All ranks make the same calls on the bank, and on gates and recalls made of it, in the same order and
 * from one thread; each of these ends with cgam_ranks_end. Every rank has every result, with the bits that one process
 * has. Flows, fast recalls, maps, landscapes, networks, winners and horizons are for one process: CGAM_E_UNSUPPORTED.
 *
 * cgam/mpi.h fills this table by MPI. Functions give false where a message could not be passed on.
 */
#ifndef CGAM_RANKS_H
#define CGAM_RANKS_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank took part in since the table was made, counted as every rank can foresee it: a send is one message;
 * what one tells all the others is one to each; what all tell all is one from each to each other. */
typedef struct cgam_traffic {
    int64_t messages, bytes;                     /* of all ranks together */
    int64_t iterations;                          /* of coupled recalls, during which of these */
    int64_t iteration_messages, iteration_bytes; /* went */
} cgam_traffic;

typedef struct cgam_ranks {
    int rank, ranks;
    void *user;
    bool (*send)(void *user, int to, const void *data, size_t bytes);
    bool (*receive)(void *user, int from, void *data, size_t bytes);
    /* data [at[ranks]] bytes: of rank r those in [at[r], at[r + 1]); then everybody has all. */
    bool (*share)(void *user, void *data, const size_t *at);
    bool (*spread)(void *user, int from, void *data, size_t bytes);
    bool (*merge)(void *user, uint64_t *words, size_t count); /* the bitwise or, to all */
    /* kept by the library */
    cgam_traffic traffic;
    cgam_status ended;  /* a failure that has been told to all, else CGAM_OK */
    cgam_status untold; /* one of this rank's own that it could not return, else CGAM_OK */
} cgam_ranks;

/* Ends a call that all ranks made: where one or more of them failed, with `mine` not CGAM_OK there, all get the status
 * and, on env, the message of the lowest such rank, with "rank R: " before it unless all failed alike. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ranks_end(cgam_env *env, cgam_ranks *ranks,
                                                   cgam_status mine);

/* Rows [*begin, *end) of a bank [n, d] are those of a rank. Banks too small to be cut (up to 2,048 memories, no more
 * than d, or one group) are whole on every rank: [0, n). */
CGAM_API void cgam_ranks_cut(int64_t n, int64_t d, int ranks, int rank, int64_t *begin,
                             int64_t *end);

#ifdef __cplusplus
}
#endif

#endif
