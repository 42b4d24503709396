/* Prompts of one's own: both kinds of file, what is kept of a line, and what is refused. */
#include "lm/prompt_file.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "support/owned.h"

static cgam_status read_bytes(cgam_env *with, const char *bytes, cgam_prompt_file **out)
{
    const cgam_file file = cgam_file_borrow(bytes, strlen(bytes));
    return cgam_prompt_file_read(with, "p.txt", &file, out);
}

static void expect(const cgam_prompt_file *file, int64_t i, int64_t line, const char *text,
                   const char *label)
{
    cgam_prompt_line p = cgam_prompt_file_get(file, i);
    assert_string_equal(p.text, text);
    assert_int_equal(p.line, line);
    if (label) assert_string_equal(p.label, label);
    else assert_null(p.label);
}

TEST(a_line_is_a_prompt_as_it_stands)
{
    OWNED(cgam_prompt_file) file = NULL;
    CHECK_STATUS(env, read_bytes(env,
                                 "\xef\xbb\xbf one blank before, two after  \r\n\n \t\n"
                                 "{x} is no object here\nfin",
                                 &file));
    assert_int_equal(cgam_prompt_file_count(file), 3);
    expect(file, 0, 1, " one blank before, two after  ", NULL);
    expect(file, 1, 4, "{x} is no object here", NULL);
    expect(file, 2, 5, "fin", NULL);
}

TEST(json_lines_carry_labels)
{
    OWNED(cgam_prompt_file) file = NULL;
    CHECK_STATUS(env, read_bytes(env,
                                 "\n  {\"prompt\": \"a\\nb\", \"label\": \"\xc3\xa9t\xc3\xa9\"}\n"
                                 "{\"label\": null, \"prompt\": \"c\", \"more\": [1]}\n",
                                 &file));
    assert_int_equal(cgam_prompt_file_count(file), 2);
    expect(file, 0, 2, "a\nb", "\xc3\xa9t\xc3\xa9");
    expect(file, 1, 3, "c", NULL);
}

TEST(bad_lines_are_named)
{
    static const struct {
        const char *bytes, *words;
    } cases[] = {{"", "p.txt: no prompts"},
                 {"\n \n", "p.txt: no prompts"},
                 {"fine\n\xff\n", "not valid UTF-8"},
                 {"{\"prompt\": \"a\"}\nplain\n", "p.txt:2:1:"},
                 {"{\"prompt\": \"a\"}\n[1]\n", "p.txt:2: no text under \"prompt\""},
                 {"{\"prompt\": \"\"}\n", "p.txt:1: no text under \"prompt\""},
                 {"{\"prompt\": \"a\", \"label\": 3}\n", "p.txt:1: the label is not a string"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_prompt_file *file;
        assert_int_equal(read_bytes(env, cases[i].bytes, &file), CGAM_E_FORMAT);
        assert_null(file);
        CHECK_MESSAGE(env, cases[i].words);
    }
    cgam_prompt_file *file;
    assert_int_equal(cgam_prompt_file_open(env, "/nowhere/p.txt", &file), CGAM_E_NOT_FOUND);
    const cgam_file zero = cgam_file_borrow("a\0b\n", 4);
    assert_int_equal(cgam_prompt_file_read(env, "p.txt", &zero, &file), CGAM_E_FORMAT);
}

static int read_two(cgam_env *with, void *arg)
{
    (void)arg;
    OWNED(cgam_prompt_file) file = NULL;
    cgam_status status =
        read_bytes(with, "{\"prompt\": \"a\", \"label\": \"b\"}\n{\"prompt\": \"c\"}", &file);
    return status;
}

/* 4096 lines are read between two looks at a wish to stop. */
static int read_many(cgam_env *with, void *arg)
{
    OWNED(cgam_prompt_file) file = NULL;
    cgam_status status = read_bytes(with, arg, &file);
    if (status == CGAM_OK) assert_int_equal(cgam_prompt_file_count(file), 4096);
    return status;
}

TEST(every_allocation_may_fail)
{
    check_every_allocation(read_two, NULL);
    static char many[2 * 4096 + 1];
    for (int i = 0; i < 4096; i++) memcpy(many + 2 * (size_t)i, "a\n", 2);
    assert_true(check_every_place(read_many, many) > 0);
}

TEST_GROUP(set_up, tear_down)
