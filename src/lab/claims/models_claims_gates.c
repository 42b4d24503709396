/* models_claims_gates.c: what the paper says of the penalty and of feedback on a vocabulary, and what we
 * ask beside it, decided on what `cgam lm gates` found with the most shots. The null of a change with alpha is none: alpha =
 * 0 again, with lambda chosen on as many queries drawn with replacement. */
#include "lab/claims/models.h"
#include "lab/claims/models_claims.h"

#include <math.h>
#include <string.h>

static const json_t *entry_of(const question *q, int draw)
{
    return cgam_models_most_shots(q->draw[draw], "gates.shots");
}

static const json_t *grid_of(const question *q) { return cgam_json_at(entry_of(q, 0), "grid"); }

/* Row i of a draw's grid, whose alphas are those of every draw. */
static const json_t *row_of(const question *q, int draw, size_t i)
{
    return json_array_get(cgam_json_at(entry_of(q, draw), "grid"), i);
}

static bool is_mode(const json_t *row, const char *mode)
{
    return strcmp(cgam_json_get_text(row, "mode"), mode) == 0;
}

static double queries_of(const question *q, int draw)
{
    return cgam_json_get_real(q->draw[draw], "gates.queries");
}

/* sign times (a share of the queries less another, or a number, and the limit). */
static evidence shares(const question *q, size_t row, const char *what, bool against_null,
                       double limit, int sign)
{
    evidence e = cgam_evidence_of(q);
    for (int d = 0; d < q->draws; d++) {
        double n = queries_of(q, d), x = cgam_json_get_real(row_of(q, d, row), what), y = 0;
        if (q->null) x = cgam_json_get_real(entry_of(q, d), "null.argmax_changed");
        if (against_null) y = cgam_json_get_real(entry_of(q, d), "null.argmax_changed");
        /* one query more or less than none or all: an error of 0 would prove too much */
        double p = fmin(fmax(x, 1 / (n + 2)), 1 - 1 / (n + 2));
        cgam_evidence_add(&e, sign * (x - y - limit), sqrt((p * (1 - p) + y * (1 - y)) / n),
                          (int64_t)n);
    }
    return e;
}

/* Does some alpha > 0 change the best word of more than 5% of the queries beyond what choosing lambda anew changes? */
static outcome changes(const question *q, cgam_claim *claim)
{
    const json_t *row, *best = NULL;
    size_t i;
    double tests = 0;
    outcome some = REFUTED;
    json_array_foreach(grid_of(q), i, row) tests +=
        is_mode(row, "first") && cgam_json_get_real(row, "alpha") > 0;
    json_array_foreach(grid_of(q), i, row)
    {
        if (!is_mode(row, "first") || !(cgam_json_get_real(row, "alpha") > 0)) continue;
        const evidence more = shares(q, i, "argmax_changed", true, 0.05, 1);
        outcome here = cgam_evidence_judge(&more, tests);
        if (here == SILENT) return SILENT;
        if (here > some) some = here;
        if (!best ||
            cgam_json_get_real(row, "argmax_changed") > cgam_json_get_real(best, "argmax_changed"))
            best = row;
    }
    if (!best) return SILENT;
    cgam_claim_tell(claim,
                    "α_crit is %.3g/μ_max; at α = %.3g the best word differs for %.0f%%, with λ "
                    "chosen anew at α = 0 for %.0f%%",
                    cgam_json_get_real(q->draw[0], "gates.alpha_crit") *
                        cgam_json_get_real(q->draw[0], "gates.mu_max"),
                    cgam_json_get_real(best, "alpha"),
                    100 * cgam_json_get_real(best, "argmax_changed"),
                    100 * cgam_json_get_real(entry_of(q, 0), "null.argmax_changed"));
    return some;
}

/* Right answers of a row, or of the null, in every draw. */
static void read_right(const question *q, const json_t *none, size_t row, const char *over,
                       const char **right)
{
    for (int d = 0; d < q->draws; d++)
        right[d] = cgam_json_get_text(
            none ? cgam_json_at(entry_of(q, d), "null") : row_of(q, d, row), over);
}

