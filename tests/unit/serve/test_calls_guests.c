/* Server and guest, each against another end that dies, is cut off or talks nonsense, and while calls fail: a request gets its answer
 * or one line that says why not, no guest is left over, and a guest that cannot do its work ends. This program is both: started as a
 * guest by the server's side it behaves as the root that it is given says, and the guest's side runs in children of it. */
#include "serve/guest.h"
#include "support/failing_calls.h"
#include "support/objects.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_SECONDS = 30 }; /* for what comes at once or never */

/* ---- guests that the server's side meets ------------------------------------------------------- */

static void send_frame(uint32_t kind, uint32_t flag, const char *text)
{
    cgam_frame frame = {.kind = kind, .flag = flag, .size = strlen(text), .kept = 100};
    if (!cgam_frame_write(0, &frame, sizeof frame) || !cgam_frame_write(0, text, strlen(text)))
        _exit(5);
}

/* Takes a request whole: what stands in it, then what is lent. */
static bool take_work(void)
{
    cgam_frame frame;
    char *text = cgam_frame_read(0, &frame, sizeof frame) ? cgam_frame_text(0, &frame) : NULL;
    json_t *work = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *lent = json_object_get(work, "lent");
    bool fine = work != NULL;
    char room[64];
    for (size_t i = 0; i < json_array_size(lent) && fine; i++) {
        json_int_t size = json_integer_value(json_array_get(json_array_get(lent, i), 1));
        fine = size <= (json_int_t)sizeof room && cgam_frame_read(0, room, (size_t)size);
    }
    json_decref(work);
    free(text);
    return fine;
}

static int behave(const char *how)
{
    cgam_frame frame = {.kind = CGAM_FRAME_DONE, .size = 100};
    if (strcmp(how, "dies at once") == 0) return 9;
    if (strcmp(how, "does not read") == 0) pause();
    while (take_work()) {
        if (strcmp(how, "dies") == 0) return 7;
        if (strcmp(how, "aborts") == 0) abort();
        if (strcmp(how, "cut in its head") == 0) return !cgam_frame_write(0, &frame, 3);
        if (strcmp(how, "cut") == 0) return !cgam_frame_write(0, &frame, sizeof frame);
        if (strcmp(how, "stalls in its head") == 0 || strcmp(how, "stalls") == 0) {
            (void)cgam_frame_write(0, &frame, how[6] ? 3 : sizeof frame);
            pause();
        }
        while (strcmp(how, "chatters") == 0) send_frame(CGAM_FRAME_TOLD, 0, "{}");
        if (strcmp(how, "two events") == 0) send_frame(CGAM_FRAME_TOLD, 0, "{}\n\nevent: document");
        if (strcmp(how, "large") == 0) {
            frame.size = UINT64_MAX;
            (void)cgam_frame_write(0, &frame, sizeof frame);
            pause();
        }
        if (strcmp(how, "no document") == 0) send_frame(CGAM_FRAME_DONE, 0, "{\"a\": ");
        if (strcmp(how, "no frame") == 0) send_frame(99, 0, "{}");
        if (strcmp(how, "no failure") == 0) send_frame(CGAM_FRAME_FAILED, 0, "it went well");
        if (strcmp(how, "no status") == 0) send_frame(CGAM_FRAME_FAILED, 77, "what now");
        if (strcmp(how, "large status") == 0) send_frame(CGAM_FRAME_FAILED, 1u << 31, "what now");
        if (strcmp(how, "fails") == 0)
            send_frame(CGAM_FRAME_FAILED, (uint32_t)-CGAM_E_FORMAT, "a damaged model");
        if (strcmp(how, "stops") == 0) { /* slowly, with a word in between */
            if (!cgam_frame_read(0, &frame, sizeof frame) || frame.kind != CGAM_FRAME_STOP)
                return 6;
            send_frame(CGAM_FRAME_TOLD, 0, "{}");
            usleep(100000);
            send_frame(CGAM_FRAME_FAILED, (uint32_t)-CGAM_E_INTERRUPTED, "stopped on request");
            continue;
        }
        send_frame(CGAM_FRAME_TOLD, 0, "{}");
        send_frame(CGAM_FRAME_DONE, 1, "{\"a\": 1}");
    }
    return 0;
}

