/* Which file and which array a path means, lists of arrays, and elements as doubles. */
#include "io/array.h"
#include "io/npy.h"
#include "unit/io/scratch.h"

#include <cgam/io.h>
#include <sys/stat.h>

#include "support/owned.h"

static void write_one(cgam_env *env, const char *path, double value)
{
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 0, NULL, &value));
}

static double read_one(cgam_env *env, const char *path)
{
    cgam_array a;
    double value;
    CHECK_STATUS(env, cgam_array_open(env, path, &a));
    assert_int_equal(a.size, 1);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, path, &value));
    cgam_array_close(env, &a);
    return value;
}

TEST_ENV(a_path_that_exists_wins_over_a_member)
{
    const double values[] = {1, 2, 3};
    const cgam_named_array arrays[] = {{"a", CGAM_F64, 0, NULL, &values[0]},
                                       {"b:c", CGAM_F64, 0, NULL, &values[1]},
                                       {"c", CGAM_F64, 0, NULL, &values[2]}};
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("x.npz"), 3, arrays));
    CHECK_CLOSE(read_one(env, scratch("x.npz:a")), 1, 0);
    CHECK_CLOSE(read_one(env, scratch("x.npz:b:c")), 2, 0);
    /* An archive called x.npz:b takes the place of member b:c of x.npz, ... */
    const cgam_named_array inner = {"c", CGAM_F64, 0, NULL, &values[2]};
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("inner.npz"), 1, &inner));
    assert_int_equal(rename(scratch("inner.npz"), scratch("x.npz:b")), 0);
    CHECK_CLOSE(read_one(env, scratch("x.npz:b:c")), 3, 0);
    /* ... and a file of the whole name takes the place of both. */
    write_one(env, scratch("x.npz:b:c"), 4);
    CHECK_CLOSE(read_one(env, scratch("x.npz:b:c")), 4, 0);
    scratch_files(true);
}

TEST_ENV(content_decides_before_the_ending)
{
    const double value = 5;
    const cgam_named_array array = {"a", CGAM_F64, 0, NULL, &value};
    write_one(env, scratch("really_npy.csv"), 5);
    CHECK_CLOSE(read_one(env, scratch("really_npy.csv")), 5, 0);
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("x.npz"), 1, &array));
    assert_int_equal(rename(scratch("x.npz"), scratch("really_npz.npy")), 0);
    CHECK_CLOSE(read_one(env, scratch("really_npz.npy")), 5, 0);
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("x.safetensors"), 1, &array));
    assert_int_equal(rename(scratch("x.safetensors"), scratch("weights")), 0);
    CHECK_CLOSE(read_one(env, scratch("weights")), 5, 0);
    CHECK_CLOSE(read_one(env, put_text("UPPER.CSV", "5")), 5, 0);
    CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, "notes.txt:", put_text("notes.txt", "five\nsix\n"));
    scratch_files(true);
}

/* What a pipe brings is read by every reader, whatever it is called. */
TEST_ENV(pipes_and_standard_input_are_read)
{
    const double value = 5;
    const cgam_named_array array = {"a", CGAM_F64, 0, NULL, &value};
    const char *files[] = {"one.npy", "one.npz", "one.safetensors", "one.csv"};
    write_one(env, scratch(files[0]), 5);
    CHECK_STATUS(env, cgam_arrays_write(env, scratch(files[1]), 1, &array));
    CHECK_STATUS(env, cgam_arrays_write(env, scratch(files[2]), 1, &array));
    put_text(files[3], "5\n");
    int kept = dup(0);
    for (int i = 0; i < 4; i++) {
        size_t size;
        uint8_t *bytes = get(scratch(files[i]), &size);
        for (int way = 0; way < 4; way++) {
            char name[32];
            int ends[2];
            assert_int_equal(pipe(ends), 0);
            assert_int_equal(write(ends[1], bytes, size), size);
            close(ends[1]);
            snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
            if (way < 2) assert_int_equal(dup2(ends[0], 0), 0);
            if (way == 2) { /* a file as standard input */
                assert_non_null(freopen(scratch(files[i]), "rb", stdin));
                assert_int_equal(fileno(stdin), 0);
            }
            const char *ways[] = {"-", "/dev/stdin", "-", name};
            CHECK_CLOSE(read_one(env, ways[way]), 5, 0);
            close(ends[0]);
        }
        free(bytes);
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    assert_int_equal(dup2(ends[0], 0), 0);
    close(ends[0]);
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "standard input: the file is empty", "-");
    dup2(kept, 0);
    close(kept);
    scratch_files(true);
}

