/* Studies of language models in the report: claims follow the documents they are given, names from
 * outside stay harmless, and a page takes a study in without losing anything else. */
#include "lab/language/study.h"
#include "support/check.h"
#include "support/folder.h"

#include "base/env.h"
#include "lab/page/html.h"
#include "told.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static cgam_env *env;
static cgam_rng rng;

static int set_up(void **state)
{
    (void)state;
    cgam_env_opts e = cgam_env_opts_default();
    e.threads = 1;
    rng = cgam_rng_stream(3, 0);
    folder = folder_path();
    return cgam_env_new(&e, &env) != CGAM_OK || mkdir(folder_file("lm"), 0755);
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

/* ---- A document that says what we want --------------------------------------------------- */
/* A study in which everything the paper says is so, of its four default parts. */
static json_t *study_of(const world *w)
{
    static const char *const beside[] = {"inject", "fit", "gates"};
    json_t *doc = told_study(&rng, w);
    for (int i = 0; i < 3; i++) json_object_del(doc, beside[i]);
    return doc;
}

static json_t *study_as_told(void) { return study_of(&everything); }

static void put_study(const char *name, json_t *doc)
{
    char path[500];
    snprintf(path, sizeof path, "%s/lm/%s", folder, name);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/lm/%s/study.json", folder, name);
    assert_int_equal(json_dump_file(doc, path, 0), 0);
    json_decref(doc);
}

static void remove_study(const char *name)
{
    char path[500];
    snprintf(path, sizeof path, "%s/lm/%s/study.json", folder, name);
    unlink(path);
    snprintf(path, sizeof path, "%s/lm/%s", folder, name);
    rmdir(path);
}

static cgam_claims claims;

static void decide(void)
{
    cgam_models *models;
    CHECK_STATUS(env, cgam_models_load(env, folder, &models));
    cgam_models_claims(models, &claims);
    cgam_models_free(env, models);
}

static const char *verdict(const char *beginning)
{
    static char text[CGAM_VERDICT_TEXT];
    for (int i = 0; i < claims.count; i++)
        if (strncmp(claims.claim[i].says, beginning, strlen(beginning)) == 0)
            return cgam_verdict_text(&claims.claim[i], text);
    return "absent";
}

static const char *numbers(const char *beginning)
{
    for (int i = 0; i < claims.count; i++)
        if (strncmp(claims.claim[i].says, beginning, strlen(beginning)) == 0)
            return claims.claim[i].numbers;
    return "";
}

/* ---- Claims ------------------------------------------------------------------------------ */
TEST(what_the_data_show_holds)
{
    put_study("told", study_as_told());
    decide();
    assert_int_equal(claims.count, 17);
    for (int i = 0; i < claims.count; i++) {
        assert_int_equal(claims.claim[i].verdict, CGAM_HOLDS);
        bool steering = strstr(claims.claim[i].says, "context s") || /* of the shipped facts */
                        strstr(claims.claim[i].says, "objects of");
        assert_non_null(strstr(claims.claim[i].numbers, steering ? "d: " : "told: "));
    }
    remove_study("told");
}

/* What single experiments left beside a study decides what is said of vectors inside the model, of a learned P and of
 * gates. */
TEST(experiments_beside_a_study_are_judged)
{
    static const struct {
        const char *part, *claim;
    } cases[] = {
        {"inject", "A vector inside"},      {"inject", "A vector inside the model does more"},
        {"inject", "Replacing the state"},  {"fit", "A learned P carries"},
        {"fit", "A learned P gives most"},  {"fit", "A learned P does more than demonstrations"},
        {"fit", "A learned P works"},       {"fit", "Low rank"},
        {"gates", "The stable range"},      {"gates", "A small"},
        {"gates", "At α = 0 the feedback"}, {"gates", "At α > 0 the feedback"}};
    world w = everything;
    json_t *all = told_study(&rng, &w);
    w.own = w.mean = w.add = w.ridge = w.null, w.left_out = w.zero, w.changed = w.again;
    w.coupled = 0;
    json_t *none = told_study(&rng, &w);
    put_study("told", study_as_told());
    decide();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(verdict(cases[i].claim), "absent");
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char path[500];
            snprintf(path, sizeof path, "%s/lm/told/%s.json", folder, cases[i].part);
            json_t *doc = json_object_get(which ? none : all, cases[i].part);
            assert_int_equal(json_dump_file(doc, path, 0), 0);
            decide();
            bool holds = which == 0 || i == 10; /* an identity */
            if ((strcmp(verdict(cases[i].claim), "holds") == 0) != holds)
                print_error("%s: %s\n", cases[i].claim, verdict(cases[i].claim));
            assert_true((strcmp(verdict(cases[i].claim), "holds") == 0) == holds);
            unlink(path);
        }
    }
    json_decref(all);
    json_decref(none);
    remove_study("told");
}

