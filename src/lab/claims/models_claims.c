/* models_claims.c: what the paper says about language models, decided on the studies' own data, and on their nulls.
 *
 * A claim is tested on every study that can speak to it, at 1%. It holds on a study where its test passes with 50
 * queries or more and none of its nulls, put in place of what the claim is about, passes too. It does not hold
 * on a study that shows the opposite; otherwise it is not decided there. It holds where it does on all studies, "on" those
 * where it does, and does not hold where it holds on none and some show the opposite. */
#include "lab/claims/models_claims.h"
#include "lab/claims/models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double cgam_models_share(const char *right)
{
    double n = 0, sum = 0;
    for (; right && *right; right++, n++) sum += *right == '1';
    return n > 0 ? sum / n : (double)NAN;
}

const json_t *cgam_models_most_shots(const json_t *study, const char *path)
{
    const json_t *list = cgam_json_at(study, path);
    return json_array_get(list, json_array_size(list) - 1);
}

const json_t *cgam_models_least_shots(const json_t *study, const char *path)
{
    const json_t *list = cgam_json_at(study, path);
    size_t i = 0;
    while (i + 1 < json_array_size(list) && cgam_json_get_int(json_array_get(list, i), "k") == 0)
        i++;
    return json_array_get(list, i);
}

/* ---- One study --------------------------------------------------------------------------- */
/* The draws of a study: those it lists, or itself; and whether its demonstrations are shared. */
static question ask(const cgam_models_study *s, const subject *of)
{
    question q = {.of = of};
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(s->doc, "draws"), i, one) if (q.draws < CGAM_DRAWS_MAX)
        q.draw[q.draws++] = one;
    if (q.draws == 0) q.draw[q.draws++] = s->doc;
    for (int part = 0; part < CGAM_LM_EXPERIMENTS; part++) {
        char path[40];
        snprintf(path, sizeof path, "%s.demos", cgam_lm_part_name((cgam_lm_part)part));
        q.shared = q.shared || strcmp(cgam_json_get_text(q.draw[0], path), "shared") == 0;
    }
    return q;
}

/* Single experiments beside a study are in its document, not in its draws. */
static outcome decide(const claim_row *row, const cgam_models_study *s, question *q,
                      cgam_claim *claim)
{
    outcome result = row->by(q, claim);
    if (result != SILENT || q->draw[0] == s->doc) return result;
    question alone = *q;
    alone.draws = 1;
    alone.draw[0] = s->doc;
    result = row->by(&alone, claim);
    if (result != SILENT) *q = alone;
    return result;
}

static void append(char *text, size_t size, const char *between, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? between : "", word);
}

/* Where each null passes, study by study. */
typedef struct null_record {
    char on[CGAM_RIVALS][120];
    bool ran[CGAM_RIVALS];
} null_record;

/* Runs the test on every null; does any pass? */
static bool try_nulls(const claim_row *row, question q, const char *name, null_record *out)
{
    bool passes = false;
    for (int i = 0; row->of.against[i].name; i++) {
        cgam_claim unheard = {.verdict = CGAM_HOLDS};
        if (!row->of.against[i].null) continue;
        q.null = &row->of.against[i];
        outcome result = row->by(&q, &unheard);
        out->ran[i] = out->ran[i] || result != SILENT;
        if (result != SHOWN) continue;
        append(out->on[i], sizeof out->on[i], ", ", name);
        passes = true;
    }
    return passes;
}

/* "zero-shot, flipped: does not hold; label rows: holds on a" */
static void tell_nulls(const claim_row *row, const null_record *nulls, cgam_claim *claim)
{
    char none[CGAM_CLAIM_LINE] = "", one[160];
    for (int i = 0; row->of.against[i].name; i++)
        if (nulls->ran[i] && !*nulls->on[i])
            append(none, sizeof none, ", ", row->of.against[i].name);
    if (*none) snprintf(claim->null, sizeof claim->null, "%.300s: does not hold", none);
    for (int i = 0; row->of.against[i].name; i++) {
        if (!*nulls->on[i]) continue;
        snprintf(one, sizeof one, "%s: holds on %s", row->of.against[i].name, nulls->on[i]);
        append(claim->null, sizeof claim->null, "; ", one);
    }
}

/* ---- All studies ------------------------------------------------------------------------- */
typedef struct hearing {
    int heard, good, refuted;
    char on[160], not_on[160];
} hearing;

/* One study's word on a claim. */
static void hear(const claim_row *row, const cgam_models_study *s, const char *name,
                 cgam_claim *claim, hearing *h, null_record *nulls)
{
    size_t before = strlen(claim->numbers);
    question q = ask(s, &row->of);
    cgam_claim_tell(claim, "%s: ", name);
    outcome result = decide(row, s, &q, claim);
    if (result == SILENT) {
        claim->numbers[before] = '\0';
        return;
    }
    bool fooled = try_nulls(row, q, name, nulls);
    h->heard++;
    if (result == SHOWN && fooled) {
        result = OPEN;
        cgam_claim_tell(claim, ": not decided, a null passes; ");
    } else {
        cgam_claim_tell(claim, "%s%s; ",
                        result == SHOWN     ? ""
                        : result == REFUTED ? ": no"
                                            : ": not decided",
                        result == OPEN && q.shared && q.draws == 1
                            ? " (one draw of shared demonstrations)"
                            : "");
    }
    h->good += result == SHOWN;
    h->refuted += result == REFUTED;
    if (result == SHOWN) append(h->on, sizeof h->on, ", ", name);
    if (result == REFUTED) append(h->not_on, sizeof h->not_on, ", ", name);
}

static void decide_row(const claim_row *row, const cgam_models *models, bool facts,
                       cgam_claims *out)
{
    cgam_claim *claim = cgam_claim_add(out, row->key);
    hearing h = {0};
    null_record nulls = {0};
    for (int i = 0; i < models->count; i++) {
        const cgam_models_study *s = &models->study[i];
        if (!s->doc || (row->facts && facts && !cgam_models_facts(s))) continue;
        /* sets of classes steer the shipped facts, all of them the same */
        bool shipped = row->facts && !cgam_models_facts(s);
        if (shipped && h.heard > 0) break;
        hear(row, s, shipped ? cgam_json_get_text(s->doc, "steer.dataset") : s->name, claim, &h,
             &nulls);
    }
    if (h.heard == 0) out->count--; /* no study can decide */
    tell_nulls(row, &nulls, claim);
    claim->on = true;
    claim->verdict = h.heard > 0 && h.good == h.heard ? CGAM_HOLDS
                     : h.good > 0                     ? CGAM_HOLDS_UNDER
                     : h.refuted > 0                  ? CGAM_DOES_NOT_HOLD
                                                      : CGAM_NOT_DECIDED;
    if (claim->verdict == CGAM_HOLDS_UNDER) snprintf(claim->under, sizeof claim->under, "%s", h.on);
    if (claim->verdict == CGAM_DOES_NOT_HOLD && h.refuted < h.heard)
        snprintf(claim->under, sizeof claim->under, "%s", h.not_on);
}

void cgam_models_claims(const cgam_models *models, cgam_claims *out)
{
    static const claim_rows *const all[] = {&cgam_curve_rows, &cgam_answer_rows, &cgam_steer_rows,
                                            &cgam_probe_rows, &cgam_gates_rows};
    bool facts = false;
    out->count = 0;
    for (int i = 0; i < models->count; i++) facts = facts || cgam_models_facts(&models->study[i]);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int i = 0; i < all[k]->count; i++) decide_row(&all[k]->row[i], models, facts, out);
    cgam_claims_tidy(out);
}
