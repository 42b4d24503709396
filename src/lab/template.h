/* template.h: sections of text files of the source tree, and text as HTML. */
#ifndef CGAM_SRC_LAB_TEMPLATE_H
#define CGAM_SRC_LAB_TEMPLATE_H

#include <cgam/base.h>
#include <stdio.h>

/* The text below the line "### section" of the file lab/FILE, up to the next such line. The section must exist. */
const char *cgam_template_section(const char *file, const char *section);

/* Text with <, >, & and " escaped. */
void cgam_html_text(FILE *to, const char *text);
/* The same with x_y as a subscript after a single letter, and a minus sign before digits. */
void cgam_html_math(FILE *to, const char *text);
/* The same for our own text, which may contain tags. */
void cgam_html_rich(FILE *to, const char *text);

#endif