/* One change at a time turns the claim it is about, and the other study keeps it "on" itself. */
TEST(each_claim_follows_its_own_numbers)
{
    static const char *const names[] = {
        "Without demonstrations",       "The collapse is in later layers",
        "The collapse is onto",         "Query plus",
        "The same over the whole",      "The gain over the labels",
        "The gain over the vocabulary", "More shots",
        "Late contexts are needed",     "Supportive context",
        "Adversarial context",          "The same with objects",
        "Separability peaks",           "Alignment sharpens",
        "Separability comes before"};
    /* Without a fall there is no cell to speak of; a margin that is as large everywhere lacks a tenth of itself nowhere. */
    static const bool open[sizeof names / sizeof *names] = {[10] = true, [11] = true, [14] = true};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        world w = everything;
        switch (i) {
        case 0: w.drop = 1; break;
        case 1: w.from = 3; break;
        case 2: w.mass = 0.3; break;
        case 3:
        case 4: w.own = 0.2; break;
        case 5:
        case 6: w.null = 0.95; break;
        case 7: w.few = 1; break;
        case 8: w.early = 1; break;
        case 9: w.rise[WRONG] = 4; break;
        case 10: w.rise[WRONG] = 2; break;
        case 11: w.rise[OTHER] = 1; break;
        case 12: w.separable[0] = 0.6; break;
        case 13: w.margin[0] = 0.09; break;
        default: w.margin[0] = w.margin[1]; break;
        }
        json_t *doc = study_of(&w);
        bool facts = i >= 9 && i < 12; /* speak about steering each for itself */
        if (facts) json_object_set_new(doc, "probe", json_null());
        put_study("changed", doc);
        decide();
        const char *want = open[i] ? "not decided by this run" : "does not hold";
        if (strcmp(verdict(names[i]), want) != 0)
            print_error("%s: %s (%s)\n", names[i], verdict(names[i]), numbers(names[i]));
        assert_string_equal(verdict(names[i]), want);
        doc = study_as_told();
        if (facts) json_object_set_new(doc, "probe", json_null());
        put_study("told", doc);
        decide();
        if (strcmp(verdict(names[i]), "holds on told") != 0)
            print_error("%s: %s (%s)\n", names[i], verdict(names[i]), numbers(names[i]));
        assert_string_equal(verdict(names[i]), "holds on told");
        remove_study("told");
        remove_study("changed");
    }
}

/* Two words are the end of what labels allow: more shots lower N_eff where fewer leave some. */
TEST(more_shots_are_judged_where_they_can_do_something)
{
    world w = everything;
    for (int sharper = 0; sharper < 2; sharper++) {
        json_t *doc = study_of(&w),
               *curves = json_object_get(json_object_get(doc, "neff"), "curves");
        json_t *one = json_array_get(curves, 1), *four = json_array_get(curves, 2);
        if (!sharper) json_object_set(four, "log_drop", json_object_get(one, "log_drop"));
        put_study("steps", doc);
        decide();
        assert_string_equal(verdict("More demonstrations"),
                            sharper ? "holds" : "not decided by this run");
        remove_study("steps");
    }
}

/* A strong context lowers any answer; that alone is no steering away. */
TEST(a_fall_that_right_facts_or_random_vectors_share_does_not_count)
{
    for (int which = 0; which < 2; which++) {
        world w = everything;
        if (which) w.rise[RANDOM_KIND] = -2;
        else w.rise[POSITIVE] = -2, w.rise[RANDOM_KIND] = 3;
        put_study("shared", study_of(&w));
        decide();
        assert_string_equal(verdict("Adversarial context"), "not decided by this run");
        remove_study("shared");
    }
}

/* Steering of sets of classes is that of the shipped facts: a study of facts speaks for itself. */
TEST(studies_of_facts_speak_about_steering)
{
    world w = everything;
    for (int i = 0; i < STEER_KINDS; i++) w.rise[i] = 0;
    json_t *facts = study_as_told(), *classes = study_of(&w);
    json_object_set_new(facts, "probe", json_null());
    put_study("facts", facts);
    put_study("classes", classes);
    decide();
    assert_string_equal(verdict("Supportive context"), "holds");
    remove_study("facts");
    remove_study("classes");
}

/* Before nulls were run documents lacked them: nothing is decided, and nothing fails. */
TEST(documents_without_nulls_decide_nothing)
{
    json_t *doc = study_as_told();
    const char *const parts[] = {"neff", "probe"};
    for (int i = 0; i < 2; i++) json_object_del(json_object_get(doc, parts[i]), "nulls");
    json_object_del(
        json_object_get(json_array_get(json_object_get(json_object_get(doc, "sweep"), "shots"), 1),
                        "controls"),
        "random");
    json_object_set_new(doc, "steer", json_null());
    put_study("old", doc);
    decide();
    for (int i = 0; i < claims.count; i++)
        assert_int_not_equal(claims.claim[i].verdict, CGAM_HOLDS);
    remove_study("old");
}

