/* fields.h: structs as JSON, by the tables that describe them (cgam_field, base.h). */
#ifndef CGAM_SRC_APP_FIELDS_H
#define CGAM_SRC_APP_FIELDS_H

#include "base/field.h"
#include "lab/document.h"

const char *cgam_input_name(cgam_input input); /* "numbers"; "" for none */

/* The row of that name of so many bytes; NULL: there is none. */
const cgam_field *cgam_field_find(const cgam_field *rows, const char *name, size_t length);
/* The word after `word` among those a field takes, NULL = the first; NULL past the last. */
const char *cgam_field_word(const cgam_field *field, const char *word, size_t *length);
/* Which of its words it is, counted from 0; -1: none. */
int cgam_field_choice(const cgam_field *field, const char *text);

/* The value in a struct as a number: flags, integers, choices, reals. */
double cgam_field_number(const cgam_field *field, const void *object);

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