/* ---- the server's side ------------------------------------------------------------------------- */

typedef struct host {
    cgam_server server;
    cgam_asked asked;
    cgam_line_in line;
    cgam_tenant store;
    json_t *doc; /* that came */
    bool negative;
    size_t lent; /* bytes; 0: 5 */
    bool events; /* progress is to be told */
} host;

static void host_open(host *h, cgam_env *env, const char *how)
{
    static char id[] = "s", path[] = "/nowhere/s.db";
    static char behaviour[40];
    snprintf(behaviour, sizeof behaviour, "%s", how);
    *h = (host){.line.fd = -1, .store = {CGAM_INPUT_STORE, id, path}};
    h->server.env = env;
    h->server.house = (cgam_house){
        .env = env, .root = behaviour, .tenants = &h->store, .count = 1, .room_bytes = 1000};
    h->asked = (cgam_asked){.server = &h->server, .line = &h->line, .limit = WAIT_SECONDS};
    h->asked.begun = cgam_clock();
    pthread_mutex_init(&h->server.guests_lock, NULL);
    pthread_mutex_init(&h->asked.lock, NULL);
}

static void host_close(host *h)
{
    cgam_guests_end(&h->server);
    pthread_mutex_destroy(&h->server.guests_lock);
    pthread_mutex_destroy(&h->asked.lock);
    json_decref(h->doc);
}

static void ignore(void *user, const cgam_progress_at *at)
{
    (void)user;
    (void)at;
}

/* Asks a guest of a model, and lends it a file. */
static cgam_status host_ask(host *h, const char *model)
{
    int used;
    cgam_env *env = h->server.env;
    cgam_args *args = NULL;
    void *bytes = calloc(1, h->lent ? h->lent : 5);
    cgam_lent file = {"prompt", bytes, h->lent ? h->lent : 5};
    cgam_wish wish = {.env = env, .files = &file, .count = 1};
    const cgam_verb *verb = cgam_verb_find(2, (const char *const[]){"lm", "lens"}, &used);
    wish.options = json_pack("{ssss}", "prompt", "x", "model", model);
    cgam_call call = {.verb = verb, .env = env, .doc = json_object()};
    cgam_status status =
        bytes && wish.options && call.doc ? CGAM_OK : cgam_fail_nomem(env, "options");
    if (h->events) call.progress.to.report = ignore;
    if (status == CGAM_OK) status = cgam_args_json(env, verb, wish.options, &args);
    call.args = args;
    if (status == CGAM_OK) status = cgam_guest_ask(&h->server, &h->asked, &wish, &call);
    json_decref(h->doc);
    h->doc = call.doc;
    h->negative = call.negative;
    json_decref(wish.options);
    cgam_args_free(args);
    free(bytes);
    return status;
}

static bool answered(const host *h)
{
    return json_integer_value(json_object_get(h->doc, "a")) == 1 && h->negative;
}

