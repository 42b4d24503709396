/* entmax.c: see entmax.h. */
#include "num/entmax.h"

#include "num/ranks.h"

#include <string.h>

/* A step reduces the distance at least as much as a Newton step on exp; the number of those grows as log log n. */
enum { STEPS_MAX = 200 };

/* sum p - 1, with the rounding of each addition kept, and its derivative. The leader's weight comes
 * first, so that a sum near 1 is a small difference. */
static double excess(const cgam_rows *Z, const cgam_entmax *e, const double *x, double *slope)
{
    cgam_sum2 sum;
    CGAM_REDUCE(Z, i, CGAM_SUM2(sum), CGAM_SUM(*slope)) {
        if (i == 0) sum.high = -1;
        double p = cgam_entmax_weight(e, x[i]);
        if (!(p > 0)) continue;
        cgam_sum2_add(&sum, p);
        *slope += cgam_entmax_slope(e->order, p);
    }
    return sum.high + sum.low;
}

/* H_A(p) = -sum p v / A with v the arguments of exp_A, so the value is (1 - 1/A) sum p v - shift. */
static double tilt(const cgam_rows *Z, const cgam_entmax *e, const double *x)
{
    double low = -cgam_entmax_reach(e->order, e->beta), sum;
    CGAM_REDUCE(Z, i, CGAM_SUM(sum)) {
        if (x[i] - e->top <= low) continue;
        double p = cgam_entmax_weight(e, x[i]);
        if (p > 0) sum += p * cgam_entmax_argument(e, x[i]);
    }
    return sum;
}

double cgam_entmax_value_rows(const cgam_rows *Z, const cgam_entmax *e, const double *x)
{
    return (1 - 1 / e->order) * tilt(Z, e, x) - e->shift;
}

double cgam_entmax_value(const cgam_entmax *e, int64_t n, const double *x)
{
    return cgam_entmax_value_rows(&(cgam_rows){.n = n}, e, x);
}

double cgam_entmax_tilt(const cgam_entmax *e, int64_t n, const double *x)
{
    return tilt(&(cgam_rows){.n = n}, e, x);
}

enum { FEW = 1024 }; /* scores near the top that are collected in an array */

/* Newton's steps from shift 0. */
static void find_shift(const cgam_rows *Z, cgam_entmax *e, const double *x)
{
    for (int k = 0; k < STEPS_MAX; k++) {
        double slope = 1, over = excess(Z, e, x, &slope), next = e->shift - over / slope;
        if (!(next < e->shift)) break;
        e->shift = next;
    }
}

/* With a shift of 0 or less, scores 1 / ((A - 1) beta) below the top have weight 0. */
cgam_entmax cgam_entmax_rows(cgam_env *env, const cgam_rows *Z, double order, double beta,
                             const double *x)
{
    double near[FEW] = {0}, low = -cgam_entmax_reach(order, beta);
    cgam_entmax e = {order, beta, cgam_vec_max(Z, x), 0};
    double within, bad;
    CGAM_REDUCE(Z, i, CGAM_SUM(within), CGAM_SUM(bad)) {
        if (x[i] - e.top <= low) continue;
        within += 1;
        bad += isnan(x[i]);
    }
    if (!isfinite(e.top) || !(bad == 0)) {
        e.shift = NAN;
    } else if (within <= FEW) {
        int64_t mine = 0, count = 0;
        void *all = NULL;
        CGAM_EACH_ROW(Z, i) {
            if (!(x[i] - e.top <= low)) near[mine++] = x[i];
        }
        cgam_status status = CGAM_OK;
        if (cgam_rows_whole(Z)) {
            count = mine;
        } else {
            status = cgam_rows_collect(env, Z, sizeof *near, mine, near, &count, &all);
            if (all) memcpy(near, all, (size_t)count * sizeof *near);
            cgam_free(env, all);
        }
        if (status == CGAM_OK) find_shift(&(cgam_rows){.n = count}, &e, near);
        else e.shift = NAN, cgam_rows_failed(Z, status);
    } else {
        find_shift(Z, &e, x);
    }
    return e;
}

cgam_entmax cgam_entmax_of(double order, double beta, int64_t n, const double *x)
{
    return cgam_entmax_rows(NULL, &(cgam_rows){.n = n}, order, beta, x);
}
