/* instance.c: banks and parameters at the edges of what is allowed, and in the middle. */
#include "memory/bank.h"
#include "rigour/campaign.h"

#include "base/rng.h"
#include "num/cpu/widen.h"
#include <cgam/base.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const size_names[SIZES] = {"small", "middle", "large"};

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
    if (x->tame) {
        kind = 4;
        wide = 0;
        common = 1;
        sparse = whole = false;
    }
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
    /* duplicates and near-duplicates; of a bank that is not small, in some */
    int64_t alike = x->size == SMALL ? 6 : cgam_rng_below(rng, 4) || x->tame ? INT64_MAX >> 12 : 40;
    for (int64_t i = 1; i < n; i++) {
        int64_t like = cgam_rng_below(rng, alike), j = cgam_rng_below(rng, i);
        if (like > 1) continue;
        double off = like == 0 ? 0 : power(rng, -16, -4);
        for (int64_t k = 0; k < d; k++)
            x->Z[i * d + k] = x->Z[j * d + k] * (1 + off * cgam_rng_normal(rng));
    }
}

/* alpha from 0 through alpha_crit (1 +- 10^-k) to 10^6 / n. */
static double choose_alpha(cgam_rng *rng, bank_size size, const cgam_bank *bank)
{
    cgam_critical crit;
    double longest = cgam_bank_describe(bank).norm_max, n2 = longest * longest;
    switch (size == LARGE ? 5 : cgam_rng_below(rng, 6)) {
    case 0: return 0;
    case 1: return n2 > 0 ? power(rng, -3, 1) / n2 : 1;
    case 2: return n2 > 0 ? power(rng, -6, 6) / n2 : 2;
    default:
        if (cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit) != CGAM_OK) return 0.5;
        double at = isnan(crit.alpha) ? crit.alpha_lo : crit.alpha;
        if (!isfinite(at)) return n2 > 0 ? power(rng, -2, 3) / n2 : 1;
        double part = cgam_rng_below(rng, 2) ? cgam_rng_uniform(rng) : power(rng, -16, -1);
        if (cgam_rng_below(rng, 12) == 0) return size == LARGE ? 0 : at;
        return at * (cgam_rng_below(rng, 4) || size == LARGE ? 1 - part : 1 + part);
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
        double back = x->normalize ? sqrt(unit) : unit, back_of = x->normalize ? sqrt(of) : of;
        for (int64_t j = 0; j < d; j++) {
            double r = cgam_rng_normal(rng), t = cgam_rng_normal(rng);
            double wide = x->normalize ? 1 : sqrt(unit), wide_of = x->normalize ? 1 : sqrt(of);
            x->q[k * d + j] = size * (back * x->Z[near * d + j] + noise * wide * r);
            x->c[k * d + j] = back_of * x->Z[also * d + j] + noise * wide_of * t;
        }
    }
    for (int64_t i = 0; i < n * d; i++) x->W[i] = cgam_rng_normal(rng);
}

/* What the first draws never make, in instances of their own: drawn after all else, so that the
 * others stay what they were. Rows: all in one denormal or huge scale, one row of zeros, all of them. */
static void choose_edge_rows(cgam_rng *rng, instance *x)
{
    int64_t n = x->n, d = x->d, row = cgam_rng_below(rng, n);
    double scale = 1;
    switch (cgam_rng_below(rng, 10)) {
    case 0: scale = power(rng, -145, -100); break;
    case 1: scale = power(rng, 100, 145); break;
    case 8: scale = power(rng, -320, -140); break; /* squares leave the range */
    case 9: scale = power(rng, 140, 305); break;
    case 2: /* denormal beside ordinary */
        for (int64_t j = 0; j < d; j++) x->Z[row * d + j] = x->Z[row * d + j] * 0x1p-1060;
        break;
    case 3: memset(x->Z + row * d, 0, (size_t)d * sizeof *x->Z); break;
    case 4: memset(x->Z, 0, (size_t)(n * d) * sizeof *x->Z); break;
    case 5: /* opposite rows */
        for (int64_t j = 0; j < d && n > 1; j++) x->Z[((row + 1) % n) * d + j] = -x->Z[row * d + j];
        break;
    case 6: /* all alike */
        for (int64_t i = 0; i < n * d; i++) x->Z[i] = x->Z[i % d];
        break;
    default: /* norms that differ by a unit in the last place */
        for (int64_t i = 0; i < n * d; i++)
            x->Z[i] = i % d == 0 ? 1 + (double)(i / d % 3) * 0x1p-52 : 0;
    }
    for (int64_t i = 0; i < n * d; i++) x->Z[i] *= scale;
}

