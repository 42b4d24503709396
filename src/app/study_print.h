/* study_print.h: a study's document as a page of text. */
#ifndef CGAM_SRC_APP_STUDY_PRINT_H
#define CGAM_SRC_APP_STUDY_PRINT_H

#include "app/verb.h"

void cgam_study_print(const json_t *doc, FILE *to);

#endif
