/* JSON: strict in, exact out. */
#include "unit/io/scratch.h"

#include "base/env.h"
#include "lab/document.h"

#include <dlfcn.h>
#include <float.h>
#include <locale.h>

#include "support/owned.h"

static char *print(const json_t *value, int indent)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_true(cgam_json_write(stream, value, indent));
    fclose(stream);
    return text;
}

static void expect_print(const char *in, int indent, const char *want)
{
    OWNED(cgam_env) env = new_env();
    OWNED(json_t) tree = NULL;
    CHECK_STATUS(env, cgam_json_parse(env, "text", in, strlen(in), &tree));
    char *text = print(tree, indent);
    assert_string_equal(text, want);
    free(text);
}

TEST(trees_are_printed_in_order)
{
    expect_print("{\"z\": 1, \"a\": [1, 2.0, -0.0, 1e300], \"m\": {}, \"e\": []}", 0,
                 "{\"z\":1,\"a\":[1,2.0,-0.0,1e+300],\"m\":{},\"e\":[]}");
    expect_print(
        "{\"z\": {\"b\": null, \"a\": true}, \"l\": [1, 0.1], \"t\": [[0, 0.5], [1, 0.25]],"
        "\"o\": [{\"x\": false}], \"e\": [], \"m\": {}}",
        2,
        "{\n  \"z\": {\n    \"b\": null,\n    \"a\": true\n  },\n  \"l\": [1, 0.1],\n"
        "  \"t\": [\n    [0, 0.5],\n    [1, 0.25]\n  ],\n"
        "  \"o\": [\n    {\n      \"x\": false\n    }\n  ],\n  \"e\": [],\n  \"m\": {}\n}");
    expect_print("[\"q\\\" b\\\\ n\\n t\\t c\\u0001 \\u007f \\u00fc / \\u0041\"]", 0,
                 "[\"q\\\" b\\\\ n\\n t\\t c\\u0001 \\u007f \xc3\xbc / A\"]");
    expect_print("[\"r\\r\"]", 0, "[\"r\\r\"]");
    enum { DEEP = 20 }; /* further in than blanks are kept for */
    char in[2 * DEEP + 1] = "", want[DEEP * DEEP * 4 + 100] = "";
    size_t at = 0;
    memset(in, '[', DEEP);
    memset(in + DEEP, ']', DEEP);
    for (int i = 0; i < DEEP; i++)
        cgam_text_add(want, sizeof want, &at, "[%s%*s", i + 1 < DEEP ? "\n" : "]",
                      i + 1 < DEEP ? 2 * i + 2 : 0, "");
    for (int i = DEEP - 2; i >= 0; i--) cgam_text_add(want, sizeof want, &at, "\n%*s]", 2 * i, "");
    expect_print(in, 2, want);
    expect_print("[9223372036854775807, -9223372036854775808]", 0,
                 "[9223372036854775807,-9223372036854775808]");
}

static void expect_real(double value, const char *want)
{
    char text[CGAM_REAL_TEXT];
    assert_string_equal(cgam_real_text(value, text), want);
}

TEST(reals_are_short_and_exact)
{
    expect_real(0, "0.0");
    expect_real(-0.0, "-0.0");
    expect_real(1, "1.0");
    expect_real(0.1, "0.1");
    expect_real(0.1 + 0.2, "0.30000000000000004");
    expect_real(1e15, "1e+15");
    expect_real(123456789012345, "123456789012345.0");
    expect_real(1e22, "1e+22");
    expect_real(2.0 / 3, "0.6666666666666666");
    expect_real(DBL_MAX, "1.7976931348623157e+308");
    expect_real(DBL_TRUE_MIN, "4.94065645841247e-324");
    uint64_t state64 = 1;
    for (int i = 0; i < 200000; i++) {
        char text[CGAM_REAL_TEXT], want[CGAM_REAL_TEXT];
        double value;
        state64 = state64 * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state64 ^ (state64 >> 29);
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        snprintf(want, sizeof want, "%.*g", 15 + i % 3,
                 value); /* a third has 15 digits, a third 16 */
        value = strtod(want, NULL);
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(want, sizeof want, "%.*g", digits, value);
            if (strtod(want, NULL) == value) break;
        }
        double back = strtod(cgam_real_text(value, text), NULL);
        assert_memory_equal(&back, &value, sizeof value);
        assert_non_null(strpbrk(text, ".e"));
        assert_memory_equal(text, want, strlen(want));
    }
}

