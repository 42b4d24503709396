/* models_claims.c: what the paper says about language models, decided on the studies' own data.
 *
 * A claim is tested on every study that can speak to it, at 1% for all comparisons of one claim on
 * one study (Bonferroni). It holds where the test passes on all of them, "on" the studies where it
 * does, and does not hold where it passes on none with 50 queries or more in one of them; with
 * fewer it is not decided. Answers to the same queries are compared by the
 * queries that differ (the sign test, exact); means by their standard errors over queries. */
#include "lab/claims/models_claims.h"
#include "lab/claims/models.h"
#include "lab/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Tests ------------------------------------------------------------------------------- */
/* The probability of `up` or more heads in up + down throws. */
static double sign_test(int64_t up, int64_t down)
{
    double n = (double)(up + down), sum = 0;
    for (int64_t i = up; i <= up + down; i++)
        sum += exp(lgamma(n + 1) - lgamma((double)i + 1) - lgamma(n - (double)i + 1) - n * log(2));
    return fmin(1, sum);
}

bool cgam_models_better(const char *a, const char *b, double tests)
{
    int64_t up = 0, down = 0;
    for (; *a && *b; a++, b++) {
        up += *a == '1' && *b != '1';
        down += *a != '1' && *b == '1';
    }
    return *a == *b && up > down && sign_test(up, down) <= CGAM_CLAIM_LEVEL / tests;
}

/* Is the accuracy of a significantly above `share` times that of b? */
static bool reaches(const char *a, const char *b, double share)
{
    cgam_moments m = {0};
    for (; *a && *b; a++, b++) cgam_moments_add(&m, (*a == '1') - share * (*b == '1'));
    return m.n > 1 && m.mean > cgam_claim_limit(1) * cgam_moments_se(&m);
}

static double share_of(const char *right)
{
    double n = 0, sum = 0;
    for (; *right; right++, n++) sum += *right == '1';
    return n > 0 ? sum / n : (double)NAN;
}

/* ---- One claim over all studies ---------------------------------------------------------- */
const json_t *cgam_models_most_shots(const json_t *study, const char *path)
{
    const json_t *list = cgam_json_at(study, path);
    return json_array_get(list, json_array_size(list) - 1);
}

/* The entry of the smallest number of shots. */
static const json_t *least_shots(const json_t *study, const char *path)
{
    const json_t *list = cgam_json_at(study, path);
    size_t i = 0;
    while (i + 1 < json_array_size(list) && cgam_json_get_int(json_array_get(list, i), "k") == 0)
        i++;
    return json_array_get(list, i);
}

/* The layer below `layers` at which a measure is largest. */
static int64_t top_layer(const json_t *curve, const char *measure, int64_t layers)
{
    int64_t best = 0;
    for (int64_t l = 1; l < layers; l++)
        if (cgam_json_nth(curve, measure, l) > cgam_json_nth(curve, measure, best)) best = l;
    return best;
}

/* ---- (i) N_eff --------------------------------------------------------------------------- */
/* The layer at which demonstrations lower N_eff most; -1 if there are none. */
static int64_t deepest(const json_t *curve)
{
    int64_t layers = (int64_t)json_array_size(cgam_json_at(curve, "log_drop"));
    return layers > 0 && cgam_json_get_int(curve, "k") > 0 ? top_layer(curve, "log_drop", layers)
                                                           : -1;
}

static outcome collapses(const question *q, cgam_claim *claim)
{
    const json_t *curve = cgam_models_most_shots(q->study, "neff.curves");
    const json_t *zero = json_array_get(cgam_json_at(q->study, "neff.curves"), 0);
    int64_t at = deepest(curve);
    if (at < 0) return SILENT;
    double drop = cgam_json_nth(curve, "log_drop", at);
    double se = cgam_json_nth(curve, "log_drop_se", at);
    cgam_claim_tell(claim, "%.4g words without and %.3g with %d shots after layer %d",
                    cgam_json_nth(zero, "entropy", at), cgam_json_nth(curve, "entropy", at),
                    (int)cgam_json_get_int(curve, "k"), (int)at);
    double z = cgam_claim_limit((double)cgam_models_layers(cgam_json_at(q->study, "neff")));
    return drop - z * se > log(10) ? YES : NO;
}

