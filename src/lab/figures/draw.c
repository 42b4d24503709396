/* draw.c: running gnuplot. Pictures are drawn under temporary names, looked at for their last bytes
 * (gnuplot does not notice a full disk), and renamed. */
#include "base/env.h"
#include "lab/child.h"
#include "lab/figures/figure.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PREFIX[] = ".cgam-drawing-";
static const char *const kinds[] = {"svg", "png", "pdf"};

/* The last bytes of a whole file of each kind; SVG may end in a newline, PDF too. */
static const char *const endings[] = {"</svg>", "IEND\256B`\202", "%%EOF"};

typedef struct job {
    cgam_env *env;
    const char *folder;
    const cgam_figures *figures;
    bool missing[CGAM_FIGURES_MAX];
} job;

static void path_of(char path[PATH_MAX], const char *folder, const char *prefix, const char *name,
                    const char *kind)
{
    snprintf(path, PATH_MAX, "%s/%s%s.%s", folder, prefix, name, kind);
}

/* Does the file end as one of its kind should, and is it on the disk? */
static bool whole(const char *path, const char *ending)
{
    char tail[32];
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    size_t length = strlen(ending), got = 0;
    if (fseek(f, -(long)sizeof tail, SEEK_END) == 0) got = fread(tail, 1, sizeof tail, f);
    if (fsync(fileno(f)) != 0) got = 0;
    fclose(f);
    while (got > 0 && (tail[got - 1] == '\n' || tail[got - 1] == '\r')) got--;
    return got >= length && memcmp(tail + got - length, ending, length) == 0;
}

/* The first line of gnuplot's complaint that says something. False: it left out a table that it could not read, which
 * it takes for no failure. */
static bool complaint(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    snprintf(text, size, "no reason given");
    char line[256];
    bool all = true;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        const char *at = line + strspn(line, " \t^");
        if (*at && (strstr(at, "line ") || strstr(at, "annot"))) {
            snprintf(text, size, "%s", at);
            all = !strstr(at, "Skipping unreadable");
            break;
        }
    }
    if (f) fclose(f);
    return all;
}

static cgam_status draw_one(void *arg, int64_t i)
{
    job *j = arg;
    const cgam_figure *figure = &j->figures->figure[i];
    char log[128], script[128], setting[64], path[PATH_MAX], to[PATH_MAX], text[200];
    snprintf(log, sizeof log, "%s%s.log", PREFIX, figure->name);
    snprintf(script, sizeof script, "%s.gp", figure->name);
    snprintf(setting, sizeof setting, "prefix = '%s'", PREFIX);
    /* -d: not the user's ~/.gnuplot */
    const char *argv[] = {"gnuplot", "-d", "-e", setting, script, NULL};
    pid_t pid;
    int error =
        cgam_child_start(&(cgam_child){.argv = argv, .folder = j->folder, .log = log}, &pid);
    int code = error ? -1 : cgam_child_wait(pid);
    path_of(path, j->folder, PREFIX, figure->name, "log");
    bool all = complaint(path, text, sizeof text);
    unlink(path);
    j->missing[i] = error == ENOENT || code == 127;
    if (j->missing[i]) return CGAM_OK;
    if (error)
        return cgam_fail(j->env, CGAM_E_IO, "gnuplot could not be started: %s",
                         strerror_r(error, text, sizeof text));
    bool fine = code == 0 && all;
    cgam_status status = CGAM_OK;
    for (int k = 0; k < 3; k++) {
        path_of(path, j->folder, PREFIX, figure->name, kinds[k]);
        path_of(to, j->folder, "", figure->name, kinds[k]);
        if (fine && status == CGAM_OK && !whole(path, endings[k]))
            status = cgam_fail(j->env, CGAM_E_IO, "%s: cannot write: the picture is incomplete",
                               cgam_path_tail(to));
        if (fine && status == CGAM_OK && rename(path, to) != 0)
            status = cgam_fail(j->env, CGAM_E_IO, "%s: cannot write: %s", cgam_path_tail(to),
                               strerror_r(errno, text, sizeof text));
        unlink(path); /* gone already when all went well */
    }
    if (!fine && cgam_interrupted(j->env))
        return cgam_fail(j->env, CGAM_E_INTERRUPTED, "stopped on request");
    if (!fine)
        return cgam_fail(j->env, CGAM_E_INTERNAL, "gnuplot failed on %s/%s.gp: %s",
                         cgam_path_tail(j->folder), figure->name, text);
    return status;
}

cgam_status cgam_figures_draw(cgam_env *env, const char *folder, const cgam_figures *figures,
                              bool *missing)
{
    job j = {.env = env, .folder = folder, .figures = figures};
    cgam_status status = cgam_parallel(env, figures->count, draw_one, &j);
    *missing = false;
    for (int i = 0; i < figures->count; i++) *missing |= j.missing[i];
    return status;
}
