/* document.h: JSON documents: made member by member, read by path, printed as text. */
#ifndef CGAM_SRC_LAB_DOCUMENT_H
#define CGAM_SRC_LAB_DOCUMENT_H

#include "io/json.h"

#include <stdio.h>

/* A number, or null for NaN and infinities, which JSON lacks. Returns NULL if out of memory. */
json_t *cgam_json_real(double value);

/* Members as cgam_json_put adds them; NaN, infinities and NULL become null. */
void cgam_json_put_int(json_t *object, const char *name, int64_t value);
void cgam_json_put_real(json_t *object, const char *name, double value);
/* Each byte that is not UTF-8 becomes U+FFFD: names in models, files and texts may contain such bytes. */
void cgam_json_put_text(json_t *object, const char *name, const char *value);
json_t *cgam_json_lossy(const char *text);
void cgam_json_put_bool(json_t *object, const char *name, bool value);
/* Adds several values by a format whose words are name=%g for a real, =%d or =%jd (int64_t) for an integer, =%s for a text,
 * =%p for a json_t * whose reference it takes, and name?=%d for true or false: "gap=%g winner=%jd exact?=%d". */
void cgam_json_add(json_t *object, const char *format, ...) CGAM_PRINTF(2, 3);
/* Returns a new object with such values. */
json_t *cgam_json_object(const char *format, ...) CGAM_PRINTF(1, 2);
/* Replaces control characters in texts by question marks, for printing; newlines and tabs stay. */
void cgam_json_tame(json_t *doc);
/* An array of values[i * stride] for i below n. */
json_t *cgam_json_reals(const double *values, int64_t n, int64_t stride);

/* The value at a path of keys, "best.restricted.held_out"; NULL, NAN, 0 or "" if absent or
 * of another type. */
const json_t *cgam_json_at(const json_t *doc, const char *path);
double cgam_json_get_real(const json_t *doc, const char *path);
int64_t cgam_json_get_int(const json_t *doc, const char *path);
const char *cgam_json_get_text(const json_t *doc, const char *path);
/* Number i of the array at a path. */
double cgam_json_nth(const json_t *doc, const char *path, int64_t i);

/* ---- Writing --------------------------------------------------------------------------------- */
/* Writes the tree, indented, to the file folder/name; makes the folder. folder NULL: writes
 * nothing. */
CGAM_NODISCARD cgam_status cgam_json_save(cgam_env *env, const char *folder, const char *name,
                                          const json_t *doc);

/* The same text in memory. Free *out with cgam_text_free. Returns CGAM_E_NOMEM also if the document
 * is incomplete. */
CGAM_NODISCARD cgam_status cgam_json_text(cgam_env *env, const json_t *doc, char **out);

/* Prints a tree, keys in the order they were put in. indent 0 gives one line; otherwise each
 * object and each array that holds arrays or objects is spread over lines, indented by that many
 * spaces a level. No newline at the end. Returns false if the stream failed. */
bool cgam_json_write(FILE *to, const json_t *value, int indent);

/* A list of a document that is made item by item while it is written, so that it is never whole in memory. In the
 * document an array of none or a few of its items stands for it. */
typedef struct cgam_late {
    const char *name; /* its key in the document; NULL: there is no such list */
    int64_t count;
    json_t *(*item)(void *of, int64_t i); /* a new reference; NULL ends the writing */
    void (*free)(void *of);
    void *of;
} cgam_late;
/* cgam_json_write with such a list. Returns false also if an item could not be made. */
bool cgam_json_write_late(FILE *to, const json_t *doc, int indent, const cgam_late *late);
/* cgam_json_text with such a list. */
CGAM_NODISCARD cgam_status cgam_json_text_late(cgam_env *env, const json_t *doc,
                                               const cgam_late *late, char **out);

#endif
