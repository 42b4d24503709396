/* leaders.h: lists of the best that attend.c and batch.c keep. What is not a number comes last. */
#ifndef CGAM_SRC_NUM_LEADERS_H
#define CGAM_SRC_NUM_LEADERS_H

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

/* Are the first `asked` of a list that is now in double the leaders of all n rows, when every row
 * left out scored `last` or less with an error of up to `off`? */
static inline bool cgam_leaders_sure(const cgam_leader *list, int64_t count, int64_t asked,
                                     int64_t n, double last, double off)
{
    return count == n || list[asked - 1].r - off > last;
}

/* The rank of row f, which `above` counted in f32: where f is on the list it is its place there. */
static inline int64_t cgam_leaders_rank(const cgam_leader *list, int64_t count, int64_t f,
                                        int64_t above)
{
    for (int64_t k = 0; k < count; k++)
        if (list[k].row == f) return k;
    return above > count ? above : count;
}

#endif
