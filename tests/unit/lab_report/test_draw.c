/* Drawing with a gnuplot that is not there, fails, or leaves less than whole pictures. */
#include "lab/figures/figure.h"
#include "support/folder.h"
#include "support/one_env.h"

#include <sys/stat.h>
#include <unistd.h>

/* The program that is called gnuplot: a script of the shell. */
static void play(const char *script)
{
    FILE *f = fopen(folder_file("gnuplot"), "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(folder_file("gnuplot"), 0755), 0);
}

#define PNG "IEND\\256B\\140\\202"
#define FILL "x=................................................\n"
#define DRAW(svg, png, pdf)                                                                        \
    FILL "printf \"${x}" svg "\" > .cgam-drawing-f.svg\n"                                          \
         "printf \"${x}" png "\" > .cgam-drawing-f.png\n"                                          \
         "printf \"${x}" pdf "\" > .cgam-drawing-f.pdf\n"

TEST(a_picture_is_whole_or_the_reason_is_told)
{
    static const struct {
        const char *script, *message; /* NULL: drawn */
        cgam_status status;
    } cases[] = {
        {DRAW("</svg>\\n", PNG, "%%%%EOF\\n"), NULL, CGAM_OK},
        {DRAW("</svg>", PNG, "%%%%EOF\\r\\n"), NULL, CGAM_OK},
        {DRAW("<svg>", PNG, "%%%%EOF"), "f.svg: cannot write: the picture", CGAM_E_IO},
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
    cgam_figures figures = {.count = 1, .figure = {{.name = "f", .title = "a figure"}}};
    bool missing = true;
    char path[100], before[1000];
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", folder_path());
    setenv("PATH", path, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        play(cases[i].script);
        cgam_status status = cgam_figures_draw(env, folder_path(), &figures, &missing);
        if (status != cases[i].status)
            fail_msg("%s: %d: %s", cases[i].script, (int)status, cgam_env_message(env));
        assert_false(missing);
        if (cases[i].message) CHECK_MESSAGE(env, cases[i].message);
        static const char *const kinds[] = {"svg", "png", "pdf"};
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "%s/f.%s", folder_path(), kinds[k]);
            if (!cases[i].message) assert_int_equal(remove(path), 0);
            else remove(path);
            snprintf(path, sizeof path, "%s/.cgam-drawing-f.%s", folder_path(), kinds[k]);
            assert_int_not_equal(access(path, F_OK), 0);
        }
    }
    assert_int_equal(mkdir(folder_file("f.svg"), 0755), 0);
    play(DRAW("</svg>", PNG, "%%%%EOF"));
    CHECK_REFUSED(env, CGAM_E_IO, "f.svg: cannot write: ",
                  cgam_figures_draw(env, folder_path(), &figures, &missing));
    setenv("PATH", "/nonexistent", 1);
    CHECK_STATUS(env, cgam_figures_draw(env, folder_path(), &figures, &missing));
    assert_true(missing);
    setenv("PATH", before, 1);
}

TEST_GROUP(set_up, tear_down)
