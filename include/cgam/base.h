/* base.h: what every other header needs - status codes, the library's handle, element types.
 *
 * It contains no mathematics and no file access. The handle is called an *env*; "context" always means
 * the signal that gates a memory.
 *
 * Four words describe ownership throughout the library:
 *   copies   the library keeps its own copy; the caller may free the original after the call
 *   borrows  the library keeps the pointer; the comment says until when
 *   gives    the caller owns the result and frees it with the function named
 *   shares   const; any thread may read it
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

/* One list defines the codes and their texts. Zero is success; a negative code means that the call
 * could not be carried out. How a solve *ended* is in its result, not in the status. */
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

/* Returns a static text for a status; never NULL. */
CGAM_API const char *cgam_status_text(cgam_status status);
CGAM_API const char *cgam_status_name(cgam_status status); /* "CGAM_E_SHAPE"; "?" if unknown */

/* Returns the version of the library, "major.minor.patch". */
CGAM_API const char *cgam_version(void);

/* Element types of stored arrays. An array keeps its type and is widened on reading; recall.h says
 * which sums use which precision. */
typedef enum cgam_dtype { CGAM_F64, CGAM_F32, CGAM_F16, CGAM_BF16, CGAM_I64, CGAM_I32 } cgam_dtype;

CGAM_API size_t cgam_dtype_size(cgam_dtype dtype); /* bytes per element */

/* ---- Words of enums: a table holds the word of each value, from 0 up, and ends with NULL. */
CGAM_API const char *cgam_word(const char *const *words, int value);     /* "?" if out of range */
CGAM_API int cgam_word_find(const char *const *words, const char *word); /* -1: not in the table */
CGAM_API extern const char *const cgam_dtype_words[];                    /* "f64", "bf16", .. */

/* The handle: an allocator, a thread pool and the last message. Make one per program, or one per
 * thread that calls the library. Objects made with an env must be freed before it. */
typedef struct cgam_env cgam_env;

enum { CGAM_THREADS_MAX = 4096 };

typedef struct cgam_env_opts {
    /* Worker threads including the caller, at most CGAM_THREADS_MAX. Default 0 = one per usable core, or a single
     * thread if the address-space limit is less than BLAS needs for that many. */
    int threads;
    /* A custom allocator; default NULL = the C library's. `align` is a power of two. */
    void *(*alloc)(void *user, size_t align, size_t bytes);
    void (*free)(void *user, void *block);
    /* Called repeatedly during long work; return true to stop with CGAM_E_INTERRUPTED. */
    bool (*interrupted)(void *user);
    void *user; /* passed to the functions above */
} cgam_env_opts;

CGAM_API cgam_env_opts cgam_env_opts_default(void);

/* Gives a new env; free it with cgam_env_free. opts NULL = defaults.
 *
 * The first env of a process loads BLAS and LAPACK; fails with CGAM_E_NOT_FOUND if they are missing.
 * OpenBLAS is set to one thread per call, because the env's own threads call it; results then do not
 * depend on the number of threads. If OpenBLAS does not know the CPU, the library chooses its kernels.
 * Both settings go through the variables OPENBLAS_NUM_THREADS and OPENBLAS_CORETYPE, which have other
 * values during that call: make the first env before other threads read the environment. If the program
 * has already loaded OpenBLAS (NumPy does), OpenBLAS loses its threads, and its kernels are replaced if it
 * did not know the CPU: no other thread may be in a BLAS function during that call.
 * If address space is limited (ulimit -v) and BLAS cannot get 128 MB per thread, making a bank, a
 * network, a lens or a study fails with CGAM_E_NOMEM. */
CGAM_API CGAM_NODISCARD cgam_status cgam_env_new(const cgam_env_opts *opts, cgam_env **out);
CGAM_API void cgam_env_free(cgam_env *env); /* NULL is fine */

/* Returns one line about the last failure on this env, without newline; "" if there was none. It
 * includes the numbers: `W is 2 x 3, layers are 2 and 2`. Each thread sees its own last failure; a thread
 * whose last failure was not on this env sees that of any thread. Valid until the thread's next call. */
CGAM_API const char *cgam_env_message(const cgam_env *env);

/* Frees a text that any function of the library gives. NULL is fine. */
CGAM_API void cgam_text_free(cgam_env *env, char *text);

/* Progress of long work. */
typedef struct cgam_progress_at {
    const char *phase;          /* the current work, in a few words; never NULL */
    double done, total;         /* in `unit`; total 0 = unknown */
    const char *unit;           /* "tokens", "bytes", "trials"; "" = done and total are shares */
    double seconds_left;        /* of this phase; NAN = unknown */
    double all_done, all_total; /* of all phases, in a separate unit; total 0 = unknown */
} cgam_progress_at;

/* A progress callback. The library calls report from time to time, one call at a time, possibly from
 * another thread than the caller's; *at is valid only during the call. report NULL = no reports. */
typedef struct cgam_progress {
    void (*report)(void *user, const cgam_progress_at *at);
    void *user; /* passed to report */
} cgam_progress;

/* ---- Fields: a struct described as a table ----------------------------------------------------- */
/* One row per field of an options or result struct; name NULL or "" ends a table. The command line, JSON
 * in and out, help, docs/json.md and the bindings loop over it. All rows are const and static. */
