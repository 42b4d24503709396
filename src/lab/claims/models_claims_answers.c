/* models_claims_answers.c: claims about answers: retrieval by query plus context, vectors inside the model, a learned
 * P. All compare the answers to the same queries. */
#include "lab/claims/models.h"
#include "lab/claims/models_claims.h"

#include <math.h>
#include <string.h>

/* ---- Answers ----------------------------------------------------------------------------- */
/* The entry of a draw in which a path is to be found. */
static const json_t *entry_of(const question *q, int draw, const char *path)
{
    const json_t *list = cgam_json_at(q->draw[draw], q->of->list);
    if (!json_is_array(list)) return list;
    return *path == '<' ? cgam_models_least_shots(q->draw[draw], q->of->list)
                        : cgam_models_most_shots(q->draw[draw], q->of->list);
}

/* right[d] of every draw. */
static void read_answers(const question *q, const char *path, const char **right)
{
    for (int d = 0; d < q->draws; d++)
        right[d] = cgam_json_get_text(entry_of(q, d, path), path + (*path == '<'));
}

static double mean_share(const question *q, const char *const *right)
{
    double sum = 0;
    for (int d = 0; d < q->draws; d++) sum += cgam_models_share(right[d]);
    return sum / q->draws;
}

outcome cgam_models_above(const question *q, const char *const *a, const char *const *b,
                          double tests)
{
    evidence e = cgam_evidence_of(q);
    for (int d = 0; d < q->draws; d++)
        cgam_evidence_answers(&e, 2, (const char *[]){a[d], b[d]}, (double[]){1, -1});
    return cgam_evidence_judge(&e, tests);
}

/* Does x gain significantly more than `share` of what demonstrations gain over none? Where demonstrations are
 * not significantly better than none, there is no gain to have a share of, and nothing is decided. */
static outcome gains_share(const question *q, const char *const *x, const char *const *zero,
                           const char *const *icl, double share)
{
    evidence e = cgam_evidence_of(q);
    outcome gain = cgam_models_above(q, icl, zero, 1);
    if (gain == SILENT) return SILENT;
    for (int d = 0; d < q->draws; d++)
        cgam_evidence_answers(&e, 3, (const char *[]){x[d], zero[d], icl[d]},
                              (double[]){1, share - 1, -share});
    outcome result = cgam_evidence_judge(&e, 1);
    return gain == SHOWN || result == SILENT ? result : OPEN;
}

static void tell_share(cgam_claim *claim, const char *name, double share, outcome beaten)
{
    cgam_claim_tell(claim, "%s %.3f%s", name, share,
                    beaten == SHOWN     ? ""
                    : beaten == REFUTED ? " (better)"
                                        : " (not beaten)");
}

/* Is the claim's own better than every rival, and, where a share is claimed, has it most of what demonstrations
 * gain? All must be shown, so no level is shared. */
static outcome beats(const question *q, cgam_claim *claim)
{
    const subject *of = q->of;
    const char *own[CGAM_DRAWS_MAX] = {NULL}, *other[CGAM_DRAWS_MAX], *icl[CGAM_DRAWS_MAX];
    read_answers(q, q->null ? q->null->path : of->own, own);
    if (!own[0] || !*own[0]) return SILENT;
    outcome result = SHOWN;
    cgam_claim_tell(claim, "%.3f", mean_share(q, own));
    if (of->icl) {
        read_answers(q, of->icl, icl);
        read_answers(q, of->zero, other);
        result = gains_share(q, own, other, icl, 0.75);
        cgam_claim_tell(claim, " of %.3f", mean_share(q, icl));
    }
    for (int i = 0; of->against[i].name && result != SILENT; i++) {
        const rival *r = &of->against[i];
        read_answers(q, r == q->null ? of->own : r->path, other);
        outcome beaten = cgam_models_above(q, own, other, 1);
        cgam_claim_tell(claim, "%s", i ? ", " : " against ");
        tell_share(claim, r == q->null ? "the claim's own" : r->name, mean_share(q, other), beaten);
        result = cgam_outcome_both(result, beaten);
    }
    return result;
}

