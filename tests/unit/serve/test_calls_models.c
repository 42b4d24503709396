/* Server and model process, each against another end that dies, closes early or sends nonsense, and while calls fail: a request gets
 * its answer or one line that says why not, no process is left over, and a process that cannot do its work ends. This program is
 * both: started as a model process by the server's side it behaves as its --root says; the process's side runs in children. */
#include "serve/model_process.h"
#include "support/failing_calls.h"
#include "support/one_env.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_SECONDS = 30 }; /* for what comes at once or never */

/* ---- processes that the server's side meets ------------------------------------------------------- */

static const cgam_packet_end server_end = {.fd = 0};

static void send_packet(uint32_t kind, uint32_t flag, const char *text)
{
    cgam_packet packet = {.kind = kind, .flag = flag, .size = strlen(text), .kept = 100};
    if (!cgam_packet_write(&server_end, &packet, sizeof packet) ||
        !cgam_packet_write(&server_end, text, strlen(text)))
        _exit(5);
}

/* Takes a request whole: what stands in it, then what is files. */
static bool take_work(void)
{
    cgam_packet packet;
    char *text = cgam_packet_read(&server_end, &packet, sizeof packet)
                     ? cgam_packet_text(&server_end, &packet, 1 << 20)
                     : NULL;
    json_t *work = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *files = json_object_get(work, "files");
    bool fine = work != NULL;
    char buffer[64];
    for (size_t i = 0; i < json_array_size(files) && fine; i++) {
        json_int_t size = json_integer_value(json_array_get(json_array_get(files, i), 1));
        fine = size <= (json_int_t)sizeof buffer &&
               cgam_packet_read(&server_end, buffer, (size_t)size);
    }
    json_decref(work);
    free(text);
    return fine;
}

static int behave(const char *how)
{
    static const struct {
        const char *how;
        uint32_t kind, flag;
        const char *text;
    } wrong[] = {{"two events", CGAM_PACKET_PROGRESS, 0, "{}\n\nevent: document"},
                 {"no document", CGAM_PACKET_DONE, 0, "{\"a\": "},
                 {"no packet", 99, 0, "{}"},
                 {"no failure", CGAM_PACKET_FAILED, 0, "it went well"},
                 {"no status", CGAM_PACKET_FAILED, 77, "what now"},
                 {"large status", CGAM_PACKET_FAILED, 1u << 31, "what now"},
                 {"fails", CGAM_PACKET_FAILED, (uint32_t)-CGAM_E_FORMAT, "a damaged model"}};
    cgam_packet packet = {.kind = CGAM_PACKET_DONE, .size = 100};
    if (strcmp(how, "dies at once") == 0) return 9;
    if (strcmp(how, "does not read") == 0) pause();
    while (take_work()) {
        if (strcmp(how, "dies") == 0) return 7;
        if (strcmp(how, "aborts") == 0) abort();
        if (strcmp(how, "cut in its head") == 0) return !cgam_packet_write(&server_end, &packet, 3);
        if (strcmp(how, "cut") == 0) return !cgam_packet_write(&server_end, &packet, sizeof packet);
        if (strcmp(how, "stalls in its head") == 0 || strcmp(how, "stalls") == 0) {
            (void)cgam_packet_write(&server_end, &packet, how[6] ? 3 : sizeof packet);
            pause();
        }
        while (strcmp(how, "chatters") == 0) send_packet(CGAM_PACKET_PROGRESS, 0, "{}");
        if (strcmp(how, "large") == 0) {
            packet.size = UINT64_MAX;
            (void)cgam_packet_write(&server_end, &packet, sizeof packet);
            pause();
        }
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            if (strcmp(how, wrong[i].how) == 0)
                send_packet(wrong[i].kind, wrong[i].flag, wrong[i].text);
        if (strcmp(how, "stops") == 0) { /* slowly, with a word in between */
            if (!cgam_packet_read(&server_end, &packet, sizeof packet) ||
                packet.kind != CGAM_PACKET_STOP)
                return 6;
            send_packet(CGAM_PACKET_PROGRESS, 0, "{}");
            usleep(100000);
            send_packet(CGAM_PACKET_FAILED, (uint32_t)-CGAM_E_INTERRUPTED, "stopped on request");
            continue;
        }
        send_packet(CGAM_PACKET_PROGRESS, 0, "{}");
        send_packet(CGAM_PACKET_DONE, 1, "{\"a\": 1}");
    }
    return 0;
}

