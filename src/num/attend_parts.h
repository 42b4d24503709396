/* attend_parts.h: shared by attend.c and attend_many.c: lists of the best, the results of one query over a chunk of
 * rows, and how these become an answer. NaN sorts last. */
#ifndef CGAM_SRC_NUM_ATTEND_PARTS_H
#define CGAM_SRC_NUM_ATTEND_PARTS_H

#include "num/attend.h"

#include <math.h>
#include <stdatomic.h>

/* CGAM_LEADERS_SPARE: extra leaders that a pass in f32 keeps, to be scored again in double. CGAM_BEST: rows kept of
 * the best in b and s, of which two are needed. */
enum { CGAM_LEADERS_SPARE = 6, CGAM_BEST = 2 + CGAM_LEADERS_SPARE };

static inline bool cgam_leads(double r, int64_t row, const cgam_leader *x)
{
    if (isnan(r) || isnan(x->r)) return isnan(x->r) && (!isnan(r) || row < x->row);
    return r > x->r || (r == x->r && row < x->row);
}

/* Inserts x into the sorted list of at most `most`. Most insertions happen early; later ones are rare. */
static inline void cgam_lead(cgam_leader *list, int64_t *count, int64_t most, cgam_leader x)
{
    int64_t at = *count;
    if (at == most && !cgam_leads(x.r, x.row, &list[most - 1])) return;
    if (at == most) at--;
    else ++*count;
    for (; at > 0 && cgam_leads(x.r, x.row, &list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = x;
}

/* The largest entries of a vector, by falling value, ties to the row inserted first. */
typedef struct cgam_best {
    int64_t count;
    double value[CGAM_BEST];
    int64_t row[CGAM_BEST];
} cgam_best;

/* Would a list of `most` accept this value? */
static inline bool cgam_best_wants(const cgam_best *best, int64_t most, double value)
{
    return best->count < most || value > best->value[most - 1];
}

static inline void cgam_best_take(cgam_best *best, int64_t most, double value, int64_t row)
{
    if (!cgam_best_wants(best, most, value)) return;
    int64_t at = best->count < most ? best->count++ : most - 1;
    for (; at > 0 && value > best->value[at - 1]; at--) {
        best->value[at] = best->value[at - 1];
        best->row[at] = best->row[at - 1];
    }
    best->value[at] = value;
    best->row[at] = row;
}

/* *x = max(*x, value) */
static inline void cgam_raise(_Atomic double *x, double value)
{
    double now = atomic_load_explicit(x, memory_order_relaxed);
    while (value > now && !atomic_compare_exchange_weak(x, &now, value)) {
    }
}

/* The results of one query over one chunk, or over all. */
typedef struct cgam_attend_part {
    cgam_softmax soft;
    cgam_best b, s;
    int64_t above, leaders;
    cgam_leader *leader; /* caller's buffer */
} cgam_attend_part;

static inline cgam_attend_part cgam_attend_part_new(cgam_leader *leader)
{
    return (cgam_attend_part){.soft.top = -INFINITY, .leader = leader};
}

/* Merges the lists of a chunk, up to `most` leaders and `best` of b and s, into those of all. */
void cgam_attend_join_lists(cgam_attend_part *total, int64_t most, int64_t best,
                            const cgam_attend_part *chunk);

/* Returns b, s and r of a row for query v, in double. */
cgam_leader cgam_attend_look(const cgam_attend_in *in, int64_t v, int64_t row);

/* A query after scores in f32, or summed in another order than by cgam_attend_look: errors of at most off_b and
 * off_s, and off in r. */
typedef struct cgam_rough {
    double base; /* the leaders' scores and the sums are relative to this */
    double off, off_b, off_s;
    int64_t best; /* number of rows kept of b and s */
} cgam_rough;

/* Scores the leaders, focus and the best of b and s again in double, which may change their order, and corrects their
 * share of the sums and of y [d], which is a sum of weighted rows on entry and a readout on return (may be NULL). The
 * leaders of total have their weights. *skipped grows by the part left out of the sums, at most 2^-55: all other
 * rows, if they weigh no more. */
typedef struct cgam_righted {
    bool
        leaders; /* the requested leaders are the leaders of all rows; the same for the best two of b and s */
    bool alone; /* no other row contributes to the sums */
} cgam_righted;
cgam_righted cgam_attend_put_right(const cgam_attend_in *in, int64_t v, const cgam_rough *rough,
                                   cgam_attend_part *total, cgam_leader *focus, double *y,
                                   double *skipped);

/* Makes rows readable (num/ranks.h), together with the data of their gates. */
cgam_status cgam_attend_bring_rows(cgam_env *env, const cgam_attend_in *in, int64_t count,
                                   const int64_t *row);
/* The same for the rows that this file's functions will read, of all queries: total[count] and the focus of
 * out[count]. */
cgam_status cgam_attend_bring(cgam_env *env, const cgam_attend_in *in,
                              const cgam_attend_part *total, const cgam_attend_out *out);

/* Fills the answer except readout, focus, skipped and unsure. A sum that rounding left below the weight of its top,
 * which is 1, is set to 1. */
void cgam_attend_tell(const cgam_attend_in *in, const cgam_attend_part *total,
                      cgam_attend_out *out);

#endif