static outcome small_helps(const question *q, cgam_claim *claim)
{
    const json_t *grid = grid_of(q), *row, *null = cgam_json_at(entry_of(q, 0), "null");
    double one = 1 / cgam_json_get_real(q->draw[0], "gates.mu_max"), tests = 0, best = NAN,
           at = NAN;
    bool full = strcmp(cgam_json_get_text(q->draw[0], "gates.over"), "full") == 0;
    const char *over = full ? "full_right" : "restricted_right";
    const char *zero[CGAM_DRAWS_MAX] = {NULL}, *own[CGAM_DRAWS_MAX] = {NULL};
    const char *none[CGAM_DRAWS_MAX] = {NULL};
    size_t i, first = json_array_size(grid);
    outcome some = REFUTED;
    if (!json_is_object(null)) return SILENT;
    json_array_foreach(grid, i, row)
    {
        double alpha = cgam_json_get_real(row, "alpha");
        if (!is_mode(row, "first")) continue;
        if (alpha == 0) first = i;
        tests += alpha > 0 && alpha <= 10.001 * one;
    }
    if (first == json_array_size(grid) || tests == 0) return SILENT;
    read_right(q, NULL, first, over, zero);
    read_right(q, null, 0, over, none);
    json_array_foreach(grid, i, row)
    {
        double alpha = cgam_json_get_real(row, "alpha");
        if (!is_mode(row, "first") || !(alpha > 0) || alpha > 10.001 * one) continue;
        read_right(q, NULL, i, over, own);
        double share = cgam_models_share(own[0]);
        if (!(share <= best)) best = share, at = alpha;
        outcome here = cgam_outcome_both(
            cgam_models_above(q, q->null ? none : own, zero, tests),
            cgam_models_above(q, q->null ? none : own, q->null ? own : none, tests));
        if (here == SILENT) return SILENT;
        if (here > some) some = here;
    }
    cgam_claim_tell(claim,
                    "%.3f at α = 0, %.3f with λ chosen anew, at best %.3f at α = %.3g, over %s",
                    cgam_models_share(zero[0]), cgam_models_share(none[0]), best, at,
                    full ? "words" : "labels");
    return some;
}

/* An identity: not one word may differ, and a single one refutes it. */
static outcome feedback_keeps(const question *q, cgam_claim *claim)
{
    const json_t *row;
    size_t i;
    json_array_foreach(grid_of(q), i, row)
    {
        if (!is_mode(row, "coupled") || cgam_json_get_real(row, "alpha") > 0) continue;
        double most = 0, n = 0;
        for (int d = 0; d < q->draws; d++) {
            most = fmax(most, cgam_json_get_real(row_of(q, d, i), "argmax_changed"));
            n += queries_of(q, d);
        }
        cgam_claim_tell(claim, "%.0f%% of the best words differ, N_eff %.3g", 100 * most,
                        cgam_json_get_real(row, "neff"));
        return most > 0 ? REFUTED : n >= CGAM_QUERIES_MIN ? SHOWN : OPEN;
    }
    return SILENT;
}

/* The null has the feedback and no penalty: alpha = 0. */
static outcome feedback_changes(const question *q, cgam_claim *claim)
{
    const json_t *row, *best = NULL;
    size_t i;
    double tests = 0;
    outcome some = REFUTED;
    question plain = *q;
    plain.null = NULL;
    json_array_foreach(grid_of(q), i, row) tests +=
        is_mode(row, "coupled") && cgam_json_get_real(row, "alpha") > 0;
    json_array_foreach(grid_of(q), i, row)
    {
        bool zero = cgam_json_get_real(row, "alpha") == 0;
        if (!is_mode(row, "coupled") || zero != (q->null != NULL)) continue;
        const evidence more = shares(&plain, i, "argmax_changed", false, 0.01, 1);
        outcome here = cgam_evidence_judge(&more, fmax(1, tests));
        if (here > some) some = here;
        if (!best ||
            cgam_json_get_real(row, "argmax_changed") > cgam_json_get_real(best, "argmax_changed"))
            best = row;
    }
    if (!best) return SILENT;
    cgam_claim_tell(claim, "at most %.0f%%, at α = %.3g; proved unique there for %.0f%%",
                    100 * cgam_json_get_real(best, "argmax_changed"),
                    cgam_json_get_real(best, "alpha"),
                    100 * cgam_json_get_real(best, "unique_share"));
    return some;
}

static const claim_row list[] = {
    {"the-stable-range-is-not-degenerate", .by = changes,
     .of = {.against = {{"again", "α = 0, λ chosen anew", true, NULL}}}},
    {"a-small-penalty-helps", .by = small_helps,
     .of = {.against = {{"again", "α = 0, λ chosen anew", true, NULL}}}},
    {"feedback-alone-changes-nothing", .by = feedback_keeps},
    {"feedback-changes-answers", .by = feedback_changes,
     .of = {.against = {{"zero", "α = 0", true, NULL}}}},
};

const claim_rows cgam_gates_rows = {list, sizeof list / sizeof *list};
