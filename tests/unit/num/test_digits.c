/* Products by digits of 8 bits against sums in long double, within the bounds that digits.h states. */
#include "support/check.h"
#include "support/dense.h"

#include "num/cpu/cpu.h"

#include <float.h>

static const cgam_digits *digits;

static void need_unit(void)
{
    for (int i = 0; cgam_cpu_all[i].name; i++)
        if (cgam_cpu_all[i].digits && cgam_cpu_all[i].usable()) digits = cgam_cpu_all[i].digits;
    if (!digits) {
        print_message("skipped: no tile unit here, or the system does not lend it\n");
        skip();
    }
}

enum { LINE = CGAM_DIGITS_LINE, ROWS = CGAM_DIGITS_ROWS, BLOCK = CGAM_DIGITS_BLOCK };

static float *floats(int64_t n) { return (float *)(void *)dense_room(n / 2 + 1); }

static void *aligned(size_t bytes)
{
    void *room = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(room);
    memset(room, 0xff, (bytes + 63) / 64 * 64);
    return room;
}

static int64_t filled_up(int64_t n) { return (n + LINE - 1) / LINE * LINE; }

/* x [n] as it is, or as bf16, to which it is cut then. */
static void *stored(cgam_dtype type, int64_t n, float *x)
{
    uint16_t *out = (uint16_t *)(void *)floats(n / 2 + 1);
    if (type == CGAM_F32) return x;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        out[i] = (uint16_t)(bits >> 16);
        bits = (uint32_t)out[i] << 16;
        memcpy(&x[i], &bits, sizeof bits);
    }
    return out;
}

/* ---- Banks that are unkind in their own way ---------------------------------------------------- */
typedef enum kind { EVEN, SPREAD, ONE_HUGE, ONE_COLUMN, SAME_DIGITS, FLAT, ZEROS, KINDS } kind;

/* SAME_DIGITS: one number fixes the step, all others are half of a step off, or have the last two digits as large as they can be, so that all
 * that is rounded or left out has the same sign. FLAT: all alike, on which rounding of the other side tells most. */
static void fill(cgam_rng *rng, kind k, int64_t rows, int64_t d, float most, float *x)
{
    /* half of a step, and of one eight times as large */
    const double offset[] = {0, 0.499, 3.99};
    for (int64_t i = 0; i < rows * d; i++) {
        double z = cgam_rng_normal(rng);
        if (k == SPREAD) z *= exp2(8 * cgam_rng_normal(rng));
        if (k == ONE_HUGE && i % d == i / d % d) z *= 1e6;
        if (k == SAME_DIGITS)
            z = i % BLOCK == 0 ? (double)most : (i / d % 2 ? 0x8080 : 0x7f7f) + offset[i / d % 3];
        if (k == ONE_COLUMN && i % d == 7) z *= 1e4;
        if (k == FLAT) z = 1;
        if (k == ZEROS && cgam_rng_below(rng, 3)) z = 0;
        x[i] = (float)z;
    }
}

static long double length(int64_t d, const float *x)
{
    long double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += (long double)x[j] * x[j];
    return sqrtl(sum);
}

/* S[rows, filled_up(count)] of rows as they are stored, Zs, ld apart. */
static float *scored(cgam_dtype type, int64_t rows, int64_t count, int64_t d, const void *Zs,
                     int64_t ld, const double *X, float *largest)
{
    int64_t width = filled_up(count);
    void *laid = aligned(digits->room(count, d));
    float *S = floats((rows + 1) * width);
    for (int64_t i = 0; i < (rows + 1) * width; i++) S[i] = 7;
    digits->lay(count, d, X, laid);
    digits->score(type, rows, width, d, Zs, ld, laid, S, largest);
    for (int64_t i = 0; i < width; i++) assert_true(S[rows * width + i] == 7);
    free(laid);
    return S;
}

