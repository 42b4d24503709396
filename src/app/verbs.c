/* verbs.c: the table. */
#include "app/verbs.h"
#include "app/params.h"

#define STUDY(KIND) &cgam_verb_study_kinds[CGAM_STUDY_##KIND]

/* One a line. */
/* clang-format off */
const cgam_verb *const cgam_verbs[] = {
    &cgam_verb_recall,
    &cgam_verb_bank_pack,
    &cgam_verb_bank_add,
    &cgam_verb_bank_put,
    &cgam_verb_bank_drop,
    &cgam_verb_bank_show,
    &cgam_verb_inspect,
    &cgam_verb_map,
    &cgam_verb_landscape,
    &cgam_verb_bank_names,
    &cgam_verb_report,
    &cgam_verb_study,
    STUDY(SEPARATION),
    STUDY(COMPETITION),
    STUDY(COUPLED),
    STUDY(TIMESCALE),
    STUDY(THEOREMS),
    STUDY(CAPACITY),
    STUDY(PHASE),
    STUDY(CONVERGENCE),
    STUDY(ANNEALING),
    STUDY(SPARSE),
    &cgam_verb_net_run,
    &cgam_verb_net_show,
    &cgam_verb_demo,
    &cgam_verb_data_get,
    &cgam_verb_lm_get,
    &cgam_verb_lm_bank,
    &cgam_verb_lm_states,
    &cgam_verb_lm_generate,
    &cgam_verb_lm_trace,
    &cgam_verb_lm_capture,
    &cgam_verb_lm_store,
    &cgam_verb_lm_neff,
    &cgam_verb_lm_sweep,
    &cgam_verb_lm_lens,
    &cgam_verb_lm_vector,
    &cgam_verb_lm_inject,
    &cgam_verb_lm_gates,
    &cgam_verb_lm_fit,
    &cgam_verb_lm_steer,
    &cgam_verb_lm_probe,
    &cgam_verb_lm_study,
    &cgam_verb_serve,
    &cgam_verb_bench,
    &cgam_verb_help,
    &cgam_verb_completion,
    &cgam_verb_version,
    NULL,
};
/* clang-format on */

const cgam_param cgam_params_common[] = {
    CGAM_PARAM_INT("threads", "N", NULL, 1, CGAM_THREADS_MAX,
                   "worker threads; one per core if not given. Results do not depend on it"),
    CGAM_PARAM_FLAG("json", "print one JSON document on standard output instead of text"),
    CGAM_PARAM_END,
};
