/* control.c: means, thresholds, ranks and resampling; nothing here looks at a model. */
#include "base/env.h"
#include "base/rng.h"

#include <cgam/control.h>
#include <math.h>
#include <stdlib.h>

void cgam_control_shift(int64_t queries, int64_t layers, int64_t width, const float *with,
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

double cgam_control_cosine(int64_t n, const float *x, const float *y)
{
    double xy = 0, xx = 0, yy = 0;
    for (int64_t j = 0; j < n; j++) {
        xy += (double)x[j] * (double)y[j];
        xx += (double)x[j] * (double)x[j];
        yy += (double)y[j] * (double)y[j];
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}

void cgam_control_centred(int64_t queries, int64_t labels, const double *scores,
                          const int32_t *target, bool *right)
{
    for (int64_t i = 0; i < queries; i++) {
        right[i] = false;
        if (target[i] < 0) continue;
        double top = -INFINITY;
        int64_t best = -1;
        for (int64_t k = 0; k < labels; k++) {
            double mean = 0;
            int64_t n = 0;
            for (int64_t j = 1 - i % 2; j < queries; j += 2) {
                if (target[j] < 0) continue;
                mean += scores[j * labels + k];
                n++;
            }
            double score = scores[i * labels + k] - (n ? mean / (double)n : 0);
            if (score > top) {
                top = score;
                best = k;
            }
        }
        right[i] = best == target[i];
    }
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

cgam_status cgam_control_threshold(cgam_env *env, int64_t queries, const double *score,
                                   const int32_t *target, double *out)
{
    scored *list = cgam_alloc(env, (size_t)queries, sizeof *list);
    if (!list) return cgam_fail_nomem(env, "scores");
    int64_t n = 0, hits = 0;
    for (int64_t i = 0; i < queries; i++)
        if (target[i] >= 0) list[n++] = (scored){score[i], target[i]};
    if (n > 0) qsort(list, (size_t)n, sizeof *list, by_score);
    for (int64_t i = 0; i < n; i++) hits += list[i].label == 1; /* the border below all */
    int64_t best = hits;
    for (int64_t i = 0; i < n; i++) { /* the border moves above item i */
        hits += list[i].label == 1 ? -1 : 1;
        if ((i + 1 == n || list[i + 1].score > list[i].score) && hits > best) best = hits;
    }
    *out = n > 0 ? (double)best / (double)n : (double)NAN;
    cgam_free(env, list);
    return CGAM_OK;
}

double cgam_control_auc(int64_t queries, const double *score, const int32_t *target)
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

static double share(double zero, double icl, double retrieval)
{
    return icl > zero ? (retrieval - zero) / (icl - zero) : (double)NAN;
}

cgam_recovery cgam_control_recovery(int64_t queries, const int32_t *target, const bool *zero,
                                    const bool *icl, const bool *retrieval, uint64_t seed)
{
    enum { DRAWS = 1000, KINDS = 3 };
    const bool *kind[KINDS] = {zero, icl, retrieval};
    double mean[KINDS] = {0}, sum[KINDS + 1] = {0}, square[KINDS + 1] = {0};
    int64_t n = 0, shares = 0;
    for (int64_t i = 0; i < queries; i++) {
        if (target[i] < 0) continue;
        n++;
        for (int k = 0; k < KINDS; k++) mean[k] += kind[k][i];
    }
    for (int k = 0; k < KINDS; k++) mean[k] /= n ? (double)n : 1;
    for (int draw = 0; draw < DRAWS && n > 0; draw++) {
        cgam_rng rng = cgam_rng_stream(seed, (uint64_t)draw);
        double x[KINDS] = {0};
        for (int64_t got = 0; got < n;) {
            int64_t i = cgam_rng_below(&rng, queries);
            if (target[i] < 0) continue;
            got++;
            for (int k = 0; k < KINDS; k++) x[k] += kind[k][i];
        }
        for (int k = 0; k < KINDS; k++) {
            x[k] /= (double)n;
            sum[k] += x[k];
            square[k] += x[k] * x[k];
        }
        double s = share(x[0], x[1], x[2]);
        if (isnan(s)) continue;
        shares++;
        sum[KINDS] += s;
        square[KINDS] += s * s;
    }
    double se[KINDS + 1];
    for (int k = 0; k <= KINDS; k++) {
        double m = k < KINDS ? DRAWS : (double)shares;
        se[k] = m > 1 ? sqrt(fmax(0, square[k] / m - (sum[k] / m) * (sum[k] / m))) : (double)NAN;
    }
    double recovered = share(mean[0], mean[1], mean[2]);
    return (cgam_recovery){mean[0], mean[1], mean[2],   se[0],
                           se[1],   se[2],   recovered, isnan(recovered) ? (double)NAN : se[KINDS]};
}
