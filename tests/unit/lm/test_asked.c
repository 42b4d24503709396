/* ctest: timeout=300
 * What is asked of a model, at its borders; models that are not what they say, or that the plain pass does not know; memory that ends
 * while a model runs. All in one line, and nothing is handed over. */
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/one_env.h"

#include <cgam/lm.h>

#include "support/owned.h"

static int32_t tokens[] = {1, 70, 71, 72, 73, 74, 75, 76};

static cgam_status none_comes(void *user, const cgam_lm_span *span)
{
    (void)user, (void)span;
    fail_msg("something was handed over");
    return CGAM_OK;
}

/* One of two prompts of three and five tokens is asked for what it does not have. */
TEST_WITH(set_up, tear_down, what_is_asked_lies_within_the_prompts)
{
    static const int64_t below[] = {0, -1}, behind[] = {0, 5}, none[] = {1, 0}, more[] = {1, 6};
    static const int64_t negative[] = {-1}, high[] = {4}, twice[] = {1, 1};
    static const struct {
        const int64_t *from, *own, *layers;
        int64_t count, batch;
        const char *said;
    } cases[] = {
        {.from = below, .said = "no token -1 in prompt 1, which has 5 tokens"},
        {.from = behind, .said = "no token 5 in prompt 1, which has 5 tokens"},
        {.own = none, .said = "no token 0 in prompt 1, which has 5 tokens"},
        {.own = more, .said = "no token 6 in prompt 1, which has 5 tokens"},
        {.layers = negative,
         .count = 1,
         .said = "layer -1: layers must be from 0 to 3, each once, in rising order"},
        {.layers = high,
         .count = 1,
         .said = "layer 4: layers must be from 0 to 3, each once, in rising order"},
        {.layers = twice, .count = 2, .said = "each once, in rising order"},
        {.batch = -1, .said = "batch_tokens is -1, it must be from 0 (default) to 65536"},
        {.batch = 1 << 17, .said = "batch_tokens is 131072"},
    };
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    const cgam_lm_prompt prompts[] = {{tokens, 3}, {tokens, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
        o.from = cases[i].from;
        o.prompt_tokens = cases[i].own;
        o.layers = cases[i].layers;
        o.layers_count = cases[i].count;
        o.run.batch_tokens = cases[i].batch;
        CHECK_REFUSED(env, CGAM_E_ARG, cases[i].said,
                      cgam_lm_observe(lm, 2, prompts, &o, none_comes, NULL));
    }
    tokens[4] = -7;
    CHECK_REFUSED(env, CGAM_E_ARG, "prompt 1: no token -7",
                  cgam_lm_observe(lm, 2, prompts, NULL, none_comes, NULL));
    tokens[4] = 73;
}

TEST_WITH(set_up, tear_down, candidates_come_in_the_order_of_their_prompts)
{
    tiny_shape shape = tiny_shape_default();
    shape.context = 8;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    static const int32_t strange[] = {70, 100000};
    const cgam_lm_prompt prompts[] = {{tokens, 3}, {tokens, 5}};
    const struct {
        cgam_lm_candidate candidate[2];
        const char *said;
    } cases[] = {
        {{{0, tokens, 2}, {-1, tokens, 2}}, "candidate 1 belongs to prompt -1"},
        {{{0, tokens, 2}, {2, tokens, 2}}, "candidate 1 belongs to prompt 2"},
        {{{1, tokens, 2}, {0, tokens, 2}}, "order of the 2 prompts"},
        {{{0, tokens, 0}, {1, tokens, 2}}, "candidate 0 has 0 tokens"},
        {{{0, tokens, 2}, {1, tokens, 4}}, "candidate 1 has 4 tokens after a prompt of 5"},
        {{{0, tokens, 2}, {1, strange, 2}}, "candidate 1: no token 100000"},
    };
    double log_p[2] = {7, 7};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_REFUSED(env, CGAM_E_ARG, cases[i].said,
                      cgam_lm_score(lm, 2, prompts, 2, cases[i].candidate, NULL, log_p));
    }
    CHECK_STATUS(env, cgam_lm_score(lm, 2, prompts, 0, NULL, NULL, log_p));
    CHECK_STATUS(env, cgam_lm_score(lm, 0, NULL, 2, NULL, NULL, log_p));
    assert_true(log_p[0] == 7 && log_p[1] == 7);
}

