/* vec.h: vectors of one number per row of Z, and reductions over their entries.
 *
 * A vector x is indexed by row: x[i] belongs to row i. The rows may be spread over several processes (ranks.h); each
 * process then stores, at their places, the entries of its own rows. CGAM_EACH_ROW visits those entries, and every
 * reduction returns the same bits in every process, for any number of processes and threads:
 *
 *     CGAM_EACH_ROW(Z, i) r[i] = b[i] + lambda * s[i];
 *     double top = cgam_vec_max(Z, r), change;
 *     CGAM_REDUCE(Z, i, CGAM_MAX(change)) change = fmax(change, fabs(p[i] - q[i]));
 *
 * A reduction cannot fail in one process. If a message between processes is lost, or another process has failed, it
 * returns NaN in all of them, and cgam_rows_status and every later exchange return that failure. */
#ifndef CGAM_SRC_NUM_VEC_H
#define CGAM_SRC_NUM_VEC_H

#include "num/rows.h"

#include <math.h>

/* ---- Vectors. -------------------------------------------------------------------------------- */
/* `count` vectors, not initialised; cgam_vec_next is the one after x. Free them with cgam_vec_free. */
double *cgam_vec_new(cgam_env *env, const cgam_rows *Z, int64_t count);
void cgam_vec_free(cgam_env *env, const cgam_rows *Z, double *x); /* NULL is allowed */
/* Entries that a process stores of a vector: vector k of cgam_vec_new is x + k * cgam_vec_size. */
int64_t cgam_vec_size(const cgam_rows *Z);
static inline double *cgam_vec_next(const cgam_rows *Z, double *x) { return x + cgam_vec_size(Z); }
/* Rows [begin, end) are stored by this process. */
int64_t cgam_vec_begin(const cgam_rows *Z);
int64_t cgam_vec_end(const cgam_rows *Z);
static inline bool cgam_vec_has(const cgam_rows *Z, int64_t row)
{
    return row >= cgam_vec_begin(Z) && row < cgam_vec_end(Z);
}
/* for each row i whose entries are stored here */
#define CGAM_EACH_ROW(Z, i)                                                                        \
    for (int64_t i = cgam_vec_begin(Z), i##_end = cgam_vec_end(Z); i < i##_end; i++)

void cgam_vec_copy(const cgam_rows *Z, double *to, const double *x);
void cgam_vec_fill(const cgam_rows *Z, double *x, double value);
void cgam_vec_scale(const cgam_rows *Z, double *x, double factor);
/* x[row[k]] = values[k]. */
void cgam_vec_put(const cgam_rows *Z, double *x, int64_t count, const int64_t *row,
                  const double *values);
/* values[k] = x[row[k]], in every process. */
cgam_status cgam_vec_pick(const cgam_rows *Z, const double *x, int64_t count, const int64_t *row,
                          double *values);
/* values[k] = x[k][row], in every process; NULL vectors give 0. */
cgam_status cgam_vec_pick_row(const cgam_rows *Z, int64_t row, int64_t count,
                              const double *const *x, double *values);
/* index[k] = the rows of the k largest entries in falling order, ties to the lower row; k is at most n. */
cgam_status cgam_vec_top(cgam_env *env, const cgam_rows *Z, const double *x, int64_t k,
                         int64_t *index);
/* all[n] = x, in every process. */
cgam_status cgam_vec_gather(const cgam_rows *Z, const double *x, double *all);

/* Of W [n, k], given whole: u = W c, and out[k] = W'y. */
void cgam_vec_weigh(const cgam_rows *Z, int64_t k, const double *W, const double *c, double *u);
cgam_status cgam_vec_weigh_back(cgam_env *env, const cgam_rows *Z, int64_t k, const double *W,
                                const double *y, double *out);

/* ---- Reductions. ----------------------------------------------------------------------------- */
double cgam_vec_sum(const cgam_rows *Z, const double *x);
/* x'y and |x|, as cgam_array_dot and cgam_array_norm compute them. */
double cgam_vec_dot(const cgam_rows *Z, const double *x, const double *y);
double cgam_vec_norm(const cgam_rows *Z, const double *x);
/* max x, min x: NaN entries are skipped; without others -INFINITY and INFINITY. max |x|, max |x - y|: at least 0. */
double cgam_vec_max(const cgam_rows *Z, const double *x);
double cgam_vec_min(const cgam_rows *Z, const double *x);
double cgam_vec_max_abs(const cgam_rows *Z, const double *x);
double cgam_vec_max_diff(const cgam_rows *Z, const double *x, const double *y);
/* The first row of the largest entry; 0 if there is none. *value = that entry. */
int64_t cgam_vec_max_row(const cgam_rows *Z, const double *x, double *value);

/* A sum and what rounding left of it: high + low. */
typedef struct cgam_sum2 {
    double high, low;
} cgam_sum2;
static inline void cgam_sum2_add(cgam_sum2 *s, double x)
{
    double total = s->high + x;
    s->low += fabs(s->high) >= fabs(x) ? (s->high - total) + x : (x - total) + s->high;
    s->high = total;
}

/* The largest entry and the first row that has it; a row is a double here. */
typedef struct cgam_peak {
    double value, row;
} cgam_peak;
static inline void cgam_peak_take(cgam_peak *p, double value, int64_t row)
{
    if (value > p->value) *p = (cgam_peak){value, (double)row};
}

/* Several reductions in one loop over the rows. A term is a variable of the caller (a double; a cgam_sum2 for CGAM_SUM2, a
 * cgam_peak for CGAM_PEAK) that the loop body updates; it begins as 0, -INFINITY or INFINITY. Rows are visited by groups
 * that begin anew and are joined in order, so the body may not carry anything else from row to row.
 *     double total, top;
 *     CGAM_REDUCE(Z, i, CGAM_SUM(total), CGAM_MAX(top)) {
 *         total += p[i] * w[i];
 *         top = fmax(top, r[i]);
 *     } */
typedef enum cgam_term_kind {
    CGAM_TERM_END,
    CGAM_TERM_SUM,
    CGAM_TERM_SUM2,
    CGAM_TERM_MAX,
    CGAM_TERM_MIN,
    CGAM_TERM_PEAK,
} cgam_term_kind;
typedef struct cgam_term {
    cgam_term_kind kind;
    double *at;
} cgam_term;
/* clang-format off */
#define CGAM_SUM(x)  {CGAM_TERM_SUM, &(x)}
#define CGAM_SUM2(x) {CGAM_TERM_SUM2, &(x).high}
#define CGAM_MAX(x)  {CGAM_TERM_MAX, &(x)}
#define CGAM_MIN(x)  {CGAM_TERM_MIN, &(x)}
#define CGAM_PEAK(x) {CGAM_TERM_PEAK, &(x).value}
/* clang-format on */
#define CGAM_REDUCE(Z, i, ...)                                                                     \
    CGAM_REDUCTION(Z, __VA_ARGS__)                                                                 \
    for (int64_t i = reduction_.from; i < reduction_.to; i++)
/* The same, a group [from, to) of rows at a time. */
#define CGAM_REDUCE_GROUPS(Z, from, to, ...)                                                       \
    CGAM_REDUCTION(Z, __VA_ARGS__)                                                                 \
    for (int64_t from = reduction_.from, to = reduction_.to; from < to; from = to)
#define CGAM_REDUCTION(Z, ...)                                                                     \
    for (cgam_reduction reduction_ =                                                               \
             cgam_reduction_open(Z, (cgam_term[]){__VA_ARGS__, {CGAM_TERM_END, NULL}});            \
         cgam_reduction_next(&reduction_);)

/* at most this many numbers in a reduction; CGAM_SUM2 and CGAM_PEAK take two */
enum { CGAM_REDUCE_WIDTH = 8 };
typedef struct cgam_reduction {
    const cgam_rows *Z;
    const cgam_term *term;
    int64_t group, stop, groups;
    int64_t from, to; /* rows of this group; -1: before the first */
    int sums, peaks;  /* numbers of sums, and of maxima and minima */
    double all[CGAM_REDUCE_WIDTH];
    double *record; /* for other processes */
} cgam_reduction;
cgam_reduction cgam_reduction_open(const cgam_rows *Z, const cgam_term *terms);
bool cgam_reduction_next(cgam_reduction *reduction);

/* ---- Rows. ----------------------------------------------------------------------------------- */
/* CGAM_OK, or the failure after which reductions return NaN. Always CGAM_OK in one process. */
cgam_status cgam_rows_status(const cgam_rows *Z);
/* Makes these rows readable here, one by one (cgam_rows_get of 1), until others are brought; row < 0 is skipped. */
cgam_status cgam_rows_bring(cgam_env *env, const cgam_rows *Z, int64_t count, const int64_t *row);
/* A pass: task(arg, from, to) for groups of the rows of this process, in parallel; rows of a group are consecutive. */
typedef cgam_status (*cgam_rows_task)(void *arg, int64_t from, int64_t to);
cgam_status cgam_rows_pass(cgam_env *env, const cgam_rows *Z, cgam_rows_task task, void *arg);
/* Does this process have all rows? */
static inline bool cgam_rows_whole(const cgam_rows *Z) { return !Z->shard; }
/* Frees the data that Z has about other processes. */
void cgam_rows_close(cgam_env *env, cgam_rows *Z);
/* Calls task(arg, i), i < count, each of which may pass over Z: in parallel if one process stores all rows. */
cgam_status cgam_rows_each(cgam_env *env, const cgam_rows *Z, int64_t count, cgam_task task,
                           void *arg);
/* Concatenates lists of records: *all gets the `mine` records of each process, in the order of their rows, `*total`
 * in all. Free it with cgam_free. */
cgam_status cgam_rows_collect(cgam_env *env, const cgam_rows *Z, size_t bytes, int64_t mine,
                              const void *records, int64_t *total, void **all);
/* Passes the records of each other process in turn to visit(arg, records, count). */
cgam_status cgam_rows_exchange(cgam_env *env, const cgam_rows *Z, size_t bytes, int64_t mine,
                               const void *records,
                               void (*visit)(void *arg, const void *theirs, int64_t count),
                               void *arg);
/* values [count, each]: the process that has row[k] sends its values to all. */
cgam_status cgam_rows_pick(const cgam_rows *Z, int64_t count, const int64_t *row, int64_t each,
                           double *values);
/* flag[count]: set to true in every process if it is true in any. */
cgam_status cgam_rows_any(cgam_env *env, const cgam_rows *Z, int64_t count, char *flag);
/* Returns the minimum over all processes. */
cgam_status cgam_rows_least(cgam_env *env, const cgam_rows *Z, double *value);
/* _iterates: later traffic counts towards an iteration. _iterated: it ends, with this many complete. */
void cgam_rows_iterates(const cgam_rows *Z);
void cgam_rows_iterated(const cgam_rows *Z, int64_t iterations);

#endif
