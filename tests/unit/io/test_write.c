/* The writers: round trips, the bytes NumPy writes, and targets that stay old when it fails. */
#include "io/array.h"
#include "io/npy.h"
#include "unit/io/scratch.h"

#include "num/cpu/widen.h"

#include <cgam/io.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* 12 elements of a type, from the formulas of generate.py. */
static void fill(cgam_dtype dtype, void *out)
{
    double values[12];
    for (int i = 0; i < 12; i++) values[i] = dtype >= CGAM_I64 ? whole_at(i) : real_at(i);
    if (dtype < CGAM_I64) cgam_narrow(dtype, values, 12, out);
    for (int i = 0; i < 12 && dtype == CGAM_I64; i++) ((int64_t *)out)[i] = (int64_t)values[i];
    for (int i = 0; i < 12 && dtype == CGAM_I32; i++) ((int32_t *)out)[i] = (int32_t)values[i];
}

static void expect_bytes(cgam_env *env, const char *path, cgam_dtype dtype, int ndim,
                         const int64_t *shape, const void *data, size_t size)
{
    cgam_array a;
    CHECK_STATUS(env, cgam_array_open(env, path, &a));
    assert_int_equal(a.dtype, dtype);
    assert_int_equal(a.ndim, ndim);
    for (int k = 0; k < ndim; k++) assert_int_equal(a.shape[k], shape[k]);
    assert_int_equal((size_t)a.size * cgam_dtype_size(dtype), size);
    assert_memory_equal(a.data, data, size);
    cgam_array_close(env, &a);
}

