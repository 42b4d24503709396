/* ctest: timeout=300
 * Injection on tiny models: cells against runs made by hand, the rules of choosing, answers as texts. */
#include "lab/language/dataset.h"
#include "lab/language/inject.h"
#include "lab/language/study.h"
#include "lm/lens.h"
#include "support/models.h"
#include "support/objects.h"

#include <locale.h>
#include <wctype.h>

#include "support/owned.h"

static cgam_env *env;

static void write_pairs(const char *name, int count, const char *const *words)
{
    FILE *f = fopen(folder_file(name), "wb");
    assert_non_null(f);
    for (int i = 0; i < 30; i++)
        fprintf(f, "%c{\"input\": \"the %d\", \"output\": \"%s\"}\n", i ? ',' : '[', i,
                words[i % count]);
    fputs("]", f);
    fclose(f);
}

enum { LABELS = 10 }; /* of the longer ones */

static int set_up(void **state)
{
    (void)state;
    env = object_env(2);
    model_file(0);
    static const char *const words[] = {"Paris", "Rome", "France", "Italy"};
    static const char *const more[] = {
        "Rome Italy",  "Rome Paris", "Rome France",      "Rome Rome",   "Paris Italy",
        "Paris Paris", "Paris Rome", "Italy Rome Italy", "Italy Italy", "Italy Paris"};
    write_pairs("d.json", 4, words);
    write_pairs("l.json", LABELS, more);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

static cgam_lm_study *open_study_of(const char *pairs)
{
    static const int64_t shots[] = {2};
    cgam_lm_study *study = NULL;
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    opts.model = folder_file("m.gguf");
    opts.eval = folder_file(pairs);
    opts.format = "pairs";
    opts.queries = 12;
    opts.shots = shots;
    opts.shots_count = 1;
    opts.exact = true;
    cgam_status status = cgam_lm_study_open(env, &opts, &study);
    need_llama(env, status);
    return study;
}

static cgam_lm_study *open_study(void) { return open_study_of("d.json"); }

TEST(answers_are_compared_as_texts)
{
    static const struct {
        const char *said, *wanted;
        bool same;
        double f1;
    } cases[] = {{" Paris", "Paris", true, 1},
                 {"paris.\n", "Paris", true, 1},
                 {"new  DELHI!", "New Delhi", true, 1},
                 {"Delhi", "New Delhi", false, 2.0 / 3},
                 {"New New Delhi", "New Delhi", false, 0.8},
                 {"", "Paris", false, 0},
                 {"Rome", "Paris", false, 0},
                 {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9", true, 1},
                 {"\xc3\x89T\xc3\x89", "\xc3\xa9t\xc3\xa9", true, 1},
                 {"\xc3", "\xc3", true, 1},
                 {"\xc3\x97", "\xc3\xb7", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double f1;
        assert_int_equal(cgam_answer_same(cases[i].said, cases[i].wanted, &f1), cases[i].same);
        CHECK_CLOSE(f1, cases[i].f1, 1e-12);
    }
}

static const char *letter(unsigned c, char text[4])
{
    if (c < 0x80) snprintf(text, 4, "%c", (int)c);
    else if (c < 0x800) snprintf(text, 4, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
    else
        snprintf(text, 4, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)),
                 (int)(0x80 | (c & 63)));
    return text;
}

/* Capitals against the C library's own table; no letter is taken for another. */
TEST(small_letters_are_those_of_the_c_library)
{
    static const unsigned whole[][2] = {{'A', 'Z'},       {0xC0, 0x17E},   {0x218, 0x21E},
                                        {0x386, 0x3AB},   {0x400, 0x4BF},  {0x4C1, 0x556},
                                        {0x1E00, 0x1E94}, {0x1EA0, 0x1EFE}};
    char a[4], b[4];
    double f1;
    locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!locale) skip();
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        for (unsigned c = whole[i][0]; c <= whole[i][1]; c++) {
            unsigned small = (unsigned)towlower_l((wint_t)c, locale);
            if (c != 0x130) /* a capital I with a dot, small in Turkish alone */
                assert_true(cgam_answer_same(letter(c, a), letter(small, b), &f1));
        }
    for (unsigned c = 'A'; c < 0x2000; c++)
        for (unsigned e = c + 1; e < c + 130; e++)
            if (cgam_answer_same(letter(c, a), letter(e, b), &f1))
                assert_int_equal(towlower_l((wint_t)c, locale), towlower_l((wint_t)e, locale));
    freelocale(locale);
}

/* Which answer a state after the last layer leads to, through the model's own norm and rows. */
static int64_t top_answer(const cgam_lens *lens, const cgam_lm_task *task, const float *h)
{
    int64_t best = 0;
    for (int64_t k = 1; k < task->labels; k++)
        if (cgam_lens_dot(lens, CGAM_LENS_NORM, task->tokens[k], h) >
            cgam_lens_dot(lens, CGAM_LENS_NORM, task->tokens[best], h))
            best = k;
    return best;
}

/* After the last layer nothing follows an edit but the norm, so those cells can be told from captured
 * states alone: ADD is right where h + x c is, REPLACE where the dummy's state is. */
TEST(the_last_layer_is_what_states_say)
{
    OWNED(cgam_lm_study) study = open_study();
    static const int64_t layers[] = {3};
    static const double scales[] = {8, -3};
    cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
    opts.layers = layers;
    opts.layers_count = 1;
    opts.scales = scales;
    opts.scales_count = 2;
    opts.answer = CGAM_ANSWER_SEQUENCE; /* of one token each: a choice among four, so often right */
    OWNED(cgam_lm_result) result = NULL;
    CHECK_STATUS(env, cgam_lm_inject(study, &opts, &result));
    const json_t *e = json_array_get(json_object_get(result->doc, "shots"), 0);
    const cgam_lm_task *task = &study->task;
    const cgam_lens *lens;
    float *zero, *icl;
    CHECK_STATUS(env, cgam_lm_study_lens(study, &lens));
    CHECK_STATUS(env, cgam_lm_states(study, task, 0, CGAM_DEMOS_TRUE, &zero));
    CHECK_STATUS(env, cgam_lm_states(study, task, 2, CGAM_DEMOS_TRUE, &icl));
    CHECK_STATUS(env, cgam_lm_task_label(study, &study->task));
    int64_t n = task->queries, d = 64, counted = task->counted;
    assert_int_equal(cgam_json_get_int(e, "queries"), counted);
    assert_true(counted == n && n == 12 && task->labels == 4);
    double want[4] = {0}, plain[2] = {0};
    for (int64_t i = 0; i < n; i++) {
        int32_t label = task->target[i];
        plain[0] += top_answer(lens, task, zero + (i * 4 + 3) * d) == label;
        plain[1] += top_answer(lens, task, icl + (i * 4 + 3) * d) == label;
        float c[64], h[64];
        int64_t other = i % 2 ? i - 1 : i + 1;
        for (int64_t j = 0; j < d; j++) {
            double sum = 0;
            for (int64_t q = 1 - i % 2; q < n; q += 2)
                sum += (double)icl[(q * 4 + 3) * d + j] - (double)zero[(q * 4 + 3) * d + j];
            c[j] = (float)(sum / 6);
        }
        for (int s = 0; s < 2; s++) {
            for (int64_t j = 0; j < d; j++)
                h[j] = zero[(i * 4 + 3) * d + j] + (float)scales[s] * c[j];
            want[s] += top_answer(lens, task, h) == label;
            for (int64_t j = 0; j < d; j++) h[j] = (float)scales[s] * icl[(other * 4 + 3) * d + j];
            want[2 + s] += top_answer(lens, task, h) == label;
        }
    }
    CHECK_CLOSE(cgam_json_get_real(e, "zero_shot"), plain[0] / (double)counted, 1e-12);
    CHECK_CLOSE(cgam_json_get_real(e, "icl"), plain[1] / (double)counted, 1e-12);
    const json_t *cells = json_object_get(e, "inject");
    double differ = 0;
    assert_int_equal(json_array_size(cells), 4);
    for (size_t c = 0; c < 4; c++) {
        CHECK_CLOSE(cgam_json_get_real(json_array_get(cells, c), "accuracy"),
                    want[c] / (double)counted, 1e-12);
        differ += fabs(want[c] - plain[0]);
    }
    assert_true(plain[0] + plain[1] > 0 && differ > 0); /* it was not all the same */
    cgam_free(env, zero);
    cgam_free(env, icl);
}

/* Answers that begin alike, of one to several tokens: the verdict is that of all their log-probabilities. */
TEST(whole_answers_are_judged_as_if_all_were_scored)
{
    enum { EACH = 24, N = 12 * EACH };
    OWNED(cgam_lm_study) study = open_study_of("l.json");
    cgam_judge judge;
    static cgam_judge_job jobs[N];
    static cgam_lm_edit edit[N];
    static float v[N][64];
    static bool right[N];
    cgam_rng rng = cgam_rng_stream(17, 0);
    CHECK_STATUS(env, cgam_judge_open(study, CGAM_ANSWER_SEQUENCE, &judge));
    assert_true(study->task.queries == 12 && study->task.labels == LABELS && judge.counted == 12);
    int64_t rights = 0;
    cgam_lm_tokens tokens[12];
    for (int64_t i = 0; i < 12; i++)
        CHECK_STATUS(env,
                     cgam_lm_task_tokens(study, &study->task, i, 0, CGAM_DEMOS_TRUE, &tokens[i]));
    for (int64_t i = 0; i < N; i++) {
        for (int j = 0; j < 64; j++) v[i][j] = 2 * (float)cgam_rng_normal(&rng);
        edit[i] = cgam_lm_edit_default();
        edit[i].layer = i % 4;
        edit[i].vector = v[i];
        jobs[i] = (cgam_judge_job){
            i / EACH, {tokens[i / EACH].tokens, tokens[i / EACH].count}, {&edit[i], 1}};
    }
    CHECK_STATUS(env, cgam_judge_run(&judge, N, jobs, right, NULL));
    for (int64_t i = 0; i < N; i++) {
        double log_p[LABELS];
        cgam_lm_candidate all[LABELS];
        int best = 0;
        cgam_lm_capture_opts run = cgam_lm_capture_opts_default();
        run.exact = true;
        run.edits = jobs[i].edits;
        for (int k = 0; k < LABELS; k++)
            all[k] =
                (cgam_lm_candidate){0, judge.answers.word[k].tokens, judge.answers.word[k].count};
        CHECK_STATUS(env, cgam_lm_score(study->lm, 1, &jobs[i].prompt, LABELS, all, &run, log_p));
        for (int k = 1; k < LABELS; k++)
            if (log_p[k] > log_p[best]) best = k;
        assert_int_equal(right[i], best == judge.target[i / EACH]);
        rights += right[i];
    }
    assert_true(rights > 0 && rights < N);
    for (int i = 0; i < 12; i++) cgam_lm_tokens_free(study->lm, tokens[i].tokens);
    cgam_judge_close(&judge);
}

/* The readout compares the same answers: all queries count, also those whose answers begin alike. */
TEST(the_readout_knows_whole_answers)
{
    for (int how = CGAM_ANSWER_SEQUENCE; how <= CGAM_ANSWER_GENERATE; how++) {
        OWNED(cgam_lm_study) study = open_study_of("l.json");
        static const int64_t layers[] = {3};
        cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
        opts.layers = layers;
        opts.layers_count = 1;
        opts.answer = (cgam_lm_answer)how;
        OWNED(cgam_lm_result) result = NULL;
        CHECK_STATUS(env, cgam_lm_inject(study, &opts, &result));
        const json_t *e = json_array_get(json_object_get(result->doc, "shots"), 0);
        double readout = cgam_json_get_real(e, "readout");
        assert_int_equal(strlen(cgam_json_get_text(e, "readout_right")), 12);
        assert_true(readout >= 0 && readout <= 1);
        assert_true(isfinite(cgam_json_get_real(cgam_json_at(e, "differences"), "best_readout")));
    }
}

/* A vector times 0 that is added changes nothing, at any layer and in any way of judging. */
TEST(nothing_added_is_zero_shot)
{
    OWNED(cgam_lm_study) study = open_study();
    static const double scales[] = {0};
    for (int how = CGAM_ANSWER_FIRST; how <= CGAM_ANSWER_GENERATE; how++) {
        cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
        opts.no_replace = true;
        opts.scales = scales;
        opts.scales_count = 1;
        opts.answer = (cgam_lm_answer)how;
        OWNED(cgam_lm_result) result = NULL;
        CHECK_STATUS(env, cgam_lm_inject(study, &opts, &result));
        const json_t *doc = result->doc;
        const json_t *e = json_array_get(json_object_get(doc, "shots"), 0);
        assert_string_equal(cgam_json_get_text(doc, "answer"),
                            cgam_lm_answer_name((cgam_lm_answer)how));
        double zero = cgam_json_get_real(e, "zero_shot");
        const json_t *cells = json_object_get(e, "inject");
        assert_int_equal(json_array_size(cells), 4);
        for (size_t c = 0; c < 4; c++)
            CHECK_CLOSE(cgam_json_get_real(json_array_get(cells, c), "accuracy"), zero, 0);
        CHECK_CLOSE(cgam_json_get_real(e, "best.held_out"), zero, 0);
        CHECK_CLOSE(cgam_json_get_real(e, "controls.random"), zero, 0);
        CHECK_CLOSE(cgam_json_get_real(e, "differences.best_zero"), 0, 0);
        assert_int_equal(cgam_json_get_int(e, "best.layer"), 3); /* of equals the latest */
        if (how != CGAM_ANSWER_FIRST) assert_int_equal(cgam_json_get_int(e, "queries"), 12);
    }
}

/* Six queries, three cells. By vectors of their own half, half 0 does best in cell 1 and half 1 in
 * cells 0 and 2, of which 2 is later; half 1 is then counted in cell 1, half 0 in cell 2. */
TEST(a_cell_is_chosen_on_one_half_and_counted_on_the_other)
{
    enum { N = 6, CELLS = 3 };
    inject_cell cells[CELLS] = {{ADD, 0, 1}, {ADD, 1, 1}, {ADD, 2, 1}};
    int32_t target[N] = {0, 0, 0, 0, 0, -1};
    const char *other = "100010" /* under vectors of the other half */
                        "010101"
                        "111100";
    const char *own = "010100"
                      "100011"
                      "010101";
    bool right[2 * CELLS * N], held[N];
    for (int i = 0; i < CELLS * N; i++) {
        right[i] = other[i] == '1';
        right[CELLS * N + i] = own[i] == '1';
    }
    const injection t = {.n = N,
                         .cells = cells,
                         .n_cells = CELLS,
                         .right = right,
                         .judge = {.target = target, .counted = 5}};
    inject_choice c = cgam_inject_choose(&t, right, KINDS, held);
    assert_int_equal(c.cell[0], 1); /* queries 0, 2, 4: 2 right, else 0 */
    assert_int_equal(c.cell[1], 2); /* queries 1, 3: 2 right in cells 0 and 2 */
    assert_int_equal(c.cell[2], 2); /* all, as shown: 4 of 5 */
    /* 0: cell 2 right; 1: cell 1 right; 2: cell 2 right; 3: cell 1 right; 4: cell 2 wrong */
    CHECK_CLOSE(c.held_out, 4.0 / 5, 1e-15);
    /* half 1 in cell 1: 2; half 0 in cells 0 and 2: 2 and 2 */
    CHECK_CLOSE(c.held_out_ties, (2 + 2.0) / 5, 1e-15);
    CHECK_CLOSE(c.tied, 1.5, 1e-15);
    assert_true(held[0] && held[1] && held[2] && held[3] && !held[4]);
}

/* Each cell's accuracy and all that is held out, under P = factor I and one scale. */
static json_t *injected_through(cgam_lm_study *study, double factor, double scale)
{
    cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
    double P[64 * 64] = {0};
    for (int i = 0; i < 64; i++) P[65 * i] = factor;
    if (factor != 0)
        CHECK_STATUS(
            env, cgam_npy_write(env, folder_file("P.npy"), CGAM_F64, 2, (int64_t[]){64, 64}, P));
    opts.projection = factor != 0 ? folder_file("P.npy") : NULL;
    opts.no_replace = true;
    opts.scales = &scale;
    opts.scales_count = 1;
    opts.answer = CGAM_ANSWER_SEQUENCE;
    OWNED(cgam_lm_result) result = NULL;
    CHECK_STATUS(env, cgam_lm_inject(study, &opts, &result));
    OWNED(json_t) doc = json_deep_copy(result->doc);
    json_t *entry = json_array_get(json_object_get(doc, "shots"), 0);
    for (size_t i = 0; i < 4; i++) /* it is the scale that is told apart */
        json_object_del(json_array_get(json_object_get(entry, "inject"), i), "scale");
    static const char *const controls[] = {"random", "flipped", "other_task", "label_rows"};
    json_t *own = json_object_get(json_object_get(entry, "controls"), "own");
    for (size_t i = 0; i < 4; i++) {
        json_object_del(json_object_get(own, controls[i]), "scale");
        json_object_del(json_object_get(own, controls[i]), "chosen");
    }
    json_t *both =
        json_pack("{sO*sO*sO*sO*}", "cells", json_object_get(entry, "inject"), "best",
                  cgam_json_at(entry, "best.right"), "controls", json_object_get(entry, "controls"),
                  "readout", json_object_get(entry, "readout_right"));
    return both;
}

/* P = I is no P, and P = 4 I is four times the scale, both to the last bit. */
TEST(contexts_go_through_a_projection)
{
    OWNED(cgam_lm_study) study = open_study();
    json_t *none = injected_through(study, 0, 4), *same = injected_through(study, 1, 4),
           *twice = injected_through(study, 4, 4), *larger = injected_through(study, 0, 16);
    assert_true(json_equal(none, same));
    assert_true(json_equal(twice, larger));
    assert_false(json_equal(none, twice)); /* it was not all the same */
    json_decref(none);
    json_decref(same);
    json_decref(twice);
    json_decref(larger);
}

TEST(what_cannot_be_injected_is_said)
{
    OWNED(cgam_lm_study) study = open_study();
    cgam_lm_result *result;
    static const int64_t beyond[] = {4};
    cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
    opts.layers = beyond;
    opts.layers_count = 1;
    CHECK_REFUSED(env, CGAM_E_ARG, "layers: no layer 4 (valid: 0 to 3",
                  cgam_lm_inject(study, &opts, &result));
    opts = cgam_lm_inject_opts_default();
    opts.no_add = opts.no_replace = true;
    CHECK_REFUSED(env, CGAM_E_ARG, "kinds: ", cgam_lm_inject(study, &opts, &result));
    opts = cgam_lm_inject_opts_default();
    opts.projection = "/nowhere/P.npy";
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_lm_inject(study, &opts, &result));
}

TEST_GROUP(set_up, tear_down)
