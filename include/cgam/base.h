/* base.h: what every other header needs - status codes, the library's handle, element types.
 *
 * It knows no mathematics and no files. The handle is called an *env*; "context" is kept for
 * the signal that gates a memory.
 *
 * Ownership is said in four words throughout the library:
 *   copies   the callee keeps its own copy, yours may go at once
 *   borrows  the callee keeps the pointer (until when is said)
 *   gives    you own what comes back and free it with the function named
 *   shares   const, any thread may read it
 */
#ifndef CGAM_BASE_H
#define CGAM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGAM_VERSION "0.2.0"

#if defined(__GNUC__)
#define CGAM_API __attribute__((visibility("default")))
#define CGAM_NODISCARD __attribute__((warn_unused_result))
#define CGAM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CGAM_API
#define CGAM_NODISCARD
#define CGAM_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One list gives the codes and their texts. Zero is success, negative says that the call could
 * not be carried out. How a solve *ended* is not here: it is in the solve's result. */
#define CGAM_STATUS_LIST(X)                                                                        \
    X(CGAM_OK, 0, "done")                                                                          \
    X(CGAM_E_ARG, -1, "an argument is outside its range")                                          \
    X(CGAM_E_SHAPE, -2, "shapes do not fit together")                                              \
    X(CGAM_E_VALUE, -3, "a value is not a finite number")                                          \
    X(CGAM_E_FORMAT, -4, "a file is not what it claims to be")                                     \
    X(CGAM_E_UNSUPPORTED, -5, "a file or request is valid but not handled")                        \
    X(CGAM_E_NOT_POSITIVE, -6, "the gate operator is not positive definite")                       \
    X(CGAM_E_SINGULAR, -7, "the gate operator is singular")                                        \
    X(CGAM_E_NOT_FOUND, -8, "no such file or member")                                              \
    X(CGAM_E_NOMEM, -20, "out of memory")                                                          \
    X(CGAM_E_IO, -21, "the machine could not read or write")                                       \
    X(CGAM_E_INTERRUPTED, -22, "stopped on request")                                               \
    X(CGAM_E_INTERNAL, -23, "a numerical routine failed")

typedef enum cgam_status {
#define CGAM_STATUS_ENUM(name, value, text) name = value,
    CGAM_STATUS_LIST(CGAM_STATUS_ENUM)
#undef CGAM_STATUS_ENUM
} cgam_status;

/* A constant text for a status; never NULL. */
CGAM_API const char *cgam_status_text(cgam_status status);
CGAM_API const char *cgam_status_name(cgam_status status); /* "CGAM_E_SHAPE"; "?" for no status */
/* False for a name that is none of these, and *out stays as it is. So do all functions that find. */
CGAM_API bool cgam_status_find(const char *name, cgam_status *out);

/* The version the library was built as, "major.minor.patch". */
CGAM_API const char *cgam_version(void);

/* Element types of stored arrays. An array keeps its type and is widened on reading; what is then
 * summed in which precision is said where it matters (recall.h). */
typedef enum cgam_dtype { CGAM_F64, CGAM_F32, CGAM_F16, CGAM_BF16, CGAM_I64, CGAM_I32 } cgam_dtype;

CGAM_API size_t cgam_dtype_size(cgam_dtype dtype);      /* bytes per element */
CGAM_API const char *cgam_dtype_name(cgam_dtype dtype); /* "f64", "bf16", ...; "?" for no type */
CGAM_API bool cgam_dtype_find(const char *name, cgam_dtype *out);

/* The handle: an allocator, a pool of threads, the last message. Make one per program, or one
 * per thread that calls the library; objects made with an env must be freed before it. */
typedef struct cgam_env cgam_env;

enum { CGAM_THREADS_MAX = 4096 };

typedef struct cgam_env_opts {
    /* Worker threads, caller included, CGAM_THREADS_MAX at most; default 0 = one per core that may be used, or one where
     * address space is limited to less than BLAS needs for so many. */
    int threads;
    /* An allocator of your own; default NULL = the C library's. `align` is a power of two. */
    void *(*alloc)(void *user, size_t align, size_t bytes);
    void (*free)(void *user, void *block);
    /* Asked between pieces of long work; return true to stop with CGAM_E_INTERRUPTED. */
    bool (*interrupted)(void *user);
    void *user; /* handed to the functions above */
} cgam_env_opts;

CGAM_API cgam_env_opts cgam_env_opts_default(void);

/* Gives a new env; free it with cgam_env_free. opts NULL = defaults.
 *
 * The first env of a process loads BLAS and LAPACK; CGAM_E_NOT_FOUND when they are not there. OpenBLAS
 * is asked for one thread per call, since the env's own threads call it: results then do not depend on
 * how many threads there are. Where it does not know the CPU, it is told. Both go through the variables
 * OPENBLAS_NUM_THREADS and OPENBLAS_CORETYPE, which have other values during that call: make the first
 * env before other threads look at the environment. A program that has loaded OpenBLAS already (NumPy
 * does) loses its threads, and gets other kernels where OpenBLAS did not know the CPU: no other thread
 * may be in a BLAS function during that call.
 * Where address space is limited (ulimit -v) and BLAS finds no room, 128 MB for each thread, making a
 * bank, a network, a lens or a study gives CGAM_E_NOMEM. */
CGAM_API CGAM_NODISCARD cgam_status cgam_env_new(const cgam_env_opts *opts, cgam_env **out);
CGAM_API void cgam_env_free(cgam_env *env); /* NULL is fine */

CGAM_API int cgam_env_threads(const cgam_env *env);

/* One line about the last failure on this env, without newline; "" when there was none. It names
 * the numbers: `W is 2 x 3, layers are 2 and 2`. A thread reads of its own calls, whichever others fail
 * meanwhile; one whose last failure was not on this env reads of any thread's. Valid until the next call. */
CGAM_API const char *cgam_env_message(const cgam_env *env);
/* The same into text[size], cut short if need be, where other threads may be failing on the env. */
CGAM_API void cgam_env_message_copy(cgam_env *env, char *text, size_t size);

/* Frees a text that a function of the library gives, whichever it was. NULL is fine. */
CGAM_API void cgam_text_free(cgam_env *env, char *text);

/* How far long work has come. */
typedef struct cgam_progress_at {
    const char *phase;          /* what is being done, in a few words; never NULL */
    double done, total;         /* in the unit named; total 0 = not known */
    const char *unit;           /* "tokens", "bytes", "trials"; "" = done and total are shares */
    double seconds_left;        /* of this phase; NAN = not known */
    double all_done, all_total; /* of all phases, in a unit of their own; total 0 = not known */
} cgam_progress_at;

/* Whom to tell. Called now and then, one call at a time, perhaps from another thread than the one
 * that asked for the work; *at is borrowed during the call. report NULL = silence. */
typedef struct cgam_progress {
    void (*report)(void *user, const cgam_progress_at *at);
    void *user; /* handed to report */
} cgam_progress;

#ifdef __cplusplus
}
#endif
#endif
