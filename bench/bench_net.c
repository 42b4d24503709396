/* bench_net: what a step of the two-stage network costs, in units of its two products with the bank,
 * and how much memory a flow takes beyond the bank, in units of the n + d numbers of its vectors.
 * All ratios are measured in one run.
 *
 * The two products are one pass forth (Z t, with Z q and Z c where query and context move) and one
 * back (Z's, with Z'p where the query moves).
 *
 *   bench_net [n d [f32]]     default 20000 256, stored as f64
 *
 * Claims, checked by the exit status: a step costs at most 2.5 times the two products by Euler's
 * method, whatever is clamped; memory is a few dozen vectors of n + d, not a matrix. */
#include "memory/gate.h"
#include "net/net.h"
#include <cgam/cgam.h>

#include "base/env.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    size_t now, peak;
} heap;

static void *counted_alloc(void *user, size_t align, size_t bytes)
{
    (void)user;
    char *block = aligned_alloc(align, bytes + align);
    if (!block) return NULL;
    *(size_t *)(void *)block = bytes;
    heap.now += bytes;
    if (heap.now > heap.peak) heap.peak = heap.now;
    return block + align;
}

static void counted_free(void *user, void *block)
{
    (void)user;
    char *start = (char *)block - 64;
    heap.now -= *(size_t *)(void *)start;
    free(start);
}

static void need(cgam_env *env, cgam_status status)
{
    if (status == CGAM_OK) return;
    fprintf(stderr, "bench_net: %s\n", cgam_env_message(env));
    exit(3);
}

static uint64_t seed = 1;
static double noise(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 11) * 0x1p-52 - 1;
}

typedef struct setting {
    const char *name;
    bool free_context, free_query;
    int64_t forth, back; /* vectors in the two passes */
} setting;

/* Seconds of both products, the best of several. */
static double products(cgam_env *env, const cgam_bank *bank, setting set, double *s, double *t,
                       int rounds)
{
    cgam_op Z = cgam_bank_op(bank);
    double best = INFINITY;
    for (int k = 0; k < rounds; k++) {
        double start = cgam_clock();
        need(env, Z.apply_t(Z.user, set.back, s, t));
        need(env, Z.apply(Z.user, set.forth, t, s));
        best = fmin(best, cgam_clock() - start);
        for (int64_t i = 0; i < 3 * Z.rows; i++) s[i] *= 1e-3;
    }
    return best;
}

typedef struct clocked {
    double last, best;
} clocked;

static int time_steps(void *user, const cgam_flow_moment *m)
{
    clocked *c = user;
    double now = cgam_clock();
    if (m->step > 0) c->best = fmin(c->best, now - c->last);
    c->last = cgam_clock();
    return 0;
}

/* Seconds a step, the best of a fixed-step flow and the mean of an adaptive one, whose steps are
 * not alike; memory in bytes, and the report. */
static double flow(cgam_env *env, const cgam_net *net, const double *x0, setting set,
                   cgam_flow_method method, double *memory, cgam_flow_report *r)
{
    int64_t size = cgam_net_describe(net).size;
    double *x = malloc((size_t)size * sizeof *x);
    cgam_clamp clamps[2];
    cgam_flow_opts f = cgam_flow_opts_default();
    clocked c = {0, INFINITY};
    memcpy(x, x0, (size_t)size * sizeof *x);
    f.method = method;
    f.step = 1e-3;
    f.t_end = method == CGAM_FLOW_BDF || method == CGAM_FLOW_ADAMS ? 1 : 0.064;
    f.rtol = 1e-6;
    f.atol = 1e-8;
    f.clamps = clamps;
    f.stop = 0;
    f.monitor = time_steps;
    f.user = &c;
    if (!set.free_context) clamps[f.clamp_count++] = (cgam_clamp){.layer = 0, .to = INFINITY};
    if (!set.free_query) clamps[f.clamp_count++] = (cgam_clamp){.layer = 3, .to = INFINITY};
    size_t before = heap.now;
    heap.peak = heap.now;
    double start = cgam_clock();
    need(env, cgam_flow_run(net, 1, x, &f, r));
    double all = cgam_clock() - start;
    *memory = (double)(heap.peak - before);
    free(x);
    bool fixed = method == CGAM_FLOW_EULER || method == CGAM_FLOW_RK4;
    return fixed ? c.best : all / (double)r->steps;
}