/* Longer than a piece of a batch, and more of them than run beside each other: the sum of what each token has alone. */
TEST_WITH(set_up, tear_down, long_candidates_and_many_have_the_sum_of_their_tokens)
{
    enum { LONG = 700, MANY = 90 };
    static int32_t words[LONG];
    static cgam_lm_candidate candidate[MANY];
    static double log_p[MANY], exact[MANY];
    for (int i = 0; i < LONG; i++) words[i] = 3 + (i * 37) % 250;
    for (int i = 0; i < MANY; i++)
        candidate[i] =
            (cgam_lm_candidate){i / (MANY / 2), words + i, i % 30 == 7 ? 600 : 1 + i % 9};
    tiny_shape shape = tiny_shape_default();
    shape.context = 1024;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    const cgam_lm_prompt prompts[] = {{tokens, 3}, {tokens, 5}};
    const cgam_lm_capture_opts plain = {.exact = true};
    CHECK_STATUS(env, cgam_lm_score(lm, 2, prompts, MANY, candidate, NULL, log_p));
    CHECK_STATUS(env, cgam_lm_score(lm, 2, prompts, MANY, candidate, &plain, exact));
    for (int i = 0; i < MANY; i++) CHECK_REL(log_p[i], exact[i], 1e-4);
}

/* ---- Models ----------------------------------------------------------------------------------- */
static cgam_status open_shape(tiny_shape shape, cgam_lm **out)
{
    const char *path = folder_file("t.gguf");
    tiny_write(path, shape);
    cgam_status status = cgam_lm_open(env, path, out);
    unlink(path);
    return status;
}

TEST_WITH(set_up, tear_down, the_plain_pass_refuses_models_that_it_does_not_know)
{
    static const struct {
        tiny_key key;
        const char *said;
    } cases[] = {
        {{"llama.rope.scaling.factor", TINY_REAL, 2, NULL},
         "exact does not support this model's position scaling or biases"},
        {{"llama.rope.scale_linear", TINY_REAL, 2, NULL},
         "exact does not support this model's position scaling or biases"},
        {{"llama.attention.scale", TINY_REAL, 0.5, NULL},
         "exact does not support this model's position scaling or biases"},
        {{"llama.attention.key_length", TINY_NUMBER, 16, NULL}, ""},
        {{"llama.attention.value_length", TINY_NUMBER, 16, NULL}, ""},
        {{"llama.attention.head_count_kv", TINY_NONE, 0, NULL}, ""},
        {{"llama.rope.dimension_count", TINY_NONE, 0, NULL}, ""},
        {{"llama.rope.freq_base", TINY_NONE, 0, NULL}, ""},
    };
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    const cgam_lm_prompt prompt = {tokens, 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tiny_key keys[] = {cases[i].key, {0}};
        tiny_shape shape = tiny_shape_default();
        shape.heads_kv = shape.heads;
        shape.keys = keys;
        OWNED(cgam_lm) lm = NULL;
        CHECK_STATUS(env, open_shape(shape, &lm));
        const bool known = !cases[i].said[0];
        if (cgam_lm_describe(lm).exact != known) print_error("%s\n", cases[i].key.name);
        assert_int_equal(cgam_lm_describe(lm).exact, known);
        if (known) { /* and as libllama has it */
            model_sheet a = model_states(env, lm, 1, &prompt, (cgam_lm_capture_opts){0});
            model_sheet b =
                model_states(env, lm, 1, &prompt, (cgam_lm_capture_opts){.exact = true});
            CHECK_LE(model_distance(a.states, b.states, a.one), 1e-5);
            free(a.states), free(b.states);
        } else {
            cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
            o.run.exact = true;
            CHECK_REFUSED(env, CGAM_E_UNSUPPORTED, cases[i].said,
                          cgam_lm_observe(lm, 1, &prompt, &o, none_comes, NULL));
        }
    }
}

