/* model_pool.c: the server's side of model processes. A process holds one model and serves one request at a time; if none is free,
 * another is started. Idle ones are ended, least recently used first, while all together keep more than the server's cache
 * allows. A process that does not stop on request is killed. */
#include "serve/model_process.h"

#include "lab/child.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 20, WORDS_FIXED = 16 };
static const double GRACE = 0.6;                       /* seconds, as on the command line */
enum { PROGRESS_MAX = 1 << 16, ANSWER_MAX = 1 << 30 }; /* bytes of a packet */

typedef struct cgam_model_process {
    struct cgam_model_process *next; /* less recently used */
    pid_t pid;
    int socket;
    size_t kept; /* bytes, as reported; guarded by the lock, like busy and next */
    bool busy;
    char model[]; /* its path; "": the default one */
} model_process;

/* Kills and frees it. Nothing is lost: stores are written in whole transactions. Until it is waited for, its pid and
 * that of its group stay its own, even if it has ended before. */
static void end_process(model_process *p)
{
    close(p->socket);
    (void)kill(-p->pid, SIGKILL); /* and what it has started */
    (void)cgam_child_wait(p->pid);
    free(p);
}

static void unlink_process(cgam_server *server, const model_process *p)
{
    model_process **at = &server->pool;
    while (*at != p) {
        assert(*at); /* it is there */
        at = &(*at)->next;
    }
    *at = p->next;
}

void cgam_model_pool_end(cgam_server *server)
{
    for (model_process *p = server->pool, *next; p; p = next) {
        next = p->next;
        end_process(p);
    }
    server->pool = NULL;
}

cgam_model_pool_info cgam_model_pool_describe(cgam_server *server)
{
    pthread_mutex_lock(&server->pool_lock);
    cgam_model_pool_info info = {.started = server->pool_started};
    for (const model_process *p = server->pool; p; p = p->next) {
        info.count++;
        info.bytes += p->kept;
    }
    pthread_mutex_unlock(&server->pool_lock);
    return info;
}

/* ---- starting and ending -------------------------------------------------------------------------- */

/* Starts this program again, with the limits on what it may write and use. 0 or errno. */
static int spawn_process(cgam_server *server, model_process *p, int socket)
{
    const cgam_catalog *catalog = &server->catalog;
    const char **words = calloc((size_t)catalog->count * 2 + WORDS_FIXED, sizeof *words);
    char memory[24], threads[24];
    int n = 0;
    if (!words) return ENOMEM;
    snprintf(memory, sizeof memory, "%lld", (long long)server->model_memory);
    snprintf(threads, sizeof threads, "%d", cgam_env_threads(server->env));
    const char *const fixed[] = {"/proc/self/exe", "serve",     "--guest", "--model-memory",
                                 memory,           "--threads", threads};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) words[n++] = fixed[i];
    if (catalog->root) words[n++] = "--root", words[n++] = catalog->root;
    for (int i = 0; i < catalog->count; i++) {
        const cgam_catalog_entry *t = &catalog->entries[i];
        if (t->kind == CGAM_INPUT_STORE) words[n++] = "--store", words[n++] = t->path;
        if (t->kind == CGAM_INPUT_CACHE) words[n++] = "--cache", words[n++] = t->path;
    }
    cgam_child child = {.argv = words, .in = socket, .apart = true};
    int error = cgam_child_start(&child, &p->pid);
    free(words);
    return error;
}

/* NULL with a message. The lock is held. */
static model_process *start_process(cgam_server *server, const char *model)
{
    int ends[2];
    size_t size = strlen(model) + 1;
    model_process *p = calloc(1, sizeof *p + size);
    int error = p ? 0 : ENOMEM;
    if (!error && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) error = errno;
    if (!error) {
        memcpy(p->model, model, size);
        p->socket = ends[0];
        error = spawn_process(server, p, ends[1]);
        close(ends[1]);
        if (error) close(ends[0]);
    }
    if (!error) {
        server->pool_started++;
        return p;
    }
    char text[128];
    free(p);
    (void)cgam_fail(server->env, CGAM_E_IO, "cannot start a process for the model: %s",
                    strerror_r(error, text, sizeof text));
    return NULL;
}

