/* inspect.c: see inspect.h. Calls the parts of gate.h and theory.h with full effort. */
#include "base/env.h"
#include "memory/bank.h"
#include "memory/gate.h"

#include <cgam/recall.h>
#include <cgam/theory.h>
#include <math.h>

cgam_status cgam_bank_inspect(const cgam_bank *bank, double alpha, double beta, double lambda,
                              cgam_inspection *out)
{
    cgam_inspection in = {.bank = cgam_bank_describe(bank)};
    cgam_gate *gate;
    cgam_gate_opts opts = cgam_gate_opts_default();
    opts.effort = CGAM_EFFORT_FULL;
    *out = in;
    if (!(beta > 0) || !isfinite(beta) || !(lambda >= 0) || !isfinite(lambda))
        return cgam_fail(bank->env, CGAM_E_ARG,
                         "beta is %g and lambda is %g; beta must be above 0, lambda 0 or more",
                         beta, lambda);
    cgam_status status = cgam_bank_gram(bank, &in.gram);
    if (status == CGAM_OK) status = cgam_gate_new(bank, alpha, &opts, &gate);
    if (status != CGAM_OK) return status;
    in.gate = cgam_gate_describe(gate);
    cgam_gate_free(gate);
    in.contraction = cgam_contraction(beta, lambda, in.gate.eta_min);
    in.unique = in.contraction < 1;
    in.lambda_unique_max = cgam_contraction_lambda_max(beta, in.gate.eta_min);
    *out = in;
    return CGAM_OK;
}
