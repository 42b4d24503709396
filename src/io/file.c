/* file.c: maps files, and replaces files atomically. */
#include "io/file.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 100, WAITS = 20 /* 2 s */, PIPE_FIRST = 1 << 16 };
enum { PATH_SHOWN = 240, NAME_TRIES = 16, TEMP_NAME = sizeof ".cgam-0123456789abcdef.tmp" };
enum { OPEN_NAME = 40 };
/* Bytes of a huge page: a file that the system holds in pieces of this size is mapped a piece at a time instead of 4 KB. */
enum { HUGE_PAGE = 1 << 21, STEP = 2 * HUGE_PAGE /* that a large file is written in */ };

const char *cgam_path_tail(const char *path)
{
    size_t length = strlen(path);
    if (length <= PATH_SHOWN) return path;
    const char *tail = path + length - PATH_SHOWN;
    while ((*tail & 0xc0) == 0x80) tail++; /* not in the middle of a UTF-8 character */
    return tail;
}

bool cgam_path_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcasecmp(path + n - m, ending) == 0;
}

cgam_status cgam_path_join(cgam_env *env, const char *folder, const char *name,
                           char path[CGAM_PATH_ROOM])
{
    int length = snprintf(path, CGAM_PATH_ROOM, "%s/%s", folder, name);
    return length < CGAM_PATH_ROOM
               ? CGAM_OK
               : cgam_fail(env, CGAM_E_ARG, "a path of %d characters is too long", length);
}

static bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

const char *cgam_file_name(const char *path)
{
    return is_standard_input(path) ? "standard input" : cgam_path_tail(path);
}

static _Thread_local const cgam_file_overlay *overlay_here;

void cgam_file_overlay_set(const cgam_file_overlay *overlay) { overlay_here = overlay; }

static const cgam_memory_file *find_in_overlay(const char *path)
{
    for (int i = 0; overlay_here && i < overlay_here->count; i++)
        if (strcmp(overlay_here->files[i].name, path) == 0) return &overlay_here->files[i];
    return NULL;
}

bool cgam_file_barred(const char *path)
{
    return overlay_here && overlay_here->exclusive && !find_in_overlay(path);
}

bool cgam_file_exists(const char *path)
{
    struct stat st;
    if (find_in_overlay(path) || cgam_file_barred(path)) return find_in_overlay(path) != NULL;
    return is_standard_input(path) || stat(path, &st) == 0;
}

bool cgam_file_stays(const char *path)
{
    struct stat st;
    if (find_in_overlay(path) || cgam_file_barred(path)) return find_in_overlay(path) != NULL;
    return !is_standard_input(path) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A file that cannot be opened is the user's to fix, unless the machine is out of a resource. */
static cgam_status open_failed(cgam_env *env, const char *path, int error)
{
    char text[128];
    cgam_status status = CGAM_E_NOT_FOUND;
    if (error == ENOMEM) status = CGAM_E_NOMEM;
    if (error == EIO || error == EMFILE || error == ENFILE || error == ENODEV) status = CGAM_E_IO;
    return cgam_fail(env, status, "%s: %s", cgam_file_name(path),
                     strerror_r(error, text, sizeof text));
}

/* Reads up to `capacity` bytes; *got 0: end of the input. Waits for a named pipe without a writer, but only briefly;
 * with a writer it waits without limit. */
static cgam_status read_some(cgam_env *env, const char *path, int fd, uint8_t *to, size_t capacity,
                             bool first, ssize_t *got)
{
    for (int waits = 0;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int some = poll(&ready, 1, WAIT_MS);
        if (cgam_interrupted(env))
            return cgam_fail(env, CGAM_E_INTERRUPTED, "%s: stopped on request",
                             cgam_file_name(path));
        if (some < 0 && errno != EINTR) return open_failed(env, path, errno);
        if (some <= 0 && is_standard_input(path)) continue; /* a read would block */
        *got = read(fd, to, capacity);
        if (*got > 0 || (*got == 0 && (some > 0 || !first))) return CGAM_OK;
        if (*got < 0 && errno != EAGAIN && errno != EINTR) return open_failed(env, path, errno);
        if (*got == 0 && ++waits > WAITS)
            return cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no process writes to this pipe",
                             cgam_path_tail(path));
    }
}

