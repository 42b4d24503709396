/* metric.c: banks whose dot products with mapped queries are cosines, or -|zeta - q|^2 / 2.
 *
 *     cosine   rows zeta / |zeta|                 queries q / |q|; zero stays zero
 *     l2       rows (zeta, k, k, h1, h2, ..)      queries (q, g1, g2, k, k, ..)
 *              k a power of two, at least the longest |zeta|;  h1 + h2 .. = -|zeta|^2 / 2k,  g1 + g2 = -|q|^2 / 2k
 *              so that the product is <zeta, q> - |q|^2 / 2 - |zeta|^2 / 2
 *
 * Every engine and every proof then serves the metric as it serves a bank. What differs from the exact metric is covered
 * by the bound of a product: docs/theorems/metrics.md. Squares are summed in twice the precision (Ogita, Rump and Oishi
 * 2005, Dot2), and h and g are split into as many numbers of their type as hold the result. */
#include "memory/bank.h"

#include "num/cpu/widen.h"

#include <float.h>
#include <math.h>
#include <string.h>

const char *const cgam_metric_words[] = {"dot", "cosine", "l2", NULL};

enum { SPLIT_F64 = 2, SPLIT_F32 = 3, QUERY_SPLIT = 2 };

/* |x|^2 as high + low, off by at most (d u)^2 of it. */
static void squares(int64_t d, const double *x, double *high, double *low)
{
    double sum = 0, rest = 0;
    for (int64_t j = 0; j < d; j++) {
        double product = x[j] * x[j], off = fma(x[j], x[j], -product);
        double next = sum + product, part = next - sum;
        rest += (sum - (next - part)) + (product - part) + off;
        sum = next;
    }
    *high = sum + rest;
    *low = rest - (*high - sum);
}

/* An empty bank of the same memories. */
static cgam_status new_bank(const cgam_bank *bank, cgam_metric metric, cgam_bank **out)
{
    cgam_env *env = bank->env;
    cgam_bank *b = *out = cgam_zalloc(env, 1, sizeof *b);
    if (!b) return cgam_fail_nomem(env, "a bank");
    b->env = env;
    b->Z = bank->Z;
    b->Z.scale = NULL;
    b->whole = bank->whole;
    b->columns = bank->columns;
    b->metric = metric;
    b->metric_d = bank->Z.d;
    if (!bank->number) return CGAM_OK;
    b->number = cgam_alloc(env, (size_t)bank->Z.n, sizeof *b->number);
    if (!b->number) return cgam_fail_nomem(env, "a bank");
    memcpy(b->number, bank->number, (size_t)bank->Z.n * sizeof *b->number);
    return CGAM_OK;
}

