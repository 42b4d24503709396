/* folder.c: makes and removes folders with their parents, and files in them. */
#include "lab/folder.h"

#include "base/env.h"
#include "io/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

cgam_status cgam_folder_make(cgam_env *env, const char *path)
{
    char part[CGAM_PATH_ROOM], text[128];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return cgam_fail(env, CGAM_E_ARG, "the folder name has %zu bytes (allowed: 1 to %zu)",
                         length, sizeof part - 1);
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != '\0') continue;
        part[i] = '\0';
        int error = mkdir(part, 0777) == 0 ? 0 : errno;
        struct stat st;
        if (error && (stat(part, &st) != 0 || !S_ISDIR(st.st_mode)))
            return cgam_fail(env, CGAM_E_IO, "%s: cannot create the folder: %s",
                             cgam_path_tail(part),
                             strerror_r(error == EEXIST ? ENOTDIR : error, text, sizeof text));
        part[i] = path[i];
    }
    if (access(path, W_OK | X_OK) != 0)
        return cgam_fail(env, CGAM_E_IO, "%s: cannot write into the folder: %s",
                         cgam_path_tail(path), strerror_r(errno, text, sizeof text));
    return CGAM_OK;
}

size_t cgam_folder_there(const char *path)
{
    char part[CGAM_PATH_ROOM];
    struct stat st;
    snprintf(part, sizeof part, "%s", path);
    size_t length = strlen(part);
    while (length > 0 && stat(part, &st) != 0) {
        while (length > 0 && part[length - 1] == '/') length--;
        while (length > 0 && part[length - 1] != '/') length--;
        part[length] = '\0';
    }
    return length;
}

void cgam_folder_unmake(const char *path, size_t there)
{
    char part[CGAM_PATH_ROOM];
    size_t length = strlen(path);
    if (length >= sizeof part) return;
    memcpy(part, path, length + 1);
    while (length > there && rmdir(part) == 0) {
        while (length > there && part[length - 1] == '/') length--;
        while (length > there && part[length - 1] != '/') length--;
        part[length] = '\0';
    }
}

cgam_status cgam_folder_remove(cgam_env *env, const char *folder, const char *name)
{
    char path[CGAM_PATH_ROOM], text[128];
    cgam_status status = cgam_path_join(env, folder, name, path);
    if (status != CGAM_OK || unlink(path) == 0 || errno == ENOENT) return status;
    return cgam_fail(env, CGAM_E_IO, "%s: cannot remove: %s", cgam_path_tail(path),
                     strerror_r(errno, text, sizeof text));
}

cgam_status cgam_outfile_in(cgam_env *env, const char *folder, const char *name, cgam_outfile **out)
{
    char path[CGAM_PATH_ROOM];
    *out = NULL;
    cgam_status status = cgam_folder_make(env, folder);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, name, path);
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, out);
    return status;
}
