/* env.c: the handle. Memory goes through one pair of functions so that a test can make each
 * allocation fail in turn; messages go through one function so that every failure has a text. */
#include "base/env.h"

#include "base/blas.h"
#include "base/pool.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGN = 64 };

/* Recalls allocate and free scratch of 64 KiB to hundreds of MiB. The C library would return it to the
 * system and fetch it again page by page, which costs more than using it; so some blocks are kept
 * until memory runs out or the env is freed, up to 512 MiB and a sixteenth of the machine's memory.
 * Checked builds keep none. */
#ifdef CGAM_CHECKED
enum { KEPT_MAX = 0 };
#else
enum { KEPT_MAX = 16 };
#endif
static const size_t KEPT_LEAST = (size_t)1 << 16, KEPT_MOST = (size_t)1 << 29;
enum { KEPT_SHARE = 16 };

typedef struct kept {
    void *block;
    size_t bytes;
} kept;

struct cgam_env {
    cgam_env_opts opts;
    cgam_pool *pool; /* NULL if single-threaded */
    uint64_t number; /* unique in the process, from 1 */
    pthread_mutex_t lock;
    char message[CGAM_MESSAGE_MAX]; /* the last message of any thread */
    int kept_count;
    size_t kept_bytes, kept_limit; /* in all kept blocks: current and maximum */
    kept kept[KEPT_MAX + 1];
    _Atomic size_t used, limit; /* bytes from the default allocator; their limit */
};

static _Thread_local size_t limit_hit; /* in MB; 0: no request has failed for a limit */

static void *default_alloc(void *user, size_t align, size_t bytes)
{
    (void)user;
    void *block = NULL;
    return posix_memalign(&block, align, bytes) == 0 ? block : NULL;
}

static void default_free(void *user, void *block)
{
    (void)user;
    free(block);
}

const char *cgam_version(void) { return CGAM_VERSION; }

static const struct {
    cgam_status status;
    const char *name, *text;
} statuses[] = {
#define ROW(name, value, text) {name, #name, text},
    CGAM_STATUS_LIST(ROW)
#undef ROW
};
enum { STATUSES = sizeof statuses / sizeof statuses[0] };

const char *cgam_status_text(cgam_status status)
{
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i].status == status) return statuses[i].text;
    return "unknown status";
}

const char *cgam_status_name(cgam_status status)
{
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "?";
}

cgam_env_opts cgam_env_opts_default(void) { return (cgam_env_opts){.threads = 0}; }

static bool release_kept(cgam_env *env);
static void give_back(cgam_env *env, void *block);

/* The cores that this process may run on; taskset and containers can allow fewer than the machine has,
 * and two threads on one core wait for each other. */
static int cores_allowed(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    long cores = sysconf(_SC_NPROCESSORS_ONLN); /* more than a set holds */
    return cores > 0 ? (int)cores : 1;
}

/* computes: BLAS and LAPACK are needed. */
static cgam_status env_new(const cgam_env_opts *opts, bool computes, cgam_env **out)
{
    *out = NULL;
    cgam_env_opts o = opts ? *opts : cgam_env_opts_default();
    if (o.threads < 0 || o.threads > CGAM_THREADS_MAX || (o.alloc == NULL) != (o.free == NULL))
        return CGAM_E_ARG;
    if (!o.alloc) {
        o.alloc = default_alloc;
        o.free = default_free;
    }
    bool by_cores = o.threads == 0;
    if (by_cores) {
        o.threads = cores_allowed();
    }
    const char *why;
    cgam_status status = computes ? cgam_blas_load(&why) : CGAM_OK;
    if (status != CGAM_OK) return status;
    if (by_cores && !(computes && cgam_blas_fits(o.threads))) o.threads = 1;

    cgam_env *env = o.alloc(o.user, ALIGN, sizeof *env);
    if (!env) return CGAM_E_NOMEM;
    memset(env, 0, sizeof *env);
    static atomic_uint_fast64_t envs;
    env->opts = o;
    env->limit = SIZE_MAX;
    env->number = atomic_fetch_add(&envs, 1) + 1;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) env->kept_limit = (size_t)pages / KEPT_SHARE * (size_t)page;
    if (env->kept_limit > KEPT_MOST) env->kept_limit = KEPT_MOST;
    pthread_mutex_init(&env->lock, NULL);
    if (o.threads > 1) {
        env->pool = cgam_pool_new(env, o.threads);
        if (!env->pool) {
            cgam_env_free(env);
            return CGAM_E_NOMEM;
        }
    }
    *out = env;
    return CGAM_OK;
}

