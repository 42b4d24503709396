/* Files and callers stranger than those of test_corners.c: terminals, children without a home, names that fill a message. */
#include "unit/io/scratch.h"

#include "base/env.h"
#include "io/sealed.h"
#include "io/shards.h"
#include "lab/child.h"
#include "lab/folder.h"
#include "lab/journal.h"
#include "lm/gguf.h"
#include "support/failing_alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* A file of tensors: the length of the header, the header, the data. */
static size_t tensors(uint8_t *to, const char *header, size_t data)
{
    uint64_t length = strlen(header);
    memcpy(to, &length, sizeof length);
    memcpy(to + 8, header, length);
    memset(to + 8 + length, 0, data);
    return 8 + length + data;
}

static cgam_status parse(cgam_env *env, const char *header, size_t data)
{
    uint8_t bytes[2048];
    cgam_tensor_table table = {0};
    cgam_status status =
        cgam_tensor_table_parse(env, "t", bytes, tensors(bytes, header, data), &table);
    cgam_tensor_table_free(env, &table);
    return status;
}

#define TENSOR(name, begin, end)                                                                   \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #begin "," #end "]}"

TEST_ENV(tables_with_holes)
{
    CHECK_STATUS(env, parse(env, "{" TENSOR("a", 0, 4) "," TENSOR("b", 4, 8) "}", 8));
    CHECK_REFUSED(env, CGAM_E_FORMAT,
                  "t: tensor 'a' begins at byte 4 of the data, the one before ends at 0: a gap",
                  parse(env, "{" TENSOR("a", 4, 8) "," TENSOR("b", 12, 16) "}", 16));
    CHECK_REFUSED(env, CGAM_E_FORMAT, "t: '__metadata__' is not an object of strings",
                  parse(env, "{\"__metadata__\":{\"k\":1,\"l\":2}," TENSOR("a", 0, 4) "}", 4));
}

/* What is said of a file with many arrays ends in time. */
TEST_ENV(many_names_are_cut)
{
    uint8_t bytes[8192];
    char header[6000];
    size_t used = 0;
    for (int i = 0; i < 40; i++)
        cgam_text_add(
            header, sizeof header, &used,
            "%s\"a_tensor_of_a_rather_long_name_%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
            i ? "," : "{", i);
    cgam_text_add(header, sizeof header, &used, "}");
    cgam_array a;
    CHECK_REFUSED(
        env, CGAM_E_ARG, "a_tensor_of_a_rather_long_name_0, ",
        cgam_array_open(env, put("many.safetensors", bytes, tensors(bytes, header, 0)), &a));
    CHECK_MESSAGE(env, ", ...");
    assert_null(strstr(cgam_env_message(env), "name_39"));
    scratch_files(true);
}

/* A digest of the header that is cut, and a part without one: damaged, both. */
TEST_ENV(digests_that_are_missing)
{
    static const char *const headers[] = {
        "{\"__metadata__\":{\"digest.header\":\"ab\"}," TENSOR("a", 0, 4) "}",
        "{\"__metadata__\":{\"digest.header\":\"0123456789012345678901234567890123456789012345678901234567890123\"}," TENSOR(
            "a", 0, 4) "}",
    };
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[1024];
        cgam_tensor_table table;
        const char *damaged = NULL;
        cgam_file file = cgam_file_borrow(bytes, tensors(bytes, headers[i], 4));
        CHECK_STATUS(env, cgam_tensor_table_parse(env, "t", bytes, file.size, &table));
        CHECK_STATUS(env, cgam_sealed_check(env, &file, &table, &damaged));
        assert_non_null(damaged);
        cgam_tensor_table_free(env, &table);
    }
}

/* Its input and output are files of ours, it starts where we are, and nobody reads its errors. */
TEST(a_child_may_have_files_only)
{
    static const char *const cat[] = {"cat", NULL}, *const echo[] = {"echo", "out", NULL};
    int in = open(put_text("in", "some text"), O_RDONLY),
        out = open(scratch("out"), O_RDWR | O_CREAT, 0666);
    const cgam_child child = {.argv = cat, .in = in, .out = out, .apart = true},
                     plain = {.argv = echo};
    pid_t pid;
    char text[32] = "";
    assert_int_equal(cgam_child_start(&child, &pid), 0);
    assert_int_equal(cgam_child_wait(pid), 0);
    assert_int_equal(pread(out, text, sizeof text, 0), 9);
    assert_string_equal(text, "some text");
    close(in);
    close(out);
    assert_int_equal(cgam_child_start(&plain, &pid), 0);
    assert_int_equal(cgam_child_wait(pid), 0);
    scratch_files(true);
}