static void compare_scores(cgam_rng *rng, cgam_dtype type, kind k, kind other_side, int64_t rows,
                           int64_t count, int64_t d)
{
    int64_t ld = d + 5, width = filled_up(count);
    int64_t blocks = cgam_digits_blocks(d);
    float *Z = floats(rows * ld), *V = floats(count * d), *largest = floats(rows * blocks + 1),
          *other = floats(rows * blocks);
    double *X = dense_room(count * d);
    fill(rng, k, rows, ld, CGAM_DIGITS_ROW, Z);
    fill(rng, other_side, count, d, CGAM_DIGITS_VECTOR, V);
    for (int64_t i = 0; i < count * d; i++) X[i] = (double)V[i];
    const void *Zs = stored(type, rows * ld, Z);
    largest[rows * blocks] = 7;
    const float *S = scored(type, rows, count, d, Zs, ld, X, largest);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t b = 0; b < blocks; b++) {
            float most = 0;
            for (int64_t j = b * BLOCK; j < d && j < (b + 1) * BLOCK; j++)
                most = fmaxf(most, fabsf(Z[r * ld + j]));
            assert_true(largest[r * blocks + b] == most);
        }
        for (int64_t v = 0; v < width; v++) {
            long double want = 0;
            for (int64_t j = 0; v < count && j < d; j++)
                want += (long double)Z[r * ld + j] * V[v * d + j];
            long double size = v < count ? length(d, Z + r * ld) * length(d, V + v * d) : 0;
            CHECK_CLOSE(S[r * width + v], (double)want,
                        cgam_digits_roundings(d) * 0x1p-24 * (double)size);
        }
    }
    digits->largest(type, rows, d, Zs, ld, other);
    assert_memory_equal(other, largest, (size_t)(rows * blocks) * sizeof *other);
    assert_true(largest[rows * blocks] == 7);
    dense_reset();
}

TEST(scores_of_every_shape_are_within_the_stated_bound)
{
    need_unit();
    cgam_rng rng = cgam_rng_stream(31, 0);
    for (int64_t size = 1; size <= 70; size++) {
        cgam_dtype type = size % 2 ? CGAM_F32 : CGAM_BF16;
        kind k = (kind)(size % KINDS);
        compare_scores(&rng, type, k, k, size, 1 + size * 7 % 64, 1 + size * 3 % 70);
        compare_scores(&rng, type, k, k, 1 + size * 5 % 70, 1 + size * 11 % 64,
                       1 + size * 31 % 700);
        compare_scores(&rng, type, k, k, 3, 2, size);
    }
    for (int k = 0; k < KINDS; k++)
        for (int64_t d = BLOCK - 1; d <= BLOCK + 1; d++) {
            compare_scores(&rng, CGAM_F32, (kind)k, (kind)k, 17, 64, d);
            compare_scores(&rng, CGAM_F32, (kind)k, FLAT, 33, 20, 4 * BLOCK + d);
            compare_scores(&rng, CGAM_F32, FLAT, (kind)k, 33, 20, 4 * BLOCK + d);
        }
}

TEST(a_score_depends_on_its_row_and_its_vector_alone)
{
    need_unit();
    enum { N = 50, COUNT = 53, D = 1100, WIDTH = 64, BLOCKS = 5 };
    cgam_rng rng = cgam_rng_stream(32, 0);
    float *Z = floats(N * D), *largest = floats(N * BLOCKS), one[BLOCKS];
    double *X = dense_room(COUNT * D);
    fill(&rng, SPREAD, N, D, 0, Z);
    for (int i = 0; i < COUNT * D; i++) X[i] = cgam_rng_normal(&rng);
    const float *S = scored(CGAM_F32, N, COUNT, D, Z, D, X, largest);
    for (int v = 0; v < COUNT; v += 3)
        for (int r = 0; r < N; r += 7) {
            const float *alone = scored(CGAM_F32, 1, 1, D, Z + r * D, D, X + v * D, one);
            assert_memory_equal(alone, &S[r * WIDTH + v], sizeof *alone);
            assert_memory_equal(one, &largest[r * BLOCKS], sizeof one);
        }
    dense_reset();
}

TEST(what_is_not_finite_is_noticed_where_it_is)
{
    need_unit();
    enum { N = 40, COUNT = 33, D = 600, WIDTH = 48, BLOCKS = 3 };
    cgam_rng rng = cgam_rng_stream(33, 0);
    float *Z = floats(N * D), *W = floats(N * WIDTH), *largest = floats(N * BLOCKS),
          *Y = floats(D / LINE * LINE * WIDTH + LINE * WIDTH);
    double *X = dense_room(COUNT * D);
    void *weights = aligned(digits->weights_room);
    fill(&rng, EVEN, N, D, 0, Z);
    for (int i = 0; i < COUNT * D; i++) X[i] = cgam_rng_normal(&rng);
    for (int i = 0; i < N * WIDTH; i++) W[i] = 1;
    Z[2 * D + 5] = NAN; /* in the first of its blocks, with others after it */
    Z[3 * D + 599] = -INFINITY;
    X[9 * D + 300] = INFINITY;
    X[10 * D + 1] = -NAN;
    for (int j = 0; j < D; j++) Z[5 * D + j] *= 0x1p-130F;
    const float *S = scored(CGAM_F32, N, COUNT, D, Z, D, X, largest);
    for (int r = 0; r < N; r++) {
        for (int b = 0; b < BLOCKS; b++)
            assert_true(isnan(largest[r * BLOCKS + b]) ==
                        ((r == 2 && b == 0) || (r == 3 && b == 2)));
        for (int v = 0; v < COUNT; v++) {
            bool bad = r == 2 || r == 3 || v == 9 || v == 10;
            assert_true(isnan(S[r * WIDTH + v]) == bad);
            if (r == 5 && !bad) assert_true(S[r * WIDTH + v] == 0); /* too small to count */
        }
    }
    /* readouts: rows that are not finite make all of them NaN, weights those of their vector */
    W[20 * WIDTH + 7] = NAN;
    digits->weights(2, WIDTH, D, W, largest, weights);
    memset(Y, 0, sizeof *Y * (D / LINE * LINE + LINE) * WIDTH);
    digits->read(CGAM_F32, 2, WIDTH, D, Z, D, largest, weights, Y);
    for (int i = 0; i < D * WIDTH; i++) assert_true(isfinite(Y[i]));
    digits->weights(N - 4, WIDTH, D, W + 4 * WIDTH, largest + 4 * BLOCKS, weights);
    digits->read(CGAM_F32, N - 4, WIDTH, D, Z + 4 * D, D, largest + 4 * BLOCKS, weights, Y);
    for (int i = 0; i < D / LINE * LINE * WIDTH; i++)
        assert_true(isnan(Y[i]) == (i / LINE % WIDTH == 7));
    digits->weights(N, WIDTH, D, W, largest, weights);
    digits->read(CGAM_F32, N, WIDTH, D, Z, D, largest, weights, Y);
    for (int i = 0; i < D / LINE * LINE * WIDTH; i++) assert_true(isnan(Y[i]));
    free(weights);
    dense_reset();
}

