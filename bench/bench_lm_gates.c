/* bench_lm_gates.c: gates over a vocabulary - 12 alpha, both modes, 200 queries, 32,000 words in 2048
 * dimensions - take under 3 minutes on two cores, and what of that is products of matrices. Synthetic
 * rows with what matters of an unembedding: lengths that differ, a direction that all have in common,
 * queries that see some hundred words. Time is reported by phase, in all and for each alpha, wall and CPU.
 *
 *     bench_lm_gates [QUERIES [STEP [FROM]]]    every STEP-th alpha of the grid, from the FROM-th on
 *
 * limit: a coupled query takes two products with the bank for each iteration, at the rate of sgemm on as
 * many threads; the set-up of an alpha is n d^2 multiply-adds at that of dgemm. */
#include "base/blas.h"
#include "base/env.h"

#include "lab/language/gates.h"
#include <cgam/base.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 32000, D = 2048, QUERIES = 200, LABELS = 2, SIDE = 1024, GOAL = 180 };

static double noise(cgam_rng *rng) { return cgam_rng_uniform(rng) - 0.5; }

static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Rows of length 0.65 to 1.85, mu_max an eighth of the trace. */
static void draw_rows(float *Z)
{
    for (int64_t i = 0; i < N; i++) {
        cgam_rng rng = cgam_rng_stream(1, (uint64_t)i);
        double spread = cgam_rng_uniform(&rng), size = 0.65 + 1.2 * spread * spread * spread;
        for (int64_t j = 0; j < D; j++)
            Z[i * D + j] = (float)(size * (noise(&rng) * sqrt(12 * 0.88 / D) +
                                           (j % 2 ? 1 : -1) * sqrt(0.12 / D)));
    }
}

typedef struct asking {
    double *q, *c, *factor;
    int32_t tokens[LABELS], *target;
} asking;

static void draw_queries(const float *Z, int64_t queries, const asking *a)
{
    cgam_rng rng = cgam_rng_stream(2, 0);
    for (int64_t i = 0; i < queries; i++) {
        a->target[i] = (int32_t)(i / 2 % 2);
        a->factor[i] = 0.8 + 0.4 * cgam_rng_uniform(&rng);
        const float *row = Z + (int64_t)a->tokens[a->target[i]] * D;
        for (int64_t j = 0; j < D; j++)
            a->q[i * D + j] = (i % 4 < 2 ? 2.0 : 1.0) * (double)row[j] + 5 * noise(&rng);
    }
    for (int64_t j = 0; j < D; j++)
        a->c[j] = 2 * noise(&rng) + (double)(Z[(int64_t)a->tokens[1] * D + j]) -
                  (double)(Z[(int64_t)a->tokens[0] * D + j]);
}

typedef struct product {
    bool wide;
    void *room; /* [threads, 3, SIDE, SIDE] */
} product;

static cgam_status multiply(void *arg, int64_t k)
{
    const product *p = arg;
    double *A = (double *)p->room + 3 * k * SIDE * SIDE, *B = A + SIDE * SIDE, *C = B + SIDE * SIDE;
    if (p->wide)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, A, SIDE, B,
                    SIDE, 0, C, SIDE);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, (float *)A,
                    SIDE, (float *)B, SIDE, 0, (float *)C, SIDE);
    return CGAM_OK;
}

/* CPU seconds of a multiply-add, the best of some rounds. */
static double rate(cgam_env *env, bool wide)
{
    int threads = cgam_env_threads(env);
    double best = INFINITY;
    product p = {wide, calloc((size_t)(3 * threads) * SIDE * SIDE, sizeof(double))};
    for (int round = 0; p.room && round < 5; round++) {
        double start = cpu_seconds();
        if (cgam_parallel(env, threads, multiply, &p) != CGAM_OK) break;
        best = fmin(best, (cpu_seconds() - start) / ((double)threads * SIDE * SIDE * SIDE));
    }
    free(p.room);
    return best;
}

