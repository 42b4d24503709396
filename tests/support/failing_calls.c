/* failing_calls.c: functions of the C library under their own names, in front of it. */
#undef _FORTIFY_SOURCE /* brings inline ones */
#define _FORTIFY_SOURCE 0
#include "support/failing_calls.h"

#include "base/env.h"
#include "support/check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
/* TSan calls functions before it can be called itself: none of them is put in front of the C library. */
int64_t check_every_call(check_scenario scenario, void *arg, check_after after)
{
    (void)scenario, (void)arg, (void)after;
    skip();
    return 0;
}

int64_t check_calls_of(const char *call, check_scenario scenario, void *arg, check_after after)
{
    (void)call;
    return check_every_call(scenario, arg, after);
}

bool malloc_fails_too(void) { return false; }

void fail_call(const char *call, int error, int64_t k) { (void)call, (void)error, (void)k; }

bool call_failed(void) { return false; }
#else

#ifdef SANITIZED
enum { OWN_MALLOC = 0 }; /* a sanitizer has its own, and ends the program where memory does */
#else
enum { OWN_MALLOC = 1 };
#endif

/* What fails: result type, name, result of a failure, parameters, arguments. */
#define CALLS(X)                                                                                   \
    X(int, fstat, -1, (int fd, struct stat *to), (fd, to))                                         \
    X(int, stat, -1, (const char *path, struct stat *to), (path, to))                              \
    X(int, fsync, -1, (int fd), (fd))                                                              \
    X(int, fdatasync, -1, (int fd), (fd))                                                          \
    X(int, ftruncate, -1, (int fd, off_t size), (fd, size))                                        \
    X(off_t, lseek, -1, (int fd, off_t at, int from), (fd, at, from))                              \
    X(int, flock, -1, (int fd, int how), (fd, how))                                                \
    X(int, rename, -1, (const char *from, const char *to), (from, to))                             \
    X(int, linkat, -1, (int a, const char *from, int b, const char *to, int how),                  \
      (a, from, b, to, how))                                                                       \
    X(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))                               \
    X(int, unlink, -1, (const char *path), (path))                                                 \
    X(int, access, -1, (const char *path, int how), (path, how))                                   \
    X(int, poll, -1, (struct pollfd * of, nfds_t n, int ms), (of, n, ms))                          \
    X(int, isatty, 0, (int fd), (fd))                                                              \
    X(ssize_t, getrandom, -1, (void *to, size_t n, unsigned flags), (to, n, flags))                \
    X(void *, mmap, MAP_FAILED, (void *at, size_t n, int p, int flags, int fd, off_t from),        \
      (at, n, p, flags, fd, from))                                                                 \
    X(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))                     \
    X(FILE *, fopencookie, NULL, (void *cookie, const char *mode, cookie_io_functions_t io),       \
      (cookie, mode, io))                                                                          \
    X(FILE *, open_memstream, NULL, (char **to, size_t *size), (to, size))                         \
    X(int, fflush, EOF, (FILE * f), (f))                                                           \
    X(int, fseek, -1, (FILE * f, long at, int from), (f, at, from))                                \
    X(int, fseeko, -1, (FILE * f, off_t at, int from), (f, at, from))                              \
    X(off_t, ftello, -1, (FILE * f), (f))                                                          \
    X(locale_t, newlocale, (locale_t)0, (int mask, const char *name, locale_t base),               \
      (mask, name, base))                                                                          \
    X(int, glob, GLOB_NOSPACE,                                                                     \
      (const char *pattern, int flags, int (*wrong)(const char *, int), glob_t *to),               \
      (pattern, flags, wrong, to))                                                                 \
    X(int, posix_spawn_file_actions_init, ENOMEM, (posix_spawn_file_actions_t * to), (to))         \
    X(int, posix_spawn_file_actions_addopen, ENOMEM,                                               \
      (posix_spawn_file_actions_t * to, int fd, const char *path, int flags, mode_t mode),         \
      (to, fd, path, flags, mode))                                                                 \
    X(int, posix_spawn_file_actions_adddup2, ENOMEM,                                               \
      (posix_spawn_file_actions_t * to, int fd, int as), (to, fd, as))                             \
    X(void *, dlopen, NULL, (const char *name, int how), (name, how))                              \
    X(char *, fgets, NULL, (char *to, int size, FILE *f), (to, size, f))                           \
    X(int, setenv, -1, (const char *name, const char *value, int over), (name, value, over))       \
    X(int, getrlimit, -1, (__rlimit_resource_t what, struct rlimit * to), (what, to))              \
    X(int, pthread_create, EAGAIN,                                                                 \
      (pthread_t * to, const pthread_attr_t *how, void *(*run)(void *), void *arg),                \
      (to, how, run, arg))                                                                         \
    X(pid_t, waitpid, -1, (pid_t pid, int *state, int how), (pid, state, how))                     \
    X(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))             \
    X(int, socketpair, -1, (int domain, int type, int protocol, int ends[2]),                      \
      (domain, type, protocol, ends))                                                              \
    X(int, setsockopt, -1, (int fd, int level, int what, const void *value, socklen_t size),       \
      (fd, level, what, value, size))                                                              \
    X(int, listen, -1, (int fd, int backlog), (fd, backlog))

