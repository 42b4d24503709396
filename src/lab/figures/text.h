/* text.h: numbers and parameters as readable text. */
#ifndef CGAM_SRC_LAB_FIGURES_TEXT_H
#define CGAM_SRC_LAB_FIGURES_TEXT_H

#include "lab/synthetic/study.h"

/* One line: seed, trials and parameters of a study. */
void cgam_caption(const cgam_study_opts *o, char *text, size_t size);

/* The command that repeats the study, without --out. */
void cgam_command(const cgam_study_opts *o, char *text, size_t size);

#endif
