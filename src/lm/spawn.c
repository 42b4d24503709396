/* spawn.c: other programs (npm, tar), watched while they run; and the trees of files they leave. */
#include "lm/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void last_line(const char *path, char *text, size_t size)
{
    char line[256];
    text[0] = '\0';
    FILE *f = fopen(path, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0]) snprintf(text, size, "%s", line);
    }
    fclose(f);
}

static cgam_status begin(cgam_env *env, const char *const *argv, const char *log, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    char *const *words; /* posix_spawn changes nothing, but its type does not say so */
    memcpy(&words, &argv, sizeof words);
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return cgam_fail(env, CGAM_E_IO, "%s: %s", argv[0], strerror(error));
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    /* Its own group, so that Ctrl-C reaches us and we end it. */
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    error = posix_spawnp(child, argv[0], &actions, &how, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&how);
    if (error == ENOENT)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "the program %s is not there", argv[0]);
    return error ? cgam_fail(env, CGAM_E_IO, "%s: %s", argv[0], strerror(error)) : CGAM_OK;
}

cgam_status cgam_spawn(cgam_env *env, const char *const *argv, const char *log, cgam_tick tick,
                       void *user)
{
    pid_t child;
    cgam_status status = begin(env, argv, log, &child);
    if (status != CGAM_OK) return status;
    int ended = 0;
    for (;;) {
        pid_t got = waitpid(child, &ended, WNOHANG);
        if (got == child) break;
        if (got < 0 && errno != EINTR) return cgam_fail(env, CGAM_E_IO, "%s: lost", argv[0]);
        if (status == CGAM_OK) {
            status = cgam_interrupted(env) ? CGAM_E_INTERRUPTED : tick ? tick(user) : CGAM_OK;
            if (status != CGAM_OK) kill(-child, SIGTERM);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    if (status != CGAM_OK) return status;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return CGAM_OK;
    char said[256];
    last_line(log, said, sizeof said);
    return cgam_fail(env, CGAM_E_IO, "%s %s failed: %s", argv[0], argv[1] ? argv[1] : "", said);
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
