/* Some rows of a bank against a bank that has no others: the same bits in every mode, but for the numbers of
 * rows; and masks and names from files. */
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "memory/bank.h"

#include <cgam/io.h>
#include <cgam/recall.h>
#include <unistd.h>

#include "support/owned.h"

enum { N = 60, D = 7, QUERIES = 9, TOP = 4 };

typedef struct answer {
    cgam_result results[QUERIES];
    int64_t index[QUERIES * TOP];
    double top_p[QUERIES * TOP], p[QUERIES * N], readout[QUERIES * D];
} answer;

static cgam_status recall(const cgam_bank *bank, const cgam_recall_opts *opts, const double *q,
                          const double *c, const int64_t *target, bool all, answer *out)
{
    OWNED(cgam_recall) plan = NULL;
    TRY(cgam_recall_new(bank, opts, &plan));
    cgam_recall_in in = {.queries = QUERIES, .q = q, .c = c, .target = target};
    cgam_recall_out to = {.results = out->results,
                          .top = TOP,
                          .top_index = out->index,
                          .top_p = out->top_p,
                          .p = all ? out->p : NULL,
                          .readout = all ? out->readout : NULL};
    TRY(cgam_recall_run(plan, &in, &to));
    return CGAM_OK;
}

TEST(a_mask_is_a_bank_of_fewer_rows)
{
    OWNED(cgam_env) env = object_env(2);
    for (uint64_t t = 0; t < 60; t++) {
        cgam_rng rng = cgam_rng_stream(50, t);
        double *Z = dense_bank(&rng, (dense_kind)(t % DENSE_KINDS), N, D), *few = dense_room(N * D);
        double *q = dense_normals(&rng, QUERIES * D, 1), *c = dense_normals(&rng, D, 1);
        uint64_t mask[1] = {0};
        int64_t number[N], n = 0, target[QUERIES], target_few[QUERIES];
        int64_t from = t % 4 == 3 ? 20 : 0, to = t % 4 == 3 ? 37 : N; /* or side by side */
        for (int64_t i = from; i < to; i++) {
            if (t % 4 != 3 && cgam_rng_below(&rng, 2)) continue;
            mask[0] |= UINT64_C(1) << i;
            memcpy(few + n * D, Z + i * D, D * sizeof *few);
            number[n++] = i;
        }
        if (n == 0) continue;
        for (int v = 0; v < QUERIES; v++)
            target[v] = number[target_few[v] = cgam_rng_below(&rng, n)];
        cgam_bank_opts how = cgam_bank_opts_default();
        how.normalize = t % 5 == 0 && t % DENSE_KINDS != DENSE_ZEROS;
        OWNED(cgam_bank) whole = NULL;
        OWNED(cgam_bank) some = NULL;
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, N, D, &how, &whole));
        CHECK_STATUS(env, cgam_bank_new(env, few, CGAM_F64, n, D, &how, &bank));
        if (t % 2) CHECK_STATUS(env, cgam_bank_sketch(whole));
        CHECK_STATUS(env, cgam_bank_only(whole, mask, &some));
        assert_int_equal(cgam_bank_describe(some).n, n);
        assert_int_equal(cgam_bank_describe(some).whole, N);
        assert_true(cgam_bank_describe(some).sketch == (t % 2));
        for (int64_t i = 0; i < n; i++) assert_int_equal(cgam_bank_number(some, i), number[i]);
        for (int64_t i = -1, k = 0; i <= N; i++) /* and back, beyond both ends too */
            assert_int_equal(cgam_bank_place(some, i), k < n && number[k] == i ? k++ : -1);
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = (cgam_mode)(t % 3);
        o.alpha = t % 2 ? 0.02 : 0;
        o.beta = 3;
        o.t_max = 5;
        o.fast = o.mode == CGAM_FIRST && t % 4 == 0;
        static answer got, want;
        CHECK_STATUS(env, recall(some, &o, q, c, t % 2 ? target : NULL, !o.fast, &got));
        CHECK_STATUS(env, recall(bank, &o, q, c, t % 2 ? target_few : NULL, !o.fast, &want));
        int64_t top = TOP < n ? TOP : n;
        for (int v = 0; v < QUERIES; v++) {
            cgam_result a = got.results[v], b = want.results[v];
            assert_int_equal(a.winner, number[b.winner]);
            assert_int_equal(a.focus, number[b.focus]);
            assert_int_equal(a.focus_rank, b.focus_rank);
            assert_true(a.p == b.p && (a.gap == b.gap || n == 1));
            assert_true(a.p_lower_bound == b.p_lower_bound);
            for (int64_t k = 0; k < top; k++) {
                assert_int_equal(got.index[v * top + k], number[want.index[v * top + k]]);
                assert_true(got.top_p[v * top + k] == want.top_p[v * top + k]);
            }
        }
        if (!o.fast) assert_memory_equal(got.p, want.p, (size_t)(QUERIES * n) * sizeof *got.p);
        if (!o.fast) assert_memory_equal(got.readout, want.readout, sizeof got.readout);
        dense_reset();
    }
}

