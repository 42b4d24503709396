/* lock.h: writers of a file that is replaced as a whole take turns. */
#ifndef CGAM_SRC_IO_LOCK_H
#define CGAM_SRC_IO_LOCK_H

#include "io/file.h"

/* Locks the file at `path` for replacement, and waits for other writers. Under the lock the path names the locked file.
 * A file that does not exist is made, empty, so that two writers of a new file take turns too. *out is -1 after a failure.
 * The lock ends with cgam_lock_end or with the process. */
CGAM_NODISCARD cgam_status cgam_lock_begin(cgam_env *env, const char *path, int *out);
/* Removes the file first if it is the one that the lock made and it is still empty. */
void cgam_lock_end(const char *path, int lock);

#endif
