/* Identities of the gradients of a recall: sums that vanish, scalings that leave p alone, rotations. */
#include "base/env.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/objects.h"

#include <cgam/learn.h>

#include "support/owned.h"

enum { N = 14, D = 6, QUERIES = 3 };

typedef struct scene {
    double *Z, *q, *c;
    int64_t target[QUERIES];
    cgam_recall_opts opts;
} scene;

typedef struct answer {
    double loss[QUERIES], b[QUERIES * N], q[QUERIES * D], c[QUERIES * D], Z[N * D], P[D * D];
    double alpha, beta, lambda;
} answer;

static scene scene_new(uint64_t trial)
{
    cgam_rng rng = cgam_rng_stream(31, trial);
    scene s = {.Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_KINDS), N, D),
               .q = dense_normals(&rng, QUERIES * D, 1),
               .c = dense_normals(&rng, QUERIES * D, 1),
               .opts = cgam_recall_opts_default()};
    for (int k = 0; k < QUERIES; k++) s.target[k] = cgam_rng_below(&rng, N);
    s.opts.mode = trial & 1 ? CGAM_COUPLED : CGAM_FIRST;
    s.opts.alpha = trial & 2 ? 0.3 * dense_critical(N, D, s.Z) : 0;
    s.opts.beta = dense_between(&rng, 0.5, 2);
    s.opts.lambda = dense_between(&rng, 0.1, 0.5);
    s.opts.tol = 1e-15;
    return s;
}

static answer differentiate(const scene *s)
{
    OWNED(cgam_env) env = object_env(1);
    OWNED(cgam_bank) bank = object_bank(env, N, D, s->Z);
    OWNED(cgam_recall) plan = object_recall(env, bank, &s->opts);
    answer a;
    cgam_gradient_in in = {
        .recall = {
            .queries = QUERIES, .q = s->q, .c = s->c, .c_per_query = true, .target = s->target}};
    cgam_gradient out = {.loss = a.loss,
                         .b = a.b,
                         .q = a.q,
                         .c = a.c,
                         .Z = a.Z,
                         .P = a.P,
                         .alpha = &a.alpha,
                         .beta = &a.beta,
                         .lambda = &a.lambda};
    CHECK_STATUS(env, cgam_recall_gradient(plan, &in, NULL, &out));
    return a;
}

static double inner(int64_t count, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * y[i];
    return sum;
}

enum { TRIALS = 24 };

TEST(evidence_for_all_memories_at_once_changes_nothing)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        scene s = scene_new(trial);
        answer a = differentiate(&s);
        for (int k = 0; k < QUERIES; k++) {
            double sum = 0;
            for (int i = 0; i < N; i++) sum += a.b[k * N + i];
            CHECK_CLOSE(sum, 0, 1e-12);
        }
        dense_reset();
    }
}

TEST(a_change_of_units_changes_nothing)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        scene s = scene_new(trial);
        answer a = differentiate(&s);
        double sum = inner(N * D, s.Z, a.Z) + inner(QUERIES * D, s.q, a.q) +
                     s.opts.lambda * a.lambda - 2 * s.opts.alpha * a.alpha -
                     2 * s.opts.beta * a.beta;
        CHECK_CLOSE(sum, 0, 1e-10);
        /* and lambda -> x lambda undoes c -> c / x in mode first */
        if (s.opts.mode == CGAM_FIRST)
            CHECK_CLOSE(s.opts.lambda * a.lambda, inner(QUERIES * D, s.c, a.c), 1e-11);
        /* P is the identity: c' dL/dc = <P, dL/dP> */
        double trace = 0;
        for (int j = 0; j < D; j++) trace += a.P[j * D + j];
        CHECK_CLOSE(trace, inner(QUERIES * D, s.c, a.c), 1e-11);
        /* the same recall in other units */
        scene other = s;
        double x = 1.7;
        other.Z = dense_room(N * D);
        other.q = dense_room(QUERIES * D);
        for (int i = 0; i < N * D; i++) other.Z[i] = x * s.Z[i];
        for (int i = 0; i < QUERIES * D; i++) other.q[i] = x * s.q[i];
        other.opts.lambda *= x;
        other.opts.alpha /= x * x;
        other.opts.beta /= x * x;
        answer b = differentiate(&other);
        CHECK_CLOSE_ALL(b.loss, a.loss, QUERIES, 1e-11);
        for (int i = 0; i < N * D; i++) CHECK_CLOSE(x * b.Z[i], a.Z[i], 1e-10);
        CHECK_CLOSE_ALL(b.c, a.c, QUERIES * D, 1e-10);
        CHECK_CLOSE(b.alpha / (x * x), a.alpha, 1e-9 * (1 + fabs(a.alpha)));
        dense_reset();
    }
}

/* x [rows, D] <- rows times a product of plane rotations. */
static void rotate(int64_t rows, double *x)
{
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j + 1 < D; j++) {
            double a = x[i * D + j], b = x[i * D + j + 1], angle = 0.7 + j;
            x[i * D + j] = cos(angle) * a - sin(angle) * b;
            x[i * D + j + 1] = sin(angle) * a + cos(angle) * b;
        }
}

TEST(a_rotation_of_everything_rotates_the_gradients)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        scene s = scene_new(trial);
        answer a = differentiate(&s);
        rotate(N, s.Z);
        rotate(QUERIES, s.q);
        rotate(QUERIES, s.c);
        answer b = differentiate(&s);
        rotate(N, a.Z);
        rotate(QUERIES, a.q);
        rotate(QUERIES, a.c);
        CHECK_CLOSE_ALL(b.Z, a.Z, N * D, 1e-10);
        CHECK_CLOSE_ALL(b.q, a.q, QUERIES * D, 1e-11);
        CHECK_CLOSE_ALL(b.c, a.c, QUERIES * D, 1e-11);
        CHECK_CLOSE_ALL(b.b, a.b, QUERIES * N, 1e-11);
        CHECK_CLOSE(b.alpha, a.alpha, 1e-9 * (1 + fabs(a.alpha)));
        CHECK_CLOSE(b.beta, a.beta, 1e-11);
        dense_reset();
    }
}
