/* Every allocation of every reader and writer made to fail in turn. */
#include "lab/table.h"
#include "unit/io/scratch.h"

#include "io/array.h"
#include "lab/document.h"
#include "support/failing_alloc.h"

#include "support/owned.h"

static int write_arrays(cgam_env *env, void *arg)
{
    const int64_t shape[] = {2};
    const double values[] = {1, 2};
    const cgam_named_array arrays[] = {{"a", CGAM_F64, 1, shape, values},
                                       {"b", CGAM_F64, 0, NULL, values}};
    if (strstr(arg, ".npy")) return cgam_npy_write(env, arg, CGAM_F64, 1, shape, values);
    return cgam_arrays_write(env, arg, 2, arrays);
}

static int write_table(cgam_env *env, void *arg)
{
    const cgam_table table = {
        .name = "t", .heads = "a,b", .rows = 1, .columns = 2, .cells = (double[]){1, 2}};
    return cgam_table_write(env, &table, arg);
}

static int write_document(cgam_env *env, void *arg)
{
    OWNED(json_t) doc = json_pack("{s:i}", "a", 1);
    char *text = NULL;
    cgam_status status = cgam_json_text(env, doc, &text);
    if (status == CGAM_OK) status = cgam_json_save(env, arg, "d.json", doc);
    cgam_text_free(env, text);
    return status;
}

TEST(readers_say_out_of_memory)
{
    static const char *const files[] = {"f8.npy",
                                        "fortran.npy",
                                        "stored.npz:a",
                                        "deflated.npz:f.npy",
                                        "all.safetensors:f64",
                                        "all.safetensors:bf16",
                                        "all.safetensors:u8",
                                        "m.csv",
                                        "odd.npy",
                                        "whole.npy"};
    put_text("m.csv", "a,b\n1,2\n");
    put("odd.npy", "\x93NUMPY\x01\0\x33\0{'shape':(1,),'fortran_order':False,'descr':'<f4'} \0\0\0",
        65);
    put("whole.npy",
        "\x93NUMPY\x01\0\x32\0{'shape':(2,2),'fortran_order':True,'descr':'<i2'}\0\1\0\2\0\3\0\4",
        68);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s", i < 7 ? data_path(files[i]) : scratch(files[i]));
        assert_true(check_every_allocation(read_array, path) > 2);
    }
    scratch_files(true);
}

/* As large a file as gets a stream of its own. */
static int write_large(cgam_env *env, void *path)
{
    cgam_outfile *out;
    cgam_status status = cgam_outfile_begin(env, path, &out);
    if (status == CGAM_OK) status = cgam_outfile_expect(out, (uint64_t)1 << 22);
    if (status == CGAM_OK && fputs("large", cgam_outfile_stream(out)) < 0) status = CGAM_E_IO;
    if (status == CGAM_OK) return cgam_outfile_commit(out);
    if (out) cgam_outfile_abandon(out);
    return status;
}

TEST(writers_say_out_of_memory_and_leave_nothing)
{
    static const char *const targets[] = {"t.npy", "t.npz", "t.safetensors"};
    for (int i = 0; i < 3; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s", scratch(targets[i]));
        assert_true(check_every_allocation(write_arrays, path) > 3);
        assert_int_equal(scratch_files(true), 1); /* the last run, in which none failed */
    }
    char large[1024];
    snprintf(large, sizeof large, "%s", scratch("large"));
    assert_true(check_every_allocation(write_large, large) > 2);
    assert_int_equal(scratch_files(true), 1);
    assert_true(check_every_allocation(write_table, scratch_folder) > 1);
    assert_true(check_every_allocation(write_document, scratch_folder) > 1);
    assert_int_equal(scratch_files(true), 2);
}

TEST_GROUP(scratch_setup, scratch_teardown)
