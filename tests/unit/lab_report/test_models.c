/* Studies of language models in the report: claims follow the documents they are given, names from
 * outside stay harmless, and a page takes a study in without losing anything else. */
#include "lab/language/study.h"
#include "support/check.h"
#include "support/folder.h"

#include "base/env.h"
#include "lab/page/html.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static cgam_env *env;

static int set_up(void **state)
{
    (void)state;
    cgam_env_opts e = cgam_env_opts_default();
    e.threads = 1;
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
enum { LAYERS = 10, QUERIES = 60 };

static json_t *row(double first, double then, int64_t from)
{
    json_t *list = json_array();
    for (int64_t l = 0; l <= LAYERS; l++)
        json_array_append_new(list, json_real(l < from ? first : then));
    return list;
}

/* The first `count` of the queries right. */
static json_t *right(int count)
{
    char text[QUERIES + 1];
    for (int i = 0; i < QUERIES; i++) text[i] = i < count ? '1' : '0';
    text[QUERIES] = '\0';
    return json_string(text);
}

static json_t *common(void)
{
    return json_pack("{s:{s:s,s:s,s:i,s:i,s:i},s:s,s:s,s:s,s:i,s:i,s:i,s:s,s:s}", "model", "file",
                     "m.gguf", "description", "small", "layers", LAYERS, "width", 64, "vocab", 300,
                     "dataset", "d", "engine", "exact", "demos", "per-query", "queries", QUERIES,
                     "labels", 2, "seed", 7, "lens", "gain", "lambda_scale", "relative");
}

static json_t *accuracy_pair(int count)
{
    json_t *both = json_object();
    static const char *const names[] = {"restricted", "full"};
    for (int i = 0; i < 2; i++)
        json_object_set_new(both, names[i],
                            json_pack("{s:i,s:i,s:[f,n],s:f,s:f,s:o}", "context_layer", 9,
                                      "query_layer", 8, "lambda", 0.5, "accuracy",
                                      count / (double)QUERIES, "held_out", count / (double)QUERIES,
                                      "right", right(count)));
    return both;
}

static json_t *answer(int count)
{
    return json_pack("{s:f,s:o,s:f,s:o}", "restricted", count / (double)QUERIES, "restricted_right",
                     right(count), "full", count / (double)QUERIES, "full_right", right(count));
}

static json_t *sweep_of(int zero, int icl, int retrieval, int control, int early)
{
    json_t *doc = common();
    json_t *entry = json_pack("{s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:{s:{s:f,s:o},s:o,s:o,s:o}}", "k", 4,
                              "queries", QUERIES, "zero_shot", answer(zero), "icl", answer(icl),
                              "best", accuracy_pair(retrieval), "early", accuracy_pair(early),
                              "late", accuracy_pair(retrieval), "controls", "centred", "held_out",
                              control / (double)QUERIES, "held_out_right", right(control),
                              "label_mean", accuracy_pair(control), "flipped",
                              accuracy_pair(control), "other_task", accuracy_pair(control));
    json_t *shots = json_array();
    json_array_append_new(shots, entry);
    json_object_set_new(doc, "shots", shots);
    return doc;
}

/* N_eff of 1000 without demonstrations; with them `low` from layer `from` on. */
static json_t *neff_of(double low, int64_t from)
{
    json_t *doc = common(), *curves = json_array();
    json_array_append_new(curves,
                          json_pack("{s:i,s:s,s:o,s:o,s:o}", "k", 0, "kind", "zero", "entropy",
                                    row(1000, 1000, 0), "label_mass", row(0.01, 0.01, 0),
                                    "label_mass_sd", row(0.01, 0.01, 0)));
    json_array_append_new(
        curves, json_pack("{s:i,s:s,s:o,s:o,s:o,s:o,s:o}", "k", 4, "kind", "icl", "entropy",
                          row(1000, low, from), "label_mass", row(0.01, 0.9, from), "label_mass_sd",
                          row(0.01, 0.1, from), "log_drop", row(0, log(1000 / low), from),
                          "log_drop_se", row(0.01, 0.05, from)));
    json_object_set_new(doc, "curves", curves);
    return doc;
}

static json_t *steer_curve(const char *context, double gain, double behind)
{
    return json_pack("{s:s,s:f,s:o,s:o,s:o,s:o,s:o}", "context", context, "lambda", 1.0, "log_p",
                     row(-6, -6 + gain, 8), "log_p_gain", row(-1, gain, 8), "log_p_gain_se",
                     row(0.1, 0.1, 8), "behind_right", row(0, behind, 8), "behind_right_se",
                     row(0.1, 0.1, 8));
}

static json_t *steer_of(double positive, double wrong, double foreign)
{
    json_t *doc = common(), *curves = json_array(), *shots = json_array();
    json_array_append_new(curves, steer_curve("positive", positive, 0));
    json_array_append_new(curves, steer_curve("wrong_object", wrong, positive - wrong));
    json_array_append_new(curves, steer_curve("other_relation", foreign, positive - foreign));
    json_array_append_new(shots, json_pack("{s:i,s:{s:f,s:f},s:o}", "k", 4, "baseline", "log_p",
                                           -6.0, "log_odds", -1.0, "curves", curves));
    json_object_set_new(doc, "shots", shots);
    return doc;
}

static json_t *probe_of(int64_t separable_from, int64_t aligned_from)
{
    json_t *doc = common(), *curves = json_array();
    json_array_append_new(
        curves, json_pack("{s:i,s:s,s:o,s:o,s:o,s:o}", "k", 4, "kind", "icl", "separability",
                          row(0.5, 0.95, separable_from), "separability_se", row(0.06, 0.03, 0),
                          "margin", row(0, 0.1, aligned_from), "margin_sd", row(0.02, 0.02, 0)));
    json_object_set_new(doc, "curves", curves);
    return doc;
}

/* A study in which everything the paper says is so. */
static json_t *study_as_told(void)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o}", "command", "cgam lm study --dataset d", "neff",
                     neff_of(2, 8), "sweep", sweep_of(10, 55, 52, 20, 15), "steer",
                     steer_of(3, -2, -4), "probe", probe_of(3, 9));
}

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
    static char text[200];
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
    assert_true(claims.count >= 14);
    for (int i = 0; i < claims.count; i++) {
        char text[200];
        if (claims.claim[i].verdict != CGAM_HOLDS)
            print_error("%s: %s (%s)\n", claims.claim[i].says,
                        cgam_verdict_text(&claims.claim[i], text), claims.claim[i].numbers);
        assert_int_equal(claims.claim[i].verdict, CGAM_HOLDS);
        bool steering = strstr(claims.claim[i].says, "context s") || /* of the shipped facts */
                        strstr(claims.claim[i].says, "objects of");
        assert_non_null(strstr(claims.claim[i].numbers, steering ? "d: " : "told: "));
    }
    assert_string_equal(verdict("More shots"), "absent"); /* one number of shots cannot say */
    remove_study("told");
}

