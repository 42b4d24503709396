/* claims_competition.c: what the paper says about gates that compete (figure 3 a to c), with a cap on the
 * time of a transient and without. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <math.h>
#include <stdio.h>

/* First alpha at which the mean peak reaches `height`, linear on the grid. */
static double reach(const cgam_table *t, double height)
{
    for (int64_t i = 1; i < t->rows; i++) {
        double a = cgam_cell(t, i - 1, "peak_mean"), b = cgam_cell(t, i, "peak_mean");
        if (a < height && b >= height)
            return cgam_cell(t, i - 1, "alpha") +
                   (cgam_cell(t, i, "alpha") - cgam_cell(t, i - 1, "alpha")) * (height - a) /
                       (b - a);
    }
    return NAN;
}

/* The two runs, and the values used by several claims. */
typedef struct pair {
    const cgam_study_opts *opts;
    const cgam_table *peak, *late;        /* mean peaks with the cap and without */
    const cgam_table *onset, *onset_late; /* at the critical penalty */
    double crit, start, finish;           /* alpha_crit; where the mean peak reaches 0.1 and 0.9 */
    double step, jump; /* largest step of the grid near alpha_crit, with the cap and without */
    const char *under[2];
} pair;

static void flat_below(const pair *p, cgam_claims *c)
{
    const cgam_table *t = p->peak;
    cgam_claim *claim = cgam_claim_add(c, "below-critical-the-peak-is-flat");
    double n = (double)p->opts->n, highest = 0, at = NAN, se = 0;
    int64_t tests = 0, good = 0;
    cgam_outcome all = CGAM_SHOWN;
    for (int64_t i = 0; i < t->rows; i++) tests += cgam_cell(t, i, "supercritical") == 0;
    for (int64_t i = 0; i < t->rows; i++) {
        if (cgam_cell(t, i, "supercritical") != 0) continue;
        double mean = cgam_cell(t, i, "peak_mean");
        cgam_outcome one = cgam_claim_above(2 / n - mean, cgam_cell(t, i, "peak_se"),
                                            cgam_claim_limit((double)tests));
        good += one == CGAM_SHOWN;
        all = cgam_claim_both(all, one);
        if (mean > highest) {
            highest = mean;
            at = cgam_cell(t, i, "alpha");
            se = cgam_cell(t, i, "peak_se");
        }
    }
    cgam_claim_tell(claim,
                    "%jd of %jd values of α; highest mean peak %.4f ± %.4f at α = %g, 1/N = %.4f; ",
                    good, tests, highest, se, at, 1 / n);
    cgam_claim_decide_one(claim, p->opts->trials, tests > 0 ? all : CGAM_OPEN);
}

static void saturates_above(const pair *p, cgam_claims *c)
{
    const cgam_table *t = p->peak;
    cgam_claim *claim = cgam_claim_add(c, "above-critical-the-peak-saturates");
    int64_t tests = 0, good = 0;
    cgam_outcome all = CGAM_SHOWN;
    double lowest = 1;
    for (int64_t i = 0; i < t->rows; i++) tests += cgam_cell(t, i, "alpha") >= 1.25 * p->crit;
    for (int64_t i = 0; i < t->rows; i++) {
        if (cgam_cell(t, i, "alpha") < 1.25 * p->crit) continue;
        cgam_outcome one =
            cgam_claim_above(cgam_cell(t, i, "peak_mean") - 0.95, cgam_cell(t, i, "peak_se"),
                             cgam_claim_limit((double)tests));
        good += one == CGAM_SHOWN;
        all = cgam_claim_both(all, one);
        lowest = fmin(lowest, cgam_cell(t, i, "peak_mean"));
    }
    cgam_claim_tell(
        claim, "%jd of %jd values of α; lowest mean peak there %.4f; 0.95 is reached at α = %.3f; ",
        good, tests, lowest, reach(t, 0.95));
    cgam_claim_decide_one(claim, p->opts->trials, tests > 0 ? all : CGAM_OPEN);
}

