/* work.c: workers that run verbs. A request waits in a queue for one of a few workers, which reads its options,
 * runs the verb on the shared env and stores the answer; the connection is suspended meanwhile. Between pieces of work
 * the library checks whether to stop: after the timeout, if the client has gone, or if the server ends. */
#include "serve/model_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LOOK_EVERY = 0.02; /* seconds between checks of the client */
static const double STOP_AFTER = 0.4;  /* seconds in which a verb should notice that it must stop */
static const double STOP_SECONDS = 1.5; /* for verbs to end when the server does */
static const double SWEEP_EVERY = 0.1;
static const double QUIET =
    1.5;                   /* seconds without progress before an event shows that a verb runs */
enum { BEHIND = 1 << 16 }; /* unread bytes from which on progress events are dropped */

char *cgam_error_text(int code, const char *message)
{
    (void)cgam_json_ran_short(); /* clears the mark: the failed document may have run short */
    json_t *doc = cgam_json_object("error=%s status=%d", message, code >= 500 ? 3 : 2);
    char *text = cgam_json_line(doc);
    json_decref(doc);
    if (!cgam_json_ran_short()) return text;
    free(text); /* it is incomplete */
    return NULL;
}

void cgam_exchange_release(cgam_exchange *exchange)
{
    if (atomic_fetch_sub(&exchange->holders, 1) > 1) return;
    atomic_fetch_sub(&exchange->server->body_bytes, exchange->capacity);
    free(exchange->body);
    free(exchange->text);
    pthread_mutex_destroy(&exchange->lock);
    free(exchange);
}

/* ---- stopping ----------------------------------------------------------------------------- */

bool cgam_exchange_must_stop(cgam_exchange *exchange)
{
    if (atomic_load(&exchange->server->stopping)) return true;
    double now = cgam_clock();
    pthread_mutex_lock(&exchange->lock);
    if (now > exchange->begun + exchange->limit) exchange->late = true;
    if (!exchange->gone && now - exchange->looked > LOOK_EVERY) {
        exchange->looked = now;
        exchange->gone = cgam_client_left(exchange->client);
    }
    bool stop = exchange->gone || exchange->late;
    pthread_mutex_unlock(&exchange->lock);
    return stop;
}

static bool shall_stop(void *user) { return cgam_exchange_must_stop(user); }

/* ---- events ------------------------------------------------------------------------------------ */

/* Appends bytes to the unsent text; false without memory. The lock is held. */
static bool append_text(cgam_exchange *exchange, const char *bytes, size_t size)
{
    if (exchange->text_size + size > exchange->text_capacity && exchange->text_at > 0) {
        exchange->text_size -= exchange->text_at; /* drops what is sent */
        memmove(exchange->text, exchange->text + exchange->text_at, exchange->text_size);
        exchange->text_at = 0;
    }
    if (exchange->text_size + size > exchange->text_capacity) {
        size_t capacity = 2 * (exchange->text_size + size);
        char *text = realloc(exchange->text, capacity);
        if (!text) return false;
        exchange->text = text;
        exchange->text_capacity = capacity;
    }
    memcpy(exchange->text + exchange->text_size, bytes, size);
    exchange->text_size += size;
    return true;
}

static void resume_reader(cgam_exchange *exchange)
{
    if (exchange->suspended && exchange->connection) {
        exchange->suspended = false;
        MHD_resume_connection(exchange->connection);
    }
}

/* Sends one event with a document on one line; `last` ends the stream. Other events are dropped if the client does not read. */
static void send_event(cgam_exchange *exchange, const char *event, const char *data, bool last)
{
    pthread_mutex_lock(&exchange->lock);
    bool skip = exchange->stage == CGAM_STAGE_DONE ||
                (!last && exchange->text_size - exchange->text_at > BEHIND);
    bool fine =
        skip ||
        (append_text(exchange, "event: ", 7) && append_text(exchange, event, strlen(event)) &&
         append_text(exchange, "\ndata: ", 7) && append_text(exchange, data, strlen(data)) &&
         append_text(exchange, "\n\n", 2));
    if (!fine) exchange->gone = true; /* no half events */
    if (last || !fine) exchange->stage = CGAM_STAGE_DONE;
    resume_reader(exchange);
    pthread_mutex_unlock(&exchange->lock);
}