static const struct {
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS];
    size_t elements;
} shapes[] = {
    {0, {0}, 1},        {1, {12}, 12},  {2, {3, 4}, 12},
    {3, {2, 3, 2}, 12}, {2, {0, 4}, 0}, {8, {1, 2, 1, 3, 1, 2, 1, 1}, 12},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

TEST_ENV(npy_survives_the_way_out_and_in)
{
    for (cgam_dtype dtype = CGAM_F64; dtype <= CGAM_I32; dtype++)
        for (int s = 0; s < SHAPES; s++) {
            uint8_t data[96];
            fill(dtype, data);
            cgam_status want = dtype == CGAM_BF16 ? CGAM_E_UNSUPPORTED : CGAM_OK;
            CHECK_FAILS(env, want,
                        cgam_npy_write(env, scratch("a.npy"), dtype, shapes[s].ndim,
                                       shapes[s].shape, data));
            if (want == CGAM_OK)
                expect_bytes(env, scratch("a.npy"), dtype, shapes[s].ndim, shapes[s].shape, data,
                             shapes[s].elements * cgam_dtype_size(dtype));
            else CHECK_MESSAGE(env, "no type for bf16");
        }
    assert_int_equal(scratch_files(true), 1);
}

TEST_ENV(our_npy_is_numpy_s_to_the_byte)
{
    static const char *const files[] = {"f8.npy", "f4.npy", "f2.npy", NULL, "i8.npy", "i4.npy"};
    const int64_t shape[] = {3, 4};
    for (cgam_dtype dtype = CGAM_F64; dtype <= CGAM_I32; dtype++) {
        if (!files[dtype]) continue;
        uint8_t data[96];
        size_t ours_size, theirs_size;
        fill(dtype, data);
        CHECK_STATUS(env, cgam_npy_write(env, scratch("a.npy"), dtype, 2, shape, data));
        uint8_t *ours = get(scratch("a.npy"), &ours_size);
        uint8_t *theirs = get(data_path(files[dtype]), &theirs_size);
        assert_int_equal(ours_size, theirs_size);
        assert_memory_equal(ours, theirs, ours_size);
        free(ours);
        free(theirs);
    }
    scratch_files(true);
}

TEST_ENV(several_arrays_survive_the_way_out_and_in)
{
    static const char *const targets[] = {"all.npz", "all.safetensors"};
    for (int t = 0; t < 2; t++) {
        cgam_named_array arrays[6 * SHAPES];
        uint8_t data[6][96];
        char names[6 * SHAPES][48];
        int count = 0;
        /* Small elements first, so that alignment is not given by the order. */
        for (int dtype = CGAM_I32; dtype >= 0; dtype--) {
            if (t == 0 && dtype == CGAM_BF16) continue;
            fill((cgam_dtype)dtype, data[dtype]);
            for (int s = 0; s < SHAPES; s++) {
                snprintf(names[count], sizeof names[0], "sch\u00f6n \U0001f600/%d:%s \"%d\"", s,
                         cgam_word(cgam_dtype_words, (cgam_dtype)dtype), s);
                arrays[count] = (cgam_named_array){names[count], (cgam_dtype)dtype, shapes[s].ndim,
                                                   shapes[s].shape, data[dtype]};
                count++;
            }
        }
        CHECK_STATUS(env, cgam_arrays_write(env, scratch(targets[t]), count, arrays));
        for (int i = 0; i < count; i++) {
            char path[600];
            snprintf(path, sizeof path, "%s:%.47s", scratch(targets[t]), names[i]);
            expect_bytes(env, path, arrays[i].dtype, arrays[i].ndim, arrays[i].shape,
                         arrays[i].data,
                         shapes[i % SHAPES].elements * cgam_dtype_size(arrays[i].dtype));
            cgam_array a;
            CHECK_STATUS(env, cgam_array_open(env, path, &a));
            assert_int_equal(a.mapped, t == 1); /* safetensors: all aligned, none copied */
            cgam_array_close(env, &a);
        }
    }
    assert_int_equal(scratch_files(true), 2);
}

/* However long the header is, the data after it can be used where they are mapped. */
TEST_ENV(safetensors_data_are_aligned)
{
    const double value = 1;
    char name[] = "nnnnnnnnn";
    for (size_t n = 1; n < sizeof name; n++) {
        const cgam_named_array array = {name + n - 1, CGAM_F64, 0, NULL, &value};
        cgam_array a;
        CHECK_STATUS(env, cgam_arrays_write(env, scratch("a.safetensors"), 1, &array));
        CHECK_STATUS(env, cgam_array_open(env, scratch("a.safetensors"), &a));
        assert_true(a.mapped);
        cgam_array_close(env, &a);
    }
    scratch_files(true);
}

TEST_ENV(the_same_arrays_give_the_same_bytes)
{
    const double value = 1;
    const cgam_named_array array = {"a", CGAM_F64, 0, NULL, &value};
    static const char *const targets[] = {"a.npz", "a.safetensors"};
    for (int t = 0; t < 2; t++) {
        size_t sizes[2];
        uint8_t *bytes[2];
        for (int i = 0; i < 2; i++) {
            CHECK_STATUS(env, cgam_arrays_write(env, scratch(targets[t]), 1, &array));
            bytes[i] = get(scratch(targets[t]), &sizes[i]);
        }
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(bytes[0], bytes[1], sizes[0]);
        /* The hour is not in it: time and date of the member are those of the zip epoch. */
        if (t == 0) assert_memory_equal(bytes[0] + 10, "\0\0\x21\0", 4);
        free(bytes[0]);
        free(bytes[1]);
    }
    scratch_files(true);
}

/* Whether the folder's file system has files without names: a killed writer then leaves nothing. */
static bool nameless_files(void)
{
    int fd = open(scratch_folder, O_WRONLY | O_TMPFILE, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

TEST_ENV(pieces_make_a_whole)
{
    const int64_t shape[] = {3, 4};
    double data[12];
    fill(CGAM_F64, data);
    cgam_npy_writer *writer;
    const char *path = scratch("pieces.npy");
    CHECK_STATUS(env, cgam_npy_begin(env, path, CGAM_F64, 2, shape, &writer));
    CHECK_STATUS(env, cgam_npy_append(writer, data, 5));
    CHECK_STATUS(env, cgam_npy_append(writer, data + 5, 0));
    assert_int_not_equal(access(path, F_OK), 0); /* nothing there yet */
    CHECK_REFUSED(env, CGAM_E_SHAPE, "pieces.npy: 8 elements after 5; the shape has 12",
                  cgam_npy_append(writer, data, 8));
    CHECK_STATUS(env, cgam_npy_append(writer, data + 5, 7));
    CHECK_STATUS(env, cgam_npy_finish(writer));
    expect_bytes(env, path, CGAM_F64, 2, shape, data, sizeof data);

    CHECK_STATUS(env, cgam_npy_begin(env, path, CGAM_F64, 2, shape, &writer));
    CHECK_STATUS(env, cgam_npy_append(writer, data, 11));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "pieces.npy: 11 elements were written; the shape has 12",
                  cgam_npy_finish(writer));
    CHECK_STATUS(env, cgam_npy_begin(env, path, CGAM_F64, 2, shape, &writer));
    assert_int_equal(scratch_files(false), nameless_files() ? 1 : 2);
    cgam_npy_abandon(writer);
    assert_int_equal(scratch_files(false), 1);
    expect_bytes(env, path, CGAM_F64, 2, shape, data, sizeof data); /* the old one is still there */
    scratch_files(true);
}

/* Calls of write that this process has made, by the system's own count; -1 where it keeps none. */
static long writes_so_far(void)
{
    long count = -1;
    char line[128];
    FILE *books = fopen("/proc/self/io", "r");
    while (books && fgets(line, sizeof line, books)) sscanf(line, "syscw: %ld", &count);
    if (books) fclose(books);
    return count;
}

/* Rows may come one by one: a file that is written in small steps is held, and mapped by its readers, in small pages. */
TEST_ENV(a_large_array_is_written_in_large_steps)
{
    enum { ROWS = 3000, COLUMNS = 512 }; /* 6 MB of f32 */
    const int64_t shape[] = {ROWS, COLUMNS};
    float row[COLUMNS] = {0};
    cgam_npy_writer *writer;
    const char *path = scratch("large.npy");
    long before = writes_so_far();
    if (before < 0) skip();
    CHECK_STATUS(env, cgam_npy_begin(env, path, CGAM_F32, 2, shape, &writer));
    for (int i = 0; i < ROWS; i++) {
        row[0] = (float)i;
        CHECK_STATUS(env, cgam_npy_append(writer, row, COLUMNS));
    }
    CHECK_STATUS(env, cgam_npy_finish(writer));
    assert_in_range(writes_so_far() - before, 1, 4);
    cgam_array a;
    CHECK_STATUS(env, cgam_array_open(env, path, &a));
    for (int i = 0; i < ROWS; i++)
        assert_true(((const float *)a.data)[(size_t)i * COLUMNS] == (float)i);
    cgam_array_close(env, &a);
    scratch_files(true);
}

TEST_ENV(bad_requests_are_refused)
{
    const double value = 1;
    const int64_t negative[] = {-1}, huge[] = {INT64_MAX, 2}, one[] = {1};
    const char *path = scratch("bad.npy");
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_npy_write(env, path, CGAM_F64, 1, negative, &value));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_npy_write(env, path, CGAM_F64, 2, huge, &value));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_npy_write(env, path, CGAM_F64, 9, one, &value));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_npy_write(env, path, CGAM_F64, -1, one, &value));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_npy_write(env, path, (cgam_dtype)77, 1, one, &value));
    cgam_named_array two[] = {{"a", CGAM_F64, 1, one, &value}, {"a", CGAM_F64, 1, one, &value}};
    static const char *const targets[] = {"bad.npz", "bad.safetensors"};
    for (int t = 0; t < 2; t++) {
        path = scratch(targets[t]);
        two[1].name = "a";
        CHECK_REFUSED(env, CGAM_E_ARG, "two arrays have the name 'a'",
                      cgam_arrays_write(env, path, 2, two));
        two[1].name = "";
        CHECK_REFUSED(env, CGAM_E_ARG, "array 1 has no name", cgam_arrays_write(env, path, 2, two));
        CHECK_FAILS(env, CGAM_E_ARG, cgam_arrays_write(env, path, 0, two));
        static const char *const not_utf8[] = {
            "b\xff", "\x80", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"};
        for (size_t i = 0; i < sizeof not_utf8 / sizeof *not_utf8; i++) {
            two[1].name = not_utf8[i];
            CHECK_REFUSED(env, CGAM_E_ARG, "the name of array 1 is not UTF-8",
                          cgam_arrays_write(env, path, 2, two));
        }
    }
    two[1].name = "__metadata__";
    CHECK_FAILS(env, CGAM_E_ARG, cgam_arrays_write(env, path, 2, two));
    CHECK_REFUSED(env, CGAM_E_ARG, ".npz or .safetensors",
                  cgam_arrays_write(env, scratch("bad.npy"), 1, two));
    two[0].dtype = CGAM_BF16;
    CHECK_FAILS(env, CGAM_E_UNSUPPORTED, cgam_arrays_write(env, scratch("bad.npz"), 1, two));
    assert_int_equal(scratch_files(true), 0);
}

