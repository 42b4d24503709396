/* ctest: timeout=600
 * Hidden states: libllama's against the plain pass, layer by layer, in every shape of model. */
#define ENV_THREADS 2
#include "lm/lens.h"
#include "lm/model.h"
#include "support/models.h"
#include "support/one_env.h"

#include <cgam/lm.h>

#include "support/owned.h"

enum { PROMPTS = 9, LONGEST = 60 };

typedef struct prompt_set {
    int32_t tokens[PROMPTS][LONGEST];
    cgam_lm_prompt prompt[PROMPTS];
} prompt_set;

/* Random prompts of 1 to 60 tokens; the first `shared` tokens are the same in all. */
static void fill(prompt_set *set, int shared)
{
    cgam_rng rng = cgam_rng_stream(3, 0);
    for (int i = 0; i < PROMPTS; i++) {
        int count = shared + 1 + (int)cgam_rng_below(&rng, LONGEST - shared);
        for (int k = 0; k < LONGEST; k++)
            set->tokens[i][k] = k == 0 ? 1 : (int32_t)cgam_rng_below(&rng, 270);
        if (i > 0) memcpy(set->tokens[i], set->tokens[0], (size_t)shared * sizeof(int32_t));
        set->prompt[i] = (cgam_lm_prompt){set->tokens[i], count};
    }
}

/* The worst relative distance over prompts, for each layer. */
static void compare(const model_sheet *a, const model_sheet *b, const cgam_lm *lm, double allowed)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    for (int64_t l = 0; l <= info.layers; l++) {
        double worst = 0;
        for (int64_t i = 0; i < PROMPTS; i++) {
            int64_t at = i * a->one + l * info.width;
            worst = fmax(worst, model_distance(a->states + at, b->states + at, info.width));
        }
        CHECK_LE(worst, allowed);
    }
}

TEST(libllama_agrees_with_the_plain_pass_at_every_layer)
{
    static const struct {
        tiny_type type;
        int heads_kv;
        bool tied, factors;
        double allowed; /* f16 and q8 round activations: 2^-11 and 1/254 of the largest of 32 */
    } cases[] = {{TINY_F32, 2, false, false, 1e-5}, {TINY_F32, 4, true, false, 1e-5},
                 {TINY_F32, 1, false, true, 1e-5},  {TINY_F16, 2, false, false, 4e-3},
                 {TINY_F16, 4, true, true, 4e-3},   {TINY_Q8_0, 2, false, false, 8e-2},
                 {TINY_Q8_0, 1, true, false, 8e-2}};
    prompt_set set;
    fill(&set, 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        tiny_shape shape = tiny_shape_default();
        shape.type = cases[c].type;
        shape.heads_kv = cases[c].heads_kv;
        shape.tied = cases[c].tied;
        shape.rope_factors = cases[c].factors;
        OWNED(cgam_lm) lm = model_tiny(env, shape);
        cgam_lm_info info = cgam_lm_describe(lm);
        assert_true(info.exact && info.tied == shape.tied);
        assert_int_equal(info.layers, shape.layers);
        cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
        model_sheet fast = model_states(env, lm, PROMPTS, set.prompt, opts);
        opts.exact = true;
        model_sheet plain = model_states(env, lm, PROMPTS, set.prompt, opts);
        compare(&fast, &plain, lm, cases[c].allowed);
        free(fast.states);
        free(plain.states);
    }
}

TEST(a_shared_beginning_changes_nothing)
{
    prompt_set set;
    fill(&set, 23);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
        opts.exact = exact;
        model_sheet shared = model_states(env, lm, PROMPTS, set.prompt, opts);
        opts.no_sharing = true;
        model_sheet apart = model_states(env, lm, PROMPTS, set.prompt, opts);
        compare(&shared, &apart, lm, 1e-5);
        free(shared.states);
        free(apart.states);
    }
}

TEST(neighbours_in_a_batch_change_nothing)
{
    prompt_set set;
    fill(&set, 1);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
        opts.exact = exact;
        model_sheet together = model_states(env, lm, PROMPTS, set.prompt, opts);
        /* libllama's batches are handed over a piece at a time */
        assert_true(exact ? together.batches == 1
                          : together.batches > 1 && together.batches < PROMPTS);
        opts.batch_tokens = 1; /* smaller than any prompt: each has a batch of its own */
        model_sheet alone = model_states(env, lm, PROMPTS, set.prompt, opts);
        assert_int_equal(alone.batches, PROMPTS);
        compare(&together, &alone, lm, 1e-5);
        free(together.states);
        free(alone.states);
    }
}

