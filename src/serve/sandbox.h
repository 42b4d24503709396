/* sandbox.h: what a process that shows a file to somebody else's code gives up before: the network, writing outside a few
 * folders, looking into other processes, and memory beyond a limit. For as long as it lives, and for what it starts. */
#ifndef CGAM_SRC_SERVE_SANDBOX_H
#define CGAM_SRC_SERVE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cgam_sandbox {
    const char *const *folders; /* that may be written below; [count] */
    int count;
    size_t memory; /* bytes; 0: as much as the machine has */
} cgam_sandbox;

/* What the kernel took. */
typedef struct cgam_sandboxed {
    bool memory;  /* RLIMIT_DATA */
    bool files;   /* Landlock, Linux 5.13 */
    bool signals; /* Landlock, Linux 6.12 */
    bool calls;   /* seccomp */
} cgam_sandboxed;

/* Before other threads are started. What the kernel does not have is left out. */
cgam_sandboxed cgam_sandbox_enter(const cgam_sandbox *box);

#endif
