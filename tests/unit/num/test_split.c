/* Products by tiles of bf16 against sums in long double, within the bound that split.h states. */
#include "support/check.h"
#include "support/dense.h"

#include "num/cpu/cpu.h"

static const cgam_split *split;

static void need_unit(void)
{
    for (int i = 0; cgam_cpu_all[i].name; i++)
        if (cgam_cpu_all[i].split && cgam_cpu_all[i].usable()) split = cgam_cpu_all[i].split;
    if (!split) {
        print_message("skipped: no tile unit here, or the system does not lend it\n");
        skip();
    }
}

enum { PANEL = CGAM_SPLIT_PANEL };

static char *panels(int64_t rows, int64_t depth)
{
    size_t count = (size_t)((rows + PANEL - 1) / PANEL);
    char *room = aligned_alloc(64, count * split->room(depth));
    assert_non_null(room);
    memset(room, 0xff, count * split->room(depth)); /* NaN, should any be left as it was */
    return room;
}

/* C[columns, ldc], rows of A and B as close as can be; slice by slice. */
static void multiply(int64_t rows, int64_t columns, int64_t depth, const float *A, const float *B,
                     float *C, int64_t ldc, bool add)
{
    for (int64_t from = 0; from < depth; from += CGAM_SPLIT_DEPTH) {
        int64_t deep = depth - from < CGAM_SPLIT_DEPTH ? depth - from : CGAM_SPLIT_DEPTH;
        char *a = panels(rows, deep), *b = panels(columns, deep);
        for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r++)
            split->left(r % PANEL, deep, r < rows ? A + r * depth + from : NULL,
                        a + (size_t)(r / PANEL) * split->room(deep));
        for (int64_t c = 0; c < columns; c += PANEL)
            split->right(columns - c < PANEL ? columns - c : PANEL, deep, B + c * depth + from,
                         depth, b + (size_t)(c / PANEL) * split->room(deep));
        split->mul(rows, columns, deep, a, b, C, ldc, add || from > 0);
        free(a);
        free(b);
    }
}

static float *floats(int64_t n) { return (float *)(void *)dense_room(n / 2 + 1); }

static void compare(cgam_rng *rng, int64_t rows, int64_t columns, int64_t depth, double spread)
{
    int64_t ldc = rows + 3;
    float *A = floats(rows * depth), *B = floats(columns * depth), *C = floats(columns * ldc);
    bool add = depth % 2;
    for (int64_t i = 0; i < rows * depth; i++)
        A[i] = (float)(cgam_rng_normal(rng) * exp2(spread * cgam_rng_normal(rng)));
    for (int64_t i = 0; i < columns * depth; i++)
        B[i] = (float)(cgam_rng_normal(rng) * exp2(spread * cgam_rng_normal(rng)));
    for (int64_t i = 0; i < columns * ldc; i++) C[i] = (float)i;
    multiply(rows, columns, depth, A, B, C, ldc, add);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < ldc; r++) {
            long double was = (long double)(c * ldc + r), want = add || r >= rows ? was : 0;
            long double size = 0;
            for (int64_t k = 0; k < depth && r < rows; k++) {
                long double term = (long double)A[r * depth + k] * B[c * depth + k];
                want += term;
                size += fabsl(term);
            }
            double sums = (double)((depth + CGAM_SPLIT_DEPTH - 1) / CGAM_SPLIT_DEPTH);
            double allowed = cgam_split_roundings(depth) * 0x1p-24 * (double)size;
            if (add && r < rows) allowed += sums * 0x1p-24 * (double)(was + size);
            CHECK_CLOSE(C[c * ldc + r], (double)want, allowed);
        }
    dense_reset();
}

TEST(every_shape_is_within_the_stated_bound)
{
    need_unit();
    cgam_rng rng = cgam_rng_stream(21, 0);
    for (int64_t size = 1; size <= 70; size++) {
        compare(&rng, size, 1 + size * 7 % 70, 1 + size * 3 % 70, 0);
        compare(&rng, 1 + size * 5 % 70, size, 1 + size * 11 % 70, 8);
        compare(&rng, 3, 2, size, 0);
    }
    compare(&rng, 40, 33, CGAM_SPLIT_DEPTH, 0);
    compare(&rng, 17, 50, CGAM_SPLIT_DEPTH + 1, 3);
    compare(&rng, 33, 17, 2 * CGAM_SPLIT_DEPTH + 500, 0);
}