static model_process *acquire_process(cgam_server *server, const char *model)
{
    pthread_mutex_lock(&server->pool_lock);
    model_process *p = server->pool;
    while (p && (p->busy || strcmp(p->model, model) != 0)) p = p->next;
    if (p) unlink_process(server, p);
    else p = start_process(server, model);
    if (p) {
        p->next = server->pool;
        server->pool = p;
        p->busy = true;
    }
    pthread_mutex_unlock(&server->pool_lock);
    return p;
}

/* The idle process to end, if all together keep too much; NULL: none. */
static model_process *excess_process(cgam_server *server)
{
    size_t bytes = 0;
    model_process *last = NULL;
    for (model_process *p = server->pool; p; p = p->next) {
        bytes += p->kept;
        if (!p->busy) last = p;
    }
    return bytes > server->catalog.cache_bytes ? last : NULL;
}

static void release_process(cgam_server *server, model_process *p, bool alive)
{
    model_process *gone = alive ? NULL : p, *more;
    pthread_mutex_lock(&server->pool_lock);
    for (const model_process *other = server->pool; other && !gone; other = other->next)
        if (other != p && !other->busy && strcmp(other->model, p->model) == 0)
            gone = p; /* one is enough */
    p->busy = false;
    if (gone) unlink_process(server, gone);
    if (gone) end_process(gone);
    while ((more = excess_process(server))) {
        unlink_process(server, more);
        end_process(more);
    }
    pthread_mutex_unlock(&server->pool_lock);
}

/* ---- one request ------------------------------------------------------------------------------- */

/* A request in a model process, which has the time of the request and then GRACE seconds to stop. */
typedef struct dialogue {
    model_process *process;
    cgam_packet_end end;
    cgam_exchange *exchange;
    double stopping;      /* since when; 0: it runs on */
    bool stop_sent, over; /* STOP was sent; the grace is over */
} dialogue;

