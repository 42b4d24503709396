/* http.c: connections, requests and routes. A request is checked by its head: host, origin, token, address,
 * size. The answer to a rejected request is sent after its body has been skipped, so that the client receives it; only
 * a body far beyond the limit is cut off. */
#include "serve/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_FIRST = 1 << 12,
    BODIES = 4,      /* of the largest size that may arrive at a time */
    PASSES_BY = 16,  /* times the largest: how much of a rejected body is skipped */
    LEFT_SECONDS = 1 /* for reading what a client sent before it left */
};

static const char ENDS[] = "the server is shutting down";

/* ---- connections ------------------------------------------------------------------------------- */

static void name_address(const struct sockaddr *address, socklen_t size, char *to, size_t capacity)
{
    if (getnameinfo(address, size, to, (socklen_t)capacity, NULL, 0, NI_NUMERICHOST) != 0) *to = 0;
}

static cgam_client *client_new(cgam_server *server, struct MHD_Connection *connection)
{
    cgam_client *client = calloc(1, sizeof *client);
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    struct sockaddr *any = (struct sockaddr *)&address;
    if (!client) return NULL;
    client->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (getsockname(client->fd, any, &size) == 0)
        name_address(any, size, client->local, sizeof client->local);
    size = sizeof address;
    if (getpeername(client->fd, any, &size) == 0)
        name_address(any, size, client->remote, sizeof client->remote);
    atomic_store(&client->since, cgam_clock());
    pthread_mutex_lock(&server->clients_lock);
    client->next = server->clients;
    if (client->next) client->next->before = client;
    server->clients = client;
    pthread_mutex_unlock(&server->clients_lock);
    atomic_fetch_add(&server->clients_count, 1);
    return client;
}

static void client_free(cgam_server *server, cgam_client *client)
{
    if (!client) return;
    pthread_mutex_lock(&server->clients_lock);
    if (client->next) client->next->before = client->before;
    if (client->before) client->before->next = client->next;
    else server->clients = client->next;
    pthread_mutex_unlock(&server->clients_lock);
    atomic_fetch_sub(&server->clients_count, 1);
    free(client);
}

void cgam_http_connection(void *user, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) *state = client_new(user, connection);
    else {
        client_free(user, *state);
        *state = NULL;
    }
}

bool cgam_client_left(const cgam_client *client)
{
    struct pollfd at = {.fd = client->fd, .events = POLLRDHUP};
    return poll(&at, 1, 0) > 0; /* wakes only for an end or an error */
}

