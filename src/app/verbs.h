/* verbs.h: one name per verb; each lives in a file of its own. */
#ifndef CGAM_SRC_APP_VERBS_H
#define CGAM_SRC_APP_VERBS_H

#include "app/verb.h"

extern const cgam_verb cgam_verb_recall;
extern const cgam_verb cgam_verb_bank_pack;
extern const cgam_verb cgam_verb_bank_add;
extern const cgam_verb cgam_verb_bank_put;
extern const cgam_verb cgam_verb_bank_drop;
extern const cgam_verb cgam_verb_bank_show;
extern const cgam_verb cgam_verb_inspect;
extern const cgam_verb cgam_verb_map;
extern const cgam_verb cgam_verb_landscape;
extern const cgam_verb cgam_verb_bank_names;
extern const cgam_verb cgam_verb_report;
extern const cgam_verb cgam_verb_study;
extern cgam_verb cgam_verb_study_kinds[]; /* by cgam_study_kind; made before main */
extern const cgam_verb cgam_verb_net_run;
extern const cgam_verb cgam_verb_net_show;
extern const cgam_verb cgam_verb_demo;
extern const cgam_verb cgam_verb_data_get;
extern const cgam_verb cgam_verb_lm_get;
extern const cgam_verb cgam_verb_lm_bank;
extern const cgam_verb cgam_verb_lm_capture;
extern const cgam_verb cgam_verb_lm_generate;
extern const cgam_verb cgam_verb_lm_states;
extern const cgam_verb cgam_verb_lm_trace;
extern const cgam_verb cgam_verb_lm_store;
extern const cgam_verb cgam_verb_lm_neff;
extern const cgam_verb cgam_verb_lm_sweep;
extern const cgam_verb cgam_verb_lm_lens;
extern const cgam_verb cgam_verb_lm_vector;
extern const cgam_verb cgam_verb_lm_inject;
extern const cgam_verb cgam_verb_lm_gates;
extern const cgam_verb cgam_verb_lm_fit;
extern const cgam_verb cgam_verb_lm_steer;
extern const cgam_verb cgam_verb_lm_probe;
extern const cgam_verb cgam_verb_lm_study;
extern const cgam_verb cgam_verb_serve;
extern const cgam_verb cgam_verb_bench;
extern const cgam_verb cgam_verb_help;
extern const cgam_verb cgam_verb_completion;
extern const cgam_verb cgam_verb_version;

#endif