/* Is the claim's own better than its base, and by more than its nulls are better than theirs? */
static outcome gains_more(const question *q, cgam_claim *claim)
{
    const subject *of = q->of;
    const char *x[4][CGAM_DRAWS_MAX] = {{NULL}}; /* own, base, a null, its base */
    if (entry_of(q, 0, of->own) == entry_of(q, 0, of->base) && *of->base == '<') return SILENT;
    read_answers(q, q->null ? q->null->path : of->own, x[0]);
    read_answers(q, q->null ? q->null->base : of->base, x[1]);
    if (!x[0][0] || !x[1][0] || !*x[0][0] || !*x[1][0]) return SILENT;
    cgam_claim_tell(claim, "%.3f after %.3f", mean_share(q, x[0]), mean_share(q, x[1]));
    outcome result = cgam_models_above(q, x[0], x[1], 1);
    for (int i = 0; of->against[i].name && result != SILENT; i++) {
        const rival *r = &of->against[i];
        evidence e = cgam_evidence_of(q);
        read_answers(q, r == q->null ? of->own : r->path, x[2]);
        read_answers(q, r == q->null ? of->base : r->base, x[3]);
        for (int d = 0; d < q->draws; d++)
            cgam_evidence_answers(&e, 4, (const char *[]){x[0][d], x[1][d], x[2][d], x[3][d]},
                                  (double[]){1, -1, -1, 1});
        cgam_claim_tell(claim, ", %s %.3f after %.3f", r == q->null ? "the claim's own" : r->name,
                        mean_share(q, x[2]), mean_share(q, x[3]));
        result = cgam_outcome_both(result, cgam_evidence_judge(&e, 1));
    }
    return result;
}

/* The same of vectors inside the model, with where they are. */
static outcome injects(const question *q, cgam_claim *claim)
{
    const json_t *entry = cgam_models_most_shots(q->draw[0], q->of->list);
    outcome result = beats(q, claim);
    if (result != SILENT)
        cgam_claim_tell(claim, " (%s, layer %d)", cgam_json_get_text(entry, "best.kind"),
                        (int)cgam_json_get_int(entry, "best.layer"));
    return result;
}

/* And of a learned P; a fit of one task, or without low rank, has no rival to some. */
static outcome fits(const question *q, cgam_claim *claim)
{
    const json_t *fit = cgam_json_at(q->draw[0], "fit");
    for (int i = 0; q->of->against[i].name; i++)
        if (!*cgam_json_get_text(fit, q->of->against[i].path)) return SILENT;
    outcome result = beats(q, claim);
    if (result != SILENT)
        cgam_claim_tell(claim, " (%s, %s after layer %d)", cgam_json_get_text(fit, "method"),
                        cgam_json_get_text(fit, "from"), (int)cgam_json_get_int(fit, "layer"));
    return result;
}

/* ---- The list ---------------------------------------------------------------------------- */
#define CONTEXTS(over)                                                                             \
    {"controls.label_mean." over ".right", "label rows", true, NULL},                              \
        {"controls.flipped." over ".right", "flipped", true, NULL},                                \
        {"controls.other_task." over ".right", "another task", true, NULL},                        \
    {                                                                                              \
        "controls.random." over ".right", "random", true, NULL                                     \
    }

