/* http.c: a connection, a request, its route. A request is judged by its head: host, origin, token, address,
 * size. What is refused is answered when its body, unread, has gone by, so that the answer arrives; only
 * a body that is much too large is cut off. */
#include "serve/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_FIRST = 1 << 12,
    BODIES = 4,      /* largest ones that may come at a time */
    PASSES_BY = 16,  /* times the largest: how much of a refused one is let go by */
    LEFT_SECONDS = 1 /* that what a client sent before it left may take to be read */
};

static const char ENDS[] = "the server ends";

/* ---- connections ------------------------------------------------------------------------------- */

static void name_address(const struct sockaddr *address, socklen_t size, char *to, size_t room)
{
    if (getnameinfo(address, size, to, (socklen_t)room, NULL, 0, NI_NUMERICHOST) != 0) *to = 0;
}

static cgam_line_in *line_new(cgam_server *server, struct MHD_Connection *connection)
{
    cgam_line_in *line = calloc(1, sizeof *line);
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    struct sockaddr *any = (struct sockaddr *)&address;
    if (!line) return NULL;
    line->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (getsockname(line->fd, any, &size) == 0)
        name_address(any, size, line->local, sizeof line->local);
    size = sizeof address;
    if (getpeername(line->fd, any, &size) == 0)
        name_address(any, size, line->remote, sizeof line->remote);
    atomic_store(&line->since, cgam_clock());
    pthread_mutex_lock(&server->lines_lock);
    line->next = server->lines;
    if (line->next) line->next->before = line;
    server->lines = line;
    pthread_mutex_unlock(&server->lines_lock);
    atomic_fetch_add(&server->lines_count, 1);
    return line;
}

static void line_free(cgam_server *server, cgam_line_in *line)
{
    if (!line) return;
    pthread_mutex_lock(&server->lines_lock);
    if (line->next) line->next->before = line->before;
    if (line->before) line->before->next = line->next;
    else server->lines = line->next;
    pthread_mutex_unlock(&server->lines_lock);
    atomic_fetch_sub(&server->lines_count, 1);
    free(line);
}

void cgam_http_connection(void *user, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) *state = line_new(user, connection);
    else {
        line_free(user, *state);
        *state = NULL;
    }
}

bool cgam_line_left(const cgam_line_in *line)
{
    struct pollfd at = {.fd = line->fd, .events = POLLRDHUP};
    return poll(&at, 1, 0) > 0; /* nothing else wakes it but an end or an error */
}

