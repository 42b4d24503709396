/* claims_rivals.c: is a gate, or another mechanism, better than the trivial rival, the query q + lambda P c? In the four
 * settings of the study, of which the first has the draws of figure 2. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <math.h>
#include <string.h>

enum { SETTINGS = 4 };
static const char *const settings[SETTINGS] = {"plain", "wrong", "space", "clusters"};
static const char *const under[SETTINGS] = {"the draws of figure 2", "a share of wrong contexts",
                                            "contexts in a space of their own",
                                            "memories in clusters"};

static int64_t row_of(const cgam_table *t, const char *mechanism)
{
    for (int64_t i = 0; i < t->rows; i++)
        if (strcmp(t->labels[i], mechanism) == 0) return i;
    return 0;
}

/* versus: "gain" over query mixing, "more" over the product of experts. */
static void beats(const cgam_study *s, const char *key, const char *mechanism, const char *versus,
                  cgam_claims *c)
{
    cgam_claim *claim = cgam_claim_add(c, key);
    const cgam_table *t = cgam_study_find(s, "overall");
    const int64_t row = row_of(t, mechanism);
    const char *rival = strcmp(versus, "more") == 0 ? "experts" : "query-mixing";
    cgam_outcome outcomes[SETTINGS];
    claim->printed = strcmp(claim->where, "ours") == 0 ? -1 : 0;
    for (int k = 0; k < SETTINGS; k++) {
        char gain[40], se[40];
        snprintf(gain, sizeof gain, "%s_%s", settings[k], versus);
        snprintf(se, sizeof se, "%s_%s_se", settings[k], versus);
        const double x = cgam_cell(t, row, gain), error = cgam_cell(t, row, se);
        claim->reading = k;
        outcomes[k] = cgam_claim_above(x, error, cgam_claim_limit(SETTINGS));
        cgam_claim_tell(claim, "%s: %.3f against %.3f (%+.4f ± %.4f); ", settings[k],
                        cgam_cell(t, row, settings[k]), cgam_cell(t, row_of(t, rival), settings[k]),
                        x, error);
        cgam_claim_brief(claim, "%+.3f ± %.3f", x, error);
    }
    cgam_claim_decide(claim, s->opts.trials * s->opts.banks, SETTINGS, outcomes, under);
}

void cgam_claims_rivals(const cgam_study *const *runs, cgam_claims *c)
{
    const cgam_study *s = runs[CGAM_RUN_RIVALS];
    beats(s, "context-aids-retrieval", "gates-first", "gain", c);
    beats(s, "the-penalty-does-more", "gates-first", "more", c);
    beats(s, "feedback-aids-retrieval", "gates-coupled", "gain", c);
    beats(s, "plasticity-beats-mixing", "plasticity", "gain", c);
    beats(s, "masks-beat-mixing", "mask-memories", "gain", c);
}

/* Largest sigma_q with accuracy 1/2, linear between the points; the end of the grid where it is never below. */
static double range(const cgam_study *s, const char *mechanism, double *se)
{
    const cgam_table *t = cgam_study_find(s, "accuracy");
    const int64_t first = row_of(t, mechanism), levels = s->opts.sigma_q.count;
    *se = 0;
    for (int64_t j = 1; j < levels; j++) {
        double a = cgam_cell(t, first + j - 1, "accuracy"), b = cgam_cell(t, first + j, "accuracy");
        if (a < 0.5 || b >= 0.5) continue;
        double x = s->opts.sigma_q.values[j - 1], step = s->opts.sigma_q.values[j] - x;
        *se = cgam_cell(t, first + j, "accuracy_se") * step / (a - b);
        return x + step * (a - 0.5) / (a - b);
    }
    return cgam_cell(t, first, "accuracy") < 0.5 ? 0 : s->opts.sigma_q.values[levels - 1];
}

cgam_outcome cgam_claims_range_beats_mixing(const cgam_study *s, cgam_claim *claim)
{
    double gate_se, mixed_se, gate = range(s, "gates-first", &gate_se);
    double mixed = range(s, "query-mixing", &mixed_se);
    cgam_claim_tell(claim, "gates at their best %.2f, query mixing %.2f; ", gate, mixed);
    return cgam_claim_above(gate - mixed, hypot(gate_se, mixed_se), cgam_claim_limit(1));
}