/* What `lm inject` left beside a study decides what is said of vectors inside the model. */
TEST(an_injection_beside_a_study_is_judged)
{
    put_study("told", study_as_told());
    decide();
    assert_string_equal(verdict("A vector inside"), "absent");
    json_t *entry =
        json_pack("{s:i,s:o,s:o,s:{s:s,s:i,s:o},s:{s:o,s:o,s:o},s:{s:{s:o},s:{s:o}}}", "k", 4,
                  "zero_shot_right", right(5), "readout_right", right(48), "best", "kind", "add",
                  "layer", 7, "right", right(50), "controls", "random_right", right(6),
                  "other_task_right", right(8), "flipped_right", right(49), "by_kind", "add",
                  "right", right(20), "replace", "right", right(50));
    json_t *doc = json_pack("{s:[o]}", "shots", entry);
    assert_int_equal(json_dump_file(doc, folder_file("lm/told/inject.json"), 0), 0);
    json_decref(doc);
    decide();
    assert_string_equal(verdict("A vector inside"), "holds");
    assert_string_equal(verdict("It does more than the readout"), "does not hold");
    assert_string_equal(verdict("A random vector of the same norm"), "holds");
    assert_string_equal(verdict("Wrong answers in the demonstrations do not"), "does not hold");
    assert_string_equal(verdict("Replacing the state"), "holds");
    unlink(folder_file("lm/told/inject.json"));
    remove_study("told");
}