TEST(what_is_no_number_becomes_null)
{
    const double values[] = {NAN, INFINITY, -INFINITY, 1.5};
    OWNED(json_t) array = json_array();
    for (int i = 0; i < 4; i++)
        assert_int_equal(json_array_append_new(array, cgam_json_real(values[i])), 0);
    char *text = print(array, 0);
    assert_string_equal(text, "[null,null,null,1.5]");
    free(text);
}

/* Letters of two, three and four bytes from the first of each kind on; what is none is marked, byte by byte. */
TEST(text_that_is_no_utf8_is_marked)
{
    static const char letters[] =
        "a\xc2\x80\xc3\xbc\xe0\xa0\x80\xe1\x80\x80\xf0\x90\x80\x80\xf1\x80\x80\x80";
    static const char *const bad[] = {"\xff",         "\xc3",         "\xe0\xa0",
                                      "\xf0\x90\x80", "\xe0\x41\x42", "\x80"};
    static const char *const want[] = {"?", "?", "??", "???", "?AB", "?"};
    for (int i = 0; i < 6; i++) {
        char text[80], marked[80];
        size_t at = strlen(letters);
        snprintf(text, sizeof text, "%s%s", letters, bad[i]);
        memcpy(marked, letters, at);
        for (const char *c = want[i]; *c; c++) {
            const char *mark = *c == '?' ? "\xef\xbf\xbd" : (char[]){*c, 0};
            memcpy(marked + at, mark, strlen(mark) + 1);
            at += strlen(mark);
        }
        OWNED(json_t) got = cgam_json_lossy(text);
        assert_string_equal(json_string_value(got), marked);
    }
    json_t *got = cgam_json_lossy(letters);
    assert_string_equal(json_string_value(got), letters);
    json_decref(got);
    enum { LONG = 1 << 20 }; /* bytes: each costs as much as the one before */
    char *long_text = malloc(LONG + 1);
    memset(long_text, 0xff, LONG);
    long_text[LONG] = '\0';
    got = cgam_json_lossy(long_text);
    assert_int_equal(json_string_length(got), 3 * LONG);
    json_decref(got);
    free(long_text);
    json_t *doc = json_object(); /* a model's name, a path: the document lacks nothing */
    cgam_json_put_text(doc, "name", "\xff\xfe");
    assert_false(cgam_json_ran_short());
    assert_string_equal(json_string_value(json_object_get(doc, "name")),
                        "\xef\xbf\xbd\xef\xbf\xbd");
    json_decref(doc);
}

static int left; /* requests that jansson is given, then none */
static void *some(size_t size) { return left-- > 0 ? malloc(size) : NULL; }

TEST(lists_are_whole_or_none)
{
    const double values[] = {1, -1, 2, -1, 3, -1, 4, -1, 5, -1, 6, -1, 7, -1, 8, -1, 9, -1, 10, -1};
    json_t *list = NULL;
    int tries = 0;
    for (; !list; tries++) {
        left = tries;
        json_set_alloc_funcs(some, free);
        list = cgam_json_reals(values, 10, 2);
        json_set_alloc_funcs(malloc, free);
    }
    assert_true(tries > 10);
    OWNED(json_t) doc = json_pack("{s:o}", "a", list);
    for (int i = 0; i < 10; i++) assert_true(cgam_json_nth(doc, "a", i) == i + 1);
    assert_true(isnan(cgam_json_nth(doc, "a", -1)) && isnan(cgam_json_nth(doc, "a", 10)));
}