enum { BIG = 1 << 16 };
static double big[BIG];

static cgam_status write_big(cgam_env *env, const char *path)
{
    const int64_t shape[] = {BIG};
    const cgam_named_array array = {"a", CGAM_F64, 1, shape, big};
    if (strstr(path, ".npy")) return cgam_npy_write(env, path, CGAM_F64, 1, shape, big);
    return cgam_arrays_write(env, path, 1, &array);
}

static const char *const targets_all[] = {"t.npy", "t.npz", "t.safetensors"};

/* A limit on the size of files stands for a full disk: writes fail half-way. */
TEST_ENV(a_full_disk_leaves_the_target_old)
{
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int t = 0; t < 3; t++) {
        const char *path = put_text(targets_all[t], "old");
        small = old;
        small.rlim_cur = 100000;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        cgam_status status = write_big(env, path);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, CGAM_E_IO);
        CHECK_MESSAGE(env, targets_all[t]);
        CHECK_MESSAGE(env, ": cannot write: File too large");
        assert_int_equal(scratch_files(false), 1);
        size_t size;
        uint8_t *bytes = get(path, &size);
        assert_int_equal(size, 3);
        assert_memory_equal(bytes, "old", 3);
        free(bytes);
        scratch_files(true);
    }
    /* A failed piece is remembered, whoever ignores it. */
    cgam_npy_writer *writer;
    const int64_t shape[] = {2 * BIG};
    CHECK_STATUS(env, cgam_npy_begin(env, scratch("p.npy"), CGAM_F64, 1, shape, &writer));
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cgam_status first = cgam_npy_append(writer, big, BIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(first, CGAM_E_IO);
    CHECK_STATUS(env, cgam_npy_append(writer, big, BIG));
    CHECK_REFUSED(env, CGAM_E_IO, "p.npy: cannot write: File too large", cgam_npy_finish(writer));
    assert_int_equal(scratch_files(false), 0);
    signal(SIGXFSZ, SIG_DFL);
}

