/* html.h: small pieces of the page. */
#ifndef CGAM_SRC_LAB_PAGE_HTML_H
#define CGAM_SRC_LAB_PAGE_HTML_H

#include "lab/page/report.h"
#include "lab/template.h"

#include <stdio.h>

/* A paragraph of cgam_html_rich. */
void cgam_html_say(FILE *to, const char *text);
void cgam_html_head(FILE *to, const char *title);
/* Prints a file of the folder as a data: URL with its type. Returns false and sets errno if it cannot be read. */
bool cgam_html_data(FILE *to, const char *path, const char *type);
/* Selected columns of a table: heads and how to print each ("%.3f"); a NULL format ends. */
typedef struct cgam_html_column {
    const char *column, *head, *format;
} cgam_html_column;
void cgam_html_table(FILE *to, const cgam_table *t, const cgam_html_column *columns,
                     const char *label_head, int64_t from, int64_t step);

/* A figure of OUT/FOLDER with its caption: inside the page as SVG, or as PNG if the SVG is large. */
CGAM_NODISCARD cgam_status cgam_html_picture(FILE *to, cgam_env *env, const char *out,
                                             const char *folder, const cgam_figure *f,
                                             const char *letter, const char *words);
/* The two pieces of the page, between marks by which they can be replaced. After a failure a piece is incomplete. */
void cgam_models_claims_html(FILE *to, const cgam_models *models, const cgam_claims *claims);
CGAM_NODISCARD cgam_status cgam_models_html(FILE *to, cgam_env *env, const char *folder,
                                            const cgam_models *models);

/* Claims in groups by verdict, and the first few that do not hold as printed, for claims.html and findings.html; the
 * anchors of groups begin with `id`. */
json_t *cgam_html_claims_doc(const cgam_claims *claims, const char *id);

#endif
