/* failing_alloc.h: an allocator that fails on the k-th request and counts what is still held, and a wish to stop at the k-th look.
 *
 *     static int make_bank(cgam_env *env, void *arg) { ...; return status; }
 *     check_every_allocation(make_bank, NULL);
 *
 * The scenario frees what it made, whatever happens, and returns the first status that is not
 * CGAM_OK. It must ask for the same number of blocks each time it runs. */
#ifndef CGAM_TESTS_FAILING_ALLOC_H
#define CGAM_TESTS_FAILING_ALLOC_H

#include <cgam/base.h>
#include <stdatomic.h>

typedef struct failing_alloc {
    int64_t fail_at;          /* the request that fails, from 1; 0 = none */
    int64_t stop_at;          /* the look at which a stop is wished, and from then on; 0 = none */
    _Atomic int64_t requests; /* asked for so far */
    _Atomic int64_t looks;    /* for a wish to stop, so far */
    _Atomic int64_t live;     /* blocks given and not yet taken back */
    struct places *places;    /* private: where requests come from; NULL = nobody asks */
} failing_alloc;

/* Options for an env that allocates through `failing`, which is borrowed until the env is freed. */
cgam_env_opts failing_alloc_opts(failing_alloc *failing, int threads);

typedef int (*check_scenario)(cgam_env *env, void *arg);

/* Runs the scenario, each time on a new env, with the first request failing, then the second, and
 * so on until none fails; a sanitizer's build takes some of them only. Each failure must come back
 * as CGAM_E_NOMEM with a message, and no block may be left after cgam_env_free. Then the same with a
 * wish to stop at the first looks for one, each of 16 and then ever fewer, which comes back as CGAM_E_INTERRUPTED. Gives the number of
 * requests of a whole run. */
int64_t check_every_allocation(check_scenario scenario, void *arg);

/* The same with every `step`-th request only, for scenarios of a thousand. */
int64_t check_some_allocations(check_scenario scenario, void *arg, int64_t step);

/* The same on an env with so many threads; requests then come in any order. */
int64_t check_every_allocation_threads(check_scenario scenario, void *arg, int threads);

/* For scenarios of thousands, which come from a few hundred places: of the requests that come by the same calls the first one fails,
 * and none where an earlier scenario of the program came by them. Gives the number of places that were new. */
int64_t check_every_place(check_scenario scenario, void *arg);

#endif
