/* progress.h: how a long verb shows its progress on standard error: one line that is redrawn
 * on a terminal, or a new line every 15 seconds in a file or a pipe. */
#ifndef CGAM_SRC_APP_PROGRESS_H
#define CGAM_SRC_APP_PROGRESS_H

#include <cgam/base.h>

/* Where progress goes. */
typedef struct cgam_tell {
    bool line;        /* draw on standard error */
    cgam_progress to; /* else call this; report NULL: no progress */
} cgam_tell;

typedef struct cgam_line {
    cgam_tell shown;
    const char *what;
    int width; /* of the text on the screen; 0: nothing shown */
    /* For a line that shows a library's progress. */
    char phase[64], text[96];       /* the phase, and with its rate */
    double start, last, first_done; /* clock when it began and when last drawn; done at its start */
    double all_start,
        all_first; /* over all phases: clock and share at the first report; start 0: no report yet */
    double said;   /* clock of the last printed line; 0: none yet */
} cgam_line;

/* done in 0 .. 1; seconds_left NAN = unknown. */
void cgam_line_tell(cgam_line *line, double done, double seconds_left);
/* Returns a progress that draws on the line: rate, share and time left, over all phases if known. It calls shown.to
 * instead if that is set, and does nothing if neither is set. The caller keeps the line until cgam_line_clear. */
cgam_progress cgam_line_begin(cgam_line *line, cgam_tell shown);
void cgam_line_clear(cgam_line *line); /* removes it from the screen */

/* Shows on a terminal how many seconds a verb has been running, unless the verb draws its own line. Called from
 * another thread than the verb's; the caller serialises calls of these two functions. */
void cgam_line_idle(const char *verb, double seconds);
void cgam_line_idle_clear(void);

#endif
