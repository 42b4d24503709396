/* models_claims_probe.c: claims about separability and alignment (appendix D.4). The null is the same states under shuffled
 * labels. */
#include "lab/claims/models.h"
#include "lab/claims/models_claims.h"

#include <math.h>
#include <string.h>

/* How much less the early layers may separate than the later ones and still be said to have peaked. */
#define NEARLY 0.05

static const json_t *curve_of(const question *q, int draw, bool null)
{
    return cgam_models_most_shots(q->draw[draw], null ? "probe.nulls" : "probe.curves");
}

static int64_t layers_of(const question *q)
{
    return cgam_models_layers(cgam_json_at(q->draw[0], "probe"));
}

static int64_t queries_of(const question *q, int draw)
{
    return cgam_json_get_int(q->draw[draw], "probe.queries");
}

static double mean_of(const question *q, bool null, const char *what, int64_t l)
{
    double sum = 0;
    for (int d = 0; d < q->draws; d++) sum += cgam_json_nth(curve_of(q, d, null), what, l);
    return sum / q->draws;
}

/* The layer below `layers` at which a measure is largest, over all draws. */
static int64_t top_layer(const question *q, bool null, const char *what, int64_t layers)
{
    int64_t best = 0;
    for (int64_t l = 1; l < layers; l++)
        if (mean_of(q, null, what, l) > mean_of(q, null, what, best)) best = l;
    return best;
}

/* The answers of the regression after a layer. */
static const char *right_of(const question *q, int draw, bool null, int64_t l)
{
    const json_t *list = cgam_json_at(curve_of(q, draw, null), "separability_right");
    const char *text = json_string_value(json_array_get(list, (size_t)l));
    return text ? text : "";
}

/* a times the margin after one layer less b times that after another. Of one state the two go together; as if they
 * did not, the error is too large rather than too small. */
static evidence margins(const question *q, bool null, double a, int64_t one, double b,
                        int64_t other)
{
    evidence e = cgam_evidence_of(q);
    for (int d = 0; d < q->draws; d++) {
        const json_t *c = curve_of(q, d, null);
        double n = sqrt((double)queries_of(q, d));
        double mean = a * cgam_json_nth(c, "margin", one),
               se = a * cgam_json_nth(c, "margin_sd", one);
        if (b != 0) {
            mean -= b * cgam_json_nth(c, "margin", other);
            se = hypot(se, b * cgam_json_nth(c, "margin_sd", other));
        }
        cgam_evidence_add(&e, mean, se / n, queries_of(q, d));
    }
    return e;
}

/* ---- Separability ------------------------------------------------------------------------ */
/* The layer of [from, to) whose regression is right about most queries of a half. */
static int64_t best_on(const question *q, int draw, bool null, int64_t from, int64_t to,
                       size_t half)
{
    int64_t best = from, most = -1;
    for (int64_t l = from; l < to; l++) {
        const char *right = right_of(q, draw, null, l);
        int64_t hits = 0;
        for (size_t i = half; i < strlen(right); i += 2) hits += right[i] == '1';
        if (hits > most) most = hits, best = l;
    }
    return best;
}

/* Layers chosen on one half of the queries and counted on the other: is the best of the first half of the layers above
 * what the most frequent label gets, and not below the best of the others by NEARLY? */
static outcome separates_early(const question *q, cgam_claim *claim)
{
    int64_t layers = layers_of(q), half = (layers - 1) / 2 + 1;
    bool null = q->null != NULL;
    double early = 0, late = 0;
    evidence above = cgam_evidence_of(q), near = above, apart = above;
    if (layers < 2 || !curve_of(q, 0, true)) return SILENT;
    for (int d = 0; d < q->draws; d++) {
        double chance = cgam_json_get_real(q->draw[d], "probe.majority");
        size_t n = strlen(right_of(q, d, null, 0));
        cgam_moments hits = {0}, gap = {0};
        for (int h = 0; h < 2; h++) { /* chosen on this half */
            const char *a = right_of(q, d, null, best_on(q, d, null, 0, half, (size_t)h));
            const char *b = right_of(q, d, null, best_on(q, d, null, half, layers, (size_t)h));
            if (strlen(a) != n || strlen(b) != n || n < 2) return SILENT;
            for (size_t i = (size_t)(1 - h); i < n; i += 2) {
                cgam_moments_add(&hits, (a[i] == '1') - chance);
                cgam_moments_add(&gap, (double)(a[i] == '1') - (b[i] == '1'));
            }
        }
        cgam_evidence_add(&above, hits.mean, cgam_moments_se(&hits), (int64_t)n);
        cgam_evidence_add(&near, gap.mean + NEARLY, cgam_moments_se(&gap), (int64_t)n);
        cgam_evidence_add(&apart, gap.mean, cgam_moments_se(&gap), (int64_t)n);
        early += (hits.mean + chance) / q->draws;
        late += (hits.mean + chance - gap.mean) / q->draws;
    }
    cgam_claim_tell(claim, "%.3f in the first half of the layers, %.3f in the second", early, late);
    outcome higher = cgam_evidence_judge(&above, 1), nearly = cgam_evidence_judge(&near, 1);
    if (higher == SILENT || nearly == SILENT) return SILENT;
    if (higher != SHOWN) return OPEN; /* nothing is separated that could have a peak */
    if (nearly == SHOWN) return SHOWN;
    return cgam_evidence_judge(&apart, 1) == REFUTED ? REFUTED : OPEN;
}

