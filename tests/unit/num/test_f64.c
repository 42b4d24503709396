/* Every kernel this CPU runs, in every storage type, against the plain reference.
 *
 * Both add the same products of exactly widened numbers, in different orders and with or without
 * fused multiply-add: each result is within m 2^-53 (1 + small) of the sum of |terms|, m the number
 * of terms, so two results differ by at most 2 (m + 1) 2^-53 of it. */
#include "support/stored.h"

/* Of two sums of so many terms, whose magnitudes sum to size. */
static double rounding(double size, int64_t terms)
{
    return 2 * (double)(terms + 1) * 0x1p-53 * size;
}

static void check_case(cgam_rng *rng, cgam_dtype dtype, int64_t n, int64_t d, int64_t gap,
                       int64_t shift)
{
    const cgam_f64 *k = stored_cpu->f64;
    const cgam_f64 *plain = cgam_cpu_all[0].f64;
    stored Z = stored_rows(rng, dtype, n, d, gap, shift);
    /* x, w and y begin anywhere too */
    double *x = dense_normals(rng, d + 1, 1) + shift % 2, *w = dense_normals(rng, n + 1, 1);
    double *got = dense_room(n + 2) + 1, *want = dense_room(n);
    w[n / 2] = 0; /* readouts skip what has no weight */
    got[-1] = got[n] = 17;
    plain->dot[dtype](Z.data, Z.stride, n, d, x, want);
    k->dot[dtype](Z.data, Z.stride, n, d, x, got);
    for (int64_t i = 0; i < n; i++) {
        double size = 0;
        for (int64_t j = 0; j < d; j++) size += fabs(Z.wide[i * d + j] * x[j]);
        stored_compare(got[i], want[i], rounding(size, d), &Z, "dot", i);
    }
    assert_true(got[-1] == 17 && got[n] == 17);

    double *y = dense_normals(rng, d + 2, 1) + 1, *z = dense_room(d);
    memcpy(z, y, (size_t)d * sizeof *z);
    double left = y[-1], right = y[d], *before = dense_room(d);
    memcpy(before, y, (size_t)d * sizeof *before);
    plain->sum[dtype](Z.data, Z.stride, n, d, w, z);
    k->sum[dtype](Z.data, Z.stride, n, d, w, y);
    for (int64_t j = 0; j < d; j++) {
        double size = fabs(before[j]);
        for (int64_t i = 0; i < n; i++) size += fabs(w[i] * Z.wide[i * d + j]);
        stored_compare(y[j], z[j], rounding(size, n + 1), &Z, "sum", j);
    }
    assert_true(y[-1] == left && y[d] == right);

    /* a row by itself, widened or in f32 */
    float *f32 = (float *)(void *)dense_room(d + 2) + 1;
    f32[-1] = f32[d] = 17;
    k->scaled[dtype](Z.data, d, 0.7, y);
    k->to_f32[dtype](Z.data, d, f32);
    for (int64_t j = 0; j < d; j++) {
        assert_true(y[j] == 0.7 * Z.wide[j]);
        assert_true(f32[j] == (float)Z.wide[j]);
    }
    assert_true(y[-1] == left && y[d] == right && f32[-1] == 17 && f32[d] == 17);

    /* rows by list, each at most once and out of order */
    int32_t at[4096];
    int64_t listed = 0;
    for (int64_t i = n - 1; i >= 0; i -= 1 + i % 3) at[listed++] = (int32_t)i;
    memcpy(z, before, (size_t)d * sizeof *z);
    memcpy(y, before, (size_t)d * sizeof *y);
    plain->sum_at[dtype](Z.data, Z.stride, at, listed, d, w, z);
    k->sum_at[dtype](Z.data, Z.stride, at, listed, d, w, y);
    for (int64_t j = 0; j < d; j++) {
        double size = fabs(before[j]);
        for (int64_t i = 0; i < listed; i++) size += fabs(w[i] * Z.wide[at[i] * d + j]);
        stored_compare(y[j], z[j], rounding(size, listed + 1), &Z, "sum_at", j);
    }
    assert_true(y[-1] == left && y[d] == right);

    /* both at once: the bits of dot, and a readout of other rows (here the later half) */
    int64_t half = n / 2;
    double *alone = dense_room(n);
    k->dot[dtype](Z.data, Z.stride, half, d, x, alone);
    const unsigned char *later = Z.data + (size_t)(half * Z.stride) * cgam_dtype_size(dtype);
    memcpy(z, before, (size_t)d * sizeof *z);
    memcpy(y, before, (size_t)d * sizeof *y);
    got[-1] = got[half] = 17;
    plain->sum[dtype](later, Z.stride, half, d, w, z);
    k->both[dtype](Z.data, later, Z.stride, half, d, x, got, w, y);
    assert_memory_equal(got, alone, (size_t)half * sizeof *got);
    for (int64_t j = 0; j < d; j++) {
        double size = fabs(before[j]);
        for (int64_t i = 0; i < half; i++) size += fabs(w[i] * Z.wide[(half + i) * d + j]);
        stored_compare(y[j], z[j], rounding(size, half + 1), &Z, "both", j);
    }
    assert_true(y[-1] == left && y[d] == right && got[-1] == 17 && got[half] == 17);
    dense_reset();
}