/* The rows of an l2 bank, in f32 where that holds those of `bank`, else in f64. */
static cgam_status extend_rows(const cgam_bank *bank, cgam_bank *b)
{
    cgam_env *env = bank->env;
    const int64_t d = bank->Z.d, n = bank->Z.n;
    const bool wide = bank->Z.dtype == CGAM_F64;
    const int split = wide ? SPLIT_F64 : SPLIT_F32;
    const int64_t all = d + QUERY_SPLIT + split;
    const double unit = b->metric_unit;
    double *row = cgam_alloc(env, (size_t)all, sizeof *row);
    b->owned = cgam_alloc(env, (size_t)(n * all), wide ? sizeof(double) : sizeof(float));
    cgam_status status = row && b->owned ? CGAM_OK : cgam_fail_nomem(env, "rows of a metric");
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        double high, low;
        cgam_rows_get(&bank->Z, i, 1, row);
        squares(d, row, &high, &low);
        high *= -0.5 / unit; /* a power of two: exact */
        low *= -0.5 / unit;
        for (int k = 0; k < QUERY_SPLIT; k++) row[d + k] = unit;
        for (int k = 0; k < split; k++) {
            double part = wide ? high : (double)(float)high, rest = high - part;
            row[d + QUERY_SPLIT + k] = part;
            high = rest + low;
            low -= high - rest;
        }
        if (wide) memcpy((double *)b->owned + i * all, row, (size_t)all * sizeof *row);
        else cgam_narrow(CGAM_F32, row, all, (float *)b->owned + i * all);
        if (i % 4096 == 0 && cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    cgam_free(env, row);
    b->Z.data = b->owned;
    b->Z.dtype = wide ? CGAM_F64 : CGAM_F32;
    b->Z.d = b->Z.stride = all;
    return status;
}

/* The power of two at least the longest norm; fails where parts of h would underflow. */
static cgam_status choose_unit(const cgam_bank *bank, double *out)
{
    int exponent = 0, most = bank->Z.dtype == CGAM_F64 ? 300 : 50;
    if (bank->info.norm_max > 0) (void)frexp(bank->info.norm_max * (1 + 0x1p-20), &exponent);
    *out = ldexp(1, exponent);
    if (exponent <= most && exponent >= -most) return CGAM_OK;
    return cgam_fail(bank->env, CGAM_E_VALUE,
                     "metric l2: the longest memory has norm %.3g, outside [2^-%d, 2^%d]; rescale "
                     "the bank",
                     bank->info.norm_max, most, most);
}

cgam_status cgam_bank_metric(const cgam_bank *bank, cgam_metric metric, cgam_bank **out)
{
    cgam_bank *b = NULL;
    *out = NULL;
    if (metric != CGAM_COSINE && metric != CGAM_L2)
        return cgam_fail(bank->env, CGAM_E_ARG, "invalid metric %d (valid: %d, cosine, and %d, l2)",
                         (int)metric, CGAM_COSINE, CGAM_L2);
    if (metric == CGAM_L2 && bank->scale)
        return cgam_fail(bank->env, CGAM_E_UNSUPPORTED,
                         "metric l2 does not work on a normalized bank; use cosine");
    cgam_status status = cgam_bank_alone(bank, "a metric");
    if (status == CGAM_OK) status = new_bank(bank, metric, &b);
    if (status == CGAM_OK && metric == CGAM_L2) status = choose_unit(bank, &b->metric_unit);
    if (status == CGAM_OK && metric == CGAM_L2) status = extend_rows(bank, b);
    if (status == CGAM_OK)
        status = cgam_bank_finish(b, &(cgam_bank_opts){.normalize = metric == CGAM_COSINE}, "bank");
    if (status == CGAM_OK) *out = b;
    else cgam_bank_free(b);
    return status;
}

cgam_status cgam_metric_queries(const cgam_bank *bank, int64_t count, const double *q, double *out)
{
    const int64_t d = bank->metric_d, all = bank->Z.d;
    if (bank->metric == CGAM_DOT)
        return cgam_fail(bank->env, CGAM_E_ARG, "the bank has no metric; see cgam_bank_metric");
    for (int64_t k = 0; k < count; k++) {
        const double *from = q + k * d;
        double *to = out + k * all, high, low;
        squares(d, from, &high, &low);
        if (!(high <= 0x1p1000) || (high > 0 && high < 0x1p-900))
            return cgam_fail(bank->env, CGAM_E_VALUE,
                             "query %lld: |q|^2 is %g, outside [2^-900, 2^1000]", (long long)k,
                             high);
        if (bank->metric == CGAM_COSINE) {
            double norm = high > 0 ? sqrt(high) : 1;
            for (int64_t j = 0; j < d; j++) to[j] = from[j] / norm;
            continue;
        }
        memcpy(to, from, (size_t)d * sizeof *to);
        to[d] = high * (-0.5 / bank->metric_unit);
        to[d + 1] = low * (-0.5 / bank->metric_unit);
        for (int64_t j = d + QUERY_SPLIT; j < all; j++) to[j] = bank->metric_unit;
    }
    return CGAM_OK;
}
