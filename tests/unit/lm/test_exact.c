/* ctest: labels=threads timeout=300
 * The plain pass on a CPU's tile unit: the states of f32, and the same bits on any number of threads.
 * And whose scores are whose. */
#include "num/cpu/cpu.h"
#include "support/models.h"
#include "support/objects.h"

#include "support/owned.h"

enum { PROMPTS = 7, LONGEST = 40 };

typedef struct prompt_set {
    int32_t tokens[PROMPTS][LONGEST];
    cgam_lm_prompt prompt[PROMPTS];
} prompt_set;

static void fill(prompt_set *set)
{
    cgam_rng rng = cgam_rng_stream(4, 0);
    for (int i = 0; i < PROMPTS; i++) {
        for (int k = 0; k < LONGEST; k++)
            set->tokens[i][k] = k < 5 ? 1 + k : (int32_t)cgam_rng_below(&rng, 270);
        set->prompt[i] = (cgam_lm_prompt){set->tokens[i], 6 + (int)cgam_rng_below(&rng, 35)};
    }
}

static const cgam_cpu *cpu_named(const char *name)
{
    for (int i = 0; cgam_cpu_all[i].name; i++)
        if (strcmp(cgam_cpu_all[i].name, name) == 0) return &cgam_cpu_all[i];
    return NULL;
}

/* Numbers of rows and columns that no panel divides, and a depth of more than one sum. */
static const tiny_shape *shapes(int *count)
{
    static tiny_shape all[4];
    *count = 4;
    for (int i = 0; i < *count; i++) all[i] = tiny_shape_default();
    all[1].type = TINY_Q8_0;
    all[2].width = 96, all[2].heads = 6, all[2].heads_kv = 3, all[2].ff = 1184;
    all[3].type = TINY_F16, all[3].width = 160, all[3].heads = 5, all[3].heads_kv = 1;
    return all;
}

TEST(tiles_give_the_states_of_f32)
{
    const cgam_cpu *amx = cpu_named("amx"), *before = cpu_named("avx512");
    if (!amx || !amx->usable()) {
        print_message("skipped: no tile unit here, or the system does not lend it\n");
        skip();
    }
    prompt_set set;
    fill(&set);
    OWNED(cgam_env) env = object_env(2);
    cgam_lm_capture_opts opts = {.exact = true};
    int count;
    const tiny_shape *shape = shapes(&count);
    for (int s = 0; s < count; s++) {
        OWNED(cgam_lm) lm = model_tiny(env, shape[s]);
        cgam_lm_info info = cgam_lm_describe(lm);
        model_sheet tiles = model_states(env, lm, PROMPTS, set.prompt, opts);
        cgam_cpu_pretend(before);
        model_sheet plain = model_states(env, lm, PROMPTS, set.prompt, opts);
        cgam_cpu_pretend(NULL);
        assert_true(memcmp(tiles.states, plain.states, (size_t)(PROMPTS * tiles.one) * 4) != 0);
        for (int64_t i = 0; i < PROMPTS * (info.layers + 1); i++)
            CHECK_LE(model_distance(tiles.states + i * info.width, plain.states + i * info.width,
                                    info.width),
                     3e-6);
        free(tiles.states);
        free(plain.states);
    }
}

TEST(any_number_of_threads_gives_the_same_bits)
{
    prompt_set set;
    fill(&set);
    cgam_lm_capture_opts opts = {.exact = true};
    int count;
    const tiny_shape *shape = shapes(&count);
    for (int s = 0; s < count; s++) {
        model_sheet sheet[3];
        for (int k = 0; k < 3; k++) {
            OWNED(cgam_env) env = object_env(1 + 2 * k);
            OWNED(cgam_lm) lm = model_tiny(env, shape[s]);
            sheet[k] = model_states(env, lm, PROMPTS, set.prompt, opts);
        }
        for (int k = 1; k < 3; k++)
            assert_memory_equal(sheet[k].states, sheet[0].states,
                                (size_t)(PROMPTS * sheet[0].one) * sizeof(float));
        for (int k = 0; k < 3; k++) free(sheet[k].states);
    }
}

