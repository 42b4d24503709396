/* json.h: JSON over jansson's trees. Reading is strict; numbers read back exactly, in the shortest form that does. */
#ifndef CGAM_SRC_IO_JSON_H
#define CGAM_SRC_IO_JSON_H

#include <cgam/base.h>
#include <jansson.h>

/* Reads a file that holds one JSON object or array. A duplicate key is an error, as is anything after the end;
 * messages name file:line:column. Gives *out; free it with json_decref. */
CGAM_NODISCARD cgam_status cgam_json_load(cgam_env *env, const char *path, json_t **out);
/* The same from memory; `name` stands for the file in messages. */
CGAM_NODISCARD cgam_status cgam_json_parse(cgam_env *env, const char *name, const void *bytes,
                                           size_t size, json_t **out);

/* Adds name: value. Check for failures once, at the end, with cgam_json_ran_short. */
void cgam_json_put(json_t *object, const char *name, json_t *value); /* takes the reference */
/* Has jansson run out of memory in this thread since the last call? Checking once, at the end, is enough. */
bool cgam_json_ran_short(void);
/* Limits the memory of all documents of the process together; a request beyond it fails like a failed allocation. */
void cgam_json_limit(size_t bytes);
/* Parses strictly. NULL: see error, or no_memory, which jansson's error does not report. Does not change the result
 * of cgam_json_ran_short. */
json_t *cgam_json_tree(const void *bytes, size_t size, json_error_t *error, bool *no_memory);
/* Reports CGAM_E_NOMEM and clears cgam_json_ran_short. */
cgam_status cgam_json_nomem(cgam_env *env, const char *what);
/* Returns the tree on one line; free it with free(). NULL if memory runs out, which json_dumps does not detect in
 * keys. */
char *cgam_json_line(const json_t *value);

/* Writes the shortest text that reads back as exactly `value`, which must be finite, into text[CGAM_REAL_TEXT] and
 * returns it. The text has a point or an exponent, so that it stays a real. */
enum { CGAM_REAL_TEXT = 40 };
const char *cgam_real_text(double value, char *text);

#endif
