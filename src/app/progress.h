/* progress.h: how a long verb shows its progress on standard error: one line that is drawn again
 * and again on a terminal, and a line now and then in a file or a pipe. */
#ifndef CGAM_SRC_APP_PROGRESS_H
#define CGAM_SRC_APP_PROGRESS_H

#include <cgam/base.h>

/* Who hears of it. */
typedef struct cgam_tell {
    bool line;        /* standard error does */
    cgam_progress to; /* instead of it, whoever this is; report NULL: nobody */
} cgam_tell;

typedef struct cgam_line {
    cgam_tell shown;
    const char *what;
    int width; /* of what is on the screen; 0: nothing */
    /* Of a line that tells a library's progress. */
    char phase[64], text[96];       /* the phase, and with its rate */
    double start, last, first_done; /* clock when it began and when last drawn; done at its start */
    double all_start,
        all_first; /* of all phases: clock and share when first told; start 0: not yet */
    double said;   /* clock of the last line that stays; 0: none yet */
} cgam_line;

/* done in 0 .. 1; seconds_left NAN = unknown. */
void cgam_line_tell(cgam_line *line, double done, double seconds_left);
/* A progress that draws on the line, with rate, share and time left, of all phases where it is known, or
 * hands it on; silent where nobody hears of it. The caller keeps the line until cgam_line_clear. */
cgam_progress cgam_line_begin(cgam_line *line, cgam_tell shown);
void cgam_line_clear(cgam_line *line); /* removes it from the screen */

/* Draws on a terminal that a verb has been running for so many seconds, unless the verb draws a line itself. For another
 * thread than the verb's; the caller allows one call at a time of these two. */
void cgam_line_idle(const char *verb, double seconds);
void cgam_line_idle_clear(void);

#endif