char *cgam_progress_text(const cgam_progress_at *at)
{
    double total = at->all_total > 0 ? at->all_total : at->total;
    json_t *doc = cgam_json_object(
        "phase=%s done=%g total=%g unit=%s share=%g seconds_left=%g", at->phase, at->done,
        at->total, at->unit,
        total > 0 ? fmin(1, (at->all_total > 0 ? at->all_done : at->done) / total) : (double)NAN,
        at->seconds_left);
    char *text = cgam_json_line(doc);
    json_decref(doc);
    return text;
}

void cgam_exchange_send_progress(cgam_exchange *exchange, const char *progress)
{
    send_event(exchange, "progress", progress, false);
}

static void on_progress(void *user, const cgam_progress_at *at)
{
    cgam_exchange *exchange = user;
    double now = cgam_clock();
    if (now - exchange->reported < CGAM_PROGRESS_EVERY && at->done < at->total) return;
    exchange->reported = now;
    char *text = cgam_progress_text(at);
    if (text) cgam_exchange_send_progress(exchange, text);
    free(text);
}

/* ---- one request ------------------------------------------------------------------------------- */

/* The HTTP code of a failure. */
static int http_code(cgam_status status, const cgam_request *request)
{
    if (request->forbidden) return MHD_HTTP_FORBIDDEN;
    if (request->absent) return MHD_HTTP_NOT_FOUND;
    switch (status) {
    case CGAM_E_INTERRUPTED: return MHD_HTTP_SERVICE_UNAVAILABLE;
    case CGAM_E_NOMEM:
    case CGAM_E_IO:
    case CGAM_E_INTERNAL: return MHD_HTTP_INTERNAL_SERVER_ERROR;
    default: return MHD_HTTP_BAD_REQUEST;
    }
}

/* A list that is made while it is written. Its texts, too, may hold no paths. */
typedef struct hiding {
    const cgam_catalog *catalog;
    const cgam_late *late;
} hiding;

static json_t *hidden_item(void *of, int64_t i)
{
    const hiding *h = of;
    json_t *item = h->late->item(h->late->of, i);
    if (item && cgam_catalog_hide_paths_in(h->catalog, item)) return item;
    json_decref(item);
    return NULL;
}

/* The document as the command line prints it, or on one line; for free(). */
static char *document_text(const cgam_catalog *catalog, const cgam_call *call, bool one_line,
                           size_t *size)
{
    char *text = NULL;
    hiding h = {catalog, &call->late};
    cgam_late late = {call->late.name, call->late.count, hidden_item, NULL, &h};
    FILE *to = open_memstream(&text, size);
    bool fine = to && cgam_json_write_late(to, call->doc, one_line ? 0 : 1, &late);
    if (fine && !one_line) fputc('\n', to);
    if (to) fine &= fclose(to) == 0;
    fine &= !cgam_json_ran_short();
    if (!fine) free(text);
    return fine ? text : NULL;
}

static void begin_stream(cgam_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    exchange->stage = CGAM_STAGE_STREAM;
    if (exchange->connection) MHD_resume_connection(exchange->connection);
    pthread_mutex_unlock(&exchange->lock);
}

/* Stores the answer. Takes `text`, for free(); NULL: no memory. */
static void set_answer(cgam_exchange *exchange, int code, bool negative, char *text, size_t size)
{
    if (!text) code = MHD_HTTP_INTERNAL_SERVER_ERROR;
    pthread_mutex_lock(&exchange->lock);
    bool stream = exchange->stage == CGAM_STAGE_STREAM;
    if (exchange->stage == CGAM_STAGE_DONE) { /* the sweep has answered */
        free(text);
    } else if (!stream) {
        exchange->code = code;
        exchange->negative = negative;
        exchange->text = text;
        exchange->text_size = text ? size : 0;
        exchange->stage = CGAM_STAGE_DONE;
        if (exchange->connection) MHD_resume_connection(exchange->connection);
    }
    pthread_mutex_unlock(&exchange->lock);
    if (!stream) return;
    send_event(exchange, code == MHD_HTTP_OK ? "document" : "error", text ? text : "{}", true);
    free(text);
}

/* Why the verb was stopped. The sweep and the server may write what is read here. */
static void format_stop(cgam_exchange *exchange, char *message, size_t size)
{
    pthread_mutex_lock(&exchange->lock);
    bool late = exchange->late, gone = exchange->gone, writes = exchange->writes;
    double limit = exchange->limit;
    pthread_mutex_unlock(&exchange->lock);
    if (late)
        snprintf(message, size, "stopped after %g seconds, as %stimeout says", limit,
                 writes ? "out-" : "");
    else snprintf(message, size, "stopped: the %s", gone ? "client has gone" : "server ends");
}

