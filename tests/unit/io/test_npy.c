/* The .npy reader: files by NumPy, every prefix of a file, every field of the header bent. */
#include "unit/io/scratch.h"

#include "io/npy.h"

#include <cgam/io.h>

static void expect(cgam_env *env, const char *file, cgam_dtype dtype, double (*at)(int))
{
    cgam_array a;
    double values[12];
    CHECK_STATUS(env, cgam_array_open(env, data_path(file), &a));
    assert_int_equal(a.dtype, dtype);
    assert_int_equal(a.ndim, 2);
    assert_int_equal(a.shape[0], 3);
    assert_int_equal(a.shape[1], 4);
    assert_int_equal(a.size, 12);
    assert_int_equal((uintptr_t)a.data % cgam_dtype_size(dtype), 0);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, file, values));
    for (int i = 0; i < 12; i++) CHECK_CLOSE(values[i], at(i), 0);
    cgam_array_close(env, &a);
    assert_null(a.data);
}

TEST_ENV(files_of_numpy_are_read)
{
    expect(env, "f8.npy", CGAM_F64, real_at);
    expect(env, "f4.npy", CGAM_F32, real_at);
    expect(env, "f2.npy", CGAM_F16, real_at);
    expect(env, "i8.npy", CGAM_I64, whole_at);
    expect(env, "i4.npy", CGAM_I32, whole_at);
    expect(env, "version2.npy", CGAM_F32, real_at);
    expect(env, "version3.npy", CGAM_F32, real_at);
    expect(env, "fortran.npy", CGAM_F32, real_at);
}

TEST_ENV(row_major_is_mapped_and_fortran_is_copied)
{
    cgam_array a;
    CHECK_STATUS(env, cgam_array_open(env, data_path("f8.npy"), &a));
    assert_true(a.mapped);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, cgam_array_open(env, data_path("fortran.npy"), &a));
    assert_false(a.mapped);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, cgam_array_open(env, data_path("fortran_cube.npy"), &a));
    assert_int_equal(a.ndim, 3);
    for (int i = 0; i < 24; i++) CHECK_CLOSE(((const double *)a.data)[i], i, 0);
    cgam_array_close(env, &a);
}

TEST_ENV(scalars_vectors_and_empty_arrays_have_their_shapes)
{
    cgam_array a;
    double value[4];
    CHECK_STATUS(env, cgam_array_open(env, data_path("scalar.npy"), &a));
    assert_int_equal(a.ndim, 0);
    assert_int_equal(a.size, 1);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, "scalar", value));
    CHECK_CLOSE(value[0], 2.5, 0);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, cgam_array_open(env, data_path("vector.npy"), &a));
    assert_int_equal(a.ndim, 1);
    assert_int_equal(a.shape[0], 4);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, cgam_array_open(env, data_path("empty.npy"), &a));
    assert_int_equal(a.ndim, 2);
    assert_int_equal(a.size, 0);
    assert_non_null(a.data);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, "empty", value));
    cgam_array_close(env, &a);
}

TEST_ENV(types_that_are_not_read_are_named)
{
    static const struct {
        const char *file, *words;
    } cases[] = {
        {"big_endian.npy", "big_endian.npy: '>f4' is big-endian; convert it with a.astype('<f4')"},
        {"complex.npy", "'<c16' (complex numbers)"},
        {"object.npy", "'|O' (Python objects)"},
        {"structured.npy", "structured"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, cases[i].words, data_path(cases[i].file));
    }
}

/* A version 1 file with this header and n bytes of data, opened. */
static cgam_status open_with(cgam_env *env, const char *header, size_t n, cgam_array *a)
{
    uint8_t bytes[1024] = "\x93NUMPY\x01";
    size_t length = strlen(header);
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + 10, header, length);
    return cgam_array_open(env, put("bent.npy", bytes, 10 + length + n), a);
}

