/* Scores and readouts in f32, in every storage type and for every CPU, against sums in double of the
 * same rounded x and w: what is left is within the bounds of f32.h. */
#include "support/stored.h"

static void check_case(cgam_rng *rng, cgam_dtype dtype, int64_t n, int64_t d, int64_t gap,
                       int64_t shift)
{
    const cgam_f32 *k = stored_cpu->f32;
    const cgam_f32 *plain = cgam_cpu_all[0].f32;
    stored Z = stored_rows(rng, dtype, n, d, gap, shift);
    double *x = dense_normals(rng, d, 1);
    float *x0 = (float *)(void *)dense_room(d + CGAM_F32_PAD);
    float *x1 = (float *)(void *)dense_room(d + CGAM_F32_PAD);
    float *w = (float *)(void *)dense_room(n);
    for (int64_t i = 0; i < n; i++) w[i] = (float)cgam_rng_normal(rng);
    double *got = dense_room(n + 2) + 1, *want = dense_room(n), *one = dense_room(n);
    plain->lay[dtype](x, d, x0);
    k->lay[dtype](x, d, x1);
    got[-1] = got[n] = 17;
    plain->dot[dtype](Z.data, Z.stride, n, d, x0, want);
    k->dot[dtype](Z.data, Z.stride, n, d, x1, got);
    for (int64_t i = 0; i < n; i++) {
        double size = 0;
        for (int64_t j = 0; j < d; j++) size += fabs(Z.wide[i * d + j] * x[j]);
        stored_compare(got[i], want[i], CGAM_F32_ERROR * size, &Z, "dot", i);
        k->dot[dtype](stored_row(&Z, i), Z.stride, 1, d, x1,
                      &one[i]); /* alone it has the same bits */
    }
    assert_true(got[-1] == 17 && got[n] == 17);
    assert_memory_equal(one, got, (size_t)n * sizeof *one);

    double *y = dense_normals(rng, d + 2, 1) + 1, *before = dense_room(d);
    double left = y[-1], right = y[d];
    float *sum = (float *)(void *)dense_room(d + CGAM_F32_PAD);
    float *again = (float *)(void *)dense_room(d + CGAM_F32_PAD);
    size_t room = (size_t)(d + CGAM_F32_PAD) * sizeof *sum;
    memset(sum, 0, room);
    memcpy(before, y, (size_t)d * sizeof *before);
    for (int64_t i = 0; i < n; i += CGAM_F32_ROWS) {
        int64_t some = n - i < CGAM_F32_ROWS ? n - i : CGAM_F32_ROWS;
        k->sum[dtype](stored_row(&Z, i), Z.stride, some, d, w + i, sum);
        k->flush[dtype](d, sum, y);
    }
    for (int64_t j = 0; j < d; j++) {
        double size = 0, total = before[j];
        for (int64_t i = 0; i < n; i++) {
            size += fabs((double)w[i] * Z.wide[i * d + j]);
            total += (double)w[i] * Z.wide[i * d + j];
        }
        stored_compare(y[j], total, CGAM_F32_READOUT * size + 1e-15 * fabs(before[j]), &Z, "sum",
                       j);
    }
    assert_true(y[-1] == left && y[d] == right);
    for (int64_t j = 0; j < d; j++) assert_true(sum[j] == 0);

    /* both at once: the bits of each alone; the later half of the rows waits */
    int64_t half = n / 2 < CGAM_F32_ROWS ? n / 2 : CGAM_F32_ROWS;
    memset(again, 0, room);
    k->sum[dtype](stored_row(&Z, half), Z.stride, half, d, w, again);
    memset(sum, 0, room);
    got[-1] = got[half] = 17;
    k->both[dtype](Z.data, stored_row(&Z, half), Z.stride, half, d, x1, got, w, sum);
    assert_memory_equal(got, one, (size_t)half * sizeof *got);
    for (int64_t j = 0; j < d + CGAM_F32_PAD; j++) assert_true(sum[j] == again[j]);
    assert_true(got[-1] == 17 && got[half] == 17);
    dense_reset();
}

