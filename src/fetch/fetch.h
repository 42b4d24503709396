/* fetch.h: what comes from npm into the user's cache: the language-model runtime, the default model, data.
 *
 * The cache is $XDG_CACHE_HOME/cgam, else $HOME/.cache/cgam. What is complete and checked appears
 * there under its own name by a rename; a download that was cut short leaves what it had in
 * cgam/fetch.., and the next one resumes. Processes that fetch the same take turns. */
#ifndef CGAM_SRC_FETCH_FETCH_H
#define CGAM_SRC_FETCH_FETCH_H

#include "lm/cache.h"

typedef struct cgam_lm_fetched {
    char runtime[4096], model[4096];     /* paths in the cache */
    bool runtime_fetched, model_fetched; /* false: it was in the cache already */
    int64_t model_bytes;
} cgam_lm_fetched;

/* Brings libllama and the default model into the cache through npm, checked by digest. Does
 * nothing if the files exist. progress NULL = silence. */
CGAM_NODISCARD cgam_status cgam_lm_fetch(cgam_env *env, const cgam_progress *progress,
                                         cgam_lm_fetched *out);

/* Runs a program to its end, its output into the file `log`; `tick` is called several times a
 * second and ends it by returning a failure. CGAM_E_NOT_FOUND: no such program; CGAM_E_IO: it
 * failed, and the message ends with the last line of the log. */
typedef cgam_status (*cgam_tick)(void *user);
CGAM_NODISCARD cgam_status cgam_spawn(cgam_env *env, const char *const *argv, const char *log,
                                      cgam_tick tick, void *user);

/* The last line of a file that is not empty. */
void cgam_last_line(const char *path, char *text, size_t size);

/* Makes `folder` and waits until no other process works there. Programs that are started meanwhile hold
 * the lock with us: one that outlives a killed fetch is waited for too. */
CGAM_NODISCARD cgam_status cgam_fetch_lock(cgam_env *env, const char *folder,
                                           const cgam_progress *progress, int *lock);
void cgam_fetch_unlock(int lock);
/* Once all is there: removes what a fetch that was killed at its end has left in `folder`, unless another process works there. */
void cgam_fetch_tidy(const char *folder);

/* ---- Packages  ------------------------------------------------------------------------------ */
typedef struct cgam_npm_package {
    const char *spec;    /* name@version */
    const char *archive; /* npm's name of the file */
    const char *sha512;  /* base 64; NULL: what it holds is checked by the caller */
    int64_t bytes;       /* of the archive, for the progress */
} cgam_npm_package;

typedef struct cgam_npm_job {
    cgam_env *env;
    const cgam_progress *progress;
    int64_t before, total;      /* bytes of what came before, and of all */
    const char *what, *scratch; /* private */
} cgam_npm_job;

/* The archive of a package in `folder`, fetched unless it is there whole, from where an earlier fetch
 * ended; CGAM_E_FORMAT when it has another digest, and then it is removed. */
CGAM_NODISCARD cgam_status cgam_npm_fetch(cgam_npm_job *job, const char *folder,
                                          const cgam_npm_package *package);
/* Unpacks a member of the fetched archive, and what is below it, to folder/open/MEMBER. */
CGAM_NODISCARD cgam_status cgam_npm_unpack(cgam_env *env, const char *folder,
                                           const cgam_npm_package *package, const char *member);

/* Bytes of the regular files under a directory, however deep; 0 when there is none. */
int64_t cgam_tree_bytes(const char *path);
void cgam_tree_remove(const char *path);

#endif
