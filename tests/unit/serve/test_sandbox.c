/* What a process in a sandbox can no longer do. Each test asks in a child, since there is no way back. */
#include "serve/sandbox.h"
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FINE = 0, NOT_THERE = 77, BROKEN = 1 };

/* Runs `tries` in a child inside a sandbox; skips where the kernel lacks what it is about. */
static void inside(int (*tries)(cgam_sandboxed has, const char *folder))
{
    char folder[] = "/tmp/cgam-sandbox-XXXXXX";
    assert_non_null(mkdtemp(folder));
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *folders[] = {folder};
        cgam_sandboxed has = cgam_sandbox_enter(
            &(cgam_sandbox){.folders = folders, .count = 1, .memory = (size_t)256 << 20});
        _exit(tries(has, folder));
    }
    int state = 0;
    assert_int_equal(waitpid(pid, &state, 0), pid);
    char path[64];
    snprintf(path, sizeof path, "%s/x", folder);
    unlink(path);
    rmdir(folder);
    assert_true(WIFEXITED(state));
    if (WEXITSTATUS(state) == NOT_THERE) skip();
    assert_int_equal(WEXITSTATUS(state), FINE);
}

static int try_files(cgam_sandboxed has, const char *folder)
{
    char path[64];
    if (!has.files) return NOT_THERE;
    snprintf(path, sizeof path, "%s/x", folder);
    int in = open(path, O_CREAT | O_RDWR, 0600),
        out = open("/tmp/cgam-outside", O_CREAT | O_RDWR, 0600);
    int error = errno, read_only = open("/etc/passwd", O_RDONLY),
        null = open("/dev/null", O_WRONLY);
    if (out >= 0) unlink("/tmp/cgam-outside");
    return in >= 0 && out < 0 && error == EACCES && read_only >= 0 && null >= 0 ? FINE : BROKEN;
}

static void files_are_written_below_its_folders_alone(void **state)
{
    (void)state;
    inside(try_files);
}

/* What would lead the server, which follows names below the root, out of it, or hold it up. */
static int try_special_files(cgam_sandboxed has, const char *folder)
{
    char path[64];
    if (!has.files) return NOT_THERE;
    snprintf(path, sizeof path, "%s/x", folder);
    return symlink("/etc", path) != 0 && mkfifo(path, 0600) != 0 &&
                   mknod(path, S_IFSOCK | 0600, 0) != 0 && mkdir(path, 0700) == 0 &&
                   rmdir(path) == 0
               ? FINE
               : BROKEN;
}

static void links_and_pipes_are_not_made(void **state)
{
    (void)state;
    inside(try_special_files);
}

static int try_network(cgam_sandboxed has, const char *folder)
{
    (void)folder;
    if (!has.calls) return NOT_THERE;
    errno = 0;
    return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM &&
                   socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM
               ? FINE
               : BROKEN;
}

static void there_are_no_sockets(void **state)
{
    (void)state;
    inside(try_network);
}

static int try_memory(cgam_sandboxed has, const char *folder)
{
    (void)folder;
    if (!has.memory) return NOT_THERE;
    void *much =
        mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *some =
        mmap(NULL, (size_t)1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return much == MAP_FAILED && some != MAP_FAILED ? FINE : BROKEN;
}

static void memory_is_limited(void **state)
{
    (void)state;
    inside(try_memory);
}

static int try_signals(cgam_sandboxed has, const char *folder)
{
    (void)folder;
    if (!has.signals) return NOT_THERE;
    return kill(getppid(), 0) != 0 && errno == EPERM && kill(getpid(), 0) == 0 ? FINE : BROKEN;
}

static void others_are_not_signalled(void **state)
{
    (void)state;
    inside(try_signals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_written_below_its_folders_alone),
        cmocka_unit_test(links_and_pipes_are_not_made),
        cmocka_unit_test(there_are_no_sockets),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(others_are_not_signalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
