/* ctest: timeout=600
 * Generated text: the cache against running all tokens anew, both engines, ends and draws. */
#include "lm/edit.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/one_env.h"

#include <cgam/io.h>
#include <cgam/lm.h>
#include <errno.h>
#include <sys/stat.h>

#include "support/owned.h"

enum { PROMPTS = 5, LONGEST = 20, MOST = 12, WIDTH = 64 };

typedef struct scene {
    int32_t tokens[PROMPTS][LONGEST];
    cgam_lm_prompt prompt[PROMPTS];
    float vector[2][WIDTH];
} scene;

static void fill(scene *s, int shared)
{
    cgam_rng rng = cgam_rng_stream(21, 0);
    for (int i = 0; i < PROMPTS; i++) {
        for (int k = 0; k < LONGEST; k++)
            s->tokens[i][k] = k == 0 ? 1 : 3 + (int32_t)cgam_rng_below(&rng, 260);
        if (i > 0) memcpy(s->tokens[i], s->tokens[0], (size_t)shared * sizeof(int32_t));
        s->prompt[i] = (cgam_lm_prompt){s->tokens[i], LONGEST - 2 * i};
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < WIDTH; j++) s->vector[i][j] = 0.5F * (float)cgam_rng_normal(&rng);
}

typedef struct after {
    float scores[1024];
    int64_t vocab;
} after;

static cgam_status take_scores(void *user, const cgam_lm_span *span)
{
    after *a = user;
    memcpy(a->scores, span->scores, (size_t)a->vocab * sizeof *a->scores);
    return CGAM_OK;
}

/* The most probable token after a prompt whose first n tokens were given, all computed anew. */
static int32_t follow(cgam_lm *lm, cgam_lm_prompt prompt, int64_t n, bool exact,
                      cgam_lm_edits edits, double *log_p)
{
    static after a;
    int64_t top = 0;
    a.vocab = cgam_lm_describe(lm).vocab;
    assert_true(a.vocab <= 1024);
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run.exact = exact;
    o.run.edits = edits;
    o.states = false;
    o.scores = true;
    o.prompt_tokens = &n;
    CHECK_STATUS(env, cgam_lm_observe(lm, 1, &prompt, &o, take_scores, &a));
    double sum = 0;
    for (int64_t k = 1; k < a.vocab; k++)
        if (a.scores[k] > a.scores[top]) top = k;
    for (int64_t k = 0; k < a.vocab; k++) sum += exp((double)(a.scores[k] - a.scores[top]));
    *log_p = -log(sum);
    return (int32_t)top;
}

TEST(the_cache_gives_what_running_all_anew_gives)
{
    scene s;
    fill(&s, 6);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_edit e[] = {
        {.layer = 1, .where = CGAM_LM_GENERATED, .scale = 1, .vector = s.vector[0]},
        {.layer = 2,
         .kind = CGAM_LM_REPLACE,
         .where = CGAM_LM_LAST,
         .scale = 1,
         .vector = s.vector[1]},
        {.layer = 3, .where = CGAM_LM_ALL, .scale = -1, .vector = s.vector[1]},
        {.where = CGAM_LM_RANGE, .from = 2, .to = 11, .scale = 2, .vector = s.vector[0]}};
    for (int exact = 0; exact < 2; exact++)
        for (int64_t edits = 0; edits <= 4; edits += 2) {
            cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
            o.exact = exact;
            o.max_tokens = MOST;
            o.edits = (cgam_lm_edits){e, edits};
            cgam_lm_text text[PROMPTS];
            CHECK_STATUS(env, cgam_lm_generate(lm, PROMPTS, s.prompt, &o, text));
            for (int i = 0; i < PROMPTS; i++) {
                int32_t whole[LONGEST + MOST];
                int64_t n = s.prompt[i].count;
                memcpy(whole, s.tokens[i], sizeof s.tokens[i]);
                assert_true(text[i].count <= MOST);
                for (int64_t k = 0; k < text[i].count; k++) {
                    double log_p;
                    whole[n + k] =
                        follow(lm, (cgam_lm_prompt){whole, n + k}, n, exact, o.edits, &log_p);
                    assert_int_equal(whole[n + k], text[i].tokens[k].id);
                    CHECK_CLOSE(text[i].tokens[k].log_p, log_p, 1e-4);
                    assert_true(text[i].tokens[k].neff >= 1);
                }
                assert_true(text[i].stop == CGAM_LM_STOP_LENGTH ||
                            text[i].stop == CGAM_LM_STOP_EOS);
            }
            cgam_lm_texts_free(lm, PROMPTS, text);
        }
}

