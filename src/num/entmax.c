/* entmax.c: see entmax.h. */
#include "num/entmax.h"

/* Steps shrink the distance at least as Newton's on exp does, whose number grows as log log n. */
enum { STEPS_MAX = 200 };

static double largest(int64_t n, const double *x)
{
    double top = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) return NAN;
        top = fmax(top, x[i]);
    }
    return top;
}

/* sum p - 1, with the rounding of each addition kept, and its derivative. The leader's weight comes
 * first, so that a sum near 1 is a small difference. */
static double excess(const cgam_entmax *e, int64_t n, const double *x, double *slope)
{
    double high = -1, low = 0;
    *slope = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = cgam_entmax_weight(e, x[i]), total = high + p;
        if (!(p > 0)) continue;
        low += fabs(high) >= p ? (high - total) + p : (p - total) + high;
        high = total;
        *slope += cgam_entmax_slope(e->order, p);
    }
    return high + low;
}

cgam_entmax cgam_entmax_of(double order, double beta, int64_t n, const double *x)
{
    cgam_entmax e = {order, beta, largest(n, x), 0};
    if (!isfinite(e.top)) e.shift = NAN;
    for (int k = 0; k < STEPS_MAX && !isnan(e.shift); k++) {
        double slope, over = excess(&e, n, x, &slope), next = e.shift - over / slope;
        if (!(next < e.shift)) break;
        e.shift = next;
    }
    return e;
}
