/* ctest: timeout=600
 * Edits of the residual stream: what they leave where, in both engines, in every shape of model. */
#include "lm/edit.h"
#include "support/models.h"
#include "support/one_env.h"

#include "support/owned.h"

enum { PROMPTS = 4, LONGEST = 24, WIDTH = 64, LAYERS = 3, VECTORS = 6 };

typedef struct scene {
    int32_t tokens[PROMPTS][LONGEST];
    cgam_lm_prompt prompt[PROMPTS];
    float vector[VECTORS][WIDTH];
} scene;

static void fill(scene *s, int shared)
{
    cgam_rng rng = cgam_rng_stream(11, 0);
    for (int i = 0; i < PROMPTS; i++) {
        for (int k = 0; k < LONGEST; k++)
            s->tokens[i][k] = k == 0 ? 1 : (int32_t)cgam_rng_below(&rng, 270);
        if (i > 0) memcpy(s->tokens[i], s->tokens[0], (size_t)shared * sizeof(int32_t));
        s->prompt[i] = (cgam_lm_prompt){s->tokens[i], LONGEST - 3 * i};
    }
    for (int i = 0; i < VECTORS; i++)
        for (int j = 0; j < WIDTH; j++) s->vector[i][j] = (float)cgam_rng_normal(&rng);
}

/* All states and scores of all tokens of prompts: [prompt][token][layer][width], [prompt][token][vocab]. */
typedef struct sheet {
    float *states, *scores;
    int64_t layers, width, vocab, handed;
} sheet;

static cgam_status keep(void *user, const cgam_lm_span *span)
{
    sheet *s = user;
    for (int64_t t = 0; t < span->count; t++) {
        int64_t at = span->which * LONGEST + span->first + t;
        for (int64_t l = 0; l < s->layers; l++)
            memcpy(s->states + (at * s->layers + l) * s->width,
                   span->states + (l * span->count + t) * s->width,
                   (size_t)s->width * sizeof(float));
        if (span->scores)
            memcpy(s->scores + at * s->vocab, span->scores + t * s->vocab,
                   (size_t)s->vocab * sizeof(float));
    }
    s->handed += span->count;
    return CGAM_OK;
}

static sheet observe(cgam_lm *lm, const scene *s, int64_t count, cgam_lm_capture_opts run)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    sheet out = {.layers = info.layers + 1, .width = info.width, .vocab = info.vocab};
    out.states = calloc((size_t)(count * LONGEST * out.layers * out.width), sizeof(float));
    out.scores = calloc((size_t)(count * LONGEST * out.vocab), sizeof(float));
    assert_true(out.states && out.scores);
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run = run;
    o.all_tokens = o.scores = true;
    CHECK_STATUS(env, cgam_lm_observe(lm, count, s->prompt, &o, keep, &out));
    int64_t tokens = 0;
    for (int64_t i = 0; i < count; i++) tokens += s->prompt[i].count;
    assert_int_equal(out.handed, tokens);
    return out;
}

static void discard(sheet *s)
{
    free(s->states);
    free(s->scores);
}

static float *at(const sheet *s, int64_t prompt, int64_t token, int64_t layer)
{
    return s->states + ((prompt * LONGEST + token) * s->layers + layer) * s->width;
}

static bool same_bits(const float *a, const float *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* h + x v there and nothing earlier, in layers or tokens, touched; x v after a replace. */
TEST(an_edit_leaves_what_it_says)
{
    scene s;
    fill(&s, 0);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_capture_opts run = {.exact = exact};
        sheet plain = observe(lm, &s, 1, run);
        for (int64_t layer = 0; layer <= LAYERS; layer++)
            for (int kind = 0; kind < 2; kind++) {
                enum { TOKEN = 9 };
                cgam_lm_edit e = {.layer = layer,
                                  .kind = kind,
                                  .where = CGAM_LM_RANGE,
                                  .from = TOKEN,
                                  .to = TOKEN - LONGEST,
                                  .scale = 1.75,
                                  .vector = s.vector[layer]};
                run.edits = (cgam_lm_edits){&e, 1};
                sheet edited = observe(lm, &s, 1, run);
                for (int64_t t = 0; t < LONGEST; t++)
                    for (int64_t l = 0; l <= LAYERS; l++) {
                        const float *h = at(&plain, 0, t, l), *g = at(&edited, 0, t, l);
                        if (t < TOKEN || l < layer) assert_true(same_bits(h, g, WIDTH));
                        if (t == TOKEN && l == layer)
                            for (int j = 0; j < WIDTH; j++)
                                assert_true(g[j] == (kind ? 0 : h[j]) + 1.75F * e.vector[j]);
                        if (t > TOKEN && l > layer) assert_false(same_bits(h, g, WIDTH));
                    }
                discard(&edited);
            }
        discard(&plain);
    }
}

