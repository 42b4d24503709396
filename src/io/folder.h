/* folder.h: folders to write into, and paths of files inside them. */
#ifndef CGAM_SRC_IO_FOLDER_H
#define CGAM_SRC_IO_FOLDER_H

#include "io/file.h"

enum { CGAM_PATH_ROOM = 4096 }; /* bytes of a path with its end */

/* Makes a folder and its parents, and checks that it is writable. */
CGAM_NODISCARD cgam_status cgam_folder_make(cgam_env *env, const char *path);

/* How many bytes of a path name what is there: all of it, a folder above, or 0. */
size_t cgam_folder_there(const char *path);
/* Takes back a folder that was made and those above it, down to what was there; one that has anything in
 * it stays. */
void cgam_folder_unmake(const char *path, size_t there);

/* path = folder/name; CGAM_E_ARG when that is too long. */
CGAM_NODISCARD cgam_status cgam_path_join(cgam_env *env, const char *folder, const char *name,
                                          char path[CGAM_PATH_ROOM]);

/* Removes folder/name, if it is there. */
CGAM_NODISCARD cgam_status cgam_folder_remove(cgam_env *env, const char *folder, const char *name);

/* A file in the making at folder/name; the folder is made. *out is NULL after a failure. */
CGAM_NODISCARD cgam_status cgam_outfile_in(cgam_env *env, const char *folder, const char *name,
                                           cgam_outfile **out);

#endif
