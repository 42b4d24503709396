/* ctest: timeout=300
 * A study of a tiny model from the command line into a report: tables, figures, section, claims;
 * the page that comes later, the page that was there, no gnuplot, and a report that is not ours. */
#include "lab/document.h"
#include "support/models.h"
#include "support/objects.h"

#include <sys/stat.h>
#include <sys/wait.h>

static int sh(const char *format, const char *words)
{
    char line[1500];
    const char *program = getenv("CGAM");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(line, sizeof line, format, program ? program : "cgam", words);
#pragma GCC diagnostic pop
    return folder_run(line);
}

static int cgam(const char *words) { return sh("'%s' %s >out.txt 2>err.txt", words); }

static bool holds(const char *name, const char *piece)
{
    char *text = folder_text(name);
    bool found = text && strstr(text, piece);
    if (!found) print_error("%s has no '%s'\n", name, piece);
    free(text);
    return found;
}

static int set_up(void **state)
{
    (void)state;
    model_file(400);
    FILE *f = fopen(folder_file("d_`x`.tsv"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\tfilm %d is %s\n", i % 2 ? "up" : "down", i, i % 2 ? "good" : "bad");
    fclose(f);
    return 0;
}

#define STUDY                                                                                      \
    "lm study --model m.gguf --eval 'd_`x`.tsv' --labels down=negative,up=positive --queries 24 "  \
    "--shots 2,4 --exact "
#define PLACE "rep/lm/d_-x--m"

TEST(a_study_has_a_page_before_the_report_has)
{
    need_tiny_model();
    assert_int_equal(cgam(STUDY "--report rep --figures no"), 0);
    assert_true(holds("out.txt", "and in rep/index.html"));
    assert_true(holds("rep/index.html", "d_-x--m</h3>"));
    assert_true(folder_has(PLACE "/study.json") && folder_has("rep/lm/states.db"));
    assert_true(folder_has("rep/lm/claims.csv"));
    assert_false(folder_has(PLACE "/neff.gp"));
    assert_int_equal(cgam("report --scale 0.01 --figures no --out rep"), 0);
    assert_true(holds("out.txt", "About language models"));
    assert_true(holds("rep/index.html", "d_-x--m</h3>"));
    assert_true(holds("rep/index.html", "--labels down=negative,up=positive"));
}

TEST(a_study_enters_a_page_that_is_there)
{
    need_tiny_model();
    assert_int_equal(cgam("report --scale 0.01 --figures no --out rep2"), 0);
    assert_true(holds("rep2/index.html", "No study of a language model"));
    assert_int_equal(cgam(STUDY "--report rep2"), 0);
    assert_true(holds("out.txt", "and in rep2/index.html"));
    assert_true(holds("rep2/index.html", "Definitions</h2>"));
    assert_true(holds("rep2/index.html", "The collapse is onto the label set."));
    if (sh("command -v gnuplot >/dev/null # %s %s", "") != 0) return;
    static const char *const figures[] = {"neff",    "mass",    "shots",   "sweep_2",
                                          "sweep_4", "steer_2", "steer_4", "probe"};
    static const char *const kinds[] = {"gp", "svg", "png", "pdf"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        for (size_t k = 0; k < 4; k++) {
            char name[120];
            snprintf(name, sizeof name, "rep2/lm/d_-x--m/%s.%s", figures[i], kinds[k]);
            if (!folder_has(name)) print_error("%s is not there\n", name);
            assert_true(folder_has(name));
        }
    assert_true(holds("rep2/lm/d_-x--m/neff.svg", "24 queries, seed 1"));
    assert_true(holds("rep2/index.html", "src=\"data:image/"));
    /* scripts run by hand in their folder, without a word */
    int code = sh("cd rep2/lm/d_-x--m && for f in *.gp; do gnuplot $f 2>&1; done >../../../log; "
                  "[ ! -s ../../../log ] # %s %s",
                  "");
    char *said = folder_text("log");
    if (code != 0 && said) print_error("gnuplot said: %s\n", said);
    free(said);
    assert_int_equal(code, 0);
    assert_int_equal(sh("[ -z \"$(find rep2 -name '.*' -type f)\" ] # %s %s", ""), 0);
}

TEST(figures_wait_where_there_is_no_gnuplot)
{
    need_tiny_model();
    assert_int_equal(sh("PATH=/nowhere '%s' %s --json >out.txt 2>err.txt",
                        "lm neff --model m.gguf --dataset sentiment --queries 4 --shots 2 --out n"),
                     0);
    assert_true(holds("out.txt", "\"figures_missing\": \"gnuplot was not found\""));
    assert_true(folder_has("n/neff.csv") && folder_has("n/neff.gp") && !folder_has("n/neff.svg"));
}

#define INJECT                                                                                     \
    "lm inject --model m.gguf --eval 'd_`x`.tsv' --labels down=negative,up=positive --queries 12 " \
    "--shots 2 --layers 1,2 --exact "

/* Alone in a report, and beside the study of the same data. */
TEST(an_injection_enters_a_report)
{
    need_tiny_model();
    assert_int_equal(cgam(INJECT "--report rep4"), 0);
    assert_true(holds("out.txt", "and in rep4/index.html"));
    assert_true(folder_has("rep4/lm/d_-x--m/inject.json") && folder_has("rep4/lm/states.db"));
    assert_true(holds("rep4/index.html", "d_-x--m</h3>"));
    assert_true(holds("rep4/index.html", "<th class=\"n\">replace</th>"));
    assert_true(holds("rep4/index.html", "<pre>cgam lm inject"));
    assert_true(holds("rep4/index.html", "A vector inside the model does more than none."));
    assert_false(holds("rep4/index.html", "<pre>cgam lm study"));
    assert_false(holds("rep4/index.html", "<th class=\"n\">centred</th>"));
    if (sh("command -v gnuplot >/dev/null # %s %s", "") == 0)
        assert_true(holds("rep4/index.html", "lm/d_-x--m/inject_2"));
    assert_int_equal(cgam(STUDY "--report rep4 --figures no"), 0);
    assert_true(holds("rep4/index.html", "<pre>cgam lm study"));
    assert_true(holds("rep4/index.html", "<th class=\"n\">centred</th>"));
    assert_true(holds("rep4/index.html", "<th class=\"n\">replace</th>"));
    assert_int_equal(cgam(INJECT "--report rep4 --out elsewhere"), 2);
    assert_true(holds("err.txt", "--report or --out"));
}

TEST(a_place_is_named_once)
{
    need_tiny_model();
    assert_int_equal(cgam(STUDY "--report rep --out elsewhere"), 2);
    assert_true(holds("err.txt", "--report or --out"));
}

TEST_GROUP(set_up, NULL)
