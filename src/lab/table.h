/* table.h: tables of numbers, and their form as CSV. */
#ifndef CGAM_SRC_LAB_TABLE_H
#define CGAM_SRC_LAB_TABLE_H

#include <cgam/base.h>
#include <jansson.h>
#include <stdio.h>

/* A field of CSV, without the comma. */
void cgam_csv_real(FILE *to, double value);

typedef struct cgam_table {
    const char *name;          /* "accuracy"; the file is accuracy.csv */
    const char *about;         /* one line */
    const char *heads;         /* column names, separated by commas */
    const char *const *labels; /* [rows] the first column as text, or NULL */
    int64_t rows, columns;     /* of numbers, without the labels */
    const double *cells;       /* [rows, columns], NAN = none */
} cgam_table;

/* The number of names in a table's `heads`. */
int64_t cgam_heads_count(const char *heads);

/* Puts the named columns (separated by commas) of a table into a document under their names: rows
 * from .. from + rows - 1 as arrays; rows = 0: row `from` as numbers. */
void cgam_table_put(json_t *doc, const cgam_table *table, int64_t from, int64_t rows,
                    const char *columns);

/* The index of the column of numbers with that name; -1 if there is none. */
int64_t cgam_table_column(const cgam_table *table, const char *name);
/* The number in a row of the column with that name; NAN if there is none. */
double cgam_cell(const cgam_table *table, int64_t row, const char *name);
/* Writes name.csv into the folder; makes the folder and its parents. Numbers are the shortest that read
 * back exactly, integers have no point, a missing value is an empty field, infinities are inf and -inf.
 * Labels are quoted if necessary. */
CGAM_NODISCARD cgam_status cgam_table_write(cgam_env *env, const cgam_table *table,
                                            const char *folder);

#endif