/* A client may close its side together with a request; libmicrohttpd, notified once of both, then waits for more. */
void cgam_http_sweep(cgam_server *server, double seconds)
{
    double now = cgam_clock();
    pthread_mutex_lock(&server->clients_lock);
    for (cgam_client *client = server->clients; client; client = client->next) {
        double since = atomic_load(&client->since), waits = since > 0 ? now - since : 0;
        if (waits > seconds || (waits > LEFT_SECONDS && cgam_client_left(client)))
            shutdown(client->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&server->clients_lock);
}

/* ---- routes ------------------------------------------------------------------------------------ */

static enum MHD_Result answer_health(cgam_exchange *exchange)
{
    json_t *doc = cgam_json_object("status=%s version=%s", "ok", cgam_version());
    return cgam_answer_json(exchange, MHD_HTTP_OK, doc);
}

/* What this server has; also part of the table of verbs, which is a hundred times larger. */
static json_t *describe_server(const cgam_server *server)
{
    json_t *doc = json_object(), *limits = json_object();
    cgam_json_put_text(doc, "version", cgam_version());
    cgam_catalog_describe(&server->catalog, doc);
    cgam_json_add(limits, "body_mb=%g requests=%d queries=%jd rows=%jd seconds=%g out_seconds=%g",
                  (double)(server->body_max >> 20), server->requests_max,
                  (intmax_t)server->queries_max, (intmax_t)server->rows_max, server->timeout,
                  server->out_timeout);
    cgam_json_put(doc, "limits", limits);
    return doc;
}

static enum MHD_Result answer_here(cgam_exchange *exchange)
{
    return cgam_answer_json(exchange, MHD_HTTP_OK, describe_server(exchange->server));
}

static enum MHD_Result answer_table(cgam_exchange *exchange)
{
    json_t *doc = describe_server(exchange->server);
    cgam_json_put(doc, "verbs", cgam_help_json_list(NULL));
    return cgam_answer_json(exchange, MHD_HTTP_OK, doc);
}

static enum MHD_Result answer_metrics(cgam_exchange *exchange)
{
    char *text = cgam_metrics_text(exchange->server);
    return cgam_answer_text(exchange, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
                            text ? strlen(text) : 0);
}

static enum MHD_Result answer_out(cgam_exchange *exchange)
{
    return cgam_answer_out(exchange, exchange->below);
}
static enum MHD_Result answer_page(cgam_exchange *exchange)
{
    return cgam_answer_page(exchange, exchange->below);
}

static enum MHD_Result answer_preflight(cgam_exchange *exchange)
{
    return cgam_answer_text(exchange, MHD_HTTP_NO_CONTENT, NULL, strdup(""), 0);
}

/* Finds the verb of "lm/sweep"; rejects the request if there is none. */
static void find_verb(cgam_exchange *exchange, const char *path)
{
    enum { WORDS = 4 };
    const char *words[WORDS];
    char text[80], *rest = text;
    int count = 0, used = 0;
    snprintf(text, sizeof text, "%s", path);
    for (char *word; count < WORDS && (word = strsep(&rest, "/"));) words[count++] = word;
    const cgam_verb *verb = cgam_verb_find(count, words, &used);
    if (verb && used == count) exchange->verb = verb; /* no verb has four words or 79 letters */
    if (exchange->verb) exchange->label = exchange->verb->name;
    else
        exchange->refused = MHD_HTTP_NOT_FOUND,
        exchange->reason = "no such verb; GET /api lists them";
}

static void reject(cgam_exchange *exchange, int code, const char *reason)
{
    if (!exchange->refused) exchange->refused = code, exchange->reason = reason;
}

/* The handler of an address. */
static void find_route(cgam_exchange *exchange, const char *url)
{
    bool get = strcmp(exchange->method, "GET") == 0 || strcmp(exchange->method, "HEAD") == 0;
    bool post = strcmp(exchange->method, "POST") == 0;
    if (strcmp(exchange->method, "OPTIONS") == 0) exchange->route = answer_preflight;
    else if (get && strcmp(url, "/health") == 0) exchange->route = answer_health;
    else if (get && (strcmp(url, "/api") == 0 || strcmp(url, "/api/") == 0))
        exchange->route = answer_table;
    else if (get && strcmp(url, "/api/here") == 0) exchange->route = answer_here;
    else if (get && exchange->server->metrics && strcmp(url, "/metrics") == 0)
        exchange->route = answer_metrics;
    else if (get && strncmp(url, "/api/out", 8) == 0 && (!url[8] || url[8] == '/')) {
        exchange->route = answer_out;
        exchange->below = exchange->path + (url[8] ? 9 : 8);
    } else if (post && strncmp(url, "/api/", 5) == 0) find_verb(exchange, url + 5);
    else if (get && strncmp(url, "/api", 4) == 0)
        reject(exchange, MHD_HTTP_NOT_FOUND, "not a page; call verbs with POST");
    else if (get) {
        exchange->route = answer_page;
        exchange->below = exchange->path + 1;
    } else reject(exchange, MHD_HTTP_NOT_FOUND, "not found");
}

static const char *header_value(cgam_exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* Headers of which a request has one at most; the first two say where it ends. */
static const char *const single[] = {"Content-Length", "Transfer-Encoding", "Host", "Origin",
                                     "Authorization"};
enum { SINGLES = sizeof single / sizeof *single, ENDS_IT = 2 };

typedef struct head {
    int counts[SINGLES];
    bool odd; /* a line is not NAME: VALUE, or other readers may take it for one of the above */
} head;

/* libmicrohttpd (0.9.75) takes everything before the colon as the name, with spaces, and appends a line that begins with a
 * space, which others append to the value, to the name: "Content-Length:", " 5" is Content-Length5 to it. */
static enum MHD_Result check_header(void *user, enum MHD_ValueKind kind, const char *name,
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

/* Can the head be read in two ways? A proxy in front may have read it differently: which host, which token, and where the
 * next request begins. */
static bool is_ambiguous(cgam_exchange *exchange)
{
    head h = {0};
    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, check_header, &h);
    const char *coding = header_value(exchange, "Transfer-Encoding");
    bool twice = h.counts[0] && h.counts[1];
    for (int i = 0; i < SINGLES; i++) twice |= h.counts[i] > 1;
    if (twice)
        reject(exchange, MHD_HTTP_BAD_REQUEST,
               "duplicate Content-Length, Transfer-Encoding, Host, Origin or Authorization, or "
               "both of the first two");
    if (h.odd)
        reject(exchange, MHD_HTTP_BAD_REQUEST, "malformed header line (expected NAME: VALUE)");
    if (coding && strcasecmp(coding, "chunked") != 0)
        reject(exchange, MHD_HTTP_BAD_REQUEST, "unsupported Transfer-Encoding (only chunked)");
    return exchange->refused;
}

/* Checks the head of a request and finds its route. */
static void check_head(cgam_exchange *exchange, const char *url)
{
    cgam_server *server = exchange->server;
    const char *local = exchange->client ? exchange->client->local : NULL,
               *origin = header_value(exchange, "Origin");
    const char *site = header_value(exchange, "Sec-Fetch-Site"),
               *accept = header_value(exchange, "Accept");
    bool cors = cgam_guard_cors(&server->guard, origin);
    bool inside = strncmp(url, "/api", 4) == 0 || strncmp(url, "/metrics", 8) == 0;
    if (!cgam_guard_host(&server->guard, header_value(exchange, "Host"), local))
        reject(exchange, MHD_HTTP_FORBIDDEN,
               "this server does not serve this Host (see --allow-host)");
    if (!cgam_guard_origin(&server->guard, origin, local))
        reject(exchange, MHD_HTTP_FORBIDDEN,
               "requests from this Origin are not allowed (see --allow-origin)");
    if (inside && !cors && site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        reject(exchange, MHD_HTTP_FORBIDDEN, "requests from pages of other sites are not allowed");
    if (strcmp(exchange->method, "OPTIONS") == 0 && !cors)
        reject(exchange, MHD_HTTP_NOT_FOUND, "not found");
    else if (inside && strcmp(exchange->method, "OPTIONS") != 0 &&
             !cgam_guard_token(&server->guard, header_value(exchange, "Authorization")))
        reject(exchange, MHD_HTTP_UNAUTHORIZED, "a token is required: Authorization: Bearer TOKEN");
    if (atomic_load(&server->draining)) reject(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, ENDS);
    if (strlen(url) >= sizeof exchange->path) reject(exchange, MHD_HTTP_NOT_FOUND, "not found");
    if (!exchange->refused) find_route(exchange, url);
    exchange->events = accept && strstr(accept, "text/event-stream");
}

/* ---- a request --------------------------------------------------------------------------------- */

static cgam_exchange *exchange_new(cgam_server *server, struct MHD_Connection *connection,
                                   const char *url, const char *method)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE"};
    cgam_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange) return NULL;
    exchange->server = server;
    exchange->connection = connection;
    exchange->client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    exchange->label = "";
    exchange->method = "other";
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0) exchange->method = methods[i];
    snprintf(exchange->path, sizeof exchange->path, "%s", url);
    exchange->begun = cgam_clock();
    exchange->limit = server->timeout;
    atomic_init(&exchange->holders, 1);
    exchange->waited_for = !atomic_load(&server->draining);
    if (exchange->waited_for) atomic_fetch_add(&server->exchange_count, 1);
    pthread_mutex_init(&exchange->lock, NULL);
    if (exchange->client) atomic_store(&exchange->client->since, exchange->begun);
    return exchange;
}