/* And what `lm gates` left: few queries, or a share in between, do not make the range of alpha degenerate. */
TEST(gates_beside_a_study_are_judged)
{
    static const struct {
        int queries;
        double share;
        const char *verdict;
    } cases[] = {{60, 0.9, "does not hold"}, {60, 1, "does not hold"}, {60, 1.0 / 60, "holds"},
                 {60, 0.1, "absent"},        {12, 0.25, "absent"},     {12, 0, "absent"}};
    static const double alphas[] = {0, 0.1, 0.2, 2};
    put_study("told", study_as_told());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *grid = json_array();
        const bool full = i % 2;
        for (int k = 0; k < 8; k++) /* alpha = 0, two small ones and one that is not, both modes */
            json_array_append_new(
                grid, json_pack("{s:f,s:s,s:f,s:f,s:f,s:f,s:o}", "alpha", alphas[k / 2], "mode",
                                k % 2 ? "coupled" : "first", "argmax_changed",
                                k > 1 ? cases[i].share : 0, "neff", 5.0, "unique_share", 0.5,
                                full ? "full" : "restricted", 0.5 + k / 100.0,
                                full ? "full_right" : "restricted_right", right(k > 1 ? 60 : 30)));
        json_t *doc = json_pack("{s:i,s:f,s:f,s:s,s:[{s:i,s:o}]}", "queries", cases[i].queries,
                                "alpha_crit", 0.3, "mu_max", 10.0, "over",
                                full ? "full" : "restricted", "shots", "k", 4, "grid", grid);
        assert_int_equal(json_dump_file(doc, folder_file("lm/told/gates.json"), 0), 0);
        json_decref(doc);
        decide();
        assert_string_equal(verdict("The skewed spectrum"), cases[i].verdict);
        assert_string_equal(verdict("A small"), "holds");
        assert_non_null(
            strstr(numbers("A small"), full ? "α = 0.2, over words" : "α = 0.2, over labels"));
        assert_string_equal(verdict("At α = 0 the feedback"), "holds");
        assert_string_equal(verdict("At α > 0 the feedback"),
                            cases[i].share >= 0.9 ? "holds" : "does not hold");
    }
    unlink(folder_file("lm/told/gates.json"));
    remove_study("told");
}

static json_t *way(int count) { return json_pack("{s:o}", "full_right", right(count)); }

/* And what `lm fit` left, what is said of a learned P; what it did not fit decides nothing. */
TEST(a_fit_beside_a_study_is_judged)
{
    char path[500];
    put_study("told", study_as_told());
    decide();
    assert_string_equal(verdict("A learned P"), "absent");
    json_t *doc = json_pack("{s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:n}", "method", "ridge", "from",
                            "context", "layer", 5, "held_out", way(40), "identity", way(3),
                            "random", way(0), "mean", way(39), "icl", way(45), "left_out");
    snprintf(path, sizeof path, "%s/lm/told/fit.json", folder);
    assert_int_equal(json_dump_file(doc, path, 0), 0);
    decide();
    assert_string_equal(verdict("A learned P does more than P = I"), "holds");
    assert_string_equal(verdict("A learned P carries"), "does not hold");
    assert_string_equal(verdict("A learned P has most"), "holds");
    assert_string_equal(verdict("A learned P does more than demonstrations"), "does not hold");
    assert_string_equal(verdict("A learned P serves"), "absent");
    assert_string_equal(verdict("Low rank"), "absent");
    json_object_set_new(doc, "left_out", way(3));
    json_object_set_new(doc, "zero_shot", way(2));
    json_object_set_new(doc, "ridge", way(20));
    assert_int_equal(json_dump_file(doc, path, 0), 0);
    json_decref(doc);
    decide();
    assert_string_equal(verdict("A learned P serves"), "does not hold");
    assert_string_equal(verdict("Low rank"), "holds");
    unlink(path);
    remove_study("told");
}