TEST_ENV(targets_that_cannot_be_are_told)
{
    for (int t = 0; t < 3; t++) {
        char path[512];
        snprintf(path, sizeof path, "%s/absent/%s", scratch_folder, targets_all[t]);
        CHECK_REFUSED(env, CGAM_E_IO, "cannot write: No such file or directory",
                      write_big(env, path));
        assert_int_equal(mkdir(scratch(targets_all[t]), 0700), 0);
        CHECK_REFUSED(env, CGAM_E_IO, "cannot write: Is a directory",
                      write_big(env, scratch(targets_all[t])));
        snprintf(path, sizeof path, "/proc/%s", targets_all[t]); /* no file can be made there */
        CHECK_REFUSED(env, CGAM_E_IO, targets_all[t], write_big(env, path));
        scratch_files(true);
        /* What is no file must not be replaced by one. A pipe of our own stands for devices, which
         * a test must not put at risk. */
        assert_int_equal(mkfifo(scratch(targets_all[t]), 0600), 0);
        CHECK_REFUSED(env, CGAM_E_IO, "not a regular file",
                      write_big(env, scratch(targets_all[t])));
        assert_int_equal(scratch_files(true), 1);
    }
    CHECK_FAILS(env, CGAM_E_IO, cgam_npy_write(env, "", CGAM_F64, 0, NULL, big));
}

TEST_ENV(links_and_modes_are_kept)
{
    struct stat st;
    for (int t = 0; t < 3; t++) {
        put_text("old", "old");
        assert_int_equal(chmod(scratch("old"), 0640), 0);
        assert_int_equal(symlink("old", scratch(targets_all[t])), 0);
        CHECK_STATUS(env, write_big(env, scratch(targets_all[t])));
        assert_int_equal(lstat(scratch(targets_all[t]), &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(stat(scratch("old"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
        assert_true(st.st_size > BIG * 8);
        assert_int_equal(scratch_files(true), 2);
        mode_t mask = umask(022);
        CHECK_STATUS(env, write_big(env, scratch(targets_all[t])));
        umask(mask);
        assert_int_equal(stat(scratch(targets_all[t]), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
        assert_int_equal(scratch_files(true), 1);
    }
}

/* A bare name has no directory part, and a name may be as long as a directory allows. */
TEST_ENV(names_of_every_length_are_written)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(here >= 0);
    assert_int_equal(chdir(scratch_folder), 0);
    char name[256];
    memset(name, 'n', 255);
    memcpy(name + 251, ".npy", 5);
    CHECK_STATUS(env, write_big(env, name));
    CHECK_STATUS(env, write_big(env, "a.npz"));
    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_int_equal(scratch_files(true), 2);
}

TEST_GROUP(scratch_setup, scratch_teardown)
