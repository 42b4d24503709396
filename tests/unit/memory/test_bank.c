/* Banks: how rows come in, what is refused and in which words, what the numbers about them are.
 * ctest: labels=threads */
#define ENV_THREADS 2
#include "memory/bank.h"
#include "support/failing_alloc.h"
#include "support/folder.h"
#include "support/one_env.h"

#include "num/cpu/widen.h"

#include <cgam/io.h>
#include <float.h>
#include <unistd.h>

#include "support/owned.h"

TEST(rows_come_back_in_every_type)
{
    cgam_rng rng = cgam_rng_stream(6, 0);
    for (int type = CGAM_F64; type <= CGAM_BF16; type++) {
        for (int64_t n = 1; n < 700; n = 3 * n + 1) {
            int64_t d = 1 + n % 13;
            double *values = dense_normals(&rng, n * d, 1), *data = dense_room(n * d);
            double *row = dense_room(d), *x = dense_normals(&rng, d, 1),
                   *w = dense_normals(&rng, n, 1);
            cgam_narrow((cgam_dtype)type, values, n * d, data);
            cgam_widen((cgam_dtype)type, data, n * d, values);
            OWNED(cgam_bank) bank = NULL;
            CHECK_STATUS(env, cgam_bank_new(env, data, (cgam_dtype)type, n, d, NULL, &bank));
            cgam_bank_info info = cgam_bank_describe(bank);
            assert_int_equal(info.n, n);
            assert_int_equal(info.d, d);
            assert_int_equal(info.dtype, type);
            assert_false(info.mapped);
            double low = INFINITY, high = 0;
            for (int64_t i = 0; i < n; i++) {
                CHECK_STATUS(env, cgam_bank_row(bank, i, row));
                CHECK_CLOSE_ALL(row, values + i * d, d, 0);
                double square = 0;
                for (int64_t j = 0; j < d; j++) square += row[j] * row[j];
                CHECK_REL(bank->norm2[i], square, 1e-14);
                low = fmin(low, sqrt(square));
                high = fmax(high, sqrt(square));
            }
            CHECK_REL(info.norm_min, low, 1e-14);
            CHECK_REL(info.norm_max, high, 1e-14);
            double *scores = dense_room(n), *want = dense_room(n + d), *sum = dense_room(d);
            CHECK_STATUS(env, cgam_bank_score(bank, x, scores));
            dense_score(n, d, values, x, want);
            CHECK_CLOSE_ALL(scores, want, n, 1e-13);
            CHECK_STATUS(env, cgam_bank_combine(bank, w, sum));
            dense_combine(n, d, values, w, want);
            CHECK_CLOSE_ALL(sum, want, d, 1e-12);
            dense_reset();
        }
    }
}

TEST(borrowed_rows_are_seen_and_copied_rows_are_kept)
{
    double data[] = {1, 2, 3, 4}, row[2];
    cgam_bank_opts opts = cgam_bank_opts_default();
    cgam_bank *borrowed, *copied;
    CHECK_STATUS(env, cgam_bank_new(env, data, CGAM_F64, 2, 2, &opts, &borrowed));
    opts.copy = true;
    CHECK_STATUS(env, cgam_bank_new(env, data, CGAM_F64, 2, 2, &opts, &copied));
    data[3] = 40;
    CHECK_STATUS(env, cgam_bank_row(borrowed, 1, row));
    CHECK_CLOSE(row[1], 40, 0);
    CHECK_STATUS(env, cgam_bank_row(copied, 1, row));
    CHECK_CLOSE(row[1], 4, 0);
    CHECK_REFUSED(env, CGAM_E_ARG, "no memory 2", cgam_bank_row(copied, 2, row));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_bank_row(copied, -1, row));
    cgam_bank_free(borrowed);
    cgam_bank_free(copied);
    cgam_bank_free(NULL);
}

TEST(rows_may_lie_apart)
{
    const float data[] = {1, 2, NAN, NAN, 3, 4, NAN, NAN, 5, 6};
    for (int copy = 0; copy < 2; copy++) {
        cgam_bank_opts opts = {.stride = 4, .copy = copy};
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, data, CGAM_F32, 3, 2, &opts, &bank));
        double scores[3];
        const double x[] = {1, 10};
        CHECK_STATUS(env, cgam_bank_score(bank, x, scores));
        CHECK_CLOSE(scores[0], 21, 0);
        CHECK_CLOSE(scores[1], 43, 0);
        CHECK_CLOSE(scores[2], 65, 0);
    }
}

