/* csv.h: texts as fields of CSV (RFC 4180). */
#ifndef CGAM_SRC_IO_CSV_H
#define CGAM_SRC_IO_CSV_H

#include <stdio.h>

/* Writes one field, without the comma, in quotes if necessary. */
void cgam_csv_text(FILE *to, const char *field);

#endif