/* What libllama loads, and what it does not, is all one here: no model comes of it. */
TEST_WITH(set_up, tear_down, models_that_are_not_what_they_say_are_refused)
{
    static const struct {
        tiny_key key;
        const char *tensor;
        int columns, rows;
    } cases[] = {
        {{0}, "output_norm.weight", 0, 0},
        {{0}, "output_norm.weight", 32, 0},
        {{0}, "token_embd.weight", 0, 0},
        {{0}, "token_embd.weight", 64, 100},
        {{0}, "output.weight", 64, 100},
        {{0}, "output.weight", 32, 263},
        {{0}, "blk.1.attn_q.weight", 64, 32},
        {{0}, "blk.1.ffn_norm.weight", 0, 0},
        {{"llama.attention.head_count", TINY_NUMBER, 0, NULL}, NULL, 0, 0},
        {{"llama.attention.head_count", TINY_NONE, 0, NULL}, NULL, 0, 0},
        {{"llama.attention.head_count_kv", TINY_NUMBER, 3, NULL}, NULL, 0, 0},
        {{"llama.feed_forward_length", TINY_NUMBER, 0, NULL}, NULL, 0, 0},
        {{"llama.feed_forward_length", TINY_NONE, 0, NULL}, NULL, 0, 0},
        {{"llama.attention.layer_norm_rms_epsilon", TINY_NONE, 0, NULL}, NULL, 0, 0},
        {{"llama.embedding_length", TINY_TEXT, 0, "wide"}, NULL, 0, 0},
        {{"llama.rope.dimension_count", TINY_NUMBER, 8, NULL}, NULL, 0, 0},
        {{"general.name", TINY_NUMBER, 7, NULL}, NULL, 0, 0},
        {{"llama.expert_count", TINY_NUMBER, 2, NULL}, NULL, 0, 0},
        {{"tokenizer.ggml.model", TINY_NONE, 0, NULL}, NULL, 0, 0},
        {{"tokenizer.ggml.model", TINY_NUMBER, 1, NULL}, NULL, 0, 0},
        {{"tokenizer.ggml.precompiled_charsmap", TINY_TEXT, 0, "x"}, NULL, 0, 0},
    };
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tiny_key keys[] = {cases[i].key, {0}};
        tiny_shape shape = tiny_shape_default();
        shape.keys = keys;
        shape.tensor = cases[i].tensor;
        shape.columns = cases[i].columns, shape.rows = cases[i].rows;
        cgam_lm *lm = NULL;
        cgam_status status = open_shape(shape, &lm);
        if (status != CGAM_E_FORMAT && status != CGAM_E_UNSUPPORTED && status != CGAM_E_NOT_FOUND)
            print_error("case %d: %s%s\n", (int)i, cases[i].key.name ? cases[i].key.name : "",
                        cases[i].tensor ? cases[i].tensor : "");
        assert_true(status == CGAM_E_FORMAT || status == CGAM_E_UNSUPPORTED ||
                    status == CGAM_E_NOT_FOUND);
        assert_null(lm);
        assert_true(strlen(cgam_env_message(env)) > 10 && !strchr(cgam_env_message(env), '\n'));
    }
}

/* Or none, and a long one is cut. */
TEST_WITH(set_up, tear_down, a_model_may_have_any_name)
{
    static char name[400];
    memset(name, 'n', sizeof name - 1);
    const tiny_key keys[][2] = {{{"general.name", TINY_NONE, 0, NULL}, {0}},
                                {{"general.name", TINY_TEXT, 0, name}, {0}}};
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    for (int i = 0; i < 2; i++) {
        OWNED(cgam_lm) lm = NULL;
        tiny_shape shape = tiny_shape_default();
        shape.keys = keys[i];
        CHECK_STATUS(env, open_shape(shape, &lm));
        cgam_lm_info info = cgam_lm_describe(lm);
        assert_int_equal(strlen(info.name), i == 1 ? sizeof info.name - 1 : 0);
    }
}

/* ---- Chats ------------------------------------------------------------------------------------ */
static char *text_of(cgam_lm *lm, int64_t n, const int32_t *of)
{
    static char text[512];
    size_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        cgam_lm_piece(lm, of[i], text + used, sizeof text - used);
        used += strlen(text + used);
    }
    return text;
}

