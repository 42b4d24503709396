/* cache.c: the folder of the runtime and the default model. */
#include "lm/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cgam_status cgam_cache_path(cgam_env *env, const char *name, char path[CGAM_PATH_ROOM])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[CGAM_PATH_ROOM];
    int length = -1;
    /* The XDG standard requires that a relative path is ignored. */
    if (cache && cache[0] == '/') length = snprintf(folder, sizeof folder, "%s/cgam", cache);
    else if (home && home[0]) length = snprintf(folder, sizeof folder, "%s/.cache/cgam", home);
    if (length < 0)
        return cgam_fail(env, CGAM_E_NOT_FOUND,
                         "no folder for the cache: set XDG_CACHE_HOME or HOME");
    if (length >= CGAM_PATH_ROOM) return cgam_fail(env, CGAM_E_ARG, "the cache's path is too long");
    return cgam_path_join(env, folder, name, path);
}

cgam_status cgam_lm_runtime_path(cgam_env *env, char path[CGAM_PATH_ROOM])
{
    return cgam_cache_path(env, CGAM_LM_RUNTIME "/lib", path);
}

cgam_status cgam_lm_model_path(cgam_env *env, char *path, size_t size)
{
    char full[CGAM_PATH_ROOM];
    cgam_status status = cgam_cache_path(env, CGAM_LM_DEFAULT, full);
    if (status == CGAM_OK && strlen(full) >= size)
        status = cgam_fail(env, CGAM_E_ARG, "a path of %zu characters is too long", strlen(full));
    if (status == CGAM_OK) memcpy(path, full, strlen(full) + 1);
    return status;
}
