/* fit_figure.h: the figures, the table and the claims of `cgam lm fit`. */
#ifndef CGAM_SRC_REPORT_FIT_FIGURE_H
#define CGAM_SRC_REPORT_FIT_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* What stands in their scripts: accuracy over the labels, over all words. index is not read. */
void cgam_fit_draw_labels(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
void cgam_fit_draw_words(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
/* The table of the report. */
void cgam_fit_table(FILE *to, const json_t *doc);

#endif
