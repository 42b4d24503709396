/* model_process.h: a verb that gives a model to libllama runs in a separate process: this program again, started as
 * `serve --guest`, inside a sandbox. It keeps the model open from request to request. If it crashes, nothing else does.
 *
 * Server and model process exchange packets over a socket, the standard input of the process:
 *
 *   to it      WORK      {"verb", "options", "exclusive", "files": [[name, size] ..]}, then the bytes of the files
 *              STOP      stop the running verb
 *   from it    PROGRESS  as in an event
 *              DONE      the document; flag: the answer is no
 *              FAILED    a message; flag: the negated status
 *
 * DONE and FAILED also carry the number of bytes that the process keeps. */
#ifndef CGAM_SRC_SERVE_MODEL_PROCESS_H
#define CGAM_SRC_SERVE_MODEL_PROCESS_H

#include "serve/server.h"

typedef enum cgam_packet_kind {
    CGAM_PACKET_WORK = 1,
    CGAM_PACKET_STOP,
    CGAM_PACKET_PROGRESS,
    CGAM_PACKET_DONE,
    CGAM_PACKET_FAILED
} cgam_packet_kind;

typedef struct cgam_packet {
    uint32_t kind, flag;
    uint64_t size, kept;
} cgam_packet;

/* One end of the socket. `ready` waits until it can be written (POLLOUT) or read (POLLIN), or returns false to give up;
 * NULL: calls block. */
typedef struct cgam_packet_end {
    int fd;
    bool (*ready)(void *user, short events);
    void *user;
} cgam_packet_end;
/* Transfers all bytes; false if the other end has closed, or `ready` gave up. */
bool cgam_packet_write(const cgam_packet_end *end, const void *bytes, size_t size);
bool cgam_packet_read(const cgam_packet_end *end, void *bytes, size_t size);
/* The text of a packet, zero-terminated, for free(); NULL if it has more than `most` bytes, without memory, or as above. */
char *cgam_packet_text(const cgam_packet_end *end, const cgam_packet *packet, uint64_t most);

/* What `serve --guest` does. */
CGAM_NODISCARD cgam_status cgam_model_process_run(cgam_call *call);

#endif