/* A hole anywhere is seen: rows are borrowed only where they lie side by side. */
TEST_ENV(rows_with_one_hole_are_copied)
{
    enum { ROWS = 6 };
    double Z[ROWS * 2], row[2];
    for (int i = 0; i < ROWS * 2; i++) Z[i] = 1 + i;
    cgam_bank *whole, *some;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, ROWS, 2, NULL, &whole));
    for (uint64_t mask = 1; mask < UINT64_C(1) << ROWS; mask++) {
        CHECK_STATUS(env, cgam_bank_only(whole, &mask, &some));
        for (int64_t i = 0, k = 0; i < ROWS; i++) {
            if (!(mask >> i & 1)) continue;
            CHECK_STATUS(env, cgam_bank_row(some, k++, row));
            assert_true(row[0] == Z[2 * i] && row[1] == Z[2 * i + 1]);
        }
        cgam_bank_free(some);
    }
    cgam_bank_free(whole);
}

TEST_ENV(what_is_not_there_is_refused)
{
    cgam_rng rng = cgam_rng_stream(51, 0);
    double *Z = dense_bank(&rng, DENSE_UNIT, N, D);
    OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
    OWNED(cgam_bank) some = NULL;
    uint64_t none[1] = {0}, two[1] = {5};
    int64_t target[QUERIES] = {1};
    static answer out;
    CHECK_REFUSED(env, CGAM_E_ARG, "none of the 60 memories", cgam_bank_only(bank, none, &some));
    CHECK_STATUS(env, cgam_bank_only(bank, two, &some));
    cgam_recall_opts o = cgam_recall_opts_default();
    CHECK_REFUSED(env, CGAM_E_ARG, "target 1 of query 0",
                  recall(some, &o, Z, NULL, target, false, &out));
    dense_reset();
}

/* A file of these bytes; unlink it. */
static const char *file_of(const char *ending, const void *bytes, size_t size)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/cgam-only-XXXXXX%s", ending);
    int fd = mkstemps(path, (int)strlen(ending));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    return path;
}

TEST_ENV(names_and_masks_come_from_files)
{
    static const char text[] = "red\ngreen\r\nred\n\nblue";
    const char *path = file_of(".names", text, sizeof text - 1);
    cgam_row_names *names;
    uint64_t *mask;
    CHECK_STATUS(env, cgam_row_names_load(env, path, &names));
    unlink(path);
    assert_int_equal(cgam_row_names_count(names), 5);
    assert_string_equal(cgam_row_names_at(names, 1), "green");
    assert_string_equal(cgam_row_names_at(names, 3), "");
    assert_int_equal(cgam_row_names_find(names, "red"), 0);
    assert_int_equal(cgam_row_names_next(names, 0), 2);
    assert_int_equal(cgam_row_names_next(names, 2), -1);
    assert_int_equal(cgam_row_names_find(names, "blue"), 4);
    assert_int_equal(cgam_row_names_find(names, "re"), -1);
    int64_t found[3];
    assert_int_equal(cgam_row_names_search(names, "R", 3, found), 1);
    assert_int_equal(found[0], 0);
    assert_int_equal(cgam_row_names_search(names, "", 3, found), 3); /* the one that is "" first */
    assert_true(found[0] == 3 && found[1] == 0 && found[2] == 1);
    assert_int_equal(cgam_row_names_search(names, "red wine", 3, found), 0);
    path = file_of(".txt", "blue\nred\n", 9);
    CHECK_STATUS(env, cgam_mask_load(env, path, 5, names, &mask));
    assert_int_equal(mask[0], 1 | 4 | 16);
    cgam_mask_free(env, mask);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_mask_load(env, path, 5, NULL, &mask));
    unlink(path);
    path = file_of(".txt", "blue\nlilac\n", 11);
    CHECK_REFUSED(env, CGAM_E_VALUE, "line 2: no memory named 'lilac'",
                  cgam_mask_load(env, path, 5, names, &mask));
    unlink(path);
    path = file_of(".names", "a\0b\n", 4);
    cgam_row_names *other;
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_row_names_load(env, path, &other));
    unlink(path);
    path = file_of(".npy", "", 0);
    int64_t rows[] = {4, 0}, shape[] = {2};
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_I64, 1, shape, rows));
    CHECK_STATUS(env, cgam_mask_load(env, path, 5, NULL, &mask));
    assert_int_equal(mask[0], 17);
    cgam_mask_free(env, mask);
    for (int before = 0; before < 2; before++) {
        const int64_t wrong[] = {0, before ? -1 : 5};
        CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_I64, 1, shape, wrong));
        CHECK_REFUSED(env, CGAM_E_VALUE, before ? "0 to 4)" : "0 to 4)",
                      cgam_mask_load(env, path, 5, NULL, &mask));
    }
    unlink(path);
    cgam_row_names_free(names);
    CHECK_STATUS(env, cgam_row_names_new(env, "", 0, &names));
    assert_int_equal(cgam_row_names_search(names, "", 3, found), 0);
    cgam_row_names_free(names);
}

