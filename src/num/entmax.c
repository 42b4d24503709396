/* entmax.c: see entmax.h. */
#include "num/entmax.h"

#include "num/ranks.h"

#include <string.h>

/* Steps shrink the distance at least as Newton's on exp does, whose number grows as log log n. */
enum { STEPS_MAX = 200 };

/* sum p - 1, with the rounding of each addition kept, and its derivative. The leader's weight comes
 * first, so that a sum near 1 is a small difference. */
static double excess(cgam_env *env, const cgam_rows *Z, const cgam_entmax *e, const double *x,
                     double *slope)
{
    cgam_tally t;
    cgam_tally_open(&t, Z, "2.+");
    while (cgam_tally_next(&t)) {
        if (t.from == 0) t.x[0] = -1;
        for (int64_t i = t.from; i < t.to; i++) {
            double p = cgam_entmax_weight(e, x[i]), high = t.x[0], total = high + p;
            if (!(p > 0)) continue;
            t.x[1] += fabs(high) >= p ? (high - total) + p : (p - total) + high;
            t.x[0] = total;
            t.x[2] += cgam_entmax_slope(e->order, p);
        }
    }
    if (cgam_tally_close(env, &t) != CGAM_OK) return NAN;
    *slope = t.x[2];
    return t.x[0] + t.x[1];
}

/* H_A(p) = -sum p v / A with v the arguments of exp_A, so the value is (1 - 1/A) sum p v - shift. */
static double tilt(cgam_env *env, const cgam_rows *Z, const cgam_entmax *e, const double *x)
{
    double low = -cgam_entmax_reach(e->order, e->beta);
    cgam_tally t;
    cgam_tally_open(&t, Z, "+");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++) {
            if (x[i] - e->top <= low) continue;
            double p = cgam_entmax_weight(e, x[i]);
            if (p > 0) t.x[0] += p * cgam_entmax_argument(e, x[i]);
        }
    return cgam_tally_close(env, &t) == CGAM_OK ? t.x[0] : NAN;
}

double cgam_entmax_value_rows(cgam_env *env, const cgam_rows *Z, const cgam_entmax *e,
                              const double *x)
{
    return (1 - 1 / e->order) * tilt(env, Z, e, x) - e->shift;
}

double cgam_entmax_value(const cgam_entmax *e, int64_t n, const double *x)
{
    return cgam_entmax_value_rows(NULL, &(cgam_rows){.n = n}, e, x);
}

double cgam_entmax_tilt(const cgam_entmax *e, int64_t n, const double *x)
{
    return tilt(NULL, &(cgam_rows){.n = n}, e, x);
}

enum { FEW = 1024 }; /* scores within reach of the top that are looked at by themselves */

/* Newton's steps from shift 0. */
static void settle(cgam_env *env, const cgam_rows *Z, cgam_entmax *e, const double *x)
{
    for (int k = 0; k < STEPS_MAX; k++) {
        double slope = 1, over = excess(env, Z, e, x, &slope), next = e->shift - over / slope;
        if (!(next < e->shift)) break;
        e->shift = next;
    }
}

/* A shift of 0 or less leaves nothing to scores that are 1 / ((A - 1) beta) below the top. */
cgam_entmax cgam_entmax_rows(cgam_env *env, const cgam_rows *Z, double order, double beta,
                             const double *x)
{
    double near[FEW] = {0}, low = -cgam_entmax_reach(order, beta);
    cgam_span here = cgam_rows_span(Z);
    cgam_entmax e = {order, beta, 0, 0};
    cgam_tally t;
    cgam_tally_open(&t, Z, ">");
    while (cgam_tally_next(&t)) t.x[0] = cgam_cpu_best()->f64->largest(x + t.from, t.to - t.from);
    cgam_status status = cgam_tally_close(env, &t);
    e.top = t.x[0];
    cgam_tally_open(&t, Z, "++");
    while (cgam_tally_next(&t) && status == CGAM_OK)
        for (int64_t i = t.from; i < t.to; i++) {
            if (x[i] - e.top <= low) continue;
            t.x[0] += 1;
            t.x[1] += isnan(x[i]);
        }
    if (status == CGAM_OK) status = cgam_tally_close(env, &t);
    if (status != CGAM_OK || !isfinite(e.top) || t.x[1] > 0) {
        e.shift = NAN;
    } else if (t.x[0] <= FEW) {
        int64_t mine = 0, count = 0;
        void *all = NULL;
        for (int64_t i = here.from; i < here.to; i++)
            if (!(x[i] - e.top <= low)) near[mine++] = x[i];
        if (Z->shard) {
            status = cgam_rows_collect(env, Z, sizeof *near, mine, near, &count, &all);
            if (all) memcpy(near, all, (size_t)count * sizeof *near);
            cgam_free(env, all);
        } else {
            count = mine;
        }
        if (status == CGAM_OK) settle(env, &(cgam_rows){.n = count}, &e, near);
        else e.shift = NAN, cgam_rows_failed(Z, status);
    } else {
        settle(env, Z, &e, x);
    }
    return e;
}

cgam_entmax cgam_entmax_of(double order, double beta, int64_t n, const double *x)
{
    return cgam_entmax_rows(NULL, &(cgam_rows){.n = n}, order, beta, x);
}