/* ---- Scores ------------------------------------------------------------------------------- */
enum { MANY = 150, SHORT = 9 };

typedef struct kept {
    float *scores; /* [MANY, SHORT, vocab] */
    int64_t vocab, spans;
} kept;

static cgam_status keep_scores(void *user, const cgam_lm_span *span)
{
    kept *k = user;
    memcpy(k->scores + (span->which * SHORT + span->first) * k->vocab, span->scores,
           (size_t)(span->count * k->vocab) * sizeof *k->scores);
    k->spans += span->count;
    return CGAM_OK;
}

/* More prompts than are scored at once, that want one token, some of their own, or all with those that
 * they share: as libllama has them. */
TEST(scores_go_to_who_asked)
{
    static int32_t tokens[MANY][SHORT];
    cgam_lm_prompt prompts[MANY];
    int64_t from[MANY], wanted = 0;
    cgam_rng rng = cgam_rng_stream(5, 0);
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < SHORT; k++)
            tokens[i][k] = k < 5 ? 1 + k : (int32_t)cgam_rng_below(&rng, 270);
        prompts[i] = (cgam_lm_prompt){tokens[i], 6 + (int)cgam_rng_below(&rng, SHORT - 5)};
        from[i] = i % 40 == 7 ? 0 : i % 11 == 3 ? 5 : prompts[i].count - 1;
        wanted += prompts[i].count - from[i];
    }
    OWNED(cgam_env) env = object_env(2);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    kept of[2];
    for (int exact = 0; exact < 2; exact++) {
        cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
        o.run.exact = exact;
        o.states = false;
        o.scores = true;
        o.from = from;
        of[exact] = (kept){.vocab = cgam_lm_describe(lm).vocab};
        of[exact].scores = calloc((size_t)(MANY * SHORT * of[exact].vocab), sizeof(float));
        assert_non_null(of[exact].scores);
        CHECK_STATUS(env, cgam_lm_observe(lm, MANY, prompts, &o, keep_scores, &of[exact]));
        assert_int_equal(of[exact].spans, wanted);
    }
    for (int64_t i = 0; i < (int64_t)MANY * SHORT; i++)
        if (i % SHORT >= from[i / SHORT] && i % SHORT < prompts[i / SHORT].count)
            CHECK_LE(model_distance(of[1].scores + i * of[1].vocab, of[0].scores + i * of[0].vocab,
                                    of[0].vocab),
                     1e-4);
    for (int k = 0; k < 2; k++) free(of[k].scores);
}

/* Who has the states of a prompt has not its candidates' scores. */
TEST_ENV(candidates_are_scored_whatever_is_there)
{
    static const int32_t answer[2][2] = {{9, 10}, {11, 12}};
    static const bool there[PROMPTS] = {true, true, true, true, true, true, true};
    prompt_set set;
    fill(&set);
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_candidate candidate[2 * PROMPTS];
    for (int i = 0; i < 2 * PROMPTS; i++)
        candidate[i] = (cgam_lm_candidate){.prompt = i / 2, .tokens = answer[i % 2], .length = 2};
    for (int exact = 0; exact < 2; exact++) {
        double plain[2 * PROMPTS], again[2 * PROMPTS] = {0};
        cgam_lm_capture_opts opts = {.exact = exact};
        CHECK_STATUS(env,
                     cgam_lm_score(lm, PROMPTS, set.prompt, 2 * PROMPTS, candidate, &opts, plain));
        opts.there = there;
        CHECK_STATUS(env,
                     cgam_lm_score(lm, PROMPTS, set.prompt, 2 * PROMPTS, candidate, &opts, again));
        assert_memory_equal(again, plain, sizeof plain);
    }
}
