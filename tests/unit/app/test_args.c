/* Words become checked values: every kind, every error, repeated options, lists, hostile words;
 * from a command line and from JSON. */
#include "app/verb.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "support/owned.h"

static const cgam_param params[] = {
    {.name = "FILE", .kind = CGAM_TEXT, .value = "FILE", .required = true},
    {.name = "MORE", .kind = CGAM_TEXT, .value = "FILE", .many = true},
    {.name = "bold", .kind = CGAM_FLAG},
    {.name = "count", .kind = CGAM_INT, .value = "N", .fallback = "7", .max = 100},
    {.name = "alpha", .kind = CGAM_REAL, .value = "X", .fallback = "0.5", .max = INFINITY},
    {.name = "beta", .kind = CGAM_REAL, .value = "X", .min = CGAM_ABOVE_0, .max = INFINITY},
    {.name = "title", .kind = CGAM_TEXT, .value = "TEXT"},
    {.name = "mode", .kind = CGAM_CHOICE, .value = "first|coupled|flow", .fallback = "first"},
    {.name = "figures", .kind = CGAM_CHOICE, .value = "yes|no", .fallback = "yes"},
    {.name = "shots", .kind = CGAM_INTS, .value = "K,K,..", .fallback = "0,1,4", .max = 64},
    {.name = "layers", .kind = CGAM_INTS, .value = "all|last|L,L,..", .fallback = "all", .max = 9},
    {.name = "lambda", .kind = CGAM_REALS, .value = "X,X,..", .min = -1, .max = 1},
    {.name = "names", .kind = CGAM_WORDS, .value = "WORD,.."},
    {.name = "kinds", .kind = CGAM_WORDS, .value = "add|replace", .fallback = "add,replace"},
    {.name = "edit", .kind = CGAM_TEXT, .value = "EDIT", .many = true},
    {.name = "dataset", .kind = CGAM_CHOICE, .value = "facts|sst2", .many = true},
    {.name = "gain", .kind = CGAM_REALS, .value = "X,X,..", .fallback = "1,2", .many = true},
    {.name = ""},
};
static const cgam_verb verb = {.name = "try this", .params = params};

typedef struct words {
    int count;
    const char *word[16];
} words;
#define WORDS(...)                                                                                 \
    ((words){(int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), {__VA_ARGS__}})

static cgam_env *env;
static cgam_args *args;

static void parse(words w)
{
    CHECK_STATUS(env, cgam_args_parse(env, &verb, w.count, w.word, &args));
}

static void refuse(words w, const char *message)
{
    CHECK_FAILS(env, CGAM_E_ARG, cgam_args_parse(env, &verb, w.count, w.word, &args));
    assert_null(args);
    assert_string_equal(cgam_env_message(env), message);
}

static void from_json(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    CHECK_STATUS(env, cgam_args_json(env, &verb, object, &args));
    json_decref(object); /* values are copies */
}

static void refuse_json(const char *text, const char *message)
{
    OWNED(json_t) value = json_loads(text, 0, NULL);
    assert_non_null(value);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_args_json(env, &verb, value, &args));
    assert_null(args);
    assert_string_equal(cgam_env_message(env), message);
}

