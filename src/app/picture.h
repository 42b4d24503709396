/* picture.h: what verbs with one picture leave in a folder. */
#ifndef CGAM_SRC_APP_PICTURE_H
#define CGAM_SRC_APP_PICTURE_H

#include "app/verb.h"
#include "report/figure.h"

/* Writes a figure's script from the document into the folder that holds its tables. */
typedef cgam_status cgam_picture(cgam_env *env, const json_t *doc, const char *folder,
                                 cgam_figures *out);

/* Draws it where --figures yes and `wanted`, saves the document as NAME.json, and tells of both: `files`,
 * which has the tables and is taken over, becomes `files` of the document beside `out`. */
cgam_status cgam_picture_leave(cgam_call *call, const char *out, const char *name, bool wanted,
                               cgam_picture *write, json_t *files);
/* The line that says where they are, if they are anywhere. */
void cgam_picture_print_files(const json_t *doc, FILE *to);

#endif
