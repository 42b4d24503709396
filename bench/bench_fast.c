/* bench_fast.c: recall by a sketch against reading the bank, against the plain pass, and against faiss.
 *
 *   bench_fast [-t THREADS] [ROWSxCOLUMNS | glove | FILE.npy] ..
 *
 * Without shapes: 32000x2048, 128256x4096 and glove (word vectors, fetched once; without them 341479x100
 * of random numbers). Queries are rows plus noise of their norm; top 10; beta so that the winner has most of the
 * weight. Pieces are run by turns; a figure is the ratio of medians, of wall time and, in brackets, of
 * processor time. faiss (its flat index, by python3-faiss where it is installed) is run between two rounds.
 * The first bank, larger than the last-level cache, is the one that goals refer to. */
#include "base/env.h"
#include "bench/limits.h"
#include "memory/bank.h"
#include "num/sketch.h"

#include "fetch/data.h"
#include <cgam/base.h>
#include <cgam/io.h>
#include <cgam/recall.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, TOP = 10, ROUNDS = 9, SLICES = 16 };

typedef enum piece_id {
    READ,
    ONE,
    FAST,
    TOL,
    MANY,
    MANY_FMA, /* with nothing but multiply-adds, whatever unit the CPU has */
    MANY_FAST,
    MANY_VNNI,
    SKETCH,
    PIECES
} piece_id;

typedef struct bench {
    cgam_env *env;
    const char *name;
    int64_t n, d;
    float *Z;                /* [n, d] */
    double *q;               /* [BATCH, d] */
    cgam_bank *bank[2];      /* for the best CPU here, and for one without a unit for tiles */
    cgam_recall *plan[3];    /* plain, fast, fast within tol */
    cgam_recall *fma, *vnni; /* plain and fast, without that unit; NULL where the best has none */
    int64_t rescored[PIECES], fallen[PIECES];
    double wall[PIECES][ROUNDS], cpu[PIECES][ROUNDS];
} bench;

static cgam_status read_slice(void *arg, int64_t k)
{
    const bench *b = arg;
    int64_t words = b->n * b->d / 2, from = words * k / SLICES, end = words * (k + 1) / SLICES;
    const uint64_t *data = (const uint64_t *)(const void *)b->Z;
    volatile uint64_t all = cgam_limits_of(cgam_cpu_best())->read(data + from, end - from);
    (void)all;
    return CGAM_OK;
}

static cgam_status recall(bench *b, piece_id piece, const cgam_recall *plan, int64_t queries)
{
    cgam_result results[BATCH];
    int64_t top[BATCH * TOP];
    cgam_recall_in in = {.queries = queries, .q = b->q};
    cgam_recall_out out = {.results = results, .top = TOP, .top_index = top};
    cgam_status status = cgam_recall_run(plan, &in, &out);
    b->rescored[piece] = b->fallen[piece] = 0;
    for (int64_t v = 0; v < queries && status == CGAM_OK; v++) {
        b->rescored[piece] += results[v].rescored;
        b->fallen[piece] += results[v].fallback;
    }
    return status;
}

static cgam_status sketch(bench *b)
{
    cgam_sketch *made = NULL;
    cgam_status status = cgam_sketch_new(b->env, &b->bank[0]->Z, b->bank[0]->info.norm_max, &made);
    cgam_sketch_free(b->env, made);
    return status;
}

static cgam_status run(bench *b, piece_id piece)
{
    switch (piece) {
    case READ: return cgam_parallel(b->env, SLICES, read_slice, b);
    case ONE: return recall(b, piece, b->plan[0], 1);
    case FAST: return recall(b, piece, b->plan[1], 1);
    case TOL: return recall(b, piece, b->plan[2], 1);
    case MANY: return recall(b, piece, b->plan[0], BATCH);
    case MANY_FMA: return recall(b, piece, b->fma ? b->fma : b->plan[0], BATCH);
    case MANY_FAST: return recall(b, piece, b->plan[1], BATCH);
    case MANY_VNNI: return b->vnni ? recall(b, piece, b->vnni, BATCH) : CGAM_OK;
    default: return sketch(b);
    }
}