TEST(rows_become_unit_when_asked)
{
    cgam_rng rng = cgam_rng_stream(6, 1);
    for (int type = CGAM_F64; type <= CGAM_BF16; type++) {
        int64_t n = 400, d = 7;
        double *values = dense_normals(&rng, n * d, 2), *data = dense_room(n * d),
               *row = dense_room(d);
        memset(values + 3 * d, 0, (size_t)d * sizeof *values); /* a zero memory stays zero */
        cgam_narrow((cgam_dtype)type, values, n * d, data);
        cgam_widen((cgam_dtype)type, data, n * d, values);
        dense_normalize(n, d, values);
        cgam_bank_opts opts = {.normalize = true};
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, data, (cgam_dtype)type, n, d, &opts, &bank));
        for (int64_t i = 0; i < n; i++) {
            CHECK_STATUS(env, cgam_bank_row(bank, i, row));
            CHECK_CLOSE_ALL(row, values + i * d, d, 4e-16);
            CHECK_CLOSE(bank->norm2[i], i == 3 ? 0 : 1, 0);
        }
        double *x = dense_normals(&rng, d, 1), *scores = dense_room(n), *want = dense_room(n);
        CHECK_STATUS(env, cgam_bank_score(bank, x, scores));
        dense_score(n, d, values, x, want);
        CHECK_CLOSE_ALL(scores, want, n, 4e-15);
        cgam_bank_info info = cgam_bank_describe(bank);
        assert_int_equal(info.zero_rows, 1);
        assert_false(info.equal_norms || info.unit);
        CHECK_CLOSE(info.norm_min, 0, 0);
        CHECK_CLOSE(info.norm_max, 1, 0);
        dense_reset();
    }
}

TEST(norms_that_agree_are_called_equal)
{
    cgam_rng rng = cgam_rng_stream(6, 2);
    for (int64_t d = 1; d < 2000; d = 3 * d + 1) {
        for (int k = 0; k < 4; k++) {
            double *Z = dense_bank(&rng, DENSE_UNIT, 20, d);
            if (k == 1) /* a power of two keeps the last bits */
                for (int64_t i = 0; i < 20 * d; i++) Z[i] *= 4;
            if (k == 2) Z[5 * d] += 1e-9;
            cgam_bank_opts opts = {.normalize = k == 3};
            OWNED(cgam_bank) bank = NULL;
            CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, 20, d, &opts, &bank));
            cgam_bank_info info = cgam_bank_describe(bank);
            assert_int_equal(info.equal_norms, k != 2);
            assert_int_equal(info.unit, k == 0 || k == 3);
            for (int64_t i = 1; i < 20 && k != 2; i++)
                assert_true(bank->norm2[i] == bank->norm2[0]);
            dense_reset();
        }
    }
}

TEST(what_is_not_a_number_is_named)
{
    static const struct {
        int64_t row, column;
        double value;
        const char *words;
    } list[] = {{0, 0, NAN, "bank: nan at row 0, column 0 (counted from 0)"},
                {7, 2, INFINITY, "bank: inf at row 7, column 2 (counted from 0)"},
                {1999, 2, -INFINITY, "bank: -inf at row 1999, column 2 (counted from 0)"},
                {1000, 1, 1e200, "bank: row 1000: the squared norm overflows"}};
    for (int type = CGAM_F64; type <= CGAM_BF16; type++) {
        for (size_t k = 0; k < 4; k++) {
            if (type != CGAM_F64 && list[k].value == 1e200) continue;
            double *values = dense_room(2000 * 3), *data = dense_room(2000 * 3);
            for (int64_t i = 0; i < 6000; i++) values[i] = 1;
            values[list[k].row * 3 + list[k].column] = list[k].value;
            cgam_narrow((cgam_dtype)type, values, 6000, data);
            cgam_bank *bank = (cgam_bank *)data;
            CHECK_FAILS(env, CGAM_E_VALUE,
                        cgam_bank_new(env, data, (cgam_dtype)type, 2000, 3, NULL, &bank));
            assert_string_equal(cgam_env_message(env), list[k].words);
            assert_null(bank);
            dense_reset();
        }
    }
}

