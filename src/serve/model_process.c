/* model_process.c: the model process's side. Handles one request after the other, until the server closes the socket. */
#include "serve/model_process.h"

#include "lm/model.h"
#include "serve/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SOCKET = 0, FILES_MAX = 256 }; /* the descriptor; files of a request */

static const cgam_packet_end server = {.fd = SOCKET};
static cgam_shelf *shelf;    /* holds the model */
static double last_progress; /* when progress was last last_progress of */

/* ---- packets ------------------------------------------------------------------------------------ */

/* Sends, or receives, the next bytes; 0: none yet, -1: the other end has closed. */
static ssize_t transfer(const cgam_packet_end *end, void *bytes, size_t size, short direction)
{
    const int flags = MSG_NOSIGNAL | (end->ready ? MSG_DONTWAIT : 0);
    if (end->ready && !end->ready(end->user, direction)) return -1;
    ssize_t n =
        direction == POLLOUT ? send(end->fd, bytes, size, flags) : read(end->fd, bytes, size);
    if (n < 0 && (errno == EINTR || (end->ready && errno == EAGAIN))) return 0;
    return n > 0 ? n : -1;
}

static bool transfer_all(const cgam_packet_end *end, char *bytes, size_t size, short direction)
{
    while (size > 0) {
        ssize_t n = transfer(end, bytes, size, direction);
        if (n < 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

bool cgam_packet_write(const cgam_packet_end *end, const void *bytes, size_t size)
{
    return transfer_all(end, (char *)(uintptr_t)bytes, size, POLLOUT);
}

bool cgam_packet_read(const cgam_packet_end *end, void *bytes, size_t size)
{
    return transfer_all(end, bytes, size, POLLIN);
}

char *cgam_packet_text(const cgam_packet_end *end, const cgam_packet *packet, uint64_t most)
{
    char *text = packet->size <= most ? malloc((size_t)packet->size + 1) : NULL;
    if (text && cgam_packet_read(end, text, (size_t)packet->size)) {
        text[packet->size] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static void send_packet(cgam_packet_kind kind, uint32_t flag, const char *text, size_t size)
{
    cgam_packet packet = {.kind = kind, .flag = flag, .size = size};
    if (kind != CGAM_PACKET_PROGRESS) packet.kept = cgam_shelf_describe(shelf).bytes;
    if (!cgam_packet_write(&server, &packet, sizeof packet) ||
        !cgam_packet_write(&server, text, size))
        _exit(0); /* the server is gone */
}

/* ---- one request ------------------------------------------------------------------------------- */

/* While a verb runs the server sends nothing but STOP; otherwise it has closed the socket. */
static bool interrupted(void *user)
{
    struct pollfd socket = {.fd = SOCKET, .events = POLLIN};
    (void)user;
    return poll(&socket, 1, 0) > 0;
}

static void on_progress(void *user, const cgam_progress_at *at)
{
    double now = cgam_clock();
    (void)user;
    if (now - last_progress < CGAM_PROGRESS_EVERY && at->done < at->total) return;
    last_progress = now;
    char *text = cgam_progress_text(at);
    if (text) send_packet(CGAM_PACKET_PROGRESS, 0, text, strlen(text));
    free(text);
}

static void on_last_words(const char *words)
{
    char text[320];
    snprintf(text, sizeof text, "this model ended libllama: %s", words);
    send_packet(CGAM_PACKET_FAILED, (uint32_t)-CGAM_E_FORMAT, text, strlen(text));
    _exit(2);
}

static const cgam_verb *find_verb(const char *name)
{
    for (int i = 0; cgam_verbs[i]; i++)
        if (strcmp(cgam_verbs[i]->name, name) == 0) return cgam_verbs[i];
    return NULL;
}

static void free_files(const cgam_memory_file *files, int count)
{
    for (int i = 0; i < count; i++) free((void *)(uintptr_t)files[i].bytes);
}

/* Receives the files of a request and returns their count; -1: the server is gone. */
static int receive_files(const json_t *list, cgam_memory_file *files)
{
    int count = (int)json_array_size(list);
    for (int i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, (size_t)i);
        size_t size = (size_t)json_integer_value(json_array_get(one, 1));
        uint8_t *bytes = malloc(size ? size : 1);
        files[i] = (cgam_memory_file){json_string_value(json_array_get(one, 0)), bytes, size};
        if (bytes && cgam_packet_read(&server, bytes, size)) continue;
        free_files(files, i + 1);
        return -1;
    }
    return count;
}

static void run_verb(cgam_call *call, json_t *work, const cgam_file_overlay *overlay)
{
    cgam_args *args = NULL;
    cgam_status status =
        cgam_args_json(call->env, call->verb, json_object_get(work, "options"), &args);
    call->progress.to = (cgam_progress){on_progress, NULL};
    call->args = args;
    call->doc = json_object();
    last_progress = 0;
    cgam_file_overlay_set(overlay);
    if (status == CGAM_OK) status = cgam_call_run(call);
    cgam_file_overlay_set(NULL);
    char *text = NULL;
    if (status == CGAM_OK) status = cgam_json_text(call->env, call->doc, &text);
    if (status == CGAM_OK) send_packet(CGAM_PACKET_DONE, call->negative, text, strlen(text));
    else {
        const char *message = cgam_env_message(call->env);
        send_packet(CGAM_PACKET_FAILED, (uint32_t)-status, message, strlen(message));
    }
    cgam_call_end(call);
    cgam_text_free(call->env, text);
    json_decref(call->doc);
    cgam_args_free(args);
}

static bool answer_request(cgam_env *env, const cgam_packet *packet)
{
    cgam_memory_file files[FILES_MAX];
    char *text = cgam_packet_text(&server, packet, SIZE_MAX - 1);
    json_t *work = text ? json_loads(text, 0, NULL) : NULL;
    json_t *list = json_object_get(work, "files");
    cgam_call call = {.env = env, .shelf = shelf};
    call.verb = work ? find_verb(cgam_json_get_text(work, "verb")) : NULL;
    int count = call.verb && json_array_size(list) <= FILES_MAX ? receive_files(list, files) : -1;
    if (count >= 0) {
        cgam_file_overlay overlay = {files, count,
                                     json_is_true(json_object_get(work, "exclusive"))};
        run_verb(&call, work, &overlay);
    }
    free_files(files, count);
    json_decref(work);
    free(text);
    return count >= 0;
}

/* ---- its life ---------------------------------------------------------------------------------- */

/* Verbs may write below the root and in the folders of stores and caches, which hold logs and temporary files too. */
static void enter_sandbox(const cgam_call *call)
{
    static const char *const kinds[] = {"store", "cache"};
    const char *const *files, *root = cgam_args_text(call->args, "root");
    int64_t most = cgam_args_count(call->args, "store") + cgam_args_count(call->args, "cache");
    char **folders = calloc((size_t)most + 1, sizeof *folders);
    bool fine = folders != NULL;
    int n = 0;
    if (root && fine) fine = (folders[n++] = strdup(root)) != NULL;
    for (int k = 0; k < 2; k++) {
        int64_t count = cgam_args_words(call->args, kinds[k], &files);
        for (int64_t i = 0; i < count && fine; i++) {
            const char *slash = strrchr(files[i], '/');
            fine = slash && (folders[n++] = strndup(files[i], (size_t)(slash - files[i]) + 1));
        }
    }
    if (!fine) _exit(3); /* never run without the sandbox */
    if (n > 0) setenv("SQLITE_TMPDIR", folders[0], 1);
    const cgam_sandbox box = {.folders = (const char *const *)folders,
                              .count = n,
                              .memory = (size_t)cgam_args_int(call->args, "model-memory") << 20};
    if (cgam_sandbox_enter(&box).no_memory) _exit(3);
    while (n > 0) free(folders[--n]);
    free(folders);
}

cgam_status cgam_model_process_run(cgam_call *call)
{
    cgam_env *env;
    cgam_packet packet;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = cgam_env_threads(call->env);
    opts.interrupted = interrupted;
    signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a killed server cannot end us */
    setenv("GGML_NO_BACKTRACE", "1", 1);    /* it would start a debugger */
    enter_sandbox(call);
    cgam_llama_last_words(on_last_words);
    cgam_status status = cgam_env_new(&opts, &env);
    if (status == CGAM_OK) status = cgam_shelf_new(env, SIZE_MAX, &shelf);
    if (status != CGAM_OK) return cgam_fail(call->env, status, "%s", cgam_status_text(status));
    while (cgam_packet_read(&server, &packet, sizeof packet))
        if (packet.kind == CGAM_PACKET_WORK && !answer_request(env, &packet)) break;
    _exit(0); /* no need to free anything */
}