/* Least and largest integer of every width, in both orders of a 2 x 1 or 1 x 2 array. */
TEST_ENV(integers_and_booleans_are_widened_exactly)
{
    static const struct {
        const char *type;
        int item;
        uint64_t bits[2];
        double want[2];
        cgam_dtype dtype;
    } cases[] = {
        {"|b1", 1, {1, 0}, {1, 0}, CGAM_F32},
        {"|i1", 1, {0x80, 0x7f}, {-128, 127}, CGAM_F32},
        {"|u1", 1, {0x80, 0xff}, {128, 255}, CGAM_F32},
        {"<i2", 2, {0x8000, 0x7fff}, {-32768, 32767}, CGAM_F32},
        {"<u2", 2, {0, 0xffff}, {0, 65535}, CGAM_F32},
        {"<u4", 4, {0x80000000, 0xffffffff}, {2147483648, 4294967295}, CGAM_F64},
        {"<u8", 8, {1ull << 63, (1ull << 53) + 2}, {0x1p63, 0x1p53 + 2}, CGAM_F64},
    };
    char header[128];
    uint8_t bytes[256];
    cgam_array a;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t item = (size_t)cases[k].item;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (1, 2)}",
                 cases[k].type, k % 2 ? "True" : "False");
        size_t length = strlen(header);
        memcpy(bytes, "\x93NUMPY\x01\x00", 8);
        bytes[8] = (uint8_t)length;
        bytes[9] = 0;
        memcpy(bytes + 10, header, length);
        memcpy(bytes + 10 + length, &cases[k].bits[0], item);
        memcpy(bytes + 10 + length + item, &cases[k].bits[1], item);
        CHECK_STATUS(env, cgam_array_open(env, put("w.npy", bytes, 10 + length + 2 * item), &a));
        assert_int_equal(a.dtype, cases[k].dtype);
        assert_false(a.mapped);
        double got[2];
        CHECK_STATUS(env, cgam_array_read_f64(env, &a, "w.npy", got));
        CHECK_CLOSE_ALL(got, cases[k].want, 2, 0);
        cgam_array_close(env, &a);
    }
    memset(bytes + 10 + strlen(header) + 8, 0xff, 8); /* 2^64 - 1 */
    CHECK_REFUSED_FILE(
        env, CGAM_E_VALUE,
        "w.npy: 18446744073709551615, which f64 cannot hold exactly, at row 0, column 1",
        put("w.npy", bytes, 10 + strlen(header) + 16));
}

TEST_ENV(integers_become_reals_where_reals_are_needed)
{
    const int64_t shape[] = {2, 2}, good[] = {-(1ll << 53), 7, INT64_MIN, 0},
                  bad[] = {1, 2, (1ll << 53) + 1, 3};
    cgam_array a;
    CHECK_STATUS(env, cgam_npy_write(env, scratch("g.npy"), CGAM_I64, 2, shape, good));
    CHECK_STATUS(env, cgam_array_open(env, scratch("g.npy"), &a));
    CHECK_STATUS(env, cgam_array_reals(env, "g.npy", &a));
    assert_int_equal(a.dtype, CGAM_F64);
    for (int i = 0; i < 4; i++) CHECK_CLOSE(((const double *)a.data)[i], (double)good[i], 0);
    cgam_array_close(env, &a);
    CHECK_STATUS(env, cgam_npy_write(env, scratch("b.npy"), CGAM_I64, 2, shape, bad));
    CHECK_STATUS(env, cgam_array_open(env, scratch("b.npy"), &a));
    CHECK_REFUSED(env, CGAM_E_VALUE,
                  "b.npy: 9007199254740993, which f64 cannot hold exactly, at row 1, column 0",
                  cgam_array_reals(env, "b.npy", &a));
    assert_int_equal(a.dtype, CGAM_I64); /* as it was */
    double values[4];
    CHECK_REFUSED(env, CGAM_E_VALUE,
                  "b.npy: 9007199254740993, which f64 cannot hold exactly, at row 1, column 0",
                  cgam_array_read_f64(env, &a, "b.npy", values));
    cgam_array_close(env, &a);
}

