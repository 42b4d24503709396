/* claims_separation.c: what the paper says about separation (figure 2), with context noise per component and
 * spread over components. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <math.h>

/* A fall of accuracy that is significantly below this counts as none. */
static const double FALL_MAX = 0.02;

/* No step lambda -> next lambda loses accuracy. */
static cgam_outcome no_falls(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_study_opts *o = &s->opts;
    const cgam_table *t = cgam_study_find(s, "accuracy");
    int64_t sigmas = o->sigma_q.count, tests = (o->lambda.count - 1) * sigmas, count = 0,
            unsure = 0, worst = -1;
    double z_limit = cgam_claim_limit((double)tests), lowest = 0;
    for (int64_t i = sigmas; i < t->rows; i++) {
        double gained = cgam_cell(t, i, "gained"), lost = cgam_cell(t, i, "lost"),
               n = cgam_cell(t, i, "trials");
        double z = gained + lost > 0 ? (gained - lost) / sqrt(gained + lost) : 0;
        count += z < -z_limit;
        /* one trial more that differs, so that none is not taken for certainty */
        unsure += lost - gained + z_limit * sqrt(gained + lost + 1) >= FALL_MAX * n;
        if (z < lowest) {
            lowest = z;
            worst = i;
        }
    }
    cgam_claim_tell(claim, "%s: %jd of %jd steps fall significantly", name, count, tests);
    if (count > 0)
        cgam_claim_tell(claim, " (most at σ_q = %.2f, λ %g → %g: %.3f → %.3f, z = %.1f)",
                        cgam_cell(t, worst, "sigma_q"), cgam_cell(t, worst - sigmas, "lambda"),
                        cgam_cell(t, worst, "lambda"), cgam_cell(t, worst - sigmas, "accuracy"),
                        cgam_cell(t, worst, "accuracy"), lowest);
    else if (unsure > 0) cgam_claim_tell(claim, ", %jd may by more than 0.02", unsure);
    cgam_claim_brief(claim, "%jd of %jd steps fall", count, tests);
    cgam_claim_tell(claim, "; ");
    return count > 0 ? CGAM_REFUTED : unsure > 0 ? CGAM_OPEN : CGAM_SHOWN;
}

/* Gain over the first lambda of lambda k at noise j, and its standard error. */
static double gain(const cgam_study *s, int64_t k, int64_t j, double *se)
{
    const cgam_table *t = cgam_study_find(s, "accuracy");
    int64_t row = k * s->opts.sigma_q.count + j;
    double n = cgam_cell(t, row, "trials"), up = cgam_cell(t, row, "gained_0"),
           down = cgam_cell(t, row, "lost_0");
    double mean = (up - down) / n;
    *se = sqrt(fmax((up + down) / n - mean * mean, 0) / n);
    return mean;
}

/* The gain of lambda k peaks at an end of the range: refuted when it is so significantly. */
static cgam_outcome edge(const cgam_study *s, int64_t k, int64_t best, double z)
{
    double se, other_se, top = gain(s, k, best, &se);
    for (int64_t j = 1; j < s->opts.sigma_q.count - 1; j++) {
        double other = gain(s, k, j, &other_se);
        if (cgam_claim_above(top - other, hypot(se, other_se), z) != CGAM_SHOWN) return CGAM_OPEN;
    }
    return CGAM_REFUTED;
}

static cgam_outcome gains_between(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_study_opts *o = &s->opts;
    int64_t last = o->sigma_q.count - 1, good = 0;
    cgam_outcome all = CGAM_SHOWN;
    double z_limit = cgam_claim_limit(2 * (double)(o->lambda.count - 1)), where = NAN, most = NAN;
    for (int64_t k = 1; k < o->lambda.count; k++) {
        int64_t best = 0;
        double se, first_se, last_se, unused;
        for (int64_t j = 1; j <= last; j++)
            if (gain(s, k, j, &unused) > gain(s, k, best, &unused)) best = j;
        double top = gain(s, k, best, &se), first = gain(s, k, 0, &first_se);
        double end = gain(s, k, last, &last_se);
        /* a peak at an end that another value may share is no evidence against one inside */
        cgam_outcome inside =
            cgam_claim_both(cgam_claim_above(top - first, hypot(se, first_se), z_limit),
                            cgam_claim_above(top - end, hypot(se, last_se), z_limit));
        good += inside == CGAM_SHOWN;
        all = cgam_claim_both(all, best == 0 || best == last ? edge(s, k, best, z_limit) : inside);
        where = o->sigma_q.values[best];
        most = top;
    }
    cgam_claim_tell(claim,
                    "%s: %jd of %jd couplings gain most inside the range (λ = %g: +%.3f at σ_q = "
                    "%.2f); ",
                    name, good, o->lambda.count - 1, o->lambda.values[o->lambda.count - 1], most,
                    where);
    return all;
}

