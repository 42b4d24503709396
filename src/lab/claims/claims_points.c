/* claims_points.c: what the paper leaves open about the fixed points of a recall: convergence from any
 * start, annealing, and what a context does to the number of attractors. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <math.h>

static double total(const cgam_table *t, const char *column)
{
    double sum = 0;
    for (int64_t i = 0; i < t->rows; i++) sum += cgam_cell(t, i, column);
    return sum;
}

/* ---- Convergence ----------------------------------------------------------------------------- */
static cgam_outcome flows_rest(const cgam_study *s, cgam_claim *claim, const char *name)
{
    (void)name;
    const cgam_table *t = cgam_study_find(s, "cells");
    double starts = total(t, "starts"), rested = 0, worst = 0;
    for (int64_t i = 0; i < t->rows; i++) {
        rested += cgam_cell(t, i, "rested") * cgam_cell(t, i, "starts");
        worst = fmax(worst, cgam_cell(t, i, "residual"));
    }
    cgam_claim_tell(claim, "%.0f of %.0f flows came to rest, |p − map(p)| at most %.1e; ",
                    rint(rested), starts, worst);
    return cgam_claim_if(rint(rested) >= starts);
}

static cgam_outcome loose_flows_rest(const cgam_study *s, cgam_claim *claim, const char *name)
{
    (void)name;
    const cgam_table *t = cgam_study_find(s, "cells");
    double starts = total(t, "loose"), query = 0, context = 0;
    double rose = total(t, "query_rose") + total(t, "context_rose");
    for (int64_t i = 0; i < t->rows; i++) {
        query += cgam_cell(t, i, "query_rested") * cgam_cell(t, i, "loose");
        context += cgam_cell(t, i, "context_rested") * cgam_cell(t, i, "loose");
    }
    cgam_claim_tell(
        claim,
        "%.0f with a free query and %.0f with a free context of %.0f each came to rest, "
        "%.0f rose; ",
        rint(query), rint(context), starts, rose);
    return cgam_claim_if(rint(query) >= starts && rint(context) >= starts && rose == 0);
}

static cgam_outcome nothing_rises(const cgam_study *s, cgam_claim *claim, const char *name)
{
    (void)name;
    const cgam_table *t = cgam_study_find(s, "cells");
    cgam_claim_tell(claim, "%.0f flows and %.0f steps of iterations rose, of %.0f starts; ",
                    total(t, "rose"), total(t, "climbed"), total(t, "starts"));
    return cgam_claim_if(total(t, "rose") + total(t, "climbed") == 0);
}

static cgam_outcome one_limit(const cgam_study *s, cgam_claim *claim, const char *name)
{
    (void)name;
    const cgam_table *t = cgam_study_find(s, "cells");
    double most = 0;
    for (int64_t i = 0; i < t->rows; i++) most = fmax(most, cgam_cell(t, i, "limits"));
    cgam_claim_tell(
        claim, "%.0f of %.0f such problems have several ends; elsewhere up to %.1f on average; ",
        total(t, "refuted"), total(t, "unique"), most);
    if (total(t, "unique") == 0) return CGAM_OPEN;
    return cgam_claim_if(total(t, "refuted") == 0);
}

/* ---- Annealing ------------------------------------------------------------------------------- */
/* The strongest coupling and sharpest softmax, without (0) or with (1) the context. */
static int64_t hardest(const cgam_table *t, int context) { return t->rows - 2 + context; }

static cgam_outcome annealing_is_lower(const cgam_study *s, cgam_claim *claim, const char *name)
{
    (void)name;
    const cgam_table *t = cgam_study_find(s, "cells");
    cgam_outcome outcome = CGAM_SHOWN;
    for (int context = 0; context < 2; context++) {
        int64_t i = hardest(t, context);
        double n = cgam_cell(t, i, "trials"), lower = n * cgam_cell(t, i, "lower");
        double higher = n * cgam_cell(t, i, "higher");
        double z = lower + higher > 0 ? (lower - higher) / sqrt(lower + higher) : 0;
        cgam_claim_tell(claim, "%s the context lower in %.0f, higher in %.0f of %.0f (z = %.1f); ",
                        context ? "with" : "without", rint(lower), rint(higher), n, z);
        outcome = cgam_claim_both(outcome, cgam_claim_above(z, 1, cgam_claim_limit(2)));
    }
    return outcome;
}

