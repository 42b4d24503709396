/* What files and callers bring rarely: each branch of the readers and writers that no ordinary file takes. */
#include "io/npy.h"
#include "unit/io/scratch.h"

#include "base/env.h"
#include "io/array.h"
#include "io/sealed.h"
#include "io/shards.h"
#include "lab/document.h"
#include "lab/folder.h"
#include "lab/journal.h"
#include "lab/table.h"
#include "lm/gguf.h"
#include "support/failing_alloc.h"

/* A file with a header of .npy around the text, then data. */
static const char *put_npy(const char *name, const char *header, const void *data, size_t size)
{
    uint8_t bytes[8192];
    size_t length = strlen(header), all = 10 + length;
    if (strchr(header, '}')) all = 10 + (length + 53) / 64 * 64 + 54; /* else it is cut */
    memset(bytes, ' ', all);
    memcpy(bytes, "\x93NUMPY\x01", 7);
    bytes[7] = 0;
    bytes[8] = (uint8_t)((all - 10) & 255);
    bytes[9] = (uint8_t)((all - 10) >> 8);
    memcpy(bytes + 10, header, length);
    if (strchr(header, '}')) bytes[all - 1] = '\n';
    memcpy(bytes + all, data, size);
    return put(name, bytes, all + size);
}

static cgam_status open_one(cgam_env *env, const char *path, double *first)
{
    cgam_array a;
    cgam_status status = cgam_array_open(env, path, &a);
    double *values = status == CGAM_OK ? calloc((size_t)a.size + 1, sizeof *values) : NULL;
    if (status == CGAM_OK) status = cgam_array_read_f64(env, &a, path, values);
    *first = status == CGAM_OK ? values[0] : NAN;
    free(values);
    cgam_array_close(env, &a);
    return status;
}

static bool always(void *user) { return !user; }

TEST_ENV(texts_of_numbers)
{
    static const struct {
        const char *text;
        size_t size; /* 0: all */
        cgam_status status;
    } cases[] = {
        {"1 2 \n3 4 ", 0, CGAM_OK},
        {"a b\n 1  2  \n", 0, CGAM_OK},
        {"  1  2\n \n", 0, CGAM_OK},
        {"x\n1\n+infinity\n", 0, CGAM_E_VALUE},
        {"1\n-inf\n", 0, CGAM_E_VALUE},
        {"1,\n2,3\n", 0, CGAM_E_FORMAT},
        {"1,2\n\x7f", 0, CGAM_E_FORMAT},
        {"1\n2\0", 4, CGAM_E_FORMAT},
        {"1\n-\n", 0, CGAM_E_FORMAT},
        {",1\n", 0, CGAM_E_FORMAT},
        {"1e+\n", 0, CGAM_E_FORMAT},
        {"\xef\xbb\xbf"
         "1\n",
         0, CGAM_OK},
        {"a,b\n\"x\",1\n", 0, CGAM_E_FORMAT},
    };
    double first;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        cgam_status got = open_one(env, put("t.csv", cases[i].text, size), &first);
        if (got != cases[i].status)
            fail_msg("case %zu: %s", i, got ? cgam_env_message(env) : "it was taken");
    }
    assert_int_equal(open_one(env, "t.csv:a", &first), CGAM_E_NOT_FOUND);
    char path[600];
    snprintf(path, sizeof path, "%s:a", scratch("t.csv"));
    assert_int_equal(open_one(env, path, &first), CGAM_E_NOT_FOUND);
    FILE *f = fopen(scratch("t.csv"), "w");
    for (int i = 0; i < 5000; i++) fprintf(f, "%d\n", i);
    fclose(f);
    CHECK_STATUS(env, open_one(env, scratch("t.csv"), &first));
    const cgam_stop stop = {always, NULL};
    cgam_stop_set(&stop);
    assert_int_equal(open_one(env, scratch("t.csv"), &first), CGAM_E_INTERRUPTED);
    cgam_stop_set(NULL);
    scratch_files(true);
}