/* One term a number, sums below 2^24: nothing is rounded. */
TEST(small_whole_numbers_are_multiplied_exactly)
{
    need_unit();
    enum { ROWS = 37, COLUMNS = 45, DEPTH = 1500 };
    cgam_rng rng = cgam_rng_stream(22, 0);
    float *A = floats(ROWS * DEPTH), *B = floats(COLUMNS * DEPTH), *C = floats(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * DEPTH; i++) A[i] = (float)cgam_rng_below(&rng, 201) - 100;
    for (int i = 0; i < COLUMNS * DEPTH; i++) B[i] = (float)cgam_rng_below(&rng, 201) - 100;
    multiply(ROWS, COLUMNS, DEPTH, A, B, C, ROWS, false);
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) {
            int64_t want = 0;
            for (int k = 0; k < DEPTH; k++)
                want += (int64_t)A[r * DEPTH + k] * (int64_t)B[c * DEPTH + k];
            assert_true(C[c * ROWS + r] == (float)want);
        }
    dense_reset();
}

TEST(a_sum_does_not_depend_on_its_neighbours)
{
    need_unit();
    enum { ROWS = 50, COLUMNS = 70, DEPTH = 1100 };
    cgam_rng rng = cgam_rng_stream(23, 0);
    float *A = floats(ROWS * DEPTH), *B = floats(COLUMNS * DEPTH), *C = floats(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * DEPTH; i++) A[i] = (float)cgam_rng_normal(&rng);
    for (int i = 0; i < COLUMNS * DEPTH; i++) B[i] = (float)cgam_rng_normal(&rng);
    multiply(ROWS, COLUMNS, DEPTH, A, B, C, ROWS, false);
    for (int c = 0; c < COLUMNS; c += 3)
        for (int r = 0; r < ROWS; r += 7) {
            float alone;
            multiply(1, 1, DEPTH, A + r * DEPTH, B + c * DEPTH, &alone, 1, false);
            assert_memory_equal(&alone, C + c * ROWS + r, sizeof alone);
        }
    /* NaN and infinity are noticed, where they are */
    A[2 * DEPTH + 5] = NAN;
    B[9 * DEPTH + 1099] = INFINITY;
    multiply(ROWS, COLUMNS, DEPTH, A, B, C, ROWS, false);
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < ROWS; r++) assert_true(isfinite(C[c * ROWS + r]) == (r != 2 && c != 9));
    dense_reset();
}

TEST(codes_are_packed_as_the_numbers_they_stand_for)
{
    need_unit();
    enum { DEPTH = 160 };
    cgam_rng rng = cgam_rng_stream(24, 0);
    float values[DEPTH / CGAM_SPLIT_CODED][8], numbers[DEPTH];
    uint8_t codes[DEPTH];
    char *plain = panels(PANEL, DEPTH), *coded = panels(PANEL, DEPTH);
    for (int64_t r = 0; r < PANEL; r++) {
        for (int k = 0; k < DEPTH / CGAM_SPLIT_CODED * 8; k++)
            values[k / 8][k % 8] = (float)(cgam_rng_normal(&rng) * exp2(cgam_rng_normal(&rng) * 9));
        for (int k = 0; k < DEPTH; k++) {
            codes[k] = (uint8_t)cgam_rng_below(&rng, 8);
            numbers[k] = values[k / CGAM_SPLIT_CODED][codes[k]];
        }
        split->left(r, DEPTH, numbers, plain);
        split->left_coded(r, DEPTH, codes, (const float(*)[8])values, coded);
    }
    assert_memory_equal(coded, plain, split->room(DEPTH));
    free(plain);
    free(coded);
}

/* A panel of one number and zeros holds its terms, wherever they are. */
TEST(terms_add_up_to_the_number_and_to_no_more_in_size)
{
    need_unit();
    cgam_rng rng = cgam_rng_stream(26, 0);
    char *panel = panels(PANEL, 1);
    double most = 0;
    for (int64_t r = 1; r < PANEL; r++) split->left(r, 1, NULL, panel);
    for (int i = 0; i < 1000; i++) {
        float x = i ? (float)cgam_rng_normal(&rng) : 1 + 0x1p-8F, term;
        double sum = 0, size = 0;
        split->left(0, 1, &x, panel);
        for (size_t k = 0; k < split->room(1); k += 2) {
            uint32_t bits = 0;
            memcpy((char *)&bits + 2, panel + k, 2);
            memcpy(&term, &bits, sizeof term);
            sum += (double)term;
            size += fabs((double)term);
        }
        assert_true(sum == (double)x);
        most = fmax(most, size / fabs((double)x));
    }
    CHECK_LE(most * most, CGAM_SPLIT_SIZES);
    CHECK_LE(1.0156, most * most);
    free(panel);
}
