/* A bank that is divided among files: the rows of one file, in the order of names, and no way out of the folder. */
#include "io/array.h"
#include "support/check.h"
#include "support/failing_alloc.h"
#include "support/objects.h"
#include "unit/io/scratch.h"

#include "io/shards.h"

#include "support/owned.h"

enum { N = 46, D = 3, FILES = 12 };

static float rows[N * D];

/* Shard k of FILES; the third is empty. */
static int64_t begin_of(int k) { return k < 3 ? k * 5 : k == 3 ? 10 : 10 + (k - 3) * 4; }

static void write_shards(cgam_env *env)
{
    char name[64], array[16];
    for (int i = 0; i < N * D; i++) rows[i] = (float)(i * i % 97) - 30;
    for (int k = 0; k < FILES; k++) {
        int64_t shape[] = {begin_of(k + 1) - begin_of(k), D};
        const float *from = rows + begin_of(k) * D;
        snprintf(name, sizeof name, "p-%d.npy", k);
        CHECK_STATUS(env, cgam_npy_write(env, scratch(name), CGAM_F32, 2, shape, from));
        snprintf(array, sizeof array, "Z.%d", k);
        snprintf(name, sizeof name, "s-%05d-of-%05d.safetensors", k + 1, FILES);
        cgam_named_array one = {array, CGAM_F32, 2, shape, from};
        CHECK_STATUS(env, cgam_arrays_write(env, scratch(name), 1, &one));
        snprintf(name, sizeof name, "same-%02d.safetensors", k);
        one.name = "Z";
        CHECK_STATUS(env, cgam_arrays_write(env, scratch(name), 1, &one));
    }
}

/* As libraries write it: keys in the order of bytes, so that Z.10 is before Z.2. */
static const char *write_index(void)
{
    static const int order[FILES] = {0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9};
    char text[2048] = "{\"metadata\": {\"total_size\": 552}, \"weight_map\": {";
    for (int k = 0; k < FILES; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s\"Z.%d\": \"s-%05d-of-%05d.safetensors\"", k ? ", " : "", order[k],
                 order[k] + 1, FILES);
    snprintf(text + strlen(text), sizeof text - strlen(text), "}}");
    return put_text("Z.index.json", text);
}

static void holds_all(cgam_env *env, const char *path)
{
    OWNED(cgam_bank) bank = NULL;
    double row[D];
    CHECK_STATUS(env, cgam_bank_load(env, path, NULL, &bank));
    assert_int_equal(cgam_bank_describe(bank).n, N);
    for (int64_t i = 0; i < N; i++) {
        CHECK_STATUS(env, cgam_bank_row(bank, i, row));
        for (int j = 0; j < D; j++) CHECK_CLOSE(row[j], rows[i * D + j], 0);
    }
}

TEST_ENV(rows_come_in_the_order_of_names)
{
    holds_all(env, write_index());
    holds_all(env, scratch("p-*.npy"));
    holds_all(env, scratch("s-0*-of-0001[2].safetensors"));
    holds_all(env, scratch("same-??.safetensors:Z"));
}

TEST_ENV(any_part_can_be_copied)
{
    cgam_shards shards;
    float part[N * D];
    int64_t array;
    CHECK_STATUS(env, cgam_shards_open(env, scratch("p-*.npy"), &shards));
    for (int64_t from = 0; from <= N; from++)
        for (int64_t to = from; to <= N; to++) {
            cgam_shards_copy(&shards, from, to, part);
            assert_memory_equal(part, rows + from * D, (size_t)(to - from) * D * sizeof *part);
        }
    for (int64_t i = 0; i < N; i++) {
        assert_memory_equal(cgam_shards_row(&shards, i, &array), rows + i * D, D * sizeof *rows);
        assert_true(begin_of((int)array) <= i && i < begin_of((int)array + 1));
    }
    cgam_shards_close(env, &shards);
}

TEST_ENV(one_array_of_an_index_stays_mapped)
{
    OWNED(cgam_bank) bank = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s:Z.4", write_index());
    CHECK_STATUS(env, cgam_bank_load(env, path, NULL, &bank));
    assert_int_equal(cgam_bank_describe(bank).n, 4);
    assert_true(cgam_bank_describe(bank).mapped);
}

/* A file that is called like a pattern is that file. */
TEST_ENV(a_file_goes_before_a_pattern)
{
    cgam_bank *bank;
    int64_t shape[] = {2, D};
    CHECK_STATUS(env, cgam_npy_write(env, scratch("p-[1].npy"), CGAM_F32, 2, shape, rows));
    CHECK_STATUS(env, cgam_bank_load(env, scratch("p-[1].npy"), NULL, &bank));
    assert_int_equal(cgam_bank_describe(bank).n, 2);
    cgam_bank_free(bank);
    remove(scratch("p-[1].npy"));
}

