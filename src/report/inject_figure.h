/* inject_figure.h: the figure of `cgam lm inject`. */
#ifndef CGAM_SRC_REPORT_INJECT_FIGURE_H
#define CGAM_SRC_REPORT_INJECT_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* What stands in its script for the number of shots with that index. */
void cgam_inject_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);

#endif
