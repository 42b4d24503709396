/* The line of progress, on a terminal of one line. */
#include "app/progress.h"
#include "support/objects.h"

enum { COLUMNS = 300 };

/* What stands on the screen after the bytes: \r goes back to the first column. */
static void show(const char *bytes, char screen[COLUMNS])
{
    size_t at = 0, end = 0;
    memset(screen, ' ', COLUMNS);
    for (; *bytes; bytes++) {
        if (*bytes == '\r') at = 0;
        else screen[at++] = *bytes;
        assert_true(at < COLUMNS);
    }
    for (size_t i = 0; i < COLUMNS; i++)
        if (screen[i] != ' ') end = i + 1;
    screen[end < COLUMNS ? end : COLUMNS - 1] = '\0';
}

/* A long phase, then a short one, then the end. */
TEST(nothing_is_left_behind)
{
    char *bytes, screen[COLUMNS];
    size_t size;
    FILE *terminal = stderr;
    cgam_line line;
    stderr = open_memstream(&bytes, &size);
    assert_non_null(stderr);
    cgam_progress progress = cgam_line_begin(&line, (cgam_tell){.line = true});
    cgam_progress_at at = {.phase = "a phase with a name that is longer than most of them",
                           .done = 1,
                           .total = 4,
                           .unit = "",
                           .seconds_left = 5};
    progress.report(progress.user, &at);
    fflush(stderr);
    show(bytes, screen);
    assert_non_null(strstr(screen, "than most of them"));
    assert_non_null(strstr(screen, "5 s left"));
    at.phase = "short";
    at.seconds_left = NAN;
    progress.report(progress.user, &at);
    fflush(stderr);
    show(bytes, screen);
    assert_ptr_equal(strstr(screen, "short"), screen);
    assert_string_equal(screen + strlen(screen) - 3, "25%");
    at.phase = "a phase with a name that is longer than most of them";
    progress.report(progress.user, &at);
    cgam_line_clear(&line);
    fclose(stderr);
    stderr = terminal;
    show(bytes, screen);
    assert_string_equal(screen, "");
    free(bytes);
}

/* Reports the first of two moments, then, when another line is due, the second: a file gets that one line. */
static void expect_line(cgam_progress_at first, cgam_progress_at second, const char *want)
{
    char text[200] = "";
    FILE *terminal = stderr, *file = tmpfile();
    assert_non_null(file);
    cgam_line line;
    stderr = file;
    cgam_progress progress = cgam_line_begin(&line, (cgam_tell){.line = true});
    progress.report(progress.user, &first); /* too early for a word */
    assert_true(ftell(file) == 0);
    line.said -= 60;
    line.last -= 60;
    if (first.all_total > 0) line.all_start -= 600;
    progress.report(progress.user, &second);
    cgam_line_clear(&line);
    stderr = terminal;
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, want);
    assert_null(fgets(text, sizeof text, file));
    fclose(file);
}

/* Now and then, and whole. Where all phases have a share, that and its time are told, not those of the phase: 30 of 100 took ten
 * minutes, so the other 60 take twenty. */
TEST(a_file_is_told_in_lines)
{
    cgam_progress_at at = {
        .phase = "sweep 2/4: states", .done = 1, .total = 4, .unit = "", .seconds_left = 5};
    expect_line(at, at, "sweep 2/4: states: 25%, 5 s left\n");
    cgam_progress_at before = {.phase = "neff 1/4: states",
                               .done = 3,
                               .total = 4,
                               .unit = "",
                               .seconds_left = 5,
                               .all_done = 10,
                               .all_total = 100};
    at = before;
    at.phase = "sweep 2/4: states";
    at.all_done = 40;
    expect_line(before, at, "sweep 2/4: states: 40% of all, 20 min left\n");
}
