/* attend.h: a softmax over the rows of a tall matrix, and all results that use it, in one pass.
 *
 *   b_i = <zeta_i, q>,   s_i = given, or pivot_i <zeta_i, e>, or 0,   r_i = b_i + lambda s_i,
 *   p = softmax(beta r):  its sums, the leaders in r, b and s, the rank of one row, and Z'p.
 *
 * No vector of n numbers is written. Each tile of rows, while in cache, is scored, weighted relative to the largest
 * score so far (earlier sums shrink when that rises) and added to the readout. Chunks are those of rows.h, tiles
 * depend only on the shape: the results do not depend on the number of threads.
 *
 * Large banks of f32, f16 and bf16 are scored in f32 (cpu/f32.h) where that cannot move a weight by more
 * than CGAM_ATTEND_F32 of itself,
 *     beta CGAM_F32_ERROR max|zeta| (|q| + lambda max|pivot| |e|) <= CGAM_ATTEND_F32,
 * and in double otherwise. The bound is for the worst case; the observed error is usually a hundredth of it. Leaders,
 * the best of b and s and the requested row are always scored in double in the end; if f32 cannot determine which
 * rows these are, the query is repeated in double. A rank beyond the leaders is counted in f32.
 *
 * Scores in one exponential come from one evaluation: a row that is scored again is subtracted with its first weight
 * and added again relative to the new top, whose own weight is 1. So the sum is at least 1, and no p is above 1. */
#ifndef CGAM_SRC_NUM_ATTEND_H
#define CGAM_SRC_NUM_ATTEND_H

#include "num/rows.h"
#include "num/softmax.h"

enum { CGAM_ATTEND_LEADERS_MAX = 1024 };
#define CGAM_ATTEND_F32 1e-3

typedef struct cgam_attend_in {
    const cgam_rows *Z;
    double beta, lambda;
    int64_t count;   /* queries that share the pass; the bits of each do not depend on the others */
    const double *q; /* [count, d] */
    const double *s; /* [n] the same s for all queries, or NULL */
    const double *e; /* [count, d] directions of s, or NULL; not both */
    const double *pivot;   /* [n], with e */
    const int64_t *border; /* [edge], with e: ascending rows whose s is given, */
    int64_t edge;
    const double *edges;  /* [count, edge], here */
    const int64_t *focus; /* [count] rows whose rank is requested, or NULL; < 0 = none */
    int64_t leaders;      /* number of leaders to keep, 2 .. CGAM_ATTEND_LEADERS_MAX */
    double size;          /* max |zeta| */
    bool f32;             /* scores may be in f32 if size allows it */
    double pivot_max;     /* max |pivot|, with e */
    bool wary;            /* rows were not checked: an infinite score is not a mask */
} cgam_attend_in;

typedef struct cgam_leader {
    double r, b, s;
    int64_t row;
    double weight, against; /* (inside) its weight in the sums, and the top it is relative to */
} cgam_leader;

/* The two largest of a vector, ties to the lower row; row < 0 = absent. */
typedef struct cgam_two {
    double value[2];
    int64_t row[2];
} cgam_two;

typedef struct cgam_attend_out {
    cgam_softmax soft;   /* relative to max r */
    double skipped;      /* bound of the sum of the omitted e, at most 2^-54 sum */
    cgam_leader *leader; /* [leaders] caller's buffer: by falling r, ties to the lower row */
    int64_t leaders;     /* number of leaders found, min(in->leaders, n) */
    cgam_two b, s;       /* best two of each */
    cgam_leader focus;   /* the requested row */
    int64_t above;       /* rows with larger r than focus, or equal r and lower number */
    bool unsure;         /* (inside) the pass could not determine the leaders or other weights */
    double *readout;     /* [d] caller's buffer for Z'p, or NULL */
} cgam_attend_out;

/* Returns true if query v may be scored in f32. */
bool cgam_attend_f32(const cgam_attend_in *in, int64_t v);
/* Returns the error bound of r, b and s of query v, if a sum of products has an error of at most `error` times the
 * size of its terms. */
double cgam_attend_error(const cgam_attend_in *in, int64_t v, double error);
double cgam_attend_error_raw(const cgam_attend_in *in, int64_t v, double error);
double cgam_attend_error_gate(const cgam_attend_in *in, int64_t v, double error);
/* Returns the queries [from, from + count) of a call. */
cgam_attend_in cgam_attend_some(const cgam_attend_in *in, int64_t from, int64_t count);

/* Fills out[count]. The bits of a query do not depend on the others. */
cgam_status cgam_attend(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out);

/* The same for many queries as products of matrices (gemm_pass.h), any count. If cgam_attend would score all queries
 * in f32, they are multiplied in f32, with the bound of gemm_pass.h. Otherwise all are in double, though not in the
 * order of cgam_attend: if beta times that difference may move a weight by more than CGAM_ATTEND_F32, and rows other
 * than those scored again have weight, cgam_attend solves the query. Shared s are added relative to the largest of
 * them, so that only the difference is rounded. The leaders and the focus are scored again in double, and their share
 * of the sums and of the readout is corrected: a peaked softmax is accurate to double. The rounding of a query's
 * results depends on whether it is computed alone. Queries whose products leave the range of f32, or whose leaders
 * f32 cannot determine, are solved by cgam_attend. */
cgam_status cgam_attend_many(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out);

#endif