TEST(nothing_changes_no_bit)
{
    scene s;
    fill(&s, 0);
    static const float zero[WIDTH];
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_capture_opts run = {.exact = exact};
        sheet plain = observe(lm, &s, PROMPTS, run);
        for (int64_t layer = 0; layer <= LAYERS; layer++) {
            cgam_lm_edit e[2] = {
                {.layer = layer, .where = CGAM_LM_ALL, .scale = 0, .vector = s.vector[0]},
                {.layer = layer, .where = CGAM_LM_PROMPT, .scale = 3, .vector = zero}};
            run.edits = (cgam_lm_edits){e, 2};
            sheet same = observe(lm, &s, PROMPTS, run);
            assert_true(same_bits(plain.scores, same.scores, PROMPTS * LONGEST * plain.vocab));
            assert_true(
                same_bits(plain.states, same.states, PROMPTS * LONGEST * plain.layers * WIDTH));
            discard(&same);
            /* there and back: what rounding leaves */
            e[0] = (cgam_lm_edit){.layer = layer, .scale = 1, .vector = s.vector[1]};
            e[1] = (cgam_lm_edit){.layer = layer, .scale = -1, .vector = s.vector[1]};
            sheet back = observe(lm, &s, PROMPTS, run);
            for (int64_t i = 0; i < PROMPTS * LONGEST * plain.vocab; i++)
                CHECK_CLOSE((double)plain.scores[i], (double)back.scores[i], 2e-4);
            discard(&back);
        }
        discard(&plain);
    }
}

/* Random edits of all kinds, different ones for each prompt. */
static void draw(cgam_rng *rng, const scene *s, cgam_lm_edit *e, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t from = (int64_t)cgam_rng_below(rng, 8), more = (int64_t)cgam_rng_below(rng, 5);
        bool back = cgam_rng_below(rng, 2) == 1;
        e[i] = (cgam_lm_edit){.layer = (int64_t)cgam_rng_below(rng, LAYERS + 1),
                              .kind = cgam_rng_below(rng, 4) == 0,
                              .where = (cgam_lm_where)cgam_rng_below(rng, 5),
                              .from = back ? -1 - from - more : from,
                              .to = back ? -1 - from : from + more,
                              .scale = cgam_rng_normal(rng),
                              .vector = s->vector[cgam_rng_below(rng, VECTORS)]};
    }
}

/* The largest distance of scores, relative to the largest score. */
static double score_distance(const sheet *a, const sheet *b)
{
    float off = 0, size = 0; /* not double: see model_log_p */
    for (int64_t i = 0; i < PROMPTS * LONGEST * a->vocab; i++) {
        off = fmaxf(off, fabsf(a->scores[i] - b->scores[i]));
        size = fmaxf(size, fabsf(b->scores[i]));
    }
    return (double)(off / size);
}

TEST(the_engines_agree_under_random_edits)
{
    static const struct {
        tiny_type type;
        bool tied;
        double allowed; /* f16 and q8 round activations: 2^-11 and 1/254 of the largest of 32 */
    } cases[] = {{TINY_F32, false, 1e-4}, {TINY_F32, true, 1e-4},   {TINY_F16, false, 1e-2},
                 {TINY_F16, true, 1e-2},  {TINY_Q8_0, false, 1e-1}, {TINY_Q8_0, true, 1e-1}};
    scene s;
    fill(&s, 6);
    cgam_rng rng = cgam_rng_stream(5, 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        tiny_shape shape = tiny_shape_default();
        shape.type = cases[c].type;
        shape.tied = cases[c].tied;
        OWNED(cgam_lm) lm = model_tiny(env, shape);
        for (int round = 0; round < 6; round++) {
            enum { EACH = 3 };
            cgam_lm_edit e[PROMPTS + 1][EACH];
            cgam_lm_edits each[PROMPTS];
            for (int i = 0; i <= PROMPTS; i++) draw(&rng, &s, e[i], EACH);
            for (int i = 0; i < PROMPTS; i++) each[i] = (cgam_lm_edits){e[i], round % 2 ? EACH : 0};
            cgam_lm_capture_opts run = {.edits = {e[PROMPTS], EACH}, .edits_each = each};
            sheet fast = observe(lm, &s, PROMPTS, run);
            run.exact = true;
            sheet exact = observe(lm, &s, PROMPTS, run);
            CHECK_LE(score_distance(&fast, &exact), cases[c].allowed);
            if (shape.type == TINY_F32) { /* and with neighbours and sharing as without */
                run.no_sharing = true;
                run.batch_tokens = 1;
                sheet alone = observe(lm, &s, PROMPTS, run);
                CHECK_LE(score_distance(&alone, &exact), 1e-5);
                discard(&alone);
                run.exact = false;
                alone = observe(lm, &s, PROMPTS, run);
                CHECK_LE(score_distance(&alone, &fast), 1e-5);
                discard(&alone);
            }
            discard(&fast);
            discard(&exact);
        }
    }
}

