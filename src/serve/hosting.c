/* hosting.c: the server's side of its guests. A guest has one model and serves one request at a time; who finds none free has
 * another started. Of those that wait, the ones used least lately go when together they keep more than the server was given
 * room for. A guest that does not stop when it is asked to is ended. */
#include "serve/guest.h"

#include "io/child.h"

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

enum { TICK_MS = 20, GRACE_SECONDS = 5, WORDS_FIXED = 16 };
enum { TOLD_MAX = 1 << 16, ANSWER_MAX = 1 << 30 }; /* bytes of a frame that is believed */

typedef struct cgam_guest {
    struct cgam_guest *next; /* used less lately */
    pid_t pid;
    int line;
    size_t kept; /* bytes, as it says; under the lock, like busy and next */
    bool busy;
    char model[]; /* its path; "": the default one */
} guest;

/* Ends it and forgets it. It has nothing to lose: stores are written in whole transactions. Until it is waited for, its
 * number is its own and that of its group, also if it ended before. */
static void end_guest(guest *g)
{
    close(g->line);
    (void)kill(-g->pid, SIGKILL); /* and what it has started */
    (void)cgam_child_wait(g->pid);
    free(g);
}

static void unlink_guest(cgam_server *server, const guest *g)
{
    guest **at = &server->guests;
    while (*at != g) {
        assert(*at); /* it is there */
        at = &(*at)->next;
    }
    *at = g->next;
}

void cgam_guests_end(cgam_server *server)
{
    for (guest *g = server->guests, *next; g; g = next) {
        next = g->next;
        end_guest(g);
    }
    server->guests = NULL;
}

cgam_guests_info cgam_guests_describe(cgam_server *server)
{
    pthread_mutex_lock(&server->guests_lock);
    cgam_guests_info info = {.started = server->guests_started};
    for (const guest *g = server->guests; g; g = g->next) {
        info.count++;
        info.bytes += g->kept;
    }
    pthread_mutex_unlock(&server->guests_lock);
    return info;
}

/* ---- coming and going -------------------------------------------------------------------------- */

/* This program again, with what it may write and use. 0 or errno. */
static int start(cgam_server *server, guest *g, int line)
{
    const cgam_house *house = &server->house;
    const char **words = calloc((size_t)house->count * 2 + WORDS_FIXED, sizeof *words);
    char memory[24], threads[24];
    int n = 0;
    if (!words) return ENOMEM;
    snprintf(memory, sizeof memory, "%lld", (long long)server->model_memory);
    snprintf(threads, sizeof threads, "%d", cgam_env_threads(server->env));
    const char *const fixed[] = {"/proc/self/exe", "serve",     "--guest", "--model-memory",
                                 memory,           "--threads", threads};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) words[n++] = fixed[i];
    if (house->root) words[n++] = "--root", words[n++] = house->root;
    for (int i = 0; i < house->count; i++)
        if (house->tenants[i].kind == CGAM_INPUT_STORE)
            words[n++] = "--store", words[n++] = house->tenants[i].path;
    cgam_child child = {.argv = words, .in = line, .apart = true};
    int error = cgam_child_start(&child, &g->pid);
    free(words);
    return error;
}

/* NULL with a message. The lock is held. */
static guest *new_guest(cgam_server *server, const char *model)
{
    int ends[2];
    size_t size = strlen(model) + 1;
    guest *g = calloc(1, sizeof *g + size);
    int error = g ? 0 : ENOMEM;
    if (!error && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) error = errno;
    if (!error) {
        memcpy(g->model, model, size);
        g->line = ends[0];
        error = start(server, g, ends[1]);
        close(ends[1]);
        if (error) close(ends[0]);
    }
    if (!error) {
        server->guests_started++;
        return g;
    }
    char text[128];
    free(g);
    (void)cgam_fail(server->env, CGAM_E_IO, "no process for the model: %s",
                    strerror_r(error, text, sizeof text));
    return NULL;
}

