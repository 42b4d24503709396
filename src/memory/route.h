/* route.h (inside): chooses how the queries of a call are computed. route.c makes all these decisions, once a call:
 * the path, f32 or double, and how many queries are computed together. */
#ifndef CGAM_SRC_MEMORY_ROUTE_H
#define CGAM_SRC_MEMORY_ROUTE_H

#include "memory/plan.h"

enum {
    CGAM_ROUTE_SHARE = 8,   /* queries that share a pass over the bank, each with its own sums; so
                             many or more are multiplied as matrices where that pays */
    CGAM_QUERY_VECTORS = 5, /* vectors of n numbers that a query takes: s0, a, s, r, p, */
    CGAM_QUERY_SCORES = 3,  /* and Z times its q, v and e */
};

/* A coupled recall leaves f32 when p changes by less than this, relative to its largest entry. */
#define CGAM_ROUTE_F32_END 1e-6

/* Computes it for a plan with bank, options and gate; *status is unchanged on success. */
cgam_reach cgam_reach_of(const cgam_recall *plan, cgam_status *status);

/* Returns true if computing this many queries as matrices is faster. */
bool cgam_route_multiplies(const cgam_recall *plan, int64_t queries);

/* Are coupled queries solved by sums.c, and without vectors of s, r and p? */
bool cgam_route_sums(const cgam_recall *plan, const cgam_recall_in *in);
bool cgam_route_light(const cgam_recall *plan, const cgam_recall_out *out);

/* The queries of a call in groups. If matrices leave fewer than CGAM_ROUTE_SHARE queries, these are routed by their
 * count. */
typedef struct cgam_schedule {
    const cgam_recall *plan;
    const cgam_recall_in *in;
    const cgam_recall_out *out;
    int64_t from, count; /* the current group: queries [from, from + count), */
    cgam_route route;    /* and its route */
    int64_t rest_from;   /* queries from this one on */
    cgam_route rest;     /* take this route */
} cgam_schedule;

/* _open returns the schedule at the first group, which is the largest. _next moves to the next group and returns
 * false after the last. */
cgam_schedule cgam_schedule_open(const cgam_recall *plan, const cgam_recall_in *in,
                                 const cgam_recall_out *out);
bool cgam_schedule_next(cgam_schedule *x);
/* Like cgam_schedule_open, with the vectors of every query. Mode first. */
cgam_schedule cgam_schedule_vectors(const cgam_recall *plan, const cgam_recall_in *in,
                                    const cgam_recall_out *out);

#endif
