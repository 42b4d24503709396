/* file.h: reads and writes whole files.
 *
 * In: a regular file mapped read-only, or the content of a pipe, read into memory. "-" is standard input. A mapped
 * file must keep its length while it is open; if another program shortens it meanwhile, the reader crashes, as with
 * any mapping. Out: a temporary name in the target's directory, synced and renamed over the target.
 *
 * Statuses: an error that the user can fix by naming another input (absent, a directory, forbidden) is
 * CGAM_E_NOT_FOUND; a failure of the machine, and every failed write, is CGAM_E_IO.
 */
#ifndef CGAM_SRC_IO_FILE_H
#define CGAM_SRC_IO_FILE_H

#include <cgam/base.h>
#include <stdio.h>

typedef struct cgam_file {
    const uint8_t *bytes; /* [size]; NULL if there is no file */
    size_t size;
    bool mapped; /* false: empty, or memory borrowed from the caller */
    bool memory; /* mapped, but not from a file: the content of a pipe */
} cgam_file;

CGAM_NODISCARD cgam_status cgam_file_map(cgam_env *env, const char *path, cgam_file *out);
/* Uses memory in place of a file; borrowed until the unmap. */
cgam_file cgam_file_borrow(const void *bytes, size_t size);
/* Files in memory: the calling thread opens these bytes under their names, which hide files of the same name on the
 * disk. A server passes the contents of a request this way. With `exclusive` the thread can open no other files, so
 * untrusted documents cannot name any. Borrowed until the next call; NULL = none. */
typedef struct cgam_memory_file {
    const char *name;
    const void *bytes;
    size_t size;
} cgam_memory_file;
typedef struct cgam_file_overlay {
    const cgam_memory_file *files;
    int count;
    bool exclusive;
} cgam_file_overlay;
void cgam_file_overlay_set(const cgam_file_overlay *overlay);
void cgam_file_unmap(cgam_file *file); /* NULL and {0} are allowed; leaves {0} */

bool cgam_file_exists(const char *path);
bool cgam_file_barred(const char *path); /* by an exclusive overlay of this thread */
/* Can it be opened twice? Not a pipe. */
bool cgam_file_stays(const char *path);

/* Returns the name of an input for messages: the end of its path if that is long. */
const char *cgam_file_name(const char *path);
/* Returns as much of the end of a path as fits into a message. */
const char *cgam_path_tail(const char *path);
bool cgam_path_ends(const char *path, const char *ending); /* ".npy", ignoring case */

enum { CGAM_PATH_ROOM = 4096 }; /* bytes of a path with its end */
/* path = folder/name; CGAM_E_ARG if that is too long. */
CGAM_NODISCARD cgam_status cgam_path_join(cgam_env *env, const char *folder, const char *name,
                                          char path[CGAM_PATH_ROOM]);

/* Writes all bytes, repeating partial writes; 0 or errno. */
CGAM_NODISCARD int cgam_write_all(int fd, const void *bytes, size_t size);

/* A file being written. Until the commit it exists only in the target's directory, under a name that begins with
 * ".cgam-". If the target is a symbolic link, the file it points to is replaced; a target that is not a regular file
 * (a directory, a device) is rejected. */
typedef struct cgam_outfile cgam_outfile;
CGAM_NODISCARD cgam_status cgam_outfile_begin(cgam_env *env, const char *path, cgam_outfile **out);
/* Call before the first write: announces the number of bytes. A large file is written in steps that the system can
 * store in huge pages, since mapping it 4 KB at a time takes longer than reading it. */
CGAM_NODISCARD cgam_status cgam_outfile_expect(cgam_outfile *out, uint64_t bytes);
FILE *cgam_outfile_stream(cgam_outfile *out); /* for fprintf; the commit reports a failed write */
int cgam_outfile_fd(const cgam_outfile *out); /* of the stream, which has no fileno */
CGAM_NODISCARD cgam_status cgam_outfile_write(cgam_outfile *out, const void *bytes, size_t size);
/* Returns CGAM_E_IO for this file, with the reason `error` or that of an earlier failed write. */
cgam_status cgam_outfile_fail(cgam_outfile *out, int error);
CGAM_NODISCARD cgam_status cgam_outfile_commit(cgam_outfile *out); /* frees it in any case */

/* Several files that are replaced together: between these two calls, commits on this thread only write a file to the
 * disk. The second call renames all of them to their targets, or none if `status` is a failure, which it returns. So
 * a full disk leaves the old files. A group inside another is part of it. */
typedef struct cgam_outgroup {
    cgam_outfile *first;
    cgam_outfile **last; /* NULL: part of another group */
} cgam_outgroup;
void cgam_outgroup_begin(cgam_outgroup *group);
CGAM_NODISCARD cgam_status cgam_outgroup_end(cgam_outgroup *group, cgam_status status);
void cgam_outfile_abandon(cgam_outfile *out); /* removes the temporary; NULL is allowed */
/* Removes the temporaries of all files being written, for a program that ends at once: later commits fail. */
void cgam_outfiles_remove_temporary(void);

#endif