static void set_error(cgam_exchange *exchange, cgam_status status, const cgam_request *request)
{
    char message[CGAM_MESSAGE_MAX + 64];
    cgam_server *server = exchange->server;
    snprintf(message, sizeof message, "%s", cgam_env_message(server->env));
    if (status == CGAM_E_INTERRUPTED) format_stop(exchange, message, sizeof message);
    else if (!*message) snprintf(message, sizeof message, "%s", cgam_status_text(status));
    char *hidden;
    if (!cgam_catalog_hide_paths(&server->catalog, message, &hidden)) {
        status = CGAM_E_NOMEM;
        snprintf(message, sizeof message, "%s", cgam_status_text(status));
    }
    int code = http_code(status, request);
    char *text = cgam_error_text(code, hidden ? hidden : message);
    set_answer(exchange, code, false, text, text ? strlen(text) : 0);
    free(hidden);
}

static void run_exchange(cgam_exchange *exchange)
{
    cgam_server *server = exchange->server;
    cgam_request request;
    cgam_args *args = NULL;
    cgam_call call = {.verb = exchange->verb,
                      .env = server->env,
                      .shelf = server->catalog.shelf,
                      .queries_max = server->queries_max,
                      .rows_max = server->rows_max,
                      .streams = true};
    cgam_stop stop = {shall_stop, exchange};
    cgam_stop_set(&stop);
    cgam_failure_here()->env = 0; /* of a request before */
    cgam_status status = cgam_request_read(&request, &server->catalog, exchange->verb,
                                           exchange->body, exchange->size);
    pthread_mutex_lock(&exchange->lock);
    exchange->writes = request.writes;
    if (request.writes) exchange->limit = server->out_timeout;
    pthread_mutex_unlock(&exchange->lock);
    if (status == CGAM_OK)
        status = cgam_args_json(server->env, exchange->verb, request.options, &args);
    if (status == CGAM_OK && shall_stop(exchange)) status = CGAM_E_INTERRUPTED;
    if (status == CGAM_OK) {
        if (exchange->events) {
            begin_stream(exchange);
            call.progress.to = (cgam_progress){on_progress, exchange};
        }
        cgam_file_overlay overlay = {request.files, request.count, request.exclusive};
        call.args = args;
        call.doc = json_object();
        if (cgam_model_pool_serves(call.verb))
            status = cgam_model_pool_run(server, exchange, &request, &call);
        else {
            cgam_file_overlay_set(&overlay);
            status = cgam_call_run(&call);
            cgam_file_overlay_set(NULL);
        }
    }
    if (status == CGAM_OK && !cgam_catalog_hide_paths_in(&server->catalog, call.doc))
        status = cgam_fail_nomem(server->env, "the document");
    char *text = NULL;
    size_t size = 0;
    if (status == CGAM_OK) {
        text = document_text(&server->catalog, &call, exchange->events, &size);
        if (!text)
            status = shall_stop(exchange) ? CGAM_E_INTERRUPTED
                                          : cgam_fail_nomem(server->env, "the document");
    }
    cgam_stop_set(NULL);
    cgam_call_end(&call); /* before the answer: it may hold much */
    pthread_mutex_lock(&server->work_lock);
    server->unanswered--; /* a client that has the answer may send the next request */
    pthread_mutex_unlock(&server->work_lock);
    if (status == CGAM_OK) set_answer(exchange, MHD_HTTP_OK, call.negative, text, size);
    else set_error(exchange, status, &request);
    json_decref(call.doc);
    cgam_args_free(args);
    cgam_request_close(&request);
}

/* ---- the queue --------------------------------------------------------------------------------- */

static void leave_running(cgam_server *server, const cgam_exchange *exchange)
{
    cgam_exchange **at = &server->first_running;
    while (*at != exchange) at = &(*at)->next;
    *at = exchange->next;
}

/* A verb that is past its time: answers in its place. */
static void answer_stopped(cgam_exchange *exchange)
{
    char message[160];
    format_stop(exchange, message, sizeof message);
    char *text = cgam_error_text(MHD_HTTP_SERVICE_UNAVAILABLE, message);
    set_answer(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, false, text, text ? strlen(text) : 0);
}

