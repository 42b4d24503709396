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

/* What a part's document says of how many queries count. */
static int64_t counted(const json_t *doc) { return cgam_json_get_int(doc, "counted"); }
static int64_t queries_of(const json_t *doc)
{
    return cgam_json_get_int(json_array_get(json_object_get(doc, "shots"), 0), "queries");
}

static cgam_status run_part(cgam_call *call);
#define VERB(name_)                                                                                \
    {                                                                                              \
        .name = "lm " #name_, .params = name_##_params, .run = run_part                            \
    }
const cgam_verb cgam_verb_lm_neff = VERB(neff), cgam_verb_lm_probe = VERB(probe),
                cgam_verb_lm_steer = VERB(steer), cgam_verb_lm_sweep = VERB(sweep),
                cgam_verb_lm_gates = VERB(gates);

static const struct part {
    const cgam_verb *verb;
    cgam_lm_part part;
    cgam_lm_experiment experiment;
    int64_t (*queries)(const json_t *doc); /* the answer is negative if none counts; NULL: never */
    bool reported;                         /* with --report */
} parts[] = {
    {&cgam_verb_lm_neff, CGAM_LM_NEFF, neff, NULL, false},
    {&cgam_verb_lm_probe, CGAM_LM_PROBE, probe, NULL, false},
    {&cgam_verb_lm_steer, CGAM_LM_STEER, steer, counted, false},
    {&cgam_verb_lm_sweep, CGAM_LM_SWEEP, sweep, queries_of, false},
    {&cgam_verb_lm_gates, CGAM_LM_GATES, gates, queries_of, true},
};

static cgam_status run_part(cgam_call *call)
{
    const struct part *p = parts;
    while (p->verb != call->verb) p++;
    cgam_status status =
        (p->reported ? cgam_lm_run_reported : cgam_lm_run)(call, p->part, p->experiment);
    call->negative = status == CGAM_OK && p->queries && p->queries(call->doc) == 0;
    return status;
}