static const claim_row list[] = {
    {"retrieval-reaches-icl-over-labels", .by = beats,
     .of = {.list = "sweep.shots",
            .own = "best.restricted.right",
            .zero = "zero_shot.restricted_right",
            .icl = "icl.restricted_right",
            .against = {{"zero_shot.restricted_right", "zero-shot", true, NULL},
                        CONTEXTS("restricted"),
                        {"controls.centred.held_out_right", "centred", true, NULL},
                        {"controls.centred_norm.held_out_right", "centred after the norm", true,
                         NULL}}}},
    {"retrieval-reaches-icl-over-words", .by = beats,
     .of = {.list = "sweep.shots",
            .own = "best.full.right",
            .zero = "zero_shot.full_right",
            .icl = "icl.full_right",
            .against = {{"zero_shot.full_right", "zero-shot", true, NULL}, CONTEXTS("full")}}},
    {"retrieval-beats-baselines-over-labels", .by = beats,
     .of = {.list = "sweep.shots",
            .own = "best.restricted.right",
            .against = {{"zero_shot.restricted_right", "zero-shot", true, NULL},
                        CONTEXTS("restricted"),
                        {"controls.centred.held_out_right", "centred", true, NULL},
                        {"controls.centred_norm.held_out_right", "centred after the norm", true,
                         NULL}}}},
    {"retrieval-beats-baselines-over-words", .by = beats,
     .of = {.list = "sweep.shots",
            .own = "best.full.right",
            .against = {{"zero_shot.full_right", "zero-shot", true, NULL}, CONTEXTS("full")}}},
    {"more-shots-retrieve-better", .by = gains_more,
     .of = {.list = "sweep.shots",
            .own = "best.full.right",
            .base = "<best.full.right",
            .against =
                {{"controls.flipped.full.right", "flipped", true, "<controls.flipped.full.right"},
                 {"controls.random.full.right", "random", true, "<controls.random.full.right"}}}},
    {"late-contexts-suffice", .by = beats,
     .of = {.list = "sweep.shots",
            .own = "late.full.right",
            .zero = "zero_shot.full_right",
            .icl = "best.full.right",
            .against = {{"zero_shot.full_right", "zero-shot", true, NULL},
                        {"controls.flipped.late.full.right", "flipped", true, NULL},
                        {"controls.label_mean.full.right", "label rows", true, NULL},
                        {"controls.random.late.full.right", "random", true, NULL}}}},
    {"late-contexts-are-needed", .by = gains_more,
     .of = {.list = "sweep.shots",
            .own = "late.full.right",
            .base = "early.full.right",
            .against = {{"controls.flipped.late.full.right", "flipped", true,
                         "controls.flipped.early.full.right"},
                        {"controls.random.late.full.right", "random", true,
                         "controls.random.early.full.right"}}}},
    {"an-edit-beats-its-controls", .by = injects,
     .of = {.list = "inject.shots",
            .own = "best.right",
            .against = {{"zero_shot_right", "zero-shot", true, NULL},
                        {"controls.own.random.right", "random", true, NULL},
                        {"controls.own.other_task.right", "another task", true, NULL},
                        {"controls.own.label_rows.right", "label rows", true, NULL},
                        {"controls.own.flipped.right", "flipped", true, NULL}}}},
    {"an-edit-beats-the-readout", .by = injects,
     .of = {.list = "inject.shots",
            .own = "best.right",
            .against = {{"readout_right", "readout", false, NULL},
                        {"controls.own.random.right", "random", true, NULL},
                        {"controls.own.flipped.right", "flipped", true, NULL}}}},
    {"replacing-beats-adding", .by = injects,
     .of = {.list = "inject.shots",
            .own = "by_kind.replace.right",
            .against = {{"by_kind.add.right", "add", false, NULL},
                        {"controls.own.random.replace.right", "random", true, NULL},
                        {"controls.own.flipped.replace.right", "flipped", true, NULL}}}},
    {"a-learned-p-carries-the-query", .by = fits,
     .of = {.list = "fit",
            .own = "held_out.full_right",
            .against = {{"mean.full_right", "the task's mean", true, NULL},
                        {"identity.full_right", "P = I", true, NULL},
                        {"random.full_right", "random P", true, NULL}}}},
    {"a-learned-p-reaches-icl", .by = fits,
     .of = {.list = "fit",
            .own = "held_out.full_right",
            .zero = "zero_shot.full_right",
            .icl = "icl.full_right",
            .against = {{"zero_shot.full_right", "zero-shot", true, NULL},
                        {"mean.full_right", "the task's mean", true, NULL},
                        {"random.full_right", "random P", true, NULL}}}},
    {"a-learned-p-beats-demonstrations", .by = fits,
     .of = {.list = "fit",
            .own = "held_out.full_right",
            .against = {{"icl.full_right", "demonstrations", false, NULL},
                        {"mean.full_right", "the task's mean", true, NULL},
                        {"random.full_right", "random P", true, NULL}}}},
    {"a-learned-p-serves-new-tasks", .by = fits,
     .of = {.list = "fit",
            .own = "left_out.full_right",
            .against = {{"zero_shot.full_right", "no context", true, NULL},
                        {"identity.full_right", "P = I", true, NULL},
                        {"random.full_right", "random P", true, NULL}}}},
    {"low-rank-beats-ridge", .by = fits,
     .of = {.list = "fit",
            .own = "held_out.full_right",
            .against = {{"ridge.full_right", "ridge", false, NULL},
                        {"mean.full_right", "the task's mean", true, NULL},
                        {"random.full_right", "random P", true, NULL}}}},
};

const claim_rows cgam_answer_rows = {list, sizeof list / sizeof *list};
