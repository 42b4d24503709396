/* page.h: the parts all gnuplot scripts share. */
#ifndef CGAM_SRC_REPORT_PAGE_H
#define CGAM_SRC_REPORT_PAGE_H

#include "report/figure.h"

typedef struct cgam_page {
    cgam_outfile *file;
    FILE *to;
} cgam_page;

/* The head of a script: files, palette, foot note. What comes before cgam_page_begin is outside the
 * loop over terminals; data written in place has to be. */
cgam_status cgam_page_head(cgam_env *env, const char *folder, const cgam_figure *f, cgam_page *p);
void cgam_page_begin(const cgam_figure *f, int width, int height, cgam_page *p);
/* Both at once. */
cgam_status cgam_page_open(cgam_env *env, const char *folder, const cgam_figure *f, int width,
                           int height, cgam_page *p);
cgam_status cgam_page_close(cgam_page *p);

/* Several panels: what is said once belongs to the first of them alone, which ends in `unset label 1`. */
void cgam_page_panels(FILE *to, const cgam_figure *f);

/* The gnuplot line type of the k-th curve. */
int cgam_page_style(int64_t k);

/* What cgam_page_curves draws. */
typedef struct cgam_curves {
    const char *file;   /* "accuracy.csv" */
    const char *key;    /* the column that tells curves apart */
    const char *symbol; /* and its name in the legend */
    cgam_list list;     /* its values, one a curve */
    const char *x, *y;  /* columns */
    const char *se;     /* column of the standard error, NULL = no bars */
    const char *with;   /* "lines" */
    const char *only;   /* a condition on the row, NULL = none */
} cgam_curves;

/* One part of `plot` for each curve; each ends in a comma but the last, which ends in `rest`. */
void cgam_page_curves(FILE *to, const cgam_curves *c, const char *rest);

/* A figure of a study: its words, its size in points, and what goes into its script. */
typedef struct cgam_figure_script {
    cgam_study_kind kind;
    const char *name, *title; /* name NULL ends the list */
    int width, height;
    void (*data)(const cgam_study *study,
                 FILE *to); /* outside the loop over terminals; NULL = none */
    void (*draw)(const cgam_study *study, FILE *to);
} cgam_figure_script;
extern const cgam_figure_script cgam_figure_scripts[];

/* ---- Of fixed points: figure_points.c -------------------------------------------------------- */
void cgam_figure_limits(const cgam_study *study, FILE *to);
void cgam_figure_rest(const cgam_study *study, FILE *to);
void cgam_figure_minima(const cgam_study *study, FILE *to);
void cgam_figure_best(const cgam_study *study, FILE *to);
void cgam_figure_support(const cgam_study *study, FILE *to);
void cgam_figure_exact(const cgam_study *study, FILE *to);

#endif
