/* A step of many coupled recalls, on every CPU, against the plain one. */
#include "support/check.h"
#include "support/dense.h"

#include "memory/couple.h"

/* A coupled step against the plain one, which computes in double: what f32 adds is relative to the
 * way from the reference, however small that is. */
static void couple_case(cgam_rng *rng, cgam_couple *step, int64_t rows, int64_t columns,
                        double size, bool given)
{
    cgam_couple *plain = cgam_couple_of(&cgam_cpu_all[0]);
    int64_t area = rows * columns;
    float *S[2], *state[2], *stats[2];
    float *factor = (float *)(void *)dense_room(2 * columns);
    double *dinv = dense_room(rows), gain = 2.5;
    for (int k = 0; k < 2; k++) {
        S[k] = (float *)(void *)dense_room(area);
        state[k] = (float *)(void *)dense_room(3 * area);
        stats[k] = (float *)(void *)dense_room(CGAM_COUPLE_STATS * columns);
    }
    for (int64_t v = 0; v < columns; v++) {
        double more = 0.1 * size * cgam_rng_normal(rng);
        factor[v] = (float)(1 + more);
        factor[columns + v] = (float)more;
    }
    for (int64_t r = 0; r < rows; r++) dinv[r] = 1 + cgam_rng_uniform(rng);
    for (int64_t i = 0; i < area; i++) {
        float *p2 = state[0] + 3 * (i / columns) * columns + i % columns;
        p2[0] = i % 7 == 2 ? 0 : (float)cgam_rng_uniform(rng);
        p2[columns] = (float)size * p2[0] * (float)cgam_rng_normal(rng);
        p2[2 * columns] = (float)(size * cgam_rng_normal(rng));
        S[0][i] = S[1][i] = (float)(size * (i % 31 == 5 ? -1000 : cgam_rng_normal(rng)));
    }
    memcpy(state[1], state[0], (size_t)(3 * area) * sizeof **state);
    plain(rows, columns, S[0], state[0], given ? NULL : dinv, gain, factor, stats[0]);
    step(rows, columns, S[1], state[1], given ? NULL : dinv, gain, factor, stats[1]);
    for (int64_t v = 0; v < columns; v++) {
        double total = 0, peak = 0, leap = fabs((double)stats[0][4 * columns + v]);
        for (int64_t r = 0; r < rows; r++) {
            int64_t i = r * columns + v, at = 3 * r * columns + v, to = at + 2 * columns;
            double now = (double)state[0][to], kappa = (double)state[0][at + columns];
            double p2 = (double)state[0][at], e = now - kappa + p2; /* p2 exp(y) */
            double y = p2 > 0 && e > 0 ? fabs(log(e / p2)) : 0;
            double parts = fabs(now) + fabs(kappa) + fabs(e) * (y + size);
            CHECK_CLOSE(state[1][to], now, 64 * 0x1p-24 * parts);
            CHECK_CLOSE(S[1][i], S[0][i], 2 * 64 * 0x1p-24 * parts);
            assert_true(state[1][at] == state[0][at]);
            total += parts;
            peak = fmax(peak, fabs(e) * (1 + y));
        }
        const double most[CGAM_COUPLE_STATS] = {total, total, total, peak, leap + size};
        for (int k = 0; k < CGAM_COUPLE_STATS; k++)
            CHECK_CLOSE(stats[1][k * columns + v], stats[0][k * columns + v],
                        (double)(64 + rows) * 0x1p-24 * most[k]);
    }
    dense_reset();
}

TEST(coupled_steps_agree)
{
    static const double sizes[] = {0.1, 1e-6, 1e-12};
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_cpu *cpu = &cgam_cpu_all[i];
        if (!cpu->usable()) continue;
        cgam_rng rng = cgam_rng_stream(14, (uint64_t)i);
        for (int64_t rows = 1; rows <= 70; rows++)
            for (int k = 0; k < 3; k++)
                couple_case(&rng, cgam_couple_of(cpu), rows, cpu->gemm->lanes32 * (1 + rows % 6),
                            sizes[k], rows % 5 == 3);
    }
}