cgam_status cgam_env_new(const cgam_env_opts *opts, cgam_env **out)
{
    return env_new(opts, true, out);
}

cgam_status cgam_env_new_plain(const cgam_env_opts *opts, cgam_env **out)
{
    return env_new(opts, false, out);
}

void cgam_env_free(cgam_env *env)
{
    if (!env) return;
    cgam_pool_free(env, env->pool);
    release_kept(env);
    pthread_mutex_destroy(&env->lock);
    env->opts.free(env->opts.user, env);
}

int cgam_env_threads(const cgam_env *env) { return env->opts.threads; }

/* Calls on one env may fail in several threads at once; each thread sees its own last error. */
static _Thread_local cgam_failure mine;

cgam_failure *cgam_failure_here(void) { return &mine; }

const char *cgam_env_message(const cgam_env *env)
{
    static _Thread_local char others[CGAM_MESSAGE_MAX];
    if (mine.env == env->number) return mine.text;
    cgam_env *locked = (cgam_env *)(uintptr_t)env; /* another thread may be failing */
    pthread_mutex_lock(&locked->lock);
    memcpy(others, env->message, sizeof others);
    pthread_mutex_unlock(&locked->lock);
    return others;
}

/* The smallest kept block of `bytes` to 2 `bytes`; NULL: none. */
static void *reuse_kept(cgam_env *env, size_t bytes)
{
    void *block = NULL;
    if (bytes < KEPT_LEAST || bytes > KEPT_MOST) return NULL;
    pthread_mutex_lock(&env->lock);
    int best = -1;
    for (int k = 0; k < env->kept_count; k++)
        if (env->kept[k].bytes >= bytes && env->kept[k].bytes / 2 <= bytes &&
            (best < 0 || env->kept[k].bytes < env->kept[best].bytes))
            best = k;
    if (best >= 0) {
        block = env->kept[best].block;
        env->kept_bytes -= env->kept[best].bytes;
        env->kept[best] = env->kept[--env->kept_count];
    }
    pthread_mutex_unlock(&env->lock);
    return block;
}

/* If all slots are taken, a larger block replaces the smallest. */
static bool keep_block(cgam_env *env, void *block)
{
    if (env->opts.free != default_free || KEPT_MAX == 0) return false;
    size_t bytes = malloc_usable_size(block);
    if (bytes < KEPT_LEAST || bytes > KEPT_MOST) return false;
    void *given_up = NULL;
    pthread_mutex_lock(&env->lock);
    int least = 0, at = env->kept_count;
    for (int k = 1; k < env->kept_count; k++)
        if (env->kept[k].bytes < env->kept[least].bytes) least = k;
    if (at == KEPT_MAX && env->kept[least].bytes < bytes) at = least;
    size_t others = env->kept_bytes - (at < env->kept_count ? env->kept[at].bytes : 0);
    bool space = at < KEPT_MAX && bytes <= env->kept_limit - others;
    if (space) {
        if (at < env->kept_count) given_up = env->kept[at].block;
        else env->kept_count++;
        env->kept[at] = (kept){block, bytes};
        env->kept_bytes = others + bytes;
    }
    pthread_mutex_unlock(&env->lock);
    if (given_up) env->opts.free(env->opts.user, given_up);
    return space;
}

/* Frees all kept blocks; false if there are none. */
static bool release_kept(cgam_env *env)
{
    pthread_mutex_lock(&env->lock);
    int count = env->kept_count;
    for (int k = 0; k < count; k++) give_back(env, env->kept[k].block);
    env->kept_count = 0;
    env->kept_bytes = 0;
    pthread_mutex_unlock(&env->lock);
    return count > 0;
}

void cgam_env_limit(cgam_env *env, size_t bytes)
{
    env->limit = bytes;
    limit_hit = 0;
}

size_t cgam_env_used(const cgam_env *env) { return env->used; }

cgam_status cgam_env_expect(cgam_env *env, double bytes, const char *what)
{
    const double mb = 0x1p20;
    size_t limit = env->limit, used = env->used;
    if (limit == SIZE_MAX || bytes + (double)used <= (double)limit) return CGAM_OK;
    return cgam_fail(env, CGAM_E_NOMEM,
                     "out of memory: %s would take %.0f MB beside %.0f; max-memory is %.0f MB",
                     what, ceil(bytes / mb), (double)used / mb, (double)limit / mb);
}

size_t cgam_limit_hit(void)
{
    size_t hit = limit_hit;
    limit_hit = 0;
    return hit;
}

