/* picture.h: writes a picture, or the results of an experiment, into a folder. */
#ifndef CGAM_SRC_LAB_FIGURES_PICTURE_H
#define CGAM_SRC_LAB_FIGURES_PICTURE_H

#include "lab/document.h"
#include "lab/figures/figure.h"

/* Writes a figure's script from the document into the folder that holds its tables. */
typedef cgam_status cgam_picture(cgam_env *env, const json_t *doc, const char *folder,
                                 cgam_figures *out);

/* Draws it if `drawn`, saves the document as NAME.json, and adds both to `files`, which lists the tables.
 * Takes ownership of `files` and puts it into the document beside `out`. */
cgam_status cgam_picture_leave(cgam_env *env, json_t *doc, const char *out, const char *name,
                               bool drawn, cgam_picture *write, json_t *files);

/* Draws figures whose scripts are in the folder: puts their names as "figures" and adds the drawings to `files`, unless NULL.
 * Without gnuplot it draws nothing, puts "figures_missing" and returns CGAM_OK. */
cgam_status cgam_figures_leave(cgam_env *env, const char *out, const cgam_figures *figures,
                               json_t *doc, json_t *files);

/* Writes the result of an experiment on a model into the folder `out` (NULL: writes nothing): its tables, the figures
 * if requested, and the document as PART.json. `doc` gets the result's document, `files` the names. */
cgam_status cgam_models_leave(cgam_env *env, const char *out, bool figures, cgam_lm_part part,
                              const cgam_lm_result *result, json_t *doc, json_t *files);

#endif