static void guests_that_mean_no_good_are_told_of(void **state)
{
    (void)state;
    static const struct {
        const char *how, *message;
        cgam_status status;
        int left; /* guests that stay */
    } cases[] = {
        {"is good", NULL, CGAM_OK, 1},
        {"fails", "a damaged model", CGAM_E_FORMAT, 1},
        {"dies", "itself with status 7", CGAM_E_INTERNAL, 0},
        {"dies at once", "itself with status 9", CGAM_E_INTERNAL, 0},
        {"aborts", "signal 6", CGAM_E_INTERNAL, 0},
        {"cut in its head", "itself with status 0", CGAM_E_INTERNAL, 0},
        {"cut", "itself with status 0", CGAM_E_INTERNAL, 0},
        {"large", "signal 9", CGAM_E_INTERNAL, 0},
        {"no document", "makes no sense", CGAM_E_INTERNAL, 0},
        {"two events", "makes no sense", CGAM_E_INTERNAL, 0},
        {"no frame", "makes no sense", CGAM_E_INTERNAL, 0},
        {"no failure", "makes no sense", CGAM_E_INTERNAL, 0},
        {"no status", "makes no sense", CGAM_E_INTERNAL, 0},
        {"large status", "makes no sense", CGAM_E_INTERNAL, 0},
    };
    int wrong = 0;
    cgam_env *env = object_env(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h;
        host_open(&h, env, cases[i].how);
        cgam_status status = host_ask(&h, "m.gguf");
        const char *said = status == CGAM_OK ? "" : cgam_env_message(env);
        int left = (int)cgam_guests_describe(&h.server).count;
        if (status != cases[i].status || left != cases[i].left || strchr(said, '\n') ||
            (cases[i].message ? !strstr(said, cases[i].message) : !answered(&h))) {
            print_error("a guest that %s: status %d with '%s', %d left\n", cases[i].how, status,
                        said, left);
            wrong++;
        }
        host_close(&h);
    }
    assert_int_equal(wrong, 0);
    cgam_env_free(env);
}

static void a_guest_stops_when_it_is_asked_to(void **state)
{
    (void)state;
    host h;
    cgam_env *env = object_env(1);
    host_open(&h, env, "stops");
    h.asked.limit = 0;
    assert_int_equal(host_ask(&h, "m.gguf"), CGAM_E_INTERRUPTED);
    assert_true(h.asked.late);
    assert_int_equal(cgam_guests_describe(&h.server).count, 1);
    fail_call("send", EPIPE, 4); /* the wish to stop, after the three pieces of a request */
    cgam_status status = host_ask(&h, "m.gguf");
    bool failed = call_failed();
    fail_call(NULL, 0, 0);
    assert_int_equal(status, failed ? CGAM_E_INTERNAL : CGAM_E_INTERRUPTED);
    assert_int_equal(cgam_guests_describe(&h.server).count, !failed);
    host_close(&h);
    cgam_env_free(env);
}

/* In the middle of a word of its own or of ours, or in words without end, of which no more is kept than somebody reads. */
static void a_guest_that_stalls_is_ended(void **state)
{
    (void)state;
    static const char *const cases[] = {"does not read", "stalls in its head", "stalls",
                                        "chatters"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        host h;
        cgam_env *env = object_env(1);
        host_open(&h, env, cases[i]);
        h.lent = i == 0 ? 4 << 20 : 0; /* more than a socket takes */
        h.events = true;
        h.asked.limit = 0.1;
        double begun = cgam_clock();
        assert_int_equal(host_ask(&h, "m.gguf"), CGAM_E_INTERRUPTED);
        assert_true(h.asked.late && cgam_clock() - begun < WAIT_SECONDS);
        assert_int_equal(cgam_guests_describe(&h.server).count, 0);
        assert_true(h.asked.text_room < 1 << 20);
        free(h.asked.text);
        host_close(&h);
        cgam_env_free(env);
    }
}

/* Each says that it keeps 100 bytes. */
static void guests_that_keep_too_much_go(void **state)
{
    (void)state;
    host h;
    cgam_env *env = object_env(1);
    host_open(&h, env, "is good");
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(env, host_ask(&h, "one.gguf"));
        CHECK_STATUS(env, host_ask(&h, "two.gguf"));
        assert_int_equal(cgam_guests_describe(&h.server).count, 2);
        assert_int_equal(cgam_guests_describe(&h.server).bytes, 200);
        assert_int_equal(h.server.guests_started, 2); /* both stay */
    }
    h.server.house.room_bytes = 150;
    CHECK_STATUS(env, host_ask(&h, "one.gguf"));
    assert_int_equal(cgam_guests_describe(&h.server).count, 1);
    CHECK_STATUS(env, host_ask(&h, "one.gguf"));
    assert_int_equal(h.server.guests_started, 2); /* it was the other one that went */
    h.server.house.room_bytes = 99;
    CHECK_STATUS(env, host_ask(&h, "one.gguf"));
    assert_int_equal(cgam_guests_describe(&h.server).count, 0);
    host_close(&h);
    cgam_env_free(env);
}