/* Scores in units of 4^k, gates of 2^k: the same recall to within underflow. */
static void choose_units(cgam_rng *rng, instance *x)
{
    int k = (int)cgam_rng_below(rng, 801) - 400;
    for (int64_t j = 0; j < x->queries * x->d; j++) {
        x->q[j] = ldexp(x->q[j], 2 * k);
        x->c[j] = ldexp(x->c[j], k);
    }
    x->opts.lambda = ldexp(x->opts.lambda, k);
    x->opts.beta = ldexp(x->opts.beta, -2 * k);
}

static void choose_edge(cgam_rng *rng, instance *x)
{
    size_t bytes = (size_t)(x->queries * x->d) * sizeof(double);
    cgam_recall_opts *o = &x->opts;
    switch (cgam_rng_below(rng, 12)) {
    case 0: memset(x->q, 0, bytes); break;
    case 1: memset(x->c, 0, bytes); break;
    case 2:
        for (int64_t j = 0; j < x->queries * x->d; j++) x->q[j] *= 0x1p-1050;
        break;
    case 3: o->beta = 1e6; break;
    case 4: o->lambda = 1e6; break;
    case 5: o->beta = o->lambda = 1e6; break;
    case 6: o->max_iter = 1 + cgam_rng_below(rng, 3); break;
    case 7: o->beta = power(rng, -300, 300); break;
    case 8: o->lambda = power(rng, -300, 300); break;
    case 9: o->alpha = power(rng, -300, 300); break;
    case 10:
        o->alpha *= power(rng, -100, 100);
        o->beta = power(rng, -150, 150);
        o->lambda = power(rng, -150, 150);
        break;
    default: o->tol = 0;
    }
    if (cgam_rng_below(rng, 3) == 0) choose_units(rng, x);
}

/* Every fourth is sparse, in a draw of its own; powers of 1 / (A - 1) that are whole are the quick ones. */
static void choose_activation(cgam_rng rng, instance *x)
{
    if (cgam_rng_below(&rng, 4) || (x->size == LARGE && x->tame)) return;
    double any = x->size == SMALL && cgam_rng_below(&rng, 4) == 0;
    x->opts.entmax = any ? 1.02 + 0.98 * cgam_rng_uniform(&rng) : PICK(&rng, 2, 1.5, 1.25, 2, 1.5);
}

/* Of small coupled recalls few are annealed, which takes fifty times as long, in a draw of its own as well. */
static void choose_mode(cgam_rng rng, instance *x)
{
    if (x->size != SMALL || x->opts.mode != CGAM_COUPLED || x->queries > 2) return;
    if (cgam_rng_below(&rng, 128) == 0) x->opts.mode = CGAM_ANNEAL;
}

