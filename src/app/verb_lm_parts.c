/* verb_lm_parts.c: verbs that are one experiment each: neff, probe, steer, sweep, gates. */
#include "app/lm.h"
#include "app/verbs.h"

/* name, rows of its options, files in --out */
#define EXPERIMENT(name_, rows_, out_, ...)                                                        \
    static const cgam_param name_##_params[] = {                                                   \
        CGAM_PARAMS_LM(false),      CGAM_ROWS_OF(cgam_lm_answer_rows), CGAM_ROWS_OF(rows_),        \
        CGAM_PARAM_OUT(NULL, out_), __VA_ARGS__ CGAM_PARAM_LM_FIGURES, CGAM_PARAM_END,             \
    }

EXPERIMENT(neff, cgam_lm_neff_opts_rows, "write neff.csv, neff.json and figures here", );
EXPERIMENT(steer, cgam_lm_steer_opts_rows, "write steer.csv, steer.json and figures here", );
EXPERIMENT(sweep, cgam_lm_sweep_opts_rows,
           "write sweep.json, sweep.csv, sweep_steps.csv, sweep_grid.csv, "
           "per_query.csv and figures here", );
EXPERIMENT(gates, cgam_lm_gates_opts_rows,
           "write gates.json, gates.csv, gates_spectrum.csv and figures here",
           CGAM_PARAM_LM_REPORT, );
static const cgam_param probe_params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_OUT(NULL, "write probe.csv, probe.json and figures here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status neff(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_neff_opts opts = cgam_lm_neff_opts_default();
    cgam_args_fill(args, cgam_lm_neff_opts_rows, &opts);
    return cgam_lm_neff(study, &opts, out);
}

static cgam_status probe(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    (void)args;
    return cgam_lm_probe(study, out);
}

static cgam_status steer(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_steer_opts opts = cgam_lm_steer_opts_default();
    cgam_args_fill(args, cgam_lm_steer_opts_rows, &opts);
    return cgam_lm_steer(study, NULL, &opts, out);
}

static cgam_status sweep(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_sweep_opts opts = cgam_lm_sweep_opts_default();
    cgam_args_fill(args, cgam_lm_sweep_opts_rows, &opts);
    opts.lens_given = cgam_args_given(args, "lens");
    return cgam_lm_sweep(study, &opts, out);
}

static cgam_status gates(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_gates_opts opts = cgam_lm_gates_opts_default();
    cgam_args_fill(args, cgam_lm_gates_opts_rows, &opts);
    cgam_lm_leave_out(args, "modes", "first", &opts.no_first, &opts.no_coupled);
    return cgam_lm_gates(study, &opts, out);
}

/* The answer is negative if the number at a path of the document is 0, that is, if no query counts. */
static cgam_status negative_without(cgam_call *call, cgam_status status, int64_t counted)
{
    call->negative = status == CGAM_OK && counted == 0;
    return status;
}

static int64_t queries_of(const json_t *doc)
{
    return cgam_json_get_int(json_array_get(json_object_get(doc, "shots"), 0), "queries");
}

static cgam_status run_neff(cgam_call *call) { return cgam_lm_run(call, CGAM_LM_NEFF, neff); }
static cgam_status run_probe(cgam_call *call) { return cgam_lm_run(call, CGAM_LM_PROBE, probe); }

static cgam_status run_steer(cgam_call *call)
{
    cgam_status status = cgam_lm_run(call, CGAM_LM_STEER, steer);
    return negative_without(call, status, cgam_json_get_int(call->doc, "counted"));
}

static cgam_status run_sweep(cgam_call *call)
{
    cgam_status status = cgam_lm_run(call, CGAM_LM_SWEEP, sweep);
    return negative_without(call, status, queries_of(call->doc));
}

static cgam_status run_gates(cgam_call *call)
{
    cgam_status status = cgam_lm_run_reported(call, CGAM_LM_GATES, gates);
    return negative_without(call, status, queries_of(call->doc));
}

const cgam_verb cgam_verb_lm_neff = {
    .name = "lm neff",
    .params = neff_params,
    .run = run_neff,
};
const cgam_verb cgam_verb_lm_probe = {
    .name = "lm probe",
    .params = probe_params,
    .run = run_probe,
};
const cgam_verb cgam_verb_lm_steer = {
    .name = "lm steer",
    .params = steer_params,
    .run = run_steer,
};
const cgam_verb cgam_verb_lm_sweep = {
    .name = "lm sweep",
    .params = sweep_params,
    .run = run_sweep,
};
const cgam_verb cgam_verb_lm_gates = {
    .name = "lm gates",
    .params = gates_params,
    .run = run_gates,
};
