/* Any bytes as what a client sends. The server answers with HTTP or hangs up; without the token it gives out nothing of the API,
 * under a foreign name nothing at all. Verbs are not run: bodies have a target of their own (request). */
#include "fuzz/readers.h"

#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BODY = 1 << 16, HEAD = 32 << 10, ANSWER = 1 << 20 };

static cgam_server server;

static size_t leave(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user;
    (void)connection;
    return strlen(text);
}

static void open_server(void)
{
    static char id[] = "demo", path[] = CGAM_DEMO_PREFIX;
    static cgam_catalog_entry demo = {CGAM_INPUT_BANK, id, path};
    cgam_bank *bank;
    server = (cgam_server){.env = fuzz_env(), .body_max = BODY, .timeout = 1, .metrics = true};
    pthread_mutex_init(&server.clients_lock, NULL);
    pthread_mutex_init(&server.work_lock, NULL);
    pthread_mutex_init(&server.counts_lock, NULL);
    pthread_mutex_init(&server.pool_lock, NULL);
    server.catalog = (cgam_catalog){.env = server.env, .entries = &demo, .count = 1};
    must(cgam_shelf_new(server.env, 0, &server.catalog.shelf) == CGAM_OK &&
         cgam_demo_bank(server.env, 1, &bank) == CGAM_OK &&
         cgam_shelf_add(server.catalog.shelf, path, bank) == CGAM_OK);
    memset(server.guard.hash, 7, sizeof server.guard.hash); /* of no token that anyone has */
    snprintf(server.guard.host, sizeof server.guard.host, "127.0.0.1");
    server.guard.port = 80;
    server.daemon = MHD_start_daemon(
        MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, cgam_http_handle,
        &server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD,
        MHD_OPTION_UNESCAPE_CALLBACK, leave, NULL, MHD_OPTION_NOTIFY_COMPLETED, cgam_http_completed,
        &server, MHD_OPTION_NOTIFY_CONNECTION, cgam_http_connection, &server, MHD_OPTION_END);
    must(server.daemon != NULL);
}

/* What came back, into to[room]; its size. The server hangs up, since the client has. */
static size_t converse(const uint8_t *data, size_t size, char *to, size_t room)
{
    int ends[2];
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    size_t sent = 0, got = 0;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    must(MHD_add_connection(server.daemon, ends[0], (struct sockaddr *)&from, sizeof from) ==
         MHD_YES);
    for (int idle = 0; idle < 3;) {
        ssize_t n = sent < size ? send(ends[1], data + sent, size - sent, MSG_NOSIGNAL) : 0;
        if (n > 0) sent += (size_t)n;
        if (sent == size || (n < 0 && errno != EAGAIN)) shutdown(ends[1], SHUT_WR);
        MHD_run(server.daemon);
        ssize_t read = recv(ends[1], to + got, room - got, 0);
        if (read > 0) got += (size_t)read;
        if (read == 0 || got == room) break;
        idle = n > 0 || read > 0 ? 0 : idle + 1;
    }
    close(ends[1]);
    for (int i = 0; i < 3; i++) MHD_run(server.daemon);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[ANSWER + 1];
    if (!server.daemon) open_server();
    size_t got = converse(data, size, answer, ANSWER);
    answer[got] = '\0';
    must(got == 0 || strncmp(answer, "HTTP/1.", 7) == 0);
    must(!strstr(answer, "\"banks\"") && !strstr(answer, "cgam_requests")); /* needs the token */
    must(atomic_load(&server.body_bytes) <= 4 * BODY + (64u << 20));
    return 0;
}
