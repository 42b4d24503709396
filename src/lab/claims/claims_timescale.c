/* claims_timescale.c: do gates that settle first precondition retrieval? Under three readings of the start. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <math.h>

static cgam_outcome gates_settle_first(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_table *t = cgam_study_find(s, "ratios");
    double first = cgam_cell(t, 0, "context_first"),
           last = cgam_cell(t, t->rows - 1, "context_first");
    cgam_claim_tell(claim, "%s: %.1f%% at τ_r/τ_s = %g, %.1f%% at %g; ", name, 100 * first,
                    cgam_cell(t, 0, "ratio"), 100 * last, cgam_cell(t, t->rows - 1, "ratio"));
    return cgam_claim_if(last >= 0.99 && first < 0.5);
}

static cgam_outcome accuracy_rises(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_table *t = cgam_study_find(s, "ratios");
    int64_t last = t->rows - 1;
    double gained = cgam_cell(t, last, "gained"), lost = cgam_cell(t, last, "lost");
    double z = gained + lost > 0 ? (gained - lost) / sqrt(gained + lost) : 0;
    cgam_claim_tell(claim, "%s: %.3f → %.3f (z = %.1f); ", name, cgam_cell(t, 0, "accuracy"),
                    cgam_cell(t, last, "accuracy"), z);
    cgam_claim_brief(claim, "%.3f → %.3f", cgam_cell(t, 0, "accuracy"),
                     cgam_cell(t, last, "accuracy"));
    return cgam_claim_above(z, 1, cgam_claim_limit(1));
}

void cgam_claims_timescale(const cgam_study *const *runs, cgam_claims *c)
{
    const cgam_reading readings[] = {
        {runs[CGAM_RUN_TIMESCALE], "r(0) = 0", "a clamped query and r(0) = 0"},
        {runs[CGAM_RUN_TIMESCALE_STARTED], "r(0) = Zq", "a clamped query and r(0) = Zq"},
        {runs[CGAM_RUN_TIMESCALE_FREE], "query free", "a free query and r(0) = 0"}};
    static const cgam_statement list[] = {{"context-settles-before-retrieval", gates_settle_first},
                                          {"gates-that-settle-first-precondition", accuracy_rises},
                                          {0}};
    cgam_claims_state(c, list, -1, 3, readings);
}