static void refused(cgam_env *env, const char *map, cgam_status status, const char *words)
{
    char text[400];
    cgam_bank *bank;
    snprintf(text, sizeof text, "{\"weight_map\": %s}", map);
    CHECK_FAILS(env, status, cgam_bank_load(env, put_text("bad.index.json", text), NULL, &bank));
    assert_null(bank);
    CHECK_MESSAGE(env, words);
}

TEST_ENV(indexes_from_strangers_are_refused)
{
    cgam_bank *bank;
    int64_t wide[] = {2, D + 1}, flat[] = {4}, same[] = {2, D};
    double numbers[2 * (D + 1)] = {1, 2, 3, 4};
    const cgam_named_array other[] = {{"wide", CGAM_F32, 2, wide, rows},
                                      {"flat", CGAM_F32, 1, flat, rows},
                                      {"double", CGAM_F64, 2, same, numbers}};
    CHECK_STATUS(env, cgam_arrays_write(env, scratch("other.safetensors"), 3, other));
#define FIRST "{\"Z.0\": \"s-00001-of-00012.safetensors\", "
    refused(env, FIRST "\"wide\": \"other.safetensors\"}", CGAM_E_SHAPE,
            "other.safetensors:wide: d = 4, the arrays before it have d = 3");
    refused(env, FIRST "\"flat\": \"other.safetensors\"}", CGAM_E_SHAPE, "has 1");
    refused(env, FIRST "\"double\": \"other.safetensors\"}", CGAM_E_SHAPE, "several types");
    refused(env, FIRST "\"x\": \"other.safetensors\"}", CGAM_E_NOT_FOUND, "no array 'x'");
    refused(env, FIRST "\"Z.1\": \"gone.safetensors\"}", CGAM_E_NOT_FOUND, "gone.safetensors");
    refused(env, FIRST "\"Z.0\": \"s-00001-of-00012.safetensors\"}", CGAM_E_FORMAT, "bad.index");
    static const char *const tricks[] = {
        "../a.safetensors", "/etc/a.safetensors", "./a.safetensors", "-", "/dev/stdin", "..", "",
        "p-0.npy"};
    for (size_t k = 0; k < sizeof tricks / sizeof *tricks; k++) {
        char map[100];
        snprintf(map, sizeof map, "{\"x\": \"%s\"}", tricks[k]);
        refused(env, map, CGAM_E_FORMAT, "is not a .safetensors file beside it");
    }
    refused(env, "{\"x\": 7}", CGAM_E_FORMAT, "'x' is not in any file");
    refused(env, "{\"x\": \"a\\u0000.safetensors\"}", CGAM_E_FORMAT, "bad.index");
    refused(env, "{}", CGAM_E_FORMAT, "no 'weight_map'");
    refused(env, "[\"x\"]", CGAM_E_FORMAT, "no 'weight_map'");
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "no matching file",
                  cgam_bank_load(env, scratch("none-*.npy"), NULL, &bank));
    char path[600];
    snprintf(path, sizeof path, "%s:Z.77", write_index());
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "no array 'Z.77'", cgam_bank_load(env, path, NULL, &bank));
}

/* Who may open nothing but what he was lent learns nothing of the disk by patterns. */
TEST_ENV(patterns_do_not_look_past_an_overlay)
{
    cgam_bank *bank;
    cgam_file_overlay_set(&(cgam_file_overlay){.exclusive = true});
    cgam_status got = cgam_bank_load(env, scratch("p-*.npy"), NULL, &bank);
    cgam_file_overlay_set(NULL);
    assert_int_not_equal(got, CGAM_OK);
    assert_null(strstr(cgam_env_message(env), "p-0"));
}

static int load(cgam_env *env, void *arg)
{
    OWNED(cgam_bank) bank = NULL;
    cgam_status status = cgam_bank_load(env, arg, NULL, &bank);
    return status;
}

TEST_ENV(every_allocation_may_fail)
{
    char pattern[600], index[600];
    snprintf(pattern, sizeof pattern, "%s", scratch("p-*.npy"));
    snprintf(index, sizeof index, "%s", write_index());
    check_every_allocation(load, pattern);
    check_every_allocation(load, index);
}

static int setup(void **state)
{
    int failed = scratch_setup(state);
    OWNED(cgam_env) env = object_env(1);
    write_shards(env);
    return failed;
}

TEST_GROUP(setup, scratch_teardown)
