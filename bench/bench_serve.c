/* bench_serve.c: what the server adds to the library.
 *
 *   slider   a recall, mode first, on a bank of 32,000 x 2,048 f32 that the server holds, with the query's
 *            numbers in the request, against cgam_recall_run on the same bank, by turns: at most 1.3 times
 *            that and 5 ms
 *   demo     recalls on the bank demo from 16 clients that keep their connections: at least 10,000 a second
 *            over 2 cores, clients included. Processor time is told too: it does not depend on who else is
 *            at work on the machine
 *   memory   what the server holds after 100,000 of these, against what it held after the first 20,000
 *
 *   bench_serve [ROWS [REQUESTS]]
 *
 * Exit status 1: a claim failed. */
#include "base/env.h"
#include "tests/support/http_client.h"

#include <cgam/recall.h>
#include <cgam/rng.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cgam/io.h>

enum { COLUMNS = 2048, TURNS = 15, CLIENTS = 16 };

typedef struct served {
    pid_t pid;
    int port;
} served;

static bool start(const char *program, const char *bank, served *out)
{
    int ends[2];
    char line[256] = "";
    if (pipe(ends) != 0) return false;
    out->pid = fork();
    if (out->pid == 0) {
        dup2(ends[1], 1);
        execl(program, program, "serve", "--token", "bench", "--bank", bank, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    bool fine = from && fgets(line, sizeof line, from) &&
                sscanf(line, "http://127.0.0.1:%d/", &out->port) == 1;
    if (from) fclose(from);
    return fine;
}

/* Processor seconds and resident bytes of a process. */
static void look(pid_t pid, double *cpu, double *bytes)
{
    char path[64];
    long user = 0, system = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(
                f,
                "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %*d %*d %*d %*d "
                "%*d %*d %*u %*u %ld",
                &user, &system, &pages) != 3)
            user = 0;
        fclose(f);
    }
    *cpu = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    *bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Library and server by turns on the same query; false: the claim failed. */
static bool slider(const served *s, const cgam_bank *bank)
{
    static double times[2][TURNS], q[COLUMNS];
    enum { ROOM = COLUMNS * 32 + 256 };
    char *body = malloc(ROOM);
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_recall *plan = NULL;
    http_client client;
    cgam_rng rng = cgam_rng_stream(2, 0);
    bool fine =
        body && http_open(&client, s->port) && cgam_recall_new(bank, &opts, &plan) == CGAM_OK;
    for (int t = 0; t < TURNS && fine; t++) {
        for (int j = 0; j < COLUMNS; j++) q[j] = cgam_rng_normal(&rng);
        size_t size = 0, used = (size_t)snprintf(
                             body, ROOM, "{\"bank\":\"Z\",\"lambda\":%g,\"query\":[", t * 0.1);
        for (int j = 0; j < COLUMNS; j++)
            used += (size_t)snprintf(body + used, ROOM - used, "%s%.9g", j ? "," : "", q[j]);
        used += (size_t)snprintf(body + used, ROOM - used, "]}");
        char *request = http_request("/api/recall", s->port, "bench", body, used, &size);
        cgam_result result;
        int64_t top[5];
        double p[5], logs[5];
        cgam_recall_in in = {.queries = 1, .q = q};
        cgam_recall_out out = {
            .results = &result, .top = 5, .top_index = top, .top_p = p, .top_log_p = logs};
        double a = cgam_clock();
        fine = cgam_recall_run(plan, &in, &out) == CGAM_OK;
        double b = cgam_clock();
        fine = fine && request && http_ask(&client, request, size) && client.code == 200;
        times[0][t] = b - a;
        times[1][t] = cgam_clock() - b;
        free(request);
    }
    http_close(&client);
    cgam_recall_free(plan);
    free(body);
    if (!fine) return false;
    for (int k = 0; k < 2; k++) qsort(times[k], TURNS, sizeof(double), by_size);
    double library = times[0][TURNS / 2], server = times[1][TURNS / 2];
    bool holds = server <= 1.3 * library + 5e-3;
    printf("slider: library %.2f ms, server %.2f ms (least %.2f and %.2f); at most %.2f  %s\n",
           1e3 * library, 1e3 * server, 1e3 * times[0][0], 1e3 * times[1][0],
           1e3 * (1.3 * library + 5e-3), holds ? "ok" : "FAILED");
    return holds;
}

static struct {
    const served *s;
    char *request;
    size_t size;
    long count;
    atomic_long next, wrong;
} crowd;

static void *client_main(void *unused)
{
    (void)unused;
    http_client c;
    if (!http_open(&c, crowd.s->port)) atomic_fetch_add(&crowd.wrong, 1);
    while (atomic_fetch_add(&crowd.next, 1) < crowd.count)
        if (!http_ask(&c, crowd.request, crowd.size) || c.code != 200) {
            atomic_fetch_add(&crowd.wrong, 1);
            break;
        }
    http_close(&c);
    return NULL;
}

/* Seconds that so many requests take; negative: one went wrong. */
static double ask_many(long count)
{
    pthread_t threads[CLIENTS];
    crowd.count = count;
    atomic_store(&crowd.next, 0);
    atomic_store(&crowd.wrong, 0);
    double begun = cgam_clock();
    for (int i = 0; i < CLIENTS; i++) pthread_create(&threads[i], NULL, client_main, NULL);
    for (int i = 0; i < CLIENTS; i++) pthread_join(threads[i], NULL);
    return atomic_load(&crowd.wrong) ? -1 : cgam_clock() - begun;
}

static double own_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static bool demo(const served *s, long requests)
{
    static const char body[] = "{\"bank\":\"demo\",\"query\":[0.1,0.2,-0.3,0.4,0.5,0.6,0,0,0,0.1,0,"
                               "0,0.3,0,0,-0.2],\"context\":\"rows:7\",\"beta\":4}";
    crowd.s = s;
    crowd.request =
        http_request("/api/recall", s->port, "bench", body, sizeof body - 1, &crowd.size);
    double cpu[3], bytes[3], own = 0;
    bool fine = ask_many(requests / 5) > 0;
    look(s->pid, &cpu[0], &bytes[0]);
    own = own_cpu();
    double seconds = ask_many(requests);
    look(s->pid, &cpu[1], &bytes[1]);
    own = own_cpu() - own;
    fine &= seconds > 0;
    double rate = (double)requests / seconds, each = (cpu[1] - cpu[0] + own) / (double)requests;
    bool fast = rate >= 1e4, flat = bytes[1] - bytes[0] < 8e6;
    printf(
        "demo: %.0f requests/s; %.0f us of processor time each, clients' included, so %.0f/s on two cores; at least 10000  %s\n",
        rate, 1e6 * each, 2 / each, fast ? "ok" : "FAILED");
    printf("memory: %.1f MB, %+.2f MB over %ld requests; at most 8 more  %s\n", bytes[1] / 1e6,
           (bytes[1] - bytes[0]) / 1e6, requests, flat ? "ok" : "FAILED");
    free(crowd.request);
    return fine && fast && flat;
}

int main(int argc, char **argv)
{
    long rows = argc > 1 ? atol(argv[1]) : 32000, requests = argc > 2 ? atol(argv[2]) : 100000;
    char folder[] = "/tmp/cgam-bench-XXXXXX", path[64], program[4096];
    cgam_env *env;
    cgam_bank *bank = NULL;
    served s = {0};
    if (!mkdtemp(folder) || cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    snprintf(path, sizeof path, "%s/Z.npy", folder);
    snprintf(program, sizeof program, "%s", argv[0]);
    char *slash = strrchr(program, '/');
    snprintf(slash ? slash : program, 16, "/../cgam");
    float *Z = malloc((size_t)rows * COLUMNS * sizeof *Z);
    cgam_rng rng = cgam_rng_stream(1, 0);
    for (int64_t i = 0; Z && i < rows * COLUMNS; i++)
        Z[i] = (float)(cgam_rng_uniform(&rng) - 0.5) * 0.05f;
    bool fine =
        Z && cgam_npy_write(env, path, CGAM_F32, 2, (int64_t[]){rows, COLUMNS}, Z) == CGAM_OK;
    free(Z);
    fine = fine && cgam_bank_load(env, path, NULL, &bank) == CGAM_OK && start(program, path, &s);
    if (!fine) fprintf(stderr, "bench_serve: %s\n", cgam_env_message(env));
    bool held = fine && slider(&s, bank);
    held = fine && demo(&s, requests) && held;
    if (s.pid > 0) {
        kill(s.pid, SIGTERM);
        waitpid(s.pid, NULL, 0);
    }
    cgam_bank_free(bank);
    cgam_env_free(env);
    unlink(path);
    rmdir(folder);
    return !held;
}
