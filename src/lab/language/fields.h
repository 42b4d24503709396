/* fields.h: the options of the experiments on language models as tables, a row for each field. */
#ifndef CGAM_SRC_LAB_LANGUAGE_FIELDS_H
#define CGAM_SRC_LAB_LANGUAGE_FIELDS_H

#include "base/field.h"

/* cgam_lm_study_opts: what is run, but for model, store and dataset; and how answers are compared. */
extern const cgam_field cgam_lm_study_opts_rows[], cgam_lm_answer_rows[];
extern const cgam_field cgam_lm_neff_opts_rows[], cgam_lm_steer_opts_rows[],
    cgam_lm_sweep_opts_rows[], cgam_lm_gates_opts_rows[], cgam_lm_fit_opts_rows[],
    cgam_lm_inject_opts_rows[];
extern const cgam_field cgam_lm_generate_opts_rows[];

#endif
