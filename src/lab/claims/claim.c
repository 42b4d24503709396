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
    *claim = (cgam_claim){.verdict = CGAM_HOLDS};
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

void cgam_claim_decide(cgam_claim *claim, int64_t trials, int readings,
                       const cgam_outcome *outcomes, const char *const *names)
{
    int shown = 0, open = 0;
    for (int i = 0; i < readings; i++) {
        shown += outcomes[i] == CGAM_SHOWN;
        open += outcomes[i] == CGAM_OPEN;
    }
    claim->verdict = trials < CGAM_CLAIM_TRIALS ? CGAM_NOT_DECIDED
                     : shown == readings        ? CGAM_HOLDS
                     : shown > 0                ? CGAM_HOLDS_UNDER
                     : open > 0                 ? CGAM_NOT_DECIDED
                                                : CGAM_DOES_NOT_HOLD;
    if (claim->verdict != CGAM_HOLDS_UNDER) return;
    for (int i = 0; i < readings; i++) {
        size_t used = strlen(claim->under);
        if (outcomes[i] == CGAM_SHOWN)
            snprintf(claim->under + used, sizeof claim->under - used, "%s%s",
                     used ? ", and under " : "", names[i]);
    }
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
    switch (claim->verdict) {
    case CGAM_HOLDS: snprintf(text, 200, "holds"); break;
    case CGAM_HOLDS_UNDER:
        snprintf(text, 200, "holds %s %s", claim->on ? "on" : "under", claim->under);
        break;
    case CGAM_DOES_NOT_HOLD:
        snprintf(text, 200, "does not hold%s%s", claim->under[0] ? " on " : "", claim->under);
        break;
    case CGAM_NOT_DECIDED: snprintf(text, 200, "not decided by this run"); break;
    }
    return text;
}
