/* verb_inspect.c: what a bank allows - its spectrum, its critical penalty, its safe coupling. */
#include "app/input.h"
#include "app/verbs.h"

#include <math.h>

static const cgam_param params[] = {
    CGAM_PARAM_BANK,      CGAM_PARAM_ALPHA("0"), CGAM_PARAM_LAMBDA("1"),
    CGAM_PARAM_BETA("1"), CGAM_PARAM_NORMALIZE,  CGAM_PARAM_END,
};

static cgam_status fill(cgam_call *call, cgam_bank *bank)
{
    json_t *doc = call->doc;
    double alpha = cgam_args_real(call->args, "alpha"), beta = cgam_args_real(call->args, "beta");
    double lambda = cgam_args_real(call->args, "lambda");
    cgam_inspection in;
    cgam_status status = cgam_bank_inspect(bank, alpha, beta, lambda, &in);
    if (status != CGAM_OK) return status;
    cgam_json_put_int(doc, "n", in.bank.n);
    cgam_json_put_int(doc, "d", in.bank.d);
    cgam_json_put_text(doc, "dtype", cgam_dtype_name(in.bank.dtype));
    cgam_json_put_bool(doc, "mapped", in.bank.mapped);
    cgam_json_put_real(doc, "norm_min", in.bank.norm_min);
    cgam_json_put_real(doc, "norm_max", in.bank.norm_max);
    cgam_json_put_bool(doc, "unit", in.bank.unit);
    cgam_json_put_int(doc, "zero_memories", in.bank.zero_rows);
    cgam_json_put_real(doc, "mu_min", in.gram.mu_min);
    cgam_json_put_real(doc, "mu_max", in.gram.mu_max);
    cgam_json_put_int(doc, "rank", in.gram.rank);
    cgam_json_put_real(doc, "alpha", alpha);
    cgam_json_put_real(doc, "lambda", lambda);
    cgam_json_put_real(doc, "beta", beta);
    cgam_json_put_real(doc, "alpha_crit", in.gate.critical.alpha);
    cgam_json_put(
        doc, "alpha_crit_bounds",
        cgam_json_reals((double[]){in.gate.critical.alpha_lo, in.gate.critical.alpha_hi}, 2, 1));
    cgam_json_put_real(doc, "eta_min", in.gate.eta_min);
    cgam_json_put_text(doc, "regime", cgam_regime_name(in.gate.regime));
    cgam_json_put(doc, "negative_modes", json_integer(in.gate.negative));
    cgam_json_put_real(doc, "contraction", in.contraction);
    cgam_json_put(doc, "unique", in.unique ? json_true() : json_null());
    cgam_json_put_real(doc, "lambda_unique_max", in.lambda_unique_max);
    return CGAM_OK;
}

static cgam_status run(cgam_call *call)
{
    cgam_bank *bank;
    cgam_status status = cgam_input_bank(call, &bank);
    if (status == CGAM_OK) status = fill(call, bank);
    cgam_input_bank_done(call, bank);
    return status;
}

static void line(FILE *to, const json_t *doc, const char *key, const char *none, const char *words)
{
    double value = cgam_json_get_real(doc, key);
    if (isnan(value)) fprintf(to, "  %-18s %-14s %s\n", key, none, words);
    else fprintf(to, "  %-18s %-14.9g %s\n", key, value, words);
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *unique = json_object_get(doc, "unique");
    fprintf(to, "%lld memories in %lld dimensions, stored as %s%s\n\n",
            (long long)cgam_json_get_int(doc, "n"), (long long)cgam_json_get_int(doc, "d"),
            cgam_json_get_text(doc, "dtype"),
            json_is_true(json_object_get(doc, "mapped")) ? ", mapped" : "");
    line(to, doc, "norm_min", "-", "shortest memory");
    line(to, doc, "norm_max", "-", "longest memory");
    line(to, doc, "mu_min", "-", "smallest eigenvalue of the Gram matrix; 0 when rank < n");
    line(to, doc, "mu_max", "-", "largest");
    line(to, doc, "rank", "-", "independent directions");
    line(to, doc, "alpha_crit", "none", "penalty at which the gates turn critical");
    fprintf(to, "\nat alpha %g, lambda %g, beta %g\n\n", cgam_json_get_real(doc, "alpha"),
            cgam_json_get_real(doc, "lambda"), cgam_json_get_real(doc, "beta"));
    fprintf(to, "  %-18s %s\n", "regime", cgam_json_get_text(doc, "regime"));
    line(to, doc, "eta_min", "-", "smallest eigenvalue of the gate operator");
    line(to, doc, "contraction", "-", "below 1 coupled recall has one answer");
    fprintf(to, "  %-18s %s\n", "unique",
            json_is_true(unique) ? "yes, proved" : "not decided by the contraction");
    line(to, doc, "lambda_unique_max", "-", "largest coupling with that proof");
}

const cgam_verb cgam_verb_inspect = {
    .name = "inspect",
    .summary = "tell what a bank allows: spectrum, alpha_crit, safe coupling",
    .about = "Computes the spectrum of the bank's Gram matrix G = Z Z' without forming it, the "
             "penalty alpha_crit at which the gate operator A = I + alpha (G - diag G) stops being "
             "positive definite, and what the given alpha, lambda and beta mean for a coupled "
             "recall.\n\n"
             "alpha_crit is null when no penalty is critical (orthogonal memories). It is found by "
             "Lanczos' method and proved by counting eigenvalues.",
    .example = "cgam inspect --bank Z.npy --alpha 0.3 --lambda 0.5 --beta 4",
    .params = params,
    .ranks = CGAM_RANKS_ALL,
    .run = run,
    .print = print,
};
