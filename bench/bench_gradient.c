/* bench_gradient: what the gradient of a coupled recall costs beside the recall itself, as JSON.
 *
 *   bench_gradient [rows] [columns] [runs] [folder]     default 32000 2048 2; unit rows, f32, alpha 0.3, beta 8,
 *                                                       lambda 0.5, batches of 1 and 64
 *
 * `small` has dL/dq, c, P, alpha, beta and lambda, `bank` dL/dZ row by row as well; each includes its recall. ratios:
 * what the gradient adds to the recall, over the recall; readings: what dL/dZ adds to `small`, in readings of the bank
 * (the time of one mode first recall of the same batch). _cpu: in seconds of all threads. The best of the runs counts. With a folder, Z.npy, Q.npy,
 * C.npy, P.npy and y.npy of the batch of 64 are written there, for peer_gradient.py. */
#include <cgam/cgam.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64 };

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the clock, and of all threads: on a machine that does other things the second is the better measure. */
typedef struct moment {
    double wall, cpu;
} moment;

static moment now(void)
{
    return (moment){clock_of(CLOCK_MONOTONIC), clock_of(CLOCK_PROCESS_CPUTIME_ID)};
}

/* About normal: a sum of twelve uniform numbers. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (double)(*state >> 11) * 0x1p-53;
    }
    return sum;
}

static void fail(cgam_env *env)
{
    fprintf(stderr, "bench_gradient: %s\n", cgam_env_message(env));
    exit(1);
}

#define NEED(call)                                                                                 \
    do {                                                                                           \
        if ((call) != CGAM_OK) fail(env);                                                          \
    } while (0)

static cgam_status drop(void *user, int64_t from, int64_t count, const double *dZ)
{
    *(double *)user += dZ[0] + (double)(from + count); /* all of it is made */
    return CGAM_OK;
}

typedef struct timing {
    moment recall, first, small, bank;
    int64_t iterations;
    double loss, dbeta, dlambda, dq;
} timing;

static moment better(moment best, moment start)
{
    moment end = now();
    return (moment){fmin(best.wall, end.wall - start.wall), fmin(best.cpu, end.cpu - start.cpu)};
}

typedef struct inputs {
    cgam_env *env;
    cgam_recall *plan, *first;
    int64_t n, d;
    double *q, *c;
    int64_t *y;
    double *p, *s, *r, *dq, *dc, *dP;
} inputs;

static timing measure(inputs *x, int64_t batch, int runs)
{
    cgam_env *env = x->env;
    const moment ever = {INFINITY, INFINITY};
    timing best = {.recall = ever, .first = ever, .small = ever, .bank = ever};
    cgam_result results[BATCH];
    double loss[BATCH] = {0}, alpha, beta = 0, lambda = 0, sink = 0;
    cgam_gradient_in in = {
        .recall = {.queries = batch, .q = x->q, .c = x->c, .c_per_query = true, .target = x->y}};
    cgam_gradient out = {.loss = loss,
                         .results = results,
                         .q = x->dq,
                         .c = x->dc,
                         .P = x->dP,
                         .alpha = &alpha,
                         .beta = &beta,
                         .lambda = &lambda};
    cgam_recall_out same = {.results = results, .p = x->p, .s = x->s, .r = x->r};
    cgam_recall_out plain = {.results = results};
    cgam_gradient_opts rows = cgam_gradient_opts_default();
    rows.rows = drop;
    rows.user = &sink;
    for (int k = 0; k < runs; k++) {
        moment start = now();
        NEED(cgam_recall_run(x->plan, &in.recall, &same));
        best.recall = better(best.recall, start);
        start = now();
        NEED(cgam_recall_run(x->first, &in.recall, &plain));
        best.first = better(best.first, start);
        start = now();
        NEED(cgam_recall_gradient(x->plan, &in, NULL, &out));
        best.small = better(best.small, start);
        start = now();
        NEED(cgam_recall_gradient(x->plan, &in, &rows, &out));
        best.bank = better(best.bank, start);
    }
    for (int64_t k = 0; k < batch; k++) {
        best.loss += loss[k] / (double)batch;
        if (results[k].iterations > best.iterations) best.iterations = results[k].iterations;
    }
    for (int64_t j = 0; j < batch * x->d; j++) best.dq += x->dq[j] * x->dq[j] / (double)batch;
    best.dq = sqrt(best.dq);
    best.dbeta = beta / (double)batch;
    best.dlambda = lambda / (double)batch;
    return best;
}

