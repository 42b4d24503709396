/* json.h: JSON in and out, over jansson's trees. Reading is strict; writing gives numbers that
 * read back exactly, in the shortest form that does. */
#ifndef CGAM_SRC_IO_JSON_H
#define CGAM_SRC_IO_JSON_H

#include <cgam/base.h>
#include <jansson.h>
#include <stdio.h>

/* Reads a file that holds one JSON object or array. A key given twice is an error, as is anything
 * after the end; messages name file:line:column. Gives *out; free it with json_decref. */
CGAM_NODISCARD cgam_status cgam_json_load(cgam_env *env, const char *path, json_t **out);
/* The same from memory; `name` stands for the file in messages. */
CGAM_NODISCARD cgam_status cgam_json_parse(cgam_env *env, const char *name, const void *bytes,
                                           size_t size, json_t **out);

/* A number, or null for NaN and infinities, which JSON does not have. NULL when out of memory. */
json_t *cgam_json_real(double value);

/* ---- Documents ------------------------------------------------------------------------------- */
/* Adds name: value; NaN, infinities and NULL become null. Check once, at the end, with cgam_json_ran_short. */
void cgam_json_put(json_t *object, const char *name, json_t *value); /* takes the reference */
void cgam_json_put_int(json_t *object, const char *name, int64_t value);
void cgam_json_put_real(json_t *object, const char *name, double value);
/* Each byte that is not UTF-8 becomes U+FFFD: names in models, files, and texts may have some. */
void cgam_json_put_text(json_t *object, const char *name, const char *value);
json_t *cgam_json_lossy(const char *text);
void cgam_json_put_bool(json_t *object, const char *name, bool value);
/* Adds several values by a format whose words are name=%g for a real, =%d or =%jd (int64_t) for an integer, =%s for a text,
 * =%p for a json_t * whose reference it takes, and name?=%d for true or false: "gap=%g winner=%jd exact?=%d". */
void cgam_json_add(json_t *object, const char *format, ...) CGAM_PRINTF(2, 3);
/* A new object with them. */
json_t *cgam_json_object(const char *format, ...) CGAM_PRINTF(1, 2);
/* Replaces control characters in texts by question marks, for printing; newlines and tabs stay. */
void cgam_json_tame(json_t *doc);
/* Has jansson run out of memory in this thread since the last call? Checking once, at the end, is enough. */
bool cgam_json_ran_short(void);
/* Parses strictly; NULL: see error, or no_memory, which jansson's error does not report. Leaves the answer of
 * cgam_json_ran_short as it was. */
json_t *cgam_json_tree(const void *bytes, size_t size, json_error_t *error, bool *no_memory);
/* Reports CGAM_E_NOMEM and clears cgam_json_ran_short. */
cgam_status cgam_json_nomem(cgam_env *env, const char *what);
/* values[i * stride] for i below n. */
json_t *cgam_json_reals(const double *values, int64_t n, int64_t stride);

/* The value at a path of keys, "best.restricted.held_out"; NULL, NAN, 0 or "" where there is none of
 * the kind. */
const json_t *cgam_json_at(const json_t *doc, const char *path);
double cgam_json_get_real(const json_t *doc, const char *path);
int64_t cgam_json_get_int(const json_t *doc, const char *path);
const char *cgam_json_get_text(const json_t *doc, const char *path);
/* Number i of the array at a path. */
double cgam_json_nth(const json_t *doc, const char *path, int64_t i);

/* ---- Writing --------------------------------------------------------------------------------- */
/* The tree as the file folder/name, for people to read; the folder is made. folder NULL: nothing is
 * written. */
CGAM_NODISCARD cgam_status cgam_json_save(cgam_env *env, const char *folder, const char *name,
                                          const json_t *doc);

/* The tree on one line, for free(); NULL without memory, which json_dumps does not notice in keys. */
char *cgam_json_line(const json_t *value);

/* The same text as a file has, in memory. Gives *out; free it with cgam_text_free. CGAM_E_NOMEM also where the document
 * is incomplete. */
CGAM_NODISCARD cgam_status cgam_json_text(cgam_env *env, const json_t *doc, char **out);

/* Prints a tree, keys in the order they were put in. indent 0 gives one line; otherwise each
 * object and each array that holds arrays or objects is spread over lines, indented by that many
 * spaces a level. No newline at the end. False when the stream failed. */
bool cgam_json_write(FILE *to, const json_t *value, int indent);

/* The shortest text that reads back as exactly `value`, which is finite; it has a point or an
 * exponent, so that it stays a real. Into text[CGAM_REAL_TEXT], which it returns. */
enum { CGAM_REAL_TEXT = 40 };
const char *cgam_real_text(double value, char *text);

#endif
