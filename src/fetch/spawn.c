/* spawn.c: other programs (npm, tar), watched while they run; and the trees of files they leave. */
#include "fetch/fetch.h"
#include "lab/folder.h"

#include "lab/child.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void cgam_last_line(const char *path, char *text, size_t size)
{
    char line[1024];
    text[0] = '\0';
    FILE *f = fopen(path, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0]) snprintf(text, size, "%.*s", (int)size - 1, line);
    }
    fclose(f);
}

cgam_status cgam_spawn(cgam_env *env, const char *const *argv, const char *log, cgam_tick tick,
                       void *user)
{
    pid_t child;
    int ended = 0,
        error = cgam_child_start(
            &(cgam_child){.argv = argv, .log = log, .log_all = true, .apart = true}, &child);
    if (error == ENOENT)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "the program %s is not installed", argv[0]);
    if (error) return cgam_fail(env, CGAM_E_IO, "%s: %s", argv[0], strerror(error));
    cgam_status status = CGAM_OK;
    for (;;) {
        pid_t got = waitpid(child, &ended, WNOHANG);
        if (got == child) break;
        if (got < 0 && errno != EINTR)
            return cgam_fail(env, CGAM_E_IO, "%s: lost track of the process", argv[0]);
        if (status == CGAM_OK) {
            status = cgam_interrupted(env) ? CGAM_E_INTERRUPTED : tick ? tick(user) : CGAM_OK;
            if (status != CGAM_OK) kill(-child, SIGTERM);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    if (status != CGAM_OK) return status;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return CGAM_OK;
    char said[256];
    cgam_last_line(log, said, sizeof said);
    return cgam_fail(env, CGAM_E_IO, "%s %s failed: %s", argv[0], argv[1] ? argv[1] : "", said);
}

cgam_status cgam_fetch_lock(cgam_env *env, const char *folder, const cgam_progress *progress,
                            int *lock)
{
    char path[CGAM_PATH_ROOM];
    int length = snprintf(path, sizeof path, "%s.lock", folder);
    cgam_status status = length < (int)sizeof path
                             ? cgam_folder_make(env, folder)
                             : cgam_fail(env, CGAM_E_ARG, "the cache's path is too long");
    if (status != CGAM_OK) return status;
    *lock = open(path, O_RDWR | O_CREAT, 0666);
    if (*lock < 0) return cgam_fail(env, CGAM_E_IO, "%s: %s", path, strerror(errno));
    while (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
        else if (errno != EWOULDBLOCK && errno != EINTR)
            status = cgam_fail(env, CGAM_E_IO, "%s: %s", path, strerror(errno));
        if (status != CGAM_OK) {
            close(*lock);
            return status;
        }
        cgam_progress_tell(progress,
                           (cgam_progress_at){.phase = "another process is at it, waiting",
                                              .unit = "",
                                              .seconds_left = NAN});
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return CGAM_OK;
}

void cgam_fetch_unlock(int lock)
{
    flock(lock, LOCK_UN); /* for children too that outlived their time */
    close(lock);
}

void cgam_fetch_tidy(const char *folder)
{
    char path[CGAM_PATH_ROOM];
    struct stat info;
    int length = snprintf(path, sizeof path, "%s.lock", folder);
    int lock = length < (int)sizeof path && stat(folder, &info) == 0
                   ? open(path, O_RDWR | O_CREAT, 0666)
                   : -1;
    if (lock < 0) return;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) cgam_tree_remove(folder);
    cgam_fetch_unlock(lock);
}

static _Thread_local int64_t tree_sum;

static int add_size(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)path, (void)at;
    if (kind == FTW_F) tree_sum += info->st_size;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    remove(path);
    return 0;
}

int64_t cgam_tree_bytes(const char *path)
{
    tree_sum = 0;
    nftw(path, add_size, 16, FTW_PHYS);
    return tree_sum;
}

void cgam_tree_remove(const char *path) { nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH); }