/* Only where there are several to begin with. */
static cgam_outcome fewer_minima(const cgam_study *s, cgam_claim *claim, const char *name)
{
    (void)name;
    const cgam_table *t = cgam_study_find(s, "cells");
    double tests = 0;
    int64_t fewer = 0;
    for (int64_t i = 0; i < t->rows; i += 2) tests += cgam_cell(t, i, "minima") >= 2;
    cgam_outcome all = tests > 0 ? CGAM_SHOWN : CGAM_OPEN;
    for (int64_t i = 0; i < t->rows; i += 2) {
        if (!(cgam_cell(t, i, "minima") >= 2)) continue;
        cgam_outcome one =
            cgam_claim_above(-cgam_cell(t, i + 1, "minima_change"),
                             cgam_cell(t, i + 1, "minima_change_se"), cgam_claim_limit(tests));
        all = cgam_claim_both(all, one);
        fewer += one == CGAM_SHOWN;
    }
    int64_t last = hardest(t, 0);
    cgam_claim_tell(claim,
                    "significantly fewer in %jd of %.0f cells; at the strongest coupling %.2f "
                    "without, %.2f with; ",
                    fewer, tests, cgam_cell(t, last, "minima"), cgam_cell(t, last + 1, "minima"));
    return all;
}

/* ---- Sparse recall --------------------------------------------------------------------------- */
static cgam_outcome narrows(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_table *t = cgam_study_find(s, "cells");
    cgam_outcome all = CGAM_SHOWN;
    for (double order = 1.5; order <= 2; order += 0.5) {
        double narrowed = 0, widened = 0;
        for (int64_t i = 0; i < t->rows; i++) {
            if (cgam_cell(t, i, "order") != order || cgam_cell(t, i, "sigma_q") > 1) continue;
            narrowed += cgam_cell(t, i, "narrowed");
            widened += cgam_cell(t, i, "widened");
        }
        double z = (narrowed - widened) / sqrt(fmax(narrowed + widened, 1));
        all = cgam_claim_both(all, cgam_claim_above(z, 1, cgam_claim_limit(2)));
        cgam_claim_tell(claim, "%s, order %g: smaller in %.0f, larger in %.0f; ", name, order,
                        narrowed, widened);
    }
    return all;
}

static cgam_outcome exact_from_the_margin(const cgam_study *s, cgam_claim *claim, const char *name)
{
    const cgam_table *t = cgam_study_find(s, "cells");
    double wide = 0;
    for (int64_t i = 0; i < t->rows; i++)
        wide += cgam_cell(t, i, "wide") * cgam_cell(t, i, "trials");
    cgam_claim_tell(claim, "%s: %.0f of %.0f are not; ", name, total(t, "missed"), rint(wide));
    return wide > 0 ? cgam_claim_if(total(t, "missed") == 0) : CGAM_OPEN;
}

void cgam_claims_points(const cgam_study *const *runs, cgam_claims *c)
{
    static const cgam_statement convergence[] = {{"flows-converge", flows_rest},
                                                 {"free-layers-converge", loose_flows_rest},
                                                 {"energies-do-not-rise", nothing_rises},
                                                 {"one-end-where-it-contracts", one_limit},
                                                 {0}};
    static const cgam_statement annealing[] = {
        {"annealing-ends-lower", annealing_is_lower}, {"fewer-attractors", fewer_minima}, {0}};
    static const cgam_statement sparse[] = {{"a-context-narrows-the-search", narrows},
                                            {"exact-from-the-margin", exact_from_the_margin},
                                            {0}};
    const cgam_reading few[] = {
        {runs[CGAM_RUN_SPARSE], "mode first", "first-order recall"},
        {runs[CGAM_RUN_SPARSE_COUPLED], "mode coupled", "self-consistent recall"}};
    const cgam_reading flows = {runs[CGAM_RUN_CONVERGENCE], NULL, NULL};
    const cgam_reading slow = {runs[CGAM_RUN_ANNEALING], NULL, NULL};
    cgam_claims_state(c, convergence, -1, 1, &flows);
    cgam_claims_state(c, annealing, -1, 1, &slow);
    cgam_claims_state(c, sparse, -1, 2, few);
}