static double used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- Set-up -------------------------------------------------------------------------------- */
static cgam_status make_rows(void *arg, int64_t slice)
{
    const bench *b = arg;
    cgam_rng rng = cgam_rng_stream(1, (uint64_t)slice);
    int64_t count = b->n * b->d, end = count * (slice + 1) / SLICES;
    double size = sqrt(3.0 / (double)b->d); /* uniform entries of variance 1/d */
    for (int64_t i = count * slice / SLICES; i < end; i++)
        b->Z[i] = (float)(size * (2 * cgam_rng_uniform(&rng) - 1));
    return CGAM_OK;
}

/* Rows of a file of f32, of which all is copied, so that it lies as the others do. */
static cgam_status load_rows(bench *b, const char *path)
{
    cgam_array file = {0};
    cgam_status status = cgam_array_open(b->env, path, &file);
    if (status == CGAM_OK && (file.ndim != 2 || file.dtype != CGAM_F32))
        status = cgam_fail(b->env, CGAM_E_ARG, "%s is not a matrix of f32", path);
    if (status == CGAM_OK) {
        b->n = file.shape[0];
        b->d = file.shape[1];
        b->Z = cgam_alloc(b->env, (size_t)(b->n * b->d), sizeof *b->Z);
        if (!b->Z) status = cgam_fail_nomem(b->env, "a bank to measure with");
    }
    if (status == CGAM_OK) memcpy(b->Z, file.data, (size_t)(b->n * b->d) * sizeof *b->Z);
    cgam_array_close(b->env, &file);
    return status;
}

static cgam_status get_rows(bench *b, const char *shape)
{
    cgam_data glove;
    if (strstr(shape, ".npy")) return load_rows(b, shape);
    if (strcmp(shape, "glove") == 0) {
        if (cgam_data_fetch(b->env, CGAM_DATA_GLOVE, NULL, &glove) == CGAM_OK)
            return load_rows(b, glove.bank[0].rows);
        b->name = shape = "341479x100";
    }
    char *end;
    b->n = strtoll(shape, &end, 10);
    b->d = *end == 'x' ? strtoll(end + 1, &end, 10) : 0;
    if (b->n < BATCH || b->d < 1 || *end)
        return cgam_fail(b->env, CGAM_E_ARG, "%s is not ROWSxCOLUMNS", shape);
    b->Z = cgam_alloc(b->env, (size_t)(b->n * b->d), sizeof *b->Z);
    if (!b->Z) return cgam_fail_nomem(b->env, "a bank to measure with");
    return cgam_parallel(b->env, SLICES, make_rows, b);
}

static cgam_status make_queries(bench *b)
{
    cgam_rng rng = cgam_rng_stream(2, 0);
    b->q = cgam_alloc(b->env, (size_t)(BATCH * b->d), sizeof *b->q);
    if (!b->q) return cgam_fail_nomem(b->env, "queries");
    for (int64_t v = 0; v < BATCH; v++) {
        const float *row = b->Z + (2 * v + 1) * b->n / (2 * BATCH) * b->d;
        double norm = 0;
        for (int64_t j = 0; j < b->d; j++) norm += (double)row[j] * (double)row[j];
        for (int64_t j = 0; j < b->d; j++)
            b->q[v * b->d + j] = (double)row[j] + sqrt(norm / (double)b->d) * cgam_rng_normal(&rng);
    }
    return CGAM_OK;
}

static const cgam_cpu *cpu_named(const char *name)
{
    const cgam_cpu *cpu = cgam_cpu_all;
    while (cpu->name && strcmp(cpu->name, name) != 0) cpu++;
    return cpu->name && cpu->usable() ? cpu : NULL;
}

