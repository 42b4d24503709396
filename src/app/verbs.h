/* verbs.h: one name per verb, in the order of help. The studies come between the two lists. */
#ifndef CGAM_SRC_APP_VERBS_H
#define CGAM_SRC_APP_VERBS_H

#include "app/verb.h"
#include "lab/synthetic/study.h"

/* clang-format off */
#define CGAM_VERBS_FIRST(X) \
    X(recall) X(bank_pack) X(bank_embed) X(bank_add) X(bank_put) X(bank_drop) X(bank_show) X(bank_names) X(data_get) \
    X(cache_put) X(cache_get) X(cache_drop) X(cache_show) X(cache_calibrate) \
    X(inspect) X(landscape) X(map) X(fit) \
    X(net_run) X(net_show) X(net_train) \
    X(report) X(study)
#define CGAM_VERBS_REST(X) \
    X(lm_get) X(lm_states) X(lm_lens) X(lm_generate) X(lm_trace) X(lm_vector) X(lm_heads) X(lm_bank) X(lm_capture) \
    X(lm_store) X(lm_neff) X(lm_sweep) X(lm_steer) X(lm_probe) X(lm_inject) X(lm_gates) X(lm_fit) \
    X(lm_study) \
    X(serve) \
    X(demo) X(bench) X(help) X(completion) X(version)
#define CGAM_VERB_DECLARED(name_) extern const cgam_verb cgam_verb_##name_;
/* clang-format on */
CGAM_VERBS_FIRST(CGAM_VERB_DECLARED)
CGAM_VERBS_REST(CGAM_VERB_DECLARED)
#undef CGAM_VERB_DECLARED
extern cgam_verb cgam_verb_study_kinds[]; /* by cgam_study_kind; made before main */

#endif
