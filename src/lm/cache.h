/* cache.h: paths in the user's cache, $XDG_CACHE_HOME/cgam, else $HOME/.cache/cgam. src/fetch fills it. */
#ifndef CGAM_SRC_LM_CACHE_H
#define CGAM_SRC_LM_CACHE_H

#include "base/env.h"
#include "io/file.h"

#include <cgam/lm.h>

#define CGAM_LM_RUNTIME "llama-3.22.1"
#define CGAM_LM_DEFAULT "tinyllama-1.1b-chat-q2.gguf"

/* Path of `name` in the cache; CGAM_E_NOT_FOUND if neither variable is set. */
CGAM_NODISCARD cgam_status cgam_cache_path(cgam_env *env, const char *name,
                                           char path[CGAM_PATH_ROOM]);
/* Directory of the fetched libllama, whether or not it exists. */
CGAM_NODISCARD cgam_status cgam_lm_runtime_path(cgam_env *env, char path[CGAM_PATH_ROOM]);
/* Path of the default model, whether or not it exists. */
CGAM_NODISCARD cgam_status cgam_lm_model_path(cgam_env *env, char *path, size_t size);

#endif
