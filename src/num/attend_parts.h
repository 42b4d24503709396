/* attend_parts.h: what attend.c and attend_many.c share - lists of the best, what a chunk of rows
 * gathers of one query, and how that becomes an answer. What is not a number comes last. */
#ifndef CGAM_SRC_NUM_ATTEND_PARTS_H
#define CGAM_SRC_NUM_ATTEND_PARTS_H

#include "num/attend.h"

#include <math.h>
#include <stdatomic.h>

/* How many more leaders than asked for a pass in f32 keeps, to be scored again in double. */
enum { CGAM_LEADERS_SPARE = 6 };

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

static inline void cgam_two_take(cgam_two *best, double value, int64_t row)
{
    int at = best->row[0] < 0 || value > best->value[0]   ? 0
             : best->row[1] < 0 || value > best->value[1] ? 1
                                                          : 2;
    if (at == 0) {
        best->value[1] = best->value[0];
        best->row[1] = best->row[0];
    }
    if (at < 2) {
        best->value[at] = value;
        best->row[at] = row;
    }
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
    cgam_two b, s; /* the best two of each */
    int64_t above, leaders;
    cgam_leader *leader; /* caller's buffer */
} cgam_attend_part;

static inline cgam_attend_part cgam_attend_part_new(cgam_leader *leader)
{
    return (cgam_attend_part){
        .soft.top = -INFINITY, .b.row = {-1, -1}, .s.row = {-1, -1}, .leader = leader};
}

/* The lists of a chunk, up to `most` leaders, go into those of all. */
void cgam_attend_join_lists(cgam_attend_part *total, int64_t most, const cgam_attend_part *chunk);

/* b, s and r of a row for query v in double. */
cgam_leader cgam_attend_look(const cgam_attend_in *in, int64_t v, int64_t row);

/* After scores in f32 or in another order: leaders, focus and the best of b and s in double, which
 * may change their order, and their share of the sums and of y [d], which comes as a sum of weighted
 * rows and leaves as a readout (NULL = not wanted). Inside total, scores are relative to base; its
 * leaders have their weights. */
void cgam_attend_put_right(const cgam_attend_in *in, int64_t v, double base,
                           cgam_attend_part *total, cgam_leader *focus, double *y);

/* Makes rows readable (num/ranks.h), with what their gates are made of. */
cgam_status cgam_attend_bring_rows(cgam_env *env, const cgam_attend_in *in, int64_t count,
                                   const int64_t *row);
/* The rows that this will look at, of all queries: total[count] and the focus of out[count]. */
cgam_status cgam_attend_bring(cgam_env *env, const cgam_attend_in *in,
                              const cgam_attend_part *total, const cgam_attend_out *out);

/* Are the leaders asked for, now in double, those of all rows, when every row left out scored `last`
 * or less with an error of up to `off`? */
bool cgam_attend_sure(const cgam_attend_in *in, const cgam_attend_part *total, double last,
                      double off);

/* The answer, but for readout, focus, skipped and unsure. */
void cgam_attend_tell(const cgam_attend_in *in, const cgam_attend_part *total,
                      cgam_attend_out *out);

#endif