static void small_sizes(cgam_rng *rng, cgam_dtype dtype)
{
    for (int64_t d = 1; d <= 70; d++) {
        check_case(rng, dtype, 1 + d % 9, d, 0, 0);
        check_case(rng, dtype, 7, d, 1 + d % 4, d % 8);
    }
    for (int64_t n = 1; n <= 70; n++) {
        check_case(rng, dtype, n, 1 + n % 37, n % 3, n % 5);
        check_case(rng, dtype, n, 64, 0, 0);
    }
}

static void large_sizes(cgam_rng *rng, cgam_dtype dtype)
{
    check_case(rng, dtype, 3, 10007, 0, 1);
    check_case(rng, dtype, 2049, 129, 7, 3);
    check_case(rng, dtype, 300, 1024, 0, 0);
    check_case(rng, dtype, 37, 2500, 3, 1);
}

/* Every finite 16-bit pattern goes through the vector part of a kernel exactly. Banks hold no
 * others. */
static void every_value(cgam_rng *rng, cgam_dtype dtype)
{
    const cgam_f64 *k = stored_cpu->f64;
    (void)rng;
    if (dtype != CGAM_F16 && dtype != CGAM_BF16) return;
    uint16_t row[64];
    double wide[64], one[64] = {0}, y[64], dot, weight = 1;
    for (int32_t from = 0; from < 65536; from += 64) {
        for (int32_t j = 0; j < 64; j++) row[j] = (uint16_t)(from + j);
        cgam_widen(dtype, row, 64, wide);
        if (!isfinite(wide[0])) continue; /* 64 divides the patterns of an exponent */
        memset(y, 0, sizeof y);
        k->sum[dtype](row, 64, 1, 64, &weight, y);
        CHECK_CLOSE_ALL(y, wide, 64, 0);
        for (int j = 0; j < 64; j++) {
            one[j] = 1;
            k->dot[dtype](row, 64, 1, 64, one, &dot);
            one[j] = 0;
            CHECK_CLOSE(dot, wide[j], 0);
        }
    }
}