static void sharp_and_smooth(const pair *p, cgam_claims *c)
{
    cgam_claim *claim = cgam_claim_add(c, "the-transition-is-sharp");
    claim->printed = 1; /* t* as it stands, without a cap */
    cgam_claim_tell(
        claim,
        "0.1 at α = %.4f, 1/2 at %.4f, 0.9 at %.4f; without the cap one step of the grid at "
        "α_crit carries %.3f of the rise; ",
        p->start, reach(p->peak, 0.5), p->finish, p->jump);
    cgam_outcome sharp[] = {
        cgam_claim_if(p->start >= p->crit - 1e-9 && p->finish <= p->crit + 0.15),
        cgam_claim_if(p->jump > 0.8)};
    cgam_claim_decide(claim, p->opts->trials, 2, sharp, p->under);

    claim = cgam_claim_add(c, "the-transition-is-smooth");
    claim->printed = 1;
    cgam_claim_tell(
        claim, "largest step %.3f, 0.1 to 0.9 in %.4f; without the cap the largest step is %.3f; ",
        p->step, p->finish - p->start, p->jump);
    cgam_outcome smooth[] = {cgam_claim_if(p->step < 0.2 && p->finish - p->start <= 0.1),
                             cgam_claim_if(p->jump < 0.2)};
    cgam_claim_decide(claim, p->opts->trials, 2, smooth, p->under);
}

static void several_rise(const pair *p, cgam_claims *c)
{
    const cgam_table *onset = p->onset, *late = p->onset_late;
    cgam_claim *claim = cgam_claim_add(c, "several-memories-rise");
    claim->printed = 1; /* t* as it stands, without a cap */
    cgam_claim_tell(
        claim,
        "%.1f ± %.1f memories above 1/N, two or more in %.1f%% of the trials; without the cap "
        "%.1f memories, %.1f%%; ",
        cgam_cell(onset, 0, "above_mean"), cgam_cell(onset, 0, "above_se"),
        100 * cgam_cell(onset, 0, "share_two_or_more"), cgam_cell(late, 0, "above_mean"),
        100 * cgam_cell(late, 0, "share_two_or_more"));
    cgam_outcome several[] = {cgam_claim_if(cgam_cell(onset, 0, "share_two_or_more") >= 0.99),
                              cgam_claim_if(cgam_cell(late, 0, "share_two_or_more") >= 0.99)};
    cgam_claim_decide(claim, p->opts->trials, 2, several, p->under);
}

void cgam_claims_competition(const cgam_study *const *runs, cgam_claims *c)
{
    const cgam_study *capped = runs[CGAM_RUN_COMPETITION];
    const cgam_study *uncapped = runs[CGAM_RUN_COMPETITION_UNCAPPED];
    const cgam_study_opts *o = &capped->opts;
    char cap[80];
    snprintf(cap, sizeof cap, "a cap on the time of the transient (t ≤ %g)", o->t_cap);
    pair p = {.opts = o,
              .peak = cgam_study_find(capped, "peak"),
              .late = cgam_study_find(uncapped, "peak"),
              .onset = cgam_study_find(capped, "onset"),
              .onset_late = cgam_study_find(uncapped, "onset"),
              .under = {cap, "no cap on time"}};
    const cgam_table *t = p.peak, *u = p.late;
    p.crit = cgam_cell(p.onset, 0, "alpha");
    p.start = reach(t, 0.1);
    p.finish = reach(t, 0.9);
    for (int64_t i = 1; i < t->rows; i++) {
        double alpha = cgam_cell(t, i, "alpha");
        if (alpha <= p.crit - 0.01 || alpha > fmax(1.25, p.crit)) continue;
        if (cgam_cell(t, i - 1, "alpha") >= p.crit * (1 - 1e-9))
            p.step = fmax(p.step, cgam_cell(t, i, "peak_mean") - cgam_cell(t, i - 1, "peak_mean"));
        p.jump = fmax(p.jump, cgam_cell(u, i, "peak_mean") - cgam_cell(u, i - 1, "peak_mean"));
    }
    flat_below(&p, c);
    saturates_above(&p, c);
    sharp_and_smooth(&p, c);
    several_rise(&p, c);
}
