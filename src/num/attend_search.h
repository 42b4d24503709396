/* attend_search.h: the parts of a search by a sketch for a few queries (attend_fast.c), and its first steps. */
#ifndef CGAM_SRC_NUM_ATTEND_SEARCH_H
#define CGAM_SRC_NUM_ATTEND_SEARCH_H

#include "num/attend_parts.h"
#include "num/sketch.h"

enum { CGAM_SEEK_BINS = 512 }; /* of a histogram of the possible weights of rows */

/* One vector of a query, q or e. */
typedef struct cgam_probe {
    cgam_sketched is;
    cgam_sketch_error off[CGAM_SKETCH_TERMS];
    double unit;       /* the unit of its scores */
    const float *scan; /* [n] */
} cgam_probe;

/* One query. */
typedef struct cgam_seeker {
    cgam_probe q, e;
    double floor_r, floor_b, floor_s; /* scores that a row must reach to stay open */
    double top;                       /* weights are relative to this, a score in double */
    cgam_leader focus;
    int64_t listed, limit; /* number of rows left open, and its limit */
    bool lowered;          /* its floor, to meet the tolerance */
    _Atomic double
        seen; /* in some chunk, as many rows as leaders score at least this by the scan */
} cgam_seeker;

/* The results of one query over one chunk. */
typedef struct cgam_seek_part {
    cgam_attend_part best; /* by the scan; above: rows that are certainly above the focus */
    double low, high;      /* weights of the rows that are not listed */
    double *bins;          /* [CGAM_SEEK_BINS] */
    int64_t listed;
} cgam_seek_part;

/* A row left open, and its result. */
typedef struct cgam_open_row {
    int64_t query, row;
    bool closed; /* decided by the second term: it weighs between low and high */
    double low, high;
    cgam_leader is;
} cgam_open_row;

typedef struct cgam_search {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_sketch *sketch;
    bool gated, wide; /* wide: the scan is by wide numbers, else by first terms */
    bool again;       /* only process queries whose floor was lowered */
    int64_t vectors, chunks, leaders;
    double tol;
    cgam_seeker *seek;     /* [count] */
    cgam_seek_part *parts; /* [count, chunks] */
    cgam_leader *leader;   /* [count, chunks + 1, leaders] */
    double *bins;          /* [count, chunks, CGAM_SEEK_BINS], with tol */
    int32_t *list;         /* [count, n]: rows left open, from the begin of their chunk */
    int8_t *terms_of;      /* [vectors, CGAM_SKETCH_TERMS, d] */
    float *steps;          /* [vectors, CGAM_SKETCH_TERMS, blocks] */
    int16_t *numbers;      /* [vectors, blocks CGAM_INT8_BLOCK] wide */
    float *scores;         /* [vectors, n] */
    char *second; /* second terms as cpu/int8.h lays them out, `second_room` each; one term only */
    size_t second_room;
    cgam_open_row *open;
} cgam_search;

/* Returns how many rows may be scored in double before a pass over all of them costs less. With many queries a row
 * costs a pass less than one reading. */
int64_t cgam_search_worth(const cgam_search *x);
/* Allocates everything, from env, in, sketch, gated, wide, tol and the numbers; free it after a failure too. */
cgam_status cgam_search_new(cgam_search *x);
void cgam_search_free(cgam_search *x);
/* Sketches the vectors and, for first terms, scans with them. A query whose units are out of range gets a limit of
 * -1. */
cgam_status cgam_search_scan(cgam_search *x);
/* With wide numbers: scans rows [begin, begin + count) for query v. */
void cgam_search_scan_wide(cgam_search *x, int64_t v, int64_t begin, int64_t count);

#endif