TEST(draws_depend_on_the_seed_alone)
{
    scene s;
    fill(&s, 0);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    o.temperature = 1.5;
    o.max_tokens = MOST;
    o.seed = 4;
    cgam_lm_text all[PROMPTS], one, other;
    CHECK_STATUS(env, cgam_lm_generate(lm, PROMPTS, s.prompt, &o, all));
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &one));
    assert_string_equal(all[0].text, one.text);
    o.seed = 5;
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &other));
    assert_true(strcmp(one.text, other.text) != 0);
    cgam_lm_texts_free(lm, 1, &other);
    o.top_p = 1e-6; /* only the most probable is left: greedy */
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &other));
    cgam_lm_texts_free(lm, 1, &one);
    o.temperature = 0;
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &one));
    assert_string_equal(one.text, other.text);
    cgam_lm_texts_free(lm, PROMPTS, all);
    cgam_lm_texts_free(lm, 1, &one);
    cgam_lm_texts_free(lm, 1, &other);
}

typedef struct heard {
    char text[1024];
    int tokens, ends;
} heard;

static cgam_status listen(void *user, int64_t which, const cgam_lm_token *token, const char *text)
{
    heard *h = user;
    assert_int_equal(which, 0);
    if (token) h->tokens++;
    else h->ends++;
    strncat(h->text, text, sizeof h->text - strlen(h->text) - 1);
    return CGAM_OK;
}

TEST(a_stop_word_ends_a_text_and_is_not_told)
{
    scene s;
    fill(&s, 0);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    o.max_tokens = MOST;
    cgam_lm_text whole, cut;
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &whole));
    size_t length = strlen(whole.text);
    assert_true(length > 6);
    char word[4] = {0};
    memcpy(word, whole.text + length / 2, 3); /* perhaps across two tokens */
    const char *const stops[] = {"no such text", word};
    heard h = {0};
    o.stop = stops;
    o.stop_count = 2;
    o.each = listen;
    o.user = &h;
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &cut));
    assert_int_equal(cut.stop, CGAM_LM_STOP_WORD);
    assert_int_equal(strlen(cut.text), strstr(whole.text, word) - whole.text);
    assert_memory_equal(cut.text, whole.text, strlen(cut.text));
    assert_string_equal(h.text, cut.text);
    assert_int_equal(h.tokens, cut.count);
    assert_int_equal(h.ends, 1);
    cgam_lm_texts_free(lm, 1, &whole);
    /* of two that one token brings, what comes first ends the text, whichever is named first */
    o = cgam_lm_generate_opts_default();
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &whole));
    char piece[64] = "";
    for (int64_t i = 0; i < whole.count && strlen(piece) < 3; i++)
        cgam_lm_piece(lm, whole.tokens[i].id, piece, sizeof piece);
    assert_true(strlen(piece) >= 3);
    const char *const both[2][2] = {{piece + 1, piece + 2}, {piece + 2, piece + 1}};
    for (int turn = 0; turn < 2; turn++) {
        cgam_lm_text ended;
        o.stop = both[turn];
        o.stop_count = 2;
        CHECK_STATUS(env, cgam_lm_generate(lm, 1, s.prompt, &o, &ended));
        assert_int_equal(ended.stop, CGAM_LM_STOP_WORD);
        assert_int_equal(strlen(ended.text), strstr(whole.text, piece + 1) - whole.text);
        cgam_lm_texts_free(lm, 1, &ended);
    }
    cgam_lm_texts_free(lm, 1, &whole);
    cgam_lm_texts_free(lm, 1, &cut);
}