/* A client's last word may come together with a request, and libmicrohttpd, told once of both, then waits for more. */
void cgam_http_sweep(cgam_server *server, double seconds)
{
    double now = cgam_clock();
    pthread_mutex_lock(&server->lines_lock);
    for (cgam_line_in *line = server->lines; line; line = line->next) {
        double since = atomic_load(&line->since), waits = since > 0 ? now - since : 0;
        if (waits > seconds || (waits > LEFT_SECONDS && cgam_line_left(line)))
            shutdown(line->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->lines_lock);
}

/* ---- routes ------------------------------------------------------------------------------------ */

static enum MHD_Result answer_health(cgam_asked *asked)
{
    json_t *doc = json_object();
    cgam_json_put_text(doc, "status", "ok");
    cgam_json_put_text(doc, "version", cgam_version());
    return cgam_answer_json(asked, MHD_HTTP_OK, doc);
}

/* What this server has; the table of verbs, which is a hundred times larger, has it too. */
static json_t *describe(const cgam_server *server)
{
    json_t *doc = json_object(), *limits = json_object();
    cgam_json_put_text(doc, "version", cgam_version());
    cgam_house_describe(&server->house, doc);
    cgam_json_put_real(limits, "body_mb", (double)(server->body_max >> 20));
    cgam_json_put_int(limits, "requests", server->requests_max);
    cgam_json_put_real(limits, "seconds", server->timeout);
    cgam_json_put_real(limits, "out_seconds", server->out_timeout);
    cgam_json_put(doc, "limits", limits);
    return doc;
}

static enum MHD_Result answer_here(cgam_asked *asked)
{
    return cgam_answer_json(asked, MHD_HTTP_OK, describe(asked->server));
}

static enum MHD_Result answer_table(cgam_asked *asked)
{
    json_t *doc = describe(asked->server);
    cgam_json_put(doc, "verbs", cgam_help_json_list(NULL));
    return cgam_answer_json(asked, MHD_HTTP_OK, doc);
}

static enum MHD_Result answer_metrics(cgam_asked *asked)
{
    char *text = cgam_metrics_text(asked->server);
    return cgam_answer_text(asked, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
                            text ? strlen(text) : 0);
}

static enum MHD_Result answer_out(cgam_asked *asked)
{
    return cgam_answer_out(asked, asked->below);
}
static enum MHD_Result answer_page(cgam_asked *asked)
{
    return cgam_answer_page(asked, asked->below);
}

static enum MHD_Result answer_preflight(cgam_asked *asked)
{
    return cgam_answer_text(asked, MHD_HTTP_NO_CONTENT, NULL, strdup(""), 0);
}

/* The verb of "lm/sweep"; refuses the request where there is none. */
static void find_verb(cgam_asked *asked, const char *path)
{
    enum { WORDS = 4 };
    const char *words[WORDS];
    char text[80], *rest = text;
    int count = 0, used = 0;
    snprintf(text, sizeof text, "%s", path);
    for (char *word; count < WORDS && (word = strsep(&rest, "/"));) words[count++] = word;
    const cgam_verb *verb = cgam_verb_find(count, words, &used);
    if (verb && used == count) asked->verb = verb; /* none has four words, or 79 letters */
    if (asked->verb) asked->label = asked->verb->name;
    else asked->refused = MHD_HTTP_NOT_FOUND, asked->reason = "no such verb; GET /api lists them";
}

static void refuse(cgam_asked *asked, int code, const char *reason)
{
    if (!asked->refused) asked->refused = code, asked->reason = reason;
}

/* What stands behind an address. */
static void find_route(cgam_asked *asked, const char *url)
{
    bool get = strcmp(asked->method, "GET") == 0 || strcmp(asked->method, "HEAD") == 0;
    bool post = strcmp(asked->method, "POST") == 0;
    if (strcmp(asked->method, "OPTIONS") == 0) asked->route = answer_preflight;
    else if (get && strcmp(url, "/health") == 0) asked->route = answer_health;
    else if (get && (strcmp(url, "/api") == 0 || strcmp(url, "/api/") == 0))
        asked->route = answer_table;
    else if (get && strcmp(url, "/api/here") == 0) asked->route = answer_here;
    else if (get && asked->server->metrics && strcmp(url, "/metrics") == 0)
        asked->route = answer_metrics;
    else if (get && strncmp(url, "/api/out", 8) == 0 && (!url[8] || url[8] == '/')) {
        asked->route = answer_out;
        asked->below = asked->path + (url[8] ? 9 : 8);
    } else if (post && strncmp(url, "/api/", 5) == 0) find_verb(asked, url + 5);
    else if (get && strncmp(url, "/api", 4) == 0)
        refuse(asked, MHD_HTTP_NOT_FOUND, "nothing to get here; verbs are asked by POST");
    else if (get) {
        asked->route = answer_page;
        asked->below = asked->path + 1;
    } else refuse(asked, MHD_HTTP_NOT_FOUND, "there is nothing under this address");
}

static const char *header(cgam_asked *asked, const char *name)
{
    return MHD_lookup_connection_value(asked->connection, MHD_HEADER_KIND, name);
}

/* Headers of which a request has one at most; the first two say where it ends. */
static const char *const single[] = {"Content-Length", "Transfer-Encoding", "Host", "Origin",
                                     "Authorization"};
enum { SINGLES = sizeof single / sizeof *single, ENDS_IT = 2 };

typedef struct head {
    int counts[SINGLES];
    bool odd; /* a line is no name and value, or may be one of those above to others */
} head;

/* libmicrohttpd (0.9.75) takes a name for whatever stands before the colon, spaces too, and adds a line that begins with a
 * space, which others add to the value, to the name: "Content-Length:", " 5" is Content-Length5 to it. */
static enum MHD_Result look_at(void *user, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    static const char letters[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    head *h = user;
    (void)kind;
    h->odd |= !*name || name[strspn(name, letters)];
    for (const char *c = value; c && *c; c++)
        h->odd |= ((unsigned char)*c < ' ' && *c != '\t') || *c == '\x7f';
    for (int i = 0; i < SINGLES; i++) {
        bool same = strcasecmp(name, single[i]) == 0;
        h->counts[i] += same;
        h->odd |= !same && i < ENDS_IT && strncasecmp(name, single[i], strlen(single[i])) == 0;
    }
    return MHD_YES;
}

/* Can the head be read in two ways? A proxy in front could have read the other: which host, whose token, and where the
 * next request begins. */
static bool ambiguous(cgam_asked *asked)
{
    head h = {0};
    MHD_get_connection_values(asked->connection, MHD_HEADER_KIND, look_at, &h);
    const char *coding = header(asked, "Transfer-Encoding");
    bool twice = h.counts[0] && h.counts[1];
    for (int i = 0; i < SINGLES; i++) twice |= h.counts[i] > 1;
    if (twice)
        refuse(asked, MHD_HTTP_BAD_REQUEST,
               "Content-Length, Transfer-Encoding, Host, Origin and Authorization are given "
               "once at most, and one of the first two");
    if (h.odd)
        refuse(asked, MHD_HTTP_BAD_REQUEST,
               "lines of the head are NAME: VALUE, with no space in or before the name and no "
               "control characters in the value");
    if (coding && strcasecmp(coding, "chunked") != 0)
        refuse(asked, MHD_HTTP_BAD_REQUEST, "Transfer-Encoding is chunked, or not given");
    return asked->refused;
}

/* Judges a request by its head. */
static void judge(cgam_asked *asked, const char *url)
{
    cgam_server *server = asked->server;
    const char *local = asked->line ? asked->line->local : NULL, *origin = header(asked, "Origin");
    const char *site = header(asked, "Sec-Fetch-Site"), *accept = header(asked, "Accept");
    bool cors = cgam_guard_cors(&server->guard, origin);
    bool inside = strncmp(url, "/api", 4) == 0 || strncmp(url, "/metrics", 8) == 0;
    if (!cgam_guard_host(&server->guard, header(asked, "Host"), local))
        refuse(asked, MHD_HTTP_FORBIDDEN,
               "the Host asked for is not one this server answers under");
    if (!cgam_guard_origin(&server->guard, origin, local))
        refuse(asked, MHD_HTTP_FORBIDDEN, "pages of this Origin may not ask here");
    if (inside && !cors && site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        refuse(asked, MHD_HTTP_FORBIDDEN, "pages of other sites may not ask here");
    if (strcmp(asked->method, "OPTIONS") == 0 && !cors)
        refuse(asked, MHD_HTTP_NOT_FOUND, "there is nothing under this address");
    else if (inside && strcmp(asked->method, "OPTIONS") != 0 &&
             !cgam_guard_token(&server->guard, header(asked, "Authorization")))
        refuse(asked, MHD_HTTP_UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN");
    if (atomic_load(&server->draining)) refuse(asked, MHD_HTTP_SERVICE_UNAVAILABLE, ENDS);
    if (strlen(url) >= sizeof asked->path)
        refuse(asked, MHD_HTTP_NOT_FOUND, "there is nothing under this address");
    if (!asked->refused) find_route(asked, url);
    asked->events = accept && strstr(accept, "text/event-stream");
}

/* ---- a request --------------------------------------------------------------------------------- */

static cgam_asked *asked_new(cgam_server *server, struct MHD_Connection *connection,
                             const char *url, const char *method)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE"};
    cgam_asked *asked = calloc(1, sizeof *asked);
    if (!asked) return NULL;
    asked->server = server;
    asked->connection = connection;
    asked->line =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    asked->label = "";
    asked->method = "other";
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0) asked->method = methods[i];
    snprintf(asked->path, sizeof asked->path, "%s", url);
    asked->begun = cgam_clock();
    asked->limit = server->timeout;
    atomic_init(&asked->holders, 1);
    asked->waited_for = !atomic_load(&server->draining);
    if (asked->waited_for) atomic_fetch_add(&server->asked_count, 1);
    pthread_mutex_init(&asked->lock, NULL);
    if (asked->line) atomic_store(&asked->line->since, asked->begun);
    return asked;
}

/* Room for more of the body, within what one request and all of them together may have. */
static bool grow(cgam_asked *asked, size_t size)
{
    cgam_server *server = asked->server;
    size_t room = asked->room ? asked->room : BODY_FIRST;
    while (room < size) room *= 2;
    size_t more = room - asked->room;
    if (atomic_fetch_add(&server->body_bytes, more) + more >
        BODIES * server->body_max + (64u << 20)) {
        atomic_fetch_sub(&server->body_bytes, more);
        refuse(asked, MHD_HTTP_TOO_MANY_REQUESTS, "too much is being sent at the moment");
        return false;
    }
    char *body = realloc(asked->body, room);
    if (!body) {
        atomic_fetch_sub(&server->body_bytes, more);
        refuse(asked, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory: a request");
        return false;
    }
    asked->body = body;
    asked->room = room;
    return true;
}

static void take_body(cgam_asked *asked, const char *bytes, size_t size)
{
    if (!asked->refused && asked->size + size > asked->server->body_max)
        refuse(asked, MHD_HTTP_CONTENT_TOO_LARGE, "the request is larger than --max-body");
    if (asked->refused || !asked->verb) return;
    if (asked->size + size > asked->room && !grow(asked, asked->size + size)) return;
    memcpy(asked->body + asked->size, bytes, size);
    asked->size += size;
}

/* Refuses a body that says it is too large. Is it so large, or its sender so polite as to ask, that it
 * need not come at all? */
static bool cut_off(cgam_asked *asked)
{
    size_t most = asked->server->body_max;
    const char *text = header(asked, "Content-Length");
    unsigned long long length = text ? strtoull(text, NULL, 10) : 0;
    if (length <= most) return false;
    refuse(asked, MHD_HTTP_CONTENT_TOO_LARGE, "the request is larger than --max-body");
    return length > PASSES_BY * most || header(asked, "Expect");
}

/* The body is there. */
static enum MHD_Result dispatch(cgam_asked *asked)
{
    if (asked->line) atomic_store(&asked->line->since, 0);
    if (asked->refused) return cgam_answer_error(asked, asked->refused, asked->reason);
    (void)cgam_json_ran_short(); /* of a request before */
    if (asked->route) return asked->route(asked);
    if (!asked->line) return MHD_NO;
    if (cgam_work_add(asked->server, asked)) return MHD_YES;
    if (atomic_load(&asked->server->draining))
        return cgam_answer_error(asked, MHD_HTTP_SERVICE_UNAVAILABLE, ENDS);
    return cgam_answer_error(asked, MHD_HTTP_TOO_MANY_REQUESTS,
                             "as many verbs as --max-requests allows are at work");
}

/* The worker has something to say. */
static enum MHD_Result hand_on(cgam_asked *asked)
{
    pthread_mutex_lock(&asked->lock);
    bool stream = asked->stage == CGAM_STAGE_STREAM || (asked->events && asked->code == 0);
    char *text = stream ? NULL : asked->text;
    if (!stream) asked->text = NULL;
    pthread_mutex_unlock(&asked->lock);
    if (stream) return cgam_answer_events(asked);
    if (!text) return cgam_answer_error(asked, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    return cgam_answer_text(asked, asked->code, "application/json", text, asked->text_size);
}

enum MHD_Result cgam_http_handle(void *user, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **state)
{
    (void)version;
    cgam_asked *asked = *state;
    if (!asked) {
        *state = asked = asked_new(user, connection, url, method);
        if (!asked) return MHD_NO;
        bool close = ambiguous(asked); /* what follows the head is not looked at */
        judge(asked, url);
        asked->stage = CGAM_STAGE_BODY;
        if (cut_off(asked) || close) return cgam_answer_error(asked, asked->refused, asked->reason);
        return MHD_YES;
    }
    if (*upload_size > 0) {
        take_body(asked, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    pthread_mutex_lock(&asked->lock);
    cgam_stage stage = asked->stage;
    pthread_mutex_unlock(&asked->lock);
    if (stage == CGAM_STAGE_WAITING) return MHD_YES;
    return stage == CGAM_STAGE_BODY ? dispatch(asked) : hand_on(asked);
}

void cgam_http_completed(void *user, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how)
{
    (void)connection;
    (void)how;
    cgam_asked *asked = *state;
    if (!asked) return;
    *state = NULL;
    if (asked->line) atomic_store(&asked->line->since, cgam_clock());
    pthread_mutex_lock(&asked->lock);
    asked->gone = true;
    asked->connection = NULL;
    pthread_mutex_unlock(&asked->lock);
    cgam_count_request(user, asked);
    if (asked->waited_for) atomic_fetch_sub(&asked->server->asked_count, 1);
    cgam_asked_release(asked);
}
