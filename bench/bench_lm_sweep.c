/* bench_lm_sweep.c: the complete sweep - 23 x 23 layer pairs, 200 queries, every coupling, a
 * vocabulary of 32,000 in 2048 dimensions - takes under 20 s on two cores. Random states; the
 * target token is made likely in half of the queries, so that intervals are not all empty. Also
 * as a ratio to the matrix products alone, which no way of scoring can do without. */
#include "base/env.h"
#include "lm/lens.h"

#include "lab/language/sweep.h"
#include <cgam/base.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 32000, D = 2048, LAYERS = 23, QUERIES = 200, LABELS = 2 };

static float *noise(int64_t n, uint64_t stream, double scale)
{
    float *x = malloc((size_t)n * sizeof *x);
    cgam_rng rng = cgam_rng_stream(1, stream);
    /* uniform: normal numbers would take longer than what is measured */
    for (int64_t i = 0; x && i < n; i++) x[i] = (float)(scale * (cgam_rng_uniform(&rng) - 0.5));
    return x;
}

int main(void)
{
    cgam_env *env = NULL;
    cgam_lens *lens = NULL;
    cgam_sweep *sweep = NULL;
    float *Z = noise((int64_t)N * D, 0, 0.1), *gain = noise(D, 1, 0.1);
    float *zero = noise((int64_t)QUERIES * LAYERS * D, 2, 1), *c = noise(LAYERS * 2 * D, 3, 1);
    float *scores = malloc((size_t)QUERIES * N * sizeof *scores);
    if (!Z || !gain || !zero || !c || !scores || cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    int32_t tokens[LABELS] = {100, 20000}, target[QUERIES];
    for (int j = 0; j < D; j++) gain[j] += 1;
    for (int64_t i = 0; i < QUERIES; i++) {
        target[i] = (int32_t)(i / 2 % 2);
        for (int64_t l = 0; l < LAYERS && i % 4 < 2; l++)
            for (int64_t j = 0; j < D; j++)
                zero[(i * LAYERS + l) * D + j] += 3 * Z[(int64_t)tokens[target[i]] * D + j];
    }
    cgam_status status = cgam_lens_make(
        env,
        &(cgam_lens_parts){.vocab = N, .width = D, .Z = Z, .gain = gain, .norm = {.epsilon = 1e-5}},
        &lens);
    cgam_sweep_input in = {.queries = QUERIES,
                           .layers = LAYERS,
                           .zero = zero,
                           .labels = LABELS,
                           .tokens = tokens,
                           .target = target,
                           .lens = CGAM_LENS_GAIN,
                           .relative = true};
    double start = cgam_clock();
    for (int64_t l = 0; l < LAYERS && status == CGAM_OK; l++)
        status = cgam_lens_scores(lens, in.lens, QUERIES, zero + l * D, LAYERS * D, scores);
    double products = cgam_clock() - start;
    start = cgam_clock();
    if (status == CGAM_OK) status = cgam_sweep_new(lens, &in, LAYERS, c, NULL, &sweep);
    double whole = cgam_clock() - start;
    if (status == CGAM_OK)
        printf(
            "sweep: %d x %d pairs, %d queries, %d words: %.1f s on %d threads, %.2f of its matrix "
            "products alone (%.1f s)\n",
            LAYERS, LAYERS, QUERIES, N, whole, cgam_env_threads(env), whole / products, products);
    else fprintf(stderr, "bench_lm_sweep: %s\n", cgam_env_message(env));
    cgam_sweep_free(sweep);
    cgam_lens_free(lens);
    cgam_env_free(env);
    free(Z), free(gain), free(zero), free(c), free(scores);
    return status == CGAM_OK ? 0 : 3;
}
