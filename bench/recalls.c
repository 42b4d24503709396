/* recalls.c: limits of the machine and recalls, by turns. */
#include "bench/recalls.h"

#include "base/blas.h"
#include "base/env.h"
#include "bench/limits.h"
#include "memory/plan.h"
#include "num/cpu/widen.h"
#include "num/rows.h"

#include <cgam/base.h>
#include <math.h>
#include <time.h>

enum { LOOK_EVERY = 1 << 16 }; /* numbers between two looks at whether to stop */
enum { ITERATIONS_SHORT = 2, ITERATIONS_LONG = 6 };
enum { BATCH = 64, GEMM = 1024, EXPS = 1 << 20, SLICES = 16, BURNS = 1 << 21 };
static const double GRAM_WORK = 3.4e10; /* multiply-adds of the gate set-up that is measured */

typedef struct bench {
    cgam_env *env;
    int64_t n, d, threads;
    uint64_t seed;
    float *Z;              /* [n, d], entries of variance 1/d */
    uint16_t *half;        /* the same in bf16 */
    double *q;             /* [1 + BATCH, d], the first to go alone */
    double *between;       /* the same for coupled recalls */
    int64_t iterations[2]; /* that coupled recalls made: one, and a batch */
    double *readout;       /* [BATCH, d] */
    double *C, *ones;      /* [d, d]; [n] weights of the gate set-up */
    double *exps;          /* [2, EXPS] */
    float *gemm32;         /* [threads, 3, GEMM, GEMM] */
    double *gemm64;
    cgam_bank *bank, *bank_half;
    cgam_recall *flat, *peaked, *flat_half, *coupled;
} bench;

/* ---- What is measured --------------------------------------------------------------------- */
static void read_words(const void *data, int64_t words, int64_t k)
{
    int64_t from = words * k / SLICES, end = words * (k + 1) / SLICES;
    volatile uint64_t all =
        cgam_limits_of(cgam_cpu_best())->read((const uint64_t *)data + from, end - from);
    (void)all;
}

static cgam_status read_slice(void *arg, int64_t k)
{
    const bench *b = arg;
    read_words(b->Z, b->n * b->d / 2, k);
    return CGAM_OK;
}

static cgam_status read_half_slice(void *arg, int64_t k)
{
    const bench *b = arg;
    read_words(b->half, b->n * b->d / 4, k);
    return CGAM_OK;
}

static cgam_status read_bank(bench *b) { return cgam_parallel(b->env, SLICES, read_slice, b); }
static cgam_status read_half(bench *b) { return cgam_parallel(b->env, SLICES, read_half_slice, b); }

static cgam_status sgemm_one(void *arg, int64_t k)
{
    float *A = ((bench *)arg)->gemm32 + k * 3 * GEMM * GEMM;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1, A, GEMM,
                A + GEMM * GEMM, GEMM, 0, A + 2 * GEMM * GEMM, GEMM);
    return CGAM_OK;
}

static cgam_status dgemm_one(void *arg, int64_t k)
{
    double *A = ((bench *)arg)->gemm64 + k * 3 * GEMM * GEMM;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, GEMM, GEMM, GEMM, 1, A, GEMM,
                A + GEMM * GEMM, GEMM, 0, A + 2 * GEMM * GEMM, GEMM);
    return CGAM_OK;
}

static cgam_status sgemm(bench *b) { return cgam_parallel(b->env, b->threads, sgemm_one, b); }
static cgam_status dgemm(bench *b) { return cgam_parallel(b->env, b->threads, dgemm_one, b); }

static cgam_status burn_one(void *arg, int64_t k)
{
    (void)arg;
    (void)k;
    volatile float sum = cgam_limits_of(cgam_cpu_best())->burn(BURNS);
    (void)sum;
    return CGAM_OK;
}

static cgam_status burn(bench *b) { return cgam_parallel(b->env, b->threads, burn_one, b); }

static cgam_status exponentials(bench *b)
{
    cgam_limits_of(cgam_cpu_best())->exp(b->exps, EXPS, b->exps + EXPS);
    return CGAM_OK;
}

static cgam_status recall(bench *b, const cgam_recall *plan, const double *q, int64_t queries,
                          bool reads)
{
    cgam_result results[BATCH];
    cgam_recall_in in = {.queries = queries, .q = queries > 1 ? q + b->d : q};
    cgam_recall_out out = {.results = results, .readout = reads ? b->readout : NULL};
    cgam_status status = cgam_recall_run(plan, &in, &out);
    if (status == CGAM_OK) b->iterations[queries > 1] = results[0].iterations;
    return status;
}