static outcome collapses_late(const question *q, cgam_claim *claim)
{
    const json_t *curve = cgam_models_most_shots(q->study, "neff.curves");
    int64_t layers = cgam_models_layers(cgam_json_at(q->study, "neff")), first = -1, count = 0;
    if (deepest(curve) < 0) return SILENT;
    double z = cgam_claim_limit((double)layers);
    for (int64_t l = 0; l < layers; l++) {
        double drop = cgam_json_nth(curve, "log_drop", l);
        if (!(drop - z * cgam_json_nth(curve, "log_drop_se", l) > log(10))) continue;
        if (first < 0) first = l;
        count++;
    }
    if (first < 0) cgam_claim_tell(claim, "no layer");
    else
        cgam_claim_tell(claim, "%d layers, the first is %d of %d", (int)count, (int)first,
                        (int)layers - 1);
    return first > (layers - 1) / 2 ? YES : NO;
}

static outcome onto_labels(const question *q, cgam_claim *claim)
{
    const json_t *curve = cgam_models_most_shots(q->study, "neff.curves");
    double n = (double)cgam_json_get_int(q->study, "neff.queries");
    int64_t at = deepest(curve);
    if (at < 0) return SILENT;
    double mass = cgam_json_nth(curve, "label_mass", at);
    double se = cgam_json_nth(curve, "label_mass_sd", at) / sqrt(n);
    cgam_claim_tell(claim, "%.3f ± %.3f after layer %d", mass, se, (int)at);
    return mass - cgam_claim_limit(1) * se > 0.5 ? YES : NO;
}

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

static outcome shots_collapse(const question *q, cgam_claim *claim)
{
    const json_t *curves = cgam_json_at(q->study, "neff.curves");
    int64_t steps = (int64_t)json_array_size(curves) - 2, good = 0;
    if (steps < 1 || cgam_json_get_int(json_array_get(curves, 0), "k") != 0) return SILENT;
    int64_t at = half_way(curves);
    if (at < 0) return SILENT;
    cgam_claim_tell(claim, "after layer %d, ", (int)at);
    for (size_t i = 0; i < json_array_size(curves); i++) {
        const json_t *now = json_array_get(curves, i), *before = json_array_get(curves, i - 1);
        cgam_claim_tell(claim, "%s%.3g", i > 0 ? ", " : "", cgam_json_nth(now, "entropy", at));
        if (i < 2) continue;
        double rise = cgam_json_nth(now, "log_drop", at) - cgam_json_nth(before, "log_drop", at);
        double se =
            hypot(cgam_json_nth(now, "log_drop_se", at), cgam_json_nth(before, "log_drop_se", at));
        good += rise > cgam_claim_limit((double)steps) * se;
    }
    cgam_claim_tell(claim, " words, %d of %d steps fall", (int)good, (int)steps);
    return good == steps ? YES : NO;
}

/* ---- (ii) Sweep -------------------------------------------------------------------------- */
static outcome reaches_among(const question *q, const json_t *entry, cgam_claim *claim)
{
    const char *own = cgam_json_get_text(entry, q->of->own);
    const char *full = cgam_json_get_text(entry, q->of->against[0].path);
    if (!*own || !*full) return SILENT;
    cgam_claim_tell(claim, "%.3f of %.3f", share_of(own), share_of(full));
    return reaches(own, full, 0.75) ? YES : NO;
}

static outcome reaches_icl(const question *q, cgam_claim *claim)
{
    return reaches_among(q, cgam_models_most_shots(q->study, "sweep.shots"), claim);
}

/* Does retrieval beat every rival? */
static outcome beats_among(const question *q, const json_t *entry, cgam_claim *claim)
{
    const char *right = cgam_json_get_text(entry, q->of->own);
    int count = 0;
    bool all = true;
    if (!*right) return SILENT;
    while (q->of->against[count].path) count++;
    cgam_claim_tell(claim, "%.3f against ", share_of(right));
    for (int i = 0; i < count; i++) {
        const char *other = cgam_json_get_text(entry, q->of->against[i].path);
        bool beaten = cgam_models_better(right, other, count);
        all = all && beaten;
        cgam_claim_tell(claim, "%s%s %.3f%s", i ? ", " : "", q->of->against[i].name,
                        share_of(other), beaten ? "" : " (not beaten)");
    }
    return all ? YES : NO;
}

static outcome beats(const question *q, cgam_claim *claim)
{
    return beats_among(q, cgam_models_most_shots(q->study, "sweep.shots"), claim);
}