/* What only some small recalls ask for: a target, the sketch, a ghost. */
static void choose_asked(cgam_rng rng, const cgam_bank *bank, instance *x)
{
    cgam_recall_opts *o = &x->opts;
    if (x->size != SMALL) return;
    if (cgam_rng_below(&rng, 6) == 0) {
        x->target = calloc((size_t)x->queries, sizeof *x->target);
        for (int64_t k = 0; k < x->queries; k++)
            x->target[k] = cgam_bank_number(bank, cgam_rng_below(&rng, x->n));
    }
    if (o->mode != CGAM_FIRST || o->entmax > 0) return;
    o->fast = cgam_rng_below(&rng, 3) == 0;
    if (o->fast && cgam_rng_below(&rng, 2)) o->tol_p = power(&rng, -9, -1);
    o->none = cgam_rng_below(&rng, 3) == 0;
    if (!o->none) return;
    o->certify = false;
    const double *row = x->Z + cgam_rng_below(&rng, x->n) * x->d; /* about as good as this one */
    for (int64_t j = 0; j < x->d; j++) o->none_score += row[j] * x->q[j];
    o->none_score *= PICK(&rng, 1, 1 + 0x1p-50, 0.9, -1, 0, 2);
    if (!isfinite(o->none_score)) o->none_score = 0;
}

/* Rows of a cold instance: families of 2 to 9 whose members differ by 1e-16 to 1e-4 of a row. */
static void choose_families(cgam_rng rng, instance *x)
{
    int64_t family = 2 + cgam_rng_below(&rng, 8);
    double apart = power(&rng, -16, -4);
    for (int64_t i = 0; i < x->n; i++) {
        const double *first = x->Z + i / family * family * x->d;
        for (int64_t j = 0; j < x->d && i % family; j++)
            x->Z[i * x->d + j] = first[j] * (1 + apart * cgam_rng_normal(&rng));
    }
}

/* Temperatures at which the last digits of a score decide, and contexts that weigh next to nothing. */
static void choose_cold(cgam_rng rng, instance *x)
{
    x->opts.beta = power(&rng, 2, 18);
    if (cgam_rng_below(&rng, 2)) x->opts.lambda = power(&rng, -8, 0);
    if (x->size == LARGE) x->opts.mode = CGAM_FIRST;
}

/* Every sixth small bank is a part of one that has two rows more. */
static cgam_status make_bank(cgam_env *env, cgam_rng rng, instance *x, const cgam_bank_opts *o,
                             cgam_bank **bank)
{
    if (x->size != SMALL || cgam_rng_below(&rng, 6))
        return cgam_bank_new(env, x->stored, x->dtype, x->n, x->d, o, bank);
    uint64_t mask = (1ull << (x->n + 2)) - 1;
    int64_t first = cgam_rng_below(&rng, x->n + 1),
            second = first + 1 + cgam_rng_below(&rng, x->n + 1 - first);
    mask &= ~(1ull << first | 1ull << second);
    size_t bytes = (size_t)x->d * cgam_dtype_size(x->dtype);
    char *all = calloc((size_t)x->n + 2, bytes);
    for (int64_t i = 0, k = 0; i < x->n + 2; i++) /* those that do not count are copies */
        memcpy(all + (size_t)i * bytes,
               (char *)x->stored + (size_t)(mask >> i & 1 ? k++ : 0) * bytes, bytes);
    free(x->stored);
    x->stored = all;
    cgam_status status = cgam_bank_new(env, all, x->dtype, x->n + 2, x->d, o, &x->whole);
    return status == CGAM_OK ? cgam_bank_only(x->whole, &mask, bank) : status;
}

