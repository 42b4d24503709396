/* Answers of several tokens: their probabilities against the model's own scores token by token, and the
 * sweep over them against the definition. */
#include "lab/language/dataset.h"
#include "lab/language/study.h"
#include "lab/language/study_sweep.h"
#include "lab/language/sweep.h"
#include "lm/lens.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/objects.h"

#include "support/owned.h"

/* ---- The sweep against the definition --------------------------------------------------------- */
enum {
    N = 60,
    D = 8,
    QUERIES = 24,
    LAYERS = 3,
    LABELS = 4,
    LONGEST = 3,
    BEGINNINGS = 4,
    CONTEXTS = 2
};

/* Two answers share a token, one of them goes on for three, two have one token. */
static const int32_t tokens[LABELS * LONGEST] = {4, 9, -1, 4, 17, 30, 25, -1, -1, 41, 3, -1};
static const int32_t at[LABELS * LONGEST] = {0, 1, -1, 0, 1, 2, 0, -1, -1, 0, 3, -1};
static const double couplings[] = {0, 0.2, 0.7, 1.5, 6};
enum { GRID = sizeof couplings / sizeof *couplings };

static float Z[N * D], gain[D], bias[D], zero[QUERIES * LAYERS * D],
    after[QUERIES * (BEGINNINGS - 1) * LAYERS * D], halves[CONTEXTS][2][D];
static int32_t target[QUERIES], first[LABELS] = {4, 4, 25, 41};
static const cgam_sweep_answers answers = {LONGEST, BEGINNINGS, tokens, at, after};

static void draw(void)
{
    cgam_rng rng = cgam_rng_stream(21, 0);
    for (int i = 0; i < N * D; i++) Z[i] = (float)cgam_rng_normal(&rng);
    for (int j = 0; j < D; j++) gain[j] = (float)(1 + 0.3 * cgam_rng_normal(&rng));
    for (int j = 0; j < D; j++) bias[j] = (float)(0.3 * cgam_rng_normal(&rng));
    for (int i = 0; i < QUERIES; i++) {
        target[i] = i == 5 ? -1 : (int32_t)cgam_rng_below(&rng, LABELS);
        int64_t y = target[i] < 0 ? 0 : target[i];
        for (int j = 0; j < LAYERS * D; j++)
            zero[i * LAYERS * D + j] = (float)(0.8 * (double)Z[tokens[y * LONGEST] * D + j % D] +
                                               1.2 * cgam_rng_normal(&rng));
        for (int b = 1; b < BEGINNINGS; b++) {
            const int32_t *next = b == 1   ? (i % 2 ? &tokens[1] : &tokens[4])
                                  : b == 2 ? &tokens[5]
                                           : &tokens[10];
            for (int j = 0; j < LAYERS * D; j++)
                after[((i * (BEGINNINGS - 1) + b - 1) * LAYERS) * D + j] =
                    (float)(1.2 * (double)Z[*next * D + j % D] + cgam_rng_normal(&rng));
        }
    }
    for (int c = 0; c < CONTEXTS; c++)
        for (int h = 0; h < 2; h++) {
            for (int j = 0; j < D; j++)
                halves[c][h][j] =
                    (float)((double)Z[tokens[3 * (c + 1)] * D + j] + 0.8 * cgam_rng_normal(&rng));
        }
}

static const float *state_of(int64_t i, int32_t beginning, int64_t l)
{
    return beginning == 0 ? zero + (i * LAYERS + l) * D
                          : after + ((i * (BEGINNINGS - 1) + beginning - 1) * LAYERS + l) * D;
}

/* log p of every token after a state plus t contexts, by the definition. */
static void log_p_of(cgam_lens_kind kind, bool biased, const float *q, const float *c, double t,
                     double out[N])
{
    double x[D], square = 0, sum = 0;
    for (int j = 0; j < D; j++) {
        x[j] = (double)q[j] + t * (double)c[j];
        square += x[j] * x[j];
    }
    double f = kind == CGAM_LENS_RAW ? 1 : 1 / sqrt(square / D + 1e-5);
    for (int m = 0; m < N; m++) {
        out[m] = 0;
        for (int j = 0; j < D; j++)
            out[m] +=
                (double)Z[m * D + j] * (x[j] * f * (kind == CGAM_LENS_RAW ? 1 : (double)gain[j]) +
                                        (biased ? (double)bias[j] : 0));
        sum += exp(out[m]);
    }
    for (int m = 0; m < N; m++) out[m] -= log(sum);
}