/* At every noise level above 0 some coupling gains. */
static cgam_outcome gains_somewhere(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_study_opts *o = &s->opts;
    int64_t levels = 0, good = 0;
    double z = cgam_claim_limit((double)((o->lambda.count - 1) * o->sigma_q.count));
    cgam_outcome all = CGAM_SHOWN;
    for (int64_t j = 0; j < o->sigma_q.count; j++) {
        cgam_outcome some = CGAM_REFUTED; /* no coupling gains: all lose significantly */
        for (int64_t k = 1; k < o->lambda.count; k++) {
            double se, more = gain(s, k, j, &se);
            cgam_outcome one = cgam_claim_above(more, se, z);
            some = one > some ? one : some;
        }
        if (!(o->sigma_q.values[j] > 0)) continue;
        levels++;
        good += some == CGAM_SHOWN;
        all = cgam_claim_both(all, some);
    }
    cgam_claim_tell(claim, "%s: at %jd of %jd noise levels; ", name, good, levels);
    return levels > 0 ? all : CGAM_OPEN;
}

/* Largest sigma_q with accuracy 1/2 for lambda k; the end of the grid where it is never below. */
static double range(const cgam_study *s, int64_t k, double *se)
{
    const cgam_study_opts *o = &s->opts;
    const cgam_table *t = cgam_study_find(s, "accuracy");
    int64_t first = k * o->sigma_q.count;
    *se = 0;
    for (int64_t j = 1; j < o->sigma_q.count; j++) {
        double a = cgam_cell(t, first + j - 1, "accuracy"), b = cgam_cell(t, first + j, "accuracy");
        if (a < 0.5 || b >= 0.5) continue;
        double x = o->sigma_q.values[j - 1], step = o->sigma_q.values[j] - x;
        *se = cgam_cell(t, first + j, "accuracy_se") * step / (a - b);
        return x + step * (a - 0.5) / (a - b);
    }
    return cgam_cell(t, first, "accuracy") < 0.5 ? 0 : o->sigma_q.values[o->sigma_q.count - 1];
}

static cgam_outcome errs_at_the_end(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_study_opts *o = &s->opts;
    const cgam_table *t = cgam_study_find(s, "accuracy");
    int64_t sigmas = o->sigma_q.count;
    double best = 0, se = 0;
    for (int64_t k = 0; k < o->lambda.count; k++) {
        double a = cgam_cell(t, (k + 1) * sigmas - 1, "accuracy");
        if (a > best) {
            best = a;
            se = cgam_cell(t, (k + 1) * sigmas - 1, "accuracy_se");
        }
    }
    cgam_claim_tell(claim, "%s: best %.3f ± %.3f at σ_q = %g; ", name, best, se,
                    o->sigma_q.values[sigmas - 1]);
    return best < 1 ? cgam_claim_above(1 - best, se, cgam_claim_limit(1)) : CGAM_REFUTED;
}

static cgam_outcome range_doubles(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_study_opts *o = &s->opts;
    int64_t last = o->lambda.count - 1, end = o->sigma_q.count - 1;
    double se0, se1, r0 = range(s, 0, &se0), r1 = range(s, last, &se1);
    cgam_claim_tell(claim, "%s: %.2f at λ = 0, %s%.2f at λ = %g; ", name, r0,
                    r1 == o->sigma_q.values[end] ? "at least " : "", r1, o->lambda.values[last]);
    return cgam_claim_above(r1 - 2 * r0, hypot(se1, 2 * se0), cgam_claim_limit(1));
}

/* Doubled, and not by the mixed query alone. */
static void range_claim(const cgam_study *const *runs, const cgam_reading *readings, cgam_claims *c)
{
    cgam_claim *claim = cgam_claim_add(c, "the-noise-range-doubles");
    cgam_outcome outcomes[2], beats = cgam_claims_range_beats_mixing(runs[CGAM_RUN_RIVALS], claim);
    const char *const names[] = {readings[0].under, readings[1].under};
    claim->printed = 0;
    for (int i = 0; i < 2; i++) {
        claim->reading = i;
        outcomes[i] =
            cgam_claim_both(beats, range_doubles(readings[i].study, claim, readings[i].name));
    }
    cgam_claim_decide(claim, runs[CGAM_RUN_SEPARATION]->opts.trials, 2, outcomes, names);
}

