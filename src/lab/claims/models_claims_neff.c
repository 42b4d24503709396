/* models_claims_neff.c: claims about the effective number of words, (i) of section 4.2. Wrong demonstrations are the nulls:
 * what they do as well is not due to what demonstrations say. */
#include "lab/claims/models.h"
#include "lab/claims/models_claims.h"

#include <math.h>
#include <string.h>

/* ---- Curves ------------------------------------------------------------------------------ */
/* A draw's curve with the most demonstrations, or with wrong ones of some kind; NULL: there is none. */
static const json_t *curve_of(const question *q, int draw, const rival *null)
{
    const json_t *most = cgam_models_most_shots(q->draw[draw], "neff.curves"), *one;
    size_t i;
    if (!null) return cgam_json_get_int(most, "k") > 0 ? most : NULL;
    json_array_foreach(cgam_json_at(q->draw[draw], "neff.nulls"), i,
                       one) if (strcmp(cgam_json_get_text(one, "demos"), null->path) == 0 &&
                                cgam_json_get_int(one, "k") ==
                                    cgam_json_get_int(most, "k")) return one;
    return NULL;
}

static int64_t queries_of(const question *q, int draw)
{
    return cgam_json_get_int(q->draw[draw], "neff.queries");
}

static int64_t layers_of(const question *q)
{
    return cgam_models_layers(cgam_json_at(q->draw[0], "neff"));
}

/* sign times a measure after a layer, less `limit`. */
static evidence measure(const question *q, const rival *null, const char *what, const char *error,
                        int64_t l, int sign, double limit)
{
    evidence e = cgam_evidence_of(q);
    for (int d = 0; d < q->draws; d++) {
        const json_t *curve = curve_of(q, d, null);
        double se = cgam_json_nth(curve, error, l);
        if (strstr(error, "_sd")) se /= sqrt((double)queries_of(q, d));
        cgam_evidence_add(&e, sign * cgam_json_nth(curve, what, l) - limit, se, queries_of(q, d));
    }
    return e;
}

static double mean_of(const question *q, const rival *null, const char *what, int64_t l)
{
    double sum = 0;
    for (int d = 0; d < q->draws; d++) sum += cgam_json_nth(curve_of(q, d, null), what, l);
    return sum / q->draws;
}

/* Are demonstrations ahead of every wrong kind in a measure called `behind` there? A null in their place must be
 * ahead of them. A kind that the data do not allow has no curve. */
static outcome ahead(const question *q, const char *behind, const char *error, int64_t l,
                     double tests)
{
    outcome result = SHOWN;
    bool any = false;
    for (int i = 0; q->of->against[i].name; i++) {
        const rival *r = &q->of->against[i];
        if (!curve_of(q, 0, r) || (q->null && r != q->null)) continue;
        const evidence e = measure(q, r, behind, error, l, q->null ? -1 : 1, 0);
        result = cgam_outcome_both(result, cgam_evidence_judge(&e, tests));
        any = true;
    }
    return any ? result : SILENT;
}

/* Does N_eff fall by more than a factor of 10 after layer l, and by more than wrong demonstrations make it? */
static outcome falls_after(const question *q, int64_t l)
{
    double tests = (double)layers_of(q);
    const evidence fall = measure(q, q->null, "log_drop", "log_drop_se", l, 1, log(10));
    return cgam_outcome_both(cgam_evidence_judge(&fall, tests),
                             ahead(q, "drop_behind", "drop_behind_se", l, tests));
}

/* The layer after which N_eff falls most, over all draws; -1 if there are no curves. */
static int64_t deepest(const question *q)
{
    int64_t best = 0, layers = layers_of(q);
    if (layers < 1 || !curve_of(q, 0, q->null)) return -1;
    for (int64_t l = 1; l < layers; l++)
        if (mean_of(q, q->null, "log_drop", l) > mean_of(q, q->null, "log_drop", best)) best = l;
    return best;
}

/* ---- Claims ------------------------------------------------------------------------------ */
static outcome collapses(const question *q, cgam_claim *claim)
{
    int64_t at = deepest(q);
    if (at < 0) return SILENT;
    cgam_claim_tell(claim, "by a factor of %.3g after layer %d",
                    exp(mean_of(q, q->null, "log_drop", at)), (int)at);
    for (int i = 0; q->of->against[i].name && !q->null; i++)
        if (curve_of(q, 0, &q->of->against[i]))
            cgam_claim_tell(claim, ", %.3g %s", exp(mean_of(q, &q->of->against[i], "log_drop", at)),
                            q->of->against[i].name);
    outcome best = SILENT;
    for (int64_t l = 0; l < layers_of(q); l++) {
        outcome here = falls_after(q, l);
        if (here > best) best = here;
    }
    return best;
}

static outcome collapses_late(const question *q, cgam_claim *claim)
{
    int64_t layers = layers_of(q), first = -1, count = 0, half = (layers - 1) / 2;
    if (deepest(q) < 0) return SILENT;
    outcome result = SHOWN, heard = SILENT;
    for (int64_t l = 0; l < layers; l++) {
        const evidence fall = measure(q, q->null, "log_drop", "log_drop_se", l, 1, log(10));
        outcome early = cgam_evidence_judge(&fall, (double)layers), here = falls_after(q, l);
        if (here == SILENT) return SILENT;
        if (l <= half && early != REFUTED && result == SHOWN) result = OPEN;
        if (here > heard) heard = here;
        if (here != SHOWN) continue;
        if (first < 0) first = l;
        count++;
    }
    if (first < 0) {
        cgam_claim_tell(claim, "no layer");
        return OPEN;
    }
    cgam_claim_tell(claim, "%d layers, the first is %d of %d", (int)count, (int)first,
                    (int)layers - 1);
    return first > half ? result : REFUTED;
}

