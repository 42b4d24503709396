/* sandbox.c: limits of Linux, each requested separately, so that an older kernel applies those it has. Landlock limits files: all
 * may be read and run, only those below the given folders may be written. seccomp limits calls: sockets, other processes,
 * ownership of files and changes of the system fail with EPERM. It is a list of forbidden calls, not of allowed ones, because
 * future versions of libllama and the C library may need more calls than today's. */
#include "serve/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files: Landlock, by its numbers, which headers may be too old for ---------------------------- */
enum {
    CREATE_RULESET = 444,
    ADD_RULE = 445,
    RESTRICT_SELF = 446,
    ASK_VERSION = 1,
    PATH_BENEATH = 1,
    SCOPES_FROM = 6 /* the version that knows them */
};

enum {
    EXECUTE = 1 << 0,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    WRITE_FILE = 1 << 1,
    MAKE_CHAR = 1 << 6,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    TRUNCATE = 1 << 14,
    /* A link below the root would lead the server, which is in no sandbox, out of it; a pipe would hold it up. */
    NOWHERE = MAKE_CHAR | MAKE_SOCK | MAKE_FIFO | MAKE_BLOCK | MAKE_SYM
};

typedef struct ruleset {
    uint64_t files, net, scopes;
} ruleset;

typedef struct __attribute__((packed)) beneath {
    uint64_t allowed;
    int32_t folder;
} beneath;

static void allow_below(int rules, const char *path, uint64_t what)
{
    beneath rule = {.allowed = what, .folder = open(path, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0) return;
    (void)syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
    close(rule.folder);
}

static void restrict_files(const cgam_sandbox *box, cgam_sandboxed *done)
{
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1) return;
    /* 13 rights at first, then: moving between folders, truncating, devices' own calls */
    uint64_t files = (1u << (version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13)) - 1;
    ruleset all = {.files = files,
                   .net = version >= 4 ? 3 : 0,               /* bind and connect by TCP */
                   .scopes = version >= SCOPES_FROM ? 3 : 0}; /* sockets by name, signals */
    size_t size = version >= SCOPES_FROM ? 24 : version >= 4 ? 16 : 8;
    int rules = (int)syscall(CREATE_RULESET, &all, size, 0);
    if (rules < 0) return;
    allow_below(rules, "/", EXECUTE | READ_FILE | READ_DIR);
    allow_below(rules, "/dev/null", (READ_FILE | WRITE_FILE | TRUNCATE) & files);
    for (int i = 0; i < box->count; i++)
        allow_below(rules, box->folders[i], files & ~(uint64_t)NOWHERE);
    done->files = syscall(RESTRICT_SELF, rules, 0) == 0;
    done->signals = done->files && version >= SCOPES_FROM;
    close(rules);
}

/* ---- calls: seccomp, through libseccomp --------------------------------------------------------- */

/* Rejected with EPERM. Calls that this architecture does not have are skipped. */
static const char *const forbidden[] = {
    /* sockets, except the one to the server */
    "socket", "connect", "bind", "listen", "accept", "accept4",
    /* other processes; leaving the process group that the server kills */
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise", "setsid",
    "setpgid",
    /* owner, mode, times and attributes of files, which Landlock does not cover */
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "setxattr",
    "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "utime", "utimes",
    "futimesat", "utimensat",
    /* memory that outlives the process */
    "shmget", "msgget", "semget",
    /* the system */
    "bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "mount", "umount2",
    "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "chroot", "unshare", "setns", "init_module", "finit_module", "delete_module",
    "kexec_load", "io_uring_setup", "open_by_handle_at", "fanotify_init", "reboot", "swapon",
    "swapoff", "acct", "sethostname", "setdomainname", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex"};

/* Also rejected: calls too new for libseccomp 2.5. Their numbers are the same on all architectures. */
enum { SETXATTRAT = 463, REMOVEXATTRAT = 466, FILE_SETATTR = 469 };
static const int forbidden_new[] = {SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR};

/* Rejected if any of these bits of an argument is set: limits and priority of a process other than oneself (0),
 * namespaces. Arguments are 32 bits wide. */
static const struct {
    const char *call;
    unsigned argument;
    uint32_t bits;
} restricted[] = {{"prlimit64", 0, UINT32_MAX},
                  {"setpriority", 1, UINT32_MAX},
                  {"ioprio_set", 1, UINT32_MAX},
                  {"sched_setscheduler", 0, UINT32_MAX},
                  {"sched_setparam", 0, UINT32_MAX},
                  {"sched_setattr", 0, UINT32_MAX},
                  {"clone", 0,
                   CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                       CLONE_NEWPID | CLONE_NEWNET}};

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))

static bool add_rules(scmp_filter_ctx filter)
{
    const uint32_t reject = SCMP_ACT_ERRNO(EPERM);
    /* Calls of another architecture, x32 among them. */
    int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, reject) ||
                seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    for (size_t i = 0; i < COUNT_OF(forbidden); i++) {
        int call = seccomp_syscall_resolve_name(forbidden[i]);
        error |= call != __NR_SCMP_ERROR && seccomp_rule_add(filter, reject, call, 0);
    }
    for (size_t i = 0; i < COUNT_OF(forbidden_new); i++)
        error |= seccomp_rule_add(filter, reject, forbidden_new[i], 0);
    /* The flags of clone3 are in memory that a filter cannot read; the C library then uses clone. */
    error |=
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), seccomp_syscall_resolve_name("clone3"), 0);
    for (size_t i = 0; i < COUNT_OF(restricted); i++) {
        int call = seccomp_syscall_resolve_name(restricted[i].call);
        for (uint32_t bits = restricted[i].bits; bits; bits &= bits - 1) {
            uint32_t lowest = bits & -bits;
            error |= seccomp_rule_add(
                filter, reject, call, 1,
                SCMP_CMP64(restricted[i].argument, SCMP_CMP_MASKED_EQ, lowest, lowest));
        }
    }
    return !error;
}

static void restrict_calls(cgam_sandboxed *done)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int error = filter && add_rules(filter) ? seccomp_load(filter) : -ENOMEM;
    seccomp_release(filter);
    done->calls = error == 0;
    done->no_memory = error == -ENOMEM;
}

/* ---- memory ------------------------------------------------------------------------------------- */

/* Sanitizers map more than there is. */
#if defined(__has_feature) /* clang */
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Pages that are written and its own: a mapped model does not count. */
static bool limit_memory(size_t bytes)
{
    if (SANITIZED) return false;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (bytes == 0 && pages > 0) bytes = (size_t)pages * (size_t)page;
    struct rlimit now, most = {bytes, bytes};
    if (bytes == 0 || getrlimit(RLIMIT_DATA, &now) != 0) return false;
    if (now.rlim_max < most.rlim_max) most = (struct rlimit){now.rlim_max, now.rlim_max};
    return setrlimit(RLIMIT_DATA, &most) == 0;
}

cgam_sandboxed cgam_sandbox_enter(const cgam_sandbox *box)
{
    cgam_sandboxed done = {0};
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        restrict_files(box, &done);
        restrict_calls(&done);
    }
    done.memory = limit_memory(box->memory); /* last: libseccomp may loop without memory */
    return done;
}
