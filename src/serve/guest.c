/* guest.c: the guest's side. One request after the other, until the server hangs up. */
#include "serve/guest.h"

#include "lm/last_words.h"
#include "serve/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LINE = 0, LENT_MAX = 256 }; /* the descriptor; files lent to a request */

static cgam_shelf *shelf; /* with the model */
static double told;       /* when progress was last told of */

/* ---- frames ------------------------------------------------------------------------------------ */

bool cgam_frame_write(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

bool cgam_frame_read(int fd, void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        ssize_t n = read(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

char *cgam_frame_text(int fd, const cgam_frame *frame)
{
    char *text = frame->size < SIZE_MAX ? malloc((size_t)frame->size + 1) : NULL;
    if (text && cgam_frame_read(fd, text, (size_t)frame->size)) {
        text[frame->size] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static void reply(cgam_frame_kind kind, uint32_t flag, const char *text, size_t size)
{
    cgam_frame frame = {.kind = kind, .flag = flag, .size = size};
    if (kind != CGAM_FRAME_TOLD) frame.kept = cgam_shelf_describe(shelf).bytes;
    if (!cgam_frame_write(LINE, &frame, sizeof frame) || !cgam_frame_write(LINE, text, size))
        _exit(0); /* nobody hears it */
}

/* ---- one request ------------------------------------------------------------------------------- */

/* A word from the server while a verb runs can only be that it shall stop, or that it is gone. */
static bool interrupted(void *user)
{
    struct pollfd line = {.fd = LINE, .events = POLLIN};
    (void)user;
    return poll(&line, 1, 0) > 0;
}

static void on_progress(void *user, const cgam_progress_at *at)
{
    double now = cgam_clock();
    (void)user;
    if (now - told < CGAM_TELL_EVERY && at->done < at->total) return;
    told = now;
    char *text = cgam_progress_text(at);
    if (text) reply(CGAM_FRAME_TOLD, 0, text, strlen(text));
    free(text);
}

static void on_last_words(const char *words)
{
    char text[320];
    snprintf(text, sizeof text, "this model ended libllama: %s", words);
    reply(CGAM_FRAME_FAILED, (uint32_t)-CGAM_E_FORMAT, text, strlen(text));
    _exit(2);
}

static const cgam_verb *verb_of(const char *name)
{
    for (int i = 0; cgam_verbs[i]; i++)
        if (strcmp(cgam_verbs[i]->name, name) == 0) return cgam_verbs[i];
    return NULL;
}

static void drop_lent(const cgam_lent *files, int count)
{
    for (int i = 0; i < count; i++) free((void *)(uintptr_t)files[i].bytes);
}

/* Reads what is lent; how many, -1: the server is gone. */
static int take_lent(const json_t *list, cgam_lent *files)
{
    int count = (int)json_array_size(list);
    for (int i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, (size_t)i);
        size_t size = (size_t)json_integer_value(json_array_get(one, 1));
        uint8_t *bytes = malloc(size ? size : 1);
        files[i] = (cgam_lent){json_string_value(json_array_get(one, 0)), bytes, size};
        if (bytes && cgam_frame_read(LINE, bytes, size)) continue;
        drop_lent(files, i + 1);
        return -1;
    }
    return count;
}

static void run_verb(cgam_call *call, json_t *work, const cgam_loan *loan)
{
    cgam_args *args = NULL;
    cgam_status status =
        cgam_args_json(call->env, call->verb, json_object_get(work, "options"), &args);
    call->progress.to = (cgam_progress){on_progress, NULL};
    call->args = args;
    call->doc = json_object();
    told = 0;
    cgam_file_lend(loan);
    if (status == CGAM_OK) status = cgam_call_run(call);
    cgam_file_lend(NULL);
    char *text = NULL;
    if (status == CGAM_OK) status = cgam_json_text(call->env, call->doc, &text);
    if (status == CGAM_OK) reply(CGAM_FRAME_DONE, call->negative, text, strlen(text));
    else {
        const char *message = cgam_env_message(call->env);
        reply(CGAM_FRAME_FAILED, (uint32_t)-status, message, strlen(message));
    }
    cgam_text_free(call->env, text);
    json_decref(call->doc);
    cgam_args_free(args);
}

static bool answer(cgam_env *env, const cgam_frame *frame)
{
    cgam_lent files[LENT_MAX];
    char *text = cgam_frame_text(LINE, frame);
    json_t *work = text ? json_loads(text, 0, NULL) : NULL;
    json_t *lent = json_object_get(work, "lent");
    cgam_call call = {.env = env, .shelf = shelf};
    call.verb = work ? verb_of(cgam_json_get_text(work, "verb")) : NULL;
    int count = call.verb && json_array_size(lent) <= LENT_MAX ? take_lent(lent, files) : -1;
    if (count >= 0) {
        cgam_loan loan = {files, count, json_is_true(json_object_get(work, "alone"))};
        run_verb(&call, work, &loan);
    }
    drop_lent(files, count);
    json_decref(work);
    free(text);
    return count >= 0;
}

/* ---- its life ---------------------------------------------------------------------------------- */

/* The folders that verbs may write below: the root, and those that stores lie in, with their logs. */
static void enter_sandbox(const cgam_call *call)
{
    const char *const *stores, *root = cgam_args_text(call->args, "root");
    int64_t count = cgam_args_words(call->args, "store", &stores);
    char **folders = calloc((size_t)count + 1, sizeof *folders);
    bool fine = folders != NULL;
    int n = 0;
    if (root && fine) fine = (folders[n++] = strdup(root)) != NULL;
    for (int64_t i = 0; i < count && fine; i++) {
        const char *slash = strrchr(stores[i], '/');
        fine = slash && (folders[n++] = strndup(stores[i], (size_t)(slash - stores[i]) + 1));
    }
    if (!fine) _exit(3); /* rather no guest than one at large */
    if (n > 0) setenv("SQLITE_TMPDIR", folders[0], 1);
    (void)cgam_sandbox_enter(
        &(cgam_sandbox){.folders = (const char *const *)folders,
                        .count = n,
                        .memory = (size_t)cgam_args_int(call->args, "model-memory") << 20});
    while (n > 0) free(folders[--n]);
    free(folders);
}

cgam_status cgam_guest_run(cgam_call *call)
{
    cgam_env *env;
    cgam_frame frame;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = cgam_env_threads(call->env);
    opts.interrupted = interrupted;
    signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a server that was killed cannot end us */
    setenv("GGML_NO_BACKTRACE", "1", 1);    /* it would start a debugger */
    enter_sandbox(call);
    cgam_llama_last_words(on_last_words);
    cgam_status status = cgam_env_new(&opts, &env);
    if (status == CGAM_OK) status = cgam_shelf_new(env, SIZE_MAX, &shelf);
    if (status != CGAM_OK) return cgam_fail(call->env, status, "%s", cgam_status_text(status));
    while (cgam_frame_read(LINE, &frame, sizeof frame))
        if (frame.kind == CGAM_FRAME_WORK && !answer(env, &frame)) break;
    _exit(0); /* nobody is there to see what we would leave tidy */
}
