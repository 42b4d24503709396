/* The .npz reader: archives by NumPy, and archives that lie about sizes, names and methods. */
#include "unit/io/scratch.h"

#include "io/array.h"

#include <cgam/io.h>

/* Opens FILE:MEMBER of the data folder. */
static cgam_status open_member(cgam_env *env, const char *file, const char *member, cgam_array *a)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s%s", data_path(file), *member ? ":" : "", member);
    return cgam_array_open(env, path, a);
}

static void expect_real(cgam_env *env, const cgam_array *a)
{
    double values[12];
    assert_int_equal(a->size, 12);
    CHECK_STATUS(env, cgam_array_read_f64(env, a, "a", values));
    for (int i = 0; i < 12; i++) CHECK_CLOSE(values[i], real_at(i), 0);
}

TEST_ENV(members_of_numpy_are_read)
{
    cgam_array a;
    static const char *const files[] = {"stored.npz", "deflated.npz"};
    static const char *const names[] = {"a", "a.npy"};
    for (int f = 0; f < 2; f++)
        for (int n = 0; n < 2; n++) {
            CHECK_STATUS(env, open_member(env, files[f], names[n], &a));
            assert_int_equal(a.dtype, CGAM_F64);
            assert_false(a.mapped);
            expect_real(env, &a);
            cgam_array_close(env, &a);
        }
    CHECK_STATUS(env, open_member(env, "stored.npz", "b", &a));
    assert_int_equal(a.dtype, CGAM_I32);
    assert_int_equal(((const int32_t *)a.data)[11], 6);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, open_member(env, "deflated.npz", "f", &a));
    for (int i = 0; i < 24; i++) CHECK_CLOSE(((const double *)a.data)[i], i, 0);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, open_member(env, "deflated.npz", "big", &a));
    assert_int_equal(a.size, 99 * 99);
    cgam_array_close(env, &a);
}

TEST_ENV(a_single_array_needs_no_name_and_several_do)
{
    cgam_array a;
    CHECK_STATUS(env, open_member(env, "one.npz", "", &a));
    assert_int_equal(a.dtype, CGAM_F32);
    expect_real(env, &a);
    cgam_array_close(env, &a);
    CHECK_REFUSED(env, CGAM_E_ARG,
                  "stored.npz: holds 3 arrays (a, b, flags); name one as FILE:NAME",
                  open_member(env, "stored.npz", "", &a));
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "stored.npz: no array 'c'; it holds a, b, flags",
                  open_member(env, "stored.npz", "c", &a));
    CHECK_STATUS(env, open_member(env, "stored.npz", "flags", &a)); /* booleans */
    assert_int_equal(a.dtype, CGAM_F32);
    for (int64_t i = 0; i < a.size; i++)
        assert_true(((const float *)a.data)[i] == 0 || ((const float *)a.data)[i] == 1);
    cgam_array_close(env, &a);
}

TEST_ENV(every_prefix_fails)
{
    static const char *const files[] = {"one.npz", "deflated.npz"};
    for (int k = 0; k < 2; k++) {
        size_t size;
        uint8_t *bytes = get(data_path(files[k]), &size);
        char path[600];
        for (size_t n = 0; n < size; n++) {
            snprintf(path, sizeof path, "%s%s", put("prefix.npz", bytes, n), k ? ":a" : "");
            CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "prefix.npz: ", path);
        }
        free(bytes);
    }
}

TEST_ENV(every_bent_byte_is_survived)
{
    static const uint8_t flips[] = {0x01, 0x08, 0x80, 0xff};
    static const char *const files[] = {"one.npz", "deflated.npz"};
    for (int k = 0; k < 2; k++) {
        size_t size;
        uint8_t *bytes = get(data_path(files[k]), &size);
        for (size_t at = 0; at < size; at++)
            for (size_t f = 0; f < sizeof flips; f++) {
                bytes[at] ^= flips[f];
                cgam_file file = cgam_file_borrow(bytes, size);
                cgam_array a = {0};
                const char *member = k ? "a" : NULL;
                cgam_status status = cgam_format_npz.open(env, "bent.npz", &file, member, &a);
                if (status == CGAM_OK)
                    expect_real(env, &a); /* the checksum lets no bent number through */
                else CHECK_MESSAGE(env, "bent.npz");
                cgam_array_close(env, &a);
                bytes[at] ^= flips[f];
            }
        free(bytes);
    }
}

