/* claims_theorems.c: every theorem, decided by the cases of the study that checks them. */
#include "lab/claims/claims.h"
#include "lab/table.h"

#include <string.h>

void cgam_claims_theorems(const cgam_study *const *runs, cgam_claims *c, cgam_outcome apart)
{
    static const char *const separation[] = {"separation bound", "separation threshold",
                                             "gap of a sum", NULL};
    static const char *const below[] = {"spectral response", "largest amplification",
                                        "amplification attained", "critical penalty", NULL};
    static const char *const above[] = {"winner takes all", "horizon", "no winner in the range",
                                        "transient composes", NULL};
    static const char *const hopfield[] = {"hopfield energy", "hopfield one step",
                                           "hopfield retrieval", NULL};
    static const char *const self[] = {"self-consistent recall", "contraction", "uniqueness",
                                       "local contraction",      "error bound", NULL};
    static const char *const lambda[] = {"coupled threshold", NULL};
    static const char *const lemma[] = {"softmax jacobian", NULL};
    static const char *const energy[] = {"energy of the iteration", "energy gradient",
                                         "energy along flows", NULL};
    static const struct {
        const char *key;
        const char *const *checks;
        const char *under; /* the condition of the checks, for a statement made without it */
    } list[] = {
        {"a-gap-guarantees-separation", separation, NULL},
        {"larger-gaps-smaller-errors", hopfield, NULL},
        {"gates-below-critical", below, NULL},
        {"one-memory-takes-all", above, "an input that excites the lowest modes, P_min w ≠ 0"},
        {"fixed-points-are-unique", self, NULL},
        {"the-uniform-state-turns-unstable", lambda, "balanced banks, G1 = μ_G 1"},
        {"the-softmax-jacobian-is-bounded", lemma, NULL},
        {"energy-never-rises", energy, NULL},
    };
    const cgam_table *t = cgam_study_find(runs[CGAM_RUN_THEOREMS], "checks");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        cgam_claim *claim = cgam_claim_add(c, list[i].key);
        double cases = 0, violations = 0, without = 0;
        for (int k = 0; list[i].checks[k]; k++)
            for (int64_t row = 0; row < t->rows; row++)
                if (strcmp(t->labels[row], list[i].checks[k]) == 0) {
                    cases += cgam_cell(t, row, "cases");
                    violations += cgam_cell(t, row, "violations");
                    if (strcmp(t->labels[row], "no winner in the range") == 0)
                        without = cgam_cell(t, row, "cases");
                }
        cgam_claim_tell(claim, "%.0f cases, %.0f violations; ", cases, violations);
        cgam_outcome fine = cases > 0 ? cgam_claim_if(violations == 0) : CGAM_OPEN;
        /* is it false without the condition? then there are cases that show it */
        bool needed = list[i].checks == lambda ? apart == CGAM_SHOWN : without > 0;
        cgam_outcome readings[] = {fine, list[i].under && needed ? CGAM_REFUTED : fine};
        const char *const names[] = {list[i].under, "every input and bank"};
        claim->printed = 1;
        cgam_claim_decide(claim, CGAM_CLAIM_TRIALS, 2, readings, names);
    }
}
