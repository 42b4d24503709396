/* sandbox.h: what a process gives up before it passes a file to third-party code: the network, writing outside a few
 * folders, access to other processes, and memory beyond a limit. The limits last for the life of the process and apply to
 * the processes it starts. */
#ifndef CGAM_SRC_SERVE_SANDBOX_H
#define CGAM_SRC_SERVE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cgam_sandbox {
    const char *const *folders; /* [count]; writing is allowed below them */
    int count;
    size_t memory; /* bytes; 0: all that the machine has */
} cgam_sandbox;

/* The limits that the kernel has applied. */
typedef struct cgam_sandboxed {
    bool memory;    /* RLIMIT_DATA */
    bool files;     /* Landlock, Linux 5.13 */
    bool signals;   /* Landlock, Linux 6.12 */
    bool calls;     /* seccomp */
    bool no_memory; /* the list of calls could not be built: the process must not go on */
} cgam_sandboxed;

/* Call before other threads are started. Limits that the kernel does not have are left out. */
cgam_sandboxed cgam_sandbox_enter(const cgam_sandbox *box);

#endif
