/* Drawing with a gnuplot that is not there, fails, or leaves less than whole pictures. */
#include "report/figure.h"
#include "support/one_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/cgam-draw-XXXXXX";

/* The program that is called gnuplot: a script of the shell. */
static void play(const char *script)
{
    char path[100];
    snprintf(path, sizeof path, "%s/gnuplot", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

#define PNG "IEND\\256B\\140\\202"
#define FILL "x=................................................\n"
#define DRAW(svg, png, pdf)                                                                        \
    FILL "printf \"${x}" svg "\" > .cgam-drawing-f.svg\n"                                          \
         "printf \"${x}" png "\" > .cgam-drawing-f.png\n"                                          \
         "printf \"${x}" pdf "\" > .cgam-drawing-f.pdf\n"

static void a_picture_is_whole_or_the_reason_is_told(void **state)
{
    static const struct {
        const char *script, *message; /* NULL: drawn */
        cgam_status status;
    } cases[] = {
        {DRAW("</svg>\\n", PNG, "%%%%EOF\\n"), NULL, CGAM_OK},
        {DRAW("</svg>", PNG, "%%%%EOF\\r\\n"), NULL, CGAM_OK},
        {DRAW("<svg>", PNG, "%%%%EOF"), "f.svg: cannot write: the picture is not whole", CGAM_E_IO},
        {DRAW("</svg>", "IEND", "%%%%EOF"), "f.png: cannot write", CGAM_E_IO},
        {"printf '</svg>' > .cgam-drawing-f.svg", "f.svg: cannot write", CGAM_E_IO},
        {"exit 0", "f.svg: cannot write", CGAM_E_IO},
        {"echo '  ^' >&2; echo 'f.gp line 3: undefined variable' >&2; exit 1",
         "f.gp: f.gp line 3: undefined variable", CGAM_E_INTERNAL},
        {"echo 'cannot open terminal' >&2; exit 1", "cannot open terminal", CGAM_E_INTERNAL},
        {"echo nothing >&2; exit 1", "no reason given", CGAM_E_INTERNAL},
        {"exit 1", "no reason given", CGAM_E_INTERNAL},
        {"echo 'line 7: warning: Skipping unreadable file' >&2\n" DRAW("</svg>", PNG, "%%%%EOF"),
         "Skipping unreadable", CGAM_E_INTERNAL},
    };
    (void)state;
    cgam_figures figures = {.count = 1, .figure = {{.name = "f", .title = "a figure"}}};
    bool missing = true;
    char path[100], before[1000];
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        play(cases[i].script);
        cgam_status status = cgam_figures_draw(env, folder, &figures, &missing);
        if (status != cases[i].status)
            fail_msg("%s: %d: %s", cases[i].script, (int)status, cgam_env_message(env));
        assert_false(missing);
        if (cases[i].message) CHECK_MESSAGE(env, cases[i].message);
        static const char *const kinds[] = {"svg", "png", "pdf"};
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "%s/f.%s", folder, kinds[k]);
            if (!cases[i].message) assert_int_equal(remove(path), 0);
            else remove(path);
            snprintf(path, sizeof path, "%s/.cgam-drawing-f.%s", folder, kinds[k]);
            assert_int_not_equal(access(path, F_OK), 0);
        }
    }
    snprintf(path, sizeof path, "%s/f.svg", folder); /* a folder in the picture's place */
    assert_int_equal(mkdir(path, 0755), 0);
    play(DRAW("</svg>", PNG, "%%%%EOF"));
    CHECK_FAILS(env, CGAM_E_IO, cgam_figures_draw(env, folder, &figures, &missing));
    CHECK_MESSAGE(env, "f.svg: cannot write: ");
    setenv("PATH", "/nonexistent", 1);
    CHECK_STATUS(env, cgam_figures_draw(env, folder, &figures, &missing));
    assert_true(missing);
    setenv("PATH", before, 1);
}

static int enter(void **state) { return mkdtemp(folder) ? set_up(state) : -1; }

static int leave(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return tear_down(state) || system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_picture_is_whole_or_the_reason_is_told)};
    return cmocka_run_group_tests(tests, enter, leave);
}