/* What is typed is read to the end of input. */
TEST_ENV(a_terminal_is_read_like_a_pipe)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) skip();
    cgam_file file;
    char name[128];
    assert_int_equal(ptsname_r(master, name, sizeof name), 0);
    int hold = open(name, O_RDWR | O_NOCTTY); /* so that what is typed has a line to go to */
    assert_int_equal(write(master, "1 2\n\4", 5), 5);
    CHECK_STATUS(env, cgam_file_map(env, name, &file));
    assert_int_equal(file.size, 4);
    assert_memory_equal(file.bytes, "1 2\n", 4);
    cgam_file_unmap(&file);
    close(hold);
    close(master);
}

TEST(folders_with_many_slashes_are_unmade)
{
    char path[600];
    struct stat st;
    assert_int_equal(mkdir(scratch("f"), 0777), 0);
    snprintf(path, sizeof path, "%s//", scratch("f"));
    cgam_folder_unmake(path, strlen(path) - 2);
    assert_int_not_equal(stat(scratch("f"), &st), 0);
    assert_int_equal(stat(scratch_folder, &st), 0);
}

TEST_ENV(whole_numbers_become_reals)
{
    for (int wide = 0; wide < 2; wide++) {
        static const int32_t narrow[] = {1, -2, 3};
        static const int64_t long_ones[] = {1, -2, 3};
        cgam_array a;
        CHECK_STATUS(env,
                     cgam_npy_write(env, scratch("w.npy"), wide ? CGAM_I64 : CGAM_I32, 1,
                                    (const int64_t[]){3}, wide ? (const void *)long_ones : narrow));
        CHECK_STATUS(env, cgam_array_open(env, scratch("w.npy"), &a));
        CHECK_STATUS(env, cgam_array_reals(env, "w", &a));
        assert_int_equal(a.dtype, CGAM_F64);
        assert_memory_equal(a.data, ((const double[]){1, -2, 3}), 24);
        CHECK_STATUS(env, cgam_array_reals(env, "w", &a)); /* as they are now */
        cgam_array_close(env, &a);
    }
    scratch_files(true);
}

/* ---- GGUF ------------------------------------------------------------------------------------- */

typedef struct gguf_bytes {
    uint8_t bytes[2048];
    size_t size;
} gguf_bytes;

static void add(gguf_bytes *to, uint64_t value, size_t size)
{
    memcpy(to->bytes + to->size, &value, size);
    to->size += size;
}

static void add_text(gguf_bytes *to, const char *text, size_t length)
{
    add(to, length, 8);
    memcpy(to->bytes + to->size, text, length);
    to->size += length;
}

/* One architecture, and two tensors of two numbers of this type, the second of this name. */
static gguf_bytes gguf(const char *architecture, size_t length, uint32_t type, const char *second)
{
    gguf_bytes g = {{0}, 0};
    memcpy(g.bytes, "GGUF", 4);
    g.size = 4;
    add(&g, 3, 4);
    add(&g, 2, 8);
    add(&g, 1, 8);
    add_text(&g, "general.architecture", 20);
    add(&g, 8, 4);
    add_text(&g, architecture, length);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? second : "a";
        add_text(&g, name, strlen(name));
        add(&g, 1, 4);
        add(&g, 2, 8);
        add(&g, type, 4);
        add(&g, (uint64_t)i * 32, 8);
    }
    g.size = (g.size + 31) / 32 * 32 + 64;
    return g;
}

/* One tensor of this type and shape, with so many bytes of data. */
static gguf_bytes gguf_of(uint32_t type, int ndim, const int64_t *shape, size_t data)
{
    gguf_bytes g = {{0}, 0};
    memcpy(g.bytes, "GGUF", 4);
    g.size = 4;
    add(&g, 3, 4);
    add(&g, 1, 8);
    add(&g, 0, 8);
    add_text(&g, "a", 1);
    add(&g, (uint64_t)ndim, 4);
    for (int k = 0; k < ndim; k++) add(&g, (uint64_t)shape[k], 8);
    add(&g, type, 4);
    add(&g, 0, 8);
    g.size = (g.size + 31) / 32 * 32 + data;
    return g;
}

