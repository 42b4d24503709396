/* The server as a whole while calls to the system and the C library fail in turn, memory among them. At its start: a status with
 * one line, nothing open. While it answers: the right answer, an error document, or a connection that ends; then it goes on. */
#include "app/verbs.h"
#include "serve/server.h"
#include "support/failing_calls.h"
#include "support/http_client.h"
#include "support/objects.h"

#include <cgam/bank.h>
#include <cgam/io.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "support/owned.h"

static char folder[] = "/tmp/cgam-server-XXXXXX", root[64], packed[64];
/* What the server says when it listens. */
static char said[300];
static FILE *out;

static bool has_said(void *before)
{
    const cgam_stop *harness = before;
    return said[0] || (harness && harness->asked(harness->user));
}

/* The server, until it is to stop. */
static cgam_status serve(cgam_env *env, const cgam_stop *until, int count, const char *const *words)
{
    OWNED(cgam_args) args = NULL;
    TRY(cgam_args_parse(env, &cgam_verb_serve, count, words, &args));
    cgam_call call = {.env = env, .args = args, .verb = &cgam_verb_serve, .out = out};
    call.doc = json_object();
    const cgam_stop *before = cgam_stop_set(until);
    if (!call.doc) TRY(cgam_fail_nomem(env, "the document"));
    TRY(cgam_serve_run(&call));
    cgam_stop_set(before);
    json_decref(call.doc);
    return CGAM_OK;
}

static int start_and_end(cgam_env *env, void *arg)
{
    (void)arg;
    const char *const words[] = {"--no-token", "--root", root, "--max-requests", "2"};
    rewind(out);
    memset(said, 0, sizeof said);
    const cgam_stop *before = cgam_stop_set(NULL), until = {has_said, (void *)(uintptr_t)before};
    int status = serve(env, &until, sizeof words / sizeof *words, words);
    cgam_stop_set(before);
    return status;
}