/* Reads a whole pipe into memory, which cgam_file_unmap frees. */
static cgam_status read_pipe(cgam_env *env, const char *path, int fd, cgam_file *out)
{
    size_t capacity = PIPE_FIRST, size = 0;
    ssize_t got = 0;
    cgam_status status = CGAM_OK;
    void *bytes = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    do {
        if (bytes != MAP_FAILED && size == capacity) {
            void *more = mremap(bytes, capacity, 2 * capacity, MREMAP_MAYMOVE);
            if (more == MAP_FAILED) munmap(bytes, capacity);
            else capacity *= 2;
            bytes = more;
        }
        if (bytes == MAP_FAILED) return cgam_fail_nomem(env, cgam_file_name(path));
        status =
            read_some(env, path, fd, (uint8_t *)bytes + size, capacity - size, size == 0, &got);
        size += status == CGAM_OK ? (size_t)got : 0;
    } while (status == CGAM_OK && got > 0);
    if (status != CGAM_OK || size == 0) munmap(bytes, capacity);
    else {
        (void)mremap(bytes, capacity, size, 0); /* to fewer pages: stays where it is */
        *out = (cgam_file){.bytes = bytes, .size = size, .mapped = true, .memory = true};
    }
    if (status == CGAM_OK && size == 0) *out = cgam_file_borrow("", 0);
    return status;
}

cgam_status cgam_file_map(cgam_env *env, const char *path, cgam_file *out)
{
    *out = (cgam_file){0};
    const cgam_memory_file *own = find_in_overlay(path);
    if (own) *out = cgam_file_borrow(own->bytes, own->size);
    if (own) return CGAM_OK;
    if (cgam_file_barred(path))
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s: this file system cannot name temporary files",
                         cgam_file_name(path));
    /* O_NONBLOCK: a pipe without a writer must not block; regular files ignore it. */
    int fd = is_standard_input(path) ? fcntl(0, F_DUPFD_CLOEXEC, 3)
                                     : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return open_failed(env, path, errno);

    struct stat st;
    cgam_status status = CGAM_OK;
    if (fstat(fd, &st) != 0) {
        status = open_failed(env, path, errno);
    } else if (S_ISDIR(st.st_mode)) {
        status = open_failed(env, path, EISDIR);
    } else if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(fd)) {
        status = read_pipe(env, path, fd, out);
    } else if (!S_ISREG(st.st_mode)) {
        status =
            cgam_fail(env, CGAM_E_UNSUPPORTED, "%s: not a file or a pipe", cgam_file_name(path));
    } else if (st.st_size == 0) {
        *out = cgam_file_borrow("", 0);
    } else {
        void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) status = open_failed(env, path, errno);
        else *out = (cgam_file){.bytes = bytes, .size = (size_t)st.st_size, .mapped = true};
        /* Requests huge pages for pages read from the disk; systems without them return an error, which is
         * harmless. */
        if (status == CGAM_OK && out->size >= HUGE_PAGE) madvise(bytes, out->size, MADV_HUGEPAGE);
    }
    close(fd);
    return status;
}

cgam_file cgam_file_borrow(const void *bytes, size_t size)
{
    return (cgam_file){.bytes = bytes, .size = size};
}

void cgam_file_unmap(cgam_file *file)
{
    if (!file) return;
    if (file->mapped) munmap((void *)(uintptr_t)file->bytes, file->size);
    *file = (cgam_file){0};
}

struct cgam_outfile {
    cgam_env *env;
    FILE *stream; /* onto fd; NULL when closed */
    int fd;
    char *buffer;       /* [STEP] of the stream, NULL = its own */
    char *shown;        /* the path from the caller, for messages */
    char *target;       /* links resolved */
    char *temp;         /* a temporary name beside the target; used at the commit, or until then */
    bool nameless;      /* has no name before the commit: a killed program leaves no file */
    atomic_bool made;   /* a file has the name temp */
    int error;          /* the first errno of a failing write */
    cgam_outfile *next; /* of its group */
    cgam_outfile *before, *after; /* of the list of all files being written */
};

static _Thread_local cgam_outgroup *group_here; /* NULL: commits take effect at once */

/* All files being written, of all threads. */
static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static cgam_outfile *written;

static void enter_written(cgam_outfile *out)
{
    pthread_mutex_lock(&written_lock);
    out->after = written;
    if (written) written->before = out;
    written = out;
    pthread_mutex_unlock(&written_lock);
}

static void leave_written(cgam_outfile *out)
{
    pthread_mutex_lock(&written_lock);
    if (out->after) out->after->before = out->before;
    if (out->before) out->before->after = out->after;
    else if (written == out) written = out->after;
    pthread_mutex_unlock(&written_lock);
}