typedef struct patience {
    int heard, allowed;
} patience;

static cgam_status count_tokens(void *user, int64_t which, const cgam_lm_token *token,
                                const char *text)
{
    (void)which, (void)text;
    ((patience *)user)->heard += token != NULL;
    return CGAM_OK;
}

static bool no_longer(void *user)
{
    const patience *p = user;
    return p->heard >= p->allowed;
}

TEST(an_interruption_leaves_what_there_is)
{
    scene s;
    fill(&s, 0);
    patience wait = {0, 4};
    cgam_env_opts o = cgam_env_opts_default();
    o.threads = 1;
    o.interrupted = no_longer;
    o.user = &wait;
    OWNED(cgam_env) impatient = NULL;
    assert_int_equal(cgam_env_new(&o, &impatient), CGAM_OK);
    OWNED(cgam_lm) lm = model_tiny(impatient, tiny_shape_default());
    for (int exact = 0; exact < 2; exact++) {
        wait = (patience){0, 4};
        cgam_lm_generate_opts g = cgam_lm_generate_opts_default();
        g.exact = exact;
        g.each = count_tokens;
        g.user = &wait;
        cgam_lm_text text;
        CHECK_STATUS(impatient, cgam_lm_generate(lm, 1, s.prompt, &g, &text));
        assert_int_equal(text.stop, CGAM_LM_STOP_INTERRUPT);
        assert_int_equal(text.count, 4);
        cgam_lm_texts_free(lm, 1, &text);
    }
}

TEST(what_cannot_be_generated_is_named)
{
    scene s;
    fill(&s, 0);
    tiny_shape shape = tiny_shape_default();
    shape.context = 32;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    int32_t many[40] = {1};
    cgam_lm_prompt long_prompt = {many, 40}, full = {many, 32};
    cgam_lm_text text;
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    CHECK_REFUSED(env, CGAM_E_ARG, "text 0 has 40 tokens, the model's context holds 32",
                  cgam_lm_generate(lm, 1, &long_prompt, NULL, &text));
    cgam_lm_texts_free(lm, 1, &text);
    /* a full context: one token follows, which is not run */
    for (int exact = 0; exact < 2; exact++) {
        o.exact = exact;
        CHECK_STATUS(env, cgam_lm_generate(lm, 1, &full, &o, &text));
        assert_true(text.count <= 1 && text.stop != CGAM_LM_STOP_WORD);
        cgam_lm_texts_free(lm, 1, &text);
    }
    static const char *const none[] = {NULL}, *const empty[] = {"x", ""};
    const cgam_lm_generate_opts d = cgam_lm_generate_opts_default();
    cgam_lm_generate_opts bad[] = {d, d, d, d, d, d, d, d, d};
    bad[0].temperature = -1;
    bad[1].temperature = (double)INFINITY;
    bad[2].temperature = (double)NAN;
    bad[3].top_p = 0;
    bad[4].top_p = 1.5;
    bad[5].max_tokens = 0;
    bad[6].max_tokens = (1 << 20) + 1;
    bad[7].stop = none, bad[7].stop_count = 1;
    bad[8].stop = empty, bad[8].stop_count = 2;
    static const char *const says[] = {
        "temperature is -1",     "temperature is inf",
        "temperature is",        "top-p is 0,",
        "top-p is 1.5,",         "max-tokens is 0, it must be from 1 to 1048576",
        "max-tokens is 1048577", "the text is empty",
        "the text is empty"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_REFUSED(env, CGAM_E_ARG, says[i], cgam_lm_generate(lm, 1, s.prompt, &bad[i], &text));
        assert_null(text.text);
    }
    CHECK_STATUS(env, cgam_lm_generate(lm, 0, NULL, NULL, NULL));
    cgam_lm_texts_free(lm, 1, NULL);
    /* what no float holds gives no scores */
    float huge[WIDTH];
    for (int j = 0; j < WIDTH; j++) huge[j] = 3e38F;
    const cgam_lm_edit e = {.layer = 3, .where = CGAM_LM_ALL, .scale = 2, .vector = huge};
    cgam_lm_text two[2];
    o = d;
    o.exact = true;
    o.edits = (cgam_lm_edits){&e, 1};
    CHECK_REFUSED(env, CGAM_E_VALUE, "token 0: a score",
                  cgam_lm_generate(lm, 2, s.prompt, &o, two));
    cgam_lm_texts_free(lm, 2, two);
}

