/* table.h: fields of CSV, in the form of cgam_table_write. */
#ifndef CGAM_SRC_IO_TABLE_H
#define CGAM_SRC_IO_TABLE_H

#include <cgam/io.h>
#include <jansson.h>
#include <stdio.h>

/* One field each, without the comma. */
void cgam_csv_text(FILE *to, const char *text);
void cgam_csv_real(FILE *to, double value);

/* How many names a table's `heads` has. */
int64_t cgam_heads_count(const char *heads);

/* Puts the named columns (separated by commas) of a table into a document under their names: of rows
 * from .. from + rows - 1 as arrays; rows = 0: of row `from` as numbers. */
void cgam_table_put(json_t *doc, const cgam_table *table, int64_t from, int64_t rows,
                    const char *columns);

#endif
