/* The CSV reader: what counts as a matrix, and where it stops being one. */
#include "unit/io/scratch.h"

#include <cgam/io.h>
#include <locale.h>

static void expect(cgam_env *env, const char *text, int64_t rows, int64_t cols, const double *want)
{
    cgam_array a;
    CHECK_STATUS(env, cgam_array_open(env, put_text("m.csv", text), &a));
    assert_int_equal(a.dtype, CGAM_F64);
    assert_int_equal(a.ndim, 2);
    assert_int_equal(a.shape[0], rows);
    assert_int_equal(a.shape[1], cols);
    assert_false(a.mapped);
    CHECK_CLOSE_ALL((const double *)a.data, want, rows * cols, 0);
    cgam_array_close(env, &a);
}

TEST_ENV(matrices_are_read)
{
    const double want[] = {1, -2.5, 3e10, 0.1};
    expect(env, "1,-2.5\n3e10,0.1\n", 2, 2, want);
    expect(env, "1,-2.5\n3e10,0.1", 2, 2, want);
    expect(env, "1,-2.5\r\n3e10,0.1\r\n\r\n\n", 2, 2, want);
    expect(env, "a,b\n1,-2.5\n3e10,0.1\n", 2, 2, want);
    expect(env, "\"a, or b\",c\n1,-2.5\n3e10,0.1\n", 2, 2, want);
    expect(env, "# 2 columns\n# of 1\na;b\n1;-2.5\n+3E+10;.1\n", 2, 2, want);
    expect(env, "\xef\xbb\xbf 1 ,\t-2.5 \n 30000000000., 0.1\n", 2, 2, want);
    expect(env, "1\t-2.5\n3e10\t0.1\n", 2, 2, want);
    expect(env, "1\n-2.5\n3e10\n0.1\n", 4, 1, want);
    expect(env, "1 -2.5\n3e10 0.1\n", 2, 2, want);
    expect(env, "# of NumPy\n   1    -2.5  \n 3e10 0.1\n", 2, 2, want);
    expect(env, "layer 5\n1 -2.5\n3e10 0.1\n", 2, 2, want);
    expect(env, "values\n1;-2.5\n3e10;0.1\n", 2, 2, want);
    expect(env, "1,-2.5,3e10,0.1", 1, 4, want);
    const double tiny[] = {4.9406564584124654e-324, 0, 1.7976931348623157e308};
    expect(env, "4.9406564584124654e-324,1e-999,1.7976931348623157e308", 1, 3, tiny);
}

/* Without the ending, text with numbers in front is a matrix; text is not. */
TEST_ENV(content_tells_a_matrix)
{
    static const char *const matrices[] = {"5 6\n", "\357\273\2775\t6\n", "# a\n\na b\n5,6\n",
                                           "-.5,1"};
    static const char *const others[] = {"a 5\nb 6\n", "[5, 6]\n", "5\1 6\n", "{}", "# 5 6\n"};
    cgam_array a;
    for (int i = 0; i < 4; i++) {
        cgam_status status = cgam_array_open(env, put_text("m.txt", matrices[i]), &a);
        if (i == 2) assert_int_equal(status, CGAM_E_FORMAT); /* a matrix with an empty line */
        else assert_int_equal(status, CGAM_OK);
        cgam_array_close(env, &a);
    }
    for (int i = 0; i < 5; i++)
        CHECK_FAILS(env, CGAM_E_UNSUPPORTED,
                    cgam_array_open(env, put_text("m.txt", others[i]), &a));
}

TEST_ENV(errors_name_line_and_column)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"1,2\n3,x\n", "m.csv: line 2, column 2: 'x' is not a number"},
        {"1,x\n3,4\n", "m.csv: line 1, column 2: 'x' is not a number"},
        {"a,b\n1,2\n3,4,5\n", "m.csv: line 3, column 3:"},
        {"1,2\n3\n", "m.csv: line 2, column 2: missing"},
        {"1,2\n3,\n", "m.csv: line 2, column 2: an empty field"},
        {"1,2\n\n3,4\n", "m.csv: line 2 is empty"},
        {"1,2\n3,1e999\n", "line 2, column 2: '1e999' is beyond the range of a double"},
        {"1,2\n3,-1e999\n", "beyond the range"},
        {"1,2\n0x10,4\n", "'0x10' is not a number"},
        {"1,2\n1e,4\n", "'1e' is not a number"},
        {"1,2\n.,4\n", "'.' is not a number"},
        {"1,2\n\"3\",4\n", "'\"3\"' is not a number"},
        {"1,2\n1 2,4\n", "'1 2' is not a number"},
        {"1 2\n3,4 5\n", "line 2, column 1: '3,4' is not a number"},
        {"1 2\n 3\n", "line 2, column 2: missing"},
        {"1 2\n3 4 5\n", "line 2, column 3:"},
        {"a,b\nc,d\n", "line 2, column 1: 'c' is not a number"},
        {"a,b\n", "no row of numbers"},
        {"\n\n", "no row of numbers"},
        {"1,2\n# 3,4\n", "line 2, column 1: '# 3' is not a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, cases[i].words, put_text("m.csv", cases[i].text));
    }
}

TEST_ENV(zero_bytes_and_long_fields_are_errors)
{
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "line 2, column 1", put("m.csv", "1,2\n3\0,4\n", 9));
    char digits[2000];
    memset(digits, '1', sizeof digits);
    memcpy(digits, "1,2\n", 4);
    CHECK_REFUSED_FILE(env, CGAM_E_FORMAT, "too long for a number",
                       put("m.csv", digits, sizeof digits));
}

TEST_ENV(nan_and_inf_are_read_so_that_they_can_be_named)
{
    cgam_array a;
    double values[4];
    CHECK_STATUS(env, cgam_array_open(env, put_text("m.csv", "1,2\n3,-Inf\n"), &a));
    CHECK_REFUSED(env, CGAM_E_VALUE, "m.csv: -inf at row 1, column 1 (counted from 0)",
                  cgam_array_read_f64(env, &a, "m.csv", values));
    cgam_array_close(env, &a);
    CHECK_STATUS(env, cgam_array_open(env, put_text("m.csv", "NaN,2\n3,4\n"), &a));
    CHECK_REFUSED(env, CGAM_E_VALUE, "m.csv: nan at row 0, column 0 (counted from 0)",
                  cgam_array_read_f64(env, &a, "m.csv", values));
    cgam_array_close(env, &a);
}

/* A program may run under a locale with a decimal comma; the files have a point all the same. */
TEST_ENV(the_locale_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && !setlocale(LC_NUMERIC, names[i])) i++;
    if (i == sizeof names / sizeof *names) skip();
    const double want[] = {1.5, 2.25};
    expect(env, "1.5,2.25\n", 1, 2, want);
    setlocale(LC_NUMERIC, "C");
}

TEST_GROUP(scratch_setup, scratch_teardown)
