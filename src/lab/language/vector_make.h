/* vector_make.h: vectors from data: the mean effect of demonstrations, and contrasts of texts. */
#ifndef CGAM_SRC_LAB_LANGUAGE_VECTOR_MAKE_H
#define CGAM_SRC_LAB_LANGUAGE_VECTOR_MAKE_H

#include "lab/language/study.h"
#include "lm/collect.h"

/* The mean effect of the study's largest number of demonstrations on the last token of its prompts,
 * h_ICL - h_zero, at every layer. Gives *out. */
CGAM_NODISCARD cgam_status cgam_vector_effect(cgam_lm_study *study, cgam_vector **out);

typedef struct cgam_contrast_opts {
    cgam_contrast_kind kind;   /* default MEAN */
    cgam_store *store;         /* keeps the states; default NULL = none */
    cgam_collect_opts collect; /* how states are made and stored */
} cgam_contrast_opts;
cgam_contrast_opts cgam_contrast_opts_default(void);

/* From a file of text<TAB>opposite, a pair a line: states of their last tokens. *pairs: how many;
 * NULL is fine. opts NULL = defaults. Gives *out. */
CGAM_NODISCARD cgam_status cgam_vector_contrast_file(cgam_lm *lm, const char *path,
                                                     const cgam_contrast_opts *opts,
                                                     cgam_vector **out, int64_t *pairs);

#endif