int main(int argc, char **argv)
{
    int64_t n = argc > 2 ? atoll(argv[1]) : 20000, d = argc > 2 ? atoll(argv[2]) : 256;
    bool narrow = argc > 3 && strcmp(argv[3], "f32") == 0, fine = true;
    cgam_env_opts eo = cgam_env_opts_default();
    cgam_env *env;
    cgam_bank *bank;
    cgam_net *net;
    eo.alloc = counted_alloc;
    eo.free = counted_free;
    if (n < 1 || d < 1 || cgam_env_new(&eo, &env) != CGAM_OK) return 2;
    double *Z = malloc((size_t)(n * d) * sizeof *Z);
    float *Zf = narrow ? malloc((size_t)(n * d) * sizeof *Zf) : NULL;
    double *x = calloc((size_t)(2 * n + 2 * d), sizeof *x);
    double *s = malloc(3 * (size_t)n * sizeof *s), *t = calloc(3 * (size_t)d, sizeof *t);
    if (!Z || (narrow && !Zf) || !x || !s || !t) return 3;
    for (int64_t i = 0; i < n * d; i++) {
        Z[i] = noise();
        if (narrow) Zf[i] = (float)Z[i];
    }
    cgam_bank_opts bo = cgam_bank_opts_default();
    bo.normalize = true;
    need(env, cgam_bank_new(env, narrow ? (void *)Zf : (void *)Z, narrow ? CGAM_F32 : CGAM_F64, n,
                            d, &bo, &bank));
    cgam_memory_net_opts o = cgam_memory_net_opts_default();
    o.alpha = 0.3;
    o.beta = 4;
    need(env, cgam_memory_net_new(bank, &o, &net));
    for (int64_t i = 0; i < d; i++) x[i] = x[d + 2 * n + i] = noise();
    for (int64_t i = 0; i < 3 * n; i++) s[i] = noise();

    double vectors = 8.0 * (double)(n + d);
    printf("two-stage network over %lld x %lld (%s), %d threads\n\n", (long long)n, (long long)d,
           narrow ? "f32" : "f64", cgam_env_threads(env));
    printf("%-24s %-6s %10s %12s %7s %12s %8s\n", "moving", "method", "ms a step", "ms products",
           "ratio", "passes/step", "vectors");
    static const setting settings[] = {{"gates, retrieval", false, false, 1, 1},
                                       {"gates, retrieval, query", false, true, 2, 2},
                                       {"all four", true, true, 3, 2}};
    static const cgam_flow_method methods[] = {CGAM_FLOW_EULER, CGAM_FLOW_RK4, CGAM_FLOW_ADAMS,
                                               CGAM_FLOW_BDF};
    for (int k = 0; k < 3; k++) {
        double unit = products(env, bank, settings[k], s, t, 12);
        for (int m = 0; m < 4; m++) {
            cgam_flow_report r;
            double memory, seconds = flow(env, net, x, settings[k], methods[m], &memory, &r);
            unit = fmin(unit, products(env, bank, settings[k], s, t, 6));
            double work = (double)(r.evaluations + r.jacobians) / (double)r.steps;
            bool holds = methods[m] != CGAM_FLOW_EULER || seconds <= 2.5 * unit;
            bool small = memory / vectors < 200;
            fine = fine && holds && small;
            printf("%-24s %-6s %10.3f %12.3f %7.2f %12.2f %8.1f%s\n", settings[k].name,
                   cgam_word(cgam_flow_method_words, methods[m]), 1e3 * seconds, 1e3 * unit,
                   seconds / unit, 2 * work, memory / vectors,
                   holds && small ? "" : "  <- claim broken");
        }
    }
    printf(
        "\nratio: time of a step over that of the two products. passes/step: over the bank, all\n"
        "watching of energy and events included. vectors: peak memory of the flow beyond the\n"
        "bank, in units of n + d numbers.\n");
    cgam_net_free(net);
    cgam_bank_free(bank);
    cgam_env_free(env);
    free(Z);
    free(Zf);
    free(x);
    free(s);
    free(t);
    return fine ? 0 : 1;
}
