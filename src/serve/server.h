/* server.h (internal): the parts of the server: its catalog of inputs, access control, requests in progress, the
 * workers. No code outside this folder deals with HTTP; no code inside names a verb. */
#ifndef CGAM_SRC_SERVE_SERVER_H
#define CGAM_SRC_SERVE_SERVER_H

#include "app/input.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/file.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* ---- Names for files (catalog.c) -------------------------------------------------------------- */
/* A bank, store or model that requests may name. */
typedef struct cgam_catalog_entry {
    cgam_input kind;
    char *id, *path; /* path: absolute, or the shelf's name of an input that is not a file */
} cgam_catalog_entry;

/* What requests may use; const once the server runs. */
typedef struct cgam_catalog {
    cgam_env *env;
    cgam_shelf *shelf;
    cgam_catalog_entry *entries;
    int count, capacity;
    size_t cache_bytes; /* kept from request to request, on the shelf and by model processes */
    char *root;         /* absolute; NULL: nothing may be written */
} cgam_catalog;

/* Opens everything the call names, on `env`. */
CGAM_NODISCARD cgam_status cgam_catalog_open(cgam_call *call, cgam_env *env, cgam_catalog *catalog);
void cgam_catalog_close(cgam_catalog *catalog);
const cgam_catalog_entry *cgam_catalog_find(const cgam_catalog *catalog, cgam_input kind,
                                            const char *id);
/* Replaces paths by ids, so that answers reveal no paths. *hidden is a text for free(), or NULL if there is
 * nothing to replace. Returns false without memory; the text must not be sent then. */
CGAM_NODISCARD bool cgam_catalog_hide_paths(const cgam_catalog *catalog, const char *text,
                                            char **hidden);
CGAM_NODISCARD bool cgam_catalog_hide_paths_in(const cgam_catalog *catalog, json_t *doc);
/* "banks", "stores", "models", "root". */
void cgam_catalog_describe(const cgam_catalog *catalog, json_t *doc);
/* Is it a name for one file or folder: letters, digits, . _ - and neither . nor - in front? */
bool cgam_catalog_is_id(const char *text);

/* ---- From a body to the options of a verb (request.c) ---------------------------------------- */
/* The options of a verb, and the contents that a request sends in place of files. */
typedef struct cgam_request {
    const cgam_catalog *catalog;
    cgam_env *env;
    json_t *options; /* of the verb */
    cgam_memory_file *files;
    void **blocks; /* of files and names */
    int count, capacity, blocks_count;
    bool exclusive;         /* the verb may open no other files */
    bool forbidden, absent; /* forbidden: 403 instead of 400; absent: 404 */
    bool writes;            /* below the root */
} cgam_request;
/* Reads the body of a request for `verb`. Close `r` in any case. */
CGAM_NODISCARD cgam_status cgam_request_read(cgam_request *r, const cgam_catalog *catalog,
                                             const cgam_verb *verb, const char *body, size_t size);
void cgam_request_close(cgam_request *r);

/* ---- Access control (guard.c) --------------------------------------------------------------- */
enum { CGAM_TOKEN_MAX = 256, CGAM_TOKEN_HASH = 32 };
typedef struct cgam_guard {
    bool open;                      /* no token is needed */
    char token[CGAM_TOKEN_MAX + 1]; /* as printed */
    uint8_t key[CGAM_TOKEN_HASH], hash[CGAM_TOKEN_HASH];
    char host[80]; /* as given, without brackets */
    int port;
    const char *const *hosts, *const *origins;
    int64_t hosts_count, origins_count;
} cgam_guard;

/* Sets the token from the options. */
CGAM_NODISCARD cgam_status cgam_guard_open(cgam_call *call, cgam_guard *guard);
/* `header` is Authorization, NULL: none. Takes the same time for all wrong tokens of a length. */
bool cgam_guard_token(const cgam_guard *guard, const char *header);
/* The header Host; `local` is the address the connection came to, without port, NULL: unknown. */
bool cgam_guard_host(const cgam_guard *guard, const char *header, const char *local);
/* The header Origin: must be our page's or an allowed one; NULL is fine. */
bool cgam_guard_origin(const cgam_guard *guard, const char *header, const char *local);
/* Is the origin allowed by allow-origin? Then the answer has CORS headers. */
bool cgam_guard_cors(const cgam_guard *guard, const char *header);
bool cgam_address_is_loopback(const char *host);