TEST(documents_that_lack_everything_decide_nothing)
{
    put_study("empty",
              json_pack("{s:[i],s:{s:s},s:n}", "sweep", 1, "neff", "curves", "no", "steer"));
    decide();
    assert_int_equal(claims.count, 0);
    remove_study("empty");
}

/* ---- Figures ----------------------------------------------------------------------------- */
TEST(names_from_outside_stay_out_of_scripts)
{
    cgam_figures *figures = calloc(1, sizeof *figures);
    json_t *doc = json_incref(json_object_get(study_as_told(), "neff"));
    assert_non_null(figures);
    json_object_set_new(doc, "dataset", json_string("a`touch x`\"\n_b{^c}"));
    cgam_models_figures(CGAM_LM_NEFF, doc, figures);
    assert_int_equal(figures->count, 2);
    assert_null(strpbrk(figures->figure[0].caption, "`\"\n_{}^\\"));
    assert_non_null(strstr(figures->figure[0].caption, "300 queries"));
    assert_non_null(strstr(figures->figure[0].caption, "seed 7"));
    json_decref(doc);
    free(figures);
}

/* ---- The page ---------------------------------------------------------------------------- */
static char *read_page(void)
{
    FILE *f = fopen(folder_file("index.html"), "rb");
    assert_non_null(f);
    char *text = calloc(1 << 20, 1);
    assert_non_null(text);
    size_t got = fread(text, 1, (1 << 20) - 1, f);
    assert_true(got > 0);
    fclose(f);
    return text;
}

static void write_page(const char *before, bool marks)
{
    cgam_models *models;
    CHECK_STATUS(env, cgam_models_load(env, folder, &models));
    cgam_models_claims(models, &claims);
    FILE *f = fopen(folder_file("index.html"), "wb");
    assert_non_null(f);
    fprintf(f, "%s", before);
    if (marks) cgam_models_claims_html(f, models, &claims);
    fprintf(f, "between");
    if (marks) CHECK_STATUS(env, cgam_models_html(f, env, folder, models));
    fprintf(f, "after");
    fclose(f);
    cgam_models_free(env, models);
}

TEST(a_page_takes_studies_in_and_keeps_the_rest)
{
    write_page("before", true);
    char *page = read_page();
    assert_non_null(strstr(page, "cgam lm study"));
    assert_non_null(strstr(page, "None is decided yet"));
    free(page);
    put_study("a<b", study_as_told());
    for (int i = 0; i < 2; i++) { /* the second time changes nothing */
        CHECK_STATUS(env, cgam_models_refresh(env, folder));
        page = read_page();
        assert_int_equal(strncmp(page, "before<!-- cgam", 15), 0);
        assert_non_null(strstr(page, "between<!-- cgam"));
        assert_string_equal(page + strlen(page) - 5, "after");
        assert_non_null(strstr(page, "a&lt;b"));
        assert_null(strstr(page, "a<b"));
        assert_null(strstr(page, "None is decided yet"));
        assert_non_null(strstr(page, "Late contexts are needed"));
        assert_non_null(strstr(page, "<th>Null</th>"));
        assert_non_null(
            strstr(page, "zero-shot, label rows, flipped, another task, random: does not"));
        free(page);
    }
    remove_study("a<b");
    CHECK_STATUS(env, cgam_models_refresh(env, folder));
    page = read_page();
    assert_non_null(strstr(page, "None is decided yet"));
    free(page);
}

TEST(an_unreadable_study_is_named_with_its_reason)
{
    write_page("before", true);
    put_study("broken", json_object());
    FILE *f = fopen(folder_file("lm/broken/study.json"), "wb");
    assert_non_null(f);
    fputs("{\"neff\": ", f);
    fclose(f);
    CHECK_STATUS(env, cgam_models_refresh(env, folder));
    char *page = read_page();
    assert_non_null(strstr(page, "This study cannot be read: "));
    free(page);
    remove_study("broken");
}

TEST(a_page_of_others_is_left_alone)
{
    write_page("mine", false);
    assert_int_equal(cgam_models_refresh(env, folder), CGAM_E_FORMAT);
    assert_non_null(strstr(cgam_env_message(env), "language models"));
    char *page = read_page();
    assert_string_equal(page, "minebetweenafter");
    free(page);
    unlink(folder_file("index.html"));
}

TEST(a_page_is_made_where_there_is_none)
{
    put_study("own", study_as_told());
    for (int i = 0; i < 2; i++) { /* and taken for one's own the next time */
        CHECK_STATUS(env, cgam_models_refresh(env, folder));
        char *page = read_page();
        assert_int_equal(strncmp(page, "<!doctype html>", 15), 0);
        assert_non_null(strstr(page, "<h3>own</h3>"));
        assert_non_null(strstr(page, "Late contexts are needed"));
        assert_string_equal(page + strlen(page) - 16, "</body>\n</html>\n");
        free(page);
    }
    unlink(folder_file("index.html"));
    remove_study("own");
}

TEST_GROUP(set_up, tear_down)
