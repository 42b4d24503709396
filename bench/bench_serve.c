/* bench_serve.c: what the server adds to the library.
 *
 *   slider   a recall, mode first, on a bank of 32,000 x 2,048 f32 that the server holds, with the query's
 *            numbers in the request, against cgam_recall_run on the same bank, by turns: at most 1.3 times
 *            that and 5 ms
 *   demo     recalls on the bank demo from 16 clients that keep their connections: at least 10,000 a second
 *            over 2 cores, clients included. Processor time is reported too: it does not depend on what else is
 *            at work on the machine
 *   page     the page, every file that it names, and what it asks for to show its first view, one after the other
 *            over one connection: less than 300 kB and 100 ms. What a browser adds to that is measured by
 *            tests/system/explorer.sh first_load
 *   kept     a recall by sketch and, where the default model is at hand, a lens: the first, which makes the sketch or
 *            opens the model, against the median of the next ones, which find it. In processor time of the server
 *            and of its model processes
 *   memory   what the server holds after 100,000 of these, against what it held after the first 20,000
 *
 *   bench_serve [ROWS [REQUESTS]]
 *
 * Exit status 1: a claim failed. */
#include "base/env.h"
#include "lm/cache.h"
#include "tests/support/http_client.h"

#include <cgam/base.h>
#include <cgam/lm.h>
#include <cgam/recall.h>
#include <glob.h>
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

/* Processor seconds of a process and of those it has started (model processes); its own resident bytes. */
static void look(pid_t pid, double *cpu, double *bytes)
{
    glob_t all;
    long ticks = 0, pages = 0;
    if (glob("/proc/[0-9]*/stat", 0, NULL, &all) != 0) all.gl_pathc = 0;
    for (size_t i = 0; i < all.gl_pathc; i++) {
        int number, parent;
        long user, system, size;
        FILE *f = fopen(all.gl_pathv[i], "r");
        if (!f) continue;
        int got = fscanf(f,
                         "%d (%*[^)]) %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %*d %*d "
                         "%*d %*d %*d %*d %*u %*u %ld",
                         &number, &parent, &user, &system, &size);
        fclose(f);
        if (got != 5 || (number != pid && parent != pid)) continue;
        ticks += user + system;
        if (number == pid) pages = size;
    }
    if (all.gl_pathc) globfree(&all);
    *cpu = (double)ticks / (double)sysconf(_SC_CLK_TCK);
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

/* The next name in quotes after one of the words that name a file of the page, into name; NULL: no more. */
static const char *next_name(const char *text, char *name, size_t size)
{
    static const char *const words[] = {"src=\"", "href=\"", "from \"./", "import \"./"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(text, words[i]);
        if (at && (!first || at + strlen(words[i]) < first)) first = at + strlen(words[i]);
    }
    size_t length = first ? strcspn(first, "\"") : 0;
    if (!first || length >= size) return NULL;
    memcpy(name, first, length);
    name[length] = 0;
    return first + length;
}

static bool page(const served *s)
{
    enum { FILES = 64, NAME = 64 };
    static char names[FILES][NAME];
    char request[256];
    http_client client;
    size_t bytes = 0, files = 1; /* the first has no name */
    double begun = cgam_clock();
    bool fine = http_open(&client, s->port);
    for (size_t i = 0; i < files && fine; i++) {
        int size = snprintf(request, sizeof request,
                            "GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", names[i], s->port);
        fine = http_ask(&client, request, (size_t)size) && client.code == 200;
        bytes += client.size;
        const char *at = fine ? client.body : NULL;
        while (at && files < FILES && (at = next_name(at, names[files], NAME))) {
            size_t k = 1;
            while (strcmp(names[k], names[files]) != 0) k++;
            if (k == files && names[k][0] != '#') files++;
        }
    }
    double there = cgam_clock() - begun;
    static const char *const asks[][2] = {
        {"/api/recall",
         "{\"bank\":\"demo\",\"query\":\"rows:7*0.5+23*0.5\",\"context\":\"rows:7\",\"alpha\":0.2,"
         "\"beta\":4,\"lambda\":0.8,\"mode\":\"coupled\",\"top\":8,\"names\":true,\"explain\":true}"},
        {"/api/bank/names", "{\"bank\":\"demo\",\"rows\":[7,23],\"top\":2}"}};
    int size = snprintf(request, sizeof request,
                        "GET /api/here HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                        "Authorization: Bearer bench\r\n\r\n",
                        s->port);
    fine = fine && http_ask(&client, request, (size_t)size) && client.code == 200;
    bytes += fine ? client.size : 0;
    for (size_t i = 0; i < sizeof asks / sizeof *asks && fine; i++) {
        size_t length = 0;
        char *ask =
            http_request(asks[i][0], s->port, "bench", asks[i][1], strlen(asks[i][1]), &length);
        fine = ask && http_ask(&client, ask, length) && client.code == 200;
        bytes += fine ? client.size : 0;
        free(ask);
    }
    http_close(&client);
    double seconds = cgam_clock() - begun;
    bool holds = fine && bytes < 300000 && seconds < 0.1;
    printf(
        "first load: %zu files in %.2f ms, with three requests %.1f kB in %.2f ms; less than 300 kB "
        "and 100 ms  %s\n",
        files, 1e3 * there, (double)bytes / 1e3, 1e3 * seconds, holds ? "ok" : "FAILED");
    return holds;
}

/* What the first request pays for, and the next ones need not; false: they do. */
static bool kept(const served *s, const char *what, const char *address, const char *body,
                 double most)
{
    enum { NEXT = 3 };
    double cpu[2], bytes, times[NEXT + 1];
    size_t size = 0;
    http_client client;
    char *request = http_request(address, s->port, "bench", body, strlen(body), &size);
    bool fine = request && http_open(&client, s->port);
    for (int i = 0; i <= NEXT && fine; i++) {
        look(s->pid, &cpu[0], &bytes);
        fine = http_ask(&client, request, size) && client.code == 200;
        look(s->pid, &cpu[1], &bytes);
        times[i] = cpu[1] - cpu[0];
    }
    if (request) http_close(&client);
    free(request);
    if (!fine) return false;
    qsort(times + 1, NEXT, sizeof(double), by_size);
    double next = times[1 + NEXT / 2];
    bool holds = next <= most * times[0];
    printf("%s: the first %.2f s of processor time, the next %.2f s; at most %.2f of it  %s\n",
           what, times[0], next, most, holds ? "ok" : "FAILED");
    return holds;
}

static bool kept_all(const served *s, cgam_env *env)
{
    char model[4096];
    bool held = kept(s, "sketch", "/api/recall",
                     "{\"bank\":\"Z\",\"query\":\"rows:7\",\"fast\":true,\"top\":1}", 0.2);
    if (cgam_lm_model_path(env, model, sizeof model) == CGAM_OK && access(model, R_OK) == 0)
        held &= kept(s, "model", "/api/lm/lens", "{\"prompt\":\"The capital of\"}", 0.8);
    return held;
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
    held = fine && page(&s) && held;
    held = fine && kept_all(&s, env) && held;
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
