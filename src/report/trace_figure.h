/* trace_figure.h: the figure of `cgam lm trace`, made from its document. */
#ifndef CGAM_SRC_REPORT_TRACE_FIGURE_H
#define CGAM_SRC_REPORT_TRACE_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* The script into the folder that holds trace.csv. */
cgam_status cgam_trace_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                     cgam_figures *out);

#endif
