/* bench_pack: what opening a packed bank with factored gates adds to a recall.
 *
 *   bench_pack [n d [rounds [folder]]]     default 128256 4096 7 /tmp, stored as f32; the two files need twice n d 4 bytes
 *                                          and are removed
 *   bench_pack FILE ALPHA [rounds]         a bank that was packed with that alpha: packing the default takes minutes
 *
 * By turns: a recall with a context at the alpha that is factored, on a bank and a plan that are there; and the same with
 * opening the file and making the plan before it. The best of the rounds each. Claim, checked by the exit status: the second
 * takes at most 1.3 times as long as the first, mode first; mode coupled is reported beside it. */
#include "base/rng.h"
#include "io/npy.h"
#include <cgam/cgam.h>

#include <cgam/base.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double ALPHA = 0.1, GOAL = 1.3; /* memories have norms near one */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(cgam_env *env, cgam_status status)
{
    if (status == CGAM_OK) return;
    fprintf(stderr, "bench_pack: %s\n", cgam_env_message(env));
    exit(3);
}

static void write_rows(cgam_env *env, const char *path, int64_t n, int64_t d)
{
    cgam_npy_writer *out;
    float *row = malloc((size_t)d * sizeof *row);
    if (!row) exit(3);
    need(env, cgam_npy_begin(env, path, CGAM_F32, 2, (int64_t[]){n, d}, &out));
    for (int64_t i = 0; i < n; i++) {
        cgam_rng rng = cgam_rng_stream(1, (uint64_t)i);
        for (int64_t j = 0; j < d; j++) row[j] = (float)(cgam_rng_normal(&rng) / sqrt((double)d));
        need(env, cgam_npy_append(out, row, d));
    }
    need(env, cgam_npy_finish(out));
    free(row);
}

static double recall(cgam_env *env, const cgam_recall *plan, const double *q, const double *c)
{
    cgam_result r;
    double began = now();
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out out = {.results = &r};
    need(env, cgam_recall_run(plan, &in, &out));
    return now() - began;
}

/* Seconds of opening and plan, and of all. */
static double open_and_recall(cgam_env *env, const char *path, const cgam_recall_opts *opts,
                              const double *q, const double *c, double *opening)
{
    cgam_bank *bank;
    cgam_recall *plan;
    double began = now();
    need(env, cgam_bank_load(env, path, NULL, &bank));
    need(env, cgam_recall_new(bank, opts, &plan));
    *opening = now() - began;
    recall(env, plan, q, c);
    double all = now() - began;
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    return all;
}

/* Random rows packed; reports the seconds that packing took. */
static void pack(cgam_env *env, const char *folder, int64_t n, int64_t d, const char *packed)
{
    char rows[512];
    snprintf(rows, sizeof rows, "%s/cgam-bench-pack-%d.npy", folder, (int)getpid());
    write_rows(env, rows, n, d);
    double began = now();
    cgam_pack_opts o = cgam_pack_opts_default();
    o.alphas = 1;
    o.alpha = &ALPHA;
    cgam_status status = cgam_pack(env, rows, &o, packed);
    unlink(rows);
    need(env, status);
    printf("%lld x %lld f32, packed with alpha %g in %.1f s\n", (long long)n, (long long)d, ALPHA,
           now() - began);
}

/* Both modes; is the goal missed? */
static int measure(cgam_env *env, const char *packed, double alpha, int rounds)
{
    int bad = 0;
    for (int coupled = 0; coupled < 2; coupled++) {
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.alpha = alpha;
        opts.lambda = 0.5;
        opts.mode = coupled ? CGAM_COUPLED : CGAM_FIRST;
        cgam_bank *bank;
        cgam_recall *plan;
        need(env, cgam_bank_load(env, packed, NULL, &bank));
        need(env, cgam_recall_new(bank, &opts, &plan));
        int64_t d = cgam_bank_describe(bank).d;
        double *q = malloc(2 * (size_t)d * sizeof *q), *c = q + d;
        if (!q) exit(3);
        cgam_rng rng = cgam_rng_stream(2, 0);
        for (int64_t j = 0; j < 2 * d; j++) q[j] = cgam_rng_normal(&rng);
        double alone = INFINITY, all = INFINITY, opening = INFINITY, first;
        for (int k = 0; k <= rounds; k++) { /* the first of each is not counted */
            double a = recall(env, plan, q, c);
            double b = open_and_recall(env, packed, &opts, q, c, &first);
            if (k == 0) continue;
            alone = fmin(alone, a);
            all = fmin(all, b);
            opening = fmin(opening, first);
        }
        printf("mode %-8s recall %9.3f ms, opening %9.3f ms, both %9.3f ms: %.2f of the recall%s\n",
               cgam_word(cgam_mode_words, opts.mode), 1e3 * alone, 1e3 * opening, 1e3 * all,
               all / alone,
               coupled               ? ""
               : all <= GOAL * alone ? ", at most 1.3"
                                     : ", above 1.3");
        bad |= !coupled && !(all <= GOAL * alone);
        cgam_recall_free(plan);
        cgam_bank_free(bank);
        free(q);
    }
    return bad;
}

int main(int argc, char **argv)
{
    bool given = argc > 2 && strstr(argv[1], ".safetensors");
    int64_t n = argc > 2 && !given ? strtoll(argv[1], NULL, 10) : 128256,
            d = argc > 2 && !given ? strtoll(argv[2], NULL, 10) : 4096;
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 7;
    const char *folder = argc > 4 ? argv[4] : "/tmp";
    char packed[512];
    cgam_env *env;
    if (n < 1 || d < 1 || rounds < 1 || cgam_env_new(NULL, &env) != CGAM_OK) return 2;
    snprintf(packed, sizeof packed, "%s/cgam-bench-pack-%d.safetensors", folder, (int)getpid());
    if (!given) pack(env, folder, n, d, packed);
    int bad = given ? measure(env, argv[1], strtod(argv[2], NULL), rounds)
                    : measure(env, packed, ALPHA, rounds);
    if (!given) unlink(packed);
    cgam_env_free(env);
    return bad;
}
