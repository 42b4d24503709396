/* table.c: numbers in CSV read back exactly (RFC 4180 for the rest). An empty field is "no value" to
 * every program that reads CSV; an infinity is a value, and "inf" is what C, NumPy, pandas and R read. */
#include "io/table.h"

#include "base/env.h"
#include "io/folder.h"
#include "io/json.h"

#include <math.h>
#include <string.h>

void cgam_csv_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\";\t\r\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"') fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

void cgam_csv_real(FILE *to, double value)
{
    char text[CGAM_REAL_TEXT];
    if (isnan(value)) return;
    if (isinf(value)) fputs(value > 0 ? "inf" : "-inf", to);
    else if (value == rint(value) && fabs(value) < 1e15) fprintf(to, "%.0f", value);
    else fputs(cgam_real_text(value, text), to);
}

static void write_row(FILE *to, const double *values, int64_t columns)
{
    for (int64_t i = 0; i < columns; i++) {
        if (i) fputc(',', to);
        cgam_csv_real(to, values[i]);
    }
    fputc('\n', to);
}

static int64_t count_heads(const char *heads)
{
    int64_t count = 1;
    for (; *heads; heads++) count += *heads == ',';
    return count;
}

cgam_status cgam_csv_begin(cgam_env *env, const char *folder, const char *name, const char *heading,
                           cgam_csv *out)
{
    *out = (cgam_csv){.columns = count_heads(heading)};
    if (!folder) return CGAM_OK;
    cgam_status status = cgam_outfile_in(env, folder, name, &out->file);
    if (status == CGAM_OK) fprintf(cgam_outfile_stream(out->file), "%s\n", heading);
    return status;
}

void cgam_csv_row(cgam_csv *csv, const double *values)
{
    if (csv->file) write_row(cgam_outfile_stream(csv->file), values, csv->columns);
}

cgam_status cgam_csv_end(cgam_csv *csv, cgam_status status)
{
    cgam_outfile *file = csv->file;
    csv->file = NULL;
    if (!file) return status;
    if (status == CGAM_OK) return cgam_outfile_commit(file);
    cgam_outfile_abandon(file);
    return status;
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

double cgam_table_get(const cgam_table *table, int64_t row, const char *name)
{
    int64_t column = cgam_table_column(table, name);
    return column < 0 || row < 0 || row >= table->rows
               ? (double)NAN
               : table->cells[row * table->columns + column];
}

cgam_status cgam_table_write(cgam_env *env, const cgam_table *table, const char *folder)
{
    char name[256];
    cgam_csv csv;
    if (snprintf(name, sizeof name, "%s.csv", table->name) >= (int)sizeof name)
        return cgam_fail(env, CGAM_E_ARG, "a table's name has %zu bytes, at most %zu are meant",
                         strlen(table->name), sizeof name - sizeof ".csv");
    if (count_heads(table->heads) != table->columns + (table->labels != NULL))
        return cgam_fail(env, CGAM_E_SHAPE, "%s: %lld names for %lld columns", name,
                         (long long)count_heads(table->heads),
                         (long long)table->columns + (table->labels != NULL));
    cgam_status status = cgam_csv_begin(env, folder, name, table->heads, &csv);
    for (int64_t i = 0; i < table->rows && status == CGAM_OK; i++) {
        FILE *to = cgam_outfile_stream(csv.file);
        if (table->labels) {
            cgam_csv_text(to, table->labels[i]);
            if (table->columns) fputc(',', to);
        }
        write_row(to, table->cells + i * table->columns, table->columns);
    }
    return cgam_csv_end(&csv, status);
}
