/* models_claims_gates.c: what the paper says of the penalty and of feedback on a vocabulary, and what we
 * ask beside it, decided on what `cgam lm gates` found with the most shots. */
#include "lab/claims/models.h"
#include "lab/claims/models_claims.h"

#include <math.h>
#include <string.h>

static const json_t *grid_of(const json_t *study)
{
    return cgam_json_at(cgam_models_most_shots(study, "gates.shots"), "grid");
}

static bool is_mode(const json_t *row, const char *mode)
{
    return strcmp(cgam_json_get_text(row, "mode"), mode) == 0;
}

/* Is a share of n queries significantly above `limit`, with that many tests? */
static bool above(double share, double n, double limit, double tests)
{
    double se = sqrt(share * (1 - share) / n);
    return share == 1 ? pow(limit, n) <= CGAM_CLAIM_LEVEL / tests
                      : share - limit > cgam_claim_limit(tests) * se;
}

/* The row of a mode with alpha > 0 whose answers changed most; NULL if there is none. */
static const json_t *most_changed(const json_t *grid, const char *mode, double *tests)
{
    const json_t *best = NULL, *row;
    size_t i;
    *tests = 0;
    json_array_foreach(grid, i, row)
    {
        if (!is_mode(row, mode) || !(cgam_json_get_real(row, "alpha") > 0)) continue;
        *tests += 1;
        if (!best ||
            cgam_json_get_real(row, "argmax_changed") > cgam_json_get_real(best, "argmax_changed"))
            best = row;
    }
    return best;
}

static outcome degenerate(const question *q, cgam_claim *claim)
{
    double tests, n = cgam_json_get_real(q->study, "gates.queries");
    const json_t *row = most_changed(grid_of(q->study), "first", &tests);
    if (!row) return SILENT;
    double share = cgam_json_get_real(row, "argmax_changed");
    cgam_claim_tell(claim, "α_crit is %.3g/μ_max; at α = %.3g the best word differs for %.0f%%",
                    cgam_json_get_real(q->study, "gates.alpha_crit") *
                        cgam_json_get_real(q->study, "gates.mu_max"),
                    cgam_json_get_real(row, "alpha"), 100 * share);
    if (above(share, n, 0.05, tests)) return NO;
    return share <= 0.05 && n >= QUERIES_MIN ? YES : SILENT;
}

static outcome small_helps(const question *q, cgam_claim *claim)
{
    const json_t *grid = grid_of(q->study), *row, *zero = NULL, *best = NULL;
    double one = 1 / cgam_json_get_real(q->study, "gates.mu_max"), tests = 0;
    bool full = strcmp(cgam_json_get_text(q->study, "gates.over"), "full") == 0, helps = false;
    const char *right = full ? "full_right" : "restricted_right";
    size_t i;
    json_array_foreach(grid, i, row)
    {
        double alpha = cgam_json_get_real(row, "alpha");
        if (!is_mode(row, "first")) continue;
        if (alpha == 0) zero = row;
        tests += alpha > 0 && alpha <= 10.001 * one;
    }
    if (!zero || tests == 0) return SILENT;
    json_array_foreach(grid, i, row)
    {
        double alpha = cgam_json_get_real(row, "alpha");
        if (!is_mode(row, "first") || !(alpha > 0) || alpha > 10.001 * one) continue;
        if (!best || cgam_models_over(row, "%", full) > cgam_models_over(best, "%", full))
            best = row;
        helps = helps || cgam_models_better(cgam_json_get_text(row, right),
                                            cgam_json_get_text(zero, right), tests);
    }
    cgam_claim_tell(claim, "%.3f at α = 0, at best %.3f at α = %.3g, over %s",
                    cgam_models_over(zero, "%", full), cgam_models_over(best, "%", full),
                    cgam_json_get_real(best, "alpha"), full ? "words" : "labels");
    return helps ? YES : NO;
}

static outcome feedback_keeps(const question *q, cgam_claim *claim)
{
    const json_t *grid = grid_of(q->study), *row;
    size_t i;
    json_array_foreach(grid, i, row)
    {
        if (!is_mode(row, "coupled") || cgam_json_get_real(row, "alpha") > 0) continue;
        double share = cgam_json_get_real(row, "argmax_changed");
        cgam_claim_tell(claim, "%.0f%% of the best words differ, N_eff %.3g", 100 * share,
                        cgam_json_get_real(row, "neff"));
        return share == 0 ? YES : NO;
    }
    return SILENT;
}

static outcome feedback_changes(const question *q, cgam_claim *claim)
{
    double tests, n = cgam_json_get_real(q->study, "gates.queries");
    const json_t *row = most_changed(grid_of(q->study), "coupled", &tests);
    if (!row) return SILENT;
    double share = cgam_json_get_real(row, "argmax_changed");
    cgam_claim_tell(claim, "at most %.0f%%, at α = %.3g; proved unique there for %.0f%%",
                    100 * share, cgam_json_get_real(row, "alpha"),
                    100 * cgam_json_get_real(row, "unique_share"));
    return above(share, n, 0.01, tests) ? YES : NO;
}

const claim_row cgam_gates_claims[CGAM_GATES_CLAIMS] = {
    {"the-stable-range-is-degenerate", .by = degenerate},
    {"a-small-penalty-helps", .by = small_helps},
    {"feedback-alone-changes-nothing", .by = feedback_keeps},
    {"feedback-changes-answers", .by = feedback_changes},
};