/* ---- the server's side ------------------------------------------------------------------------- */

typedef struct host {
    cgam_server server;
    cgam_exchange exchange;
    cgam_client client;
    cgam_catalog_entry store;
    json_t *doc; /* that came */
    bool negative;
    size_t files; /* bytes; 0: 5 */
    bool events;  /* progress is to be told */
} host;

static void host_open(host *h, cgam_env *on, const char *how)
{
    static char id[] = "s", path[] = "/nowhere/s.db";
    static char behaviour[40];
    snprintf(behaviour, sizeof behaviour, "%s", how);
    *h = (host){.client.fd = -1, .store = {CGAM_INPUT_STORE, id, path}};
    h->server.env = on;
    h->server.catalog = (cgam_catalog){
        .env = on, .root = behaviour, .entries = &h->store, .count = 1, .cache_bytes = 1000};
    h->exchange =
        (cgam_exchange){.server = &h->server, .client = &h->client, .limit = WAIT_SECONDS};
    h->exchange.begun = cgam_clock();
    pthread_mutex_init(&h->server.pool_lock, NULL);
    pthread_mutex_init(&h->exchange.lock, NULL);
}

static void host_close(host *h)
{
    cgam_model_pool_end(&h->server);
    pthread_mutex_destroy(&h->server.pool_lock);
    pthread_mutex_destroy(&h->exchange.lock);
    json_decref(h->doc);
}

static void ignore(void *user, const cgam_progress_at *at)
{
    (void)user;
    (void)at;
}

/* Asks the process of a model, with a file in memory. */
static cgam_status host_ask(host *h, const char *model)
{
    int used;
    cgam_env *on = h->server.env;
    cgam_args *args = NULL;
    void *bytes = calloc(1, h->files ? h->files : 5);
    cgam_memory_file file = {"prompt", bytes, h->files ? h->files : 5};
    cgam_request request = {.env = on, .files = &file, .count = 1};
    const cgam_verb *verb = cgam_verb_find(2, (const char *const[]){"lm", "lens"}, &used);
    request.options = json_pack("{ssss}", "prompt", "x", "model", model);
    cgam_call call = {.verb = verb, .env = on, .doc = json_object()};
    cgam_status status =
        bytes && request.options && call.doc ? CGAM_OK : cgam_fail_nomem(on, "options");
    if (h->events) call.progress.to.report = ignore;
    if (status == CGAM_OK) status = cgam_args_json(on, verb, request.options, &args);
    call.args = args;
    if (status == CGAM_OK) status = cgam_model_pool_run(&h->server, &h->exchange, &request, &call);
    json_decref(h->doc);
    h->doc = call.doc;
    h->negative = call.negative;
    json_decref(request.options);
    cgam_args_free(args);
    free(bytes);
    return status;
}

static bool answered(const host *h)
{
    return json_integer_value(json_object_get(h->doc, "a")) == 1 && h->negative;
}