/* The same for vectors injected into the model. */
static outcome injects(const question *q, cgam_claim *claim)
{
    const json_t *entry = cgam_models_most_shots(q->study, "inject.shots");
    outcome result = beats_among(q, entry, claim);
    if (result != SILENT)
        cgam_claim_tell(claim, " (%s, layer %d)", cgam_json_get_text(entry, "best.kind"),
                        (int)cgam_json_get_int(entry, "best.layer"));
    return result;
}

/* And of a learned P; a fit of one task, or without low rank, has no rival to some. */
static outcome fits(const question *q, cgam_claim *claim)
{
    const json_t *fit = cgam_json_at(q->study, "fit");
    if (!*cgam_json_get_text(fit, q->of->against[0].path)) return SILENT;
    outcome result = beats_among(q, fit, claim);
    if (result != SILENT)
        cgam_claim_tell(claim, " (%s, %s after layer %d)", cgam_json_get_text(fit, "method"),
                        cgam_json_get_text(fit, "from"), (int)cgam_json_get_int(fit, "layer"));
    return result;
}

static outcome fit_reaches_icl(const question *q, cgam_claim *claim)
{
    return reaches_among(q, cgam_json_at(q->study, "fit"), claim);
}

static outcome shots_help(const question *q, cgam_claim *claim)
{
    const json_t *most = cgam_models_most_shots(q->study, "sweep.shots");
    const json_t *least = least_shots(q->study, "sweep.shots");
    const char *now = cgam_json_get_text(most, "best.full.right");
    const char *before = cgam_json_get_text(least, "best.full.right");
    if (most == least || !*now || !*before) return SILENT;
    cgam_claim_tell(claim, "%.3f with %d, %.3f with %d", share_of(before),
                    (int)cgam_json_get_int(least, "k"), share_of(now),
                    (int)cgam_json_get_int(most, "k"));
    return cgam_models_better(now, before, 1) ? YES : NO;
}

/* ---- (iii) Steering ---------------------------------------------------------------------- */
/* Comparisons made for one kind of context: couplings times layers. */
static double steer_tests(const json_t *entry)
{
    const json_t *curves = cgam_json_at(entry, "curves");
    double tests = 0;
    for (size_t i = 0; i < json_array_size(curves); i++)
        tests += (double)json_array_size(cgam_json_at(json_array_get(curves, i), "log_p"));
    return fmax(1, tests / 3);
}

/* z of a measure at a layer, 0 where it does not change at all. */
static double z_at(const json_t *curve, const char *measure, int64_t l)
{
    char error[40];
    snprintf(error, sizeof error, "%s_se", measure);
    double x = cgam_json_nth(curve, measure, l), se = cgam_json_nth(curve, error, l);
    return se > 0 ? x / se : 0;
}

/* z of the claim that right facts, as strong and from the same layer, lack more than half of a fall. */
static double z_own_fall(const json_t *curve, int64_t l)
{
    double more =
        cgam_json_nth(curve, "behind_right", l) + cgam_json_nth(curve, "log_p_gain", l) / 2;
    double se = hypot(cgam_json_nth(curve, "behind_right_se", l),
                      cgam_json_nth(curve, "log_p_gain_se", l) / 2);
    return se > 0 ? more / se : 0;
}

/* Where a kind of context moves the answer's log-probability most in the direction of sign.
 * `apart`: only where most of a fall is its own. NULL: nowhere. */
static const json_t *extreme(const json_t *entry, const char *context, int sign, double apart,
                             int64_t *layer)
{
    const json_t *curves = cgam_json_at(entry, "curves"), *best = NULL;
    for (size_t i = 0; i < json_array_size(curves); i++) {
        const json_t *one = json_array_get(curves, i);
        if (strcmp(cgam_json_get_text(one, "context"), context) != 0) continue;
        for (int64_t l = 0; l < (int64_t)json_array_size(cgam_json_at(one, "log_p_gain")); l++) {
            double gain = sign * cgam_json_nth(one, "log_p_gain", l);
            if (apart > 0 && !(z_own_fall(one, l) > apart && z_at(one, "behind_right", l) > apart))
                continue;
            if (best && !(gain > sign * cgam_json_nth(best, "log_p_gain", *layer))) continue;
            best = one;
            *layer = l;
        }
    }
    return best;
}

