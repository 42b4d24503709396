/* instance.c: banks and parameters at the edges of what is allowed, and in the middle. */
#include "rigour/campaign.h"

#include "num/cpu/widen.h"
#include <cgam/rng.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* 10^x with x uniform between two powers. */
static double power(cgam_rng *rng, double low, double high)
{
    return pow(10, low + (high - low) * cgam_rng_uniform(rng));
}

static double pick(cgam_rng *rng, int64_t n, const double *list)
{
    return list[cgam_rng_below(rng, n)];
}
#define PICK(rng, ...)                                                                             \
    pick(rng, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

static void fill_rows(cgam_rng *rng, instance *x)
{
    int64_t n = x->n, d = x->d, kind = cgam_rng_below(rng, 6);
    double wide = kind == 1 ? 8 : kind == 2 ? 2 : 0, common = PICK(rng, 1, 1, 1, 1e3, 3e7, 1e-6);
    bool sparse = cgam_rng_below(rng, 5) == 0, whole = cgam_rng_below(rng, 8) == 0;
    for (int64_t i = 0; i < n; i++) {
        double *row = x->Z + i * d, length = 0, size;
        for (int64_t j = 0; j < d; j++) {
            row[j] = whole ? (double)cgam_rng_below(rng, 3) - 1 : cgam_rng_normal(rng);
            if (sparse && cgam_rng_below(rng, 3)) row[j] = 0;
            length += row[j] * row[j];
        }
        size = wide > 0 ? power(rng, -wide, wide) : common;
        if (kind == 0 && length > 0) size = 1 / sqrt(length); /* unit memories */
        for (int64_t j = 0; j < d; j++) row[j] *= size;
        if (kind == 3) /* orthogonal, or nearly: a scaled unit vector and perhaps a little more */
            for (int64_t j = 0; j < d; j++)
                row[j] = j == i % d               ? size * (1 + 0.1 * (double)i)
                         : cgam_rng_below(rng, 4) ? 0
                                                  : size * power(rng, -16, -4);
    }
    for (int64_t i = 1; i < n; i++) { /* duplicates and near-duplicates */
        int64_t like = cgam_rng_below(rng, 6), j = cgam_rng_below(rng, i);
        if (like > 1) continue;
        double off = like == 0 ? 0 : power(rng, -16, -4);
        for (int64_t k = 0; k < d; k++)
            x->Z[i * d + k] = x->Z[j * d + k] * (1 + off * cgam_rng_normal(rng));
    }
}

/* alpha from 0 through alpha_crit (1 +- 10^-k) to 10^6 / n. */
static double choose_alpha(cgam_rng *rng, const cgam_bank *bank)
{
    cgam_critical crit;
    double longest = cgam_bank_describe(bank).norm_max, n2 = longest * longest;
    switch (cgam_rng_below(rng, 6)) {
    case 0: return 0;
    case 1: return n2 > 0 ? power(rng, -3, 1) / n2 : 1;
    case 2: return n2 > 0 ? power(rng, -6, 6) / n2 : 2;
    default:
        if (cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit) != CGAM_OK) return 0.5;
        double at = isnan(crit.alpha) ? crit.alpha_lo : crit.alpha;
        if (!isfinite(at)) return n2 > 0 ? power(rng, -2, 3) / n2 : 1;
        double part = cgam_rng_below(rng, 2) ? cgam_rng_uniform(rng) : power(rng, -16, -1);
        if (cgam_rng_below(rng, 12) == 0) return at;
        return at * (cgam_rng_below(rng, 4) ? 1 - part : 1 + part);
    }
}

