/* figure.h: pictures of tables, through gnuplot. A figure is a script NAME.gp beside the CSV files
 * it reads and, once drawn, NAME.svg, NAME.png and NAME.pdf; anyone can change the script and draw it
 * again with `gnuplot NAME.gp`. */
#ifndef CGAM_SRC_LAB_FIGURES_FIGURE_H
#define CGAM_SRC_LAB_FIGURES_FIGURE_H

#include "io/file.h"
#include "lab/document.h"
#include "lab/language/study.h"
#include "lab/language/trace.h"
#include "lab/synthetic/study.h"

#include <cgam/lm.h>
#include <cgam/recall.h>

enum { CGAM_FIGURES_MAX = 40, CGAM_CAPTION_MAX = 600 };

typedef struct cgam_figure {
    const char *name;               /* "accuracy" */
    const char *title;              /* "Accuracy against query noise" */
    const char *words;              /* text about it on the page; NULL: the page has its own */
    char caption[CGAM_CAPTION_MAX]; /* seed, trials and parameters included */
    char made[2][96];               /* storage for a name and a title that are not constants */
    bool wide;                      /* several panels: takes the width of the page */
} cgam_figure;

typedef struct cgam_figures {
    int count;
    cgam_figure figure[CGAM_FIGURES_MAX];
} cgam_figures;

/* Writes a study's tables and summary, like cgam_study_write. If they replace those of another run,
 * its figures are removed too, so that the folder never mixes two runs. */
cgam_status cgam_results_write(const cgam_study *study, const char *folder);

/* Writes the scripts of a study's figures into the folder that holds its CSV files. */
cgam_status cgam_figures_write(const cgam_study *study, const char *folder, cgam_figures *out);

/* Draws them, several at a time. If gnuplot is not installed, sets *missing, draws nothing and returns
 * CGAM_OK. CGAM_E_INTERNAL if gnuplot fails, CGAM_E_IO if a picture is incomplete. */
cgam_status cgam_figures_draw(cgam_env *env, const char *folder, const cgam_figures *figures,
                              bool *missing);

/* ---- Figures of documents: of a part of `lm study`, of `lm lens`, `lm trace` and `landscape` --- */
/* Names, titles and captions of the figures of a part's document. */
void cgam_models_figures(cgam_lm_part part, const json_t *doc, cgam_figures *out);
/* The same, and their scripts into the folder that holds the CSV files. */
cgam_status cgam_models_figures_write(cgam_env *env, cgam_lm_part part, const json_t *doc,
                                      const char *folder, cgam_figures *out);
cgam_status cgam_lens_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                    cgam_figures *out);
cgam_status cgam_trace_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                     cgam_figures *out);
cgam_status cgam_landscape_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                         cgam_figures *out);

/* Writes at most that many characters of a token so that gnuplot can read them between double quotes: a leading
 * blank, line ends, quotes and backslashes become similar characters. Returns text. */
enum { CGAM_PIECE_SIZE = 64 };
const char *cgam_piece_shown(const char *piece, int letters, char text[CGAM_PIECE_SIZE]);

/* ---- Tables and screens of the same ------------------------------------------------------------ */
/* Writes every position after every layer to the table NAME.csv. */
cgam_status cgam_lens_table_write(cgam_env *env, const char *folder, const char *name,
                                  const cgam_lens_view *view);
/* Prints the document of `cgam lm lens` for a terminal of COLUMNS columns, 100 if that is unset; `colours`: the
 * smaller N_eff of a cell, the darker it is. */
void cgam_lens_screen(const json_t *doc, bool colours, FILE *to);
/* trace.csv: every layer of every token. */
cgam_status cgam_trace_table_write(cgam_env *env, const char *folder, const cgam_lm_trace *trace);
/* landscape.csv: the fixed points without and under the context. */
cgam_status cgam_landscape_table_write(cgam_env *env, const char *folder,
                                       const cgam_landscape both[2]);

#endif
