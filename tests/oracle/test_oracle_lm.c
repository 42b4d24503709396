/* ctest: timeout=900
 * The whole protocol of a language-model study, computed again by NumPy from exported states
 * (tests/oracle/lm/recompute.py), on a tiny model: classes and facts. */
#include "support/models.h"
#include "support/objects.h"

#include <sys/stat.h>
#include <sys/wait.h>

static int set_up(void **state)
{
    (void)state;
    model_file(400);
    return 0;
}

static void need_both(void)
{
    check_plain_build("NumPy judges numbers here");
    need_tiny_model();
    if (folder_run("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        print_message("skipped: no NumPy\n");
        skip();
    }
}

/* The fit of a projection with these options, judged. */
static void check_fit(const char *options)
{
    char line[1500], script[512];
    snprintf(script, sizeof script, "%s", check_source_path("tests/oracle/lm/fit.py"));
    snprintf(
        line, sizeof line,
        "rm -rf s.db* && \"$CGAM\" lm fit --model m.gguf %s --exact --store s.db --out "
        "P.safetensors --json >fit.json && \"$CGAM\" lm store --store s.db --export "
        "s.safetensors >/dev/null && \"$CGAM\" lm bank --model m.gguf --no-inspect --out "
        "bank.safetensors --json >bank.json && PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 '%s' "
        "s.safetensors bank.safetensors bank.json fit.json P.safetensors",
        options, script);
    assert_int_equal(folder_run(line), 0);
}

/* What a verb leaves with these options, judged by a script. */
static void check_verb(const char *verb, const char *judge, const char *options)
{
    char line[1500], script[512];
    snprintf(script, sizeof script, "%s", check_source_path(judge));
    snprintf(
        line, sizeof line,
        "rm -rf s.db* out && \"$CGAM\" lm %s --model m.gguf %s --exact --store s.db --out out "
        "--figures no >/dev/null && \"$CGAM\" lm store --store s.db --export s.safetensors "
        ">/dev/null && \"$CGAM\" lm bank --model m.gguf --no-inspect --out bank.safetensors "
        "--json >bank.json && /usr/bin/python3 '%s' s.safetensors bank.safetensors bank.json out",
        verb, options, script);
    assert_int_equal(folder_run(line), 0);
}

static void check_study(const char *options)
{
    check_verb("study", "tests/oracle/lm/recompute.py", options);
}

TEST(classes_are_computed_again)
{
    need_both();
    check_study("--dataset sentiment --queries 41 --shots 0,2,3");
    check_study("--dataset sentiment --queries 24 --shots 0,4 --seed 5 --demos shared");
}

/* Contexts through a P that a fit has left. */
TEST(projected_contexts_are_computed_again)
{
    need_both();
    assert_int_equal(
        folder_run("\"$CGAM\" lm fit --model m.gguf --dataset sentiment --queries 20 --shots 2 "
                   "--exact --curve no --layer 2 --out P.safetensors >/dev/null"),
        0);
    check_verb("sweep", "tests/oracle/lm/recompute.py",
               "--dataset sentiment --queries 24 --shots 2 --projection P.safetensors");
    check_verb("sweep", "tests/oracle/lm/recompute.py",
               "--dataset sentiment --queries 16 --shots 3 --demos shared --lambda-scale absolute "
               "--projection P.safetensors");
}

/* All tokens of answers: the store has the states after each of them. */
TEST(whole_answers_are_steered_as_computed)
{
    need_both();
    check_verb("steer", "tests/oracle/lm/recompute.py",
               "--dataset facts --queries 16 --shots 1,3 --answer sequence");
    check_verb("steer", "tests/oracle/lm/recompute.py",
               "--dataset facts --queries 10 --shots 2 --answer distinct --lambda-scale absolute");
}

TEST(facts_are_computed_again)
{
    need_both();
    check_study("--dataset facts --queries 30 --shots 0,2");
}

/* Gates by A(alpha) as a matrix: raw and unit rows, over labels and over words, by first tokens and by
 * whole answers. */
TEST(gates_are_computed_again)
{
    static const char *const ways[] = {
        "--dataset sentiment --queries 24 --shots 0,2,3",
        "--dataset sentiment --queries 15 --shots 2 --rows unit --over full --lambda-scale absolute",
        "--dataset facts --queries 16 --shots 2 --alphas 0.01,0.001 --context-layer 2",
        "--dataset facts --queries 12 --shots 2 --alphas 0.01 --answer sequence --query-layer 1",
        "--dataset facts --queries 10 --shots 2 --alphas 0.02 --answer distinct --over full",
        "--dataset sentiment --queries 14 --shots 3 --labels negative=worse,positive=worth"};
    need_both();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        check_verb("gates", "tests/oracle/lm/gates.py", ways[i]);
}

TEST(projections_are_computed_again)
{
    need_both();
    check_fit("--dataset sentiment --queries 25 --shots 0,2");
    check_fit("--dataset sentiment --queries 20 --shots 3 --from query --layer 1 --curve no");
    check_fit("--dataset sentiment --dataset facts --queries 30 --shots 2 --layer 2");
    check_fit("--dataset sentiment --queries 20 --shots 2 --method lowrank --rank 3 --layer 2");
}

TEST_GROUP(set_up, NULL)