typedef struct refusal {
    int64_t which; /* of the texts, the one that may not go on */
    int ends;      /* 1: only its end is refused */
    bool stop;
} refusal;

static cgam_status refuse(void *user, int64_t which, const cgam_lm_token *token, const char *text)
{
    refusal *r = user;
    (void)text;
    r->stop = true;
    return which == r->which && (!token) == r->ends ? CGAM_E_IO : CGAM_OK;
}

static bool is_stopped(void *user) { return ((refusal *)user)->stop; }

/* Who listens may end it all: with a token, at an end, and where an interruption is told. */
TEST(a_listener_that_refuses_ends_the_texts)
{
    scene s;
    fill(&s, 0);
    refusal r = {0};
    cgam_env_opts eo = cgam_env_opts_default();
    eo.threads = 1;
    eo.user = &r;
    for (int interrupted = 0; interrupted < 2; interrupted++) {
        eo.interrupted = interrupted ? is_stopped : NULL;
        OWNED(cgam_env) own = NULL;
        assert_int_equal(cgam_env_new(&eo, &own), CGAM_OK);
        r = (refusal){.which = -1};
        OWNED(cgam_lm) lm = model_tiny(own, tiny_shape_default());
        for (int i = 0; i < 4; i++) {
            cgam_lm_text text[2];
            cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
            r = (refusal){.which = i / 2, .ends = i % 2};
            o.max_tokens = 3;
            o.each = refuse;
            o.user = &r;
            CHECK_FAILS(own, CGAM_E_IO, cgam_lm_generate(lm, 2, s.prompt, &o, text));
            cgam_lm_texts_free(lm, 2, text);
        }
    }
}

/* As many tokens as may be asked for: a text at a time, and each ends with the context. */
TEST(many_tokens_are_written_text_by_text)
{
    scene s;
    fill(&s, 0);
    tiny_shape shape = tiny_shape_default();
    shape.context = 32;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    cgam_lm_text few[3], many[3];
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    o.max_tokens = 32;
    o.exact = true;
    CHECK_STATUS(env, cgam_lm_generate(lm, 3, s.prompt, &o, few));
    o.max_tokens = 1 << 20;
    CHECK_STATUS(env, cgam_lm_generate(lm, 3, s.prompt, &o, many));
    for (int i = 0; i < 3; i++) {
        assert_string_equal(few[i].text, many[i].text);
        if (many[i].stop == CGAM_LM_STOP_LENGTH)
            assert_int_equal(many[i].count, 32 - s.prompt[i].count + 1);
    }
    cgam_lm_texts_free(lm, 3, few);
    cgam_lm_texts_free(lm, 3, many);
    float huge[WIDTH];
    for (int j = 0; j < WIDTH; j++) huge[j] = 3e38F;
    const cgam_lm_edit e = {.layer = 3, .where = CGAM_LM_ALL, .scale = 2, .vector = huge};
    o.edits = (cgam_lm_edits){&e, 1};
    CHECK_FAILS(env, CGAM_E_VALUE, cgam_lm_generate(lm, 3, s.prompt, &o, many));
    assert_null(many[1].tokens); /* not begun */
    cgam_lm_texts_free(lm, 3, many);
}