void cgam_outfiles_remove_temporary(void)
{
    pthread_mutex_lock(&written_lock);
    for (cgam_outfile *out = written; out; out = out->after)
        if (out->made) unlink(out->temp);
    pthread_mutex_unlock(&written_lock);
}

static void outfile_free(cgam_outfile *out)
{
    if (!out) return;
    leave_written(out);
    if (out->stream) fclose(out->stream);
    if (out->temp && out->made) unlink(out->temp);
    cgam_free(out->env, out->buffer);
    cgam_free(out->env, out->shown);
    cgam_free(out->env, out->target);
    cgam_free(out->env, out->temp);
    cgam_free(out->env, out);
}

cgam_status cgam_outfile_fail(cgam_outfile *out, int error)
{
    char text[128];
    if (!out->error) out->error = error ? error : EIO;
    return cgam_fail(out->env, CGAM_E_IO, "%s: cannot write: %s", cgam_path_tail(out->shown),
                     strerror_r(out->error, text, sizeof text));
}

/* Length of the directory part of a path, its last slash included; 0 for a bare name. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Chooses another name beside the target. It is random and not derived from the target's, which may already have the
 * maximum length. */
static bool choose_temp_name(cgam_outfile *out)
{
    size_t directory = directory_length(out->target);
    unsigned long long token;
    if (getrandom(&token, sizeof token, 0) != sizeof token) return false;
    memcpy(out->temp, out->target, directory);
    snprintf(out->temp + directory, TEMP_NAME, ".cgam-%016llx.tmp", token);
    return true;
}

/* The name of an open file as the system sees it. */
static void format_fd_path(int fd, char name[OPEN_NAME])
{
    snprintf(name, OPEN_NAME, "/proc/self/fd/%d", fd);
}

/* Opens a file without a name in the target's directory, if the file system supports it and /proc can name it later;
 * else returns -1. */