TEST_ENV(headers_of_arrays)
{
    static const uint8_t zeros[40 * 40 * 4], bytes[] = {1, 2, 3, 4};
    static const int64_t odd[] = {-(((int64_t)1 << 53) + 1)};
    static const double none[] = {NAN};
    static const struct {
        const char *header;
        const void *data;
        size_t size;
        cgam_status status;
    } cases[] = {
        {"{'descr':[(\"a\",\"<f4\")],'fortran_order':False,'shape':()}", zeros, 4,
         CGAM_E_UNSUPPORTED},
        {"{'descr':[('a", zeros, 0, CGAM_E_FORMAT},
        {"{'descr':'>c16','fortran_order':False,'shape':()}", zeros, 16, CGAM_E_UNSUPPORTED},
        {"{'descr':'<f8','fortran_order':", zeros, 0, CGAM_E_FORMAT},
        {"{'descr':'<f8','fortran_order':Tr", zeros, 0, CGAM_E_FORMAT},
        {"{'descr':'<f8','fortran_order':False,'shape':(12", zeros, 0, CGAM_E_FORMAT},
        {"{'descr':'<f8','fortran_order':False,'shape':(99999999999999999999,)}", zeros, 0,
         CGAM_E_FORMAT},
        {"{'descr':'<f8','fortran_order':False,'shape':(9223372036854775809,)}", zeros, 0,
         CGAM_E_FORMAT},
        {"{'descr':'<f8','fortran_order':False,'shape':(1152921504606846975,)}", zeros, 0,
         CGAM_E_FORMAT},
        {"{'descr':'<f8','fortran_order':False,'shape':()}", none, 8, CGAM_E_VALUE},
        {"{'descr':'|u1','fortran_order':True,'shape':(2,2)}", bytes, 4, CGAM_OK},
        {"{'descr':'<f4','fortran_order':True,'shape':(40,40)}", zeros, sizeof zeros, CGAM_OK},
        {"{'descr':'<f4','fortran_order':True,'shape':(0,4)}", zeros, 0, CGAM_OK},
        {"{'descr':'|b1','fortran_order':False,'shape':(2,2)}", bytes, 4, CGAM_E_VALUE},
        {"{'descr':'<i8','fortran_order':False,'shape':()}", odd, 8, CGAM_E_VALUE},
    };
    double first;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = put_npy("t.npy", cases[i].header, cases[i].data, cases[i].size);
        cgam_status got = open_one(env, path, &first);
        if (got != cases[i].status)
            fail_msg("case %zu: %s", i, got ? cgam_env_message(env) : "it was taken");
    }
    cgam_array whole; /* the last one */
    char text[CGAM_SHAPE_TEXT], little[4] = "";
    size_t used = 0;
    CHECK_STATUS(env, cgam_array_open(env, scratch("t.npy"), &whole));
    CHECK_REFUSED(env, CGAM_E_VALUE, "-9007199254740993", cgam_array_reals(env, "t", &whole));
    cgam_array_close(env, &whole);
    assert_string_equal(cgam_shape_text(0, NULL, text), "scalar");
    cgam_text_add(little, sizeof little, &used, "%s", "long");
    assert_int_equal(used, 3);
    CHECK_FAILS(env, CGAM_E_UNSUPPORTED, open_one(env, "/dev/null", &first));
    CHECK_FAILS(env, CGAM_E_UNSUPPORTED, open_one(env, put("t.bin", "\1\2", 2), &first));
    json_t *doc;
    CHECK_FAILS(env, CGAM_E_UNSUPPORTED,
                cgam_json_parse(env, "t", "", ((size_t)1 << 28) + 1, &doc));
    assert_true(isnan(cgam_json_nth(NULL, "a", -1)));
    scratch_files(true);
}

