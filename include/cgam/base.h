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

/* The version the library was built as, "major.minor.patch". */
CGAM_API const char *cgam_version(void);

/* Element types of stored arrays. An array keeps its type and is widened on reading; what is then
 * summed in which precision is said where it matters (recall.h). */
typedef enum cgam_dtype { CGAM_F64, CGAM_F32, CGAM_F16, CGAM_BF16, CGAM_I64, CGAM_I32 } cgam_dtype;

CGAM_API size_t cgam_dtype_size(cgam_dtype dtype); /* bytes per element */

/* ---- Words of enums: a table has the word of each value from 0 on and ends with NULL. */
CGAM_API const char *cgam_word(const char *const *words, int value); /* "?" for a value outside */
CGAM_API int cgam_word_find(const char *const *words, const char *word); /* -1: not in the table */
CGAM_API extern const char *const cgam_dtype_words[];                    /* "f64", "bf16", .. */

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
 * how many threads there are. Where it does not know the CPU, its kernels are chosen here. Both go through the variables
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
 * the numbers: `W is 2 x 3, layers are 2 and 2`. A thread sees its own last failure; one whose last failure was
 * not on this env sees that of any thread. Valid until the thread's next call. */
CGAM_API const char *cgam_env_message(const cgam_env *env);

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
    CGAM_WORDS,  /* words, separated by commas; those in `value` where it holds a |, else any */
    /* Of results only. */
    CGAM_INDEX, /* an integer; negative is null */
    CGAM_MAYBE, /* 1 true, 0 false, negative null; of a bool: true, or null */
    CGAM_PROOF, /* "proved" or "estimate", where the value of that name is there */
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
    CGAM_TYPE_POINTER, /* const char *, const int64_t *, const double *, as the kind says */
    CGAM_TYPE_CHARS    /* an array of char */
} cgam_type;

typedef struct cgam_field {
    /* In JSON and, after two dashes, on the command line; UPPER case: a positional argument. "a.b" is
     * member b of the object a. */
    const char *name;
    cgam_kind kind;
    /* What the value is called in help, or the choices. FILE and DIR in it say that it names one.
     * For numbers, words before a | are taken in their place: "all|L,L,..". */
    const char *value;
    const char *fallback; /* the default as text; NULL: none */
    const char *bare;     /* the value of an option that is given without one; NULL: it needs one */
    const char *help;
    double min, max; /* both 0: any */
    bool required;
    bool many;      /* may be given several times; the values are gathered in order */
    bool writes;    /* names a file or folder that is written */
    unsigned input; /* what the file of that name is read as, see cgam_input in src/app/verb.h */
    /* The place in the struct. */
    const char *member; /* its name in C */
    cgam_type type;
    size_t offset;
    size_t count; /* offset of the int64_t that says how many values a list has; 0: it is no list */
    size_t given; /* offset of a bool that is set together with the field; 0: none */
    bool (*find)(const char *name, double *out); /* for a double that has names; or NULL */
    unsigned when; /* bits: a result has it where all of them are set; 0: always */
    const struct cgam_field
        *of; /* this row stands for the one of its name there; NULL: for itself */
} cgam_field;

/* ---- Random numbers addressed, not drawn.
 *
 * Philox 4x32-10 (Salmon et al. 2011) is a function from (seed, stream, position) to bits: any number
 * of any stream can be made again alone, so results do not depend on the order of work or the number
 * of threads. Give every trial a stream of its own. Not for secrets.
 *
 * A cgam_rng is a plain value: copy it to go on twice from the same place, keep it on the stack, let
 * one thread at a time use it. Nothing here can fail or allocates. */

typedef struct cgam_rng {
    uint32_t key[2];     /* the seed */
    uint32_t counter[4]; /* {position low, position high, stream low, stream high} */
    uint32_t block[4];   /* the bits at the last position */
    int used;            /* how many of the four have been handed out */
} cgam_rng;

/* The start of stream `stream` of `seed`. Streams do not overlap: each holds 2^66 numbers. */
CGAM_API cgam_rng cgam_rng_stream(uint64_t seed, uint64_t stream);

CGAM_API double cgam_rng_uniform(cgam_rng *rng); /* in [0, 1), 53 bits; takes two numbers */
CGAM_API double cgam_rng_normal(cgam_rng *rng);  /* mean 0, variance 1; takes four */
/* Uniform in 0 .. n-1, without bias to 2^-53; n >= 1. */
CGAM_API int64_t cgam_rng_below(cgam_rng *rng, int64_t n);

/* ---- A bank over several processes, whatever carries their messages.
 *
 * Rows of a bank with opts.ranks are spread over the ranks: each reads its own, and sums of d numbers go between them.
 * Vectors of one number a memory (norms, gates, p) that a call takes or fills are [n] as ever, of which a rank reads
 * and writes the entries of its own rows (cgam_ranks_cut); but starts and gate weights W are given whole, and p, s and r
 * of a recall are filled whole where they are asked for. All ranks make the same calls on the bank, and on gates and recalls made of it, in the same order and
 * from one thread; each of these ends with cgam_ranks_end. Every rank has every result, with the bits that one process
 * has. Flows, fast recalls, maps, landscapes, networks, winners and horizons are for one process: CGAM_E_UNSUPPORTED.
 *
 * cgam/mpi.h fills this table by MPI. Functions give false where a message could not be passed on. */

/* What a rank took part in since the table was made, counted as every rank can foresee it: a send is one message;
 * what one tells all the others is one to each; what all tell all is one from each to each other. */
typedef struct cgam_traffic {
    int64_t messages, bytes;                     /* of all ranks together */
    int64_t iterations;                          /* of coupled recalls, during which of these */
    int64_t iteration_messages, iteration_bytes; /* went */
} cgam_traffic;

typedef struct cgam_ranks {
    int rank, ranks;
    void *user;
    bool (*send)(void *user, int to, const void *data, size_t bytes);
    bool (*receive)(void *user, int from, void *data, size_t bytes);
    /* data [at[ranks]] bytes: of rank r those in [at[r], at[r + 1]); then everybody has all. */
    bool (*share)(void *user, void *data, const size_t *at);
    bool (*spread)(void *user, int from, void *data, size_t bytes);
    bool (*merge)(void *user, uint64_t *words, size_t count); /* the bitwise or, to all */
    /* kept by the library */
    cgam_traffic traffic;
    cgam_status ended;  /* a failure that has been told to all, else CGAM_OK */
    cgam_status untold; /* one of this rank's own that it could not return, else CGAM_OK */
} cgam_ranks;

/* Ends a call that all ranks made: where one or more of them failed, with `mine` not CGAM_OK there, all get the status
 * and, on env, the message of the lowest such rank, with "rank R: " before it unless all failed alike. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ranks_end(cgam_env *env, cgam_ranks *ranks,
                                                   cgam_status mine);

/* Rows [*begin, *end) of a bank [n, d] are those of a rank. Banks too small to be cut (up to 2,048 memories, no more
 * than d, or one group) are whole on every rank: [0, n). */
CGAM_API void cgam_ranks_cut(int64_t n, int64_t d, int ranks, int rank, int64_t *begin,
                             int64_t *end);

#ifdef __cplusplus
}
#endif
#endif
