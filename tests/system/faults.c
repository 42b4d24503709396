/* faults.c: runs a program and makes one of its input or output calls fail.
 *
 *   faults FOLDER count LOG -- PROGRAM WORDS..      how many calls there are, for each kind
 *   faults FOLDER KIND K LOG -- PROGRAM WORDS..     the K-th call fails;  K+: it and all after it
 *
 * Only calls on files below FOLDER count, of the program and its threads; of its children those that write. KIND is an error (EIO,
 * ENOSPC, EINTR, ENOMEM), "short" (half of the bytes asked for) or "kill" (SIGKILL, before the call is made).
 * Calls are seen by ptrace where a seccomp filter stops them, so that those which libc makes inside stdio, which
 * SQLite and libllama make, count like our own. The status is the program's, 128 + signal if one ended it, 77 where
 * this cannot be done, 78 when there were fewer than K calls. LOG gets one line: the counts, or the call that failed.
 *
 * x86-64 Linux; a test's tool, never installed. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_HERE = 77, TOO_FEW = 78, USAGE = 64 };

#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FAIL_EIO = 1,
    FAIL_ENOSPC = 2,
    FAIL_EINTR = 4,
    FAIL_ENOMEM = 8,
    FAIL_SHORT = 16,
    FAIL_KILL = 32,
    KINDS = 6
};
enum {
    BY_FD,
    BY_PATH,
    BY_AT
}; /* which file: argument `which` is a descriptor, a path, a path after one */
enum { NAMES = PATH_MAX + 64 };

/* A close that fails has closed: the call is made, and its answer changed. EINTR there and at mmap is not a thing
 * that Linux says. */
typedef struct call {
    long number;
    const char *name;
    int by, which;
    unsigned fails;
} call;

enum {
    ANY = FAIL_EIO | FAIL_KILL,
    IN = ANY | FAIL_EINTR | FAIL_SHORT,
    OUT = IN | FAIL_ENOSPC,
    MAKE = ANY | FAIL_ENOSPC
};
static const call calls[] = {
    {SYS_read, "read", BY_FD, 0, IN},
    {SYS_pread64, "pread", BY_FD, 0, IN},
    {SYS_readv, "readv", BY_FD, 0, IN},
    {SYS_write, "write", BY_FD, 0, OUT},
    {SYS_pwrite64, "pwrite", BY_FD, 0, OUT},
    {SYS_writev, "writev", BY_FD, 0, OUT},
    {SYS_mmap, "mmap", BY_FD, 4, ANY | FAIL_ENOMEM},
    {SYS_fsync, "fsync", BY_FD, 0, MAKE},
    {SYS_fdatasync, "fdatasync", BY_FD, 0, MAKE},
    {SYS_ftruncate, "ftruncate", BY_FD, 0, MAKE},
    {SYS_fallocate, "fallocate", BY_FD, 0, MAKE},
    {SYS_close, "close", BY_FD, 0, ANY},
    {SYS_fstat, "fstat", BY_FD, 0, ANY},
    {SYS_flock, "flock", BY_FD, 0, ANY},
    {SYS_open, "open", BY_PATH, 0, MAKE},
    {SYS_openat, "openat", BY_AT, 1, MAKE},
    {SYS_rename, "rename", BY_PATH, 1, MAKE},
    {SYS_renameat, "renameat", BY_AT, 3, MAKE},
    {SYS_renameat2, "renameat2", BY_AT, 3, MAKE},
    {SYS_linkat, "linkat", BY_AT, 3, MAKE},
    {SYS_link, "link", BY_PATH, 1, MAKE},
    {SYS_unlink, "unlink", BY_PATH, 0, ANY},
    {SYS_unlinkat, "unlinkat", BY_AT, 1, ANY},
    {SYS_mkdir, "mkdir", BY_PATH, 0, MAKE},
    {SYS_mkdirat, "mkdirat", BY_AT, 1, MAKE},
};
enum { CALLS = sizeof calls / sizeof *calls };
static const struct {
    const char *name;
    unsigned bit;
    int error;
} kinds[KINDS] = {{"EIO", FAIL_EIO, EIO},       {"ENOSPC", FAIL_ENOSPC, ENOSPC},
                  {"EINTR", FAIL_EINTR, EINTR}, {"ENOMEM", FAIL_ENOMEM, ENOMEM},
                  {"short", FAIL_SHORT, 0},     {"kill", FAIL_KILL, 0}};

