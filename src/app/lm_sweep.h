/* lm_sweep.h: the sweep of one number of shots, as a document and as tables. */
#ifndef CGAM_SRC_APP_LM_SWEEP_H
#define CGAM_SRC_APP_LM_SWEEP_H

#include "app/lm.h"
#include "io/table.h"

/* What all numbers of shots have in common. */
typedef struct cgam_sweep_study {
    cgam_lm_input *in;
    cgam_lens *lens;
    cgam_lens_kind kind;
    bool relative, in_sample;
    int32_t *tokens; /* [labels] */
    int32_t *target; /* [queries]; -1: its label cannot be told from another's */
    float *zero;     /* [queries, L + 1, d] */
    cgam_csv cells, steps, grid;
} cgam_sweep_study;

/* One entry of "shots". */
cgam_status cgam_sweep_study_shots(cgam_sweep_study *study, int64_t k, json_t *shots);

#endif
