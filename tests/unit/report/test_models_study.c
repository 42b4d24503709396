/* ctest: timeout=300
 * A study of a tiny model from the command line into a report: tables, figures, section, claims;
 * the page that comes later, the page that was there, no gnuplot, and a report that is not ours. */
#include "io/json.h"
#include "support/models.h"
#include "support/objects.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[64];

static int sh(const char *format, const char *words)
{
    char command[2048], line[1500];
    const char *program = getenv("CGAM");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(line, sizeof line, format, program ? program : "cgam", words);
#pragma GCC diagnostic pop
    snprintf(command, sizeof command, "cd '%s' && %s", folder, line);
    int ended = system(command);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

static int cgam(const char *words) { return sh("'%s' %s >out.txt 2>err.txt", words); }

static char *text_of(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t room = 8 << 20;
    char *text = calloc(room, 1);
    assert_non_null(text);
    size_t got = fread(text, 1, room - 1, f);
    text[got] = '\0';
    fclose(f);
    return text;
}

static bool holds(const char *name, const char *piece)
{
    char *text = text_of(name);
    bool found = text && strstr(text, piece);
    if (!found) print_error("%s has no '%s'\n", name, piece);
    free(text);
    return found;
}

static bool there(const char *name)
{
    char path[200];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &st) == 0 && st.st_size > 0;
}

static int set_up(void **state)
{
    (void)state;
    char path[128];
    snprintf(folder, sizeof folder, "/tmp/cgam-study-%d", (int)getpid());
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    tiny_shape shape = tiny_shape_default();
    shape.context = 400;
    tiny_write(path, shape);
    snprintf(path, sizeof path, "%s/d_`x`.tsv", folder);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\tfilm %d is %s\n", i % 2 ? "up" : "down", i, i % 2 ? "good" : "bad");
    fclose(f);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static void need_model(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    cgam_env *env = object_env(1);
    cgam_lm *lm = NULL;
    cgam_status status = cgam_lm_open(env, path, &lm);
    cgam_lm_close(lm);
    cgam_env_free(env);
    if (status == CGAM_E_NOT_FOUND || status == CGAM_E_UNSUPPORTED || !getenv("CGAM")) {
        print_message("skipped: no libllama, or CGAM does not name the program\n");
        skip();
    }
}

#define STUDY                                                                                      \
    "lm study --model m.gguf --eval 'd_`x`.tsv' --labels down=negative,up=positive --queries 24 "  \
    "--shots 2,4 --exact "
#define PLACE "rep/lm/d_-x--m"

static void a_study_has_a_page_before_the_report_has(void **state)
{
    (void)state;
    need_model();
    assert_int_equal(cgam(STUDY "--report rep --figures no"), 0);
    assert_true(holds("out.txt", "and in rep/index.html"));
    assert_true(holds("rep/index.html", "d_-x--m</h3>"));
    assert_true(there(PLACE "/study.json") && there("rep/lm/states.db"));
    assert_true(there("rep/lm/claims.csv"));
    assert_false(there(PLACE "/neff.gp"));
    assert_int_equal(cgam("report --scale 0.01 --figures no --out rep"), 0);
    assert_true(holds("out.txt", "About language models"));
    assert_true(holds("rep/index.html", "d_-x--m</h3>"));
    assert_true(holds("rep/index.html", "--labels down=negative,up=positive"));
}

static void a_study_enters_a_page_that_is_there(void **state)
{
    (void)state;
    need_model();
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
            if (!there(name)) print_error("%s is not there\n", name);
            assert_true(there(name));
        }
    assert_true(holds("rep2/lm/d_-x--m/neff.svg", "24 queries, seed 1"));
    assert_true(holds("rep2/index.html", "src=\"data:image/"));
    /* scripts run by hand in their folder, without a word */
    int code = sh("cd rep2/lm/d_-x--m && for f in *.gp; do gnuplot $f 2>&1; done >../../../log; "
                  "[ ! -s ../../../log ] # %s %s",
                  "");
    char *said = text_of("log");
    if (code != 0 && said) print_error("gnuplot said: %s\n", said);
    free(said);
    assert_int_equal(code, 0);
    assert_int_equal(sh("[ -z \"$(find rep2 -name '.*' -type f)\" ] # %s %s", ""), 0);
}

static void figures_wait_where_there_is_no_gnuplot(void **state)
{
    (void)state;
    need_model();
    assert_int_equal(sh("PATH=/nowhere '%s' %s --json >out.txt 2>err.txt",
                        "lm neff --model m.gguf --dataset sentiment --queries 4 --shots 2 --out n"),
                     0);
    assert_true(holds("out.txt", "\"figures_missing\": \"gnuplot was not found\""));
    assert_true(there("n/neff.csv") && there("n/neff.gp") && !there("n/neff.svg"));
}

#define INJECT                                                                                     \
    "lm inject --model m.gguf --eval 'd_`x`.tsv' --labels down=negative,up=positive --queries 12 " \
    "--shots 2 --layers 1,2 --exact "

/* Alone in a report, and beside the study of the same data. */
static void an_injection_enters_a_report(void **state)
{
    (void)state;
    need_model();
    assert_int_equal(cgam(INJECT "--report rep4"), 0);
    assert_true(holds("out.txt", "and in rep4/index.html"));
    assert_true(there("rep4/lm/d_-x--m/inject.json") && there("rep4/lm/states.db"));
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
    assert_true(holds("err.txt", "--report and --out exclude each other"));
}

static void a_place_is_named_once(void **state)
{
    (void)state;
    need_model();
    assert_int_equal(cgam(STUDY "--report rep --out elsewhere"), 2);
    assert_true(holds("err.txt", "--report and --out exclude each other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_study_has_a_page_before_the_report_has),
        cmocka_unit_test(a_study_enters_a_page_that_is_there),
        cmocka_unit_test(figures_wait_where_there_is_no_gnuplot),
        cmocka_unit_test(an_injection_enters_a_report),
        cmocka_unit_test(a_place_is_named_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
