/* serve.c: the server from its options to its end. It listens before it prints its address, answers until a
 * signal stops it, waits for running verbs, and ends all processes it started. */
#include "serve/model_process.h"

#include "lab/child.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    CONNECTIONS = 4096,  /* at most; fewer if fewer files may be open */
    FILES_KEPT = 128,    /* for everything else */
    HEAD_MAX = 32 << 10, /* bytes of a request's head, and of what is sent at a time */
    READ_SECONDS = 30,   /* for a request to arrive, and between two */
    DRAIN_SECONDS = 10,  /* for verbs to end by themselves */
    SEND_SECONDS = 5,    /* for their answers to go */
    TICK_MS = 100,
    MACHINE = 3, /* the exit status when a verb did not stop */
    BACKLOG = 1024
};

/* A socket that listens; -1 with a message. */
static int listen_on(cgam_env *env, const char *host, int port, bool *six)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &hints, &found), fd = -1, on = 1;
    if (error) {
        (void)cgam_fail(env, CGAM_E_ARG, "host %s: %s", host, gai_strerror(error));
        return -1;
    }
    *six = found->ai_family == AF_INET6;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool fine = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    if (!fine) {
        char text[128];
        (void)cgam_fail(env, CGAM_E_ARG, "host %s, port %d: %s", host, port,
                        strerror_r(errno, text, sizeof text));
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int port_of(int fd)
{
    char text[8];
    union {
        struct sockaddr any;
        struct sockaddr_in6 largest;
    } address = {0};
    socklen_t size = sizeof address;
    if (getsockname(fd, &address.any, &size) != 0 ||
        getnameinfo(&address.any, size, NULL, 0, text, sizeof text, NI_NUMERICSERV) != 0)
        return 0;
    return (int)strtol(text, NULL, 10);
}

/* As many connections as files may be open. */
static unsigned connection_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 256;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur > CONNECTIONS + FILES_KEPT) return CONNECTIONS;
    return files.rlim_cur > 2 * FILES_KEPT ? (unsigned)files.rlim_cur - FILES_KEPT : FILES_KEPT;
}

/* Our addresses need no escapes, so none is decoded: %00 and %2f have no meaning. */
static size_t keep_escapes(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user;
    (void)connection;
    return strlen(text);
}

/* Threads of the server block all signals, so that the caller's thread gets them. */
static cgam_status start_server(cgam_server *server, int fd, bool six)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), workers = 2 * cores + 2;
    if (workers > server->requests_max) workers = server->requests_max;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     (six ? (unsigned)MHD_USE_IPv6 : 0u);
    unsigned pool = cores < 2 ? 2u : cores > 4 ? 4u : (unsigned)cores;
    cgam_status status = cgam_work_start(server, workers);
    if (status == CGAM_OK) {
        server->daemon = MHD_start_daemon(
            flags, 0, NULL, NULL, cgam_http_handle, server, MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_THREAD_POOL_SIZE, pool, MHD_OPTION_STRICT_FOR_CLIENT, 1,
            MHD_OPTION_CONNECTION_LIMIT, connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)READ_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MAX,
            MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED,
            cgam_http_completed, server, MHD_OPTION_NOTIFY_CONNECTION, cgam_http_connection, server,
            MHD_OPTION_END);
        if (!server->daemon)
            status = cgam_fail(server->env, CGAM_E_IO, "the server could not be started");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* "http://127.0.0.1:8080/#token=.." into text. */
static void make_url(const cgam_guard *guard, char *text, size_t size)
{
    bool six = strchr(guard->host, ':') != NULL;
    snprintf(text, size, "http://%s%s%s:%d/%s%s", six ? "[" : "", guard->host, six ? "]" : "",
             guard->port, guard->open ? "" : "#token=", guard->open ? "" : guard->token);
}

/* Prints the address: on standard error if standard output takes the JSON document. */
static cgam_status announce(cgam_call *call, const cgam_server *server)
{
    char url[CGAM_TOKEN_MAX + 160];
    make_url(&server->guard, url, sizeof url);
    FILE *to = !call->out || cgam_args_flag(call->args, "json") ? stderr : call->out;
    if (!cgam_address_is_loopback(server->guard.host))
        fprintf(
            stderr,
            "cgam serve: host %s is open to other machines, and the token travels in clear; put "
            "a proxy with TLS in front\n",
            server->guard.host);
    if (fprintf(to, "%s\n", url) < 0 || fflush(to) != 0)
        return cgam_fail(server->env, CGAM_E_IO, "cannot write to standard output");
    if (cgam_args_flag(call->args, "open")) {
        const char *const words[] = {"xdg-open", url, NULL};
        cgam_child child = {.argv = words, .apart = true}; /* it may stay as long as we do */
        pid_t pid;
        if (cgam_child_start(&child, &pid) != 0)
            fprintf(stderr, "cgam serve: no browser could be opened; the address is above\n");
    }
    return CGAM_OK;
}