/* Bad rows in several chunks: always the first is named, whoever gets there first. */
TEST(the_first_bad_row_is_named)
{
    for (int round = 0; round < 200; round++) {
        OWNED(cgam_env) many = object_env(1 + round % 5);
        double *data = dense_room(4000);
        data[100 + round] = NAN; /* row, d = 1; the chunk of row 100 comes last to its end */
        for (int64_t i = 300; i < 4000; i += 256) data[i] = INFINITY;
        char words[80];
        snprintf(words, sizeof words, "bank: nan at row %d, column 0 (counted from 0)",
                 100 + round);
        cgam_bank *bank;
        CHECK_FAILS(many, CGAM_E_VALUE, cgam_bank_new(many, data, CGAM_F64, 4000, 1, NULL, &bank));
        assert_string_equal(cgam_env_message(many), words);
        dense_reset();
    }
}

TEST(rows_too_short_are_not_taken_for_zero)
{
    const double data[] = {1, 0, 1e-170, -1e-170, 1e-145, 0};
    cgam_bank *bank;
    CHECK_STATUS(env, cgam_bank_new(env, data, CGAM_F64, 3, 2, NULL, &bank));
    assert_int_equal(cgam_bank_describe(bank).zero_rows, 0);
    cgam_bank_free(bank);
    cgam_bank_opts opts = {.normalize = true};
    CHECK_REFUSED(env, CGAM_E_VALUE, "bank: row 1 is too short to normalise",
                  cgam_bank_new(env, data, CGAM_F64, 3, 2, &opts, &bank));
    CHECK_REFUSED(env, CGAM_E_VALUE, "bank: row 0 is too short to normalise",
                  cgam_bank_new(env, data + 4, CGAM_F64, 1, 2, &opts, &bank));
}

TEST(shapes_that_hold_nothing_are_refused)
{
    const double data[4] = {1, 1, 1, 1};
    cgam_bank *bank;
    CHECK_REFUSED(env, CGAM_E_SHAPE, "0 x 3",
                  cgam_bank_new(env, data, CGAM_F64, 0, 3, NULL, &bank));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_bank_new(env, data, CGAM_F64, 3, 0, NULL, &bank));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_bank_new(env, data, CGAM_F64, -1, 3, NULL, &bank));
    CHECK_FAILS(env, CGAM_E_SHAPE,
                cgam_bank_new(env, data, CGAM_F64, 1, (int64_t)1 << 40, NULL, &bank));
    CHECK_REFUSED(env, CGAM_E_ARG, "i64", cgam_bank_new(env, data, CGAM_I64, 2, 2, NULL, &bank));
    cgam_bank_opts opts = {.stride = 1};
    CHECK_REFUSED(env, CGAM_E_ARG, "stride 1 is less than d = 2",
                  cgam_bank_new(env, data, CGAM_F64, 2, 2, &opts, &bank));
    opts.stride = -2;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_bank_new(env, data, CGAM_F64, 2, 2, &opts, &bank));
}

TEST(a_file_becomes_a_bank)
{
    const char *path = folder_file("t.npy");
    const float data[] = {3, 4, 0, 6, 8, 0};
    const int64_t shape[] = {2, 3}, cube[] = {1, 2, 3}, empty[] = {0, 3};
    const int64_t whole[] = {1, 2, 3, 4, 5, 6};
    cgam_bank *bank;
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 2, shape, data));
    cgam_bank_opts opts = {.normalize = true};
    CHECK_STATUS(env, cgam_bank_load(env, path, &opts, &bank));
    cgam_bank_info info = cgam_bank_describe(bank);
    assert_true(info.mapped && info.unit && info.n == 2 && info.d == 3 && info.dtype == CGAM_F32);
    double row[3];
    CHECK_STATUS(env, cgam_bank_row(bank, 1, row));
    CHECK_CLOSE(row[0], 0.6, 2e-16);
    cgam_bank_free(bank);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 3, cube, data));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "this array has 3", cgam_bank_load(env, path, NULL, &bank));
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 2, empty, data));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_bank_load(env, path, NULL, &bank));
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_I64, 2, shape, whole));
    CHECK_STATUS(env, cgam_bank_load(env, path, NULL, &bank));
    info = cgam_bank_describe(bank);
    assert_true(!info.mapped && info.n == 2 && info.d == 3 && info.dtype == CGAM_F64);
    CHECK_STATUS(env, cgam_bank_row(bank, 1, row));
    for (int i = 0; i < 3; i++) CHECK_CLOSE(row[i], (double)whole[3 + i], 0);
    cgam_bank_free(bank);
    unlink(path);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_bank_load(env, path, NULL, &bank));
}

TEST_GROUP(set_up, tear_down)