TEST(neighbours_of_quantised_models_stay_within_what_is_said)
{
    prompt_set set;
    fill(&set, 1);
    tiny_shape shape = tiny_shape_default();
    shape.type = TINY_Q8_0;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
    model_sheet together = model_states(env, lm, PROMPTS, set.prompt, opts);
    opts.batch_tokens = 1;
    model_sheet alone = model_states(env, lm, PROMPTS, set.prompt, opts);
    compare(&together, &alone, lm, 8e-2);
    opts.exact = true; /* the plain pass rounds nothing */
    model_sheet plain = model_states(env, lm, PROMPTS, set.prompt, opts);
    opts.batch_tokens = 0;
    model_sheet batched = model_states(env, lm, PROMPTS, set.prompt, opts);
    compare(&batched, &plain, lm, 1e-5);
    free(together.states), free(alone.states), free(plain.states), free(batched.states);
}

/* libllama aborts when it has more sequences than tokens in a batch. */
TEST(prompts_of_one_token_are_no_trouble)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    enum { MANY = 200 };
    static int32_t tokens[MANY][6];
    cgam_lm_prompt prompts[MANY];
    for (int length = 1; length <= 6; length += 5) { /* with 6, five are shared */
        for (int i = 0; i < MANY; i++) {
            for (int k = 0; k < 6; k++) tokens[i][k] = k + 1 < length ? 7 + k : 3 + i;
            prompts[i] = (cgam_lm_prompt){tokens[i], length};
        }
        for (int64_t count = 1; count <= MANY; count += MANY - 1) {
            cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
            model_sheet many = model_states(env, lm, count, prompts, opts);
            opts.exact = true;
            model_sheet plain = model_states(env, lm, count, prompts, opts);
            for (int64_t i = 0; i < count; i++)
                CHECK_LE(model_distance(many.states + i * many.one, plain.states + i * many.one,
                                        many.one),
                         1e-5);
            free(many.states), free(plain.states);
        }
    }
}

typedef struct patience {
    int asked, allowed;
} patience;

static bool no_longer(void *user)
{
    patience *p = user;
    return p->asked++ >= p->allowed;
}

/* A stop is heard inside the one decode that there is, in both passes. */
TEST(a_stop_is_answered_within_a_batch)
{
    prompt_set set;
    fill(&set, 4);
    patience wait = {0, 1 << 30};
    cgam_env_opts o = cgam_env_opts_default();
    o.threads = 1;
    o.interrupted = no_longer;
    o.user = &wait;
    OWNED(cgam_env) impatient = NULL;
    assert_int_equal(cgam_env_new(&o, &impatient), CGAM_OK);
    OWNED(cgam_lm) lm = model_tiny(impatient, tiny_shape_default());
    for (int exact = 0; exact < 2; exact++) {
        model_sheet sheet = {0};
        cgam_lm_capture_opts opts = {.exact = exact, .batch_end = model_batch};
        wait = (patience){0, 3};
        assert_int_equal(cgam_lm_capture(lm, 1, set.prompt, &opts, model_keep, &sheet),
                         CGAM_E_INTERRUPTED);
        assert_int_equal(sheet.handed, 0);
    }
}

TEST(a_run_without_states_hands_nothing_over)
{
    prompt_set set;
    fill(&set, 9);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    model_sheet sheet = {0};
    cgam_lm_capture_opts opts = {.no_states = true, .batch_end = model_batch};
    CHECK_STATUS(env, cgam_lm_capture(lm, PROMPTS, set.prompt, &opts, model_keep, &sheet));
    assert_int_equal(sheet.handed, 0);
    assert_true(sheet.batches > 0);
    opts.exact = true;
    CHECK_FAILS(env, CGAM_E_ARG,
                cgam_lm_capture(lm, PROMPTS, set.prompt, &opts, model_keep, &sheet));
}

