/* The layer x token picture, against sums written out in double, and against states of prefixes: what
 * a token says does not depend on what follows it. */
#define ENV_THREADS 2
#include "lm/lens.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/one_env.h"

#include <cgam/lm.h>

#include "support/owned.h"

enum { VOCAB = 37, WIDTH = 8, LAYERS = 3, TOP = 4 };

static cgam_lens *small_lens(cgam_env *of)
{
    float Z[VOCAB * WIDTH], gain[WIDTH];
    cgam_rng rng = cgam_rng_stream(3, 0);
    for (int i = 0; i < VOCAB * WIDTH; i++) Z[i] = (float)cgam_rng_normal(&rng);
    for (int j = 0; j < WIDTH; j++) gain[j] = (float)(1 + 0.3 * cgam_rng_normal(&rng));
    cgam_lens *lens = NULL;
    const cgam_lens_parts parts = {
        .vocab = VOCAB, .width = WIDTH, .Z = Z, .gain = gain, .norm = {.epsilon = 1e-5}};
    if (cgam_lens_make(of, &parts, &lens) != CGAM_OK) return NULL;
    return lens;
}

static void probabilities(const cgam_lens *lens, cgam_lens_kind kind, const float *h, double *p)
{
    double top = -INFINITY, sum = 0;
    for (int k = 0; k < VOCAB; k++) p[k] = cgam_lens_dot(lens, kind, k, h), top = fmax(top, p[k]);
    for (int k = 0; k < VOCAB; k++) p[k] = exp(p[k] - top), sum += p[k];
    for (int k = 0; k < VOCAB; k++) p[k] /= sum;
}

TEST(cells_are_what_sums_say)
{
    OWNED(cgam_lens) lens = small_lens(env);
    assert_non_null(lens);
    float H[LAYERS * (WIDTH + 5)];
    cgam_rng rng = cgam_rng_stream(4, 0);
    for (size_t i = 0; i < sizeof H / sizeof *H; i++) H[i] = (float)(2 * cgam_rng_normal(&rng));
    for (int kind = CGAM_LENS_RAW; kind <= CGAM_LENS_NORM; kind++) {
        cgam_lens_cell cells[LAYERS];
        cgam_lens_word words[LAYERS * TOP];
        double f[VOCAB], p[VOCAB];
        CHECK_STATUS(env, cgam_lens_look(lens, (cgam_lens_kind)kind, LAYERS, H, WIDTH + 5, TOP,
                                         cells, words));
        probabilities(lens, CGAM_LENS_NORM, H + (LAYERS - 1) * (WIDTH + 5), f);
        int answer = 0;
        for (int k = 1; k < VOCAB; k++)
            if (f[k] > f[answer]) answer = k;
        for (int l = 0; l < LAYERS; l++) {
            double entropy = 0, kl = 0;
            int rank = 0;
            probabilities(lens, (cgam_lens_kind)kind, H + l * (WIDTH + 5), p);
            for (int k = 0; k < VOCAB; k++) {
                entropy -= p[k] * log(p[k]);
                kl += f[k] * log(f[k] / p[k]);
                rank += p[k] > p[answer];
            }
            CHECK_REL(cells[l].neff, exp(entropy), 1e-5); /* products in f32 */
            CHECK_CLOSE(cells[l].kl_final, kl, 1e-5);
            assert_int_equal(cells[l].rank_final, rank);
            for (int i = 0; i < TOP; i++) {
                const cgam_lens_word *w = &words[l * TOP + i];
                int above = 0;
                for (int k = 0; k < VOCAB; k++) above += p[k] > p[w->token];
                assert_int_equal(above, i);
                CHECK_REL(w->p, p[w->token], 1e-5);
            }
        }
        if (kind == CGAM_LENS_NORM) CHECK_CLOSE(cells[LAYERS - 1].kl_final, 0, 0);
    }
    cgam_lens_cell cell;
    cgam_lens_word word[VOCAB];
    CHECK_STATUS(env, cgam_lens_look(lens, CGAM_LENS_RAW, 1, (float[WIDTH]){0}, WIDTH, VOCAB, &cell,
                                     word)); /* all words alike */
    CHECK_REL(cell.neff, VOCAB, 1e-12);
    for (int i = 0; i < VOCAB; i++) assert_int_equal(word[i].token, i);
    static const int64_t beyond[][2] = {{1, VOCAB + 1}, {1, 0}, {0, 1}}; /* layers, words */
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        CHECK_REFUSED(
            env, CGAM_E_ARG, "it must be from 1 to",
            cgam_lens_look(lens, CGAM_LENS_RAW, beyond[i][0], H, WIDTH, beyond[i][1], &cell, word));
    }
    CHECK_FAILS(env, CGAM_E_VALUE,
                cgam_lens_look(lens, CGAM_LENS_RAW, 1, (float[WIDTH]){NAN}, WIDTH, 1, &cell, word));
}