static int setup(void **state)
{
    (void)state;
    args = NULL;
    env = object_env(1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cgam_args_free(args);
    cgam_env_free(env);
    return 0;
}

static void expect_ints(const char *name, int64_t count, const int64_t *want)
{
    const int64_t *values;
    assert_int_equal(cgam_args_ints(args, name, &values), count);
    for (int64_t i = 0; i < count; i++) assert_int_equal(values[i], want[i]);
}

static void expect_reals(const char *name, int64_t count, const double *want)
{
    const double *values;
    assert_int_equal(cgam_args_reals(args, name, &values), count);
    CHECK_CLOSE_ALL(values, want, count, 0);
}

static void expect_words(const char *name, words want)
{
    const char *const *values;
    assert_int_equal(cgam_args_words(args, name, &values), want.count);
    for (int i = 0; i < want.count; i++) assert_string_equal(values[i], want.word[i]);
}

TEST_WITH(setup, teardown, defaults_stand_where_nothing_is_said)
{
    parse(WORDS("a.npy"));
    assert_string_equal(cgam_args_text(args, "FILE"), "a.npy");
    assert_true(cgam_args_given(args, "FILE"));
    assert_false(cgam_args_given(args, "count"));
    assert_false(cgam_args_flag(args, "bold"));
    assert_int_equal(cgam_args_int(args, "count"), 7);
    assert_true(cgam_args_real(args, "alpha") == 0.5);
    assert_true(isnan(cgam_args_real(args, "beta")));
    assert_null(cgam_args_text(args, "title"));
    assert_int_equal(cgam_args_choice(args, "mode"), 0);
    assert_int_equal(cgam_args_choice(args, "dataset"), -1);
    assert_true(cgam_args_is(args, "figures", "yes"));
    assert_false(cgam_args_is(args, "title", "yes"));
    expect_ints("shots", 3, (int64_t[]){0, 1, 4});
    assert_string_equal(cgam_args_text(args, "shots"), "0,1,4");
    expect_words("kinds", WORDS("add", "replace"));
    expect_reals("gain", 2, (double[]){1, 2});
    assert_int_equal(cgam_args_count(args, "edit"), 0);
    assert_int_equal(cgam_args_count(args, "lambda"), 0);
    assert_int_equal(cgam_args_int(args, "threads"), 0);
}

TEST_WITH(setup, teardown, every_kind_is_read)
{
    parse(WORDS("--bold", "--count=0", "--alpha", "1e-3", "--beta", "0.125", "--title", "-x",
                "--mode=flow", "--lambda", "-1,0.25, 1", "--names=a,b c,-", "f"));
    assert_true(cgam_args_flag(args, "bold"));
    assert_int_equal(cgam_args_int(args, "count"), 0);
    assert_true(cgam_args_real(args, "alpha") == 1e-3 && cgam_args_real(args, "beta") == 0.125);
    assert_string_equal(cgam_args_text(args, "title"), "-x");
    assert_int_equal(cgam_args_choice(args, "mode"), 2);
    expect_reals("lambda", 3, (double[]){-1, 0.25, 1});
    expect_words("names", WORDS("a", "b c", "-"));
}

TEST_WITH(setup, teardown, repeated_options_are_gathered_in_order)
{
    parse(WORDS("a", "--edit", "1:add", "--dataset=sst2", "b", "--edit=2:add,x", "--dataset",
                "facts", "--gain", "3,4", "c", "--gain", "5", "--edit", "3"));
    expect_words("edit", WORDS("1:add", "2:add,x", "3"));
    expect_words("dataset", WORDS("sst2", "facts"));
    expect_words("MORE", WORDS("b", "c"));
    expect_reals("gain", 3, (double[]){3, 4, 5}); /* the default has gone */
    assert_string_equal(cgam_args_text(args, "edit"), "3");
    assert_int_equal(cgam_args_choice(args, "dataset"), 0);
}

TEST_WITH(setup, teardown, a_word_can_stand_for_numbers)
{
    parse(WORDS("f"));
    assert_true(cgam_args_is(args, "layers", "all"));
    assert_int_equal(cgam_args_choice(args, "layers"), 0);
    assert_int_equal(cgam_args_count(args, "layers"), 0);
    cgam_args_free(args);
    parse(WORDS("f", "--layers", "2,9"));
    assert_int_equal(cgam_args_choice(args, "layers"), -1);
    expect_ints("layers", 2, (int64_t[]){2, 9});
    cgam_args_free(args);
    refuse(WORDS("f", "--layers", "L,L,.."),
           "layers: 'L' is not an integer; a list is written like 0,1,4");
}

TEST_WITH(setup, teardown, two_dashes_end_the_options)
{
    parse(WORDS("--bold", "--", "--count", "--"));
    assert_string_equal(cgam_args_text(args, "FILE"), "--count");
    expect_words("MORE", WORDS("--"));
}

TEST_WITH(setup, teardown, what_is_wrong_is_said)
{
    refuse(WORDS("--bold"), "FILE is missing; see: cgam help try this");
    refuse(WORDS("f", "--count", "1.5"), "count: '1.5' is not an integer");
    refuse(WORDS("f", "--count", " 1"), "count: ' 1' is not an integer");
    refuse(WORDS("f", "--count", "99999999999999999999"),
           "count: '99999999999999999999' is not an integer");
    refuse(WORDS("f", "--count", "101"), "count is 101, it must be from 0 to 100");
    refuse(WORDS("f", "--count", ""), "count: '' is not an integer");
    refuse(WORDS("f", "--count"), "count needs a value: N");
    refuse(WORDS("f", "--count", "--bold"), "count needs a value: N");
    refuse(WORDS("f", "--count", "1", "--count=2"), "count is given twice");
    refuse(WORDS("f", "--alpha", "nan"), "alpha: 'nan' is not a finite number");
    refuse(WORDS("f", "--alpha", "inf"), "alpha: 'inf' is not a finite number");
    refuse(WORDS("f", "--alpha", "1x"), "alpha: '1x' is not a finite number");
    refuse(WORDS("f", "--alpha", "-1"), "alpha is -1, it must be at least 0");
    refuse(WORDS("f", "--beta", "0"), "beta is 0, it must be above 0 (1e-301 or more)");
    refuse(WORDS("f", "--title="), "title: the value is empty");
    refuse(WORDS(""), "FILE: the value is empty");
    refuse(WORDS("f", "--bold=yes"), "bold takes no value");
    refuse(WORDS("f", "--lambda", "0,"),
           "lambda: '' is not a finite number; a list is written like 0,0.5,1");
    refuse(WORDS("f", "--lambda", "0,2"), "lambda is 2, it must be from -1 to 1");
    refuse(WORDS("f", "--shots", "1;2"),
           "shots: '1;2' is not an integer; a list is written like 0,1,4");
    refuse(WORDS("f", "--names", "a,,b"), "names: the value is empty");
    refuse(WORDS("f", "--FILE", "x"), "no option --FILE; see: cgam help try this");
    refuse(WORDS("f", "--=x"), "no option --; see: cgam help try this");
}

TEST_WITH(setup, teardown, what_was_meant_is_guessed)
{
    refuse(WORDS("f", "--aplha", "1"),
           "no option --aplha; did you mean --alpha? see: cgam help try this");
    refuse(WORDS("f", "--thread=1"),
           "no option --thread; did you mean --threads? see: cgam help try this");
    refuse(WORDS("f", "--xyzzy"), "no option --xyzzy; see: cgam help try this");
    refuse(WORDS("f", "--mode", "cupled"),
           "mode: invalid value 'cupled' (valid: first|coupled|flow); did you mean coupled?");
    refuse(WORDS("f", "--mode", "first|coupled"),
           "mode: invalid value 'first|coupled' (valid: first|coupled|flow)");
    refuse(WORDS("f", "--mode="), "mode: invalid value '' (valid: first|coupled|flow)");
    refuse(WORDS("f", "--kinds", "add,replac"),
           "kinds: invalid value 'replac' (valid: add|replace); did you mean replace?");
    refuse(WORDS("f", "--dataset", "facts,sst2"),
           "dataset: invalid value 'facts,sst2' (valid: facts|sst2)");
}

TEST_WITH(setup, teardown, too_many_arguments_are_refused)
{
    static const cgam_param one[] = {{.name = "FILE", .kind = CGAM_TEXT, .value = "FILE"},
                                     {.name = ""}};
    static const cgam_verb narrow = {.name = "narrow", .params = one}, bare = {.name = "bare"};
    CHECK_FAILS(env, CGAM_E_ARG,
                cgam_args_parse(env, &narrow, 2, (const char *[]){"a", "b"}, &args));
    assert_string_equal(cgam_env_message(env), "unexpected argument 'b'; see: cgam help narrow");
    CHECK_STATUS(env, cgam_args_parse(env, &bare, 1, (const char *[]){"--json"}, &args));
    assert_true(cgam_args_flag(args, "json"));
}

TEST_WITH(setup, teardown, json_fills_the_same_table)
{
    from_json("{\"FILE\": \"a\", \"bold\": true, \"count\": 3.0, \"alpha\": 0.1, \"title\": 7,"
              " \"mode\": \"coupled\", \"figures\": false, \"shots\": [0, 2], \"layers\": \"last\","
              " \"lambda\": \"0.5,1\", \"names\": [\"a,b\", \"c\"], \"edit\": [\"x\", \"y,z\"],"
              " \"dataset\": \"sst2\", \"gain\": [0.25, 4], \"beta\": null, \"json\": false}");
    assert_true(cgam_args_flag(args, "bold"));
    assert_false(cgam_args_flag(args, "json"));
    assert_int_equal(cgam_args_int(args, "count"), 3);
    assert_true(cgam_args_real(args, "alpha") == 0.1);
    assert_string_equal(cgam_args_text(args, "title"), "7");
    assert_true(cgam_args_is(args, "mode", "coupled") && cgam_args_is(args, "figures", "no"));
    expect_ints("shots", 2, (int64_t[]){0, 2});
    assert_int_equal(cgam_args_choice(args, "layers"), 1);
    expect_reals("lambda", 2, (double[]){0.5, 1});
    expect_words("names", WORDS("a,b", "c"));
    expect_words("edit", WORDS("x", "y,z"));
    expect_words("dataset", WORDS("sst2"));
    expect_reals("gain", 2, (double[]){0.25, 4});
    assert_false(cgam_args_given(args, "beta"));
}

TEST_WITH(setup, teardown, json_is_checked_like_words)
{
    refuse_json("{\"FILE\": \"a\", \"count\": 1.5}", "count: '1.5' is not an integer");
    refuse_json("{\"FILE\": \"a\", \"count\": 1e20}", "count: '1e+20' is not an integer");
    refuse_json("{\"FILE\": \"a\", \"count\": [1]}", "count: expected a number or text");
    refuse_json("{\"FILE\": \"a\", \"shots\": [[1]]}",
                "shots: expected a number or text, or an array of these");
    refuse_json("{\"FILE\": \"a\", \"shots\": []}", "shots: the array is empty");
    refuse_json("{\"FILE\": \"a\", \"shots\": [1, 65]}", "shots is 65, it must be from 0 to 64");
    refuse_json("{\"FILE\": \"a\", \"bold\": \"yes\"}", "bold: expected true or false");
    refuse_json("{\"FILE\": {}}", "FILE: expected a number or text");
    refuse_json("{\"FILE\": \"a\", \"beta\": -1}",
                "beta is -1, it must be above 0 (1e-301 or more)");
    refuse_json("{\"FILE\": \"a\", \"kinds\": [\"add,replace\"]}",
                "kinds: invalid value 'add,replace' (valid: add|replace)");
    refuse_json("{\"FILE\": \"a\", \"modes\": 1}",
                "no option modes; did you mean mode? see: cgam help try this");
    refuse_json("{}", "FILE is missing; see: cgam help try this");
    refuse_json("[1]", "expected the parameters as one JSON object");
}

static int scenario(cgam_env *own, void *arg)
{
    (void)arg;
    OWNED(cgam_args) made = NULL;
    words w =
        WORDS("a", "--edit", "1", "--edit", "2", "--gain", "1,2,3,4,5,6,7,8,9", "--names=a,b");
    cgam_status status = cgam_args_parse(own, &verb, w.count, w.word, &made);
    return status;
}

TEST_WITH(setup, teardown, every_allocation_may_fail)
{
    assert_true(check_every_allocation(scenario, NULL) > 10);
}

/* No verb is too large, and what the tables of all verbs say holds together. */
TEST_WITH(setup, teardown, tables_hold_together)
{
    for (int v = 0; cgam_verbs[v]; v++) {
        const cgam_param *p, *q;
        char value[32];
        OWNED(json_t) given = json_object();
        bool optional = false, rest = false;
        for (int i = 0; (p = cgam_verb_param(cgam_verbs[v], i)); i++) {
            for (int j = 0; j < i && (q = cgam_verb_param(cgam_verbs[v], j)); j++)
                assert_string_not_equal(p->name, q->name);
            assert_true(p->help && *p->help);
            assert_true((p->kind == CGAM_FLAG) == !p->value);
            assert_true(p->min <= p->max);
            assert_false(p->required && p->fallback);
            if (p->kind == CGAM_CHOICE) assert_non_null(strchr(p->value, '|'));
            if (cgam_param_positional(p)) { /* required ones first, one that takes the rest last */
                assert_false(rest || (optional && p->required));
                optional |= !p->required;
                rest |= p->many;
            }
            if (p->required) {
                size_t length = 1;
                const char *word = cgam_field_word(p, NULL, &length);
                snprintf(value, sizeof value, "%.*s", (int)length, word ? word : "1");
                json_object_set_new(given, p->name, json_string(value));
            }
        }
        /* every default passes its own checks */
        CHECK_STATUS(env, cgam_args_json(env, cgam_verbs[v], given, &args));
        cgam_args_free(args);
        args = NULL;
    }
}
