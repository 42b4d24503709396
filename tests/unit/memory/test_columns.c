/* Columns and predicates: closed forms where numbers have more digits than a double, texts that are prefixes of others, places of
 * errors, files that are refused, and every allocation. Random predicates against SQLite are in tests/system/columns.py. */
#include "memory/columns.h"
#include "support/check.h"
#include "support/failing_alloc.h"
#include "support/objects.h"
#include "unit/io/scratch.h"

#include <cgam/bank.h>

#include "support/owned.h"

static const char table[] =
    "id,x,word\n9007199254740993,0.5,a\n9007199254740992,,ab\n"
    "-9223372036854775808,9007199254740992,\n9223372036854775807,-1e-3,\"b,\"\"\"\n";
enum { ROWS = 4 };

static cgam_columns *load(cgam_env *env, const char *text)
{
    cgam_columns *columns = NULL;
    CHECK_STATUS(env,
                 cgam_columns_load(env, put("columns.csv", text, strlen(text)), ROWS, &columns));
    return columns;
}

TEST_ENV(comparisons_are_exact)
{
    static const struct {
        const char *predicate;
        unsigned rows;
    } cases[] = {{"id = 9007199254740993", 1},
                 {"id > 9007199254740992.0", 1 | 8},
                 {"id = 9007199254740992.0", 2},
                 {"id >= 9223372036854775807", 8},
                 {"id < 9223372036854775808.0", 15},
                 {"id <= -9223372036854775808.0", 4},
                 {"id < -9.3e18", 0},
                 {"id != 0.5", 15},
                 {"x = 9007199254740992", 4},
                 {"x < 9007199254740993", 1 | 4 | 8},
                 {"x < 0", 8},
                 {"x != 7", 15},
                 {"x = x", 99},
                 {"not x < 1e300", 2},
                 {"x in (0.5, 9007199254740992, 3)", 1 | 4},
                 {"x not in (0.5)", 2 | 4 | 8},
                 {"word < 'ab'", 1 | 4},
                 {"word = ''", 4},
                 {"\"word\" = 'b,\"'", 8},
                 {"word in ('b', 'ab', 'a', 'ab')", 1 | 2},
                 {"WORD = 'a'", 99},
                 {"word = 'a' OR x < 1 AND id > 0 oR nOt id > 0", 1 | 8 | 4},
                 {"not (word = 'a' or not id > 0)", 2 | 8}};
    OWNED(cgam_columns) columns = load(env, table);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t *mask = NULL;
        cgam_status status = cgam_columns_where(columns, cases[k].predicate, &mask);
        if (cases[k].rows == 99) {
            assert_int_equal(status, CGAM_E_ARG);
            continue;
        }
        CHECK_STATUS(env, status);
        if (mask[0] != cases[k].rows) print_message("%s\n", cases[k].predicate);
        assert_int_equal(mask[0], cases[k].rows);
        cgam_mask_free(env, mask);
    }
}

TEST_ENV(errors_have_a_place)
{
    static const char *const cases[][2] = {
        {"year = 3", "no such column at character 1: year"},
        {"id = 'a'", "at character 6: 'a'"},
        {" word >= 5", "text; it cannot be compared with a number at character 10: 5"},
        {"id = 3 x", "expected 'and' or 'or' at character 8: x"},
        {"(id = 3", "expected ')' at the end"},
        {"id in (1, 2", "expected ')' at the end"},
        {"id not = 1", "expected 'in' after 'not'"},
        {"id = 1e999", "beyond the range of a double at character 6"},
        {"word = 'a", "closing quote is missing at character 8"},
        {"", "expected a column at the end"}};
    OWNED(cgam_columns) columns = load(env, table);
    uint64_t *mask;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(cgam_columns_where(columns, cases[k][0], &mask), CGAM_E_ARG);
        if (!strstr(cgam_env_message(env), cases[k][1]))
            print_message("%s: %s\n", cases[k][0], cgam_env_message(env));
        assert_non_null(strstr(cgam_env_message(env), cases[k][1]));
        assert_null(mask);
    }
}

TEST_ENV(files_that_are_no_columns_are_refused)
{
    static const char *const cases[][2] = {
        {"a,b\n1,2\n1\n1,2\n1,2\n", "line 3: 1 fields, the heading has 2"},
        {"a,a\n1,2\n1,2\n1,2\n1,2\n", "two columns named 'a'"},
        {"a,\n1,2\n1,2\n1,2\n1,2\n", "a name must be"},
        {"a\n1\n2\n", "2 rows for 4 memories"},
        {"a\n\"1\n2\n3\n4\n", "closing quote is missing"},
        {"a\n\"1\"x\n2\n3\n4\n", "text after the closing quote"},
        {"a\n9007199254740993\n\n0.5\n1\n", "no double holds 9007199254740993"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        cgam_columns *columns;
        cgam_status status = cgam_columns_load(
            env, put("bad.csv", cases[k][0], strlen(cases[k][0])), ROWS, &columns);
        assert_true(status == CGAM_E_FORMAT || status == CGAM_E_SHAPE || status == CGAM_E_VALUE);
        if (!strstr(cgam_env_message(env), cases[k][1]))
            print_message("%s\n", cgam_env_message(env));
        assert_non_null(strstr(cgam_env_message(env), cases[k][1]));
        assert_null(columns);
    }
}

TEST_ENV(codes_with_leading_zeros_are_texts)
{
    OWNED(cgam_columns) columns = load(env, "zip;n;e\r\n00420;+1;1e1\r\n1;2;2\r\n2;3;3\r\n3;-4;4");
    const char *type;
    assert_int_equal(cgam_columns_count(columns), 3);
    assert_string_equal(cgam_columns_at(columns, 0, &type), "zip");
    assert_string_equal(type, "text");
    cgam_columns_at(columns, 1, &type);
    assert_string_equal(type, "integer");
    assert_string_equal(cgam_columns_at(columns, 2, &type), "e");
    assert_string_equal(type, "real");
}

static cgam_status select_and_join(cgam_env *env, void *path)
{
    OWNED(cgam_columns) columns = NULL;
    OWNED(cgam_columns) joined = NULL;
    uint64_t *mask = NULL;
    TRY(cgam_columns_load(env, path, ROWS, &columns));
    TRY(cgam_columns_join(columns, 2, (int64_t[]){3, 1}, columns, &joined));
    TRY(cgam_columns_where(joined, "word in ('b','c','d','e','f','g','h','i','b,\"') and not x > 3",
                           &mask));
    cgam_mask_free(env, mask);
    return CGAM_OK;
}

TEST(every_allocation_may_fail)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s", put("columns.csv", table, sizeof table - 1));
    check_every_allocation(select_and_join, path);
}