/* Is query i right over the labels, and over all words? */
static void judge(cgam_lens_kind kind, bool biased, int64_t i, int64_t c, int64_t l, double t,
                  bool right[2])
{
    double total[LABELS] = {0}, p[N];
    int64_t best = 0;
    right[1] = true;
    for (int k = 0; k < LABELS; k++)
        for (int s = 0; s < LONGEST && tokens[k * LONGEST + s] >= 0; s++) {
            int32_t token = tokens[k * LONGEST + s];
            log_p_of(kind, biased, state_of(i, at[k * LONGEST + s], l), halves[c][1 - i % 2], t, p);
            total[k] += p[token];
            for (int m = 0; m < N && k == target[i]; m++) right[1] = right[1] && p[m] <= p[token];
        }
    for (int k = 1; k < LABELS; k++)
        if (total[k] > total[best]) best = k;
    right[0] = best == target[i];
}

TEST(a_sweep_of_whole_answers_is_what_its_definition_says)
{
    OWNED(cgam_env) env = object_env(2);
    int64_t seen[2][2] = {{0}};
    draw();
    for (int kind = CGAM_LENS_RAW; kind <= CGAM_LENS_NORM; kind++) {
        bool biased = kind == CGAM_LENS_NORM;
        const cgam_lens_parts parts = {.vocab = N,
                                       .width = D,
                                       .Z = Z,
                                       .gain = gain,
                                       .bias = biased ? bias : NULL,
                                       .norm = {.epsilon = 1e-5, .biased = biased}};
        OWNED(cgam_lens) lens = NULL;
        OWNED(cgam_sweep) sweep = NULL;
        CHECK_STATUS(env, cgam_lens_make(env, &parts, &lens));
        const cgam_sweep_input in = {.queries = QUERIES,
                                     .layers = LAYERS,
                                     .zero = zero,
                                     .labels = LABELS,
                                     .tokens = first,
                                     .target = target,
                                     .lens = (cgam_lens_kind)kind,
                                     .answers = &answers,
                                     .grid = GRID,
                                     .lambda = couplings};
        CHECK_STATUS(env, cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &sweep));
        for (int64_t c = 0; c < CONTEXTS; c++)
            for (int64_t l = 0; l < LAYERS; l++)
                for (int g = 0; g < GRID; g++) {
                    int64_t want[2] = {0, 0};
                    for (int64_t i = 0; i < QUERIES; i++) {
                        bool right[2] = {false, false};
                        if (target[i] >= 0)
                            judge((cgam_lens_kind)kind, biased, i, c, l, couplings[g], right);
                        for (int over = 0; over < 2; over++) {
                            want[over] += right[over];
                            seen[over][right[over]]++;
                        }
                    }
                    for (int over = 0; over < 2; over++)
                        assert_int_equal(
                            cgam_sweep_hits(sweep, (cgam_sweep_over)over, c, l, couplings[g]),
                            want[over]);
                }
        assert_null(cgam_sweep_intervals(sweep, CGAM_OVER_LABELS, 0, 0));
        assert_int_equal(cgam_sweep_intervals(sweep, CGAM_OVER_VOCABULARY, 0, 0) != NULL, !biased);
    }
    for (int over = 0; over < 2; over++) assert_true(seen[over][0] > 100 && seen[over][1] > 100);
}

static int sweep_once(cgam_env *env, void *arg)
{
    (void)arg;
    OWNED(cgam_lens) lens = NULL;
    OWNED(cgam_sweep) sweep = NULL;
    const cgam_lens_parts parts = {
        .vocab = N, .width = D, .Z = Z, .gain = gain, .norm = {.epsilon = 1e-5}};
    const cgam_sweep_input in = {.queries = 4,
                                 .layers = LAYERS,
                                 .zero = zero,
                                 .labels = LABELS,
                                 .tokens = first,
                                 .target = target,
                                 .lens = CGAM_LENS_GAIN,
                                 .answers = &answers,
                                 .grid = GRID,
                                 .lambda = couplings};
    TRY(cgam_lens_make(env, &parts, &lens));
    TRY(cgam_sweep_new(lens, &in, 1, halves[0][0], NULL, &sweep));
    return CGAM_OK;
}

TEST(memory_that_is_refused_is_no_more_than_that)
{
    draw();
    check_every_allocation(sweep_once, NULL);
}

