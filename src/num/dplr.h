/* dplr.h: diagonal plus low rank,  T = diag(D) + a Z Z' + sigma w w',  a >= 0, sigma >= 0,
 * solved and counted without ever forming an n x n matrix, unless n <= d, where that is smaller, or
 * n is small and a |zeta|^2 large, where the low rank would cancel against the diagonal.
 *
 * Every operator of the theory is of the kind
 *     T = level I + a (Z Z' - diag(Z Z')) - sigma (diag w - w w'),   D_i = level - a n_i - sigma w_i:
 * the gate operator A (level 1, a = alpha), its shifts, and the Hessian of the coupled energy
 * A - lambda^2 beta (diag p - pp'). Its diagonal, level - sigma w_i (1 - w_i), is known without cancellation; with a
 * D given by the caller it is D_i + a n_i + sigma w_i^2. */
#ifndef CGAM_SRC_NUM_DPLR_H
#define CGAM_SRC_NUM_DPLR_H

#include "num/rows.h"

typedef struct cgam_dplr cgam_dplr;

typedef struct cgam_dplr_spec {
    const cgam_rows *Z;  /* [n, d], borrowed */
    const double *norm2; /* [n] |zeta_i|^2, borrowed */
    const double *D;     /* [n], copied; NULL = from level, as above */
    double a;
    const double *w; /* [n], borrowed; NULL = no such term */
    double sigma;
    double level; /* used if D is NULL */
    const double
        *gram; /* [d, d] Z'Z, lower triangle by rows, borrowed: spares cgam_dplr_new its pass
                           over Z where all D are one number; NULL = not known */
} cgam_dplr_spec;

/* Entry (i, i) of T, and D_i; *error, which may be NULL, bounds what rounding did to it, that of the
 * norms included. */
double cgam_dplr_diagonal(const cgam_dplr_spec *spec, int64_t i, double *error);
double cgam_dplr_pivot(const cgam_dplr_spec *spec, int64_t i, double *error);
/* T itself, n x n: the lower triangle by rows. |T as stored - T| <= *error in the spectral norm. twice: computes
 * products of rows in twice the precision, which costs a hundred times as much; otherwise that is done only for few
 * and short rows, and for entries whose error would exceed their share of 2^-33. */
cgam_status cgam_dplr_matrix(cgam_env *env, const cgam_dplr_spec *spec, bool twice, double *T,
                             double *error);
enum { CGAM_DPLR_SMALL = 192 }; /* up to this many memories, proofs use the n x n matrix */
/* Is every eigenvalue of T above `floor`? *proved is true only if that is proved, rounding included. */
cgam_status cgam_dplr_above(cgam_env *env, const cgam_dplr_spec *spec, double floor, bool *proved);
/* How close below `value` can that be proved? *under starts from its given value and grows until all eigenvalues are
 * above value - *under; nothing is proved if it exceeds `most`. *nothing: no eigenvalue seems to be below the first
 * of these floors, rounding aside. Takes one pass over Z if pivots are not small. Requires n > d. */
cgam_status cgam_dplr_above_near(cgam_env *env, const cgam_dplr_spec *spec, double value,
                                 double most, double *under, bool *nothing);

/* Is an eigenvalue below `ceiling`? Proved by a vector, for which T is factored once more. */
cgam_status cgam_dplr_below(cgam_env *env, const cgam_dplr_spec *spec, double ceiling,
                            bool *proved);

/* Factors T: O(n d^2 + d^3), or O(n^2 d + n^3) when n <= d, or O(n) when a = 0. */
cgam_status cgam_dplr_new(cgam_env *env, const cgam_dplr_spec *spec, cgam_dplr **out);
void cgam_dplr_free(cgam_dplr *T); /* NULL is allowed */
size_t cgam_dplr_bytes(const cgam_dplr *T);

/* Returns an upper bound of the doubles that cgam_dplr_new allocates, except a few vectors. */
double cgam_dplr_cost(const cgam_dplr_spec *spec);

