/* route.h (inside): which way the queries of a call take. All decisions between ways are made in route.c, once a call:
 * the path, f32 or double, and how many queries go together. */
#ifndef CGAM_SRC_MEMORY_ROUTE_H
#define CGAM_SRC_MEMORY_ROUTE_H

#include "memory/plan.h"

enum {
    CGAM_ROUTE_SHARE = 8, /* queries that share a pass over the bank, each with sums of its own; so
                             many or more are multiplied as matrices where that pays */
    CGAM_QUERY_VECTORS = 5, /* of n numbers that a query takes: s0, a, s, r, p, */
    CGAM_QUERY_SCORES = 3,  /* and Z times its q, v and e */
};

/* The change of p, relative to its largest entry, below which a coupled recall has nothing more to
 * gain from f32. */
#define CGAM_ROUTE_F32_END 1e-6

/* Of a plan that has its bank, options and gate; *status is unchanged on success. */
cgam_reach cgam_reach_of(const cgam_recall *plan, cgam_status *status);

/* Do so many queries pay as matrices? */
bool cgam_route_multiplies(const cgam_recall *plan, int64_t queries);

/* The queries of a call in groups; fewer than CGAM_ROUTE_SHARE that are left by matrices are routed by their count. */
typedef struct cgam_schedule {
    const cgam_recall *plan;
    const cgam_recall_in *in;
    const cgam_recall_out *out;
    int64_t from, count; /* the present group: queries [from, from + count), */
    cgam_route route;    /* and its way */
    int64_t rest_from;   /* from this query on */
    cgam_route rest;     /* the way is this */
} cgam_schedule;

/* At the first group, which no other is larger than; and on to the next: false = that was the last. */
cgam_schedule cgam_schedule_open(const cgam_recall *plan, const cgam_recall_in *in,
                                 const cgam_recall_out *out);
bool cgam_schedule_next(cgam_schedule *x);
/* The same with the vectors of every query, whatever they are needed for. Mode first. */
cgam_schedule cgam_schedule_vectors(const cgam_recall *plan, const cgam_recall_in *in,
                                    const cgam_recall_out *out);

#endif