/* An array of any type and shape, with so many bytes of data: a 1 and zeros. */
static const char *array_of(const char *descr, const char *shape, size_t size)
{
    char bytes[144] = "\x93NUMPY\x01\0\x76";
    memset(bytes + 10, ' ', 118);
    int length = snprintf(bytes + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                          descr, shape);
    bytes[10 + length] = ' ';
    bytes[127] = '\n';
    bytes[128] = 1;
    return file_of(".npy", bytes, 128 + size);
}

TEST_ENV(arrays_are_masks_or_are_refused)
{
    static const struct {
        const char *descr, *shape;
        size_t size;
        int64_t n;
        const char *message; /* NULL: row 1 or, of truths, row 0 is in, and 0 where a 0 is */
        uint64_t mask;
    } cases[] = {
        {"<i8", "(2,)", 16, 5, NULL, 3},
        {"<i4", "(4,)", 16, 5, NULL, 3},
        {"|u1", "(3,)", 3, 5, NULL, 3},
        {"<i2", "(2,)", 4, 5, NULL, 3},
        {"|b1", "(5,)", 5, 5, NULL, 1},
        {"|b1", "(5,)", 5, 6, "5 booleans", 0},
        {"<f8", "(2,)", 16, 5, "expected booleans or integers, not f64", 0},
        {"<i8", "(1, 2)", 16, 5, "expected 1 dimension, the array has 2", 0},
        {"<i8", "(2,)", 16, 1, "0 to 0)", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = array_of(cases[i].descr, cases[i].shape, cases[i].size);
        uint64_t *mask = NULL;
        cgam_status status = cgam_mask_load(env, path, cases[i].n, NULL, &mask);
        if (cases[i].message) {
            assert_int_not_equal(status, CGAM_OK);
            CHECK_MESSAGE(env, cases[i].message);
            assert_null(mask);
        } else {
            CHECK_STATUS(env, status);
            assert_int_equal(mask[0], cases[i].mask);
        }
        cgam_mask_free(env, mask);
        unlink(path);
    }
    uint64_t *mask;
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_mask_load(env, "/nonexistent/m.npy", 5, NULL, &mask));
    cgam_row_names *
        two; /* a name is found in its first row; a list for more memories than there are is refused */
    CHECK_STATUS(env, cgam_row_names_new(env, "a\nb\na\n", 6, &two));
    const char *path = file_of(".txt", "b\n", 2);
    CHECK_REFUSED(env, CGAM_E_VALUE, "line 1: no memory named 'b'",
                  cgam_mask_load(env, path, 1, two, &mask));
    unlink(path);
    int64_t row;
    assert_int_equal(cgam_row_names_search(two, "a", 0, &row), 0);
    cgam_row_names_free(two);
    const double Z[] = {1, 0, 0, 1};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    assert_int_equal(cgam_bank_place(bank, -1), -1);
    assert_int_equal(cgam_bank_place(bank, 2), -1);
    assert_int_equal(cgam_bank_place(bank, 1), 1);
}

static int select_rows(cgam_env *env, void *arg)
{
    uint64_t mask[1] = {0x0f0f};
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_bank) some = NULL;
    int64_t target[QUERIES] = {1};
    static answer out;
    cgam_recall_opts o = cgam_recall_opts_default();
    TRY(cgam_bank_new(env, arg, CGAM_F64, N, D, NULL, &bank));
    TRY(cgam_bank_sketch(bank));
    TRY(cgam_bank_only(bank, mask, &some));
    TRY(recall(some, &o, arg, NULL, target, false, &out));
    return CGAM_OK;
}

static int load_names(cgam_env *env, void *arg)
{
    OWNED(cgam_row_names) names = NULL;
    uint64_t *mask = NULL;
    cgam_status status = cgam_row_names_load(env, arg, &names);
    if (status == CGAM_OK) status = cgam_mask_load(env, arg, 3, names, &mask);
    cgam_mask_free(env, mask);
    return status;
}

TEST(every_allocation_may_fail)
{
    cgam_rng rng = cgam_rng_stream(52, 0);
    check_every_allocation(select_rows, dense_bank(&rng, DENSE_UNIT, N, D));
    char path[64];
    snprintf(path, sizeof path, "%s", file_of(".names", "a\nb\na\n", 6));
    check_every_allocation(load_names, path);
    unlink(path);
    dense_reset();
}