typedef enum cgam_kind {
    CGAM_FLAG,   /* true or false; on a command line present or not */
    CGAM_INT,    /* an integer within [min, max] */
    CGAM_REAL,   /* a number within [min, max]; in results NAN and infinities are null */
    CGAM_TEXT,   /* any text: a file, a name */
    CGAM_CHOICE, /* one of the words in `value`, separated by |; in a struct an enum that counts from
                    0, or a bool: true is "yes", or the second word */
    CGAM_INTS,   /* integers within [min, max], separated by commas */
    CGAM_REALS,  /* finite numbers within [min, max], separated by commas */
    CGAM_WORDS,  /* words, separated by commas: those in `value` if it contains a |, else any */
    /* Only in results. */
    CGAM_INDEX, /* an integer; negative is null */
    CGAM_MAYBE, /* 1 true, 0 false, negative null; for a bool: true or null */
    CGAM_PROOF, /* "proved" or "estimate"; present if the value of that name is */
    CGAM_PART   /* a list or object that the caller adds */
} cgam_kind;

/* How a field is stored. */
typedef enum cgam_type {
    CGAM_TYPE_NONE, /* the row belongs to no struct */
    CGAM_TYPE_BOOL,
    CGAM_TYPE_INT, /* int, or an enum */
    CGAM_TYPE_INT64,
    CGAM_TYPE_UINT64, /* size_t too */
    CGAM_TYPE_DOUBLE,
    CGAM_TYPE_FLOAT,
    CGAM_TYPE_POINTER, /* const char *, const int64_t *, const double *, according to the kind */
    CGAM_TYPE_CHARS    /* an array of char */
} cgam_type;

typedef struct cgam_field {
    /* The name in JSON and, after two dashes, on the command line. UPPER case: a positional argument.
     * "a.b" is member b of the object a. */
    const char *name;
    cgam_kind kind;
    /* The name of the value in help, or the choices. FILE or DIR in it marks a path. For numbers,
     * words before a | are accepted instead: "all|L,L,..". */
    const char *value;
    const char *fallback; /* the default as text; NULL: none */
    const char *bare;     /* the value if the option is given without one; NULL: it requires one */
    const char *help;
    double min, max; /* both 0: any */
    bool required;
    bool many;      /* may be given several times; values are collected in order */
    bool writes;    /* names a file or folder that is written */
    unsigned input; /* how the named file is read, see cgam_input in src/app/verb.h */
    /* The place in the struct. */
    const char *member; /* its name in C */
    cgam_type type;
    size_t offset;
    size_t count; /* offset of the int64_t that holds the length of a list; 0: not a list */
    size_t given; /* offset of a bool that is set together with the field; 0: none */
    bool (*find)(const char *name, double *out); /* for a double with named values; or NULL */
    unsigned when; /* bits: present in a result if all of them are set; 0: always */
    const struct cgam_field
        *of; /* this row refers to the row of the same name there; NULL: to itself */
} cgam_field;

/* ---- A bank over several processes, independent of how they exchange messages.
 *
 * The rows of a bank with opts.ranks are spread over the ranks. Each rank reads its own rows; ranks exchange sums of
 * d numbers. Vectors of one number per memory (norms, gates, p) that a call takes or fills are still [n]; a rank
 * reads and writes the entries of its own rows (cgam_ranks_cut). Exceptions: starts and gate weights W are given
 * whole, and p, s and r of a recall are filled whole if requested. All ranks must make the same calls on the bank,
 * and on gates and recalls made from it, in the same order and from one thread; each of these calls ends with
 * cgam_ranks_end. Every rank gets every result, with the same bits as in one process. Flows, fast recalls, maps,
 * landscapes, networks, winners and horizons require a single process: CGAM_E_UNSUPPORTED.
 *
 * cgam/mpi.h fills this table using MPI. The functions return false if a message could not be delivered. */

/* Communication that a rank took part in since the table was made, counted so that every rank can predict it: a send
 * is one message; a broadcast is one message to each other rank; an exchange among all is one from each to each
 * other. */
typedef struct cgam_traffic {
    int64_t messages, bytes;                     /* of all ranks together */
    int64_t iterations;                          /* of coupled recalls */
    int64_t iteration_messages, iteration_bytes; /* sent during these iterations */
} cgam_traffic;

typedef struct cgam_ranks {
    int rank, ranks;
    void *user;
    bool (*send)(void *user, int to, const void *data, size_t bytes);
    bool (*receive)(void *user, int from, void *data, size_t bytes);
    /* data [at[ranks]] bytes: rank r provides [at[r], at[r + 1]); on return every rank has all. */
    bool (*share)(void *user, void *data, const size_t *at);
    bool (*spread)(void *user, int from, void *data, size_t bytes);
    bool (*merge)(void *user, uint64_t *words, size_t count); /* the bitwise or, on all ranks */
    /* maintained by the library */
    cgam_traffic traffic;
    cgam_status ended;  /* a failure that all ranks know, else CGAM_OK */
    cgam_status untold; /* a failure of this rank that it could not return, else CGAM_OK */
} cgam_ranks;

/* Ends a call that all ranks made. If `mine` is not CGAM_OK on one or more ranks, all ranks return the status of the
 * lowest such rank and set its message on env, with "rank R: " before it unless all failed alike. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ranks_end(cgam_env *env, cgam_ranks *ranks,
                                                   cgam_status mine);

/* Sets [*begin, *end) to the rows of a bank [n, d] that belong to a rank. Banks too small to split (up to 2,048
 * memories, no more than d, or one group) are whole on every rank: [0, n). */
CGAM_API void cgam_ranks_cut(int64_t n, int64_t d, int ranks, int rank, int64_t *begin,
                             int64_t *end);

#ifdef __cplusplus
}
#endif
#endif
