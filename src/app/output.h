/* output.h: files that a study leaves in the folder of --out: tables and its document. */
#ifndef CGAM_SRC_APP_OUTPUT_H
#define CGAM_SRC_APP_OUTPUT_H

#include "app/verb.h"
#include "io/file.h"

/* A CSV file in the making; {0} and a call without --out write nothing. */
typedef struct cgam_csv {
    cgam_outfile *file;
    int columns;
} cgam_csv;

/* The folder is made if it is not there. */
cgam_status cgam_csv_begin(const cgam_call *call, const char *name, const char *heading,
                           cgam_csv *out);
/* One line; as many numbers as the heading has names. NaN is an empty field. */
void cgam_csv_row(cgam_csv *csv, const double *values);
/* Puts the file in place, or removes it when status is a failure, which is handed back. */
cgam_status cgam_csv_end(cgam_csv *csv, cgam_status status);

/* The call's document as a file of --out. */
cgam_status cgam_out_json(const cgam_call *call, const char *name);

#endif
