/* fields.h: structs as JSON, by the tables that describe them (cgam_field, base.h). */
#ifndef CGAM_SRC_APP_FIELDS_H
#define CGAM_SRC_APP_FIELDS_H

#include "base/field.h"
#include "lab/document.h"

const char *cgam_input_name(cgam_input input); /* e.g. "numbers"; "" if the input has no name */

/* Returns the row whose name is the first `length` bytes of `name`; NULL if there is none. */
const cgam_field *cgam_field_find(const cgam_field *rows, const char *name, size_t length);
/* The word after `word` in the list that a field accepts; word NULL: the first. Returns NULL after the last. */
const char *cgam_field_word(const cgam_field *field, const char *word, size_t *length);
/* The index of `text` among the field's words, from 0; -1 if it is not one of them. */
int cgam_field_choice(const cgam_field *field, const char *text);

/* The field's value in `object` as a number: flags, integers, choices, reals. */
double cgam_field_number(const cgam_field *field, const void *object);

/* Puts fields of a struct into a document: the fields whose `when` is within `facts`, or, if names are given,
 * those fields in that order: "n d". "n=whole live=n" also renames them in the document. */
void cgam_fields_put(json_t *doc, const cgam_field *rows, const void *object, unsigned facts);
void cgam_fields_put_some(json_t *doc, const char *names, const cgam_field *rows,
                          const void *object);
/* Integers as an array; NULL: 0 .. n - 1. */
json_t *cgam_json_ints(const int64_t *values, int64_t n);
/* Returns a new object with the fields of one struct; and a new array for `count` structs of `size` bytes each. */
json_t *cgam_fields_json(const cgam_field *rows, const void *object, unsigned facts);
json_t *cgam_fields_list(const cgam_field *rows, const void *objects, int64_t count, size_t size);

/* Prints numbers of a document as text, a line each: name, value, help of its row. names as above; NULL: all. */
void cgam_fields_print(FILE *to, const char *names, const cgam_field *rows, const json_t *doc);

#endif
