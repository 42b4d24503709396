/* figure.h: pictures of tables, through gnuplot. A figure is a script NAME.gp beside the CSV files
 * it reads and, once drawn, NAME.svg, NAME.png and NAME.pdf; anyone can change the script and draw it
 * again with `gnuplot NAME.gp`. */
#ifndef CGAM_SRC_REPORT_FIGURE_H
#define CGAM_SRC_REPORT_FIGURE_H

#include "io/file.h"

#include <cgam/study.h>

enum { CGAM_FIGURES_MAX = 40, CGAM_CAPTION_MAX = 600 };

typedef struct cgam_figure {
    const char *name;               /* "accuracy" */
    const char *title;              /* "Accuracy against query noise" */
    const char *words;              /* what to say of it on the page; NULL: the page knows */
    char caption[CGAM_CAPTION_MAX]; /* seed, trials and parameters included */
    char made[2][96];               /* room for a name and a title that are no constants */
    bool wide;                      /* several panels: takes the width of the page */
} cgam_figure;

typedef struct cgam_figures {
    int count;
    cgam_figure figure[CGAM_FIGURES_MAX];
} cgam_figures;

/* A study's tables and summary, as cgam_study_write does; where they replace those of another run,
 * its figures go as well, so that nothing in the folder speaks of two runs. */
cgam_status cgam_results_write(const cgam_study *study, const char *folder);

/* Writes the scripts of a study's figures into the folder that holds its CSV files. */
cgam_status cgam_figures_write(const cgam_study *study, const char *folder, cgam_figures *out);

/* Draws them, several at a time. *missing: gnuplot is not there, nothing was drawn, and that is all
 * right; a gnuplot that fails is CGAM_E_INTERNAL, a picture that is not whole CGAM_E_IO. */
cgam_status cgam_figures_draw(cgam_env *env, const char *folder, const cgam_figures *figures,
                              bool *missing);

#endif
