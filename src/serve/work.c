/* work.c: verbs at work. A request waits in a queue for one of a few workers, who reads its options, runs
 * the verb on the env that all share, and leaves the answer; the connection sleeps meanwhile. A verb is
 * stopped, not abandoned: the library asks between pieces of work whether it shall go on, and it shall
 * not when its time is over, the client has gone or the server ends. */
#include "serve/guest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LOOK_EVERY = 0.02; /* seconds between looks for the client */
enum { BEHIND = 1 << 16 }; /* bytes that a reader of events may be, and still be told of progress */

char *cgam_error_text(int code, const char *message)
{
    (void)cgam_json_ran_short(); /* what it is about may have */
    json_t *doc = json_object();
    cgam_json_put_text(doc, "error", message);
    cgam_json_put_int(doc, "status", code >= 500 ? 3 : 2);
    char *text = cgam_json_line(doc);
    json_decref(doc);
    if (!cgam_json_ran_short()) return text;
    free(text); /* half of it */
    return NULL;
}

void cgam_asked_release(cgam_asked *asked)
{
    if (atomic_fetch_sub(&asked->holders, 1) > 1) return;
    atomic_fetch_sub(&asked->server->body_bytes, asked->room);
    free(asked->body);
    free(asked->text);
    pthread_mutex_destroy(&asked->lock);
    free(asked);
}

/* ---- may it go on? ----------------------------------------------------------------------------- */

bool cgam_asked_stop(cgam_asked *asked)
{
    if (atomic_load(&asked->server->stopping)) return true;
    double now = cgam_clock();
    pthread_mutex_lock(&asked->lock);
    if (now > asked->begun + asked->limit) asked->late = true;
    if (!asked->gone && now - asked->looked > LOOK_EVERY) {
        asked->looked = now;
        asked->gone = cgam_line_left(asked->line);
    }
    bool stop = asked->gone || asked->late;
    pthread_mutex_unlock(&asked->lock);
    return stop;
}

static bool shall_stop(void *user) { return cgam_asked_stop(user); }

/* ---- events ------------------------------------------------------------------------------------ */

/* Adds bytes to what is to be sent; false without memory. The lock is held. */
static bool append(cgam_asked *asked, const char *bytes, size_t size)
{
    if (asked->text_size + size > asked->text_room && asked->text_at > 0) {
        asked->text_size -= asked->text_at; /* what has gone makes room */
        memmove(asked->text, asked->text + asked->text_at, asked->text_size);
        asked->text_at = 0;
    }
    if (asked->text_size + size > asked->text_room) {
        size_t room = 2 * (asked->text_size + size);
        char *text = realloc(asked->text, room);
        if (!text) return false;
        asked->text = text;
        asked->text_room = room;
    }
    memcpy(asked->text + asked->text_size, bytes, size);
    asked->text_size += size;
    return true;
}

static void wake(cgam_asked *asked)
{
    if (asked->suspended && asked->connection) {
        asked->suspended = false;
        MHD_resume_connection(asked->connection);
    }
}

/* One event with a document on one line; `last` ends the stream. Others are left out for one who does not read them. */
static void tell(cgam_asked *asked, const char *event, const char *data, bool last)
{
    pthread_mutex_lock(&asked->lock);
    bool skip = !last && asked->text_size - asked->text_at > BEHIND;
    bool fine = skip || (append(asked, "event: ", 7) && append(asked, event, strlen(event)) &&
                         append(asked, "\ndata: ", 7) && append(asked, data, strlen(data)) &&
                         append(asked, "\n\n", 2));
    if (!fine) asked->gone = true; /* half an event is none */
    if (last || !fine) asked->stage = CGAM_STAGE_DONE;
    wake(asked);
    pthread_mutex_unlock(&asked->lock);
}

char *cgam_progress_text(const cgam_progress_at *at)
{
    double total = at->all_total > 0 ? at->all_total : at->total;
    json_t *doc = json_object();
    cgam_json_put_text(doc, "phase", at->phase);
    cgam_json_put_real(doc, "done", at->done);
    cgam_json_put_real(doc, "total", at->total);
    cgam_json_put_text(doc, "unit", at->unit);
    cgam_json_put_real(doc, "share",
                       total > 0 ? fmin(1, (at->all_total > 0 ? at->all_done : at->done) / total)
                                 : (double)NAN);
    cgam_json_put_real(doc, "seconds_left", at->seconds_left);
    char *text = cgam_json_line(doc);
    json_decref(doc);
    return text;
}