TEST_ENV(errors_name_file_line_and_column)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"a\": 1,\n \"a\": 2}", "net.json:2:4: duplicate object key"},
        {"{\"a\": 1,\n \"b\" 2}", "net.json:2:"},
        {"{} x", "net.json:1:"},
        {"{\"a\": nan}", "net.json:1:9: invalid token"},
        {"{\"a\": 1e999}", "real number overflow"},
        {"{\"a\": \"\\u0000\"}", "\\u0000 is not allowed"},
        {"{\"a\": \"\xff\"}", "unable to decode byte 0xff"},
        {"{\"a\": [1, 2", "net.json:1:"},
        {"3", "'[' or '{' expected"},
        {"", "net.json: the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *tree;
        CHECK_REFUSED(env, CGAM_E_FORMAT, cases[i].words,
                      cgam_json_load(env, put_text("net.json", cases[i].text), &tree));
        assert_null(strchr(cgam_env_message(env), '\n'));
        assert_null(tree);
    }
    OWNED(json_t) tree = NULL;
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_json_load(env, scratch("absent.json"), &tree));
    CHECK_STATUS(env, cgam_json_load(env, put_text("net.json", "{\"a\": [1, {}]}\n"), &tree));
    assert_int_equal(json_array_size(json_object_get(tree, "a")), 2);
}

/* A document that lacks a value does not make a fault of another one's a want of memory, nor is it forgotten. */
TEST_ENV(each_document_has_its_own_memory)
{
    json_t *tree;
    cgam_json_put(NULL, "a", json_integer(1));
    CHECK_REFUSED(env, CGAM_E_FORMAT,
                  "text:1:6: ", cgam_json_parse(env, "text", "{\"a\" 1}", 7, &tree));
    assert_true(cgam_json_ran_short());
    assert_false(cgam_json_ran_short());
}

static void *host_gives(size_t size) { return malloc(size); }
static void host_takes_back(void *block) { free(block); }

/* The library watches jansson's requests while it is loaded. Who uses jansson beside it finds it as it was afterwards, or with
 * the functions that were set since. */
TEST(a_host_s_own_functions_stay_when_the_library_leaves)
{
    const char *build = getenv("CGAM_BUILD");
    if (!build) skip();
    char path[4096];
    json_malloc_t before, gives;
    json_free_t back, takes;
    snprintf(path, sizeof path, "%s/lib/libcgam.so", build);
    json_get_alloc_funcs(&before, &back);
    for (int own = 0; own < 2; own++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) fail_msg("%s", dlerror());
        json_get_alloc_funcs(&gives, &takes);
        assert_true(gives != before);
        if (own) json_set_alloc_funcs(host_gives, host_takes_back);
        assert_int_equal(dlclose(library), 0);
        json_get_alloc_funcs(&gives, &takes);
        json_set_alloc_funcs(before, back);
        assert_true(gives == (own ? host_gives : before));
        assert_true(takes == (own ? host_takes_back : back));
    }
}

TEST(a_failing_stream_is_noticed)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full) skip();
    setvbuf(full, NULL, _IONBF, 0);
    json_t *tree = json_pack("[i]", 1);
    assert_false(cgam_json_write(full, tree, 0));
    json_decref(tree);
    fclose(full);
}

/* The decimal point of JSON is a point, whatever the program's locale. */
TEST(the_locale_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && !setlocale(LC_NUMERIC, names[i])) i++;
    if (i == sizeof names / sizeof *names) skip();
    expect_real(0.1, "0.1");
    expect_real(2.0 / 3, "0.6666666666666666");
    expect_real(1, "1.0");
    expect_print("[0.5, 1e-300]", 0, "[0.5,1e-300]");
    setlocale(LC_NUMERIC, "C");
}

TEST_GROUP(scratch_setup, scratch_teardown)
