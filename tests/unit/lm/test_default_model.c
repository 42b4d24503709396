/* ctest: labels=nightly timeout=900
 * The default model from end to end. Runs when `cgam lm get` or `make run` has brought the model,
 * and says that it is skipped otherwise; some minutes in all. On one thread: libllama's spin while they wait for each other,
 * and beside another test two of them took three times as long. */
#include "lab/document.h"
#include "lm/lens.h"
#include "support/models.h"
#include "support/objects.h"

#include <cgam/lm.h>
#include <sys/wait.h>

#include "support/owned.h"

static cgam_env *env;
static cgam_lm *lm;
static cgam_lm_info info;

static int set_up(void **state)
{
    (void)state;
    env = object_env(1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_lm_close(lm);
    cgam_env_free(env);
    return 0;
}

/* Opened once; every test is skipped without it. */
static void need_model(void)
{
    if (!lm) lm = model_default(env);
    info = cgam_lm_describe(lm);
}

enum { FACTS = 5 };
static const struct {
    const char *country, *capital;
} facts[FACTS] = {{"France", "Paris"},
                  {"Italy", "Rome"},
                  {"Japan", "Tokyo"},
                  {"Cuba", "Havana"},
                  {"Greece", "Athens"}};

static void prompts_of(cgam_lm_prompt *prompts, int32_t **tokens, int32_t *target)
{
    for (int i = 0; i < FACTS; i++) {
        char text[128];
        int64_t count;
        int32_t *word;
        snprintf(text, sizeof text, "The capital of Spain is Madrid. The capital of %s is",
                 facts[i].country);
        CHECK_STATUS(env, cgam_lm_tokenize(lm, text, true, &tokens[i], &prompts[i].count));
        prompts[i].tokens = tokens[i];
        CHECK_STATUS(env, cgam_lm_tokenize(lm, facts[i].capital, false, &word, &count));
        target[i] = word[0];
        cgam_lm_tokens_free(lm, word);
    }
}

TEST(the_model_is_the_one_we_know)
{
    need_model();
    const char *sha;
    assert_int_equal(info.layers, 22);
    assert_int_equal(info.width, 2048);
    assert_int_equal(info.vocab, 32000);
    assert_true(info.exact && !info.tied);
    CHECK_STATUS(env, cgam_lm_sha256(lm, &sha));
    assert_string_equal(sha, "9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0");
}

TEST(the_lens_finds_a_capital_in_the_last_layers)
{
    need_model();
    cgam_lm_prompt prompts[FACTS];
    int32_t *tokens[FACTS], target[FACTS];
    prompts_of(prompts, tokens, target);
    OWNED(cgam_lens) lens = NULL;
    CHECK_STATUS(env, cgam_lens_new(lm, &lens));
    assert_true(cgam_lens_has_norm(lens) && !lens->shifted);
    model_sheet s = model_states(env, lm, FACTS, prompts, cgam_lm_capture_opts_default());
    int64_t first_at = 0;
    for (int64_t l = 0; l <= info.layers; l++) {
        cgam_answer answer[FACTS];
        CHECK_STATUS(env, cgam_lens_judge(lens, CGAM_LENS_NORM, FACTS, s.states + l * info.width,
                                          s.one, target, 0, NULL, answer));
        int64_t right = 0, rank = 0;
        for (int i = 0; i < FACTS; i++) {
            right += answer[i].rank == 0;
            rank += answer[i].rank / FACTS;
        }
        if (l < 8) assert_true(right == 0 && rank > 100); /* nothing to be seen early on */
        if (l == info.layers) assert_true(right >= 4);
        if (right >= 3 && first_at == 0) first_at = l;
    }
    assert_true(first_at >= info.layers / 2);

    /* The last layer through the norm is what libllama says itself. */
    float *logits = calloc((size_t)info.vocab, sizeof *logits);
    float *scores = calloc((size_t)info.vocab, sizeof *scores);
    CHECK_STATUS(env, cgam_lm_logits(lm, &prompts[0], logits));
    CHECK_STATUS(env, cgam_lens_scores(lens, CGAM_LENS_NORM, 1, s.states + info.layers * info.width,
                                       info.width, scores));
    CHECK_LE(model_distance(scores, logits, info.vocab), 0.07); /* 8-bit activations */
    free(logits);
    free(scores);
    free(s.states);
    for (int i = 0; i < FACTS; i++) cgam_lm_tokens_free(lm, tokens[i]);
}

TEST(capture_is_within_what_is_said_of_the_plain_pass)
{
    need_model();
    cgam_lm_prompt prompts[FACTS];
    int32_t *tokens[FACTS], target[FACTS];
    prompts_of(prompts, tokens, target);
    cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
    model_sheet fast = model_states(env, lm, 2, prompts, opts);
    opts.exact = true;
    model_sheet plain = model_states(env, lm, 2, prompts, opts);
    for (int64_t i = 0; i < 2; i++)
        for (int64_t l = 0; l <= info.layers; l++) {
            int64_t at = i * fast.one + l * info.width;
            double off = model_distance(fast.states + at, plain.states + at, info.width);
            CHECK_LE(off, l == 0 ? 0 : 0.12); /* 2 to 7 % as a rule */
        }
    free(fast.states);
    free(plain.states);
    for (int i = 0; i < FACTS; i++) cgam_lm_tokens_free(lm, tokens[i]);
}

/* Runs a verb with --json in the folder. */
static json_t *ask(const char *words)
{
    check_plain_build("minutes inside libllama, which is not ours to check");
    char command[1024];
    const char *program = getenv("CGAM");
    if (!program) {
        print_message("skipped: CGAM does not name the program\n");
        skip();
    }
    snprintf(command, sizeof command, "cd '%s' && '%s' %s --threads 1 --json", folder_path(),
             program, words);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    json_t *doc = json_loadf(f, 0, NULL);
    int ended = pclose(f);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 0);
    assert_non_null(doc);
    return doc;
}