static void print(const char *name, timing t, const char *end)
{
    printf("\"%s\": {\"recall\": %.4f, \"small\": %.4f, \"bank\": %.4f, \"small_cpu\": %.4f, "
           "\"ratio\": %.2f, \"ratio_cpu\": %.2f, \"readings_cpu\": %.2f, ",
           name, t.recall.wall, t.small.wall, t.bank.wall, t.small.cpu,
           (t.small.wall - t.recall.wall) / t.recall.wall,
           (t.small.cpu - t.recall.cpu) / t.recall.cpu, (t.bank.cpu - t.small.cpu) / t.first.cpu);
    printf(
        "\"iterations\": %lld, \"loss\": %.9g, \"dbeta\": %.9g, \"dlambda\": %.9g, \"dq\": %.9g}%s",
        (long long)t.iterations, t.loss, t.dbeta, t.dlambda, t.dq, end);
}

static void write_inputs(const inputs *x, const float *Z, const char *folder)
{
    cgam_env *env = x->env;
    char path[4096];
    const int64_t shape[] = {x->n, x->d}, batch[] = {BATCH, x->d};
    snprintf(path, sizeof path, "%s/Z.npy", folder);
    NEED(cgam_npy_write(env, path, CGAM_F32, 2, shape, Z));
    snprintf(path, sizeof path, "%s/Q.npy", folder);
    NEED(cgam_npy_write(env, path, CGAM_F64, 2, batch, x->q));
    snprintf(path, sizeof path, "%s/C.npy", folder);
    NEED(cgam_npy_write(env, path, CGAM_F64, 2, batch, x->c));
    snprintf(path, sizeof path, "%s/y.npy", folder);
    NEED(cgam_npy_write(env, path, CGAM_I64, 1, batch, x->y));
}

static void *room(size_t count, size_t size)
{
    void *block = calloc(count, size);
    if (!block) {
        fprintf(stderr, "bench_gradient: out of memory\n");
        exit(1);
    }
    return block;
}

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? strtoll(argv[1], NULL, 10) : 32000,
            d = argc > 2 ? strtoll(argv[2], NULL, 10) : 2048;
    int runs = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 2;
    cgam_env *env = NULL;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 1;
    size_t rows = (size_t)n, width = (size_t)d;
    float *Z = room(rows * width, sizeof *Z);
    inputs x = {.env = env,
                .n = n,
                .d = d,
                .q = room(BATCH * width, sizeof(double)),
                .c = room(BATCH * width, sizeof(double)),
                .y = room(BATCH, sizeof(int64_t)),
                .p = room(BATCH * rows, sizeof(double)),
                .s = room(BATCH * rows, sizeof(double)),
                .r = room(BATCH * rows, sizeof(double)),
                .dq = room(BATCH * width, sizeof(double)),
                .dc = room(BATCH * width, sizeof(double)),
                .dP = room(width * width, sizeof(double))};
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) { /* around 64 centres, so that memories compete */
        double square = 0;
        for (int64_t j = 0; j < d; j++) {
            double centre = sin((double)((i % 64) * d + j + 1) * 0.7071);
            double value = 0.7 * centre + normal(&state);
            Z[i * d + j] = (float)value;
            square += value * value;
        }
        for (int64_t j = 0; j < d; j++) Z[i * d + j] = (float)(Z[i * d + j] / sqrt(square));
    }
    for (int64_t k = 0; k < BATCH; k++) {
        x.y[k] = k * 37 % n;
        for (int64_t j = 0; j < d; j++) {
            x.q[k * d + j] = 0.6 * (double)Z[x.y[k] * d + j] + normal(&state) / sqrt((double)d);
            x.c[k * d + j] = (double)Z[x.y[k] * d + j];
        }
    }
    cgam_bank *bank;
    cgam_recall_opts o = cgam_recall_opts_default();
    o.alpha = 0.3, o.beta = 8, o.lambda = 0.5;
    NEED(cgam_bank_new(env, Z, CGAM_F32, n, d, NULL, &bank));
    NEED(cgam_recall_new(bank, &o, &x.first));
    o.mode = CGAM_COUPLED;
    NEED(cgam_recall_new(bank, &o, &x.plan));
    if (argc > 4) write_inputs(&x, Z, argv[4]);
    printf("{\"rows\": %lld, \"columns\": %lld, ", (long long)n, (long long)d);
    print("one", measure(&x, 1, runs), ", ");
    print("batch", measure(&x, BATCH, runs), "}\n");
    return 0;
}
