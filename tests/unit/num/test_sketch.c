/* Sketches: the loops for bytes of every CPU against the plain ones, the bound of sketch.h against scores in
 * long double, on rows of every kind. */
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "num/cpu/widen.h"
#include "num/sketch.h"

#include "support/owned.h"

static int8_t *bytes(cgam_rng *rng, int64_t count, int most, bool extreme)
{
    int8_t *x = (int8_t *)(void *)dense_room(count / 8 + 16);
    for (int64_t i = 0; i < count; i++)
        x[i] = (int8_t)(extreme ? (cgam_rng_below(rng, 2) ? most : -most)
                                : cgam_rng_below(rng, 2 * most + 1) - most);
    return x;
}

static float *floats(cgam_rng *rng, int64_t count)
{
    float *x = (float *)(void *)dense_room(count / 2 + 1);
    for (int64_t i = 0; i < count; i++) x[i] = (float)dense_between(rng, 0, 1.0 / 127);
    return x;
}

static void compare(cgam_rng *rng, const cgam_int8 *loops, int64_t n, int64_t d, int64_t m,
                    bool extreme)
{
    const cgam_int8 *plain = cgam_cpu_all[0].int8;
    int64_t blocks = cgam_int8_blocks(d);
    int8_t *rows = bytes(rng, n * d + CGAM_INT8_PAD, CGAM_INT8_MOST, extreme);
    int8_t *x = bytes(rng, m * d, loops->most, extreme);
    float *scale = floats(rng, n * blocks), *step = floats(rng, m * blocks);
    float *got = floats(rng, n * m), *want = floats(rng, n * m);
    void *X = aligned_alloc(64, loops->room(m, d)), *P = aligned_alloc(64, plain->room(m, d));
    loops->lay(m, d, x, step, X);
    plain->lay(m, d, x, step, P);
    loops->dot(rows, scale, n, d, m, X, got);
    plain->dot(rows, scale, n, d, m, P, want);
    for (int64_t i = 0; i < n; i++)
        for (int64_t v = 0; v < m; v++) {
            double size = 0;
            for (int64_t j = 0; j < d; j++) {
                int64_t b = j / CGAM_INT8_BLOCK;
                size += fabs((double)scale[i * blocks + b] * rows[i * d + j]) *
                        fabs((double)step[v * blocks + b] * x[v * d + j]);
            }
            double allowed = CGAM_INT8_ROUNDINGS(blocks) * 0x1p-24 * size;
            CHECK_CLOSE(got[i * m + v], want[i * m + v], allowed + 0x1p-24 * size);
        }
    free(X);
    free(P);
    dense_reset();
}

/* By wide numbers: against sums in double, at extremes too, where a block's sum is near 2^31. */
static void compare_wide(cgam_rng *rng, const cgam_int8 *loops, int64_t n, int64_t d, bool extreme)
{
    int64_t blocks = cgam_int8_blocks(d);
    int8_t *rows = bytes(rng, n * d + CGAM_INT8_PAD, CGAM_INT8_MOST, extreme);
    int16_t *x = (int16_t *)(void *)dense_room(blocks * CGAM_INT8_BLOCK / 4);
    float *scale = floats(rng, n * blocks), *step = floats(rng, blocks), *got = floats(rng, n);
    for (int64_t j = 0; j < d; j++) {
        int64_t any = cgam_rng_below(rng, 2 * CGAM_INT8_WIDE + 1) - CGAM_INT8_WIDE;
        x[j] = (int16_t)(!extreme ? any : rows[j] < 0 ? -CGAM_INT8_WIDE : CGAM_INT8_WIDE);
    }
    loops->dot_wide(rows, scale, n, d, x, step, got);
    for (int64_t i = 0; i < n; i++) {
        double size = 0, want = 0;
        for (int64_t j = 0; j < d; j++) {
            int64_t b = j / CGAM_INT8_BLOCK;
            double is = (double)scale[i * blocks + b] * rows[i * d + j] * (double)step[b] * x[j];
            want += is;
            size += fabs(is);
        }
        CHECK_CLOSE(got[i], want, CGAM_INT8_ROUNDINGS(blocks) * 0x1p-24 * size);
    }
    dense_reset();
}

