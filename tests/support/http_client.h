/* http_client.h: just enough of HTTP to ask a server on this machine again and again over one
 * connection, as fast as that goes. */
#ifndef CGAM_TESTS_HTTP_CLIENT_H
#define CGAM_TESTS_HTTP_CLIENT_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct http_client {
    int fd, code;
    char *bytes; /* [size] what came last, head and body */
    size_t size, room;
    const char *body; /* [body_size], in bytes */
    size_t body_size;
} http_client;

static inline bool http_open(http_client *c, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *c = (http_client){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return c->fd >= 0 && connect(c->fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static inline void http_close(http_client *c)
{
    if (c->fd >= 0) close(c->fd);
    free(c->bytes);
}

static inline bool http_send(int fd, const char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t some = send(fd, bytes + at, size - at, MSG_NOSIGNAL);
        if (some <= 0) return false;
        at += (size_t)some;
    }
    return true;
}

/* The whole of a request for http_ask; for free(). */
static inline char *http_request(const char *path, int port, const char *token, const char *body,
                                 size_t body_size, size_t *size)
{
    char *text = malloc(body_size + 512);
    if (!text) return NULL;
    int head = snprintf(text, 512,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                        "%.200s\r\nContent-Length: %zu\r\n\r\n",
                        path, port, token, body_size);
    memcpy(text + head, body, body_size);
    *size = (size_t)head + body_size;
    return text;
}

/* Sends it and reads the answer; false where the connection broke or what came is no answer. */
static inline bool http_ask(http_client *c, const char *request, size_t size)
{
    size_t whole = 0;
    c->size = c->body_size = 0;
    c->code = 0; /* nothing of the answer before */
    c->body = NULL;
    if (!http_send(c->fd, request, size)) return false;
    while (whole == 0 || c->size < whole) {
        if (c->size + 4096 > c->room) {
            c->room = 2 * c->room + 65536;
            char *more = realloc(c->bytes, c->room);
            if (!more) return false;
            c->bytes = more;
        }
        ssize_t some = recv(c->fd, c->bytes + c->size, c->room - c->size - 1, 0);
        if (some <= 0) return false;
        c->size += (size_t)some;
        c->bytes[c->size] = 0;
        const char *end = whole ? NULL : strstr(c->bytes, "\r\n\r\n");
        if (!end) continue;
        const char *length = strcasestr(c->bytes, "\r\nContent-Length:");
        if (!length || length > end || sscanf(c->bytes, "HTTP/1.1 %d", &c->code) != 1) return false;
        c->body_size = strtoul(length + 17, NULL, 10);
        whole = (size_t)(end + 4 - c->bytes) + c->body_size;
    }
    c->body = c->bytes + whole - c->body_size;
    return c->size == whole;
}

#endif
