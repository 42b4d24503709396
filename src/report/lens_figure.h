/* lens_figure.h: the figure of `cgam lm lens`, made from its document. */
#ifndef CGAM_SRC_REPORT_LENS_FIGURE_H
#define CGAM_SRC_REPORT_LENS_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* The script into the folder that holds lens.csv, and lens_compare.csv where the document compares. */
cgam_status cgam_lens_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                    cgam_figures *out);

#endif
