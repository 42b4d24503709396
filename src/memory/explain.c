/* explain.c: see explain.h. */
#include <cgam/explain.h>

#include "base/blas.h"
#include "memory/recall.h"

#include <cgam/inspect.h>
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
    int64_t n = bank->Z.n, d = bank->Z.d;
    double lambda = plan->opts.lambda;
    for (int64_t i = 0; i < count; i++)
        if (cgam_bank_place(bank, index[i]) < 0)
            return cgam_fail(env, CGAM_E_ARG, "memory %lld: memories are 0 to %lld",
                             (long long)index[i], (long long)bank->whole - 1);
    double *row = cgam_alloc(env, (size_t)d, sizeof *row);
    double *room = cgam_zalloc(env, 3 * (size_t)n, sizeof *room);
    double *u = room, *s0 = room + n, *back = room + 2 * n; /* valid where room is */
    cgam_status status = row && room ? CGAM_OK : cgam_fail_nomem(env, "parts of scores");
    if (status == CGAM_OK && c) status = cgam_recall_gates(plan, c, u, s0);
    if (status == CGAM_OK && p) status = cgam_gate_solve(plan->gate, p, back, NULL);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t at = cgam_bank_place(bank, index[i]);
        status = cgam_bank_row(bank, at, row);
        out[i] = (cgam_score_parts){.evidence = cblas_ddot((int)d, row, 1, q, 1),
                                    .bias = lambda * s0[at],
                                    .feedback = lambda * lambda * back[at]};
    }
    cgam_free(env, row);
    cgam_free(env, room);
    return status;
}

cgam_status cgam_recall_marks(const cgam_recall *plan, const double *q, const double *c,
                              cgam_marks *out)
{
    const cgam_bank *bank = plan->bank;
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n;
    cgam_inspection in;
    cgam_fold fold = {.alpha = NAN};
    *out = (cgam_marks){.alpha_crit = NAN, .alpha_fold = NAN};
    cgam_status status = cgam_bank_inspect(bank, o->alpha, o->beta, o->lambda, &in);
    if (status != CGAM_OK) return status;
    double *b = cgam_zalloc(env, 3 * (size_t)n, sizeof *b);
    if (!b) return cgam_fail_nomem(env, "marks");
    status = cgam_bank_score(bank, q, b);
    if (status == CGAM_OK && c) status = cgam_recall_gates(plan, c, b + n, b + 2 * n);
    if (status == CGAM_OK && o->lambda > 0)
        status = cgam_fold_find(bank, o->lambda, o->beta, b, b + n,
                                fmin(in.gate.critical.alpha, FOLD_ALPHA_MAX), FOLD_TOL, &fold);
    cgam_free(env, b);
    double eta = fmax(in.gate.eta_min, 0), square = o->lambda * o->lambda;
    *out = (cgam_marks){.alpha_crit = in.gate.critical.alpha,
                        .alpha_fold = fold.alpha,
                        .lambda_unique_max = in.lambda_unique_max,
                        .beta_unique_max = square > 0 ? 2 * eta / square : INFINITY};
    return status;
}