/* Return the number of negative eigenvalues (Sylvester), and whether T is singular to working precision. */
int64_t cgam_dplr_negative(const cgam_dplr *T);
bool cgam_dplr_singular(const cgam_dplr *T);

/* y = T x, two passes over Z. */
cgam_status cgam_dplr_apply(const cgam_dplr *T, const double *x, double *y);

/* The same for sigma = 0, with |y_i - (T x)_i| <= error[i]; error may be NULL. T: the factored spec, or NULL. */
cgam_status cgam_dplr_apply_bounded(cgam_env *env, const cgam_dplr_spec *spec, const cgam_dplr *T,
                                    const double *x, double *y, double *error);

/* Upper bound of |T^-1|_2, for T = spec of at most CGAM_DPLR_SMALL memories; INFINITY: not proved. For more memories
 * use cgam_dplr_solve_gain. */
cgam_status cgam_dplr_inverse_norm(const cgam_dplr *T, const cgam_dplr_spec *spec, double *bound);

/* y = T^-1 x with iterative refinement. *backward = |T y - x| / (|T| |y| + |x|) as measured on the returned y, with
 * |T| taken no larger than its largest diagonal entry; may be NULL. */
cgam_status cgam_dplr_solve(const cgam_dplr *T, const double *x, double *y, double *backward);

/* The same without refinement, two passes over Z: for iterations that correct their own errors. scratch [n]. */
cgam_status cgam_dplr_solve_once(const cgam_dplr *T, const double *x, double *y, double *scratch);

/* ---- The pieces, for callers that stream over Z themselves. -------------------------------
 * A solve ends in  y_i = dinv_i (x_i - <zeta_i, t>)  for all rows but the m "border" rows, whose
 * dinv is 0 and whose y comes from the small system. */
bool cgam_dplr_dense(const cgam_dplr *T); /* n x n inside: the functions below do not apply */
const double *cgam_dplr_dinv(const cgam_dplr *T);                    /* [n] */
int64_t cgam_dplr_border(const cgam_dplr *T, const int64_t **index); /* m, and which rows [m] */

/* From g[d] = sum_i dinv_i x_i zeta_i and x of the border rows [m]: t[d] and their y [m].
 * Only for sigma = 0. */
cgam_status cgam_dplr_reduce(const cgam_dplr *T, const double *g, const double *x_border, double *t,
                             double *y_border);

/* The same with the inverse of the small system, for callers that reduce often: a product with half of a symmetric
 * matrix, on all threads, instead of two triangular solves on one. `count` right sides at once: g and t [count, d],
 * borders [count, m]; t may be g, and y_border may be x_border. Requires sigma = 0, and not dense. *out is NULL if a
 * = 0, or if the inverse would exceed the memory limit of cgam_dplr_cost. f32: computes in f32, with the inverse
 * rounded to f32, and so reads half as much. */
typedef struct cgam_dplr_inverse cgam_dplr_inverse;
cgam_status cgam_dplr_inverse_new(const cgam_dplr *T, cgam_dplr_inverse **out);
void cgam_dplr_inverse_free(cgam_dplr_inverse *M);          /* NULL is allowed */
size_t cgam_dplr_inverse_bytes(const cgam_dplr_inverse *M); /* NULL: 0 */
cgam_status cgam_dplr_inverse_reduce(const cgam_dplr_inverse *M, int64_t count, bool f32,
                                     const double *g, const double *x_border, double *t,
                                     double *y_border);

/* T^-1 Z v without cancellation: y_i = dinv_i <zeta_i, e>, border rows in y_border. Only for
 * sigma = 0. */
cgam_status cgam_dplr_range(const cgam_dplr *T, const double *v, double *e, double *y_border);

/* Error bounds in the 2-norm, against exact arithmetic: of e and y_border of cgam_dplr_range, if v has an error of
 * v_off; of t and y_border of cgam_dplr_reduce, if g has an error of g_off. INFINITY if unknown. O(d^2). The relative
 * error of dinv is at most cgam_dplr_pivot_off. */
