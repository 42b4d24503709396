/* attend_parts.h: what attend.c and attend_many.c share - lists of the best, what a chunk of rows
 * gathers of one query, and how that becomes an answer. What is not a number comes last. */
#ifndef CGAM_SRC_NUM_ATTEND_PARTS_H
#define CGAM_SRC_NUM_ATTEND_PARTS_H

#include "num/attend.h"

#include <math.h>
#include <stdatomic.h>

/* How many more leaders than asked for a pass in f32 keeps, to be scored again in double; and rows of its lists of
 * the best in b and s, of which two are asked for. */
enum { CGAM_LEADERS_SPARE = 6, CGAM_BEST = 2 + CGAM_LEADERS_SPARE };

static inline bool cgam_leads(double r, int64_t row, const cgam_leader *x)
{
    if (isnan(r) || isnan(x->r)) return isnan(x->r) && (!isnan(r) || row < x->row);
    return r > x->r || (r == x->r && row < x->row);
}

/* Takes x into the sorted list of at most `most`. Most calls come early, later ones are rare. */
static inline void cgam_lead(cgam_leader *list, int64_t *count, int64_t most, cgam_leader x)
{
    int64_t at = *count;
    if (at == most && !cgam_leads(x.r, x.row, &list[most - 1])) return;
    if (at == most) at--;
    else ++*count;
    for (; at > 0 && cgam_leads(x.r, x.row, &list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = x;
}

/* The largest of a vector, by falling value, ties to the row that came first. */
typedef struct cgam_best {
    int64_t count;
    double value[CGAM_BEST];
    int64_t row[CGAM_BEST];
} cgam_best;

/* Would a list of `most` take this value? */
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

/* Of one query in one chunk, or in all. */
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

/* The lists of a chunk, up to `most` leaders and `best` of b and s, go into those of all. */
void cgam_attend_join_lists(cgam_attend_part *total, int64_t most, int64_t best,
                            const cgam_attend_part *chunk);

/* b, s and r of a row for query v in double. */
cgam_leader cgam_attend_look(const cgam_attend_in *in, int64_t v, int64_t row);

/* A query after scores in f32 or in another order than cgam_attend_look's, each within off_b and off_s, and off in r. */
typedef struct cgam_rough {
    double base; /* what scores of leaders and of the sums are relative to */
    double off, off_b, off_s;
    int64_t best; /* rows kept of b and s */
} cgam_rough;

/* Leaders, focus and the best of b and s in double, which may change their order, and their share of the sums and of
 * y [d], which comes as a sum of weighted rows and leaves as a readout (NULL = not wanted). The leaders of total have
 * their weights. *skipped grows by what is left out of the sums, at most 2^-55: all other rows, where they weigh no
 * more. */
typedef struct cgam_righted {
    bool
        leaders; /* those asked for are the leaders of all rows, and so are the best two of b and s */
    bool alone; /* no other row has a part in the sums */
} cgam_righted;
cgam_righted cgam_attend_put_right(const cgam_attend_in *in, int64_t v, const cgam_rough *rough,
                                   cgam_attend_part *total, cgam_leader *focus, double *y,
                                   double *skipped);

/* Makes rows readable (num/ranks.h), with what their gates are made of. */
cgam_status cgam_attend_bring_rows(cgam_env *env, const cgam_attend_in *in, int64_t count,
                                   const int64_t *row);
/* The rows that this will look at, of all queries: total[count] and the focus of out[count]. */
cgam_status cgam_attend_bring(cgam_env *env, const cgam_attend_in *in,
                              const cgam_attend_part *total, const cgam_attend_out *out);

/* The answer, but for readout, focus, skipped and unsure. A sum that rounding left below the weight of its top, which
 * is 1, is that. */
void cgam_attend_tell(const cgam_attend_in *in, const cgam_attend_part *total,
                      cgam_attend_out *out);

#endif
