/* lm_bar.h: the progress of work on language models, drawn by app/progress. */
#ifndef CGAM_SRC_APP_LM_BAR_H
#define CGAM_SRC_APP_LM_BAR_H

#include "app/progress.h"
#include "app/verb.h"

#include <cgam/lm.h>

typedef struct cgam_bar {
    cgam_line line;
    double start, last, first_done; /* clock at the start and at the last drawing; done then */
    char what[64], text[96];        /* the work, and with its rate */
} cgam_bar;

/* A progress that draws on `bar`, which the caller keeps until cgam_bar_end; silent unless the
 * call shows progress. */
cgam_lm_progress cgam_bar_begin(const cgam_call *call, cgam_bar *bar);
void cgam_bar_end(cgam_bar *bar); /* removes the line */

#endif
