/* threshold.c: chooses the lowest threshold whose share of false hits has an interval below a budget.
 *
 * As the threshold falls, more pairs hit, and the upper end of the interval only rises. So the thresholds that pass are all above
 * one number, and choosing the lowest needs no correction for having looked at many: it lies below the true limit t*, where the share of
 * false hits is the budget, only if the interval at t* itself misses, which happens in at most 2.5 % of all samples. (Testing in a
 * fixed order; Angelopoulos et al. 2021, Learn then test.) It holds for pairs drawn as the later questions are. */
#include "lab/threshold.h"

#include "base/env.h"
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>

static const double LEVEL = 0.95;

static int by_falling_score(const void *a, const void *b)
{
    const cgam_pair_score *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

static bool passes(int64_t k, int64_t n, double budget)
{
    double from, to;
    cgam_binomial_interval(k, n, LEVEL, &from, &to);
    return to <= budget;
}

/* The threshold between two neighbouring scores: halfway, so that roundings of a later score decide nothing. */
static double between(double above, double below)
{
    double middle = below + 0.5 * (above - below);
    return middle > below ? middle : above;
}

/* Pairs [0, count) hit: sets what follows from that. */
static void count_hits(const cgam_pair_score *pairs, int64_t count, double budget,
                       cgam_threshold *out)
{
    for (int64_t i = 0; i < count; i++) {
        out->same_hits += pairs[i].same;
        out->different_hits += !pairs[i].same;
    }
    out->false_hits = (double)out->different_hits / (double)out->different;
    out->hits = out->same > 0 ? (double)out->same_hits / (double)out->same : (double)NAN;
    cgam_binomial_interval(out->different_hits, out->different, LEVEL, &out->false_from,
                           &out->false_to);
    out->met = out->false_to <= budget && out->same_hits > 0;
}

cgam_status cgam_threshold_choose(cgam_env *env, int64_t n, cgam_pair_score *pairs, double budget,
                                  cgam_threshold *out)
{
    *out = (cgam_threshold){0};
    for (int64_t i = 0; i < n; i++) {
        out->same += pairs[i].same;
        out->different += !pairs[i].same;
    }
    if (out->different == 0)
        return cgam_fail(env, CGAM_E_ARG, "pairs: no pair with \"same\": false");
    qsort(pairs, (size_t)n, sizeof *pairs, by_falling_score);
    /* false hits that the budget allows; -1: not even none */
    int64_t most = -1, fails = out->different + 1;
    while (fails - most > 1) {
        int64_t middle = most + (fails - most) / 2;
        if (passes(middle, out->different, budget)) most = middle;
        else fails = middle;
    }
    out->needed = (int64_t)ceil(log(0.5 * (1 - LEVEL)) / log1p(-budget));
    /* the pairs that hit: all before the first false hit too many, in whole groups of equal scores */
    int64_t allowed = most < 0 ? 0 : most, count = 0, different = 0;
    for (int64_t i = 0, next; i < n; i = next) {
        int64_t more = 0;
        for (next = i; next < n && pairs[next].score == pairs[i].score; next++)
            more += !pairs[next].same;
        if (different + more > allowed) break;
        different += more;
        count = next;
    }
    if (count == 0) out->threshold = nextafter(pairs[0].score, INFINITY);
    else if (count == n) out->threshold = pairs[n - 1].score;
    else out->threshold = between(pairs[count - 1].score, pairs[count].score);
    count_hits(pairs, count, budget, out);
    return CGAM_OK;
}
