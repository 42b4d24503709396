/* csv.h: texts as fields of CSV (RFC 4180), and tables of fields. */
#ifndef CGAM_SRC_IO_CSV_H
#define CGAM_SRC_IO_CSV_H

#include <cgam/base.h>
#include <stdio.h>

/* Writes one field, without the comma, in quotes if necessary. */
void cgam_csv_text(FILE *to, const char *field);

/* A table of texts: a heading, then rows. Fields are separated by the first of `,` `\t` `;` in the heading; a field in
 * quotes may hold separators and line ends, and "" for a quote. */
typedef struct cgam_csv_table {
    int64_t rows, columns; /* without the heading */
    const char **cell;     /* [(1 + rows) * columns], the heading first */
    char *text;            /* (inside) */
} cgam_csv_table;
/* Copies what it needs of bytes[size]. Gives a table; free it with cgam_csv_table_free, which allows {0}. */
CGAM_NODISCARD cgam_status cgam_csv_table_read(cgam_env *env, const char *name, const void *bytes,
                                               size_t size, cgam_csv_table *out);
void cgam_csv_table_free(cgam_env *env, cgam_csv_table *table);

/* Does at[end - at] hold a decimal number, nan, inf or infinity? */
bool cgam_csv_is_number(const char *at, const char *end);

#endif
