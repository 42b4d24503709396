/* claims_coupled.c: what the paper says about the threshold with feedback (figure 3 d), and where it really
 * is: at the fold of the branch of fixed points. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <math.h>

/* A crossing is known to the grid at best: as a standard error, the spacing of the curve of lambda
 * around x over sqrt(12). */
static double spacing(const cgam_study *s, double lambda, double x)
{
    const cgam_table *t = cgam_study_find(s, "curves");
    for (int64_t i = 1; i < t->rows; i++)
        if (cgam_cell(t, i, "lambda") == lambda && cgam_cell(t, i - 1, "lambda") == lambda &&
            cgam_cell(t, i, "alpha") >= x)
            return (cgam_cell(t, i, "alpha") - cgam_cell(t, i - 1, "alpha")) / sqrt(12);
    return NAN;
}

/* The threshold of row k and its standard error. */
static double threshold(const cgam_study *s, int64_t k, double *se)
{
    const cgam_table *t = cgam_study_find(s, "thresholds");
    double half = cgam_cell(t, k, "alpha_half");
    *se = hypot(cgam_cell(t, k, "alpha_half_se"), spacing(s, cgam_cell(t, k, "lambda"), half));
    return half;
}

/* Standard error of a median, from the quartiles of a normal distribution. */
static double median_se(const cgam_table *t, int64_t k)
{
    double sigma = (cgam_cell(t, k, "fold_q75") - cgam_cell(t, k, "fold_q25")) / 1.349;
    return 1.2533 * sigma / sqrt(cgam_cell(t, k, "fold_share") * cgam_cell(t, k, "fold_trials"));
}

/* The measured threshold moves left as lambda grows, and the theorem's does, too. */
static void moves_left(const cgam_study *s, cgam_claims *c)
{
    const cgam_table *t = cgam_study_find(s, "thresholds");
    int64_t trials = s->opts.trials, steps = t->rows - 1, left = 0, falling = 0;
    cgam_outcome all = CGAM_SHOWN;
    cgam_claim *claim = cgam_claim_add(c, "the-threshold-moves-left");
    cgam_claim_tell(claim, "α at peak 1/2: ");
    for (int64_t k = 0; k <= steps; k++) {
        double se, before_se, half = threshold(s, k, &se);
        cgam_claim_tell(claim, "%s%.4f", k ? ", " : "", half);
        if (k == 0) continue;
        double before = threshold(s, k - 1, &before_se);
        cgam_outcome one =
            cgam_claim_above(before - half, hypot(se, before_se), cgam_claim_limit((double)steps));
        left += one == CGAM_SHOWN;
        all = cgam_claim_both(all, one);
        falling += cgam_cell(t, k, "alpha_theory") < cgam_cell(t, k - 1, "alpha_theory");
    }
    cgam_claim_tell(claim, "; %jd of %jd steps to the left; ", left, steps);
    cgam_claim_decide_one(claim, trials, all);

    claim = cgam_claim_add(c, "the-theorem-moves-left-too");
    cgam_claim_tell(claim, "theorem falls in %jd of %jd steps, measured in %jd; ", falling, steps,
                    left);
    cgam_claim_decide_one(claim, trials, cgam_claim_both(all, cgam_claim_if(falling == steps)));
}

cgam_outcome cgam_claims_coupled(const cgam_study *const *runs, cgam_claims *c)
{
    const cgam_study *s = runs[CGAM_RUN_COUPLED];
    const cgam_table *t = cgam_study_find(s, "thresholds");
    int64_t trials = s->opts.trials, steps = t->rows - 1, counted = 0, folds = 0, coarses = 0;
    double coarse[CGAM_STUDY_LAMBDAS_MAX];
    cgam_outcome apart = CGAM_SHOWN, folded = CGAM_SHOWN;
    moves_left(s, c);
    for (int64_t k = 1; k <= steps; k++) counted += !isnan(cgam_cell(t, k, "alpha_theory"));

    cgam_claim *claim = cgam_claim_add(c, "the-theorem-is-off");
    for (int64_t k = 0; k <= steps; k++) {
        double lambda = cgam_cell(t, k, "lambda"), theory = cgam_cell(t, k, "alpha_theory"), se;
        double half = threshold(s, k, &se), fold = cgam_cell(t, k, "fold_median");
        if (lambda == 0 || isnan(theory)) continue;
        double z = cgam_claim_limit(2 * (double)counted), gap = fabs(half - theory);
        apart = cgam_claim_both(apart, gap > z * se ? CGAM_SHOWN : CGAM_OPEN);
        /* the fold: no significant difference, and ten times nearer than the theorem */
        double off = fabs(half - fold);
        cgam_outcome one = off > z * hypot(se, median_se(t, k)) ? CGAM_REFUTED
                           : 10 * off < gap                     ? CGAM_SHOWN
                                                                : CGAM_OPEN;
        /* a crossing within the first step is known to that step only: no comparison with the fold means anything */
        const double step = sqrt(12) * spacing(s, lambda, half);
        if (half <= step) {
            coarse[coarses++] = lambda;
            one = CGAM_SHOWN;
        }
        folded = cgam_claim_both(folded, one);
        folds += one == CGAM_SHOWN && half > step;
        cgam_claim_tell(claim, "λ = %g: %.3f, theorem %.3f; ", lambda, half, theory);
    }
    cgam_claim_decide_one(claim, trials, counted > 0 ? apart : CGAM_OPEN);

    claim = cgam_claim_add(c, "the-threshold-is-the-fold");
    cgam_claim_tell(claim, "%jd of %jd couplings", folds, counted - coarses);
    for (int64_t k = 0; k <= steps; k++)
        if (cgam_cell(t, k, "lambda") > 0)
            cgam_claim_tell(claim, "; λ = %g: fold %.4f (%.4f to %.4f)", cgam_cell(t, k, "lambda"),
                            cgam_cell(t, k, "fold_median"), cgam_cell(t, k, "fold_q25"),
                            cgam_cell(t, k, "fold_q75"));
    for (int64_t k = 0; k < coarses; k++)
        cgam_claim_tell(claim,
                        "; at λ = %g the grid is too coarse: the crossing is within its first step",
                        coarse[k]);
    cgam_claim_decide_one(claim, trials, counted > coarses ? folded : CGAM_OPEN);
    return trials < CGAM_CLAIM_TRIALS ? CGAM_OPEN : apart;
}