static guest *take(cgam_server *server, const char *model)
{
    pthread_mutex_lock(&server->guests_lock);
    guest *g = server->guests;
    while (g && (g->busy || strcmp(g->model, model) != 0)) g = g->next;
    if (g) unlink_guest(server, g);
    else g = new_guest(server, model);
    if (g) {
        g->next = server->guests;
        server->guests = g;
        g->busy = true;
    }
    pthread_mutex_unlock(&server->guests_lock);
    return g;
}

/* The one to go: the last that waits, where all keep too much. */
static guest *too_many(cgam_server *server)
{
    size_t bytes = 0;
    guest *last = NULL;
    for (guest *g = server->guests; g; g = g->next) {
        bytes += g->kept;
        if (!g->busy) last = g;
    }
    return bytes > server->house.room_bytes ? last : NULL;
}

static void give_back(cgam_server *server, guest *g, bool alive)
{
    guest *gone = alive ? NULL : g, *more;
    pthread_mutex_lock(&server->guests_lock);
    for (const guest *other = server->guests; other && !gone; other = other->next)
        if (other != g && !other->busy && strcmp(other->model, g->model) == 0)
            gone = g; /* one is enough */
    g->busy = false;
    if (gone) unlink_guest(server, gone);
    if (gone) end_guest(gone);
    while ((more = too_many(server))) {
        unlink_guest(server, more);
        end_guest(more);
    }
    pthread_mutex_unlock(&server->guests_lock);
}

/* ---- one request ------------------------------------------------------------------------------- */

/* A request at a guest. Whatever the guest does or does not do, it has the time of the request and then a little to stop. */
typedef struct talk {
    guest *g;
    cgam_asked *asked;
    double stopping; /* since when; 0: it is not to stop */
    bool told, over; /* it has been told to; it did not */
} talk;

/* Waits until the line can be written, or read; false: it is over, or the guest is gone. */
static bool ready(talk *t, short events)
{
    const cgam_frame stop = {.kind = CGAM_FRAME_STOP};
    for (;;) {
        struct pollfd at = {.fd = t->g->line, .events = events};
        int found = poll(&at, 1, TICK_MS); /* one that talks without end is looked at, too */
        if (t->stopping == 0 && cgam_asked_stop(t->asked)) t->stopping = cgam_clock();
        t->over = t->stopping > 0 && cgam_clock() - t->stopping > GRACE_SECONDS;
        if (t->over) return false;
        if (found > 0) return true;
        if (t->stopping == 0 || t->told || events != POLLIN) continue; /* no word within another */
        t->told = send(t->g->line, &stop, sizeof stop, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
        if (!t->told && errno != EAGAIN && errno != EINTR) return false;
    }
}

static bool put(talk *t, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        if (!ready(t, POLLOUT)) return false;
        ssize_t n = send(t->g->line, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
        if (n > 0) at += n, size -= (size_t)n;
    }
    return true;
}

static bool get(talk *t, void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        if (!ready(t, POLLIN)) return false;
        ssize_t n = read(t->g->line, at, size); /* what is there */
        if (n == 0 || (n < 0 && errno != EINTR)) return false;
        if (n > 0) at += n, size -= (size_t)n;
    }
    return true;
}

