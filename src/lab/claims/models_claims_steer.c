/* models_claims_steer.c: claims about steering by facts, (iii) of section 4.2. A cell is a coupling and a layer of the
 * context. With several draws the cell of each is chosen on the others; with one it is chosen on the same queries, and the
 * level is shared by all cells. */
#include "lab/claims/models.h"
#include "lab/claims/models_claims.h"

#include <math.h>
#include <string.h>

typedef struct cell {
    int coupling;
    int64_t layer;
} cell;

/* A measure of a kind of context in a cell of a draw, or of all but that draw: added up. */
static double value(const question *q, int draw, const char *kind, const char *what, cell at)
{
    const json_t *one;
    size_t i;
    int coupling = 0;
    const json_t *entry = cgam_models_most_shots(q->draw[draw], "steer.shots");
    json_array_foreach(cgam_json_at(entry, "curves"), i, one)
    {
        if (strcmp(cgam_json_get_text(one, "context"), kind) != 0) continue;
        if (coupling++ == at.coupling) return cgam_json_nth(one, what, at.layer);
    }
    return NAN;
}

/* A condition: sign times a measure of a kind of context is above 0. */
typedef struct condition {
    const char *kind, *what, *se;
    int sign;
} condition;
enum { CONDITIONS = 5 };

/* How well a cell meets the first `by` conditions, over the draws but one (-1: over all). */
static double worth(const question *q, const condition *of, int by, cell at, int but)
{
    double least = INFINITY;
    for (int k = 0; k < by && of[k].kind; k++) {
        double sum = 0;
        for (int d = 0; d < q->draws; d++)
            if (d != but) sum += of[k].sign * value(q, d, of[k].kind, of[k].what, at);
        if (!(sum >= least)) least = sum;
    }
    return least;
}

/* The number of couplings and of layers. */
static cell grid_of(const question *q, const char *kind)
{
    const json_t *one, *entry = cgam_models_most_shots(q->draw[0], "steer.shots");
    size_t i;
    cell size = {0, 0};
    json_array_foreach(cgam_json_at(entry, "curves"), i, one)
    {
        if (strcmp(cgam_json_get_text(one, "context"), kind) != 0) continue;
        size.coupling++;
        size.layer = (int64_t)json_array_size(cgam_json_at(one, "log_p_gain"));
    }
    return size;
}

static cell best_cell(const question *q, const condition *of, int by, cell size, int but)
{
    cell best = {0, 0};
    double most = -INFINITY;
    for (int c = 0; c < size.coupling; c++)
        for (int64_t l = 0; l < size.layer; l++) {
            double x = worth(q, of, by, (cell){c, l}, but);
            if (x > most) most = x, best = (cell){c, l};
        }
    return best;
}

/* Are all conditions met, each at the cells that meet the first `by` of them best? */
static outcome meet(const question *q, const condition *of, int by, cgam_claim *claim)
{
    cell size = grid_of(q, of[0].kind), shown = {0, 0};
    cell at[CGAM_DRAWS_MAX] = {{0, 0}};
    if (size.coupling == 0 || size.layer == 0) return SILENT;
    for (int d = 0; d < q->draws; d++) at[d] = best_cell(q, of, by, size, q->draws > 1 ? d : -1);
    double tests = q->draws > 1 ? 1 : size.coupling * (double)size.layer;
    outcome result = SHOWN;
    for (int k = 0; k < CONDITIONS && of[k].kind; k++) {
        evidence e = cgam_evidence_of(q);
        for (int d = 0; d < q->draws; d++)
            cgam_evidence_add(&e, of[k].sign * value(q, d, of[k].kind, of[k].what, at[d]),
                              value(q, d, of[k].kind, of[k].se, at[d]),
                              cgam_json_get_int(q->draw[d], "steer.queries"));
        result = cgam_outcome_both(result, cgam_evidence_judge(&e, tests));
        if (result == SILENT) return SILENT;
    }
    shown = at[0];
    cgam_claim_tell(claim, "%+.2f ± %.2f at λ = %g, context after layer %d",
                    value(q, 0, of[0].kind, "log_p_gain", shown),
                    value(q, 0, of[0].kind, "log_p_gain_se", shown),
                    cgam_json_get_real(json_array_get(cgam_json_at(cgam_models_most_shots(
                                                                       q->draw[0], "steer.shots"),
                                                                   "curves"),
                                                      (size_t)shown.coupling),
                                       "lambda"),
                    (int)shown.layer);
    return result;
}

/* ---- Claims ------------------------------------------------------------------------------ */
/* Right facts raise the answer, and by more than wrong ones, those of another relation, and random vectors do. */
static outcome steers_up(const question *q, cgam_claim *claim)
{
    condition of[CONDITIONS] = {{"positive", "log_p_gain", "log_p_gain_se", 1}};
    int n = 1;
    if (q->null) {
        const char *kind = q->null->path;
        of[0].kind = kind;
        of[n++] = (condition){kind, "behind_right", "behind_right_se", -1};
        if (strcmp(kind, "random") != 0)
            of[n++] = (condition){kind, "behind_random", "behind_random_se", -1};
        return meet(q, of, 1, claim);
    }
    for (int i = 0; q->of->against[i].name; i++)
        of[n++] = (condition){q->of->against[i].path, "behind_right", "behind_right_se", 1};
    outcome result = meet(q, of, 1, claim);
    for (int i = 0; q->of->against[i].name && result != SILENT; i++) {
        cell size = grid_of(q, "positive"), at = best_cell(q, of, 1, size, q->draws > 1 ? 0 : -1);
        cgam_claim_tell(claim, ", %+.2f %s", value(q, 0, q->of->against[i].path, "log_p_gain", at),
                        q->of->against[i].name);
    }
    return result;
}

/* A context may lower any answer just by being strong; a fall counts where right facts, and a random vector, as strong
 * and from the same layer, each lack more than half of it. That they are ahead at all is not enough: query by query a
 * hundredth can be significant. */
static outcome steers_down(const question *q, cgam_claim *claim)
{
    const char *kind = q->of->own;
    const condition own[CONDITIONS] = {
        {kind, "log_p_gain", "log_p_gain_se", -1},
        {kind, "own_fall_right", "own_fall_right_se", 1},
        {kind, "own_fall_random", "own_fall_random_se", 1},
    };
    const condition random[CONDITIONS] = {
        {"random", "log_p_gain", "log_p_gain_se", -1},
        {"random", "own_fall_right", "own_fall_right_se", 1},
        {kind, "random_own_fall", "random_own_fall_se", 1},
    };
    return meet(q, q->null ? random : own, CONDITIONS, claim);
}

/* ---- The list ---------------------------------------------------------------------------- */
static const claim_row list[] = {
    {"right-facts-sharpen", .by = steers_up,
     .of = {.against = {{"wrong_object", "wrong objects", true, NULL},
                        {"other_relation", "another relation", true, NULL},
                        {"random", "random", true, NULL}}},
     .facts = true},
    {"wrong-objects-shift-away", .by = steers_down,
     .of = {.own = "wrong_object", .against = {{"random", "random", true, NULL}}}, .facts = true},
    {"objects-of-another-relation-shift-away", .by = steers_down,
     .of = {.own = "other_relation", .against = {{"random", "random", true, NULL}}}, .facts = true},
};

const claim_rows cgam_steer_rows = {list, sizeof list / sizeof *list};
