/* The .safetensors reader: every type, every prefix, every way for offsets to lie. */
#include "unit/io/scratch.h"

#include "io/safetensors.h"

#include <cgam/io.h>

static cgam_status open_member(cgam_env *env, const char *file, const char *member, cgam_array *a)
{
    char path[1024];
    snprintf(path, sizeof path, "%s:%s", file, member);
    return cgam_array_open(env, path, a);
}

TEST_ENV(every_type_is_read)
{
    char file[512];
    snprintf(file, sizeof file, "%s", data_path("all.safetensors"));
    for (cgam_dtype dtype = CGAM_F64; dtype <= CGAM_I32; dtype++) {
        cgam_array a;
        double values[12];
        CHECK_STATUS(env, open_member(env, file, cgam_word(cgam_dtype_words, dtype), &a));
        assert_int_equal(a.dtype, dtype);
        assert_int_equal(a.shape[0], 3);
        assert_int_equal(a.shape[1], 4);
        assert_int_equal((uintptr_t)a.data % cgam_dtype_size(dtype), 0);
        CHECK_STATUS(env, cgam_array_read_f64(env, &a, "all", values));
        for (int i = 0; i < 12; i++)
            CHECK_CLOSE(values[i], dtype >= CGAM_I64 ? whole_at(i) : real_at(i), 0);
        cgam_array_close(env, &a);
    }
    cgam_array a;
    CHECK_STATUS(env, open_member(env, file, "u8", &a));
    assert_int_equal(a.dtype, CGAM_F32);
    for (int i = 0; i < 12; i++) CHECK_CLOSE(((const float *)a.data)[i], i, 0);
    cgam_array_close(env, &a);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, open_member(env, file, "f8", &a));
    CHECK_REFUSED_FILE(env, CGAM_E_ARG, "holds 7 arrays (f64, f32, f16, bf16, i64, i32, u8)", file);
}

TEST_ENV(every_prefix_fails)
{
    size_t size;
    uint8_t *bytes = get(data_path("all.safetensors"), &size);
    for (size_t n = 0; n <= size + 1; n++) {
        cgam_array a;
        cgam_status status = open_member(env, put("prefix.safetensors", bytes, n), "f64", &a);
        assert_int_equal(status, n == size ? CGAM_OK : CGAM_E_FORMAT);
        if (n != size) CHECK_MESSAGE(env, "prefix.safetensors: ");
        cgam_array_close(env, &a);
    }
    free(bytes);
}

TEST_ENV(every_bent_byte_is_survived)
{
    size_t size;
    uint8_t *bytes = get(data_path("all.safetensors"), &size);
    static const uint8_t values[] = {0, '0', '9', '"', '{', '}', ',', '-', 0x80, 0xff};
    for (size_t at = 0; at < size; at++) {
        uint8_t kept = bytes[at];
        for (size_t v = 0; v < sizeof values; v++) {
            bytes[at] = values[v];
            cgam_file file = cgam_file_borrow(bytes, size);
            cgam_array a = {0};
            if (cgam_format_safetensors.open(env, "bent", &file, "f64", &a) != CGAM_OK)
                CHECK_MESSAGE(env, "bent: ");
            cgam_array_close(env, &a);
        }
        bytes[at] = kept;
    }
    free(bytes);
}

/* A file of this header and n bytes of zeros. */
static const char *make(const char *header, size_t n)
{
    uint8_t bytes[2048] = {0};
    size_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    return put("made.safetensors", bytes, 8 + length + n);
}

#define TENSOR(name, dtype, shape, begin, end)                                                     \
    "\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": [" #begin    \
    ", " #end "]}"

