/* lanes_simd.c: the loops of lanes.h, with one vector of doubles per number. */
#include "lab/synthetic/lanes.h"
#include "num/cpu/simd.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    LANES = BYTES / 8,
    TILE_STEP = BYTES == 16 ? 5 : 10, /* modes whose sums registers hold; divides CGAM_LANES_TILE */
};

INLINE vd splat(double x) { return (vd){0} + x; }
INLINE vd vabs(vd a) { return (vd)((vl)a & INT64_MAX); }

INLINE bool any(vl mask)
{
    int64_t all = 0;
    for (int l = 0; l < LANES; l++) all |= mask[l];
    return all != 0;
}

INLINE vl mask_of(const int *flags)
{
    vl mask = {0};
    for (int l = 0; l < LANES; l++) mask[l] = flags[l] ? -1 : 0;
    return mask;
}

/* y [TILE_STEP] = V' x for the first modes of V, whose rows are m apart. */
INLINE void analyse_tile(int64_t n, int64_t m, const vd *V, const vd *x, vd *y)
{
    vd acc[TILE_STEP];
    UNROLL
    for (int k = 0; k < TILE_STEP; k++) acc[k] = (vd){0};
    for (int64_t i = 0; i < n; i++) {
        vd xi = x[i];
        UNROLL
        for (int k = 0; k < TILE_STEP; k++) acc[k] += V[i * m + k] * xi;
    }
    UNROLL
    for (int k = 0; k < TILE_STEP; k++) y[k] = acc[k];
}

/* y [m] = V' x */
INLINE void analyse(int64_t n, int64_t m, const vd *V, const vd *x, vd *y)
{
    for (int64_t k = 0; k < m; k += TILE_STEP) analyse_tile(n, m, V + k, x, y + k);
}

/* e = exp(beta (r - top)), *total = its sum and y [m] = V' e; the first modes on the way. */
INLINE void weigh(int64_t n, int64_t m, const vd *V, vd beta, const vd *r, vd top, vd *e, vd *total,
                  vd *y)
{
    vd sum = {0}, acc[TILE_STEP];
    UNROLL
    for (int k = 0; k < TILE_STEP; k++) acc[k] = (vd){0};
    for (int64_t i = 0; i < n; i++) {
        vd x = vexp_below((r[i] - top) * beta);
        e[i] = x;
        sum += x;
        UNROLL
        for (int k = 0; k < TILE_STEP; k++) acc[k] += V[i * m + k] * x;
    }
    UNROLL
    for (int k = 0; k < TILE_STEP; k++) y[k] = acc[k];
    for (int64_t k = TILE_STEP; k < m; k += TILE_STEP) analyse_tile(n, m, V + k, e, y + k);
    *total = sum;
}

/* row . y for one row of V, m a multiple of TILE_STEP; two sums hide the adder's latency. */
INLINE vd across(int64_t m, const vd *row, const vd *y)
{
    vd a = {0}, b = {0};
    for (int64_t k0 = 0; k0 < m; k0 += TILE_STEP) {
        UNROLL
        for (int k = 0; k < TILE_STEP; k++) {
            if (k % 2) b += row[k0 + k] * y[k0 + k];
            else a += row[k0 + k] * y[k0 + k];
        }
    }
    return a + b;
}

static void run_compose(const cgam_bundle *g, const double *f, const double *f0, double *s)
{
    const vd *V = (const vd *)g->V, *c = (const vd *)g->c, *rest = (const vd *)g->rest;
    const vd *gain = (const vd *)f;
    vd *out = (vd *)s, gain0 = *(const vd *)f0;
    for (int64_t i = 0; i < g->n; i++) {
        vd sum = gain0 * rest[i];
        for (int64_t k = 0; k < g->m; k++) sum += V[i * g->m + k] * (gain[k] * c[k]);
        out[i] = sum;
    }
}

static void run_peak(int64_t n, double beta, const double *s, const double *scale, double *peak,
                     double *p)
{
    const vd *x = (const vd *)s;
    vd *out = (vd *)p, top = x[0], sum = {0};
    /* limit the slope to a finite number: 0 times infinity would be NaN at the top */
    vd sharp = splat(beta);
    if (scale) sharp = -larger_f64(-(sharp * *(const vd *)scale), splat(-DBL_MAX));
    for (int64_t i = 1; i < n; i++) top = larger_f64(top, x[i]);
    for (int64_t i = 0; i < n; i++) {
        vd e = vexp_below((x[i] - top) * sharp);
        sum += e;
        if (out) out[i] = e;
    }
    vd most = 1 / sum;
    for (int64_t i = 0; out && i < n; i++) out[i] *= most;
    memcpy(peak, &most, sizeof most);
}

