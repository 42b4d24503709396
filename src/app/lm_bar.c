/* lm_bar.c: from amounts done to a share and the time left. */
#include "app/lm_bar.h"

#include "base/env.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void draw(void *user, const char *what, double done, double total, const char *unit)
{
    cgam_bar *bar = user;
    double now = cgam_clock();
    if (strncmp(bar->what, what, sizeof bar->what - 1) != 0) {
        snprintf(bar->what, sizeof bar->what, "%s", what);
        snprintf(bar->text, sizeof bar->text, "%s", what);
        bar->start = now;
        bar->first_done = done;
    } else if (now - bar->last < 0.1 && done < total) {
        return;
    }
    bar->last = now;
    double rate = now > bar->start ? (done - bar->first_done) / (now - bar->start) : 0;
    if (rate > 0)
        snprintf(bar->text, sizeof bar->text, "%s, %.3g %s/s", what,
                 strcmp(unit, "bytes") == 0 ? rate / 1e6 : rate,
                 strcmp(unit, "bytes") == 0 ? "MB" : unit);
    double left = rate > 0 ? fmax(0, total - done) / rate : NAN;
    cgam_line_tell(&bar->line, total > 0 ? fmin(1, done / total) : 0, left);
}

cgam_lm_progress cgam_bar_begin(const cgam_call *call, cgam_bar *bar)
{
    *bar = (cgam_bar){.start = cgam_clock()};
    bar->line = (cgam_line){.shown = true, .what = bar->text};
    return call->progress ? (cgam_lm_progress){draw, bar} : (cgam_lm_progress){NULL, NULL};
}

void cgam_bar_end(cgam_bar *bar) { cgam_line_clear(&bar->line); }