static int parse_gguf(cgam_env *env, void *arg)
{
    const gguf_bytes *g = arg;
    cgam_gguf out;
    cgam_status status = cgam_gguf_parse(env, "t", g->bytes, g->size, &out);
    if (status == CGAM_OK) cgam_gguf_free(env, &out);
    return status;
}

TEST_ENV(models_of_two_tensors)
{
    cgam_gguf out;
    char words[100];
    gguf_bytes g = gguf("llama", 5, 30, "b");
    CHECK_STATUS(env, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
    assert_string_equal(out.architecture, "llama");
    assert_int_equal(out.tensors[1].dtype, CGAM_BF16);
    cgam_gguf_free(env, &out);
    assert_true(check_every_allocation(parse_gguf, &g) >= 3);
    g = gguf("llama", 5, 0, "a");
    CHECK_REFUSED(env, CGAM_E_FORMAT, "tensor 'a'", parse_gguf(env, &g));
    memset(words, 'x', sizeof words);
    g = gguf(words, sizeof words, 0, "b"); /* too long to be one of ours, which is no damage */
    CHECK_STATUS(env, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
    assert_string_equal(out.architecture, "");
    cgam_gguf_free(env, &out);
    g = gguf("ll\0ma", 5, 0, "b");
    CHECK_STATUS(env, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
    assert_string_equal(out.architecture, "");
    cgam_gguf_free(env, &out);
}

/* Rows are whole blocks: of f32 any number, of q8_0 thirty-two numbers in 34 bytes. Data end with the file. */
TEST_ENV(tensors_have_the_bytes_of_their_blocks)
{
    static const struct {
        uint32_t type;
        int ndim;
        int64_t shape[5];
        uint64_t bytes;
    } table[] = {{0, 1, {5}, 20},          {0, 2, {5, 3}, 60},   {1, 3, {3, 2, 2}, 24},
                 {8, 1, {32}, 34},         {8, 2, {32, 3}, 102}, {8, 2, {64, 1}, 68},
                 {8, 2, {3, 32}, 0},       {8, 2, {33, 32}, 0},  {77, 1, {32}, 0},
                 {0, 4, {2, 2, 2, 2}, 64}, {30, 2, {7, 0}, 0},   {0, 0, {0}, 4}};
    cgam_gguf out;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        uint64_t bytes = table[k].bytes;
        gguf_bytes g = gguf_of(table[k].type, table[k].ndim, table[k].shape, bytes);
        CHECK_STATUS(env, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
        assert_int_equal(out.count, 1);
        assert_int_equal(out.tensors[0].bytes, bytes);
        assert_int_equal(out.tensors[0].ndim, table[k].ndim);
        int64_t size = 1;
        for (int i = 0; i < CGAM_GGUF_DIMS; i++) {
            int64_t want = i < table[k].ndim ? table[k].shape[i] : 1;
            assert_int_equal(out.tensors[0].shape[i], want);
            size *= want;
        }
        assert_int_equal(out.tensors[0].size, size);
        cgam_gguf_free(env, &out);
        if (bytes == 0) continue;
        g.size--;
        CHECK_FAILS(env, CGAM_E_FORMAT, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
    }
    gguf_bytes g = gguf_of(0, 5, (int64_t[]){1, 1, 1, 1, 1}, 4);
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
    g = gguf_of(0, 2, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31}, 4);
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_gguf_parse(env, "t", g.bytes, g.size, &out));
}

/* The bytes of each of ggml's types as the parts of its struct, in ggml's order, are what a reader of tensors goes by. */
TEST(every_type_has_the_bytes_of_its_parts)
{
    static const struct {
        int type, numbers, bytes;
    } table[] = {{0, 1, 4},
                 {1, 1, 2},
                 {2, 32, 2 + 16},
                 {3, 32, 2 + 2 + 16},
                 {6, 32, 2 + 4 + 16},
                 {7, 32, 2 + 2 + 4 + 16},
                 {8, 32, 2 + 32},
                 {9, 32, 2 + 2 + 32},
                 {10, 256, 16 + 64 + 2 + 2},
                 {11, 256, 32 + 64 + 12 + 2},
                 {12, 256, 2 + 2 + 12 + 128},
                 {13, 256, 2 + 2 + 12 + 32 + 128},
                 {14, 256, 128 + 64 + 16 + 2},
                 {15, 256, 4 + 256 + 32},
                 {16, 256, 2 + 64},
                 {17, 256, 2 + 64 + 8},
                 {18, 256, 2 + 96},
                 {19, 256, 2 + 32 + 16},
                 {20, 32, 2 + 16},
                 {21, 256, 2 + 64 + 8 + 32 + 4},
                 {22, 256, 2 + 64 + 8 + 8},
                 {23, 256, 2 + 2 + 4 + 128},
                 {24, 1, 1},
                 {25, 1, 2},
                 {26, 1, 4},
                 {27, 1, 8},
                 {28, 1, 8},
                 {29, 256, 32 + 16 + 8},
                 {30, 1, 2},
                 {34, 256, 48 + 4 + 2},
                 {35, 256, 64 + 2},
                 {39, 32, 1 + 16},
                 {40, 64, 4 + 32},
                 {41, 128, 2 + 16},
                 {42, 64, 2 + 16}};
    size_t k = 0;
    for (int type = 0; type < 64; type++) { /* those between are not known */
        bool known = k < sizeof table / sizeof *table && table[k].type == type;
        int bytes, numbers = cgam_gguf_block((uint32_t)type, &bytes);
        assert_int_equal(numbers, known ? table[k].numbers : 0);
        assert_int_equal(bytes, known ? table[k].bytes : 0);
        k += known;
    }
    assert_int_equal(k, sizeof table / sizeof *table);
}

/* ---- Nothing to be had ------------------------------------------------------------------------ */

static int open_busy(cgam_env *env, void *path)
{
    cgam_journal *j;
    cgam_status status = cgam_journal_open(env, path, 1, &j);
    return status == CGAM_E_IO ? CGAM_OK : status;
}

#define BANK "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}"
static int open_shards(cgam_env *env, void *path)
{
    cgam_shards shards;
    cgam_status status = cgam_shards_open(env, path, &shards);
    if (status == CGAM_OK) cgam_shards_close(env, &shards);
    return status;
}

TEST_ENV(memory_runs_out)
{
    cgam_journal *j;
    char path[600], name[5200];
    uint8_t bytes[1024];
    cgam_shards shards;
    snprintf(path, sizeof path, "%s", scratch("j"));
    CHECK_STATUS(env, cgam_journal_open(env, path, 1, &j));
    assert_true(check_every_allocation(open_busy, path) > 1);
    cgam_journal_close(j);
    put("s.safetensors", bytes, tensors(bytes, BANK, 8));
    put_text("i.index.json", "{\"weight_map\": {\"a\": \"s.safetensors\"}}");
    static const char *const ways[] = {"i.index.json", "i.index.json:a", "s*.safetensors:a",
                                       "s.safetensors:a"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s", scratch(ways[i]));
        assert_true(check_every_allocation(open_shards, path) > 1);
    }
    /* a file of the index whose name leaves no room for its path, and a member that leaves none */
    memset(name, 'n', sizeof name);
    FILE *f = fopen(scratch("l.index.json"), "w");
    fprintf(f, "{\"weight_map\": {\"a\": \"%.*s.safetensors\"}}", 5000, name);
    fclose(f);
    CHECK_REFUSED(env, CGAM_E_ARG, "a path is too long",
                  cgam_shards_open(env, scratch("l.index.json"), &shards));
    int pattern = snprintf(name, sizeof name, "%s:", scratch("s*.safetensors")), room = 4096;
    memset(name + pattern, 'n', (size_t)(room + 1 - pattern)); /* the path is one byte shorter */
    name[room + 1] = 0;
    CHECK_REFUSED(env, CGAM_E_ARG, "a path is too long", cgam_shards_open(env, name, &shards));
    name[room] = 0; /* and fits with its end: no such member */
    assert_true(cgam_shards_open(env, name, &shards) != CGAM_OK);
    assert_null(strstr(cgam_env_message(env), "a path is too long"));
    scratch_files(true);
}

TEST_GROUP(scratch_setup, scratch_teardown)