static void small_sizes(cgam_rng *rng, cgam_dtype dtype)
{
    for (int64_t d = 1; d <= 70; d++) {
        check_case(rng, dtype, 1 + d % 9, d, 0, 0);
        check_case(rng, dtype, 17, d, 1 + d % 4, d % 8);
    }
    for (int64_t n = 1; n <= 70; n++) {
        check_case(rng, dtype, n, 1 + n % 37, n % 3, n % 5);
        check_case(rng, dtype, n, 64, 0, 0);
    }
}

static void large_sizes(cgam_rng *rng, cgam_dtype dtype)
{
    for (int64_t d = 75; d < 700; d += 1 + d / 11) check_case(rng, dtype, 19, d, d % 2, d % 3);
    check_case(rng, dtype, 600, 100, 0, 0);
    check_case(rng, dtype, 300, 330, 5, 1);
    check_case(rng, dtype, 5, 10007, 0, 1);
    check_case(rng, dtype, 300, 1024, 0, 0);
    check_case(rng, dtype, 37, 2500, 3, 1);
    check_case(rng, dtype, 40, 4096, 0, 0);
}

/* What a sum in f32 loses most by: 64 terms of 1, then terms of 2^-24, of which a lane that holds 1 or more keeps none. A lane
 * that went on for the whole row would be off by up to 255 2^-24 of its size. */
static void hard_sums(cgam_rng *rng, cgam_dtype dtype)
{
    const cgam_f32 *k = stored_cpu->f32;
    enum { ONES = 64, D = 16384, N = 6 };
    double *x = dense_room(D), *rows = dense_room(N * D), got[N];
    float *laid = (float *)(void *)dense_room(D + CGAM_F32_PAD);
    for (int64_t j = 0; j < D; j++) x[j] = j < ONES ? 1 : 0x1p-12;
    for (int64_t j = 0; j < N * D; j++) rows[j] = x[j % D];
    void *data = dense_room(N * D);
    (void)rng;
    cgam_narrow(dtype, rows, N * D, data);
    k->lay[dtype](x, D, laid);
    k->dot[dtype](data, D, N, D, laid, got);
    double want = ONES + (D - ONES) * 0x1p-24;
    for (int64_t i = 0; i < N; i++) CHECK_CLOSE(got[i], want, CGAM_F32_ERROR * want);
    dense_reset();
}

/* Every finite 16-bit pattern goes through a score and a readout exactly, subnormals included. */
static void every_value(cgam_rng *rng, cgam_dtype dtype)
{
    const cgam_f32 *k = stored_cpu->f32;
    (void)rng;
    if (dtype == CGAM_F32) return;
    uint16_t row[64];
    double wide[64], one[64] = {0}, y[64], dot;
    float x[64 + CGAM_F32_PAD], sum[64 + CGAM_F32_PAD] = {0}, weight = 1;
    for (int32_t from = 0; from < 65536; from += 64) {
        for (int32_t j = 0; j < 64; j++) row[j] = (uint16_t)(from + j);
        cgam_widen(dtype, row, 64, wide);
        if (!isfinite(wide[0])) continue; /* 64 divides the patterns of an exponent */
        memset(y, 0, sizeof y);
        k->sum[dtype](row, 64, 1, 64, &weight, sum);
        k->flush[dtype](64, sum, y);
        CHECK_CLOSE_ALL(y, wide, 64, 0);
        for (int j = 0; j < 64; j++) {
            one[j] = 1;
            k->lay[dtype](one, 64, x);
            k->dot[dtype](row, 64, 1, 64, x, &dot);
            one[j] = 0;
            CHECK_CLOSE(dot, wide[j], 0);
        }
    }
}

TEST(f32_sums_keep_their_bounds_on_small_sizes) { stored_for_each(small_sizes, CGAM_F32, 21); }

TEST(f32_sums_keep_their_bounds_on_large_sizes) { stored_for_each(large_sizes, CGAM_F32, 21); }

TEST(f32_sums_keep_their_bounds_on_what_they_lose_most_by)
{
    stored_for_each(hard_sums, CGAM_F32, 21);
}

TEST(every_half_becomes_the_same_float) { stored_for_each(every_value, CGAM_F32, 21); }