/* Two words with the same row: at the layer before the last both stand above the answer or none does, and the first of
 * equals is the first of the list. */
TEST(of_words_that_score_alike_the_first_comes_first)
{
    static const float Z[3 * 2] = {1, 0, 1, 0, 0, 1};
    static const float gain[] = {1, 1};
    const cgam_lens_parts parts = {
        .vocab = 3, .width = 2, .Z = Z, .gain = gain, .norm = {.epsilon = 1e-5}};
    const float H[2 * 2] = {0.5F, 0.5F, 0, 1}; /* all three alike, then the third alone */
    OWNED(cgam_lens) lens = NULL;
    cgam_lens_cell cells[2];
    cgam_lens_word words[2 * 3];
    CHECK_STATUS(env, cgam_lens_make(env, &parts, &lens));
    CHECK_STATUS(env, cgam_lens_look(lens, CGAM_LENS_NORM, 2, H, 2, 3, cells, words));
    for (int i = 0; i < 3; i++) assert_int_equal(words[i].token, i);
    assert_int_equal(cells[0].rank_final, 2); /* two of equals stand before it */
    assert_int_equal(words[3].token, 2);
    assert_int_equal(cells[1].rank_final, 0);
}

TEST(a_picture_is_that_of_its_prefixes)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    OWNED(cgam_lens) lens = NULL;
    CHECK_STATUS(env, cgam_lens_new(lm, &lens));
    const char *text = "the capital of France is";
    cgam_lens_view_opts opts = cgam_lens_view_opts_default();
    cgam_lens_view view;
    opts.top = TOP;
    opts.exact = true;
    CHECK_STATUS(env, cgam_lens_view_make(lm, lens, text, &opts, &view));
    int32_t *tokens;
    int64_t n, d = lens->width;
    CHECK_STATUS(env, cgam_lm_tokenize(lm, text, true, &tokens, &n));
    assert_int_equal(view.tokens, n);
    assert_int_equal(view.layers, 4);
    for (int64_t t = 0; t < n; t++) {
        cgam_lens_cell cells[4];
        cgam_lens_word words[4 * TOP];
        cgam_lm_capture_opts run = cgam_lm_capture_opts_default();
        run.exact = true;
        model_sheet sheet = model_states(env, lm, 1, &(cgam_lm_prompt){tokens, t + 1}, run);
        CHECK_STATUS(env,
                     cgam_lens_look(lens, CGAM_LENS_NORM, 4, sheet.states, d, TOP, cells, words));
        assert_int_equal(view.token[t], tokens[t]);
        for (int l = 0; l < 4; l++) {
            CHECK_REL(view.cells[t * 4 + l].neff, cells[l].neff, 1e-4);
            CHECK_CLOSE(view.cells[t * 4 + l].kl_final, cells[l].kl_final, 1e-4);
            assert_int_equal(view.words[(t * 4 + l) * TOP].token, words[l * TOP].token);
        }
        free(sheet.states);
    }
    cgam_lm_tokens_free(lm, tokens);
    cgam_lens_view_free(env, &view);
    cgam_lens_view_free(env, &view); /* copes with {0} */
    static const int64_t beyond[] = {0, 1 << 20};
    for (int i = 0; i < 2; i++) {
        opts.top = beyond[i];
        CHECK_REFUSED(env, CGAM_E_ARG, "it must be from 1 to 336",
                      cgam_lens_view_make(lm, lens, text, &opts, &view));
    }
    CHECK_STATUS(env, cgam_lens_view_make(lm, lens, text, NULL, &view));
    assert_int_equal(view.top, cgam_lens_view_opts_default().top);
    cgam_lens_view_free(env, &view);
}

static int look(cgam_env *failing, void *arg)
{
    (void)arg;
    cgam_lens_cell cells[2];
    cgam_lens_word words[2];
    static const float H[2 * WIDTH] = {1, 2, 3, [9] = 5};
    OWNED(cgam_lens) lens = small_lens(failing);
    cgam_status status =
        lens ? cgam_lens_look(lens, CGAM_LENS_RAW, 2, H, WIDTH, 1, cells, words) : CGAM_E_NOMEM;
    return status;
}

TEST(no_memory_is_survived) { assert_true(check_every_allocation(look, NULL) > 3); }

TEST_GROUP(set_up, tear_down)
