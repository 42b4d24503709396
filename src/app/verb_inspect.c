/* verb_inspect.c: reports the spectrum, alpha_crit and safe couplings of a bank. */
#include "app/input.h"
#include "app/verbs.h"
#include "memory/fields.h"

#define OPTION(name_) CGAM_ROW_OF(cgam_recall_opts_rows, name_)

enum { SQUARES = 4 }; /* measured: 4.0 at n = d = 2,000; more at 1,000, where they matter less */

static const cgam_param params[] = {
    CGAM_PARAM_BANK, OPTION("alpha"),      OPTION("lambda"),
    OPTION("beta"),  CGAM_PARAM_NORMALIZE, CGAM_PARAM_END,
};

static cgam_status inspect_bank(cgam_call *call)
{
    json_t *doc = call->doc;
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_inspection in;
    cgam_bank *bank;
    cgam_args_fill(call->args, cgam_recall_opts_rows, &o);
    cgam_status status = cgam_input_bank(call, &bank);
    if (status == CGAM_OK) status = cgam_input_expect(call, bank, SQUARES, 0);
    if (status == CGAM_OK) status = cgam_bank_inspect(bank, o.alpha, o.beta, o.lambda, &in);
    if (status == CGAM_OK) {
        cgam_fields_put_some(doc, "n d dtype mapped norm_min norm_max unit zero_memories",
                             cgam_bank_info_rows, &in.bank);
        cgam_fields_put(doc, cgam_gram_info_rows, &in.gram, 0);
        cgam_args_put(call->args, "alpha lambda beta", doc);
        cgam_fields_put_some(doc, "alpha_crit", cgam_gate_info_rows, &in.gate);
        cgam_json_put(doc, "alpha_crit_bounds", cgam_json_reals(&in.gate.critical.alpha_lo, 2, 1));
        cgam_fields_put_some(doc, "eta_min regime negative_modes", cgam_gate_info_rows, &in.gate);
        cgam_fields_put(doc, cgam_inspection_rows, &in, 0);
    }
    cgam_input_bank_done(call, bank);
    return status;
}

const cgam_verb cgam_verb_inspect = {
    .name = "inspect",
    .params = params,
    .ranks = CGAM_RANKS_ALL,
    .run = inspect_bank,
};