TEST(every_cpu_sums_bytes_alike)
{
    static const int64_t depths[] = {1, 3, 31, 32, 33, 63, 64, 65, 100, 511, 512, 513, 1100};
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 16, 33};
    static const int64_t widths[] = {16, 32, 48, 64, 80, 112};
    cgam_rng rng = cgam_rng_stream(41, 0);
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        if (!cgam_cpu_all[i].usable()) continue;
        for (size_t j = 0; j < sizeof depths / sizeof *depths; j++)
            for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
                int64_t n = 1 + cgam_rng_below(&rng, 9);
                compare(&rng, cgam_cpu_all[i].int8, n, depths[j], counts[k], (j + k) % 4 == 0);
                compare_wide(&rng, cgam_cpu_all[i].int8, counts[k], depths[j], (j + k) % 2 == 0);
                compare(&rng, cgam_cpu_all[i].int8_many, 31 + n, depths[j], widths[(j + k) % 6],
                        (j + k) % 4 == 0);
            }
    }
}

/* Bands of rows share what they read of the vectors, and long rows are taken a few at a time. */
TEST(many_rows_are_summed_as_few_are)
{
    static const int64_t depths[] = {100, 130, 700, 1100, 17000};
    cgam_rng rng = cgam_rng_stream(42, 0);
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_int8 *loops = cgam_cpu_all[i].int8_many;
        if (!cgam_cpu_all[i].usable()) continue;
        for (size_t j = 0; j < sizeof depths / sizeof *depths; j++)
            for (int64_t m = 16; m <= 64; m += 16)
                if (depths[j] < 2000 || m == 48)
                    compare(&rng, loops, 64 + cgam_rng_below(&rng, 100), depths[j], m, false);
    }
}

/* Rows go by fours, eights or tiles, whoever their neighbours are: chunks of rows begin anywhere. */
TEST(a_row_has_the_bits_that_it_has_alone)
{
    enum { N = 45, M = 16 };
    static const int64_t depths[] = {100, 600, 1100, 4100};
    cgam_rng rng = cgam_rng_stream(50, 0);
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_cpu *cpu = &cgam_cpu_all[i];
        if (!cpu->usable()) continue;
        for (size_t k = 0; k < sizeof depths / sizeof *depths; k++) {
            int64_t d = depths[k], blocks = cgam_int8_blocks(d);
            int8_t *rows = bytes(&rng, N * d + CGAM_INT8_PAD, CGAM_INT8_MOST, false);
            int8_t *x = bytes(&rng, M * d, cpu->int8_many->most, false);
            int16_t *wide = (int16_t *)(void *)dense_room(blocks * CGAM_INT8_BLOCK / 4);
            float *scale = floats(&rng, N * blocks), *step = floats(&rng, M * blocks);
            float *all = floats(&rng, N * M), *some = floats(&rng, N * M);
            void *X = aligned_alloc(64, cpu->int8_many->room(M, d));
            for (int64_t j = 0; j < d; j++) wide[j] = (int16_t)(256 * x[j] + x[d + j]);
            cpu->int8->dot_wide(rows, scale, N, d, wide, step, all);
            for (int64_t r = 0; r < N; r++) {
                cpu->int8->dot_wide(rows + r * d, scale + r * blocks, 1, d, wide, step, some);
                assert_true(all[r] == some[0]);
            }
            cpu->int8_many->lay(M, d, x, step, X);
            cpu->int8_many->dot(rows, scale, N, d, M, X, all);
            for (int64_t r = 1; r + CGAM_INT8_TILE <= N; r++) {
                cpu->int8_many->dot(rows + r * d, scale + r * blocks, N - r, d, M, X, some);
                assert_memory_equal(some, all + r * M, (size_t)((N - r) * M) * sizeof *some);
            }
            free(X);
            dense_reset();
        }
    }
}

TEST(every_cpu_rounds_to_whole_numbers)
{
    cgam_rng rng = cgam_rng_stream(49, 0);
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        if (!cgam_cpu_all[i].usable()) continue;
        for (int t = 0; t < 300; t++) {
            int64_t n = 1 + cgam_rng_below(&rng, 70);
            double *x = dense_normals(&rng, n, dense_between_log(&rng, 1e-45, 1)), sums[2];
            double *left = dense_room(n), squares = 0, rest = 0;
            int8_t out[80] = {[70] = 99};
            memcpy(left, x, (size_t)n * sizeof *left);
            int most = t % 2 ? CGAM_INT8_MOST : 64;
            float step = cgam_cpu_all[i].f64->whole(left, n, most, out, sums);
            for (int64_t j = 0; j < n; j++) {
                assert_in_range(out[j] + most, 0, 2 * most);
                assert_true(left[j] == x[j] - out[j] * (double)step);
                if (step > 0) CHECK_LE(fabs(left[j]), 0.5 * (1 + 1e-4) * (double)step);
                squares += (double)out[j] * out[j];
                rest += left[j] * left[j];
            }
            assert_true(sums[0] == squares && out[70] == 99);
            assert_true(n == 70 || out[n] == 0);
            CHECK_CLOSE(sums[1], rest, 1e-13 * rest);
        }
        dense_reset();
    }
}