/* Grows the buffer of the body, within the limits of one request and of all together. */
static bool grow_body(cgam_exchange *exchange, size_t size)
{
    cgam_server *server = exchange->server;
    size_t capacity = exchange->capacity ? exchange->capacity : BODY_FIRST;
    while (capacity < size) capacity *= 2;
    size_t more = capacity - exchange->capacity;
    if (atomic_fetch_add(&server->body_bytes, more) + more >
        BODIES * server->body_max + (64u << 20)) {
        atomic_fetch_sub(&server->body_bytes, more);
        reject(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "too many large requests at the moment");
        return false;
    }
    char *body = realloc(exchange->body, capacity);
    if (!body) {
        atomic_fetch_sub(&server->body_bytes, more);
        reject(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory: a request");
        return false;
    }
    exchange->body = body;
    exchange->capacity = capacity;
    return true;
}

static void append_body(cgam_exchange *exchange, const char *bytes, size_t size)
{
    if (!exchange->refused && exchange->size + size > exchange->server->body_max)
        reject(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the request is larger than --max-body");
    if (exchange->refused || !exchange->verb) return;
    if (exchange->size + size > exchange->capacity && !grow_body(exchange, exchange->size + size))
        return;
    memcpy(exchange->body + exchange->size, bytes, size);
    exchange->size += size;
}

/* Rejects a body whose declared size is too large. True if it need not be read at all: it is much too large,
 * or its sender waits for our consent (Expect). */
static bool reject_large_body(cgam_exchange *exchange)
{
    size_t most = exchange->server->body_max;
    const char *text = header_value(exchange, "Content-Length");
    unsigned long long length = text ? strtoull(text, NULL, 10) : 0;
    if (length <= most) return false;
    reject(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the request is larger than --max-body");
    return length > PASSES_BY * most || header_value(exchange, "Expect");
}

/* The body is complete. */
static enum MHD_Result dispatch(cgam_exchange *exchange)
{
    if (exchange->client) atomic_store(&exchange->client->since, 0);
    if (exchange->refused) return cgam_answer_error(exchange, exchange->refused, exchange->reason);
    (void)cgam_json_ran_short(); /* of an earlier request */
    if (exchange->route) return exchange->route(exchange);
    if (!exchange->client) return MHD_NO;
    if (cgam_work_add(exchange->server, exchange)) return MHD_YES;
    if (atomic_load(&exchange->server->draining))
        return cgam_answer_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, ENDS);
    return cgam_answer_error(exchange, MHD_HTTP_TOO_MANY_REQUESTS,
                             "too many verbs are running (--max-requests)");
}

/* The worker has an answer or events. */
static enum MHD_Result answer_from_worker(cgam_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    bool stream = exchange->stage == CGAM_STAGE_STREAM || (exchange->events && exchange->code == 0);
    char *text = stream ? NULL : exchange->text;
    if (!stream) exchange->text = NULL;
    pthread_mutex_unlock(&exchange->lock);
    if (stream) return cgam_answer_events(exchange);
    if (!text) return cgam_answer_error(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    return cgam_answer_text(exchange, exchange->code, "application/json", text,
                            exchange->text_size);
}

enum MHD_Result cgam_http_handle(void *user, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **state)
{
    (void)version;
    cgam_exchange *exchange = *state;
    if (!exchange) {
        *state = exchange = exchange_new(user, connection, url, method);
        if (!exchange) return MHD_NO;
        bool close = is_ambiguous(exchange); /* what follows the head is not read */
        check_head(exchange, url);
        exchange->stage = CGAM_STAGE_BODY;
        if (reject_large_body(exchange) || close)
            return cgam_answer_error(exchange, exchange->refused, exchange->reason);
        return MHD_YES;
    }
    if (*upload_size > 0) {
        append_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    pthread_mutex_lock(&exchange->lock);
    cgam_stage stage = exchange->stage;
    pthread_mutex_unlock(&exchange->lock);
    if (stage == CGAM_STAGE_WAITING) return MHD_YES;
    return stage == CGAM_STAGE_BODY ? dispatch(exchange) : answer_from_worker(exchange);
}

void cgam_http_completed(void *user, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how)
{
    (void)connection;
    (void)how;
    cgam_exchange *exchange = *state;
    if (!exchange) return;
    *state = NULL;
    if (exchange->client) atomic_store(&exchange->client->since, cgam_clock());
    pthread_mutex_lock(&exchange->lock);
    exchange->gone = true;
    exchange->connection = NULL;
    pthread_mutex_unlock(&exchange->lock);
    cgam_count_request(user, exchange);
    if (exchange->waited_for) atomic_fetch_sub(&exchange->server->exchange_count, 1);
    cgam_exchange_release(exchange);
}