/* Adds at all positions go through libllama's adapter, unless one edit more makes them go our way. */
TEST(the_adapter_gives_what_writing_gives)
{
    scene s;
    fill(&s, 0);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_edit e[3] = {
        {.layer = 2, .where = CGAM_LM_ALL, .scale = 0.7, .vector = s.vector[0]},
        {.layer = 3, .where = CGAM_LM_ALL, .scale = -1.3, .vector = s.vector[1]},
        {.layer = 0, .where = CGAM_LM_GENERATED, .scale = 1, .vector = s.vector[2]}};
    cgam_lm_capture_opts run = {.edits = {e, 2}};
    sheet adapter = observe(lm, &s, PROMPTS, run);
    run.edits.count = 3; /* nothing is generated here: an edit of no token */
    sheet written = observe(lm, &s, PROMPTS, run);
    assert_true(same_bits(adapter.scores, written.scores, PROMPTS * LONGEST * adapter.vocab));
    run.edits.count = 0;
    sheet plain = observe(lm, &s, PROMPTS, run);
    for (int64_t t = 0; t < LONGEST; t++)
        for (int j = 0; j < WIDTH; j++) {
            float x = 0.7F * s.vector[0][j];
            assert_true(at(&adapter, 0, t, 2)[j] == at(&plain, 0, t, 2)[j] + x);
        }
    discard(&adapter);
    discard(&written);
    discard(&plain);
}

/* The log-probability of a token after a prompt of which the first n tokens were given. */
static double log_p_after(cgam_lm *lm, cgam_lm_prompt prompt, int64_t n, cgam_lm_capture_opts run,
                          int32_t token)
{
    sheet to = {.vocab = cgam_lm_describe(lm).vocab};
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run = run;
    o.states = false;
    o.scores = true;
    o.prompt_tokens = &n;
    to.scores = calloc((size_t)(to.vocab * (LONGEST + 5)), sizeof *to.scores);
    CHECK_STATUS(env, cgam_lm_observe(lm, 1, &prompt, &o, keep, &to));
    double log_p = model_log_p(to.scores + (prompt.count - 1) * to.vocab, to.vocab, token);
    free(to.scores);
    return log_p;
}

/* Each candidate's log-probability, against the scores of prompt and candidate run as one prompt. */
TEST(candidates_have_the_probability_of_their_tokens)
{
    scene s;
    fill(&s, 7);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    enum { CANDIDATES = 12 };
    cgam_lm_candidate c[CANDIDATES];
    int32_t tokens[CANDIDATES][5];
    cgam_rng rng = cgam_rng_stream(8, 0);
    for (int i = 0; i < CANDIDATES; i++) {
        for (int k = 0; k < 5; k++) tokens[i][k] = (int32_t)cgam_rng_below(&rng, 270);
        c[i] = (cgam_lm_candidate){i / 4 + (i > 7), tokens[i], 1 + i % 5};
    }
    cgam_lm_edit e[3];
    for (int exact = 0; exact < 2; exact++)
        for (int round = 0; round < 3; round++) {
            cgam_lm_capture_opts run = {.exact = exact};
            for (int i = 0; i < 3; i++) draw(&rng, &s, &e[i], 1);
            e[0].where = CGAM_LM_GENERATED;
            run.edits = (cgam_lm_edits){e, round == 0 ? 0 : 3};
            double log_p[CANDIDATES];
            CHECK_STATUS(env, cgam_lm_score(lm, PROMPTS, s.prompt, CANDIDATES, c, &run, log_p));
            for (int i = 0; i < CANDIDATES; i++) {
                int64_t n = s.prompt[c[i].prompt].count;
                int32_t whole[LONGEST + 5];
                memcpy(whole, s.tokens[c[i].prompt], sizeof s.tokens[0]);
                memcpy(whole + n, tokens[i], 5 * sizeof *whole);
                double want = 0;
                for (int64_t k = 0; k < c[i].length; k++)
                    want += log_p_after(lm, (cgam_lm_prompt){whole, n + k}, n, run, tokens[i][k]);
                CHECK_CLOSE(log_p[i], want, 1e-4);
            }
        }
}