/* Rows of all sizes in one bank: plain, one coordinate, tiny beside huge, zero, subnormal. */
static double *strange_rows(cgam_rng *rng, int64_t n, int64_t d, double unit)
{
    double *Z = dense_normals(rng, n * d, 1);
    for (int64_t i = 0; i < n; i++) {
        double by = unit;
        int kind = (int)cgam_rng_below(rng, 8);
        if (kind == 0) by = 0;
        if (kind == 1) by = unit * 1e-30;
        if (kind == 2) by = unit * 1e-60;
        if (kind == 3) by = unit * 1e20;
        for (int64_t j = 0; j < d; j++) {
            Z[i * d + j] *= by;
            if (kind == 4 && j != i % d) Z[i * d + j] *= 1e-12;
            if (kind == 5 && j % 7) Z[i * d + j] = 0x1p-1060 * (double)(j % 5);
        }
    }
    return Z;
}

/* The largest |score - exact| over its bound; the bound without that of a product in double. */
static double worst_of(cgam_env *env, cgam_rng *rng, const cgam_cpu *cpu, cgam_dtype dtype,
                       int64_t n, int64_t d, double unit, bool scaled)
{
    double *wide = strange_rows(rng, n, d, unit), *x = strange_rows(rng, 1, d, unit), norm = 0;
    void *data = dense_room(n * d);
    double *scale = scaled ? dense_room(n) : NULL, *row = dense_room(d), *rest = dense_room(d);
    cgam_narrow(dtype, wide, n * d, data);
    cgam_widen(dtype, data, n * d, wide);
    for (int64_t i = 0; scaled && i < n; i++) scale[i] = dense_between(rng, 0.01, 100);
    cgam_rows Z = {data, dtype, n, d, d, scale, cpu, NULL};
    for (int64_t i = 0; i < n; i++) {
        cgam_rows_get(&Z, i, 1, row);
        norm = fmax(norm, cgam_array_norm(d, row));
    }
    cgam_sketch *sketch;
    CHECK_STATUS(env, cgam_sketch_new(env, &Z, norm, &sketch));
    int64_t blocks = cgam_int8_blocks(d);
    float step[2 * 4], *out = floats(rng, 2 * n);
    cgam_sketched is = {.terms = bytes(rng, 2 * d, 1, false), .step = step};
    assert_in_range(blocks, 1, 4);
    cgam_sketch_vector(cpu, d, x, n % 2 ? CGAM_INT8_MOST : 64, rest, &is);
    CHECK_STATUS(env,
                 cgam_sketch_scan(env, sketch, cpu, 2, is.terms, is.step, CGAM_INT8_MOST, out));
    int16_t *numbers = (int16_t *)(void *)dense_room(blocks * CGAM_INT8_BLOCK / 4);
    double worst = 0, units = ldexp(1, sketch->exponent + is.exponent);
    for (int way = 1; way <= 3; way++) { /* one term, two, and wide numbers */
        int terms = way == 2 ? 2 : 1;
        if (way == 3) {
            cgam_sketch_vector_wide(d, x, rest, numbers, &is);
            cgam_sketch_scan_wide(sketch, cpu, numbers, is.step, 0, n / 3, out);
            cgam_sketch_scan_wide(sketch, cpu, numbers, is.step, n / 3, n - n / 3, out + n / 3);
        }
        cgam_sketch_error off = cgam_sketch_bound(d, &is, terms);
        for (int64_t i = 0; i < n; i++) {
            double got = units * ((double)out[i] + (terms > 1 ? (double)out[n + i] : 0)), dot;
            long double exact = 0;
            cgam_rows_get(&Z, i, 1, row);
            cgam_rows_dot(&Z, i, 1, x, &dot);
            for (int64_t j = 0; j < d; j++) exact += (long double)row[j] * (long double)x[j];
            double bound = units * (off.hat * (double)sketch->hat[i] +
                                    off.rest * (double)sketch->rest[i] + 0x1p-100);
            worst = fmax(worst, (double)fabsl(got - exact) / bound);
            worst = fmax(worst, fabs(got - dot) / bound);
        }
    }
    cgam_sketch_free(env, sketch);
    dense_reset();
    return worst;
}

