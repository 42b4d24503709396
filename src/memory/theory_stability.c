/* theory_stability.c: when a fixed point is stable, and how far its readout is from the memory
 * (docs/theorems/stability.md).
 *
 * Hessians of the energy at p, C = diag p - pp', P = p(mu), M = max |zeta|:
 *     gates and retrieval:   A - lambda^2 beta C              >=  eta_min - 2 lambda^2 beta P (1 - P)      P >= 1/2
 *     free query as well:    diag(A, I) - beta B'C B          >=  min(eta_min, 1) - beta (1 - P)(2 lambda^2 + 4 M^2)
 *                            B = (lambda I, Z)
 * Above 0 the fixed point is asymptotically stable, for all time constants.
 * Readout: |Z'p - zeta_mu| = |sum p_i (zeta_i - zeta_mu)| <= 2 M (1 - P). */
#include "memory/certify.h"
#include "num/rounding.h"

#include <cgam/theory.h>
#include <math.h>

double cgam_stability_margin(double eta_min, double beta, double lambda, double p)
{
    p = fmax(p, 0.5);
    return eta_min - 2 * lambda * lambda * beta * p * (1 - p);
}

double cgam_stability_margin_free_query(double eta_min, double beta, double lambda, double norm_max,
                                        double p)
{
    double slope = 2 * lambda * lambda + 4 * norm_max * norm_max;
    return fmin(eta_min, 1) - beta * (1 - p) * slope;
}

double cgam_readout_bound(int64_t n, double beta, double gap, double norm_max)
{
    if (n < 2) return 0;
    double x = log((double)(n - 1)) - beta * gap; /* 1 - p <= 1 / (1 + e^-x) */
    return 2 * norm_max * (x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)));
}

/* 1 / (1 + e^-x) from above, x = log(n-1) - beta gap, where the gap may be `off` smaller. */
static double others_above(int64_t n, double beta, double gap, double off)
{
    double x = log((double)(n - 1)) - beta * gap;
    x += (beta * off + 16 * CGAM_U * (1 + fabs(x) + fabs(beta * gap))) * CGAM_SLACK;
    double value = x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
    return cgam_widened(value, 32 * CGAM_U) + CGAM_TINY;
}

void cgam_bound_readout(const cgam_recall *plan, double scores, double p_off, cgam_result *out)
{
    const cgam_bank_info *bank = &plan->bank->info;
    int64_t n = cgam_recall_rivals(plan);
    double most = cgam_length_above(bank->d, bank->norm_max * bank->norm_max);
    double others = 1 - out->p_lower_bound; /* exact, or rounded by less than what follows adds */
    out->readout_error_bound = NAN;
    out->readout_error_bound_proved = false;
    if (out->focus < 0 || !out->p_lower_bound_proved) return;
    if (n > 1 && !cgam_recall_sparse(plan)) {
        others = others_above(n, plan->opts.beta, out->gap, 2 * scores * CGAM_SLACK);
        double rest = (1 - out->p) + p_off;
        if (rest < others) others = rest; /* not NaN */
    }
    out->readout_error_bound =
        others > 0 ? cgam_widened(2 * most * fmin(others, 1), 16 * CGAM_U) : 0;
    out->readout_error_bound_proved = true;
}

void cgam_bound_stability(const cgam_recall *plan, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    const cgam_gate_info *gate = &plan->gate->info;
    double margin = out->fold_margin;
    bool rests = out->end == CGAM_END_CONVERGED || out->end == CGAM_END_STALLED;
    out->stable = -1;
    out->stable_proved = false;
    if (o->mode == CGAM_FIRST) { /* gates feel no feedback: tau s' = u - A s */
        out->stable = gate->eta_min > 0 ? 1 : gate->regime == CGAM_SUPERCRITICAL ? 0 : -1;
        out->stable_proved = out->stable >= 0;
    } else if (o->free_context || !rests) {
        return;
    } else if (o->free_query) {
        double most = plan->bank->info.norm_max;
        if (cgam_recall_sparse(plan)) return;
        if (cgam_stability_margin_free_query(gate->eta_min, o->beta, o->lambda, most, out->p) > 0)
            out->stable = 1;
    } else if (out->unique == 1 && out->unique_proved) { /* E is strongly convex */
        out->stable = 1;
        out->stable_proved = true;
    } else if (out->fold_margin_proved) {
        double wide =
            2e-9 *
            fmax(1, fabs(margin)); /* twice what an exact margin may be below the eigenvalue */
        out->stable = margin > 0 ? 1 : out->fold_margin_exact && margin < -wide ? 0 : -1;
        out->stable_proved = out->stable >= 0 && out->p_error_proved && !cgam_recall_sparse(plan);
    }
}
