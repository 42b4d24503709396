/* env.h (private): memory, messages and threads of an env, random numbers, and properties of the machine. */
#ifndef CGAM_SRC_BASE_ENV_H
#define CGAM_SRC_BASE_ENV_H

#include "base/rng.h"

#include <cgam/base.h>
#include <stdarg.h>

/* Allocates count x size bytes on a 64-byte boundary. Returns NULL if memory runs out or if the product overflows.
 * Sets no message; the caller reports the failure with cgam_fail. */
void *cgam_alloc(cgam_env *env, size_t count, size_t size);
void *cgam_zalloc(cgam_env *env, size_t count, size_t size); /* zeroed */
void cgam_free(cgam_env *env, void *block);                  /* NULL is allowed */
/* cgam_free_all(env, x, y, ..) frees several blocks in that order; env is read first. */
#define cgam_free_all(env, ...)                                                                    \
    cgam_free_blocks((env), sizeof((void *[]){__VA_ARGS__}) / sizeof(void *),                      \
                     (void *[]){__VA_ARGS__})
static inline void cgam_free_blocks(cgam_env *env, size_t count, void *const *blocks)
{
    for (size_t i = 0; i < count; i++) cgam_free(env, blocks[i]);
}
char *cgam_strdup(cgam_env *env, const char *text);
/* Replaces control characters, of 7 and of 8 bits (U+0080 to U+009F, or bytes alone), by question marks, so that a
 * terminal does not interpret them; those in `spared` are kept. */
void cgam_text_tame(char *text, const char *spared);

/* Stores the message on the env and returns the status: return cgam_fail(env, ...). The macro
 * lets compilers and analysers see that the status returned is the one given; otherwise they
 * follow paths on which a failure returns success. */
cgam_status(cgam_fail)(cgam_env *env, cgam_status status, const char *format, ...)
    CGAM_PRINTF(3, 4);
#define cgam_fail(env, status, ...)                                                                \
    __extension__({                                                                                \
        const cgam_status fail_status_ = (status);                                                 \
        (cgam_fail)(env, fail_status_, __VA_ARGS__);                                               \
        fail_status_;                                                                              \
    })
/* Like cgam_env_new, without BLAS and LAPACK, and with one thread unless opts says more: for help texts. Loading them
 * takes most of the time of such a call. */
cgam_status cgam_env_new_plain(const cgam_env_opts *opts, cgam_env **out);
/* Limits the memory of all blocks of an env together; SIZE_MAX: no limit. A request beyond it fails as if memory had
 * run out. Only for an env with the default allocator. */
void cgam_env_limit(cgam_env *env, size_t bytes);
size_t cgam_env_used(const cgam_env *env);
/* Returns CGAM_E_NOMEM if `bytes` more would exceed the limit: for work that knows what it will need, before it begins. */
cgam_status cgam_env_expect(cgam_env *env, double bytes, const char *what);
/* Returns the limit, in MB, if a request of the calling thread has exceeded it since the last call; else 0. */
size_t cgam_limit_hit(void);

/* CGAM_E_NOMEM with "out of memory: WHAT". */
static inline cgam_status cgam_fail_nomem(cgam_env *env, const char *what)
{
    size_t limit = cgam_limit_hit();
    if (limit > 0)
        return cgam_fail(env, CGAM_E_NOMEM, "out of memory: %s; max-memory is %zu MB", what, limit);
    return cgam_fail(env, CGAM_E_NOMEM, "out of memory: %s", what);
}

/* The last failure of a thread, on any env. Threads of a pool pass theirs to the caller. */
enum { CGAM_MESSAGE_MAX = 512 };
typedef struct cgam_failure {
    uint64_t env; /* number of the env, 0 = none */
    char text[CGAM_MESSAGE_MAX];
} cgam_failure;
cgam_failure *cgam_failure_here(void);

/* Threads that cgam_parallel uses, the caller among them. */
int cgam_env_threads(const cgam_env *env);
/* Returns true if the program, or the calling thread, was asked to stop. */
bool cgam_interrupted(const cgam_env *env);

/* A cancel flag of one call, for several concurrent calls on one env. It is set for the calling thread and for the
 * env's threads while they work for it; several threads may call `asked` at once. Borrowed until it is replaced; NULL
 * = none. Returns the previous one. */
typedef struct cgam_stop {
    bool (*asked)(void *user);
    void *user;
} cgam_stop;
const cgam_stop *cgam_stop_set(const cgam_stop *stop);

/* Reports progress if a callback is set; progress may be NULL. */
static inline void cgam_progress_tell(const cgam_progress *progress, cgam_progress_at at)
{
    if (progress && progress->report) progress->report(progress->user, &at);
}
/* The same of `done` of `total` units. */
static inline void cgam_progress_count(const cgam_progress *progress, const char *phase,
                                       int64_t done, int64_t total, const char *unit)
{
    cgam_progress_tell(progress, (cgam_progress_at){.phase = phase,
                                                    .done = (double)done,
                                                    .total = (double)total,
                                                    .unit = unit,
                                                    .seconds_left = __builtin_nan("")});
}

/* Runs task(arg, i) for i = 0 .. count-1 on the env's threads and returns when all are done. Items start in order, on
 * unspecified threads, so an item must write only its own data, and the caller joins sums in item order. Of several
 * failures the one with the lowest i is returned, with its message. A call from inside a task runs in place. */
typedef cgam_status (*cgam_task)(void *arg, int64_t i);
cgam_status cgam_parallel(cgam_env *env, int64_t count, cgam_task task, void *arg);

/* Returns the bytes of memory available now, or else the physical size. */
size_t cgam_memory_available(void);

/* Seconds on a monotonic clock. */
double cgam_clock(void);

#endif