TEST(processes_that_misbehave_are_reported)
{
    static const struct {
        const char *how, *message;
        cgam_status status;
        int left; /* processes that stay */
    } cases[] = {
        {"is good", NULL, CGAM_OK, 1},
        {"fails", "a damaged model", CGAM_E_FORMAT, 1},
        {"dies", "with status 7", CGAM_E_INTERNAL, 0},
        {"dies at once", "with status 9", CGAM_E_INTERNAL, 0},
        {"aborts", "signal 6", CGAM_E_INTERNAL, 0},
        {"cut in its head", "with status 0", CGAM_E_INTERNAL, 0},
        {"cut", "with status 0", CGAM_E_INTERNAL, 0},
        {"large", "signal 9", CGAM_E_INTERNAL, 0},
        {"no document", "invalid reply", CGAM_E_INTERNAL, 0},
        {"two events", "invalid reply", CGAM_E_INTERNAL, 0},
        {"no packet", "invalid reply", CGAM_E_INTERNAL, 0},
        {"no failure", "invalid reply", CGAM_E_INTERNAL, 0},
        {"no status", "invalid reply", CGAM_E_INTERNAL, 0},
        {"large status", "invalid reply", CGAM_E_INTERNAL, 0},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h;
        host_open(&h, env, cases[i].how);
        cgam_status status = host_ask(&h, "m.gguf");
        const char *said = status == CGAM_OK ? "" : cgam_env_message(env);
        int left = (int)cgam_model_pool_describe(&h.server).count;
        if (status != cases[i].status || left != cases[i].left || strchr(said, '\n') ||
            (cases[i].message ? !strstr(said, cases[i].message) : !answered(&h))) {
            print_error("a process that %s: status %d with '%s', %d left\n", cases[i].how, status,
                        said, left);
            wrong++;
        }
        host_close(&h);
    }
    assert_int_equal(wrong, 0);
}

TEST(a_process_stops_on_request)
{
    host h;
    host_open(&h, env, "stops");
    h.exchange.limit = 0;
    assert_int_equal(host_ask(&h, "m.gguf"), CGAM_E_INTERRUPTED);
    assert_true(h.exchange.late);
    assert_int_equal(cgam_model_pool_describe(&h.server).count, 1);
    fail_call("send", EPIPE, 4); /* the request to stop, after the three pieces of a request */
    cgam_status status = host_ask(&h, "m.gguf");
    bool failed = call_failed();
    fail_call(NULL, 0, 0);
    assert_int_equal(status, failed ? CGAM_E_INTERNAL : CGAM_E_INTERRUPTED);
    assert_int_equal(cgam_model_pool_describe(&h.server).count, !failed);
    host_close(&h);
}

/* In the middle of a word of its own or of ours, or in words without end, of which no more is kept than somebody reads. */
TEST(a_process_that_stalls_is_ended)
{
    static const char *const cases[] = {"does not read", "stalls in its head", "stalls",
                                        "chatters"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h;
        host_open(&h, env, cases[i]);
        h.files = i == 0 ? 4 << 20 : 0; /* more than a socket takes */
        h.events = true;
        h.exchange.limit = 0.1;
        double begun = cgam_clock();
        assert_int_equal(host_ask(&h, "m.gguf"), CGAM_E_INTERRUPTED);
        assert_true(h.exchange.late && cgam_clock() - begun < WAIT_SECONDS);
        assert_int_equal(cgam_model_pool_describe(&h.server).count, 0);
        assert_true(h.exchange.text_capacity < 1 << 20);
        free(h.exchange.text);
        host_close(&h);
    }
}

/* Each says that it keeps 100 bytes. */
TEST(processes_that_keep_too_much_are_ended)
{
    host h;
    host_open(&h, env, "is good");
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(env, host_ask(&h, "one.gguf"));
        CHECK_STATUS(env, host_ask(&h, "two.gguf"));
        assert_int_equal(cgam_model_pool_describe(&h.server).count, 2);
        assert_int_equal(cgam_model_pool_describe(&h.server).bytes, 200);
        assert_int_equal(h.server.pool_started, 2); /* both stay */
    }
    h.server.catalog.cache_bytes = 150;
    CHECK_STATUS(env, host_ask(&h, "one.gguf"));
    assert_int_equal(cgam_model_pool_describe(&h.server).count, 1);
    CHECK_STATUS(env, host_ask(&h, "one.gguf"));
    assert_int_equal(h.server.pool_started, 2); /* it was the other one that went */
    h.server.catalog.cache_bytes = 99;
    CHECK_STATUS(env, host_ask(&h, "one.gguf"));
    assert_int_equal(cgam_model_pool_describe(&h.server).count, 0);
    host_close(&h);
}