static void run_coupled(const cgam_bundle *g, cgam_lanes_coupled *w)
{
    const int64_t n = g->n, m = g->m;
    const vd *V = (const vd *)g->V, *gain = (const vd *)w->gain, *base = (const vd *)w->base;
    vd *r = (vd *)w->r, *e = (vd *)w->e, *y = e + n;
    vd gain0 = *(const vd *)w->gain0, beta = splat(w->beta), top = r[0];
    double feedback = w->lambda * w->lambda;
    vl active = mask_of(w->active);
    for (int l = 0; l < LANES; l++) w->iterations[l] = active[l] ? w->max_iter + 1 : 0;
    for (int64_t i = 1; i < n; i++) top = larger_f64(top, r[i]);
    for (int iter = 1; iter <= w->max_iter && any(active) && !cgam_bundle_stopped(g); iter++) {
        vd sum, change = {0};
        weigh(n, m, V, beta, r, top, e, &sum, y);
        vd unit = feedback / sum, direct = gain0 * unit;
        for (int64_t k = 0; k < m; k++) y[k] *= gain[k] * unit;
        top = splat(-INFINITY);
        for (int64_t i = 0; i < n; i++) {
            vd next = (base[i] + direct * e[i]) + across(m, V + i * m, y);
            change = larger_f64(vabs(next - r[i]), change);
            r[i] = pick_f64(active, next, r[i]);
            top = larger_f64(r[i], top);
        }
        vl now = active & (change <= w->tol);
        if (any(now))
            for (int l = 0; l < LANES; l++)
                if (now[l]) w->iterations[l] = iter;
        active &= ~now;
    }
}

static void run_product(int64_t n, int64_t d, const double *M, const double *x, double *y)
{
    const vd *from = (const vd *)x;
    vd *to = (vd *)y;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) { /* four rows share each load of x */
        const double *row = M + i * d;
        vd a = {0}, b = {0}, c = {0}, e = {0};
        for (int64_t j = 0; j < d; j++) {
            vd xj = from[j];
            a += xj * row[j];
            b += xj * row[j + d];
            c += xj * row[j + 2 * d];
            e += xj * row[j + 3 * d];
        }
        to[i] = a;
        to[i + 1] = b;
        to[i + 2] = c;
        to[i + 3] = e;
    }
    for (; i < n; i++) {
        vd a = {0};
        for (int64_t j = 0; j < d; j++) a += from[j] * M[i * d + j];
        to[i] = a;
    }
}

static void run_judge(cgam_lanes_judge *w)
{
    const int64_t n = w->n;
    const vd *b = (const vd *)w->b, *s = (const vd *)w->s;
    vd own_b = {0}, own_s = {0};
    vl target;
    memcpy(&target, w->target, sizeof target);
    for (int l = 0; l < LANES; l++) {
        own_b[l] = b[target[l]][l];
        own_s[l] = s[target[l]][l];
    }
    for (int64_t k = 0; k < w->lambdas; k++) {
        vd lambda = splat(w->lambda[k]), own = own_b + lambda * own_s;
        vd before = splat(-INFINITY), after = before, sum = {0};
        for (int64_t i = 0; i < n; i++) {
            vd r = b[i] + lambda * s[i];
            before = larger_f64(pick_f64(target > i, r, before), before);
            after = larger_f64(pick_f64(target < i, r, after), after);
        }
        vd other = larger_f64(before, after), gap = own - other;
        vl right = (own > before) & (own >= after);
        memcpy(w->gap + k * LANES, &gap, sizeof gap);
        for (int l = 0; l < LANES; l++) w->right[k * LANES + l] = right[l] ? 1 : 0;
        if (!w->log_p) continue;
        vd top = larger_f64(own, other);
        for (int64_t i = 0; i < n; i++) sum += vexp_below((b[i] + lambda * s[i] - top) * w->beta);
        for (int l = 0; l < LANES; l++)
            w->log_p[k * LANES + l] = w->beta * (own[l] - top[l]) - log(sum[l]);
    }
}

#include "lab/synthetic/lanes_flow.h"
#include "lab/synthetic/lanes_fold.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

extern const cgam_lanes JOIN(cgam_lanes, NAME);
const cgam_lanes JOIN(cgam_lanes, NAME) = {
    .name = TEXT(NAME),
    .width = LANES,
    .compose = run_compose,
    .peak = run_peak,
    .coupled = run_coupled,
    .flow = run_flow,
    .fold = run_fold,
    .product = run_product,
    .judge = run_judge,
};
