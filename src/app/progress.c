/* progress.c: a bar, the share done and the time left, redrawn in place; or one line after another. */
#include "app/progress.h"

#include "base/env.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 30, EVERY = 15 /* seconds between printed lines */ };

static atomic_bool drawn; /* a verb has drawn its own line */
static bool idle;         /* a line of cgam_line_idle is on the screen */

/* Returns true for a file or a pipe, where a line cannot be redrawn. */
static bool stays(void)
{
    int fd = fileno(stderr);
    return fd >= 0 && !isatty(fd);
}

void cgam_line_tell(cgam_line *line, double done, double seconds_left)
{
    if (line->shown.to.report) {
        cgam_progress_at at = {.phase = line->what, .done = done, .total = 1, .unit = ""};
        at.seconds_left = seconds_left;
        cgam_progress_tell(&line->shown.to, at);
    }
    if (!line->shown.line || line->shown.to.report) return;
    char bar[BAR + 1], left[48] = "", text[256];
    const char *of = line->all_start != 0 ? " of all" : "";
    for (int i = 0; i < BAR; i++) bar[i] = (i + 0.5) / BAR < done ? '#' : '.';
    bar[BAR] = '\0';
    if (seconds_left >= 3600) snprintf(left, sizeof left, "%.1f h left", seconds_left / 3600);
    else if (seconds_left >= 90) snprintf(left, sizeof left, "%.0f min left", seconds_left / 60);
    else if (seconds_left >= 0) snprintf(left, sizeof left, "%.0f s left", ceil(seconds_left));
    if (stays()) {
        double now = cgam_clock();
        if (line->said == 0) line->said = now; /* short work prints nothing */
        if (now - line->said < EVERY) return;
        line->said = now;
        fprintf(stderr, "%s: %.0f%%%s%s%s\n", line->what, 100 * done, of, *left ? ", " : "", left);
        return;
    }
    drawn = true;
    int width = snprintf(text, sizeof text, "%-12s %s %3.0f%%%s  %s", line->what, bar, 100 * done,
                         of, left);
    fprintf(stderr, "\r%-*s", line->width, text); /* overwrites the whole previous line */
    fflush(stderr);
    line->width = width;
}

void cgam_line_clear(cgam_line *line)
{
    if (line->width) fprintf(stderr, "\r%*s\r", line->width, "");
    line->width = 0;
}

static void follow(void *user, const cgam_progress_at *at)
{
    cgam_line *line = user;
    double now = cgam_clock();
    if (strncmp(line->phase, at->phase, sizeof line->phase - 1) != 0) {
        snprintf(line->phase, sizeof line->phase, "%s", at->phase);
        snprintf(line->text, sizeof line->text, "%s", at->phase);
        line->start = now;
        line->first_done = at->done;
    } else if (now - line->last < 0.1 && at->done < at->total) {
        return;
    }
    line->last = now;
    double rate = now > line->start ? (at->done - line->first_done) / (now - line->start) : 0;
    bool bytes = strcmp(at->unit, "bytes") == 0;
    if (rate > 0 && *at->unit)
        snprintf(line->text, sizeof line->text, "%s, %.3g %s/s", at->phase,
                 bytes ? rate / 1e6 : rate, bytes ? "MB" : at->unit);
    double left = at->seconds_left;
    if (isnan(left) && rate > 0) left = fmax(0, at->total - at->done) / rate;
    double share = at->total > 0 ? fmin(1, at->done / at->total) : 0;
    if (at->all_total > 0) {
        share = fmin(1, at->all_done / at->all_total);
        if (line->all_start == 0) line->all_start = now, line->all_first = share;
        double gone = now - line->all_start, step = share - line->all_first;
        left = step > 0 && gone > 0 ? gone * (1 - share) / step : (double)NAN;
    }
    if (line->shown.to.report) {
        cgam_progress_at on = *at;
        on.seconds_left = left;
        cgam_progress_tell(&line->shown.to, on);
    } else cgam_line_tell(line, share, left);
}

cgam_progress cgam_line_begin(cgam_line *line, cgam_tell shown)
{
    *line = (cgam_line){.shown = shown, .start = cgam_clock()};
    line->what = line->text;
    return shown.line || shown.to.report ? (cgam_progress){follow, line}
                                         : (cgam_progress){NULL, NULL};
}

void cgam_line_idle(const char *verb, double seconds)
{
    if (drawn || stays()) return;
    fprintf(stderr, "\r%-12s running for %.0f s", verb, floor(seconds));
    fflush(stderr);
    idle = true;
}

void cgam_line_idle_clear(void)
{
    if (idle && !drawn) fprintf(stderr, "\r%*s\r", 12 + 32, "");
    idle = false;
}
