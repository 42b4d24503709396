/* child.c: posix_spawn with the settings of all our child processes: no signals blocked, none of our files open
 * on their standard streams. */
#include "lab/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_files(const cgam_child *c, posix_spawn_file_actions_t *to)
{
    const int files[] = {c->in, c->out};
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    int error = c->folder ? posix_spawn_file_actions_addchdir_np(to, c->folder) : 0;
    for (int i = 0; i < 2 && !error; i++)
        error = files[i] ? posix_spawn_file_actions_adddup2(to, files[i], i)
                         : posix_spawn_file_actions_addopen(to, i, "/dev/null", O_RDWR, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(to, 2, c->log ? c->log : "/dev/null",
                                                 c->log ? flags : O_WRONLY, 0666);
    if (!error && c->log_all) error = posix_spawn_file_actions_adddup2(to, 2, 1);
    return error;
}

int cgam_child_start(const cgam_child *c, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char *const *words; /* posix_spawn does not modify it, but its type lacks const */
    memcpy(&words, &c->argv, sizeof words);
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(
        &how, (short)(POSIX_SPAWN_SETSIGMASK | (c->apart ? POSIX_SPAWN_SETPGROUP : 0)));
    error = set_files(c, &files);
    if (!error) error = posix_spawnp(pid, c->argv[0], &files, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int cgam_child_wait(pid_t pid)
{
    int state = 0;
    while (waitpid(pid, &state, 0) < 0)
        if (errno != EINTR) return 128;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}