/* Scores of every size, masks among them; sums against long double. */
static void softmax_case(cgam_rng *rng, int64_t n, double beta, double scale)
{
    const cgam_f64 *k = stored_cpu->f64;
    double *r = dense_normals(rng, n + 2, scale) + 1, *e = dense_room(n + 2) + 1, sums[3];
    double left = e[-1] = 17, right = e[n] = 19;
    for (int64_t i = 0; i < n; i += 5) r[i] = i % 2 ? -INFINITY : r[i] * 1e-310;
    double top = k->largest(r, n);
    CHECK_CLOSE(top, cgam_cpu_all[0].f64->largest(r, n), 0);
    const double limits[] = {0, 0.5, scale, 1e300, INFINITY};
    for (int j = 0; j < 5; j++)
        assert_int_equal(k->above(r, n, limits[j]), cgam_cpu_all[0].f64->above(r, n, limits[j]));
    if (top == -INFINITY) return;
    k->softmax(r, n, beta, top, e, sums);
    long double want[3] = {0};
    for (int64_t i = 0; i < n; i++) {
        double x = beta * (r[i] - top);
        if (x < -707) {
            assert_true(e[i] <= 1e-307);
            continue;
        }
        CHECK_LE(check_ulps(e[i], expl((long double)x)), 2);
        long double exact = expl((long double)x);
        want[0] += exact;
        want[1] += exact * exact;
        want[2] += exact * x;
    }
    /* each term is good to 2 ulp, each addition to half of one */
    double unit = (double)(n + 6) * 0x1p-52;
    for (int j = 0; j < 3; j++)
        CHECK_CLOSE(sums[j], (double)want[j], unit * fabs((double)want[j]) + 1e-300);
    assert_true(e[-1] == left && e[n] == right);
    r[n / 2] = NAN;
    k->softmax(r, n, beta, top, e, sums);
    assert_true(isnan(sums[0]));
    assert_int_equal(k->above(r, n, INFINITY), 1);
    dense_reset();
}

static void softmaxes(cgam_rng *rng, cgam_dtype dtype)
{
    if (dtype != CGAM_F64) return;
    for (int64_t n = 1; n <= 70; n++) {
        softmax_case(rng, n, 1, 1);
        softmax_case(rng, n, 1e6, 1);
        softmax_case(rng, n, 3, 1e6);
        softmax_case(rng, n, 1e-6, 1e-300);
    }
    softmax_case(rng, 4096, 2, 3);
}

TEST(softmax_sums_agree_masks_and_all) { stored_for_each(softmaxes, CGAM_F64, 2); }

TEST(kernels_agree_on_small_sizes) { stored_for_each(small_sizes, CGAM_F64, 2); }

TEST(kernels_agree_on_large_sizes) { stored_for_each(large_sizes, CGAM_F64, 2); }

TEST(kernels_widen_every_half_exactly) { stored_for_each(every_value, CGAM_F64, 2); }

TEST(the_plain_kernel_is_the_definition)
{
    const double Z[] = {1, 2, 3, 4, 5, 6}, x[] = {1, 10, 100}, w[] = {2, -1};
    double out[2], y[3] = {100, 200, 300};
    assert_string_equal(cgam_cpu_all[0].name, "plain");
    cgam_cpu_all[0].f64->dot[CGAM_F64](Z, 3, 2, 3, x, out);
    CHECK_CLOSE(out[0], 321, 0);
    CHECK_CLOSE(out[1], 654, 0);
    cgam_cpu_all[0].f64->sum[CGAM_F64](Z, 3, 2, 3, w, y);
    CHECK_CLOSE(y[0], 98, 0);
    CHECK_CLOSE(y[1], 199, 0);
    CHECK_CLOSE(y[2], 300, 0);
}

TEST(the_best_kernel_is_the_last_usable_or_the_one_wished_for)
{
    const cgam_cpu *last = NULL;
    unsetenv("CGAM_CPU");
    cgam_cpu_pretend(NULL);
    for (int i = 0; cgam_cpu_all[i].name; i++)
        if (cgam_cpu_all[i].usable()) last = &cgam_cpu_all[i];
    assert_ptr_equal(cgam_cpu_best(), last);
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        setenv("CGAM_CPU", cgam_cpu_all[i].name, 1);
        cgam_cpu_pretend(NULL);
        assert_ptr_equal(cgam_cpu_best(), cgam_cpu_all[i].usable() ? &cgam_cpu_all[i] : last);
    }
    setenv("CGAM_CPU", "abacus", 1);
    cgam_cpu_pretend(NULL);
    assert_ptr_equal(cgam_cpu_best(), last);
}
