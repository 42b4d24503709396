/* campaign.c: random recalls, each claim of each decided. ctest: timeout=300
 *
 *   campaign [seconds=S] [count=N] [seed=K] [from=NUMBER]
 *
 * Stops at whichever of seconds and count comes first. `from=NUMBER count=1` repeats one instance
 * alone, with what it claims. Prints, for each certificate, how often it was proved, an estimate,
 * wrong or undecided, and the share proved in ordinary ranges. Exit 1 when a claim is wrong. */
#include "rigour/campaign.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double argument(int argc, char **argv, const char *name, double fallback)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return strtod(argv[i] + length + 1, NULL);
    return fallback;
}

static void run(cgam_env *env, uint64_t seed, uint64_t number, bool loud, tally *t)
{
    static instance x;
    static double p[QUERIES_MAX * MEMORIES_MAX], s[QUERIES_MAX * MEMORIES_MAX];
    static double r[QUERIES_MAX * MEMORIES_MAX];
    static cgam_result results[QUERIES_MAX];
    static answer answers[QUERIES_MAX];
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    t->instances++;
    if (!instance_make(env, seed, number, &x, &bank)) {
        t->refused++;
        return;
    }
    if (loud) instance_print(&x);
    cgam_status status = cgam_recall_new(bank, &x.opts, &plan);
    cgam_gate *gate = NULL;
    if (status == CGAM_OK) {
        cgam_recall_in in = {
            .queries = x.queries, .q = x.q, .c = x.context ? x.c : NULL, .c_per_query = x.own};
        cgam_recall_out out = {.results = results,
                               .p = x.vectors ? p : NULL,
                               .s = x.vectors ? s : NULL,
                               .r = x.vectors ? r : NULL};
        status = cgam_recall_run(plan, &in, &out);
    } else { /* refused, as coupled recall is beyond alpha_crit: then the gate still makes claims */
        cgam_gate_opts o = cgam_gate_opts_default();
        if (cgam_gate_new(bank, x.opts.alpha, &o, &gate) != CGAM_OK) gate = NULL;
    }
    if (status != CGAM_OK && status != CGAM_E_NOT_POSITIVE && status != CGAM_E_SINGULAR) {
        printf("WRONG: %s\n", cgam_env_message(env));
        instance_print(&x);
        t->wrong[REGIME]++;
    }
    t->refused += status != CGAM_OK;
    for (int64_t k = 0; k < x.queries; k++)
        answers[k] =
            (answer){results[k], x.vectors ? p + k * x.n : NULL, x.vectors ? s + k * x.n : NULL};
    const cgam_gate *shown = plan ? cgam_recall_gate(plan) : gate;
    if (shown) {
        cgam_gate_info info = cgam_gate_describe(shown);
        judge(&x, &info, status == CGAM_OK ? answers : NULL, t);
    }
    cgam_gate_free(gate);
    cgam_recall_free(plan);
    cgam_bank_free(bank);
}

int main(int argc, char **argv)
{
    double seconds = argument(argc, argv, "seconds", 60),
           count = argument(argc, argv, "count", 1e9);
    uint64_t seed = (uint64_t)argument(argc, argv, "seed", 1),
             from = (uint64_t)argument(argc, argv, "from", 0);
    cgam_env *env;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 1;
    if (cgam_env_new(&opts, &env) != CGAM_OK) return 2;
    tally t = {0};
    double begin = now();
    for (uint64_t k = 0; k < (uint64_t)count && now() - begin < seconds; k++)
        run(env, seed, from + k, count == 1, &t);
    printf("%lld instances (%lld refused), %lld queries, %.0f a second\n", (long long)t.instances,
           (long long)t.refused, (long long)t.queries, (double)t.instances / (now() - begin));
    for (int e = 0; e <= CGAM_END_ROSE; e++)
        if (t.ends[e])
            printf("  %s %lld (%lld)", cgam_end_name((cgam_end)e), (long long)t.ends[e],
                   (long long)t.ordinary_ends[e]);
    printf("\n%-18s %10s %10s %8s %8s  %s\n", "claim", "proved", "estimate", "wrong", "open",
           "proved share in ordinary ranges");
    int64_t bad = 0;
    for (int k = 0; k < CLAIMS; k++) {
        printf("%-18s %10lld %10lld %8lld %8lld  %.4f of %lld\n", claim_names[k],
               (long long)t.made[k], (long long)t.estimate[k], (long long)t.wrong[k],
               (long long)t.open[k],
               (double)t.ordinary[1][k] / (double)(t.ordinary[0][k] ? t.ordinary[0][k] : 1),
               (long long)t.ordinary[0][k]);
        bad += t.wrong[k] + t.open[k];
    }
    cgam_env_free(env);
    return bad > 0;
}