TEST(words_become_edits)
{
    scene s;
    fill(&s, 0);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    const char *path = folder_file("t.npy");
    char word[128];
    float rows[4][WIDTH];
    for (int l = 0; l < 4; l++)
        for (int j = 0; j < WIDTH; j++) rows[l][j] = (float)(100 * l + j);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 2, (const int64_t[]){4, WIDTH}, rows));
    cgam_edit_set *set;
    CHECK_STATUS(env, cgam_edit_set_new(lm, &set));
    static const struct {
        const char *before, *after;
        cgam_lm_edit want;
        int row;
    } good[] = {{"2:add:last:1.5",
                 "",
                 {2, CGAM_LM_ADD, CGAM_LM_LAST, 0, 0, 1.5, NULL, CGAM_LM_RESIDUAL, 0},
                 2},
                {"0:replace:-3--1:-2",
                 ":3",
                 {0, CGAM_LM_REPLACE, CGAM_LM_RANGE, -3, -1, -2, NULL, CGAM_LM_RESIDUAL, 0},
                 3},
                {"3:add:4:1e-1",
                 ":0",
                 {3, CGAM_LM_ADD, CGAM_LM_RANGE, 4, 4, 0.1, NULL, CGAM_LM_RESIDUAL, 0},
                 0},
                {"1:add:generated:1",
                 "",
                 {1, CGAM_LM_ADD, CGAM_LM_GENERATED, 0, 0, 1, NULL, CGAM_LM_RESIDUAL, 0},
                 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(word, sizeof word, "%s:%s%s", good[i].before, path, good[i].after);
        CHECK_STATUS(env, cgam_edit_set_word(set, word));
        cgam_lm_edits all = cgam_edit_set_edits(set);
        assert_int_equal(all.count, i + 1);
        const cgam_lm_edit *e = &all.edit[i], *w = &good[i].want;
        assert_true(e->layer == w->layer && e->kind == w->kind && e->where == w->where &&
                    e->from == w->from && e->to == w->to && e->scale == w->scale);
        assert_memory_equal(e->vector, rows[good[i].row], sizeof rows[0]);
    }
    static const struct {
        const char *before, *after, *says;
    } bad[] = {{"4:add:last:1", "", "the model has layers 0 to 3"},
               {"2:sub:last:1", "", "is not of the form LAYER:add|replace:POSITIONS:X:FILE[:ROW]"},
               {"2:add:first:1", "", "is not of the form"},
               {"2:add:last:x", "", "is not of the form"},
               {"-1:add:last:1", "", "the model has layers 0 to 3"},
               {"x:add:last:1", "", "is not of the form"},
               {" 2:add:last:1", "", "is not of the form"},
               {"+2:add:last:1", "", "is not of the form"},
               {"99999999999999999999:add:last:1", "", "is not of the form"},
               {"2.add:last:1", "", "is not of the form"},
               {"2:adder:last:1", "", "is not of the form"},
               {"2:add:last+:1", "", "is not of the form"},
               {"2:add:3;1", "", "is not of the form"},
               {"2:add:3-x:1", "", "is not of the form"},
               {"2:add:last: 1", "", "is not of the form"},
               {"2:add:last:inf", "", "is not of the form"},
               {"2:add:last:1x", "", "is not of the form"},
               {"2:add:last:1", ":x", "is not of the form"},
               {"2:add:last:1", ":3 ", "is not of the form"},
               {"2:add:last:1", ":9", "has rows 0 to 3, not 9"},
               {"2:add:last:1", ":-1", "has rows 0 to 3, not -1"},
               {"2:add:last:1", ".gone", "No such file"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(word, sizeof word, "%s:%s%s", bad[i].before, path, bad[i].after);
        assert_true(cgam_edit_set_word(set, word) != CGAM_OK);
        CHECK_MESSAGE(env, bad[i].says);
    }
    snprintf(word, sizeof word, "%s:2.5:1-2", path);
    CHECK_STATUS(env, cgam_edit_set_vectors(set, word));
    cgam_lm_edits all = cgam_edit_set_edits(set);
    assert_int_equal(all.count, 6);
    assert_true(all.edit[5].layer == 2 && all.edit[5].where == CGAM_LM_ALL &&
                all.edit[5].scale == 2.5);
    static const struct {
        const char *after, *says;
    } wrong[] = {{":2.5:1-4", "the model has layers 0 to 3"},
                 {":1:-1-2", "the model has layers 0 to 3"},
                 {":1:2-1", "the model has layers 0 to 3"},
                 {":much", "is not of the form FILE[:X[:FROM-TO]]"},
                 {":1:few", "is not of the form"},
                 {":1:1-2:3", "is not of the form"},
                 {":1;", "is not of the form"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(word, sizeof word, "%s%s", path, wrong[i].after);
        CHECK_REFUSED(env, CGAM_E_ARG, wrong[i].says, cgam_edit_set_vectors(set, word));
    }
    snprintf(word, sizeof word, "2:add:last:1:");
    CHECK_FAILS(env, CGAM_E_ARG, cgam_edit_set_word(set, word)); /* no file at all */
    assert_int_equal(cgam_edit_set_edits(set).count, 6);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 1, (const int64_t[]){3}, rows));
    snprintf(word, sizeof word, "2:add:last:1:%s", path);
    CHECK_REFUSED(env, CGAM_E_SHAPE, "has vectors of 3 numbers, the model's have 64",
                  cgam_edit_set_word(set, word));
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 1, (const int64_t[]){WIDTH}, rows));
    CHECK_STATUS(env, cgam_edit_set_word(set, word));
    snprintf(word, sizeof word, "2:add:last:1:%s:0", path);
    CHECK_REFUSED(env, CGAM_E_SHAPE, "is one vector: there is no row 0",
                  cgam_edit_set_word(set, word));
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 3, (const int64_t[]){1, 2, WIDTH}, rows));
    snprintf(word, sizeof word, "2:add:last:1:%s", path);
    CHECK_REFUSED(env, CGAM_E_SHAPE, "has 3 dimensions, a vector has one or two",
                  cgam_edit_set_word(set, word));
    cgam_edit_set_free(set);
    unlink(path);
}