/* ---- A task's answers ---------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    model_file(200);
    FILE *f = fopen(folder_file("d.tsv"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 60; i++) fprintf(f, "%c\tfilm %d is good\n", 'x' + i % 3, i);
    fclose(f);
    return 0;
}

static const int64_t two_shots[] = {2};

static cgam_lm_study *open_study(cgam_env *env, const char *labels, bool exact, bool distinct)
{
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    cgam_lm_study *study = NULL;
    opts.model = folder_file("m.gguf");
    opts.eval = folder_file("d.tsv");
    opts.labels = labels;
    opts.queries = 6;
    opts.shots = two_shots;
    opts.shots_count = 1;
    opts.exact = exact;
    opts.answer_given = distinct; /* else sequence, where words begin alike */
    opts.answer = CGAM_ANSWER_DISTINCT;
    cgam_status status = cgam_lm_study_open(env, &opts, &study);
    need_llama(env, status);
    return study;
}

/* libllama's own scores of prompt and answer so far, one token after the other. */
static double log_p_by_scores(cgam_env *env, cgam_lm *lm, const cgam_lm_tokens *prompt,
                              const cgam_lm_tokens *word)
{
    int64_t vocab = cgam_lm_describe(lm).vocab;
    OWNED_BLOCK(float) scores = malloc((size_t)vocab * sizeof *scores);
    int32_t all[256];
    double log_p = 0;
    memcpy(all, prompt->tokens, (size_t)prompt->count * sizeof *all);
    for (int64_t t = 0; t < word->count; t++) {
        CHECK_STATUS(env, cgam_lm_logits(lm, &(cgam_lm_prompt){all, prompt->count + t}, scores));
        log_p += model_log_p(scores, vocab, word->tokens[t]);
        all[prompt->count + t] = word->tokens[t];
    }
    return log_p;
}

/* Both engines, without and with demonstrations; 1e-4: states in f32, three layers, three tokens. */
TEST(answers_have_the_probability_of_the_models_own_scores)
{
    for (int way = 0; way < 4; way++) {
        OWNED(cgam_env) env = object_env(1);
        OWNED(cgam_lm_study)
        study = open_study(env, "x=good film of Paris,y=good film,z=the capital", way % 2, way > 1);
        cgam_lm_task *task = &study->task;
        const cgam_lens *lens;
        CHECK_STATUS(env, cgam_lm_study_lens(study, &lens));
        CHECK_STATUS(env, cgam_lm_task_label(study, task));
        const cgam_answers *a = task->answers;
        assert_non_null(a);
        assert_true(task->tokens[0] < 0 && task->tokens[1] < 0 && task->tokens[2] >= 0);
        int64_t stride = (study->info.layers + 1) * study->info.width;
        int64_t last = study->info.layers * study->info.width;
        for (int64_t k = 0; k <= 2; k += 2) {
            float *states;
            const float *behind;
            double log_p[6 * 3];
            cgam_whole whole[6];
            CHECK_STATUS(env,
                         cgam_answers_states(a, study, task, k, CGAM_DEMOS_TRUE, &states, &behind));
            CHECK_STATUS(env, cgam_answers_read(a, lens, CGAM_LENS_NORM, states + last, stride,
                                                behind + last, stride, log_p, whole));
            for (int64_t i = 0; i < 6; i++) {
                cgam_lm_tokens prompt;
                int64_t best = 0;
                double mass = 0;
                CHECK_STATUS(env, cgam_lm_task_tokens(study, task, i, k, CGAM_DEMOS_TRUE, &prompt));
                for (int64_t w = 0; w < 3; w++) {
                    double want = log_p_by_scores(env, study->lm, &prompt, &a->word[w]);
                    CHECK_CLOSE(log_p[i * 3 + w], want, 1e-4);
                    if (log_p[i * 3 + w] > log_p[i * 3 + best]) best = w;
                    mass += exp(want);
                }
                assert_int_equal(whole[i].label, best);
                CHECK_REL(whole[i].mass, mass, 1e-3);
                CHECK_CLOSE(whole[i].log_p, log_p[i * 3 + a->target[i]], 0);
                cgam_lm_tokens_free(study->lm, prompt.tokens);
            }
            cgam_free(env, states);
        }
    }
}