cgam_status cgam_dplr_range_off(const cgam_dplr *T, const double *v, double v_off, const double *e,
                                const double *y_border, double *off_e, double *off_border);
cgam_status cgam_dplr_reduce_off(const cgam_dplr *T, const double *g, double g_off,
                                 const double *x_border, const double *t, const double *y_border,
                                 double *off_t, double *off_border);
double cgam_dplr_pivot_off(const cgam_dplr *T);
/* The functions above need |K^-1| of the small system. It is known without this call if all D are positive and there
 * is no border; otherwise this call proves a bound, O((d + m)^3). cgam_dplr_solve_gain returns |T^-1| from it. */
cgam_status cgam_dplr_prove_gain(cgam_dplr *T);
double cgam_dplr_solve_gain(const cgam_dplr *T);
/* Returns true if the small system is K = -M with M >= 1, all pivots are positive and no row is in the border. Then
 * sets |M|_F, and a bound of the rounding error |M - exact|_2 of M as stored by cgam_dplr_keep_as. */
bool cgam_dplr_system(const cgam_dplr *T, double *size, double *error);

/* Only if dense inside: y = T^-1 x without refinement, y may be x. */
cgam_status cgam_dplr_dense_solve(const cgam_dplr *T, double *xy);

/* ---- Stored factors. ---------------------------------------------------------------------- */
/* The factors as plain arrays, which may be pages of a file. NULL: T has no such array, or it is empty. */
enum { CGAM_DPLR_SCALARS = 10 };
typedef struct cgam_dplr_kept {
    double scalars[CGAM_DPLR_SCALARS];
    int64_t n, size, edge;  /* of D and dinv; of K, pivots and diagonal; of border */
    const double *K;        /* [size, size] */
    const double *D, *dinv; /* [n] */
    const double *diagonal; /* [size] */
    const int32_t *pivots;  /* [size] */
    const int64_t *border;  /* [edge] */
    const double *inverse;  /* [blocks] of the small system, or NULL */
    int64_t blocks;
} cgam_dplr_kept;
/* Borrows from T, and from M unless M is NULL. */
cgam_dplr_kept cgam_dplr_keep_as(const cgam_dplr *T, const cgam_dplr_inverse *M);
/* Makes T of this spec (no w) from the stored arrays, and its inverse if M is not NULL and it was stored. Borrows the
 * arrays. Checks the numbers that are used as indices, and returns CGAM_E_FORMAT if these are invalid; other numbers
 * are not checked. */
cgam_status cgam_dplr_restore(cgam_env *env, const cgam_dplr_spec *spec, const cgam_dplr_kept *kept,
                              cgam_dplr **T, cgam_dplr_inverse **M);
cgam_status cgam_dplr_inverse_restore(const cgam_dplr *T, const double *blocks, int64_t count,
                                      cgam_dplr_inverse **out);
const double *cgam_dplr_inverse_kept(const cgam_dplr_inverse *M, int64_t *count);

/* ---- The smallest eigenvalue. ------------------------------------------------------------ */
typedef struct cgam_lowest {
    double value;   /* the smallest eigenvalue */
    double lo, hi;  /* lo <= it <= hi, proved, rounding included: lo by factors, hi by a vector */
    double *vector; /* [n] a unit eigenvector, or NULL if not requested */
} cgam_lowest;

/* Accurate to `tol` relative to the largest |diagonal entry|. want_vector: gives lowest->vector; free it with
 * cgam_vec_free. spec->w as above. */
cgam_status cgam_dplr_lowest(cgam_env *env, const cgam_dplr_spec *spec, double tol,
                             bool want_vector, cgam_lowest *out);

/* A bracket that needs no pass over Z: lo = min D (T - diag(D) is positive semidefinite), hi = the
 * smaller of the (rank+1)-th smallest D (interlacing) and the smallest diagonal entry; each widened
 * by its rounding. */
cgam_status cgam_dplr_bracket(cgam_env *env, const cgam_dplr_spec *spec, double *lo, double *hi);

#endif
