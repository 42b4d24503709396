/* progress.c: a bar, the share done and the time left, rewritten in place. */
#include "app/progress.h"

#include <math.h>
#include <stdio.h>

enum { BAR = 30 };

void cgam_line_tell(cgam_line *p, double done, double seconds_left)
{
    if (!p->shown) return;
    char bar[BAR + 1], left[48] = "";
    for (int i = 0; i < BAR; i++) bar[i] = (i + 0.5) / BAR < done ? '#' : '.';
    bar[BAR] = '\0';
    if (seconds_left >= 3600) snprintf(left, sizeof left, "%.1f h left", seconds_left / 3600);
    else if (seconds_left >= 90) snprintf(left, sizeof left, "%.0f min left", seconds_left / 60);
    else if (seconds_left >= 0) snprintf(left, sizeof left, "%.0f s left", ceil(seconds_left));
    fprintf(stderr, "\r%-12s %s %3.0f%%  %-14s", p->what, bar, 100 * done, left);
    fflush(stderr);
    p->open = true;
}

void cgam_line_report(void *line, const cgam_progress_at *at)
{
    cgam_line *p = line;
    p->what = at->phase;
    cgam_line_tell(p, at->total > 0 ? fmin(1, at->done / at->total) : 0, at->seconds_left);
}

void cgam_line_clear(cgam_line *p)
{
    if (p->open) fprintf(stderr, "\r%70s\r", "");
    p->open = false;
}