TEST_ENV(headers_are_read_strictly)
{
    static const struct {
        const char *header;
        size_t bytes;
        cgam_status status;
        const char *words;
    } cases[] = {
        {"{" TENSOR("a", "F32", "[2, 1]", 0, 8) "}  ", 8, CGAM_OK, ""},
        {"{" TENSOR("a", "F32", "[]", 0, 4) "}", 4, CGAM_OK, ""},
        {"{" TENSOR("a", "F32", "[0, 5]", 0, 0) "}", 0, CGAM_OK, ""},
        {"{" TENSOR("b", "F32", "[1]", 4, 8) "," TENSOR("a", "I32", "[1]", 0, 4) "}", 8, CGAM_OK,
         ""},
        {"{" TENSOR("a", "I32", "[1]", 0, 4) "," TENSOR("e", "F8_E4M3", "[3]", 4, 7) "}", 7,
         CGAM_OK, ""},
        {"{" TENSOR("a", "I32", "[1]", 0, 4) "," TENSOR("e", "F4", "[3]", 4, 6) "}", 6, CGAM_OK,
         ""},
        {"{" TENSOR("a", "F32", "[2]", 0, 8) "}x", 8, CGAM_E_FORMAT, "end of file expected"},
        {" {" TENSOR("a", "F32", "[2]", 0, 8) "}", 8, CGAM_E_FORMAT, "byte 8 is not a JSON object"},
        {"", 8, CGAM_E_FORMAT, "byte 8 is not a JSON object"},
        {"[1]", 8, CGAM_E_FORMAT, "byte 8 is not a JSON object"},
        {"{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("a", "F32", "[2]", 0, 8) "}", 8,
         CGAM_E_FORMAT, "duplicate object key"},
        {"{" TENSOR("a", "F32", "[2]", 0, 8), 8, CGAM_E_FORMAT, "header, byte 68"},
        {"{" TENSOR("a", "F32", "[2]", 0, 12) "}", 12, CGAM_E_FORMAT,
         "tensor 'a': 2 of F32 needs 8 bytes, data_offsets give 12"},
        {"{" TENSOR("a", "F32", "[-2]", 0, 8) "}", 8, CGAM_E_FORMAT, "negative"},
        {"{" TENSOR("a", "F32", "[2.0]", 0, 8) "}", 8, CGAM_E_FORMAT, "integers"},
        {"{" TENSOR("a", "F32", "2", 0, 8) "}", 8, CGAM_E_FORMAT, "'shape' is not an array"},
        {"{" TENSOR("a", "F32", "[4294967296, 4294967296]", 0, 8) "}", 8, CGAM_E_FORMAT,
         "tensor 'a': the shape 4294967296 x 4294967296 is too large"},
        {"{" TENSOR("a", "F32", "[99999999999999999999]", 0, 8) "}", 8, CGAM_E_FORMAT,
         "too big integer"},
        {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}", 8, CGAM_E_UNSUPPORTED,
         "9 dimensions"},
        {"{" TENSOR("a", "F32", "[2]", 8, 0) "}", 8, CGAM_E_FORMAT, "[begin, end]"},
        {"{" TENSOR("a", "F32", "[2]", -8, 0) "}", 8, CGAM_E_FORMAT, "[begin, end]"},
        {"{" TENSOR("a", "F32", "[2]", 0, 8) "}", 7, CGAM_E_FORMAT,
         "tensor 'a': truncated: it ends at byte 8 of the data, the file has 7"},
        {"{" TENSOR("a", "F32", "[2]", 0, 8) "}", 9, CGAM_E_FORMAT,
         "too long: the tensors end at byte 8 of the data, the file has 9"},
        {"{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[2]", 4, 12) "}", 12,
         CGAM_E_FORMAT, "tensor 'b' begins at byte 4 of the data, the one before ends at 8: an"},
        {"{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[1]", 12, 16) "}", 16,
         CGAM_E_FORMAT, ": a gap"},
        {"{" TENSOR("a", "F32", "[2]", 4, 12) "}", 12, CGAM_E_FORMAT, ": a gap"},
        {"{\"a\": 1}", 0, CGAM_E_FORMAT, "tensor 'a': not an object"},
        {"{\"a\": {}}", 0, CGAM_E_FORMAT, "'dtype'"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0]}}", 4, CGAM_E_FORMAT,
         "[begin, end]"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4], \"x\": 0}}", 4,
         CGAM_E_FORMAT, "keys beside"},
        {"{\"__metadata__\": {\"k\": 1}," TENSOR("a", "F32", "[1]", 0, 4) "}", 4, CGAM_E_FORMAT,
         "'__metadata__' is not an object of strings"},
        {"{\"__metadata__\": []," TENSOR("a", "F32", "[1]", 0, 4) "}", 4, CGAM_E_FORMAT,
         "'__metadata__'"},
        {"{}", 0, CGAM_E_NOT_FOUND, "no array"},
        {"{\"__metadata__\": {\"k\": \"v\"}}", 0, CGAM_E_NOT_FOUND, "no array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_array a;
        cgam_status status = open_member(env, make(cases[i].header, cases[i].bytes), "a", &a);
        if (status != cases[i].status)
            fail_msg("%s gives %d (%s), not %d", cases[i].header, status, cgam_env_message(env),
                     cases[i].status);
        if (status != CGAM_OK) CHECK_MESSAGE(env, cases[i].words);
        cgam_array_close(env, &a);
    }
}

TEST_ENV(header_length_is_checked)
{
    uint8_t bytes[16] = {9, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    const char *name = "length.safetensors";
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT,
                       "truncated: the header has 9 bytes from byte 8, the file has 16",
                       put(name, bytes, 16));
    memset(bytes, 0xff, 8);
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "a header of 18446744073709551615 bytes",
                       put(name, bytes, 16));
}

/* Nesting as deep as the file is long must not exhaust the stack. */
TEST_ENV(deep_nesting_is_refused)
{
    enum { DEPTH = 1 << 18 };
    uint8_t *bytes = malloc(8 + DEPTH);
    assert_non_null(bytes);
    uint64_t length = DEPTH;
    memcpy(bytes, &length, 8);
    memset(bytes + 8, '[', DEPTH);
    memcpy(bytes + 8, "{\"a\":", 5);
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "maximum parsing depth",
                       put("deep.safetensors", bytes, 8 + DEPTH));
    free(bytes);
}

TEST_GROUP(scratch_setup, scratch_teardown)
