/* server.h (inside): the server's parts - what it was told at start, who may come in, a request on its
 * way, the verbs at work. Nothing outside this folder knows of HTTP; nothing in it knows any verb by name. */
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

/* ---- Names for files (house.c) -------------------------------------------------------------- */
/* A bank, store or model that requests may name. */
typedef struct cgam_tenant {
    cgam_input kind;
    char *id, *path; /* path: absolute, or that of the shelf for what is no file */
} cgam_tenant;

/* What was put at the disposal of requests; const once the server runs. */
typedef struct cgam_house {
    cgam_env *env;
    cgam_shelf *shelf;
    cgam_tenant *tenants;
    int count, room;
    size_t room_bytes; /* for what is kept from request to request: on the shelf, and by guests */
    char *root;        /* absolute; NULL: nothing may be written */
} cgam_house;

/* Opens everything the call names, on `env`. */
CGAM_NODISCARD cgam_status cgam_house_open(cgam_call *call, cgam_env *env, cgam_house *house);
void cgam_house_close(cgam_house *house);
const cgam_tenant *cgam_house_find(const cgam_house *house, cgam_input kind, const char *id);
/* Puts ids in place of paths, so that no answer tells where things lie. *veiled is a text for free(), NULL
 * where there is nothing to replace. False without memory: what was to be veiled is not to be told. */
CGAM_NODISCARD bool cgam_house_veil(const cgam_house *house, const char *text, char **veiled);
CGAM_NODISCARD bool cgam_house_veil_json(const cgam_house *house, json_t *doc);
/* "banks", "stores", "models", "root". */
void cgam_house_describe(const cgam_house *house, json_t *doc);
/* Is it a name for one file or folder: letters, digits, . _ - and neither . nor - in front? */
bool cgam_house_is_id(const char *text);

/* ---- From a body to the options of a verb (request.c) ---------------------------------------- */
/* What a request lends to its verb, and the options in words that the verb knows. */
typedef struct cgam_wish {
    const cgam_house *house;
    cgam_env *env;
    json_t *options; /* of the verb */
    cgam_lent *files;
    void **blocks; /* of files and names */
    int count, room, blocks_count;
    bool alone, forbidden, absent; /* forbidden: 403 instead of 400; absent: 404 */
    bool writes;                   /* below the root */
} cgam_wish;
/* Reads the body of a request for `verb`. `wish` is to be closed in any case. */
CGAM_NODISCARD cgam_status cgam_wish_read(cgam_wish *wish, const cgam_house *house,
                                          const cgam_verb *verb, const char *body, size_t size);
void cgam_wish_close(cgam_wish *wish);

/* ---- Who may come in (guard.c) --------------------------------------------------------------- */
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

/* The token as the options say. */
CGAM_NODISCARD cgam_status cgam_guard_open(cgam_call *call, cgam_guard *guard);
/* `header` is that of Authorization, NULL: none. Takes the same time for all wrong tokens of a length. */
bool cgam_guard_token(const cgam_guard *guard, const char *header);
/* The header Host; `local` is the address the connection came to, without port, NULL: not known. */
bool cgam_guard_host(const cgam_guard *guard, const char *header, const char *local);
/* The header Origin, which must be the page's own or one that was allowed; NULL is fine. */
bool cgam_guard_origin(const cgam_guard *guard, const char *header, const char *local);
/* Was it allowed by allow-origin? Then it is told so. */
bool cgam_guard_cors(const cgam_guard *guard, const char *header);
bool cgam_address_is_loopback(const char *host);

/* ---- A connection and a request -------------------------------------------------------------- */
typedef struct cgam_server cgam_server;

/* One client's socket. */
typedef struct cgam_line_in {
    struct cgam_line_in *next, *before;
    int fd;
    char local[64], remote[64];
    _Atomic double
        since; /* when it began to wait for a request, or for the rest of one; 0: it does not */
} cgam_line_in;

typedef enum cgam_stage {
    CGAM_STAGE_HEAD,    /* nothing of the body yet */
    CGAM_STAGE_BODY,    /* it comes */
    CGAM_STAGE_WAITING, /* for a worker, or at work */
    CGAM_STAGE_STREAM,  /* at work, and told of as events */
    CGAM_STAGE_DONE
} cgam_stage;

/* One request. Two hold it, the connection and the worker; the last frees it. */
typedef struct cgam_asked {
    cgam_server *server;
    struct MHD_Connection *connection;
    cgam_line_in *line;
    const cgam_verb *verb; /* NULL: none of the verbs */
    const char *label;     /* of it, for logs */
    char path[128];        /* as asked for, cut short */
    const char *method;
    double begun, limit; /* seconds that it has */
    char *body;
    size_t size, room;
    bool events;        /* answer by them */
    bool waited_for;    /* by the server's end: it came before */
    int refused;        /* 0, or the code it is answered with once its body has gone by, */
    const char *reason; /* and why */
    const char *below;  /* of a route that has addresses below it */
    enum MHD_Result (*route)(struct cgam_asked *asked); /* NULL: a verb */
    atomic_int holders;
    struct cgam_asked *next; /* in the queue */
    pthread_mutex_t lock;    /* guards all below */
    cgam_stage stage;
    bool gone, suspended; /* the client; the connection, by a reader of events that waits */
    double looked;        /* when we last asked whether the client is there */
    bool late;            /* it was the deadline that stopped it */
    int code;             /* of the answer */
    bool negative;
    char *text;                           /* malloc'd: the answer, or events not yet sent */
    size_t text_size, text_room, text_at; /* up to text_at it has gone */
    double told;                          /* when progress was last told of */
    size_t sent;
} cgam_asked;

