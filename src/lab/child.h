/* child.h: starts other programs (gnuplot, Graphviz, npm, tar) without a shell. */
#ifndef CGAM_SRC_LAB_CHILD_H
#define CGAM_SRC_LAB_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct cgam_child {
    const char *const *argv; /* ends with NULL; the program is searched in PATH */
    const char *folder;      /* its working directory; NULL = ours */
    int in, out;             /* open files for its standard input and output; 0 = none */
    const char *log;         /* a file, relative to `folder`, for its errors; NULL = none */
    bool log_all;            /* and for its output */
    bool apart;              /* in its own process group: Ctrl-C reaches only us, and we end it */
} cgam_child;

/* Returns 0 or errno; ENOENT: no such program. */
int cgam_child_start(const cgam_child *child, pid_t *pid);
/* Waits for its end and returns the exit status, 128 if a signal ended it. Some systems return 127 for a
 * missing program. */
int cgam_child_wait(pid_t pid);

#endif