TEST_ENV(archives_hold_other_things_too)
{
    static const struct {
        const char *member;
        cgam_status status;
        double first;
    } cases[] = {{"a", CGAM_OK, -0.6875},         {"flat", CGAM_OK, 1},
                 {"large", CGAM_OK, 0},           {"cut", CGAM_E_FORMAT, 0},
                 {"cut2", CGAM_E_FORMAT, 0},      {"none", CGAM_E_FORMAT, 0},
                 {"readme", CGAM_E_NOT_FOUND, 0}, {"readme.txt", CGAM_E_NOT_FOUND, 0}};
    char path[1024];
    double first;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "%s:%s", data_path("mixed.npz"), cases[i].member);
        assert_int_equal(open_one(env, path, &first), cases[i].status);
        if (cases[i].status == CGAM_OK) CHECK_CLOSE(first, cases[i].first, 0);
    }
    assert_int_equal(open_one(env, data_path("mixed.npz"), &first), CGAM_E_ARG);
    CHECK_MESSAGE(env, "flat");
    scratch_files(true);
}

TEST_ENV(callers_err)
{
    const double x[] = {1, 2, 3};
    const int64_t two[] = {2}, none[] = {-1};
    const cgam_named_array bad[] = {{"a", CGAM_F64, 1, none, x}, {"b", CGAM_F64, 1, two, x}};
    const cgam_named_array twice[] = {
        {"a", CGAM_F64, 1, two, x}, {"a", CGAM_F64, 1, two, x}, {"c", CGAM_F64, 1, two, x}};
    const cgam_named_array apart[] = {twice[0], twice[2], twice[1]};
    cgam_npy_writer *w;
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_arrays_write(env, scratch("t.npz"), 2, bad));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_arrays_write(env, scratch("t.npz"), 3, twice));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_arrays_write(env, scratch("t.npz"), 3, apart));
    CHECK_STATUS(env, cgam_npy_begin(env, scratch("t.npy"), CGAM_F64, 1, two, &w));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_npy_append(w, x, -1));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_npy_append(w, x, 3));
    cgam_npy_abandon(w);
    /* a name that zip has no room for */
    char *name = malloc(70000);
    memset(name, 'n', 69999);
    name[69999] = 0;
    const cgam_named_array lengthy = {name, CGAM_F64, 1, two, x};
    CHECK_FAILS(env, CGAM_E_ARG, cgam_arrays_write(env, scratch("t.npz"), 1, &lengthy));
    /* folders and tables */
    name[5000] = 0;
    char room[CGAM_PATH_ROOM];
    cgam_outfile *out;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_folder_make(env, name));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_path_join(env, name, "x", room));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_folder_remove(env, name, "x"));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_outfile_in(env, name, "x", &out));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_outfile_in(env, scratch_folder, name, &out));
    cgam_folder_unmake(name, 0);
    size_t there = cgam_folder_there(scratch("a//b//"));
    assert_int_equal(there, strlen(scratch_folder) + 1);
    CHECK_STATUS(env, cgam_folder_make(env, scratch("a//b//")));
    cgam_folder_unmake(scratch("a//b//"), there);
    assert_int_equal(scratch_files(false), 0);
    const cgam_table t = {.name = "t", .heads = "a", .rows = 1, .columns = 1, .cells = x};
    cgam_table named = t;
    named.name = name;
    assert_true(isnan(cgam_cell(&t, -1, "a")) && isnan(cgam_cell(&t, 1, "a")));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_table_write(env, &named, scratch_folder));
    free(name);
    cgam_file_unmap(NULL);
    scratch_files(true);
}

