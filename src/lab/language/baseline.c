/* baseline.c: means, thresholds, ranks and resampling; nothing here looks at a model. */
#include "base/alloc.h"
#include "base/rng.h"
#include "lab/stats.h"

#include "lab/language/baseline.h"
#include <math.h>
#include <stdlib.h>

void cgam_baseline_shift(int64_t queries, int64_t layers, int64_t width, const float *with,
                         const float *without, int64_t layer, int half, float *out)
{
    for (int64_t j = 0; j < width; j++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = half == 2 ? 0 : half; i < queries; i += half == 2 ? 1 : 2, n++) {
            int64_t at = (i * layers + layer) * width + j;
            sum += (double)with[at] - (double)without[at];
        }
        out[j] = (float)(n ? sum / (double)n : 0);
    }
}

void cgam_baseline_shifts(int64_t queries, int64_t layers, int64_t width, const float *with,
                          const float *without, bool all, float *out)
{
    for (int64_t r = 0; r < 2 * layers; r++)
        cgam_baseline_shift(queries, layers, width, with, without, r / 2, all ? 2 : (int)(r % 2),
                            out + r * width);
}

double cgam_baseline_cosine(int64_t n, const float *x, const float *y)
{
    double xy = 0, xx = 0, yy = 0;
    for (int64_t j = 0; j < n; j++) {
        xy += (double)x[j] * (double)y[j];
        xx += (double)x[j] * (double)x[j];
        yy += (double)y[j] * (double)y[j];
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}

/* Where all prompts end alike, scores after layer 0 are equal and a centred one is what rounding left, some
 * 1e-16 of the score: no lead. */
static const double TIE = 1e-9;

cgam_status cgam_baseline_centred(cgam_env *env, int64_t queries, int64_t labels,
                                  const double *scores, const int32_t *target, bool own,
                                  bool *right)
{
    double *mean = cgam_zalloc(env, 2 * (size_t)labels, sizeof *mean); /* of each half */
    if (!mean) return cgam_fail_nomem(env, "means of labels");
    int64_t n[2] = {0, 0};
    for (int64_t i = 0; i < queries; i++) {
        if (target[i] < 0) continue;
        n[i % 2]++;
        for (int64_t k = 0; k < labels; k++) mean[i % 2 * labels + k] += scores[i * labels + k];
    }
    for (int64_t i = 0; i < queries; i++) {
        int64_t half = own ? i % 2 : 1 - i % 2, best = -1;
        double top = -INFINITY, count = n[half] ? (double)n[half] : 1, size = 0;
        for (int64_t k = 0; k < labels; k++) size = fmax(size, fabs(scores[i * labels + k]));
        for (int64_t k = 0; k < labels; k++) {
            double score = scores[i * labels + k] - mean[half * labels + k] / count;
            if (!(score > top + TIE * size)) continue;
            top = score;
            best = k;
        }
        right[i] = target[i] >= 0 && best == target[i];
    }
    cgam_free(env, mean);
    return CGAM_OK;
}

typedef struct scored {
    double score;
    int32_t label;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

/* The largest number of n sorted items that a single border classifies correctly. */
static int64_t best_border(int64_t n, const scored *list)
{
    int64_t hits = 0;
    for (int64_t i = 0; i < n; i++) hits += list[i].label == 1; /* the border below all */
    int64_t best = hits;
    for (int64_t i = 0; i < n; i++) { /* the border moves above item i */
        hits += list[i].label == 1 ? -1 : 1;
        if ((i + 1 == n || list[i + 1].score > list[i].score) && hits > best) best = hits;
    }
    return best;
}

cgam_status cgam_baseline_threshold(cgam_env *env, int64_t queries, const double *score,
                                    const int32_t *target, bool apart, double *out)
{
    scored *list = cgam_alloc(env, (size_t)queries, sizeof *list);
    if (!list) return cgam_fail_nomem(env, "scores");
    int64_t counted = 0, best = 0, step = apart ? 2 : 1;
    for (int64_t half = 0; half < step; half++) {
        int64_t n = 0;
        for (int64_t i = half; i < queries; i += step)
            if (target[i] >= 0) list[n++] = (scored){score[i], target[i]};
        if (n > 0) qsort(list, (size_t)n, sizeof *list, by_score);
        best += best_border(n, list);
        counted += n;
    }
    *out = counted > 0 ? (double)best / (double)counted : (double)NAN;
    cgam_free(env, list);
    return CGAM_OK;
}

double cgam_baseline_auc(int64_t queries, const double *score, const int32_t *target)
{
    double above = 0;
    int64_t pairs = 0;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < queries; j++) {
            if (target[i] != 1 || target[j] != 0) continue;
            pairs++;
            above += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
        }
    return pairs > 0 ? above / (double)pairs : (double)NAN;
}

static double recovered_share(double zero, double icl, double retrieval)
{
    return icl > zero ? (retrieval - zero) / (icl - zero) : (double)NAN;
}

enum { DRAWS = 1000 };

/* For each kind the share of right queries: among n drawn with replacement, or, if rng is NULL, among all n
 * that count. */
static void shares_of(int64_t queries, const int32_t *target, int kinds, const bool *const *kind,
                      cgam_rng *rng, int64_t *n, double *share_of)
{
    int64_t got = 0;
    for (int k = 0; k < kinds; k++) share_of[k] = 0;
    for (int64_t at = 0; rng ? got < *n : at < queries; at++) {
        int64_t i = rng ? cgam_rng_below(rng, queries) : at;
        if (target[i] < 0) continue;
        got++;
        for (int k = 0; k < kinds; k++) share_of[k] += kind[k][i];
    }
    for (int k = 0; k < kinds; k++) share_of[k] /= got ? (double)got : (double)NAN;
    *n = got;
}

/* Over all draws: they are the distribution, not a sample of it. */
static double standard_deviation(const cgam_moments *a)
{
    return a->n > 1 ? sqrt(a->squares / a->n) : (double)NAN;
}

cgam_share cgam_baseline_share(int64_t queries, const int32_t *target, const bool *right,
                               const bool *other, uint64_t seed)
{
    const bool *kind[2] = {right, other ? other : right};
    double x[2];
    cgam_moments drawn = {0};
    int64_t n;
    shares_of(queries, target, 2, kind, NULL, &n, x);
    double mean = x[0] - (other ? x[1] : 0);
    for (int d = 0; d < DRAWS && n > 0; d++) {
        cgam_rng rng = cgam_rng_stream(seed, (uint64_t)d);
        shares_of(queries, target, 2, kind, &rng, &n, x);
        cgam_moments_add(&drawn, x[0] - (other ? x[1] : 0));
    }
    return (cgam_share){mean, standard_deviation(&drawn)};
}

cgam_recovery cgam_baseline_recovery(int64_t queries, const int32_t *target, const bool *zero,
                                     const bool *icl, const bool *retrieval, uint64_t seed)
{
    enum { KINDS = 3 };
    const bool *kind[KINDS] = {zero, icl, retrieval};
    double mean[KINDS], shares[DRAWS];
    cgam_moments drawn[KINDS + 1] = {{0}}, gain = {0};
    int64_t n;
    shares_of(queries, target, KINDS, kind, NULL, &n, mean);
    int used = 0;
    for (int d = 0; d < DRAWS && n > 0; d++) {
        double x[KINDS + 1];
        cgam_rng rng = cgam_rng_stream(seed, (uint64_t)d);
        shares_of(queries, target, KINDS, kind, &rng, &n, x);
        x[KINDS] = recovered_share(x[0], x[1], x[2]);
        cgam_moments_add(&gain, x[1] - x[0]);
        bool there = !isnan(x[KINDS]);
        if (there) shares[used++] = x[KINDS];
        for (int k = 0; k < KINDS + there; k++) cgam_moments_add(&drawn[k], x[k]);
    }
    cgam_sort(shares, used);
    cgam_recovery r = {.zero = mean[0], .icl = mean[1], .retrieval = mean[2], .recovered = NAN};
    bool there = used > 1 && mean[1] - mean[0] > 2.33 * standard_deviation(&gain);
    if (there) r.recovered = recovered_share(mean[0], mean[1], mean[2]);
    r.zero_se = standard_deviation(&drawn[0]);
    r.icl_se = standard_deviation(&drawn[1]);
    r.retrieval_se = standard_deviation(&drawn[2]);
    r.recovered_se = there ? standard_deviation(&drawn[KINDS]) : (double)NAN;
    r.recovered_low = there ? shares[(int)(0.025 * used)] : (double)NAN;
    r.recovered_high = there ? shares[(int)(0.975 * used)] : (double)NAN;
    return r;
}