void cgam_asked_tell(cgam_asked *asked, const char *progress)
{
    tell(asked, "progress", progress, false);
}

static void on_progress(void *user, const cgam_progress_at *at)
{
    cgam_asked *asked = user;
    double now = cgam_clock();
    if (now - asked->told < CGAM_TELL_EVERY && at->done < at->total) return;
    asked->told = now;
    char *text = cgam_progress_text(at);
    if (text) cgam_asked_tell(asked, text);
    free(text);
}

/* ---- one request ------------------------------------------------------------------------------- */

/* Of a failure. */
static int code_of(cgam_status status, const cgam_wish *wish)
{
    if (wish->forbidden) return MHD_HTTP_FORBIDDEN;
    if (wish->absent) return MHD_HTTP_NOT_FOUND;
    switch (status) {
    case CGAM_E_INTERRUPTED: return MHD_HTTP_SERVICE_UNAVAILABLE;
    case CGAM_E_NOMEM:
    case CGAM_E_IO:
    case CGAM_E_INTERNAL: return MHD_HTTP_INTERNAL_SERVER_ERROR;
    default: return MHD_HTTP_BAD_REQUEST;
    }
}

/* The document as the command line prints it, or on one line; for free(). */
static char *document_text(const json_t *doc, bool one_line, size_t *size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    bool fine = to && cgam_json_write(to, doc, one_line ? 0 : 1);
    if (fine && !one_line) fputc('\n', to);
    if (to) fine &= fclose(to) == 0;
    if (!fine) free(text);
    return fine ? text : NULL;
}

static void begin_stream(cgam_asked *asked)
{
    pthread_mutex_lock(&asked->lock);
    asked->stage = CGAM_STAGE_STREAM;
    if (asked->connection) MHD_resume_connection(asked->connection);
    pthread_mutex_unlock(&asked->lock);
}

/* Leaves what is to be answered. `text` is for free(), NULL: no memory. */
static void finish(cgam_asked *asked, int code, bool negative, char *text, size_t size)
{
    if (!text) code = MHD_HTTP_INTERNAL_SERVER_ERROR;
    pthread_mutex_lock(&asked->lock);
    bool stream = asked->stage == CGAM_STAGE_STREAM;
    if (!stream) {
        asked->code = code;
        asked->negative = negative;
        asked->text = text;
        asked->text_size = text ? size : 0;
        asked->stage = CGAM_STAGE_DONE;
        if (asked->connection) MHD_resume_connection(asked->connection);
    }
    pthread_mutex_unlock(&asked->lock);
    if (!stream) return;
    tell(asked, code == MHD_HTTP_OK ? "document" : "error", text ? text : "{}", true);
    free(text);
}

static void fail(cgam_asked *asked, cgam_status status, const cgam_wish *wish)
{
    char message[CGAM_MESSAGE_MAX + 64];
    cgam_server *server = asked->server;
    cgam_env_message_copy(server->env, message, sizeof message);
    if (status == CGAM_E_INTERRUPTED && asked->late)
        snprintf(message, sizeof message, "stopped after %g seconds, as %stimeout says",
                 asked->limit, wish->writes ? "out-" : "");
    else if (status == CGAM_E_INTERRUPTED)
        snprintf(message, sizeof message, "stopped: the %s",
                 asked->gone ? "client has gone" : "server ends");
    else if (!*message) snprintf(message, sizeof message, "%s", cgam_status_text(status));
    char *veiled;
    if (!cgam_house_veil(&server->house, message, &veiled)) {
        status = CGAM_E_NOMEM;
        snprintf(message, sizeof message, "%s", cgam_status_text(status));
    }
    int code = code_of(status, wish);
    char *text = cgam_error_text(code, veiled ? veiled : message);
    finish(asked, code, false, text, text ? strlen(text) : 0);
    free(veiled);
}