TEST(scores_are_within_the_bound)
{
    static const double units[] = {1, 1e-5, 1e7, 1e-12};
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(42, 0);
    double worst = 0;
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        if (!cgam_cpu_all[i].usable()) continue;
        for (int t = 0; t < 60; t++) {
            /* halves have no room for rows of so many sizes */
            cgam_dtype dtype = t % 3 == 0 ? CGAM_F64 : t % 3 == 1 ? CGAM_F32 : CGAM_BF16;
            int64_t n = 1 + cgam_rng_below(&rng, 700), d = 1 + cgam_rng_below(&rng, 70);
            if (t % 10 == 9) d = 500 + cgam_rng_below(&rng, 700);
            double unit = dtype == CGAM_F64 ? pow(10, dense_between(&rng, -80, 80)) : units[t % 4];
            double off = worst_of(env, &rng, &cgam_cpu_all[i], dtype, n, d, unit, t % 5 == 0);
            worst = fmax(worst, off);
            CHECK_LE(off, 1);
        }
    }
    CHECK_LE(0.2, worst); /* it is not a bound of anything else */
}

/* Where all of a row is rounded the same way, and the query goes that way, the bound is met. */
TEST_ENV(the_bound_is_nearly_met)
{
    enum { D = 64 };
    double Z[D], x[D];
    for (int j = 0; j < D; j++) {
        Z[j] = j == 0 ? 127 : 10.4999;
        x[j] = j == 0 ? 0 : 127;
    }
    cgam_rows rows = {Z, CGAM_F64, 1, D, D, NULL, cgam_cpu_best(), NULL};
    cgam_sketch *sketch;
    CHECK_STATUS(env, cgam_sketch_new(env, &rows, cgam_array_norm(D, Z), &sketch));
    float step[2], out[2];
    int8_t terms[2 * D];
    double rest[D], exact = 63 * 127 * 10.4999;
    cgam_sketched is = {.terms = terms, .step = step};
    cgam_sketch_vector(cgam_cpu_best(), D, x, CGAM_INT8_MOST, rest, &is);
    CHECK_STATUS(env, cgam_sketch_scan(env, sketch, cgam_cpu_best(), 2, is.terms, is.step,
                                       CGAM_INT8_MOST, out));
    cgam_sketch_error off = cgam_sketch_bound(D, &is, 2);
    double units = ldexp(1, sketch->exponent + is.exponent);
    double error = fabs(units * ((double)out[0] + (double)out[1]) - exact);
    double bound = units * (off.hat * (double)sketch->hat[0] + off.rest * (double)sketch->rest[0]);
    CHECK_LE(error, bound);
    CHECK_LE(0.98 * bound, error);
    cgam_sketch_free(env, sketch);
}

static int sketch_and_scan(cgam_env *env, void *arg)
{
    (void)arg;
    enum { N = 300, D = 9 };
    double Z[N * D];
    float out[2 * N], step[2] = {0.5, 0.5};
    int8_t x[2 * D] = {1, -2, 3};
    for (int i = 0; i < N * D; i++) Z[i] = i % 13 - 6;
    cgam_rows rows = {Z, CGAM_F64, N, D, D, NULL, cgam_cpu_best(), NULL};
    cgam_sketch *sketch;
    cgam_status status = cgam_sketch_new(env, &rows, 20, &sketch);
    if (status == CGAM_OK)
        status = cgam_sketch_scan(env, sketch, cgam_cpu_best(), 2, x, step, CGAM_INT8_MOST, out);
    cgam_sketch_free(env, sketch);
    return status;
}

TEST(every_allocation_may_fail) { check_every_allocation(sketch_and_scan, NULL); }

/* What a score by the sketch may be off by, over the row's length. */
TEST(a_bound_is_its_formula)
{
    for (int64_t d = 5; d < 5000; d *= 9) {
        cgam_sketched x = {.size = 0.8, .left = {0.03, 0.0004}};
        double roundings = CGAM_INT8_ROUNDINGS(cgam_int8_blocks(d));
        double f32 = (roundings + 4) * 0x1p-24, f64 = (2 * (double)d + 16) * 0x1p-53;
        cgam_sketch_error one = cgam_sketch_bound(d, &x, 1), two = cgam_sketch_bound(d, &x, 2);
        CHECK_REL(one.hat, 0.03 + f32 * 0.83 + f64 * 0.8, 2e-6);
        CHECK_REL(two.hat, 0.0004 + f32 * (0.8004 + 0.09) + f64 * 0.8, 2e-6);
        CHECK_REL(one.rest, 0.8 * (1 + f64), 2e-6);
    }
}
