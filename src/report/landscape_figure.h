/* landscape_figure.h: the figure of `cgam landscape`, made from its table. */
#ifndef CGAM_SRC_REPORT_LANDSCAPE_FIGURE_H
#define CGAM_SRC_REPORT_LANDSCAPE_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* The script into the folder that holds landscape.csv. */
cgam_status cgam_landscape_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                         cgam_figures *out);

#endif