static int open_nameless(cgam_outfile *out, mode_t mode)
{
    size_t directory = directory_length(out->target);
    char open_name[OPEN_NAME];
    memcpy(out->temp, directory ? out->target : ".", directory ? directory : 1);
    out->temp[directory ? directory : 1] = '\0';
    int fd = open(out->temp, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (fd < 0) return -1;
    format_fd_path(fd, open_name);
    if (access(open_name, F_OK) == 0) return fd;
    close(fd);
    return -1;
}

/* Opens a new file beside the target, without a name if possible. Returns -1 with errno on failure. */
static int open_temp(cgam_outfile *out, mode_t mode)
{
    int fd = open_nameless(out, mode);
    out->nameless = fd >= 0;
    for (int i = 0; i < NAME_TRIES && fd < 0; i++) {
        if (!choose_temp_name(out)) return -1;
        fd = open(out->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    out->made = fd >= 0 && !out->nameless;
    return fd;
}

/* Gives a nameless file the name temp, from which it is then renamed. */
static bool link_temp(cgam_outfile *out)
{
    char open_name[OPEN_NAME];
    format_fd_path(out->fd, open_name);
    for (int i = 0; i < NAME_TRIES && out->nameless; i++) {
        if (!choose_temp_name(out)) return false;
        out->made = linkat(AT_FDCWD, open_name, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) == 0;
        if (out->made || errno != EEXIST) return out->made;
    }
    return out->made;
}

int cgam_write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t put = write(fd, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : ENOSPC;
        at += put;
        size -= (size_t)put;
    }
    return 0;
}

/* A stream's own write treats an interrupted call as a failure. */
static ssize_t stream_write(void *arg, const char *bytes, size_t size)
{
    const cgam_outfile *out = arg;
    int error = cgam_write_all(out->fd, bytes, size);
    if (error) errno = error;
    return error ? 0 : (ssize_t)size;
}

static int stream_seek(void *arg, off64_t *at, int whence)
{
    const cgam_outfile *out = arg;
    *at = lseek64(out->fd, *at, whence);
    return *at < 0 ? -1 : 0;
}

static int stream_close(void *arg)
{
    const cgam_outfile *out = arg;
    return close(out->fd);
}

cgam_status cgam_outfile_begin(cgam_env *env, const char *path, cgam_outfile **result)
{
    *result = NULL;
    cgam_outfile *out = cgam_zalloc(env, 1, sizeof *out);
    if (!out) return cgam_fail_nomem(env, "output file");
    out->env = env;
    char resolved[PATH_MAX];
    const char *target = realpath(path, resolved) ? resolved : path;
    out->shown = cgam_strdup(env, path);
    out->target = cgam_strdup(env, target);
    out->temp = cgam_alloc(env, strlen(target) + TEMP_NAME, 1);
    /* Renaming over a device would destroy it, and over a directory would fail late: report both now. */
    struct stat st;
    bool replaces = stat(target, &st) == 0;
    mode_t mode = replaces ? st.st_mode & 0777 : 0666;
    int fd = -1;
    cgam_status status = CGAM_OK;
    if (!out->shown || !out->target || !out->temp) {
        status = cgam_fail_nomem(env, "output file");
    } else if (!*path) {
        status = cgam_outfile_fail(out, ENOENT);
    } else if (replaces && S_ISDIR(st.st_mode)) {
        status = cgam_outfile_fail(out, EISDIR);
    } else if (replaces && !S_ISREG(st.st_mode)) {
        status =
            cgam_fail(env, CGAM_E_IO, "%s: cannot write: not a regular file", cgam_path_tail(path));
    } else if ((fd = open_temp(out, mode)) < 0) {
        status = cgam_outfile_fail(out, errno);
    } else {
        out->fd = fd;
        out->stream =
            fopencookie(out, "wb",
                        (cookie_io_functions_t){
                            .write = stream_write, .seek = stream_seek, .close = stream_close});
        if (!out->stream) {
            status = cgam_outfile_fail(out, errno);
            close(fd);
        }
    }
    if (status != CGAM_OK) {
        outfile_free(out);
        return status;
    }
    /* The new file is never more open to others than the old one; permissions taken by umask are restored if possible. */
    if (replaces) fchmod(fd, mode);
    enter_written(out);
    *result = out;
    return CGAM_OK;
}

cgam_status cgam_outfile_expect(cgam_outfile *out, uint64_t bytes)
{
    if (bytes < STEP) return CGAM_OK;
    out->buffer = cgam_alloc(out->env, STEP, 1);
    if (!out->buffer) return cgam_fail_nomem(out->env, "output file");
    setvbuf(out->stream, out->buffer, _IOFBF, STEP);
    return CGAM_OK;
}

FILE *cgam_outfile_stream(cgam_outfile *out) { return out->stream; }

int cgam_outfile_fd(const cgam_outfile *out) { return out->fd; }

cgam_status cgam_outfile_write(cgam_outfile *out, const void *bytes, size_t size)
{
    if (size && fwrite(bytes, 1, size, out->stream) != size) return cgam_outfile_fail(out, errno);
    return CGAM_OK;
}

/* Makes the rename durable. File systems that cannot sync a directory return EINVAL, and a directory may be writable
 * without being readable; neither is a failure of the write. */
static int sync_directory(const char *target)
{
    char path[PATH_MAX];
    size_t length = directory_length(target);
    snprintf(path, sizeof path, "%.*s", length ? (int)length : 1, length ? target : ".");
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno == EACCES ? 0 : errno;
    int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return error;
}

/* The last step: renames the file to the target. Frees `out`. */
static cgam_status rename_target(cgam_outfile *out)
{
    cgam_status status = CGAM_OK;
    if (rename(out->temp, out->target) != 0) status = cgam_outfile_fail(out, errno);
    if (status == CGAM_OK) {
        out->made = false;
        int error = sync_directory(out->target);
        if (error) status = cgam_outfile_fail(out, error);
    }
    outfile_free(out);
    return status;
}

cgam_status cgam_outfile_commit(cgam_outfile *out)
{
    cgam_status status = CGAM_OK;
    errno = 0;
    if (out->error || ferror(out->stream) || fflush(out->stream) != 0 || fsync(out->fd) != 0 ||
        !link_temp(out))
        status = cgam_outfile_fail(out, errno);
    /* Some file systems report a failed write only when the file is closed. */
    if (fclose(out->stream) != 0 && status == CGAM_OK) status = cgam_outfile_fail(out, errno);
    out->stream = NULL;
    if (status != CGAM_OK) outfile_free(out);
    else if (!group_here) return rename_target(out);
    else {
        *group_here->last = out;
        group_here->last = &out->next;
    }
    return status;
}

void cgam_outgroup_begin(cgam_outgroup *group)
{
    *group = (cgam_outgroup){.last = group_here ? NULL : &group->first};
    if (group->last) group_here = group;
}

cgam_status cgam_outgroup_end(cgam_outgroup *group, cgam_status status)
{
    if (!group->last) return status;
    group_here = NULL;
    for (cgam_outfile *out = group->first, *next; out; out = next) {
        next = out->next;
        if (status == CGAM_OK) status = rename_target(out);
        else outfile_free(out);
    }
    return status;
}

void cgam_outfile_abandon(cgam_outfile *out) { outfile_free(out); }
