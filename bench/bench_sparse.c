/* bench_sparse: what a sparse recall costs beside softmax, and annealing beside a coupled recall, all on
 * one bank and by turns; the best of several rounds.
 *
 *   bench_sparse [n d [rounds [beta]]]     default 32000 2048 5 20, stored as f32
 *
 * Claims, checked by the exit status: sparsemax takes at most 1.15 times as long as softmax at one query,
 * with readout, without a context and with one; annealing to beta at most 6 times a coupled recall at it. */
#include <cgam/cgam.h>

#include "base/env.h"

#include <cgam/base.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void need(cgam_env *env, cgam_status status)
{
    if (status == CGAM_OK) return;
    fprintf(stderr, "bench_sparse: %s\n", cgam_env_message(env));
    exit(3);
}

typedef struct piece {
    const char *name;
    cgam_mode mode;
    double entmax;
    bool context, between, readout;
    cgam_recall *plan;
    double wall, cpu;
    cgam_result result;
} piece;

enum { SOFTMAX, SPARSEMAX, GATED, GATED_SPARSE, COUPLED, SPARSE_COUPLED, ANNEALED, PIECES };
static piece pieces[PIECES] = {
    [SOFTMAX] = {"softmax", CGAM_FIRST, 0, .readout = true},
    [SPARSEMAX] = {"sparsemax", CGAM_FIRST, 2, .readout = true},
    [GATED] = {"softmax, context", CGAM_FIRST, 0, .context = true, .readout = true},
    [GATED_SPARSE] = {"sparsemax, context", CGAM_FIRST, 2, .context = true, .readout = true},
    [COUPLED] = {"coupled", CGAM_COUPLED, 0, .context = true, .between = true},
    [SPARSE_COUPLED] = {"coupled, sparsemax", CGAM_COUPLED, 2, .context = true, .between = true},
    [ANNEALED] = {"anneal", CGAM_ANNEAL, 0, .context = true, .between = true},
};

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct {
    const char *words;
    int work, beside;
    double goal; /* 0: none */
} ratios[] = {{"sparsemax over softmax, one query", SPARSEMAX, SOFTMAX, 1.15},
              {"sparsemax over softmax, one query and a context", GATED_SPARSE, GATED, 1.15},
              {"annealing over a coupled recall", ANNEALED, COUPLED, 6},
              {"coupled sparsemax over coupled softmax", SPARSE_COUPLED, COUPLED, 0}};

int main(int argc, char **argv)
{
    int64_t n = argc > 2 ? strtoll(argv[1], NULL, 10) : 32000,
            d = argc > 2 ? strtoll(argv[2], NULL, 10) : 2048;
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5, short_of = 0;
    double beta = argc > 4 ? strtod(argv[4], NULL) : 20;
    cgam_env *env = NULL;
    cgam_bank *bank;
    need(env, cgam_env_new(NULL, &env));
    float *Z = malloc((size_t)(n * d) * sizeof *Z);
    double *q = malloc((size_t)(4 * d) * sizeof *q), *between = q + d, *c = between + d;
    if (!Z || !q || n < 8 || d < 1) {
        fprintf(stderr, "bench_sparse: %lld x %lld is too small, or too large\n", (long long)n,
                (long long)d);
        free(Z);
        free(q);
        cgam_env_free(env);
        return 3;
    }
    cgam_rng rng = cgam_rng_stream(1, 0);
    for (int64_t i = 0; i < n * d; i++) /* uniform entries of variance 1/d */
        Z[i] = (float)(sqrt(3.0 / (double)d) * (2 * cgam_rng_uniform(&rng) - 1));
    for (int64_t j = 0; j < d; j++) {
        double one = (double)Z[n / 2 * d + j], two = (double)Z[n / 3 * d + j];
        q[j] = one;
        between[j] = 0.7 * (one + 0.98 * two);
        c[j] = 0.5 * two;
    }
    need(env, cgam_bank_new(env, Z, CGAM_F32, n, d, NULL, &bank));
    cgam_gate_opts gate_opts = cgam_gate_opts_default();
    cgam_gate *gate;
    gate_opts.coupled = true;
    need(env, cgam_gate_new(bank, 0.2, &gate_opts, &gate));
    for (piece *x = pieces; x < pieces + PIECES; x++) {
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = x->mode;
        o.beta = beta;
        o.entmax = x->entmax;
        o.lambda = 0.25;
        o.alpha = 0.2;
        o.gate = gate;
        need(env, cgam_recall_new(bank, &o, &x->plan));
        x->wall = x->cpu = INFINITY;
    }
    for (int round = 0; round < rounds; round++)
        for (piece *x = pieces; x < pieces + PIECES; x++) {
            cgam_recall_in in = {.queries = 1,
                                 .q = x->between ? between : q,
                                 .c = x->context ? c : NULL,
                                 .c_per_query = true};
            cgam_recall_out out = {.results = &x->result, .readout = x->readout ? c + d : NULL};
            double from = cgam_clock(), cpu = cpu_now();
            need(env, cgam_recall_run(x->plan, &in, &out));
            x->cpu = fmin(x->cpu, cpu_now() - cpu);
            x->wall = fmin(x->wall, cgam_clock() - from);
        }
    printf("%lld x %lld, f32, beta %g, %d threads\n", (long long)n, (long long)d, beta,
           cgam_env_threads(env));
    for (const piece *x = pieces; x < pieces + PIECES; x++)
        printf("  %-20s %8.1f ms, %8.1f ms of CPU; p %.6f, support %lld, %lld iterations, %s\n",
               x->name, 1e3 * x->wall, 1e3 * x->cpu, x->result.p, (long long)x->result.support,
               (long long)x->result.iterations, cgam_word(cgam_end_words, x->result.end));
    for (size_t k = 0; k < sizeof ratios / sizeof *ratios; k++) {
        const piece *x = &pieces[ratios[k].work], *y = &pieces[ratios[k].beside];
        double wall = x->wall / y->wall, cpu = x->cpu / y->cpu;
        bool missed = ratios[k].goal > 0 && wall > ratios[k].goal && cpu > ratios[k].goal;
        printf("%-50s %6.2f, of CPU %6.2f", ratios[k].words, wall, cpu);
        if (ratios[k].goal > 0) printf("   goal %.2f%s", ratios[k].goal, missed ? " MISSED" : "");
        printf("\n");
        short_of += missed;
    }
    for (piece *x = pieces; x < pieces + PIECES; x++) cgam_recall_free(x->plan);
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    cgam_env_free(env);
    free(Z);
    free(q);
    return short_of > 0;
}
