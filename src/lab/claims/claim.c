/* claim.c: one row of the claims table, from outcomes of tests to a verdict. */
#include "lab/claims/claims.h"
#include "lab/template.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

double cgam_claim_limit(double tests)
{
    double low = 0, high = 40, chance = CGAM_CLAIM_LEVEL / tests;
    while (high - low > 1e-9) {
        double z = 0.5 * (low + high);
        if (0.5 * erfc(z / sqrt(2)) > chance) low = z;
        else high = z;
    }
    return high;
}

cgam_outcome cgam_claim_above(double x, double se, double z)
{
    if (!(se >= 0) || isnan(x)) return CGAM_OPEN;
    return x > z * se ? CGAM_SHOWN : x < -z * se ? CGAM_REFUTED : CGAM_OPEN;
}

cgam_claim *cgam_claim_add(cgam_claims *c, const char *key)
{
    cgam_claim *claim = &c->claim[c->count < CGAM_CLAIMS_MAX ? c->count++ : c->count - 1];
    *claim = (cgam_claim){.verdict = CGAM_HOLDS, .printed = -1};
    char *const lines[] = {claim->where, claim->says, claim->test};
    const char *text = cgam_template_section("claims/claims.txt", key);
    for (int i = 0; i < 3; i++) {
        int length = (int)strcspn(text, "\n");
        assert(length < CGAM_CLAIM_LINE);
        snprintf(lines[i], CGAM_CLAIM_LINE, "%.*s", length, text);
        text += length + 1;
    }
    return claim;
}

void cgam_claim_tell(cgam_claim *claim, const char *format, ...)
{
    size_t used = strlen(claim->numbers);
    va_list args;
    va_start(args, format);
    vsnprintf(claim->numbers + used, sizeof claim->numbers - used, format, args);
    va_end(args);
}

void cgam_claim_brief(cgam_claim *claim, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(claim->brief[claim->reading], sizeof *claim->brief, format, args);
    va_end(args);
}

/* Appends a reading to a list of them; brief may be empty. */
static void append(char text[200], const char *between, const char *name, const char *brief)
{
    size_t used = strlen(text);
    snprintf(text + used, 200 - used, "%s%s%s%s%s", used ? between : "", name, *brief ? " (" : "",
             brief, *brief ? ")" : "");
}

void cgam_claim_decide(cgam_claim *claim, int64_t trials, int readings,
                       const cgam_outcome *outcomes, const char *const *names)
{
    const int printed = claim->printed;
    int shown = 0, open = 0;
    for (int i = 0; i < readings; i++) {
        shown += outcomes[i] == CGAM_SHOWN;
        open += outcomes[i] == CGAM_OPEN;
    }
    claim->unshown_all = trials >= CGAM_CLAIM_TRIALS;
    claim->verdict = trials < CGAM_CLAIM_TRIALS ? CGAM_NOT_DECIDED
                     : shown == readings        ? CGAM_HOLDS
                     : shown > 0                ? CGAM_HOLDS_UNDER
                     : open > 0                 ? CGAM_NOT_DECIDED
                                                : CGAM_DOES_NOT_HOLD;
    if (claim->verdict != CGAM_HOLDS_UNDER) return;
    for (int i = 0; i < readings; i++)
        if (outcomes[i] == CGAM_SHOWN) append(claim->under, ", and with ", names[i], "");
        else if (outcomes[i] == CGAM_REFUTED && i != printed)
            append(claim->without, ", nor with ", names[i], claim->brief[i]);
    claim->unprinted = printed >= 0 && outcomes[printed] == CGAM_REFUTED;
    claim->unshown = printed >= 0 && outcomes[printed] == CGAM_OPEN;
}

void cgam_claims_tidy(cgam_claims *out)
{
    for (int i = 0; i < out->count; i++) { /* a list of clauses ends without its separator */
        size_t length = strlen(out->claim[i].numbers);
        if (length > 1 && strcmp(out->claim[i].numbers + length - 2, "; ") == 0)
            out->claim[i].numbers[length - 2] = '\0';
    }
}

const char *cgam_verdict_text(const cgam_claim *claim, char *text)
{
    enum { size = CGAM_VERDICT_TEXT };
    const char *brief = claim->unprinted ? claim->brief[claim->printed] : "";
    switch (claim->verdict) {
    case CGAM_HOLDS: snprintf(text, size, "holds"); break;
    case CGAM_HOLDS_UNDER:
        snprintf(text, size, "%s%s%s%s%sholds %s %s%s%s",
                 claim->unprinted ? "not as printed"
                 : claim->unshown ? "not shown as printed"
                                  : "",
                 *brief ? " (" : "", brief, *brief ? ")" : "",
                 claim->unprinted || claim->unshown ? "; " : "", claim->on ? "on" : "with",
                 claim->under, *claim->without ? "; not with " : "", claim->without);
        break;
    case CGAM_DOES_NOT_HOLD:
        snprintf(text, size, "does not hold%s%s", claim->under[0] ? " on " : "", claim->under);
        break;
    case CGAM_NOT_DECIDED:
        snprintf(text, size, "%s",
                 claim->unshown_all ? "not decided: not shown" : "not decided by this run");
        break;
    }
    return text;
}
