/* banks.h: bundles of banks for the tests of the study layer. */
#ifndef CGAM_TESTS_UNIT_STUDY_BANKS_H
#define CGAM_TESTS_UNIT_STUDY_BANKS_H

#include "support/check.h"

#include "lab/synthetic/banks.h"
#include "lab/synthetic/stream.h"

static inline cgam_env *env_new(int threads)
{
    cgam_env *env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    assert_int_equal(cgam_env_new(&opts, &env), CGAM_OK);
    return env;
}

/* Clusters of trials first .. first + width - 1 with a noisy start, decomposed for u = 1/n. */
static inline cgam_banks *clusters(cgam_env *env, int width, int64_t n, int64_t d, int64_t first)
{
    cgam_banks *b;
    CHECK_STATUS(env, cgam_banks_new(env, width, n, d, &b));
    for (int l = 0; l < width; l++) {
        cgam_rng rng = cgam_stream(1, CGAM_STREAM_COUPLED, CGAM_STREAM_START, 0, 0, first + l);
        cgam_banks_draw(b, l, 1, CGAM_STREAM_COUPLED, 0, first + l, 2, 0.3);
        for (int64_t i = 0; i < n; i++) b->g.start[i * width + l] = 1e-4 * cgam_rng_normal(&rng);
    }
    CHECK_STATUS(env, cgam_banks_decompose(b, NULL));
    return b;
}

/* Lane l of an array [count] per lane. */
static inline void lane_of(const double *x, int64_t count, int width, int lane, double *out)
{
    for (int64_t i = 0; i < count; i++) out[i] = x[i * width + lane];
}

/* G of one lane, dense [n, n]. */
static inline void gram_of(const cgam_bundle *g, int lane, double *G)
{
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < g->d; k++)
                sum +=
                    g->Z[(i * g->d + k) * g->width + lane] * g->Z[(j * g->d + k) * g->width + lane];
            G[i * g->n + j] = i == j ? 1 : sum;
        }
}

static inline void softmax_of(int64_t n, double beta, const double *r, double *p)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, r[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(beta * (r[i] - top));
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

#endif
