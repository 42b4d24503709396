/* blas.c: see blas.h. Measured on a Xeon newer than OpenBLAS 0.3.21: dgemm 15 GF/s as it loads by
 * itself, 59 GF/s with OPENBLAS_CORETYPE=SkylakeX. */
#include "base/blas.h"

#include "base/env.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

cgam_blas_table cgam_blas;
cgam_lapack_table cgam_lapack;
cgam_fortran_table cgam_fortran;

static char trouble[256];
static cgam_status outcome;

/* An environment variable with a temporary value. */
typedef struct saved_variable {
    const char *name; /* NULL = unchanged, because memory ran out */
    char *old;        /* NULL = it was not set */
} saved_variable;

static saved_variable set_variable(const char *name, const char *value)
{
    const char *old = getenv(name);
    saved_variable b = {name, old ? strdup(old) : NULL};
    if ((old && !b.old) || setenv(name, value, 1) != 0) b.name = NULL;
    return b;
}

static void restore_variable(saved_variable b)
{
    if (b.name && b.old) setenv(b.name, b.old, 1);
    else if (b.name) unsetenv(b.name);
    free(b.old);
}

/* Loads the first of the names that can be loaded; keeps the last error message. */
/* Lazily: OpenBLAS looks up 2,000 functions by name and LAPACK 1,600, of which a recall needs a few dozen. */
static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++) library = dlopen(*names, RTLD_LAZY | RTLD_LOCAL);
    if (!library) snprintf(trouble, sizeof trouble, "%s", dlerror());
    return library;
}

/* Does OpenBLAS not know this CPU? It then reports "Prescott". */
static bool core_unknown(void *library)
{
    char *(*corename)(void) = NULL;
    *(void **)&corename = dlsym(library, "openblas_get_corename");
    return corename && strcmp(corename(), "Prescott") == 0;
}

/* The right OPENBLAS_CORETYPE; NULL if OpenBLAS chose well. */
static const char *core_wanted(void *library)
{
#if defined(__x86_64__)
    if (getenv("OPENBLAS_CORETYPE") || !core_unknown(library)) return NULL;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return NULL;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
               ? "SkylakeX"
               : "Haswell";
#else
    (void)library;
    return NULL;
#endif
}

/* Makes a loaded OpenBLAS choose its kernels again. Its tables are static, so earlier results are not affected; no
 * thread may be inside it meanwhile. */
static void choose_again(void *library)
{
    void (*forget)(void) = NULL, (*choose)(void) = NULL;
    *(void **)&forget = dlsym(library, "gotoblas_dynamic_quit");
    *(void **)&choose = dlsym(library, "gotoblas_dynamic_init");
    if (!forget || !choose) return;
    forget();
    choose();
}

/* Opens OpenBLAS with one thread and this CPU's kernels, also if the program loaded it before. Any other BLAS is not
 * changed. */
static void *open_blas(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libblas.so.3", NULL};
    saved_variable threads = set_variable("OPENBLAS_NUM_THREADS", "1");
    void *library = open_first(names);
    const char *core = library ? core_wanted(library) : NULL;
    if (core) {
        saved_variable type = set_variable("OPENBLAS_CORETYPE", core);
        dlclose(library);
        library = open_first(names);
        if (library && core_unknown(library)) choose_again(library);
        restore_variable(type);
    }
    restore_variable(threads);
    void (*set_threads)(int) = NULL;
    if (library) *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads) set_threads(1);
    return library;
}

static void *find_function(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        snprintf(trouble, sizeof trouble, "BLAS and LAPACK: no function %s", name);
        outcome = CGAM_E_NOT_FOUND;
    }
    return found;
}

/* Is there address space for this many bytes? */
static bool has_space(size_t bytes)
{
    void *space = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space != MAP_FAILED) munmap(space, bytes);
    return space != MAP_FAILED;
}

static const size_t LIBRARIES = (size_t)1
                                << 26; /* bytes: OpenBLAS, LAPACKE and their dependencies */

/* Reports why no library was loaded: it is absent, or there is no memory for it. */
static void name_trouble(void)
{
    outcome = CGAM_E_NOT_FOUND;
    if (has_space(LIBRARIES)) return;
    snprintf(trouble, sizeof trouble, "out of memory: BLAS and LAPACK take %zu MB of address space",
             LIBRARIES >> 20);
    outcome = CGAM_E_NOMEM;
}

static void load_libraries(void)
{
    static const char *const lapacke[] = {"liblapacke.so.3", "liblapacke.so", NULL};
    void *blas = open_blas();
    /* some builds of OpenBLAS contain LAPACKE */
    void *lapack = blas && !dlsym(blas, "LAPACKE_dsyevd") ? open_first(lapacke) : blas;
    if (!blas || !lapack) {
        name_trouble();
        return;
    }
#define FIND(name) *(void **)&cgam_blas.name = find_function(blas, "cblas_" #name);
    CGAM_BLAS_LIST(FIND)
#undef FIND
#define FIND(name) *(void **)&cgam_lapack.name = find_function(lapack, "LAPACKE_" #name);
    CGAM_LAPACK_LIST(FIND)
#undef FIND
#define FIND(name) *(void **)&cgam_fortran.name = find_function(lapack, #name "_");
    CGAM_FORTRAN_LIST(FIND)
#undef FIND
}

cgam_status cgam_blas_load(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_libraries);
    *why = trouble;
    return outcome;
}

static const size_t BUFFER = (size_t)1 << 27;

bool cgam_blas_fits(int threads)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    return has_space((size_t)threads * BUFFER);
}

cgam_status cgam_blas_check_space(cgam_env *env)
{
    int threads = cgam_env_threads(env);
    if (!cgam_blas_fits(threads))
        return cgam_fail(
            env, CGAM_E_NOMEM,
            "out of memory: BLAS takes %zu MB of address space for each of %d thread%s",
            BUFFER >> 20, threads, threads == 1 ? "" : "s");
    return CGAM_OK;
}
