/* bench_call: what a recall costs from C on a bank of 50 x 10, in microseconds, as JSON: `run` with a plan
 * at hand, `once` with a plan of its own. bench/python.py compares calls from Python with it.
 *
 *   bench_call [rounds]     the best of so many (default 100) counts */
#include <cgam/cgam.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 50, D = 10, TOP = 5, RUNS = 100, ONCES = 5 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    double Z[N * D], best_run = 1, best_once = 1;
    for (int i = 0; i < N * D; i++) Z[i] = (double)(i * 7919 % 1000) / 1000 - 0.5;
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    cgam_result result;
    int64_t top_index[TOP];
    double top_p[TOP], top_log_p[TOP];
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, N, D, NULL, &bank);
    if (status == CGAM_OK) status = cgam_recall_new(bank, NULL, &plan);
    const cgam_recall_in in = {.queries = 1, .q = Z, .c = Z + D, .c_per_query = true};
    const cgam_recall_out out = {.results = &result,
                                 .top = TOP,
                                 .top_index = top_index,
                                 .top_p = top_p,
                                 .top_log_p = top_log_p};
    for (long k = 0; k < rounds && status == CGAM_OK; k++) {
        double start = now();
        for (int i = 0; i < RUNS && status == CGAM_OK; i++)
            status = cgam_recall_run(plan, &in, &out);
        double run = (now() - start) / RUNS;
        start = now();
        for (int i = 0; i < ONCES && status == CGAM_OK; i++)
            status = cgam_recall_once(bank, Z, Z + D, NULL, &result);
        double once = (now() - start) / ONCES;
        if (run < best_run) best_run = run;
        if (once < best_once) best_once = once;
    }
    if (status == CGAM_OK)
        printf("{\"run\": %.2f, \"once\": %.2f}\n", best_run * 1e6, best_once * 1e6);
    else
        fprintf(stderr, "bench_call: %s\n", env ? cgam_env_message(env) : cgam_status_text(status));
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    cgam_env_free(env);
    return status != CGAM_OK;
}