/* Root mean square norms, and layer norms with a bias. */
TEST(the_norm_lens_gives_the_scores_of_libllama)
{
    for (int kind = 0; kind < 3; kind++) {
        tiny_shape shape = tiny_shape_default();
        shape.tied = kind == 1;
        if (kind == 2) shape.architecture = "stablelm";
        OWNED(cgam_lm) lm = model_tiny(env, shape);
        cgam_lm_info info = cgam_lm_describe(lm);
        prompt_set set;
        fill(&set, 1);
        OWNED_BLOCK(float) logits = calloc((size_t)info.vocab, sizeof *logits);
        OWNED_BLOCK(float) scores = calloc((size_t)info.vocab, sizeof *scores);
        OWNED(cgam_lens) lens = NULL;
        CHECK_STATUS(env, cgam_lens_new(lm, &lens));
        assert_true(cgam_lens_has_norm(lens));
        assert_int_equal(!lens->shifted, kind < 2);
        assert_int_equal(lens->norm.centred, kind == 2);
        for (int p = 0; p < PROMPTS; p++) {
            model_sheet sheet =
                model_states(env, lm, 1, &set.prompt[p], cgam_lm_capture_opts_default());
            CHECK_STATUS(env, cgam_lm_logits(lm, &set.prompt[p], logits));
            const float *h = sheet.states + info.layers * info.width;
            CHECK_STATUS(env, cgam_lens_scores(lens, CGAM_LENS_NORM, 1, h, info.width, scores));
            for (int32_t m = 0; m < info.vocab; m++) {
                /* f32 sums of 64 terms of size 1 */
                CHECK_CLOSE((double)logits[m], (double)scores[m], 4e-5);
                CHECK_CLOSE((double)logits[m], cgam_lens_dot(lens, CGAM_LENS_NORM, m, h), 4e-5);
            }
            free(sheet.states);
        }
    }
}

TEST(words_become_tokens)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    int32_t *tokens;
    int64_t count;
    char text[32];
    CHECK_STATUS(env, cgam_lm_tokenize(lm, "Review", true, &tokens, &count));
    assert_int_equal(tokens[0], 1);
    cgam_lm_tokens_free(lm, tokens);
    assert_string_equal(cgam_lm_piece(lm, 3 + 'x', text, sizeof text), "x");
    assert_string_equal(cgam_lm_piece(lm, 259, text, sizeof text), " negative");
    assert_string_equal(cgam_lm_piece(lm, -1, text, sizeof text), "");
    CHECK_STATUS(env, cgam_lm_tokenize(lm, "", false, &tokens, &count));
    assert_int_equal(count, 0);
    cgam_lm_tokens_free(lm, tokens);
}

TEST(bad_prompts_are_named)
{
    tiny_shape shape = tiny_shape_default();
    shape.context = 32;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    int32_t tokens[40] = {1};
    model_sheet sheet = {0};
    cgam_lm_prompt prompts[] = {{tokens, 3}, {tokens, 40}};
    CHECK_REFUSED(env, CGAM_E_ARG, "text 1 has 40 tokens, the model's context holds 32",
                  cgam_lm_capture(lm, 2, prompts, NULL, model_keep, &sheet));
    prompts[1].count = 0;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_lm_capture(lm, 2, prompts, NULL, model_keep, &sheet));
    prompts[1].count = 5;
    tokens[4] = 100000;
    CHECK_REFUSED(env, CGAM_E_ARG, "prompt 1: no token 100000",
                  cgam_lm_capture(lm, 2, prompts, NULL, model_keep, &sheet));
    cgam_lm_capture_opts opts = {.batch_tokens = -1};
    CHECK_FAILS(env, CGAM_E_ARG, cgam_lm_capture(lm, 1, prompts, &opts, model_keep, &sheet));
    CHECK_STATUS(env, cgam_lm_capture(lm, 0, NULL, NULL, model_keep, &sheet));
}

TEST(bad_files_are_named)
{
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    const char *path = folder_file("t.gguf");
    tiny_write(path, tiny_shape_default());
    cgam_lm *lm;
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long whole = ftell(f);
    const long cuts[] = {whole - 100, whole / 2, 3000, 100, 24, 10, 0};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_int_equal(ftruncate(fileno(f), cuts[i]), 0);
        CHECK_FAILS(env, CGAM_E_FORMAT, cgam_lm_open(env, path, &lm));
        assert_null(lm);
    }
    fputs("not a model, but long enough to look at", f);
    fclose(f);
    CHECK_REFUSED(env, CGAM_E_FORMAT, "not a GGUF file", cgam_lm_open(env, path, &lm));
    tiny_shape shape = tiny_shape_default();
    shape.architecture = "unheard-of";
    tiny_write(path, shape);
    CHECK_REFUSED(env, CGAM_E_FORMAT, "unheard-of", cgam_lm_open(env, path, &lm));
    unlink(path);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_lm_open(env, path, &lm));
}

TEST_GROUP(set_up, tear_down)
