/* folder.h: folders to write into. */
#ifndef CGAM_SRC_LAB_FOLDER_H
#define CGAM_SRC_LAB_FOLDER_H

#include "io/file.h"

/* Makes a folder and its parents, and checks that it is writable. */
CGAM_NODISCARD cgam_status cgam_folder_make(cgam_env *env, const char *path);

/* How many bytes of a path name what is there: all of it, a folder above, or 0. */
size_t cgam_folder_there(const char *path);
/* Takes back a folder that was made and those above it, down to what was there; one that has anything in
 * it stays. */
void cgam_folder_unmake(const char *path, size_t there);

/* Removes folder/name, if it is there. */
CGAM_NODISCARD cgam_status cgam_folder_remove(cgam_env *env, const char *folder, const char *name);

/* A file in the making at folder/name; the folder is made. *out is NULL after a failure. */
CGAM_NODISCARD cgam_status cgam_outfile_in(cgam_env *env, const char *folder, const char *name,
                                           cgam_outfile **out);

#endif
