/* progress.h: one line on standard error that says how far a long verb has come. */
#ifndef CGAM_SRC_APP_PROGRESS_H
#define CGAM_SRC_APP_PROGRESS_H

#include <cgam/base.h>

typedef struct cgam_line {
    bool shown; /* false: say nothing */
    const char *what;
    bool open; /* a line is on the screen */
} cgam_line;

/* done in 0 .. 1; seconds_left NAN = unknown. */
void cgam_line_tell(cgam_line *progress, double done, double seconds_left);
/* The same as the `report` of a cgam_progress whose user is the line. */
void cgam_line_report(void *line, const cgam_progress_at *at);
void cgam_line_clear(cgam_line *progress);

#endif