TEST_ENV(answers_that_begin_alike_share_what_they_begin_with)
{
    OWNED(cgam_lm_study)
    study = open_study(env, "x=good film of Paris,y=good film,z=the capital", true, false);
    cgam_lm_task *task = &study->task;
    CHECK_STATUS(env, cgam_lm_task_label(study, task));
    const cgam_answers *a = task->answers;
    assert_int_equal(a->beginnings, 1 + 3 + 1);
    for (int64_t k = 0; k < a->labels; k++)
        for (int64_t t = 0; t < a->word[k].count; t++) {
            int32_t b = a->at[k * a->longest + t];
            assert_int_equal(a->beginning[b].count, t);
            assert_memory_equal(a->word[a->beginning[b].label].tokens, a->word[k].tokens,
                                (size_t)t * sizeof(int32_t));
        }
}

/* Distinct answers have the tokens that no other begins with, and those where another goes on. */
TEST(distinct_answers_end_where_they_part)
{
    static const struct {
        const char *labels;
        int64_t count[3], beginnings;
    } of[] = {{"x=good film of Paris,y=good film,z=the capital", {3, 2, 1}, 3},
              {"x=good film of Paris,y=good film of the,z=good", {4, 4, 1}, 4},
              {"x=good film,y=the capital,z=bad film of Paris", {1, 1, 1}, 1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        OWNED(cgam_env) env = object_env(1);
        OWNED(cgam_lm_study) study = open_study(env, of[i].labels, true, true);
        CHECK_STATUS(env, cgam_lm_task_label(study, &study->task));
        const cgam_answers *a = study->task.answers;
        assert_int_equal(cgam_lm_task_answer(&study->task), CGAM_ANSWER_DISTINCT);
        for (int64_t k = 0; k < 3; k++) assert_int_equal(a->word[k].count, of[i].count[k]);
        assert_int_equal(a->beginnings, of[i].beginnings);
    }
}

TEST_ENV(every_part_takes_labels_that_begin_alike)
{
    OWNED(cgam_lm_study) study = open_study(env, "x=good film,y=good Paris,z=good", true, false);
    cgam_lm_result *result;
    CHECK_STATUS(env, cgam_lm_sweep(study, NULL, &result));
    json_t *doc = json_loads(result->json, 0, NULL);
    assert_string_equal(cgam_json_get_text(doc, "answer"), "sequence");
    const json_t *entry = json_array_get(json_object_get(doc, "shots"), 0);
    assert_int_equal(cgam_json_get_int(entry, "queries"), 6);
    assert_int_equal(cgam_json_get_int(entry, "left_out"), 0);
    double zero_shot = cgam_json_get_real(json_object_get(entry, "zero_shot"), "restricted");
    double icl = cgam_json_get_real(json_object_get(entry, "icl"), "restricted");
    double held_out = cgam_json_get_real(cgam_json_at(entry, "best.restricted"), "held_out");
    json_decref(doc);
    cgam_lm_result_free(result);
    /* what the model scores itself, and the same readout beside it */
    cgam_lm_inject_opts inject = cgam_lm_inject_opts_default();
    inject.answer = CGAM_ANSWER_SEQUENCE;
    inject.no_replace = true;
    inject.layers = two_shots;
    inject.layers_count = 1;
    CHECK_STATUS(env, cgam_lm_inject(study, &inject, &result));
    doc = json_loads(result->json, 0, NULL);
    entry = json_array_get(json_object_get(doc, "shots"), 0);
    CHECK_CLOSE(cgam_json_get_real(entry, "zero_shot"), zero_shot, 1e-12);
    CHECK_CLOSE(cgam_json_get_real(entry, "icl"), icl, 1e-12);
    CHECK_CLOSE(cgam_json_get_real(entry, "readout"), held_out, 1e-12);
    json_decref(doc);
    cgam_lm_result_free(result);
    CHECK_STATUS(env, cgam_lm_neff(study, NULL, &result));
    cgam_lm_result_free(result);
    CHECK_STATUS(env, cgam_lm_probe(study, &result));
    cgam_lm_result_free(result);
}

TEST_ENV(answers_that_nothing_tells_apart_are_named)
{
    cgam_lm_result *result;
    OWNED(cgam_lm_study) study = open_study(env, "x=good,y=good,z=the", true, false);
    CHECK_REFUSED(env, CGAM_E_ARG, "the answers 'good' and 'good' are the same tokens",
                  cgam_lm_sweep(study, NULL, &result));
}

TEST_GROUP(set_up, NULL)
