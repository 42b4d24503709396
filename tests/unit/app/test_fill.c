/* Templates over documents: each kind of place once, and what is missing. */
#include "lab/fill.h"
#include "support/check.h"

static char *filled(const char *text, const json_t *doc)
{
    char *out = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&out, &size);
    assert_non_null(to);
    cgam_fill(to, text, doc);
    fclose(to);
    return out;
}

static void every_place_is_filled(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"no place", "no place"},
        {"{n} and {x}", "3 and 0.25"},
        {"{n:5d}|{n:-5d}|{x:8.3f}|{x:.1e}|{name:6s}|{name:.2s}",
         "    3|3    |   0.250|2.5e-01|  bank|ba"},
        {"{bytes/1e6:.1f} MB, {n+1}, {n-1}, {x*2}", "2.5 MB, 4, 2, 0.5"},
        {"{bytes%9+1:d} {n*2-1/10}", "8 0.5"},
        {"{none:4g}|{absent}|{inner.absent:-3d}|", "   -|-|-  |"},
        {"{inner.deep} {list.1.p}", "down 0.75"},
        {"{yes?is {n}|is not} {no?is|is not} {none?a}{zero?a|b}{name?c}{empty?a|d}{list?e}",
         "is 3 is not bcde"},
        {"{name=bank?y|n}{name=ban?y|n}{n=3?y|n}{none=null?y|n}{absent=null?y|n}{no=null?y|n}",
         "ynyyyn"},
        {"{n>2?y|n}{n>3?y|n}", "yn"},
        {"{@list:{#?, }{#}: {p:.2f} of {n} {words.#}}", "0: 0.50 of 3 a, 1: 0.75 of 3 b"},
        {"{@words:{.} }{@pairs:({0:d} {1})}{@absent:x}", "a b (7 0.5)(8 0.25)"},
        {"{@list:{yes?{p>0.6?{p}}}}", "0.75"},
        {"{yes} {no}", "yes no"},
        {"{@inner:{$:-5s}= {.}}", "deep = down"},
        {"{&inner:{deep} {n} {.n}}{&n:x}{&absent:x}", "down 3 -"},
        {"{list.count} {list.last.p} {@words:{@pairs:{words.##}{#}}}", "2 0.75 a0a1b0b1"},
        {"{n=@n?y|n}{n=@x?y|n}", "yn"},
        {"{yes?a\\|b|c} \\{n} one\\\n line", "a|b {n} one line"},
        {"{pairs.0:json}", "[7, 0.5]"},
        {"{x~_se:.2f} {n~_se} {absent~n} {list.0.p~list.1.p:.2f}", "0.25 ± 0.12 3 - 0.50 ± 0.75"},
    };
    json_t *doc = json_loads(
        "{\"n\": 3, \"x\": 0.25, \"x_se\": 0.125, \"name\": \"bank\", \"bytes\": 2500000, \"none\": null, \"yes\": true,"
        " \"no\": false, \"zero\": 0, \"empty\": [], \"inner\": {\"deep\": \"down\"},"
        " \"list\": [{\"p\": 0.5}, {\"p\": 0.75}], \"words\": [\"a\", \"b\"], \"pairs\": [[7, 0.5], [8, 0.25]]}",
        0, NULL);
    assert_non_null(doc);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = filled(cases[i][0], doc);
        if (strcmp(text, cases[i][1]) != 0)
            fail_msg("%s: got '%s', want '%s'", cases[i][0], text, cases[i][1]);
        free(text);
    }
    json_decref(doc);
}

static json_t *square(void *of, int64_t i)
{
    return i < *(int64_t *)of ? cgam_json_object("square=%g", (double)(i * i)) : NULL;
}

static void a_late_list_is_filled_item_by_item(void **state)
{
    (void)state;
    json_t *doc = json_loads("{\"n\": 3, \"list\": [{\"square\": 0}]}", 0, NULL);
    assert_non_null(doc);
    for (int64_t made = 3; made <= 4; made++) {
        char *out = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&out, &size);
        assert_non_null(to);
        cgam_late late = {"list", 4, square, NULL, &made};
        bool fine = cgam_fill_late(to, "{@list:{#}: {square} of {n}, }{list.count}", doc, &late);
        fclose(to);
        assert_int_equal(fine, made == 4);
        assert_int_equal(strncmp(out, "0: 0 of 3, 1: 1 of 3, 2: 4 of 3, ", 33), 0);
        if (fine) assert_string_equal(out + 33, "3: 9 of 3, 1");
        free(out);
    }
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_is_filled),
        cmocka_unit_test(a_late_list_is_filled_item_by_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