static void answer(cgam_asked *asked)
{
    cgam_server *server = asked->server;
    cgam_wish wish;
    cgam_args *args = NULL;
    cgam_call call = {.verb = asked->verb, .env = server->env, .shelf = server->house.shelf};
    cgam_stop stop = {shall_stop, asked};
    cgam_stop_set(&stop);
    cgam_failure_here()->env = 0; /* of a request before */
    cgam_status status =
        cgam_wish_read(&wish, &server->house, asked->verb, asked->body, asked->size);
    if (wish.writes) asked->limit = server->out_timeout;
    if (status == CGAM_OK) status = cgam_args_json(server->env, asked->verb, wish.options, &args);
    if (status == CGAM_OK && shall_stop(asked)) status = CGAM_E_INTERRUPTED;
    if (status == CGAM_OK) {
        if (asked->events) {
            begin_stream(asked);
            call.progress.to = (cgam_progress){on_progress, asked};
        }
        cgam_loan loan = {wish.files, wish.count, wish.alone};
        call.args = args;
        call.doc = json_object();
        if (cgam_guest_needed(call.verb)) status = cgam_guest_ask(server, asked, &wish, &call);
        else {
            cgam_file_lend(&loan);
            status = cgam_call_run(&call);
            cgam_file_lend(NULL);
        }
    }
    cgam_stop_set(NULL);
    if (status == CGAM_OK && !cgam_house_veil_json(&server->house, call.doc))
        status = cgam_fail_nomem(server->env, "the document");
    if (status == CGAM_OK) {
        size_t size = 0;
        char *text = document_text(call.doc, asked->events, &size);
        finish(asked, MHD_HTTP_OK, call.negative, text, size);
    } else fail(asked, status, &wish);
    json_decref(call.doc);
    cgam_args_free(args);
    cgam_wish_close(&wish);
}

/* ---- the queue --------------------------------------------------------------------------------- */

static void *worker(void *user)
{
    cgam_server *server = user;
    pthread_mutex_lock(&server->work_lock);
    for (;;) {
        while (!server->first && !server->ending)
            pthread_cond_wait(&server->work_there, &server->work_lock);
        if (!server->first) break;
        cgam_asked *asked = server->first;
        server->first = asked->next;
        if (!server->first) server->last = NULL;
        server->waiting--;
        server->running++;
        pthread_mutex_unlock(&server->work_lock);
        answer(asked);
        cgam_asked_release(asked);
        pthread_mutex_lock(&server->work_lock);
        server->running--;
        pthread_cond_broadcast(&server->work_done);
    }
    pthread_mutex_unlock(&server->work_lock);
    return NULL;
}

bool cgam_work_add(cgam_server *server, cgam_asked *asked)
{
    pthread_mutex_lock(&server->work_lock);
    bool room = server->waiting + server->running < server->requests_max &&
                !atomic_load(&server->draining); /* a drain waits for what is here already */
    if (room) {
        atomic_fetch_add(&asked->holders, 1);
        asked->stage = CGAM_STAGE_WAITING;
        MHD_suspend_connection(asked->connection); /* before a worker can wake it */
        asked->next = NULL;
        if (server->last) server->last->next = asked;
        else server->first = asked;
        server->last = asked;
        server->waiting++;
        pthread_cond_signal(&server->work_there);
    }
    pthread_mutex_unlock(&server->work_lock);
    return room;
}

cgam_status cgam_work_start(cgam_server *server, int workers)
{
    server->threads = calloc((size_t)workers, sizeof *server->threads);
    if (!server->threads) return cgam_fail_nomem(server->env, "workers");
    for (; server->workers < workers; server->workers++)
        if (pthread_create(&server->threads[server->workers], NULL, worker, server) != 0)
            return cgam_fail(server->env, CGAM_E_IO, "cannot start %d threads", workers);
    return CGAM_OK;
}

void cgam_work_drain(cgam_server *server, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds;
    int late = 0;
    pthread_mutex_lock(&server->work_lock);
    while (server->waiting + server->running > 0) {
        if (!late) late = pthread_cond_timedwait(&server->work_done, &server->work_lock, &until);
        else pthread_cond_wait(&server->work_done, &server->work_lock);
        if (late) atomic_store(&server->stopping, true);
    }
    pthread_mutex_unlock(&server->work_lock);
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
