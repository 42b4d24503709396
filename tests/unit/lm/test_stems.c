/* ctest: timeout=300
 * Prompts that begin alike in groups: as if each were run alone, and no token twice. */
#include "support/models.h"
#include "support/objects.h"

#include <cgam/lm.h>

enum { GROUPS = 3, EACH = 4, PROMPTS = GROUPS * EACH, TOKENS = 17, WIDTH = 64, VOCAB = 512 };

/* Prompt g EACH + c is text g, or all of it but its last g tokens, under an edit of its own. */
typedef struct scene {
    int32_t text[GROUPS][TOKENS];
    cgam_lm_prompt prompt[PROMPTS];
    float vector[PROMPTS][WIDTH];
    cgam_lm_edit edit[PROMPTS];
    cgam_lm_edits edits[PROMPTS];
    cgam_lm *lm;
} scene;

static cgam_env *env;
static scene s;

static int set_up(void **state)
{
    (void)state;
    cgam_rng rng = cgam_rng_stream(31, 0);
    env = object_env(1);
    for (int i = 0; i < GROUPS * TOKENS; i++)
        s.text[i / TOKENS][i % TOKENS] =
            i % TOKENS == 0 ? 1 : 3 + (int32_t)cgam_rng_below(&rng, 260);
    for (int i = 0; i < PROMPTS; i++) {
        for (int j = 0; j < WIDTH; j++) s.vector[i][j] = (float)cgam_rng_normal(&rng);
        s.prompt[i] = (cgam_lm_prompt){s.text[i / EACH], TOKENS - i / EACH};
        s.edit[i] = (cgam_lm_edit){.layer = i % 4,
                                   .kind = i % 3 == 1,
                                   .where = CGAM_LM_LAST,
                                   .scale = 1,
                                   .vector = s.vector[i]};
        s.edits[i] = (cgam_lm_edits){&s.edit[i], 1};
    }
    /* one of the second group differs in its middle, and ends that group */
    s.edit[EACH + 2].where = CGAM_LM_RANGE;
    s.edit[EACH + 2].from = s.edit[EACH + 2].to = 3;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

typedef struct sheet {
    float states[PROMPTS][TOKENS][4][WIDTH], scores[PROMPTS][TOKENS][VOCAB];
    int64_t next[PROMPTS]; /* the token that is to be handed over */
    double total;
} sheet;

static cgam_status keep(void *user, const cgam_lm_span *span)
{
    sheet *to = user;
    int64_t vocab = cgam_lm_describe(s.lm).vocab;
    assert_int_equal(span->first, to->next[span->which]);
    for (int64_t t = 0; t < span->count; t++) {
        for (int64_t l = 0; l < 4; l++)
            memcpy(to->states[span->which][span->first + t][l],
                   span->states + (l * span->count + t) * WIDTH, WIDTH * sizeof(float));
        memcpy(to->scores[span->which][span->first + t], span->scores + t * vocab,
               (size_t)vocab * sizeof(float));
    }
    to->next[span->which] += span->count;
    return CGAM_OK;
}

static void told(void *user, const cgam_progress_at *at) { ((sheet *)user)->total = at->total; }

static cgam_lm_capture_opts how(bool exact, bool alone)
{
    cgam_lm_capture_opts run = cgam_lm_capture_opts_default();
    run.exact = exact;
    run.no_sharing = alone;
    run.batch_tokens = alone ? 1 : 0;
    run.edits_each = s.edits;
    return run;
}

static sheet *observe(bool exact, bool alone)
{
    sheet *to = calloc(1, sizeof *to);
    assert_non_null(to);
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run = how(exact, alone);
    o.run.progress = (cgam_progress){told, to};
    o.all_tokens = o.scores = true;
    CHECK_STATUS(env, cgam_lm_observe(s.lm, PROMPTS, s.prompt, &o, keep, to));
    for (int i = 0; i < PROMPTS; i++) assert_int_equal(to->next[i], s.prompt[i].count);
    return to;
}

static void open_model(void)
{
    s.lm = model_tiny(env, tiny_shape_default());
    cgam_lm_info info = cgam_lm_describe(s.lm);
    assert_true(info.width == WIDTH && info.layers == 3 && info.vocab <= VOCAB);
}

TEST_WITH(set_up, tear_down, prompts_that_begin_alike_are_as_if_alone)
{
    open_model();
    for (int exact = 0; exact < 2; exact++) {
        sheet *together = observe(exact, false), *alone = observe(exact, true);
        CHECK_LE(model_distance(together->states[0][0][0], alone->states[0][0][0],
                                (int64_t)sizeof together->states / (int64_t)sizeof(float)),
                 1e-5);
        CHECK_LE(model_distance(together->scores[0][0], alone->scores[0][0],
                                (int64_t)sizeof together->scores / (int64_t)sizeof(float)),
                 1e-5);
        /* 17 + 3, 16 + 1, 16 + 1 with token 3 edited or not before it, 15 + 3 */
        CHECK_CLOSE(together->total, 17 + 3 + 16 + 1 + 16 + 16 + 15 + 3, 0);
        CHECK_CLOSE(alone->total, EACH * (17 + 16 + 15), 0);
        free(together);
        free(alone);
    }
    cgam_lm_close(s.lm);
}

TEST_WITH(set_up, tear_down, candidates_of_stems_are_as_if_alone)
{
    open_model();
    enum { WORDS = 3, CANDIDATES = WORDS * PROMPTS };
    static const int32_t words[WORDS][3] = {{5, 6, 7}, {8, 9, 10}, {11, 12, 13}};
    cgam_lm_candidate c[CANDIDATES];
    double together[CANDIDATES], alone[CANDIDATES];
    for (int i = 0; i < CANDIDATES; i++)
        c[i] = (cgam_lm_candidate){i / WORDS, words[i % WORDS], 1 + i % WORDS};
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_capture_opts run = how(exact, false);
        CHECK_STATUS(env, cgam_lm_score(s.lm, PROMPTS, s.prompt, CANDIDATES, c, &run, together));
        run = how(exact, true);
        CHECK_STATUS(env, cgam_lm_score(s.lm, PROMPTS, s.prompt, CANDIDATES, c, &run, alone));
        for (int i = 0; i < CANDIDATES; i++) CHECK_CLOSE(together[i], alone[i], 1e-4);
    }
    cgam_lm_close(s.lm);
}

TEST_WITH(set_up, tear_down, texts_of_stems_are_as_if_alone)
{
    open_model();
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_text together[PROMPTS], alone;
        cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
        o.exact = exact;
        o.max_tokens = 6;
        o.edits_each = s.edits;
        CHECK_STATUS(env, cgam_lm_generate(s.lm, PROMPTS, s.prompt, &o, together));
        for (int i = 0; i < PROMPTS; i++) {
            o.edits_each = &s.edits[i];
            CHECK_STATUS(env, cgam_lm_generate(s.lm, 1, &s.prompt[i], &o, &alone));
            assert_int_equal(together[i].count, alone.count);
            for (int64_t k = 0; k < alone.count; k++) {
                assert_int_equal(together[i].tokens[k].id, alone.tokens[k].id);
                CHECK_CLOSE(together[i].tokens[k].log_p, alone.tokens[k].log_p, 1e-4);
            }
            cgam_lm_texts_free(s.lm, 1, &alone);
        }
        cgam_lm_texts_free(s.lm, PROMPTS, together);
    }
    cgam_lm_close(s.lm);
}
