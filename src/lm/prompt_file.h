/* prompt_file.h (inside): reads a user's prompts from a file. Knows nothing of models: a prompt is a text.
 *
 * A file has one prompt a line, or JSON lines: objects with "prompt" and, optionally,
 * "label". A file is read as JSON lines if its first line that is not blank begins with a brace. */
#ifndef CGAM_SRC_LM_PROMPT_FILE_H
#define CGAM_SRC_LM_PROMPT_FILE_H

#include "io/file.h"
#include "lm/collect.h"

#include <cgam/lm.h>

typedef struct cgam_prompt_file cgam_prompt_file;

typedef struct cgam_prompt_line {
    const char *text;  /* UTF-8, unchanged, with blanks at its ends */
    const char *label; /* or NULL */
    int64_t line;      /* of the file, counted from 1 */
} cgam_prompt_line;

/* Reads a file; "-" is standard input. Skips blank lines, and drops a carriage return at the end of a
 * line. CGAM_E_FORMAT names file, line and reason: no prompt at all, invalid UTF-8, a byte 0. Free *out
 * with cgam_prompt_file_close. */
CGAM_NODISCARD cgam_status cgam_prompt_file_open(cgam_env *env, const char *path,
                                                 cgam_prompt_file **out);
void cgam_prompt_file_close(cgam_prompt_file *file); /* NULL is fine */
int64_t cgam_prompt_file_count(const cgam_prompt_file *file);
/* The file owns the texts. */
cgam_prompt_line cgam_prompt_file_get(const cgam_prompt_file *file, int64_t i);
/* name: of the file, for messages. */
CGAM_NODISCARD cgam_status cgam_prompt_file_read(cgam_env *env, const char *name,
                                                 const cgam_file *bytes, cgam_prompt_file **out);

/* cgam_lm_collect for the prompts of a file: each is tokenised, with the model's beginning-of-sequence token
 * first, and out [count, L + 1, d] is in the order of the file. Unless opts has places, a prompt's place is its
 * number and label in the source that opts->note names. */
CGAM_NODISCARD cgam_status cgam_lm_collect_prompts(cgam_lm *lm, cgam_store *store,
                                                   const cgam_prompt_file *prompts,
                                                   const cgam_collect_opts *opts, float *out,
                                                   cgam_collected *report);

#endif
