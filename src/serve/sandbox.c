/* sandbox.c: limits of Linux, each asked for by itself, so that an older kernel gives what it has. Files by Landlock: all may be
 * read and run, what may be written lies below the folders given. Calls by seccomp: sockets, other processes, whose a file is,
 * and what changes the system are refused with EPERM; a list of what is forbidden and not of what is allowed, since libllama
 * and the C library may need tomorrow what they do not today. */
#include "serve/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
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

static void allow(int rules, const char *path, uint64_t what)
{
    beneath rule = {.allowed = what, .folder = open(path, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0) return;
    (void)syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
    close(rule.folder);
}

static void close_files(const cgam_sandbox *box, cgam_sandboxed *done)
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
    allow(rules, "/", EXECUTE | READ_FILE | READ_DIR);
    allow(rules, "/dev/null", (READ_FILE | WRITE_FILE | TRUNCATE) & files);
    for (int i = 0; i < box->count; i++) allow(rules, box->folders[i], files & ~(uint64_t)NOWHERE);
    done->files = syscall(RESTRICT_SELF, rules, 0) == 0;
    done->signals = done->files && version >= SCOPES_FROM;
    close(rules);
}

/* ---- calls: seccomp ----------------------------------------------------------------------------- */
#if defined(__x86_64__)
enum { ARCH = (int)AUDIT_ARCH_X86_64, NUMBERS = 0x40000000 }; /* above: the calls of x32 */
#elif defined(__aarch64__)
enum { ARCH = (int)AUDIT_ARCH_AARCH64, NUMBERS = 0x40000000 };
#else
enum { ARCH = 0, NUMBERS = 0 };
#endif

/* By their numbers, which are the same everywhere: calls that headers may be too old for. */
enum {
    OPEN_TREE = 428,
    MOVE_MOUNT = 429,
    FSOPEN = 430,
    FSCONFIG = 431,
    FSMOUNT = 432,
    FSPICK = 433,
    CLONE3 = 435,
    PIDFD_GETFD = 438,
    PROCESS_MADVISE = 440,
    MOUNT_SETATTR = 442,
    FCHMODAT2 = 452,
    SETXATTRAT = 463,
    REMOVEXATTRAT = 466,
    FILE_SETATTR = 469
};

static const int forbidden[] = {
    /* sockets, but for the line to the server */
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    /* other processes; leaving the group that the server ends */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, PIDFD_GETFD, PROCESS_MADVISE,
    SYS_setsid, SYS_setpgid,
    /* whose a file is and who may read it, which Landlock lets pass */
    SYS_fchmod, SYS_fchmodat, FCHMODAT2, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr,
    SYS_fsetxattr, SETXATTRAT, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, REMOVEXATTRAT,
    FILE_SETATTR, SYS_utimensat,
#ifdef SYS_chmod /* not where calls are young */
    SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
    /* memory that stays when the process has gone */
    SYS_shmget, SYS_msgget, SYS_semget,
    /* the system */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl,
    SYS_mount, SYS_umount2, SYS_pivot_root, OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT,
    FSPICK, MOUNT_SETATTR, SYS_chroot, SYS_unshare, SYS_setns, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_kexec_load, SYS_io_uring_setup, SYS_open_by_handle_at, SYS_fanotify_init,
    SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_sethostname, SYS_setdomainname,
    SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex};

/* Refused where an argument has one of these bits: whose limits and turns, 0 is one's own; namespaces. */
static const struct {
    int call;
    unsigned argument;
    uint32_t bits;
} partly[] = {{SYS_prlimit64, 0, UINT32_MAX},
              {SYS_setpriority, 1, UINT32_MAX},
              {SYS_ioprio_set, 1, UINT32_MAX},
              {SYS_sched_setscheduler, 0, UINT32_MAX},
              {SYS_sched_setparam, 0, UINT32_MAX},
              {SYS_sched_setattr, 0, UINT32_MAX},
              {SYS_clone, 0,
               CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                   CLONE_NEWPID | CLONE_NEWNET}};

static bool close_calls(void)
{
    enum {
        COUNT = sizeof forbidden / sizeof *forbidden,
        PARTLY = sizeof partly / sizeof *partly,
        ROOM = 2 * COUNT + 5 * PARTLY + 10
    };
    struct sock_filter code[ROOM];
    const struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    unsigned n = 0;
    if (!ARCH) return false;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ARCH, 1, 0);
    code[n++] = refuse;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NUMBERS, 0, 1);
    code[n++] = refuse;
    for (unsigned i = 0; i < COUNT; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)forbidden[i], 0, 1);
        code[n++] = refuse;
    }
    /* What it is asked for stands in memory that a filter does not see; the C library takes clone then. */
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE3, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    for (unsigned i = 0; i < PARTLY; i++) {
        unsigned at =
            (unsigned)offsetof(struct seccomp_data, args) +
            8 * partly[i].argument; /* its lower half: both kinds of machine begin by it */
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)partly[i].call, 0, 4);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, partly[i].bits, 0, 1);
        code[n++] = refuse;
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
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
    done.memory = limit_memory(box->memory);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return done;
    close_files(box, &done);
    done.calls = close_calls();
    return done;
}