TEST(edits_that_cannot_be_are_named)
{
    scene s;
    fill(&s, 0);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_edit e = cgam_lm_edit_default();
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run.edits = (cgam_lm_edits){&e, 1};
    sheet none = {0};
    e.layer = 4;
    e.vector = s.vector[0];
    CHECK_REFUSED(env, CGAM_E_ARG, "edit: no layer 4 (valid: 0 to 3",
                  cgam_lm_observe(lm, PROMPTS, s.prompt, &o, keep, &none));
    e = (cgam_lm_edit){
        .where = CGAM_LM_RANGE, .from = 3, .to = 16, .scale = 1, .vector = s.vector[0]};
    CHECK_REFUSED(env, CGAM_E_ARG, "edit: tokens 3 to 16 are outside prompt 3, which has 15 tokens",
                  cgam_lm_observe(lm, PROMPTS, s.prompt, &o, keep, &none));
    float odd[WIDTH] = {0};
    odd[7] = NAN;
    const cgam_lm_edit good = {.where = CGAM_LM_LAST, .scale = 1, .vector = s.vector[0]};
    static const char *const says[] = {
        "edit: tokens -16 to -16 are outside prompt 3, which has 15 tokens",
        "edit: tokens 4 to 3 are outside prompt 0, which has 24 tokens",
        "edit: scale is inf",
        "edit: scale is 1e+300",
        "edit: no layer -1 (valid: 0 to 3",
        "edit at layer 2: its vector is missing",
        "edit at layer 0: number 7 of its vector is nan"};
    cgam_lm_edit bad[] = {good, good, good, good, good, good, good};
    bad[0].where = bad[1].where = CGAM_LM_RANGE;
    bad[0].from = bad[0].to = -16;
    bad[1].from = 4, bad[1].to = 3;
    bad[2].scale = (double)INFINITY;
    bad[3].scale = 1e300; /* no float */
    bad[4].layer = -1;
    bad[5].layer = 2, bad[5].vector = NULL;
    bad[6].vector = odd;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cgam_lm_edit both[] = {bad[i], good};
        o.run.edits = (cgam_lm_edits){both, 2};
        CHECK_REFUSED(env, CGAM_E_ARG, says[i],
                      cgam_lm_observe(lm, PROMPTS, s.prompt, &o, keep, &none));
    }
    e = good;
    o.run.edits = (cgam_lm_edits){&e, 1};
    o.layers = (const int64_t[]){2, 2};
    o.layers_count = 2;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_lm_observe(lm, PROMPTS, s.prompt, &o, keep, &none));
    int32_t *tokens;
    int64_t count;
    cgam_lm_message hello = {"user", "hello"};
    CHECK_REFUSED(env, CGAM_E_UNSUPPORTED, "the model has no chat template",
                  cgam_lm_chat(lm, 1, &hello, &tokens, &count));
}

/* The plan itself: no edit touches nothing, and equal vectors are the same wherever they lie. */
TEST(a_plan_says_what_happens_where)
{
    scene s;
    fill(&s, 0);
    const cgam_lm_info info = {.layers = LAYERS, .width = WIDTH};
    float copy[WIDTH], h[WIDTH] = {1};
    memcpy(copy, s.vector[0], sizeof copy);
    const cgam_lm_edit e[] = {{.layer = 1, .scale = 1, .vector = s.vector[0]},
                              {.layer = 1, .scale = 1, .vector = copy},
                              {.layer = 1, .scale = 1, .vector = s.vector[1]}};
    const cgam_lm_edits each[] = {{&e[0], 1}, {&e[1], 1}, {&e[2], 1}};
    const cgam_lm_prompt same[] = {s.prompt[0], s.prompt[0], s.prompt[0]};
    cgam_edit_plan plan;
    CHECK_STATUS(env, cgam_edit_plan_make(env, &info, 3, same, (cgam_edit_reach){NULL, 0},
                                          (cgam_lm_edits){NULL, 0}, each, &plan));
    const int64_t last = s.prompt[0].count - 1;
    assert_true(cgam_edit_plan_same(&plan, 0, 1, last));
    assert_false(cgam_edit_plan_same(&plan, 0, 2, last));
    assert_true(cgam_edit_plan_same(&plan, 0, 2, last - 1));
    assert_true(cgam_edit_plan_touches(&plan, 2, 1, last));
    assert_false(cgam_edit_plan_touches(&plan, 2, 2, last));
    assert_false(cgam_edit_plan_touches(&plan, 2, 1, last - 1));
    cgam_edit_plan_apply(&plan, 0, 2, last, h);
    assert_true(h[0] == 1 && h[1] == 0);
    cgam_edit_plan_apply(&plan, 0, 1, last, h);
    assert_true(h[0] == 1 + copy[0] && h[1] == copy[1]);
    cgam_edit_plan_clear(env, &plan);
    CHECK_STATUS(env, cgam_edit_plan_make(env, &info, 1, same, (cgam_edit_reach){NULL, 0},
                                          (cgam_lm_edits){NULL, 0}, NULL, &plan));
    assert_false(plan.any || cgam_edit_plan_touches(&plan, 0, 1, last));
    cgam_edit_plan_apply(&plan, 0, 1, last, h);
    assert_true(h[1] == copy[1]);
    cgam_edit_plan_clear(env, &plan);
}

TEST_GROUP(set_up, tear_down)
