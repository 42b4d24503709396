/* folder.h: folders to write into. */
#ifndef CGAM_SRC_LAB_FOLDER_H
#define CGAM_SRC_LAB_FOLDER_H

#include "io/file.h"

/* Makes a folder and its parents, and checks that it is writable. */
CGAM_NODISCARD cgam_status cgam_folder_make(cgam_env *env, const char *path);

/* Returns the bytes of the part of a path that exists: all of it, a folder above, or 0. */
size_t cgam_folder_there(const char *path);
/* Removes a folder that was made and those above it, up to the part that existed before. Keeps folders
 * that are not empty. */
void cgam_folder_unmake(const char *path, size_t there);

/* Removes folder/name if it exists. */
CGAM_NODISCARD cgam_status cgam_folder_remove(cgam_env *env, const char *folder, const char *name);

/* Begins a file at folder/name; makes the folder. *out is NULL after a failure. */
CGAM_NODISCARD cgam_status cgam_outfile_in(cgam_env *env, const char *folder, const char *name,
                                           cgam_outfile **out);

#endif
