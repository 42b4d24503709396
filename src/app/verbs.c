/* verbs.c: the table. */
#include "app/verbs.h"
#include "app/params.h"

#define VERB(name_) &cgam_verb_##name_,
#define STUDY(KIND) &cgam_verb_study_kinds[CGAM_STUDY_##KIND]

/* clang-format off */
const cgam_verb *const cgam_verbs[] = {
    CGAM_VERBS_FIRST(VERB)
    STUDY(SEPARATION), STUDY(COMPETITION), STUDY(COUPLED), STUDY(TIMESCALE), STUDY(THEOREMS),
    STUDY(CAPACITY), STUDY(PHASE), STUDY(CONVERGENCE), STUDY(ANNEALING), STUDY(SPARSE), STUDY(RIVALS),
    CGAM_VERBS_REST(VERB)
    NULL,
};
/* clang-format on */

const cgam_param cgam_params_common[] = {
    CGAM_PARAM_INT("threads", "N", NULL, 1, CGAM_THREADS_MAX,
                   "worker threads; default: one per core. Results do not depend on it"),
    CGAM_PARAM_INT(
        "max-memory", "MB", NULL, 16, 1 << 30,
        "memory limit of the verb, mapped files excluded; default: nine tenths of the free memory"),
    CGAM_PARAM_FLAG("json", "print one JSON document on standard output instead of text"),
    CGAM_PARAM_END,
};