static cgam_status flat(bench *b) { return recall(b, b->flat, b->q, 1, true); }
static cgam_status peaked(bench *b) { return recall(b, b->peaked, b->q, 1, true); }
static cgam_status scores(bench *b) { return recall(b, b->flat, b->q, 1, false); }
static cgam_status half(bench *b) { return recall(b, b->flat_half, b->q, 1, true); }
static cgam_status batch(bench *b) { return recall(b, b->flat, b->q, BATCH, true); }
static cgam_status batch_scores(bench *b) { return recall(b, b->flat, b->q, BATCH, false); }

/* One gate operator serves all; the iterations are no part of it. */
static cgam_status coupled(bench *b, int64_t queries, int64_t iterations)
{
    b->coupled->opts.max_iter = iterations;
    return recall(b, b->coupled, b->between, queries, false);
}

static cgam_status coupled_short(bench *b) { return coupled(b, 1, ITERATIONS_SHORT); }
static cgam_status coupled_long(bench *b) { return coupled(b, 1, ITERATIONS_LONG); }
static cgam_status many_short(bench *b) { return coupled(b, BATCH, ITERATIONS_SHORT); }
static cgam_status many_long(bench *b) { return coupled(b, BATCH, ITERATIONS_LONG); }

static int64_t gram_rows(const bench *b)
{
    return (int64_t)fmin((double)b->n, ceil(GRAM_WORK / ((double)b->d * (double)b->d)));
}

static cgam_status gram(bench *b)
{
    cgam_rows Z = {b->Z, CGAM_F32, gram_rows(b), b->d, b->d, NULL, cgam_cpu_best(), NULL};
    return cgam_rows_gram(b->env, &Z, b->ones, b->C, b->d);
}

/* before: not timed, or NULL. A system that looks for idle pages makes the first reading after some seconds dear: 128256 x 4096
 * in bf16 took 122 ms after 20 s of other work and 78 after a reading, as one query after another does. */
typedef struct piece {
    const char *name;
    cgam_status (*run)(bench *b), (*before)(bench *b);
} piece;

enum {
    READ,
    SGEMM,
    DGEMM,
    BURN,
    EXP,
    FLAT,
    PEAKED,
    SCORES,
    HALF,
    MANY,
    MANY_SCORES,
    SHORT,
    LONG,
    COUPLED_SHORT,
    COUPLED_LONG,
    GRAM,
};
static const piece pieces[CGAM_BENCH_PIECES] = {
    [READ] = {"read", read_bank, read_bank},
    [SGEMM] = {"sgemm", sgemm, NULL},
    [DGEMM] = {"dgemm", dgemm, NULL},
    [BURN] = {"fma", burn, NULL},
    [EXP] = {"exp", exponentials, NULL},
    [FLAT] = {"first_flat", flat, NULL},
    [PEAKED] = {"first_peaked", peaked, NULL},
    [SCORES] = {"first_no_readout", scores, NULL},
    [HALF] = {"first_bf16", half, read_half},
    [MANY] = {"batch", batch, NULL},
    [MANY_SCORES] = {"batch_no_readout", batch_scores, NULL},
    [SHORT] = {"coupled_2", coupled_short, NULL},
    [LONG] = {"coupled_6", coupled_long, NULL},
    [COUPLED_SHORT] = {"batch_coupled_2", many_short, NULL},
    [COUPLED_LONG] = {"batch_coupled_6", many_long, NULL},
    [GRAM] = {"gate_set_up", gram, NULL},
};

/* ---- Set-up -------------------------------------------------------------------------------- */
static void bench_free(bench *b)
{
    cgam_recall *plans[] = {b->flat, b->peaked, b->flat_half, b->coupled};
    for (size_t k = 0; k < sizeof plans / sizeof plans[0]; k++) cgam_recall_free(plans[k]);
    cgam_bank_free(b->bank);
    cgam_bank_free(b->bank_half);
    void *rooms[] = {b->Z, b->half, b->q,    b->between, b->readout,
                     b->C, b->ones, b->exps, b->gemm32,  b->gemm64};
    for (size_t k = 0; k < sizeof rooms / sizeof rooms[0]; k++) cgam_free(b->env, rooms[k]);
}

static cgam_status make_rows(void *arg, int64_t slice)
{
    bench *b = arg;
    cgam_rng rng = cgam_rng_stream(b->seed, (uint64_t)slice);
    int64_t count = b->n * b->d, end = count * (slice + 1) / SLICES;
    double size = sqrt(3.0 / (double)b->d); /* uniform entries of variance 1/d */
    for (int64_t i = count * slice / SLICES; i < end; i++) {
        if (i % LOOK_EVERY == 0 && cgam_interrupted(b->env)) return CGAM_E_INTERRUPTED;
        b->Z[i] = (float)(size * (2 * cgam_rng_uniform(&rng) - 1));
    }
    return CGAM_OK;
}