static outcome onto_labels(const question *q, cgam_claim *claim)
{
    int64_t at = deepest(q);
    if (at < 0) return SILENT;
    double tests = (double)layers_of(q);
    const evidence mass = measure(q, q->null, "label_mass", "label_mass_sd", at, 1, 0.5);
    cgam_claim_tell(claim, "%.3f after layer %d", mean_of(q, q->null, "label_mass", at), (int)at);
    for (int i = 0; q->of->against[i].name && !q->null; i++)
        if (curve_of(q, 0, &q->of->against[i]))
            cgam_claim_tell(claim, ", %.3f %s", mean_of(q, &q->of->against[i], "label_mass", at),
                            q->of->against[i].name);
    return cgam_outcome_both(cgam_evidence_judge(&mass, tests),
                             ahead(q, "mass_behind", "mass_behind_se", at, tests));
}

/* ---- More demonstrations ----------------------------------------------------------------- */
/* The layer at which the fewest demonstrations have brought log N_eff nearest to half of what it is
 * without: there more of them can still lower it, and fewer would have been seen. Where the fall is
 * largest it is most often at its end already, and more can change nothing. -1: there is none. */
static int64_t half_way(const json_t *curves)
{
    const json_t *zero = json_array_get(curves, 0), *fewest = json_array_get(curves, 1);
    int64_t best = -1;
    double least = INFINITY;
    for (int64_t l = 0; l < (int64_t)json_array_size(cgam_json_at(fewest, "entropy")); l++) {
        double all = log(cgam_json_nth(zero, "entropy", l));
        double off = fabs(log(cgam_json_nth(fewest, "entropy", l)) / all - 0.5);
        if (!(all > 0 && off < least)) continue;
        least = off;
        best = l;
    }
    return best;
}

/* A number of a draw's curve of k demonstrations, or of the wrong ones of as many. */
static double at_k(const question *q, int draw, const rival *null, int64_t k, const char *what,
                   int64_t l)
{
    const json_t *one;
    size_t i;
    json_array_foreach(cgam_json_at(q->draw[draw], null ? "neff.nulls" : "neff.curves"), i,
                       one) if (cgam_json_get_int(one, "k") == k &&
                                (!null || strcmp(cgam_json_get_text(one, "demos"), null->path) ==
                                              0)) return cgam_json_nth(one, what, l);
    return NAN;
}

/* sign times the rise of a measure from `few` to `many` demonstrations. The two are not compared query by
 * query: their errors add up. */
static outcome rises(const question *q, const rival *null, const char *what, const char *error,
                     int sign, int64_t few, int64_t many, int64_t l, double tests)
{
    evidence e = cgam_evidence_of(q);
    for (int d = 0; d < q->draws; d++)
        cgam_evidence_add(&e,
                          sign * (at_k(q, d, null, many, what, l) - at_k(q, d, null, few, what, l)),
                          hypot(at_k(q, d, null, many, error, l), at_k(q, d, null, few, error, l)),
                          queries_of(q, d));
    return cgam_evidence_judge(&e, tests);
}

static outcome shots_collapse(const question *q, cgam_claim *claim)
{
    const json_t *curves = cgam_json_at(q->draw[0], "neff.curves");
    int64_t count = (int64_t)json_array_size(curves), k[16];
    if (count < 3 || count > 16 || cgam_json_get_int(json_array_get(curves, 0), "k") != 0)
        return SILENT;
    int64_t at = half_way(curves);
    if (at < 0) return SILENT;
    outcome result = SHOWN;
    cgam_claim_tell(claim, "after layer %d, ", (int)at);
    for (int64_t i = 0; i < count; i++) {
        k[i] = cgam_json_get_int(json_array_get(curves, (size_t)i), "k");
        cgam_claim_tell(claim, "%s%.3g", i > 0 ? ", " : "",
                        cgam_json_nth(json_array_get(curves, (size_t)i), "entropy", at));
        if (i > 1)
            result = cgam_outcome_both(
                result, rises(q, q->null, "log_drop", "log_drop_se", 1, k[i - 1], k[i], at, 1));
    }
    cgam_claim_tell(claim, " words");
    for (int i = 0; q->of->against[i].name; i++) {
        const rival *r = &q->of->against[i];
        if (!curve_of(q, 0, r) || (q->null && r != q->null)) continue;
        result = cgam_outcome_both(result, rises(q, r, "drop_behind", "drop_behind_se",
                                                 q->null ? -1 : 1, k[1], k[count - 1], at, 1));
    }
    return curve_of(q, 0, &q->of->against[0]) ? result : SILENT;
}

/* ---- The list ---------------------------------------------------------------------------- */
#define WRONG                                                                                      \
    {                                                                                              \
        .against = {                                                                               \
            {"flipped", "with wrong answers", true, NULL},                                         \
            {"foreign", "with those of another relation", true, NULL}                              \
        }                                                                                          \
    }

static const claim_row list[] = {
    {"n-eff-collapses", .by = collapses, .of = WRONG},
    {"n-eff-collapses-late", .by = collapses_late, .of = WRONG},
    {"n-eff-collapses-onto-labels", .by = onto_labels, .of = WRONG},
    {"more-shots-collapse-more", .by = shots_collapse, .of = WRONG},
};

const claim_rows cgam_curve_rows = {list, sizeof list / sizeof *list};
