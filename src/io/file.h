/* file.h: whole files in, whole files out.
 *
 * In: a regular file mapped read-only, or what comes through a pipe, read into memory. "-" is
 * standard input. A mapped file must keep its length while it is open; one
 * that another program shortens meanwhile takes the reader down, as with any mapping.
 * Out: a temporary name in the target's directory, synced and renamed over the target.
 *
 * Statuses: what a user can put right by naming another input (absent, a directory, forbidden)
 * is CGAM_E_NOT_FOUND; what the machine refuses, and every failing write, is CGAM_E_IO.
 */
#ifndef CGAM_SRC_IO_FILE_H
#define CGAM_SRC_IO_FILE_H

#include <cgam/base.h>
#include <stdio.h>

typedef struct cgam_file {
    const uint8_t *bytes; /* [size]; NULL when there is no file */
    size_t size;
    bool mapped; /* false: empty, or memory borrowed from the caller */
    bool memory; /* mapped, but not from a file: what came through a pipe */
} cgam_file;

CGAM_NODISCARD cgam_status cgam_file_map(cgam_env *env, const char *path, cgam_file *out);
/* Memory in place of a file, borrowed until the unmap. */
cgam_file cgam_file_borrow(const void *bytes, size_t size);
/* Files in memory: the calling thread opens these bytes under their names, which hide files of the same name on the
 * disk. A server passes the contents of a request this way. With `exclusive` the thread can open no other files, so
 * that a document from outside can name none. Borrowed until the next call; NULL = none. */
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
void cgam_file_unmap(cgam_file *file); /* copes with {0} and NULL, leaves {0} */

bool cgam_file_exists(const char *path);
bool cgam_file_barred(const char *path); /* by an exclusive overlay of this thread */
/* Can it be opened twice? Not a pipe. */
bool cgam_file_stays(const char *path);

/* How an input is called in messages: the end of its path if that is long. */
const char *cgam_file_name(const char *path);
/* The end of a path, as much as fits into a message. */
const char *cgam_path_tail(const char *path);
bool cgam_path_ends(const char *path, const char *ending); /* ".npy", in either case of letters */

enum { CGAM_PATH_ROOM = 4096 }; /* bytes of a path with its end */
/* path = folder/name; CGAM_E_ARG when that is too long. */
CGAM_NODISCARD cgam_status cgam_path_join(cgam_env *env, const char *folder, const char *name,
                                          char path[CGAM_PATH_ROOM]);

/* Writes all bytes, repeating partial writes; 0 or errno. */
CGAM_NODISCARD int cgam_write_all(int fd, const void *bytes, size_t size);

/* A file being written. It is only in the target's directory, under a name that begins with
 * ".cgam-", until the commit. Where the target is a symbolic link, what it points to is
 * replaced; a target that is not a regular file (a directory, a device) is rejected. */
typedef struct cgam_outfile cgam_outfile;
CGAM_NODISCARD cgam_status cgam_outfile_begin(cgam_env *env, const char *path, cgam_outfile **out);
/* Before the first write: so many bytes are to come. A large file is written in steps of which the system can make huge
 * pages, since who maps it 4 KB at a time waits for that longer than for its bytes. */
CGAM_NODISCARD cgam_status cgam_outfile_expect(cgam_outfile *out, uint64_t bytes);
FILE *cgam_outfile_stream(cgam_outfile *out); /* for fprintf; a failed write shows at the commit */
int cgam_outfile_fd(const cgam_outfile *out); /* what the stream writes to; it has no fileno */
CGAM_NODISCARD cgam_status cgam_outfile_write(cgam_outfile *out, const void *bytes, size_t size);
/* CGAM_E_IO for this file, with the reason `error` or that of an earlier failed write. */
cgam_status cgam_outfile_fail(cgam_outfile *out, int error);
CGAM_NODISCARD cgam_status cgam_outfile_commit(cgam_outfile *out); /* frees it in any case */

/* Several files that belong together: between these two calls, commits on this thread bring a file to the disk and
 * leave it at that; the second gives all of them their names, or takes none over where `status` is a failure, which it
 * hands on. So a disk that fills up leaves the old ones. A group inside another is part of it. */
typedef struct cgam_outgroup {
    cgam_outfile *first;
    cgam_outfile **last; /* NULL: part of another group */
} cgam_outgroup;
void cgam_outgroup_begin(cgam_outgroup *group);
CGAM_NODISCARD cgam_status cgam_outgroup_end(cgam_outgroup *group, cgam_status status);
void cgam_outfile_abandon(cgam_outfile *out); /* removes the temporary; NULL is fine */
/* Removes the temporaries of all files that are being written. For a program that ends at once: commits fail from here on. */
void cgam_outfiles_remove_temporary(void);

#endif