static cgam_status make_plans(bench *b)
{
    const cgam_cpu *vnni = cpu_named("vnni");
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_status status = cgam_bank_new(b->env, b->Z, CGAM_F32, b->n, b->d, NULL, &b->bank[0]);
    for (int k = 0; k < 3 && status == CGAM_OK; k++) {
        double size = 0;
        for (int64_t v = 0; v < BATCH; v++)
            size += b->bank[0]->norm2[(2 * v + 1) * b->n / (2 * BATCH)] / BATCH;
        o.beta = 20 / size;
        o.fast = k > 0;
        o.tol_p = k == 2 ? 1e-3 : 0;
        if (k == 1) status = cgam_bank_sketch(b->bank[0]);
        if (status == CGAM_OK) status = cgam_recall_new(b->bank[0], &o, &b->plan[k]);
    }
    if (status != CGAM_OK || !vnni || vnni == cgam_cpu_best()) return status;
    o.tol_p = 0;
    cgam_cpu_pretend(vnni);
    status = cgam_bank_new(b->env, b->Z, CGAM_F32, b->n, b->d, NULL, &b->bank[1]);
    if (status == CGAM_OK) status = cgam_bank_sketch(b->bank[1]);
    if (status == CGAM_OK) status = cgam_recall_new(b->bank[1], &o, &b->vnni);
    o.fast = false;
    if (status == CGAM_OK) status = cgam_recall_new(b->bank[1], &o, &b->fma);
    cgam_cpu_pretend(NULL);
    return status;
}

static void bench_free(bench *b)
{
    for (int k = 0; k < 3; k++) cgam_recall_free(b->plan[k]);
    cgam_recall_free(b->vnni);
    cgam_recall_free(b->fma);
    for (int k = 0; k < 2; k++) cgam_bank_free(b->bank[k]);
    cgam_free(b->env, b->q);
    cgam_free(b->env, b->Z);
}

/* ---- Figures ------------------------------------------------------------------------------- */
static double median(const double *x)
{
    double sorted[ROUNDS];
    memcpy(sorted, x, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, rising);
    return sorted[ROUNDS / 2];
}

/* A ratio of two pieces, or of a time to one. goal 0: none; negative: at most its size. */
static void show(const bench *b, const char *what, piece_id over, piece_id under, double goal)
{
    double wall = median(b->wall[over]) / median(b->wall[under]);
    double cpu = median(b->cpu[over]) / median(b->cpu[under]);
    printf("  %-58s %7.3f (%6.3f)", what, wall, cpu);
    if (goal != 0)
        printf("   goal %s %.3g: %s", goal < 0 ? "<=" : ">=", fabs(goal),
               (goal < 0 ? wall <= -goal : wall >= goal) ? "met" : "not met");
    printf("\n");
}

/* faiss' best times, from its script; false where it is not installed. */
static bool faiss(const bench *b, double *one, double *many)
{
    char words[512], text[512] = "";
    snprintf(words, sizeof words, "/usr/bin/python3 bench/peer_faiss.py %lld %lld 5 %d 2>/dev/null",
             (long long)b->n, (long long)b->d, cgam_env_threads(b->env));
    /* the OpenBLAS that faiss brings does not know every CPU and would take its slowest loops */
    if (strcmp(cgam_cpu_best()->name, "avx512") >= 0 || cgam_cpu_best()->split)
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    FILE *from = popen(words, "r");
    if (!from) return false;
    size_t got = fread(text, 1, sizeof text - 1, from);
    text[got] = 0;
    const char *first = strstr(text, "\"top10_1\": {\"wall\": ");
    const char *second = strstr(text, "\"top10_64\": {\"wall\": ");
    bool fine = pclose(from) == 0 && first && second &&
                sscanf(strchr(first, '{'), "{\"wall\": %lf", one) == 1 &&
                sscanf(strchr(second, '{'), "{\"wall\": %lf", many) == 1;
    return fine;
}

/* With AMX, with VNNI, and with neither. */
static double batch_goal(void)
{
    const cgam_cpu *cpu = cgam_cpu_best();
    return cpu->split ? 5 : strstr(cpu->name, "vnni") ? 2.5 : 1;
}

