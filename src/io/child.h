/* child.h: other programs - gnuplot, Graphviz, npm, tar - started without a shell between. */
#ifndef CGAM_SRC_IO_CHILD_H
#define CGAM_SRC_IO_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct cgam_child {
    const char *const *argv; /* NULL ends; the program is looked for in PATH */
    const char *folder;      /* where it starts; NULL = here */
    int in, out;             /* open files for its standard input and output; 0 = none */
    const char *log;         /* a file, from `folder`, for its errors; NULL = none */
    bool log_all;            /* and for its output */
    bool apart;              /* in a group of its own: Ctrl-C reaches us, and we end it */
} cgam_child;

/* 0 or errno; ENOENT: no such program. */
int cgam_child_start(const cgam_child *child, pid_t *pid);
/* Waits for its end and gives the exit status, 128 when a signal ended it. 127 is what some systems
 * say of a program that is not there. */
int cgam_child_wait(pid_t pid);

#endif
