/* What documents of language models leave on the page and in figures' scripts: tables of seeds and fits, which pictures are shown, sizes
 * that follow what is drawn, and words that neither end a field nor a picture. */
#include "lab/figures/figure.h"
#include "lab/language/study.h"
#include "lab/page/html.h"
#include "support/one_env.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/owned.h"

static char folder[] = "/tmp/cgam-pages-XXXXXX";
static cgam_claims claims;
static cgam_figures figures;

static void put(const char *study, const char *file, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/lm/%s", folder, study);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/lm/%s/%s", folder, study, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void clear(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'/lm/*", folder);
    assert_int_equal(system(command), 0);
}

/* The claims and the section of the page. */
static char *page(void)
{
    cgam_models *models;
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    CHECK_STATUS(env, cgam_models_load(env, folder, &models));
    cgam_models_claims(models, &claims);
    cgam_models_claims_html(to, models, &claims);
    CHECK_STATUS(env, cgam_models_html(to, env, folder, models));
    cgam_models_free(env, models);
    assert_int_equal(fclose(to), 0);
    return text;
}

static int times(const char *text, const char *piece)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, piece)); at++) count++;
    return count;
}

struct expected {
    const char *piece;
    int times;
};

/* Frees the text. */
static void holds(char *text, int lines, const struct expected *e)
{
    for (int i = 0; i < lines; i++)
        if (times(text, e[i].piece) != e[i].times)
            fail_msg("'%s' is there %d times, %d expected:\n%s", e[i].piece,
                     times(text, e[i].piece), e[i].times, text);
    free(text);
}
#define HOLDS(text, ...)                                                                           \
    holds(text, sizeof((struct expected[]){__VA_ARGS__}) / sizeof(struct expected),                \
          (struct expected[]){__VA_ARGS__})

/* ---- Tables ------------------------------------------------------------------------------- */
#define TASK(name) "{\"task\":\"" name "\",\"icl\":{\"full\":0.5,\"full_se\":0.0625}}"
#define FIT(queries, tasks)                                                                        \
    "{\"model\":{\"file\":\"f.gguf\",\"layers\":3},\"queries\":" queries                           \
    ",\"method\":\"ridge\",\"from\":\"context\",\"layer\":2,\"by_task\":[" tasks "],"              \
    "\"held_out\":{\"restricted\":0.75,\"restricted_se\":0.125,\"full_right\":"                    \
    "\"11111111111111111111\"},"                                                                   \
    "\"identity\":{\"full_right\":\"00000000000000000000\"},"                                      \
    "\"mean\":{\"full_right\":\"00000000000000000000\"},"                                          \
    "\"random\":{\"full_right\":\"00000000000000000000\"}}"

TEST(a_fit_is_a_table_with_a_row_for_each_of_several_tasks)
{
    put("one", "fit.json", FIT("200", TASK("alone")));
    HOLDS(page(), {"<h3>one</h3>", 1}, {"f.gguf", 1}, {"0.750 ± 0.125", 1}, {"alone", 0},
          {"over all words", 1}, {"Fewer than 50 queries", 0});
    put("two", "fit.json", FIT("20", TASK("a<b") "," TASK("c")));
    HOLDS(page(), {"<td>a&lt;b</td>", 2}, {"<td>c</td>", 2}, {"0.500 ± 0.062", 2},
          {"Fewer than 50 queries", 1});
    put("zzz", "fit.json", FIT("0", ""));
    HOLDS(page(), {"Fewer than 50 queries", 1}, {"<h3>", 3});
    clear();
    put("zzz", "study.json", "{\"sweep\":{}}");
    HOLDS(page(), {"Fewer than 50 queries", 0}, {"None is decided yet", 1});
    clear();
}

TEST(seeds_are_a_table_of_means_and_deviations)
{
    put("s", "study.json",
        "{\"spread\":{\"seeds\":[1,2],\"shots\":[{\"k\":4,"
        "\"restricted\":{\"zero_shot\":{\"mean\":0.25,\"sd\":0.0625}},"
        "\"full\":{\"other_task\":{\"mean\":0.75,\"sd\":0.125},\"icl\":{\"mean\":0.5}}}]}}");
    HOLDS(page(), {"Over 2 seeds", 1}, {"<td>over the labels<", 1}, {"<td>over all words<", 1},
          {"<td class=\"n\">4</td>", 2}, {"0.250 ± 0.062", 1}, {"0.750 ± 0.125", 1},
          {"<td class=\"n\">0.500</td>", 1}, {"–</td>", 9});
    put("s", "study.json", "{\"spread\":{\"seeds\":[1],\"shots\":[]}}");
    HOLDS(page(), {"seeds", 0});
    clear();
}

/* Of four numbers of shots the fewest and the most; steering of a study of classes only where none is about facts. */
TEST(pictures_are_shown_once_and_where_they_belong)
{
    static const char steer[] =
        "{\"probe\":{},\"steer\":{\"shots\":[{\"k\":1},{\"k\":2},{\"k\":3},{\"k\":4}]}}";
    static const char *const names[] = {"steer_1.png", "steer_2.png", "steer_4.png"};
    put("classes", "study.json", steer);
    for (int i = 0; i < 3; i++) put("classes", names[i], "png");
    HOLDS(page(), {"steer_1.png", 1}, {"steer_2.png", 0}, {"steer_3.png", 0}, {"steer_4.png", 1});
    put("about-facts", "study.json", "{\"probe\":null}");
    HOLDS(page(), {"steer_1.png", 0}, {"steer_4.png", 0}, {"<h3>about-facts</h3>", 1});
    clear();
    put("a\"><b>", "study.json", steer); /* a folder may be called anything */
    put("a\"><b>", names[0], "png");
    HOLDS(page(), {"<b>\"", 0}, {"<b>/", 0}, {"href=\"lm/a&quot;&gt;&lt;b&gt;/steer_1.png\"", 1});
    clear();
}