static int ask_once(cgam_env *on, void *arg)
{
    host h;
    host_open(&h, on, arg);
    cgam_status status = host_ask(&h, "m.gguf");
    if (status == CGAM_OK && !answered(&h)) fail_msg("an answer that is none");
    host_close(&h);
    return status;
}

TEST(what_the_server_lacks_for_a_process_is_reported)
{
    char how[] = "is good";
    if (malloc_fails_too()) assert_true(check_calls_of("malloc", ask_once, how, NULL) > 20);
    static const struct {
        const char *call;
        int error, k;
        const char *message; /* NULL: it goes on */
    } cases[] = {
        {"socketpair", EMFILE, 1, "cannot start a process for the model: Too many open files"},
        {"posix_spawn_file_actions_init", ENOMEM, 1,
         "cannot start a process for the model: Cannot allocate"},
        {"send", EINTR, 1, NULL},
        {"send", EPIPE, 1, "signal 9"},
        {"send", EPIPE, 2, "signal 9"},
        {"send", EPIPE, 3, "signal 9"},
        {"read", EINTR, 1, NULL},
        {"read", EIO, 1, "signal 9"},
    };
    for (size_t i = 0; malloc_fails_too() && i < sizeof cases / sizeof *cases; i++) {
        host h;
        host_open(&h, env, how);
        fail_call(cases[i].call, cases[i].error, cases[i].k);
        cgam_status status = host_ask(&h, "m.gguf");
        assert_true(call_failed());
        fail_call(NULL, 0, 0);
        if (!cases[i].message) assert_true(status == CGAM_OK && answered(&h));
        else if (status == CGAM_OK || !strstr(cgam_env_message(env), cases[i].message))
            fail_msg("%s %d: %d, '%s'", cases[i].call, cases[i].k, status, cgam_env_message(env));
        host_close(&h);
    }
}

/* ---- the process's side -------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    cgam_packet_end end;
} child;

/* Without memory libseccomp 2.5.4 loops or crashes, so calls fail before the filter is built or after it is loaded. */
enum { BEFORE_FILTER = 3 };
static struct {
    const char *call;
    int error, k;
} later;

int seccomp_load(const scmp_filter_ctx filter)
{
    int (*load)(const scmp_filter_ctx);
    *(void **)&load = dlsym(RTLD_NEXT, "seccomp_load");
    if (later.call && strcmp(later.call, "seccomp_load") == 0) return -later.error;
    int error = load(filter);
    if (later.call) fail_call(later.call, later.error, later.k);
    return error;
}

/* A child that runs as a model process, with one call failing; words: of the command line after --guest. */
static child child_open(const char *call, int error, int k, int count, const char *const *words)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fflush(NULL);
    child r = {fork(), {.fd = ends[0]}};
    assert_true(r.pid >= 0);
    if (r.pid == 0) {
        const char *all[8] = {"--guest"};
        for (int i = 0; i < count; i++) all[i + 1] = words[i];
        cgam_args *args = NULL;
        close(ends[0]);
        if (dup2(ends[1], 0) != 0 ||
            cgam_args_parse(env, &cgam_verb_serve, count + 1, all, &args) != CGAM_OK)
            _exit(90);
        close(ends[1]);
        if (k <= BEFORE_FILTER) fail_call(call, error, k);
        else later.call = call, later.error = error, later.k = k - BEFORE_FILTER;
        cgam_call run = {.env = env, .args = args, .verb = &cgam_verb_serve};
        cgam_status status = cgam_model_process_run(&run);
        bool told = status != CGAM_OK && *cgam_env_message(env);
        _exit(told ? 3 : 91);
    }
    close(ends[1]);
    const struct timeval most = {.tv_sec = WAIT_SECONDS};
    setsockopt(r.end.fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    return r;
}

static bool child_send(child r, const char *work, const char *files)
{
    cgam_packet packet = {.kind = CGAM_PACKET_WORK, .size = strlen(work)};
    return cgam_packet_write(&r.end, &packet, sizeof packet) &&
           cgam_packet_write(&r.end, work, strlen(work)) &&
           cgam_packet_write(&r.end, files, strlen(files));
}

