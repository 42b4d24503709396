/* lens_figure.h: the figure of `cgam lm lens`, made from its document. */
#ifndef CGAM_SRC_REPORT_LENS_FIGURE_H
#define CGAM_SRC_REPORT_LENS_FIGURE_H

#include "io/json.h"
#include "report/figure.h"

/* So many letters of a token as gnuplot may read them between double quotes: a blank is shown at the
 * beginning, line ends as a sign, quotes and backslashes as their likes. Returns text. */
enum { CGAM_PIECE_ROOM = 64 };
const char *cgam_piece_shown(const char *piece, int letters, char text[CGAM_PIECE_ROOM]);

/* The script into the folder that holds lens.csv, and lens_compare.csv where the document compares. */
cgam_status cgam_lens_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                    cgam_figures *out);

#endif