/* ---- Verbs at work (work.c) ------------------------------------------------------------------ */
/* Suspends a request's connection and hands it to a worker. False: too many are waiting, or the server ends. */
bool cgam_work_add(cgam_server *server, cgam_asked *asked);
CGAM_NODISCARD cgam_status cgam_work_start(cgam_server *server, int workers);
/* Lets what runs end, for so many seconds, and then stops it. */
void cgam_work_drain(cgam_server *server, double seconds);
void cgam_work_stop(cgam_server *server);
void cgam_asked_release(cgam_asked *asked);
/* Shall the verb that runs for it stop? */
bool cgam_asked_stop(cgam_asked *asked);
/* Progress as a text, for free(), NULL without memory; and as an event to the client. */
#define CGAM_TELL_EVERY 0.1 /* seconds between two */
char *cgam_progress_text(const cgam_progress_at *at);
void cgam_asked_tell(cgam_asked *asked, const char *progress);
/* {"error", "status"} for a code; gives a text for free(), NULL without memory. */
char *cgam_error_text(int code, const char *message);

/* ---- Processes that models run in (hosting.c; guest.h says how) -------------------------------- */
/* Does the verb take a model? Then it runs in a guest: fills call->doc and call->negative. */
bool cgam_guest_needed(const cgam_verb *verb);
CGAM_NODISCARD cgam_status cgam_guest_ask(cgam_server *server, cgam_asked *asked,
                                          const cgam_wish *wish, cgam_call *call);
void cgam_guests_end(cgam_server *server); /* when no verb runs any more */
typedef struct cgam_guests_info {
    int64_t count, started;
    size_t bytes; /* that they keep */
} cgam_guests_info;
cgam_guests_info cgam_guests_describe(cgam_server *server);

/* ---- The server (serve.c), its answers (answer.c), its numbers (metrics.c) -------------------- */
struct cgam_server {
    cgam_env *env;    /* of all verbs; a signal does not stop what runs on it */
    cgam_env *caller; /* of the verb serve, which a signal stops */
    atomic_bool listening;
    cgam_house house;
    cgam_guard guard;
    struct MHD_Daemon *daemon;
    size_t body_max;
    int requests_max;
    double timeout, out_timeout; /* the latter of what writes below the root */
    bool metrics, log;
    _Atomic size_t body_bytes; /* of all requests together */
    atomic_bool draining, stopping;
    pthread_mutex_t lines_lock;
    cgam_line_in *lines;
    atomic_int lines_count, asked_count; /* connections; requests that the end waits for */
    /* work.c */
    pthread_mutex_t work_lock;
    pthread_cond_t work_there, work_done;
    cgam_asked *first, *last;
    int waiting, running, workers;
    bool ending;
    pthread_t *threads;
    /* hosting.c */
    pthread_mutex_t guests_lock;
    struct cgam_guest *guests;            /* the one used last first */
    int64_t guests_started, model_memory; /* the latter in MB */
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
bool cgam_line_left(const cgam_line_in *line);
/* Ends connections that have been waiting for a request for longer than that, or whose client has gone. */
void cgam_http_sweep(cgam_server *server, double seconds);

/* Queues an answer. The text is freed with free(). */
enum MHD_Result cgam_answer_text(cgam_asked *asked, int code, const char *type, char *text,
                                 size_t size);
/* An error document. */
enum MHD_Result cgam_answer_error(cgam_asked *asked, int code, const char *message);
enum MHD_Result cgam_answer_json(cgam_asked *asked, int code,
                                 json_t *doc); /* takes the reference */
/* The page and its files: part of the program. */
enum MHD_Result cgam_answer_page(cgam_asked *asked, const char *name);
/* Events as the worker tells them. */
enum MHD_Result cgam_answer_events(cgam_asked *asked);
/* A file, to be kept; takes the descriptor. */
enum MHD_Result cgam_answer_file(cgam_asked *asked, const char *name, int fd, size_t size);
/* GET below /api/out: what is in the root, or a file of it. */
enum MHD_Result cgam_answer_out(cgam_asked *asked, const char *path);

void cgam_count_request(cgam_server *server, const cgam_asked *asked);
char *cgam_metrics_text(cgam_server *server); /* for free() */
void cgam_counts_free(cgam_server *server);

#endif
