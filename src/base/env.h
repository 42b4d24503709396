/* env.h: the inside of the handle - memory, messages, threads, and what the machine offers. */
#ifndef CGAM_SRC_BASE_ENV_H
#define CGAM_SRC_BASE_ENV_H

#include <cgam/base.h>
#include <stdarg.h>

/* Memory of count x size bytes on a 64-byte boundary, NULL when there is none or the product
 * overflows. NULL has no message; the caller says what it was for through cgam_fail. */
void *cgam_alloc(cgam_env *env, size_t count, size_t size);
void *cgam_zalloc(cgam_env *env, size_t count, size_t size); /* zeroed */
void cgam_free(cgam_env *env, void *block);                  /* NULL is fine */
char *cgam_strdup(cgam_env *env, const char *text);
/* Characters that a terminal would obey instead of showing, those of 7 and of 8 bits (U+0080 to U+009F, or bytes alone), become
 * question marks, but for the spared ones. */
void cgam_text_tame(char *text, const char *spared);

/* Keeps the message on the env and hands the status back: return cgam_fail(env, ...). The macro
 * around the function lets compilers and analysers see that the status handed back is the one
 * given; otherwise they follow paths on which a failure comes back as success. */
cgam_status(cgam_fail)(cgam_env *env, cgam_status status, const char *format, ...)
    CGAM_PRINTF(3, 4);
#define cgam_fail(env, status, ...)                                                                \
    __extension__({                                                                                \
        const cgam_status fail_status_ = (status);                                                 \
        (cgam_fail)(env, fail_status_, __VA_ARGS__);                                               \
        fail_status_;                                                                              \
    })
/* CGAM_E_NOMEM with "out of memory: WHAT". */
static inline cgam_status cgam_fail_nomem(cgam_env *env, const char *what)
{
    return cgam_fail(env, CGAM_E_NOMEM, "out of memory: %s", what);
}

/* The last failure of a thread, of whichever env. Threads that work for a caller hand theirs over. */
enum { CGAM_MESSAGE_MAX = 512 };
typedef struct cgam_failure {
    uint64_t env; /* its number, 0 = none */
    char text[CGAM_MESSAGE_MAX];
} cgam_failure;
cgam_failure *cgam_failure_here(void);

/* True when the program was asked to stop, or the calling thread was. */
bool cgam_interrupted(const cgam_env *env);

/* A wish to stop that belongs to one call, where several run on one env at a time. It is the calling
 * thread's, and that of the env's threads while they work for it; `asked` may be called by several at
 * once. Borrowed until it is replaced; NULL = none. Gives back the one before. */
typedef struct cgam_stop {
    bool (*asked)(void *user);
    void *user;
} cgam_stop;
const cgam_stop *cgam_stop_set(const cgam_stop *stop);

/* Tells whoever listens; progress may be NULL. */
static inline void cgam_progress_tell(const cgam_progress *progress, cgam_progress_at at)
{
    if (progress && progress->report) progress->report(progress->user, &at);
}

/* Runs task(arg, i) for i = 0 .. count-1 on the env's threads and returns when all are done.
 * Items are handed out in order; which thread takes which is not said, so an item writes only
 * what is its own and sums are joined by the caller in item order. Of several failures the one
 * with the lowest i is returned, and its message is the caller's. A call from inside a task runs in place. */
typedef cgam_status (*cgam_task)(void *arg, int64_t i);
cgam_status cgam_parallel(cgam_env *env, int64_t count, cgam_task task, void *arg);

/* Bytes of memory the machine can give now, or a guess of the physical size. */
size_t cgam_memory_available(void);

/* Seconds on a clock that only goes forward. */
double cgam_clock(void);

#endif