/* Of the others, libmicrohttpd does not survive write, by which its threads are told to end. */
TEST(a_start_that_fails_is_told)
{
    static const char *const calls[] = {"socket",    "setsockopt",     "listen",
                                        "getrlimit", "fflush",         "mkdir",
                                        "malloc",    "pthread_create", "look"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (check_calls_of(calls[i], start_and_end, NULL, NULL) == 0 &&
            (malloc_fails_too() || strcmp(calls[i], "malloc") != 0))
            fail_msg("%s was never called", calls[i]);
}

/* ---- one that runs, and is asked --------------------------------------------------------------- */

static atomic_bool over;
static http_client client;
static int port;

static bool is_over(void *user)
{
    (void)user;
    return atomic_load(&over);
}

static void *run_server(void *env)
{
    const char *const words[] = {"--no-token", "--root", root, "--metrics", "--bank", packed};
    static cgam_status status;
    status = serve(env, &(cgam_stop){is_over, NULL}, sizeof words / sizeof *words, words);
    return &status;
}

/* The document that a stream of events ends with becomes the body; false where it has none. */
static bool hear(const char *request)
{
    static const char head[] = "event: document\ndata: ";
    ssize_t some = http_send(client.fd, request, strlen(request)) ? 1 : 0;
    for (; some > 0 && client.size + 1 < client.room; client.size += (size_t)some)
        some = recv(client.fd, client.bytes + client.size, client.room - client.size - 1, 0);
    client.bytes[client.size] = 0;
    client.body = strstr(client.bytes, head);
    const char *end = client.body ? strstr(client.body, "\n\n") : NULL;
    client.code = client.body ? 200 : 0;
    if (!end) return false;
    client.body += sizeof head - 1;
    client.body_size = (size_t)(end - client.body);
    return true;
}

/* Over a new connection, with the memory of the one before: asks for none itself. False where no whole answer came. */
static bool ask(const char *request)
{
    http_client next;
    if (client.fd > 0) close(client.fd);
    bool open = http_open(&next, port);
    next.bytes = client.bytes, next.room = client.room, next.size = 0;
    client = next;
    if (!open) return false;
    return strstr(request, "event-stream") ? hear(request)
                                           : http_ask(&client, request, strlen(request));
}

/* A request with a head that all have. */
typedef struct question {
    const char *line, *more, *body;
    int code;
    bool varies; /* numbers in the answer that are others each time */
} question;
#define STUDY "{\"trials\": 2, \"n\": 4, \"d\": 2, \"figures\": \"no\", "
static const question questions[] = {
    {"GET /health", "", "", 200, false},
    {"GET /api/here", "", "", 200, false},
    {"GET /", "", "", 200, false},
    {"GET /none", "", "", 404, false},
    {"GET /metrics", "", "", 200, true},
    {"GET /api/out", "", "", 200, false},
    {"GET /api/out/", "", "", 200, false},
    {"GET /api/out/one.txt", "", "", 200, false},
    {"GET /api/out/none", "", "", 404, false},
    {"POST /api/recall", "", "{\"bank\": \"demo\", \"query\": \"rows:7\"}", 200, false},
    {"POST /api/recall", "", "{\"bank\": \"demo\"}", 400, false},
    {"POST /api/none", "", "{}", 404, false},
    {"POST /api/bank/show", "", "{\"BANK\": \"P\"}", 200, false}, /* its path is hidden */
    {"POST /api/study/competition", "", STUDY "\"out\": \"one.txt\"}", 500, false},
    {"POST /api/recall", "Accept: text/event-stream\r\n",
     "{\"bank\": \"demo\", \"query\": \"rows:7\"}", 200, false},
};

static char *text_of(const question *q)
{
    char *text = NULL;
    int n = asprintf(&text,
                     "%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%sContent-Length: "
                     "%zu\r\n\r\n%s",
                     q->line, port, q->more, strlen(q->body), q->body);
    assert_true(n > 0);
    return text;
}

/* An error as clients are promised it: one line in a document. */
static bool is_error(void)
{
    OWNED(json_t) doc = json_loadb(client.body, client.body_size, 0, NULL);
    const char *error = json_string_value(json_object_get(doc, "error"));
    bool fine = client.code >= 400 && error && !strchr(error, '\n') &&
                json_integer_value(json_object_get(doc, "status")) == (client.code < 500 ? 2 : 3);
    return fine;
}

/* Asks while one call after the other fails, and in between when none does. */
static int ask_failing(const question *q, const char *call)
{
    char *request = text_of(q), *want = NULL;
    int k = 0, wrong = 0;
    bool failed = true;
    for (; failed; k++) {
        if (!ask(request) || client.code != q->code) {
            print_error("%s: %d instead of %d: %s\n", q->line, client.code, q->code,
                        client.bytes ? client.bytes : "");
            wrong++;
            break;
        }
        if (!want) want = strndup(client.body, client.body_size);
        if (strstr(client.bytes, folder)) {
            print_error("%s: it says where things lie: %s\n", q->line, client.bytes);
            wrong++;
        }
        fail_call(call, ENOMEM, k + 1);
        bool whole = ask(request);
        failed = call_failed();
        fail_call(NULL, 0, 0);
        bool same = client.code == q->code &&
                    (q->varies || (strlen(want) == client.body_size &&
                                   strncmp(want, client.body, client.body_size) == 0));
        if ((!whole || same || is_error()) && !strstr(client.bytes, folder)) continue;
        print_error("%s, %s %d: %d %.*s\n", q->line, call, k + 1, client.code,
                    (int)(client.body_size < 200 ? client.body_size : 200), client.body);
        wrong++;
    }
    free(request);
    free(want);
    return wrong;
}

TEST(an_answer_is_right_or_none)
{
    pthread_t thread;
    OWNED(cgam_env) env = object_env(1);
    void *status;
    int wrong = 0;
    rewind(out);
    memset(said, 0, sizeof said);
    assert_int_equal(pthread_create(&thread, NULL, run_server, env), 0);
    for (int ms = 0; !memchr(said, '\n', sizeof said) && ms < 20000; ms += 10) usleep(10000);
    assert_int_equal(sscanf(said, "http://127.0.0.1:%d/", &port), 1);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        wrong += ask_failing(&questions[i], "malloc");
        wrong += ask_failing(&questions[i], "open_memstream");
        wrong += ask_failing(&questions[i], "fclose");
        wrong += ask_failing(&questions[i], "fstat");
    }
    http_close(&client);
    atomic_store(&over, true);
    pthread_join(thread, &status);
    assert_int_equal(*(cgam_status *)status, CGAM_OK);
    assert_int_equal(wrong, 0);
}

static int enter(void **state)
{
    (void)state;
    char path[80];
    assert_non_null(mkdtemp(folder));
    snprintf(root, sizeof root, "%s/root", folder);
    assert_int_equal(mkdir(root, 0700), 0);
    for (const char *const *name = (const char *const[]){"one.txt", "two.txt", NULL}; *name;
         name++) {
        snprintf(path, sizeof path, "%s/%s", root, *name);
        FILE *f = fopen(path, "w");
        assert_true(f && fputs("a\n", f) >= 0 && fclose(f) == 0);
    }
    const double Z[] = {1, 0, 0, 1};
    cgam_env *env = object_env(1);
    snprintf(path, sizeof path, "%s/Z.npy", folder);
    snprintf(packed, sizeof packed, "%s/P.safetensors", folder);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 2, (const int64_t[]){2, 2}, Z));
    CHECK_STATUS(env, cgam_pack(env, path, NULL, packed));
    cgam_env_free(env);
    out = fmemopen(said, sizeof said - 1, "w");
    return out ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    char command[100];
    fclose(out);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

TEST_GROUP(enter, leave)