static void report(const bench *b)
{
    double one, many;
    printf("\n%s: %lld x %lld f32, %.0f MB, %d threads; reading %.1f GB/s\n", b->name,
           (long long)b->n, (long long)b->d, 4e-6 * (double)b->n * (double)b->d,
           cgam_env_threads(b->env), 4e-9 * (double)b->n * (double)b->d / median(b->wall[READ]));
    show(b, "fast, one query / one reading", FAST, READ, b->d < 1024 ? -0.45 : -0.35);
    show(b, "fast, one query / plain", FAST, ONE, 0);
    show(b, "fast within 1e-3 of p / one reading", TOL, READ, -0.45);
    show(b, "64 queries, times the plain batch by multiply-adds", MANY_FMA, MANY_FAST,
         batch_goal());
    if (b->vnni) show(b, "the same by VNNI", MANY_FMA, MANY_VNNI, 2.5);
    show(b, "64 queries, times the plain batch", MANY, MANY_FAST, 0);
    show(b, "making the sketch / one reading", SKETCH, READ, -4);
    bool alone = cgam_env_threads(b->env) == 1;
    if (faiss(b, &one, &many)) {
        printf("  %-58s %7.1f            goal >= %d\n", "faiss, one query / fast",
               one / median(b->wall[FAST]), alone ? 8 : 15);
        printf("  %-58s %7.1f            goal >= %d\n", "faiss, 64 queries / fast",
               many / median(b->wall[MANY_FAST]), alone ? 4 : 10);
    } else {
        printf("  faiss is not installed\n");
    }
    printf(
        "  rows scored a query: %lld, within 1e-3 %lld, of 64 %.1f; fallen back: %lld, %lld, %lld\n",
        (long long)b->rescored[FAST], (long long)b->rescored[TOL],
        (double)b->rescored[MANY_FAST] / BATCH, (long long)b->fallen[FAST],
        (long long)b->fallen[TOL], (long long)b->fallen[MANY_FAST]);
    printf(
        "  ms: read %.2f, one %.2f, fast %.2f, 64 %.2f, by multiply-adds %.2f, 64 fast %.2f, vnni "
        "%.2f\n",
        1e3 * median(b->wall[READ]), 1e3 * median(b->wall[ONE]), 1e3 * median(b->wall[FAST]),
        1e3 * median(b->wall[MANY]), 1e3 * median(b->wall[MANY_FMA]),
        1e3 * median(b->wall[MANY_FAST]), 1e3 * median(b->wall[MANY_VNNI]));
}

/* Of the last-level cache that a core sees. The C library's answer is what all of a package's add up to, on some CPUs. */
static double cache_bytes(void)
{
    long kilobytes = 0;
    FILE *from = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (from && fscanf(from, "%ldK", &kilobytes) != 1) kilobytes = 0;
    if (from) fclose(from);
    return kilobytes > 0 ? 1024.0 * (double)kilobytes : (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
}

static cgam_status measure(cgam_env *env, const char *shape)
{
    bench b = {.env = env, .name = shape};
    cgam_status status = get_rows(&b, shape);
    if (status == CGAM_OK) status = make_queries(&b);
    if (status == CGAM_OK) status = make_plans(&b);
    for (int r = -1; r < ROUNDS && status == CGAM_OK; r++) /* the first is not counted */
        for (int k = 0; k < PIECES && status == CGAM_OK; k++) {
            double wall = cgam_clock(), cpu = used();
            status = run(&b, (piece_id)k);
            if (r < 0) continue;
            b.wall[k][r] = cgam_clock() - wall;
            b.cpu[k][r] = used() - cpu;
        }
    if (status == CGAM_OK) report(&b);
    bench_free(&b);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"32000x2048", "128256x4096", "glove"};
    cgam_env_opts o = cgam_env_opts_default();
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-t") == 0) {
        o.threads = (int)strtol(argv[2], NULL, 10);
        first = 3;
    }
    cgam_env *env;
    if (cgam_env_new(&o, &env) != CGAM_OK) return 3;
    printf("recall by a sketch: CPU %s, last-level cache %.0f MB; wall time, (CPU time)\n",
           cgam_cpu_best()->name, 1e-6 * cache_bytes());
    cgam_status status = CGAM_OK;
    int count = argc > first ? argc - first : (int)(sizeof usual / sizeof *usual);
    for (int k = 0; k < count && status == CGAM_OK; k++)
        status = measure(env, argc > first ? argv[first + k] : usual[k]);
    if (status != CGAM_OK) fprintf(stderr, "bench_fast: %s\n", cgam_env_message(env));
    cgam_env_free(env);
    return status == CGAM_OK ? 0 : 3;
}
