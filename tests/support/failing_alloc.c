/* failing_alloc.c: runs a scenario once per allocation, with that allocation failing. */
#include "support/failing_alloc.h"
#include "support/check.h"

#include <execinfo.h>

/* Beyond this many tries a scenario is too large, or the step too small. */
enum { REQUESTS_MAX = 20000 };
/* Runs are slow under a sanitizer, and the plain build has every request; on one thread TSan has
 * nothing to see. What a failure leads to is the same on an emulated machine. */
#if defined(CGAM_EMULATED)
enum { STEP = 29, STEP_ALONE = 29 };
#elif defined(__SANITIZE_THREAD__)
enum { STEP = 3, STEP_ALONE = 29 };
#elif defined(CGAM_CHECKED)
enum { STEP = 3, STEP_ALONE = 3 };
#else
enum { STEP = 1, STEP_ALONE = 1 };
#endif

/* The ways by which requests have come, and the first of each. Of the lm verbs, nine calls up instead of seven tell a third more
 * apart, and find hardly more. */
enum { DEPTH = 7, PLACES_MAX = 4096 };
typedef struct places {
    int64_t count, first[PLACES_MAX];
    uint64_t way[PLACES_MAX];
} places;

static void enter(places *seen, int64_t request)
{
    void *from[DEPTH];
    const int depth = backtrace(from, DEPTH);
    uint64_t way = 14695981039346656037U; /* FNV-1a over the addresses */
    for (int k = 0; k < depth; k++) way = (way ^ (uintptr_t)from[k]) * 1099511628211U;
    for (int64_t i = 0; i < seen->count; i++)
        if (seen->way[i] == way) return;
    if (seen->count == PLACES_MAX) fail_msg("requests come from more than %d places", PLACES_MAX);
    seen->first[seen->count] = request;
    seen->way[seen->count++] = way;
}

static void *give(void *user, size_t align, size_t bytes)
{
    failing_alloc *failing = user;
    const int64_t request = atomic_fetch_add(&failing->requests, 1) + 1;
    if (failing->places) enter(failing->places, request);
    if (request == failing->fail_at) return NULL;
    void *block = NULL;
    if (posix_memalign(&block, align < sizeof(void *) ? sizeof(void *) : align, bytes ? bytes : 1))
        return NULL;
    atomic_fetch_add(&failing->live, 1);
    return block;
}

static void take_back(void *user, void *block)
{
    failing_alloc *failing = user;
    if (!block) return;
    atomic_fetch_sub(&failing->live, 1);
    free(block);
}

static bool look(void *user)
{
    failing_alloc *failing = user;
    const int64_t at = atomic_fetch_add(&failing->looks, 1) + 1;
    return failing->stop_at && at >= failing->stop_at;
}

cgam_env_opts failing_alloc_opts(failing_alloc *failing, int threads)
{
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    opts.alloc = give;
    opts.free = take_back;
    opts.interrupted = look;
    opts.user = failing;
    return opts;
}

/* One run with request k failing, or with a wish to stop at look k; true when there were fewer. */
static bool run_failing(check_scenario scenario, void *arg, int threads, int64_t k, bool stop,
                        places *seen, int64_t *requests)
{
    failing_alloc failing = {.fail_at = stop ? 0 : k, .stop_at = stop ? k : 0, .places = seen};
    const cgam_env_opts opts = failing_alloc_opts(&failing, threads);
    const char *what = stop ? "look" : "request";
    cgam_env *env = NULL;
    bool silent = false;
    int status = cgam_env_new(&opts, &env);
    if (status == CGAM_OK) {
        status = scenario(env, arg);
        silent = status != CGAM_OK && cgam_env_message(env)[0] == '\0';
    }
    const bool failed = (stop ? failing.looks : failing.requests) >= k;
    if (status != (failed ? stop ? CGAM_E_INTERRUPTED : CGAM_E_NOMEM : CGAM_OK))
        fail_msg("%s %lld %s, the scenario returned %d (%s): %s", what, (long long)k,
                 failed ? "failed" : "was not reached", status,
                 cgam_status_text((cgam_status)status), env ? cgam_env_message(env) : "no env");
    if (silent && !stop) /* who wished to stop knows why */
        fail_msg("request %lld failed and the env has no message about it", (long long)k);
    cgam_env_free(env);
    if (failing.live != 0)
        fail_msg("%s %lld %s, and %lld blocks were left after cgam_env_free", what, (long long)k,
                 failed ? "failed" : "was not reached", (long long)failing.live);
    *requests = failing.requests;
    return !failed;
}

/* Long work looks again and again at the same place. */
static void try_stops(check_scenario scenario, void *arg, int threads)
{
    int64_t requests = 0;
    for (int64_t k = 1; !run_failing(scenario, arg, threads, k, true, NULL, &requests);)
        k += k < 16 ? 1 : k / 4;
}

static int64_t try_requests(check_scenario scenario, void *arg, int threads, int64_t step)
{
    int64_t requests = 0;
    for (int64_t k = 1; !run_failing(scenario, arg, threads, k, false, NULL, &requests);
         k += k < 16 ? 1 : step)
        if (k > REQUESTS_MAX * step) fail_msg("more than %d tries do not end it", REQUESTS_MAX);
    try_stops(scenario, arg, threads);
    return requests;
}

int64_t check_some_allocations(check_scenario scenario, void *arg, int64_t step)
{
    return try_requests(scenario, arg, 1, step * STEP_ALONE);
}

int64_t check_every_allocation(check_scenario scenario, void *arg)
{
    return try_requests(scenario, arg, 1, STEP_ALONE);
}

int64_t check_every_allocation_threads(check_scenario scenario, void *arg, int threads)
{
    return try_requests(scenario, arg, threads, STEP);
}

int64_t check_every_place(check_scenario scenario, void *arg)
{
    static places seen;
    int64_t requests = 0;
    const int64_t before = seen.count;
    run_failing(scenario, arg, 1, INT64_MAX, false, &seen, &requests);
    for (int64_t i = before; i < seen.count; i += i < before + 16 ? 1 : STEP_ALONE)
        if (run_failing(scenario, arg, 1, seen.first[i], false, NULL, &requests))
            fail_msg("request %lld came once and not again", (long long)seen.first[i]);
    try_stops(scenario, arg, 1);
    return seen.count - before;
}