static const char *folder;
static int kind = -1; /* of kinds; -1: count */
static long wanted, seen[KINDS];
static bool all_after;
static FILE *logged;
static pid_t program;

static unsigned long long argument(const struct user_regs_struct *r, int i)
{
    const unsigned long long all[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
    return all[i];
}

static bool below(const char *path)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool link_of(pid_t pid, const char *what, char name[NAMES])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/%s", pid, what);
    ssize_t n = readlink(link, name, NAMES - 1);
    name[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The file that a call is about, as far as it can be told. */
static bool file_of(pid_t pid, const call *c, const struct user_regs_struct *r, char name[NAMES])
{
    char what[32], path[PATH_MAX] = "";
    if (c->by == BY_FD) {
        snprintf(what, sizeof what, "fd/%d", (int)argument(r, c->which));
        return (int)argument(r, c->which) >= 0 && link_of(pid, what, name);
    }
    unsigned long long at = argument(r, c->which);
    for (size_t i = 0; i < sizeof path - 1;) { /* not across a page that may not be there */
        size_t piece = 256 - (size_t)((at + i) % 256);
        if (piece > sizeof path - 1 - i) piece = sizeof path - 1 - i;
        struct iovec to = {path + i, piece}, from = {(void *)(at + i), piece};
        ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
        if (got <= 0 || memchr(path + i, '\0', (size_t)got)) break;
        i += (size_t)got;
    }
    if (path[0] == '/') {
        snprintf(name, NAMES, "%s", path);
        return true;
    }
    int fd = c->by == BY_AT ? (int)argument(r, c->which - 1) : AT_FDCWD;
    snprintf(what, sizeof what, "fd/%d", fd);
    if (!link_of(pid, fd == AT_FDCWD ? "cwd" : what, name)) return false;
    size_t n = strlen(name);
    snprintf(name + n, NAMES - n, "/%s", path);
    return true;
}

/* Less than one would be the end of the file. */
static bool shorten(const call *c, struct user_regs_struct *r)
{
    bool pieces = c->number == SYS_readv || c->number == SYS_writev;
    if (r->rdx < 2) return false;
    r->rdx = pieces ? 1 : r->rdx / 2;
    return true;
}

/* Nobody can tidy up where nothing can be removed any more. */
static bool tidies(const call *c) { return c->number == SYS_unlink || c->number == SYS_unlinkat; }

/* Of programs that cgam starts, we can notice what they did not write. */
static bool counts(pid_t pid, const call *c)
{
    char own[64];
    snprintf(own, sizeof own, "/proc/%d/task/%d", program, pid);
    return c->fails & FAIL_ENOSPC || access(own, F_OK) == 0;
}

/* Is this call to fail? */
static bool chosen(const call *c, const struct user_regs_struct *r)
{
    bool hit = false;
    for (int i = 0; i < KINDS; i++) {
        if (!(c->fails & kinds[i].bit)) continue;
        if (kinds[i].bit == FAIL_SHORT && r->rdx < 2) continue;
        seen[i]++;
        if (i == kind) hit = seen[i] == wanted || (all_after && seen[i] > wanted && !tidies(c));
    }
    return hit;
}

/* At a call that the filter stopped; true: its answer is to be changed when it is there. */
static bool meddle(pid_t pid)
{
    struct user_regs_struct r;
    const call *c = NULL;
    char name[NAMES] = "";
    if (ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0) return false;
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == (long)r.orig_rax) c = &calls[i];
    if (!c || !file_of(pid, c, &r, name) || !below(name) || !counts(pid, c) || !chosen(c, &r))
        return false;
    if (seen[kind] == wanted) fprintf(logged, "%s %s\n", c->name, name);
    if (kinds[kind].bit == FAIL_KILL) {
        fclose(logged);
        kill(0, SIGKILL); /* this process too: its group is its own, and EXITKILL takes the rest */
    }
    if (kinds[kind].bit == FAIL_SHORT) (void)shorten(c, &r);
    else if (c->number == SYS_close) return true;
    else {
        r.orig_rax = (unsigned long long)-1;
        r.rax = (unsigned long long)-kinds[kind].error;
    }
    ptrace(PTRACE_SETREGS, pid, NULL, &r);
    return false;
}

static void change_answer(pid_t pid)
{
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0) return;
    r.rax = (unsigned long long)-kinds[kind].error;
    ptrace(PTRACE_SETREGS, pid, NULL, &r);
}