/* The text of a frame, for free(); NULL: none, or more than any guest has to say. */
static char *get_text(talk *t, const cgam_frame *frame)
{
    uint64_t most = frame->kind == CGAM_FRAME_TOLD ? TOLD_MAX : ANSWER_MAX;
    char *text = frame->size <= most ? malloc((size_t)frame->size + 1) : NULL;
    if (text && get(t, text, (size_t)frame->size)) {
        text[frame->size] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static bool send_work(talk *t, const cgam_verb *verb, const cgam_wish *wish)
{
    json_t *work = json_object(), *lent = json_array();
    cgam_json_put_text(work, "verb", verb->name);
    json_object_set(work, "options", wish->options);
    cgam_json_put_bool(work, "alone", wish->alone);
    for (int i = 0; i < wish->count; i++)
        json_array_append_new(
            lent, json_pack("[sI]", wish->files[i].name, (json_int_t)wish->files[i].size));
    cgam_json_put(work, "lent", lent);
    char *text = cgam_json_line(work);
    cgam_frame frame = {.kind = CGAM_FRAME_WORK, .size = text ? strlen(text) : 0};
    bool fine = text && put(t, &frame, sizeof frame) && put(t, text, (size_t)frame.size);
    for (int i = 0; i < wish->count && fine; i++)
        fine = put(t, wish->files[i].bytes, wish->files[i].size);
    free(text);
    json_decref(work);
    return fine;
}

/* It is gone; says by what. */
static cgam_status lost(cgam_env *env, const guest *g)
{
    siginfo_t how = {0};
    (void)kill(g->pid, SIGKILL); /* of one that has ended already the end stays */
    (void)waitid(P_PID, (id_t)g->pid, &how, WEXITED | WNOWAIT);
    bool signalled = how.si_code == CLD_KILLED || how.si_code == CLD_DUMPED;
    return cgam_fail(env, CGAM_E_INTERNAL,
                     "the process that the model ran in ended by %s %d; the model may be damaged",
                     signalled ? "signal" : "itself with status", how.si_status);
}

/* What a frame that ends a request says; false: nothing that makes sense. */
static bool understand(cgam_env *env, const cgam_frame *frame, const char *text, cgam_call *call,
                       cgam_status *status)
{
    *status = frame->flag <= INT_MAX ? (cgam_status) - (int)frame->flag : CGAM_OK;
    if (frame->kind == CGAM_FRAME_FAILED && *status != CGAM_OK &&
        *cgam_status_name(*status) != '?') {
        (void)cgam_fail(env, *status, "%s", text);
        return true;
    }
    if (frame->kind != CGAM_FRAME_DONE) return false;
    json_error_t error;
    bool no_memory;
    json_decref(call->doc);
    call->doc = cgam_json_tree(text, (size_t)frame->size, &error, &no_memory);
    call->negative = frame->flag;
    *status = no_memory ? cgam_fail_nomem(env, "the document") : CGAM_OK;
    return no_memory || json_is_object(call->doc);
}

/* It did not answer. */
static cgam_status silent(cgam_env *env, const talk *t)
{
    return t->told || t->over ? CGAM_E_INTERRUPTED : lost(env, t->g);
}

/* Until it has answered. */
static cgam_status listen_to(cgam_server *server, talk *t, cgam_call *call, bool *alive)
{
    cgam_frame frame;
    while (get(t, &frame, sizeof frame)) {
        char *text = get_text(t, &frame);
        cgam_status status;
        if (!text) break;
        if (frame.kind == CGAM_FRAME_TOLD && !strpbrk(text, "\r\n")) { /* one event, not two */
            if (call->progress.to.report) cgam_asked_tell(t->asked, text);
            free(text);
            continue;
        }
        *alive = understand(server->env, &frame, text, call, &status);
        free(text);
        if (!*alive)
            return cgam_fail(server->env, CGAM_E_INTERNAL,
                             "what the process that the model ran in answered makes no sense; the "
                             "model may be damaged");
        pthread_mutex_lock(&server->guests_lock);
        t->g->kept = (size_t)frame.kept;
        pthread_mutex_unlock(&server->guests_lock);
        return status;
    }
    return silent(server->env, t);
}

bool cgam_guest_needed(const cgam_verb *verb)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++)
        if (p->input == CGAM_INPUT_MODEL) return true;
    return false;
}

cgam_status cgam_guest_ask(cgam_server *server, cgam_asked *asked, const cgam_wish *wish,
                           cgam_call *call)
{
    bool alive = false;
    const char *model = cgam_args_text(call->args, "model");
    guest *g = take(server, model ? model : "");
    if (!g) return CGAM_E_IO;
    talk t = {.g = g, .asked = asked};
    cgam_status status = send_work(&t, call->verb, wish) ? listen_to(server, &t, call, &alive)
                                                         : silent(server->env, &t);
    give_back(server, g, alive);
    return status;
}