#define NUMBER(type, name, bad, parameters, arguments) OF_##name,
enum {
    CALLS(NUMBER) OF_open,
    OF_read,
    OF_write,
    OF_send,
    OF_close,
    OF_fclose,
    OF_fwrite,
    OF_mremap,
    OF_malloc,
    OF_look,
    FUNCTIONS
};
#define NAME(type, name, bad, parameters, arguments) #name,
static const char *const names[] = {CALLS(NAME) "open", "read",   "write",  "send",   "close",
                                    "fclose",           "fwrite", "mremap", "malloc", "look"};

enum {
    SHORT = -1,
    FOR_GOOD = FAIL_FOR_GOOD
}; /* half of the bytes; with an error: all calls from there on */
static const int errors[] = {EIO,
                             EINTR,
                             ENOMEM,
                             EMFILE,
                             EACCES,
                             EEXIST,
                             EINVAL,
                             ENOSPC,
                             EAGAIN,
                             ENFILE,
                             ENODEV,
                             SHORT,
                             0,
                             FOR_GOOD | EEXIST,
                             FOR_GOOD | ENOSPC};
enum { ERRORS = sizeof errors / sizeof *errors };

static struct {
    int function, error;
    int64_t at;
    _Atomic int64_t seen; /* calls so far, of whatever thread */
} armed = {.function = -1};

static bool fails(int function)
{
    if (function != armed.function) return false;
    const int64_t call = ++armed.seen;
    const bool now =
        armed.error & FOR_GOOD && armed.error > 0 ? call >= armed.at : call == armed.at;
    if (now) errno = armed.error == SHORT ? EIO : armed.error & ~FOR_GOOD;
    return now;
}

/* Those with a body of their own: type, name, parameters. */
#define OTHERS(X)                                                                                  \
    X(void *, mremap, , (void *, size_t, size_t, int, ...), )                                      \
    X(int, open, , (const char *, int, ...), )                                                     \
    X(ssize_t, read, , (int, void *, size_t), )                                                    \
    X(ssize_t, write, , (int, const void *, size_t), )                                             \
    X(ssize_t, send, , (int, const void *, size_t, int), )                                         \
    X(int, close, , (int), )                                                                       \
    X(int, fclose, , (FILE *), )                                                                   \
    X(size_t, fwrite, , (const void *, size_t, size_t, FILE *), )

#define REAL(type, name, bad, parameters, arguments) static type(*real_##name) parameters;
CALLS(REAL)
OTHERS(REAL)

/* All are found before main, and those called earlier then: a thread that looked for one while
 * another closes a library and waits for that thread would wait for ever (OpenBLAS, where it is
 * loaded twice). */
