/* gates_figure.h: the figures of `cgam lm gates`. */
#ifndef CGAM_SRC_REPORT_GATES_FIGURE_H
#define CGAM_SRC_REPORT_GATES_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* What stands in their scripts: answers against alpha for the number of shots with that index, and the
 * spectrum of the rows. */
void cgam_gates_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
void cgam_gates_draw_spectrum(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);

#endif
