/* lock.c: a lock on the file itself (flock), which ends with its holder. A writer replaces the file by another, so who
 * waited looks whether the path still names the file it has locked, and begins again if not. */
#include "io/lock.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20 };

/* Does the path name the file that the descriptor has open? */
static bool still_named(const char *path, int fd, struct stat *held)
{
    struct stat named;
    return fstat(fd, held) == 0 && stat(path, &named) == 0 && named.st_ino == held->st_ino &&
           named.st_dev == held->st_dev;
}

cgam_status cgam_lock_begin(cgam_env *env, const char *path, int *out)
{
    struct stat held;
    char text[128];
    for (;;) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_CREAT, 0666);
        *out = -1;
        if (fd < 0)
            return cgam_fail(env,
                             errno == EMFILE || errno == ENFILE || errno == ENOSPC || errno == EIO
                                 ? CGAM_E_IO
                                 : CGAM_E_NOT_FOUND,
                             "%s: %s", cgam_path_tail(path), strerror_r(errno, text, sizeof text));
        while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR) break; /* this file system has no locks */
            if (cgam_interrupted(env)) {
                close(fd);
                return cgam_fail(env, CGAM_E_INTERRUPTED, "%s: stopped on request",
                                 cgam_path_tail(path));
            }
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        }
        *out = fd;
        if (still_named(path, fd, &held)) return CGAM_OK;
        close(fd); /* another process replaced it meanwhile */
    }
}

void cgam_lock_end(const char *path, int lock)
{
    struct stat held;
    if (lock < 0) return;
    if (still_named(path, lock, &held) && S_ISREG(held.st_mode) && held.st_size == 0) unlink(path);
    close(lock);
}