static void tell_steer(cgam_claim *claim, const json_t *curve, int64_t layer)
{
    cgam_claim_tell(claim, "%+.2f ± %.2f at λ = %g, context after layer %d",
                    cgam_json_nth(curve, "log_p_gain", layer),
                    cgam_json_nth(curve, "log_p_gain_se", layer),
                    cgam_json_get_real(curve, "lambda"), (int)layer);
}

static outcome steers_up(const question *q, cgam_claim *claim)
{
    const json_t *entry = cgam_models_most_shots(q->study, "steer.shots");
    int64_t layer = 0;
    const json_t *curve = extreme(entry, "positive", 1, 0, &layer);
    if (!curve) return SILENT;
    tell_steer(claim, curve, layer);
    return z_at(curve, "log_p_gain", layer) > cgam_claim_limit(steer_tests(entry)) ? YES : NO;
}

/* A context may lower any answer just by being strong; a fall counts where right facts, as strong and
 * from the same layer, lack significantly more than half of it. That they are ahead at all is not
 * enough: query by query a hundredth can be significant. */
static outcome steers_down(const question *q, cgam_claim *claim)
{
    const json_t *entry = cgam_models_most_shots(q->study, "steer.shots");
    double z = cgam_claim_limit(2 * steer_tests(entry));
    int64_t layer = 0;
    if (!extreme(entry, q->of->own, -1, 0, &layer)) return SILENT;
    const json_t *curve = extreme(entry, q->of->own, -1, z, &layer);
    if (!curve) {
        cgam_claim_tell(claim, "no fall that right facts do not share");
        return NO;
    }
    tell_steer(claim, curve, layer);
    cgam_claim_tell(claim, ", %.2f ± %.2f behind right facts",
                    cgam_json_nth(curve, "behind_right", layer),
                    cgam_json_nth(curve, "behind_right_se", layer));
    return -z_at(curve, "log_p_gain", layer) > z ? YES : NO;
}

/* Where right facts help most, do they help more than wrong objects of the same relation? */
static outcome right_beats_wrong(const question *q, cgam_claim *claim)
{
    const json_t *entry = cgam_models_most_shots(q->study, "steer.shots");
    const json_t *curves = cgam_json_at(entry, "curves");
    int64_t at = 0;
    const json_t *curve = extreme(entry, "positive", 1, 0, &at);
    for (size_t i = 0; i < json_array_size(curves) && curve; i++) {
        const json_t *wrong = json_array_get(curves, i);
        if (strcmp(cgam_json_get_text(wrong, "context"), "wrong_object") != 0 ||
            cgam_json_get_real(wrong, "lambda") != cgam_json_get_real(curve, "lambda"))
            continue;
        cgam_claim_tell(claim,
                        "%+.2f with right and %+.2f with wrong ones at λ = %g, layer %d "
                        "(z = %.1f)",
                        cgam_json_nth(curve, "log_p_gain", at),
                        cgam_json_nth(wrong, "log_p_gain", at), cgam_json_get_real(curve, "lambda"),
                        (int)at, z_at(wrong, "behind_right", at));
        return z_at(wrong, "behind_right", at) > cgam_claim_limit(1) ? YES : NO;
    }
    return SILENT;
}

/* ---- (iv) Probe -------------------------------------------------------------------------- */
/* The first layer with 90% of a measure's rise from layer 0 to its top. */
static int64_t risen(const json_t *curve, const char *measure, int64_t layers)
{
    double from = cgam_json_nth(curve, measure, 0);
    int64_t top = top_layer(curve, measure, layers), l = 0;
    double to = cgam_json_nth(curve, measure, top);
    while (l < top && cgam_json_nth(curve, measure, l) < from + 0.9 * (to - from)) l++;
    return l;
}

static outcome separates_early(const question *q, cgam_claim *claim)
{
    const json_t *curve = cgam_models_most_shots(q->study, "probe.curves");
    int64_t layers = cgam_models_layers(cgam_json_at(q->study, "probe"));
    if (!curve || layers < 2) return SILENT;
    int64_t top = top_layer(curve, "separability", layers);
    int64_t early = top_layer(curve, "separability", (layers - 1) / 2 + 1);
    double best = cgam_json_nth(curve, "separability", top);
    double then = cgam_json_nth(curve, "separability", early);
    double se = hypot(cgam_json_nth(curve, "separability_se", top),
                      cgam_json_nth(curve, "separability_se", early));
    cgam_claim_tell(claim, "best %.3f after layer %d, in the first half %.3f after layer %d", best,
                    (int)top, then, (int)early);
    return best - then <= cgam_claim_limit(1) * se ? YES : NO;
}

