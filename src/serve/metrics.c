/* metrics.c: counters of requests for Prometheus, and a log line per request. */
#include "lab/fill.h"
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

static json_t *counts_json(cgam_server *server)
{
    json_t *list = json_array();
    pthread_mutex_lock(&server->counts_lock);
    for (const cgam_count *c = server->counts; c; c = c->next)
        json_array_append_new(list, cgam_json_object("verb=%s code=%d requests=%jd seconds=%g",
                                                     c->label, c->code, c->requests, c->seconds));
    pthread_mutex_unlock(&server->counts_lock);
    return list;
}

char *cgam_metrics_text(cgam_server *server)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    pthread_mutex_lock(&server->work_lock);
    int running = server->running, waiting = server->waiting;
    pthread_mutex_unlock(&server->work_lock);
    cgam_shelf_info shelf = cgam_shelf_describe(server->catalog.shelf);
    cgam_model_pool_info pool = cgam_model_pool_describe(server);
    json_t *doc = cgam_json_object(
        "running=%d waiting=%d connections=%jd body_bytes=%jd gates=%jd models=%jd kept_bytes=%jd",
        running, waiting, (intmax_t)atomic_load(&server->clients_count),
        (intmax_t)atomic_load(&server->body_bytes), (intmax_t)shelf.gates, (intmax_t)pool.count,
        (intmax_t)(shelf.bytes + pool.bytes));
    cgam_json_add(doc, "models_opened=%jd hits=%jd misses=%jd resident=%g uptime=%g counts=%p",
                  (intmax_t)pool.started, (intmax_t)shelf.hits, (intmax_t)shelf.misses,
                  resident_bytes(), cgam_clock() - server->started, counts_json(server));
    cgam_fill(to, "{<serve/metrics.txt}", doc);
    json_decref(doc);
    if (fclose(to) == 0 && !cgam_json_ran_short()) return text;
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