/* ---- Alignment --------------------------------------------------------------------------- */
static outcome aligns_late(const question *q, cgam_claim *claim)
{
    int64_t layers = layers_of(q), good = 0;
    bool null = q->null != NULL;
    if (layers < 3 || !curve_of(q, 0, false) || !curve_of(q, 0, true)) return SILENT;
    int64_t top = top_layer(q, null, "margin", layers), end = 2 * (layers - 1) / 3;
    const evidence positive = margins(q, null, 1, top, 0, 0);
    outcome result = cgam_evidence_judge(&positive, (double)layers);
    if (result == SHOWN)
        for (int64_t l = 0; l <= end; l++) {
            const evidence below = margins(q, null, 0.5, top, 1, l);
            outcome here = cgam_evidence_judge(&below, (double)layers);
            good += here == SHOWN;
            result = cgam_outcome_both(result, here);
        }
    else if (result == REFUTED) result = OPEN; /* no margin, no layers to speak of */
    cgam_claim_tell(claim, "best margin %.4f after layer %d, %d of %d layers below half of it",
                    mean_of(q, null, "margin", top), (int)top, (int)good, (int)end + 1);
    return result;
}

/* The first layer with 90% of a measure's rise from layer 0 to its top. */
static int64_t risen(const question *q, bool null, const char *what, int64_t layers)
{
    double from = mean_of(q, null, what, 0);
    int64_t top = top_layer(q, null, what, layers), l = 0;
    double to = mean_of(q, null, what, top);
    while (l < top && mean_of(q, null, what, l) < from + 0.9 * (to - from)) l++;
    return l;
}

/* Where separability, the null's or the states', has risen and is above chance, does the margin lack more than a tenth
 * of its best, which is above 0? */
static outcome separates_first(const question *q, cgam_claim *claim)
{
    int64_t layers = layers_of(q);
    bool null = q->null != NULL;
    if (layers < 3 || !*right_of(q, 0, false, 0) || !*right_of(q, 0, true, 0)) return SILENT;
    int64_t early = risen(q, null, "separability", layers);
    int64_t late = risen(q, false, "margin", layers);
    int64_t top = top_layer(q, false, "margin", layers);
    evidence above = cgam_evidence_of(q);
    for (int d = 0; d < q->draws; d++) {
        double p = cgam_json_nth(curve_of(q, d, null), "separability", early);
        double n = (double)strlen(right_of(q, d, null, early));
        cgam_evidence_add(&above, p - cgam_json_get_real(q->draw[d], "probe.majority"),
                          sqrt(p * (1 - p) / n), (int64_t)n);
    }
    const evidence positive = margins(q, false, 1, top, 0, 0);
    const evidence left = margins(q, false, 0.9, top, 1, early);
    outcome there = cgam_outcome_both(cgam_evidence_judge(&above, (double)layers),
                                      cgam_evidence_judge(&positive, (double)layers));
    cgam_claim_tell(claim, "separability after layer %d, alignment after layer %d", (int)early,
                    (int)late);
    if (there == SILENT) return SILENT;
    return there == SHOWN ? cgam_evidence_judge(&left, (double)layers) : OPEN;
}

/* ---- The list ---------------------------------------------------------------------------- */
#define SHUFFLED                                                                                   \
    {                                                                                              \
        .against = { {"shuffled", "shuffled labels", true, NULL} }                                 \
    }

static const claim_row list[] = {
    {"separability-peaks-early", .by = separates_early, .of = SHUFFLED},
    {"alignment-sharpens-late", .by = aligns_late, .of = SHUFFLED},
    {"separability-before-alignment", .by = separates_first, .of = SHUFFLED},
};

const claim_rows cgam_probe_rows = {list, sizeof list / sizeof *list};