static cgam_status run(cgam_env *env, const cgam_bank *bank, const cgam_gates_input *in,
                       int64_t step, int64_t from)
{
    cgam_gates *gates = NULL;
    cgam_gates_asked *asked = NULL;
    cgam_gates_answer *answers = calloc(2 * (size_t)in->queries, sizeof *answers);
    cgam_gates_answers out = {.first = answers, .coupled = answers ? answers + in->queries : NULL};
    double alpha[CGAM_GATES_GRID], start = cgam_clock(), cpu = cpu_seconds(), work = 0;
    cgam_gates_seconds all = {0};
    cgam_status status = answers ? cgam_gates_new(bank, NULL, &gates) : CGAM_E_NOMEM;
    if (status == CGAM_OK) status = cgam_gates_ask(gates, in, &asked);
    if (status != CGAM_OK) goto done;
    double once = cgam_clock() - start, all_cpu = cpu_seconds() - cpu, once_cpu = all_cpu;
    int64_t count = cgam_gates_grid(gates, alpha), made = 0;
    double narrow = rate(env, false), wide = rate(env, true);
    printf("%-10s %8s %8s %8s %8s %11s\n", "alpha", "set-up", "first", "coupled", "CPU",
           "iterations");
    for (int64_t k = from; k < count && status == CGAM_OK; k += step, made++) {
        cgam_gates_seconds now = {0};
        double iterations = 0;
        cpu = cpu_seconds();
        status = cgam_gates_at(gates, alpha[k], 1, &asked, &out, &now);
        cpu = cpu_seconds() - cpu;
        for (int64_t i = 0; i < in->queries; i++) iterations += (double)out.coupled[i].iterations;
        printf("%-10.4g %8.2f %8.2f %8.2f %8.2f %11.1f\n", alpha[k], now.set_up, now.first,
               now.coupled, cpu, iterations / (double)in->queries);
        fflush(stdout);
        all.set_up += now.set_up;
        all.first += now.first;
        all.coupled += now.coupled;
        all_cpu += cpu;
        if (alpha[k] > 0) work += 2 * iterations * N * D * narrow + 0.5 * N * D * (double)D * wide;
    }
    double whole = once + all.set_up + all.first + all.coupled;
    printf(
        "gates: %lld alpha, %lld queries, %d words: %.1f s on %d threads (goal %d), spectrum and "
        "scores %.1f, set-up %.1f, first %.1f, coupled %.1f; CPU %.1f s, %.2f of the products\n",
        (long long)made, (long long)in->queries, N, whole, cgam_env_threads(env), GOAL, once,
        all.set_up, all.first, all.coupled, all_cpu, (all_cpu - once_cpu) / work);
done:
    cgam_gates_asked_free(asked);
    cgam_gates_free(gates);
    free(answers);
    return status;
}

int main(int argc, char **argv)
{
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    int64_t queries = argc > 1 ? atoll(argv[1]) : QUERIES, step = argc > 2 ? atoll(argv[2]) : 1;
    int64_t from = argc > 3 ? atoll(argv[3]) : 0;
    if (queries < 4 || queries > 10000 || step < 1 || step > 100 || from < 0) return 2;
    asking a = {calloc((size_t)(queries * D), sizeof *a.q),
                calloc(D, sizeof *a.c),
                calloc((size_t)queries, sizeof *a.factor),
                {100, 20000},
                calloc((size_t)queries, sizeof *a.target)};
    float *Z = malloc((size_t)N * D * sizeof *Z);
    bool room = Z && a.q && a.c && a.factor && a.target;
    cgam_status status = room ? cgam_env_new(NULL, &env) : CGAM_E_NOMEM;
    if (status != CGAM_OK) goto done;
    draw_rows(Z);
    draw_queries(Z, queries, &a);
    cgam_gates_input in = {.queries = queries,
                           .q = {a.q, a.q},
                           .c = {a.c, a.c},
                           .factor = {a.factor, a.factor},
                           .labels = LABELS,
                           .tokens = a.tokens,
                           .target = a.target};
    status = cgam_bank_new(env, Z, CGAM_F32, N, D, NULL, &bank);
    if (status == CGAM_OK) status = run(env, bank, &in, step, from);
    if (status != CGAM_OK) fprintf(stderr, "bench_lm_gates: %s\n", cgam_env_message(env));
done:
    cgam_bank_free(bank);
    cgam_env_free(env);
    free(Z), free(a.q), free(a.c), free(a.factor), free(a.target);
    return status == CGAM_OK ? 0 : 3;
}