TEST_ENV(headers_are_read_strictly)
{
    cgam_array a;
    static const struct {
        const char *header;
        size_t bytes;
        cgam_status status;
        const char *words;
    } cases[] = {
        {"{'shape':(2,),'fortran_order':False,'descr':'<f4'}", 8, CGAM_OK, ""},
        {"{\"descr\": \"<f4\", 'fortran_order': True, 'shape': (2, 1,), }  \n", 8, CGAM_OK, ""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, CGAM_OK, ""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}", 0,
         CGAM_E_FORMAT, "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 0)}", 0, CGAM_OK, ""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", 8, CGAM_E_FORMAT, "comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}x", 8, CGAM_E_FORMAT, "after '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", 8, CGAM_E_FORMAT, "'}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", 16, CGAM_E_FORMAT, "byte 63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8, CGAM_E_FORMAT, "negative"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (02,)}", 8, CGAM_E_FORMAT, "zeros"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L,)}", 8, CGAM_E_FORMAT, "',' or"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}", 8, CGAM_E_FORMAT, "',' or"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2]}", 8, CGAM_E_FORMAT, "'('"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", 4, CGAM_E_FORMAT, "dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 8,
         CGAM_E_FORMAT, "2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8,
         CGAM_E_FORMAT, "4294967296 x 4294967296"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,)}", 8,
         CGAM_E_FORMAT, "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4,
         CGAM_E_UNSUPPORTED, "8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, CGAM_E_FORMAT, "True or False"},
        {"{'descr': '<f4', 'fortran_order': Falsey, 'shape': (2,)}", 8, CGAM_E_FORMAT, "','"},
        {"{'descr': '<f4', 'shape': (2,)}", 8, CGAM_E_FORMAT, "'fortran_order'"},
        {"{'fortran_order': False, 'shape': (2,)}", 8, CGAM_E_FORMAT, "the header lacks 'descr'"},
        {"{'descr': '<f4', 'fortran_order': False}", 8, CGAM_E_FORMAT, "the header lacks 'shape'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8,
         CGAM_E_FORMAT, "second key 'descr'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", 8, CGAM_E_FORMAT,
         "unknown key 'x'"},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", 8, CGAM_E_FORMAT, "'f4'"},
        {"{'descr': '<q9', 'fortran_order': False, 'shape': (2,)}", 8, CGAM_E_FORMAT, "'<q9'"},
        {"{'descr': <f4, 'fortran_order': False, 'shape': (2,)}", 8, CGAM_E_FORMAT, "quotes"},
        {"{'descr': '<f4", 8, CGAM_E_FORMAT, "end of a string"},
        {"{'de\\x73cr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, CGAM_E_FORMAT, "plain"},
        {"{'descr': '<u3', 'fortran_order': False, 'shape': (2,)}", 6, CGAM_E_UNSUPPORTED,
         "another width"},
        {"{'descr': '<i3', 'fortran_order': False, 'shape': (2,)}", 4, CGAM_E_UNSUPPORTED,
         "another width"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}", 4, CGAM_E_UNSUPPORTED,
         "raw bytes"},
        {"{'descr': '>i8', 'fortran_order': False, 'shape': (2,)}", 16, CGAM_E_UNSUPPORTED,
         "a.astype('<i8')"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, CGAM_E_UNSUPPORTED,
         "structured"},
        {"{'descr': [('a', '<f4'", 8, CGAM_E_FORMAT, "']'"},
        {"", 8, CGAM_E_FORMAT, "'{'"},
        {"{}", 8, CGAM_E_FORMAT, "the header lacks 'descr'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7, CGAM_E_FORMAT,
         "truncated: the header promises 8 bytes of data from offset 65, the file has 7"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9, CGAM_E_FORMAT,
         "too long: the header promises 8 bytes of data from offset 65, the file has 9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_status status = open_with(env, cases[i].header, cases[i].bytes, &a);
        if (status != cases[i].status)
            fail_msg("%s gives %d (%s), not %d", cases[i].header, status, cgam_env_message(env),
                     cases[i].status);
        if (status != CGAM_OK) {
            CHECK_MESSAGE(env, cases[i].words);
            CHECK_MESSAGE(env, "bent.npy: ");
        }
        cgam_array_close(env, &a);
    }
}