/* Rows of control vectors; the folder's name has an ending too, and a colon behind it. */
TEST(rows_of_other_files_become_edits)
{
    static const char *const endings[] = {".safetensors", ".gguf"};
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    float rows[3][WIDTH], wide[4][WIDTH + 32];
    for (int l = 0; l < 3; l++)
        for (int j = 0; j < WIDTH; j++) rows[l][j] = l > 0 ? (float)(100 * l + j) : 0;
    for (int l = 0; l < 4; l++)
        for (int j = 0; j < WIDTH + 32; j++) wide[l][j] = 1;
    char folder[64], path[128], word[200];
    snprintf(folder, sizeof folder, "/tmp/cgam-%d.safetensors:2", (int)getpid());
    assert_true(mkdir(folder, 0755) == 0 || errno == EEXIST); /* of a run that died */
    for (int i = 0; i < 2; i++) {
        cgam_vector *v;
        cgam_edit_set *set;
        snprintf(path, sizeof path, "%s/v%s", folder, endings[i]);
        CHECK_STATUS(env, cgam_vector_new(env, 3, WIDTH, rows[0], &v));
        CHECK_STATUS(env, cgam_vector_write(v, path, NULL, NULL));
        cgam_vector_free(v);
        CHECK_STATUS(env, cgam_edit_set_new(lm, &set));
        snprintf(word, sizeof word, "3:add:all:1:%s:2", path);
        CHECK_STATUS(env, cgam_edit_set_word(set, word));
        assert_memory_equal(cgam_edit_set_edits(set).edit[0].vector, rows[2], sizeof rows[0]);
        assert_int_equal(cgam_edit_set_edits(set).edit[0].layer, 3);
        snprintf(word, sizeof word, "3:add:all:1:%s", path);
        CHECK_REFUSED(env, CGAM_E_SHAPE, "has no row 3", cgam_edit_set_word(set, word));
        CHECK_STATUS(env, cgam_edit_set_vectors(set, path));
        const int64_t count = i ? 2 : 3; /* layer 2, and 1 where the file has a place for it */
        assert_int_equal(cgam_edit_set_edits(set).count, count);
        CHECK_STATUS(env, cgam_vector_new(env, 4, WIDTH + 32, wide[0], &v));
        CHECK_STATUS(env, cgam_vector_write(v, path, NULL, NULL));
        cgam_vector_free(v);
        snprintf(word, sizeof word, "3:add:all:1:%s:2", path);
        CHECK_REFUSED(env, CGAM_E_SHAPE, "vectors of 96 numbers, the model is 64 wide",
                      cgam_edit_set_word(set, word));
        CHECK_FAILS(env, CGAM_E_SHAPE, cgam_edit_set_vectors(set, path));
        unlink(path);
        CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_edit_set_word(set, word));
        assert_int_equal(cgam_edit_set_edits(set).count, count);
        cgam_edit_set_free(set);
    }
    assert_int_equal(rmdir(folder), 0);
}

