/* campaign.c: random recalls, each claim of each decided. ctest: timeout=300
 *
 *   campaign [seconds=S] [count=N] [seed=K] [from=NUMBER] [break=CLAIM]
 *
 * Stops at whichever of seconds and count comes first. `from=NUMBER count=1` repeats one instance
 * alone, with what it claims. `break=K` makes claim
 * number K, in the order of the table, stronger by a hundredth before it is judged: the campaign has to
 * go red then. Prints, for each certificate, how often it was proved, an estimate,
 * wrong or undecided, and the share proved in ordinary ranges. Exit 1 when a claim is wrong, or a share is
 * more than a hundredth below what it was. */
#include "rigour/campaign.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The share that was called proved in ordinary ranges before rounding was counted, rightly or not
 * (20000 instances of seed 1). What is proved now may be less by SHARE_LOST. */
static const double before[CLAIMS] = {
    [ALPHA_BOUNDS] = 1,          [ALPHA_CRIT] = 1,   [ETA_MIN] = 1,     [REGIME] = 1,
    [P_LOWER_BOUND] = 1,         [CONTRACTION] = 1,  [UNIQUE] = 0.6871, [FOLD_MARGIN] = 1,
    [LOCAL_CONTRACTION] = 0.998, [P_ERROR] = 0.9623, [P_SUM] = 1,       [CONVERGED] = 1,
};
static const double SHARE_LOST = 0.01;
enum { ENOUGH = 10000 }; /* instances for a share to mean something */

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

/* A lower bound a hundredth too high, an upper one a hundredth too low. */
static double higher(double x) { return x + 0.01 * fabs(x); }
static double lower(double x) { return x - 0.01 * fabs(x); }

static void spoil(int what, cgam_gate_info *g, int64_t queries, answer *answers)
{
    if (what == ALPHA_BOUNDS) g->critical.alpha_lo = higher(g->critical.alpha_lo);
    if (what == ALPHA_CRIT) g->critical.alpha = lower(g->critical.alpha);
    if (what == ETA_MIN) g->eta_min = higher(g->eta_min);
    if (what == REGIME && fabs(g->eta_min) < 0.01) g->regime = CGAM_SUBCRITICAL;
    for (int64_t k = 0; k < queries; k++) {
        cgam_result *r = &answers[k].result;
        if (what == P_LOWER_BOUND) r->p_lower_bound = higher(r->p_lower_bound);
        if (what == CONTRACTION) r->contraction = lower(r->contraction);
        if (what == UNIQUE && r->unique < 0 && lower(r->contraction) < 1) {
            r->unique = 1;
            r->unique_proved = true;
        }
        if (what == FOLD_MARGIN) r->fold_margin = higher(r->fold_margin);
        if (what == LOCAL_CONTRACTION) r->local_contraction = lower(r->local_contraction);
        if (what == P_ERROR) r->p_error = lower(r->p_error);
    }
}

static void run(cgam_env *env, uint64_t seed, uint64_t number, bool loud, int broken, tally *t)
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
        if (broken >= 0) spoil(broken, &info, x.queries, answers);
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
    int broken = (int)argument(argc, argv, "break", -1);
    cgam_env *env;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 1;
    if (cgam_env_new(&opts, &env) != CGAM_OK) return 2;
    tally t = {0};
    double begin = now();
    if (from == 0 && broken < 0) judge_large(env, seed, &t);
    for (uint64_t k = 0; k < (uint64_t)count && now() - begin < seconds; k++)
        run(env, seed, from + k, count == 1, broken, &t);
    printf("%lld instances (%lld refused), %lld queries, %.0f a second\n", (long long)t.instances,
           (long long)t.refused, (long long)t.queries, (double)t.instances / (now() - begin));
    for (int e = 0; e <= CGAM_END_ROSE; e++)
        if (t.ends[e])
            printf("  %s %lld (%lld)", cgam_end_name((cgam_end)e), (long long)t.ends[e],
                   (long long)t.ordinary_ends[e]);
    printf("\n%-18s %10s %10s %8s %8s  %s\n", "claim", "proved", "estimate", "wrong", "open",
           "proved in ordinary ranges, and before");
    int64_t bad = 0, fewer = 0;
    for (int k = 0; k < CLAIMS; k++) {
        double share = (double)t.ordinary[1][k] / fmax(1, (double)t.ordinary[0][k]);
        printf("%-18s %10lld %10lld %8lld %8lld  %.4f of %lld, %.4f\n", claim_names[k],
               (long long)t.made[k], (long long)t.estimate[k], (long long)t.wrong[k],
               (long long)t.open[k], share, (long long)t.ordinary[0][k], before[k]);
        fewer += t.instances >= ENOUGH && share < before[k] - SHARE_LOST;
        bad += t.wrong[k] + t.open[k];
    }
    cgam_env_free(env);
    judge_leaves();
    if (fewer) printf("%lld certificates are proved less often than before\n", (long long)fewer);
    return bad > 0 || fewer > 0;
}