#define FIND(type, name, bad, parameters, arguments)                                               \
    if (!real_##name) *(void **)&real_##name = dlsym(RTLD_NEXT, #name);
__attribute__((constructor)) static void find_all(void){CALLS(FIND) OTHERS(FIND)}

#define DEFINE(type, name, bad, parameters, arguments)                                             \
    type name parameters                                                                           \
    {                                                                                              \
        FIND(type, name, bad, parameters, arguments)                                               \
        return fails(OF_##name) ? bad : real_##name arguments;                                     \
    }
CALLS(DEFINE)

    void *mremap(void *at, size_t old, size_t new, int flags, ...)
{
    FIND(, mremap, , , )
    return fails(OF_mremap) ? MAP_FAILED : real_mremap(at, old, new, flags);
}

int open(const char *path, int flags, ...)
{
    FIND(, open, , , )
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(OF_open) ? -1 : real_open(path, flags, mode);
}

/* Of a call that moves bytes: how many are to be moved, -1 = it fails. */
static ssize_t moved(int function, size_t size)
{
    if (!fails(function)) return (ssize_t)size;
    return armed.error == SHORT ? (ssize_t)(size / 2) : -(ssize_t)(armed.error != 0);
}

ssize_t read(int fd, void *to, size_t size)
{
    FIND(, read, , , )
    ssize_t n = moved(OF_read, size);
    return n > 0 ? real_read(fd, to, (size_t)n) : n;
}

ssize_t write(int fd, const void *from, size_t size)
{
    FIND(, write, , , )
    ssize_t n = moved(OF_write, size);
    return n > 0 ? real_write(fd, from, (size_t)n) : n;
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
    FIND(, send, , , )
    ssize_t n = moved(OF_send, size);
    return n > 0 ? real_send(fd, from, (size_t)n, flags) : n;
}

/* These are done even where they fail. */
int close(int fd)
{
    FIND(, close, , , )
    int done = real_close(fd);
    return fails(OF_close) ? -1 : done;
}

int fclose(FILE *f)
{
    FIND(, fclose, , , )
    int done = real_fclose(f);
    return fails(OF_fclose) ? EOF : done;
}

/* Who asks the stream later hears of it too. */
size_t fwrite(const void *from, size_t size, size_t count, FILE *f)
{
    FIND(, fwrite, , , )
    if (!fails(OF_fwrite)) return real_fwrite(from, size, count, f);
    f->_flags |= 0x20; /* glibc's _IO_ERR_SEEN */
    return 0;
}

#ifndef SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

void *malloc(size_t size) { return fails(OF_malloc) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails(OF_malloc) ? NULL : __libc_calloc(n, size); }
void *realloc(void *b, size_t size) { return fails(OF_malloc) ? NULL : __libc_realloc(b, size); }
#endif

/* libzip's zip_close forgets 400 bytes of its own where a write fails. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libzip.so\n"; }

static bool look(void *user)
{
    (void)user;
    return fails(OF_look);
}

/* libmicrohttpd 0.9.75 forgets the epoll of a thread that it could not start; we have none of our own. */
static int open_files(void)
{
    int count = 0;
    char link[64];
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        ssize_t n = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        count += strcmp(link, "anon_inode:[eventpoll]") != 0;
    }
    if (folder) closedir(folder);
    return count;
}

void fail_call(const char *call, int error, int64_t k)
{
    armed.function = -1;
    for (int f = 0; call && f < FUNCTIONS; f++)
        if (strcmp(names[f], call) == 0) armed.function = f;
    armed.error = error, armed.at = k, armed.seen = 0;
}

bool call_failed(void) { return armed.at > 0 && armed.seen >= armed.at; }

/* One run with call k of a function failing; true when there were fewer. */
static bool run_failing(check_scenario scenario, void *arg, check_after after, int function,
                        int error, int64_t k)
{
    failing_alloc memory = {0};
    const cgam_env_opts opts = failing_alloc_opts(&memory, 1);
    const cgam_stop stop = {look, NULL};
    cgam_env *env = NULL;
    assert_int_equal(cgam_env_new(&opts, &env), CGAM_OK);
    int before = open_files();
    cgam_stop_set(&stop);
    armed.function = function, armed.error = error, armed.at = k, armed.seen = 0;
    int status = scenario(env, arg);
    armed.function = -1;
    cgam_stop_set(NULL);
    const char *said = cgam_env_message(env);
    const char *what = armed.seen < k   ? "not reached"
                       : error == SHORT ? "cut short"
                                        : strerror(error & ~FOR_GOOD);
    bool silent = !*said && status != CGAM_E_INTERRUPTED; /* who asked knows why */
    if (status != CGAM_OK && (armed.seen < k || silent || strchr(said, '\n')))
        fail_msg("call %lld of %s: %s; status %d with '%s'", (long long)k, names[function], what,
                 status, said);
    if (open_files() != before)
        fail_msg("call %lld of %s: %s; files were left open", (long long)k, names[function], what);
    cgam_env_free(env);
    if (memory.live != 0)
        fail_msg("call %lld of %s: %s; %lld blocks were left", (long long)k, names[function], what,
                 (long long)memory.live);
    if (after) after(arg, status, names[function]);
    return armed.seen < k;
}

static int64_t run_all(check_scenario scenario, void *arg, check_after after, int f)
{
    int64_t runs = 0;
    bool bytes = f == OF_read || f == OF_write || f == OF_send;
    bool one = f == OF_malloc || f == OF_look;
    if (f == OF_malloc && !OWN_MALLOC) return 0;
    for (int e = 0; e < (one ? 1 : ERRORS); e++) {
        if (errors[e] <= 0 && !bytes) continue;
        for (int64_t k = 1; !run_failing(scenario, arg, after, f, errors[e], k); k++) runs++;
    }
    return runs;
}

int64_t check_every_call(check_scenario scenario, void *arg, check_after after)
{
    int64_t runs = 0;
    for (int f = 0; f < FUNCTIONS; f++) runs += run_all(scenario, arg, after, f);
    return runs;
}

int64_t check_calls_of(const char *call, check_scenario scenario, void *arg, check_after after)
{
    for (int f = 0; f < FUNCTIONS; f++)
        if (strcmp(names[f], call) == 0) return run_all(scenario, arg, after, f);
    fail_msg("%s is none of the calls that fail", call);
    return 0;
}

bool malloc_fails_too(void) { return OWN_MALLOC; }
#endif
