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

bool cgam_sweep_narrow(double gap, double rise, bool before, cgam_interval *x)
{
    double r = gap / rise;
    if (rise > 0 && r > x->from) x->from = r;
    if (rise < 0 && r < x->to) x->to = r;
    return x->from < x->to && !(rise == 0 && (gap > 0 || (gap == 0 && before)));
}

/* Takes token m's half-line off; y has the scores ay and by. */
static bool narrow(const float *a, const float *b, double ay, double by, int64_t y, int64_t m,
                   cgam_interval *x)
{
    return m == y || cgam_sweep_narrow((double)a[m] - ay, by - (double)b[m], m < y, x);
}

static cgam_interval interval_of(int64_t n, const float *a, const float *b, double ay, double by,
                                 int64_t y, int hints, const int64_t *hint)
{
    enum { PIECE = 512 };
    cgam_interval x = {0, INFINITY};
    for (int k = 0; k < hints; k++)
        if (!narrow(a, b, ay, by, y, hint[k], &x)) return none;
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
            if (!narrow(a, b, ay, by, y, m, &x)) return none;
    }
    return x;
}

cgam_interval cgam_sweep_interval(int64_t n, const float *a, const float *b, int64_t y)
{
    return interval_of(n, a, b, (double)a[y], (double)b[y], y, 0, NULL);
}

/* y raised by the slack wins wherever it truly does. Inside that interval a rival may win only if it
 * does so at an end, scores being linear; those that f32 cannot rule out there are scored again. */
cgam_interval cgam_sweep_interval_sure(const cgam_sweep_rivals *of, int64_t y, double ay, double by,
                                       const int64_t hint[2])
{
    enum { PIECE = 512 };
    const float *a = of->a, *b = of->b;
    int64_t n = cgam_lens_vocab(of->lens);
    cgam_interval wide = interval_of(n, a, b, ay + of->slack_a, by + of->slack_b, y, 2, hint);
    if (wide.from >= wide.to) return none;
    cgam_interval x = {0, INFINITY};
    const double low_a = ay - of->slack_a, low_b = by - of->slack_b;
    const double end = isfinite(wide.to) ? wide.to : 1, flat = isfinite(wide.to) ? 1 : 0;
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        int64_t stop = begin + PIECE < n ? begin + PIECE : n;
        int near = 0;
        for (int64_t m = begin; m < stop; m++) {
            double rise = low_b - (double)b[m], gap = (double)a[m] - low_a;
            near |= (gap >= wide.from * rise) | (flat * gap >= end * rise);
        }
        for (int64_t m = begin; m < stop && near; m++) {
            double rise = low_b - (double)b[m], gap = (double)a[m] - low_a;
            if (m == y || !((gap >= wide.from * rise) | (flat * gap >= end * rise))) continue;
            double am = cgam_lens_dot(of->lens, of->kind, m, of->q);
            double bm = cgam_lens_dot(of->lens, of->kind, m, of->c);
            if (!cgam_sweep_narrow(am - ay, by - bm, m < y, &x)) return none;
        }
    }
    return x;
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
    double widest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (of[i].from >= of[i].to) continue;
        edges[used++] = (edge){of[i].from, 1};
        if (isfinite(of[i].to)) edges[used++] = (edge){of[i].to, -1};
    }
    if (used > 0) qsort(edges, (size_t)used, sizeof *edges, by_place);
    for (int pass = 0; pass < 2; pass++, held = 0) /* how many and how wide; then where first */
        for (int64_t i = 0; i < used; i++) {
            held += edges[i].change;
            cgam_interval here = {edges[i].at, i + 1 < used ? edges[i + 1].at : INFINITY};
            if (!(here.to > here.from) || held == 0 || held < out->count) continue;
            double breadth = cgam_sweep_breadth(here);
            if (pass == 0) {
                widest = held > out->count ? breadth : fmax(widest, breadth);
                out->count = held;
            } else if (cgam_sweep_as_wide(breadth, widest)) {
                out->lambda = here;
                break;
            }
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
    if (range.from >= range.to) return range.from; /* of a grid, and exactly that */
    if (!isfinite(range.to)) return range.from > 0 ? 2 * range.from : 1;
    return range.from > 0 ? sqrt(range.from) * sqrt(range.to) : range.to / 2;
}
