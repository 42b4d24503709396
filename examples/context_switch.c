/* context_switch.c: one bank, one query, four contexts in one batch, and what each part of the
 * score contributes.
 *
 * The bank is a ring of 60 memories, each described by six frequencies, so that neighbours are
 * alike. The query fits memories 10, 30 and 50 almost equally well. A context knows the two lowest
 * frequencies only: it can say "around here", not which memory. Together they decide. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { N = 60, K = 6, D = 2 * K, RUNS = 4 };
static const int wells[3] = {10, 30, 50};
static const char *const names[RUNS] = {"none", "near 10", "near 30", "near 50"};

static double Z[N][D], Q[RUNS][D], C[RUNS][D];
static double P[RUNS][N], U[N], bias[N], feedback[N];

/* x += weight * (the first `frequencies` frequencies of memory i). */
static void add(double *x, int i, int frequencies, double weight)
{
    const double turn = 2 * 3.14159265358979323846 / N;
    for (int k = 1; k <= frequencies; k++) {
        x[2 * k - 2] += weight * cos(turn * k * i) / sqrt(K);
        x[2 * k - 1] += weight * sin(turn * k * i) / sqrt(K);
    }
}

static void make(void)
{
    static const double depth[3] = {0.97, 1, 0.95};
    for (int i = 0; i < N; i++) add(Z[i], i, K, 1);
    for (int run = 0; run < RUNS; run++)
        for (int w = 0; w < 3; w++) {
            add(Q[run], wells[w], K, depth[w]);
            if (run == w + 1) add(C[run], wells[w], 2, 3); /* run 0 has no context */
        }
}

/* r = b + lambda A^-1 u + lambda^2 A^-1 p at the winner of one run. */
static cgam_status explain(const cgam_bank *bank, const cgam_gate *gate, double lambda, int run,
                           const cgam_result *r)
{
    double row[D], evidence = 0;
    cgam_status status = cgam_bank_score(bank, C[run], U); /* u = Z c */
    if (status == CGAM_OK) status = cgam_retrieval_parts(gate, lambda, U, P[run], bias, feedback);
    if (status == CGAM_OK) status = cgam_bank_row(bank, r->winner, row);
    if (status != CGAM_OK) return status;
    for (int j = 0; j < D; j++) evidence += row[j] * Q[run][j];
    printf("%7s %6lld %7.3f %7.2f %8.3f %9.3f %10.3f %7lld\n", names[run], (long long)r->winner,
           r->p, r->neff_entropy, evidence, bias[r->winner], feedback[r->winner],
           (long long)r->iterations);
    return CGAM_OK;
}

int main(void)
{
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    cgam_result results[RUNS];
    make();

    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    opts.alpha = 0.2;
    opts.beta = 8;
    opts.lambda = 0.5;

    /* Plan once: the gate operator A(alpha) is factored here. Then run any number of queries. */
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, N, D, NULL, &bank);
    if (status == CGAM_OK) status = cgam_recall_new(bank, &opts, &plan);
    if (status == CGAM_OK) {
        cgam_recall_in in = {.queries = RUNS, .q = Q[0], .c = C[0], .c_per_query = true};
        cgam_recall_out out = {.results = results, .p = P[0]};
        status = cgam_recall_run(plan, &in, &out);
    }
    if (status == CGAM_OK)
        puts("context winner       p   N_eff    query   context   feedback   steps");
    for (int run = 0; run < RUNS && status == CGAM_OK; run++)
        status = explain(bank, cgam_recall_gate(plan), opts.lambda, run, &results[run]);

    if (status != CGAM_OK)
        fprintf(stderr, "%s\n", env ? cgam_env_message(env) : cgam_status_text(status));
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    cgam_env_free(env);
    return status != CGAM_OK;
}
