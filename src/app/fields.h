/* fields.h: structs as JSON, by the tables that describe them (cgam_field, base.h). */
#ifndef CGAM_SRC_APP_FIELDS_H
#define CGAM_SRC_APP_FIELDS_H

#include "base/field.h"
#include "lab/document.h"

/* Puts the fields of a struct into a document: those whose `when` is within `facts`, or those named, in that
 * order: "n d", with another name in the document "n=whole live=n". */
void cgam_fields_put(json_t *doc, const cgam_field *rows, const void *object, unsigned facts);
void cgam_fields_put_some(json_t *doc, const char *names, const cgam_field *rows,
                          const void *object);
/* Integers as an array; NULL: 0 .. n - 1. */
json_t *cgam_json_ints(const int64_t *values, int64_t n);
/* A new object with all of them, and an array of `count` structs of `size` bytes each. */
json_t *cgam_fields_json(const cgam_field *rows, const void *object, unsigned facts);
json_t *cgam_fields_list(const cgam_field *rows, const void *objects, int64_t count, size_t size);

/* Prints numbers of a document for people, a line each: name, value, the words of its row. names as above; NULL: all. */
void cgam_fields_print(FILE *to, const char *names, const cgam_field *rows, const json_t *doc);

#endif