TEST_ENV(files_that_cannot_be_read_are_told)
{
    cgam_array a;
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "absent.npy: No such file or directory",
                       scratch("absent.npy"));
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "absent.npz:a: No such file",
                       scratch("absent.npz:a"));
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "Is a directory", scratch_folder);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_array_open(env, "", &a));
    CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, "not a file or a pipe", "/dev/null");
    assert_int_equal(mkfifo(scratch("pipe.npy"), 0600), 0); /* nobody writes: does not wait long */
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "pipe.npy:", scratch("pipe.npy"));
    static const char *const endings[] = {"e.npy", "e.npz", "e.safetensors", "e.csv", "e"};
    for (int i = 0; i < 5; i++) {
        CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, ": the file is empty", put(endings[i], "", 0));
    }
    write_one(env, scratch("one.npy"), 1);
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "no array 'a' (the file holds one unnamed array)",
                       scratch("one.npy:a"));
    if (geteuid() != 0) { /* root may read everything */
        assert_int_equal(chmod(scratch("one.npy"), 0), 0);
        CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "Permission denied", scratch("one.npy"));
    }
    scratch_files(true);
}

/* A message keeps its reason when the path is longer than a message. */
TEST_ENV(a_long_path_leaves_room_for_the_reason)
{
    char path[2000];
    for (size_t i = 0; i < sizeof path; i++) path[i] = i % 100 == 99 ? '/' : 'd';
    memcpy(path + sizeof path - 10, "/tail.npy", 10);
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "/tail.npy: No such file or directory", path);
}

/* The first value that is no number is named, whichever thread finds which. */
TEST(the_first_bad_value_is_named)
{
    OWNED(cgam_env) env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 3;
    assert_int_equal(cgam_env_new(&opts, &env), CGAM_OK);
    enum { ROWS = 1000, COLS = 700 };
    float *values = calloc((size_t)ROWS * COLS, sizeof *values);
    double *out = malloc((size_t)ROWS * COLS * sizeof *out);
    assert_non_null(values);
    assert_non_null(out);
    const int64_t shapes[3][3] = {{ROWS * COLS}, {ROWS, COLS}, {10, 100, COLS}};
    static const char *const want[] = {"z: -inf at row 0, column 280033 (counted from 0)",
                                       "z: -inf at row 400, column 33 (counted from 0)",
                                       "z: -inf at [4, 0, 33] (counted from 0)"};
    values[400 * COLS + 33] = -INFINITY;
    values[400 * COLS + 34] = INFINITY;
    values[999 * COLS + 699] = NAN;
    for (int ndim = 1; ndim <= 3; ndim++) {
        cgam_array a = {
            .dtype = CGAM_F32, .ndim = ndim, .size = (int64_t)ROWS * COLS, .data = values};
        memcpy(a.shape, shapes[ndim - 1], sizeof shapes[0]);
        for (int repeat = 0; repeat < 20; repeat++) {
            CHECK_FAILS(env, CGAM_E_VALUE, cgam_array_read_f64(env, &a, "z", out));
            assert_string_equal(cgam_env_message(env), want[ndim - 1]);
        }
    }
    values[400 * COLS + 33] = values[400 * COLS + 34] = values[999 * COLS + 699] = 1;
    cgam_array a = {.dtype = CGAM_F32, .ndim = 2, .size = (int64_t)ROWS * COLS, .data = values};
    memcpy(a.shape, shapes[1], sizeof shapes[1]);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, "z", out));
    CHECK_CLOSE(out[400 * COLS + 33], 1, 0);
    free(values);
    free(out);
}

TEST_ENV(closing_nothing_is_fine)
{
    cgam_array a = {0};
    cgam_array_close(env, &a);
    cgam_array_close(env, NULL);
    cgam_npy_abandon(NULL);
}

TEST_GROUP(scratch_setup, scratch_teardown)
