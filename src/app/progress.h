/* progress.h: one line on standard error that says how far long work has come. */
#ifndef CGAM_SRC_APP_PROGRESS_H
#define CGAM_SRC_APP_PROGRESS_H

#include "app/verb.h"

#include <cgam/lm.h>

typedef struct cgam_bar {
    bool shown;
    double start, last, first_done; /* clock at the start and at the last drawing; done then */
    char what[64];
} cgam_bar;

/* A progress that draws on `bar`, which the caller keeps until cgam_bar_end; silent unless the
 * call shows progress. */
cgam_lm_progress cgam_bar_begin(const cgam_call *call, cgam_bar *bar);
void cgam_bar_end(cgam_bar *bar); /* removes the line */

#endif