/* The kind of packet that ends the request, with its text for free(); 0: it ended itself. */
static uint32_t child_answer(child r, char **text)
{
    cgam_packet packet = {0};
    *text = NULL;
    while (cgam_packet_read(&r.end, &packet, sizeof packet)) {
        *text = cgam_packet_text(&r.end, &packet, 1 << 20);
        if (packet.kind != CGAM_PACKET_PROGRESS) return *text ? packet.kind : 0;
        free(*text);
        *text = NULL;
    }
    return 0;
}

/* Its exit status, 128 where a signal ended it: ours, if it did not end by itself. */
static int child_close(child r)
{
    int state = 0;
    close(r.end.fd);
    for (int ms = 0; waitpid(r.pid, &state, WNOHANG) == 0; ms++) {
        if (ms > 1000 * WAIT_SECONDS) kill(r.pid, SIGKILL);
        usleep(1000);
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

#define GOOD                                                                                       \
    "{\"verb\": \"recall\", \"options\": {\"bank\": \"demo:\", \"query\": \"rows:7\"}, \"exclusive\": true"
#define LENT                                                                                       \
    "{\"verb\": \"bank names\", \"options\": {\"bank\": \"demo:\", \"names\": \"names\"}, \"files\": "

TEST(a_process_answers_or_ends)
{
    char many[4000] = GOOD ", \"files\": [0";
    while (strlen(many) < 1000) snprintf(many + strlen(many), 8, ",0,0");
    snprintf(many + strlen(many), 8, "]}");
    const struct {
        const char *work, *files;
        uint32_t kind; /* 0: it ends */
        const char *piece;
        bool hang_up; /* nothing more comes */
    } cases[] = {
        {GOOD "}", "", CGAM_PACKET_DONE, "\"queries\"", false},
        {GOOD ", \"files\": [[\"x\", 0]]}", "", CGAM_PACKET_DONE, "\"queries\"", false},
        {LENT "[[\"names\", 2]]}", "a\n", CGAM_PACKET_FAILED, "names", false},
        {"{\"verb\": \"recall\", \"options\": {\"bank\": \"demo:\"}}", "", CGAM_PACKET_FAILED,
         "query is missing", false},
        {"{\"verb\": \"recall\", \"options\": {\"x\": 1}}", "", CGAM_PACKET_FAILED, "x", false},
        {"{\"verb\": \"recall\"", "", 0, "", false},
        {"{\"verb\": \"reca\", \"options\": {}}", "", 0, "", false},
        {"{}", "", 0, "", false},
        {LENT "[[\"names\", 200]]}", "a\n", 0, "", true},
        {LENT "[[\"names\", 1], [\"more\", 5]]}", "ab", 0, "", true},
        {many, "", 0, "", false},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        child r = child_open(NULL, 0, 0, 0, NULL);
        const cgam_packet stop = {.kind = CGAM_PACKET_STOP}; /* one that comes too late */
        assert_true(cgam_packet_write(&r.end, &stop, sizeof stop));
        assert_true(child_send(r, cases[i].work, cases[i].files));
        if (cases[i].hang_up) shutdown(r.end.fd, SHUT_WR);
        uint32_t kind = child_answer(r, &text);
        bool fine = kind == cases[i].kind && (!kind || strstr(text, cases[i].piece));
        free(text);
        if (fine && kind) { /* it goes on */
            fine = child_send(r, GOOD "}", "") && child_answer(r, &text) == CGAM_PACKET_DONE;
            free(text);
        }
        int end = child_close(r);
        if (fine && end == 0) continue;
        print_error("%.80s: answered by %u, ended with %d\n", cases[i].work, kind, end);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

TEST(a_process_whose_server_is_gone_ends)
{
    child r = child_open(NULL, 0, 0, 0, NULL);
    assert_true(child_send(r, GOOD "}", ""));
    assert_int_equal(child_close(r), 0); /* it speaks to nobody */
    r = child_open(NULL, 0, 0, 0, NULL);
    assert_int_equal(write(r.end.fd, "abc", 3), 3); /* of a packet */
    assert_int_equal(child_close(r), 0);
}

/* One that hangs does not see it: here its socket stays open, held by another process. `alive` ends with the model process. */
TEST(a_process_ends_with_the_one_that_started_it)
{
    int alive[2];
    assert_int_equal(pipe(alive), 0);
    fflush(NULL);
    pid_t server = fork(), holder = 0;
    assert_true(server >= 0);
    if (server == 0) {
        char *text;
        close(alive[0]);
        child r = child_open(NULL, 0, 0, 0, NULL);
        if (!child_send(r, GOOD "}", "") || child_answer(r, &text) != CGAM_PACKET_DONE) _exit(1);
        holder = fork();
        if (holder == 0) {
            close(alive[1]);
            alarm(2 * WAIT_SECONDS);
            pause();
        }
        _exit(write(alive[1], &holder, sizeof holder) != sizeof holder);
    }
    close(alive[1]);
    int how = 0;
    assert_int_equal(waitpid(server, &how, 0), server);
    assert_int_equal(how, 0);
    assert_int_equal(read(alive[0], &holder, sizeof holder), sizeof holder);
    struct pollfd end = {.fd = alive[0], .events = POLLIN};
    int ended = poll(&end, 1, 1000 * WAIT_SECONDS);
    kill(holder, SIGKILL);
    close(alive[0]);
    assert_int_equal(ended, 1);
}

TEST(a_process_needs_its_sandbox)
{
    static const struct {
        const char *words[4];
        int count, status;
    } cases[] = {
        {{"--root", "/tmp", "--store", "/tmp/s.db"}, 4, 0},
        {{"--store", "s.db"}, 2, 3}, /* in which folder? */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        child r = child_open(NULL, 0, 0, cases[i].count, cases[i].words);
        assert_int_equal(child_close(r), cases[i].status);
    }
    assert_int_equal(child_close(child_open("seccomp_load", ENOMEM, BEFORE_FILTER + 1, 0, NULL)),
                     3);
}

/* Sends a complete request: an answer, one line that says why not, or the end must follow. */
static bool says_right(child r, uint32_t *kind)
{
    char *text = NULL;
    *kind = child_send(r, GOOD ", \"files\": [[\"x\", 2]]}", "a\n") ? child_answer(r, &text) : 0;
    json_t *doc = *kind == CGAM_PACKET_DONE ? json_loads(text, 0, NULL) : NULL;
    bool right = !*kind || json_array_size(json_object_get(doc, "queries")) == 1 ||
                 (*kind == CGAM_PACKET_FAILED && *text && !strchr(text, '\n'));
    if (!right) print_error("packet %u: %.200s\n", *kind, text);
    json_decref(doc);
    free(text);
    return right;
}

TEST(a_process_without_memory_says_so_or_ends)
{
    static const char *const words[] = {"--root", "/tmp", "--store", "/tmp/s.db"};
    if (!malloc_fails_too()) skip();
    int wrong = 0, failed = 0, ended = 0;
    int survived = 0; /* in a row: when there are many, no more memory was asked for */
    int step = 1;     /* libseccomp asks some thousand times: a part of them is enough */
    for (int k = 1; survived < 20; k += step) {
        uint32_t first, second = 0;
        child r = child_open("malloc", ENOMEM, k, 4, words);
        bool right = says_right(r, &first) && (!first || says_right(r, &second));
        int end = child_close(r);
        failed += first == CGAM_PACKET_FAILED;
        ended += !first;
        survived = first == CGAM_PACKET_DONE ? survived + 1 : 0;
        if (right && (end == 0 || end == 3) &&
            (first != CGAM_PACKET_FAILED || second == CGAM_PACKET_DONE))
            continue;
        print_error("request %d for memory: packets %u and %u, the end is %d\n", k, first, second,
                    end);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    assert_true(failed > 5 && ended > 5);
}

TEST_GROUP(set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "serve") == 0 && strcmp(argv[2], "--guest") == 0)
        for (int i = 3; i + 1 < argc; i++)
            if (strcmp(argv[i], "--root") == 0) return behave(argv[i + 1]);
    return check_run_tests();
}
