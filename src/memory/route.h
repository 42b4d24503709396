/* route.h: which way a recall takes. Whatever decides between ways is decided here: paths, f32 or
 * double, and how many queries go together. */
#ifndef CGAM_SRC_MEMORY_ROUTE_H
#define CGAM_SRC_MEMORY_ROUTE_H

#include <cgam/recall.h>

enum {
    CGAM_ROUTE_SHARE = 8, /* queries that share a pass over the bank, each with sums of its own; so
                             many or more are multiplied as matrices where that pays */
    CGAM_QUERY_VECTORS = 5, /* of n numbers that a query takes: s0, a, s, r, p, */
    CGAM_QUERY_SCORES = 3,  /* and Z times its q, v and e */
};

/* The change of p, relative to its largest entry, below which a coupled recall has nothing more to
 * gain from f32. */
#define CGAM_ROUTE_F32_END 1e-6

/* What a bank under its A(alpha) allows, whatever the queries. */
typedef struct cgam_reach {
    bool direct;      /* A^-1 Z v comes out of the pass that scores (num/dplr.h: cgam_dplr_range) */
    bool streams;     /* coupled feedback runs inside the pass over Z */
    bool refines;     /* that solve is not exact enough for the end: see coupled.c */
    bool matrices;    /* the bank is large enough for queries to be multiplied as matrices */
    bool f32;         /* it is large enough, and of a type and size, for products in f32 */
    bool coupled_f32; /* the same for coupled feedback */
    bool begins_f32;  /* coupled recalls begin in f32, which is above their tolerance */
    double size;      /* max |zeta| */
    double pivot_max; /* max |dinv| where rows are solved one by one, else 0 */
    double row_max, row_norm; /* the same of |dinv_i| |zeta_i|, and their 2-norm */
} cgam_reach;

/* Of a plan that has its bank, options and gate; *status is left as it is where that could be told. */
cgam_reach cgam_reach_of(const cgam_recall *plan, cgam_status *status);

/* For the next of `queries` that are left of a call. */
cgam_route cgam_route_choose(const cgam_recall *plan, const cgam_recall_in *in,
                             const cgam_recall_out *out, int64_t queries);

#endif