/* Waits for the signal to stop. */
static void wait_for_end(cgam_call *call, cgam_server *server)
{
    double most = server->timeout < READ_SECONDS ? server->timeout : READ_SECONDS;
    while (!cgam_interrupted(call->env)) {
        (void)poll(NULL, 0, TICK_MS);
        cgam_http_sweep(server, most);
        cgam_work_sweep(server);
    }
}

/* Verbs that do not stop hold the env and its threads: nothing can be freed. Their requests are answered. */
static void end_at_once(int left)
{
    cgam_outfiles_remove_temporary();
    fprintf(stderr, "cgam serve: ended while %d verb%s still ran\n", left, left == 1 ? "" : "s");
    _exit(MACHINE);
}

/* New requests are answered with 503 meanwhile. MHD_quiesce_daemon would leave them waiting, and races with
 * its own epoll: now and then it ends the process ("Failed to remove listen FD", 0.9.75 and later). */
static void stop_server(cgam_server *server)
{
    atomic_store(&server->draining, true);
    int left = cgam_work_drain(server, DRAIN_SECONDS);
    double until = cgam_clock() + SEND_SECONDS;
    while (atomic_load(&server->exchange_count) > 0 && cgam_clock() < until) (void)poll(NULL, 0, 5);
    if (left > 0) end_at_once(left);
    if (server->daemon) MHD_stop_daemon(server->daemon);
    cgam_work_stop(server);
    cgam_model_pool_end(server);
}

static void put_summary(cgam_call *call, const cgam_server *server)
{
    cgam_json_add(call->doc, "port=%d requests=%jd seconds=%g", server->guard.port,
                  server->requests, cgam_clock() - server->started);
}

/* Once the server listens, a signal ends the server and not the verbs that run. */
static cgam_status serve(cgam_call *call, cgam_server *server)
{
    bool six = false;
    int port = (int)cgam_args_int(call->args, "port");
    cgam_status status = cgam_catalog_open(call, server->env, &server->catalog);
    if (status != CGAM_OK) return status;
    int fd = listen_on(server->env, server->guard.host, port, &six);
    if (fd < 0) return CGAM_E_ARG;
    server->guard.port = port_of(fd);
    status = start_server(server, fd, six);
    if (status == CGAM_OK) status = announce(call, server);
    atomic_store(&server->listening, true);
    if (status == CGAM_OK) wait_for_end(call, server);
    stop_server(server);
    if (!server->daemon) close(fd);
    if (status == CGAM_OK) put_summary(call, server);
    return status;
}

/* Before the server listens, a signal stops the opening of banks. */
static bool interrupted(void *user)
{
    cgam_server *server = user;
    return !atomic_load(&server->listening) && cgam_interrupted(server->caller);
}

static cgam_status run_serve(cgam_call *call)
{
    if (cgam_args_flag(call->args, "guest")) return cgam_model_process_run(call);
    cgam_server server = {.caller = call->env,
                          .started = cgam_clock(),
                          .body_max = (size_t)cgam_args_int(call->args, "max-body") << 20,
                          .queries_max = cgam_args_int(call->args, "max-queries"),
                          .rows_max = cgam_args_int(call->args, "max-rows"),
                          .requests_max = (int)cgam_args_int(call->args, "max-requests"),
                          .timeout = cgam_args_real(call->args, "timeout"),
                          .out_timeout = cgam_args_real(call->args, "out-timeout"),
                          .model_memory = cgam_args_int(call->args, "model-memory"),
                          .metrics = cgam_args_flag(call->args, "metrics"),
                          .log = cgam_args_flag(call->args, "log"),
                          .clients_lock = PTHREAD_MUTEX_INITIALIZER,
                          .work_lock = PTHREAD_MUTEX_INITIALIZER,
                          .counts_lock = PTHREAD_MUTEX_INITIALIZER,
                          .pool_lock = PTHREAD_MUTEX_INITIALIZER,
                          .work_there = PTHREAD_COND_INITIALIZER};
    pthread_condattr_t steady; /* limits of time do not follow a clock that is set */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&server.work_done, &steady);
    pthread_condattr_destroy(&steady);
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = cgam_env_threads(call->env);
    opts.interrupted = interrupted;
    opts.user = &server;
    cgam_status status = cgam_guard_open(call, &server.guard);
    if (status == CGAM_OK) {
        status = cgam_env_new(&opts, &server.env);
        if (status != CGAM_OK) (void)cgam_fail(call->env, status, "%s", cgam_status_text(status));
        else {
            cgam_env_limit(server.env, cgam_call_memory(call));
            status = serve(call, &server);
        }
        if (status != CGAM_OK && server.env)
            (void)cgam_fail(call->env, status, "%s", cgam_env_message(server.env));
    }
    cgam_counts_free(&server);
    cgam_catalog_close(&server.catalog);
    cgam_env_free(server.env);
    return status;
}

__attribute__((constructor)) static void register_serve(void) { cgam_serve_run = run_serve; }
