/* What a process in a sandbox can no longer do. Each test asks in a child, since there is no way back. */
#include "cgam/io.h"
#include "serve/sandbox.h"
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Tries in a child inside a sandbox; skips where the kernel lacks the limit. */
static void try_inside(bool (*holds)(const char *folder), size_t limit)
{
    enum { FINE = 0, BROKEN = 1, NOT_THERE = 77 };
    char folder[] = "/tmp/cgam-sandbox-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *folders[] = {folder};
        cgam_sandboxed has = cgam_sandbox_enter(
            &(cgam_sandbox){.folders = folders, .count = 1, .memory = (size_t)256 << 20});
        if (!*((const bool *)&has + limit)) _exit(NOT_THERE);
        _exit(holds(folder) ? FINE : BROKEN);
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    snprintf(path, sizeof path, "%s/x", folder);
    unlink(path);
    rmdir(folder);
    assert_true(WIFEXITED(how));
    if (WEXITSTATUS(how) == NOT_THERE) skip();
    assert_int_equal(WEXITSTATUS(how), FINE);
}

/* A test that holds inside a sandbox; `limit` of cgam_sandboxed is what it is about. */
#define INSIDE(limit, name)                                                                        \
    static bool name##_holds(const char *folder);                                                  \
    TEST(name) { try_inside(name##_holds, offsetof(cgam_sandboxed, limit)); }                      \
    static bool name##_holds(__attribute__((unused)) const char *folder)

INSIDE(files, files_are_written_below_its_folders_alone)
{
    char path[64];
    snprintf(path, sizeof path, "%s/x", folder);
    int in = open(path, O_CREAT | O_RDWR, 0600),
        out = open("/tmp/cgam-outside", O_CREAT | O_RDWR, 0600);
    int error = errno, read_only = open("/etc/passwd", O_RDONLY),
        null = open("/dev/null", O_WRONLY);
    if (out >= 0) unlink("/tmp/cgam-outside");
    return in >= 0 && out < 0 && error == EACCES && read_only >= 0 && null >= 0;
}

/* What would lead the server, which follows names below the root, out of it, or hold it up. */
INSIDE(files, links_and_pipes_are_not_made)
{
    char path[64];
    snprintf(path, sizeof path, "%s/x", folder);
    return symlink("/etc", path) != 0 && mkfifo(path, 0600) != 0 &&
           mknod(path, S_IFSOCK | 0600, 0) != 0 && mkdir(path, 0700) == 0 && rmdir(path) == 0;
}

INSIDE(calls, rights_of_files_stay_as_they_are)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    bool refused = fd >= 0 && chmod(folder, 0755) != 0 && fchmod(fd, 0755) != 0 &&
                   fchmodat(AT_FDCWD, folder, 0755, 0) != 0 && chown(folder, getuid(), getgid()) &&
                   utimes(folder, NULL) != 0 && setxattr(folder, "user.x", "y", 1, 0) != 0;
    struct stat st;
    return refused && stat(folder, &st) == 0 && (st.st_mode & 0777) == 0700;
}

INSIDE(calls, limits_of_others_stay_as_they_are)
{
    struct rlimit theirs, own;
    bool kept = prlimit(getppid(), RLIMIT_CPU, NULL, &theirs) != 0 && errno == EPERM &&
                setpriority(PRIO_PROCESS, (id_t)getppid(), 5) != 0 && errno == EPERM;
    return kept && prlimit(0, RLIMIT_CPU, NULL, &own) == 0 && getrlimit(RLIMIT_CPU, &own) == 0 &&
           setpriority(PRIO_PROCESS, 0, 5) == 0;
}

/* Rights cannot be set there, so a new file has them from its beginning. */
INSIDE(calls, a_file_of_ones_own_stays_so)
{
    char path[64];
    struct stat st;
    cgam_env *env;
    snprintf(path, sizeof path, "%s/x", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || close(fd) != 0 || cgam_env_new(NULL, &env) != CGAM_OK) return false;
    umask(022);
    bool written = cgam_npy_write(env, path, CGAM_F64, 0, NULL, &(double){1}) == CGAM_OK;
    cgam_env_free(env);
    return written && stat(path, &st) == 0 && st.st_size > 0 && (st.st_mode & 0777) == 0600;
}

/* A child, started by a call of the system; its end is waited for. */
static bool starts(long pid)
{
    if (pid == 0) _exit(0);
    return pid > 0 && waitpid((pid_t)pid, NULL, 0) == (pid_t)pid;
}

INSIDE(calls, there_is_no_way_to_other_namespaces)
{
    enum { FSOPEN = 430 };
    bool closed = !starts(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) &&
                  unshare(CLONE_NEWUSER) != 0 && syscall(FSOPEN, "tmpfs", 0) < 0 &&
                  shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) < 0;
    return closed && starts(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) && starts(fork());
}

INSIDE(calls, its_group_is_not_left)
{
    return setsid() < 0 && errno == EPERM && setpgid(0, 0) != 0 && errno == EPERM;
}

INSIDE(calls, there_are_no_sockets)
{
    errno = 0;
    return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM &&
           socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM;
}

INSIDE(memory, memory_is_limited)
{
    void *much =
        mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *some =
        mmap(NULL, (size_t)1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return much == MAP_FAILED && some != MAP_FAILED;
}

INSIDE(signals, others_are_not_signalled)
{
    return kill(getppid(), 0) != 0 && errno == EPERM && kill(getpid(), 0) == 0;
}
