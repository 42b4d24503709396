/* fit_random.c: rotations that are drawn, for projections with the spectrum of another.
 *
 * Q = R_m .. R_1. A round R shuffles the coordinates and turns neighbours by random angles; after 2 log2 d
 * of them every coordinate depends on every other one. A vector costs d log d operations, and Q is never
 * made; that it is orthogonal is exact but for rounding, that it is near to uniform is not needed. */
#include "base/env.h"

#include <cgam/fit.h>
#include <cgam/rng.h>
#include <math.h>
#include <string.h>

typedef struct turn {
    int64_t *place; /* [d] */
    double *angle;  /* [d / 2] */
} turn;

static void shuffle(const turn *t, bool back, int64_t d, const double *from, double *to)
{
    for (int64_t j = 0; j < d; j++) {
        if (back) to[t->place[j]] = from[j];
        else to[j] = from[t->place[j]];
    }
}

static void rotate(const turn *t, bool back, int64_t d, double *x)
{
    for (int64_t j = 0; j + 1 < d; j += 2) {
        double c = cos(t->angle[j / 2]), s = back ? -sin(t->angle[j / 2]) : sin(t->angle[j / 2]);
        double a = x[j], b = x[j + 1];
        x[j] = c * a - s * b;
        x[j + 1] = s * a + c * b;
    }
}

static void draw(uint64_t seed, int64_t round, int64_t d, const turn *t)
{
    static const double full = 6.283185307179586;
    cgam_rng rng = cgam_rng_stream(seed, (UINT64_C(1) << 58) + (uint64_t)round);
    for (int64_t j = 0; j < d; j++) t->place[j] = j;
    for (int64_t j = d - 1; j > 0; j--) {
        int64_t other = cgam_rng_below(&rng, j + 1), one = t->place[j];
        t->place[j] = t->place[other];
        t->place[other] = one;
    }
    for (int64_t j = 0; j < d / 2; j++) t->angle[j] = full * cgam_rng_uniform(&rng);
}

cgam_status cgam_fit_turn(cgam_env *env, uint64_t seed, bool back, int64_t m, int64_t d, double *x)
{
    turn t = {cgam_alloc(env, (size_t)d, sizeof *t.place),
              cgam_alloc(env, (size_t)d, sizeof *t.angle)};
    double *room = cgam_alloc(env, (size_t)d, sizeof *room);
    int64_t rounds = 2;
    for (int64_t size = 1; size < d; size *= 2) rounds += 2;
    cgam_status status = t.place && t.angle && room ? CGAM_OK : cgam_fail_nomem(env, "a rotation");
    for (int64_t k = 0; k < rounds && status == CGAM_OK; k++) {
        draw(seed, back ? rounds - 1 - k : k, d, &t);
        for (int64_t i = 0; i < m; i++) {
            double *row = x + i * d;
            if (back) rotate(&t, true, d, row);
            shuffle(&t, back, d, row, room);
            memcpy(row, room, (size_t)d * sizeof *row);
            if (!back) rotate(&t, false, d, row);
        }
    }
    cgam_free(env, t.place);
    cgam_free(env, t.angle);
    cgam_free(env, room);
    return status;
}