TEST_WITH(set_up, tear_down, a_chat_is_written_as_the_template_says)
{
    static const struct {
        const char *form, *says; /* says NULL: refused */
    } cases[] = {
        {"'<|user|>\n' + message['content'] + eos_token", "<|user|>\nfilm</s>"},
        {"'<|user|>\\n' + message['content'] + eos_token", "<|user|>\nfilm</s>"},
        {"<|im_start|>", "<|im_start|>user\nfilm<|im_end|>\n<|im_start|>assistant\n"},
        {"what no one writes", NULL},
    };
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    static char much[(1 << 24) + 2];
    memset(much, 'x', sizeof much - 1);
    const cgam_lm_message one = {"user", "film"}, long_one = {"user", much};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tiny_key keys[] = {{"tokenizer.chat_template", TINY_TEXT, 0, cases[i].form}, {0}};
        tiny_shape shape = tiny_shape_default();
        shape.keys = keys;
        OWNED(cgam_lm) lm = NULL;
        int32_t *out;
        int64_t n;
        CHECK_STATUS(env, open_shape(shape, &lm));
        if (cases[i].says) {
            CHECK_STATUS(env, cgam_lm_chat(lm, 1, &one, &out, &n));
            assert_int_equal(out[0], 1); /* begins once */
            assert_int_not_equal(out[1], 1);
            if (!strstr(text_of(lm, n, out), cases[i].says))
                fail_msg("'%s' is not in '%s'", cases[i].says, text_of(lm, n, out));
            cgam_lm_tokens_free(lm, out);
            CHECK_REFUSED(env, CGAM_E_ARG, "the chat has no messages",
                          cgam_lm_chat(lm, 0, &one, &out, &n));
            CHECK_REFUSED(env, CGAM_E_ARG, "a chat of 16777217 bytes is too long",
                          cgam_lm_chat(lm, 1, &long_one, &out, &n));
            CHECK_REFUSED(env, CGAM_E_ARG, "16777217 bytes is too long",
                          cgam_lm_tokenize(lm, much, false, &out, &n));
            assert_null(out);
        } else {
            CHECK_REFUSED(env, CGAM_E_UNSUPPORTED, "which begins what no one writes",
                          cgam_lm_chat(lm, 1, &one, &out, &n));
        }
    }
}

/* ---- Memory ----------------------------------------------------------------------------------- */
typedef struct running {
    const char *path;
    bool exact, score, chat;
    cgam_lm_edits edits;
} running;

static cgam_status come(void *user, const cgam_lm_span *span)
{
    (void)user, (void)span;
    return CGAM_OK;
}

static int run_model(cgam_env *own, void *arg)
{
    const running *r = arg;
    const cgam_lm_prompt prompts[] = {{tokens, 3}, {tokens, 5}, {tokens + 1, 6}};
    const cgam_lm_candidate candidate[] = {{0, tokens, 3}, {0, tokens, 2}, {1, tokens, 3}};
    const cgam_lm_message one = {"user", "film"};
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run.exact = r->exact;
    o.run.edits = r->edits;
    o.run.batch_tokens = 4; /* more than one batch */
    o.scores = o.all_tokens = true;
    OWNED(cgam_lm) lm = NULL;
    double log_p[3];
    int32_t *words = NULL;
    int64_t n;
    cgam_status status = cgam_lm_open(own, r->path, &lm);
    if (status == CGAM_OK && r->chat) status = cgam_lm_chat(lm, 1, &one, &words, &n);
    else if (status == CGAM_OK && r->score)
        status = cgam_lm_score(lm, 3, prompts, 3, candidate, &o.run, log_p);
    else if (status == CGAM_OK) status = cgam_lm_observe(lm, 3, prompts, &o, come, NULL);
    if (lm) cgam_lm_tokens_free(lm, words);
    return status;
}

TEST_WITH(set_up, tear_down, memory_may_end_while_a_model_runs)
{
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    const char *path = folder_file("t.gguf");
    static const char *const forms[] = {"'<|user|>\n' + message['content'] + eos_token",
                                        "<|im_start|>"};
    static const float v[64] = {1};
    /* everywhere, from layer 2 on: libllama's control vector */
    const cgam_lm_edit edit = {.layer = 2, .scale = 1, .vector = v, .where = CGAM_LM_ALL};
    for (int i = 0; i < 8; i++) {
        const tiny_key keys[] = {{"tokenizer.chat_template", TINY_TEXT, 0, forms[i % 2]}, {0}};
        tiny_shape shape = tiny_shape_default();
        shape.rope_factors = true;
        shape.keys = keys;
        tiny_write(path, shape);
        running r = {path, .exact = i % 2, .score = i / 2 == 1, .chat = i / 2 == 2};
        if (i / 2 == 3) r.edits = (cgam_lm_edits){&edit, 1};
        check_every_allocation(run_model, &r);
    }
    unlink(path);
}