/* Shape and rows. */
static void choose_bank(cgam_rng *rng, cgam_rng *hostile, instance *x)
{
    if (x->size == SMALL) {
        x->n = 1 + cgam_rng_below(rng, cgam_rng_below(rng, 3) ? 6 : MEMORIES_MAX);
        x->d = 1 + cgam_rng_below(rng, cgam_rng_below(rng, 3) ? 6 : DIMENSION_MAX);
        x->dtype = cgam_rng_below(rng, 2) ? CGAM_F64 : (cgam_dtype)cgam_rng_below(rng, 4);
    } else {
        bool middle = x->size == MIDDLE;
        x->d = middle    ? 2 + cgam_rng_below(rng, cgam_rng_below(rng, 4) ? 11 : 31)
               : x->cold ? 16
                         : 8;
        x->n = middle ? (cgam_rng_below(rng, 4) ? 193 + cgam_rng_below(rng, 408)
                                                : 13 + cgam_rng_below(rng, 180))
                      : (1 << 18) / x->d + cgam_rng_below(rng, 500);
        x->dtype = (cgam_dtype)(middle ? cgam_rng_below(rng, 4) : (int64_t)(x->number / 4 % 4));
    }
    size_t numbers = (size_t)(x->n * x->d);
    x->Z = calloc(numbers, sizeof *x->Z);
    x->W = calloc(numbers + (size_t)x->d, sizeof *x->W);
    x->stored = calloc(numbers, sizeof(double));
    fill_rows(rng, x);
    if (x->cold && x->size != SMALL)
        choose_families(cgam_rng_stream(x->seed + (1ull << 45), x->number), x);
    if (x->edge && cgam_rng_below(hostile, 2)) choose_edge_rows(hostile, x);
    double most = x->dtype == CGAM_F16 ? 6e4 : x->dtype == CGAM_F64 ? INFINITY : 3e38;
    for (size_t i = 0; i < numbers; i++) /* the range of the type may be smaller than ours */
        if (!(fabs(x->Z[i]) < most)) x->Z[i] = copysign(most, x->Z[i]);
    cgam_narrow(x->dtype, x->Z, x->n * x->d, x->stored);
    cgam_widen(x->dtype, x->stored, x->n * x->d, x->Z);
}

