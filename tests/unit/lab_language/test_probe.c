/* Probes on states whose geometry is known. */
#include "lm/lens.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "lab/language/probe.h"

#include "support/owned.h"

enum { N = 200, D = 16, LAYERS = 2 };

static cgam_env *env;
static float H[N * LAYERS * D];
static int32_t target[N];

static int set_up(void **state)
{
    (void)state;
    env = object_env(1);
    cgam_rng rng = cgam_rng_stream(8, 0);
    for (int i = 0; i < N; i++) {
        target[i] = i % 40 == 7 ? -1 : (int32_t)cgam_rng_below(&rng, 3);
        for (int j = 0; j < D; j++) {
            /* layer 0: noise alone; layer 1: each class along an axis of its own, off the origin */
            H[(i * LAYERS + 0) * D + j] = (float)cgam_rng_normal(&rng);
            H[(i * LAYERS + 1) * D + j] =
                (float)(100 * (j == 9) + 0.3 * cgam_rng_normal(&rng) + 4 * (j == target[i]));
        }
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

TEST(classes_apart_are_told_apart_and_noise_is_not)
{
    double noise, apart, alone;
    CHECK_STATUS(env, cgam_probe_separability(env, N, D, H, LAYERS * D, target, &noise, NULL));
    CHECK_STATUS(env, cgam_probe_separability(env, N, D, H + D, LAYERS * D, target, &apart, NULL));
    CHECK_LE(0.99, apart);
    CHECK_CLOSE(noise, 1.0 / 3, 0.13); /* 195 guesses among three */
    const int32_t one[] = {1, 1, 1, 1};
    CHECK_STATUS(env, cgam_probe_separability(env, 4, D, H, D, one, &alone, NULL));
    assert_true(isnan(alone));
}

/* Classes that differ by a fifth of what all features share: a penalty of 1 on features that were
 * divided by sqrt(width) hides them, half of the states being wrong. With fewer states than features
 * the regression is solved among the states; both ways must see it. */
TEST(small_differences_are_found)
{
    enum { WIDE = 260 };
    static float X[N * WIDE];
    static const int64_t widths[] = {D, WIDE}; /* fewer features than states, and more */
    for (int k = 0; k < 2; k++) {
        cgam_rng rng = cgam_rng_stream(9, 0);
        int64_t width = widths[k];
        double found;
        for (int64_t i = 0; i < N; i++) {
            double common = cgam_rng_normal(&rng);
            for (int64_t j = 0; j < width; j++)
                X[i * width + j] =
                    (float)(common + 0.05 * cgam_rng_normal(&rng) + 0.2 * (j % 8 == target[i]));
        }
        CHECK_STATUS(env, cgam_probe_separability(env, N, width, X, width, target, &found, NULL));
        CHECK_LE(0.95, found);
    }
}

TEST(states_point_at_their_word)
{
    float Z[4 * D] = {0}, gain[D] = {0}, states[2 * D] = {0};
    for (int m = 0; m < 4; m++) Z[m * D + m] = 2;
    states[0 * D + 1] = 3; /* along word 1 */
    states[1 * D + 2] = 3; /* between words 2 and 3 */
    states[1 * D + 3] = 4;
    OWNED(cgam_lens) lens = NULL;
    CHECK_STATUS(
        env, cgam_lens_make(env, &(cgam_lens_parts){.vocab = 4, .width = D, .Z = Z, .gain = gain},
                            &lens));
    const int32_t tokens[] = {1, 3, 2}, labels[] = {0, 1};
    cgam_alignment a = cgam_probe_alignment(lens, 2, states, D, 3, tokens, labels);
    CHECK_CLOSE(a.cosine, (1 + 0.8) / 2, 1e-7);
    CHECK_CLOSE(a.margin, (1 + 0.2) / 2, 1e-7);
}

static int probe(cgam_env *failing, void *arg)
{
    (void)arg;
    double accuracy;
    return cgam_probe_separability(failing, 20, D, H, D, target, &accuracy, NULL);
}

TEST(every_allocation_may_fail) { check_every_allocation(probe, NULL); }

TEST_GROUP(set_up, tear_down)