/* ---- A connection and a request -------------------------------------------------------------- */
typedef struct cgam_server cgam_server;

/* One client's socket. */
typedef struct cgam_client {
    struct cgam_client *next, *before;
    int fd;
    char local[64], remote[64];
    _Atomic double since; /* start of waiting for a request or the rest of one; 0: not waiting */
} cgam_client;

typedef enum cgam_stage {
    CGAM_STAGE_HEAD,    /* nothing of the body yet */
    CGAM_STAGE_BODY,    /* arriving */
    CGAM_STAGE_WAITING, /* for a worker, or running */
    CGAM_STAGE_STREAM,  /* running, with events sent */
    CGAM_STAGE_DONE
} cgam_stage;

/* One request and its answer. Shared by the connection and the worker; the last one frees it. */
typedef struct cgam_exchange {
    cgam_server *server;
    struct MHD_Connection *connection;
    cgam_client *client;
    const cgam_verb *verb; /* NULL: not a verb */
    const char *label;     /* its name, for logs */
    char path[128];        /* truncated */
    const char *method;
    double begun, limit; /* seconds allowed */
    char *body;
    size_t size, capacity;
    bool events;        /* answer with a stream of events */
    bool waited_for;    /* came before the server began to end, which waits for it */
    int refused;        /* 0, or the code to answer with once the body has been skipped */
    const char *reason; /* of the rejection */
    const char *below;  /* the path below a route that has some */
    enum MHD_Result (*route)(struct cgam_exchange *exchange); /* NULL: a verb */
    atomic_int holders;
    struct cgam_exchange *next; /* in the queue, or of those that run */
    double told;                /* when the sweep first saw that it must stop; 0: not yet */
    pthread_mutex_t lock;       /* guards all below */
    cgam_stage stage;
    bool gone;      /* the client has closed its side */
    bool suspended; /* the connection, until there are more events */
    double looked;  /* when we last checked that the client is there */
    bool late;      /* stopped by its deadline */
    bool writes;    /* below the root: limit is the server's out_timeout */
    int code;       /* of the answer */
    bool negative;
    char *text;                               /* malloc'd: the answer, or events not yet sent */
    size_t text_size, text_capacity, text_at; /* text_at bytes are sent */
    _Atomic double reported;                  /* time of the last progress event */
    size_t sent;
} cgam_exchange;

/* ---- Workers (work.c) ------------------------------------------------------------------ */
/* Suspends a request's connection and queues it for a worker. False: too many are waiting, or the server ends. */
bool cgam_work_add(cgam_server *server, cgam_exchange *exchange);
CGAM_NODISCARD cgam_status cgam_work_start(cgam_server *server, int workers);
/* Answers requests whose verb must stop and has not done so soon after: it is inside a piece of work that cannot be
 * cut. The verb goes on and its result is dropped; until then it counts against --max-requests. */
void cgam_work_sweep(cgam_server *server);
/* Waits so many seconds for running verbs to end, then stops them. Gives how many still run STOP_SECONDS later. */
int cgam_work_drain(cgam_server *server, double seconds);
void cgam_work_stop(cgam_server *server);
void cgam_exchange_release(cgam_exchange *exchange);
/* Must the verb that runs for it stop? */
bool cgam_exchange_must_stop(cgam_exchange *exchange);
/* Progress as a text, for free(), NULL without memory; and as an event to the client. */
#define CGAM_PROGRESS_EVERY 0.1 /* seconds between two */
char *cgam_progress_text(const cgam_progress_at *at);
void cgam_exchange_send_progress(cgam_exchange *exchange, const char *progress);
/* {"error", "status"} for a code; gives a text for free(), NULL without memory. */
char *cgam_error_text(int code, const char *message);