static float start_of(kind k, int64_t i) { return k == ONE_COLUMN ? 0 : (float)(i % 5); }

static void compare_readouts(cgam_rng *rng, cgam_dtype type, kind k, int64_t rows, int64_t count,
                             int64_t d)
{
    int64_t ld = d + 3, width = filled_up(count), room = filled_up(d) * width;
    int64_t blocks = cgam_digits_blocks(d);
    float *Z = floats(rows * ld), *W = floats(rows * width), *largest = floats(rows * blocks),
          *most = floats(rows), *Y = floats(room + LINE);
    void *weights = aligned(digits->weights_room);
    fill(rng, k, rows, ld, CGAM_DIGITS_ROW, Z);
    for (int64_t i = 0; i < rows * width; i++)
        W[i] = k == SAME_DIGITS ? (i < width ? 1 : 0x7f7fp-23F)
               : k == SPREAD    ? (float)(cgam_rng_normal(rng) * exp2(12 * cgam_rng_normal(rng)))
                                : (float)exp(-9 * cgam_rng_uniform(rng));
    for (int64_t i = 0; i < room + LINE; i++) Y[i] = start_of(k, i);
    const void *Zs = stored(type, rows * ld, Z);
    digits->largest(type, rows, d, Zs, ld, largest);
    digits->weights(rows, width, d, W, largest, weights);
    digits->read(type, rows, width, d, Zs, ld, largest, weights, Y);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t b = 0; b < blocks; b++) most[r] = fmaxf(most[r], largest[r * blocks + b]);
    for (int64_t i = 0; i < room; i++) {
        int64_t j = i / (LINE * width) * LINE + i % LINE, v = i / LINE % width;
        long double want = (long double)start_of(k, i), size = 0, share = 0;
        for (int64_t r = 0; r < rows && j < d; r++) {
            want += (long double)W[r * width + v] * Z[r * ld + j];
            size += fabsl((long double)W[r * width + v]) * most[r];
            if (most[r] > 0) share = fmaxl(share, largest[r * blocks + j / BLOCK] / most[r]);
        }
        double allowed =
            CGAM_DIGITS_READ * (double)(size * share) + fabs((double)want) + (double)start_of(k, i);
        if (j < d) CHECK_CLOSE(Y[i], (double)want, 0x1p-24 * allowed);
        else assert_true(Y[i] == start_of(k, i));
    }
    for (int64_t i = room; i < room + LINE; i++) assert_true(Y[i] == start_of(k, i));
    free(weights);
    dense_reset();
}

TEST(readouts_of_every_shape_are_within_the_stated_bound)
{
    need_unit();
    cgam_rng rng = cgam_rng_stream(34, 0);
    for (int64_t size = 1; size <= ROWS; size++) {
        cgam_dtype type = size % 2 ? CGAM_F32 : CGAM_BF16;
        kind k = (kind)(size % KINDS);
        compare_readouts(&rng, type, k, size, 1 + size * 7 % 64, 1 + size * 3 % 70);
        compare_readouts(&rng, type, k, 1 + size * 5 % ROWS, 1 + size * 11 % 64,
                         1 + size * 31 % 300);
    }
    for (int k = 0; k < KINDS; k++) compare_readouts(&rng, CGAM_F32, (kind)k, ROWS, 64, 800);
}
