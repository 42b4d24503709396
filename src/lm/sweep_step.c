/* sweep_step.c: exact couplings, and the step functions they make.
 *
 * Token y wins over m where (a_y - a_m) + lambda (b_y - b_m) > 0. With r = (a_m - a_y)/(b_y - b_m)
 * that is lambda > r where b_y > b_m, lambda < r where b_y < b_m, and a_y > a_m where they are
 * equal. So the interval is the intersection of half-lines, found in one pass over the vocabulary,
 * which ends early once it is empty. The largest a and the largest b are the likeliest to end it:
 * who calls can name them. A factor on the context divides the interval's ends. */
#include "base/env.h"
#include "lm/sweep.h"

#include <math.h>
#include <stdlib.h>

static const cgam_interval none = {INFINITY, -INFINITY};

/* Takes token m's half-line off; false: y cannot win any more. */
static bool narrow(const float *a, const float *b, int64_t y, int64_t m, cgam_interval *x)
{
    double rise = (double)b[y] - (double)b[m], gap = (double)a[m] - (double)a[y], r = gap / rise;
    /* y itself gives 0/0, which no comparison holds for */
    if (rise > 0 && r > x->from) x->from = r;
    if (rise < 0 && r < x->to) x->to = r;
    return x->from < x->to && !(rise == 0 && (gap > 0 || (gap == 0 && m < y)));
}

cgam_interval cgam_sweep_interval_from(int64_t n, const float *a, const float *b, int64_t y,
                                       int hints, const int64_t *hint)
{
    enum { PIECE = 512 };
    const double ay = (double)a[y], by = (double)b[y];
    cgam_interval x = {0, INFINITY};
    for (int k = 0; k < hints; k++)
        if (!narrow(a, b, y, hint[k], &x)) return none;
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        int64_t end = begin + PIECE < n ? begin + PIECE : n;
        /* Does any token of the piece change the interval? Products say so without a division:
         * r > from is gap > from rise where rise > 0, r < to is gap > to rise where rise < 0. */
        int touched = 0;
        for (int64_t m = begin; m < end; m++) {
            double rise = by - (double)b[m], gap = (double)a[m] - ay;
            touched |= (rise > 0) & (gap > x.from * rise);
            touched |= (rise < 0) & (gap > x.to * rise);
            touched |= (rise == 0) & (gap >= 0) & (m != y);
        }
        for (int64_t m = begin; m < end && touched; m++)
            if (!narrow(a, b, y, m, &x)) return none;
    }
    return x;
}

cgam_interval cgam_sweep_interval(int64_t n, const float *a, const float *b, int64_t y)
{
    return cgam_sweep_interval_from(n, a, b, y, 0, NULL);
}

/* ---- Step functions ----------------------------------------------------------------------- */
double cgam_sweep_breadth(cgam_interval x)
{
    if (!isfinite(x.to)) return 1;
    return x.to > x.from ? (x.to - x.from) / (x.to + x.from) : 0;
}

typedef struct edge {
    double at;
    int change;
} edge;

static int by_place(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->change - y->change; /* an interval ends before the next begins: ends are open */
}

cgam_status cgam_sweep_step(cgam_env *env, int64_t n, const cgam_interval *of, cgam_step *out)
{
    *out = (cgam_step){0, {0, INFINITY}};
    edge *edges = cgam_alloc(env, 2 * (size_t)n, sizeof *edges);
    if (!edges) return cgam_fail_nomem(env, "a step function");
    int64_t used = 0, held = 0;
    for (int64_t i = 0; i < n; i++) {
        if (of[i].from >= of[i].to) continue;
        edges[used++] = (edge){of[i].from, 1};
        if (isfinite(of[i].to)) edges[used++] = (edge){of[i].to, -1};
    }
    if (used > 0) qsort(edges, (size_t)used, sizeof *edges, by_place);
    for (int64_t i = 0; i < used; i++) {
        held += edges[i].change;
        cgam_interval here = {edges[i].at, i + 1 < used ? edges[i + 1].at : INFINITY};
        if (!(here.to > here.from)) continue;
        bool wider = cgam_sweep_breadth(here) > cgam_sweep_breadth(out->lambda);
        if (held > out->count || (held == out->count && held > 0 && wider))
            *out = (cgam_step){held, here};
    }
    cgam_free(env, edges);
    return CGAM_OK;
}

int64_t cgam_sweep_count(int64_t n, const cgam_interval *of, double lambda)
{
    int64_t held = 0;
    for (int64_t i = 0; i < n; i++) held += of[i].from <= lambda && lambda < of[i].to;
    return held;
}

double cgam_sweep_inside(cgam_interval range)
{
    if (isfinite(range.to)) return range.from + (range.to - range.from) / 2;
    return range.from > 0 ? 2 * range.from : 1;
}