/* Shows the client of a verb that reports no progress that it runs. */
static void send_sign(cgam_exchange *exchange, double now)
{
    double since = exchange->reported > 0 ? exchange->reported : exchange->begun;
    pthread_mutex_lock(&exchange->lock);
    bool due = exchange->stage == CGAM_STAGE_STREAM && now - since > QUIET;
    pthread_mutex_unlock(&exchange->lock);
    if (!due) return;
    exchange->reported = now;
    char *text = cgam_progress_text(&(cgam_progress_at){.phase = exchange->label,
                                                        .done = now - exchange->begun,
                                                        .unit = "seconds",
                                                        .seconds_left = NAN});
    if (text) cgam_exchange_send_progress(exchange, text);
    free(text);
}

static void sweep_list(cgam_exchange *first)
{
    double now = cgam_clock();
    for (cgam_exchange *exchange = first; exchange; exchange = exchange->next) {
        send_sign(exchange, now);
        if (!cgam_exchange_must_stop(exchange)) continue;
        if (exchange->told == 0) exchange->told = now;
        else if (now - exchange->told > STOP_AFTER) answer_stopped(exchange);
    }
}

/* The lock is held. */
static void sweep_all(cgam_server *server)
{
    sweep_list(server->first);
    sweep_list(server->first_running);
}

void cgam_work_sweep(cgam_server *server)
{
    pthread_mutex_lock(&server->work_lock);
    sweep_all(server);
    pthread_mutex_unlock(&server->work_lock);
}

static void *run_worker(void *user)
{
    cgam_server *server = user;
    pthread_mutex_lock(&server->work_lock);
    for (;;) {
        while (!server->first && !server->ending)
            pthread_cond_wait(&server->work_there, &server->work_lock);
        if (!server->first) break;
        cgam_exchange *exchange = server->first;
        server->first = exchange->next;
        if (!server->first) server->last = NULL;
        server->waiting--;
        server->running++;
        server->unanswered++;
        exchange->next = server->first_running;
        server->first_running = exchange;
        pthread_mutex_unlock(&server->work_lock);
        run_exchange(exchange);
        pthread_mutex_lock(&server->work_lock);
        leave_running(server, exchange);
        cgam_exchange_release(exchange);
        server->running--;
        pthread_cond_broadcast(&server->work_done);
    }
    pthread_mutex_unlock(&server->work_lock);
    return NULL;
}

bool cgam_work_add(cgam_server *server, cgam_exchange *exchange)
{
    pthread_mutex_lock(&server->work_lock);
    bool accepted = server->waiting + server->unanswered < server->requests_max &&
                    !atomic_load(&server->draining); /* cgam_work_drain waits for the queue */
    if (accepted) {
        atomic_fetch_add(&exchange->holders, 1);
        exchange->stage = CGAM_STAGE_WAITING;
        MHD_suspend_connection(exchange->connection); /* before a worker can resume it */
        exchange->next = NULL;
        if (server->last) server->last->next = exchange;
        else server->first = exchange;
        server->last = exchange;
        server->waiting++;
        pthread_cond_signal(&server->work_there);
    }
    pthread_mutex_unlock(&server->work_lock);
    return accepted;
}

cgam_status cgam_work_start(cgam_server *server, int workers)
{
    server->threads = calloc((size_t)workers, sizeof *server->threads);
    if (!server->threads) return cgam_fail_nomem(server->env, "workers");
    for (; server->workers < workers; server->workers++)
        if (pthread_create(&server->threads[server->workers], NULL, run_worker, server) != 0)
            return cgam_fail(server->env, CGAM_E_IO, "cannot start %d threads", workers);
    return CGAM_OK;
}

int cgam_work_drain(cgam_server *server, double seconds)
{
    double until = cgam_clock() + seconds, end = until + STOP_SECONDS;
    pthread_mutex_lock(&server->work_lock);
    for (double now; server->waiting + server->running > 0 && (now = cgam_clock()) < end;) {
        struct timespec tick;
        clock_gettime(CLOCK_MONOTONIC, &tick);
        tick.tv_nsec += (long)(1e9 * SWEEP_EVERY);
        tick.tv_sec += tick.tv_nsec / 1000000000;
        tick.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&server->work_done, &server->work_lock, &tick);
        if (now > until) atomic_store(&server->stopping, true);
        sweep_all(server);
    }
    int left = server->waiting + server->running;
    pthread_mutex_unlock(&server->work_lock);
    return left;
}

void cgam_work_stop(cgam_server *server)
{
    pthread_mutex_lock(&server->work_lock);
    server->ending = true;
    pthread_cond_broadcast(&server->work_there);
    pthread_mutex_unlock(&server->work_lock);
    for (int i = 0; i < server->workers; i++) pthread_join(server->threads[i], NULL);
    free(server->threads);
    server->threads = NULL;
    server->workers = 0;
}
