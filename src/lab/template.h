/* template.h: text files of the source tree with holes in them, filled and written: the gnuplot scripts of figures
 * (lab/figures/NAME.gp) and the pieces of HTML pages (lab/page/NAME.html).
 *
 * A file has sections; a section begins after a line "### name" and ends before the next such line. In it {name} stands
 * for a value; braces around any other word stay. In HTML a value is text and is escaped; {name:math} also sets x_y as a
 * subscript and {name:raw} may hold tags. */
#ifndef CGAM_SRC_LAB_TEMPLATE_H
#define CGAM_SRC_LAB_TEMPLATE_H

#include <cgam/base.h>
#include <stdio.h>

/* Writes a section of the file, "figures/sweep.gp", as it stands, and with its holes filled. `format` has words "name=%g", as printf would take them, each of which
 * the section uses: "low=%g high=%g caption=%s". */
void cgam_template_put(FILE *to, const char *file, const char *section);
void cgam_template_fill(FILE *to, const char *file, const char *section, const char *format, ...)
    CGAM_PRINTF(4, 5);

/* A section as it stands; *end, unless NULL, gets where it ends. */
const char *cgam_template_section(const char *file, const char *section, const char **end);

/* Text with <, >, & and " escaped. */
void cgam_html_text(FILE *to, const char *text);
/* The same with x_y as a subscript after a single letter, and a minus sign before digits. */
void cgam_html_math(FILE *to, const char *text);
/* The same for text of ours that may hold tags. */
void cgam_html_rich(FILE *to, const char *text);

#endif