static outcome aligns_late(const question *q, cgam_claim *claim)
{
    const json_t *curve = cgam_models_most_shots(q->study, "probe.curves");
    int64_t layers = cgam_models_layers(cgam_json_at(q->study, "probe")), good = 0, tests = 0;
    double n = sqrt((double)cgam_json_get_int(q->study, "probe.queries"));
    if (!curve || layers < 3) return SILENT;
    int64_t top = top_layer(curve, "margin", layers), end = 2 * (layers - 1) / 3;
    double best = cgam_json_nth(curve, "margin", top);
    double best_se = cgam_json_nth(curve, "margin_sd", top) / n;
    double z = cgam_claim_limit((double)end + 1);
    for (int64_t l = 0; l <= end; l++, tests++)
        good += best / 2 - cgam_json_nth(curve, "margin", l) >
                z * hypot(best_se / 2, cgam_json_nth(curve, "margin_sd", l) / n);
    cgam_claim_tell(claim, "best margin %.4f after layer %d, %d of %d layers below half of it",
                    best, (int)top, (int)good, (int)tests);
    return good == tests ? YES : NO;
}

static outcome separates_first(const question *q, cgam_claim *claim)
{
    const json_t *curve = cgam_models_most_shots(q->study, "probe.curves");
    double n = sqrt((double)cgam_json_get_int(q->study, "probe.queries"));
    int64_t layers = cgam_models_layers(cgam_json_at(q->study, "probe"));
    if (!curve || layers < 3) return SILENT;
    int64_t early = risen(curve, "separability", layers), late = risen(curve, "margin", layers);
    int64_t top = top_layer(curve, "margin", layers);
    double from = cgam_json_nth(curve, "margin", 0), to = cgam_json_nth(curve, "margin", top);
    double left = from + 0.9 * (to - from) - cgam_json_nth(curve, "margin", early);
    double se = hypot(0.9 * cgam_json_nth(curve, "margin_sd", top),
                      cgam_json_nth(curve, "margin_sd", early)) /
                n;
    cgam_claim_tell(claim, "separability after layer %d, alignment after layer %d", (int)early,
                    (int)late);
    return left > cgam_claim_limit(1) * se ? YES : NO;
}

