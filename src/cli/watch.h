/* watch.h: a thread that watches a running verb. It shows on a terminal that the verb runs, and ends the process if
 * the verb does not stop within a second of SIGINT or SIGTERM. */
#ifndef CGAM_SRC_CLI_WATCH_H
#define CGAM_SRC_CLI_WATCH_H

#include "app/verbs.h"

/* Catches SIGINT and SIGTERM and starts the thread. If it cannot start, only the library's checks stop a verb. */
void cgam_watch_start(void);
/* Has a signal arrived? For cgam_env_opts. */
bool cgam_watch_stopping(void *user);
/* Watches the call until cgam_watch_end. Ends the process with this status and line if the call does not stop;
 * an empty line prints nothing. Borrows both until the end. */
void cgam_watch_begin(const cgam_call *call, int status, const char *line);
void cgam_watch_end(void);
/* The verb has ended and its document is printed: nothing else may be. */
void cgam_watch_quiet(void);

#endif
