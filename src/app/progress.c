/* progress.c: what, a bar, the share done, rate and time left. */
#include "app/progress.h"

#include "base/env.h"

#include <math.h>
#include <string.h>

static void draw(void *user, const char *what, double done, double total, const char *unit)
{
    enum { WIDTH = 24 };
    cgam_bar *bar = user;
    double now = cgam_clock();
    if (strncmp(bar->what, what, sizeof bar->what - 1) != 0) {
        snprintf(bar->what, sizeof bar->what, "%s", what);
        bar->start = now;
        bar->first_done = done;
    } else if (now - bar->last < 0.1 && done < total) return;
    bar->last = now;
    bar->shown = true;
    double share = total > 0 ? fmin(1, done / total) : 0;
    double rate = now > bar->start ? (done - bar->first_done) / (now - bar->start) : 0;
    double left = rate > 0 ? fmax(0, total - done) / rate : NAN;
    bool bytes = strcmp(unit, "bytes") == 0;
    char cells[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++) cells[i] = i < share * WIDTH ? '#' : '.';
    cells[WIDTH] = '\0';
    fprintf(stderr, "\r%-.40s [%s] %3.0f %%  %.4g %s/s", what, cells, 100 * share,
            bytes ? rate / 1e6 : rate, bytes ? "MB" : unit);
    if (isfinite(left)) fprintf(stderr, "  %.0f:%02.0f left", floor(left / 60), fmod(left, 60));
    fputs("\033[K", stderr);
    fflush(stderr);
}

cgam_lm_progress cgam_bar_begin(const cgam_call *call, cgam_bar *bar)
{
    *bar = (cgam_bar){.start = cgam_clock()};
    return call->progress ? (cgam_lm_progress){draw, bar} : (cgam_lm_progress){NULL, NULL};
}

void cgam_bar_end(cgam_bar *bar)
{
    if (bar->shown) fputs("\r\033[K", stderr);
}