/* ---- The list ---------------------------------------------------------------------------- */
static const claim_row list[] = {
    {"n-eff-collapses", .by = collapses},
    {"n-eff-collapses-late", .by = collapses_late},
    {"n-eff-collapses-onto-labels", .by = onto_labels},
    {"more-shots-collapse-more", .by = shots_collapse},
    {"retrieval-reaches-icl-over-labels", .by = reaches_icl,
     .of = {"best.restricted.right", {{"icl.restricted_right", NULL}}}},
    {"retrieval-reaches-icl-over-words", .by = reaches_icl,
     .of = {"best.full.right", {{"icl.full_right", NULL}}}},
    {"retrieval-beats-baselines-over-labels", .by = beats,
     .of = {"best.restricted.right",
            {{"zero_shot.restricted_right", "zero-shot"},
             {"controls.centred.held_out_right", "centred"},
             {"controls.label_mean.restricted.right", "label rows"},
             {"controls.flipped.restricted.right", "flipped"},
             {"controls.other_task.restricted.right", "another task"}}}},
    {"retrieval-beats-baselines-over-words", .by = beats,
     .of = {"best.full.right",
            {{"zero_shot.full_right", "zero-shot"},
             {"controls.label_mean.full.right", "label rows"},
             {"controls.flipped.full.right", "flipped"},
             {"controls.other_task.full.right", "another task"}}}},
    {"more-shots-retrieve-better", .by = shots_help},
    {"late-contexts-suffice", .by = beats,
     .of = {"late.full.right", {{"zero_shot.full_right", "zero-shot"}}}},
    {"late-contexts-are-needed", .by = beats,
     .of = {"late.full.right", {{"early.full.right", "earlier layers"}}}},
    {"right-facts-sharpen", .by = steers_up, .facts = true},
    {"wrong-objects-shift-away", .by = steers_down, .of = {.own = "wrong_object"}, .facts = true},
    {"objects-of-another-relation-shift-away", .by = steers_down, .of = {.own = "other_relation"},
     .facts = true},
    {"right-facts-beat-wrong-objects", .by = right_beats_wrong, .facts = true},
    {"an-edit-beats-none", .by = injects, .of = {"best.right", {{"zero_shot_right", "zero-shot"}}}},
    {"an-edit-beats-the-readout", .by = injects,
     .of = {"best.right", {{"readout_right", "readout"}}}},
    {"an-edit-beats-random-vectors", .by = injects,
     .of = {"best.right",
            {{"controls.random_right", "random"}, {"controls.other_task_right", "another task"}}}},
    {"an-edit-beats-flipped-demonstrations", .by = injects,
     .of = {"best.right", {{"controls.flipped_right", "flipped"}}}},
    {"replacing-beats-adding", .by = injects,
     .of = {"by_kind.replace.right", {{"by_kind.add.right", "add"}}}},
    {"a-learned-p-beats-random", .by = fits,
     .of = {"held_out.full_right",
            {{"identity.full_right", "P = I"}, {"random.full_right", "random P"}}}},
    {"a-learned-p-carries-the-query", .by = fits,
     .of = {"held_out.full_right", {{"mean.full_right", "mean"}}}},
    {"a-learned-p-reaches-icl", .by = fit_reaches_icl,
     .of = {"held_out.full_right", {{"icl.full_right", NULL}}}},
    {"a-learned-p-beats-demonstrations", .by = fits,
     .of = {"held_out.full_right", {{"icl.full_right", "demonstrations"}}}},
    {"a-learned-p-serves-new-tasks", .by = fits,
     .of = {"left_out.full_right",
            {{"zero_shot.full_right", "no context"}, {"identity.full_right", "P = I"}}}},
    {"low-rank-beats-ridge", .by = fits,
     .of = {"held_out.full_right", {{"ridge.full_right", "ridge"}}}},
    {"separability-peaks-early", .by = separates_early},
    {"alignment-sharpens-late", .by = aligns_late},
    {"separability-before-alignment", .by = separates_first},
};

enum { OWN = sizeof list / sizeof *list };

static void append(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? ", " : "", word);
}

void cgam_models_claims(const cgam_models *models, cgam_claims *out)
{
    bool facts = false;
    out->count = 0;
    for (int i = 0; i < models->count; i++) facts = facts || cgam_models_facts(&models->study[i]);
    for (size_t k = 0; k < OWN + CGAM_GATES_CLAIMS; k++) {
        const claim_row *row = k < OWN ? &list[k] : &cgam_gates_claims[k - OWN];
        cgam_claim *claim = cgam_claim_add(out, row->key);
        int heard = 0, good = 0;
        int64_t most = 0; /* queries of a study */
        char on[sizeof claim->under] = "";
        for (int i = 0; i < models->count; i++) {
            const cgam_models_study *s = &models->study[i];
            size_t before = strlen(claim->numbers);
            if (!s->doc || (row->facts && facts && !cgam_models_facts(s))) continue;
            /* sets of classes steer the shipped facts, all of them the same */
            bool shipped = row->facts && !cgam_models_facts(s);
            if (shipped && heard > 0) break;
            const char *name = shipped ? cgam_json_get_text(s->doc, "steer.dataset") : s->name;
            cgam_claim_tell(claim, "%s: ", name);
            outcome result = row->by(&(question){s->doc, &row->of}, claim);
            if (result == SILENT) {
                claim->numbers[before] = '\0';
                continue;
            }
            cgam_claim_tell(claim, "%s; ", result == YES ? "" : ": no");
            heard++;
            int64_t queries = cgam_models_queries(s);
            most = queries > most ? queries : most;
            if (result == YES) good++, append(on, sizeof on, name);
        }
        if (heard == 0) out->count--; /* no study can decide */
        claim->verdict = good == heard        ? CGAM_HOLDS
                         : good > 0           ? CGAM_HOLDS_UNDER
                         : most < QUERIES_MIN ? CGAM_NOT_DECIDED
                                              : CGAM_DOES_NOT_HOLD;
        if (claim->verdict == CGAM_HOLDS_UNDER)
            snprintf(claim->under, sizeof claim->under, "%s", on);
        claim->on = true;
    }
    cgam_claims_tidy(out);
}