/* In the child: stop at the calls of the table, and become the program. */
static void become(char **argv)
{
    struct sock_filter code[CALLS + 4];
    int n = 0;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, (unsigned char)(CALLS - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog filter = {.len = (unsigned short)n, .filter = code};
    raise(SIGSTOP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0)
        _exit(NOT_HERE);
    execv(argv[0], argv);
    _exit(NOT_HERE);
}

/* Follows the program and all it starts; its status. */
static int follow(void)
{
    int state, status = NOT_HERE;
    pid_t pid, closing = 0; /* the thread whose close is under way */
    while ((pid = waitpid(-1, &state, __WALL)) > 0) {
        if (WIFEXITED(state) || WIFSIGNALED(state)) {
            if (pid == program)
                status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
            continue;
        }
        int signal = WSTOPSIG(state), event = state >> 16;
        bool answer = false;
        if (event == PTRACE_EVENT_SECCOMP) answer = meddle(pid);
        else if (signal == (SIGTRAP | 0x80) && pid == closing) {
            change_answer(pid);
            closing = 0;
        }
        if (answer) closing = pid;
        if (event || signal == SIGTRAP || signal == (SIGTRAP | 0x80)) signal = 0;
        ptrace(answer ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, (void *)(long)signal);
    }
    return status;
}

static int run(char **argv)
{
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC |
                         PTRACE_O_EXITKILL;
    int state;
    program = fork();
    if (program == 0) become(argv);
    if (program < 0 || waitpid(program, &state, WUNTRACED) != program || !WIFSTOPPED(state) ||
        ptrace(PTRACE_SEIZE, program, NULL, (void *)options) != 0)
        return NOT_HERE;
    kill(program, SIGCONT);
    return follow();
}

int main(int argc, char **argv)
{
    int at = argc > 2 && strcmp(argv[2], "count") == 0 ? 3 : 4; /* the log */
    if (argc < at + 3 || strcmp(argv[at + 1], "--") != 0) return USAGE;
    folder = argv[1];
    for (int i = 0; i < KINDS; i++)
        if (at == 4 && strcmp(argv[2], kinds[i].name) == 0) kind = i;
    if (at == 4) {
        char *end;
        wanted = strtol(argv[3], &end, 10);
        all_after = *end == '+';
        if (kind < 0 || wanted < 1) return USAGE;
    }
    logged = fopen(argv[at], "w");
    if (!logged) return USAGE;
    int status = run(argv + at + 2);
    for (int i = 0; i < KINDS && kind < 0; i++) fprintf(logged, "%s %ld\n", kinds[i].name, seen[i]);
    fclose(logged);
    return kind >= 0 && seen[kind] < wanted && status != NOT_HERE ? TOO_FEW : status;
}
#else
int main(void) { return NOT_HERE; }
#endif