/* After all of those, since pages that are first written by turns lie by turns, and no bank of users does. */
static cgam_status halve_rows(void *arg, int64_t slice)
{
    const bench *b = arg;
    int64_t count = b->n * b->d, end = count * (slice + 1) / SLICES;
    for (int64_t i = count * slice / SLICES; i < end; i++) {
        double z = (double)b->Z[i];
        if (i % LOOK_EVERY == 0 && cgam_interrupted(b->env)) return CGAM_E_INTERRUPTED;
        cgam_narrow(CGAM_BF16, &z, 1, &b->half[i]);
    }
    return CGAM_OK;
}

static cgam_status bench_new(bench *b)
{
    cgam_env *env = b->env;
    size_t n = (size_t)b->n, d = (size_t)b->d, gemm = (size_t)(3 * GEMM * GEMM);
    b->Z = cgam_alloc(env, n * d, sizeof *b->Z);
    b->half = cgam_alloc(env, n * d, sizeof *b->half);
    b->q = cgam_alloc(env, (1 + BATCH) * d, sizeof *b->q);
    b->between = cgam_alloc(env, (1 + BATCH) * d, sizeof *b->between);
    b->readout = cgam_alloc(env, BATCH * d, sizeof *b->readout);
    b->C = cgam_zalloc(env, d * d, sizeof *b->C);
    b->ones = cgam_alloc(env, n, sizeof *b->ones);
    b->exps = cgam_zalloc(env, (size_t)(2 * EXPS), sizeof *b->exps);
    b->gemm32 = cgam_zalloc(env, (size_t)b->threads * gemm, sizeof *b->gemm32);
    b->gemm64 = cgam_zalloc(env, (size_t)b->threads * gemm, sizeof *b->gemm64);
    if (!b->Z || !b->half || !b->q || !b->between || !b->readout || !b->C || !b->ones || !b->exps ||
        !b->gemm32 || !b->gemm64)
        return cgam_fail_nomem(env, "a bank to measure with");
    cgam_status status = cgam_parallel(env, SLICES, make_rows, b);
    if (status == CGAM_OK) status = cgam_parallel(env, SLICES, halve_rows, b);
    for (size_t k = 0; k <= BATCH; k++) {
        const float *one = b->Z + (k == 0 ? n / 2 : (2 * k - 1) * n / (2 * BATCH)) * d;
        const float *two = b->Z + ((size_t)(one - b->Z) / d + n / 3) % n * d;
        for (size_t j = 0; j < d; j++) {
            b->q[k * d + j] = (double)one[j];
            b->between[k * d + j] = 0.7 * ((double)one[j] + 0.98 * (double)two[j]);
        }
    }
    for (size_t i = 0; i < n; i++) b->ones[i] = 1;
    for (int i = 0; i < EXPS; i++) b->exps[i] = -(double)(i % 700);
    if (status == CGAM_OK) status = cgam_bank_new(env, b->Z, CGAM_F32, b->n, b->d, NULL, &b->bank);
    if (status == CGAM_OK)
        status = cgam_bank_new(env, b->half, CGAM_BF16, b->n, b->d, NULL, &b->bank_half);
    cgam_recall_opts o = cgam_recall_opts_default();
    if (status == CGAM_OK) status = cgam_recall_new(b->bank, &o, &b->flat);
    if (status == CGAM_OK) status = cgam_recall_new(b->bank_half, &o, &b->flat_half);
    o.beta = 200;
    if (status == CGAM_OK) status = cgam_recall_new(b->bank, &o, &b->peaked);
    o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.plain = true;
    o.tol = 0;
    o.beta = 20;
    o.lambda = 0.25;
    o.alpha = 0.2;
    if (status == CGAM_OK) status = cgam_recall_new(b->bank, &o, &b->coupled);
    return status;
}

/* ---- Ratios -------------------------------------------------------------------------------- */
/* A time over that of a reading, or a rate over that of the BLAS. */
static double gemm_flops(const bench *b) { return 2.0 * GEMM * GEMM * GEMM * (double)b->threads; }
static double size_of(const bench *b) { return (double)b->n * (double)b->d; }

