/* table.c: numbers in CSV read back exactly (RFC 4180 for the rest). An empty field is "no value" to
 * every program that reads CSV; an infinity is a value, and "inf" is what C, NumPy, pandas and R read. */
#include "lab/table.h"

#include "base/env.h"
#include "io/csv.h"
#include "lab/document.h"
#include "lab/folder.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void cgam_csv_real(FILE *to, double value)
{
    char text[CGAM_REAL_TEXT];
    if (isnan(value)) return;
    if (isinf(value)) fputs(value > 0 ? "inf" : "-inf", to);
    else if (value == rint(value) && fabs(value) < 1e15) fprintf(to, "%.0f", value);
    else fputs(cgam_real_text(value, text), to);
}

int64_t cgam_heads_count(const char *heads)
{
    int64_t count = 1;
    for (; *heads; heads++) count += *heads == ',';
    return count;
}

int64_t cgam_table_column(const cgam_table *table, const char *name)
{
    int64_t column = table->labels ? -1 : 0;
    size_t length = strlen(name);
    for (const char *at = table->heads;; column++) {
        size_t own = strcspn(at, ",");
        if (own == length && strncmp(at, name, own) == 0) return column;
        if (!at[own]) return -1;
        at += own + 1;
    }
}

double cgam_cell(const cgam_table *table, int64_t row, const char *name)
{
    int64_t column = cgam_table_column(table, name);
    return column < 0 || row < 0 || row >= table->rows
               ? (double)NAN
               : table->cells[row * table->columns + column];
}

void cgam_table_put(json_t *doc, const cgam_table *t, int64_t from, int64_t rows,
                    const char *columns)
{
    for (const char *at = columns; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        const int64_t column = cgam_table_column(t, name);
        assert(column >= 0);
        const double *cell = t->cells + from * t->columns + column;
        cgam_json_put(doc, name,
                      rows ? cgam_json_reals(cell, rows, t->columns) : cgam_json_real(*cell));
    }
}

cgam_status cgam_table_write(cgam_env *env, const cgam_table *table, const char *folder)
{
    char name[256];
    cgam_outfile *file;
    int64_t heads = cgam_heads_count(table->heads), fields = table->columns + !!table->labels;
    if (snprintf(name, sizeof name, "%s.csv", table->name) >= (int)sizeof name)
        return cgam_fail(env, CGAM_E_ARG, "a table name has %zu bytes (at most %zu)",
                         strlen(table->name), sizeof name - sizeof ".csv");
    if (heads != fields)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: %lld names for %lld columns", name,
                         (long long)heads, (long long)fields);
    cgam_status status = cgam_outfile_in(env, folder, name, &file);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(file);
    fprintf(to, "%s\n", table->heads);
    for (int64_t i = 0; i < table->rows; i++) {
        if (table->labels) cgam_csv_text(to, table->labels[i]);
        for (int64_t j = 0; j < table->columns; j++) {
            if (j || table->labels) fputc(',', to);
            cgam_csv_real(to, table->cells[i * table->columns + j]);
        }
        fputc('\n', to);
    }
    return cgam_outfile_commit(file);
}
