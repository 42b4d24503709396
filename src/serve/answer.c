/* answer.c: sends answers, with the headers that all of them have. */
#include "serve/server.h"

#include "lab/embedded.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Scripts, styles and pictures come from our own files only, none inline; no framing; no guessing of types;
 * no referrer, which could hold a token; API answers are not cached. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
     "data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};
static const char CACHE[] = "Cache-Control";

static enum MHD_Result queue_response(cgam_exchange *exchange, int code, const char *type,
                                      struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    const char *origin =
        MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "Origin");
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (!MHD_get_response_header(response, CACHE))
        MHD_add_response_header(response, CACHE, "no-store");
    if (type) MHD_add_response_header(response, "Content-Type", type);
    if (cgam_guard_cors(&exchange->server->guard, origin)) {
        MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
        MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                "Authorization, Content-Type, Accept");
        MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST");
        MHD_add_response_header(response, "Vary", "Origin");
    }
    if (code == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (code == MHD_HTTP_TOO_MANY_REQUESTS || code == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "1");
    if (exchange->negative) MHD_add_response_header(response, "Cgam-Status", "1");
    if (atomic_load(&exchange->server->draining))
        MHD_add_response_header(response, "Connection", "close");
    exchange->code = code;
    enum MHD_Result queued = MHD_queue_response(exchange->connection, (unsigned)code, response);
    MHD_destroy_response(response);
    return queued;
}

enum MHD_Result cgam_answer_text(cgam_exchange *exchange, int code, const char *type, char *text,
                                 size_t size)
{
    exchange->sent = size;
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (text && !response) free(text);
    return queue_response(exchange, code, type, response);
}

enum MHD_Result cgam_answer_error(cgam_exchange *exchange, int code, const char *message)
{
    char *text = cgam_error_text(code, message);
    return cgam_answer_text(exchange, code, "application/json", text, text ? strlen(text) : 0);
}

enum MHD_Result cgam_answer_json(cgam_exchange *exchange, int code, json_t *doc)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    bool fine = !cgam_json_ran_short() && to && cgam_json_write(to, doc, 1);
    if (to) fine &= fclose(to) == 0 && text;
    json_decref(doc);
    if (!fine) free(text);
    return fine ? cgam_answer_text(exchange, code, "application/json", text, size)
                : cgam_answer_error(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
}

/* By the suffix of a name. */
static const char *type_of(const char *name)
{
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".mjs", "text/javascript; charset=utf-8"},
                                           {".svg", "image/svg+xml"},
                                           {".png", "image/png"},
                                           {".ico", "image/x-icon"},
                                           {".json", "application/json"},
                                           {".woff2", "font/woff2"},
                                           {".txt", "text/plain; charset=utf-8"},
                                           {".csv", "text/csv; charset=utf-8"},
                                           {".pdf", "application/pdf"},
                                           {".webmanifest", "application/manifest+json"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cgam_path_ends(name, types[i][0])) return types[i][1];
    return "application/octet-stream";
}

enum MHD_Result cgam_answer_page(cgam_exchange *exchange, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "serve/page/%s", *name ? name : "index.html");
    const cgam_embedded *file = cgam_embedded_find(path);
    if (!file) return cgam_answer_error(exchange, MHD_HTTP_NOT_FOUND, "not found");
    /* Browsers cache it and revalidate each time. */
    enum { DIGEST = 16 };
    uint8_t digest[DIGEST];
    char tag[2 * DIGEST + 3] = "\"";
    crypto_generichash(digest, DIGEST, (const uint8_t *)file->bytes, file->size, NULL, 0);
    sodium_bin2hex(tag + 1, sizeof tag - 1, digest, DIGEST);
    tag[2 * DIGEST + 1] = '"';
    tag[2 * DIGEST + 2] = 0;
    const char *has =
        MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "If-None-Match");
    bool same = has && strstr(has, tag);
    exchange->sent = same ? 0 : file->size;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        exchange->sent, (void *)(uintptr_t)file->bytes, MHD_RESPMEM_PERSISTENT);
    if (response) {
        MHD_add_response_header(response, "ETag", tag);
        MHD_add_response_header(response, CACHE, "no-cache");
    }
    return queue_response(exchange, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, type_of(path),
                          response);
}

enum MHD_Result cgam_answer_file(cgam_exchange *exchange, const char *name, int fd, size_t size)
{
    struct MHD_Response *response = MHD_create_response_from_fd(size, fd);
    if (!response) close(fd);
    else MHD_add_response_header(response, "Content-Disposition", "attachment");
    exchange->sent = size;
    return queue_response(exchange, MHD_HTTP_OK, type_of(name), response);
}

/* Sends the worker's events; suspends the connection while there are none. */
static ssize_t read_events(void *user, uint64_t position, char *to, size_t capacity)
{
    (void)position;
    cgam_exchange *exchange = user;
    ssize_t count = 0;
    pthread_mutex_lock(&exchange->lock);
    if (exchange->text_size > 0) {
        size_t left = exchange->text_size - exchange->text_at,
               some = left < capacity ? left : capacity;
        memcpy(to, exchange->text + exchange->text_at, some);
        exchange->text_at += some;
        if (some == left) exchange->text_size = exchange->text_at = 0;
        exchange->sent += some;
        count = (ssize_t)some;
    } else if (exchange->stage == CGAM_STAGE_DONE) {
        count = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        exchange->suspended = true;
        MHD_suspend_connection(exchange->connection);
    }
    pthread_mutex_unlock(&exchange->lock);
    return count;
}

static void free_events(void *user) { cgam_exchange_release(user); }

enum MHD_Result cgam_answer_events(cgam_exchange *exchange)
{
    enum { BLOCK = 1 << 15 };
    atomic_fetch_add(&exchange->holders, 1);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK, read_events, exchange, free_events);
    if (!response) cgam_exchange_release(exchange);
    return queue_response(exchange, MHD_HTTP_OK, "text/event-stream", response);
}