/* One change at a time turns the claim it is about, and the other study keeps it "on" itself. */
TEST(each_claim_follows_its_own_numbers)
{
    static const struct {
        const char *part, *claim;
    } cases[] = {{"neff", "Without demonstrations"},
                 {"neff", "The collapse is in later layers"},
                 {"sweep", "Query plus"},
                 {"sweep", "The same over the whole"},
                 {"sweep", "What it gains over the labels"},
                 {"sweep", "What it gains over the vocabulary"},
                 {"sweep", "Late contexts are needed"},
                 {"steer", "Supportive context"},
                 {"steer", "Adversarial context"},
                 {"steer", "The same with objects"},
                 {"steer", "Right facts steer better"},
                 {"probe", "Separability peaks"},
                 {"probe", "Alignment sharpens"},
                 {"probe", "Separability comes before"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *doc = study_as_told(), *part = NULL;
        switch (i) {
        case 0: part = neff_of(400, 8); break;
        case 1: part = neff_of(2, 3); break;
        case 2:
        case 3: part = sweep_of(10, 55, 42, 20, 15); break;
        case 4:
        case 5: part = sweep_of(10, 55, 52, 49, 15); break;
        case 6: part = sweep_of(10, 55, 52, 20, 50); break;
        case 7: part = steer_of(0.1, -2, -4); break;
        case 8: part = steer_of(3, 2, -4); break;
        case 9: part = steer_of(3, -2, 0); break;
        case 10: part = steer_of(3, 3, -4); break;
        case 11: part = probe_of(8, 9); break;
        case 12: part = probe_of(3, 4); break;
        default: part = probe_of(9, 9); break;
        }
        bool facts = strcmp(cases[i].part, "steer") == 0; /* speak about steering each for itself */
        json_object_set_new(doc, cases[i].part, part);
        if (facts) json_object_set_new(doc, "probe", json_null());
        put_study("changed", doc);
        decide();
        if (strcmp(verdict(cases[i].claim), "does not hold") != 0)
            print_error("%s: %s\n", cases[i].claim, verdict(cases[i].claim));
        assert_string_equal(verdict(cases[i].claim), "does not hold");
        doc = study_as_told();
        if (facts) json_object_set_new(doc, "probe", json_null());
        put_study("told", doc);
        decide();
        assert_string_equal(verdict(cases[i].claim), "holds on told");
        remove_study("told");
        remove_study("changed");
    }
}

static json_t *shots_curve(int k, double early, double late)
{
    return json_pack("{s:i,s:s,s:o,s:o,s:o}", "k", k, "kind", k ? "icl" : "zero", "entropy",
                     row(early, late, 8), "log_drop", row(log(1000 / early), log(1000 / late), 8),
                     "log_drop_se", row(0.05, 0.05, 0));
}

/* Two words are the end of what labels allow: more shots lower N_eff where one leaves it at 40. */
TEST(more_shots_are_judged_where_they_can_do_something)
{
    for (int sharper = 0; sharper < 2; sharper++) {
        json_t *doc = study_as_told(), *neff = common(), *curves = json_array();
        json_array_append_new(curves, shots_curve(0, 1000, 1000));
        json_array_append_new(curves, shots_curve(1, 40, 2));
        json_array_append_new(curves, shots_curve(4, sharper ? 15 : 39, 2));
        json_object_set_new(neff, "curves", curves);
        json_object_set_new(doc, "neff", neff);
        put_study("steps", doc);
        decide();
        assert_string_equal(verdict("More demonstrations"), sharper ? "holds" : "does not hold");
        remove_study("steps");
    }
}

/* A strong context lowers any answer; that alone is no steering away. */
TEST(a_fall_that_right_facts_share_does_not_count)
{
    json_t *doc = study_as_told(), *steer = steer_of(3, -2, -4);
    json_t *curves = json_object_get(json_array_get(json_object_get(steer, "shots"), 0), "curves");
    /* a hundredth behind, and no doubt of it */
    json_object_set_new(json_array_get(curves, 1), "behind_right", row(0, 0.01, 8));
    json_object_set_new(json_array_get(curves, 1), "behind_right_se", row(0.001, 0.001, 8));
    json_object_set_new(doc, "steer", steer);
    put_study("shared", doc);
    decide();
    assert_string_equal(verdict("Adversarial context"), "does not hold");
    assert_string_equal(verdict("The same with objects"), "holds");
    remove_study("shared");
}

/* Steering of sets of classes is that of the shipped facts: a study of facts speaks for itself. */
TEST(studies_of_facts_speak_about_steering)
{
    json_t *facts = study_as_told(), *classes = study_as_told();
    json_object_set_new(facts, "probe", json_null());
    json_object_set_new(classes, "steer", steer_of(0.1, 0.1, 0.1));
    put_study("facts", facts);
    put_study("classes", classes);
    decide();
    assert_string_equal(verdict("Supportive context"), "holds");
    remove_study("facts");
    remove_study("classes");
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
    json_t *doc = neff_of(2, 8);
    assert_non_null(figures);
    json_object_set_new(doc, "dataset", json_string("a`touch x`\"\n_b{^c}"));
    cgam_models_figures(CGAM_LM_NEFF, doc, figures);
    assert_int_equal(figures->count, 2);
    assert_null(strpbrk(figures->figure[0].caption, "`\"\n_{}^\\"));
    assert_non_null(strstr(figures->figure[0].caption, "60 queries"));
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
        assert_non_null(strstr(page, "0.867")); /* 52 of 60 */
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
