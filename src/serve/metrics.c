/* metrics.c: counters of requests for Prometheus, and a log line per request. */
#include "serve/server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Requests of a verb ("": not a verb) that ended with a code. */
typedef struct cgam_count {
    struct cgam_count *next;
    const char *label; /* of the table, or "" */
    int code;
    int64_t requests;
    double seconds;
} cgam_count;

static void log_exchange(const cgam_exchange *exchange, double seconds)
{
    char when[40];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(when + used, sizeof when - used, ".%03ldZ", now.tv_nsec / 1000000);
    json_t *doc = cgam_json_object(
        "time=%s client=%s method=%s path=%s verb=%s code=%d bytes_in=%jd bytes_out=%jd", when,
        exchange->client ? exchange->client->remote : "", exchange->method, exchange->path,
        exchange->label, exchange->code, (intmax_t)exchange->size, (intmax_t)exchange->sent);
    cgam_json_put_real(doc, "seconds", seconds);
    char *text = cgam_json_line(doc);
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(doc);
}

void cgam_count_request(cgam_server *server, const cgam_exchange *exchange)
{
    double seconds = cgam_clock() - exchange->begun;
    if (server->log) log_exchange(exchange, seconds);
    pthread_mutex_lock(&server->counts_lock);
    cgam_count *c = server->counts;
    while (c && (c->label != exchange->label || c->code != exchange->code)) c = c->next;
    if (!c && (c = calloc(1, sizeof *c))) {
        *c = (cgam_count){.next = server->counts, .label = exchange->label, .code = exchange->code};
        server->counts = c;
    }
    if (c) {
        c->requests++;
        c->seconds += seconds;
    }
    server->requests++;
    pthread_mutex_unlock(&server->counts_lock);
}

static double resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void print_metric(FILE *to, const char *name, const char *help, const char *type,
                         double value)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

char *cgam_metrics_text(cgam_server *server)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    pthread_mutex_lock(&server->counts_lock);
    fprintf(to, "# HELP cgam_requests_total Requests answered, by verb and code.\n"
                "# TYPE cgam_requests_total counter\n");
    for (const cgam_count *c = server->counts; c; c = c->next)
        fprintf(to, "cgam_requests_total{verb=\"%s\",code=\"%d\"} %lld\n", c->label, c->code,
                (long long)c->requests);
    fprintf(to, "# HELP cgam_request_seconds_total Seconds from head to end of these requests.\n"
                "# TYPE cgam_request_seconds_total counter\n");
    for (const cgam_count *c = server->counts; c; c = c->next)
        fprintf(to, "cgam_request_seconds_total{verb=\"%s\",code=\"%d\"} %.9g\n", c->label, c->code,
                c->seconds);
    pthread_mutex_unlock(&server->counts_lock);
    pthread_mutex_lock(&server->work_lock);
    int running = server->running, waiting = server->waiting;
    pthread_mutex_unlock(&server->work_lock);
    cgam_shelf_info shelf = cgam_shelf_describe(server->catalog.shelf);
    cgam_model_pool_info pool = cgam_model_pool_describe(server);
    print_metric(to, "cgam_running", "Running verbs.", "gauge", running);
    print_metric(to, "cgam_waiting", "Verbs waiting for a worker.", "gauge", waiting);
    print_metric(to, "cgam_connections", "Open connections.", "gauge",
                 atomic_load(&server->clients_count));
    print_metric(to, "cgam_body_bytes", "Memory of request bodies.", "gauge",
                 (double)atomic_load(&server->body_bytes));
    print_metric(to, "cgam_gates", "Factored gate operators kept.", "gauge", (double)shelf.gates);
    print_metric(to, "cgam_models", "Models kept open, each in a process of its own.", "gauge",
                 (double)pool.count);
    print_metric(to, "cgam_kept_bytes", "Memory of both.", "gauge",
                 (double)(shelf.bytes + pool.bytes));
    print_metric(to, "cgam_models_opened_total", "Models opened.", "counter", (double)pool.started);
    print_metric(to, "cgam_gate_hits_total", "Requests that found their gate.", "counter",
                 (double)shelf.hits);
    print_metric(to, "cgam_gate_misses_total", "Requests that did not.", "counter",
                 (double)shelf.misses);
    print_metric(to, "process_resident_memory_bytes", "Resident memory.", "gauge",
                 resident_bytes());
    print_metric(to, "cgam_uptime_seconds", "Since the server listens.", "gauge",
                 cgam_clock() - server->started);
    if (fclose(to) == 0) return text;
    free(text);
    return NULL;
}

void cgam_counts_free(cgam_server *server)
{
    for (cgam_count *c = server->counts, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    server->counts = NULL;
}