TEST(rows_of_a_gate_are_raw_or_unit)
{
    static const char *const kinds[] = {"unit", "raw"};
    for (int i = 0; i < 2; i++) {
        char text[200], said[40];
        snprintf(text, sizeof text,
                 "{\"rows\":\"%s\",\"demos\":\"%s\",\"dataset\":\"Aa0_%0100d\",\"shots\":[]}",
                 kinds[i], i ? "per-query" : "shared", 7);
        snprintf(said, sizeof said, "over all %s rows of", kinds[i]);
        put("g", "gates.json", text);
        HOLDS(page(), {said, 1});
        OWNED(json_t) doc = json_loads(text, 0, NULL);
        assert_non_null(doc);
        cgam_models_figures(CGAM_LM_GATES, doc, &figures);
        assert_int_equal(figures.count, 1);
        const char *caption = figures.figure[0].caption;
        snprintf(said, sizeof said, ", %s rows", kinds[i]);
        assert_non_null(strstr(caption, said));
        assert_non_null(strstr(caption, i ? "per query" : "demonstrations shared"));
        assert_non_null(strstr(caption, "Aa0-000"));
        assert_null(strstr(caption, "7")); /* a name is cut before it fills the picture */
    }
    clear();
}

/* ---- Scripts ------------------------------------------------------------------------------ */
TEST(pieces_are_written_as_fonts_and_fields_bear_them)
{
    static const struct {
        const char *piece;
        int letters;
        const char *shown;
    } cases[] = {
        {"", 8, ""},      {" a b", 8, "_a b"},  {"\n\"\\,\t", 8, "↵”∖‚·"},
        {"äж", 8, "äж"},  {"語😀", 8, "□□"},     {"abcdef", 3, "abc"},
        {"語語", 1, "□"}, {"\xe8\xaa", 8, "□"}, /* a letter that ends early */
    };
    char text[CGAM_PIECE_SIZE], many[200] = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cgam_piece_shown(cases[i].piece, cases[i].letters, text),
                            cases[i].shown);
    for (size_t i = 0; i < 120; i++) many[i] = "ж"[i % 2];
    size_t length = strlen(cgam_piece_shown(many, 100, text));
    assert_true(length < CGAM_PIECE_SIZE && length % 2 == 0);
}

static char *script(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s.gp", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 18);
    assert_non_null(text);
    size_t got = fread(text, 1, (1 << 18) - 1, f);
    assert_true(got > 0);
    fclose(f);
    unlink(path);
    return text;
}

static json_t *array_of(int count, json_t *(*one)(void))
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, one());
    return list;
}

static json_t *token(void) { return json_pack("{s:s}", "piece", " w"); }

static json_t *layer(void) { return json_integer(1); }

/* 12 to 60 tokens and layers have their own room, fewer and more that of the ends. */
TEST(a_trace_is_as_large_as_what_it_shows)
{
    static const struct {
        int tokens, layers, width, height;
        const char *engine;
    } cases[] = {
        {3, 2, 632, 716, "exact"}, {40, 39, 1360, 1500, "libllama"}, {90, 99, 1880, 2060, "exact"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char size[40];
        OWNED(json_t)
        doc = json_pack("{s:s,s:{s:i},s:o}", "engine", cases[i].engine, "model", "layers",
                        cases[i].layers, "tokens", array_of(cases[i].tokens, token));
        CHECK_STATUS(env, cgam_trace_figures_write(env, doc, folder, &figures));
        snprintf(size, sizeof size, "%d,%d", cases[i].width, cases[i].height);
        char *text = script("trace");
        if (!strstr(text, size)) fail_msg("no size %s in:\n%s", size, text);
        HOLDS(text, {i == 1 ? "states by libllama" : "states exact", 2}, {"\"_w\" 0", 1});
    }
}

/* More than 40 tokens leave no room for words. */
TEST(a_lens_writes_words_where_there_is_room)
{
    static const struct {
        int tokens, layers, words;
    } cases[] = {{3, 2, 6}, {50, 70, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(json_t)
        doc =
            json_pack("{s:s,s:s,s:o,s:o}", "engine", "exact", "lens", "gain", "tokens",
                      array_of(cases[i].tokens, token), "layers", array_of(cases[i].layers, layer));
        CHECK_STATUS(env, cgam_lens_figures_write(env, doc, folder, &figures));
        HOLDS(script("lens"), {",\"\"\n", cases[i].words}, {"token,layer,word", 1});
    }
}

TEST(a_landscape_has_a_panel_for_each_energy)
{
    for (int context = 0; context < 2; context++) {
        OWNED(json_t)
        doc = json_pack("{s:b,s:f,s:f,s:f,s:i}", "context", context, "alpha", 0.5, "beta", 2.0,
                        "lambda", 1.0, "starts", 64);
        CHECK_STATUS(env, cgam_landscape_figures_write(env, doc, folder, &figures));
        HOLDS(script("landscape"), {"without context", context}, {"under the context", context},
              {"set lmargin at screen 0.6", context}, {"64 descents", 1});
    }
}

static int set_up_all(void **state)
{
    char path[100];
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/lm", folder);
    return mkdir(path, 0755) == 0 ? set_up(state) : -1;
}

static int tear_down_all(void **state)
{
    char path[100];
    snprintf(path, sizeof path, "%s/lm", folder);
    rmdir(path);
    tear_down(state);
    return rmdir(folder); /* nothing else was left */
}

TEST_GROUP(set_up_all, tear_down_all)
