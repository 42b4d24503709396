/* claims_theorems.c: every theorem, decided by the cases of the study that checks them. */
#include "io/table.h"
#include "lab/claims/claims.h"

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
        const char *where, *says;
        const char *const *checks;
        const char *under; /* the condition of the checks, for a statement made without it */
    } list[] = {
        {"theorem 3.1", "A gap Δ guarantees P(μ) ≥ 1/(1 + (N−1)e^(−βΔ)); Δ ≥ Δ_raw + λΔ_gate.",
         separation, NULL},
        {"corollary 3.2",
         "Larger separation gives exponentially smaller retrieval error (Ramsauer et "
         "al., theorems 4 and 5).",
         hopfield, NULL},
        {"theorem 3.3 (i)",
         "Below α_crit the gates are Σ c_k v_k/η_k, amplified at most by 1/η_min.", below, NULL},
        {"theorem 3.3 (ii)", "Above α_crit one memory takes all, by the horizon t*.", above,
         "an input that excites the lowest modes, P_min w ≠ 0"},
        {"theorem 3.4", "Coupled fixed points are those of Φ, unique while βλ²/(2η_min) < 1.", self,
         NULL},
        {"appendix C.3", "The uniform state turns unstable at α_crit(1 − λ²β/N).", lambda,
         "balanced banks, G1 = μ_G 1"},
        {"appendix C.4", "The softmax Jacobian is at most β/2.", lemma, NULL},
        {"section 2, appendix A", "Energy never rises.", energy, NULL},
    };
    const cgam_table *t = cgam_study_find(runs[CGAM_RUN_THEOREMS], "checks");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        cgam_claim *claim = cgam_claim_add(c, list[i].where, list[i].says,
                                           "No violation beyond rounding on random instances.");
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
        cgam_claim_decide(claim, CGAM_CLAIM_TRIALS, 2, readings, &list[i].under);
    }
}