static int ask_once(cgam_env *env, void *arg)
{
    host h;
    host_open(&h, env, arg);
    cgam_status status = host_ask(&h, "m.gguf");
    if (status == CGAM_OK && !answered(&h)) fail_msg("an answer that is none");
    host_close(&h);
    return status;
}

static void what_the_server_lacks_for_a_guest_is_told(void **state)
{
    (void)state;
    char how[] = "is good";
    if (malloc_fails_too()) assert_true(check_calls_of("malloc", ask_once, how, NULL) > 20);
    static const struct {
        const char *call;
        int error, k;
        const char *message; /* NULL: it goes on */
    } cases[] = {
        {"socketpair", EMFILE, 1, "no process for the model: Too many open files"},
        {"posix_spawn_file_actions_init", ENOMEM, 1, "no process for the model: Cannot allocate"},
        {"send", EINTR, 1, NULL},
        {"send", EPIPE, 1, "signal 9"},
        {"send", EPIPE, 2, "signal 9"},
        {"send", EPIPE, 3, "signal 9"},
        {"read", EINTR, 1, NULL},
        {"read", EIO, 1, "signal 9"},
    };
    for (size_t i = 0; malloc_fails_too() && i < sizeof cases / sizeof *cases; i++) {
        host h;
        cgam_env *env = object_env(1);
        host_open(&h, env, how);
        fail_call(cases[i].call, cases[i].error, cases[i].k);
        cgam_status status = host_ask(&h, "m.gguf");
        assert_true(call_failed());
        fail_call(NULL, 0, 0);
        if (!cases[i].message) assert_true(status == CGAM_OK && answered(&h));
        else if (status == CGAM_OK || !strstr(cgam_env_message(env), cases[i].message))
            fail_msg("%s %d: %d, '%s'", cases[i].call, cases[i].k, status, cgam_env_message(env));
        host_close(&h);
        cgam_env_free(env);
    }
}

/* ---- the guest's side -------------------------------------------------------------------------- */

typedef struct room {
    pid_t pid;
    int line;
} room;

/* A child that runs as a guest, with one call failing; words: of the command line beside --guest. */
static room room_open(const char *call, int error, int k, int count, const char *const *words)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fflush(NULL);
    room r = {fork(), ends[0]};
    assert_true(r.pid >= 0);
    if (r.pid == 0) {
        const char *all[8] = {"--guest"};
        for (int i = 0; i < count; i++) all[i + 1] = words[i];
        cgam_env *env = NULL;
        cgam_args *args = NULL;
        cgam_env_opts opts = cgam_env_opts_default();
        opts.threads = 1;
        close(ends[0]);
        if (dup2(ends[1], 0) != 0 || cgam_env_new(&opts, &env) != CGAM_OK ||
            cgam_args_parse(env, &cgam_verb_serve, count + 1, all, &args) != CGAM_OK)
            _exit(90);
        close(ends[1]);
        fail_call(call, error, k);
        cgam_call run = {.env = env, .args = args, .verb = &cgam_verb_serve};
        cgam_status status = cgam_guest_run(&run);
        bool told = status != CGAM_OK && *cgam_env_message(env);
        _exit(told ? 3 : 91);
    }
    close(ends[1]);
    const struct timeval most = {.tv_sec = WAIT_SECONDS};
    setsockopt(r.line, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    return r;
}