/* Allocates and counts a new block; NULL: the allocator failed, or the limit would be exceeded. */
static void *take_new(cgam_env *env, size_t bytes)
{
    if (env->opts.alloc != default_alloc) return env->opts.alloc(env->opts.user, ALIGN, bytes);
    if (bytes > env->limit - (env->used < env->limit ? env->used : env->limit)) {
        limit_hit = env->limit >> 20 ? env->limit >> 20 : 1;
        return NULL;
    }
    void *block = default_alloc(NULL, ALIGN, bytes);
    if (block) env->used += malloc_usable_size(block);
    return block;
}

static void give_back(cgam_env *env, void *block)
{
    if (env->opts.free == default_free) env->used -= malloc_usable_size(block);
    env->opts.free(env->opts.user, block);
}

void *cgam_alloc(cgam_env *env, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - ALIGN) return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes == 0) bytes = ALIGN;
    void *block = reuse_kept(env, bytes);
    if (!block) block = take_new(env, bytes);
    if (!block && release_kept(env)) block = take_new(env, bytes);
    return block;
}

void *cgam_zalloc(cgam_env *env, size_t count, size_t size)
{
    void *block = cgam_alloc(env, count, size);
    if (block) memset(block, 0, count * size);
    return block;
}

void cgam_free(cgam_env *env, void *block)
{
    if (block && !keep_block(env, block)) give_back(env, block);
}

void cgam_text_free(cgam_env *env, char *text) { cgam_free(env, text); }

/* NULL returns NULL: glibc leaves NULL, without an error, if a stream in memory could not grow for its last piece. */
char *cgam_strdup(cgam_env *env, const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    char *copy = text ? cgam_alloc(env, bytes, 1) : NULL;
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void cgam_text_tame(char *text, const char *spared)
{
    for (unsigned char *c = (unsigned char *)text; *c;) {
        size_t length = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : *c >= 0xc2 ? 2 : 1, have = 1;
        while (have < length && (c[have] & 0xc0) == 0x80) have++;
        if (have < length) length = 1; /* an incomplete UTF-8 sequence */
        bool control =
            length == 1 ? *c < ' ' || (*c >= 0x7f && *c < 0xa0) : *c == 0xc2 && c[1] < 0xa0;
        if (control && !strchr(spared, *c)) memset(c, '?', length);
        c += length;
    }
}

cgam_status(cgam_fail)(cgam_env *env, cgam_status status, const char *format, ...)
{
    va_list args;
    char text[CGAM_MESSAGE_MAX]; /* an argument may be the previous message */
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cgam_text_tame(text, ""); /* one line, whatever bytes a file name has */
    mine.env = env->number;
    memcpy(mine.text, text, strlen(text) + 1);
    pthread_mutex_lock(&env->lock);
    memcpy(env->message, text, strlen(text) + 1);
    pthread_mutex_unlock(&env->lock);
    return status;
}

static _Thread_local const cgam_stop *stop_here;

const cgam_stop *cgam_stop_set(const cgam_stop *stop)
{
    const cgam_stop *before = stop_here;
    stop_here = stop;
    return before;
}

bool cgam_interrupted(const cgam_env *env)
{
    return (env->opts.interrupted && env->opts.interrupted(env->opts.user)) ||
           (stop_here && stop_here->asked(stop_here->user));
}

cgam_status cgam_parallel(cgam_env *env, int64_t count, cgam_task task, void *arg)
{
    return cgam_pool_run(env->pool, count, task, arg);
}

size_t cgam_memory_available(void)
{
    /* MemAvailable counts page cache that can be dropped; sysconf's free pages do not. */
    FILE *f = fopen("/proc/meminfo", "r");
    if (f) {
        char line[128];
        unsigned long long kib;
        while (fgets(line, sizeof line, f)) {
            if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
                fclose(f);
                return (size_t)kib * 1024;
            }
        }
        fclose(f);
    }
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX;
}

double cgam_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

size_t cgam_dtype_size(cgam_dtype dtype)
{
    switch (dtype) {
    case CGAM_F64:
    case CGAM_I64: return 8;
    case CGAM_F32:
    case CGAM_I32: return 4;
    case CGAM_F16:
    case CGAM_BF16: return 2;
    }
    return 0;
}

const char *const cgam_dtype_words[] = {"f64", "f32", "f16", "bf16", "i64", "i32", NULL};

const char *cgam_word(const char *const *words, int value)
{
    for (int i = 0; words[i]; i++)
        if (i == value) return words[i];
    return "?";
}

int cgam_word_find(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0) return i;
    return -1;
}