/* Waits until the socket can be written, or read; false: the grace is over, or the process is gone. */
static bool wait_ready(void *user, short events)
{
    dialogue *t = user;
    const cgam_packet stop = {.kind = CGAM_PACKET_STOP};
    for (;;) {
        struct pollfd at = {.fd = t->process->socket, .events = events};
        int found = poll(&at, 1, TICK_MS); /* checks a process that sends without end, too */
        if (t->stopping == 0 && cgam_exchange_must_stop(t->exchange)) t->stopping = cgam_clock();
        t->over = t->stopping > 0 && cgam_clock() - t->stopping > GRACE;
        if (t->over) return false;
        if (found > 0) return true;
        if (t->stopping == 0 || t->stop_sent || events != POLLIN)
            continue; /* no packet within another */
        t->stop_sent =
            send(t->process->socket, &stop, sizeof stop, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
        if (!t->stop_sent && errno != EAGAIN && errno != EINTR) return false;
    }
}

static bool send_request(dialogue *t, const cgam_verb *verb, const cgam_request *request)
{
    json_t *work = json_object(), *files = json_array();
    cgam_json_put_text(work, "verb", verb->name);
    json_object_set(work, "options", request->options);
    cgam_json_put_bool(work, "exclusive", request->exclusive);
    for (int i = 0; i < request->count; i++)
        json_array_append_new(
            files, json_pack("[sI]", request->files[i].name, (json_int_t)request->files[i].size));
    cgam_json_put(work, "files", files);
    char *text = cgam_json_line(work);
    cgam_packet packet = {.kind = CGAM_PACKET_WORK, .size = text ? strlen(text) : 0};
    bool fine = text && cgam_packet_write(&t->end, &packet, sizeof packet) &&
                cgam_packet_write(&t->end, text, (size_t)packet.size);
    for (int i = 0; i < request->count && fine; i++)
        fine = cgam_packet_write(&t->end, request->files[i].bytes, request->files[i].size);
    free(text);
    json_decref(work);
    return fine;
}

/* Reports how the process ended. */
static cgam_status report_crash(cgam_env *env, const model_process *p)
{
    siginfo_t how = {0};
    (void)kill(p->pid, SIGKILL); /* no effect if it has ended already */
    (void)waitid(P_PID, (id_t)p->pid, &how, WEXITED | WNOWAIT);
    bool signalled = how.si_code == CLD_KILLED || how.si_code == CLD_DUMPED;
    return cgam_fail(env, CGAM_E_INTERNAL,
                     "the model process ended %s %d; the model may be damaged",
                     signalled ? "by signal" : "with status", how.si_status);
}

/* Reads the packet that ends a request; false if it is invalid. */
static bool parse_answer(cgam_env *env, const cgam_packet *packet, const char *text,
                         cgam_call *call, cgam_status *status)
{
    *status = packet->flag <= INT_MAX ? (cgam_status) - (int)packet->flag : CGAM_OK;
    if (packet->kind == CGAM_PACKET_FAILED && *status != CGAM_OK &&
        *cgam_status_name(*status) != '?') {
        (void)cgam_fail(env, *status, "%s", text);
        return true;
    }
    if (packet->kind != CGAM_PACKET_DONE) return false;
    json_error_t error;
    bool no_memory;
    json_decref(call->doc);
    call->doc = cgam_json_tree(text, (size_t)packet->size, &error, &no_memory);
    call->negative = packet->flag;
    *status = no_memory ? cgam_fail_nomem(env, "the document") : CGAM_OK;
    return no_memory || json_is_object(call->doc);
}

/* Reports why no answer came. */
static cgam_status report_silence(cgam_env *env, const dialogue *t)
{
    return t->stop_sent || t->over ? CGAM_E_INTERRUPTED : report_crash(env, t->process);
}

/* Forwards progress until the answer has come. */
static cgam_status receive_answer(cgam_server *server, dialogue *t, cgam_call *call, bool *alive)
{
    cgam_packet packet;
    while (cgam_packet_read(&t->end, &packet, sizeof packet)) {
        uint64_t most = packet.kind == CGAM_PACKET_PROGRESS ? PROGRESS_MAX : ANSWER_MAX;
        char *text = cgam_packet_text(&t->end, &packet, most);
        cgam_status status;
        if (!text) break;
        if (packet.kind == CGAM_PACKET_PROGRESS &&
            !strpbrk(text, "\r\n")) { /* one event, not two */
            if (call->progress.to.report) cgam_exchange_send_progress(t->exchange, text);
            free(text);
            continue;
        }
        *alive = parse_answer(server->env, &packet, text, call, &status);
        free(text);
        if (!*alive)
            return cgam_fail(server->env, CGAM_E_INTERNAL,
                             "invalid reply from the model process; the model may be damaged");
        pthread_mutex_lock(&server->pool_lock);
        t->process->kept = (size_t)packet.kept;
        pthread_mutex_unlock(&server->pool_lock);
        return status;
    }
    return report_silence(server->env, t);
}

bool cgam_model_pool_serves(const cgam_verb *verb)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        if (p->input == CGAM_INPUT_MODEL) return true;
    return false;
}

cgam_status cgam_model_pool_run(cgam_server *server, cgam_exchange *exchange,
                                const cgam_request *request, cgam_call *call)
{
    bool alive = false;
    const char *model = cgam_args_text(call->args, "model");
    model_process *p = acquire_process(server, model ? model : "");
    if (!p) return CGAM_E_IO;
    dialogue t = {.process = p, .exchange = exchange};
    t.end = (cgam_packet_end){p->socket, wait_ready, &t};
    cgam_status status = send_request(&t, call->verb, request)
                             ? receive_answer(server, &t, call, &alive)
                             : report_silence(server->env, &t);
    release_process(server, p, alive);
    return status;
}