static bool room_send(room r, const char *work, const char *lent)
{
    cgam_frame frame = {.kind = CGAM_FRAME_WORK, .size = strlen(work)};
    return cgam_frame_write(r.line, &frame, sizeof frame) &&
           cgam_frame_write(r.line, work, strlen(work)) &&
           cgam_frame_write(r.line, lent, strlen(lent));
}

/* The kind of frame that ends the request, with its text for free(); 0: it ended itself. */
static uint32_t room_hear(room r, char **text)
{
    cgam_frame frame = {0};
    *text = NULL;
    while (cgam_frame_read(r.line, &frame, sizeof frame)) {
        *text = cgam_frame_text(r.line, &frame);
        if (frame.kind != CGAM_FRAME_TOLD) return *text ? frame.kind : 0;
        free(*text);
        *text = NULL;
    }
    return 0;
}

/* Its exit status, 128 where a signal ended it: ours, if it did not end by itself. */
static int room_close(room r)
{
    int state = 0;
    close(r.line);
    for (int ms = 0; waitpid(r.pid, &state, WNOHANG) == 0; ms++) {
        if (ms > 1000 * WAIT_SECONDS) kill(r.pid, SIGKILL);
        usleep(1000);
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

#define GOOD                                                                                       \
    "{\"verb\": \"recall\", \"options\": {\"bank\": \"demo:\", \"query\": \"rows:7\"}, \"alone\": true"
#define LENT                                                                                       \
    "{\"verb\": \"bank names\", \"options\": {\"bank\": \"demo:\", \"names\": \"names\"}, \"lent\": "

static void a_guest_answers_or_ends(void **state)
{
    (void)state;
    char many[4000] = GOOD ", \"lent\": [0";
    while (strlen(many) < 1000) snprintf(many + strlen(many), 8, ",0,0");
    snprintf(many + strlen(many), 8, "]}");
    const struct {
        const char *work, *lent;
        uint32_t kind; /* 0: it ends */
        const char *piece;
        bool hang_up; /* nothing more comes */
    } cases[] = {
        {GOOD "}", "", CGAM_FRAME_DONE, "\"queries\"", false},
        {GOOD ", \"lent\": [[\"x\", 0]]}", "", CGAM_FRAME_DONE, "\"queries\"", false},
        {LENT "[[\"names\", 2]]}", "a\n", CGAM_FRAME_FAILED, "names", false},
        {"{\"verb\": \"recall\", \"options\": {\"bank\": \"demo:\"}}", "", CGAM_FRAME_FAILED,
         "query is missing", false},
        {"{\"verb\": \"recall\", \"options\": {\"x\": 1}}", "", CGAM_FRAME_FAILED, "x", false},
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
        room r = room_open(NULL, 0, 0, 0, NULL);
        const cgam_frame stop = {.kind = CGAM_FRAME_STOP}; /* one that comes too late */
        assert_true(cgam_frame_write(r.line, &stop, sizeof stop));
        assert_true(room_send(r, cases[i].work, cases[i].lent));
        if (cases[i].hang_up) shutdown(r.line, SHUT_WR);
        uint32_t kind = room_hear(r, &text);
        bool fine = kind == cases[i].kind && (!kind || strstr(text, cases[i].piece));
        free(text);
        if (fine && kind) { /* it goes on */
            fine = room_send(r, GOOD "}", "") && room_hear(r, &text) == CGAM_FRAME_DONE;
            free(text);
        }
        int end = room_close(r);
        if (fine && end == 0) continue;
        print_error("%.80s: answered by %u, ended with %d\n", cases[i].work, kind, end);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void a_guest_whose_server_is_gone_ends(void **state)
{
    (void)state;
    room r = room_open(NULL, 0, 0, 0, NULL);
    assert_true(room_send(r, GOOD "}", ""));
    assert_int_equal(room_close(r), 0); /* it speaks to nobody */
    r = room_open(NULL, 0, 0, 0, NULL);
    assert_int_equal(write(r.line, "abc", 3), 3); /* of a frame */
    assert_int_equal(room_close(r), 0);
}

/* One that hangs does not see it: here its line stays open, by a process that holds it. `alive` ends with the guest. */
static void a_guest_ends_with_the_process_that_started_it(void **state)
{
    (void)state;
    int alive[2];
    assert_int_equal(pipe(alive), 0);
    fflush(NULL);
    pid_t server = fork(), holder = 0;
    assert_true(server >= 0);
    if (server == 0) {
        char *text;
        close(alive[0]);
        room r = room_open(NULL, 0, 0, 0, NULL);
        if (!room_send(r, GOOD "}", "") || room_hear(r, &text) != CGAM_FRAME_DONE) _exit(1);
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

static void a_guest_without_a_sandbox_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *words[4];
        int count, status;
    } cases[] = {
        {{"--root", "/tmp", "--store", "/tmp/s.db"}, 4, 0},
        {{"--store", "s.db"}, 2, 3}, /* in which folder? */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        room r = room_open(NULL, 0, 0, cases[i].count, cases[i].words);
        assert_int_equal(room_close(r), cases[i].status);
    }
}

/* What a guest says to a request of which all is there: its answer, a line that says why not, or nothing more. */
static bool says_right(room r, uint32_t *kind)
{
    char *text = NULL;
    *kind = room_send(r, GOOD ", \"lent\": [[\"x\", 2]]}", "a\n") ? room_hear(r, &text) : 0;
    json_t *doc = *kind == CGAM_FRAME_DONE ? json_loads(text, 0, NULL) : NULL;
    bool right = !*kind || json_array_size(json_object_get(doc, "queries")) == 1 ||
                 (*kind == CGAM_FRAME_FAILED && *text && !strchr(text, '\n'));
    if (!right) print_error("frame %u: %.200s\n", *kind, text);
    json_decref(doc);
    free(text);
    return right;
}

static void a_guest_without_memory_says_so_or_ends(void **state)
{
    (void)state;
    static const char *const words[] = {"--root", "/tmp", "--store", "/tmp/s.db"};
    if (!malloc_fails_too()) skip();
    int wrong = 0, failed = 0, ended = 0;
    int survived = 0; /* in a row: when there are many, no more memory was asked for */
    for (int k = 1; survived < 20; k++) {
        uint32_t first, second = 0;
        room r = room_open("malloc", ENOMEM, k, 4, words);
        bool right = says_right(r, &first) && (!first || says_right(r, &second));
        int end = room_close(r);
        failed += first == CGAM_FRAME_FAILED;
        ended += !first;
        survived = first == CGAM_FRAME_DONE ? survived + 1 : 0;
        if (right && (end == 0 || end == 3) &&
            (first != CGAM_FRAME_FAILED || second == CGAM_FRAME_DONE))
            continue;
        print_error("request %d for memory: frames %u and %u, the end is %d\n", k, first, second,
                    end);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    assert_true(failed > 5 && ended > 5);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "serve") == 0 && strcmp(argv[2], "--guest") == 0)
        for (int i = 3; i + 1 < argc; i++)
            if (strcmp(argv[i], "--root") == 0) return behave(argv[i + 1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_that_mean_no_good_are_told_of),
        cmocka_unit_test(a_guest_stops_when_it_is_asked_to),
        cmocka_unit_test(a_guest_that_stalls_is_ended),
        cmocka_unit_test(guests_that_keep_too_much_go),
        cmocka_unit_test(what_the_server_lacks_for_a_guest_is_told),
        cmocka_unit_test(a_guest_answers_or_ends),
        cmocka_unit_test(a_guest_whose_server_is_gone_ends),
        cmocka_unit_test(a_guest_ends_with_the_process_that_started_it),
        cmocka_unit_test(a_guest_without_a_sandbox_is_none),
        cmocka_unit_test(a_guest_without_memory_says_so_or_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