/* ---- Processes that models run in (model_pool.c; protocol: model_process.h) -------------------- */
/* Does the verb take a model? Then cgam_model_pool_run runs it in a model process: fills call->doc and call->negative. */
bool cgam_model_pool_serves(const cgam_verb *verb);
CGAM_NODISCARD cgam_status cgam_model_pool_run(cgam_server *server, cgam_exchange *exchange,
                                               const cgam_request *request, cgam_call *call);
void cgam_model_pool_end(cgam_server *server); /* when no verb runs any more */
typedef struct cgam_model_pool_info {
    int64_t count, started;
    size_t bytes; /* kept by all */
} cgam_model_pool_info;
cgam_model_pool_info cgam_model_pool_describe(cgam_server *server);

/* ---- The server (serve.c), its answers (answer.c), its numbers (metrics.c) -------------------- */
struct cgam_server {
    cgam_env *env;    /* of all verbs; a signal does not stop what runs on it */
    cgam_env *caller; /* of the verb serve, which a signal stops */
    atomic_bool listening;
    cgam_catalog catalog;
    cgam_guard guard;
    struct MHD_Daemon *daemon;
    size_t body_max;
    int64_t queries_max, rows_max; /* of a request, of an answer */
    int requests_max;
    double timeout, out_timeout; /* out_timeout: of verbs that write below the root */
    bool metrics, log;
    _Atomic size_t body_bytes; /* of all requests together */
    atomic_bool draining, stopping;
    pthread_mutex_t clients_lock;
    cgam_client *clients;
    atomic_int clients_count, exchange_count; /* requests that the end waits for */
    /* work.c */
    pthread_mutex_t work_lock;
    pthread_cond_t work_there, work_done;
    cgam_exchange *first, *last, *first_running;
    int waiting, running, workers;
    int unanswered; /* of the running ones: they and those waiting count against requests_max */
    bool ending;
    pthread_t *threads;
    /* model_pool.c */
    pthread_mutex_t pool_lock;
    struct cgam_model_process *pool;    /* most recently used first */
    int64_t pool_started, model_memory; /* model_memory: in MB */
    /* metrics.c */
    pthread_mutex_t counts_lock;
    struct cgam_count *counts;
    int64_t requests;
    double started;
};

/* MHD's callbacks (http.c). */
enum MHD_Result cgam_http_handle(void *user, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **state);
void cgam_http_completed(void *user, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how);
void cgam_http_connection(void *user, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what);
/* Has the client closed its side? */
bool cgam_client_left(const cgam_client *client);
/* Closes connections that have been waiting for a request for longer than that, or whose client has gone. */
void cgam_http_sweep(cgam_server *server, double seconds);

/* Queues an answer. The text is freed with free(). */
enum MHD_Result cgam_answer_text(cgam_exchange *exchange, int code, const char *type, char *text,
                                 size_t size);
/* An error document. */
enum MHD_Result cgam_answer_error(cgam_exchange *exchange, int code, const char *message);
enum MHD_Result cgam_answer_json(cgam_exchange *exchange, int code,
                                 json_t *doc); /* takes the reference */
/* The page and its files: part of the program. */
enum MHD_Result cgam_answer_page(cgam_exchange *exchange, const char *name);
/* Events as the worker sends them. */
enum MHD_Result cgam_answer_events(cgam_exchange *exchange);
/* A file as a download; takes the descriptor. */
enum MHD_Result cgam_answer_file(cgam_exchange *exchange, const char *name, int fd, size_t size);
/* GET below /api/out: a listing of a folder below the root, or a file. */
enum MHD_Result cgam_answer_out(cgam_exchange *exchange, const char *path);

void cgam_count_request(cgam_server *server, const cgam_exchange *exchange);
char *cgam_metrics_text(cgam_server *server); /* for free() */
void cgam_counts_free(cgam_server *server);

#endif