static char tiny_path[64];

static cgam_status ignore(void *user, const cgam_lm_span *span)
{
    (void)user, (void)span;
    return CGAM_OK;
}

/* Observed, scored and generated, by one engine, under edits. */
static int all_of_it(cgam_env *on, void *arg)
{
    bool exact = *(bool *)arg;
    scene s;
    fill(&s, 6);
    OWNED(cgam_lm) lm = NULL;
    cgam_lm_text text[2] = {{0}, {0}};
    double log_p[2];
    const cgam_lm_edit e = {.layer = 1, .where = CGAM_LM_ALL, .scale = 1, .vector = s.vector[0]};
    const cgam_lm_candidate c[] = {{0, s.tokens[1], 3}, {1, s.tokens[2], 2}};
    cgam_lm_generate_opts g = cgam_lm_generate_opts_default();
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    g.exact = o.run.exact = exact;
    g.max_tokens = 2;
    g.temperature = 1;
    g.edits = o.run.edits = (cgam_lm_edits){&e, 1};
    o.all_tokens = o.scores = true;
    cgam_status status = cgam_lm_open(on, tiny_path, &lm);
    if (status != CGAM_OK) return status;
    status = cgam_lm_observe(lm, 2, s.prompt, &o, ignore, NULL);
    if (status == CGAM_OK) status = cgam_lm_score(lm, 2, s.prompt, 2, c, &o.run, log_p);
    if (status == CGAM_OK) status = cgam_lm_generate(lm, 2, s.prompt, &g, text);
    /* a text that was stopped is an answer, and says so */
    if (status == CGAM_OK && text[1].stop == CGAM_LM_STOP_INTERRUPT) status = CGAM_E_INTERRUPTED;
    cgam_lm_texts_free(lm, 2, text);
    return status;
}

TEST(memory_that_is_refused_is_no_more_than_that)
{
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    snprintf(tiny_path, sizeof tiny_path, "/tmp/cgam-generate-%d.gguf", (int)getpid());
    tiny_write(tiny_path, tiny_shape_default());
    bool exact = false;
    check_some_allocations(all_of_it, &exact, 3);
    exact = true;
    check_some_allocations(all_of_it, &exact, 41);
    unlink(tiny_path);
}

TEST_GROUP(set_up, tear_down)
