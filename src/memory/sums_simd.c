/* sums_simd.c: the loop of sums.h. */
#include "memory/block_simd.h"
#include "memory/sums.h"

#include <math.h>

/* Powers of smaller weights count as those of this: they would be subnormal, which is slow. */
static const double POWERS = 0x1p-240;

typedef struct sums {
    block w[CGAM_MOMENTS], wy[CGAM_MOMENTS], top;
} sums;

/* Adds rows with those scores, y and weights. */
INLINE void add_part(int h, vd a, vd y, vd w, sums *x)
{
    vd factor = larger_f64(w, all_f64(POWERS)), power = factor;
    x->top.v[h] = larger_f64(a, x->top.v[h]);
    x->w[0].v[h] += w;
    x->wy[0].v[h] = madd_f64(w, y, x->wy[0].v[h]);
    UNROLL
    for (int j = 1; j < CGAM_MOMENTS; j++) {
        power *= factor;
        x->w[j].v[h] += power;
        x->wy[j].v[h] = madd_f64(power, y, x->wy[j].v[h]);
    }
}

/* Adds a block to the sums, except rows above the cut; returns true if there are some, and marks them. */
INLINE bool add_block(block a, vd beta, vd top, vd cut, sums *x, block *above)
{
    const vd least = all_f64(-1000), none = all_f64(-INFINITY), zero = {0};
    block y, w;
    vl any = {0};
    EACH_PART(h)
    {
        y.v[h] = larger_f64(least, beta * (a.v[h] - top)); /* keeps NaN */
        w.v[h] = vexp_below(y.v[h]);
        any |= ~(vl)(w.v[h] <= cut);
    }
    int64_t some = 0;
    UNROLL
    for (int l = 0; l < LANES; l++) some |= any[l];
    if (!some) {
        EACH_PART(h) add_part(h, a.v[h], y.v[h], w.v[h], x);
        return false;
    }
    EACH_PART(h)
    {
        vl rest = w.v[h] <= cut;
        above->v[h] = pick_f64(rest, zero, all_f64(1));
        add_part(h, pick_f64(rest, a.v[h], none), pick_f64(rest, y.v[h], zero),
                 pick_f64(rest, w.v[h], zero), x);
    }
    return true;
}

extern cgam_moments_find JOIN(cgam_moments, NAME);
int64_t JOIN(cgam_moments, NAME)(int64_t n, const double *a, double beta, double top, double cut,
                                 int64_t from, cgam_moments *out, int64_t *row)
{
    int64_t count = 0;
    vd b = all_f64(beta), t = all_f64(top), limit = all_f64(cut);
    sums x = {.top = fill(-INFINITY)};
    for (int64_t i = 0; i < n; i += ROWS) {
        double last[ROWS], marks[ROWS];
        block above = fill(0), own;
        for (int k = 0; n - i < ROWS && k < ROWS; k++) last[k] = i + k < n ? a[i + k] : -INFINITY;
        own = load(n - i < ROWS ? last : a + i);
        if (!add_block(own, b, t, limit, &x, &above)) continue;
        store(marks, above);
        for (int k = 0; k < ROWS && i + k < n; k++)
            if (marks[k] != 0) row[count++] = from + i + k;
    }
    for (int j = 0; j < CGAM_MOMENTS; j++) {
        out->w[j] = block_sum(x.w[j]);
        out->wy[j] = block_sum(x.wy[j]);
    }
    out->top = block_max(x.top);
    return count;
}
