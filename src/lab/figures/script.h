/* script.h: the parts all gnuplot scripts share. */
#ifndef CGAM_SRC_LAB_FIGURES_SCRIPT_H
#define CGAM_SRC_LAB_FIGURES_SCRIPT_H

#include "lab/figures/figure.h"

typedef struct cgam_script {
    cgam_env *env;
    cgam_outfile *file;
    FILE *to;
} cgam_script;

/* The head of a script: files, palette, foot note. Text written before cgam_script_begin is outside the
 * loop over terminals, where inline data must be. */
cgam_status cgam_script_head(cgam_env *env, const char *folder, const cgam_figure *f,
                             cgam_script *p);
void cgam_script_begin(const cgam_figure *f, int width, int height, cgam_script *p);
/* Calls both. */
cgam_status cgam_script_open(cgam_env *env, const char *folder, const cgam_figure *f, int width,
                             int height, cgam_script *p);
/* Returns CGAM_E_NOMEM if a document of the script was incomplete. */
cgam_status cgam_script_close(cgam_script *p);

/* Several panels: shared text belongs to the first panel only, which ends in `unset label 1`. The foot note is at
 * `foot` of the height, usually CGAM_SCRIPT_FOOT. */
#define CGAM_SCRIPT_FOOT 0.022
void cgam_script_panels(FILE *to, const cgam_figure *f, double foot);

/* Fills the template figures/NAME.gp with a document, which it releases. */
void cgam_script_fill(FILE *to, const char *name, json_t *doc);

/* A figure of a study: its text, its size in points, and the data of its script. */
typedef struct cgam_figure_script {
    cgam_study_kind kind;
    const char *name, *title; /* the list ends with a NULL name */
    int width, height;
    void (*data)(const cgam_study *study, FILE *to); /* outside the loop over terminals, or NULL */
} cgam_figure_script;
extern const cgam_figure_script cgam_figure_scripts[];
/* Writes the plot commands of a study's figure. */
void cgam_figure_fill(const cgam_study *study, const char *name, FILE *to);

/* ---- Of `lm inject`, `lm gates` and `lm fit`, for the number of shots with that index ---------- */
void cgam_inject_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
void cgam_gates_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
void cgam_gates_draw_spectrum(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
void cgam_fit_draw_labels(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
void cgam_fit_draw_words(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);

#endif