TEST_ENV(lent_bytes_go_before_files)
{
    const cgam_memory_file files[] = {{"one", "1\n", 2}};
    cgam_file_overlay overlay = {files, 1, false};
    double first;
    put_text("t.csv", "2\n");
    for (int alone = 0; alone < 2; alone++) {
        overlay.exclusive = alone;
        cgam_file_overlay_set(&overlay);
        CHECK_STATUS(env, open_one(env, "one", &first));
        CHECK_CLOSE(first, 1, 0);
        assert_true(cgam_file_stays("one") && cgam_file_exists("one") && !cgam_file_barred("one"));
        assert_int_equal(cgam_file_stays(scratch("t.csv")), !alone);
        assert_int_equal(cgam_file_exists(scratch("t.csv")), !alone);
        assert_int_equal(open_one(env, scratch("t.csv"), &first),
                         alone ? CGAM_E_NOT_FOUND : CGAM_OK);
        cgam_file_overlay_set(NULL);
    }
    assert_false(cgam_file_stays("-"));
    /* the end of a long path, not from the middle of a letter */
    char name[1203] = "";
    for (int i = 0; i < 600; i++) memcpy(name + 2 * i, "\xc3\xa4", 3);
    for (int i = 0; i < 2; i++) {
        name[1200] = i ? 'x' : '\0';
        const char *tail = cgam_path_tail(name);
        assert_true(strlen(tail) < strlen(name) &&
                    (unsigned char)strpbrk(tail, "\xc3\xa4")[0] == 0xc3);
    }
    scratch_files(true);
}

TEST(every_kind_of_number)
{
    static const uint8_t one[8] = {1};
    static const float f32 = 1;
    static const double f64 = 1;
    for (int kind = 0; kind < CGAM_GGUF_KINDS; kind++) {
        const void *at = kind == CGAM_GGUF_F32   ? (const void *)&f32
                         : kind == CGAM_GGUF_F64 ? (const void *)&f64
                                                 : one;
        cgam_gguf_value v = {.kind = (cgam_gguf_kind)kind, .count = 1, .items = at};
        double x = cgam_gguf_number(&v, 0);
        if (kind == CGAM_GGUF_TEXT || kind == CGAM_GGUF_ARRAY) assert_true(isnan(x));
        else CHECK_CLOSE(x, 1, 0);
    }
    char text[80];
    memset(text, 'x', sizeof text);
    assert_false(cgam_gguf_clean((cgam_gguf_text){text, sizeof text}));
    assert_true(cgam_gguf_clean((cgam_gguf_text){text, 8}));
    cgam_gguf_text word = {"llama.x", 5}; /* a text ends where its length says */
    assert_true(cgam_gguf_is(word, "llama"));
    assert_false(cgam_gguf_is(word, "llamb") || cgam_gguf_is(word, "llam"));
    assert_false(cgam_gguf_is(word, "llama.") || cgam_gguf_is(word, ""));
}

/* key: its kind, in an array or not; then one number. */
static cgam_status parse_number(cgam_env *env, const char *key, uint32_t kind, bool array,
                                uint8_t number, cgam_gguf *g)
{
    static uint8_t bytes[256];
    uint64_t length = strlen(key), counts[] = {0, 1}, one = 1;
    uint32_t head[] = {0x46554747, 3}, nine = 9;
    size_t at = 0;
    memset(bytes, 0, sizeof bytes);
#define ADD(from, size) (memcpy(bytes + at, from, size), at += (size))
    ADD(head, 8), ADD(counts, 16), ADD(&length, 8), ADD(key, length);
    if (array) ADD(&nine, 4);
    ADD(&kind, 4);
    if (array) ADD(&one, 8);
    bytes[at] = number;
    return cgam_gguf_parse(env, "t", bytes, sizeof bytes, g);
}

static cgam_status parse_key(cgam_env *env, const char *key, uint32_t kind, bool array,
                             cgam_gguf *g)
{
    return parse_number(env, key, kind, array, 32, g);
}