static double real_at(const json_t *doc, const char *key, size_t i)
{
    return json_number_value(json_array_get(json_object_get(doc, key), i));
}

#define PROMPTS "--dataset sentiment --shots 0,2 --queries 40 --demos shared --store s.db "

TEST(demonstrations_collapse_the_number_of_words)
{
    need_model();
    OWNED(json_t) doc = ask("lm neff " PROMPTS);
    const json_t *curves = json_object_get(doc, "curves");
    const json_t *zero = json_array_get(curves, 0), *icl = json_array_get(curves, 1);
    size_t last = (size_t)info.layers;
    assert_int_equal(json_array_size(json_object_get(zero, "entropy")), last + 1);
    for (size_t l = 0; l <= last; l++) {
        assert_true(real_at(zero, "entropy", l) >= 1 && real_at(zero, "entropy", l) <= 32000);
        CHECK_LE(real_at(icl, "ipr", l), real_at(icl, "entropy", l) * (1 + 1e-12));
    }
    /* onto the labels, in the last layers and not before */
    CHECK_LE(5 * real_at(icl, "entropy", last), real_at(zero, "entropy", last));
    CHECK_LE(0.25, real_at(icl, "label_mass", last));
    CHECK_LE(5 * real_at(zero, "label_mass", last), real_at(icl, "label_mass", last));
    CHECK_LE(real_at(icl, "label_mass", last / 2), 0.05);
}

TEST(a_sweep_of_40_queries_ends_well)
{
    need_model();
    OWNED(json_t) doc = ask("lm sweep " PROMPTS);
    /* what neff has captured is taken from the store */
    const json_t *capture = json_object_get(doc, "capture");
    assert_true(json_integer_value(json_object_get(capture, "found")) >= 80);
    const json_t *e = json_array_get(json_object_get(doc, "shots"), 0);
    const json_t *full = json_object_get(json_object_get(e, "best"), "full");
    double zero = json_number_value(json_object_get(json_object_get(e, "zero_shot"), "full"));
    double held = json_number_value(json_object_get(full, "held_out"));
    double all = json_number_value(json_object_get(full, "accuracy"));
    const json_t *c = json_object_get(e, "controls");
    double bound = json_number_value(json_object_get(json_object_get(c, "threshold"), "bound"));
    double best = json_number_value(
        json_object_get(json_object_get(json_object_get(e, "best"), "restricted"), "accuracy"));
    CHECK_LE(zero + 0.2, held); /* a context brings the labels' words to the top */
    CHECK_LE(held, all);
    CHECK_LE(best,
             bound); /* over two labels a shared context is a border, and no border does better */
    assert_true(json_integer_value(json_object_get(full, "context_layer")) >= 11);
}

/* Capitals: what demonstrations add to the last token does what they do, and a random vector of that
 * norm does nothing. */
TEST(a_context_inside_the_model_names_capitals)
{
    need_model();
    OWNED(json_t)
    doc = ask("lm inject --dataset capitals --shots 2 --queries 14 --kinds add --layers 15 "
              "--exact");
    const json_t *e = json_array_get(json_object_get(doc, "shots"), 0);
    double gain = cgam_json_get_real(e, "differences.best_zero");
    double random = cgam_json_get_real(e, "differences.random_zero");
    assert_true(cgam_json_get_int(e, "queries") >= 8);
    CHECK_LE(3 * cgam_json_get_real(e, "differences.best_zero_se"), gain);
    CHECK_LE(random, 2 * cgam_json_get_real(e, "differences.random_zero_se"));
}

TEST_GROUP(set_up, tear_down)
