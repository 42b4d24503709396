/* params.h: what a run does with the table of parameters (params.c). */
#ifndef CGAM_SRC_STUDY_PARAMS_H
#define CGAM_SRC_STUDY_PARAMS_H

#include "study/study.h"

/* Ranges of everything that the study takes. */
cgam_status cgam_study_params_check(cgam_env *env, const cgam_study_opts *opts);
/* Puts `parameters`: each by its name with _ for -; the first two, trials and seed, are keys of the
 * document itself. */
enum { CGAM_STUDY_PARAMS_TOP = 2 };
void cgam_study_params_put(const cgam_study_opts *opts, json_t *doc);
/* The list that p stands for in opts, NULL = it is none. */
cgam_list *cgam_study_param_list(const cgam_study_param *p, cgam_study_opts *opts);

#endif