TEST_ENV(keys_of_another_kind)
{
    cgam_gguf g;
    CHECK_STATUS(env, parse_key(env, "general.architecture", CGAM_GGUF_U32, false, &g));
    assert_int_equal(g.architecture[0], 0);
    cgam_gguf_free(env, &g);
    CHECK_STATUS(env, parse_key(env, "general.architecture", CGAM_GGUF_U32, true, &g));
    assert_int_equal(g.architecture[0], 0);
    cgam_gguf_free(env, &g);
    CHECK_STATUS(env, parse_key(env, "general.architecture", CGAM_GGUF_TEXT, true, &g));
    assert_int_equal(g.architecture[0], 0);
    cgam_gguf_free(env, &g);
    CHECK_STATUS(env, parse_key(env, "general.alignment", CGAM_GGUF_U32, false, &g));
    cgam_gguf_free(env, &g);
    CHECK_FAILS(env, CGAM_E_FORMAT, parse_key(env, "general.alignment", CGAM_GGUF_U32, true, &g));
    CHECK_FAILS(env, CGAM_E_FORMAT, parse_key(env, "general.alignment", CGAM_GGUF_U16, false, &g));
    for (int align = 0; align < 8; align += 3) { /* 0, 3, 6 */
        CHECK_REFUSED(
            env, CGAM_E_FORMAT, "general.alignment is no",
            parse_number(env, "general.alignment", CGAM_GGUF_U32, false, (uint8_t)align, &g));
    }
    CHECK_REFUSED(env, CGAM_E_FORMAT, "an array", parse_key(env, "a", CGAM_GGUF_ARRAY, true, &g));
    CHECK_REFUSED(env, CGAM_E_FORMAT, "a value of unknown type",
                  parse_key(env, "a", CGAM_GGUF_KINDS, false, &g));
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_gguf_parse(env, "t", (const uint8_t *)"GG", 2, &g));
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_gguf_parse(env, "t", (const uint8_t *)"GGUF\3", 5, &g));
}

TEST_ENV(sealed_files_keep_their_word)
{
    const double x[] = {1, 2};
    const cgam_part part = {"p", "F64", 1, {1, 0}, NULL};
    const cgam_named_array plain = {"a", CGAM_F64, 1, (const int64_t[]){2}, x};
    cgam_sealed *file;
    CHECK_STATUS(env, cgam_sealed_begin(env, scratch("s.safetensors"), 512, &file));
    CHECK_STATUS(env, cgam_sealed_part(file, &part));
    CHECK_FAILS(env, CGAM_E_INTERNAL, cgam_sealed_write(file, x, sizeof x));
    CHECK_FAILS(env, CGAM_E_INTERNAL, cgam_sealed_part(file, &part)); /* nothing was written */
    CHECK_FAILS(env, CGAM_E_INTERNAL, cgam_sealed_commit(file));
    CHECK_STATUS(env, cgam_sealed_begin(env, scratch("s.safetensors"), 64, &file));
    CHECK_FAILS(env, CGAM_E_INTERNAL, cgam_sealed_commit(file)); /* no room for its header */
    assert_int_equal(scratch_files(false), 0);
    cgam_sealed_abandon(NULL);
    /* a file without digests is damaged */
    cgam_file bytes;
    cgam_tensor_table table;
    const char *damaged = NULL;
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("t.safetensors"), 1, &plain));
    CHECK_STATUS(env, cgam_file_map(env, scratch("t.safetensors"), &bytes));
    CHECK_STATUS(env, cgam_tensor_table_parse(env, "t", bytes.bytes, bytes.size, &table));
    CHECK_STATUS(env, cgam_sealed_check(env, &bytes, &table, &damaged));
    assert_non_null(damaged);
    cgam_tensor_table_free(env, &table);
    cgam_tensor_table_free(env, NULL);
    cgam_file_unmap(&bytes);
    scratch_files(true);
}

static int seal(cgam_env *env, void *path)
{
    enum { N = 1 << 21 }; /* more than one piece */
    static double x[N + 8];
    const cgam_part part = {"p", "F64", 1, {N + 8, 0}, x};
    cgam_sealed *file;
    cgam_status status = cgam_sealed_begin(env, path, 512, &file);
    if (status == CGAM_OK) status = cgam_sealed_part(file, &part);
    if (status == CGAM_OK) return cgam_sealed_commit(file);
    cgam_sealed_abandon(file);
    return status;
}

