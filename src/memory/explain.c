/* explain.c: see explain.h. */
#include <cgam/recall.h>

#include "base/blas.h"
#include "memory/explain.h"
#include "memory/plan.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

static const double FOLD_TOL = 1e-4, FOLD_ALPHA_MAX = 10;

cgam_status cgam_recall_parts(const cgam_recall *plan, const double *q, const double *c,
                              const double *p, int64_t count, const int64_t *index,
                              cgam_score_parts *out)
{
    const cgam_bank *bank = plan->bank;
    cgam_env *env = bank->env;
    int64_t d = bank->Z.d;
    double lambda = plan->opts.lambda;
    for (int64_t i = 0; i < count; i++)
        if (cgam_bank_place(bank, index[i]) < 0)
            return cgam_fail(env, CGAM_E_ARG, "no memory %lld (valid: 0 to %lld)",
                             (long long)index[i], (long long)bank->whole - 1);
    double *row = cgam_alloc(env, (size_t)d, sizeof *row);
    int64_t apart = cgam_vec_size(&bank->Z);
    double *work = cgam_vec_new(env, &bank->Z, 3);
    double *u = work, *s0 = work + apart, *back = s0 + apart; /* valid if work is */
    cgam_status status = row && work ? CGAM_OK : cgam_fail_nomem(env, "parts of scores");
    if (status == CGAM_OK) cgam_vec_fill(&bank->Z, s0, 0);
    if (status == CGAM_OK) cgam_vec_fill(&bank->Z, back, 0);
    if (status == CGAM_OK && c) status = cgam_recall_gates(plan, c, u, s0);
    if (status == CGAM_OK && p) status = cgam_gate_solve(plan->gate, p, back, NULL);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t at = cgam_bank_place(bank, index[i]);
        double gate, feedback;
        status = cgam_bank_row(bank, at, row);
        if (status == CGAM_OK) status = cgam_vec_pick(&bank->Z, s0, 1, &at, &gate);
        if (status == CGAM_OK) status = cgam_vec_pick(&bank->Z, back, 1, &at, &feedback);
        if (status == CGAM_OK)
            out[i] = (cgam_score_parts){.evidence = cblas_ddot((int)d, row, 1, q, 1),
                                        .bias = lambda * gate,
                                        .feedback = lambda * lambda * feedback};
    }
    cgam_free(env, row);
    cgam_vec_free(env, &bank->Z, work);
    return status;
}

cgam_status cgam_recall_marks(const cgam_recall *plan, const double *q, const double *c,
                              cgam_marks *out)
{
    const cgam_bank *bank = plan->bank;
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = bank->env;
    int64_t n = cgam_vec_size(&bank->Z);
    cgam_inspection in;
    cgam_fold fold = {.alpha = NAN};
    *out = (cgam_marks){.alpha_crit = NAN, .alpha_fold = NAN};
    cgam_status status = cgam_bank_inspect(bank, o->alpha, o->beta, o->lambda, &in);
    if (status != CGAM_OK) return status;
    double *b = cgam_vec_new(env, &bank->Z, 3);
    if (!b) return cgam_fail_nomem(env, "marks");
    cgam_vec_fill(&bank->Z, b + n, 0);
    status = cgam_bank_score(bank, q, b);
    if (status == CGAM_OK && c) status = cgam_recall_gates(plan, c, b + n, b + 2 * n);
    if (status == CGAM_OK && o->lambda > 0)
        status = cgam_fold_find(bank, o->lambda, o->beta, b, b + n,
                                fmin(in.gate.critical.alpha, FOLD_ALPHA_MAX), FOLD_TOL, &fold);
    cgam_vec_free(env, &bank->Z, b);
    double eta = fmax(in.gate.eta_min, 0), square = cgam_square_times(o->lambda, 1);
    *out = (cgam_marks){.alpha_crit = in.gate.critical.alpha,
                        .alpha_fold = fold.alpha,
                        .lambda_unique_max = in.lambda_unique_max,
                        .beta_unique_max =
                            o->lambda > 0 ? fmax(cgam_below(2 * eta / square), 0) : INFINITY};
    return status;
}