bool instance_make(cgam_env *env, bank_size size, uint64_t seed, uint64_t number, instance *x,
                   cgam_bank **bank)
{
    uint64_t stream = number + ((uint64_t)size << 60);
    cgam_rng rng = cgam_rng_stream(seed, stream), hostile = cgam_rng_stream(~seed, stream);
    *x = (instance){.seed = seed, .number = number, .size = size};
    x->tame = size == LARGE && number / 2 % 2 == 0;
    x->edge = cgam_rng_below(&hostile, 8) == 0 && !x->tame;
    x->normalize = cgam_rng_below(&hostile, 8) == 0;
    cgam_rng cold = cgam_rng_stream(seed + (1ull << 44), stream);
    x->cold = !x->edge && cgam_rng_below(&cold, size == LARGE ? 2 : 8) == 0;
    choose_bank(&rng, &hostile, x);
    x->d_c = x->d;
    cgam_bank_opts b = cgam_bank_opts_default();
    b.normalize = x->normalize;
    if (make_bank(env, cgam_rng_stream(seed + (1ull << 42), stream), x, &b, bank) != CGAM_OK)
        return false;
    if (cgam_gate_critical(*bank, CGAM_EFFORT_FREE, &x->free) != CGAM_OK) return false;

    int64_t batch = cgam_rng_below(&rng, size == SMALL ? 40 : 3);
    if (size == LARGE) batch = !x->tame;
    int64_t many = size == LARGE ? 16 : QUERIES_MAX; /* eight or more go together */
    if (size == LARGE && x->cold) many = 8 + cgam_rng_below(&cold, QUERIES_MAX - 7);
    x->queries = batch == 0 ? many : 1 + (cgam_rng_below(&rng, 8) == 0);
    if (size == SMALL && batch) x->queries = 1 + cgam_rng_below(&rng, 6); /* they share a plan */
    x->q = calloc((size_t)(x->queries * x->d), sizeof *x->q);
    x->c = calloc((size_t)(x->queries * x->d), sizeof *x->c);
    choose_vectors(&rng, x);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = cgam_rng_below(&rng, 3) ? CGAM_COUPLED : CGAM_FIRST;
    o.alpha = choose_alpha(&rng, size, *bank);
    bool wild = cgam_rng_below(&rng, 4) == 0 && !x->tame;
    o.beta = wild ? power(&rng, -3, 6) : power(&rng, -1, 1);
    o.lambda = cgam_rng_below(&rng, 12) == 0 && !x->tame ? 0
               : wild                                    ? power(&rng, -3, 6)
                                                         : power(&rng, -1, 0.5);
    o.certify = cgam_rng_below(&rng, 2);
    o.plain = cgam_rng_below(&rng, 3) == 0;
    o.max_iter = 2000;
    x->context = cgam_rng_below(&rng, 4) > 0;
    x->own = x->context && cgam_rng_below(&rng, 2);
    if (x->context && cgam_rng_below(&rng, 6) == 0 && !x->tame) o.W = x->W;
    else if (x->context && cgam_rng_below(&hostile, 6) == 0) o.P = x->W;
    if (o.P && x->n > x->d) x->d_c = 1 + cgam_rng_below(&hostile, x->d);
    else if (o.P) o.P = NULL; /* P is as large as d rows of W */
    if (o.P || o.W) o.d_c = x->d_c;
    if (cgam_rng_below(&rng, 4) == 0) o.tol = power(&rng, -14, -2);
    /* Of a large bank all ways come in turn; 16 certificates of it would take too long. */
    if (size == LARGE) o.mode = number % 2 ? CGAM_FIRST : CGAM_COUPLED;
    if (size == LARGE && batch == 0) o.certify = false;
    cgam_rng apart = cgam_rng_stream(seed + (1ull << 46), stream); /* sums.c */
    if (size == LARGE && o.mode == CGAM_COUPLED && cgam_rng_below(&apart, 3) == 0) o.alpha = 0;
    double longest = cgam_bank_describe(*bank).norm_max;
    bool flows = size == SMALL && !wild && !x->edge && longest > 0.1 && longest < 10 &&
                 o.alpha * longest * longest <= 10 && cgam_rng_below(&hostile, 100) == 0;
    if (flows) { /* speaks of its own r and p, whatever brought them there; stiff ones take long */
        o.mode = CGAM_FLOW;
        x->queries = 1;
        o.t_max = PICK(&hostile, 1, 20);
        o.free_context = x->context && cgam_rng_below(&hostile, 4) == 0;
        o.free_query = cgam_rng_below(&hostile, 4) == 0;
    }
    if (size == LARGE) o.max_iter = 300;
    if (x->tame) o.alpha *= 0.8; /* well away from critical */
    x->opts = o;
    if (x->edge) choose_edge(&hostile, x);
    if (x->cold && o.mode != CGAM_FLOW) choose_cold(cold, x);
    choose_activation(cgam_rng_stream(seed + (1ull << 40), stream), x);
    choose_mode(cgam_rng_stream(seed + (1ull << 41), stream), x);
    choose_asked(cgam_rng_stream(seed + (1ull << 43), stream), *bank, x);
    x->vectors = x->opts.mode != CGAM_FIRST || (cgam_rng_below(&rng, 2) == 1 && !x->tame);
    x->ordinary = !wild && !x->edge && !x->cold && !flows && o.alpha * longest * longest <= 10;
    return true;
}

void instance_free(instance *x)
{
    cgam_bank_free(x->whole);
    free(x->target);
    free(x->stored);
    free(x->Z);
    free(x->W);
    free(x->q);
    free(x->c);
}

void instance_print(const instance *x)
{
    const cgam_recall_opts *o = &x->opts;
    printf(
        "  instance %s from=%llu seed=%llu: %lld x %lld %s%s, %s, entmax %.17g, alpha %.17g, beta "
        "%.17g, lambda %.17g%s%s%s, %lld queries%s\n",
        size_names[x->size], (unsigned long long)x->number, (unsigned long long)x->seed,
        (long long)x->n, (long long)x->d, cgam_word(cgam_dtype_words, x->dtype),
        x->normalize ? " normalised" : "", cgam_word(cgam_mode_words, o->mode), o->entmax, o->alpha,
        o->beta, o->lambda, o->certify ? ", certify" : "",
        o->W   ? ", W"
        : o->P ? ", P"
               : "",
        x->context ? x->own ? ", contexts" : ", a context" : "", (long long)x->queries,
        x->edge   ? ", edge"
        : x->cold ? ", cold"
                  : "");
}
