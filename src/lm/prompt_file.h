/* prompt_file.h (inside): prompts out of bytes. */
#ifndef CGAM_SRC_LM_PROMPT_FILE_H
#define CGAM_SRC_LM_PROMPT_FILE_H

#include "io/file.h"

#include <cgam/prompt_file.h>

/* name: of the file, for messages. */
CGAM_NODISCARD cgam_status cgam_prompt_file_read(cgam_env *env, const char *name,
                                                 const cgam_file *bytes, cgam_prompt_file **out);

#endif