static int check_sealed(cgam_env *env, void *path)
{
    cgam_file bytes;
    cgam_tensor_table table = {0};
    const char *damaged = NULL;
    cgam_status status = cgam_file_map(env, path, &bytes);
    if (status == CGAM_OK)
        status = cgam_tensor_table_parse(env, "t", bytes.bytes, bytes.size, &table);
    if (status == CGAM_OK) status = cgam_sealed_check(env, &bytes, &table, &damaged);
    if (status == CGAM_OK) assert_null(damaged);
    cgam_tensor_table_free(env, &table);
    cgam_file_unmap(&bytes);
    return status;
}

TEST_ENV(large_parts_are_sealed_in_pieces)
{
    const cgam_stop stop = {always, NULL};
    char path[600];
    snprintf(path, sizeof path, "%s", scratch("s.safetensors"));
    assert_true(check_every_allocation(seal, path) > 3);
    assert_true(check_every_allocation(check_sealed, path) > 1);
    cgam_stop_set(&stop);
    assert_int_equal(check_sealed(env, path), CGAM_E_INTERRUPTED);
    cgam_stop_set(NULL);
    cgam_file bytes; /* a part of which the header has no digest is a damaged one */
    cgam_tensor_table table = {0};
    const char *damaged = NULL;
    CHECK_STATUS(env, cgam_file_map(env, path, &bytes));
    CHECK_STATUS(env, cgam_tensor_table_parse(env, "t", bytes.bytes, bytes.size, &table));
    table.tensors[0].name = "q";
    CHECK_STATUS(env, cgam_sealed_check(env, &bytes, &table, &damaged));
    assert_string_equal(damaged, "q");
    cgam_tensor_table_free(env, &table);
    cgam_file_unmap(&bytes);
    scratch_files(true);
}

TEST_ENV(names_of_shards_have_an_order)
{
    static const char *const names[] = {"x.npy",   "x1.npy",  "x01.npy",   "x2.npy",
                                        "x2b.npy", "x10.npy", "x.npyx.npy"};
    cgam_shards shards;
    char path[6000];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_STATUS(env, cgam_npy_write(env, scratch(names[i]), CGAM_F64, 2,
                                         (const int64_t[]){1, 1}, (const double[]){(double)i}));
    CHECK_STATUS(env, cgam_shards_open(env, scratch("x*.npy"), &shards));
    assert_int_equal(shards.count, 7);
    cgam_shards_close(env, &shards);
    put_text("x.jsonl.json", "{\"weight_map\": {}}");
    assert_int_not_equal(cgam_shards_open(env, scratch("x.jsonl.json"), &shards), CGAM_OK);
    memset(path, 'y', sizeof path);
    for (int colon = 0; colon < 2; colon++) {
        snprintf(path + 5000, sizeof path - 5000, "*.npy%s", colon ? ":a" : "");
        assert_int_not_equal(cgam_shards_open(env, path, &shards), CGAM_OK);
        snprintf(path + 5000, sizeof path - 5000, ".json%s", colon ? ":a" : "");
        assert_int_not_equal(cgam_shards_open(env, path, &shards), CGAM_OK);
    }
    scratch_files(true);
}

TEST_ENV(a_journal_here_is_busy_too)
{
    cgam_journal *j, *k;
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(scratch_folder), 0);
    CHECK_STATUS(env, cgam_journal_open(env, "j", 1, &j));
    CHECK_FAILS(env, CGAM_E_IO, cgam_journal_open(env, "j", 1, &k));
    CHECK_STATUS(env, cgam_npy_write(env, "bare.npy", CGAM_F64, 0, NULL, &(double){1}));
    cgam_outfile *out;
    CHECK_STATUS(env, cgam_outfile_begin(env, "bare.npy", &out));
    CHECK_FAILS(env, CGAM_E_IO, cgam_outfile_fail(out, 0));
    CHECK_FAILS(env, CGAM_E_IO, cgam_outfile_commit(out)); /* it has failed before */
    cgam_journal_close(j);
    assert_int_equal(chdir(here), 0);
    scratch_files(true);
}

TEST_GROUP(scratch_setup, scratch_teardown)
