/* Tables, documents and folders: the one way out. */
#include "unit/io/scratch.h"

#include "lab/document.h"
#include "lab/folder.h"
#include "lab/table.h"

#include <float.h>
#include <sys/stat.h>

static void expect_file(const char *name, const char *want)
{
    size_t size;
    char *bytes = (char *)get(scratch(name), &size);
    bytes[size] = '\0';
    assert_string_equal(bytes, want);
    free(bytes);
    assert_int_equal(unlink(scratch(name)), 0);
}

static const char *const labels[] = {"plain words", "a, b", "say \"no\"", "two\nlines"};
static const double cells[] = {1,       -0.0, 0.1, NAN,     INFINITY, -INFINITY,
                               2.0 / 3, 1e15, -3,  DBL_MAX, DBL_MIN,  123456789};
static const cgam_table table = {.name = "t",
                                 .about = "everything",
                                 .heads = "what,x,y,z",
                                 .labels = labels,
                                 .rows = 4,
                                 .columns = 3,
                                 .cells = cells};

TEST_ENV(a_table_is_written_in_one_form)
{
    CHECK_STATUS(env, cgam_table_write(env, &table, scratch_folder));
    expect_file("t.csv",
                "what,x,y,z\nplain words,1,-0,0.1\n\"a, b\",,inf,-inf\n"
                "\"say \"\"no\"\"\",0.6666666666666666,1e+15,-3\n"
                "\"two\nlines\",1.7976931348623157e+308,2.2250738585072014e-308,123456789\n");
}

TEST(columns_are_found_by_name)
{
    assert_int_equal(cgam_table_column(&table, "x"), 0);
    assert_int_equal(cgam_table_column(&table, "z"), 2);
    assert_int_equal(cgam_table_column(&table, "what"), -1);
    assert_int_equal(cgam_table_column(&table, "none"), -1);
    assert_true(cgam_cell(&table, 2, "z") == -3);
    assert_true(isnan(cgam_cell(&table, 4, "z")));
    assert_true(isnan(cgam_cell(&table, 0, "what")));
}

TEST_ENV(a_table_with_too_few_names_is_refused)
{
    cgam_table bad = table;
    bad.heads = "what,x,y";
    assert_int_equal(cgam_table_write(env, &bad, scratch_folder), CGAM_E_SHAPE);
    assert_string_equal(cgam_env_message(env), "t.csv: 3 names for 4 columns");
}

TEST_ENV(documents_hold_what_was_put)
{
    json_t *doc = json_object(), *inner = json_object();
    cgam_json_put_int(inner, "n", 7);
    cgam_json_put_real(inner, "none", INFINITY);
    cgam_json_put(inner, "list", cgam_json_reals((double[]){1, 9, NAN, 9, 3}, 3, 2));
    cgam_json_put_text(doc, "word", "x");
    cgam_json_put_text(doc, "nothing", NULL);
    cgam_json_put_bool(doc, "yes", true);
    cgam_json_put(doc, "in", inner);
    assert_int_equal(cgam_json_get_int(doc, "in.n"), 7);
    assert_true(isnan(cgam_json_get_real(doc, "in.none")));
    assert_true(isnan(cgam_json_get_real(doc, "in.n.deeper")));
    assert_true(isnan(cgam_json_nth(doc, "in.list", 1)));
    assert_true(isnan(cgam_json_nth(doc, "in.list", 3)));
    assert_true(cgam_json_nth(doc, "in.list", 2) == 3);
    assert_string_equal(cgam_json_get_text(doc, "word"), "x");
    assert_string_equal(cgam_json_get_text(doc, "in.n"), "");
    CHECK_STATUS(env, cgam_json_save(env, NULL, "d.json", doc));
    assert_int_equal(scratch_files(false), 0);
    char *text;
    CHECK_STATUS(env, cgam_json_text(env, doc, &text));
    assert_true(strncmp(text, "{\n \"word\": \"x\"", 14) == 0 && text[strlen(text) - 1] == '\n');
    cgam_text_free(env, text);
    CHECK_STATUS(env, cgam_json_save(env, scratch_folder, "d.json", doc));
    expect_file("d.json", "{\n \"word\": \"x\",\n \"nothing\": null,\n \"yes\": true,\n \"in\": {\n"
                          "  \"n\": 7,\n  \"none\": null,\n  \"list\": [1.0, null, 3.0]\n }\n}\n");
    json_decref(doc);
}

TEST_ENV(folders_are_made_with_those_above)
{
    const cgam_table empty = {.name = "l", .heads = "a", .columns = 1};
    CHECK_STATUS(env, cgam_table_write(env, &empty, scratch("a/b//c/")));
    expect_file("a/b/c/l.csv", "a\n");
    CHECK_STATUS(env, cgam_folder_make(env, scratch("a/b/c"))); /* there already */
    const char *file = put_text("file", "");
    assert_int_equal(cgam_folder_make(env, scratch("file/below")), CGAM_E_IO);
    assert_non_null(
        strstr(cgam_env_message(env), "file: cannot create the folder: Not a directory"));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(cgam_folder_make(env, ""), CGAM_E_ARG);
    char path[CGAM_PATH_ROOM], name[CGAM_PATH_ROOM];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(cgam_path_join(env, "a", name, path), CGAM_E_ARG);
    assert_int_equal(rmdir(scratch("a/b/c")) | rmdir(scratch("a/b")) | rmdir(scratch("a")), 0);
}

TEST_ENV(folders_are_taken_back_down_to_what_was_there)
{
    CHECK_STATUS(env, cgam_folder_make(env, scratch("a")));
    size_t there = cgam_folder_there(scratch("a/b/c"));
    CHECK_STATUS(env, cgam_folder_make(env, scratch("a/b/c")));
    cgam_folder_unmake(scratch("a/b/c"), there);
    assert_int_equal(rmdir(scratch("a/b")), -1); /* gone already */
    cgam_folder_unmake(scratch("a"), cgam_folder_there(scratch("a")));
    const cgam_table empty = {.name = "l", .heads = "a", .columns = 1};
    there = cgam_folder_there(scratch("a/b/c"));
    CHECK_STATUS(env, cgam_table_write(env, &empty, scratch("a/b")));
    CHECK_STATUS(env, cgam_folder_make(env, scratch("a/b/c")));
    cgam_folder_unmake(scratch("a/b/c"), there); /* b has a file */
    expect_file("a/b/l.csv", "a\n");
    assert_int_equal(rmdir(scratch("a/b")) | rmdir(scratch("a")), 0);
}

TEST_GROUP(scratch_setup, scratch_teardown)
