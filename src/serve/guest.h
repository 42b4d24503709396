/* guest.h: verbs that show a model to libllama run in a process of their own, a guest. It is this program again, started by
 * `serve --guest`, inside a sandbox; it keeps the model open from request to request, and what ends it ends nothing else.
 *
 * Between server and guest goes a stream of frames, on the guest's standard input:
 *
 *   to it      WORK   {"verb", "options", "alone", "lent": [[name, size] ..]}, then the bytes of what is lent
 *              STOP   nothing: what runs shall stop
 *   from it    TOLD   progress, as events have it
 *              DONE   the document; flag: the answer is no
 *              FAILED a message; flag: the status, turned positive
 *
 * DONE and FAILED also say how many bytes the guest keeps. */
#ifndef CGAM_SRC_SERVE_GUEST_H
#define CGAM_SRC_SERVE_GUEST_H

#include "serve/server.h"

typedef enum cgam_frame_kind {
    CGAM_FRAME_WORK = 1,
    CGAM_FRAME_STOP,
    CGAM_FRAME_TOLD,
    CGAM_FRAME_DONE,
    CGAM_FRAME_FAILED
} cgam_frame_kind;

typedef struct cgam_frame {
    uint32_t kind, flag;
    uint64_t size, kept;
} cgam_frame;

/* All of it, or false: the other end is gone. */
bool cgam_frame_write(int fd, const void *bytes, size_t size);
bool cgam_frame_read(int fd, void *bytes, size_t size);
/* The text of a frame, ended by a zero, for free(); NULL: none, or the other end is gone. */
char *cgam_frame_text(int fd, const cgam_frame *frame);

/* What `serve --guest` does. */
CGAM_NODISCARD cgam_status cgam_guest_run(cgam_call *call);

#endif