static double of_flat(const bench *b, const double *t) { return (void)b, t[FLAT] / t[READ]; }
static double of_peaked(const bench *b, const double *t) { return (void)b, t[PEAKED] / t[READ]; }
static double of_half(const bench *b, const double *t) { return (void)b, 2 * t[HALF] / t[READ]; }
static double of_coupled(const bench *b, const double *t)
{
    return (t[LONG] - t[SHORT]) / (double)(b->iterations[0] - ITERATIONS_SHORT) / t[READ];
}
static double of_many(const bench *b, const double *t)
{
    return 4 * BATCH * size_of(b) / t[MANY] / (gemm_flops(b) / t[SGEMM]);
}
static double of_many_scores(const bench *b, const double *t)
{
    return 2 * BATCH * size_of(b) / t[MANY_SCORES] / (gemm_flops(b) / t[SGEMM]);
}
static double of_many_coupled(const bench *b, const double *t)
{
    double more = (double)(b->iterations[1] - ITERATIONS_SHORT);
    double once = (t[COUPLED_LONG] - t[COUPLED_SHORT]) / more;
    return 4 * BATCH * size_of(b) / once / (gemm_flops(b) / t[SGEMM]);
}
static double of_gram(const bench *b, const double *t)
{
    double rows = (double)gram_rows(b), d = (double)b->d;
    return rows * d * (d + 1) / t[GRAM] / (gemm_flops(b) / t[DGEMM]);
}

/* Times of one round where they are the best so far. */
static cgam_status round_of(bench *b, cgam_bench *out)
{
    for (int k = 0; k < CGAM_BENCH_PIECES; k++) {
        if (cgam_interrupted(b->env)) return CGAM_E_INTERRUPTED;
        struct timespec start, stop;
        cgam_status status = pieces[k].before ? pieces[k].before(b) : CGAM_OK;
        if (status != CGAM_OK) return status;
        double from = cgam_clock();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        status = pieces[k].run(b);
        if (status != CGAM_OK) return status;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &stop);
        out->wall[k] = fmin(out->wall[k], cgam_clock() - from);
        out->cpu[k] = fmin(out->cpu[k], (double)(stop.tv_sec - start.tv_sec) +
                                            1e-9 * (double)(stop.tv_nsec - start.tv_nsec));
    }
    return CGAM_OK;
}

static void compare(const bench *b, cgam_bench *out)
{
    bool wide = b->d >= 1024, tiles = cgam_cpu_best()->digits;
    double many = wide && tiles ? 1.5 : wide ? 0.92 : 0.85;
    const struct {
        const char *work, *limit;
        double goal;
        bool at_most;
        double (*of)(const bench *b, const double *t);
    } table[CGAM_BENCH_RATIOS] = {
        {"one query, f32", "one reading", wide ? 1.12 : 1.25, true, of_flat},
        {"one query, f32, peaked", "one reading", 1.05, true, of_peaked},
        {"one coupled iteration, f32", "one reading", 1.2, true, of_coupled},
        {"one query, bf16", "half a reading", 1.3, true, of_half},
        {"64 queries, readout", "sgemm rate", many, false, of_many},
        {"64 queries, no readout", "sgemm rate", 0, false, of_many_scores},
        {"64 coupled, one iteration", "sgemm rate", 0.85, false, of_many_coupled},
        {"gate set-up", "dgemm rate", 0.85, false, of_gram},
    };
    for (int k = 0; k < CGAM_BENCH_RATIOS; k++) {
        out->ratio[k] = (cgam_bench_ratio){table[k].work,
                                           table[k].limit,
                                           table[k].goal,
                                           table[k].at_most,
                                           table[k].of(b, out->wall),
                                           table[k].of(b, out->cpu)};
    }
    out->read_gb_s = 4e-9 * size_of(b) / out->wall[READ];
    out->sgemm_gflop_s = 1e-9 * gemm_flops(b) / out->wall[SGEMM];
    out->dgemm_gflop_s = 1e-9 * gemm_flops(b) / out->wall[DGEMM];
    double burnt = BURNS * (double)cgam_limits_of(cgam_cpu_best())->burn_width;
    out->fma_gflop_s = 2e-9 * burnt * (double)b->threads / out->wall[BURN];
    out->exp_g_s = 1e-9 * EXPS / out->wall[EXP];
}

cgam_status cgam_bench_run(cgam_env *env, int64_t rows, int64_t columns, int64_t runs,
                           uint64_t seed, cgam_bench *out)
{
    bench b = {.env = env, .n = rows, .d = columns, .threads = cgam_env_threads(env), .seed = seed};
    for (int k = 0; k < CGAM_BENCH_PIECES; k++) {
        out->name[k] = pieces[k].name;
        out->wall[k] = out->cpu[k] = INFINITY;
    }
    cgam_status status = bench_new(&b);
    for (int64_t run = 0; run < runs && status == CGAM_OK; run++) status = round_of(&b, out);
    if (status == CGAM_OK) compare(&b, out);
    bench_free(&b);
    return status;
}
