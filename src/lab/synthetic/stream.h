/* stream.h: where the random numbers of a study come from.
 *
 * Every number is a function of (seed, stream, position), see cgam/rng.h. The stream identifies the use of the
 * numbers, so any trial can be recomputed alone, in any order and on any thread:
 *
 *   bits 63..58  study      CGAM_STREAM_SEPARATION ...
 *   bits 57..54  purpose    CGAM_STREAM_BANK ...
 *   bits 53..42  set        which bank (0 if a study has one bank, or one per trial)
 *   bits 41..32  cell       which point of the grid (sigma_q, size of the bank, check), else 0
 *   bits 31..0   trial
 *
 * Within a stream, numbers are drawn in the order of the arrays they fill, row by row. Results of a
 * seed depend on this numbering: do not renumber. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_STREAM_H
#define CGAM_SRC_LAB_SYNTHETIC_STREAM_H

#include "base/rng.h"

#include <cgam/base.h>

enum {
    CGAM_STREAM_SEPARATION = 1,
    CGAM_STREAM_COMPETITION = 2,
    CGAM_STREAM_COUPLED = 3,
    CGAM_STREAM_TIMESCALE = 4,
    CGAM_STREAM_THEOREMS = 5,
    CGAM_STREAM_CAPACITY = 6,
    CGAM_STREAM_PHASE = 7,
    CGAM_STREAM_CONVERGENCE = 8,
    CGAM_STREAM_ANNEALING = 9,
    CGAM_STREAM_SPARSE = 10,
    CGAM_STREAM_RIVALS = 11 /* its cues are those of separation */
};
enum {
    CGAM_STREAM_BANK = 1,    /* memories; for clusters the centre first */
    CGAM_STREAM_TARGET = 2,  /* which memory is meant */
    CGAM_STREAM_QUERY = 3,   /* epsilon */
    CGAM_STREAM_CONTEXT = 4, /* eta */
    CGAM_STREAM_START = 5,   /* r(0) */
    CGAM_STREAM_CASE = 6,    /* everything of a random instance */
    CGAM_STREAM_ROWS = 7,    /* which rows of a given bank */
    CGAM_STREAM_WRONG = 8,   /* whether the context means another memory, and which */
    CGAM_STREAM_KEYS = 9,    /* keys of contexts in a space of their own */
    CGAM_STREAM_MASK = 10    /* units of each context */
};
enum { CGAM_STREAM_SETS = 1 << 12, CGAM_STREAM_CELLS = 1 << 10 };
#define CGAM_STREAM_TRIALS ((int64_t)1 << 32)

static inline cgam_rng cgam_stream(uint64_t seed, int study, int purpose, int64_t set, int64_t cell,
                                   int64_t trial)
{
    return cgam_rng_stream(seed, (uint64_t)study << 58 | (uint64_t)purpose << 54 |
                                     (uint64_t)set << 42 | (uint64_t)cell << 32 | (uint64_t)trial);
}

#endif