TEST_ENV(unaligned_data_are_copied)
{
    cgam_array a;
    /* 10 + 55 bytes of header: the floats begin at an odd byte. */
    CHECK_STATUS(env,
                 open_with(env, "{'shape':(2,),'fortran_order':False,'descr':'<f4'}     ", 8, &a));
    assert_int_equal((uintptr_t)a.data % 4, 0);
    assert_false(a.mapped);
    CHECK_CLOSE(((const float *)a.data)[1], 0, 0);
    cgam_array_close(env, &a);
}

/* Every prefix fails and leaves nothing; the whole file is read. */
TEST_ENV(every_prefix_fails)
{
    static const char *const files[] = {"f8.npy", "version2.npy", "fortran.npy", "i4.npy"};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        size_t size;
        uint8_t *bytes = get(data_path(files[k]), &size);
        cgam_array a;
        for (size_t n = 0; n <= size + 1; n++) {
            const char *path = put("prefix.npy", bytes, n);
            cgam_status status = cgam_array_open(env, path, &a);
            assert_int_equal(status, n == size ? CGAM_OK : CGAM_E_FORMAT);
            if (n != size) CHECK_MESSAGE(env, "prefix.npy: ");
            cgam_array_close(env, &a);
        }
        free(bytes);
    }
}

/* A byte of the first 128 replaced by each of a few others: no crash, and an array that comes
 * back has the elements its shape says. */
TEST_ENV(every_bent_byte_is_survived)
{
    size_t size;
    uint8_t *bytes = get(data_path("f4.npy"), &size);
    static const uint8_t values[] = {0, 1, ' ', '0', '9', '(', ')', ',', '\'', 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < 128; at++) {
        uint8_t kept = bytes[at];
        for (size_t v = 0; v < sizeof values; v++) {
            bytes[at] = values[v];
            cgam_file file = cgam_file_borrow(bytes, size);
            cgam_array a = {0};
            cgam_status status = cgam_format_npy.open(env, "bent.npy", &file, NULL, &a);
            if (status == CGAM_OK)
                assert_int_equal((size_t)a.size * cgam_dtype_size(a.dtype), size - 128);
            else CHECK_MESSAGE(env, "bent.npy");
            cgam_array_close(env, &a);
        }
        bytes[at] = kept;
    }
    free(bytes);
}

TEST_ENV(magic_version_and_header_length_are_checked)
{
    size_t size;
    cgam_array a;
    uint8_t *bytes = get(data_path("f4.npy"), &size);
    bytes[6] = 4;
    CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, "version 4.0 at byte 6", put("v.npy", bytes, size));
    bytes[6] = 1;
    bytes[7] = 1;
    CHECK_FAILS(env, CGAM_E_UNSUPPORTED, cgam_array_open(env, put("v.npy", bytes, size), &a));
    bytes[7] = 0;
    bytes[0] = 'x';
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "not a .npy file", put("v.npy", bytes, size));
    bytes[0] = 0x93;
    bytes[9] = 0xff;
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "truncated: the header has", put("v.npy", bytes, size));
    free(bytes);

    bytes = get(data_path("version2.npy"), &size);
    bytes[10] = bytes[11] = 0xff; /* a header of 4 GB */
    CHECK_REFUSED_FILE(env, CGAM_E_UNSUPPORTED, "at most 65536", put("v.npy", bytes, size));
    free(bytes);
}

TEST_GROUP(scratch_setup, scratch_teardown)