/* Replaces a little-endian field of the local header (at byte 0) and of the directory entry. */
static void set_field(uint8_t *bytes, size_t size, size_t local, size_t central, uint32_t value,
                      int width)
{
    size_t entry = 0;
    for (size_t i = 0; i + 4 <= size; i++)
        if (memcmp(bytes + i, "PK\x01\x02", 4) == 0) entry = i;
    assert_int_not_equal(entry, 0);
    memcpy(bytes + local, &value, (size_t)width);
    memcpy(bytes + entry + central, &value, (size_t)width);
}

/* An archive with one stored member, in plain zip without its 64-bit extension. */
static uint8_t *plain_archive(size_t *size)
{
    cgam_env *env = new_env();
    const int64_t shape[] = {3, 4};
    float values[12] = {0};
    const cgam_named_array array = {"a", CGAM_F32, 2, shape, values};
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("plain.npz"), 1, &array));
    cgam_env_free(env);
    return get(scratch("plain.npz"), size);
}

enum { LOCAL_FLAGS = 6, LOCAL_METHOD = 8, LOCAL_PACKED = 18, LOCAL_SIZE = 22 };
enum { ENTRY_FLAGS = 8, ENTRY_METHOD = 10, ENTRY_PACKED = 20, ENTRY_SIZE = 24 };

TEST_ENV(encryption_and_other_methods_are_told)
{
    size_t size;
    uint8_t *bytes = plain_archive(&size);
    set_field(bytes, size, LOCAL_FLAGS, ENTRY_FLAGS, 1, 2);
    CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, "e.npz:a: encrypted", put("e.npz", bytes, size));
    free(bytes);
    bytes = plain_archive(&size);
    set_field(bytes, size, LOCAL_METHOD, ENTRY_METHOD, 12, 2);
    CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, "compression method", put("m.npz", bytes, size));
    free(bytes);
}

TEST_ENV(sizes_are_claims_that_must_be_possible)
{
    cgam_array a;
    size_t size;
    uint8_t *bytes = plain_archive(&size);
    set_field(bytes, size, LOCAL_SIZE, ENTRY_SIZE, 1 << 30, 4); /* a gigabyte, stored */
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_array_open(env, put("s.npz", bytes, size), &a));
    set_field(bytes, size, LOCAL_METHOD, ENTRY_METHOD, 8, 2); /* and deflated 6 million times */
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT,
                       "s.npz:a: 1073741824 bytes cannot come from 176 deflated bytes",
                       put("s.npz", bytes, size));
    set_field(bytes, size, LOCAL_PACKED, ENTRY_PACKED, 1 << 30, 4); /* from beyond the file */
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_array_open(env, put("s.npz", bytes, size), &a));
    free(bytes);
}

/* The array's header asks for 12 GB where directory and stream have 176 bytes. */
TEST_ENV(a_shape_beyond_the_stream_is_not_allocated)
{
    size_t size;
    uint8_t *bytes = plain_archive(&size);
    char *shape = memmem(bytes, size, "(3, 4), }          ", 19);
    assert_non_null(shape);
    memcpy(shape, "(30000, 100000), } ", 19);
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "truncated: the header promises 12000000000 bytes",
                       put("b.npz", bytes, size));
    free(bytes);
}

/* Here directory and array agree with each other, and the stream with neither. */
TEST_ENV(a_stream_of_another_length_is_told)
{
    cgam_array a;
    CHECK_REFUSED(env, CGAM_E_FORMAT,
                  "short.npz:a: the directory promises 232 bytes, the data end earlier",
                  open_member(env, "short.npz", "", &a));
    CHECK_REFUSED(env, CGAM_E_FORMAT,
                  "long.npz:a: the directory promises 200 bytes, the data end later",
                  open_member(env, "long.npz", "", &a));
}

TEST_ENV(names_given_twice_are_refused)
{
    const int64_t shape[] = {1};
    double value = 1;
    const cgam_named_array arrays[] = {{"a", CGAM_F64, 1, shape, &value},
                                       {"b", CGAM_F64, 1, shape, &value}};
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("twice.npz"), 2, arrays));
    size_t size;
    uint8_t *bytes = get(scratch("twice.npz"), &size);
    for (size_t i = 0; i + 5 <= size; i++)
        if (memcmp(bytes + i, "b.npy", 5) == 0) bytes[i] = 'a';
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "twice.npz: two members have the same name",
                       put("twice.npz", bytes, size));
    free(bytes);
}

TEST_ENV(an_archive_without_arrays_is_told)
{
    static const char nothing[22] = "PK\x05\x06";
    CHECK_REFUSED_FILE(env, CGAM_E_NOT_FOUND, "holds no array",
                       put("none.npz", nothing, sizeof nothing));
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "text.npz: truncated or not a zip archive",
                       put_text("text.npz", "hello"));
}

TEST_GROUP(scratch_setup, scratch_teardown)