static void choose_vectors(cgam_rng *rng, instance *x)
{
    int64_t n = x->n, d = x->d;
    double size = power(rng, -2, 2);
    for (int64_t k = 0; k < x->queries; k++) {
        int64_t near = cgam_rng_below(rng, n), also = cgam_rng_below(rng, n);
        double noise = PICK(rng, 0, 0.1, 1, 1e-9), length = 0, other = 0;
        for (int64_t j = 0; j < d; j++) {
            length += x->Z[near * d + j] * x->Z[near * d + j];
            other += x->Z[also * d + j] * x->Z[also * d + j];
        }
        /* of a size at which scores are of order 1 to 100 for memories as long as this one */
        double unit = length > 0 ? 1 / length : 1, of = other > 0 ? 1 / other : 1;
        for (int64_t j = 0; j < d; j++) {
            double r = cgam_rng_normal(rng), t = cgam_rng_normal(rng);
            x->q[k * d + j] = size * (unit * x->Z[near * d + j] + noise * sqrt(unit) * r);
            x->c[k * d + j] = of * x->Z[also * d + j] + noise * sqrt(of) * t;
        }
    }
    for (int64_t i = 0; i < n * d; i++) x->W[i] = cgam_rng_normal(rng);
}

bool instance_make(cgam_env *env, uint64_t seed, uint64_t number, instance *x, cgam_bank **bank)
{
    cgam_rng rng = cgam_rng_stream(seed, number);
    memset(x, 0, sizeof *x);
    x->seed = seed;
    x->number = number;
    x->n = 1 + cgam_rng_below(&rng, cgam_rng_below(&rng, 3) ? 6 : MEMORIES_MAX);
    x->d = 1 + cgam_rng_below(&rng, cgam_rng_below(&rng, 3) ? 6 : DIMENSION_MAX);
    x->dtype = cgam_rng_below(&rng, 2) ? CGAM_F64 : (cgam_dtype)cgam_rng_below(&rng, 4);
    fill_rows(&rng, x);
    if (x->dtype == CGAM_F16) /* the range of the type is smaller than ours */
        for (int64_t i = 0; i < x->n * x->d; i++)
            if (!(fabs(x->Z[i]) < 6e4)) x->Z[i] = copysign(6e4, x->Z[i]);
    cgam_narrow(x->dtype, x->Z, x->n * x->d, x->stored);
    cgam_widen(x->dtype, x->stored, x->n * x->d, x->Z);
    if (cgam_bank_new(env, x->stored, x->dtype, x->n, x->d, NULL, bank) != CGAM_OK) return false;

    x->queries = cgam_rng_below(&rng, 40) == 0 ? QUERIES_MAX : 1 + (cgam_rng_below(&rng, 8) == 0);
    choose_vectors(&rng, x);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = cgam_rng_below(&rng, 3) ? CGAM_COUPLED : CGAM_FIRST;
    o.alpha = choose_alpha(&rng, *bank);
    bool wild = cgam_rng_below(&rng, 4) == 0;
    o.beta = wild ? power(&rng, -3, 6) : power(&rng, -1, 1);
    o.lambda = cgam_rng_below(&rng, 12) == 0 ? 0 : wild ? power(&rng, -3, 6) : power(&rng, -1, 0.5);
    o.certify = cgam_rng_below(&rng, 2);
    o.plain = cgam_rng_below(&rng, 3) == 0;
    o.max_iter = 2000;
    x->context = cgam_rng_below(&rng, 4) > 0;
    x->own = x->context && cgam_rng_below(&rng, 2);
    if (x->context && cgam_rng_below(&rng, 6) == 0) {
        o.W = x->W;
        o.d_c = x->d;
    }
    if (cgam_rng_below(&rng, 4) == 0) o.tol = power(&rng, -14, -2);
    x->opts = o;
    x->vectors = o.mode == CGAM_COUPLED || cgam_rng_below(&rng, 2);
    double longest = cgam_bank_describe(*bank).norm_max;
    x->ordinary = !wild && o.alpha * longest * longest <= 10;
    return true;
}

void instance_print(const instance *x)
{
    const cgam_recall_opts *o = &x->opts;
    printf(
        "  instance %llu of seed %llu: %lld x %lld %s, %s, alpha %.17g, beta %.17g, lambda %.17g%s%s%s\n",
        (unsigned long long)x->number, (unsigned long long)x->seed, (long long)x->n,
        (long long)x->d, cgam_dtype_name(x->dtype), cgam_mode_name(o->mode), o->alpha, o->beta,
        o->lambda, o->certify ? ", certify" : "", o->W ? ", W" : "",
        x->context ? x->own ? ", contexts" : ", a context" : "");
}