static void bound_claim(int count, const cgam_reading *readings, cgam_claims *c)
{
    cgam_claim *claim = cgam_claim_add(c, "points-above-the-bound");
    double points = 0, below = 0;
    for (int i = 0; i < count; i++) {
        const cgam_table *t = cgam_study_find(readings[i].study, "points");
        points += cgam_cell(t, 0, "points");
        below += cgam_cell(t, 0, "violations");
    }
    cgam_claim_tell(claim, "%.0f points, %.0f below; ", points, below);
    claim->verdict = below == 0 && points > 0 ? CGAM_HOLDS : CGAM_DOES_NOT_HOLD;
}

static cgam_outcome gaps_grow(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_table *t = cgam_study_find(s, "gaps");
    int64_t last = s->opts.lambda.count - 1, up = 0;
    cgam_outcome all = CGAM_SHOWN;
    for (int64_t k = 1; k <= last; k++) {
        cgam_outcome one = cgam_claim_above(cgam_cell(t, k, "shift"), cgam_cell(t, k, "shift_se"),
                                            cgam_claim_limit((double)last));
        up += one == CGAM_SHOWN;
        all = cgam_claim_both(all, one);
    }
    cgam_claim_tell(claim, "%s: %jd of %jd steps (mean Δ %.2f → %.2f); ", name, up, last,
                    cgam_cell(t, 0, "mean_all"), cgam_cell(t, last, "mean_all"));
    return all;
}

static cgam_outcome quantiles_rise(const cgam_study *s, cgam_claim *claim, const char *name)
{
    static const char *const quantiles[] = {"q05", "q25", "median", "q75", "q95"};
    static const char *const errors[] = {"q05_se", "q25_se", "median_se", "q75_se", "q95_se"};
    const cgam_table *t = cgam_study_find(s, "gaps");
    int64_t last = s->opts.lambda.count - 1, down = 0;
    cgam_outcome rise = CGAM_SHOWN;
    for (int q = 0; q < 5; q++) {
        for (int64_t k = 1; k <= last; k++)
            down += cgam_cell(t, k, quantiles[q]) - cgam_cell(t, k - 1, quantiles[q]) <
                    -cgam_claim_limit(5 * (double)last) *
                        hypot(cgam_cell(t, k, errors[q]), cgam_cell(t, k - 1, errors[q]));
        rise = cgam_claim_both(
            rise, cgam_claim_above(cgam_cell(t, last, quantiles[q]) - cgam_cell(t, 0, quantiles[q]),
                                   hypot(cgam_cell(t, last, errors[q]), cgam_cell(t, 0, errors[q])),
                                   cgam_claim_limit(5)));
    }
    cgam_claim_tell(claim,
                    "%s: %jd of %jd quantile steps fall (5%% quantile %.2f → %.2f, median %.2f → "
                    "%.2f); ",
                    name, down, (5 * last), cgam_cell(t, 0, "q05"), cgam_cell(t, last, "q05"),
                    cgam_cell(t, 0, "median"), cgam_cell(t, last, "median"));
    return down > 0 ? CGAM_REFUTED : rise;
}

static cgam_outcome median_suffices(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_table *t = cgam_study_find(s, "gaps"), *need = cgam_study_find(s, "thresholds");
    int64_t last = s->opts.lambda.count - 1;
    double median = cgam_cell(t, last, "median"), se = cgam_cell(t, last, "median_se");
    cgam_claim_tell(claim, "%s: median %.2f ± %.2f, needed %.2f (P ≥ 0.9), %.2f (P ≥ 0.99); ", name,
                    median, se, cgam_cell(need, 1, "gap"), cgam_cell(need, 2, "gap"));
    return cgam_claim_above(median - cgam_cell(need, 1, "gap"), se, cgam_claim_limit(1));
}

void cgam_claims_separation(const cgam_study *const *runs, cgam_claims *c)
{
    const cgam_reading readings[] = {
        {runs[CGAM_RUN_SEPARATION], "σ_c per component", "context noise σ_c per component"},
        {runs[CGAM_RUN_SEPARATION_VECTOR], "σ_c/√d", "context noise σ_c/√d per component"}};
    static const cgam_statement accuracy[] = {{"accuracy-does-not-fall", no_falls},
                                              {"gains-in-the-middle", gains_between},
                                              {"a-context-beats-none", gains_somewhere},
                                              {"errors-at-extreme-noise", errs_at_the_end},
                                              {0}};
    static const cgam_statement gaps[] = {{"gaps-grow", gaps_grow},
                                          {"quantiles-rise", quantiles_rise},
                                          {"the-median-gap-suffices", median_suffices},
                                          {0}};
    cgam_claims_state(c, accuracy, 0, 2, readings);
    range_claim(runs, readings, c);
    bound_claim(2, readings, c);
    cgam_claims_state(c, gaps, 0, 2, readings);
}
