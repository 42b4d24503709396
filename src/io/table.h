/* table.h: tables as CSV, whole or a line at a time. The form is that of cgam_table_write. */
#ifndef CGAM_SRC_IO_TABLE_H
#define CGAM_SRC_IO_TABLE_H

#include "io/file.h"

#include <cgam/io.h>

/* One field each, without the comma. */
void cgam_csv_text(FILE *to, const char *text);
void cgam_csv_real(FILE *to, double value);

/* A CSV file in the making; {0} writes nothing. */
typedef struct cgam_csv {
    cgam_outfile *file;
    int64_t columns;
} cgam_csv;

/* folder/name with the heading; the folder is made. folder NULL: nothing will be written. */
CGAM_NODISCARD cgam_status cgam_csv_begin(cgam_env *env, const char *folder, const char *name,
                                          const char *heading, cgam_csv *out);
/* One line; as many numbers as the heading has names. */
void cgam_csv_row(cgam_csv *csv, const double *values);
/* Puts the file in place, or removes it when status is a failure, which is handed back. */
CGAM_NODISCARD cgam_status cgam_csv_end(cgam_csv *csv, cgam_status status);

#endif
